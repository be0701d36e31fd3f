"""Evaluates the GPMs and makes the table: the value of every GPM at every instant.

`Solver.solve_batch` evaluates the GPMs on each event of a batch. `Solver.rows` makes the rows of the table for a chunk
of instants: one for each instant, or with PARTITION BY one for each partition that the instant belongs to. Both are
pure functions of the events, the query and the knowledge, so they may run anywhere, in any order. The engine reads the
rows in order, as an `InstantBatch` (`spaseq.language.solving.instants`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.engine import Settings
from spaseq.gpm import (
    Condition,
    GraphPattern,
    Knowledge,
    Mapping,
    MappingSet,
    PatternEvaluator,
)
from spaseq.gpm.columnar import read_by
from spaseq.gpm.columnar.keys import Keys
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Variant
from spaseq.language.solving.chunks import Chunk, Piece, by_stream
from spaseq.language.solving.instant_rows import InstantRows, Solved

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import BatchEvaluator, Solutions
    from spaseq.language.solving.conjunctions import Joined, Member
    from spaseq.rdf import GraphBatch, GraphEvent, Instant

__all__ = ["ChunkRows", "InstantSolutions", "SolvedRows", "Solver"]

_NONE: MappingSet = frozenset()


@dataclass(frozen=True, slots=True)
class InstantSolutions:
    """The values of a query's GPMs at an instant.

    `position` and `time` (ns) are the instant's. `key`: the mapping of the partition's variables, None without
    PARTITION BY. `values`: the mapping sets of the GPMs for which it is not empty, restricted to `key`.
    """

    position: int
    time: int
    key: Mapping | None
    values: dict[str, MappingSet]


class Solver:
    """Evaluates the GPMs of one query with one knowledge base; made once per run (or per worker).

    `solution_rows`: the budget of `Settings`. With `reference`, rdflib's evaluator evaluates all graph patterns. Raises
    `OptionError` if the query names a graph that the knowledge does not have.
    """

    def __init__(
        self,
        query: CheckedQuery,
        knowledge: Knowledge,
        *,
        solution_rows: int = Settings().solution_rows,
        reference: bool = False,
    ) -> None:
        knowledge.check(query.patterns.values())
        self.knowledge = knowledge
        self._partition = tuple(sorted(query.partition))
        self._reference = reference
        self._solution_rows = solution_rows
        self._patterns = tuple(query.patterns.values())
        self._by_stream: dict[str, list[PatternEvaluator]] = {}
        for pattern in query.patterns.values():
            evaluator = PatternEvaluator(pattern, knowledge)
            for stream in pattern.streams:
                self._by_stream.setdefault(stream, []).append(evaluator)
        self._columns: dict[str, BatchEvaluator] = {}
        self._read = read_by_others(query)
        self._keys = Keys()

    @property
    def wanted(self) -> frozenset[str] | None:
        """The predicates whose triples some GPM can use; None if a GPM may use triples of any predicate."""
        return read_by(*self._patterns)

    def solve_batch(self, batch: GraphBatch) -> MappingABC[str, Solutions]:
        """The value of each GPM of the batch's stream at each of its events."""
        return self._evaluator(batch.stream).solve(batch)

    def solve_pushed(self, stream: str, events: Sequence[GraphEvent]) -> MappingABC[str, Solutions]:
        """The value of each GPM of a stream at each of some pushed events of it."""
        return self._evaluator(stream).solve_pushed(events)

    def instant_rows(self, instants: Sequence[Instant]) -> list[InstantRows]:
        """The rows of a few pushed instants, each by itself; the same rows as those of `rows`."""
        solved: list[list[Solved]] = [[] for _ in instants]
        for stream, (events, places) in by_stream(instants).items():
            for event, name, solutions, row, kept in self._evaluator(stream).solve_each(events):
                solved[places[event]].append((name, solutions, row, kept))
        return [
            InstantRows(instant.position, instant.time, own, self._read, self._partition, self._keys)
            for instant, own in zip(instants, solved, strict=True)
        ]

    def forget_keys(self) -> None:
        """The numbers of keys begin anew."""
        self._keys = Keys()

    def _evaluator(self, stream: str) -> BatchEvaluator:
        found = self._columns.get(stream)
        if found is None:
            from spaseq.gpm.columnar.evaluate import BatchEvaluator  # loads the kernels

            evaluators = self._by_stream.get(stream, ())
            found = self._columns[stream] = BatchEvaluator(
                evaluators, budget=self._solution_rows, reference=self._reference
            )
        return found

    def rows(self, chunk: Chunk) -> ChunkRows:
        """The rows of a chunk's instants, in order.

        The value of a GPM at an instant is the union of its values on each graph of its streams there. An instant
        belongs to a partition if some GPM without its top-level FILTERs has a mapping with the partition's key.
        Mappings have only the variables that another part of the query reads (`read_by_others`), and are made when they
        are read.
        """
        return ChunkRows(chunk, self._read, self._partition, self._keys, self._solution_rows)


