"""The columnar plan of a graph pattern: the algebra evaluated bottom up over all events of a batch at once.

A solution occurs as often as in SPARQL's multisets only below LIMIT, OFFSET and aggregates; a GPM gives a set.

*GRAPH inside other patterns.* Knowledge may be large, so its rows are not copied for every event. The tables with which
a node's result will be joined are passed down to it (`beside`), and a GRAPH returns only rows that are compatible with
one of them. A node may return more rows than that, as the join removes them. Nothing is passed to nodes that count
solutions.

*EXISTS.* Where joining with the outer solutions is not equivalent (`joins_alike`), the outer terms are substituted for
variables of the pattern (SPARQL 1.1 §18.6). The pattern is then evaluated at *instances*: an instance is an event with
one choice of outer terms. Basic patterns are matched on events and their solutions copied to the instances they agree
with. A variable that the instance binds has its term in expressions, and no column. A variable inside a subquery that
the subquery does not select is a different variable; a value from BIND or VALUES must be equal to the outer term.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from rdflib import Literal
from rdflib.plugins.sparql.sparql import Prologue

from spaseq.core.errors import InternalError
from spaseq.core.integers import apart, different
from spaseq.gpm import algebra
from spaseq.gpm.columnar.basic import BasicPattern, basic_pattern, match
from spaseq.gpm.columnar.coverage import joins_alike, named_nodes
from spaseq.gpm.columnar.groups import aggregated
from spaseq.gpm.columnar.joins import InlineRows, equal_pairs, expand, join, left_join, minus, pairs, semi_join
from spaseq.gpm.columnar.lists import Lists
from spaseq.gpm.columnar.order import by_all_terms, by_keys
from spaseq.gpm.columnar.rewrites import reads_knowledge
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.columnar.texts import fresh_values
from spaseq.gpm.columnar.truth import ROW, TRUE, Ready, Scope, compute, truth
from spaseq.gpm.inline import InlineTerms
from spaseq.rdf import term_bytes

_MANY: Final = 1_000
"""VALUES of more rows are indexed."""


class KnowledgeRows(Protocol):
    """The solutions of one GRAPH."""

    def count(self, budget: int) -> int:
        """The number of solutions."""

    def beside(self, table: Table, space: Space, budget: int) -> Table:
        """The rows that are compatible with a row of `table`, at the event of that row."""


class KnowledgeSource(Protocol):
    """The solutions of the GRAPH clauses of a pattern."""

    def columns(self, node: algebra.GraphNode) -> KnowledgeRows:
        """The solutions of a GRAPH with a constant name."""

    def inward(self, node: algebra.GraphNode) -> algebra.Node:
        """An equivalent pattern with GRAPH around basic graph patterns only."""


Beside = tuple[Table, ...]
"""The tables with which the result will be joined: rows that are not compatible with each of them may be left out."""
_EMPTY: Final = algebra.BGP(())


@dataclass(slots=True, eq=False)
class Evaluation:
    """The evaluation of one pattern over one batch.

    `events`: the events to evaluate it on, int32, ascending. `counting`: the number of equal solutions matters. `ready`
    caches compiled basic patterns and expressions, by id. `outer`, inside EXISTS: a row for each instance, with its
    event (ascending) and outer terms; tables then have instances in place of events. `given`: inline data of the
    pattern, and the table of the solutions of result clauses that replaces it. Aggregates then follow the rules behind
    WHERE (`spaseq.gpm.aggregates`).
    """

    lists: Lists
    prologue: Prologue
    events: np.ndarray
    graphs: KnowledgeSource
    counting: bool
    ready: Ready
    outer: Table | None = None
    given: tuple[algebra.Values, Table] | None = None

    def table(self, node: algebra.Node, beside: Beside = ()) -> Table:
        """The solutions of a covered node. Rows may be equal; with `counting` each occurs as often as in SPARQL.

        Raises `BudgetExceeded` (`solution_rows`) if a part has more solutions than the budget.
        """
        match node:
            case algebra.BGP(triples):
                if not triples:
                    return Table.identity(self.places)
                return self._place(match(self._plan(node), self.lists, self.events, self.counting))
            case algebra.GraphNode():
                return self._from_graph(node, beside)
            case algebra.Join(left, right):
                return self._join(left, right, beside)
            case algebra.LeftJoin(left, right, condition):
                one, held = self.table(left, beside), partial(self._holds, condition)
                return left_join(one, self.table(right, (one,)), held, self.lists.budget)
            case algebra.Minus(left, right):
                one = self.table(left, beside)
                if not algebra.visible(left) & algebra.visible(right):  # MINUS without shared variables removes nothing
                    return one
                return minus(one, self.table(right, (one,)), self.lists.budget)
            case algebra.Union(left, right):
                return Table.concat([self.table(left, beside), self.table(right, beside)])
            case algebra.Filter() | algebra.Extend() if self._names_nodes(node):
                return self._link(node, beside)
            case algebra.Filter(child, condition):
                table = self.table(child, beside)
                for conjunct in algebra.conjuncts(condition):  # each on rows for which those before it are true
                    table = table.take(self._holds(conjunct, table))
                return table
            case algebra.Extend(child, variable, value):
                return self.extended(self.table(child, _without(beside, variable)), variable, value)
            case algebra.Values() if self.given is not None and node is self.given[0]:
                return self.given[1]
            case algebra.Values():
                return self._place(self._inline(node))
            case _:
                return self._subquery(node, beside)

    def _subquery(self, node: algebra.Node, beside: Beside) -> Table:
        match node:
            case algebra.Projected(child, names):
                inner = self if self.outer is None else replace(self, outer=self.outer.keep(names))
                return inner.table(child, tuple(table.keep(names) for table in beside)).keep(names)
            case algebra.Distinct(child):
                table = self.table(child, beside)
                return _once(table) if self.counting else table
            case algebra.Ordered(child, keys, descending):
                table = self.table(child, beside)
                scope = self.scope(table)
                order = by_keys(table, [compute(key, scope) for key in keys], descending, self.lists.space)
                return table.take(order)
            case algebra.Sliced(child, start, length):
                table = self.table(child)
                if not algebra.is_ordered(child):
                    table = table.take(by_all_terms(table, self.lists.space))
                return _slice(table, start, length)
            case algebra.Aggregated(grouping):
                child = grouping.child if isinstance(grouping, algebra.Grouped) else grouping
                table = self.table(child)
                behind, ordered = self.given is not None, algebra.is_ordered(child)
                return aggregated(node, table, self.scope(table), self.places, ordered=ordered, behind_where=behind)
            case _:
                raise InternalError(f"the plan does not cover {type(node).__name__}")

    @property
    def places(self) -> np.ndarray:
        """The events, or inside EXISTS the instances, to which the rows of tables belong: int32, ascending."""
        return self.events if self.outer is None else np.arange(len(self.outer), dtype=np.int32)

    def scope(self, table: Table) -> Scope:
        """The scope in which conditions on a table's rows are evaluated."""
        return Scope(self._seen(table), self.lists.space, self.prologue, self._exists, self.ready)

    def _seen(self, table: Table) -> Table:
        """The table with the outer terms as further columns."""
        if self.outer is None:
            return table
        for name, column in self.outer.columns.items():
            own, given = table.column(name), column[table.events]
            table = table.with_column(name, np.where(given >= 0, given, own))
        return table

    # -- leaves

    def _plan(self, node: algebra.BGP) -> BasicPattern:
        found = self.ready.get(id(node))
        if found is None:
            found = self.ready[id(node)] = node, basic_pattern(node)
        made: BasicPattern = found[1]
        return made

    def _inline(self, node: algebra.Values) -> Table:
        """VALUES at every event."""
        own, times = self._inline_columns(node), len(self.events)
        columns = {name: np.tile(column, times) for name, column in own.items()}
        return Table(np.repeat(self.events, len(node.rows)), columns)

    def _inline_columns(self, node: algebra.Values) -> dict[str, np.ndarray]:
        """The terms of VALUES for each variable, int32 (rows,)."""
        made = self.ready.get(id(node))
        if made is None:
            made = self.ready[id(node)] = node, _columns_of(node)
        found = {}
        for name, (rows, keys, tagged) in made[1].items():
            column = found[name] = np.full(len(node.rows), UNBOUND, np.int32)
            for row, term in tagged:
                column[row] = self.lists.space.number(term)
            if len(rows):
                column[rows] = self.lists.space.numbers_of_keys(keys)
        return found

    def _joined_inline(self, table: Table, node: algebra.Values) -> Table | None:
        """The join with VALUES by a look-up of the variables that both bind in every row; None otherwise."""
        if len(node.rows) > _MANY and self.outer is None and len(table):
            joined = self._looked_up(table, node)
            if joined is not None:
                return joined
        own = self._inline_columns(node)
        shared = [name for name in own if name in table.columns]
        if self.outer is not None or not shared or not len(table) or not len(node.rows):
            return None
        columns = [np.concatenate([table.columns[name], own[name]]) for name in shared]
        if any((column < 0).any() for column in columns):
            return None
        _, codes = distinct(columns, len(columns[0]))
        mine, theirs = equal_pairs(codes[: len(table)], codes[len(table) :], self.lists.budget)
        found = {name: column[mine] for name, column in table.columns.items()}
        found |= {name: column[theirs] for name, column in own.items() if name not in found}
        return Table(table.events[mine], found)

    def _looked_up(self, table: Table, node: algebra.Values) -> Table | None:
        """`_joined_inline` by an index of many rows; a batch's cost does not grow with them."""
        made = self.ready.get(id(node.rows))
        if made is None:
            made = self.ready[id(node.rows)] = node, InlineRows.of(node)
        rows: InlineRows | None = made[1]
        shared = () if rows is None else tuple(name for name in rows.names if name in table.columns)
        if rows is None or not shared or any((table.columns[name] < 0).any() for name in shared):
            return None
        space = self.lists.space
        first, kinds = distinct([table.columns[name] for name in shared], len(table))
        own = [map(space.key, table.columns[name][first].tolist()) for name in shared]
        low, high, order = rows.ranges(shared, own)
        mine, places = expand(low[kinds], high[kinds], self.lists.budget)
        columns = {name: column[mine] for name, column in table.columns.items()}
        used, theirs = different(order[places])
        for name in rows.names:
            if name not in columns:
                columns[name] = space.numbers_of_keys(rows.keys(name, used))[theirs]
        return Table(table.events[mine], columns)

    def _place(self, table: Table) -> Table:
        """Solutions at events, copied to the instances that they agree with."""
        if self.outer is None:
            return table
        shared = [name for name in table.columns if name in self.outer.columns]
        instances, rows = pairs(self.outer.keep(shared), table, self.lists.budget)
        found = Table(instances.astype(np.int32), {name: column[rows] for name, column in table.columns.items()})
        return self._substitute(found)

    def _substitute(self, table: Table) -> Table:
        """Rows that agree with their instances, without the variables that the instances bind."""
        if self.outer is None:
            return table
        for name in [name for name in table.columns if name in self.outer.columns]:
            given = self.outer.columns[name][table.events] >= 0
            table = table.with_column(name, np.where(given, UNBOUND, table.columns[name]))
        return table

    def _from_graph(self, node: algebra.GraphNode, beside: Beside) -> Table:
        if self.outer is not None and not joins_alike(node):
            return self.table(self.graphs.inward(node), beside)
        names = algebra.visible(node)
        best = max(beside, key=lambda table: (len(names & table.columns.keys()), -len(table)), default=None)
        around = self._seen(Table.identity(self.places) if best is None else best).keep(names)
        around = around.take(np.sort(distinct([around.events, *around.columns.values()], len(around))[0]))
        found = self.graphs.columns(node).beside(around, self.lists.space, self.lists.budget)
        return self._substitute(found)

    # -- operators

    def _names_nodes(self, node: algebra.Node) -> bool:
        """True if BNODE of a text is in a BIND or FILTER, which has its nodes in common with those below it."""
        made = self.ready.get(id(node))
        if made is None:
            made = self.ready[id(node)] = node, any(node is found for found in named_nodes(node))
        found: bool = made[1]
        return found

    def _link(self, node: algebra.Node, beside: Beside) -> Table:
        """BINDs and FILTERs above each other: a solution of theirs is one, for which BNODE of a text is one node."""
        links: list[algebra.Extend | algebra.Filter] = []
        while isinstance(node, (algebra.Extend, algebra.Filter)):
            links.append(node)
            beside = _without(beside, node.variable) if isinstance(node, algebra.Extend) else beside
            node = node.child
        table = self.table(node, beside)
        table = table.with_column(ROW, fresh_values("BNODE", len(table), self.lists.space))
        for link in reversed(links):
            if isinstance(link, algebra.Filter):
                table = table.take(self._holds(link.condition, table))
            else:
                table = self.extended(table, link.variable, link.value)
        return table.keep(name for name in table.columns if name != ROW)

    def _join(self, left: algebra.Node, right: algebra.Node, beside: Beside) -> Table:
        if left == _EMPTY or right == _EMPTY:
            return self.table(right if left == _EMPTY else left, beside)
        if reads_knowledge(left) and not reads_knowledge(right):
            left, right = right, left
        if isinstance(left, algebra.Values) and not isinstance(right, algebra.Values) and not self._is_given(left):
            left, right = right, left
        one = self.table(left, beside)
        if isinstance(right, algebra.Values) and not self._is_given(right):
            found = self._joined_inline(one, right)
            if found is not None:
                return found
        return join(one, self.table(right, (one, *beside)), self.lists.budget)

    def _is_given(self, node: algebra.Values) -> bool:
        return self.given is not None and node is self.given[0]

    def extended(self, table: Table, variable: str, value: algebra.Expression) -> Table:
        """The table with the values of a BIND."""
        found = compute(value, self.scope(table))
        if self.outer is None or variable not in self.outer.columns:
            return table.with_column(variable, found)
        given = self.outer.columns[variable][table.events]
        agrees = (given < 0) | (found < 0) | (given == found)
        return table.with_column(variable, np.where(given >= 0, UNBOUND, found)).take(agrees)

    def _holds(self, condition: algebra.Expression, table: Table) -> np.ndarray:
        return truth(condition, self.scope(table)) == TRUE

    def _exists(self, pattern: algebra.Node, table: Table) -> np.ndarray:
        """For which rows of `table` the pattern has a solution, bool (rows,). The rows include the outer terms."""
        while isinstance(pattern, algebra.Join) and _EMPTY in (pattern.left, pattern.right):
            pattern = pattern.right if pattern.left == _EMPTY else pattern.left
        if isinstance(pattern, algebra.GraphNode) and not algebra.mentioned_names(pattern) & table.columns.keys():
            return np.full(len(table), self.graphs.columns(pattern).count(self.lists.budget) > 0)
        if joins_alike(pattern):
            return semi_join(table, self.table(pattern, (table,)), self.lists.budget)
        names = algebra.mentioned_names(pattern) & table.columns.keys()
        columns = {name: table.columns[name] for name in sorted(names)}
        first, codes = distinct([table.events, *columns.values()], len(table))
        events = table.events[first]
        if self.outer is not None:
            events = self.outer.events[events]
        instances = Table(events, {name: column[first] for name, column in columns.items()})
        inner = replace(self, events=apart(events), outer=instances)
        found = np.zeros(len(first), bool)
        found[inner.table(pattern).events] = True
        return found[codes]


