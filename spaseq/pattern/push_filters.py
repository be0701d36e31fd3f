"""Move conditions over several variables to the smallest part of a pattern that has all their variables.

The sooner such a condition leaves scope, the sooner the registers it needs are forgotten and the runs that differ in
nothing else become one.
"""

from __future__ import annotations

from typing import assert_never

from spaseq.pattern.nodes import And, As, Atom, Correlate, Filter, Iterate, Or, Pattern, Project, Sequence
from spaseq.pattern.variables import variables


def push_filters(pattern: Pattern) -> Pattern:
    """An equivalent pattern whose `Correlate` nodes stand as deep as their variables allow.

    A condition ranges over all positions of its variables ([CORE] §2.2, the "for all" extension), so it may pass a
    node only if the part left out binds none of them: never an iteration, whose rounds bind them together.
    """
    match pattern:
        case Atom():
            return pattern
        case As(child, variable):
            return As(push_filters(child), variable)
        case Filter(child, variable, predicate):
            return Filter(push_filters(child), variable, predicate)
        case Or(left, right):
            return Or(push_filters(left), push_filters(right))
        case And(left, right):
            return And(push_filters(left), push_filters(right))
        case Sequence(left, right, skip, absent):
            return Sequence(push_filters(left), push_filters(right), skip, absent)
        case Iterate(child, skip, again):
            return Iterate(push_filters(child), skip, again)
        case Project(child, kept):
            return Project(push_filters(child), kept)
        case Correlate(child, over, guard):
            return _push(push_filters(child), over, guard)
        case _:
            assert_never(pattern)  # type: ignore[arg-type]


def _push(child: Pattern, over: frozenset[str], guard: object) -> Pattern:
    """`Correlate(child, over, guard)`, with the condition as deep in `child` as it may stand."""
    match child:
        case Sequence(_, _, _, absent) if any(over & atom.variables for atom in absent):
            return Correlate(child, over, guard)  # it is asked of what must be absent between the two
        case Sequence(left, right, skip, absent) if not over & variables(right):
            return Sequence(_push(left, over, guard), right, skip, absent)
        case Sequence(left, right, skip, absent) if not over & variables(left):
            return Sequence(left, _push(right, over, guard), skip, absent)
        case And(left, right) if not over & variables(right):
            return And(_push(left, over, guard), right)
        case And(left, right) if not over & variables(left):
            return And(left, _push(right, over, guard))
        case Or(left, right):
            return Or(_push(left, over, guard), _push(right, over, guard))
        case As(inner, variable) if variable not in over:
            return As(_push(inner, over, guard), variable)
        case Filter(inner, variable, predicate):
            return Filter(_push(inner, over, guard), variable, predicate)
        case _:
            return Correlate(child, over, guard) if over & variables(child) else child
