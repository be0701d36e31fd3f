"""The codes of the sides of FILTERs between GPMs: a variable, or arithmetic on one (`Side`).

A number's code is the double's, in the order of doubles. Sides with only `=` and `!=` also have codes for IRIs, blank
nodes and plain strings, which equal no number's. Sides with an order have codes for values of another kind, in the
order of that kind. Strings get labels (`spaseq.core.engine.program.text_order`); times, dates and truth values get
whole numbers. Sides that are compared have values of one kind; if a further kind comes, the engine goes on with sets of
rdflib's terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spaseq.core.engine.program.register_ops import NOTHING, UNKNOWN
from spaseq.core.engine.program.text_order import TextOrder
from spaseq.core.integers import different
from spaseq.core.snapshot import expect
from spaseq.gpm import Side, is_name, near_number, number_of, order_code, value_of
from spaseq.language.guards.compared import Compared
from spaseq.language.guards.terms import SolutionTerms
from spaseq.rdf.columns import Kinds

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions

NAMES: Final = NOTHING + 16
"""The first of the codes that equal no number's: doubles are above them."""
_NUMBER: Final = "number"
_ORDERS: Final = {Kinds.STRING: "string", Kinds.BOOLEAN: "boolean", Kinds.DATE_TIME: "dateTime"}
"""The orders, other than that of numbers, for which columns of literals have codes."""
_NONE: Final = (Kinds.NO_LITERAL, Kinds.TAGGED, Kinds.ILL_TYPED)
"""Kinds without an order: a comparison is an error."""


