"""Bounded repetition `φ{l,m}`, written out as l to m copies of φ, and the numbers of events that patterns take.

Any events may lie between the copies, as in `φ+`.
"""

from __future__ import annotations

import math

from spaseq.core.pattern import And, As, Atom, Iterate, Or, Pattern, Sequence, Skip
from spaseq.core.trees import fold

_Range = tuple[int, float]
"""The least number, and the greatest."""


def repeat(pattern: Pattern, low: int, high: int | None) -> Pattern:
    """`low` to `high` times `pattern` (None: no bound). O(n log n) copies for n rounds, nested O(log n) deep."""
    if high is None:
        more = Iterate(pattern, Skip.ANY)
        return more if low == 1 else Sequence(_times(pattern, low - 1), more, Skip.ANY)
    if low == high:
        return _times(pattern, low)
    return _up_to(pattern, high) if low == 1 else Sequence(_times(pattern, low - 1), _up_to(pattern, high - low + 1),
                                                            Skip.ANY)  # fmt: skip


def _times(pattern: Pattern, count: int) -> Pattern:
    if count == 1:
        return pattern
    half = count // 2
    return Sequence(_times(pattern, half), _times(pattern, count - half), Skip.ANY)


def _up_to(pattern: Pattern, count: int) -> Pattern:
    """1 to `count` times: at most half as often; or exactly half, followed by 1 to the remaining times."""
    if count == 1:
        return pattern
    half = count // 2
    more = Sequence(_times(pattern, half), _up_to(pattern, count - half), Skip.ANY)
    return Or(_up_to(pattern, half), more)


def size(pattern: Pattern) -> int:
    """An estimate of the states of a pattern's automaton: one for each atom; for a conjunction, one for each pair."""
    return fold(pattern, _size)


def _size(pattern: Pattern, below: list[int]) -> int:
    match pattern:
        case Atom():
            return 1
        case And():
            return (below[0] + 2) * (below[1] + 2)
    return sum(below)


def taken(pattern: Pattern, variable: str) -> tuple[int, float]:
    """The least and the greatest number of events of a match that `variable` takes; the least is 0 only if it may take
    none."""

    def count(node: Pattern, below: list[tuple[_Range, _Range]]) -> tuple[_Range, _Range]:
        """Of the variable, and of all events."""
        match node:
            case Atom(_, variables):
                own = int(variable in variables)
                return (own, own), (1, 1)
            case As(_, name) if name == variable:
                return below[0][1], below[0][1]
        own_ranges, all_ranges = zip(*below, strict=True)
        return _together(node, *zip(*own_ranges, strict=True)), _together(node, *zip(*all_ranges, strict=True))

    return fold(pattern, count)[0]


def _together(node: Pattern, least: tuple[int, ...], most: tuple[float, ...]) -> _Range:
    if isinstance(node, Or):
        return min(least), max(most)
    return sum(least), math.inf if isinstance(node, Iterate) and any(most) else sum(most)
