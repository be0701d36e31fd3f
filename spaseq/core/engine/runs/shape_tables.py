"""The shapes of selection MAX and their steps, made when first needed: what `run_shapes` reads.

Like `spaseq.core.automata.determinise.Cache`, with shapes (`spaseq.core.engine.runs.rivals`) in place of sets of
states. The steps of a shape are made one symbol class at a time, since most shapes are met by few.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spaseq.core.automata.cea import CEA, INITIAL
from spaseq.core.automata.determinise import Stepper
from spaseq.core.engine.kernels import rivals as r
from spaseq.core.engine.runs.rivals import ALWAYS, STATES, Relevant, Shape, Target, To, begin
from spaseq.core.engine.runs.row_sets import Step
from spaseq.core.tecs.kernels import layout as k

_SHAPE_BYTES: Final = 1_000
"""Bytes of a shape, estimated: its sets, and its rows in the tables."""
_ACCEPTS: Final = frozenset[Any]({()})


class Table:
    """Rows of an array that grows at its end. Rows that are not in use have the value `empty`."""

    def __init__(self, width: int, dtype: Any = np.int32, empty: int = 0) -> None:
        self._empty = empty
        self.rows: np.ndarray = np.full((16, width), empty, dtype)
        self.count: int = 0

    def add(self, rows: Any) -> int:
        """Append rows; the number of the first."""
        first, self.count = self.count, self.count + len(rows)
        if self.count > len(self.rows):
            more = np.full((2 * self.count - len(self.rows), self.rows.shape[1]), self._empty, self.rows.dtype)
            self.rows = np.concatenate([self.rows, more])
        if len(rows):
            self.rows[first : self.count] = rows
        return first


class Shapes:
    """The shapes found so far by number, and their steps on symbol classes; `arrays` for the kernel."""

    def __init__(self, cea: CEA, slides: bool) -> None:
        self._relevant = Relevant(cea, int)
        self._stepper = Stepper(cea)
        self._slides = slides
        self._states = cea.states
        self._vectors: list[int] = []
        self.shapes: list[Shape] = []
        self.ranks: list[int] = []
        self._numbers: dict[Shape, int] = {}
        self._steps: dict[tuple[frozenset[int], int], Step] = {}
        self._rows_at = np.full((16, 4), r.UNKNOWN, np.int32)
        self._rows = Table(r.ROW_COLUMNS)
        self._rank_lists = Table(1)
        self._shapes = Table(r.SHAPE_COLUMNS, np.int64)
        self._later = Table(1, empty=r.UNKNOWN)
        self._begins = np.full((4, r.BEGIN_COLUMNS), r.UNKNOWN, np.int64)
        self._patterns = Table(2 + 2 * cea.states)
        self._chains = Table(1)
        self._hashes: list[int] = []
        self._buckets = np.full(64, k.NIL, np.int32)
        self.number(begin({}, {}, INITIAL).shape)

    @staticmethod
    def applies(cea: CEA) -> bool:
        """True for automata whose shapes are finite, and whose states fit into the bits of a number."""
        return not cea.has_registers and cea.states <= STATES

    @property
    def bytes(self) -> int:
        """Bytes held, estimated."""
        rows = 4 * (r.ROW_COLUMNS * self._rows.count + self._rank_lists.count)
        return _SHAPE_BYTES * (len(self.shapes) - 1) + rows

    @property
    def most_ranks(self) -> int:
        """The most starts beside a live set."""
        return max(self.ranks)

    def parts(self) -> list[Any]:
        """Its contents, to be measured."""
        return [self.shapes, self._numbers, self._steps, *self.arrays()]

    def add_classes(self, vectors: list[int]) -> None:
        """Take note of new symbol classes; `vectors` lists all of them, by number."""
        self._vectors = list(vectors)
        old_shapes, old = self._rows_at.shape
        if len(vectors) > old:
            wider = np.full((old_shapes, 2 * len(vectors)), r.UNKNOWN, np.int32)
            wider[:, :old] = self._rows_at
            self._rows_at = wider
            begins = np.full((2 * len(vectors), r.BEGIN_COLUMNS), r.UNKNOWN, np.int64)
            begins[:old] = self._begins
            self._begins = begins

    def number(self, shape: Shape) -> int:
        """The number of a shape, a new one if it is new."""
        number = self._numbers.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            ranks = len({rank for _, rank in (*shape.equal, *shape.above)} - {ALWAYS})
            own = sum(1 << q for q in shape.own)
            self.shapes.append(shape)
            self.ranks.append(ranks)
            later = self._later.add([[r.UNKNOWN]] * ranks)
            self._shapes.add([(ranks, own, int(shape.bare), later)])
            if number >= len(self._rows_at):
                more = np.full((len(self._rows_at), self._rows_at.shape[1]), r.UNKNOWN, np.int32)
                self._rows_at = np.concatenate([self._rows_at, more])
        return number

    def answer(self, state: np.ndarray, pattern: np.ndarray) -> None:
        """Work out what the kernel asks for."""
        first, second = int(state[r.ASK_1]), int(state[r.ASK_2])
        match int(state[r.ASKED]):
            case r.ASK_ROWS:
                self._add_rows(first, second)
            case r.ASK_LATER:
                self._add_later(first, second)
            case r.ASK_BEGINS:
                self._add_begins(first)
            case r.ASK_BEGIN:
                self._add_begin(first, pattern.tolist())

    def arrays(self) -> r.ShapeTables:
        """The arrays as the kernel reads them, until the next answer."""
        return r.ShapeTables(
            self._rows_at, self._rows.rows, self._rank_lists.rows[:, 0], self._shapes.rows, self._later.rows[:, 0],
            self._begins, self._patterns.rows, self._chains.rows[:, 0], self._buckets,
        )  # fmt: skip

    def _step(self, states: frozenset[int], c: int) -> Step:
        step = self._steps.get((states, c))
        if step is None:
            found = self._stepper.step(states, self._vectors[c])
            marks = tuple((label, where, _ACCEPTS if yes else frozenset()) for label, where, yes in found.marks)
            step = Step(marks, found.skip, _ACCEPTS if found.skip_accepts else frozenset())
            self._steps[states, c] = step
        return step

    def _add_rows(self, number: int, c: int) -> None:
        """The ways of a shape on a class: a row for each label. The last one has the way without marking."""
        shape = self.shapes[number]
        step = self._relevant.move(shape, INITIAL, lambda own: self._step(own, c))
        begins = shape.own == {INITIAL} and shape.bare
        skip, skip_ranks = self._target(step.skip)
        idle = k.NIL if begins else k.STAY
        if not begins and step.skip == To(shape, tuple(range(self.ranks[number]))):
            skip = k.STAY
        rows = []
        for label, to, accepts in step.marks:
            target, ranks = self._target(to)
            rows.append([target, int(bool(accepts)), label, idle, 0, ranks, 0, 0])
        if skip != idle or step.skip_rows:
            rows = rows or [[k.NIL, 0, 0, idle, 0, 0, 0, 0]]
            rows[-1][r.SKIP], rows[-1][r.PASSES], rows[-1][r.SKIP_RANKS] = skip, int(bool(step.skip_rows)), skip_ranks
        if rows:
            rows[-1][r.IS_LAST] = 1
        self._rows_at[number, c] = self._rows.add(rows) if rows else r.UNMOVED

    def _target(self, to: Target) -> tuple[int, int]:
        """The number of a target, or NIL, and the place of its starts in `ranks`."""
        if not to:
            return k.NIL, 0
        return self.number(to.shape), self._rank_lists.add([[rank] for rank in to.ranks])

    def _add_later(self, number: int, dead: int) -> None:
        to = self._relevant.without(self.shapes[number], dead)
        assert to and to.ranks == tuple(range(dead, self.ranks[number]))
        later = self.number(to.shape)
        self._later.rows[self._shapes.rows[number, r.LATER] + dead - 1] = later

    def _add_begins(self, c: int) -> None:
        """The states of rivals that matter to a run which begins at an event of the class."""
        step = self._step(frozenset({INITIAL}), c)
        every = (1 << self._states) - 1
        if not (step.marks or step.skip or step.skip_rows):
            self._begins[c] = (0, 0, 0)
            return
        if step.skip or step.skip_rows:
            self._begins[c] = (1, every, every)
            return
        known = self._relevant.rivals
        assert known is not None
        matters = 0
        for p in step.mark:
            matters |= known[p]
        found = [0, 0]
        for q in range(self._states):
            other = self._step(frozenset({q}), c)
            if other.marks:
                found[0] |= 1 << q
            if (other.completes and step.completes) or any(matters >> t & 1 for t in other.mark):
                found[1] |= 1 << q
        self._begins[c] = (1, *found)

    def _add_begin(self, c: int, pattern: list[int]) -> None:
        latest = [{q: ALWAYS if rank == r.ALWAYS_RANK else rank for q, rank in enumerate(half) if rank != k.NIL}
                  for half in (pattern[: self._states], pattern[self._states :])]  # fmt: skip
        to = begin(latest[0], latest[1], INITIAL)
        at = self._patterns.add([[c, self.number(to.shape), *pattern]])
        self._chains.add([[k.NIL]])
        with np.errstate(over="ignore"):
            number = np.int64(c)
            for rank in pattern:
                number = r.mix.function(number, np.int64(rank))
        self._hashes.append(int(number))
        if len(self._hashes) > len(self._buckets):
            self._buckets = np.full(2 * len(self._buckets), k.NIL, np.int32)
            again = range(len(self._hashes))
        else:
            again = range(at, at + 1)
        for row in again:
            bucket = r.bucket_of.function(self._hashes[row], len(self._buckets))
            self._chains.rows[row, 0] = self._buckets[bucket]
            self._buckets[bucket] = row