class SideCodes:
    """The codes of sides. `solved` has the codes of terms. `prologue`: that of the query."""

    def __init__(self, comparisons: Sequence[Compared], solved: SolutionTerms, prologue: Any) -> None:
        self._solved, self._terms = solved, solved.terms
        self._prologue = prologue
        equalities = [c for c in comparisons if c.symbol in ("=", "!=")]
        ordered = {side for c in comparisons if c not in equalities for side in (c.inner, c.outer)}
        self._group = _groups(comparisons, ordered)
        self._equated = {side for c in equalities for side in (c.inner, c.outer)} & self._group.keys()
        self._kinds: dict[int, str] = {}
        """The kind of the values so far of each group of sides that are held against one another, some in an order."""
        self.order: TextOrder = TextOrder()
        self._memo: dict[tuple[Side, int], int | None] = {}

    def labels_in(self, registers: MappingABC[Side, int]) -> list[int]:
        """The registers, of sides, that hold labels of texts."""
        return [r for side, r in registers.items() if self._kinds.get(self._group.get(side, -1)) == "string"]

    def forget(self) -> None:
        """Nothing is remembered of codes that may stand for nothing any more."""
        self._memo = {}

    def codes(self, side: Side, solutions: Solutions, places: np.ndarray) -> np.ndarray | None:
        """The code by which a side is compared in each solution at `places`: int64, NOTHING if its variable is not
        bound, UNKNOWN if it has no value. None if a value has no code, or no room in `order`."""
        found = solutions.column(side.name)
        if found is None or not side.is_variable:
            terms = self._solved.codes(solutions, places, side.name)
            used, where = different(terms)
            codes = [self.code(side, code) for code in used.tolist()]
            return None if None in codes else np.array(codes, np.int64)[where]
        numbers, space = found[0][places], found[1]
        literals = space.literals()
        doubles = literals.number[numbers]
        good = literals.numeric(numbers) & literals.exact[numbers] & ~np.isnan(doubles)
        group = self._group.get(side)
        if (good | (numbers < 0)).all() and (group is None or not good.any() or self._is_of(group, _NUMBER)):
            return np.where(numbers < 0, NOTHING, _order(doubles))
        if group is not None:
            return self._in_order(group, side in self._equated, numbers, space, good)
        named = np.isin(literals.kind[numbers], (Kinds.NO_LITERAL, Kinds.STRING))
        if not (good | named | (numbers < 0)).all():
            return None
        names = NAMES + self._solved.codes(solutions, places, side.name)
        if self._terms.has_aliases:
            return None
        return np.where(numbers < 0, NOTHING, np.where(good, _order(doubles), names))

    def _in_order(
        self, group: int, equated: bool, numbers: np.ndarray, space: Any, good: np.ndarray
    ) -> np.ndarray | None:
        """`codes` of the terms `numbers` of a space, -1 for none, in the order of their one kind. `equated`: they are
        also compared by `=` or `!=`, which values without an order may satisfy. `good`: numbers that doubles hold."""
        literals = space.literals()
        kinds = literals.kind[numbers]
        valued = (numbers >= 0) & ~np.isin(kinds, _NONE)
        codes = np.where(numbers < 0, NOTHING, UNKNOWN)
        if equated and (valued != (numbers >= 0)).any():
            return None
        if not valued.any():
            return codes
        kind = int(kinds[valued][0])
        name = _NUMBER if good[valued].all() else _ORDERS.get(Kinds(kind)) if (kinds[valued] == kind).all() else None
        if name is None:  # dates, or several kinds
            used, where = different(numbers[valued])
            found = [self._place_of(group, equated, space.term(number)) for number in used.tolist()]
            if None in found:
                return None
            codes[valued] = np.array(found, np.int64)[where]
            return codes
        if not self._is_of(group, name):
            return None
        if name == _NUMBER:
            codes[valued] = _order(literals.number[numbers[valued]])
            return codes
        if name != "string":
            codes[valued] = literals.whole[numbers[valued]]
            return codes if (literals.has_whole[numbers[valued]] & (codes[valued] > UNKNOWN)).all() else None
        used, where = different(numbers[valued])
        labels = self.order.labels([key[1 : key.rindex(b'"')].decode() for key in space.all_keys(used)])
        if labels is None:
            return None
        codes[valued] = labels[where]
        return codes

    def _is_of(self, group: int, kind: str) -> bool:
        """True if values of a group may be of this kind."""
        return self._kinds.setdefault(group, kind) == kind

    def code(self, side: Side, code: int) -> int | None:
        """The code by which a side is compared if its variable is the term of `code`; as of `codes`."""
        if code == NOTHING:
            return NOTHING
        known = self._memo.get((side, code))
        if known is None:
            known = self._memo[side, code] = self._code_of(side, value_of(side, self._terms.term(code), self._prologue))
        return known

    def _code_of(self, side: Side, term: Any) -> int | None:
        """The code by which a side is compared if its value is `term`, None if that is an error."""
        if term is None:
            return UNKNOWN
        group = self._group.get(side)
        if group is not None:
            return self._place_of(group, side in self._equated, term)
        number = number_of(term)
        if number is not None:
            return int(_order(np.array([number]))[0])
        if not is_name(term):
            return None
        code = NAMES + self._terms.of(term)
        return None if self._terms.has_aliases else code

    def _place_of(self, group: int, equated: bool, term: Any) -> int | None:
        found = order_code(term)
        if found is None:
            return None
        kind, value = found
        if kind == "":
            return None if equated else UNKNOWN
        if not self._is_of(group, kind):
            return None
        if isinstance(value, str):
            labels = self.order.labels([value])
            return None if labels is None else int(labels[0])
        return int(_order(np.array([value]))[0]) if isinstance(value, float) else value

    def near_codes(self, name: str, solutions: Solutions, places: np.ndarray) -> np.ndarray:
        """The code of the double nearest to a variable's value in each solution at `places`: int64, NOTHING if it is
        not bound, UNKNOWN if there is none."""
        found = solutions.column(name)
        if found is None or found[1].has_floats:
            used, where = different(self._solved.codes(solutions, places, name))
            return np.array([self.near_code(code) for code in used.tolist()], np.int64)[where]
        numbers, literals = found[0][places], found[1].literals()
        doubles = literals.number[numbers]
        good = literals.numeric(numbers) & ~np.isnan(doubles)
        return np.where(numbers < 0, NOTHING, np.where(good, _order(np.where(good, doubles, 0.0)), UNKNOWN))

    def near_code(self, code: int) -> int:
        """The code of the double nearest to the value of the term of `code`."""
        number = None if code == NOTHING else near_number(self._terms.term(code))
        if number is None:
            return NOTHING if code == NOTHING else UNKNOWN
        return int(_order(np.array([number]))[0])

    def snapshot(self) -> Any:
        """The kinds of values so far, and the labels of texts, as plain values; None if no order is asked for."""
        return ([self._kinds.get(g, "") for g in range(self._groups)], self.order.snapshot()) if self._group else None

    @property
    def _groups(self) -> int:
        return len(set(self._group.values()))

    def restore(self, state: Sequence[Any], held: np.ndarray, registers: MappingABC[Side, int]) -> None:
        """The opposite of `snapshot`; as of `Codes.restore`."""
        kinds, order = state or ([_NUMBER] * self._groups, ([], []))  # which were all that there was, once
        expect(
            len(kinds) == self._groups and all(type(kind) is str for kind in kinds), "a kind of values for each group"
        )
        self._kinds = {group: kind for group, kind in enumerate(kinds) if kind}
        self.order.restore(order)
        labels = np.unique(held[:, self.labels_in(registers)])
        expect(self.order.has(labels[labels > UNKNOWN]), "a text for each label of one")
        self.forget()


def _groups(comparisons: Iterable[Compared], ordered: set[Side]) -> dict[Side, int]:
    """The sides that are held against an `ordered` one, directly or by others between, and for each a number that
    these have in common; from 0."""
    parts: list[set[Side]] = []
    for one in comparisons:
        sides = {one.inner, one.outer}
        joined = [part for part in parts if part & sides]
        parts = [*(part for part in parts if not part & sides), sides.union(*joined)]
    return {side: number for number, part in enumerate(part for part in parts if part & ordered) for side in part}


def _order(values: np.ndarray) -> np.ndarray:
    """int64 in the order of the doubles."""
    bits = (values + 0.0).view(np.int64)  # -0.0 is 0.0
    return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
