"""Networks of queries: the matches of a query are events of others.

A query names those that it reads as it names event types: `suspicious ; wire` takes the matches of the query called
`suspicious`, and the given events of type `wire`. A match becomes an event with the attributes of its row, as
`spaseq.spark.match` has it: the keys, what SELECT computes, `match_start`, `match_end`. Each query takes all given
events, and the matches of the queries that it names; ANY and `WITHIN … EVENTS` count these as well.

*When.* The event of a match is directly behind the event that the match ends at, and has its time. Matches that a NOT
at the end holds back come when their time is over: behind the events up to that time, and at that time. So the order is
the same, whatever pushes or batches the events come in. Of one place, the matches of the earlier query come first;
queries are in the order of the network, each behind those that it reads. Cycles are refused.

*How.* One feed puts the given events in order (`spaseq.core.events`). The queries are evaluated in columns, one after
another for each batch. The matches of one are a table, merged with the given events for those that read it.

PERF: 1,000,000 events of a table through two queries take 0.47 s, as much as through each alone. Pushed one by one, an
event takes 0.6 ms in each query. Pushed by a hundred, it takes 11 µs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa

from ceql.query import Query, compile_query
from ceql.results.matches import Match, MatchTable
from ceql.results.selected import Times, value_type
from ceql.runtime.evaluation import expect_again
from ceql.runtime.ordered import OrderedMatches
from ceql.runtime.session import identity, options_to_keep
from ceql.runtime.unmatched import unknown_attributes
from spaseq.core.engine import Choice, Settings
from spaseq.core.engine.recognition.session import Session as Pushing
from spaseq.core.errors import EventError, OptionError, UnsupportedFeature
from spaseq.core.events import EventBatch, EventCounters, EventFeed, EventOptions, EventStream, TupleWords, format_time
from spaseq.core.events.batch import DURATIONS, INSTANTS
from spaseq.core.events.options import Duration, OnLate
from spaseq.core.events.readers import common_schema
from spaseq.core.events.timestamps import Part
from spaseq.core.queries.networks import Member, check_queries, members_of, read_network
from spaseq.core.snapshot import Identity, expect, unseal
from spaseq.core.watch import limited_steps
from spaseq.live.evaluation import Alive
from spaseq.live.states import Saving, State

_KINDS: Final = (INSTANTS, DURATIONS)
Found = tuple[str, Match]
"""The name of a query, and a match of it."""


_Member = Member[Query]


class Network:
    """Queries by name, of which some read the matches of others.

    >>> pairs = Network({"rise": "SELECT x.v AS v WHERE A AS x ; A AS y FILTER y.v > x.v WITHIN 2 EVENTS",
    ...                  "twice": "SELECT r.v AS low, s.v AS high WHERE rise AS r ; rise AS s FILTER s.v > r.v"})
    >>> events = [{"type": "A", "v": v} for v in (1, 2, 3)]
    >>> [(name, match.row["high"]) for name, match in pairs.run(events) if name == "twice"]
    [('twice', 2)]
    """

    def __init__(
        self,
        queries: Mapping[str, str | Query],
        *,
        report: Iterable[str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        """`queries`: texts or compiled queries by name. `report`: the names of those whose matches are wanted; all if
        not given. `settings`: the budgets of each query that is a text.

        Raises errors of the queries, and `OptionError` for a cycle, an unknown name, no query, or one with FROM. One
        that others read is an `UnsupportedFeature` if its matches wait for a window that no time closes.
        """
        check_queries(queries, "it is the type of the events that its matches are")
        compiled = {
            name: query if isinstance(query, Query) else compile_query(query, source=name, settings=settings)
            for name, query in queries.items()
        }
        reads = {name: [other for other in query.compiled.named_types if other in compiled]
                 for name, query in compiled.items()}  # fmt: skip
        self.members: tuple[_Member, ...] = members_of(compiled, reads, report)
        for member in self.members:
            _check_member(member)

    @staticmethod
    def of_file(path: str | Path, *, settings: Settings | None = None) -> Network:
        """The network in a TOML file: a table `queries` of texts, or of files (`{ file = "theft.ceql" }`, found beside
        it), by name; and perhaps `report`, a list of names. No file outside of its folder is read.

        Raises `OptionError` for a file that is none, besides the errors of `Network`.
        """
        compiled, report = read_network(Path(path), lambda text, source: compile_query(text, source, settings))
        return Network(compiled, report=report)

    @property
    def queries(self) -> dict[str, Query]:
        """The queries by name, each behind those that it reads."""
        return {member.name: member.query for member in self.members}

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """Of each query the queries that it reads."""
        return {member.name: tuple(self.members[i].name for i in member.feeds) for member in self.members}

    @property
    def given_types(self) -> tuple[str, ...]:
        """The event types that are no queries: those of the given events."""
        named = (kind for member in self.members for kind in member.query.compiled.named_types)
        return tuple(dict.fromkeys(kind for kind in named if kind not in self.queries))

    def run(
        self, events: Any = None, *, types: Mapping[str, Any] | None = None, **reading: Unpack[TupleWords]
    ) -> NetworkMatches:
        """The matches with the names of their queries, found as they are asked for. Arguments: as of `Query.run`."""
        if (events is None) == (types is None):
            raise OptionError("events or types are needed, one of them", "run(events), or run(types={'A': events})")
        options = EventOptions.parse(**reading)
        if types is not None:
            self._check_given(types)
            options = dataclasses.replace(options, by_type=True)
        return NetworkMatches(self, dict(types) if types is not None else {"": events}, options)

    def open(
        self, state: bytes | None = None, *, types: Iterable[str] | None = None, **reading: Unpack[TupleWords]
    ) -> NetworkSession:
        """An evaluation that events are pushed to; from a snapshot, it goes on at its place. `types` are those that
        pushes name. The options are those of the snapshot, but for `on_late`. Raises `OptionError` for a snapshot of
        anything else."""
        if state is not None:
            return unseal(state, self.identity, _KINDS, partial(self._go_on, on_late=reading.get("on_late")))
        options = dataclasses.replace(EventOptions.parse(**reading), by_type=types is not None)
        names = ("",) if types is None else tuple(types)
        self._check_given(names)
        return NetworkSession(self, names, options)

    def _check_given(self, types: Iterable[str]) -> None:
        """`OptionError` if events of a type are given, and the type is a query that others read."""
        read = {member.name for member in self.members if member.read}
        for name in types:
            if name in read:
                raise OptionError(*_clash(name))

    def alive(
        self, source: Any, *, state: State = None, clock: Duration | None = None, save: Saving = None,
        every: Duration = "10s", types: Iterable[str] | None = None, **reading: Unpack[TupleWords],
    ) -> Alive[Found]:  # fmt: skip
        """The matches over a source, asynchronously: pairs of a query's name and a match. As of `Query.alive`."""
        return Alive(
            lambda blob: self.open(blob, types=types, **reading), source, words=("type",), state=state, clock=clock,
            save=save, every=every,
        )  # fmt: skip

    def _go_on(self, contents: dict[str, Any], on_late: OnLate | None) -> NetworkSession:
        options = EventOptions(**contents["options"], on_late=on_late)
        session = NetworkSession(self, tuple(contents["names"]), options)
        session.restore(contents)
        return session

    @property
    def identity(self) -> Identity:
        """The network that a snapshot of an evaluation belongs to."""
        found = {"language": "a network of CEQL"}
        for member in self.members:
            found |= {f"{member.name}: {about}": said for about, said in identity(member.query.compiled).items()}
        return found

    def __repr__(self) -> str:
        return f"<ceql.Network of {', '.join(self.queries)}>"


