"""Bounded repetition `φ{l,m}`, written out as l to m copies of φ. Any events may lie between them, as in `φ+`."""

from __future__ import annotations

from spaseq.core.errors import InternalError
from spaseq.core.pattern import And, As, Atom, Correlate, Filter, Iterate, Or, Pattern, Project, Sequence, Skip

__all__ = ["repeated", "size"]


def repeated(pattern: Pattern, low: int, high: int | None) -> Pattern:
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
    match pattern:
        case Atom():
            return 1
        case And(left, right):
            return (size(left) + 2) * (size(right) + 2)
        case Or(left, right) | Sequence(left, right, _):
            return size(left) + size(right)
        case As(child, _) | Filter(child, _, _) | Correlate(child, _, _) | Iterate(child, _, _) | Project(child, _):
            return size(child)
    raise InternalError(f"no size of {type(pattern).__name__}")
