"""Background knowledge beside a batch: its solutions as columns, found by the terms of the variables they share.

What a GPM asks of the knowledge is evaluated once. The rows are numbered in terms of their own and indexed by the
shared variables when first joined; a batch looks up each distinct choice of terms once, so an event costs the same
however large the knowledge is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spaseq.gpm import algebra
from spaseq.gpm.columnar.basic import Lists
from spaseq.gpm.columnar.coverage import read_predicates, uncovered
from spaseq.gpm.columnar.joins import expanded
from spaseq.gpm.columnar.plan import Evaluation
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.evaluate import PatternEvaluator
from spaseq.gpm.mappings import MappingSet
from spaseq.rdf import GraphBatch, GraphEvent, Term

__all__ = ["KnowledgeColumns", "knowledge_columns"]

_Index = tuple[dict[Any, int], np.ndarray, np.ndarray]
"""The number of each key, where its rows begin (one entry more than keys), and the rows in order of their keys."""


class KnowledgeColumns:
    """The solutions of a GPM's knowledge parts, ready to be joined.

    `columns`: by variable the numbers of its terms, int32 (rows,), -1 where unbound; `term` gives the term of a number.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], rows: int, term: Callable[[int], Term]) -> None:
        self.names = sorted(columns)
        self._rows = np.stack([columns[name] for name in self.names]) if columns else np.zeros((0, rows), np.int32)
        self._term = term
        self._certain = frozenset(n for n, column in zip(self.names, self._rows, strict=True) if (column >= 0).all())
        self._indexes: dict[tuple[str, ...], _Index] = {}

    @staticmethod
    def of(mappings: MappingSet) -> KnowledgeColumns:
        """Those of mappings. O(rows), a Python step each."""
        rows = list(mappings)
        numbers: dict[Term, int] = {}
        names = {name for mapping in rows for name, _ in mapping}
        columns = {name: np.array([_number(m, name, numbers) for m in rows], np.int32) for name in names}
        return KnowledgeColumns(columns, len(rows), list(numbers).__getitem__)

    def join(self, table: Table, space: Space, budget: int, *, compared: bool) -> Table:
        """table ⋈ knowledge, its terms numbered in `space`. `compared`: whether the new columns are compared with
        others by number. Cost: the distinct choices of the table's shared terms, and the rows of the result."""
        shared = [name for name in self.names if name in table.columns]
        keys = tuple(n for n in shared if n in self._certain and not (table.columns[n] < 0).any())
        rows, places = self._found(table, space, keys, budget)
        columns = {name: column[rows] for name, column in table.columns.items()}
        agree = np.ones(len(rows), bool)
        for name in self.names:
            if name in keys:
                continue
            own = columns.get(name)
            numbers = self._rows[self.names.index(name)][places]
            terms = self._adopted(numbers, space, compared or own is not None)
            if own is not None:
                agree &= (own < 0) | (terms < 0) | (own == terms)
                terms = np.where(own < 0, terms, own)
            columns[name] = terms
        joined = Table(table.events[rows], columns)
        return joined if agree.all() else joined.take(agree)

    def _adopted(self, numbers: np.ndarray, space: Space, compared: bool) -> np.ndarray:
        found = np.full(len(numbers), UNBOUND, np.int32)
        bound = numbers >= 0
        if bound.any():
            found[bound] = space.adopt(self._term, numbers[bound], compared=compared)
        return found

    def _found(self, table: Table, space: Space, keys: tuple[str, ...], budget: int) -> tuple[np.ndarray, np.ndarray]:
        """(row of the table, row of the knowledge) of the pairs with equal `keys`."""
        index, begins, order = self._index(keys)
        columns = [table.columns[name] for name in keys]
        first, codes = distinct(columns, len(table))
        numbers = np.full(len(first), len(begins) - 1, np.int64)  # of no key: an empty range
        for i, row in enumerate(first.tolist()):
            found = index.get(tuple(space.term(int(column[row])) for column in columns))
            if found is not None:
                numbers[i] = found
        ends = np.append(begins[1:], begins[-1])
        rows, places = expanded(begins[numbers][codes], ends[numbers][codes], budget)
        return rows, order[places]

    def _index(self, keys: tuple[str, ...]) -> _Index:
        found = self._indexes.get(keys)
        if found is None:
            columns = [self._rows[self.names.index(name)] for name in keys]
            first, codes = distinct(columns, self._rows.shape[1])
            order = np.argsort(codes, kind="stable")
            begins = np.searchsorted(codes[order], np.arange(len(first) + 1))
            numbers = {tuple(self._term(int(c[row])) for c in columns): i for i, row in enumerate(first.tolist())}
            found = self._indexes[keys] = numbers, begins, order
        return found


def _number(mapping: Any, name: str, numbers: dict[Term, int]) -> int:
    for own, term in mapping:
        if own == name:
            return numbers.setdefault(term, len(numbers))
    return UNBOUND


def knowledge_columns(evaluator: PatternEvaluator, budget: int) -> KnowledgeColumns | None:
    """The solutions of a GPM's knowledge parts; None where it has none.

    A single part that the plan covers is evaluated as one large event, else by the evaluator of single events.
    """
    parts = evaluator.pattern.knowledge
    if len(parts) != 1 or uncovered(parts[0][1].node) is not None:
        known = evaluator.knowledge
        return None if known is None else KnowledgeColumns.of(known)
    iri, part = parts[0]
    read = read_predicates(part.node)
    graph = evaluator.graph(iri)
    triples: list[Any] = []
    for predicate in [None] if read is None else sorted(read):
        triples += graph.triples((None, predicate, None))
    batch = GraphBatch.of([GraphEvent(iri, 0, tuple(triples), None, iri, 1)])
    space = Space(batch.terms)
    lists = Lists(batch, space, sorted(read or algebra.predicates_named(part.node)), budget)
    table = Evaluation(lists, evaluator.pattern.prologue, np.zeros(1, np.int32)).table(part.node)
    first, _ = distinct(list(table.columns.values()), len(table))
    return KnowledgeColumns(table.take(np.sort(first)).columns, len(first), space.term)