def read_by_others(query: CheckedQuery) -> dict[str, tuple[str, ...]]:
    """For each GPM the variables whose terms are used outside of it, sorted.

    Those are the variables of results and of PARTITION BY, those in correlated conditions, those that another GPM
    mentions, and all variables of a GPM that occurs at more than one place of a sequence.
    """
    patterns = query.patterns.values()
    outside = {*query.clauses.needed, *query.clauses.rounds, *query.partition}
    outside.update(v for pattern in patterns for c in pattern.correlated for v in c.variables)
    mentioned = Counter(v for pattern in patterns for v in pattern.mentions)
    often = {name for variant in query.variants for name, times in _places(variant).items() if times > 1}
    return {
        p.name: tuple(sorted(v for v in p.binds if p.name in often or v in outside or mentioned[v] > 1))
        for p in patterns
    }


def _places(variant: Variant) -> Counter[str]:
    """At how many places of a sequence each GPM occurs."""
    groups = [*(s.alternatives for s in variant.steps), *(s.absent for s in variant.steps), variant.before]
    return Counter(name for group in [*groups, variant.after] for name in {n for c in group for n in c})


class SolvedRows:
    """`Rows` that were solved elsewhere, with solutions as mappings."""

    has_columns = False

    def __init__(self, rows: Sequence[InstantSolutions]) -> None:
        self._rows = rows
        self.positions: np.ndarray = np.array([row.position for row in rows], np.int64)
        self.times: np.ndarray = np.array([row.time for row in rows], np.int64)
        numbers: dict[Mapping, int] = {}
        places = [numbers.setdefault(row.key, len(numbers)) for row in rows if row.key is not None]
        self.partitions: np.ndarray | None = np.array(places, np.int64) if places else None
        self.numbers: np.ndarray | None = None
        self.keys: list[Mapping] = list(numbers)

    def present(self, name: str) -> np.ndarray:
        return np.array([bool(row.values.get(name)) for row in self._rows], bool)

    def mappings(self, name: str, row: int) -> MappingSet:
        return self._rows[row].values.get(name, _NONE)

    def solutions(self, name: str) -> None:
        return None

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> None:
        return None


class ChunkRows:
    """`Rows` of a chunk: one for each instant, or, with `names` to partition by, one for each instant and key there.

    `keys` numbers the keys. `budget`: of the rows of a join. `read`: for each GPM the variables that its mappings have.
    """

    has_columns = True

    def __init__(
        self, chunk: Chunk, read: MappingABC[str, tuple[str, ...]], names: tuple[str, ...], keys: Keys, budget: int
    ) -> None:
        self._budget = budget
        self._read = read
        parts = [_Part(piece, name, solutions) for piece in chunk.pieces for name, solutions in piece.solutions.items()]
        self.partitions: np.ndarray | None = None
        self.numbers: np.ndarray | None = None
        self.keys: list[Mapping] = []
        if names:
            instants, self.partitions, self.numbers = _partitioned(parts, names, keys)
            self.keys = list(map(keys.mappings.__getitem__, self.numbers.tolist()))
        else:
            instants = np.arange(len(chunk))
            for part in parts:
                part.rows = part.instants
        self.positions: np.ndarray = chunk.first + instants
        self.times: np.ndarray = chunk.times[instants]
        self._joined: dict[tuple[str, ...], Joined | None] = {}
        self._collect(parts)

    def _collect(self, parts: Sequence[_Part]) -> None:
        """Builds for each GPM an index: where the solutions of each row begin, and for each solution its part and its
        place in the part."""
        self._parts: dict[str, list[_Part]] = {}
        for part in parts:
            part.select()
            if len(part.rows):
                self._parts.setdefault(part.name, []).append(part)
        self._index: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        for name, own in self._parts.items():
            rows = np.concatenate([part.rows for part in own])
            which = np.repeat(np.arange(len(own)), [len(part.rows) for part in own])
            solutions = np.concatenate([part.places for part in own])
            if len(own) > 1:
                order = np.argsort(rows, kind="stable")
                rows, which, solutions = rows[order], which[order], solutions[order]
            starts = np.searchsorted(rows, np.arange(len(self.positions) + 1))
            self._index[name] = starts, which, solutions

    def present(self, name: str) -> np.ndarray:
        index = self._index.get(name)
        return np.zeros(len(self.positions), bool) if index is None else np.diff(index[0]) > 0

    def mappings(self, name: str, row: int) -> list[Mapping]:
        index = self._index.get(name)
        if index is None:
            return []
        starts, which, solutions = index
        begin, end = int(starts[row]), int(starts[row + 1])
        parts, read = self._parts[name], self._read[name]
        return [parts[which[i]].solutions.mapping(int(solutions[i]), read) for i in range(begin, end)]

    def solutions(self, name: str) -> list[tuple[np.ndarray, Solutions, np.ndarray]]:
        return [(part.rows, part.solutions, part.places) for part in self._parts.get(name, ())]

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> Joined | None:
        from spaseq.language.solving.conjunctions import joined  # loads the kernels

        key = tuple(pattern.name for pattern in patterns)
        if key not in self._joined:
            self._joined[key] = joined([self._member(pattern) for pattern in patterns], conditions, self._budget)
        return self._joined[key]

    def _member(self, pattern: GraphPattern) -> Member:
        from spaseq.language.solving.conjunctions import Member

        none = np.zeros(0, np.int64)
        starts, which, places = self._index.get(pattern.name, (np.zeros(len(self.positions) + 1, np.int64), none, none))
        rows = np.repeat(np.arange(len(self.positions)), np.diff(starts))
        parts = [part.solutions for part in self._parts.get(pattern.name, ())]
        return Member(rows, which, places, parts, self._read[pattern.name], pattern.binds)


