"""The positions of a match that each variable took, and the attributes of its events: valuations as columns.

A query reports valuations on request, or because SELECT lists attributes (`SELECT x[price]`). Shown are the variables
of SELECT in its order; with `*`, those of AS in order of the formula, and the event types that are under no AS. The
fresh names that lowering gives to events for conditions are not shown and do not make two valuations different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ceql.expressions.predicates import TypeIs
from ceql.results.history import History
from ceql.semantics.check import shown_variables
from ceql.semantics.selection import read_variables
from ceql.syntax import ast
from spaseq.core.automata import CEA
from spaseq.core.engine import MatchBatch
from spaseq.core.events.mixed import flatten


@dataclass(frozen=True, slots=True)
class Shown:
    """The variables that valuations show, and for each the attributes to show of its events; None is all of them."""

    variables: tuple[str, ...]
    attributes: dict[str, tuple[str, ...] | None]

    @staticmethod
    def of(query: ast.Query) -> Shown:
        """The variables and attributes that a query shows."""
        items = query.selection.items
        if items is None:
            names = shown_variables(query)
            return Shown(names, dict.fromkeys(names))
        attributes: dict[str, tuple[str, ...] | None] = {}
        for item in items:
            listed = tuple(name.text for name in item.attributes) or None
            before = attributes.get(item.variable, ())
            attributes[item.variable] = None if listed is None or before is None else tuple(
                dict.fromkeys(before + listed)
            )  # fmt: skip
        return Shown(tuple(attributes), attributes)


def lists_attributes(query: ast.Query) -> bool:
    """True if SELECT has a list of attributes, or computes something of the events of variables."""
    return any(item.attributes for item in query.selection.items or ()) or bool(read_variables(query))


def labels_by_type(cea: CEA) -> dict[str, int] | None:
    """The label of the events of each type, if the type decides which variables take an event; else None.

    Then no two valuations have the same positions, and the automaton of complex events finds all of them.
    """
    found: dict[str, int] = {}
    for t in (t for out in cea.transitions for t in out if t.marks):
        types = [p.name for p in (cea.predicates[i] for i in t.predicates) if isinstance(p, TypeIs)]
        if not types or any(found.setdefault(name, t.label) != t.label for name in types):
            return None
    return found


class Bindings:
    """Computes which positions each variable took in a batch of matches.

    `labels`: for each label number of the program the variables that it stands for. `by_type`: the label of the events
    of each type, if matches come without labels because the types say them. `declared`: the Arrow types of attributes
    that a schema gives, whether or not an event has had them.
    """

    def __init__(
        self, shown: Shown, labels: tuple[frozenset[str], ...], by_type: Mapping[str, int] | None = None,
        declared: Mapping[str, pa.DataType] | None = None,
    ) -> None:  # fmt: skip
        self.shown = shown
        self._by_type = by_type
        self._declared = dict(declared or {})
        takes = [[variable in label for label in labels] for variable in shown.variables]
        self._takes = dict(zip(shown.variables, (np.array(row, bool) for row in takes), strict=True))
        self._labels = labels

    def label(self, matches: MatchBatch, history: History) -> MatchBatch:
        """The matches with a label for each position."""
        if self._by_type is None:
            return matches
        return replace(matches, labels=history.numbers_of_types(matches.positions, self._by_type))

    def of(self, matches: MatchBatch, variable: str) -> tuple[np.ndarray, np.ndarray]:
        """The positions that `variable` took: in match i `positions[offsets[i]:offsets[i + 1]]`, ascending.

        Returns offsets, int64 (m + 1,), beginning with 0, and positions, int64.
        """
        if matches.labels is None or not len(self._labels):
            return np.zeros(len(matches) + 1, np.int64), np.zeros(0, np.int64)
        low, high = int(matches.offsets[0]), int(matches.offsets[-1])
        takes = self._takes[variable][matches.labels[low:high]]
        counted = np.concatenate([[0], np.cumsum(takes)])
        return counted[matches.offsets - low], matches.positions[low:high][takes]

    def dictionaries(self, matches: MatchBatch) -> list[dict[str, list[int]]]:
        """For each match a dict from its variables that took events to their positions."""
        found: list[dict[str, list[int]]] = [{} for _ in range(len(matches))]
        for variable in self.shown.variables:
            offsets, positions = (a.tolist() for a in self.of(matches, variable))
            for i, bindings in enumerate(found):
                if offsets[i] < offsets[i + 1]:
                    bindings[variable] = positions[offsets[i] : offsets[i + 1]]
        return found

    def names(self, events: pa.Table) -> list[str]:
        """The attributes to show of a variable for which SELECT lists none: those of the events, and those declared."""
        return list(dict.fromkeys([*events.column_names, *self._declared]))

    def columns(
        self, matches: MatchBatch, events: pa.Table, rows_of: Callable[[np.ndarray], np.ndarray]
    ) -> Iterator[tuple[str, pa.Array]]:
        """Columns `v` and `v.attribute` for every variable: per match a list with an element for each position, NULL if
        an event lacks the attribute. `rows_of` gives the rows of `events` at positions."""
        for variable in self.shown.variables:
            offsets, positions = self.of(matches, variable)
            yield variable, _lists(offsets, pa.array(positions, pa.int64()))
            rows = pa.array(rows_of(positions), pa.int64())
            listed = self.shown.attributes[variable]
            for name in self.names(events) if listed is None else listed:
                values = plain(events.column(name).take(rows)) if name in events.column_names else pa.nulls(len(rows))
                if pa.types.is_null(values.type):
                    values = pa.nulls(len(rows), self._declared.get(name, pa.null()))
                yield f"{variable}.{name}", _lists(offsets, values)


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array, without dictionary encoding or union."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return flatten(column)
