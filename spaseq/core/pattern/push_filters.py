"""Moves conditions over several variables to the smallest part of a pattern that has all of them.

A run that leaves the scope of a condition drops the registers of that condition, and runs that differ in nothing else
become one: the smaller the scope, the sooner.
"""

from __future__ import annotations

from spaseq.core.pattern.nodes import And, As, Atom, Bordered, Correlate, Filter, Or, Pattern, Sequence
from spaseq.core.pattern.variables import variables
from spaseq.core.trees import mapped, walk, with_children


def push_filters(pattern: Pattern) -> Pattern:
    """An equivalent pattern whose `Correlate` nodes are as deep as their variables allow.

    A condition ranges over all positions of its variables ([CORE] §2.2, the "for all" extension). So it may move into
    one side of a node only if the other side binds none of its variables. It never moves into an iteration, because it
    relates events of different rounds.
    """
    decided = {
        name
        for node in walk(pattern)
        if isinstance(node, Bordered)
        for absent in (*node.before, *node.behind)
        if isinstance(absent.pattern, Atom) and absent.pattern.guard is not None
        for name in absent.pattern.variables
    }

    def change(node: Pattern) -> Pattern:
        # A negation at a border of a part uses the guard's registers in the gap behind or before the part.
        if isinstance(node, Correlate) and not node.variables & decided:
            return _push(node.child, node.variables, node.guard)
        return node

    return mapped(pattern, change)


def _push(child: Pattern, over: frozenset[str], guard: object) -> Pattern:
    """`Correlate(child, over, guard)`, with the condition as deep in `child` as it may move."""
    match child:
        case Sequence() if any(over & atom.variables for atom in (*child.absent, *child.watched)):
            return Correlate(child, over, guard)  # the negation between the two parts uses the guard's registers
        case Sequence(left, right) | And(left, right) if not over & variables(right):
            return with_children(child, (_push(left, over, guard), right))
        case Sequence(left, right) | And(left, right) if not over & variables(left):
            return with_children(child, (left, _push(right, over, guard)))
        case Or(left, right):
            return with_children(child, (_push(left, over, guard), _push(right, over, guard)))
        case As(inner, variable) if variable not in over:
            return with_children(child, (_push(inner, over, guard),))
        case Filter(inner) | Bordered(inner):
            return with_children(child, (_push(inner, over, guard),))
    return Correlate(child, over, guard) if over & variables(child) else child
