"""Evaluates the GPMs and makes the table: the value of every GPM at every instant.

`Solver.solve_batch` evaluates the GPMs on each event of a batch. `Solver.rows` makes the rows of the table for a chunk
of instants: one for each instant, or with PARTITION BY one for each partition that the instant belongs to. Both are
pure functions of the events, the query and the knowledge, so they may run anywhere, in any order. The engine reads the
rows in order, as an `InstantBatch` (`spaseq.language.solving.instants`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from spaseq.core.engine import Settings
from spaseq.core.integers import apart, in_order
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
from spaseq.gpm.functions.own import refuse_inside
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Variant
from spaseq.language.solving.chunks import Chunk, Piece, by_stream
from spaseq.language.solving.instant_rows import InstantRows, Solved

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import BatchEvaluator, Solutions, Unsolved
    from spaseq.language.solving.conjunctions import Joined, Member
    from spaseq.rdf import GraphBatch, GraphEvent, Instant

_NONE: MappingSet = frozenset()
_RARE: Final = 0.5
"""Steps that are needed at a smaller share of the instants wait until they are needed."""
_Made = TypeVar("_Made")


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
        refuse_inside()
        knowledge.check(query.patterns.values())
        self.query: CheckedQuery = query
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
        self._steps = _plain_steps(query)
        self.rare: set[str] = set(self._steps - _first_steps(query))
        """GPMs that were needed at few instants lately (`learn`): `solve_ahead` leaves them until then."""

    @property
    def wanted(self) -> frozenset[str] | None:
        """The predicates whose triples some GPM can use; None if a GPM may use triples of any predicate."""
        return read_by(*self._patterns)

    def solve_batch(self, batch: GraphBatch) -> MappingABC[str, Solutions]:
        """The value of each GPM of the batch's stream at each of its events."""
        return self._evaluator(batch.stream).solve(batch)

    def solve_ahead(self, batch: GraphBatch) -> MappingABC[str, Solutions | Unsolved]:
        """`solve_batch`, except that the GPMs that are `rare` wait for `ChunkRows`. With PARTITION BY only their
        FILTERs wait, since the solutions determine the keys of an instant; else all of their evaluation."""
        rare = frozenset(self.rare)
        later, left = (rare, ()) if self._partition else ((), rare)
        return self._evaluator(batch.stream).solve_ahead(batch, later, left)

    def learn(self, rows: ChunkRows) -> None:
        """Choose the `rare` GPMs by the latest rows. The choice affects only the time of the work, not its result.

        PERF: if a later step is needed at most instants, it is evaluated with the batch, by any thread that has time.
        """
        for name, share in rows.asked().items():
            (self.rare.add if share < _RARE else self.rare.discard)(name)

    def _solve_left(self, name: str, unsolved: Unsolved, events: np.ndarray) -> None:
        self._evaluator(unsolved.batch.stream).solve_left(name, unsolved, events)

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
                evaluators,
                budget=self._solution_rows,
                reference=self._reference,
                removed=bool(self._partition),  # they decide which instants a partition has
            )
        return found

    def rows(self, chunk: Chunk) -> ChunkRows:
        """The rows of a chunk's instants, in order.

        The value of a GPM at an instant is the union of its values on each graph of its streams there. An instant
        belongs to a partition if some GPM without its top-level FILTERs has a mapping with the partition's key.
        Mappings have only the variables that another part of the query reads (`read_by_others`), and are made when they
        are read.
        """
        return ChunkRows(
            chunk, self._read, self._partition, self._keys, self._solution_rows, self._steps, self._solve_left
        )


