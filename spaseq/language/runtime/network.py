"""The queries of a network over instants: the graphs that some construct are events of the streams that others read.

An evaluation takes instants up to a time. The queries take them one after another, each behind those that it reads:
the events of its streams, and the graphs constructed by then, in order of time. An instant of which a query has no
event does not exist for it.

*Why no graph comes late.* A query that others read reports a match at a time that follows from the match. It is the
match's end, a fixed time later, or the end of a tumbling window. Once all instants up to a time were taken, and time
was advanced to it, all matches of that time and of earlier ones were reported. So those that read it find all graphs of
an instant there.

PERF: 100,000 graphs of a file through two queries, of which the first reports 6,696 graphs, take 0.31 s of CPU; the
first alone 0.13. Pushed one by one, an event costs 55 µs in both, 30 in the first alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from spaseq.core.engine import Settings
from spaseq.core.held import Memory, Parts
from spaseq.core.queries.networks import Member
from spaseq.core.snapshot import expect
from spaseq.language.results.match import Match, graph_of
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.runtime.unmatched import Input
from spaseq.language.solving.chunks import Chunk, Part, chunk_of_parts
from spaseq.rdf import Counters, GraphBatch, GraphEvent, Instant

Found = tuple[str, Match]
"""The name of a query, and a match of it."""
_Made = dict[str, list[GraphEvent]]
"""The graphs that queries have just constructed, as the events of streams, by their IRIs."""
_FEW: Final = 20
"""Events of a query at once that are pushed as objects; more are columns (`session._FEW`)."""


def told_at(query: CompiledQuery, unit: str = "s") -> Callable[[Match], int]:
    """The time (ns) at which a match of a query is known, if the events of that time are all there."""
    checked, window = query.checked, query.window(unit)
    waits = any(variant.after for variant in checked.variants)
    if checked.clauses.by_window and window.tumbles:
        return lambda match: window.closes_at(match.time) or match.time
    if not waits or (checked.lasting.patience is None and window.by_position):
        return attrgetter("time")
    patience = checked.lasting.patience
    if patience is not None:
        return lambda match: match.time + patience
    return lambda match: window.closes_at(match.times[0]) or match.time


def is_told_in_time(query: CompiledQuery) -> bool:
    """True if the time at which a match is known follows from the match, and grows with its end."""
    checked, window = query.checked, query.window()
    if checked.clauses.by_window or (any(v.after for v in checked.variants) and checked.lasting.patience is None):
        return window.tumbles and not window.by_position
    return True


_source: Final = attrgetter("stream", "source")


@dataclass(slots=True)
class _Place:
    """A query in progress. `streams`: the numbers of those that it reads, by IRI; `position`: of its next instant.
    `solved`: the values of its GPMs on the batches of the latest chunk. `made`: the number of its graphs."""

    member: Member[CompiledQuery]
    recogniser: Recogniser
    told: Callable[[Match], int]
    streams: dict[str, int]
    position: int = 0
    made: int = 0
    solved: dict[int, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)

    def parts_of(self, chunk: Chunk) -> list[Part]:
        """The events of a chunk that are of its streams. A batch is solved once, if chunks cut it."""
        before, self.solved = self.solved, {}
        parts: list[Part] = []
        for piece in chunk.pieces:
            batch = piece.batch
            if isinstance(batch, GraphBatch) and batch.stream in self.streams:
                kept = before.get(id(batch)) or (batch, self.recogniser.solve_ahead(batch))
                self.solved[id(batch)] = kept
                parts.append((batch, piece.low, piece.high, kept[1]))
        return parts


class NetworkEvaluation:
    """The queries of a network in progress. `outputs`: of each query that others read, the stream of its graphs.
    `streams`: (name, IRI) of those that are given. `apart`: each event is an instant of its own."""

    def __init__(
        self,
        members: Sequence[tuple[Member[CompiledQuery], Recogniser]],
        outputs: Mapping[str, str],
        streams: Sequence[tuple[str, str]],
        *,
        apart: bool,
        unit: str,
    ) -> None:
        self._places = [
            _Place(member, recogniser, told_at(member.query, unit),
                   {iri: i for i, (_, iri) in enumerate(recogniser.streams)})
            for member, recogniser in members
        ]  # fmt: skip
        self._outputs = dict(outputs)
        self.streams: tuple[tuple[str, str], ...] = tuple(streams)
        self._apart = apart
        self._counters = Counters()

    @property
    def counters(self) -> Counters:
        """The counts of the given events."""
        return self._counters

    @counters.setter
    def counters(self, counters: Counters) -> None:
        self._counters = counters
        for place in self._places:
            place.recogniser.counters = counters

    @property
    def settings(self) -> Settings:
        """The budgets of the first query."""
        return self._places[0].recogniser.settings

    @property
    def functions(self) -> tuple[str, ...]:
        """The IRIs of the functions that the queries call."""
        return tuple(dict.fromkeys(iri for place in self._places for iri in place.recogniser.functions))

    @property
    def wanted(self) -> frozenset[str] | None:
        """As of `Recogniser`."""
        found = frozenset[str]()
        for place in self._places:
            wanted = place.recogniser.wanted
            if wanted is None:
                return None
            found |= wanted
        return found

    def solve_ahead(self, batch: GraphBatch) -> Mapping[str, Any]:
        """Nothing: each query solves the batches that come to it."""
        return MappingProxyType({})

    def remarks(self) -> list[str]:
        """As of `Recogniser`."""
        return list(dict.fromkeys(line for place in self._places for line in place.recogniser.remarks()))

    def push(self, instants: Sequence[Instant]) -> Iterator[Found]:
        """The matches that these instants complete, in order of the time at which they are known."""
        if instants:
            events = [event for instant in instants for event in instant.events]
            yield from self._take(lambda place, made: self._push_events(place, events, made), instants[-1].time)

    def push_chunk(self, chunk: Chunk) -> Iterator[Found]:
        """`push`, of the instants of a chunk."""
        yield from self._take(
            lambda place, made: self._push_parts(place, place.parts_of(chunk), _of_streams(place, made)),
            int(chunk.times[-1]),
        )

    def advance(self, now: int) -> Iterator[Found]:
        """The matches that complete because no instant before `now` (ns) will come any more."""
        yield from self._take(lambda place, made: self._push_events(place, (), made), None, now)

    def close(self) -> Iterator[Found]:
        """The matches that the end of the streams completes."""
        yield from self._take(
            lambda place, made: [*self._push_events(place, (), made), *place.recogniser.close()], None
        )

    def _take(
        self, push: Callable[[_Place, _Made], Iterable[Match]], last: int | None, now: int | None = None
    ) -> Iterator[Found]:
        """The matches of all queries, as `push` gives those of one; then time is at `last`, or at `now`."""
        if last is not None:
            now = last if self._apart else last + 1
        reported: list[tuple[int, int, Found]] = []
        made: _Made = {}
        for number, place in enumerate(self._places):
            found = list(push(place, made))
            if now is not None:
                found += place.recogniser.advance(now)
            name = place.member.name
            if place.member.read:
                made[self._outputs[name]] = list(self._graphs(place, found))
            if place.member.reported:
                reported += ((place.told(match), number, (name, match)) for match in found)
        reported.sort(key=lambda one: one[:2])
        for _, _, each in reported:
            yield each

    def _graphs(self, place: _Place, found: Iterable[Match]) -> Iterator[GraphEvent]:
        """The events of the graphs that a query constructs of its matches, in order of time; none of an empty graph."""
        template = place.member.query.checked.clauses.template
        assert template is not None  # the network has checked it
        name = place.member.name
        for record, match in enumerate(sorted(found, key=place.told), 1):
            triples = graph_of(match, template)
            if triples:
                place.made += 1
                yield GraphEvent(self._outputs[name], place.told(match), triples, None, name, record)

    def _push_events(self, place: _Place, given: Sequence[GraphEvent], graphs: _Made) -> Iterable[Match]:
        made = _of_streams(place, graphs)
        own = [event for event in given if event.stream in place.streams]
        if not own and not made:
            return ()
        if sum(map(len, made)) > _FEW:
            sources = groupby(sorted(own, key=_source), key=_source)
            batches = [GraphBatch.of(list(events)) for _, events in sources]
            parts: list[Part] = [(batch, 0, len(batch), place.recogniser.solve_ahead(batch)) for batch in batches]
            return self._push_parts(place, parts, made)
        own += chain.from_iterable(made)
        own.sort(key=attrgetter("time"))
        groups = [[event] for event in own] if self._apart else [list(g) for _, g in groupby(own, attrgetter("time"))]
        for group in groups:
            group.sort(key=lambda event: place.streams[event.stream])
        instants = [Instant(place.position + i, group[0].time, tuple(group)) for i, group in enumerate(groups)]
        place.position += len(instants)
        return place.recogniser.push(instants)

    def _push_parts(self, place: _Place, parts: list[Part], made: Sequence[list[GraphEvent]]) -> Iterable[Match]:
        for events in made:
            batch = GraphBatch.of(events)
            parts.append((batch, 0, len(batch), place.recogniser.solve_ahead(batch)))
        if not parts:
            return ()
        parts.sort(key=lambda part: place.streams[part[0].stream])
        chunk = chunk_of_parts(place.position, parts, self._apart)
        place.position += len(chunk)
        return place.recogniser.push_chunk(chunk)

    def why_none(self, read: Input) -> list[str]:
        """As of `Recogniser`, for each query."""
        counts = {self._outputs[place.member.name]: place.made for place in self._places if place.made}
        lines: list[str] = []
        for place in self._places:
            known = {iri: n for iri, n in (read.seen.kinds | counts).items() if iri in place.streams}
            seen = replace(read.seen, kinds=known)
            told = place.recogniser.why_none(replace(read, seen=seen))
            lines += (f"{place.member.name}: {line}" for line in told)
        return lines

    def held(self, outside: Parts = MappingProxyType({})) -> Memory:
        """The memory of the queries, and that held `outside`."""
        first, *others = (place.recogniser for place in self._places)
        held = [first.held(outside), *(other.held() for other in others)]
        return Memory(**{part.name: sum(getattr(one, part.name) for one in held) for part in fields(Memory)})

    def identity(self) -> dict[str, str]:
        """The queries that a snapshot belongs to."""
        found = {"network": ", ".join(f"{name} gives <{iri}>" for name, iri in sorted(self._outputs.items()))}
        for place in self._places:
            found |= {f"{place.member.name}: {about}": said for about, said in place.recogniser.identity().items()}
        return found

    def snapshot(self) -> dict[str, Any]:
        """The state between two calls, as plain values and terms."""
        return {"queries": [(place.position, place.recogniser.snapshot()) for place in self._places]}

    def restore(self, state: dict[str, Any], position: int) -> None:
        """As of `Recogniser`; each query counts instants of its own."""
        expect(len(state["queries"]) == len(self._places), "a place for each query")
        for place, (own, contents) in zip(self._places, state["queries"], strict=True):
            expect(type(own) is int and own >= 0, "a place in the streams")
            place.position = own
            place.recogniser.restore(contents, own)


def _of_streams(place: _Place, made: _Made) -> list[list[GraphEvent]]:
    """The graphs made for a query, by stream."""
    return [events for iri, events in made.items() if iri in place.streams and events]
