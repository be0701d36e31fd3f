"""Guards that read events before the one at hand: `b.price < PREV(b.price)`, `c.price > b[0].price`.

Such a guard is tested at each event of one of its variables, its *anchor*. The others are those whose earlier events it
reads; if one of these has no event there yet, the guard holds. So a row keeps no sets of values. It has *slots*: for
`PREV(b.price, k)` the values of the last k events of b, the last one first; for `b[0].price` those of the first event.
Runs with equal slots are one: a contiguous run has those of the event before, however long it is.

In the kernels a slot is a register for each value. A guard that compares a value of the event with one of an earlier
event is a test of two codes, with the columns of a `Comparison`. Any other is a `Question`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ceql.expressions.scalar import compile_condition, compile_value
from ceql.guards.comparisons import Comparison, Texts, decode
from ceql.guards.guard import Guard
from ceql.guards.questions import Question
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, parts, replace
from spaseq.core.automata import Avoid, Leave, Take
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.engine.program.register_ops import (
    NOTHING,
    Copy,
    Drop,
    Keep,
    MergeRule,
    Op,
    Operand,
    ResidualTest,
    Test,
)
from spaseq.core.errors import InternalError
from spaseq.core.events import EventBatch

Place = tuple[str, int]
"""An earlier event that a guard reads: its variable and `Earlier.back`."""
State = tuple[tuple[Any, ...], ...]
"""The slots, place by place; each is () or has a tuple of values."""
_NOW: Final = ""
"""The variable of the event at hand, in conditions on which `_separate` has been at work."""


def places_of(guard: Guard) -> list[Place]:
    """The earlier events that a guard reads, in order."""
    found = {(p.attribute.variable or "", p.back) for p in parts(guard.condition) if isinstance(p, ast.Earlier)}
    return sorted(found)


def anchor_of(guard: Guard, places: list[Place]) -> str:
    """The variable at whose events a guard is tested: the one of which it reads no earlier event by that name."""
    (anchor,) = guard.variables - {variable for variable, _ in places}
    return anchor


def _name(place: Place) -> str:
    return f"{place[0]} {place[1]:03}"


def _separate(node: ast.Expression) -> ast.Expression:
    """An expression with a variable for each event that it reads: `_NOW`, and `_name(place)` for an earlier one."""

    def change(part: ast.Expression) -> ast.Expression | None:
        match part:
            case ast.Earlier(ast.Attribute(_, variable) as attribute, back):
                return dataclasses.replace(attribute, variable=_name((variable or "", back)))
            case ast.Attribute():
                return dataclasses.replace(part, variable=_NOW)
        return None

    return replace(node, change)


def _sides(guard: Guard) -> tuple[int, ast.Compare] | None:
    """For `left symbol right` with one side over the event at hand, and one over an earlier one: which one that is, 0
    or 1, and the condition of `_separate`. Else None."""
    condition = _separate(guard.condition)
    if not isinstance(condition, ast.Compare):
        return None
    sides = [{a.variable for a in attributes_of(side)} for side in (condition.left, condition.right)]
    for earlier in (0, 1):
        if sides[1 - earlier] == {_NOW} and len(sides[earlier]) == 1 and _NOW not in sides[earlier]:
            return earlier, condition
    return None


# -- on values


class RoundGuard:
    """A guard on values, as `ceql.guards.aggregates.AggregateGuard`. `read` gives for an attribute the function from an
    event's row to its value."""

    def __init__(self, guard: Guard, read: Callable[[ast.Attribute], Callable[[int], Any]]) -> None:
        places = places_of(guard)
        self._anchor = anchor_of(guard, places)
        self._first: list[int] = []
        self._places: list[tuple[str, int, int]] = []  # of each place the variable, its first slot, the slot behind
        count = 0
        for variable, back in places:
            if not back:
                self._first.append(count)
            self._places.append((variable, count, count + max(1, back)))
            count += max(1, back)
        self.empty: State = ((),) * count
        kept, body = _values_to_keep(guard, places)
        self._keep = [[compile_value(value, read) for value in values.values()] for values in kept]
        at = {_name(place): slots[2] - 1 for place, slots in zip(places, self._places, strict=True)}
        order = {_name(place): list(values) for place, values in zip(places, kept, strict=True)}

        def lookup(attribute: ast.Attribute) -> Callable[[tuple[int, State]], Any]:
            if attribute.variable == _NOW:
                value = read(attribute)
                return lambda choice: value(choice[0])
            slot, value_at = at[attribute.variable or ""], order[attribute.variable or ""].index(attribute)
            return lambda choice: choice[1][slot][0][value_at]

        self._read_at = tuple(at.values())
        self._test = compile_condition(body, lookup)

    def forget(self) -> None:
        """Nothing is kept of an event by its number."""

    def take(self, state: State, variables: frozenset[str], event: int) -> State | None:
        """The slots once the event is taken for `variables`; None if the condition is not true of it."""
        if (
            self._anchor in variables
            and all(state[slot] for slot in self._read_at)
            and self._test((event, state)) is not True
        ):
            return None
        new = list(state)
        for (variable, first, end), keep in zip(self._places, self._keep, strict=True):
            if variable in variables and not (first in self._first and state[first]):
                new[first + 1 : end] = state[first : end - 1]
                new[first] = (tuple([value(event) for value in keep]),)
        return tuple(new)

    def leave(self, state: State) -> bool:
        """True: every event has been tested."""
        return True


