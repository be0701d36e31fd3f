"""The variables that a pattern may bind."""

from __future__ import annotations

from spaseq.core.pattern.nodes import As, Atom, Pattern, Project
from spaseq.core.trees import fold


def variables(pattern: Pattern) -> frozenset[str]:
    """The variables that take a position in some valuation of `pattern`. O(size of the pattern)."""
    return fold(pattern, _variables)


def _variables(pattern: Pattern, below: list[frozenset[str]]) -> frozenset[str]:
    match pattern:
        case Atom(_, bound, _):
            return bound
        case As(_, variable):
            return below[0] | {variable} if below[0] else below[0]
        case Project(_, kept):
            return below[0] & kept
    return frozenset[str]().union(*below)