def read_by_others(query: CheckedQuery) -> dict[str, tuple[str, ...]]:
    """For each GPM the variables whose terms are used outside of it, sorted.

    Those are the variables of results and of PARTITION BY, those in correlated conditions, and those that another GPM
    mentions. If a GPM occurs at more than one place of a sequence, they are all of its variables.
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


def _plain_steps(query: CheckedQuery) -> frozenset[str]:
    """The GPMs that the engine asks for only as steps by themselves: of these it says at which rows they matter."""
    others: set[str] = set()
    for variant in query.variants:
        steps = list(variant.parts())
        groups = [*(s.absent for s in steps), variant.before, variant.after]
        groups += [s.alternatives for s in steps if s.gap]
        groups += [tuple(c for c in s.alternatives if len(c) > 1) for s in steps]
        others.update(name for group in groups for conjunction in group for name in conjunction)
    return frozenset(query.patterns) - others


def _first_steps(query: CheckedQuery) -> set[str]:
    """The GPMs that begin a match."""
    return {n for variant in query.variants for s in variant.steps[0].first() for c in s.alternatives for n in c}


def _places(variant: Variant) -> Counter[str]:
    """The number of times that each GPM occurs in a sequence."""
    steps = list(variant.parts())
    groups = [*(s.alternatives for s in steps), *(s.absent for s in steps), variant.before]
    found = Counter[str]()
    for group in [*groups, variant.after]:
        for name in {n for c in group for n in c}:
            found[name] += max(c.count(name) for c in group)
    return found


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
        self.keys: Sequence[Mapping] = list(numbers)

    def present(self, name: str) -> np.ndarray:
        return np.array([bool(row.values.get(name)) for row in self._rows], bool)

    def present_in(self, name: str, first: int, within: np.ndarray) -> np.ndarray:
        return np.array([bool(row.values.get(name)) for row in self._rows[first : first + len(within)]], bool)

    def mappings(self, name: str, row: int) -> MappingSet:
        return self._rows[row].values.get(name, _NONE)

    def solutions(self, name: str) -> None:
        return None

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> None:
        return None


class ChunkRows:
    """`Rows` of a chunk: one for each instant, or, with `names` to partition by, one for each instant and key there.

    `keys` numbers the keys. `budget`: of the rows of a join. `read`: for each GPM the variables that its mappings have.
    The FILTERs of `steps` are evaluated on demand (`present`), those of other GPMs at once; `solve_left` evaluates GPMs
    that were left until then.
    """

    has_columns = True

    def __init__(
        self,
        chunk: Chunk,
        read: MappingABC[str, tuple[str, ...]],
        names: tuple[str, ...],
        keys: Keys,
        budget: int,
        steps: frozenset[str],
        solve_left: Callable[[str, Unsolved, np.ndarray], None],
    ) -> None:
        self._budget = budget
        self._read = read
        self._solve_left = solve_left
        parts, self._left = _parts(chunk)
        self.partitions: np.ndarray | None = None
        self.numbers: np.ndarray | None = None
        self.keys: Sequence[Mapping] = ()
        if names:
            instants, self.partitions, self.numbers = _partition_rows(parts, names, keys)
            self.keys = _Numbered(keys.mappings, self.numbers)
        else:
            instants = np.arange(len(chunk))
            for part in parts:
                part.rows = part.instants
        self.positions: np.ndarray = chunk.first + instants
        self.times: np.ndarray = chunk.times[instants]
        self._joined: dict[tuple[str, ...], Joined | None] = {}
        self._collect(parts)
        self._asked = {name: np.zeros(len(self.positions), bool) for name in steps & read.keys()}
        self._wanted = dict.fromkeys(self._asked, 0)
        self._present: dict[str, np.ndarray] = {}

    def _collect(self, parts: Sequence[_Part]) -> None:
        self._parts: dict[str, list[_Part]] = {}
        alike = _Alike()
        for part in parts:
            part.rows, part.places = alike.of(_by_rows, part.rows, part.places)
            if len(part.rows):
                self._parts.setdefault(part.name, []).append(part)
        self._indices: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def _ask(self, name: str, within: np.ndarray | None) -> None:
        """Look at the solutions of a GPM in the rows `within`, or in all."""
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = np.zeros(len(self.positions), bool)
            within = None
        fresh = ~asked if within is None else within & ~asked
        if not fresh.any():
            return
        asked |= fresh
        for left in self._left.get(name, ()):
            self._solve(name, left, fresh)
        for part in self._parts.get(name, ()):
            part.choose(fresh)
        self._indices.pop(name, None)
        self._present.pop(name, None)

    def _solve(self, name: str, left: _Left, fresh: np.ndarray) -> None:
        """Evaluate the rest of a GPM at the instants `fresh`; without PARTITION BY these are the rows."""
        piece, unsolved = left.piece, left.unsolved
        events = np.zeros(len(unsolved.lists), bool)
        events[piece.low : piece.high] = fresh[piece.instants]
        if events.any():
            self._solve_left(name, unsolved, events)
        for solutions in unsolved.solved[left.taken :]:
            part = _Part(name, solutions, *_place(piece, solutions.events))
            part.rows, part.places = _by_rows(part.instants, part.places)
            self._parts.setdefault(name, []).append(part)
        left.taken = len(unsolved.solved)

    def asked(self) -> dict[str, float]:
        """Of each step the part of the rows that were asked for."""
        rows = len(self.positions)
        return {name: wanted / rows for name, wanted in self._wanted.items()} if rows else {}

    def _index(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each row, the offset of its solutions; and for each solution its part and its place in the part."""
        self._ask(name, None)
        found = self._indices.get(name)
        if found is None:
            own = [part.chosen for part in self._parts.get(name, ())]
            none = np.zeros(0, np.int64)
            rows = np.concatenate([none, *(rows for rows, _ in own)])
            which = np.repeat(np.arange(len(own)), [len(rows) for rows, _ in own])
            solutions = np.concatenate([none, *(places for _, places in own)])
            if len(own) > 1:
                order = in_order(rows)
                rows, which, solutions = rows[order], which[order], solutions[order]
            starts = np.searchsorted(rows, np.arange(len(self.positions) + 1))
            found = self._indices[name] = starts, which, solutions
        return found

    def present(self, name: str) -> np.ndarray:
        if name in self._wanted:
            self._wanted[name] = len(self.positions)
        return self._evaluate_within(name, None)

    def present_in(self, name: str, first: int, within: np.ndarray) -> np.ndarray:
        last = first + len(within)
        if name not in self._wanted:
            return self._evaluate_within(name, None)[first:last]
        asked = self._asked[name]
        self._wanted[name] += int(np.count_nonzero(within))
        if (within <= asked[first:last]).all():
            return self._evaluate_within(name, asked)[first:last]
        if name in self._left or any(part.solutions.waits for part in self._parts.get(name, ())):
            every = np.zeros(len(asked), bool)
            every[first:last] = within
            return self._evaluate_within(name, every)[first:last]
        return self._evaluate_within(name, None)[first:last]  # PERF: nothing waits, so all is asked for at once

    def _evaluate_within(self, name: str, within: np.ndarray | None) -> np.ndarray:
        """For each row, True if a GPM's value is not empty, evaluated here for `within`: bool (n,)."""
        self._ask(name, within)
        found = self._present.get(name)
        if found is None:
            found = self._present[name] = np.zeros(len(self.positions), bool)
            for part in self._parts.get(name, ()):
                found[part.chosen[0]] = True
        return found

    def mappings(self, name: str, row: int) -> list[Mapping]:
        starts, which, solutions = self._index(name)
        parts, read = self._parts.get(name, ()), self._read[name]
        begin, end = int(starts[row]), int(starts[row + 1])
        return [parts[which[i]].solutions.mapping(int(solutions[i]), read) for i in range(begin, end)]

    def solutions(self, name: str) -> list[tuple[np.ndarray, Solutions, np.ndarray]]:
        if name not in self._asked:
            self._ask(name, None)
        return [(rows, part.solutions, places) for part in self._parts.get(name, ()) for rows, places in [part.chosen]]

    def joined(self, patterns: Sequence[GraphPattern], conditions: Sequence[tuple[Condition, Any]]) -> Joined | None:
        from spaseq.language.solving.conjunctions import joined  # loads the kernels

        key = tuple(pattern.name for pattern in patterns)
        if key not in self._joined:
            self._joined[key] = joined([self._member(pattern) for pattern in patterns], conditions, self._budget)
        return self._joined[key]

    def _member(self, pattern: GraphPattern) -> Member:
        from spaseq.language.solving.conjunctions import Member

        starts, which, places = self._index(pattern.name)
        rows = np.repeat(np.arange(len(self.positions)), np.diff(starts))
        parts = [part.solutions for part in self._parts.get(pattern.name, ())]
        return Member(rows, which, places, parts, self._read[pattern.name], pattern.binds)


