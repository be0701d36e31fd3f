"""Result clauses as operations on columns: the plan of graph patterns evaluated over solutions in place of events.

The tree of SELECT expressions, GROUP BY and HAVING is that of a SPARQL query over inline data
(`spaseq.gpm.result_clauses`). Here the data are a table of solutions. The plan's event is the source of a row: a
solution, or a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from spaseq.core.engine import Settings
from spaseq.core.integers import in_order
from spaseq.gpm import ROUNDS, SolutionPlan, algebra, in_columns
from spaseq.gpm.columnar import names_apart, uncovered, unsteady
from spaseq.language.results.gathered import Gathered, Rows
from spaseq.language.semantics.clauses import Clauses

_BUDGET: Final = Settings().solution_rows
_PARTS: Final = (algebra.Extend, algebra.Filter, algebra.Join, algebra.Values, algebra.Grouped, algebra.Aggregated)


@dataclass(frozen=True, slots=True)
class Computation:
    """The clauses of a query over columns.

    `tree`: the rows of one solution or group, None if a result's variables are those of a solution; `leaf`: the
    solutions in it; `grouping`: GROUP BY in it. `order`: the keys of ORDER BY, and whether they descend. `few`: whether
    matches may be let go of before the window is over (`Clauses.few`).
    """

    clauses: Clauses
    tree: algebra.Node | None = None
    leaf: algebra.Values | None = None
    grouping: algebra.Grouped | None = None
    order: tuple[tuple[algebra.Expression, bool], ...] = ()
    few: bool = False
    ready: dict[int, Any] = field(default_factory=dict)

    @staticmethod
    def of(clauses: Clauses) -> Computation | None:
        """None if they need the reference: keys of GROUP BY and ORDER BY that are another value each time, values
        that are so beside EXISTS, and some VALUES (`in_columns`)."""
        plan = clauses.plan
        if plan is None:
            return Computation(clauses, few=clauses.few) if clauses.by_window or clauses.lists else None
        tree, order = plan.node, plan.order
        inside = [pattern for key, _ in order for pattern in algebra.patterns_inside(key)]  # their graph is empty
        nodes = [node for part in (tree, *inside) for node in algebra.walk(part)]
        inline = [node for node in nodes if isinstance(node, algebra.Values)]
        leaves = [node for node in inline if plan.is_leaf(node)]
        if any(node not in leaves and not in_columns(node) for node in inline):
            return None
        if len(leaves) != 1 or names_apart(tree) or any(unsteady(key) for key, _ in order):
            return None
        others = [node for node in nodes if not isinstance(node, _PARTS) and node != algebra.BGP(())]
        if any(isinstance(node, algebra.GraphNode) for node in others) or any(map(uncovered, inside)):
            return None
        if others and uncovered(tree) is not None:
            return None
        grouping = next((node for node in nodes if isinstance(node, algebra.Grouped)), None)
        if grouping is not None and uncovered(grouping) is not None:
            return None  # a solution would be in another group each time
        if grouping is not None and sum(isinstance(node, algebra.Values) for node in algebra.walk(grouping)) > 1:
            return None  # a solution would be in several groups
        return Computation(clauses, tree, leaves[0], grouping, order, clauses.few and uncovered(tree) is None)

    def results(self, gathered: Gathered) -> Rows:
        """The results of a window: as of `results.finish`."""
        clauses, space = self.clauses, gathered.space
        rows, keys = self._compute(gathered.standing(), gathered)
        rows = _with_columns(rows, {name: own for name, own in rows.columns.items() if name in clauses.select})
        if clauses.groups:
            order = np.lexsort((rows.start, rows.end))
            rows, keys = rows.take(order), [key[order] for key in keys]
        if clauses.distinct:
            kept = rows.firsts(clauses.select)
            rows, keys = rows.take(kept), [key[kept] for key in keys]
        last = clauses.last
        if keys:
            rows = rows.take(self._first(keys, space))
        if clauses.offset or last is not None:
            rows = rows.take(np.arange(len(rows))[clauses.offset : last])
        return rows

    def reduced(self, gathered: Gathered) -> Gathered:
        """A window's matches without those that are no results, whatever follows (`Clauses.few`)."""
        rows = gathered.standing()
        kept, keys = self._compute(rows.numbered(), gathered)
        if self.clauses.distinct:
            kept = kept.take(kept.firsts(self.clauses.select))
        if keys:
            kept = kept.take(np.sort(self._first(keys, gathered.space)))
        return gathered.of(rows.take(kept.start[: self.clauses.last]).held())

    def _first(self, keys: list[np.ndarray], space: Any) -> np.ndarray:
        """The indices of the rows that ORDER BY and LIMIT leave, with those that OFFSET takes away."""
        from spaseq.gpm.columnar.order import first_rows

        return first_rows(keys, [descending for _, descending in self.order], space, self.clauses.last)

    def each(self, gathered: Gathered) -> Rows:
        """The rows computed of each match alone, each once among those of its end."""
        from spaseq.language.results.columns import again

        rows, _ = self._compute(gathered.rows(), gathered)
        names = self.clauses.select
        rows = _with_columns(rows, {name: column for name, column in rows.columns.items() if name in names})

        def positions_of(row: int) -> np.ndarray:
            return rows.positions[rows.offsets[row] : rows.offsets[row + 1]]

        repeated = again(rows.start, rows.end, positions_of, rows.columns.values())
        return rows.take(np.delete(np.arange(len(rows)), repeated)) if len(repeated) else rows

    def _compute(self, rows: Rows, gathered: Gathered) -> tuple[Rows, list[np.ndarray]]:
        """The rows computed of solutions, or of groups, with all variables; and the terms of their keys of ORDER BY."""
        from spaseq.gpm.columnar.table import Table
        from spaseq.gpm.columnar.truth import compute

        clauses, plan = self.clauses, self.clauses.plan
        rows = _with_columns(rows, rows.columns | gathered.lists_of(rows, clauses.lists))
        if plan is None or self.tree is None:
            return rows, []
        own = {name: column for name, column in rows.columns.items() if name != ROUNDS}
        table = Table(np.arange(len(rows), dtype=np.int32), own)
        count = len(rows)
        if clauses.groups:
            groups, count = self._groups(table, gathered)
            order = in_order(groups)
            table = Table(groups[order].astype(np.int32), {n: column[order] for n, column in table.columns.items()})
            rows = rows.together(groups, count) if count else rows.take(np.zeros(0, np.int64))
        elif plan.over_rounds:
            table = _of_rounds(*gathered.rounds_of(rows), gathered.rounds.names, own, plan)
        evaluation = self._evaluation(table, count, gathered)
        found = evaluation.table(self.tree)
        if plan.over_rounds:  # a solution's own bindings can be named outside of aggregates
            for name, terms in own.items():
                column, given = found.column(name), terms[found.events]
                found = found.with_column(name, np.where(column >= 0, column, given))
        scope = evaluation.scope(found)
        keys = [compute(key, scope) for key, _ in self.order]
        if len(found) != len(rows) or (found.events != np.arange(len(rows))).any():
            rows = rows.take(found.events.astype(np.int64))
        return _with_columns(rows, dict(found.columns)), keys

    def _groups(self, table: Any, gathered: Gathered) -> tuple[np.ndarray, int]:
        """The group of each solution, int64, numbered as they appear, and how many there are."""
        from spaseq.gpm.columnar.table import distinct
        from spaseq.gpm.columnar.truth import compute

        if self.grouping is None or not self.grouping.keys:
            return np.zeros(len(table), np.int64), min(1, len(table))
        evaluation = self._evaluation(table, len(table), gathered)
        below = evaluation.table(self.grouping.child)
        scope = evaluation.scope(below)
        first, kinds = distinct([compute(key, scope) for key in self.grouping.keys], len(below))
        numbers = np.empty(len(first), np.int64)
        numbers[in_order(first)] = np.arange(len(first))
        return numbers[kinds], len(first)

    def _evaluation(self, table: Any, count: int, gathered: Gathered) -> Any:
        from spaseq.gpm.columnar.lists import Lists
        from spaseq.gpm.columnar.plan import Evaluation

        assert self.clauses.plan is not None and self.leaf is not None
        lists = Lists.none(count, gathered.space, _BUDGET)
        events, prologue = np.arange(count, dtype=np.int32), self.clauses.plan.prologue
        return Evaluation(lists, prologue, events, _NoGraphs(), True, self.ready, given=(self.leaf, table))


class _NoGraphs:
    """The knowledge that result clauses read: none, since they have no GRAPH."""

    def columns(self, node: algebra.GraphNode) -> Any:
        raise NotImplementedError

    def inward(self, node: algebra.GraphNode) -> algebra.Node:
        raise NotImplementedError


def _with_columns(rows: Rows, columns: dict[str, np.ndarray]) -> Rows:
    return Rows(rows.start, rows.end, rows.offsets, rows.positions, rows.times, columns, rows.events)


def _of_rounds(
    owner: np.ndarray, cells: np.ndarray, names: Sequence[str], own: dict[str, np.ndarray], plan: SolutionPlan
) -> Any:
    """A row for each round of each match, as `SolutionPlan.rows` has them. `owner`, `cells`: as of
    `GatheredLists.rounds`, of the variables `names`; `own`: the terms of the matches."""
    from spaseq.gpm.columnar.table import Table

    columns = {name: column[owner] for name, column in own.items() if name not in plan.iterated}
    columns |= {plan.last_name(name): column[owner] for name, column in own.items()}
    for name, taken in zip(names, cells.T, strict=True):
        fixed = columns.get(name)
        columns[name] = taken if fixed is None else np.where(taken >= 0, taken, fixed)
    return Table(owner, columns)
