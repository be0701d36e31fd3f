"""The batches that the engine reads: rows of the table, and the mapping sets of conjunctions at them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingABC
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spaseq.gpm import Condition, GraphPattern, Mapping, MappingSet, holds, join
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import conditions

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions
    from spaseq.language.solving.conjunctions import Joined


class Rows(Protocol):
    """Rows of the table, in order: `positions` and `times`, int64 (n,) each.

    With PARTITION BY, `partitions`, int64 (n,), has the index of each row's key in `keys`, else it is None. `numbers`
    has the number of each key since `Solver.forget_keys`, or is None if the rows were solved elsewhere.
    """

    keys: Sequence[Mapping]
    has_columns: bool
    """True if solutions may be in columns."""

    @property
    def positions(self) -> np.ndarray: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def partitions(self) -> np.ndarray | None: ...

    @property
    def numbers(self) -> np.ndarray | None: ...

    def present(self, name: str) -> np.ndarray:
        """For each row, True if a GPM's value is not empty: bool (n,)."""

    def present_in(self, name: str, first: int, within: np.ndarray) -> np.ndarray:
        """`present` of the rows from `first` on, as many as `within` has: bool (len(within),). For rows with `within`
        false, the result may be False in any case."""

    def mappings(self, name: str, row: int) -> Collection[Mapping]:
        """The mappings of a GPM's value at a row; one may occur more than once."""

    def solutions(self, name: str) -> list[tuple[np.ndarray, Solutions, np.ndarray]] | None:
        """A GPM's solutions as columns, in pieces: (the row of each, ascending; the solutions; the index of each in
        them), in the rows that it was asked about. None if they are not in columns."""

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> Joined | None:
        """The join of GPMs under conditions, in all rows; None if solutions are not in columns."""


class Before(Protocol):
    """Knows which of the conjunctions that must not match have matched before a batch; implemented by
    `spaseq.language.runtime.absence.Sightings`."""

    conjunctions: tuple[Conjunction, ...]

    def pass_over(self, batch: InstantBatch, conjunction: Conjunction) -> np.ndarray:
        """For each row of the next batch, True if the conjunction has not matched before it: bool (n,)."""


class Narrowed:
    """A batch restricted to some rows, for predicates (`spaseq.core.engine.program.needed`)."""

    def __init__(self, batch: InstantBatch, rows: np.ndarray) -> None:
        self._batch = batch
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def positions(self) -> np.ndarray:
        return self._batch.positions

    @property
    def times(self) -> np.ndarray:
        return self._batch.times

    @property
    def keys(self) -> np.ndarray | None:
        return self._batch.keys

    def holds(self, conjunction: Conjunction) -> np.ndarray:
        """For each of these rows, True if the conjunction's mapping set is not empty: bool (n,)."""
        return self._batch.holds(conjunction, self._rows)


