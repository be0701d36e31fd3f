"""One evaluation in progress that graph events are pushed to, and its snapshots: of a query, or of a network."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar

from spaseq.core.engine import Settings
from spaseq.core.engine.recognition.session import Session as Pushing
from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.reorder import SingleReorderer
from spaseq.core.held import Memory, Parts
from spaseq.core.snapshot import expect, unseal
from spaseq.core.watch import limited
from spaseq.gpm.functions.own import Failures
from spaseq.language.results.history import Pool
from spaseq.language.results.match import Match
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.runtime.unmatched import Input
from spaseq.language.solving.chunks import Chunk, Part, chunk_of_parts
from spaseq.rdf import (
    REMEMBERED,
    TERMS,
    Counters,
    GivenEvents,
    GraphBatch,
    GraphEvent,
    Instant,
    StreamOptions,
    Terms,
    Time,
    iri_of,
    is_whole,
)
from spaseq.rdf.model import late_event

_FEW: Final = 20
"""Events of batches up to which each is pushed as an object.

PERF: trades of benchmarks/graphs.py in batches of 10, as objects: 28 µs each; of 16, 25 and 50, as columns: 48, 33, 18.
"""
_MANY: Final = 1_000
"""Events pushed as columns from which those `_FEW` that wait for the next push are objects.

