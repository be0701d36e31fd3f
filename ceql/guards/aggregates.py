"""Aggregates over the events of a variable, and the guards that use them: `AVG(b.price) < c.price`, `COUNT(b) >= 3`.

The value of an aggregate is known only once its variable takes no more events, so such a guard is decided when the run
leaves its scope (`leave`). Until then a row keeps an accumulator for each aggregate, not the values. For a variable
that also stands outside of aggregates, it keeps the set of tuples of the attributes read there. A comparison of COUNT
with a number is decided earlier: it counts no further than needed, and rejects any event too many.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from typing import Any, Final

from ceql.expressions.scalar import compile_condition, compile_value
from ceql.operators.functions import FUNCTIONS
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, attributes_of, is_aggregate, replace
from spaseq.core.comparisons import COMPARISONS

CALLS: Final = "#aggregates"
"""The variable of which the aggregates of `AggregateGuard.body` are attributes, by their numbers."""
_Read = Callable[[int], Any]
_State = tuple[frozenset[str], tuple[frozenset[Any], ...], tuple[Hashable, ...]]
"""The variables that have taken an event; the set of value tuples of each variable that stands outside of aggregates;
the states of the accumulators."""

_New = tuple[frozenset[str], list[tuple[int, Callable[[Any, Any], Hashable], Any]], dict[int, tuple[Any, ...]]]
"""The values of an event: the variables that take it; for each accumulator its number, how it adds and the value. For
each variable that stands outside of aggregates, its number and the tuple of values."""


def named_by(call: ast.Call) -> str:
    """The variable an aggregate ranges over."""
    (argument,) = call.arguments
    if isinstance(argument, ast.Variable):
        return argument.name
    (variable,) = {a.variable for a in attributes_of(argument)}
    assert variable is not None
    return variable


class AggregateGuard:
    """A compiled guard with aggregates. As with every guard, it holds if one of its variables is empty.

    `read` gives for an attribute the function from an event's row to its value. `calls` are the aggregates, `plain` the
    attributes outside of them, by variable, and `body` the condition in which `calls` are attributes of `CALLS`.
    """

    def __init__(self, condition: ast.Condition, variables: frozenset[str], read: Callable[[ast.Attribute], _Read]):
        self.variables = variables
        self._most = _most(condition)
        self.calls = calls = tuple(dict.fromkeys(aggregates_of(condition)))
        over = [named_by(call) for call in calls]
        functions = [FUNCTIONS[call.function] for call in calls]
        self._adds = [function.add for function in functions if function.add is not None]
        self._results = [function.work for function in functions]
        self._new: dict[tuple[int, frozenset[str]], _New] = {}
        self._of_variable = {v: [i for i, o in enumerate(over) if o == v] for v in set(over)}
        self._read = [_argument(call, read) for call in calls]
        plain = _plain(condition)
        slots: dict[str, tuple[str, ...]] = {}
        for a in plain:
            assert a.variable is not None
            slots[a.variable] = tuple(dict.fromkeys((*slots.get(a.variable, ()), a.name)))
        self._order = tuple(sorted(slots))
        self.plain = {v: slots[v] for v in self._order}
        self._keep = [[read(ast.Attribute(name)) for name in slots[v]] for v in self._order]
        places = {v: i for i, v in enumerate(self._order)}
        numbers = {call: i for i, call in enumerate(calls)}
        self.body = body = replace(condition, lambda node: _standing_for(node, numbers))

        def lookup(a: ast.Attribute) -> Callable[[Any], Any]:
            assert a.variable is not None
            if a.variable == CALLS:
                index = int(a.name)
                return lambda choice: choice[-1][index]
            variable, place = places[a.variable], slots[a.variable].index(a.name)
            return lambda choice: choice[variable][place]

        self._test = compile_condition(body, lookup)
        self.empty: _State = (
            frozenset(),
            (frozenset(),) * len(self._order),
            tuple(function.start for function in functions),
        )

    def forget(self) -> None:
        """Events have other numbers from now on: another batch is read, or some of a memory are gone."""
        self._new = {}

    def take(self, state: _State, variables: frozenset[str], event: int) -> _State | None:
        """The state once the event is taken for `variables`; None if the condition can no longer become true."""
        new = self._new.get((event, variables))
        if new is None:  # many runs take one event
            self._new = {(event, variables): (new := self._values(variables, event))}
        taken, added, tuples = new
        seen, kept, sums = state
        changed: list[Any] = list(sums)
        for i, add, value in added:
            changed[i] = add(changed[i], value)
        if self._most is not None:
            most, stop = self._most
            if changed[0] > most:
                return None
            changed[0] = min(changed[0], stop)
        if not taken <= seen:
            seen |= taken
        if tuples:
            kept = tuple([old | {tuples[i]} if i in tuples else old for i, old in enumerate(kept)])
        return seen, kept, tuple(changed)

    def _values(self, variables: frozenset[str], event: int) -> _New:
        """The values of an event that is taken for `variables`."""
        taken = variables & self.variables
        added: list[tuple[int, Callable[[Any, Any], Hashable], Any]] = [
            (i, self._adds[i], self._read[i](event)) for variable in taken for i in self._of_variable.get(variable, ())
        ]
        tuples = {
            i: tuple([read(event) for read in self._keep[i]]) for i, name in enumerate(self._order) if name in taken
        }
        return taken, added, tuples

    def leave(self, state: _State) -> bool:
        """True if the condition holds of all events taken."""
        seen, kept, sums = state
        if seen != self.variables:
            return True
        results = tuple([result(s) for result, s in zip(self._results, sums, strict=True)])
        if not kept:
            return self._test((results,)) is True
        return all(self._test((*choice, results)) is True for choice in itertools.product(*kept))


def _argument(call: ast.Call, read: Callable[[ast.Attribute], _Read]) -> _Read:
    """The function from an event to the value that the aggregate accumulates: its argument's; for COUNT(b), True."""
    (argument,) = call.arguments
    if isinstance(argument, ast.Variable):
        return lambda event: True
    return compile_value(argument, read)


def _plain(condition: ast.Condition) -> list[ast.Attribute]:
    """The attributes outside of aggregates."""
    return list(attributes_of(replace(condition, lambda n: ast.Number(0) if is_aggregate(n) else None)))


def _standing_for(node: ast.Expression, numbers: dict[ast.Call, int]) -> ast.Expression | None:
    return ast.Attribute(str(numbers[node]), CALLS) if is_aggregate(node) else None


def _most(condition: ast.Condition) -> tuple[float, int] | None:
    """For `COUNT(…) symbol n`: the greatest count that satisfies it, and the one at which to stop; None for others."""
    negated = isinstance(condition, ast.Not)
    match condition.child if isinstance(condition, ast.Not) else condition:
        case ast.Compare(symbol, ast.Call("COUNT", _), ast.Number(bound)):
            pass
        case ast.Compare(symbol, ast.Number(bound), ast.Call("COUNT", _)):
            symbol = COMPARISONS[symbol].mirror
        case _:
            return None
    symbol = COMPARISONS[symbol].negation if negated else symbol
    stop = max(0, math.floor(bound) + 1)
    match symbol:
        case "=" | "<=":
            return bound, stop
        case "<":
            return math.ceil(bound) - 1, stop
    return math.inf, stop
