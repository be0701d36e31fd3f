"""ASK and alerts: does the query match now? Answered event by event, in one pass, without enumerating matches.

They are the engine's, with another payload. Its configurations hold the latest start of their runs, in place of the
matches that these have begun (`spaseq.core.engine.Selection.ENDS`). So every query has alerts. NOT at the end is the
exception that enumerates: each match must be checked when its window closes.

`Alerts.automaton` is the query as a register match automaton ([RMA]), for forecasts and to look at. It is made on
request; `spaseq.core.automata.rma.bridge` lists the queries that have none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ceql.expressions.predicates import TypeIs
from ceql.lowering.lower import Lowered
from ceql.runtime.batch import EngineBatch
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.evaluation import Matches, matches_of
from ceql.runtime.run import Run
from ceql.runtime.session import Session, identity, open_session, restore
from ceql.runtime.thresholds import Key, Reports, Threshold
from spaseq.core.automata.rma import RMA, Limits, count_events, determinise, from_pattern
from spaseq.core.engine import Choice, Program, Selection, ends_only
from spaseq.core.engine.recognition.session import Session as Pushing
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.core.events import EventCounters
from spaseq.core.events.batch import DURATIONS, INSTANTS
from spaseq.core.pattern import Predicate
from spaseq.core.snapshot import Identity, expect, unseal
from spaseq.core.watch import check, limited_steps

if TYPE_CHECKING:
    from ceql.results.matches import Match
    from spaseq.core.events import EventBatch
    from spaseq.core.events.options import OnLate

_Waiting: TypeAlias = "list[tuple[EventBatch, np.ndarray]]"
"""Batches of events, and the answers for them so far."""


@dataclass(frozen=True, slots=True)
class QueryRows(EngineBatch):
    """The rows that a `SingleRun` and predicates read."""

    def getter(self, name: str) -> Callable[[int], Any]:
        return self.events.getter(name)

    def event(self, row: int) -> Mapping[str, Any]:
        return self.events.event(row)


class Alerts:
    """The events at which a query matches."""

    def __init__(
        self,
        query: CompiledQuery,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        threshold: Threshold | None = None,
    ) -> None:
        self._query = query if threshold is None else query.timed_by("the timeframe of alerts")
        self._limits = limits
        self.threshold: Threshold | None = threshold
        """The rule by which alerts are reported; None for all."""
        self._reports: Reports | None = None
        self.counters: EventCounters = EventCounters()
        """Counts of the events that were read last."""
        self._matches: Matches | None = None
        self.held_back: int | None = None
        """At how many events an interrupted use would end a match if the stream ended; None if that is not known."""

    def why_none(self) -> list[str]:
        """As `Matches.why_none`, of the latest use."""
        if self._matches is None:
            return ["no events were read"]
        return [] if self._reports is not None and self._reports.left else self._matches.why_none()

    @property
    def notes(self) -> tuple[str, ...]:
        """As `Matches.notes`, of the latest use; and how many alerts were not reported."""
        left = () if self._reports is None else self._reports.notes()
        return (*(() if self._matches is None else self._matches.notes), *left)

    @functools.cached_property
    def program(self) -> Program:
        """The program that the engine runs."""
        return ends_only(self._query.program_of(False))

    def run(self, events: Any = None, **options: Any) -> Iterator[int]:
        """The positions at which some match ends, in order. Arguments and errors are those of `Query.run`."""
        answers = self._answers(self._query.read, events, **options)
        return (position for batch, found in answers for position in batch.positions[found].tolist())

    def ask(self, events: Any = None, **options: Any) -> bool:
        """True if there is a match; reads no further than the batch that completes the first."""
        return any(found.any() for _, found in self._answers(self._query.read, events, **options))

    def count(self, events: Any = None, **options: Any) -> int:
        """At how many events some match ends."""
        return sum(int(found.sum()) for _, found in self._answers(self._query.read, events, **options))

    def answers(self, events: Any = None, **options: Any) -> Iterator[tuple[EventBatch, np.ndarray]]:
        """Each batch of events with the answers: bool (n,), true if a match ends at the event.

        With NOT at the end, an event and its answer come once each match there is called off or its window has closed.
        """
        return self._answers(None, events, **options)

    def _answers(
        self, wanted: Collection[str] | None, events: Any, **options: Any
    ) -> Iterator[tuple[EventBatch, np.ndarray]]:
        matches = matches_of(self._query, events, **options)
        return limited_steps(self._find(wanted, matches), self._query.settings)

    def _find(self, wanted: Collection[str] | None, matches: Matches) -> Iterator[tuple[EventBatch, np.ndarray]]:
        run, stream = matches.begin_as_it_comes(wanted, self.program)
        self.counters, self._matches = matches.counters, matches
        self._reports = reports = Reports.of(self.threshold, self._query.settings)
        for batch, found in self._decisions(stream, run):
            yield batch, found if reports is None else _keep_reported(batch, found, reports)

    def _decisions(self, stream: Iterable[EventBatch | int], run: Run) -> Iterator[tuple[EventBatch, np.ndarray]]:
        """Each batch with the events at which a match ends, once that is decided."""
        waiting: _Waiting = []
        for batch in self._read(stream, run, waiting):
            if isinstance(batch, int):
                _enter(waiting, run.ends_until(batch))
            else:
                waiting.append((batch, np.zeros(len(batch), bool)))
                _enter(waiting, run.ends(batch))
            check()
            while waiting and (first := _decide(waiting[0][0], run)):
                batch, found = waiting.pop(0)
                if first < len(batch):
                    waiting.insert(0, (batch.part(first, len(batch)), found[first:]))
                    batch, found = batch.part(0, first), found[:first]
                yield batch, found
        _enter(waiting, run.ends(None))
        yield from waiting

    def _read(self, stream: Iterable[EventBatch | int], run: Any, waiting: _Waiting) -> Iterator[EventBatch | int]:
        """The batches. If an interrupt comes while one is waited for, the answers that wait are counted."""
        self.held_back = None
        batches = iter(stream)
        try:
            while (batch := next(batches, None)) is not None:
                yield batch
        except KeyboardInterrupt:
            _enter(waiting, run.ends(None))
            self.held_back = sum(int(found.sum()) for _, found in waiting)
            raise

    def open(self, state: bytes | None = None, **options: Any) -> AlertStream:
        """An evaluation that events are pushed to; from a snapshot, it goes on at its place. Arguments and errors are
        those of `Query.open`."""
        if state is None:
            return AlertStream(self, open_session(self._query, program=self.program, **options))
        restored = functools.partial(AlertStream.restore, self, on_late=options.get("on_late"))
        return unseal(state, self.identity, AlertStream._KINDS, restored)

    @functools.cached_property
    def identity(self) -> Identity:
        """The query and the rule that a snapshot of an evaluation belongs to."""
        return {**identity(self._query, self.program), "rows": "alerts", "rule": repr(self.threshold)}

    def rows(self, events: Any = None, **options: Any) -> Iterator[QueryRows]:
        """The batches as a `SingleRun` of `deterministic()` and `spaseq.core.forecast` take them. `OptionError` with
        `forget_keys_after`: these would go on with the runs of forgotten keys."""
        if self._query.settings.forget_keys_after is not None:
            raise OptionError("forecasts are made without forget_keys_after", "leave the setting out for them")
        return self._rows(matches_of(self._query, events, **options))

    def _rows(self, matches: Matches) -> Iterator[QueryRows]:
        run, stream = matches.begin(None, self.program)
        self.counters, self._matches = matches.counters, matches
        for batch in stream:
            rows = run.batch(batch)
            yield QueryRows(rows.events, rows.positions, rows.times, rows.keys)

    @functools.cached_property
    def automaton(self) -> RMA:
        """The register match automaton of the query's pattern. Raises `UnsupportedFeature` if it has none."""
        _check(self._query.lowered)
        return from_pattern(self._query.pattern, _group)

    def deterministic(self) -> RMA:
        """The complete output-agnostic deterministic automaton of the query in its window ([RMA] §6).

        The window must be of events, or none. Raises `UnsupportedFeature`, and `BudgetExceeded` as `determinise`."""
        window, automaton = self._query.lowered.window, self.automaton
        if window.is_bounded and not window.by_position:
            raise UnsupportedFeature("a window of time has no deterministic automaton", hint="WITHIN n EVENTS has one")
        if window.is_bounded:
            automaton = count_events(automaton, int(window.size) + 1, limits=self._limits)
        return determinise(automaton, output_agnostic=True, complete=True, limits=self._limits)


