"""A guard: a condition over several variables, as a part of a pattern (`spaseq.core.pattern.Correlate`).

It holds for a match if every choice of one event for each of its variables satisfies the condition.
`ceql.guards.registers` decides it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ceql.expressions.scalar import compile_condition
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import attributes_of, is_plain, replace
from spaseq.core.comparisons import COMPARISONS

_MARKED: Final = re.compile(r"`([^`#]+)#\d+`")


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """`condition`, in which each attribute names its variable; and `variables`, which are those and perhaps more.

    A match in which one of `variables` is empty satisfies the guard.
    """

    condition: ast.Condition
    variables: frozenset[str]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """`b.time - a.time > 30 MINUTES` becomes `b.time > a.time + 30 MINUTES`, which costs what an order costs."""
        object.__setattr__(self, "condition", replace(self.condition, _one_side))
        object.__setattr__(self, "_hash", hash((self.condition, self.variables)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Guard):
            return NotImplemented
        return self.condition == other.condition and self.variables == other.variables

    def __reduce__(self) -> tuple[Any, ...]:
        return Guard, (self.condition, self.variables)

    def __str__(self) -> str:
        return print_expression(self.condition)

    @property
    def query_text(self) -> str:
        """Its condition as the query has it: without the marks of the names that lowering gives to events."""
        return _MARKED.sub(r"\1", str(self))

    def sides(self) -> tuple[str, str] | None:
        """The variables of the left and of the right side of a comparison that has exactly one on each; else None."""
        if not isinstance(self.condition, ast.Compare) or len(self.variables) != 2:
            return None
        left, right = ({a.variable for a in attributes_of(s)} for s in (self.condition.left, self.condition.right))
        if len(left) != 1 or len(right) != 1 or left | right != self.variables:
            return None
        (first,), (second,) = left, right
        return (first, second) if first is not None and second is not None else None

    def on_single_events(self) -> tuple[dict[str, tuple[str, ...]], Callable[[Any], bool | None]] | None:
        """The attributes that the condition reads of each variable, and its test; None if it has aggregates or
        reads earlier events.

        The test takes a tuple with an element for each variable, in order of names: the tuple of its attributes'
        values. It returns True, False or None (unknown).
        """
        if not is_plain(self.condition):
            return None
        slots, index = slots_of(self), {v: i for i, v in enumerate(sorted(self.variables))}
        return slots, compile_condition(self.condition, lambda a: slot_of(a, index, slots))


def _one_side(node: ast.Expression) -> ast.Expression | None:
    """A comparison of a difference with a duration, as one of what is subtracted from with a sum. Both mean the same
    for times up to 292 years apart; for others the sum decides."""
    match node:
        case ast.Compare(symbol, ast.Arithmetic("-", left, right), span) if _is_duration(span):
            return ast.Compare(symbol, left, ast.Arithmetic("+", right, span, span=right.span), span=node.span)
        case ast.Compare(symbol, span, ast.Arithmetic("-", left, right)) if _is_duration(span):
            moved = ast.Arithmetic("+", right, span, span=right.span)
            return ast.Compare(COMPARISONS[symbol].mirror, left, moved, span=node.span)
    return None


def _is_duration(node: ast.Expression) -> bool:
    return isinstance(node.child if isinstance(node, ast.Negate) else node, ast.Duration)


def slots_of(guard: Guard) -> dict[str, tuple[str, ...]]:
    """The attributes that the guard reads of each variable."""
    found: dict[str, dict[str, None]] = {}
    for attribute in attributes_of(guard.condition):
        if attribute.variable is not None:
            found.setdefault(attribute.variable, {})[attribute.name] = None
    return {variable: tuple(names) for variable, names in found.items()}


def slot_of(attribute: ast.Attribute, index: dict[str, int], slots: dict[str, tuple[str, ...]]) -> Callable[[Any], Any]:
    """The function that takes an attribute's value from a choice: a tuple with an element for each variable, which is
    the tuple of its attributes' values. `index` gives the place of each variable, `slots` (`slots_of`) its attributes.
    """
    assert attribute.variable is not None
    variable, place = index[attribute.variable], slots[attribute.variable].index(attribute.name)
    return lambda choice: choice[variable][place]
