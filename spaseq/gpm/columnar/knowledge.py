"""The solutions of background knowledge as columns, joined with a batch by an index over the shared variables.

A GPM's patterns over knowledge are evaluated once. Their terms have numbers of their own; the rows are indexed by the
shared variables at the first join. A batch looks up each distinct choice of terms once, so the cost of an event does
not depend on the size of the knowledge.

If a pattern has triples with large predicates, the first batches do not wait for all of its solutions. The triples that
their terms can use are looked up in the graph's orders, and the pattern is evaluated over these (`KnowledgeOnDemand`).
Once that has cost about as much as evaluating it for all terms, it is evaluated for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from rdflib.term import Literal, URIRef, Variable

from spaseq.core.integers import apart, different, in_order
from spaseq.gpm import algebra
from spaseq.gpm.columnar.coverage import counts, read_predicates, uncovered
from spaseq.gpm.columnar.joins import expand, placed
from spaseq.gpm.columnar.lists import Lists
from spaseq.gpm.columnar.plan import Evaluation
from spaseq.gpm.columnar.rewrites import inward, with_known_graphs
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.evaluate import PatternEvaluator
from spaseq.gpm.mappings import IDENTITY, IndexedMappings, MappingSet
from spaseq.rdf import GraphBatch, GraphColumns, TermTable, TripleTerm, plain_literal

_LARGE: Final = 10_000
"""A pattern over fewer triples is evaluated once for all when it is first used."""
_LOOKED_UP: Final = 3_000
"""The fixed cost of a look-up, in triples of an evaluation for all."""
_SPARSE: Final = 8
"""Terms are looked up in a predicate with so many times as many triples."""

_Index = tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]
"""For each variable its terms, and the codes of their combinations with the choices of the variables before, both
ascending. Then the index of the first row of each last code, int64 (keys + 1,), and the rows in this order."""


class KnowledgeColumns:
    """The solutions of patterns over knowledge, with indexes for joins.

    `columns`: for each variable the numbers of its terms in `space`, int32 (rows,), -1 if unbound.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], rows: int, space: Space) -> None:
        self.names: list[str] = sorted(columns)
        self._rows = np.stack([columns[name] for name in self.names]) if columns else np.zeros((0, rows), np.int32)
        self._space = space
        self._certain = frozenset(n for n, column in zip(self.names, self._rows, strict=True) if (column >= 0).all())
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def __len__(self) -> int:
        return self._rows.shape[1]

    def count(self, budget: int) -> int:
        """The number of solutions."""
        return len(self)

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
        """table ⋈ knowledge, with terms numbered in `space`. `compared`: True if the new columns will be compared with
        others, so that equal terms need equal numbers. Cost: the distinct choices of the table's shared terms, and the
        rows of the result. Raises `BudgetExceeded` (`solution_rows`)."""
        rows, places = self._pairs(table, space, budget)
        columns = {name: column[rows] for name, column in table.columns.items()}
        for name in self.names:
            own = columns.get(name)
            if own is not None and not (own < 0).any():
                continue
            terms = self._adopt(self._column(name)[places], space, compared or own is not None)
            columns[name] = terms if own is None else np.where(own < 0, terms, own)
        return Table(table.events[rows], columns)

    def beside(self, table: Table, space: Space, budget: int) -> Table:
        """The rows of knowledge that are compatible with a row of `table`, at the event of that row, each once per
        event. These are all rows of a GRAPH inside another pattern that can matter in a join with `table`."""
        rows, places = self._pairs(table, space, budget)
        events = table.events[rows].astype(np.int64)
        count = max(1, self._rows.shape[1])
        found = apart(events * count + places)
        columns = {name: self._adopt(self._column(name)[found % count], space, True) for name in self.names}
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
        for mask in apart(bound).tolist():
            own = np.flatnonzero(bound == mask)
            names = tuple(name for bit, name in enumerate(keys) if mask >> bit & 1)
            rows, places = self._find(table if len(own) == len(table) else table.take(own), space, names, budget)
            parts.append((own[rows], places))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows, places = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        if len(parts) > 1:
            order = in_order(rows)
            rows, places = rows[order], places[order]
        return self._agreeing(table, [n for n in shared if n not in self._certain], rows, places, space)

    def _agreeing(
        self, table: Table, names: list[str], rows: np.ndarray, places: np.ndarray, space: Space
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pairs that agree on the variables `names`, which some rows of the knowledge leave unbound."""
        agree = np.ones(len(rows), bool)
        for name in names:
            own, terms = table.columns[name][rows], self._adopt(self._column(name)[places], space, True)
            agree &= (own < 0) | (terms < 0) | (own == terms)
        return rows[agree], places[agree]

    def _adopt(self, numbers: np.ndarray, space: Space, compared: bool) -> np.ndarray:
        found = np.full(len(numbers), UNBOUND, np.int32)
        bound = numbers >= 0
        if bound.any():
            if compared:
                found[bound] = space.take_in(self._space, numbers[bound])
            else:
                found[bound] = space.adopt(self._space.term, numbers[bound], compared=False)
        return found

    def _find(self, table: Table, space: Space, keys: tuple[str, ...], budget: int) -> tuple[np.ndarray, np.ndarray]:
        """The pairs (row of the table, row of the knowledge) with equal terms for `keys`."""
        steps, begins, order = self._index(keys)
        codes, found = np.zeros(len(table), np.int64), np.ones(len(table), bool)
        for name, (terms, combined) in zip(keys, steps, strict=True):
            used, kinds = different(table.columns[name])
            own, known = placed(terms, self._space.places(space, used))
            codes, these = placed(combined, codes * len(terms) + own[kinds])
            found &= known[kinds] & these
        if len(begins) == 1:  # no rows
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows, places = expand(np.where(found, begins[codes], 0), np.where(found, begins[codes + 1], 0), budget)
        return rows, order[places]

    def _index(self, keys: tuple[str, ...]) -> _Index:
        found = self._indexes.get(keys)
        if found is None:
            codes, steps = np.zeros(self._rows.shape[1], np.int64), []
            for name in keys:
                terms, own = different(self._column(name))
                combined, codes = different(codes * len(terms) + own)
                steps.append((terms, combined))
            order = in_order(codes)
            count = len(steps[-1][1]) if steps else min(1, len(codes))
            begins = np.searchsorted(codes[order], np.arange(count + 1))
            found = self._indexes[keys] = steps, begins, order
        return found


class KnowledgeOnDemand:
    """The solutions of a pattern over a graph, as `KnowledgeColumns`, evaluated on request: those that agree with a
    batch's terms if that is less work, else all, which are kept.

    `evaluated(rows, budget)`: the solutions over some rows of the graph, or over all that the pattern uses.
    """

    def __init__(
        self,
        graph: GraphColumns,
        node: algebra.Node,
        evaluated: Callable[[np.ndarray | None, int], KnowledgeColumns],
    ) -> None:
        self.names: list[str] = sorted(algebra.visible(node))
        self._graph = graph
        self._terms = Space(graph.terms)
        self._node = node
        self._evaluated = evaluated
        self._size = _triples_of(graph, node)
        self._spent = 0
        self._whole: KnowledgeColumns | None = None

    def count(self, budget: int) -> int:
        """The number of solutions. Raises `BudgetExceeded` (`solution_rows`), as all below."""
        return len(self._all(budget))

    def join(self, table: Table, space: Space, budget: int, *, compared: bool) -> Table:
        """As of `KnowledgeColumns`."""
        return self._for(table, space, budget).join(table, space, budget, compared=compared)

    def beside(self, table: Table, space: Space, budget: int) -> Table:
        """As of `KnowledgeColumns`."""
        return self._for(table, space, budget).beside(table, space, budget)

    def _all(self, budget: int) -> KnowledgeColumns:
        if self._whole is None:
            self._whole = self._evaluated(None, budget)
        return self._whole

    def _for(self, table: Table, space: Space, budget: int) -> KnowledgeColumns:
        """Solutions among which are all that are compatible with a row of `table`."""
        if self._whole is not None or self._size < _LARGE or self._spent > self._size:
            return self._all(budget)
        if not len(table):
            return self._evaluated(self._graph.at(np.zeros(0, np.int64)), budget)
        known: dict[Any, np.ndarray] = {}
        for name in self.names:
            column = table.columns.get(name)
            if column is not None and (column >= 0).all():
                places = self._terms.places(space, apart(column))
                known[Variable(name)] = places[places >= 0]
        # What a look-up costs grows a little with the terms of the graph, of which arrays are made.
        self._spent += _LOOKED_UP + sum(map(len, known.values())) + len(self._terms) // 500
        rows = _ask(self._graph, self._node, known) if known else None
        if rows is None or _SPARSE * len(rows) > self._size:
            return self._all(budget)
        self._spent += 4 * len(rows)
        return self._evaluated(rows, budget)


def _basic(node: algebra.Node) -> algebra.BGP | None:
    """The basic graph pattern of a node whose solutions are made of those of it, one of one; None for other nodes."""
    while isinstance(node, (algebra.Filter, algebra.Extend)):
        if algebra.has_exists(node.condition if isinstance(node, algebra.Filter) else node.value):
            return None
        node = node.child
    if isinstance(node, algebra.BGP) and node.triples and all(isinstance(p, URIRef) for _, p, _ in node.triples):
        return node
    return None


def _triples_of(graph: GraphColumns, node: algebra.Node) -> int:
    """The number of triples a pattern may use, 0 for patterns in which nothing is looked up."""
    basic = _basic(node)
    groups = () if basic is None else graph.numbers({str(p) for _, p, _ in basic.triples})
    return sum(high - low for low, high in (graph.groups[number] for number in groups))


def _ask(graph: GraphColumns, node: algebra.Node, known: Mapping[Any, np.ndarray]) -> np.ndarray | None:
    """The rows that a pattern can use if its variables have `known` terms (numbers, different), and by the subjects and
    objects that it names. A look-up costs O(results). None if nothing is looked up."""
    basic = _basic(node)
    if basic is None:
        return None
    terms = dict(known)
    for s, _, o in basic.triples:
        for term in (s, o):
            if isinstance(term, (URIRef, Literal, TripleTerm)):
                number = graph.terms.id_of(plain_literal(term))
                terms[term] = np.array([number] if number >= 0 else [], np.int32)
    parts, looked_up = [np.zeros(0, np.int64)], False
    left = [(s, graph.terms.id_of(p), o) for s, p, o in basic.triples]
    while left:
        # From triple to triple: what is found for one says which terms the others may have.
        triple = min(left, key=lambda triple: _candidates(graph, triple, terms))
        left.remove(triple)
        low, high = graph.groups.get(triple[1], (0, 0))
        ends = [(len(terms[triple[place]]), place) for place in (0, 2) if triple[place] in terms]
        count, place = min(ends, default=(high, 0))
        if not ends or _SPARSE * count > high - low:
            parts.append(np.arange(low, high))
            continue
        looked_up = True
        parts.append(graph.find(triple[1], place, terms[triple[place]]))
        rows = graph.at(parts[-1])
        for place in (0, 2):
            own, end = apart(rows[:, place]), triple[place]
            if end not in terms or len(own) < len(terms[end]):
                terms[end] = own
    return graph.at(apart(np.concatenate(parts))) if looked_up else None


def _candidates(graph: GraphColumns, triple: tuple[Any, int, Any], terms: Mapping[Any, np.ndarray]) -> int:
    """The number of terms to look up for a triple pattern, or of its triples if none are."""
    low, high = graph.groups.get(triple[1], (0, 0))
    return min([high - low, *(len(terms[end]) for end in (triple[0], triple[2]) if end in terms)])


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

    def columns(self, node: algebra.GraphNode) -> KnowledgeColumns | KnowledgeOnDemand:
        """The solutions of a GRAPH with a constant name; equal ones are kept."""
        iri = str(node.name)
        made: KnowledgeOnDemand = self._evaluator.once(
            "graph",
            node,
            lambda: KnowledgeOnDemand(
                self._evaluator.columns(iri), node.child, partial(self._columns, iri, node.child)
            ),
        )
        return made

    def _columns(self, iri: str, node: algebra.Node, rows: np.ndarray | None, budget: int) -> KnowledgeColumns:
        return KnowledgeColumns.of_table(*self._solve(iri, node, budget, rows))

    def inward(self, node: algebra.GraphNode) -> algebra.Node:
        """An equivalent pattern with GRAPH around basic graph patterns only."""
        found = self._moved.get(id(node))
        if found is None:
            found = self._moved[id(node)] = node, inward(URIRef(node.name), node.child)
        return found[1]

    def whole(self) -> KnowledgeColumns | KnowledgeOnDemand | None:
        """The solutions of the GPM's knowledge parts, joined, as a set; None if it has no knowledge parts.

        A part that the plan covers is evaluated by it, with the graph as one event; other parts by the reference.
        """
        parts = self._evaluator.pattern.knowledge
        if not parts:
            return None
        if any(iri not in self._evaluator.graphs for iri, _ in parts):
            return KnowledgeColumns.of(frozenset())
        if len(parts) == 1 and uncovered(parts[0][1]) is None:
            iri, part = parts[0]
            node = with_known_graphs(part, self._evaluator.graphs)
            return KnowledgeOnDemand(self._evaluator.columns(iri), node, partial(self._once, iri, node))
        found = IDENTITY
        for iri, part in parts:
            found = IndexedMappings(found).join(self._mappings_of(iri, part))
        return KnowledgeColumns.of(found)

    def _mappings_of(self, iri: str, part: algebra.Node) -> MappingSet:
        if uncovered(part) is not None:
            return self._evaluator.of_part(iri, part)
        node = with_known_graphs(part, self._evaluator.graphs)
        table, space = _each_once(*self._solve(iri, node, self._budget))
        columns = [(name, column.tolist()) for name, column in sorted(table.columns.items())]
        return frozenset(
            tuple((name, space.term(column[row])) for name, column in columns if column[row] >= 0)
            for row in range(len(table))
        )

    def _once(self, iri: str, node: algebra.Node, rows: np.ndarray | None, budget: int) -> KnowledgeColumns:
        return KnowledgeColumns.of_table(*_each_once(*self._solve(iri, node, budget, rows)))

    def _solve(self, iri: str, node: algebra.Node, budget: int, rows: np.ndarray | None = None) -> tuple[Table, Space]:
        """The solutions of a pattern on some rows of a registered graph, or on all, and the space of their terms."""
        read = read_predicates(node)
        graph = self._evaluator.columns(iri)
        if rows is None:
            rows = _ask(graph, node, {})
        if rows is None:
            rows = graph.rows if read is None else graph.about(sorted(read))
        one = np.zeros(1, np.int64)
        batch = GraphBatch(
            iri, iri, rows, np.array([0, len(rows)]), one, one.astype(np.int32) - 1, one + 1, graph.terms
        )
        space = Space(graph.terms)
        lists = Lists.of(batch, space, sorted(read or algebra.predicates_named(node)), budget)
        prologue = self._evaluator.pattern.prologue
        evaluation = Evaluation(lists, prologue, np.zeros(1, np.int32), self, counts(node), {})
        return evaluation.table(node), space


def _each_once(table: Table, space: Space) -> tuple[Table, Space]:
    """The different rows."""
    first, _ = distinct(list(table.columns.values()), len(table))
    return table.take(np.sort(first)), space
