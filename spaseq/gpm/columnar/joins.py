"""Joins of tables, event by event: two rows are compatible if they bind no shared variable to different terms.

`InlineRows` is for VALUES of many rows: the cost is that of the rows looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rdflib import Literal

from spaseq.core.errors import BudgetExceeded
from spaseq.core.integers import different, in_order, ranges
from spaseq.core.jit import attempt_rows, interprets
from spaseq.core.watch import to_hold
from spaseq.gpm import algebra
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.table import UNBOUND, Table, distinct, stack
from spaseq.gpm.inline import InlineTerms
from spaseq.rdf import term_bytes

_NESTED = 16  # a join that would compare this many pairs per row sorts instead


def join(left: Table, right: Table, budget: int) -> Table:
    """left ⋈ right. Raises `BudgetExceeded` beyond `budget` rows."""
    return merge(left, right, *pairs(left, right, budget))


def left_join(left: Table, right: Table, holds: Callable[[Table], np.ndarray], budget: int) -> Table:
    """left ⟕ right under a condition: `holds(table)`, bool (rows,), is its truth for joined rows."""
    mine, theirs = pairs(left, right, budget)
    both = merge(left, right, mine, theirs)
    kept = holds(both)
    alone = np.ones(len(left), bool)
    alone[mine[kept]] = False
    missing = {name: np.zeros(0, np.int32) for name in right.columns if name not in left.columns}
    return Table.concat([both.take(kept), left.take(alone), Table(np.zeros(0, np.int32), missing)])


def minus(left: Table, right: Table, budget: int) -> Table:
    """The rows of `left` for which no row of `right` is compatible and shares a bound variable with it."""
    mine, _ = pairs(left, right, budget, overlap=True)
    kept = np.ones(len(left), bool)
    kept[mine] = False
    return left.take(kept)


def semi_join(left: Table, right: Table, budget: int) -> np.ndarray:
    """The rows of `left` that have a compatible row in `right`: bool (rows,)."""
    found = np.zeros(len(left), bool)
    found[pairs(left, right, budget)[0]] = True
    return found


def merge(left: Table, right: Table, mine: np.ndarray, theirs: np.ndarray) -> Table:
    """The unions of pairs of compatible rows."""
    to_hold(4 * len(mine) * (1 + len(left.columns) + len(right.columns)))
    columns = {name: column[mine] for name, column in left.columns.items()}
    for name, column in right.columns.items():
        own = columns.get(name)
        columns[name] = column[theirs] if own is None else np.where(own == UNBOUND, column[theirs], own)
    return Table(left.events[mine], columns)


def pairs(left: Table, right: Table, budget: int, *, overlap: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of compatible rows of one event, as indices into `left` and `right`, in order of `left`. `overlap`:
    only pairs that share a bound variable. Raises `BudgetExceeded` (`solution_rows`) beyond `budget` pairs."""
    shared = [name for name in left.columns if name in right.columns]
    if overlap and not shared:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    mine, theirs = stack(left, shared), stack(right, shared)
    if shared and _try(left.events, right.events) > _NESTED * (len(left) + len(right)) + 10_000:
        bound = [i for i in range(len(shared)) if not ((mine[:, i] < 0).any() or (theirs[:, i] < 0).any())]
        if len(bound) == len(shared):
            return _sorted_pairs(left.events, mine, right.events, theirs, budget)
    return _nested_pairs(left.events, mine, right.events, theirs, overlap, budget)


def _try(left: np.ndarray, right: np.ndarray) -> int:
    """The number of pairs of rows with the same event."""
    low = np.searchsorted(right, left, "left")
    return int((np.searchsorted(right, left, "right") - low).sum())


def _nested_pairs(
    left_events: np.ndarray, left: np.ndarray, right_events: np.ndarray, right: np.ndarray, overlap: bool, budget: int
) -> tuple[np.ndarray, np.ndarray]:
    capacity = max(1024, 2 * len(left))
    mine, theirs = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
    state = np.zeros(3, np.int64)
    tried = _try(left_events, right_events) if interprets(k.join_rows) else 0
    while not attempt_rows(k.join_rows, 8 * (tried + len(left) + len(right)), left_events, left, right_events, right,
                           overlap, state, mine, theirs):  # fmt: skip
        if capacity >= budget:
            raise BudgetExceeded("solution_rows", budget, capacity + 1, "rows")
        added = min(3 * capacity, max(budget - capacity, 1))
        to_hold(16 * (capacity + added))
        more = np.zeros(added, np.int64)
        mine, theirs = np.concatenate([mine, more]), np.concatenate([theirs, more])
        capacity = len(mine)
    return mine[: state[2]], theirs[: state[2]]


