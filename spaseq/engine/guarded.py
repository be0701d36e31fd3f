"""Automata whose guards are comparisons, as the arrays that `spaseq.tecs.kernels.run_guarded` reads.

Besides the transitions these say which registers a state still needs, so that runs which differ in nothing that can
matter are one, and how the configurations of a state are indexed: where a state waits, and every transition that could
move it is under one guard, the configurations that the guard lets pass are looked up, by a hash for `=` and in a skip
list for an order, instead of tried one after another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spaseq.automata.cea import ACCEPT, CEA, INITIAL, Avoid, Leave, Take, Transition
from spaseq.automata.determinise import SKIP, Stepper
from spaseq.errors import InternalError
from spaseq.tecs import kernels as k

_SYMBOLS = {"=": k.EQUAL, "!=": k.DIFFERENT, "<": k.LESS, "<=": k.AT_MOST, ">": k.GREATER, ">=": k.AT_LEAST}
_ORDERS = {"<", "<=", ">", ">="}

_IN_STEP = 4
"""States that `_in_step` may make for each one it is given; sets of configurations do it where more are needed."""

Compared = dict[object, tuple[int, str, str, str]]
"""Guard -> its number, symbol, left and right variable."""


class GuardTables(NamedTuple):
    """The arrays, in the order of `run_guarded`'s arguments; see there."""

    init_from: np.ndarray
    init_able: np.ndarray
    movers_from: np.ndarray
    movers: np.ndarray
    able: np.ndarray
    arcs: np.ndarray
    ops: np.ndarray
    symbols: np.ndarray
    alive: np.ndarray
    indexed: np.ndarray


