"""Evaluates compiled GPMs on batches of events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, Protocol

import numpy as np
from rdflib import URIRef

from spaseq.core.engine import Settings
from spaseq.core.integers import first_of_each
from spaseq.gpm import algebra
from spaseq.gpm.columnar.alone import PAIRS, Alone, GraphRows, Listed, listed, prepare
from spaseq.gpm.columnar.coverage import counts, read_by, uncovered_pattern, unsteady
from spaseq.gpm.columnar.keys import Keys
from spaseq.gpm.columnar.knowledge import Graphs
from spaseq.gpm.columnar.lists import Lists
from spaseq.gpm.columnar.plan import Evaluation
from spaseq.gpm.columnar.pushed import PushedTerms
from spaseq.gpm.columnar.rewrites import filter_early, with_known_graphs
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.columnar.truth import TRUE, Ready, truth
from spaseq.gpm.evaluate import EventGraph, PatternEvaluator
from spaseq.gpm.mappings import Mapping, MappingSet
from spaseq.rdf import GraphBatch, GraphEvent, Triple

SOLUTION_ROWS: Final = Settings().solution_rows
"""By default, how many rows one step of a pattern may have in one batch."""


class Solutions(Protocol):
    """The value of a GPM at each event of a batch: a row for each solution, in order of `events`, int32 (r,).

    Rows of one event may be equal.
    """

    events: np.ndarray

    @property
    def kept(self) -> np.ndarray:
        """bool (r,): the GPM's own top-level FILTERs are true for the row."""

    @property
    def waits(self) -> bool:
        """True if the FILTERs wait until their result is used."""

    def kept_at(self, rows: np.ndarray) -> np.ndarray:
        """`kept` of `rows`, ascending indices; FILTERs that wait are computed for these alone."""

    def mapping(self, row: int, names: Sequence[str] | None) -> Mapping:
        """The mapping of a row, restricted to the variables `names` (sorted) unless they are None."""

    def column(self, name: str) -> tuple[np.ndarray, Space] | None:
        """The numbers of a variable's terms, int32 (r,), -1 if it is not bound, and the space of these numbers; None
        if the solutions are not in columns."""

    def codes(self, names: Sequence[str], keys: Keys) -> np.ndarray:
        """For each row the number in `keys` of its mapping, restricted to `names` (sorted): int64 (r,), -1 if unbound.

        All calls must have the same `names`, since the result is cached for one `keys` at a time.
        """


Found = tuple[int, str, Solutions | GraphRows, int, bool]
"""A solution of `BatchEvaluator.solve_each`: the index of the event, the GPM's name, the solutions and its row in them,
and True if the GPM's own FILTERs are true for it."""


class _Late(NamedTuple):
    """The variables of a pattern's last BINDs, not computed for rows that its FILTERs remove; `whole` does that."""

    names: frozenset[str]
    whole: Callable[[], Table]


