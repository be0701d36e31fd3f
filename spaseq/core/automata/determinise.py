"""Lazy I/O-determinisation of an automaton without registers ([CORE] §4.4, "on the fly").

A deterministic state is a set of states of the automaton. From it, a symbol class leads to one state by marking the
event (one for each label, if matches are valuations) and to one by not marking it. So the marked positions of a run,
with their labels, determine its states, and no complex event is found twice. The transitions of a state, on all symbol
classes that have occurred, are computed when a run first reaches it; before that it is only a number and its set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL
from spaseq.core.errors import BudgetExceeded
from spaseq.core.snapshot import expect

NONE = -1
STAY = -2
TURN = 1 << 10
PATIENCE = 4
WORTH = 4
STEP_ROWS = 4_000
"""Rows of a cache's tables that are copied in the time of one step from a set of states.

A cache gives up by measured work, as those of RE2 and Rust's regex do (`Cache.pays`). If states are hardly used before
others replace them, a cache costs more than it saves, and more the larger it is. The unit of work is a step from a set
of states, which costs the same with and without a cache.

PERF: `any:+ : A : any : …` of 256 states in a budget for 25, cleared 4 times in 10 events: 380 µs an event, and 1,016
set by set, kernels interpreted (2026-11-23). A tiny cache pays though hardly any state is used twice.
"""
SKIP = -1
"""The label of a transition that does not mark its event."""

Row = tuple[int, int, int, int, int]
"""Target and acceptance (0 or 1) of a marking transition, its label, and target and acceptance of the transition that
does not mark. A target is a deterministic state, NONE, or STAY: the state itself."""


class Step(NamedTuple):
    """The transitions of a deterministic state on one symbol class.

    `marks`: (label, set of states reached, whether a run accepts) for each label under which the event can be marked,
    in order of the labels. `skip`, `skip_accepts`: the same without marking.
    """

    marks: tuple[tuple[int, frozenset[int], bool], ...]
    skip: frozenset[int]
    skip_accepts: bool


class Stepper:
    """The transitions of an automaton on bit vectors. `greedy`: `step` skips no event that can be marked
    (`inclusion.find_largest`)."""

    def __init__(self, cea: CEA, greedy: bool = False) -> None:
        self._greedy = greedy
        self._out = [
            [(_bits(t.predicates), t.rank, (t.label if t.marks else SKIP, t.target)) for t in out]
            for out in cea.transitions
        ]
        self._acts = [[_bits(t.predicates) for t in out if t.actions] for out in cea.transitions]

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self._out)

    def enabled(self, state: int, vector: int) -> list[tuple[int, int]]:
        """(label or SKIP, target) of the transitions of `state` that fire on `vector`."""
        able = [(rank, way) for need, rank, way in self._out[state] if need & vector == need]
        first = min([rank for rank, _ in able], default=0)
        return [way for rank, way in able if rank == first]

    def labels(self, vector: int) -> frozenset[int]:
        """The labels that an event of this vector may get, from any state."""
        every = (way for out in self._out for need, _, way in out if need & vector == need)
        return frozenset(label for label, _ in every if label != SKIP)

    def step(self, states: frozenset[int], vector: int) -> Step:
        """One step of the subset construction. O(transitions leaving `states`)."""
        reached: dict[int, set[int]] = {}
        for q in states:
            for label, target in self.enabled(q, vector):
                reached.setdefault(label, set()).add(target)
        skip = reached.pop(SKIP, set())
        marks = tuple((label, frozenset(to - {ACCEPT}), ACCEPT in to) for label, to in sorted(reached.items()))
        found = Step(marks, frozenset(skip - {ACCEPT}), ACCEPT in skip)
        return greedy_step(found) if self._greedy else found

    def inert(self, vector: int) -> bool:
        """True if an event of this vector starts nothing, marks nothing, and leaves every state as it is."""
        if self.enabled(INITIAL, vector):
            return False
        return all(self.stays(q, vector) for q in range(1, len(self._out)))

    def stays(self, state: int, vector: int) -> bool:
        """True if a run in `state` passes over an event of this vector and changes nothing, for any contents of its
        registers."""
        if self.enabled(state, vector) != [(SKIP, state)]:
            return False
        return not any(need & vector == need for need in self._acts[state])


def greedy_step(step: Step) -> Step:
    """The step of a run that does not skip an event which it can mark and go on, nor accepts without it if it can
    accept with it."""
    skip = frozenset[int]() if any(states for _, states, _ in step.marks) else step.skip
    return Step(step.marks, skip, step.skip_accepts and not any(accepts for _, _, accepts in step.marks))


def _bits(predicates: Iterable[int]) -> int:
    return sum(1 << p for p in predicates)


class Tables(NamedTuple):
    """The deterministic transitions computed so far, as `spaseq.core.engine.kernels.drivers.run_classes` reads them.

    `init`: int32 (i, 5), `Row`s of runs that start at the event; those of class c are `init_from[c]` to
    `init_from[c + 1]`, with `init_from` int64 (classes + 1,). `affected`: int32 (k, 6), a state and its `Row`, found by
    `affected_from` likewise. `known`: bool (states,), whether the transitions of a state are computed. A state has a
    row for each label; only the last one has its transition that does not mark, the others have STAY in its place.
    """

    init_from: np.ndarray
    init: np.ndarray
    affected_from: np.ndarray
    affected: np.ndarray
    known: np.ndarray


class Cache:
    """The deterministic states of one evaluation and their transitions, within a budget of bytes.

    The automaton itself never changes. `clear` drops all states but those that some run is in, which get new numbers;
    `clears` counts the calls. If those alone exceed the budget, it raises `BudgetExceeded` (`automaton_bytes`).
    `pays` says whether it is worth its while.
    """

    def __init__(self, cea: CEA, budget: int, greedy: bool = False) -> None:
        self._stepper = Stepper(cea, greedy)
        self._budget = budget
        self._vectors: list[int] = []
        self.clears: int = 0
        self._made = self._copied = self._in_vain = 0
        self._since: int | None = None
        self._evict([])

    def _evict(self, keep: list[frozenset[int]]) -> None:
        self._states = list(keep)
        self._ids = {s: i for i, s in enumerate(keep)}
        self._learnt: dict[int, None] = {}
        self._init: list[list[Row]] = []
        self._bytes = sum(map(_state_bytes, keep))
        self._tables: Tables | None = None
        self._stale = True
        self._newly: list[int] = []  # since the tables were made, and the rows since then by class
        self._fresh: list[list[tuple[int, ...]]] = [[] for _ in self._vectors]
        self._extend_init()

    def __len__(self) -> int:
        return len(self._states)

    @property
    def states(self) -> list[frozenset[int]]:
        """The deterministic states by number."""
        return self._states

    @property
    def learnt(self) -> Iterable[int]:
        """The states whose transitions have been computed."""
        return self._learnt.keys()

    def memory_usage(self) -> int:
        """Bytes held, estimated from the tables' rows and the states' sets."""
        return self._bytes

    def add_classes(self, vectors: list[int]) -> None:
        """Adds new symbol classes, and the transitions on them of known states. `vectors` has all classes, old ones
        first."""
        first = len(self._vectors)
        if len(vectors) == first:
            return
        self._vectors = list(vectors)
        self._extend_init()
        self._fresh += [[] for _ in vectors[first:]]
        for state in self._learnt:
            self._add(state, first)

    def learn(self, states: list[int]) -> None:
        """Computes the transitions of `states`. O(classes * transitions) each."""
        for state in states:
            if state not in self._learnt:
                self._learnt[state] = None
                self._newly.append(state)
                self._made += 1
                self._add(state, 0)

    @property
    def over_budget(self) -> bool:
        """True if it is time to `clear`."""
        return self._bytes > self._budget

    def pays(self, live: int, position: int) -> bool:
        """True if making states costs less than `WORTH` times the cost of following the sets of states without any.

        Called at the event at `position`, at which runs are in `live` of the states. A turn is `TURN` states made,
        including those made again after a `clear`. Without tables each event would make a step from each live state.
        False after `PATIENCE` turns in a row that cost more.
        """
        if self._since is None:
            self._since = position
        if self._made >= TURN:
            work = self._made + self._copied // STEP_ROWS
            self._in_vain = self._in_vain + 1 if work > WORTH * live * (position - self._since) else 0
            self._made, self._copied, self._since = 0, 0, position
        return self._in_vain < PATIENCE

    def clear(self, live: list[int]) -> dict[int, int]:
        """Drops all states but the `live` ones; returns their new numbers by their old ones. Raises `BudgetExceeded`
        (`automaton_bytes`) if the live ones alone exceed the budget."""
        keep = [self._states[i] for i in live]
        self._evict(keep)
        self.clears += 1
        self.learn(list(range(len(keep))))
        if self.over_budget:
            raise BudgetExceeded("automaton_bytes", self._budget, self._bytes)
        return {old: new for new, old in enumerate(live)}

    def restore(self, states: Sequence[frozenset[int]]) -> None:
        """Take the states of another cache of the same automaton, under their numbers there. Raises `OptionError` for a
        value that is not a set of the automaton's states, or that occurs twice."""
        ours = range(1, self._stepper.states)
        known = all(type(some) is frozenset and all(type(q) is int and q in ours for q in some) for some in states)
        expect(known and len(set(states)) == len(states) and frozenset() not in states, "each set of states once")
        self._evict(list(states))

    def tables(self) -> Tables:
        """The transitions as arrays. Rows made since the last call are put behind the earlier ones, class by class, so
        each row is converted from Python's numbers once. O(bytes of the arrays) if there are new rows."""
        old = self._tables
        if old is None or self._stale:
            init = _flat(self._init, 5) if old is None or len(old.init_from) <= len(self._init) else old[:2]
            affected = (
                _flat(self._fresh, 6) if old is None else _extend_flat(old.affected_from, old.affected, self._fresh)
            )
            self._fresh = [[] for _ in self._vectors]
            known = np.zeros(len(self._states), bool)
            if old is None:
                known[list(self._learnt)] = True
            else:
                known[: len(old.known)] = old.known
                known[self._newly] = True
            old = self._tables = Tables(*init, *affected, known)
            self._copied += len(old.affected)
            self._stale, self._newly = False, []
        return old

    def _extend_init(self) -> None:
        for vector in self._vectors[len(self._init) :]:
            step = self._stepper.step(frozenset({INITIAL}), vector)
            self._init.append(self._ways(step, self._id(step.skip), NONE))
        self._stale = True

    def _add(self, state: int, first: int) -> None:
        """The rows of `state` on the classes from `first` on."""
        for c, vector in enumerate(self._vectors[first:], first):
            step = self._stepper.step(self._states[state], vector)
            skip = STAY if step.skip == self._states[state] else self._id(step.skip)
            rows = self._ways(step, skip, STAY)
            self._fresh[c] += [(state, *row) for row in rows]
            self._bytes += 20 * max(1, len(rows))
        self._stale = True

    def _ways(self, step: Step, skip: int, idle: int) -> list[Row]:
        """The rows of a step, one for each label. No row if it marks nothing and its only other effect is `idle`, which
        is STAY, or NONE for a run that would start at the event."""
        ways = [(self._id(states), int(accepts), label, idle, 0) for label, states, accepts in step.marks]
        if (skip, step.skip_accepts) == (idle, False):
            return ways
        target, accepts, label = ways.pop()[:3] if ways else (NONE, 0, 0)
        return [*ways, (target, accepts, label, skip, int(step.skip_accepts))]

    def _id(self, states: frozenset[int]) -> int:
        if not states:
            return NONE
        number = self._ids.setdefault(states, len(self._states))
        if number == len(self._states):
            self._states.append(states)
            self._bytes += _state_bytes(states)
        return number


def _state_bytes(states: frozenset[int]) -> int:
    return sys.getsizeof(states) + 200


def _flat(lists: Sequence[Sequence[tuple[int, ...]]], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of the lists, int64 (lists + 1,), and their rows one after another, int32 (rows, width)."""
    rows = [row for rows in lists for row in rows]
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array(rows, np.int32).reshape(-1, width)


def _extend_flat(
    offsets: np.ndarray, rows: np.ndarray, lists: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[np.ndarray, np.ndarray]:
    """`_flat` of `lists`, whose first lists begin with the rows that `offsets` and `rows` already hold."""
    before = np.append(offsets, np.full(len(lists) + 1 - len(offsets), offsets[-1]))
    ends = before + np.cumsum([0, *map(len, lists)])
    found = np.empty((int(ends[-1]), rows.shape[1]), np.int32)
    for c, more in enumerate(lists):
        middle = int(ends[c] + before[c + 1] - before[c])
        found[ends[c] : middle] = rows[before[c] : before[c + 1]]
        if more:
            found[middle : ends[c + 1]] = more
    return ends, found
