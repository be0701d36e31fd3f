"""The solutions of background knowledge as columns, joined with a batch by an index over the shared variables.

A GPM's patterns over knowledge are evaluated once. Their terms have numbers of their own; the rows are indexed by the
shared variables at the first join. A batch looks up each distinct choice of terms once, so the cost of an event does
not depend on the size of the knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rdflib.term import Literal, URIRef

from spaseq.gpm import algebra
from spaseq.gpm.columnar.coverage import counts, read_predicates, uncovered
from spaseq.gpm.columnar.joins import expanded, placed
from spaseq.gpm.columnar.lists import Lists
from spaseq.gpm.columnar.named import inward, with_known_graphs
from spaseq.gpm.columnar.plan import Evaluation
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.evaluate import PatternEvaluator
from spaseq.gpm.mappings import IDENTITY, IndexedMappings, MappingSet
from spaseq.gpm.pattern import Part
from spaseq.rdf import GraphBatch, GraphColumns, TermTable, plain_literal

__all__ = ["Graphs", "KnowledgeColumns"]

_Index = tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]
"""For each variable its terms, and the codes of their combinations with the choices of the variables before, both
ascending; the index at which the rows of the last codes begin, int64 (keys + 1,); and the rows in order of these."""


class KnowledgeColumns:
    """The solutions of patterns over knowledge, with indexes for joins.

    `columns`: for each variable the numbers of its terms in `space`, int32 (rows,), -1 where unbound.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], rows: int, space: Space) -> None:
        self.names: list[str] = sorted(columns)
        self._rows = np.stack([columns[name] for name in self.names]) if columns else np.zeros((0, rows), np.int32)
        self._space = space
        self._certain = frozenset(n for n, column in zip(self.names, self._rows, strict=True) if (column >= 0).all())
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def __len__(self) -> int:
        return self._rows.shape[1]

    @staticmethod
    def of_table(table: Table, space: Space) -> KnowledgeColumns:
        """The columns of a table whose terms are numbered in `space`."""
        return KnowledgeColumns(table.columns, len(table), space)

    @staticmethod
    def of(mappings: MappingSet) -> KnowledgeColumns:
        """The columns of a mapping set. O(rows), a Python step each."""
        rows = list(mappings)
        space = Space(TermTable.of(()))
        names = {name for mapping in rows for name, _ in mapping}
        columns = {name: np.array([_number(m, name, space) for m in rows], np.int32) for name in names}
        return KnowledgeColumns(columns, len(rows), space)

    def join(self, table: Table, space: Space, budget: int, *, compared: bool) -> Table:
        """table ⋈ knowledge, with terms numbered in `space`. `compared`: whether the numbers of the new columns will be
        compared with others, so that equal terms need equal numbers. Cost: the distinct choices of the table's shared
        terms, and the rows of the result. Raises `BudgetExceeded` (`solution_rows`)."""
        rows, places = self._pairs(table, space, budget)
        columns = {name: column[rows] for name, column in table.columns.items()}
        for name in self.names:
            own = columns.get(name)
            if own is not None and not (own < 0).any():
                continue
            terms = self._adopted(self._column(name)[places], space, compared or own is not None)
            columns[name] = terms if own is None else np.where(own < 0, terms, own)
        return Table(table.events[rows], columns)

    def beside(self, table: Table, space: Space, budget: int) -> Table:
        """The rows of knowledge that are compatible with a row of `table`, at the event of that row, each once per
        event: all rows of a GRAPH inside another pattern that can matter in a join with `table`."""
        rows, places = self._pairs(table, space, budget)
        events = table.events[rows].astype(np.int64)
        count = max(1, self._rows.shape[1])
        found = np.unique(events * count + places)
        columns = {name: self._adopted(self._column(name)[found % count], space, True) for name in self.names}
        return Table((found // count).astype(np.int32), columns)

    def _column(self, name: str) -> np.ndarray:
        return self._rows[self.names.index(name)]

    def _pairs(self, table: Table, space: Space, budget: int) -> tuple[np.ndarray, np.ndarray]:
        """The compatible pairs (row of the table, row of the knowledge), in order of the table."""
        shared = [name for name in self.names if name in table.columns]
        keys = [name for name in shared if name in self._certain]
        bound = np.zeros(len(table), np.int64)
        for bit, name in enumerate(keys):
            bound |= (table.columns[name] >= 0).astype(np.int64) << bit
        parts = []
        for mask in np.unique(bound).tolist():
            own = np.flatnonzero(bound == mask)
            names = tuple(name for bit, name in enumerate(keys) if mask >> bit & 1)
            rows, places = self._found(table if len(own) == len(table) else table.take(own), space, names, budget)
            parts.append((own[rows], places))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows, places = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        if len(parts) > 1:
            order = np.argsort(rows, kind="stable")
            rows, places = rows[order], places[order]
        return self._agreeing(table, [n for n in shared if n not in self._certain], rows, places, space)

    def _agreeing(
        self, table: Table, names: list[str], rows: np.ndarray, places: np.ndarray, space: Space
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pairs that agree on the variables `names`, which some rows of the knowledge leave unbound."""
        agree = np.ones(len(rows), bool)
        for name in names:
            own, terms = table.columns[name][rows], self._adopted(self._column(name)[places], space, True)
            agree &= (own < 0) | (terms < 0) | (own == terms)
        return rows[agree], places[agree]

    def _adopted(self, numbers: np.ndarray, space: Space, compared: bool) -> np.ndarray:
        found = np.full(len(numbers), UNBOUND, np.int32)
        bound = numbers >= 0
        if bound.any():
            if compared:
                found[bound] = space.take_in(self._space, numbers[bound])
            else:
                found[bound] = space.adopt(self._space.term, numbers[bound], compared=False)
        return found

    def _found(self, table: Table, space: Space, keys: tuple[str, ...], budget: int) -> tuple[np.ndarray, np.ndarray]:
        """The pairs (row of the table, row of the knowledge) with equal terms for `keys`."""
        steps, begins, order = self._index(keys)
        codes, found = np.zeros(len(table), np.int64), np.ones(len(table), bool)
        for name, (terms, combined) in zip(keys, steps, strict=True):
            used, kinds = np.unique(table.columns[name], return_inverse=True)
            own, known = placed(terms, self._space.places(space, used))
            codes, these = placed(combined, codes * len(terms) + own[kinds])
            found &= known[kinds] & these
        if len(begins) == 1:  # no rows
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows, places = expanded(np.where(found, begins[codes], 0), np.where(found, begins[codes + 1], 0), budget)
        return rows, order[places]

    def _index(self, keys: tuple[str, ...]) -> _Index:
        found = self._indexes.get(keys)
        if found is None:
            codes, steps = np.zeros(self._rows.shape[1], np.int64), []
            for name in keys:
                terms, own = np.unique(self._column(name), return_inverse=True)
                combined, codes = np.unique(codes * len(terms) + own, return_inverse=True)
                steps.append((terms, combined))
            order = np.argsort(codes, kind="stable")
            count = len(steps[-1][1]) if steps else min(1, len(codes))
            begins = np.searchsorted(codes[order], np.arange(count + 1))
            found = self._indexes[keys] = steps, begins, order
        return found


def _asked(graph: GraphColumns, node: algebra.Node) -> np.ndarray | None:
    """The rows that a basic graph pattern can use, where a triple pattern of it names a subject or an object: what is
    looked up costs what is found. None for other patterns."""
    if not isinstance(node, algebra.BGP):
        return None
    parts, looked_up = [np.zeros(0, np.int64)], False
    for s, p, o in node.triples:
        if not isinstance(p, URIRef):
            return None
        for predicate in graph.numbers([p]):
            named = [(place, term) for place, term in ((0, s), (2, o)) if isinstance(term, (URIRef, Literal))]
            looked_up |= bool(named)
            if named:
                place, term = named[0]
                numbers = np.array([graph.terms.id_of(plain_literal(term))], np.int32)
                parts.append(graph.find(predicate, place, numbers[numbers >= 0]))
            else:
                parts.append(np.arange(*graph.groups[predicate]))
    return graph.at(np.unique(np.concatenate(parts))) if looked_up else None


def _number(mapping: Any, name: str, space: Space) -> int:
    for own, term in mapping:
        if own == name:
            return space.number(term)
    return UNBOUND


class Graphs:
    """The solutions of the GRAPH clauses of one pattern, each evaluated once, on first use."""

    def __init__(self, evaluator: PatternEvaluator, budget: int) -> None:
        self._evaluator = evaluator
        self._budget = budget
        self._moved: dict[int, tuple[algebra.GraphNode, algebra.Node]] = {}

    def columns(self, node: algebra.GraphNode) -> KnowledgeColumns:
        """The solutions of a GRAPH with a constant name; equal ones are kept."""
        made: KnowledgeColumns = self._evaluator.once(
            "graph", node, lambda: KnowledgeColumns.of_table(*self._solved(str(node.name), node.child))
        )
        return made

    def inward(self, node: algebra.GraphNode) -> algebra.Node:
        """An equivalent pattern with GRAPH around basic graph patterns only."""
        found = self._moved.get(id(node))
        if found is None:
            found = self._moved[id(node)] = node, inward(URIRef(node.name), node.child)
        return found[1]

    def whole(self) -> KnowledgeColumns | None:
        """The solutions of the GPM's knowledge parts, joined, as a set; None if it has no knowledge parts.

        A part that the plan covers is evaluated by it, with the graph as one event; other parts by rdflib.
        """
        parts = self._evaluator.pattern.knowledge
        if not parts:
            return None
        if any(iri not in self._evaluator.graphs for iri, _ in parts):
            return KnowledgeColumns.of(frozenset())
        if len(parts) == 1 and uncovered(parts[0][1].node) is None:
            return KnowledgeColumns.of_table(*self._of_part(*parts[0]))
        found = IDENTITY
        for iri, part in parts:
            found = IndexedMappings(found).join(self._mappings_of(iri, part))
        return KnowledgeColumns.of(found)

    def _mappings_of(self, iri: str, part: Part) -> MappingSet:
        if uncovered(part.node) is not None:
            return self._evaluator.of_part(iri, part)
        table, space = self._of_part(iri, part)
        columns = [(name, column.tolist()) for name, column in sorted(table.columns.items())]
        return frozenset(
            tuple((name, space.term(column[row])) for name, column in columns if column[row] >= 0)
            for row in range(len(table))
        )

    def _of_part(self, iri: str, part: Part) -> tuple[Table, Space]:
        """The solutions of a covered part, each once, and the space of their terms."""
        table, space = self._solved(iri, with_known_graphs(part.node, self._evaluator.graphs))
        first, _ = distinct(list(table.columns.values()), len(table))
        return table.take(np.sort(first)), space

    def _solved(self, iri: str, node: algebra.Node) -> tuple[Table, Space]:
        """The solutions of a pattern on a registered graph, and the space of their terms."""
        read = read_predicates(node)
        graph = self._evaluator.columns(iri)
        rows = _asked(graph, node)
        if rows is None:
            rows = graph.rows if read is None else graph.about(sorted(read))
        one = np.zeros(1, np.int64)
        batch = GraphBatch(
            iri, iri, rows, np.array([0, len(rows)]), one, one.astype(np.int32) - 1, one + 1, graph.terms
        )
        space = Space(graph.terms)
        lists = Lists.of(batch, space, sorted(read or algebra.predicates_named(node)), self._budget)
        prologue = self._evaluator.pattern.prologue
        evaluation = Evaluation(lists, prologue, np.zeros(1, np.int32), self, counts(node), {})
        return evaluation.table(node), space
