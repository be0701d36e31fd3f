"""The numbers of events that patterns and their variables take."""

from __future__ import annotations

import math

from spaseq.core.pattern import (
    As,
    Atom,
    Iterate,
    Optional,
    Or,
    Pattern,
)
from spaseq.core.trees import fold

_Range = tuple[int, float]
"""The least number, and the greatest."""


def size(pattern: Pattern) -> int:
    """The number of atoms of a pattern. Its automaton has about as many states, but for conjunctions, which have a
    budget of their own (`spaseq.core.automata.compile_pattern`)."""
    return fold(pattern, lambda node, below: 1 if isinstance(node, Atom) else sum(below))


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
