"""The values that the rdf package gives out: graph events, instants, counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from rdflib import Literal

from spaseq.core.errors import OptionError
from spaseq.core.events.options import LateEvent
from spaseq.core.events.time import nanoseconds_of
from spaseq.core.held import Tells
from spaseq.rdf.given import NODES, are_plain, iri_of, term_of, triples_of
from spaseq.rdf.terms import Term, Triple, term_from_key, term_key
from spaseq.rdf.triple_terms import TripleTerm

_FAR: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class GraphEvent:
    """An RDF graph with a timestamp ([SPAseq] Definition 1).

    `stream` is the IRI of its stream, `time` nanoseconds since the epoch. It may be given as a datetime. `triples` is
    the graph: a set, kept in the order of the source. `graph` is the graph's name if it has one. `source` and `record`
    are, for messages, the file and the line (from 1) where it begins. Blank nodes belong to one event alone: no two
    events of one run share one.

    Terms are those of rdflib; those of pyoxigraph are taken and become rdflib's. `triples` may be any iterable of
    triples, as a graph of either library. Raises `OptionError` for anything else.
    """

    stream: str
    time: int
    triples: tuple[Triple, ...]
    graph: Term | None = None
    source: str = "<events>"
    record: int = 0

    if TYPE_CHECKING:  # the accepted arguments, besides the types of the fields

        def __init__(
            self, stream: str, time: SupportsIndex | datetime, triples: Iterable[Any], graph: object = None,
            source: str = "<events>", record: int = 0,
        ) -> None: ...  # fmt: skip

    def __post_init__(self) -> None:
        plain = type(self.triples) is tuple and are_plain(self.triples) and type(self.time) is int
        named = self.graph is None or self.graph.__class__ in NODES
        if not (plain and named and type(self.stream) is str and -_FAR <= self.time < _FAR):
            self._settle()

    def _settle(self) -> None:
        """Convert the caller's input. Raises `OptionError` if that is impossible."""
        place = "a GraphEvent"
        graph = None if self.graph is None else term_of(self.graph, f"{place}: its graph")
        triples, name = self.triples, None
        if type(triples) is not tuple or not are_plain(triples):
            triples, name = triples_of(triples, place)
        if isinstance(graph, (Literal, TripleTerm)):
            what = "a literal" if isinstance(graph, Literal) else "a triple term"
            raise OptionError(f"{place}: its graph is {what}", "the name of a graph is an IRI or a blank node")
        time = nanoseconds_of(self.time)
        if not -_FAR <= time < _FAR:
            raise OptionError(
                f"{place}: the time {time} is beyond those that can be held (1677 to 2262)", "is it in ns?"
            )
        for field, value in (
            ("stream", iri_of(self.stream, f"{place}: its stream")), ("time", time),
            ("triples", triples), ("graph", name if graph is None else graph),
        ):  # fmt: skip
            object.__setattr__(self, field, value)

    def __reduce__(self) -> tuple[object, ...]:
        keys = tuple(tuple(term_key(term) for term in triple) for triple in self.triples)
        graph = None if self.graph is None else term_key(self.graph)
        return _rebuild_event, (self.stream, self.time, keys, graph, self.source, self.record)


def late_event(event: GraphEvent, behind: int) -> LateEvent:
    """An event that came too late, so many ns behind its stream."""
    return LateEvent(event, event.time, behind, event.stream, event.source, event.record)


def _rebuild_event(
    stream: str, time: int, keys: Iterable[tuple[str, str, str]], graph: str | None, source: str, record: int
) -> GraphEvent:
    triples = tuple((term_from_key(s), term_from_key(p), term_from_key(o)) for s, p, o in keys)
    return GraphEvent(stream, time, triples, None if graph is None else term_from_key(graph), source, record)


@dataclass(frozen=True, slots=True)
class Instant:
    """One instant of the streamset: its place in their order (from 0), its time, and its events.

    `events` are in the order of the FROM clause, then of their source.
    """

    position: int
    time: int
    events: tuple[GraphEvent, ...]


@dataclass(slots=True)
class Counters(Tells):
    """Counters of the input. Everything that did not reach an event is counted here.

    * `events` assembled, `triples` read, `late` events dropped because they came too late.
    * `malformed` lines (or unfinished events) dropped.
    * `ignored` statements of a default graph that belong to no event.
    * `reopened` graphs whose statements were not together, so that the later ones made an event of their own.
    * `forgotten_keys`: keys of PARTITION BY noticed to be silent for longer than `Settings.forget_keys_after`. A key
      that returns and is silent again counts once more. `lost_runs`: the runs that ended with them.
    * `memory`: the memory that the evaluation holds.
    """

    events: int = 0
    triples: int = 0
    late: int = 0
    malformed: int = 0
    ignored: int = 0
    reopened: int = 0
    forgotten_keys: int = 0
    lost_runs: int = 0

    def leave_out(self, source: str, line: int, text: bytes) -> None:
        """Count a line of `source` that cannot be read and is dropped. A subclass of `Counters` may keep it
        (`spaseq.spark.ingest.quarantine`)."""
        self.malformed += 1

    def add(self, other: Counters) -> None:
        """Add the counts of `other`, for inputs read apart."""
        for field in fields(Counters):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def warnings(self) -> list[str]:
        """A line for each count that a user should hear of; none if all input went into events."""
        said = {
            "late": "event(s) dropped: they came later than the lateness allows",
            "malformed": "malformed line(s) or unfinished event(s) dropped",
            "ignored": "statement(s) ignored: they stand in a default graph and give no graph its time",
            "lost_runs": "run(s) ended with keys that were silent for longer than forget_keys_after",
            "reopened": "event(s) continue a graph that had ended: the statements of one graph should stand together",
        }
        return [f"{getattr(self, name):,} {text}" for name, text in said.items() if getattr(self, name)]
