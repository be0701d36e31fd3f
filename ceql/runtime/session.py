"""One evaluation in progress that events are pushed to, and its snapshots."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from ceql.results.history import History
from ceql.results.matches import Match, MatchTable
from ceql.results.selected import Times
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.run import Run
from ceql.runtime.single_events import Found, Singles
from ceql.runtime.unmatched import unlike_keys
from ceql.syntax.printer import print_query
from spaseq.core.engine import Program
from spaseq.core.engine.recognition.session import Session as Pushing
from spaseq.core.errors import EventError, OptionError, expect_type
from spaseq.core.events import EventCounters, EventFeed, EventOptions, TupleWords
from spaseq.core.events.batch import DURATIONS, INSTANTS
from spaseq.core.events.options import OnLate
from spaseq.core.held import Memory
from spaseq.core.snapshot import Identity, expect, unseal

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch


class Session(Pushing[Match]):
    """An evaluation in progress. Use it in a `with` and read its `rest`, or `close` it."""

    _KINDS = (INSTANTS, DURATIONS)
    _OVER = ("this stream is closed", "query.open() begins a new one")

    def __init__(
        self,
        query: CompiledQuery,
        names: tuple[str, ...],
        options: EventOptions,
        valuations: bool,
        program: Program | None = None,
    ) -> None:
        """`program` is another one made of the query than that of its matches."""
        super().__init__(query.settings)
        self._query = query
        self._program = program
        self._names = names
        self._options = options
        self._feed = EventFeed(names, options, query.timed, query.named_types)
        self._valuations = valuations
        self._bindings = query.bindings(valuations)
        feed = self._feed  # single events tell their clock alone
        times = Times(lambda: any(clock.iso for clock in feed.clocks.values()), options.unit)
        self._computing = None if program else query.computing(times)
        ordering = None if program else query.ordering(times)
        self._run = Run(query.lowered, program or query.program(valuations), ordering=ordering)
        self._run.counters = self._feed.counters
        self._singles: Singles | None = None
        self._untried = True
        self._quick: Singles | None = None

    @property
    def input(self) -> tuple[tuple[str, ...], EventOptions]:
        """The names of the streams, and the options for reading them."""
        return self._names, self._options

    @property
    def undecided(self) -> int | None:
        """The first event at which it is not decided yet if a match ends; None if there is none."""
        return self._run.undecided if self._singles is None else self._singles.undecided

    @property
    def counters(self) -> EventCounters:
        """The counts of the events pushed so far."""
        self._to_batches()
        self._run.make_room()
        self._feed.counters.about(self)
        return self._feed.counters

    @property
    def notes(self) -> tuple[str, ...]:
        """As of `Matches.notes`, of the events pushed so far; without attributes that no event had, and keys of single
        events that no step takes."""
        guessed = dict.fromkeys(line for clock in self._feed.clocks.values() for line in clock.guessed)
        partition = self._run.partition
        return (*guessed, *(() if partition is None else unlike_keys(partition.kinds)))

    def held(self) -> Memory:
        """The memory of the evaluation: `counters.memory`."""
        return self._run.held({"waiting": [self._feed.orderer], "runs": [self._singles], "rest": [self]}, [self._query])

    def push(self, events: Any, stream: str | None = None, *, type: str | None = None) -> list[Match]:
        """The matches that these events complete. `stream` names their stream, if there are several; `type` their type,
        of those that `open` was given.

        A dict is one event; pushed one by one, they go without columns if `ceql.runtime.single_events` takes them. With
        a lateness, events are held back until nothing that is on time can come before them.
        """
        if type is not None:
            stream = self._input_of(stream, type)
        tried = self._quick is not None and stream is None and events.__class__ is dict
        if tried:
            # PERF: `with self._use` and `_singly`, written again: their calls cost a sixth of a push.
            use = self._use
            if not use.acquire(False):
                use.refuse()
            try:
                parts = self._quick.push(events)  # type: ignore[union-attr]
                found = self._list(parts) if parts else []
            except BaseException as error:
                use.stopped(error.__class__)
                raise
            use.release()
            if parts is not None:
                return found
        elif isinstance(events, Iterator) and hasattr(events, "send"):  # a generator may fail, or push by itself
            events = list(events)
        with self._use:
            self._check_open()
            parts = None if tried else self._singly(events, stream)
            if parts is not None:
                return self._list(parts)
            self._to_batches()
            return self._matches(lambda: self._feed.push(events, stream))

    def _input_of(self, stream: str | None, kind: str) -> str:
        """The input whose events have this type. `OptionError` if there is none."""
        if not self._options.by_type or stream is not None:
            hint = "open(types=[…]) lists the types of pushes" if stream is None else "a push has a stream or a type"
            raise OptionError(f"type={kind!r}: this session takes no types", hint)
        if kind not in self._names:
            raise OptionError(f"unknown type {kind!r}", f"open was given the types {', '.join(self._names)}")
        return kind

    def _singly(self, events: Any, stream: str | None) -> Found | None:
        """The matches that one event completes, or a few; None if they must go the way of batches."""
        few = events if type(events) is list else [events]
        if type(few[0] if few else None) is not dict or (singles := self._singles_of(stream)) is None:
            return None
        if len(few) == 1:
            return singles.push(few[0])
        try:
            return singles.push_all(few)
        except EventError as error:  # as of a batch: those before the refused one are taken
            self._use.spoil(type(error))
            raise

    def _singles_of(self, stream: str | None) -> Singles | None:
        """The road of single events, if this stream has one."""
        if self._untried:
            self._singles = Singles.of(self._run, self._feed, self._options, self._names)
            self._untried = False
            self._quick = self._singles if self._use.free else None
        if stream is not None and not (isinstance(stream, str) and stream == self._names[0]):
            return None
        return self._singles

    def _to_batches(self) -> None:
        if self._singles is not None:
            self._singles.leave()

    def _wait_until(self, now: int) -> list[Match]:
        self._to_batches()
        return self._matches(lambda: self._feed.advance(now)) + self._list(self._run.wait_until(now))

    def _latest_time(self) -> tuple[int | None, str | None]:
        self._to_batches()
        return self._feed.orderer.reorder.latest, self._feed.time_column

    def _finish(self) -> list[Match]:
        self._to_batches()
        found = self._matches(self._feed.finish)
        self._leave()
        return found + self._list(self._run.close(at_once=True))

    @property
    def _taken(self) -> int:
        self._to_batches()
        return self._feed.taken

    def _leave(self) -> None:
        self._closed, self._quick = True, None

    def _identity(self) -> Identity:
        return identity(self._query, self._program)

    def _contents(self) -> dict[str, Any]:
        self._to_batches()
        return {
            "names": self._names,
            "options": options_to_keep(self._options),
            "valuations": self._valuations,
            "feed": self._feed.snapshot(),
            "run": self._run.snapshot(),
        }

    def _matches(self, batches: Callable[[], Iterator[Any]]) -> list[Match]:
        try:
            return [match for events in batches() for match in self._list(self._run.advance(events, at_once=True))]
        except EventError as error:
            if self._run.is_midway:
                self._use.spoil(type(error))
            raise

    def _list(self, found: Iterable[tuple[MatchBatch, History]]) -> list[Match]:
        return [
            match
            for matches, history in found
            for match in MatchTable.of(matches, history, self._bindings, self._computing)
        ]


def open_session(
    query: CompiledQuery,
    *,
    streams: Iterable[str] | None = None,
    types: Iterable[str] | None = None,
    valuations: bool = False,
    schema: Any = None,
    program: Program | None = None,
    **reading: Unpack[TupleWords],
) -> Session:
    """A new evaluation. Arguments: those of `Query.open`, `reading` as `EventOptions.parse`, `program` as `Session`.

    Raises `OptionError` for options that cannot be used, `QuerySemanticsError` if the query does not fit the schema.
    """
    query.declared(schema)
    expect_type("valuations", valuations, bool, "it is True or False")
    for word, names in (("streams", streams), ("types", types)):
        if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
            raise OptionError(f"{word} cannot be a {type(names).__name__}", f"open({word}=[name, …])")
    if streams is not None and types is not None:
        raise OptionError("streams and types are given together", "a session has streams, or inputs of a type each")
    options = replace(EventOptions.parse(**reading), by_type=types is not None)
    shows = program is None and query.shows(valuations)
    names = query.streams(() if streams is None else tuple(streams)) if types is None else query.types(types)
    query.check_given(options.typed_by(names))
    return Session(query, names, options, shows, program)


def identity(query: CompiledQuery, program: Program | None = None) -> Identity:
    """The query that a snapshot of an evaluation belongs to. `program`: as of `Session`.

    Budgets may change before opening. The automaton is that of this version: the contents refer to its states.
    """
    program = program or query.program()
    settings = program.settings
    return {
        "language": "CEQL",
        "query": print_query(query.tree),
        "settings": f"evaluator={settings.evaluator}, negated_conditions={settings.negated_conditions}, "
        f"forget_keys_after={settings.forget_keys_after}",
        "automaton": program.describe() + ("" if program.against is None else program.against.describe()),
        **query.own.identity(query.functions),
    }


def options_to_keep(options: EventOptions) -> dict[str, Any]:
    """The options that a snapshot has."""
    kept = dataclasses.asdict(replace(options, on_late=None))
    del kept["on_late"]
    return kept


def opened(query: CompiledQuery, blob: bytes, on_late: OnLate | None = None) -> Session:
    """The evaluation that a snapshot was taken of; `OptionError` if it is none, damaged, or of something else."""
    return unseal(blob, identity(query), (INSTANTS, DURATIONS), functools.partial(restore, query, on_late=on_late))


def restore(
    query: CompiledQuery, state: dict[str, Any], on_late: OnLate | None = None, program: Program | None = None
) -> Session:
    """The opposite of `Session.contents`, of the same query and program."""
    options = EventOptions(**state["options"], on_late=on_late)
    stream = Session(query, tuple(state["names"]), options, state["valuations"], program)
    stream._feed.restore(state["feed"])
    stream._run.restore(state["run"])
    stream._run.counters = stream._feed.counters
    expect_place(stream._run, stream._feed)
    return stream


def expect_place(run: Run, feed: EventFeed) -> None:
    """Check that a run that was restored is at the place of its feed."""
    last, past = run.evaluator.last_position, run.past.blocks
    expect(last is None or last < feed.position, "the last event is in front of the next")
    expect(not past or past[-1].positions[-1] + 1 == feed.position, "the events up to here")
