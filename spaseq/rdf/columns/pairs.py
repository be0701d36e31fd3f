"""Joins and closures of pairs of numbered terms. Pairs are int32 (n, 2), each column together in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from spaseq.core.errors import BudgetExceeded
from spaseq.core.integers import different, in_order, ranges
from spaseq.core.jit import attempt_rows
from spaseq.core.watch import check, to_hold

NO_PAIRS: np.ndarray = np.zeros((2, 0), np.int32).T
_BLOCK: Final = 1 << 20
"""Rows of a join that are made at a time."""
_STEPS: Final = 1 << 16, 1 << 24
"""Steps of the first call of a kernel, which may be interpreted, and of the others."""


def pair(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The pairs of two columns."""
    made = np.empty((2, len(one)), np.int32)
    made[0], made[1] = one, other
    return made.T


def codes_of(pairs: np.ndarray) -> np.ndarray:
    """int64 (n,): numbers in the order of the pairs."""
    codes: np.ndarray = pairs[:, 0].astype(np.int64)
    codes <<= 32
    codes |= pairs[:, 1]
    return codes


def once(pairs: np.ndarray) -> np.ndarray:
    """The different pairs, in order."""
    return _pairs_of(_distinct(codes_of(pairs)))


def common(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The pairs that are in both, in order; `one` and `other` have each once."""
    return _pairs_of(shared(codes_of(one), codes_of(other)))


def shared(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The numbers that are in both, ascending; `one` and `other` have each once. PERF: `numpy.isin` hashes them."""
    both = np.concatenate([one, other])
    both.sort()
    found: np.ndarray = both[:-1][both[1:] == both[:-1]]
    return found


def _distinct(codes: np.ndarray) -> np.ndarray:
    """The different ones, ascending; `codes` are sorted. PERF: numpy's `unique` hashes them, which takes five times as
    long for millions (numpy 2.4)."""
    codes.sort()
    keep = np.empty(len(codes), bool)
    keep[:1] = True
    np.not_equal(codes[1:], codes[:-1], out=keep[1:])
    return codes if keep.all() else codes[keep]


def _pairs_of(codes: np.ndarray) -> np.ndarray:
    made = np.empty((2, len(codes)), np.int32)
    np.right_shift(codes, 32, out=made[0], casting="unsafe")
    np.bitwise_and(codes, 0xFFFFFFFF, out=made[1], casting="unsafe")
    return made.T


def transitive(direct: np.ndarray, most: int | None = None) -> np.ndarray:
    """The pairs of a term and one that is reached from it, without itself, in order. Cost and errors: `reached`."""
    return once(reached(direct, most)[0])


def reached(direct: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a term and another reached from it, each once; and the terms reached from themselves via others.

    `direct` is in order. Components of terms that reach each other are one node; the terms behind a node are gathered
    once. O(pairs), and the terms common to several ways from a term. BudgetExceeded if there are more than `most`.
    """
    if not len(direct):
        return NO_PAIRS, NO_PAIRS[:, 0]
    terms, numbers = different(direct.T)
    sources, targets = numbers.astype(np.int32)
    component, count = _components(sources, targets, len(terms))
    sizes = np.bincount(component, minlength=count)
    edges = pair(component[sources], component[targets])
    starts, found = _behind(edges[edges[:, 0] != edges[:, 1]], count, sizes, most)
    members = in_order(component).astype(np.int32)
    firsts = np.cumsum(sizes) - sizes
    whole = np.diff(starts)
    terms = terms.astype(np.int32)
    if count == len(terms):
        refuse_more(len(found), most)
        to_hold(16 * len(found))
        of = terms[members]
        return pair(np.repeat(of, whole), of[found]), terms[:0]
    # Of each node's terms with those of the nodes behind it, and with each other.
    total = int((sizes * (sizes - 1)).sum()) + int((np.repeat(sizes, whole) * sizes[found]).sum())
    refuse_more(total, most)
    to_hold(40 * total)
    large = np.flatnonzero(sizes > 1)
    left = np.concatenate([np.repeat(np.arange(count), whole), large])
    right = np.concatenate([found, large])
    one, place = _spread(sizes[left] * sizes[right])
    own = pair(
        members[firsts[left[one]] + place // sizes[right[one]]], members[firsts[right[one]] + place % sizes[right[one]]]
    )
    own = own[own[:, 0] != own[:, 1]]
    return terms[own], terms[sizes[component] > 1]


def _components(sources: np.ndarray, targets: np.ndarray, terms: int) -> tuple[np.ndarray, int]:
    """The number of each term's component, and how many there are. `sources` ascend."""
    from spaseq.rdf.columns.kernels import closure, layout

    begins = np.searchsorted(sources, np.arange(terms + 1))
    component, entered = (np.full(terms, layout.NIL, np.int32) for _ in range(2))
    low, path, calls = (np.zeros(terms, np.int32) for _ in range(3))
    place = np.zeros(terms, np.int64)
    cost = len(targets) + 4 * terms
    arguments = (begins, targets, entered, low, component, path, calls, place)
    return component, int(attempt_rows(closure.components, cost, *arguments))


def _behind(edges: np.ndarray, nodes: int, sizes: np.ndarray, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The offsets of the nodes that are reached from each node, int64 (nodes + 1,), and these, int32."""
    from spaseq.rdf.columns.kernels import closure, layout

    edges = once(pair(edges[:, 0], nodes - edges[:, 1]))  # from the highest down
    begins = np.searchsorted(edges[:, 0], np.arange(nodes + 1))
    ends = nodes - edges[:, 1]
    starts, state = np.zeros(nodes + 1, np.int64), np.zeros(2, np.int64)
    seen = np.full(nodes, layout.NIL, np.int32)
    found = np.empty(max(1024, 4 * len(ends)), np.int32)
    first, steps = _STEPS
    while attempt_rows(closure.reach, first, begins, ends, first, state, starts, found, seen):
        check()
        first = steps
        if most is not None:  # those of a node, for each of its terms
            refuse_more(int((np.diff(starts[: state[0] + 1]) * sizes[: state[0]]).sum()), most)
        if len(found) < state[1] + 2 * nodes:  # more than the next node can need
            to_hold(4 * len(found))
            found.resize(2 * len(found) + 2 * nodes, refcheck=False)
        seen[:] = layout.NIL
    return starts, found[: state[1]].copy()


def compose(left: np.ndarray, right: np.ndarray, most: int | None = None) -> np.ndarray:
    """(a, c), each once and in order, for each (a, b) of `left` and (b, c) of `right`, which is in order. Raises
    BudgetExceeded if there are more than `most`."""
    parts, waiting = [np.zeros(0, np.int64)], 0
    for mine, theirs in meetings(left[:, 1], right[:, 0]):
        parts.append(_distinct(codes_of(pair(left[mine, 0], right[theirs, 1]))))
        waiting += len(parts[-1])
        if waiting > max(_BLOCK, len(parts[0])):
            parts, waiting = [_distinct(np.concatenate(parts))], 0
            refuse_more(len(parts[0]), most)
    found = parts[0] if len(parts) == 1 else _distinct(np.concatenate(parts))
    refuse_more(len(found), most)
    return _pairs_of(found)


def meetings(terms: np.ndarray, keys: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(place in `terms`, place in `keys`) of each term and each equal key, a million at a time. `keys` ascend."""
    keys = np.ascontiguousarray(keys)
    for at in range(0, len(terms), _BLOCK):
        for mine, theirs in _meetings(terms[at : at + _BLOCK], keys):
            yield mine + at, theirs


def _meetings(terms: np.ndarray, keys: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    low, high = (np.searchsorted(keys, terms, side) for side in ("left", "right"))
    lengths = high - low
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, _BLOCK):
        check()
        end = min(begin + _BLOCK, total)
        first, last = int(np.searchsorted(ends, begin, "right")), int(np.searchsorted(ends, end, "left")) + 1
        upto = np.minimum(ends[first:last], end)
        since = np.maximum(ends[first:last] - lengths[first:last], begin)
        mine, place = _spread(upto - since)
        offset = low[first:last] + since - (ends[first:last] - lengths[first:last])
        yield mine + first, offset[mine] + place


def met(terms: np.ndarray, keys: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All `meetings` at once. Raises BudgetExceeded if there are more than `most`."""
    none, size = np.zeros(0, np.int64), 0
    found = [(none, none)]
    for part in meetings(terms, keys):
        size += len(part[0])
        refuse_more(size, most)
        to_hold(32 * size)
        found.append(part)
    mine, theirs = zip(*found, strict=True)
    return np.concatenate(mine), np.concatenate(theirs)


def _spread(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each length, so often its place, and the numbers from 0 up to it."""
    return np.repeat(np.arange(len(lengths)), lengths), ranges(np.zeros_like(lengths), lengths)


def refuse_more(size: int, most: int | None) -> None:
    """Raises `BudgetExceeded` if `size`, of consequences, is more than `most`: `closed_triples` of the settings."""
    if most is not None and size > most:
        raise BudgetExceeded(
            "closed_triples", most, size, "triples",
            "raise closed_triples, leave out entailment, or leave out what lets so much follow from the background "
            "knowledge: owl:sameAs among many, a long chain of a transitive property, many instances of deep classes",
        )  # fmt: skip