PERF: a waiting event would hold the batch, and all its keys would be numbered again with the next one if keys had been
forgotten in between. 200,000 graphs with ever new keys, in batches of 50,000, numbered 256,000 keys, not 128,000.
"""


_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Evaluation(Protocol[_T_co]):
    """An evaluation that takes instants: a `Recogniser`, or the queries of a network. As of `Recogniser`."""

    counters: Counters

    @property
    def settings(self) -> Settings: ...
    @property
    def wanted(self) -> frozenset[str] | None: ...
    @property
    def streams(self) -> Sequence[tuple[str, str]]: ...
    @property
    def functions(self) -> Sequence[str]: ...
    def solve_ahead(self, batch: GraphBatch) -> Mapping[str, Any]: ...
    def remarks(self) -> Sequence[str]: ...
    def push(self, instants: Sequence[Instant]) -> Iterator[_T_co]: ...
    def push_chunk(self, chunk: Chunk) -> Iterator[_T_co]: ...
    def advance(self, now: int) -> Iterator[_T_co]: ...
    def close(self) -> Iterator[_T_co]: ...
    def why_none(self, read: Input) -> list[str]: ...
    def held(self, outside: Parts = ...) -> Memory: ...
    def identity(self) -> dict[str, str]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any], position: int) -> None: ...


class GraphSession(Pushing[_T]):
    """Graph events are put in order and become instants, which an evaluation takes.

    Events come in order of time, over all streams; with a lateness they are held back until nothing that is on time can
    come before them. An instant is complete when an event of a later time comes, or at the end of the stream; at once
    if every event is an instant of its own. A push returns the matches of the instants it completed.
    """

    _KINDS = (TERMS,)
    _OVER = ("the stream is closed: nothing can be pushed any more",)

    def __init__(self, evaluation: Evaluation[_T], options: StreamOptions) -> None:
        super().__init__(evaluation.settings)
        self.evaluation = evaluation
        self._streams = {iri: place for place, (_, iri) in enumerate(evaluation.streams)}  # in order of the FROM clause
        self._options = options
        self._apart = options.apart
        self._terms = Terms(REMEMBERED)  # of pushed graphs
        self._reorder = SingleReorderer(options, _describe)
        self._held: list[GraphEvent] = []  # of the instant that is not complete
        self._parts: list[Part] = []  # the same, of batches; one of both is empty
        self._position = 0
        self._failures = Failures(evaluation.functions)
        self.counters: Counters = Counters()
        """The counts of the events pushed so far."""
        evaluation.counters = self.counters
        self.counters.about(self)

    def push(
        self,
        events: GraphEvent | GraphBatch | Iterable[Any],
        *,
        time: Time | None = None,
        stream: str | None = None,
        format: str | None = None,
    ) -> list[_T]:
        """The matches that a graph completes: one event.

        Args:
            events: a graph of rdflib or pyoxigraph, an iterable of triples or quads, or a text in any syntax of RDF.
                Also a `GraphEvent`, or an iterable of these, of graphs, and of pairs (time, graph). Of a dataset each
                named graph is an event. A `GraphBatch` stays columns: see `push_batches`.
            time: of the graph: a datetime (UTC if it has no zone), a text or literal as in files, or nanoseconds.
                Without it, the graph states its time, by the predicate that `open(time=…)` names, else
                prov:generatedAtTime; `open(time_from="arrival")` counts graphs. With it, a dataset is one event.
            stream: the name or IRI of its stream; may be left out if the query reads one stream.
            format: the syntax of a text: `ttl`, `trig`, `nt`, `nq`, `jsonld`, `rdf`, `n3` or a media type. Without
                it, the text shows its own.

        Blank nodes of two pushes are different.

        Raises `EventError` for a late event, unless those are dropped, an unknown stream, a text that cannot be read
        and a graph without a time, `OptionError` for anything else. Then none of the events has been taken.
        """
        worded = time is not None or stream is not None or format is not None
        if isinstance(events, GraphBatch):
            _expect_no_words(worded, events)
            return list(self.push_batches((events,)))
        given = (events,) if isinstance(events, GraphEvent) else events if is_whole(events) else list(events)
        if isinstance(given, list | tuple) and (isinstance(given[0], GraphEvent) if given else not worded):
            _expect_no_words(worded, *given[:1])
            with self._use:
                return list(self._push_events(given))
        before, reader = self._reorder.seen, self._reader(stream, format)
        with limited(self.evaluation.settings):  # an exception of an iterator of the caller breaks nothing
            made = list(reader.events(given, time))
        with self._use:
            if self._reorder.seen != before:
                raise OptionError("another thread pushed at the same time", "use a lock, or a session for each")
            found = list(self._push_events(made))
            self.counters.ignored += reader.ignored
            return found

    def _reader(self, stream: str | None, format: Any) -> GivenEvents:
        """The reader of graphs pushed for a stream, given by name or IRI; None for the only one."""
        streams = self.evaluation.streams
        known = ", ".join(name for name, _ in streams)
        if stream is None:
            if len(streams) > 1:
                problem = f"the query reads {len(streams)} streams, and the graph is given for none of them"
                raise OptionError(problem, f'say which: stream="{streams[0][0]}" (it reads {known})')
            iri = streams[0][1]
        else:
            wanted = iri_of(stream, "the stream")
            iri = dict(streams).get(wanted, wanted)
            if iri not in self._streams:
                raise OptionError(f"the query has no stream {wanted}", f"it reads {known}")
        return GivenEvents(iri, self._options, before=self._reorder.seen, format=format, terms=self._terms)

    def push_batches(self, batches: Sequence[GraphBatch]) -> Iterator[_T]:
        """The matches that the events of batches, merged by time, complete, one by one. Exhaust it before the next
        call.

        They stay columns if they are many and in order of time, and the session has no lateness.
        """
        if not isinstance(batches, list | tuple) or not all(isinstance(batch, GraphBatch) for batch in batches):
            raise OptionError("push_batches takes a list of GraphBatches", "push(events) takes events, or one batch")
        with self._use:
            for batch in batches:
                if batch.stream not in self._streams and len(batch):
                    self._check(batch.event(0))
            given = sorted((batch for batch in batches if len(batch)), key=self._place)
            if self._stay_columns(given):
                yield from self._push_columns(given)
            else:
                events = (map(batch.event, range(len(batch))) for batch in given)
                yield from self._push_events(list(heapq.merge(*events, key=attrgetter("time"))))

    def _place(self, batch: GraphBatch) -> int:
        return self._streams[batch.stream]

    def _push_events(self, events: Sequence[Any]) -> Iterator[_T]:
        self._check_open()
        for event in events:
            self._check(event)
        if len(events) > 1:
            self._reorder.expect_order([(event.time, event) for event in events])
        self._make_events()
        instants: list[Instant] = []
        for event in events:
            self.counters.events += 1
            self.counters.triples += len(event.triples)
            instants += self._complete_instants(self._reorder.push(event.time, event))
        self.counters.late += self._reorder.take_dropped()
        if self._reorder.on_late is not None:
            for event, behind in self._reorder.take_late():
                self._reorder.on_late(late_event(event, behind))
        return self.evaluation.push(instants)

    def _stay_columns(self, batches: Sequence[GraphBatch]) -> bool:
        order = self._reorder
        return (
            sum(map(len, batches)) > _FEW
            and not order.lateness
            and all(int(batch.times[0]) >= order.mark for batch in batches)
            and all(bool((batch.times[1:] >= batch.times[:-1]).all()) for batch in batches)
        )

    def _push_columns(self, batches: Sequence[GraphBatch]) -> Iterator[_T]:
        self._check_open()
        self._make_parts()
        last = max(batches, key=lambda batch: int(batch.times[-1]))
        count, high = sum(map(len, batches)), int(last.times[-1])
        self._reorder.pass_by(count, high, last.event(len(last) - 1))
        self.counters.events += count
        self.counters.triples += sum(len(batch.triples) for batch in batches)
        self._parts += [(batch, 0, len(batch), self.evaluation.solve_ahead(batch)) for batch in batches]
        self._parts.sort(key=lambda part: self._place(part[0]))
        if ready := self._complete_parts(None if self._apart else high):
            chunk = chunk_of_parts(self._position, ready, self._apart)
            self._position += len(chunk)
            if count >= _MANY and sum(high - low for _, low, high, _ in self._parts) <= _FEW:
                self._make_events()
            yield from self.evaluation.push_chunk(chunk)

    def _complete_parts(self, before: int | None) -> list[Part]:
        """The events of the parts before a time, None for all; the others are held."""
        ready: list[Part] = []
        held: list[Part] = []
        for batch, low, high, solutions in self._parts:
            cut = high if before is None else low + int(batch.times[low:high].searchsorted(before))
            if cut > low:
                ready.append((batch, low, cut, solutions))
            if cut < high:
                held.append((batch, cut, high, solutions))
        self._parts = held
        return ready

    def _make_events(self) -> None:
        """The events of the instant that is not complete become objects."""
        self._held += [batch.event(i) for batch, low, high, _ in self._parts for i in range(low, high)]
        self._parts = []

    def _make_parts(self) -> None:
        """The opposite of `_make_events`."""
        by_source: dict[tuple[str, str], list[GraphEvent]] = {}
        for event in self._held:
            by_source.setdefault((event.stream, event.source), []).append(event)
        for batch in map(GraphBatch.of, by_source.values()):
            self._parts.append((batch, 0, len(batch), self.evaluation.solve_ahead(batch)))
        self._held = []

    def why_none(self, read: Input) -> list[str]:
        """Reasons for no match, a line each; `read` is the input."""
        return self.evaluation.why_none(read)

    @property
    def notes(self) -> tuple[str, ...]:
        """As of `Matches.notes`; of pushed events nothing is guessed."""
        return (*self.evaluation.remarks(), *self._failures.lines())

    def held(self) -> Memory:
        """The memory of the evaluation: `counters.memory`."""
        return self.evaluation.held({"waiting": [self._held, self._parts, self._reorder], "rest": [self]})

    def _wait_until(self, now: int) -> list[_T]:
        self._reorder.advance(now)
        return [*self._push_due(now), *self.evaluation.advance(now)]

    def _latest_time(self) -> tuple[int | None, str | None]:
        return self._reorder.latest, "their time"

    def _finish(self) -> list[_T]:
        self._leave()
        return [*self._push_due(None), *self.evaluation.close()]

    def _push_due(self, now: int | None) -> Iterator[_T]:
        """The matches of the instants that are complete if no event before `now` will come; None: no event at all."""
        self._make_events()
        instants = self._complete_instants(self._reorder.due(last=now is None))
        if self._held and (now is None or self._held[0].time < now):
            instants.append(self._instant())
        return self.evaluation.push(instants)

    @property
    def _taken(self) -> int:
        return self._reorder.seen

    def _complete_instants(self, events: Iterable[GraphEvent]) -> list[Instant]:
        """The instants that are complete now that `events` are taken, which are in order of time."""
        found = []
        for event in events:
            if self._held and event.time != self._held[0].time:
                found.append(self._instant())
            self._held.append(event)
            if self._apart:
                found.append(self._instant())
        return found

    def _identity(self) -> dict[str, str]:
        instants = "each event an instant" if self._apart else "events of one time an instant"
        return {"language": "SPAseq", **self.evaluation.identity(), "ties": instants}

    def _contents(self) -> dict[str, Any]:
        self._make_events()
        pool = Pool()
        return {
            "recogniser": self.evaluation.snapshot(),
            "held": pool.put(self._held),
            "waiting": pool.put(self._reorder.waiting),
            "events": pool.snapshot(),
            "order": self._reorder.snapshot(),
            "position": self._position,
            "counters": (self.counters.events, self.counters.triples, self.counters.late),
        }

    def restore(self, state: bytes) -> None:
        """Goes on from a snapshot of a session of the same query. `OptionError` for anything else."""
        unseal(state, self._identity(), self._KINDS, self._restore)

    def _restore(self, state: dict[str, Any]) -> None:
        self._position = state["position"]
        expect(type(self._position) is int and 0 <= self._position < 1 << 61, "a place in the streams")
        self.evaluation.restore(state["recogniser"], self._position)
        events_of = Pool.restore(state["events"])
        self._held, self._parts = list(events_of(state["held"])), []
        self._reorder.restore(state["order"])
        self._reorder.wait_again([(event.time, event) for event in events_of(state["waiting"])])
        events, triples, late = state["counters"]
        expect(all(type(n) is int for n in (events, triples, late)), "counts of what was pushed")
        self.counters = self.evaluation.counters = Counters(events=events, triples=triples, late=late)
        self.counters.about(self)

    def _check(self, event: GraphEvent) -> None:
        if not isinstance(event, GraphEvent):
            problem = f"a {type(event).__name__} among GraphEvents is none"
            raise OptionError(problem, "a push takes GraphEvents, or graphs and pairs (time, graph), in a list")
        if event.stream not in self._streams:
            raise EventError(
                f"the query does not read the stream <{event.stream}>", source=event.source, record=event.record,
                hint=f"it reads {', '.join(f'<{iri}>' for iri in self._streams)}",
            )  # fmt: skip

    def _instant(self) -> Instant:
        events, self._held = tuple(self._held), []
        self._position += 1
        return Instant(self._position - 1, events[0].time, events)


class Session(GraphSession[Match]):
    """An incremental evaluation of a query: `with query.open() as session: session.push(events)`, and then
    `session.rest`."""

    def __init__(self, recogniser: Recogniser, options: StreamOptions) -> None:
        super().__init__(recogniser, options)
        self.recogniser: Recogniser = recogniser


def _expect_no_words(worded: bool, *given: Any) -> None:
    if worded:
        kind = type(given[0]).__name__
        raise OptionError(f"a {kind} has its stream and its time", "leave out time=, stream= and format=")


def _describe(event: GraphEvent) -> tuple[str, tuple[str, int]]:
    """The stream and the place of an event, as errors about its time name them."""
    return f"stream {event.stream}", (event.source, event.record)
