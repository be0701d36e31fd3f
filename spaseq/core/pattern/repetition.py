"""Bounded repetition, written out."""

from __future__ import annotations

from collections.abc import Hashable

from spaseq.core.pattern.nodes import Iterate, Optional, Or, Pattern, Predicate, Preference, Sequence, Skip


def repeat(
    pattern: Pattern,
    low: int,
    high: int | None,
    skip: Skip = Skip.ANY,
    preference: Preference = Preference.EACH,
    stops: frozenset[frozenset[Predicate]] = frozenset(),
    again: Hashable | None = None,
) -> Pattern:
    """`low` to `high` times `pattern` (None: no bound), joined by `skip`. No round of an unbounded loop is behind an
    event of `stops`.

    If the run prefers nothing, n rounds are O(n log n) copies, nested O(log n) deep; else O(n) copies, of which
    `high - low` are each inside the one before.
    """
    if low == 0:
        return Optional(repeat(pattern, 1, high, skip, preference, stops, again), preference)
    if high is None:
        more: Pattern = Iterate(pattern, skip, again, preference, stops)
    elif low == high:
        return _times(pattern, low, skip, again)
    elif preference is Preference.EACH:
        more = _up_to(pattern, high - low + 1, skip, again)
    else:
        more = pattern
        for _ in range(high - low):
            more = Sequence(pattern, Optional(more, preference), skip)
    return more if low == 1 else Sequence(_times(pattern, low - 1, skip, again), more, skip, (), again)


def _times(pattern: Pattern, count: int, skip: Skip, again: Hashable | None) -> Pattern:
    if count == 1:
        return pattern
    half = count // 2
    first, second = _times(pattern, half, skip, again), _times(pattern, count - half, skip, again)
    return Sequence(first, second, skip, (), again)


def _up_to(pattern: Pattern, count: int, skip: Skip, again: Hashable | None) -> Pattern:
    """1 to `count` times: at most half as often; or exactly half, followed by 1 to the remaining times."""
    if count == 1:
        return pattern
    half = count // 2
    first, second = _times(pattern, half, skip, again), _up_to(pattern, count - half, skip, again)
    return Or(_up_to(pattern, half, skip, again), Sequence(first, second, skip, (), again))
