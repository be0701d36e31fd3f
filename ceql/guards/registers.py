"""Register rows that decide guards event by event.

A guard holds for a match if every choice of one event for each of its variables satisfies its condition. If a variable
is empty there is no choice, and it holds. A register row keeps, per guard and variable, the values of the events taken
so far. An event is taken only if the condition is true, not unknown, for all choices that contain it. Guards with
aggregates are decided in `ceql.guards.aggregates`, those that read earlier events in `ceql.guards.rounds`.

A row keeps no more than its guards need, because runs in one state with equal rows are one run. For most guards that is
the set of tuples of the attributes that the guard reads of a variable. For a comparison with one variable on each side
it is the values of the side. Of those it keeps for an order only the greatest or the smallest, which decides all that
can still fail. For `=` it keeps one value, or NULL in place of two, since no value is equal to both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from ceql.expressions.scalar import compile_condition, compile_value
from ceql.guards.aggregates import AggregateGuard
from ceql.guards.encoding import ValueCodes, value_codes
from ceql.guards.guard import Guard, slot_of, slots_of
from ceql.guards.rounds import RoundGuard
from ceql.guards.tuple_conditions import GuardConditions
from ceql.operators import values
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, reads_earlier
from spaseq.core.automata import CEA
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch

Values = frozenset[Any]
Entry = tuple[int, Any]
Row = tuple[Entry, ...]
_NOTHING: Final[Values] = frozenset()


class _Compiled:
    """A compiled guard: the values to keep of an event, the reduction of a variable's, and the test of a choice."""

    def __init__(self, guard: Guard, registers: GuardRegisters) -> None:
        self.order = tuple(sorted(guard.variables))
        self.index = {v: i for i, v in enumerate(self.order)}
        self.empty: tuple[Values, ...] = (_NOTHING,) * len(self.order)
        sides = guard.sides()
        if sides is None or guard.condition.operator == "!=":  # type: ignore[attr-defined]
            self.reduce: tuple[Callable[[Values], Values] | None, ...] = (None,) * len(self.order)
            slots = slots_of(guard)
            self.keep = tuple(_tuple_of(slots.get(v, ()), registers) for v in self.order)
            self.test = compile_condition(guard.condition, lambda a: slot_of(a, self.index, slots))
        else:
            self.reduce, self.keep, self.test = _separate(guard, sides, self.order, registers)

    def take(self, old: tuple[Values, ...], variables: frozenset[str], event: int) -> tuple[Values, ...] | None:
        """The values kept once the event is taken for `variables`; None if a choice with it fails the condition."""
        taken = [self.index[v] for v in variables if v in self.index]
        new = {at: self.keep[at](event) for at in taken}
        for choice in self.choices(taken, old, new):
            if self.test(choice) is not True:
                return None
        kept = list(old)
        for at in taken:
            together = kept[at] | {new[at]}
            reduce = self.reduce[at]
            kept[at] = together if reduce is None else reduce(together)
        return tuple(kept)

    def forget(self) -> None:
        """Nothing is kept of an event."""

    def leave(self, state: tuple[Values, ...]) -> bool:
        """True: `take` has tried every choice."""
        return True

    def choices(self, taken: list[int], old: tuple[Values, ...], new: dict[int, Any]) -> Iterator[tuple[Any, ...]]:
        """Every choice of values that contains the new event; none while another variable is empty."""
        for turn, at in enumerate(taken):
            if new[at] in old[at]:
                continue
            pools: list[Any] = list(old)
            pools[at] = (new[at],)
            for later in taken[turn + 1 :]:
                pools[later] = old[later] | {new[later]}
            yield from itertools.product(*pools)


def _separate(guard: Guard, sides: tuple[str, str], order: tuple[str, ...], registers: GuardRegisters) -> Any:
    condition = guard.condition
    assert isinstance(condition, ast.Compare)
    symbol, swapped = condition.operator, order != sides
    extremes = {"<": _greatest, "<=": _greatest, ">": _smallest, ">=": _smallest, "=": _two}
    reduce = extremes[symbol], extremes[COMPARISONS[symbol].mirror]
    keep = tuple(compile_value(s, registers.attribute) for s in (condition.left, condition.right))

    def test(choice: tuple[Any, Any]) -> bool | None:
        left, right = (choice[1], choice[0]) if swapped else choice
        return values.compare(symbol, left, right)

    return (reduce[::-1], keep[::-1], test) if swapped else (reduce, keep, test)


