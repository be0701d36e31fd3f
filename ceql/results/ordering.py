"""ORDER BY: the matches of each event in the order of their keys, and with LIMIT the first ones of these.

Keys are values of single matches, computed as the columns of SELECT are. Values of one kind compare as in conditions,
texts by code point, lists by their elements. If values are of several kinds, numbers come first, then durations, times,
texts, truth values and lists. NULL is behind all values, with DESC before them. Of matches with equal keys the one with
the latest start comes first, then the one with the smallest position at which they differ, then names of variables.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ceql.operators.values import kind_of
from ceql.results.bindings import Bindings
from ceql.results.history import History
from ceql.results.ranking import Ranking
from ceql.results.segments import comparable
from ceql.results.selected import Selected, Times, as_events
from ceql.syntax import ast
from spaseq.core.errors import BudgetExceeded, EventError
from spaseq.core.events.columns import Column, ListColumn, TruthColumn, getter_of

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch

_KINDS: Final[tuple[str, ...]] = ("number", "duration", "time", "text", "truth", "list", "texts")
"""The order of values of different kinds."""


class Ordering:
    """Sorts the matches of one evaluation.

    `selected`: the keys as columns. `bindings`: the variables that they read. `labels`: the variables of each label of
    the program. `times`: the form of times of matches. `budget`: the most bytes of matches of one event that are held.
    `limit`: the number of matches of each event; None for all. `ranking` finds the first ones of them over nodes; None
    if matches come listed.
    """

    def __init__(
        self, order: ast.Order, selected: Selected, bindings: Bindings | None,
        labels: tuple[frozenset[str], ...], times: Times, budget: int, limit: int | None,
        ranking: Ranking | None = None,
    ) -> None:  # fmt: skip
        self._descending = [key.descending for key in order.keys]
        self._selected = selected
        self._bindings = bindings
        self._times = times
        self._budget = budget
        self._limit = limit
        self.ranking: Ranking | None = ranking
        names = sorted(range(len(labels)), key=lambda label: sorted(labels[label]))
        self._ranks = np.argsort(np.array(names, np.int64))
        self.broken: bool = False
        """True if keys could not be computed: the matches of some events are lost."""

    def sort(self, parts: Iterable[MatchBatch], history_of: Callable[[MatchBatch], History]) -> Iterator[MatchBatch]:
        """The matches of the parts, which come in order of their ends, those of each end sorted. `history_of`: the
        events of matches.

        Raises `EventError` for keys that cannot be computed, behind the last part. Memory: a part, and of one end
        `limit` matches or all, within the budget (`BudgetExceeded` for `output_bytes`).
        """
        found = iter(parts if self.ranking is None else self.ranking.rank(parts, history_of))
        try:
            yield from self._sort(found, history_of)
        except EventError:
            self.broken = True
            for _ in found:
                pass
            raise

    def _sort(self, parts: Iterator[MatchBatch], history_of: Callable[[MatchBatch], History]) -> Iterator[MatchBatch]:
        held: list[MatchBatch] = []
        for part in parts:
            if not len(part):
                continue
            part = dataclasses.replace(part, rows=None)
            last = int(np.searchsorted(part.end, part.end[-1]))
            if last or (held and held[0].end[0] != part.end[0]):
                first = part.take(np.arange(last))
                yield self._first(first.concat([*held, first]), history_of)
                held, part = [], part.take(np.arange(last, len(part))) if last else part
            held.append(part)
            if self._limit is None:
                used = sum(some.nbytes for some in held)
                if used > self._budget:
                    hint = "LIMIT keeps the first matches of each event"
                    raise BudgetExceeded("output_bytes", self._budget, used, hint=hint)
            elif sum(map(len, held)) > self._limit:
                held = [self._first(part.concat(held), history_of)]
        if held:
            yield self._first(held[0].concat(held), history_of)

    def _first(self, matches: MatchBatch, history_of: Callable[[MatchBatch], History]) -> MatchBatch:
        """The matches of each end, sorted, as many as there may be. O(matches log matches), but for keys."""
        bounds = np.flatnonzero(np.append(True, matches.end[1:] != matches.end[:-1]))
        sizes = np.diff(np.append(bounds, len(matches)))
        several = np.repeat(sizes > 1, sizes)
        if not several.any():
            return matches
        rows = np.flatnonzero(several)
        some = matches if len(rows) == len(matches) else matches.take(rows)
        keys = self._keys(some, history_of(some))
        columns = [some.end, *keys, ~some.start]
        order = np.lexsort(columns[::-1])
        columns = [column[order] for column in columns]
        ends = columns[0]
        begins = np.flatnonzero(np.append(True, ends[1:] != ends[:-1]))
        place = np.arange(len(ends)) - np.repeat(begins, np.diff(np.append(begins, len(ends))))
        tied = np.ones(len(ends) - 1, bool)
        for column in columns:
            tied &= column[1:] == column[:-1]
        self._settle(some, order, tied, place)
        whole = np.arange(len(matches))
        whole[rows] = rows[order]
        if self._limit is not None:
            places = np.zeros(len(matches), np.int64)
            places[rows] = place
            whole = whole[places < self._limit]
        return matches.take(whole)

    def _settle(self, matches: MatchBatch, order: np.ndarray, tied: np.ndarray, place: np.ndarray) -> None:
        """Put rows of `order` that are tied with the next in the order of their positions and names, if some are first
        matches of their end."""
        if not tied.any():
            return
        group = np.concatenate([[0], np.cumsum(~tied)])
        first = np.flatnonzero(np.append(True, ~tied))
        wanted = np.diff(np.append(first, len(order))) > 1
        if self._limit is not None:
            wanted &= place[first] < self._limit
        rows = np.flatnonzero(wanted[group])
        offsets, names = matches.offsets.tolist(), matches.labels
        positions = matches.positions.astype(">i8").tobytes()
        labels = b"" if names is None else self._ranks[names].astype(">i8").tobytes()

        def key(row: int) -> tuple[int, bytes, bytes]:
            low, high = 8 * offsets[order[row]], 8 * offsets[order[row] + 1]
            return group[row], positions[low:high], labels[low:high]

        order[rows] = order[sorted(rows.tolist(), key=key)]

    def _keys(self, matches: MatchBatch, history: History) -> list[np.ndarray]:
        """Numbers with the order of the keys: int64 or float64 (n,), one or two for each key."""
        labelled = matches if self._bindings is None else self._bindings.label(matches, history)
        table = self._selected.table(labelled, history, self._bindings, self._times, {}, natural=True)
        events = as_events(table, len(matches))
        found: list[np.ndarray] = []
        for name, descending in zip(self._selected.names, self._descending, strict=True):
            values, known = _numbers(events.column(name), len(matches))
            if not known.all():
                found.append(known if descending else ~known)
                values = np.where(known, values, values.dtype.type(0))
            found.append(values if not descending else -values if values.dtype.kind == "f" else ~values)
        return found


def _numbers(column: Column | None, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with the order of the values of a column, and False for NULL."""
    if column is None:
        return np.zeros(count, np.int64), np.zeros(count, bool)
    if isinstance(column, TruthColumn):
        known = np.ones(count, bool) if column.known is None else column.known
        return column.values.astype(np.int64), known
    found = comparable(column)
    if found is not None:
        return found
    get = getter_of(column)
    values = [get(row) for row in range(count)]
    keys = [None if value is None else _key(value) for value in values]
    rank: dict[Any, int] = {}
    for number, (_, same) in enumerate(itertools.groupby(sorted(key for key in keys if key is not None))):
        rank |= dict.fromkeys(same, number)
    codes = np.array([-1 if key is None else rank[key] for key in keys], np.int64)
    return codes, codes >= 0


def _key(value: Any) -> tuple[int, Any]:
    """The place of a value among values of all kinds."""
    kind = ListColumn((value,), None).kind if isinstance(value, tuple) else kind_of(value)
    if isinstance(value, tuple):
        value = tuple((element is None, 0 if element is None else element) for element in value)
    return _KINDS.index(kind), value
