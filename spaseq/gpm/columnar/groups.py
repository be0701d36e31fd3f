"""Groups and aggregates of a subquery, per event (SPARQL 1.1 §18.5.1).

The rules are those of `spaseq.gpm.aggregates`. Without GROUP BY an event is one group, even without solutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import Identifier, Literal

from spaseq.core.errors import InternalError
from spaseq.core.integers import different
from spaseq.core.watch import made_text
from spaseq.gpm import algebra
from spaseq.gpm.aggregates import LENIENT, PLACES, combine, in_row_order
from spaseq.gpm.columnar.amounts import (
    DOUBLE,
    MOST_DIGITS,
    MOST_WHOLE,
    TENS,
    Amounts,
    amounts_of,
    divide,
    quotient_key,
)
from spaseq.gpm.columnar.order import ranks
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.columnar.truth import Scope, compute
from spaseq.rdf import is_triple_key


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """`of`: the group of each row, int64. `events`: the event of each group, int32, ascending."""

    of: np.ndarray
    events: np.ndarray


def aggregated(
    node: algebra.Aggregated, table: Table, scope: Scope, events: np.ndarray, *, ordered: bool, behind_where: bool
) -> Table:
    """The aggregates over the groups of `table`; a row for each group. `scope` evaluates expressions on `table`.

    `events`: the events of the evaluation, ascending. `ordered`: True if an ORDER BY has ordered the rows.
    `behind_where`: True for result clauses, whose aggregates ignore rows without a variable, and follow their order.
    """
    grouping = node.child
    if not isinstance(grouping, algebra.Grouped):
        raise InternalError(f"aggregates over {type(grouping).__name__}")
    groups = _group(table, [compute(key, scope) for key in grouping.keys], events)
    columns = {
        name: _result(aggregate, table, scope, groups, ordered, behind_where) for name, aggregate in node.results
    }
    return Table(groups.events, columns)


def _group(table: Table, keys: Sequence[np.ndarray], events: np.ndarray) -> _Groups:
    """The groups of rows with the same event and the same keys."""
    if not keys:
        return _Groups(np.searchsorted(events, table.events).astype(np.int64), events)
    first, codes = distinct([table.events, *keys], len(table))
    return _Groups(codes, table.events[first])


def _result(
    aggregate: algebra.Aggregate, table: Table, scope: Scope, groups: _Groups, ordered: bool, behind_where: bool
) -> np.ndarray:
    """The value of an aggregate for each group, as numbers of terms: int32 (groups,)."""
    space = scope.space
    if aggregate.over is None:
        rows = np.arange(len(table))
        if aggregate.once:
            rows, _ = distinct([groups.of, *table.columns.values()], len(table))
        return _count(groups.of[rows], groups, space)
    by_row = in_row_order(aggregate, ordered=ordered, behind_where=behind_where)
    numbers = compute(aggregate.over, scope)
    if behind_where and isinstance(aggregate.over, algebra.Term):
        bound = np.flatnonzero(numbers >= 0)
        groups, numbers = _Groups(groups.of[bound], groups.events), numbers[bound]
    values = _Values.of(numbers, groups, space, aggregate.once, by_row)
    if aggregate.name in LENIENT:
        values = values.only_known()
    if aggregate.name == "Count":
        return _count(values.groups, groups, space)
    if aggregate.name in PLACES:
        return values.sound(values.last() if PLACES[aggregate.name] else values.first())
    if aggregate.name in ("Sum", "Avg"):
        found, is_open = values.totals(space) if aggregate.name == "Sum" else values.means(space)
    elif aggregate.name == "GroupConcat":
        found, is_open = values.concatenated(aggregate.separator, space), np.zeros(len(values.broken), bool)
    else:
        found, is_open = np.full(len(values.broken), UNBOUND, np.int32), np.ones(len(values.broken), bool)
    return values.sound(values.folded(partial(combine, aggregate), space, found, is_open))


def _count(members: np.ndarray, groups: _Groups, space: Space) -> np.ndarray:
    counts = np.bincount(members, minlength=len(groups.events))
    used, codes = different(counts)
    return np.array([space.number(Literal(count)) for count in used.tolist()], np.int32)[codes]


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """The values that an aggregate ranges over, sorted by group. `groups` and `numbers` (of terms, -1 is an error) have
    an entry for each value; those of group g are `starts[g]:starts[g + 1]`. `broken`: True if a group has an error."""

    groups: np.ndarray
    numbers: np.ndarray
    starts: np.ndarray
    broken: np.ndarray

    @staticmethod
    def of(numbers: np.ndarray, groups: _Groups, space: Space, once: bool, by_row: bool) -> _Values:
        """The values of rows. `once`: equal values count once. `by_row`: in the order of rows, else of terms."""
        rows = np.arange(len(numbers))
        if once:
            rows = np.sort(distinct([groups.of, numbers], len(numbers))[0])
        place = rows if by_row else ranks(numbers[rows], space, apart=True)
        rows = rows[np.lexsort([place, groups.of[rows]])]
        return _Values._sort(groups.of[rows], numbers[rows], len(groups.events))

    @staticmethod
    def _sort(groups: np.ndarray, numbers: np.ndarray, count: int) -> _Values:
        broken = np.bincount(groups[numbers < 0], minlength=count) > 0
        return _Values(groups, numbers, np.searchsorted(groups, np.arange(count + 1)), broken)

    def only_known(self) -> _Values:
        """The values without errors."""
        known = self.numbers >= 0
        return _Values._sort(self.groups[known], self.numbers[known], len(self.broken))

    def first(self) -> np.ndarray:
        """The first value of each group, -1 if it has none."""
        return self._at(self.starts[:-1])

    def last(self) -> np.ndarray:
        """The last value of each group, -1 if it has none."""
        return self._at(self.starts[1:] - 1)

    def _at(self, places: np.ndarray) -> np.ndarray:
        found = np.full(len(places), UNBOUND, np.int32)
        some = self.starts[1:] > self.starts[:-1]
        found[some] = self.numbers[places[some]]
        return found

    def sound(self, found: np.ndarray) -> np.ndarray:
        """`found`, replaced by -1 for groups with an error."""
        return np.where(self.broken, UNBOUND, found).astype(np.int32)

    def _sums(self, space: Space) -> Amounts:
        """The sums of the groups; open if they are not known exactly, or need one step after the other."""
        given, groups, count = amounts_of(self.numbers, space), self.groups, len(self.broken)
        rank, scale = np.zeros(count, np.int8), np.zeros(count, np.int64)
        np.maximum.at(rank, groups, given.rank)
        np.maximum.at(scale, groups, given.scale)
        up = scale[groups] - given.scale
        size = np.bincount(groups, np.abs(given.whole.astype(np.float64)) * 10.0**up, count)
        wrong = np.bincount(groups[given.rank < 0], minlength=count) > 0
        is_open = np.bincount(groups[given.open | (up > MOST_DIGITS)], minlength=count) > 0
        is_open |= size >= MOST_WHOLE
        is_real = rank == DOUBLE
        whole, real = np.zeros(count, np.int64), np.zeros(count)
        np.add.at(whole, groups, given.whole * TENS[np.minimum(up, MOST_DIGITS)])
        if is_real.any():
            is_open |= is_real & (np.bincount(groups[given.rank != DOUBLE], minlength=count) > 0)
            summed = (is_real & ~is_open)[groups]
            with np.errstate(all="ignore"):
                np.add.at(real, groups[summed], given.real[summed])  # one by one: rounding depends on the order
        rank[wrong] = -1
        return Amounts(rank, whole, scale, real, is_open & ~wrong)

    def totals(self, space: Space) -> tuple[np.ndarray, np.ndarray]:
        """SUM of each group, and for which groups that is open."""
        sums = self._sums(space)
        return sums.terms(space), sums.open

    def means(self, space: Space) -> tuple[np.ndarray, np.ndarray]:
        """AVG of each group, and for which groups that is open."""
        sums, counts = self._sums(space), np.diff(self.starts)
        none = np.zeros(len(counts))
        by = Amounts(np.zeros(len(counts), np.int8), np.maximum(counts, 1), none.astype(np.int64), none, none > 0)
        means = divide(sums, by)
        found = means.terms(space)
        endless = np.flatnonzero(means.open & ~sums.open & (sums.rank >= 0))
        if len(endless):
            parts = zip(
                sums.whole[endless].tolist(), sums.scale[endless].tolist(), counts[endless].tolist(), strict=True
            )
            found[endless] = space.numbers_of_keys([quotient_key(*part) for part in parts])
        found[counts == 0] = space.number(Literal(0))
        return found, sums.open

    def concatenated(self, separator: str, space: Space) -> np.ndarray:
        """GROUP_CONCAT of each group, -1 if a blank node is in it."""
        used, places = different(self.numbers)
        texts = np.array([_text(space.cased_key(n)) if n >= 0 else None for n in used.tolist()], object)
        whole = texts[places].tolist() if len(used) else []
        starts, found = self.starts.tolist(), np.full(len(self.broken), UNBOUND, np.int32)
        keys, groups = [], []
        for group in np.flatnonzero(~self.broken).tolist():
            own = whole[starts[group] : starts[group + 1]]
            if None not in own:
                made_text(sum(map(len, own)) + len(separator) * max(len(own) - 1, 0))
                keys.append(f'"{separator.join(own)}"'.encode())
                groups.append(group)
        found[groups] = space.numbers_of_keys(keys)
        return found

    def folded(
        self, function: Callable[[list[Any]], Identifier], space: Space, found: np.ndarray, is_open: np.ndarray
    ) -> np.ndarray:
        """`found`, with `function`'s value for each open group's terms, called once for equal lists; -1 for an
        error."""
        known: dict[bytes, int] = {}
        starts, numbers = self.starts.tolist(), self.numbers
        for group in np.flatnonzero(is_open & ~self.broken).tolist():
            own = numbers[starts[group] : starts[group + 1]]
            key = own.tobytes()
            value = known.get(key)
            if value is None:
                value = known[key] = _ask(function, [space.term(number) for number in own.tolist()], space)
            found[group] = value
        return found


def _text(key: str) -> str | None:
    """The text of the term with this key; None of a blank node and of a triple term."""
    if key[0] == "_" or is_triple_key(key):
        return None
    return key[1:-1] if key[0] == "<" else key[1 : key.rindex('"')]


def _ask(function: Callable[[list[Any]], Identifier], terms: list[Any], space: Space) -> int:
    try:
        return space.number(function(terms))
    except SPARQLError:
        return UNBOUND
