"""Networks of queries: the matches of a query are events of others.

A query names those that it reads as it names event types: `suspicious ; wire` takes the matches of the query called
`suspicious`, and the given events of type `wire`. A match becomes an event with the attributes of its row, as
`spaseq.spark.match` has it: the keys, what SELECT computes, `match_start`, `match_end`. Each query takes all given
events, and the matches of the queries that it names; ANY and `WITHIN … EVENTS` count these as well.

*When.* The event of a match is directly behind the event that the match ends at, and has its time. Matches that a NOT
at the end holds back come when their time is over: behind all else up to that time, and at that time. So do matches
that end at such an event. So the order is the same, whatever pushes or batches the events come in. Of one place, the
matches of the earlier query come first; queries are in the order of the network, each behind those that it reads.
Cycles are refused.

*How.* One feed puts the given events in order (`spaseq.core.events`). The queries are evaluated in columns, one after
another for each batch. The matches of one are a table, merged with the given events for those that read it.

An event that is pushed alone goes to each query as a dict, by the road that the query's own session has for it
(`ceql.runtime.single_events`). The events of matches are dicts, too, if their values are numbers, texts, truths or
times.

PERF: 1,000,000 events of a table through two queries take 0.47 s, as much as through each alone. Pushed one by one, an
event takes 25 µs for two queries (908 in columns), if 3 in 100 complete a match. Pushed by a hundred, it takes 11 µs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa

from ceql.query import Query, compile_query
from ceql.results.named import AllMatches, Found, NamedMatches, QueryMatches
from ceql.results.selected import Times
from ceql.runtime.evaluation import expect_again
from ceql.runtime.network_evaluation import NetworkEvaluation, NetworkMember, clash, timed_clause
from ceql.runtime.network_tables import NetworkOfTables
from ceql.runtime.ordered import selected_rows
from ceql.runtime.session import identity, options_to_keep
from ceql.runtime.single_events import Counted
from spaseq.core.engine import Choice, Settings
from spaseq.core.engine.recognition.session import Session as Pushing
from spaseq.core.errors import OptionError, UnsupportedFeature, expect_type
from spaseq.core.events import EventBatch, EventCounters, EventFeed, EventOptions, EventStream, TupleWords
from spaseq.core.events.batch import DURATIONS, INSTANTS
from spaseq.core.events.options import Duration, OnLate
from spaseq.core.queries.networks import check_queries, members_of, read_network
from spaseq.core.slips import did_you_mean
from spaseq.core.snapshot import Identity, unseal
from spaseq.core.watch import limited_steps
from spaseq.live.evaluation import Alive
from spaseq.live.states import Saving, State

_KINDS: Final = (INSTANTS, DURATIONS)
_FIRST: Final = np.zeros(1, np.int64)
_PLAIN: Final = (pa.types.is_int64, pa.types.is_float64, pa.types.is_string, pa.types.is_boolean, pa.types.is_null,
                 lambda kind: kind == pa.timestamp("us", "UTC"))  # fmt: skip


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
        self._queries = compiled
        self.members: tuple[NetworkMember, ...] = members_of(
            {name: query.compiled for name, query in compiled.items()}, reads, report
        )
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
    def report(self) -> tuple[str, ...]:
        """The queries whose matches are reported."""
        return tuple(member.name for member in self.members if member.reported)

    @property
    def queries(self) -> dict[str, Query]:
        """The queries by name, each behind those that it reads."""
        return {member.name: self._queries[member.name] for member in self.members}

    @property
    def settings(self) -> Settings:
        """The budgets of each query: those of the first."""
        return self.members[0].query.settings

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """Of each query the queries that it reads."""
        return {member.name: tuple(self.members[i].name for i in member.feeds) for member in self.members}

    @property
    def given_types(self) -> tuple[str, ...]:
        """The event types that are no queries: those of the given events."""
        named = (kind for member in self.members for kind in member.query.named_types)
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
        return NetworkMatches(self, dict(types) if types is not None else {"": events}, options, self.report)

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
                raise OptionError(*clash(name))

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
            found |= {f"{member.name}: {about}": said for about, said in identity(member.query).items()}
        return found

    def in_tables(self) -> NetworkOfTables:
        """The network as Spark reads it, over events that are put in order (`spaseq.spark.match`)."""
        return NetworkOfTables(self.members, self.identity, self.run)

    def __repr__(self) -> str:
        return f"<ceql.Network of {', '.join(self.queries)}>"


def _check_member(member: NetworkMember) -> None:
    compiled = member.query
    if compiled.named_streams:
        raise OptionError(f"{member.name} reads streams, by FROM", "the events of a network are of one stream")
    waits, window = compiled.lowered.around.waits, compiled.lowered.window
    if compiled.summing is not None:
        hint = "a row of GROUP BY stands for several matches; leave it out, and group the table of matches"
        raise UnsupportedFeature(f"{member.name} has GROUP BY, in a network of queries", hint=hint)
    if compiled.repeats:
        hint = "FOR 10 SECONDS, without EVERY, reports each match once"
        raise UnsupportedFeature(f"{member.name} has NOT … FOR EVERY, in a network of queries", hint=hint)
    by_events = compiled.lowered.around.patience is None and window.is_bounded
    apart = bool(compiled.lowered.around.marked) or (by_events and compiled.lowered.choice != Choice())
    if member.read and waits and apart:
        raise UnsupportedFeature(
            f"{member.name} has a NOT at the end of some alternatives or of an AND, for several times, or a choice, "
            "and other queries read it",
            hint="SELECT ALL, and one NOT behind the whole formula, say when the matches are events",
        )
    if member.read and waits and by_events and (window.by_position or compiled.lowered.window_attribute is not None):
        raise UnsupportedFeature(
            f"{member.name} has a NOT at the end in a window that no time closes, and other queries read it",
            hint="WITHIN a time, or NOT … FOR, says when the matches are events",
        )


class NetworkMatches(AllMatches):
    """The matches of a network over events: pairs of a query's name and a match, in order. Each use reads the events
    anew; `OptionError` if they can be read only once. `counters` and `notes` are those of the latest use, as of
    `Matches`.

    Its tables have the columns of all queries that are reported, and `query` in front; `of(name)` has those of one.
    """

    def __init__(
        self, network: Network, sources: dict[str, Any], options: EventOptions, report: tuple[str, ...]
    ) -> None:
        super().__init__()
        self._network = network
        self._sources = sources
        self._options = options
        self.report: tuple[str, ...] = report
        """The queries whose matches these are."""
        self._used: bool = False

    def parts(self) -> Iterator[NamedMatches]:
        """The matches, as many at a time as a batch of events completes."""
        if self._used:
            expect_again(self._sources.values())
        self._used = True
        return limited_steps(self._find(), self._network.settings)

    def of(self, name: str) -> QueryMatches:
        """The matches of one query, reported or not: tables have its columns alone. `OptionError` if there is none."""
        expect_type("the name of a query", name, str, "matches.of('theft')")
        known = [*self._network.queries]
        if name not in known:
            hint = did_you_mean(name, known) or f"one of {', '.join(known)}"
            raise OptionError(f"no query of the network is called {name!r}", hint)
        return QueryMatches(NetworkMatches(self._network, self._sources, self._options, (name,)), name)

    def empty(self, name: str) -> pa.Table:
        """The table of no matches of a query; columns are NULL if their types are known from events alone."""
        times = Times(lambda: self.counters.iso_times, self._options.unit)
        selected = selected_rows(self._network.queries[name].compiled)
        return selected.types({}, times.type).empty_table()

    def _find(self) -> Iterator[NamedMatches]:
        network = self._network
        stream = EventStream(self._sources, self._options, None, timed_clause(network.members), network.given_types)
        self.counters = counters = stream.counters
        evaluation = NetworkEvaluation(network.members, self._options, lambda: counters.iso_times, self.report)
        for batch in stream.as_it_comes():
            if isinstance(batch, int):
                yield evaluation.wait_until(batch)
            else:
                yield evaluation.push(evaluation.check_types(batch), stream.time_column)
        yield evaluation.close()
        self.notes = (*counters.guesses, *(evaluation.lacking(counters.attributes) if counters.events else ()))


class NetworkSession(Pushing[Found]):
    """A network that events are pushed to. Use it in a `with` and read its `rest`, or `close` it."""

    _KINDS = _KINDS
    _OVER = ("this stream is closed", "network.open() begins a new one")

    def __init__(self, network: Network, names: tuple[str, ...], options: EventOptions) -> None:
        super().__init__(network.settings)
        self._network = network
        self._names = names
        self._options = options
        self._feed = feed = EventFeed(names, options, timed_clause(network.members), network.given_types)
        self._evaluation = NetworkEvaluation(
            network.members, options, lambda: any(clock.iso for clock in feed.clocks.values()), network.report
        )
        self._given = {} if options.type is None else {options.type_column or "type": options.type}
        single = names == ("",) and not options.lateness
        self._singles = Counted(feed, options, "") if single else None

    @property
    def counters(self) -> EventCounters:
        """The counts of the events pushed so far."""
        self._to_batches()
        return self._feed.counters

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumptions about the events pushed so far that no option stated, a line each."""
        return tuple(dict.fromkeys(line for clock in self._feed.clocks.values() for line in clock.guessed))

    def push(self, events: Any, *, type: str | None = None) -> list[Found]:
        """The matches that these events complete, with the names of their queries, in order."""
        with self._use:
            self._check_open()
            if type is None and self._singles is not None and events.__class__ is dict:
                event = events | self._given
                time = self._singles.take(event) if self._evaluation.is_given(event) else None
                if time is not None:
                    return self._join(
                        (event,), lambda one: self._evaluation.push_one(one, time, self._feed.time_column)
                    )
            self._to_batches()
            return self._evaluate(self._feed.push(events, type))

    def _to_batches(self) -> None:
        if self._singles is not None:
            self._singles.leave()

    def _evaluate(self, batches: Iterator[EventBatch]) -> list[Found]:
        checked = map(self._evaluation.check_types, batches)
        return self._join(checked, lambda batch: self._evaluation.push(batch, self._feed.time_column))

    def _wait_until(self, now: int) -> list[Found]:
        self._to_batches()
        return [*self._evaluate(self._feed.advance(now)), *self._evaluation.wait_until(now)]

    def _latest_time(self) -> tuple[int | None, str | None]:
        self._to_batches()
        return self._feed.orderer.reorder.latest, self._feed.time_column

    def _finish(self) -> list[Found]:
        self._to_batches()
        found = self._evaluate(self._feed.finish())
        self._leave()
        return [*found, *self._evaluation.close()]

    @property
    def _taken(self) -> int:
        self._to_batches()
        return self._feed.taken

    def _identity(self) -> Identity:
        return self._network.identity

    def _contents(self) -> dict[str, Any]:
        self._to_batches()
        return {
            "names": self._names,
            "options": options_to_keep(self._options),
            "feed": self._feed.snapshot(),
            **self._evaluation.contents(),
        }

    def restore(self, contents: dict[str, Any]) -> None:
        """The opposite of `contents`, of the same network."""
        self._feed.restore(contents["feed"])
        self._evaluation.restore(contents)