class _Part:
    """The solutions of one GPM in one piece of a chunk: their indices in `solutions` (`places`), and for each the index
    of its instant in the chunk (`instants`) and of its row in the table (`rows`, -1 for none)."""

    def __init__(self, piece: Piece, name: str, solutions: Solutions) -> None:
        begin, end = np.searchsorted(solutions.events, [piece.low, piece.high])
        self.name = name
        self.solutions = solutions
        self.places = np.arange(begin, end)
        self.instants = piece.instants[solutions.events[begin:end] - piece.low]
        self.rows = np.zeros(0, np.int64)

    def select(self) -> None:
        """Keeps only the solutions for which the GPM's own FILTERs are true and that belong to a row, in order of
        rows."""
        kept = self.solutions.kept[self.places] & (self.rows >= 0)
        self.places, self.rows = self.places[kept], self.rows[kept]
        if len(self.rows) and (self.rows[1:] < self.rows[:-1]).any():
            order = np.argsort(self.rows, kind="stable")
            self.places, self.rows = self.places[order], self.rows[order]


def _partitioned(
    parts: Sequence[_Part], names: tuple[str, ...], keys: Keys
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a partitioned table, ordered by instant, then by the key's text: (the instant of each row, the index
    of its key among the keys used, the numbers of these keys). Sets the `rows` of the parts."""
    codes = [part.solutions.codes(names, keys)[part.places] for part in parts]
    used = _different(codes)
    rows = _cells(parts, codes, used)
    width = max(1, len(used))
    if (rows[1:] // width == rows[:-1] // width).any():
        used = keys.in_order(used)
        rows = _cells(parts, codes, used)
    for part in parts:
        part.rows = np.where(part.rows >= 0, np.searchsorted(rows, part.rows), -1)
    return rows // width, rows % width, used


def _cells(parts: Sequence[_Part], codes: Sequence[np.ndarray], used: np.ndarray) -> np.ndarray:
    """Sets the `rows` of the parts to cells, instant * len(used) + index of the key in `used`, -1 without a key.
    Returns the cells that occur, ascending."""
    places = np.full(int(used.max(initial=0)) + 2, -1, np.int64)  # the last entry is read for code -1, no key
    places[used] = np.arange(len(used))
    for part, own in zip(parts, codes, strict=True):
        part.rows = np.where(own >= 0, part.instants * len(used) + places[own], -1)
    return _different([part.rows for part in parts])


def _different(parts: Sequence[np.ndarray]) -> np.ndarray:
    """What the parts have, but for -1, each once, ascending: int64.

    PERF: GPMs that are alike have equal parts, and events that have one key give them in order; sorting takes a
    millisecond a batch.
    """
    found: list[np.ndarray] = []
    for part in parts:
        if not found or not np.array_equal(part, found[-1]):
            found.append(part)
    whole = np.concatenate(found) if found else np.zeros(0, np.int64)
    if not (whole[1:] > whole[:-1]).all():
        whole = np.unique(whole)
    return whole[whole >= 0]