def _values_to_keep(
    guard: Guard, places: list[Place]
) -> tuple[list[dict[ast.Attribute, ast.Expression]], ast.Condition]:
    """For each place the expressions whose values are kept of its event, by the attributes that stand for them in a
    condition; and that condition."""
    sides = _sides(guard)
    if sides is None:
        body = _separate(guard.condition)
        assert isinstance(body, ast.Condition)
        attributes = dict.fromkeys(attributes_of(body))
        return [{a: a for a in attributes if a.variable == _name(place)} for place in places], body
    earlier, condition = sides
    (place,) = places
    value = condition.right if earlier else condition.left
    stand_in = ast.Attribute("", _name(place))
    one = dataclasses.replace(condition, right=stand_in) if earlier else dataclasses.replace(condition, left=stand_in)
    return [{stand_in: value}], one


def kept_attributes(guard: Guard) -> list[tuple[str, ...]]:
    """For each slot of a row of `RoundGuard` the attributes whose values it has. Of a guard that compares attributes
    with each other and with constants."""
    places = places_of(guard)
    found: list[tuple[str, ...]] = []
    for (_, back), values in zip(places, _values_to_keep(guard, places)[0], strict=True):
        names = tuple(value.name for value in values.values() if isinstance(value, ast.Attribute))
        found += [names] * max(1, back)
    return found


# -- on codes


def rounds_of(guard: Guard, number: int) -> RoundComparison | RoundQuestion | None:
    """The guard in the form of the kernels, as guard `number`; None if it reads no earlier event."""
    places = places_of(guard)
    if not places:
        return None
    sides = _sides(guard)
    return RoundQuestion(guard, places, number) if sides is None else RoundComparison(guard, places[0], *sides)


def _shift(back: int, register: int, more: Sequence[int], column: int) -> Iterator[Op]:
    """The operations that take an event in for a place. `register` is what a test reads; for `back` > 1 it is the last
    of a chain, `more` the ones before."""
    chain = [*more, register]
    yield from (Copy(chain[i], chain[i - 1]) for i in range(len(chain) - 1, 0, -1))
    yield Keep(MergeRule.SET if back else MergeRule.OLD, chain[0], column)


