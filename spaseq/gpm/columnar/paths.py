"""Property paths over a batch of events, as pairs (SPARQL 1.1 §18.4).

If solutions are counted, a pair occurs once for each way through `/`, `|`, `!` and plain predicates; `?`, `*` and `+`
give each pair once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.term import URIRef

from spaseq.core.errors import BudgetExceeded, InternalError
from spaseq.core.jit import attempt_rows
from spaseq.core.watch import to_hold
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.joins import equal_pairs
from spaseq.gpm.columnar.lists import Lists, Pairs


def pairs_of(path: Path, ends: Sequence[int], lists: Lists, counting: bool) -> Pairs:
    """The pairs of `path` at every event of the lists' batch, each once unless `counting`; the result is cached.

    `ends`: the constants at the ends of the path. A path of length zero leads from each of them to itself, even if the
    graph does not have it. Raises `BudgetExceeded` (`solution_rows`).
    """
    key = (repr(path), tuple(ends), counting)
    found = lists.known_pairs.get(key)
    if found is None:
        found = lists.known_pairs[key] = _pairs(path, ends, lists, counting)
    return found


def _pairs(path: Any, ends: Sequence[int], lists: Lists, counting: bool) -> Pairs:
    match path:
        case URIRef():
            return lists.pairs(path)
        case InvPath(arg=arg):
            return _pairs(arg, ends, lists, counting).turned()
        case AlternativePath(args=args):
            return Pairs.of(np.concatenate([_pairs(arg, ends, lists, counting).rows() for arg in args]), counting)
        case SequencePath(args=args):
            first, *rest = (_pairs(arg, ends, lists, counting) for arg in args)
            for other in rest:
                first = _chain(first, other, lists.budget, counting)
            return first
        case NegatedPath():
            return _outside(path, lists, counting)
        case MulPath(path=inner, zero=zero, more=more):
            steps = _pairs(inner, ends, lists, False)
            if more:
                steps = _closed(steps, len(lists.space), lists.budget)
            return Pairs.of(np.concatenate([_nodes(ends, lists), steps.rows()]), False) if zero else steps
        case _:
            raise InternalError(f"no rule for a property path {type(path).__name__}")


def _chain(left: Pairs, right: Pairs, budget: int, counting: bool) -> Pairs:
    """The composition of two lists of pairs: (a, c) for a pair (a, b) of `left` and a pair (b, c) of `right`."""
    rows, others = equal_pairs(_codes(left.events, left.targets), _codes(right.events, right.sources), budget)
    return Pairs.of(np.stack([left.events[rows], left.sources[rows], right.targets[others]], axis=1), counting)


def _codes(events: np.ndarray, terms: np.ndarray) -> np.ndarray:
    return events.astype(np.int64) << 32 | terms.astype(np.int64)


def _closed(steps: Pairs, terms: int, budget: int) -> Pairs:
    """The transitive closure of `steps` at each event."""
    order = np.lexsort((steps.sources, steps.events))
    events, sources, targets = steps.events[order], steps.sources[order], steps.targets[order]
    first = np.ones(len(order), bool)
    first[1:] = (events[1:] != events[:-1]) | (sources[1:] != sources[:-1])
    seeds_events, seeds = events[first], sources[first]
    marks, queue, state = np.full(terms, -1, np.int32), np.zeros(terms, np.int32), np.zeros(2, np.int64)
    out = np.zeros((max(64, 2 * len(steps)), 3), np.int32)
    while not attempt_rows(k.close_pairs, 8 * len(seeds) * len(events), events, sources, targets, seeds_events, seeds,
                           state, marks, queue, out):  # fmt: skip
        if len(out) >= budget:
            raise BudgetExceeded("solution_rows", budget, len(out) + 1, "rows")
        to_hold(3 * out.nbytes)
        out = np.concatenate([out, np.zeros_like(out)])
    return Pairs.of(out[: state[1]], False)


def _nodes(ends: Sequence[int], lists: Lists) -> np.ndarray:
    """(event, node, node) for every subject and object of an event, and for each of `ends` at every event."""
    every = np.arange(len(lists), dtype=np.int32)
    events = np.repeat(every, np.diff(lists.offsets))
    parts = [(events, lists.triples[:, 0]), (events, lists.triples[:, 2])]
    parts += [(every, np.full(len(every), end, np.int32)) for end in ends]
    where = np.concatenate([e for e, _ in parts])
    nodes = np.concatenate([n for _, n in parts])
    return np.stack([where, nodes, nodes], axis=1).astype(np.int32)


def _outside(path: Path, lists: Lists, counting: bool) -> Pairs:
    """A negated property set: the triples with predicates that are not in it; if it has inverse ones, also the triples
    with predicates other than these, exchanged."""
    forward = [arg for arg in path.args if isinstance(arg, URIRef)]  # type: ignore[attr-defined]
    backward: list[Any] = [arg.arg for arg in path.args if isinstance(arg, InvPath)]  # type: ignore[attr-defined]
    events = np.repeat(np.arange(len(lists), dtype=np.int32), np.diff(lists.offsets))
    parts = [np.zeros((0, 3), np.int32)]
    for names, turned in ((forward, False), (backward, True)):
        if names or (not turned and not backward):
            numbers = [number for name in names if (number := lists.space.find(name)) >= 0]
            kept = ~np.isin(lists.triples[:, 1], numbers)
            s, o = lists.triples[kept, 0], lists.triples[kept, 2]
            parts.append(np.stack([events[kept], o, s] if turned else [events[kept], s, o], axis=1))
    return Pairs.of(np.concatenate(parts).astype(np.int32), counting)