def _clash(name: str) -> tuple[str, str]:
    """The error that events of a type are given which is the name of a query: problem and hint."""
    return f"{name} is a query, and the type of given events", "give the query or the type another name"


def _check_member(member: _Member) -> None:
    compiled = member.query.compiled
    if compiled.named_streams:
        raise OptionError(f"{member.name} reads streams, by FROM", "the events of a network are of one stream")
    waits, window = compiled.lowered.around.waits, compiled.lowered.window
    by_events = compiled.lowered.around.patience is None and window.is_bounded
    apart = bool(compiled.lowered.around.marked) or (by_events and compiled.lowered.choice != Choice())
    if member.read and waits and apart:
        raise UnsupportedFeature(
            f"{member.name} has a NOT at the end of some alternatives, or with a choice, and other queries read it",
            hint="SELECT ALL, and a NOT behind the whole formula, say when the matches are events",
        )
    if member.read and waits and by_events and (window.by_position or compiled.lowered.window_attribute is not None):
        raise UnsupportedFeature(
            f"{member.name} has a NOT at the end in a window that no time closes, and other queries read it",
            hint="WITHIN a time, or NOT … FOR, says when the matches are events",
        )


@dataclass(frozen=True, slots=True)
class _Placed:
    """Rows with their places: the number of the given event that each is behind, and its time (ns): int64 (n,)."""

    part: Part
    behind: np.ndarray


