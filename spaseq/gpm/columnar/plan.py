"""The columnar plan of a graph pattern: the algebra evaluated bottom up over all events of a batch at once.

What is evaluated are sets of mappings, as the value of a GPM is one, so nothing here counts how often a solution comes.
`spaseq.gpm.columnar.coverage` says which patterns can be evaluated so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from rdflib.plugins.sparql.sparql import Prologue

from spaseq.errors import InternalError
from spaseq.gpm import algebra
from spaseq.gpm.columnar.basic import BasicPattern, Lists, basic_pattern, match
from spaseq.gpm.columnar.joins import join, left_join, minus, semi_join
from spaseq.gpm.columnar.table import Table
from spaseq.gpm.columnar.truth import TRUE, Scope, computed, truth

__all__ = ["Evaluation"]


@dataclass(slots=True, eq=False)
class Evaluation:
    """The evaluation of one pattern over one batch. `events`: those looked at, int32, ascending."""

    lists: Lists
    prologue: Prologue
    events: np.ndarray
    _basic: dict[algebra.BGP, BasicPattern] = field(default_factory=dict)

    def table(self, node: algebra.Node) -> Table:
        """The solutions of a node that is covered. Rows may be equal.

        Raises `BudgetExceeded` where a part has more solutions than the budget.
        """
        match node:
            case algebra.BGP(triples):
                return match(self._plan(node), self.lists, self.events) if triples else self._identity()
            case algebra.Join(left, right):
                return self._joined(left, right)
            case algebra.LeftJoin(left, right, condition):
                held = partial(self._holds, condition)
                return left_join(self.table(left), self.table(right), held, self.lists.budget)
            case algebra.Minus(left, right):
                return minus(self.table(left), self.table(right), self.lists.budget)
            case algebra.Union(left, right):
                return Table.concat([self.table(left), self.table(right)])
            case algebra.Filter(child, condition):
                table = self.table(child)
                return table.take(self._holds(condition, table))
            case algebra.Extend(child, variable, value):
                table = self.table(child)
                return table.with_column(variable, computed(value, self.scope(table)))
            case algebra.Values(rows):
                return self._inline(rows)
            case algebra.Projected(child, names):
                return self.table(child).keep(names)
            case algebra.Distinct(child) | algebra.Ordered(child):
                return self.table(child)
            case _:
                raise InternalError(f"the plan does not cover {type(node).__name__}")

    def scope(self, table: Table) -> Scope:
        """What conditions on a table's rows are asked of."""
        return Scope(table, self.lists.space, self.prologue, self._exists)

    def _plan(self, node: algebra.BGP) -> BasicPattern:
        found = self._basic.get(node)
        if found is None:
            found = self._basic[node] = basic_pattern(node)
        return found

    def _identity(self) -> Table:
        return Table.identity(self.events)

    def _joined(self, left: algebra.Node, right: algebra.Node) -> Table:
        if left == _EMPTY or right == _EMPTY:
            return self.table(right if left == _EMPTY else left)
        return join(self.table(left), self.table(right), self.lists.budget)

    def _holds(self, condition: algebra.Expression, table: Table) -> np.ndarray:
        return truth(condition, self.scope(table)) == TRUE

    def _exists(self, pattern: algebra.Node, table: Table) -> np.ndarray:
        return semi_join(table, self.table(pattern), self.lists.budget)

    def _inline(self, rows: tuple[tuple[tuple[str, object], ...], ...]) -> Table:
        """VALUES at every event."""
        names = dict.fromkeys(name for row in rows for name, _ in row)
        number = self.lists.space.number
        own = {name: np.full(len(rows), -1, np.int32) for name in names}
        for i, row in enumerate(rows):
            for name, term in row:
                own[name][i] = number(term)
        times = len(self.events)
        return Table(np.repeat(self.events, len(rows)), {name: np.tile(column, times) for name, column in own.items()})


_EMPTY = algebra.BGP(())
