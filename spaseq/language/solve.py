"""The table between graph pattern matching and sequence recognition: what every GPM's value is at an instant.

`Solver.solve_batch` gives the value of the GPMs at each event of a batch, be that one event or many, and `Solver.rows`
makes of a chunk of instants the rows of that table: one per partition that an instant belongs to (one in all without
PARTITION BY). Both are pure functions of the events, the query and the knowledge, so they may run anywhere, in any
order.
The engine reads the rows in order, as an `InstantBatch`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spaseq.gpm import (
    Condition,
    GraphPattern,
    Knowledge,
    Mapping,
    MappingSet,
    PatternEvaluator,
    holds,
    join,
)
from spaseq.gpm.columnar import read_by
from spaseq.gpm.columnar.keys import Keys
from spaseq.language.check import CheckedQuery
from spaseq.language.chunks import Chunk, Piece, by_stream
from spaseq.language.expand import Conjunction, Variant
from spaseq.language.instant_rows import InstantRows, Solved
from spaseq.language.lower import conditions

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import BatchEvaluator, Solutions
    from spaseq.language.absence import Sightings
    from spaseq.language.conjunctions import Joined, Member
    from spaseq.rdf import GraphBatch, GraphEvent, Instant

__all__ = ["ChunkRows", "InstantBatch", "InstantSolutions", "Rows", "SolvedRows", "Solver"]

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
    """Evaluates the GPMs of one query with one knowledge base; made once per run (or per worker).

    With `reference`, rdflib's evaluator does all graph patterns. Raises `OptionError` if the query asks for a graph
    that the knowledge does not hold.
    """

    def __init__(self, query: CheckedQuery, knowledge: Knowledge, *, reference: bool = False) -> None:
        knowledge.check(query.patterns.values())
        self._partition = tuple(sorted(query.partition))
        self._reference = reference
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
        """The predicates whose triples some GPM can use; None where that may be any."""
        found: frozenset[str] = frozenset()
        for pattern in self._patterns:
            read = read_by(pattern)
            if read is None:
                return None
            found |= read
        return found

    def solve_batch(self, batch: GraphBatch) -> MappingABC[str, Solutions]:
        """The value of each GPM of the batch's stream at each of its events."""
        return self._evaluator(batch.stream).solve(batch)

    def solve_pushed(self, stream: str, events: Sequence[GraphEvent]) -> MappingABC[str, Solutions]:
        """The value of each GPM of a stream at each of some events of it that come as they happen."""
        return self._evaluator(stream).solve_pushed(events)

    def instant_rows(self, instants: Sequence[Instant]) -> list[InstantRows]:
        """The rows of a few instants that come as they happen: as `rows`, made for each of them."""
        solved: list[list[Solved]] = [[] for _ in instants]
        for stream, (events, places) in by_stream(instants).items():
            for name, solutions in self._evaluator(stream).solve_pushed(events).items():
                each = zip(solutions.events.tolist(), solutions.kept.tolist(), strict=True)
                for row, (event, kept) in enumerate(each):
                    solved[places[event]].append((name, solutions, row, kept))
        return [
            InstantRows(instant.position, instant.time, own, self._read, self._partition, self._keys)
            for instant, own in zip(instants, solved, strict=True)
        ]

    def _evaluator(self, stream: str) -> BatchEvaluator:
        found = self._columns.get(stream)
        if found is None:
            from spaseq.gpm.columnar.evaluate import BatchEvaluator  # loads the kernels

            evaluators = self._by_stream.get(stream, ())
            found = self._columns[stream] = BatchEvaluator(evaluators, reference=self._reference)
        return found

    def rows(self, chunk: Chunk) -> ChunkRows:
        """The rows of a chunk's instants, in order.

        The value of a GPM at an instant is the union of its values on each graph of its streams there. An instant
        belongs to a partition if some GPM without its top-level FILTERs has a mapping with the partition's key.
        Mappings hold only the variables that something else in the query reads, and are made when asked for.
        """
        return ChunkRows(chunk, self._read, self._partition, self._keys)


def read_by_others(query: CheckedQuery) -> dict[str, tuple[str, ...]]:
    """For each GPM the variables whose terms matter outside of it, sorted.

    Those are what a result shows or is made of, what partitions the stream, what conditions over several GPMs name,
    what another GPM mentions, and all of a GPM that a sequence asks at more than one place.
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
    """At how many places of a sequence each GPM is asked."""
    groups = [*(s.alternatives for s in variant.steps), *(s.absent for s in variant.steps), variant.before]
    return Counter(name for group in [*groups, variant.after] for name in {n for c in group for n in c})


class Rows(Protocol):
    """Rows of the table in order: `positions`, `times`, int64 (n,), and `partitions`, int64 (n,), which of `keys` each
    belongs to, None without PARTITION BY. `numbers`: of each key, where the solver numbers them."""

    keys: list[Mapping]
    has_columns: bool
    """Whether solutions may stand in columns."""

    @property
    def positions(self) -> np.ndarray: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def partitions(self) -> np.ndarray | None: ...

    @property
    def numbers(self) -> np.ndarray | None: ...

    def present(self, name: str) -> np.ndarray:
        """Where a GPM's value is not empty: bool (n,)."""
        ...

    def mappings(self, name: str, row: int) -> Collection[Mapping]:
        """The mappings of a GPM's value at a row, some perhaps more than once."""
        ...

    def solutions(self, name: str) -> list[tuple[np.ndarray, Solutions, np.ndarray]] | None:
        """A GPM's solutions as columns: rows, ascending, and which of the solutions stands in each. None if they are
        not in columns."""
        ...

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> Joined | None:
        """The conjunction of GPMs under conditions over them, in all rows; None if they are not in columns."""
        ...