def _columns_of(node: algebra.Values) -> dict[str, tuple[np.ndarray, list[bytes], list[tuple[int, Any]]]]:
    """For each variable of VALUES the rows that bind it, int64, and the keys of its terms there. Apart from these, the
    rows and terms with a language tag, which results show as written."""
    found: dict[str, tuple[np.ndarray, list[bytes], list[tuple[int, Any]]]] = {}
    if isinstance(node.rows, InlineTerms):
        keys = node.rows.keys
        for name, column in node.rows.columns.items():
            found[name] = np.arange(len(column)), [keys[place] for place in column.tolist()], []
        return found
    for name in sorted(algebra.visible(node)):
        bound: list[tuple[int, Any]] = [
            (i, term) for i, row in enumerate(node.rows) for other, term in row if other == name
        ]
        tagged = [(i, term) for i, term in bound if isinstance(term, Literal) and term.language]
        plain = [(i, term) for i, term in bound if not (isinstance(term, Literal) and term.language)]
        found[name] = np.array([i for i, _ in plain], np.int64), [term_bytes(term) for _, term in plain], tagged
    return found


def _without(beside: Iterable[Table], name: str) -> Beside:
    """The tables without the column `name`."""
    return tuple(table.keep(other for other in table.columns if other != name) for table in beside)


def _once(table: Table) -> Table:
    """The table with each row once, at its first place."""
    return table.take(np.sort(distinct([table.events, *table.columns.values()], len(table))[0]))


def _slice(table: Table, start: int, length: int | None) -> Table:
    """For each event its rows from `start` on, at most `length`."""
    rank = np.arange(len(table)) - np.searchsorted(table.events, table.events, "left")
    kept = rank >= start
    return table.take(kept if length is None else kept & (rank < start + length))
