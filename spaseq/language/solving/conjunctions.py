"""The conjunction of graph patterns at an instant, joined as columns over a chunk ([SPAseq] Definition 8).

The solutions of each GPM are columns, but different batches number their terms in different spaces. So the terms of
variables that several GPMs share get codes by their bytes, and the rows of one instant are joined on the codes. FILTERs
over several of the GPMs that compare two variables are decided on float64 values where possible; otherwise they are
evaluated once for each distinct choice of terms. Mappings are made only of rows that are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.integers import different
from spaseq.gpm import Condition, Mapping, compared_sides, freeze, holds
from spaseq.gpm.columnar.amounts import Numbers, compare, term_numbers
from spaseq.gpm.columnar.joins import join
from spaseq.gpm.columnar.table import Table, distinct
from spaseq.rdf import term_bytes

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions
    from spaseq.gpm.columnar.table import Space


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One GPM of a conjunction in a chunk. Solution i belongs to row `rows[i]` of the table (int64, ascending) and is
    row `places[i]` of `parts[which[i]]`. `read`: the variables that its mappings have; `binds`: those it may bind."""

    rows: np.ndarray
    which: np.ndarray
    places: np.ndarray
    parts: Sequence[Solutions]
    read: tuple[str, ...]
    binds: frozenset[str]

    def mapping(self, solution: int) -> Mapping:
        """A solution as a mapping, restricted to `read`."""
        return self.parts[self.which[solution]].mapping(int(self.places[solution]), self.read)

    def spread(self, name: str, solutions: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, Space]] | None:
        """A variable's terms in `solutions`, in pieces: (indices into `solutions`, numbers of the terms, the space of
        these numbers). None if they are not in columns."""
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
    """Codes for the terms of all spaces of a chunk: equal terms have equal codes."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def of(self, numbers: np.ndarray, space: Space) -> np.ndarray:
        """The codes of terms numbered in `space`: int32, -1 for unbound."""
        used, back = different(numbers)
        known = self._known
        codes = [
            -1 if number < 0 else known.setdefault(term_bytes(space.term(number)) if key is None else key, len(known))
            for number, key in zip(used.tolist(), space.keys(used), strict=True)
        ]
        return np.array(codes, np.int32)[back]


class Joined:
    """The solutions of a conjunction. `rows`: the row of the table of each, int64 (k,), ascending; `picks`: for each
    member which of its solutions each was joined from."""

    def __init__(self, members: Sequence[Member], rows: np.ndarray, picks: Sequence[np.ndarray]) -> None:
        self.rows = rows
        self._members = members
        self._picks = picks

    def mappings(self, row: int) -> frozenset[Mapping]:
        """The conjunction's mapping set at a row."""
        begin, end = np.searchsorted(self.rows, [row, row + 1])
        return frozenset(self.mapping(i) for i in range(int(begin), int(end)))

    def mapping(self, index: int) -> Mapping:
        """One joined solution as a mapping."""
        union: dict[str, Any] = {}
        for member, picked in zip(self._members, self._picks, strict=True):
            union.update(member.mapping(int(picked[index])))
        return freeze(union)

    def kept(self, condition: Condition, prologue: Any, codes: _Codes) -> Joined | None:
        """The solutions for which a condition is true; None if terms are not in columns."""
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
        """(for each solution, True if it certainly satisfies the condition, bool (k,); the solutions that numbers do
        not decide)."""
        passed, every = np.zeros(len(self.rows), bool), np.arange(len(self.rows))
        sides = compared_sides(condition.expression)
        if sides is None or not (sides[0].is_variable and sides[2].is_variable):
            return passed, every
        left, right = self._numbers(sides[0].name), self._numbers(sides[2].name)
        if left is None or right is None:
            return passed, every
        decided, verdict = compare(sides[1], left, right)
        return decided & verdict, every[~decided]

    def _codes(self, name: str, rows: np.ndarray, codes: _Codes) -> np.ndarray | None:
        """The codes of a variable's terms in solutions `rows`, -1 if no member binds it."""
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


def joined(members: Sequence[Member], conditions: Sequence[tuple[Condition, Any]], budget: int) -> Joined | None:
    """The join of GPMs at each row, under `conditions` with their prologues; None if solutions are not in columns.

    Raises `BudgetExceeded` (`solution_rows`). Cost: the terms of shared variables, each once per chunk, and the pairs
    compared.
    """
    codes = _Codes()
    everywhere = members[0].rows
    for member in members[1:]:
        everywhere = np.intersect1d(everywhere, member.rows)
    tables = [_table(members, i, everywhere, codes) for i in range(len(members))]
    found: Table | None = tables[0]
    for table in tables[1:]:
        found = None if found is None or table is None else join(found, table, budget)
    if found is None:
        return None
    whole: Joined | None = Joined(members, found.events.astype(np.int64), [
        found.columns[_place(i)].astype(np.int64) for i in range(len(members))
    ])  # fmt: skip
    for condition, prologue in conditions:
        whole = None if whole is None else whole.kept(condition, prologue, codes)
    return whole


def _place(member: int) -> str:
    """The name of the column with the solutions of a member; no variable can have this name."""
    return f"#{member}"


def _table(members: Sequence[Member], index: int, everywhere: np.ndarray, codes: _Codes) -> Table | None:
    """A member's solutions at the rows `everywhere`, with codes for the variables that it shares with others."""
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