class GuardedAutomaton:
    """The parts of the tables that do not depend on the symbol classes, and `tables` for those met so far.

    `members[q]`: the states of the automaton given that state q stands for. `alive`: bool (states, 2 guards), whether
    some way on from a state reads a register (2 number of guard + side) before it is dropped.
    """

    def __init__(self, cea: CEA, compared: Compared) -> None:
        self._compared = compared
        self._given = self._liveness(cea)
        self.members, cea = self._in_step(cea)
        self.alive = self._liveness(cea)
        self.stepper = Stepper(cea)
        self._all = [t for out in cea.transitions for t in out]
        self._needs = [sum(1 << p for p in t.predicates) for t in self._all]
        self._out = [[i for i, t in enumerate(self._all) if t.source == q] for q in range(cea.states)]
        self._symbols = np.array([_SYMBOLS[symbol] for _, symbol, _, _ in compared.values()], np.int32)
        self._arcs, self._ops = self._flattened()
        self._index = np.array([self._indexed(q) for q in range(cea.states)], np.int32).reshape(-1, 2)

    def read_in(self, state: int, held: list[int]) -> list[int]:
        """Of the registers of a run, those that a state of the automaton given needs; the others hold nothing."""
        return [code if needed else k.NOTHING for code, needed in zip(held, self._given[state], strict=True)]

    def _sides(self, action: Take | Avoid) -> tuple[int, int]:
        """Number of the guard, and the sides that the event is taken for: bit 0 left, bit 1 right."""
        number, _, left, right = self._compared[action.guard]
        return number, (left in action.variables) + 2 * (right in action.variables)

    def _reads(self, t: Transition) -> set[int]:
        """The registers that a transition reads: those of the sides opposite to what it takes."""
        takes = [self._sides(a) for a in t.actions if isinstance(a, Take | Avoid)]
        return {2 * g + 1 - side for g, sides in takes for side in (0, 1) if sides >> side & 1}

    def _drops(self, t: Transition) -> set[int]:
        numbers = [self._compared[a.guard][0] for a in t.actions if isinstance(a, Leave)]
        return {2 * g + side for g in numbers for side in (0, 1)}

    def _liveness(self, cea: CEA) -> np.ndarray:
        alive = np.zeros((cea.states, 2 * len(self._compared)), bool)
        steps = [(t, self._reads(t), self._drops(t)) for out in cea.transitions for t in out]
        while True:
            before = alive.copy()
            for t, reads, drops in steps:
                beyond = set() if t.target == ACCEPT else set(np.flatnonzero(before[t.target]).tolist())
                alive[t.source, list(reads | (beyond - drops))] = True
            if (alive == before).all():
                return alive

    def _in_step(self, cea: CEA) -> tuple[list[frozenset[int]], CEA]:
        """An equivalent automaton in which states that a run is always in together are one, and what each stands for.

        Transitions of one state on the same predicates, marking alike and doing the same to the registers, fire
        together, and the runs in their targets hold the same: the set of the targets is one state. So an iteration that
        may go on or be left (`A+ ; B`) is in one configuration, not in two. A register is dropped only where it could
        be read again.
        """
        alive = self._given
        plain = [frozenset({q}) for q in range(cea.states)], cea
        if any(t.otherwise for out in cea.transitions for t in out):
            return plain  # that no other transition fires is asked of each state by itself
        todo = [frozenset({INITIAL})]
        numbers = {todo[0]: INITIAL}
        out: list[tuple[Transition, ...]] = []
        for states in todo:  # grows while it is walked
            together: dict[tuple[Any, ...], set[int]] = {}
            for t in (t for q in sorted(states) for t in cea.transitions[q]):
                signature = t.predicates, t.marks, t.label, self._needed(t, alive), t.target == ACCEPT
                together.setdefault(signature, set()).add(t.target)
            mine = []
            for (predicates, marks, label, actions, accepts), targets in together.items():
                target = ACCEPT if accepts else numbers.setdefault(frozenset(targets), len(numbers))
                if target == len(todo):
                    todo.append(frozenset(targets))
                mine.append(Transition(numbers[states], predicates, marks, target, actions, False, label))
            out.append(tuple(mine))
            if len(todo) > _IN_STEP * cea.states + 16:
                return plain
        return todo, CEA(len(todo), tuple(out), cea.predicates, cea.labels)

    def _needed(self, t: Transition, alive: np.ndarray) -> tuple[Any, ...]:
        """What a transition does to the registers, without dropping what nothing behind it reads."""

        def read(guard: object) -> bool:
            number = self._compared[guard][0]
            return t.target != ACCEPT and bool(alive[t.target, 2 * number : 2 * number + 2].any())

        return tuple(a for a in t.actions if not isinstance(a, Leave) or read(a.guard))

    def _flattened(self) -> tuple[np.ndarray, np.ndarray]:
        arcs: list[tuple[int, int, bool, int, int]] = []
        ops: list[tuple[int, int, int]] = []
        for t in self._all:
            first = len(ops)
            for action in t.actions:
                match action:
                    case Take():
                        ops.append((k.TAKE, *self._sides(action)))
                    case Avoid():
                        ops.append((k.AVOID, *self._sides(action)))
                    case Leave(guard):
                        ops.append((k.LEAVE, self._compared[guard][0], 0))
                    case _:
                        raise InternalError("a register action between rounds, in an automaton of comparisons")
            arcs.append((t.label if t.marks else SKIP, t.target, t.otherwise, first, len(ops)))
        return np.array(arcs, np.int32).reshape(-1, 5), np.array(ops, np.int32).reshape(-1, 3)

    def _indexed(self, state: int) -> tuple[int, int]:
        """How the configurations of a state are indexed (`REACH` of its movers), and by which register."""
        choices = [c for i in self._out[state] for c in self._looked_up(state, self._all[i])]
        for wanted in ({"="}, _ORDERS):
            for number, symbol, register, _ in choices:
                if symbol in wanted and state != INITIAL:
                    below = (symbol in ("<", "<=")) == (register == 2 * number)
                    return k.SAME if symbol == "=" else k.BELOW if below else k.ABOVE, register
        return k.ALL_OF_THEM, 0

    def _looked_up(self, state: int, t: Transition) -> list[tuple[int, str, int, int]]:
        """(guard, symbol, register, the event's side) of the takes of `t` that one register of `state` decides."""
        found = []
        for action in t.actions:
            if isinstance(action, Take):
                number, sides = self._sides(action)
                register, side = (2 * number + 1, 2 * number) if sides == 1 else (2 * number, 2 * number + 1)
                symbol = self._compared[action.guard][1]
                if sides in (1, 2) and symbol != "!=" and self.alive[state, register]:
                    found.append((number, symbol, register, side))
            elif isinstance(action, Leave):
                break  # what comes behind it sees an empty register
        return found

    def tables(self, vectors: list[int]) -> GuardTables:
        """The arrays for these symbol classes, given as bit vectors. O(classes * transitions)."""
        init: list[list[int]] = []
        movers: list[list[tuple[int, int, int, int, int]]] = []
        able: list[int] = []
        for vector in vectors:
            init.append(self._able(INITIAL, vector))
            movers.append([])
            for q in range(1, len(self._out)):
                if not self.stepper.stays(q, vector):
                    arcs = self._able(q, vector)
                    movers[-1].append((q, len(able), len(able) + len(arcs), *self._reach(q, arcs)))
                    able += arcs
        return GuardTables(
            np.cumsum([0, *map(len, init)]).astype(np.int64),
            np.array([i for arcs in init for i in arcs], np.int32),
            np.cumsum([0, *map(len, movers)]).astype(np.int64),
            np.array([m for rows in movers for m in rows], np.int32).reshape(-1, 5),
            np.array(able, np.int32),
            self._arcs,
            self._ops,
            self._symbols,
            self.alive,
            self._index,
        )

    def _able(self, state: int, vector: int) -> list[int]:
        """The transitions of a state whose predicates hold, `otherwise` ones last."""
        found = [i for i in self._out[state] if self._needs[i] & vector == self._needs[i]]
        return sorted(found, key=lambda i: self._all[i].otherwise)

    def _reach(self, state: int, arcs: list[int]) -> tuple[int, int]:
        """Which configurations of a state must be tried, and the side of the event that is looked up.

        Not all of them only if a run stays put where nothing else fires, and all else is under the indexed guard.
        """
        kind, register = (int(x) for x in self._index[state])
        loops = [i for i in arcs if self._is_loop(self._all[i])]
        sides = [
            [side for _, _, r, side in self._looked_up(state, self._all[i]) if r == register]
            for i in arcs
            if i not in loops
        ]
        if kind == k.ALL_OF_THEM or not loops or not sides or not all(sides):
            return k.ALL_OF_THEM, 0
        return kind, sides[0][0]

    @staticmethod
    def _is_loop(t: Transition) -> bool:
        return not t.marks and t.target == t.source and not t.actions