class AlertStream(Pushing[int]):
    """Alerts in progress. Use it in a `with` and read its `rest`, or `close` it."""

    _KINDS = (INSTANTS, DURATIONS)
    _OVER = ("this stream is closed", "alerts().open() begins a new one")

    def __init__(self, alerts: Alerts, session: Session) -> None:
        super().__init__(alerts._query.settings)
        self._alerts = alerts
        self._session = session
        self._reports = Reports.of(alerts.threshold, alerts._query.settings)
        self._ends: dict[int, tuple[Key, int]] = {}
        """The events at which matches end and that are not decided, each with its key and time."""

    @property
    def counters(self) -> EventCounters:
        """The counts of the events pushed so far."""
        return self._session.counters

    @property
    def notes(self) -> tuple[str, ...]:
        """As of `Alerts.notes`, of the events pushed so far."""
        return (*self._session.notes, *(() if self._reports is None else self._reports.notes()))

    def push(self, events: Any, stream: str | None = None, *, type: str | None = None) -> list[int]:
        """The positions at which matches end, in order, each once; with NOT at the end, as far as it is decided for all
        events before. Arguments: those of `Session.push`."""
        with self._use:
            self._check_open()
            return self._new_ends(self._session.push(events, stream, type=type))

    def _wait_until(self, now: int) -> list[int]:
        return self._new_ends(self._session.advance(now))

    def _latest_time(self) -> tuple[int | None, str | None]:
        return self._session._latest_time()

    def _finish(self) -> list[int]:
        found = self._new_ends(self._session.close())  # nothing waits any more
        self._leave()
        return found

    def _stopped(self) -> str:
        return self._session._stopped() or super()._stopped()

    def _leave(self) -> None:
        super()._leave()
        self._session._leave()

    @property
    def _taken(self) -> int:
        return self._session._taken

    def _identity(self) -> Identity:
        return self._alerts.identity

    def _contents(self) -> dict[str, Any]:
        return {
            "session": self._session.contents(),
            "ends": [(end, *about) for end, about in self._ends.items()],
            "reports": None if self._reports is None else self._reports.snapshot(),
        }

    @staticmethod
    def restore(alerts: Alerts, state: dict[str, Any], on_late: OnLate | None = None) -> AlertStream:
        """The opposite of `contents`, of the same query and rule."""
        stream = AlertStream(alerts, restore(alerts._query, state["session"], on_late, alerts.program))
        for end, key, time in state["ends"]:
            expect(type(end) is int and type(key) is tuple and type(time) is int, "the ends of matches")
            stream._ends[end] = key, time
        if stream._reports is not None:
            stream._reports.restore(state["reports"])
        return stream

    def _new_ends(self, matches: list[Match]) -> list[int]:
        """The ends that are decided and reported, among those of these matches and of earlier ones."""
        for match in matches:
            if match.end not in self._ends:
                self._ends[match.end] = _NOTHING if self._reports is None else self._about(match, self._reports)
        undecided = self._session.undecided
        ready = sorted(self._ends if undecided is None else (end for end in self._ends if end < undecided))
        decided = [(end, self._ends.pop(end)) for end in ready]
        return [end for end, about in decided if self._reports is None or self._reports.is_reported(*about)]

    def _about(self, match: Match, reports: Reports) -> tuple[Key, int]:
        return reports.threshold.key(match.last_event), match.time