def _greatest(found: Values) -> Values:
    return frozenset((None,)) if None in found else frozenset((max(found),)) if _have_order(found) else found


def _smallest(found: Values) -> Values:
    return frozenset((None,)) if None in found else frozenset((min(found),)) if _have_order(found) else found


def _have_order(found: Values) -> bool:
    """True if all are of one kind; otherwise a comparison fails for one of them."""
    return len(found) < 2 or len(set(map(values.kind_of, found))) < 2


def _two(found: Values) -> Values:
    """The values, with NULL in place of two different ones: no value is equal to both, nor to NULL."""
    return frozenset((None,)) if None in found or len(found) > 1 else found


def _tuple_of(names: tuple[str, ...], registers: GuardRegisters) -> Callable[[int], tuple[Any, ...]]:
    read = [registers.attribute(ast.Attribute(name)) for name in names]
    return lambda event: tuple([r(event) for r in read])


class GuardRegisters:
    """The `Registers` of CEQL. A row is a tuple of (guard number, values per variable), in order of the numbers."""

    def __init__(self, guards: tuple[Guard, ...]) -> None:
        self.guards = guards
        self._events: EventBatch | None = None
        self._getters: dict[str, Callable[[int], Any]] = {}
        self._numbers = {guard: number for number, guard in enumerate(guards)}
        self._compiled: list[Any] = [_compile(guard, self) for guard in guards]

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardRegisters, (self.guards,)

    @property
    def empty(self) -> Hashable:
        return ()

    def load(self, batch: Any) -> None:
        self._events = batch.events
        self._getters = {}
        for compiled in self._compiled:
            compiled.forget()

    def codes(self, cea: CEA) -> ValueCodes | None:
        """The guards in the form of the kernels, for one evaluation; None if a guard has CORR, or an aggregate that
        registers do not keep."""
        return value_codes(self.guards, cea)

    def attribute(self, node: ast.Attribute) -> Callable[[int], Any]:
        """A function from a row of the loaded batch to the value of an attribute."""
        name = node.name

        def read(event: int) -> Any:
            getter = self._getters.get(name)
            if getter is None:
                assert self._events is not None
                getter = self._getters[name] = self._events.getter(name)
            return getter(event)

        return read

    def take(self, row: Any, guard: Guard, variables: frozenset[str], event: int) -> Hashable | None:
        number = self._numbers[guard]
        compiled = self._compiled[number]
        at, until, old = len(row), len(row), compiled.empty
        for i, (n, kept) in enumerate(row):
            if n >= number:
                at, until, old = (i, i + 1, kept) if n == number else (i, i, old)
                break
        try:
            new = compiled.take(old, variables, event)
        except EventError as error:
            raise self._place_error(guard, error, event) from None
        if new is None:
            return None
        return (*row[:at], (number, new), *row[until:])

    def leave(self, row: Any, guard: Guard) -> Hashable | None:
        number = self._numbers[guard]
        compiled = self._compiled[number]
        try:
            for at, (n, state) in enumerate(row):
                if n == number:
                    return (*row[:at], *row[at + 1 :]) if compiled.leave(state) else None
        except EventError as error:
            raise self._place_error(guard, error) from None
        return row

    def again(self, row: Any, action: Hashable) -> Hashable:
        return row

    def conditions(self) -> GuardConditions:
        """The guards as conditions on tables of events, for evaluators that take events out of order."""
        return GuardConditions(self.guards)

    def _place_error(self, guard: Guard, error: EventError, event: int | None = None) -> EventError:
        """`error` with the guard's text, the source and the number of the event."""
        events = self._events
        record = None if event is None or events is None else int(events.positions[event]) + 1
        source = "" if events is None else events.source
        return EventError(
            f"{guard.query_text}: {error.problem}", source=source, record=record, counted="event", hint=error.hint
        )


def _compile(guard: Guard, registers: GuardRegisters) -> _Compiled | AggregateGuard | RoundGuard:
    if reads_earlier(guard.condition):
        return RoundGuard(guard, registers.attribute)
    if any(True for _ in aggregates_of(guard.condition)):
        return AggregateGuard(guard.condition, guard.variables, registers.attribute)
    return _Compiled(guard, registers)