class SolvedRows:
    """Rows that were solved elsewhere, as mappings."""

    has_columns = False

    def __init__(self, rows: Sequence[InstantSolutions]) -> None:
        self._rows = rows
        self.positions = np.array([row.position for row in rows], np.int64)
        self.times = np.array([row.time for row in rows], np.int64)
        numbers: dict[Mapping, int] = {}
        places = [numbers.setdefault(row.key, len(numbers)) for row in rows if row.key is not None]
        self.partitions = np.array(places, np.int64) if places else None
        self.numbers: np.ndarray | None = None
        self.keys = list(numbers)

    def present(self, name: str) -> np.ndarray:
        return np.array([bool(row.values.get(name)) for row in self._rows], bool)

    def mappings(self, name: str, row: int) -> MappingSet:
        return self._rows[row].values.get(name, _NONE)

    def solutions(self, name: str) -> None:
        return None

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> None:
        return None


class ChunkRows:
    """Rows of a chunk: a row for each instant, or, with `names` to partition by, for each instant and key there.

    `keys` numbers the keys, for the whole evaluation. `read`: the variables that mappings show, by GPM.
    """

    has_columns = True

    def __init__(
        self, chunk: Chunk, read: MappingABC[str, tuple[str, ...]], names: tuple[str, ...], keys: Keys
    ) -> None:
        self._read = read
        parts = [_Part(piece, name, solutions) for piece in chunk.pieces for name, solutions in piece.solutions.items()]
        self.partitions: np.ndarray | None = None
        self.numbers: np.ndarray | None = None
        self.keys: list[Mapping] = []
        if names:
            instants, self.partitions, self.numbers = _partitioned(parts, names, keys)
            self.keys = [keys.mappings[number] for number in self.numbers.tolist()]
        else:
            instants = np.arange(len(chunk))
            for part in parts:
                part.rows = part.instants
        self.positions = chunk.first + instants
        self.times = chunk.times[instants]
        self._joined: dict[tuple[str, ...], Joined | None] = {}
        self._collect(parts)

    def _collect(self, parts: Sequence[_Part]) -> None:
        """For each GPM where the solutions of each row begin, and the part and the place there of each solution."""
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
        from spaseq.language.conjunctions import joined  # loads the kernels

        key = tuple(pattern.name for pattern in patterns)
        if key not in self._joined:
            self._joined[key] = joined([self._member(pattern) for pattern in patterns], conditions)
        return self._joined[key]

    def _member(self, pattern: GraphPattern) -> Member:
        from spaseq.language.conjunctions import Member

        none = np.zeros(0, np.int64)
        starts, which, places = self._index.get(pattern.name, (np.zeros(len(self.positions) + 1, np.int64), none, none))
        rows = np.repeat(np.arange(len(self.positions)), np.diff(starts))
        parts = [part.solutions for part in self._parts.get(pattern.name, ())]
        return Member(rows, which, places, parts, self._read[pattern.name], pattern.binds)


class _Part:
    """The solutions of one GPM that stand in one piece: `places` in `solutions`, and of each its `instants` in the
    chunk and its `rows` in the table."""

    def __init__(self, piece: Piece, name: str, solutions: Solutions) -> None:
        begin, end = np.searchsorted(solutions.events, [piece.low, piece.high])
        self.name = name
        self.solutions = solutions
        self.places = np.arange(begin, end)
        self.instants = piece.instants[solutions.events[begin:end] - piece.low]
        self.rows = np.zeros(0, np.int64)

    def select(self) -> None:
        """Only those that the GPM's own FILTERs let through, and that stand in a row."""
        kept = self.solutions.kept[self.places] & (self.rows >= 0)
        self.places, self.rows = self.places[kept], self.rows[kept]
        if len(self.rows) and (self.rows[1:] < self.rows[:-1]).any():
            order = np.argsort(self.rows, kind="stable")
            self.places, self.rows = self.places[order], self.rows[order]


