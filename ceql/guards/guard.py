"""A guard: a condition over several variables, as the pattern algebra carries it. Who decides it:
`ceql.guards.registers`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ceql.expressions.scalar import compile_condition
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import aggregates_of, attributes_of

__all__ = ["Guard", "slot_of", "slots_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """`condition`, whose attributes name their variables; more in `variables` only must not be empty."""

    condition: ast.Condition
    variables: frozenset[str]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
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

    def on_single_events(self) -> tuple[dict[str, tuple[str, ...]], Callable[[Any], bool | None]] | None:
        """The attributes read off each variable, and the test of a choice of their values; None for aggregates.

        A choice is a tuple of tuples: for each variable, in order of names, the values of its attributes."""
        if any(True for _ in aggregates_of(self.condition)):
            return None
        slots, index = slots_of(self), {v: i for i, v in enumerate(sorted(self.variables))}
        return slots, compile_condition(self.condition, lambda a: slot_of(a, index, slots))


def slots_of(guard: Guard) -> dict[str, tuple[str, ...]]:
    """The attributes that the guard reads off each variable."""
    found: dict[str, dict[str, None]] = {}
    for attribute in attributes_of(guard.condition):
        if attribute.variable is not None:
            found.setdefault(attribute.variable, {})[attribute.name] = None
    return {variable: tuple(names) for variable, names in found.items()}


def slot_of(attribute: ast.Attribute, index: dict[str, int], slots: dict[str, tuple[str, ...]]) -> Callable[[Any], Any]:
    """What reads an attribute off a choice; `slots` as of `slots_of`, `index` the place of each variable."""
    assert attribute.variable is not None
    variable, place = index[attribute.variable], slots[attribute.variable].index(attribute.name)
    return lambda choice: choice[variable][place]
