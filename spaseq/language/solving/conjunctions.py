"""The conjunction of graph patterns at an instant, joined as columns over a chunk ([SPAseq] Definition 8).

The solutions of each GPM stand in columns, but those of different batches count their terms in different spaces. So the
terms of variables that several GPMs share get codes by their bytes, and the rows of one instant are joined on those.
FILTERs over several of the GPMs are decided by numbers where they compare two variables, and are otherwise asked once
for each distinct choice of terms. Mappings are made of the rows that somebody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.gpm import Condition, Mapping, compared_sides, freeze, holds
from spaseq.gpm.columnar.evaluate import SOLUTION_ROWS
from spaseq.gpm.columnar.joins import join
from spaseq.gpm.columnar.table import Table, distinct, term_bytes
from spaseq.gpm.columnar.truth import Numbers, compared, term_numbers

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions
    from spaseq.gpm.columnar.table import Space

__all__ = ["Joined", "Member", "joined"]


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One GPM of a conjunction in a chunk: its solutions in order of `rows` (int64, ascending), each at `places` of
    `parts[which]`. `read`: the variables that its mappings show; `binds`: those it may bind."""

    rows: np.ndarray
    which: np.ndarray
    places: np.ndarray
    parts: Sequence[Solutions]
    read: tuple[str, ...]
    binds: frozenset[str]

    def mapping(self, solution: int) -> Mapping:
        """A solution as a mapping of the variables read."""
        return self.parts[self.which[solution]].mapping(int(self.places[solution]), self.read)

    def spread(self, name: str, solutions: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, Space]] | None:
        """A variable's terms in `solutions`, by part: which of them, their numbers, the space these count in. None
        where they are not in columns."""
        found = []
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(self.which[solutions] == number)
            if len(here):
                column = part.column(name)
                if column is None:
                    return None
                found.append((here, column[0][self.places[solutions[here]]], column[1]))
        return found


class _Codes:
    """Numbers of terms over all spaces of a chunk: equal terms, equal codes."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def of(self, numbers: np.ndarray, space: Space) -> np.ndarray:
        """int32, -1 where not bound."""
        used, back = np.unique(numbers, return_inverse=True)
        known = self._known
        codes = [
            -1 if number < 0 else known.setdefault(term_bytes(space.term(number)) if key is None else key, len(known))
            for number, key in zip(used.tolist(), space.keys(used), strict=True)
        ]
        return np.array(codes, np.int32)[back]


class Joined:
    """The rows of a conjunction: `rows`, int64 (k,), ascending; `picks`, by member which solution stands in each."""

    def __init__(self, members: Sequence[Member], rows: np.ndarray, picks: Sequence[np.ndarray]) -> None:
        self.rows = rows
        self._members = members
        self._picks = picks

    def mappings(self, row: int) -> frozenset[Mapping]:
        """The conjunction's mapping set at a row."""
        begin, end = np.searchsorted(self.rows, [row, row + 1])
        return frozenset(self.mapping(i) for i in range(int(begin), int(end)))

    def mapping(self, index: int) -> Mapping:
        """One of the joined rows."""
        union: dict[str, Any] = {}
        for member, picked in zip(self._members, self._picks, strict=True):
            union.update(member.mapping(int(picked[index])))
        return freeze(union)

    def kept(self, condition: Condition, prologue: Any, codes: _Codes) -> Joined | None:
        """The rows of which a condition is true; None where terms are not in columns."""
        passed, still = self._by_numbers(condition)
        if len(still):
            columns = [self._codes(name, still, codes) for name in sorted(condition.variables)]
            whole = [column for column in columns if column is not None]
            if len(whole) < len(columns):
                return None
            first, kinds = distinct(whole, len(still))
            answers = [holds(condition, self.mapping(i), prologue) for i in still[first].tolist()]
            passed[still] = np.array(answers, bool)[kinds]
        return Joined(self._members, self.rows[passed], [picked[passed] for picked in self._picks])

    def _by_numbers(self, condition: Condition) -> tuple[np.ndarray, np.ndarray]:
        """(which rows pass, bool; the rows that numbers do not decide)."""
        passed, every = np.zeros(len(self.rows), bool), np.arange(len(self.rows))
        sides = compared_sides(condition.expression)
        if sides is None or not (sides[0].is_variable and sides[2].is_variable):
            return passed, every
        left, right = self._numbers(sides[0].name), self._numbers(sides[2].name)
        if left is None or right is None:
            return passed, every
        decided, verdict = compared(sides[1], left, right)
        return decided & verdict, every[~decided]

    def _codes(self, name: str, rows: np.ndarray, codes: _Codes) -> np.ndarray | None:
        """The codes of a variable's terms at `rows`, -1 where no member binds it."""
        found = np.full(len(rows), -1, np.int32)
        for member, picked in zip(self._members, self._picks, strict=True):
            spread = member.spread(name, picked[rows]) if name in member.binds else []
            if spread is None:
                return None
            for here, numbers, space in spread:
                own = codes.of(numbers, space)
                found[here] = np.where(own < 0, found[here], own)
        return found

    def _numbers(self, name: str) -> Numbers | None:
        count = len(self.rows)
        found = Numbers(np.zeros(count), np.zeros(count), np.zeros(count, bool), np.zeros(count, bool))
        for member, picked in zip(self._members, self._picks, strict=True):
            spread = member.spread(name, picked) if name in member.binds else []
            if spread is None:
                return None
            for here, numbers, space in spread:
                here = here[numbers >= 0]
                own = term_numbers(numbers[numbers >= 0], space)
                found.value[here], found.error[here] = own.value, own.error
                found.known[here], found.exact[here] = own.known, own.exact
        return found


def joined(members: Sequence[Member], conditions: Sequence[tuple[Condition, Any]]) -> Joined | None:
    """The join of GPMs at each row, under `conditions` with their prologues; None where solutions are not in columns.

    Raises `BudgetExceeded`. Cost: the terms of shared variables, each once a chunk, and the pairs compared.
    """
    codes = _Codes()
    everywhere = members[0].rows
    for member in members[1:]:
        everywhere = np.intersect1d(everywhere, member.rows)
    tables = [_table(members, i, everywhere, codes) for i in range(len(members))]
    found: Table | None = tables[0]
    for table in tables[1:]:
        found = None if found is None or table is None else join(found, table, SOLUTION_ROWS)
    if found is None:
        return None
    whole: Joined | None = Joined(members, found.events.astype(np.int64), [
        found.columns[_place(i)].astype(np.int64) for i in range(len(members))
    ])  # fmt: skip
    for condition, prologue in conditions:
        whole = None if whole is None else whole.kept(condition, prologue, codes)
    return whole


def _place(member: int) -> str:
    """The column of a table that says which solution of a member a row has; no variable has such a name."""
    return f"#{member}"


def _table(members: Sequence[Member], index: int, everywhere: np.ndarray, codes: _Codes) -> Table | None:
    """A member's solutions at the rows `everywhere`, with the codes of the variables that others share."""
    member = members[index]
    own = np.flatnonzero(np.isin(member.rows, everywhere))
    others = frozenset().union(*(other.binds for i, other in enumerate(members) if i != index))
    columns = {_place(index): own.astype(np.int32)}
    for name in sorted(member.binds & others):
        spread = member.spread(name, own)
        if spread is None:
            return None
        columns[name] = np.full(len(own), -1, np.int32)
        for here, numbers, space in spread:
            columns[name][here] = codes.of(numbers, space)
    return Table(member.rows[own].astype(np.int32), columns)
