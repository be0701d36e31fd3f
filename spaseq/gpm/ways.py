"""Property paths on one of rdflib's graphs (SPARQL 1.1 §18.4), for the reference.

A path of length zero leads from each node of the graph, and from a constant at an end of the whole path, to itself. A
pair occurs once for each way through `/`, `|`, `!` and plain predicates, but once through `?`, `*` and `+`. The
evaluation of rdflib itself takes a literal that is false in Python (`0`, `""`) for an open end. It also lets a path of
length zero begin at any term that another part of the pattern has bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rdflib.paths import AlternativePath, InvPath, MulPath, SequencePath


def ways(path: Any, start: Any, end: Any, ends: frozenset[Any], graph: Any) -> Iterator[tuple[Any, Any]]:
    """(first, last) for each way of a path from `start` to `end`, None for any term (SPARQL 1.1 §18.4). `ends`: the
    constants at the ends of the whole path. `?`, `*` and `+` give a pair once."""
    match path:
        case InvPath(arg=inner):
            yield from ((a, b) for b, a in ways(inner, end, start, ends, graph))
        case AlternativePath(args=args):
            for arg in args:
                yield from ways(arg, start, end, ends, graph)
        case SequencePath(args=[only]):
            yield from ways(only, start, end, ends, graph)
        case SequencePath(args=[*before, last]) if start is None and end is not None:
            for b, c in list(ways(last, None, end, ends, graph)):
                yield from ((a, c) for a, _ in ways(SequencePath(*before), None, b, ends, graph))
        case SequencePath(args=[first, *behind]):
            for a, b in list(ways(first, start, None, ends, graph)):
                yield from ((a, c) for _, c in ways(SequencePath(*behind), b, end, ends, graph))
        case MulPath() if start is None and end is not None:
            turned = MulPath(InvPath(path.path), path.mod)
            yield from ((a, end) for a in _reach(turned, end, ends, graph))
        case MulPath():
            for a in [start] if start is not None else _origins(path, ends, graph):
                yield from ((a, b) for b in _reach(path, a, ends, graph) if end is None or b == end)
        case _:  # an IRI or a negated set
            yield from ((a, b) for a, _, b in graph.triples((start, path, end)))


def _reach(path: MulPath, start: Any, ends: frozenset[Any], graph: Any) -> dict[Any, None]:
    """The terms to which a `?`, `*` or `+` leads from a term, each once."""
    found = dict.fromkeys([start] if path.zero and (start in ends or _has(graph, start)) else [])
    fresh = list(dict.fromkeys(b for _, b in ways(path.path, start, None, ends, graph)))
    while fresh:
        new = [term for term in fresh if term not in found]
        found.update(dict.fromkeys(new))
        if not path.more:
            break
        fresh = list(dict.fromkeys(b for term in new for _, b in ways(path.path, term, None, ends, graph)))
    return found


def _origins(path: MulPath, ends: frozenset[Any], graph: Any) -> Iterable[Any]:
    """The terms at which a path may begin."""
    if path.zero:
        return dict.fromkeys([*(term for s, _, o in graph for term in (s, o)), *ends])
    return dict.fromkeys(a for a, _ in ways(path.path, None, None, ends, graph))


def _has(graph: Any, term: Any) -> bool:
    """True if a term is a node of the graph."""
    return (term, None, None) in graph or (None, None, term) in graph
