"""The variables that a pattern may bind."""

from __future__ import annotations

from typing import assert_never

from spaseq.core.pattern.nodes import And, As, Atom, Correlate, Filter, Iterate, Or, Pattern, Project, Sequence


def variables(pattern: Pattern) -> frozenset[str]:
    """The variables that take a position in some valuation of `pattern`. O(size of the pattern)."""
    match pattern:
        case Atom(_, bound, _):
            return bound
        case As(child, variable):
            inner = variables(child)
            return inner | {variable} if inner else inner
        case Filter(child, _, _) | Correlate(child, _, _) | Iterate(child, _, _):
            return variables(child)
        case Or(left, right) | And(left, right) | Sequence(left, right, _, _):
            return variables(left) | variables(right)
        case Project(child, kept):
            return variables(child) & kept
        case _:
            assert_never(pattern)  # type: ignore[arg-type]