class _Columns:
    """Solutions from the plan, in columns; rdflib terms are made only for mappings.

    `kept`: as of `Solutions`, or a function that gives it for rows of `table`.
    """

    def __init__(
        self, table: Table, kept: np.ndarray | Callable[[Table], np.ndarray], space: Space, late: _Late | None = None
    ) -> None:
        self.events = table.events
        self._table = table
        self._kept = kept
        self._columns = sorted(table.columns.items())
        self._space = space
        self._late = late
        self._codes: tuple[Keys, np.ndarray] | None = None

    @property
    def kept(self) -> np.ndarray:
        if callable(self._kept):
            self._kept = self._kept(self._table)
        return self._kept

    @property
    def waits(self) -> bool:
        return callable(self._kept)

    def kept_at(self, rows: np.ndarray) -> np.ndarray:
        if callable(self._kept) and 2 * len(rows) < len(self.events):
            return self._kept(self._table.take(rows))
        found: np.ndarray = self.kept[rows]
        return found

    def _complete(self) -> None:
        """Compute the values of a BIND in the other rows, too."""
        if self._late is not None:
            self._columns, self._late = sorted(self._late.whole().columns.items()), None

    def mapping(self, row: int, names: Sequence[str] | None) -> Mapping:
        if self._late is not None and not self.kept[row]:
            self._complete()
        term = self._space.term
        return tuple(
            (name, term(number))
            for name, column in self._columns
            if (names is None or name in names) and (number := int(column[row])) >= 0
        )

    def column(self, name: str) -> tuple[np.ndarray, Space]:
        unbound = np.full(len(self.events), -1, np.int32)
        return dict(self._columns).get(name, unbound), self._space

    def codes(self, names: Sequence[str], keys: Keys) -> np.ndarray:
        if self._late is not None and not self._late.names.isdisjoint(names):
            self._complete()
        if self._codes is None or self._codes[0] is not keys:
            columns = [column for name, column in self._columns if name in names]
            if len(columns) < len(names):
                self._codes = keys, np.full(len(self.events), -1, np.int64)
            elif not self._space.base:  # the space of pushed events, which stays
                self._codes = keys, self._all_coded(columns, names, keys)
            else:  # the same array for all GPMs that have the same columns
                known = self._space.coded(keys)
                own = tuple(map(id, columns))
                if own not in known:
                    known[own] = columns, self._all_coded(columns, names, keys)
                self._codes = keys, known[own][1]
        return self._codes[1]

    def _all_coded(self, columns: Sequence[np.ndarray], names: Sequence[str], keys: Keys) -> np.ndarray:
        """`codes`, of all `names`."""
        bound = np.ones(len(self.events), bool)
        for column in columns:
            bound &= column >= 0
        codes = np.full(len(self.events), -1, np.int64)
        rows = np.flatnonzero(bound)
        codes[rows] = self._code(rows, [column[rows] for column in columns], names, keys)
        return codes

    def _code(self, rows: np.ndarray, columns: Sequence[np.ndarray], names: Sequence[str], keys: Keys) -> np.ndarray:
        """The codes of `rows`, which bind all `names`; `columns` have their terms."""
        if len(columns) > 1 or not len(rows) or columns[0].max() >= self._space.base:
            first, kinds = distinct(columns, len(rows))
            return self._ask(rows, columns, first, names, keys)[kinds]
        memo = self._space.codes(keys)
        codes = memo[columns[0]]
        fresh = np.flatnonzero(codes < 0)
        if len(fresh):
            first, _ = first_of_each(columns[0][fresh])
            first = fresh[first]
            memo[columns[0][first]] = self._ask(rows, columns, first, names, keys)
            codes = memo[columns[0]]
        return codes

    def _ask(
        self, rows: np.ndarray, columns: Sequence[np.ndarray], places: np.ndarray, names: Sequence[str], keys: Keys
    ) -> np.ndarray:
        """The codes of the rows at `places` of `rows`."""
        # PERF: a key that is known by its terms' bytes is not made of rdflib terms again: 2 µs for each distinct key
        # and batch became 0.4; one of a single term is looked up by a kernel, in 0.1.
        if len(columns) == 1 and self._space.base:
            return self._asked_singly(rows, columns[0], places, names, keys)
        read = zip(*(self._space.keys(column[places]) for column in columns), strict=True)
        found = []
        for row, key in zip(rows[places].tolist(), read, strict=True):
            code = keys.known.get(key)
            if code is None:
                code = keys.number(self.mapping(row, names))
                if None not in key:
                    keys.known[key] = code
            found.append(code)
        return np.array(found, np.int64)

    def _asked_singly(
        self, rows: np.ndarray, column: np.ndarray, places: np.ndarray, names: Sequence[str], keys: Keys
    ) -> np.ndarray:
        """`_asked` for keys of one variable."""
        codes = keys.numbers_of(self._space, column[places])
        fresh = np.flatnonzero(codes < 0)
        if len(fresh):
            new = [keys.number(self.mapping(row, names)) for row in rows[places[fresh]].tolist()]
            codes[fresh] = new
            named = [(key, code) for key, code in zip(self._space.keys(column[places[fresh]]), new, strict=True)
                     if key is not None]  # fmt: skip
            if named:
                keys.learn(*zip(*named, strict=True))
        return codes


