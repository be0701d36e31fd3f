"""Errors about events that columns cannot be made of: the words, for an event taken out of them as a `Draft`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rdflib import BNode, Literal

from spaseq.core.errors import EventError
from spaseq.core.events.time import is_date, parse_time
from spaseq.core.events.timestamps import counted_hint
from spaseq.rdf.columns.kernels.assembly import NESTED
from spaseq.rdf.iri import closest_iri
from spaseq.rdf.options import StreamOptions
from spaseq.rdf.terms import Term, Triple

_NO_GRAPHS: Final = "--event-by subject or --event-by size:N makes events of triples that stand in no named graph"


@dataclass(slots=True)
class Draft:
    """An event in the making. `number` is its place in the file, from 1; `repeated`: its graph had ended before."""

    name: Term | None
    record: int
    triples: list[Triple]
    number: int = 0
    repeated: bool = False
    time: int | None = None


def time_inside(draft: Draft, options: StreamOptions, source: str) -> int | None:
    """The time in the draft's own graph, None if it has none."""
    time = options.time or ""
    found = [(s, o) for s, p, o in draft.triples if str.__eq__(p, time)]
    if not found:
        return None
    own = [value for subject, value in found if subject == draft.name]
    times = {read_time(value, options, source, draft.record): value for value in own or [value for _, value in found]}
    if len(times) > 1:
        raise EventError(
            f"{_call(draft)} has {len(times)} times: {', '.join(map(str, times.values()))}",
            source=source,
            record=draft.record,
            hint="an event has one time; --time names the predicate that gives it",
        )
    return next(iter(times))


def read_time(value: Term, options: StreamOptions, source: str, record: int) -> int:
    """Nanoseconds; the lexical form decides, whatever datatype it claims."""
    attribute = options.time or ""
    if not isinstance(value, Literal):
        problem = f"{value} is not a time: a time is a literal"
        raise EventError(problem, source=source, record=record, attribute=attribute)
    try:
        return parse_time(str(value), options.unit)
    except EventError as error:
        raise EventError(error.problem, source=source, record=record, attribute=attribute, hint=error.hint) from None


def _call(draft: Draft) -> str:
    return f"event {draft.number}" if draft.name is None else f"graph {draft.name}"


def no_time(draft: Draft, options: StreamOptions, source: str) -> EventError:
    where = "in it" if draft.name is None else "in it, nor about it in the default graph"
    problem = f"{_call(draft)} has no time: there is no <{options.time}> {where}"
    if draft.name is None and any(type(subject) is BNode for subject, _, _ in draft.triples):
        hint = "its subject is a blank node, an event by itself unless what points at it stands beside it, and no more"
        hint += f" than {NESTED - 1} are open in each other: a named graph for each event keeps all nodes together"
    elif draft.repeated:
        hint = "statements of this graph stood further up already: those of one graph must stand together"
    else:
        dated = [str(p) for _, p, value in draft.triples if isinstance(value, Literal) and is_date(str(value))]
        hint = counted_hint("time", dict.fromkeys(dated), what="predicate", placeholder="PREDICATE")
        close = closest_iri(options.time or "", {str(predicate) for _, predicate, _ in draft.triples})
        hint = f"did you mean <{close}>? {hint}" if close else hint
    return EventError(problem, source=source, record=draft.record, attribute=options.time or "", hint=hint)


def two_times(name: Term, before: int, source: str, record: int) -> EventError:
    """The default graph states a time of the graph `name` on line `record`, and another on line `before`."""
    return EventError(
        f"graph {name} has two times; the other is on line {before}",
        source=source,
        record=record,
        hint="a graph has one time; a later graph needs a name of its own",
    )


def cut_off(count: int, size: int, source: str, record: int) -> EventError:
    """The last event, which begins on line `record`, has `count` triples, and events have `size`."""
    return EventError(
        f"the last event has {count} triple(s), and an event has {size}",
        source=source,
        record=record,
        hint="the file is cut off, or events have another size (--event-by size:N, or as the streams file says)",
    )


def no_named_graph(source: str) -> EventError:
    """Events are named graphs, and there is none in the file."""
    return EventError("no named graph in the file, and events are named graphs", source=source, hint=_NO_GRAPHS)