@dataclass(slots=True)
class _Left:
    """A GPM that was left in a piece of a chunk, and how many of its `solved` are parts by now."""

    piece: Piece
    unsolved: Unsolved
    taken: int = 0


class _Part:
    """The solutions of one GPM in one piece of a chunk. `places`: their indices in `solutions`. `instants`: for each,
    the index of its instant in the chunk. `rows`: for each, the index of its row in the table, -1 for none. `chosen`:
    the rows, ascending, and the places of the evaluated solutions for which the GPM's own FILTERs are true."""

    def __init__(self, name: str, solutions: Solutions, places: np.ndarray, instants: np.ndarray) -> None:
        self.name = name
        self.solutions = solutions
        self.places = places
        self.instants = instants
        self.rows = np.zeros(0, np.int64)
        self.chosen = self.rows, self.rows
        self._kept: np.ndarray | None = None

    def choose(self, within: np.ndarray) -> None:
        """Look at the solutions in the rows `within` (bool (rows of the table,)), which have not been asked for."""
        asked = np.flatnonzero(within[self.rows])
        if not len(asked):
            return
        places = self.places[asked]
        ascending = (places[1:] >= places[:-1]).all()
        kept = asked[self.solutions.kept_at(places) if ascending else self.solutions.kept[places]]
        if self._kept is None:
            self._kept = np.zeros(len(self.rows), bool)
        elif not len(kept):
            return
        self._kept[kept] = True
        every = np.flatnonzero(self._kept)
        self.chosen = self.rows[every], self.places[every]


