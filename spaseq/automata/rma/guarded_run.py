"""The recogniser's loop for automata with registers: configurations in dictionaries, event by event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from spaseq.automata.rma import formulas as f
from spaseq.automata.rma.automaton import RMA, Transition, live_registers
from spaseq.automata.rma.formulas import Formula, Test
from spaseq.automata.rma.limits import Limits
from spaseq.automata.rma.vocabulary import View, Vocabulary
from spaseq.errors import EventError

__all__ = ["Ask", "Bound", "GuardedRun", "Kept", "Layout"]

Kept = tuple[Any, ...]
"""What is kept of an event, and of all registers: tuples of values."""
Ask = Callable[[Kept, Kept], bool]
"""Of what is read off the event at hand and what is kept in the registers."""
_UNMARKED: Final = float("inf")


class _Whole:
    """A whole event, kept for a relation that reads it; equal to nothing but itself."""

    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event


@dataclass(frozen=True, slots=True)
class Bound:
    """The greatest distance of a match's events, and whether all partitions measure it in the same numbers."""

    size: float
    shared: bool


@dataclass(frozen=True, slots=True)
class _Move:
    """A transition at the events of one symbol class: what is left to ask, and what it does."""

    ask: Ask | None
    target: int
    writes: tuple[int, ...]
    marks: bool
    accepts: bool
    forgets: tuple[int, ...]
    """Registers that nothing can read behind it."""


@dataclass(frozen=True, slots=True)
class _Moves:
    stays: bool
    """Runs may wait here through the event, unchanged."""
    moves: tuple[_Move, ...]


