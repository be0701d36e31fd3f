"""The table between graph pattern matching and sequence recognition: what every GPM's value is at an instant.

`solve` turns an instant into rows of that table, one per partition the instant belongs to (one in all without PARTITION
BY). It is a pure function of the instant, the query and the knowledge, so it may run anywhere, in any order; the engine
reads the rows in order, as an `InstantBatch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaseq.gpm import (
    EventGraph,
    GraphPattern,
    Knowledge,
    Mapping,
    MappingSet,
    PatternEvaluator,
    holds,
    join,
    restrict,
)
from spaseq.language.check import CheckedQuery
from spaseq.language.expand import Conjunction
from spaseq.language.lower import conjunction_binds

if TYPE_CHECKING:
    from spaseq.language.absence import Sightings
    from spaseq.rdf import GraphEvent, Instant

__all__ = ["InstantBatch", "InstantSolutions", "Solver"]

_NONE: MappingSet = frozenset()


@dataclass(frozen=True, slots=True)
class InstantSolutions:
    """The values of a query's GPMs at an instant.

    `position` and `time` (ns) are the instant's. `key` is None without PARTITION BY, else the mapping of the
    partition's variables. `values` holds the GPMs whose value is not empty, restricted to `key`.
    """

    position: int
    time: int
    key: Mapping | None
    values: dict[str, MappingSet]


class Solver:
    """`solve` for one query and one knowledge base; made once per run (or per worker).

    Raises `OptionError` if the query asks for a graph that the knowledge does not hold.
    """

    def __init__(self, query: CheckedQuery, knowledge: Knowledge) -> None:
        knowledge.check(query.patterns.values())
        self._partition = query.partition
        self._by_stream: dict[str, list[PatternEvaluator]] = {}
        for pattern in query.patterns.values():
            evaluator = PatternEvaluator(pattern, knowledge)
            for stream in pattern.streams:
                self._by_stream.setdefault(stream, []).append(evaluator)

    def solve(self, instant: Instant) -> tuple[InstantSolutions, ...]:
        """The rows of one instant; none if there is a PARTITION BY and the instant belongs to no partition.

        The value of a GPM at an instant is the union of its values on each graph of its streams there. An instant
        belongs to a partition if some GPM without its top-level FILTERs has a mapping with the partition's key.
        """
        before: dict[str, MappingSet] = {}
        after: dict[str, MappingSet] = {}
        for event in instant.events:
            self._add(event, before, after)
        if not self._partition:
            return (InstantSolutions(instant.position, instant.time, None, {n: v for n, v in after.items() if v}),)
        rows = []
        for key in sorted(_keys(before.values(), self._partition), key=repr):
            values = {name: kept for name, value in after.items() if (kept := restrict(value, key))}
            rows.append(InstantSolutions(instant.position, instant.time, key, values))
        return tuple(rows)

    def _add(self, event: GraphEvent, before: dict[str, MappingSet], after: dict[str, MappingSet]) -> None:
        evaluators = self._by_stream.get(event.stream)
        if not evaluators:
            return
        predicates = frozenset(triple[1] for triple in event.triples)
        wanted = [e for e in evaluators if e.pattern.required <= predicates]
        if not wanted:
            return
        graph = EventGraph(event.triples)
        for evaluator in wanted:
            name = evaluator.pattern.name
            candidates, kept = evaluator.solve(graph, predicates)
            before[name] = before.get(name, _NONE) | candidates
            after[name] = after.get(name, _NONE) | kept


def _keys(values: Iterable[MappingSet], names: tuple[str, ...]) -> set[Mapping]:
    """The restrictions to `names` of the mappings that bind all of them."""
    wanted = tuple(sorted(names))
    keys: set[Mapping] = set()
    for value in values:
        for mapping in value:
            key = tuple(pair for pair in mapping if pair[0] in wanted)
            if len(key) == len(wanted):
                keys.add(key)
    return keys


class InstantBatch:
    """Rows of the table as the engine's `Batch`; the mapping sets of conjunctions are worked out once each.

    `keys` holds a code per row, given by the caller, who must give one partition one code for the whole stream.
    `sightings` knows what matched before this batch; it is asked once per conjunction and batch.
    """

    def __init__(
        self,
        rows: Sequence[InstantSolutions],
        patterns: MappingABC[str, GraphPattern],
        codes: Sequence[int] | None,
        sightings: Sightings | None = None,
    ) -> None:
        self.rows = rows
        self.positions = np.array([row.position for row in rows], np.int64)
        self.times = np.array([row.time for row in rows], np.int64)
        self.keys = None if codes is None else np.array(codes, np.int64)
        self._patterns = patterns
        self._values: dict[Conjunction, list[MappingSet]] = {}
        self._unseen = {} if sightings is None else {c: sightings.pass_over(self, c) for c in sightings.conjunctions}

    def __len__(self) -> int:
        return len(self.rows)

    def holds(self, conjunction: Conjunction) -> np.ndarray:
        """Where the conjunction's mapping set is not empty: bool, shape (n,)."""
        return np.array([bool(value) for value in self._sets(conjunction)], bool)

    def unseen(self, conjunction: Conjunction) -> np.ndarray:
        """Where the conjunction has not matched before, since the row's window opened, in its partition: bool, (n,)."""
        return self._unseen[conjunction]

    def value(self, conjunction: Conjunction, row: int) -> MappingSet:
        """The conjunction's mapping set at a row: the join of its GPMs' values (Definition 8), under the FILTERs that
        name only its own variables."""
        return self._sets(conjunction)[row]

    def _sets(self, conjunction: Conjunction) -> list[MappingSet]:
        sets = self._values.get(conjunction)
        if sets is None:
            sets = [self._joined(conjunction, row) for row in self.rows]
            self._values[conjunction] = sets
        return sets

    def _joined(self, conjunction: Conjunction, row: InstantSolutions) -> MappingSet:
        first, *rest = conjunction
        joined = row.values.get(first, _NONE)
        for name in rest:
            joined = join(joined, row.values.get(name, _NONE)) if joined else joined
        inside = conjunction_binds(self._patterns, conjunction)
        for name in conjunction:
            pattern = self._patterns[name]
            for condition in pattern.correlated:
                if condition.variables <= inside:
                    joined = frozenset(m for m in joined if holds(condition, m, pattern.prologue))
        return joined
