"""The values that runs keep in registers: the attributes that conditions read there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA
from spaseq.core.automata.rma.formulas import Formula, Test
from spaseq.core.automata.rma.vocabulary import View

Kept = tuple[Any, ...]
"""The values read of an event; also the contents of all registers, a tuple with such values, or None, for each."""
WideTest = Callable[[Kept, Kept], bool]
"""A test: a function of the values read of the event at hand, and of the contents of the registers."""


class _Whole:
    """A whole event, kept for a relation that reads it; equal only to itself."""

    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event


class Layout:
    """The attributes that conditions read of the event at hand and of each register, and their places in the tuples.
    `wide` are the tests that read registers, `place` gives the index of each register."""

    def __init__(self, automaton: RMA, wide: tuple[Test, ...], place: dict[str, int]) -> None:
        self._place = place
        self._whole = any(t.relation.reads(i) is None for t in wide for i in range(len(t.arguments)))
        of: dict[str, dict[str, None]] = {a: {} for a in (f.CURRENT, *place)}
        for t in wide:
            for i, argument in enumerate(t.arguments):
                of[argument].update(dict.fromkeys(t.relation.reads(i) or ()))
        self._kept = {argument: tuple(names) for argument, names in of.items()}
        self._names = tuple(dict.fromkeys(n for names in of.values() for n in names))
        self._index = {name: i for i, name in enumerate(self._names)}
        self._picks = [tuple(self._index[n] for n in self._kept[r]) for r in place]

    def reader(self, rows: Any) -> Callable[[int], Kept]:
        """A function from a row of a batch to the values read of it."""
        getters = [rows.getter(name) for name in self._names]
        if self._whole:
            return lambda row: (*[get(row) for get in getters], _Whole(rows.event(row)))
        if len(getters) == 1:
            (only,) = getters
            return lambda row: (only(row),)
        return lambda row: tuple([get(row) for get in getters])

    def after(self, kept: Kept, row: Kept, writes: tuple[int, ...], forgets: tuple[int, ...]) -> Kept:
        """The contents of the registers once `row` is written to those in `writes` and those in `forgets` are
        emptied."""
        if not writes and all(kept[i] is None for i in forgets):
            return kept
        new = list(kept)
        for i in forgets:
            new[i] = None
        for i in writes:
            new[i] = row if self._whole else tuple([row[p] for p in self._picks[i]])
        return tuple(new)

    def compiled(self, formula: Formula) -> WideTest:
        """The function that evaluates a formula of wide tests."""
        if isinstance(formula, Test):
            return self._test(formula)
        tests = {t: self._test(t) for t in f.tests(formula)}
        if isinstance(formula, f.All) and all(isinstance(part, Test) for part in formula.parts):
            every = tuple(tests.values())
            return lambda row, kept: all([test(row, kept) for test in every])
        return lambda row, kept: f.holds(formula, lambda t: tests[t](row, kept))

    def _test(self, test: Test) -> WideTest:
        relation = test.relation
        if isinstance(relation, f.Relates) and not self._whole:
            return self._relation_test(relation, test.arguments)
        on_values = getattr(relation, "on_values", None)
        if on_values is not None and not self._whole:
            return self._value_test(on_values(), test)
        views = [self._view(a) for a in test.arguments]
        return lambda row, kept: bool(relation(*[view(row, kept) for view in views]))

    def _value_test(self, on_values: Callable[[tuple[Kept, ...]], bool], test: Test) -> WideTest:
        picks = [self._several(a, test.relation.reads(i) or ()) for i, a in enumerate(test.arguments)]
        if len(picks) == 2:
            one, two = picks
            return lambda row, kept: on_values((one(row, kept), two(row, kept)))
        return lambda row, kept: on_values(tuple([pick(row, kept) for pick in picks]))

    def _several(self, argument: str, names: tuple[str, ...]) -> Callable[[Kept, Kept], Kept]:
        if argument == f.CURRENT:
            places = tuple(self._index[n] for n in names)
            if places == tuple(range(len(self._names))):
                return lambda row, kept: row
            return lambda row, kept: tuple([row[p] for p in places])
        register, own = self._place[argument], self._kept[argument]
        if names == own:
            return lambda row, kept: kept[register]
        places = tuple(own.index(n) for n in names)
        return lambda row, kept: tuple([kept[register][p] for p in places])

    def _relation_test(self, relation: f.Relates, arguments: tuple[str, ...]) -> WideTest:
        left, right = (self._value(a, n) for a, n in zip(arguments, (relation.left, relation.right), strict=True))
        symbol, shown = relation.operator, relation.show(*arguments)
        return lambda row, kept: f.is_compared(symbol, left(row, kept), right(row, kept), shown)

    def _value(self, argument: str, name: str) -> Callable[[Kept, Kept], Any]:
        if argument == f.CURRENT:
            at = self._index[name]
            return lambda row, kept: row[at]
        register, at = self._place[argument], self._kept[argument].index(name)
        return lambda row, kept: kept[register][at]

    def _view(self, argument: str) -> Callable[[Kept, Kept], Any]:
        if self._whole:
            if argument == f.CURRENT:
                return lambda row, kept: row[-1].event
            register = self._place[argument]
            return lambda row, kept: kept[register][-1].event
        if argument == f.CURRENT:
            index = self._index
            return lambda row, kept: View(index, row)
        register, index = self._place[argument], {n: i for i, n in enumerate(self._kept[argument])}
        return lambda row, kept: View(index, kept[register])