def _partitioned(
    parts: Sequence[_Part], names: tuple[str, ...], keys: Keys
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the instant of each row, the place of its key among those used, the numbers of those), by instant, then by the
    key's text; gives the parts their rows."""
    codes = [part.solutions.codes(names, keys)[part.places] for part in parts]
    used = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64)
    used = used[used >= 0]
    rows = _cells(parts, codes, used)
    width = max(1, len(used))
    if (rows[1:] // width == rows[:-1] // width).any():
        used = np.array(sorted(used.tolist(), key=keys.text), np.int64)
        rows = _cells(parts, codes, used)
    for part in parts:
        part.rows = np.where(part.rows >= 0, np.searchsorted(rows, part.rows), -1)
    return rows // width, rows % width, used


def _cells(parts: Sequence[_Part], codes: Sequence[np.ndarray], used: np.ndarray) -> np.ndarray:
    """Gives each solution its cell, instant times keys plus the place of its key in `used`, -1 without a key; the cells
    that there are, ascending."""
    places = np.full(int(used.max(initial=0)) + 2, -1, np.int64)  # the last one: of no key
    places[used] = np.arange(len(used))
    for part, own in zip(parts, codes, strict=True):
        part.rows = np.where(own >= 0, part.instants * len(used) + places[own], -1)
    found = np.unique(np.concatenate([part.rows for part in parts])) if parts else np.zeros(0, np.int64)
    return found[found >= 0]


class InstantBatch:
    """Rows of the table, `first` to `last` of them, as the engine's `Batch`; the mapping sets of conjunctions are
    worked out once each, where they are asked for.

    `codes` holds the number of each row's partition, given by the caller, who must give one partition one number for
    the whole stream. `sightings` knows what matched before this batch; it is asked once per conjunction and batch.
    """

    def __init__(
        self,
        rows: Rows,
        patterns: MappingABC[str, GraphPattern],
        codes: np.ndarray | None,
        sightings: Sightings | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        self.positions = rows.positions[first:last]
        self.times = rows.times[first:last]
        self.keys = None if codes is None else codes[first:last]
        self.rows = rows
        self.first = first
        self._patterns = patterns
        self._inner: dict[Conjunction, list[tuple[Condition, Any]]] = {}
        self._values: dict[tuple[Conjunction, int], MappingSet] = {}
        self._unseen = {} if sightings is None else {c: sightings.pass_over(self, c) for c in sightings.conjunctions}

    def __len__(self) -> int:
        return len(self.positions)

    def holds(self, conjunction: Conjunction) -> np.ndarray:
        """Where the conjunction's mapping set is not empty: bool, shape (n,). It is joined only where all its GPMs have
        a value."""
        first, last = self.first, self.first + len(self)
        found: np.ndarray = np.logical_and.reduce([self.rows.present(name)[first:last] for name in conjunction])
        if (joined := self._columns(conjunction)) is not None:
            begin, end = np.searchsorted(joined.rows, [first, last])
            found[:] = False
            found[joined.rows[begin:end] - first] = True
        elif not self.is_plain(conjunction):
            for row in np.flatnonzero(found).tolist():
                found[row] = bool(self.value(conjunction, row))
        return found

    def holding(self, conjunction: Conjunction) -> list[int]:
        """The rows at which the conjunction's mapping set is not empty."""
        found: list[int] = np.flatnonzero(self.holds(conjunction)).tolist()
        return found

    def is_plain(self, conjunction: Conjunction) -> bool:
        """Whether the conjunction's mapping set is the value of its one GPM."""
        return len(conjunction) == 1  # what its FILTERs name and it does not bind belongs to the join with the run

    def unseen(self, conjunction: Conjunction) -> np.ndarray:
        """Where the conjunction has not matched before, since the row's window opened, in its partition: bool, (n,)."""
        return self._unseen[conjunction]

    def value(self, conjunction: Conjunction, row: int) -> MappingSet:
        """The conjunction's mapping set at a row: the join of its GPMs' values (Definition 8), under the FILTERs that
        name only its own variables."""
        found = self._values.get((conjunction, row))
        if found is None:
            plain = self.is_plain(conjunction)
            found = frozenset(self.mappings(conjunction, row)) if plain else self._joined(conjunction, row)
            self._values[conjunction, row] = found
        return found

    def mappings(self, conjunction: Conjunction, row: int) -> Collection[Mapping]:
        """The mappings of `value`, some perhaps more than once."""
        if self.is_plain(conjunction):
            return self.rows.mappings(conjunction[0], self.first + row)
        return self.value(conjunction, row)

    def _columns(self, conjunction: Conjunction) -> Joined | None:
        """The conjunction joined in all rows, where it is one of several GPMs and they stand in columns."""
        if len(conjunction) == 1:
            return None
        return self.rows.joined([self._patterns[name] for name in conjunction], self._conditions(conjunction))

    def _joined(self, conjunction: Conjunction, row: int) -> MappingSet:
        if (columns := self._columns(conjunction)) is not None:
            return columns.mappings(self.first + row)
        first, *rest = conjunction
        joined = frozenset(self.rows.mappings(first, self.first + row))
        for name in rest:
            joined = join(joined, frozenset(self.rows.mappings(name, self.first + row))) if joined else joined
        for condition, prologue in self._conditions(conjunction):
            joined = frozenset(m for m in joined if holds(condition, m, prologue))
        return joined

    def _conditions(self, conjunction: Conjunction) -> list[tuple[Condition, Any]]:
        """The FILTERs of its GPMs over several of them that are decided inside it, each with its prologue."""
        found = self._inner.get(conjunction)
        if found is None:
            found = self._inner[conjunction] = list(conditions(self._patterns, conjunction, inner=True))
        return found