class GuardedRun:
    """The configurations alive: for each partition and state a dictionary from registers to the latest start."""

    def __init__(self, automaton: RMA, vocabulary: Vocabulary, limits: Limits) -> None:
        self._automaton = automaton
        self._vocabulary = vocabulary
        self._limits = limits
        self._live = live_registers(automaton)
        self._place = {register: i for i, register in enumerate(automaton.registers)}
        self._layout = Layout(automaton, vocabulary.wide, self._place)
        self._moves: list[list[_Moves]] = []
        self._inert = np.zeros(0, bool)
        self._alive: dict[int, list[dict[Kept, float]]] = {}
        self._empty: Kept = (None,) * len(self._place)
        self.configurations = 0

    @property
    def kept(self) -> dict[str, tuple[str, ...]]:
        """The attributes that are kept of the event in each register."""
        return {register: self._layout.kept(register) for register in self._place}

    def restore(self, alive: dict[int, list[dict[Kept, float]]]) -> None:
        """Go on from these configurations."""
        self._alive = alive
        self.configurations = sum(len(runs) for states in alive.values() for runs in states)

    def inert(self, classes: int) -> np.ndarray:
        """bool (classes,): the classes at which every run just waits."""
        while len(self._moves) < classes:
            kind = len(self._moves)
            self._moves.append([self._compiled(q, kind) for q in range(self._automaton.states)])
            waits = all(m.stays and not m.moves for q, m in enumerate(self._moves[kind]) if self._automaton.leaving[q])
            self._inert = np.append(self._inert, waits)
        return self._inert

    def _compiled(self, state: int, kind: int) -> _Moves:
        stays, moves = False, []
        for t in self._automaton.leaving[state]:
            formula = self._vocabulary.left(t.formula, kind)
            if formula == f.TRUE and t.target == state and not t.writes and not t.marks:
                stays = True
            elif formula != f.FALSE:
                moves.append(self._move(t, formula))
        return _Moves(stays, tuple(moves))

    def _move(self, t: Transition, formula: Formula) -> _Move:
        live = self._live[t.target]
        return _Move(
            None if formula == f.TRUE else self._layout.ask(formula),
            t.target,
            tuple(sorted(self._place[r] for r in t.writes & live)),
            t.marks,
            t.marks and t.target in self._automaton.finals,
            tuple(sorted(i for r, i in self._place.items() if r not in live)),
        )

    def advance(
        self, rows: Any, moving: np.ndarray, classes: np.ndarray, coordinates: np.ndarray, keys: np.ndarray,
        bound: Bound,
    ) -> np.ndarray:  # fmt: skip
        """bool (n,): the rows at which a run accepts."""
        found = np.zeros(len(rows), bool)
        read = self._layout.reader(rows)
        kinds, numbers, parts = classes.tolist(), coordinates.tolist(), keys.tolist()
        for row in moving.tolist():
            alive = self._alive.get(parts[row])
            if alive is None:
                alive = self._alive[parts[row]] = self._begun()
            try:
                if self._step(alive, self._moves[kinds[row]], read(row), numbers[row], bound.size):
                    found[row] = True
            except EventError as error:
                position = int(rows.positions[row]) + 1
                raise EventError(error.problem, source=error.source, record=position, counted="event",
                                 hint=error.hint) from None  # fmt: skip
            if self.configurations > self._limits.max_configurations:
                self._sweep(alive, numbers[row], bound)
        return found

    def _begun(self) -> list[dict[Kept, float]]:
        alive: list[dict[Kept, float]] = [{} for _ in range(self._automaton.states)]
        for q in self._automaton.starts:
            alive[q][self._empty] = _UNMARKED
        self.configurations += len(self._automaton.starts)
        return alive

    def _step(self, alive: list[dict[Kept, float]], kinds: list[_Moves], row: Kept, now: float, size: float) -> bool:
        """One event for the runs of a partition."""
        accepted, arriving = False, []
        for q, runs in enumerate(alive):
            here = kinds[q]
            if not runs or (here.stays and not here.moves):
                continue
            late = []
            for kept, start in runs.items():
                if start != _UNMARKED and now - start > size:
                    late.append(kept)
                    continue
                for move in here.moves:
                    if move.ask is None or move.ask(row, kept):
                        begun = now if move.marks and start == _UNMARKED else start
                        accepted |= move.accepts
                        if self._automaton.leaving[move.target]:
                            after = self._layout.after(kept, row, move.writes, move.forgets)
                            arriving.append((move.target, after, begun))
            self._leave(runs, late, here.stays)
        self._arrive(alive, arriving)
        return accepted

    def _leave(self, runs: dict[Kept, float], late: list[Kept], stays: bool) -> None:
        if not stays:
            self.configurations -= len(runs)
            runs.clear()
            return
        self.configurations -= len(late)
        for kept in late:
            del runs[kept]

    def _arrive(self, alive: list[dict[Kept, float]], arriving: list[tuple[int, Kept, float]]) -> None:
        for q, kept, start in arriving:
            runs = alive[q]
            before = runs.get(kept)
            if before is None:
                self.configurations += 1
                runs[kept] = start
            elif start > before:
                runs[kept] = start

    def _sweep(self, here: list[dict[Kept, float]], now: float, bound: Bound) -> None:
        """Forget what has left the window, in all partitions if they share one; raise if too much is left."""
        for alive in self._alive.values() if bound.shared else (here,):
            for runs in alive:
                late = [k for k, start in runs.items() if start != _UNMARKED and now - start > bound.size]
                self._leave(runs, late, True)
        self._limits.configurations(self.configurations)