def _parts(chunk: Chunk) -> tuple[list[_Part], dict[str, list[_Left]]]:
    """The parts of a chunk, and by GPM the part not evaluated yet. GPMs that are alike share their arrays.

    PERF: the rows made of them (`_Alike`) are shared too: 20 GPMs that differ in their FILTERs, over 25,000 events,
    took 38 ms, now 10.
    """
    from spaseq.gpm.columnar.evaluate import Unsolved  # loads the kernels

    found: list[_Part] = []
    left: dict[str, list[_Left]] = {}
    for piece in chunk.pieces:
        alike = _Alike()
        for name, solutions in piece.solutions.items():
            if isinstance(solutions, Unsolved):
                left.setdefault(name, []).append(_Left(piece, solutions))
            else:
                found.append(_Part(name, solutions, *alike.of(partial(_place, piece), solutions.events)))
    return found, left


def _by_rows(rows: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places that belong to a row, in order of the rows."""
    if (rows < 0).any():
        rows, places = rows[rows >= 0], places[rows >= 0]
    if (rows[1:] < rows[:-1]).any():
        order = in_order(rows)
        rows, places = rows[order], places[order]
    return rows, places


def _place(piece: Piece, events: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of the solutions that have their events in a piece, and their instants."""
    begin, end = np.searchsorted(events, [piece.low, piece.high])
    return np.arange(begin, end), piece.instants[events[begin:end] - piece.low]


class _Numbered(Sequence[Mapping]):
    """The mappings that have these numbers, int64; few of them are read."""

    __slots__ = ("_mappings", "_numbers")

    def __init__(self, mappings: list[Mapping], numbers: np.ndarray) -> None:
        self._mappings = mappings
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: Any) -> Any:
        return self._mappings[int(self._numbers[place])]


class _Alike:
    """The results of functions of equal arrays, each computed once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[tuple[np.ndarray, ...], Any]] = {}

    def of(self, make: Callable[..., _Made], *arrays: np.ndarray) -> _Made:
        """`make(*arrays)`, which must always be the same function."""
        own = tuple(map(id, arrays))
        if own not in self._made:
            self._made[own] = arrays, make(*arrays)  # held, so that no other array gets its id
        made: _Made = self._made[own][1]
        return made


def _partition_rows(
    parts: Sequence[_Part], names: tuple[str, ...], keys: Keys
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a partitioned table, ordered by instant, then by the key's text. Sets the `rows` of the parts.

    Returns the instant of each row, the index of its key among the keys used, and the numbers of these keys.
    """
    chosen, numbered = _Alike(), _Alike()
    codes = [chosen.of(np.take, part.solutions.codes(names, keys), part.places) for part in parts]
    used = _different(codes)
    rows = _cells(parts, codes, used)
    width = max(1, len(used))
    if (rows[1:] // width == rows[:-1] // width).any():
        used = keys.in_order(used)
        rows = _cells(parts, codes, used)
    for part in parts:
        part.rows = numbered.of(lambda own: np.where(own >= 0, np.searchsorted(rows, own), -1), part.rows)
    return rows // width, rows % width, used


def _cells(parts: Sequence[_Part], codes: Sequence[np.ndarray], used: np.ndarray) -> np.ndarray:
    """Sets the `rows` of the parts to cells, instant * len(used) + index of the key in `used`, -1 without a key.
    Returns the cells that occur, ascending."""
    places = np.full(int(used.max(initial=0)) + 2, -1, np.int64)  # the last entry is read for code -1, no key
    places[used] = np.arange(len(used))
    alike = _Alike()
    for part, own in zip(parts, codes, strict=True):
        part.rows = alike.of(
            lambda codes, instants: np.where(codes >= 0, instants * len(used) + places[codes], -1), own, part.instants
        )
    return _different([part.rows for part in parts])


def _different(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The different values of the parts, except -1, ascending: int64.

    PERF: GPMs that are alike have equal parts, and events that have one key give them in order; sorting takes a
    millisecond a batch.
    """
    found: list[np.ndarray] = []
    for part in parts:
        if not found or not (part is found[-1] or np.array_equal(part, found[-1])):
            found.append(part)
    whole = np.concatenate(found) if found else np.zeros(0, np.int64)
    if not (whole[1:] > whole[:-1]).all():
        whole = apart(whole)
    return whole[whole >= 0]