class _Mappings:
    """Solutions found event by event, as mappings."""

    def __init__(self, events: Sequence[int], mappings: Sequence[Mapping], kept: Sequence[bool]) -> None:
        self.events = np.array(events, np.int32)
        self._kept = np.array(kept, bool)
        self._mappings = mappings

    @property
    def kept(self) -> np.ndarray:
        return self._kept

    @property
    def waits(self) -> bool:
        return False

    def kept_at(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._kept[rows]
        return found

    def mapping(self, row: int, names: Sequence[str] | None) -> Mapping:
        whole = self._mappings[row]
        return whole if names is None else tuple(pair for pair in whole if pair[0] in names)

    def column(self, name: str) -> None:
        return None

    def codes(self, names: Sequence[str], keys: Keys) -> np.ndarray:
        restricted = [tuple(pair for pair in mapping if pair[0] in names) for mapping in self._mappings]
        return np.array([keys.number(key) if len(key) == len(names) else -1 for key in restricted], np.int64)


@dataclass(slots=True, eq=False)
class Unsolved:
    """A GPM that has not been evaluated at `events` of a batch: int32, ascending. `solved`: the solutions at others."""

    lists: Lists
    batch: GraphBatch
    events: np.ndarray
    solved: list[Solutions] = field(default_factory=list)


class BatchEvaluator:
    """The GPMs of one stream, compiled for batches of its events.

    A GPM that the plan does not cover, and with `reference` every GPM, is evaluated by the reference, on each
    event that has its required predicates. `removed`: True if solutions that a GPM's FILTERs remove are wanted, too;
    if it is False, some of them may be left out.
    """

    def __init__(
        self,
        evaluators: Iterable[PatternEvaluator],
        *,
        budget: int = SOLUTION_ROWS,
        reference: bool = False,
        removed: bool = True,
    ) -> None:
        self._budget = budget
        evaluators = tuple(evaluators)
        wanted: dict[URIRef, None] = {}
        for evaluator in evaluators:
            wanted.update(dict.fromkeys(sorted(evaluator.pattern.required)))
            wanted.update(dict.fromkeys(sorted(_constant_predicates(evaluator))))
        self._wanted = tuple(wanted)
        self._pushed = PushedTerms(self._wanted, read_by(*(e.pattern for e in evaluators)), budget)
        self._gpms = tuple(
            _Gpm(
                e,
                None if reference or uncovered_pattern(e.pattern) else _Plan(e, budget, removed=removed),
                self._pushed.places,
            )
            for e in evaluators
        )

    def solve(self, batch: GraphBatch) -> dict[str, Solutions]:
        """The value of each GPM, by its name, at each event of a batch of its stream. Raises `BudgetExceeded`."""
        return {
            name: found for name, found in self.solve_ahead(batch, (), ()).items() if not isinstance(found, Unsolved)
        }

    def solve_ahead(
        self, batch: GraphBatch, filtered_later: Collection[str], left: Collection[str]
    ) -> dict[str, Solutions | Unsolved]:
        """`solve`, but the FILTERs of some GPMs wait for their use, and some GPMs are `left` (`solve_left`)."""
        lists = Lists.of(batch, Space(batch.terms), self._wanted, self._budget)
        found: dict[str, Solutions | Unsolved] = {}
        for gpm in self._gpms:
            events = lists.holding(gpm.required)
            if not len(events):
                continue
            if gpm.name in left:
                found[gpm.name] = Unsolved(lists, batch, events)
            else:
                found[gpm.name] = gpm.solve(
                    lists, events, lambda event: batch.event(event).triples, later=gpm.name in filtered_later
                )
        return found

    def solve_left(self, name: str, unsolved: Unsolved, events: np.ndarray) -> None:
        """Evaluate a GPM that was left, at `events`, bool (events of the batch,). One with a plan is evaluated at all
        events from the first of these on, since a call costs as much as a hundred of them."""
        (gpm,) = (gpm for gpm in self._gpms if gpm.name == name)
        asked = events[unsolved.events]
        if gpm.plan is not None:
            asked = np.logical_or.accumulate(asked)
        now, unsolved.events = unsolved.events[asked], unsolved.events[~asked]
        if len(now):
            unsolved.solved.append(gpm.solve(unsolved.lists, now, lambda event: unsolved.batch.event(event).triples))

    def solve_pushed(self, events: Sequence[GraphEvent]) -> dict[str, Solutions]:
        """`solve` for pushed events. An event without the required predicates costs only the look-up of its predicates.
        The others cost their match, since the lists and plans of a stream are kept from one push to the next."""
        pushed = self._pushed
        predicates = [pushed.predicates(event.triples) for event in events]
        present = list(map(set, predicates))
        asked = [(gpm, [i for i, own in enumerate(present) if gpm.needs <= own]) for gpm in self._gpms]
        return self._plan(events, predicates, asked)

    def solve_each(self, events: Sequence[GraphEvent]) -> list[Found]:
        """The solutions of `solve_pushed`, for a few events: by `alone` for the GPMs it takes, by a batch for the
        others."""
        pushed = self._pushed
        every = pushed.reads_any
        found: list[Found] = []
        predicates: list[list[int | None]] = []
        left: dict[_Gpm, list[int]] = {}
        for i, event in enumerate(events):
            own = pushed.predicates(event.triples)
            predicates.append(own)
            present = set(own)
            graph: Listed | None = None
            for gpm in self._gpms:
                if not gpm.needs <= present:
                    continue
                rows = None
                if gpm.alone is not None and len(events) <= gpm.alone.most:
                    if graph is None:
                        graph = listed(event.triples, own, every=every)
                    rows = gpm.alone.solve(graph)
                if rows is None:
                    left.setdefault(gpm, []).append(i)
                else:
                    found += [(i, gpm.name, rows, row, kept) for row, kept in enumerate(rows.kept)]
        for name, solutions in self._plan(events, predicates, list(left.items())).items():
            each = zip(solutions.events.tolist(), solutions.kept.tolist(), strict=True)
            found += [(i, name, solutions, row, kept) for row, (i, kept) in enumerate(each)]
        return found

    def _plan(
        self,
        events: Sequence[GraphEvent],
        predicates: Sequence[Sequence[int | None]],
        asked: Sequence[tuple[_Gpm, list[int]]],
    ) -> dict[str, Solutions]:
        """The values of GPMs at some of the events, given by index, as a batch."""
        needed = {place for _, places in asked for place in places}
        if not needed:
            return {}
        lists = self._pushed.lists(
            (event.triples, own) if i in needed else ((), ())
            for i, (event, own) in enumerate(zip(events, predicates, strict=True))
        )
        return {
            gpm.name: gpm.solve(lists, np.array(places, np.int32), lambda event: events[event].triples)
            for gpm, places in asked
            if places
        }


class _Gpm:
    """A GPM with its plan; the plan is None if the GPM is evaluated event by event.

    `required`: predicates that an event must have, sorted; `needs`: the numbers of these in `PushedTerms.places`.
    `alone`: the GPM for small graphs, if there is that.
    """

    __slots__ = ("alone", "evaluator", "name", "needs", "plan", "required")

    def __init__(self, evaluator: PatternEvaluator, plan: _Plan | None, places: MappingABC[str, int]) -> None:
        self.evaluator = evaluator
        self.plan = plan
        self.alone: Alone | None = None if plan is None else plan.alone(places)
        self.name = evaluator.pattern.name
        self.required = sorted(evaluator.pattern.required)
        self.needs = frozenset(places[str(predicate)] for predicate in self.required)

    def solve(
        self, lists: Lists, events: np.ndarray, triples: Callable[[int], Iterable[Triple]], *, later: bool = False
    ) -> Solutions:
        """The value of the GPM at `events`, int32, ascending. `triples(event)` makes the rdflib triples of an event; it
        is called only if the GPM has no plan. `later`: its FILTERs may wait."""
        if self.plan is None:
            return _by_event(self.evaluator, events, triples, lists.budget)
        return self.plan.solve(lists, events, later=later)


def value_on(evaluator: PatternEvaluator, graph: Iterable[Triple]) -> MappingSet:
    """The value of a GPM on one graph, as mappings."""
    event = GraphEvent("", 0, tuple(graph), None, "", 1)
    solved = BatchEvaluator([evaluator]).solve(GraphBatch.of([event]))
    rows = ((found, row) for found in solved.values() for row in np.flatnonzero(found.kept).tolist())
    return frozenset(found.mapping(row, None) for found, row in rows)


def _constant_predicates(evaluator: PatternEvaluator) -> frozenset[URIRef]:
    """The predicates that a GPM's patterns name, also inside paths: those that get lists."""
    pattern = evaluator.pattern
    nodes = [pattern.event]
    nodes += [inner for c in pattern.local for inner in algebra.patterns_inside(c.expression)]
    return frozenset().union(*(algebra.predicates_named(node) for node in nodes))


def _by_event(
    evaluator: PatternEvaluator, events: np.ndarray, triples: Callable[[int], Iterable[Triple]], budget: int
) -> Solutions:
    found: list[int] = []
    mappings: list[Mapping] = []
    kept: list[bool] = []
    for event in events.tolist():
        facts = EventGraph(triples(event))
        before, after = evaluator.solve(facts, facts.predicates, budget)
        found += [event] * len(before)
        mappings += before
        kept += [mapping in after for mapping in before]
    return _Mappings(found, mappings, kept)


class _Plan:
    """The plan of a GPM that is covered. `removed`: as of `BatchEvaluator`."""

    def __init__(self, evaluator: PatternEvaluator, budget: int, *, removed: bool) -> None:
        self._prologue = evaluator.pattern.prologue
        self._graphs = Graphs(evaluator, budget)
        self._knowledge = evaluator.derived("columns", self._graphs.whole)
        kind, made = ("plan", _with_known_graphs) if removed else ("plan, filtered early", _filter_early)
        self._event, self._local = evaluator.once(kind, evaluator.pattern, partial(made, evaluator))
        shown = frozenset(() if self._knowledge is None else self._knowledge.names)
        self._compared = any(algebra.expression_variables(c) & shown or algebra.has_exists(c) for c in self._local)
        patterns = [self._event, *(node for c in self._local for node in algebra.patterns_inside(c))]
        self._counting = any(map(counts, patterns))
        self._ready: Ready = {}
        self._budget = budget
        self._steady = not any(map(unsteady, self._local))
        self._before, self._binds = _last_binds(self._event, self._knowledge is not None)
        late = frozenset(name for name, _ in self._binds)
        waits = [algebra.has_exists(c) or bool(algebra.expression_variables(c) & late) for c in self._local]
        self._first = [c for c, waiting in zip(self._local, waits, strict=True) if not waiting]
        self._rest = [c for c, waiting in zip(self._local, waits, strict=True) if waiting]
        if not self._first or any(unsteady(value) for _, value in self._binds):
            self._before, self._binds = self._event, ()

    def alone(self, places: MappingABC[str, int]) -> Alone | None:
        """The plan for small graphs; None if it has none."""
        if self._knowledge is not None or self._budget < PAIRS:
            return None
        return prepare(self._event, self._local, self._prologue, places)

    def solve(self, lists: Lists, events: np.ndarray, *, later: bool = False) -> Solutions:
        evaluation = Evaluation(lists, self._prologue, events, self._graphs, self._counting, self._ready)
        if self._binds:
            return self._bound_late(evaluation, evaluation.table(self._before))
        table = evaluation.table(self._event)
        if self._knowledge is not None:
            table = self._knowledge.join(table, lists.space, self._budget, compared=self._compared)
        if not self._local or not len(table):
            return _Columns(table, np.ones(len(table), bool), lists.space)
        if later and self._steady and not any(map(algebra.has_exists, self._local)):
            return _Columns(table, partial(_keep, self._local, evaluation), lists.space)
        return _Columns(table, _keep(self._local, evaluation, table), lists.space)

    def _bound_late(self, evaluation: Evaluation, table: Table) -> Solutions:
        """The solutions, with the last BINDs worked out for rows that the FILTERs before them leave."""

        def bound(rows: Table) -> Table:
            for name, value in self._binds:
                rows = evaluation.extended(rows, name, value)
            return rows

        kept = _keep(self._first, evaluation, table)
        rows = np.flatnonzero(kept)
        own = bound(table.take(rows))
        kept[rows] = _keep(self._rest, evaluation, own)
        whole = table
        for name, _ in self._binds:
            column = np.full(len(table), UNBOUND, np.int32)
            column[rows] = own.columns[name]
            whole = whole.with_column(name, column)
        late = _Late(frozenset(name for name, _ in self._binds), partial(bound, table))
        return _Columns(whole, kept, evaluation.lists.space, late)


def _keep(conditions: Sequence[algebra.Expression], evaluation: Evaluation, table: Table) -> np.ndarray:
    """bool (rows,): all conditions are true. Each is evaluated only on rows for which those before it are."""
    kept = np.ones(len(table), bool)
    for condition in conditions if len(table) else ():
        if kept.all():
            kept = truth(condition, evaluation.scope(table)) == TRUE
        elif len(rows := np.flatnonzero(kept)):
            kept[rows] = truth(condition, evaluation.scope(table.take(rows))) == TRUE
    return kept


def _last_binds(node: algebra.Node, joined: bool) -> tuple[algebra.Node, tuple[tuple[str, algebra.Expression], ...]]:
    """The BINDs at the end of a pattern, in order, and the part before them; none if it is `joined` with knowledge,
    which may bind the same variables."""
    binds = []
    while isinstance(node, algebra.Extend) and not joined:
        binds.append((node.variable, node.value))
        node = node.child
    return node, tuple(reversed(binds))


def _with_known_graphs(evaluator: PatternEvaluator) -> tuple[algebra.Node, tuple[algebra.Expression, ...]]:
    """The event part and the local conditions, rewritten so that every GRAPH has a constant name."""
    pattern, names = evaluator.pattern, evaluator.graphs
    conditions = (_known_inside(c.expression, names) for c in pattern.local)
    return with_known_graphs(pattern.event, names), tuple(conditions)


def _filter_early(evaluator: PatternEvaluator) -> tuple[algebra.Node, tuple[algebra.Expression, ...]]:
    """The same with FILTERs as early as they can be."""
    return filter_early(*_with_known_graphs(evaluator))


def _known_inside(expression: algebra.Expression, names: Sequence[str]) -> algebra.Expression:
    found: algebra.Expression = algebra.rebuild(expression, lambda node: with_known_graphs(node, names))
    return found