class Layout:
    """Where values are: which attributes are read off the event at hand, and which are kept in each register."""

    def __init__(self, automaton: RMA, wide: tuple[Test, ...], place: dict[str, int]) -> None:
        self._place = place
        self._whole = any(t.relation.reads(i) is None for t in wide for i in range(len(t.arguments)))
        of: dict[str, dict[str, None]] = {a: {} for a in (f.CURRENT, *place)}
        for t in wide:
            for i, argument in enumerate(t.arguments):
                of[argument].update(dict.fromkeys(t.relation.reads(i) or ()))
        self._kept = {argument: tuple(names) for argument, names in of.items()}
        self._names = tuple(dict.fromkeys(n for names in of.values() for n in names))
        self._index = {name: i for i, name in enumerate(self._names)}
        self._picks = [tuple(self._index[n] for n in self._kept[r]) for r in place]

    def kept(self, register: str) -> tuple[str, ...]:
        """The attributes that are kept in a register."""
        return self._kept[register]

    def reader(self, rows: Any) -> Callable[[int], Kept]:
        """A function from a row to what is read off it."""
        getters = [rows.getter(name) for name in self._names]
        if self._whole:
            return lambda row: (*[get(row) for get in getters], _Whole(rows.event(row)))
        if len(getters) == 1:
            (only,) = getters
            return lambda row: (only(row),)
        return lambda row: tuple([get(row) for get in getters])

    def after(self, kept: Kept, row: Kept, writes: tuple[int, ...], forgets: tuple[int, ...]) -> Kept:
        """The registers once the event is written to `writes`, without those in `forgets`."""
        if not writes and all(kept[i] is None for i in forgets):
            return kept
        new = list(kept)
        for i in forgets:
            new[i] = None
        for i in writes:
            new[i] = row if self._whole else tuple([row[p] for p in self._picks[i]])
        return tuple(new)

    def ask(self, formula: Formula) -> Ask:
        """A formula of wide tests as a function."""
        if isinstance(formula, Test):
            return self._test(formula)
        asked = {t: self._test(t) for t in f.tests(formula)}
        if isinstance(formula, f.All) and all(isinstance(part, Test) for part in formula.parts):
            every = tuple(asked.values())
            return lambda row, kept: all([ask(row, kept) for ask in every])
        return lambda row, kept: f.holds(formula, lambda t: asked[t](row, kept))

    def _test(self, test: Test) -> Ask:
        relation = test.relation
        if isinstance(relation, f.Relates) and not self._whole:
            return self._related(relation, test.arguments)
        on_values = getattr(relation, "on_values", None)
        if on_values is not None and not self._whole:
            return self._valued(on_values(), test)
        views = [self._view(a) for a in test.arguments]
        return lambda row, kept: bool(relation(*[view(row, kept) for view in views]))

    def _valued(self, asked: Callable[[tuple[Kept, ...]], bool], test: Test) -> Ask:
        picks = [self._several(a, test.relation.reads(i) or ()) for i, a in enumerate(test.arguments)]
        if len(picks) == 2:
            one, two = picks
            return lambda row, kept: asked((one(row, kept), two(row, kept)))
        return lambda row, kept: asked(tuple([pick(row, kept) for pick in picks]))

    def _several(self, argument: str, names: tuple[str, ...]) -> Callable[[Kept, Kept], Kept]:
        if argument == f.CURRENT:
            places = tuple(self._index[n] for n in names)
            if places == tuple(range(len(self._names))):
                return lambda row, kept: row
            return lambda row, kept: tuple([row[p] for p in places])
        register, own = self._place[argument], self._kept[argument]
        if names == own:
            return lambda row, kept: kept[register]
        places = tuple(own.index(n) for n in names)
        return lambda row, kept: tuple([kept[register][p] for p in places])

    def _related(self, relation: f.Relates, arguments: tuple[str, ...]) -> Ask:
        left, right = (self._value(a, n) for a, n in zip(arguments, (relation.left, relation.right), strict=True))
        symbol, shown = relation.operator, relation.show(*arguments)
        return lambda row, kept: f.compared(symbol, left(row, kept), right(row, kept), shown)

    def _value(self, argument: str, name: str) -> Callable[[Kept, Kept], Any]:
        if argument == f.CURRENT:
            at = self._index[name]
            return lambda row, kept: row[at]
        register, at = self._place[argument], self._kept[argument].index(name)
        return lambda row, kept: kept[register][at]

    def _view(self, argument: str) -> Callable[[Kept, Kept], Any]:
        if self._whole:
            if argument == f.CURRENT:
                return lambda row, kept: row[-1].event
            register = self._place[argument]
            return lambda row, kept: kept[register][-1].event
        if argument == f.CURRENT:
            index = self._index
            return lambda row, kept: View(index, row)
        register, index = self._place[argument], {n: i for i, n in enumerate(self._kept[argument])}
        return lambda row, kept: View(index, kept[register])