class RoundComparison:
    """A guard that compares a value of the event at hand with one of an earlier event.

    Its first two columns are those of a `Comparison`. The register of the earlier side has that side's number; further
    ones, of `PREV(…, k)`, are behind.
    """

    asked = 0

    def __init__(self, guard: Guard, place: Place, earlier: int, condition: ast.Compare) -> None:
        self._anchor = anchor_of(guard, [place])
        self._variable, self._back = place
        self._earlier = earlier
        self._symbol = condition.operator
        names = ("then", "now") if earlier == 0 else ("now", "then")
        self._codes = Comparison(condition, *names)
        self._more = range(2, 1 + max(1, self._back))
        self.width: int = 2 + len(self._more)

    def ops(self, action: Take | Avoid | Leave, at: int) -> tuple[Op, ...]:
        """The register operations of an action of this guard, whose registers and columns begin at `at`."""
        register, now = at + self._earlier, at + 1 - self._earlier
        more = [at + i for i in self._more]
        if isinstance(action, Leave):
            return tuple(Drop(r) for r in (*more, register))
        if isinstance(action, Avoid):
            raise InternalError("an absence under a condition that reads earlier events")
        found: list[Op] = []
        if self._anchor in action.variables:
            symbol = COMPARISONS[self._symbol].mirror if self._earlier else self._symbol
            found.append(Test(symbol, register, now))
        if self._variable in action.variables:
            found += _shift(self._back, register, more, register)
        return tuple(found)

    def load(self, events: EventBatch, rows: np.ndarray, texts: Texts, out: np.ndarray) -> bool:
        """As `Comparison.load`."""
        return self._codes.load(events, rows, texts, out[:, :2])

    def texts(self) -> tuple[int, ...]:
        """The registers that hold numbers of texts."""
        return (*self._codes.texts(), *self._more) if self._codes.texts() else ()

    def labels(self) -> tuple[int, ...]:
        """The registers that hold labels of texts."""
        return (*self._codes.labels(), *self._more) if self._codes.labels() else ()

    def values(self, held: list[int], texts: Texts) -> State:
        """The slots of `RoundGuard`. `held` are this guard's registers; `texts` has the text of each number."""
        codes = [held[i] for i in (*self._more, self._earlier)]
        return tuple([() if code == NOTHING else ((self._codes.value(code, texts),),) for code in codes])

    def snapshot(self) -> Any:
        """The kind of the values so far."""
        return self._codes.snapshot()

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        self._codes.restore(state)


class RoundQuestion(Question):
    """Any other guard on earlier events: a `Question`, with a variable for each event that it reads. Its registers of
    earlier events are those of these variables; further ones, of `PREV(…, k)`, are behind."""

    def __init__(self, guard: Guard, places: list[Place], number: int) -> None:
        self._anchor = anchor_of(guard, places)
        condition = _separate(guard.condition)
        assert isinstance(condition, ast.Condition)
        super().__init__(Guard(condition, frozenset(a.variable or "" for a in attributes_of(condition))), number)
        self._read = places
        of = {_name(place): place for place in places}
        self._place_of = [of.get(variable) for variable, _ in (*self._places, *self._numbers)]
        self._chains: list[range] = []
        for place in self._place_of:
            first = self.width
            self.width += 0 if place is None else max(0, place[1] - 1)
            self._chains.append(range(first, self.width))

    def ops(self, action: Take | Avoid | Leave, at: int) -> tuple[Op, ...]:
        """The register operations of an action of this guard, whose registers and columns begin at `at`."""
        if isinstance(action, Leave):
            return tuple(Drop(at + i) for i in range(self.width))
        if isinstance(action, Avoid):
            raise InternalError("an absence under a condition that reads earlier events")
        found: list[Op] = []
        if self._anchor in action.variables:
            operands = [
                Operand(column=at + i) if place is None else Operand(register=at + i)
                for i, place in enumerate(self._place_of)
            ]
            numbers = dict(zip(self._numbers, operands[self.asked :], strict=True))
            program = tuple(numbers[step] if isinstance(step, tuple) else step for step in self._program)
            found.append(ResidualTest(self._number, tuple(operands[: self.asked]), program, lenient=True))
        for i, place in enumerate(self._place_of):
            if place is not None and place[0] in action.variables:
                found += _shift(place[1], at + i, [at + j for j in self._chains[i]], at + i)
        return tuple(found)

    def texts(self) -> tuple[int, ...]:
        """The registers that hold numbers of texts."""
        own = super().texts()
        return (*own, *(j for i in own for j in self._chains[i]))

    def values(self, held: list[int], texts: Texts) -> State:
        """The slots of `RoundGuard`."""
        found: list[tuple[Any, ...]] = []
        for place in self._read:
            own = [i for i in range(self.asked) if self._place_of[i] == place]
            for turn in range(max(1, place[1])):
                codes = [held[(*self._chains[i], i)[turn]] for i in own]
                values = [decode(code, self._kinds[i], texts.names) for i, code in zip(own, codes, strict=True)]
                found.append(() if NOTHING in codes else (tuple(values),))
        return tuple(found)
