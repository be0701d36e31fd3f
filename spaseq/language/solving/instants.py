"""What the engine reads of instants: rows of the table of solutions, and the mapping sets of conjunctions at them."""

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

__all__ = ["Before", "InstantBatch", "Rows"]


class Rows(Protocol):
    """Rows of the table in order: `positions`, `times`, int64 (n,), and `partitions`, int64 (n,), which of `keys` each
    belongs to, None without PARTITION BY. `numbers`: of each key, where the solver numbers them."""

    keys: list[Mapping]
    has_columns: bool
    """Whether solutions may stand in columns."""

    @property
    def positions(self) -> np.ndarray: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def partitions(self) -> np.ndarray | None: ...

    @property
    def numbers(self) -> np.ndarray | None: ...

    def present(self, name: str) -> np.ndarray:
        """Where a GPM's value is not empty: bool (n,)."""
        ...

    def mappings(self, name: str, row: int) -> Collection[Mapping]:
        """The mappings of a GPM's value at a row, some perhaps more than once."""
        ...

    def solutions(self, name: str) -> list[tuple[np.ndarray, Solutions, np.ndarray]] | None:
        """A GPM's solutions as columns: rows, ascending, and which of the solutions stands in each. None if they are
        not in columns."""
        ...

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> Joined | None:
        """The conjunction of GPMs under conditions over them, in all rows; None if they are not in columns."""
        ...


class Before(Protocol):
    """What matched before a batch, of the conjunctions that must not:
    `spaseq.language.evaluation.absence.Sightings`."""

    conjunctions: tuple[Conjunction, ...]

    def pass_over(self, batch: InstantBatch, conjunction: Conjunction) -> np.ndarray:
        """Where the conjunction was not seen before: bool (n,)."""
        ...


class InstantBatch:
    """Rows of the table, `first` to `last` of them, as the engine's `Batch`; the mapping sets of conjunctions are
    worked out once each, where they are asked for.

    `codes` holds the number of each row's partition, given by the caller, who must give one partition one number for
    the whole stream. `sightings` knows what matched before this batch; it is asked once per conjunction and batch.
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
        self.positions = rows.positions[first:last]
        self.times = rows.times[first:last]
        self.keys = None if codes is None else codes[first:last]
        self.rows = rows
        self.first = first
        self._patterns = patterns
        self._inner: dict[Conjunction, list[tuple[Condition, Any]]] = {}
        self._values: dict[tuple[Conjunction, int], MappingSet] = {}
        self._unseen = {} if sightings is None else {c: sightings.pass_over(self, c) for c in sightings.conjunctions}

    def __len__(self) -> int:
        return len(self.positions)

    def holds(self, conjunction: Conjunction) -> np.ndarray:
        """Where the conjunction's mapping set is not empty: bool, shape (n,). It is joined only where all its GPMs have
        a value."""
        first, last = self.first, self.first + len(self)
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
        """Whether the conjunction's mapping set is the value of its one GPM."""
        return len(conjunction) == 1  # what its FILTERs name and it does not bind belongs to the join with the run

    def unseen(self, conjunction: Conjunction) -> np.ndarray:
        """Where the conjunction has not matched before, since the row's window opened, in its partition: bool, (n,)."""
        return self._unseen[conjunction]

    def value(self, conjunction: Conjunction, row: int) -> MappingSet:
        """The conjunction's mapping set at a row: the join of its GPMs' values (Definition 8), under the FILTERs that
        name only its own variables."""
        found = self._values.get((conjunction, row))
        if found is None:
            plain = self.is_plain(conjunction)
            found = frozenset(self.mappings(conjunction, row)) if plain else self._joined(conjunction, row)
            self._values[conjunction, row] = found
        return found

    def mappings(self, conjunction: Conjunction, row: int) -> Collection[Mapping]:
        """The mappings of `value`, some perhaps more than once."""
        if self.is_plain(conjunction):
            return self.rows.mappings(conjunction[0], self.first + row)
        return self.value(conjunction, row)

    def _columns(self, conjunction: Conjunction) -> Joined | None:
        """The conjunction joined in all rows, where it is one of several GPMs and they stand in columns."""
        if len(conjunction) == 1:
            return None
        return self.rows.joined([self._patterns[name] for name in conjunction], self._conditions(conjunction))

    def _joined(self, conjunction: Conjunction, row: int) -> MappingSet:
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
        """The FILTERs of its GPMs over several of them that are decided inside it, each with its prologue."""
        found = self._inner.get(conjunction)
        if found is None:
            found = self._inner[conjunction] = list(conditions(self._patterns, conjunction, inner=True))
        return found