class InstantBatch:
    """Rows `first` to `last` of the table as the engine's `Batch`. The mapping set of a conjunction at a row is
    computed once, on first use.

    `codes`: the number of each row's partition, the same number for a partition in the whole stream. `sightings` is
    called once for each of its conjunctions, when the batch is made. `born`, if keys are forgotten after a pause: the
    position at which each row's key began, int64 (n,).
    """

    def __init__(
        self,
        rows: Rows,
        patterns: MappingABC[str, GraphPattern],
        codes: np.ndarray | None,
        sightings: Before | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        self.positions: np.ndarray = rows.positions[first:last]
        self.times: np.ndarray = rows.times[first:last]
        self.keys: np.ndarray | None = None if codes is None else codes[first:last]
        self.born: np.ndarray | None = None
        self.rows = rows
        self.first = first
        self._patterns = patterns
        self._inner: dict[Conjunction, list[tuple[Condition, Any]]] = {}
        self._values: dict[tuple[Conjunction, int], MappingSet] = {}
        self._unseen = {} if sightings is None else {c: sightings.pass_over(self, c) for c in sightings.conjunctions}

    def __len__(self) -> int:
        return len(self.positions)

    def narrowed(self, rows: np.ndarray) -> Narrowed:
        """The batch restricted to `rows`, bool (n,)."""
        return Narrowed(self, rows)

    def holds(self, conjunction: Conjunction, within: np.ndarray | None = None) -> np.ndarray:
        """For each row, True if the conjunction's mapping set is not empty: bool (n,). The join is computed only for
        rows at which no value of its GPMs is empty. With `within`, bool (n,), only for these rows; the others are
        False."""
        first, last = self.first, self.first + len(self)
        if within is not None:
            if len(conjunction) > 1:
                return self.holds(conjunction) & within if within.any() else np.zeros(len(self), bool)
            return self.rows.present_in(conjunction[0], first, within) & within
        found: np.ndarray = np.logical_and.reduce([self.rows.present(name)[first:last] for name in conjunction])
        if (joined := self._columns(conjunction)) is not None:
            begin, end = np.searchsorted(joined.rows, [first, last])
            found[:] = False
            found[joined.rows[begin:end] - first] = True
        elif not self.is_plain(conjunction):
            for row in np.flatnonzero(found).tolist():
                found[row] = bool(self.value(conjunction, row))
        return found

    def holding(self, conjunction: Conjunction) -> list[int]:
        """The rows at which the conjunction's mapping set is not empty."""
        found: list[int] = np.flatnonzero(self.holds(conjunction)).tolist()
        return found

    def is_plain(self, conjunction: Conjunction) -> bool:
        """True if the conjunction's mapping set is the value of its one GPM."""
        return len(conjunction) == 1  # its correlated FILTERs are decided in the join with the run

    def unseen(self, conjunction: Conjunction) -> np.ndarray:
        """For each row, True if the conjunction has not matched in its partition since the row's window opened: bool
        (n,)."""
        return self._unseen[conjunction]

    def value(self, conjunction: Conjunction, row: int) -> MappingSet:
        """The conjunction's mapping set at a row: the join of its GPMs' values (Definition 8), under the FILTERs that
        name only its own variables."""
        found = self._values.get((conjunction, row))
        if found is None:
            plain = self.is_plain(conjunction)
            found = frozenset(self.mappings(conjunction, row)) if plain else self._join(conjunction, row)
            self._values[conjunction, row] = found
        return found

    def mappings(self, conjunction: Conjunction, row: int) -> Collection[Mapping]:
        """The mappings of `value`; one may occur more than once."""
        if self.is_plain(conjunction):
            return self.rows.mappings(conjunction[0], self.first + row)
        return self.value(conjunction, row)

    def _columns(self, conjunction: Conjunction) -> Joined | None:
        """The join of the conjunction in all rows; None if it is a single GPM, or if solutions are not in columns."""
        if len(conjunction) == 1:
            return None
        return self.rows.joined([self._patterns[name] for name in conjunction], self._conditions(conjunction))

    def _join(self, conjunction: Conjunction, row: int) -> MappingSet:
        if (columns := self._columns(conjunction)) is not None:
            return columns.mappings(self.first + row)
        first, *rest = conjunction
        joined = frozenset(self.rows.mappings(first, self.first + row))
        for name in rest:
            joined = join(joined, frozenset(self.rows.mappings(name, self.first + row))) if joined else joined
        for condition, prologue in self._conditions(conjunction):
            joined = frozenset(m for m in joined if holds(condition, m, prologue))
        return joined

    def _conditions(self, conjunction: Conjunction) -> list[tuple[Condition, Any]]:
        """The FILTERs over several of its GPMs that are decided within the conjunction, each with its prologue."""
        found = self._inner.get(conjunction)
        if found is None:
            found = self._inner[conjunction] = list(conditions(self._patterns, conjunction, inner=True))
        return found