@dataclass(frozen=True, slots=True)
class _Reported:
    """A match with its place: as of `_Placed`, then the number of its query."""

    place: tuple[int, int, int]
    found: Found


class _Evaluation:
    """The queries of a network in progress. `iso`: True if times are dates, as far as the events tell."""

    def __init__(self, network: Network, options: EventOptions, iso: Callable[[], bool]) -> None:
        self._members = network.members
        self._type_column = options.type_column or "type"
        for member in network.members:
            if member.read and self._type_column in member.query.columns:
                problem = f"{member.name} has a column {self._type_column}, which says the types of events"
                raise OptionError(
                    problem, f"as an event, its match is of type {member.name}; give it another name: AS …"
                )
        self._derived = {member.name for member in self._members if member.read}
        self._options = dataclasses.replace(options, type=None, by_type=False, type_column=self._type_column)
        self._times = Times(iso, options.unit)
        self.matches: list[OrderedMatches] = [
            OrderedMatches(member.query.compiled, ("",), self._options, iso) for member in self._members
        ]
        self.times_in: tuple[str, bool] | None = None
        """The column of times of the given events, and True if it holds texts; None if there is none."""
        self._time_type: pa.DataType | None = None
        self.last: int = 0

    def lacking(self, given: Collection[str]) -> Iterator[str]:
        """A line for each attribute of a query that no event of it had. `given`: those of the given events."""
        for member in self._members:
            rows = (self.matches[i].columns for i in member.feeds)
            known = {*given, *(name for columns in rows for name in columns)}
            for line in unknown_attributes(member.query.compiled, known):
                yield f"{member.name}: {line}"

    def push(self, batch: EventBatch, time_column: str | None) -> list[Found]:
        """The matches that these events complete, in order. `time_column`: that of their times, if there is one."""
        table = batch.table
        if isinstance(batch.typed_by, tuple):
            kinds = batch.types
            assert kinds is not None
            column = pa.DictionaryArray.from_arrays(pa.array(kinds.codes), kinds.texts)
            if self._type_column in table.column_names:
                table = table.drop_columns([self._type_column])
            table = table.append_column(self._type_column, column)
        if time_column is not None and time_column in table.column_names:
            self._time_type = value_type(table.schema.field(time_column).type)
            text = pa.types.is_string(self._time_type) or pa.types.is_large_string(self._time_type)
            self.times_in = time_column, text
        given = _Placed(Part(table, batch.times), np.arange(len(batch)))
        self.last = int(batch.times[-1])
        return self._through(given, lambda matches: iter(()))

    def check_types(self, batch: EventBatch) -> EventBatch:
        """The batch. `EventError` if an event is of a type that is a query which others read."""
        found = batch.types if self._derived else None
        if found is None:
            return batch
        for code, name in enumerate(found.texts.to_pylist()):
            if name in self._derived and (rows := np.flatnonzero(found.codes == code)).size:
                problem, hint = _clash(name)
                raise EventError(
                    problem, source="<events>", counted="event", record=int(batch.positions[rows[0]]) + 1, hint=hint
                )
        return batch

    def wait_until(self, now: int) -> list[Found]:
        """The matches that wait for nothing but the time `now`."""
        return self._through(None, lambda matches: matches.wait_until(now))

    def close(self) -> list[Found]:
        """The matches that the end of the stream completes."""
        return self._through(None, lambda matches: matches.close())

    def _through(self, given: _Placed | None, end: Callable[[OrderedMatches], Iterator[MatchTable]]) -> list[Found]:
        """The matches of all queries over the given events, and what `end` gives of each query behind them."""
        made: list[_Placed | None] = []
        reported: list[_Reported] = []
        for number, (member, matches) in enumerate(zip(self._members, self.matches, strict=True)):
            inputs = [rows for rows in (given, *(made[i] for i in member.feeds)) if rows is not None]
            merged = _merge(inputs)
            first = matches.position
            tables = [] if merged is None else list(matches.push([merged.part]))
            tables += end(matches)
            made.append(None)
            pieces = [(table, *self._place(member, table, merged, first, given)) for table in tables if len(table)]
            if member.read and pieces:
                made[-1] = self._as_events(member, pieces)
            if member.reported:
                reported += (
                    _Reported((*place, number), (member.name, match))
                    for table, behind, times in pieces
                    for match, *place in zip(table, behind.tolist(), times.tolist(), strict=True)
                )
        reported.sort(key=lambda one: one.place)
        return [one.found for one in reported]

    def _place(
        self, member: _Member, table: MatchTable, merged: _Placed | None, first: int, given: _Placed | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The places of matches: the numbers of the given events that they are behind, and their times."""
        lowered, ends = member.query.compiled.lowered, table.matches.end
        times = table.history.times(ends)
        if not lowered.around.waits:
            if merged is not None and len(ends) and int(ends.min()) >= first:
                return merged.behind[ends - first], times
        elif lowered.around.patience is not None:
            times = times + int(lowered.around.patience.size)
        elif lowered.choice != Choice() or lowered.around.marked:  # they wait for others, or not at all
            times = np.maximum(times, self.last)
        elif lowered.window.is_bounded and not lowered.window.by_position and lowered.window_attribute is None:
            times = table.history.times(table.matches.start) + int(lowered.window.size)
        else:
            times = np.maximum(times, self.last)
        before = np.zeros(0, np.int64) if given is None else given.part.times
        return np.searchsorted(before, times, "right") - 1, times

    def _as_events(self, member: _Member, pieces: list[tuple[MatchTable, np.ndarray, np.ndarray]]) -> _Placed:
        """Matches as the events that other queries read, in order."""
        behind, times = (np.concatenate([piece[i] for piece in pieces]) for i in (1, 2))
        rows = [table.rows(natural=True) for table, _, _ in pieces]
        table = rows[0] if len(rows) == 1 else common_schema(rows, member.name)
        own = {self._type_column: pa.array([member.name] * len(table), pa.string())}
        if self.times_in is not None and self.times_in[0] not in table.column_names:
            own[self.times_in[0]] = self._in_form(times)
        for name, column in own.items():
            table = table.drop_columns([name]) if name in table.column_names else table
            table = table.append_column(name, column)
        order = np.lexsort((times, behind))
        return _Placed(Part(table.take(pa.array(order)), times[order]), behind[order])

    def _in_form(self, times: np.ndarray) -> pa.Array:
        """Times as the given events have theirs: dates, numbers or texts."""
        if self.times_in is not None and self.times_in[1]:
            return pa.array([format_time(time) for time in times.tolist()])
        column = self._times.column(times)
        try:
            return column if self._time_type is None else column.cast(self._time_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # of times that the type cannot hold
            return column


def _merge(inputs: list[_Placed]) -> _Placed | None:
    """The events of several inputs, in order of place; of one place and time in the order of the inputs."""
    if len(inputs) < 2:
        return inputs[0] if inputs else None
    behind = np.concatenate([rows.behind for rows in inputs])
    times = np.concatenate([rows.part.times for rows in inputs])
    order = np.lexsort((times, behind))
    table = common_schema([rows.part.table for rows in inputs], "the network").take(pa.array(order))
    return _Placed(Part(table, times[order]), behind[order])


class NetworkMatches:
    """The matches of a network over events: pairs of a query's name and a match, in order. Each use reads the events
    anew; `OptionError` if they can be read only once. `counters` and `notes` are those of the latest use, as of
    `Matches`."""

    def __init__(self, network: Network, sources: dict[str, Any], options: EventOptions) -> None:
        self._network = network
        self._sources = sources
        self._options = options
        self.counters: EventCounters = EventCounters()
        self.notes: tuple[str, ...] = ()
        self._used: bool = False

    def __iter__(self) -> Iterator[Found]:
        if self._used:
            expect_again(self._sources.values())
        self._used = True
        settings = next(iter(self._network.queries.values())).settings
        return limited_steps(self._find(), settings)

    def _find(self) -> Iterator[Found]:
        network = self._network
        stream = EventStream(self._sources, self._options, None, _clause_with_times(network), network.given_types)
        self.counters = counters = stream.counters
        evaluation = _Evaluation(network, self._options, lambda: counters.iso_times)
        for batch in stream.as_it_comes():
            if isinstance(batch, int):
                yield from evaluation.wait_until(batch)
            else:
                yield from evaluation.push(evaluation.check_types(batch), stream.time_column)
        yield from evaluation.close()
        self.notes = (*counters.guesses, *(evaluation.lacking(counters.attributes) if counters.events else ()))


def _clause_with_times(network: Network) -> str:
    return next((query.compiled.timed for query in network.queries.values() if query.compiled.timed), "")


class NetworkSession(Pushing[Found]):
    """A network that events are pushed to. Use it in a `with` and read its `rest`, or `close` it."""

    _KINDS = _KINDS
    _OVER = ("this stream is closed", "network.open() begins a new one")

    def __init__(self, network: Network, names: tuple[str, ...], options: EventOptions) -> None:
        super().__init__(network.members[0].query.settings)
        self._network = network
        self._names = names
        self._options = options
        self._feed = feed = EventFeed(names, options, _clause_with_times(network), network.given_types)
        self._evaluation = _Evaluation(network, options, lambda: any(clock.iso for clock in feed.clocks.values()))

    @property
    def counters(self) -> EventCounters:
        """The counts of the events pushed so far."""
        return self._feed.counters

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumptions about the events pushed so far that no option stated, a line each."""
        return tuple(dict.fromkeys(line for clock in self._feed.clocks.values() for line in clock.guessed))

    def push(self, events: Any, *, type: str | None = None) -> list[Found]:
        """The matches that these events complete, with the names of their queries, in order."""
        with self._use:
            self._check_open()
            return self._evaluate(self._feed.push(events, type))

    def _evaluate(self, batches: Iterator[EventBatch]) -> list[Found]:
        checked = map(self._evaluation.check_types, batches)
        return self._join(checked, lambda batch: self._evaluation.push(batch, self._feed.time_column))

    def _wait_until(self, now: int) -> list[Found]:
        return self._evaluate(self._feed.advance(now)) + self._evaluation.wait_until(now)

    def _latest_time(self) -> tuple[int | None, str | None]:
        return self._feed.orderer.reorder.latest, self._feed.time_column

    def _finish(self) -> list[Found]:
        found = self._evaluate(self._feed.finish())
        self._leave()
        return found + self._evaluation.close()

    @property
    def _taken(self) -> int:
        return self._feed.taken

    def _identity(self) -> Identity:
        return self._network.identity

    def _contents(self) -> dict[str, Any]:
        return {
            "names": self._names,
            "options": options_to_keep(self._options),
            "feed": self._feed.snapshot(),
            "last": self._evaluation.last,
            "times": self._evaluation.times_in,
            "queries": [matches.contents() for matches in self._evaluation.matches],
        }

    def restore(self, contents: dict[str, Any]) -> None:
        """The opposite of `contents`, of the same network."""
        self._feed.restore(contents["feed"])
        self._evaluation.last, self._evaluation.times_in = contents["last"], contents["times"]
        expect(type(self._evaluation.last) is int, "the time of the last event")
        expect(len(contents["queries"]) == len(self._evaluation.matches), "a place for each query")
        for matches, place in zip(self._evaluation.matches, contents["queries"], strict=True):
            matches.restore(place)