def _sorted_pairs(
    left_events: np.ndarray, left: np.ndarray, right_events: np.ndarray, right: np.ndarray, budget: int
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs by sorting, if every shared variable is bound in all rows of both sides."""
    columns = [np.concatenate([left_events, right_events])]
    columns += [np.concatenate([left[:, i], right[:, i]]) for i in range(left.shape[1])]
    _, codes = distinct(columns, len(columns[0]))
    return equal_pairs(codes[: len(left)], codes[len(left) :], budget)


def equal_pairs(left: np.ndarray, right: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """(row of `left`, row of `right`) of all pairs of equal codes, int64 each. Raises `BudgetExceeded` beyond
    `budget`. O(rows log rows + pairs)."""
    order = in_order(right)
    low, high = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    rows, places = expand(low, high, budget)
    return rows, order[places]


def expand(low: np.ndarray, high: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, place) for each place in each row's range low:high. Raises `BudgetExceeded` beyond `budget`."""
    lengths = high - low
    total = int(lengths.sum())
    if total > budget:
        raise BudgetExceeded("solution_rows", budget, total, "rows")
    to_hold(5 * 8 * total)
    return np.repeat(np.arange(len(low)), lengths), ranges(low, lengths)


_Index = tuple[list[tuple[str, np.ndarray]], np.ndarray, np.ndarray]
"""For each variable the codes of its terms' combinations with those before, ascending; the beginning of the rows of
each last code, int64 (codes + 1,); the rows in that order."""


class InlineRows:
    """The rows of VALUES that bind all of `names`, by the bytes of their terms.

    `columns`: for each name the places of its terms in `keys`, int32 (rows,). Columns that are given cost 0.1 µs for
    each term and row, once; others 1 µs.
    """

    def __init__(self, keys: Sequence[bytes], columns: Mapping[str, np.ndarray]) -> None:
        self.names: tuple[str, ...] = tuple(columns)
        self._keys = keys
        self._columns = columns
        self._places: dict[bytes, int] | None = None
        self._indexes: dict[tuple[str, ...], _Index] = {}

    @staticmethod
    def of(node: algebra.Values) -> InlineRows | None:
        """None if a row leaves a variable unbound, or has a text with a tag, which results keep as it is written."""
        if isinstance(node.rows, InlineTerms):
            return InlineRows(node.rows.keys, node.rows.columns)
        names = sorted(algebra.visible(node))
        known: dict[object, int] = {}
        places: dict[bytes, int] = {}
        columns: dict[str, list[int]] = {name: [] for name in names}
        rows: Iterable[tuple[tuple[str, Any], ...]] = node.rows
        for row in rows:
            if len(row) < len(names):
                return None
            for name, term in row:
                place = known.get(term)
                if place is None:
                    if isinstance(term, Literal) and term.language:
                        return None
                    place = known[term] = places.setdefault(term_bytes(term), len(places))
                columns[name].append(place)
        return InlineRows(list(places), {name: np.array(column, np.int32) for name, column in columns.items()})

    def keys(self, name: str, rows: np.ndarray) -> list[bytes]:
        """The bytes of a variable's terms in these rows."""
        return list(map(self._keys.__getitem__, self._columns[name][rows].tolist()))

    def ranges(
        self, names: tuple[str, ...], sought: Sequence[Iterable[bytes]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(low, high, order): the rows whose `names` have the i-th terms sought, given for each name, are
        `order[low[i]:high[i]]`, int64."""
        if self._places is None:
            self._places = dict(zip(self._keys, range(len(self._keys)), strict=True))
        if names not in self._indexes:
            self._indexes[names] = self._index(names)
        steps, begins, order = self._indexes[names]
        known, codes = self._places, np.zeros(1, np.int64)
        there = np.ones(1, bool)
        for (_, combined), own in zip(steps, sought, strict=True):
            places = np.array([known.get(key, -1) for key in own], np.int64)
            codes, these = placed(combined, codes * len(self._keys) + places)
            there = there & these & (places >= 0)
        return np.where(there, begins[codes], 0), np.where(there, begins[codes + 1], 0), order

    def _index(self, names: tuple[str, ...]) -> _Index:
        codes, steps = np.zeros(len(self._columns[names[0]]), np.int64), []
        for name in names:
            combined, codes = different(codes * len(self._keys) + self._columns[name])
            steps.append((name, combined))
        order = in_order(codes)
        return steps, np.searchsorted(codes[order], np.arange(len(steps[-1][1]) + 1)), order


def placed(values: np.ndarray, sought: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of `sought` in the ascending `values`, and True for those that are there; place 0 for the others."""
    if not len(values):
        return np.zeros(len(sought), np.int64), np.zeros(len(sought), bool)
    places = np.searchsorted(values, sought)
    places[places == len(values)] = 0
    there = values[places] == sought
    return np.where(there, places, 0), there
