"""Repetition: `φ{l,m}` written out as l to m copies of φ; and the numbers of events that patterns take."""

from __future__ import annotations

import math

from spaseq.core.pattern import (
    And,
    As,
    Atom,
    Iterate,
    Optional,
    Or,
    Pattern,
    Predicate,
    Preference,
    Sequence,
    Skip,
)
from spaseq.core.trees import fold

_Range = tuple[int, float]
"""The least number, and the greatest."""


def repeat(
    pattern: Pattern,
    low: int,
    high: int | None,
    skip: Skip = Skip.ANY,
    preference: Preference = Preference.EACH,
    stops: frozenset[frozenset[Predicate]] = frozenset(),
) -> Pattern:
    """`low` to `high` times `pattern` (None: no bound), joined by `skip`. No round of an unbounded loop is behind an
    event of `stops`.

    If the run prefers nothing, n rounds are O(n log n) copies, nested O(log n) deep; else O(n) copies, of which
    `high - low` are each inside the one before.
    """
    if low == 0:
        return Optional(repeat(pattern, 1, high, skip, preference, stops), preference)
    if high is None:
        more: Pattern = Iterate(pattern, skip, None, preference, stops)
    elif low == high:
        return _times(pattern, low, skip)
    elif preference is Preference.EACH:
        more = _up_to(pattern, high - low + 1, skip)
    else:
        more = pattern
        for _ in range(high - low):
            more = Sequence(pattern, Optional(more, preference), skip)
    return more if low == 1 else Sequence(_times(pattern, low - 1, skip), more, skip)


def _times(pattern: Pattern, count: int, skip: Skip) -> Pattern:
    if count == 1:
        return pattern
    half = count // 2
    return Sequence(_times(pattern, half, skip), _times(pattern, count - half, skip), skip)


def _up_to(pattern: Pattern, count: int, skip: Skip) -> Pattern:
    """1 to `count` times: at most half as often; or exactly half, followed by 1 to the remaining times."""
    if count == 1:
        return pattern
    half = count // 2
    more = Sequence(_times(pattern, half, skip), _up_to(pattern, count - half, skip), skip)
    return Or(_up_to(pattern, half, skip), more)


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
    if isinstance(node, Optional):
        return 0, max(most)
    return sum(least), math.inf if isinstance(node, Iterate) and any(most) else sum(most)
