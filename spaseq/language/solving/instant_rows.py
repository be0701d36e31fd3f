"""The rows of one instant, for events that are pushed one at a time: the same table as `ChunkRows`, without arrays.

A row has the solutions of each GPM. Arrays and mappings are made only when the engine reads them, for rows that move a
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.gpm import Condition, GraphPattern, Mapping
from spaseq.gpm.columnar.keys import Keys

if TYPE_CHECKING:
    from spaseq.gpm.columnar.alone import GraphRows
    from spaseq.gpm.columnar.evaluate import Solutions

Solved = tuple[str, "Solutions | GraphRows", int, bool]
"""A solution: the GPM's name, the solutions with its row in them, and True if it satisfies the GPM's own FILTERs."""

_Row = dict[str, list[tuple["Solutions | GraphRows", int]]]


class InstantRows:
    """`Rows` of one instant: one row, or with `names` to partition by, one for each key, in order of the keys' texts.

    `solved`: the solutions of the GPMs at the instant. `read`, `keys`: as in `ChunkRows`.
    """

    has_columns = False

    def __init__(
        self,
        position: int,
        time: int,
        solved: Iterable[Solved],
        read: MappingABC[str, tuple[str, ...]],
        names: tuple[str, ...],
        keys: Keys,
    ) -> None:
        self._position, self._time = position, time
        self._read = read
        self._rows: list[_Row] = []
        self._numbers: list[int] | None = None
        self.keys: Sequence[Mapping] = ()
        if names:
            by_key = _by_key(solved, names, keys)
            self._numbers = sorted(by_key, key=keys.text) if len(by_key) > 1 else list(by_key)
            self._rows = [by_key[number] for number in self._numbers]
            self.keys = [keys.mappings[number] for number in self._numbers]
        else:
            own: _Row = {}
            for name, solutions, row, kept in solved:
                if kept:
                    own.setdefault(name, []).append((solutions, row))
            self._rows = [own]

    def __len__(self) -> int:
        return len(self._rows)

    def has(self, name: str, row: int) -> bool:
        """True if a GPM's value is not empty at a row."""
        return name in self._rows[row]

    @cached_property
    def positions(self) -> np.ndarray:
        """int64 (n,)."""
        return np.array([self._position] * len(self._rows), np.int64)

    @cached_property
    def times(self) -> np.ndarray:
        """int64 (n,)."""
        return np.array([self._time] * len(self._rows), np.int64)

    @property
    def partitions(self) -> np.ndarray | None:
        """For each row the index of its key in `keys`: int64 (n,)."""
        return None if self._numbers is None else np.arange(len(self))

    @property
    def numbers(self) -> np.ndarray | None:
        """The number of each key since `Solver.forget_keys`: int64."""
        return None if self._numbers is None else np.array(self._numbers, np.int64)

    def number(self, row: int) -> int | None:
        """The number of a row's key."""
        return None if self._numbers is None else self._numbers[row]

    def present(self, name: str) -> np.ndarray:
        """For each row, True if a GPM's value is not empty: bool (n,)."""
        return np.array([name in row for row in self._rows], bool)

    def present_in(self, name: str, first: int, within: np.ndarray) -> np.ndarray:
        """`present`, which costs nothing."""
        return self.present(name)[first : first + len(within)]

    def mappings(self, name: str, row: int) -> list[Mapping]:
        """The mappings of a GPM's value at a row; one may occur more than once."""
        read = self._read[name]
        return [solutions.mapping(i, read) for solutions, i in self._rows[row].get(name, ())]

    def solutions(self, name: str) -> None:
        """None: the solutions of one instant are not put into columns."""
        return None

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> None:
        """None: the solutions of one instant are not put into columns."""
        return None


def _by_key(solved: Iterable[Solved], names: tuple[str, ...], keys: Keys) -> dict[int, _Row]:
    """A row for each key that some solution has, even if the solution does not satisfy its GPM's FILTERs."""
    rows: dict[int, _Row] = {}
    for name, solutions, place, kept in solved:
        key = solutions.mapping(place, names)
        if len(key) == len(names):
            row = rows.setdefault(keys.number(key), {})
            if kept:
                row.setdefault(name, []).append((solutions, place))
    return rows
