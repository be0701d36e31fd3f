"""Moves conditions over several variables to the smallest part of a pattern that has all of them.

A run that leaves the scope of a condition drops the registers of that condition, and runs that differ in nothing else
become one: the smaller the scope, the sooner.
"""

from __future__ import annotations

from typing import assert_never

from spaseq.core.pattern.nodes import And, As, Atom, Correlate, Filter, Iterate, Or, Pattern, Project, Sequence
from spaseq.core.pattern.variables import variables


def push_filters(pattern: Pattern) -> Pattern:
    """An equivalent pattern whose `Correlate` nodes are as deep as their variables allow.

    A condition ranges over all positions of its variables ([CORE] §2.2, the "for all" extension). So it may move into
    one side of a node only if the other side binds none of its variables. It never moves into an iteration, because it
    relates events of different rounds.
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
    """`Correlate(child, over, guard)`, with the condition as deep in `child` as it may move."""
    match child:
        case Sequence(_, _, _, absent) if any(over & atom.variables for atom in absent):
            return Correlate(child, over, guard)  # the negation between the two parts uses the guard's registers
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
