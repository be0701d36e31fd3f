"""The recogniser's loop for automata whose registers are compared attribute by attribute: the kernel's.

It gives the answers of `GuardedRun` and hands over to it, for good, at the first batch with values that have no codes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spaseq.automata.rma import formulas as f
from spaseq.automata.rma.automaton import RMA, Transition, live_registers
from spaseq.automata.rma.guarded_run import Bound, GuardedRun, Kept
from spaseq.automata.rma.limits import Limits
from spaseq.automata.rma.register_codes import NOTHING, SYMBOLS, Codes, Literal, Side, alternatives
from spaseq.automata.rma.vocabulary import Vocabulary

__all__ = ["KernelRun"]

REGISTERS: Final = 62
"""Registers that fit into a word."""
_ROOM: Final = 256
_GONE: Final = -1  # a configuration's cell, as the kernel has it

Clauses = list[tuple[Literal, ...]]


class KernelRun:
    """The configurations alive, in arrays; see `recognise_guarded` for them."""

    def __init__(
        self, automaton: RMA, vocabulary: Vocabulary, limits: Limits, literals: dict[f.Test, Literal]
    ) -> None:
        self._automaton, self._vocabulary, self._limits = automaton, vocabulary, limits
        self._codes = Codes(iter(literals.values()))
        self._column = {name: i for i, name in enumerate(self._codes.names)}
        self._register = {register: i for i, register in enumerate(automaton.registers)}
        self._live = live_registers(automaton)
        read = dict.fromkeys(side for x in literals.values() for side in (x.left, x.right) if side[0] != f.CURRENT)
        self._slots: list[Side] = list(read)
        self._first = np.zeros(1, np.int64)
        self._moves = np.zeros((0, 7), np.int64)
        self._literals = np.zeros((0, 6), np.int64)
        self._stays = np.zeros(0, bool)
        self._inert = np.zeros(0, bool)
        self._counts = np.zeros(2, np.int64)
        self._confs = np.zeros((_ROOM, 2 + len(read)), np.int64)
        self._starts = np.zeros(_ROOM, np.int64)
        self._table = np.full(4 * _ROOM, _GONE, np.int64)
        self._heads = np.zeros(0, np.int64)
        self._begun = np.zeros(0, bool)
        self._arriving = np.zeros((_ROOM // 4, 1 + len(read)), np.int64)
        self._kind: np.dtype[Any] | None = None
        self._instead: GuardedRun | None = None

    @staticmethod
    def of(automaton: RMA, vocabulary: Vocabulary, limits: Limits) -> KernelRun | None:
        """The run of an automaton whose conditions the kernel takes; else None."""
        literals: dict[f.Test, Literal] = {}
        for test in vocabulary.wide:
            found = alternatives(test)
            if found is None:
                return None
            ((literals[test],),) = found
        asked = [alternatives(t.formula, narrow=vocabulary.narrow) for t in automaton.transitions if t.reads]
        if len(automaton.registers) > REGISTERS or None in asked:
            return None
        return KernelRun(automaton, vocabulary, limits, literals)

    @property
    def configurations(self) -> int:
        """How many are alive."""
        return int(self._counts[0]) if self._instead is None else self._instead.configurations

    def inert(self, classes: int) -> np.ndarray:
        """bool (classes,): the classes at which every run just waits."""
        if self._instead is not None:
            return self._instead.inert(classes)
        while len(self._inert) < classes:
            kind, waits = len(self._inert), True
            for q in range(self._automaton.states):
                stays, moves = self._compiled(q, kind)
                self._moves = np.concatenate([self._moves, np.array(moves, np.int64).reshape(-1, 7)])
                self._first = np.append(self._first, len(self._moves))
                self._stays = np.append(self._stays, stays)
                waits &= (stays and not moves) or not self._automaton.leaving[q]
            self._inert = np.append(self._inert, waits)
        return self._inert

    def _compiled(self, state: int, kind: int) -> tuple[bool, list[tuple[int, ...]]]:
        """Whether runs may wait in a state at events of a class, and their moves."""
        stays, moves = False, []
        for t in self._automaton.leaving[state]:
            formula = self._vocabulary.left(t.formula, kind)
            if formula == f.TRUE and t.target == state and not t.writes and not t.marks:
                stays = True
                continue
            clauses = alternatives(formula)
            assert clauses is not None  # asked before, of more
            moves += [self._move(t, clause) for clause in clauses]
        return stays, moves

    def _move(self, t: Transition, clause: tuple[Literal, ...]) -> tuple[int, ...]:
        begin, live = len(self._literals), self._live[t.target]
        rows = [(SYMBOLS.index(x.symbol), x.negated, *self._side(x.left), *self._side(x.right)) for x in clause]
        self._literals = np.concatenate([self._literals, np.array(rows, np.int64).reshape(-1, 6)])
        writes = sum(1 << self._register[r] for r in t.writes & live)
        forgets = sum(1 << i for r, i in self._register.items() if r not in live)
        target = t.target if self._automaton.leaving[t.target] else _GONE
        accepts = t.marks and t.target in self._automaton.finals
        return target, t.marks, accepts, begin, len(self._literals), writes, forgets

    def _side(self, side: Side) -> tuple[bool, int]:
        """Whether it is a slot, and which; else which column of the event."""
        argument, name = side
        return (False, self._column[name]) if argument == f.CURRENT else (True, self._slots.index(side))

    # Running

    def advance(
        self, rows: Any, moving: np.ndarray, classes: np.ndarray, coordinates: np.ndarray, keys: np.ndarray,
        bound: Bound,
    ) -> np.ndarray:  # fmt: skip
        """bool (n,): the rows at which a run accepts."""
        if self._instead is None and len(moving):
            if self._codes.full:
                self._codes.forget(self._alive()[:, 2:])
            values = self._codes.load(rows)
            kind = np.dtype(np.float64 if coordinates.dtype.kind == "f" else np.int64)
            if values is None or self._kind not in (None, kind):
                self._hand_over(len(self._vocabulary.vectors))
            else:
                self._fit(int(keys.max()) + 1, kind)
                numbers = np.ascontiguousarray(coordinates, kind)
                return self._kernel(rows, moving, classes, numbers, keys, bound, values)
        if self._instead is not None:
            return self._instead.advance(rows, moving, classes, coordinates, keys, bound)
        return np.zeros(len(rows), bool)

    def _kernel(
        self, rows: Any, moving: np.ndarray, classes: np.ndarray, numbers: np.ndarray, keys: np.ndarray, bound: Bound,
        values: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        from spaseq.automata.rma import kernels as k

        found = np.zeros(len(rows), bool)
        unmarked = _unmarked(numbers.dtype)
        size = numbers.dtype.type(min(bound.size, unmarked))
        registers = np.array([self._register[register] for register, _ in self._slots], np.int64)
        columns = np.array([self._column[name] for _, name in self._slots], np.int64)
        initial = np.array(sorted(self._automaton.starts), np.int64)
        at, most = 0, self._limits.max_configurations
        while True:
            begins = np.zeros(len(self._arriving), numbers.dtype)
            status, at = k.recognise_guarded(
                at, moving, classes, numbers, keys, values, self._automaton.states, initial, self._first, self._moves,
                self._literals, self._stays, registers, columns, unmarked, size, self._confs, self._starts, self._heads,
                self._begun, self._table, self._counts, self._arriving, begins, most, found,
            )  # fmt: skip
            if status == k.DONE:
                break
            if status == k.GROW_ARRIVING:
                self._arriving = np.zeros((2 * len(self._arriving), self._arriving.shape[1]), np.int64)
            if status == k.REBUILD or 2 * len(self._arriving) > len(self._confs):
                i = int(moving[at])
                # The number of the event before: its own is not part of what was seen yet.
                self._rebuild(numbers[i], int(keys[i]), bound)
        if self._counts[0] > most:
            i = int(moving[-1])
            self._rebuild(numbers[i], int(keys[i]), bound)
        return found

    def _alive(self) -> np.ndarray:
        """The configurations alive."""
        used = self._confs[: self._counts[1]]
        return used[used[:, 0] != _GONE]

    def _rebuild(self, now: Any, key: int, bound: Bound) -> None:
        """Forget what is gone or has left the window, and make room; raise if too much is left."""
        from spaseq.automata.rma import kernels as k

        used = int(self._counts[1])
        cells, starts = self._confs[:used, 0], self._starts[:used]
        late = (starts != _unmarked(starts.dtype)) & (starts < now - bound.size)
        if not bound.shared:
            late &= cells // self._automaton.states == key
        kept = np.flatnonzero((cells != _GONE) & ~late)
        self._limits.configurations(len(kept))
        room = _ROOM
        while room < 2 * len(kept) + 2 * len(self._arriving) + self._automaton.states:
            room *= 2
        confs, begun = np.zeros((room, self._confs.shape[1]), np.int64), np.zeros(room, self._starts.dtype)
        confs[: len(kept)], begun[: len(kept)] = self._confs[kept], starts[kept]
        self._confs, self._starts = confs, begun
        self._table = np.full(4 * room, _GONE, np.int64)
        self._counts[:] = len(kept)
        k.rebuild(self._confs, self._heads, self._table, self._counts)

    def _fit(self, keys: int, kind: np.dtype[Any]) -> None:
        """Room for partitions; the type of the numbers that windows are measured in, from the first batch on."""
        if self._kind is None:
            self._kind, self._starts = kind, self._starts.astype(kind)
        if keys > len(self._begun):
            grown = max(keys, 2 * len(self._begun))
            heads = np.full(grown * self._automaton.states, _GONE, np.int64)
            heads[: len(self._heads)] = self._heads
            begun = np.zeros(grown, bool)
            begun[: len(self._begun)] = self._begun
            self._heads, self._begun = heads, begun

    # Handing over

    def _hand_over(self, classes: int) -> None:
        """Go on in Python, from the configurations there are."""
        run = self._instead = GuardedRun(self._automaton, self._vocabulary, self._limits)
        run.inert(classes)
        texts, states = self._codes.texts(), self._automaton.states
        alive: dict[int, list[dict[Kept, float]]] = {
            key: [{} for _ in range(states)] for key in np.flatnonzero(self._begun).tolist()
        }
        used = int(self._counts[1])
        for conf, start in zip(self._confs[:used].tolist(), self._starts[:used].tolist(), strict=True):
            if conf[0] != _GONE:
                key, state = divmod(conf[0], states)
                begun = float("inf") if start == _unmarked(self._starts.dtype) else start
                alive[key][state][self._kept(conf[2:], run.kept, texts)] = begun
        run.restore(alive)

    def _kept(self, held: list[int], names: dict[str, tuple[str, ...]], texts: dict[int, Any]) -> Kept:
        """The registers as `GuardedRun` keeps them."""
        codes = dict(zip(self._slots, held, strict=True))
        kept: list[tuple[Any, ...] | None] = []
        for register in self._automaton.registers:
            own = [(name, codes[register, name]) for name in names[register]]
            nothing = not own or own[0][1] == NOTHING
            kept.append(None if nothing else tuple(self._codes.value(name, code, texts) for name, code in own))
        return tuple(kept)


def _unmarked(kind: np.dtype[Any]) -> Any:
    return kind.type(np.inf) if kind.kind == "f" else np.int64(np.iinfo(np.int64).max)