_NOTHING: Final[tuple[Key, int]] = ((), 0)


def _keep_reported(batch: EventBatch, found: np.ndarray, reports: Reports) -> np.ndarray:
    """The answers of a batch without the alerts that are not reported."""
    rows = found.nonzero()[0]
    keys = reports.threshold.keys(batch.table, rows)
    kept = np.zeros(len(found), bool)
    for row, key, time in zip(rows.tolist(), keys, batch.times[rows].tolist(), strict=True):
        kept[row] = reports.is_reported(key, time)
    return kept


def _enter(waiting: _Waiting, ends: np.ndarray) -> None:
    """Set the answers for the events at `ends`, which are among those that wait."""
    for batch, found in waiting if len(ends) else ():
        first, last = np.searchsorted(ends, (batch.positions[0], batch.positions[-1] + 1))
        found[np.searchsorted(batch.positions, ends[first:last])] = True


def _decide(batch: EventBatch, run: Run) -> int:
    """Of how many events of the first batch that waits the answer is known."""
    undecided = run.undecided
    return len(batch) if undecided is None else int(np.searchsorted(batch.positions, undecided))


def _group(predicate: Predicate) -> str | None:
    """An event has one type."""
    return "type" if isinstance(predicate, TypeIs) else None


def _check(lowered: Lowered) -> None:
    """Raises an error if the events that complete a match depend on the choice among matches."""
    if lowered.strict:
        raise _outside("SELECT STRICT")
    if not lowered.around.is_empty:
        raise _outside("NOT at the end" if lowered.around.waits else "NOT at the start")
    if lowered.choice.after is not None:
        raise _outside("AFTER MATCH or SELECT FIRST")
    choice = Choice(Selection.ALL, limit=lowered.choice.limit)
    if lowered.choice not in (choice, Choice(Selection.ANY, limit=lowered.choice.limit)):
        raise _outside("a selection that leaves matches out, or consumption,")


def _outside(what: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{what} has no register match automaton", hint="leave it out, or use Query.run")
