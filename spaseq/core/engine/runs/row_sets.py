"""Evaluation of automata with registers: guards over several events ([RMA]'s registers on [CORE]'s structure).

A run is in a *configuration*, (state, register row). The structure hangs off sets of configurations, as the lazily
determinised automaton's hangs off sets of states. From one set, an event leads to one set by marking and to one by not
marking it. So no complex event is found twice, and runs with equal registers are one, however many events they took.
The moves of an event are computed here, once per configuration; the kernels do the rest.

Cost per event: the live configurations whose state can move on the event's symbol class, not the partial matches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spaseq.core.automata.cea import ACCEPT, INITIAL, Again, Avoid, Leave, Take, Transition
from spaseq.core.engine.kernels.drivers import run_moves
from spaseq.core.engine.program.matches import Emit, MatchBatch, matches_of
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.settings import Registers
from spaseq.core.engine.runs.base import LiveSets, Run
from spaseq.core.errors import BudgetExceeded, InternalError
from spaseq.core.jit import Bound, attempt, interprets
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import expect
from spaseq.core.tecs import Arena, Chunk
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.structure import clear_cell
from spaseq.core.watch import check

Configuration = tuple[int, Hashable]
Configurations = frozenset[Configuration]
_Live = dict[frozenset[int], dict[Any, int]]
"""The live sets of configurations of one partition by the automaton states in them, each with its cell."""
_Rows = frozenset[Hashable]
_NO_ROWS: _Rows = frozenset()
_NO_EVENTS = np.zeros((0, k.EVENT_COLUMNS), np.int64)


class RegisterRun(Run):
    """The live sets of configurations, each with a cell of the arena, per partition."""

    def __init__(self, program: Program, arena: Arena) -> None:
        super().__init__(program, arena)
        self.registers: Registers = registers_of(program)
        self._kernel = Bound(run_moves)
        self._budget = program.settings.live_runs
        self._most_moved = program.settings.event_runs if program.registers is not None else None
        self._out = [[(sum(1 << p for p in t.predicates), t) for t in out] for out in program.cea.transitions]
        self._enabled: dict[tuple[int, int], list[list[Transition]]] = {}
        self._moves_on: dict[tuple[frozenset[int], int], bool] = {}
        self._live: dict[int, _Live] = {}
        self._count = 0
        self._sweep_at = 256
        self._free: list[int] = []
        self._accepted: list[tuple[_Rows, _Rows]] = []
        self._completed = False
        self._left: list[Any] = []

    @property
    def statistics(self) -> dict[str, int]:
        return {"live_runs": self._count}

    def parts(self) -> dict[str, list[Any]]:
        found = super().parts()
        return found | {"automaton": [*found["automaton"], self._enabled, self._moves_on, self._out]}

    @property
    def has_rows(self) -> bool:
        return True

    def matches(self, chunk: Chunk) -> MatchBatch:
        rows = [self._accepted[t][0] if t >= 0 else self._accepted[-1 - t][1] for t in chunk.tag.tolist()]
        return matches_of(chunk, self._labels, rows)

    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        self.registers.load(batch)
        self._admit(events)
        st, consume = self._arena.st, self._consume
        for event, c, position, key, low, keep in events.tolist():
            check()
            if consume == k.CONSUME_ANY:
                low, keep = max(low, int(st[k.FLOOR])), max(keep, int(st[k.FLOOR]))
            elif consume != k.CONSUME_NONE:
                low = max(low, int(self.floors[key]))
                st[k.KEY] = key
            if self.own_windows:
                self.lows[key] = low
            if low > position:
                continue
            count = self._plan(event, c, key, position, low)
            if count:
                yield from self._apply(count, position, low, keep, emit, write)
                if self._completed and consume == k.CONSUME_ANY:
                    st[k.FLOOR] = position + 1
                elif self._completed and consume in (k.CONSUME_PARTITION, k.CONSUME_ONCE):
                    self.floors[key] = k.NEVER if consume == k.CONSUME_ONCE else position + 1
                self._evict(key, low)

    def _apply(self, count: int, position: int, low: int, keep: int, emit: Emit, write: bool) -> Iterator[None]:
        arena = self._arena
        arena.st[k.ROW] = 0

        def kernel() -> int:
            writes = write or interprets(run_moves)  # see `base.Run.advance`
            output = *arena.output(self._order, self._limit, writes), self.after
            return int(attempt(self._kernel, arena.structure, *output, count, position, low, keep))

        while self._run_kernel(kernel, emit, _NO_EVENTS) == k.FLUSH:
            yield
        if arena.st[k.MATCHES]:
            arena.flush(emit)  # tags are only meaningful until the next event
            yield

    def _plan(self, event: int, c: int, key: int, position: int, low: int) -> int:
        """Write the moves of this event to the arena; how many there are. Dead and unmoved sets take no part."""
        arena = self._arena
        live = self._live.setdefault(key, {})
        moving: list[tuple[int, Any]] = []
        for states, sets in live.items():
            if self._can_move(states, c):
                starts = arena.cells[np.fromiter(sets.values(), np.int64, len(sets)), k.HEAD_MAX].tolist()
                moving += [(cell, s) for (s, cell), start in zip(sets.items(), starts, strict=True) if start >= low]
        self._accepted = []
        self._completed = False
        self._left = []
        if self._most_moved is not None:
            moved = sum([len(source) for _, source in moving])
            if moved > self._most_moved:
                hint = "raise event_runs, narrow the window, or compare fewer distinct values"
                raise BudgetExceeded("event_runs", self._most_moved, moved, "runs", hint)
        # Targets get their cells only once all steps are known: one of them may be a set that another move leaves.
        steps = self._steps(moving, event, c, live, position, low)
        if self._order == k.EARLIEST:
            steps = [(cell, source, step.greedy()) for cell, source, step in steps]
        arena.add_moves(sum(max(1, len(step.marks)) for _, _, step in steps))
        count = 0
        for cell, source, step in steps:
            stays = step.skip == source
            if not (step.marks or step.skip_rows) and (stays or (source is None and not step.skip)):
                continue
            # With several labels, the source stays where it is in all moves but the last.
            for label, target, rows in step.marks[:-1]:
                self._move(count, cell, live, label, target, rows, k.NIL if source is None else k.STAY, _NO_ROWS)
                count += 1
            label, target, rows = step.marks[-1] if step.marks else (0, (), _NO_ROWS)
            skip = k.STAY if stays else self._cell(live, step.skip)
            self._move(count, cell, live, label, target, rows, skip, step.skip_rows)
            count += 1
            if source is not None and not stays:
                self._left.append(source)
        return count

    def _move(
        self, count: int, cell: int, live: _Live, label: int, target: Any, rows: _Rows, skip: int, skip_rows: _Rows
    ) -> None:
        move = self._arena.moves[count]
        move[k.SOURCE] = cell
        move[k.MARK_TO] = self._cell(live, target)
        move[k.MARK_ACCEPTS] = bool(rows)
        move[k.M_LABEL] = label
        move[k.SKIP_TO] = skip
        move[k.SKIP_ACCEPTS] = bool(skip_rows)
        move[k.M_TAG] = count
        self._accepted.append((rows, skip_rows))
        self._completed |= bool(rows or skip_rows)

    def _can_move(self, states: frozenset[int], c: int) -> bool:
        """True if a run in one of `states` may do more than stay put on symbol class c, guards apart."""
        known = self._moves_on.get((states, c))
        if known is None:
            vector = self._vectors[c]
            known = not all(self._stepper.stays(q, vector) for q in states)
            self._moves_on[states, c] = known
        return known

    def _steps(
        self, moving: list[tuple[int, Any]], event: int, c: int, live: _Live, position: int, low: int
    ) -> list[tuple[int, Any, Step]]:
        """(cell, set, step) for a run that starts at the event (cell NIL, no set) and for those that move."""
        memo: dict[Configuration, Step] = {}
        start = frozenset({(INITIAL, self.registers.empty)})
        found: list[tuple[int, Any, Step]] = [(k.NIL, None, self._step(start, event, c, memo))]
        for cell, source in moving:
            check()
            if len(source) > 1:
                found.append((cell, source, self._step(source, event, c, memo)))
                continue
            # PERF: the usual set has one configuration and its guards reject the event; no step is made for it.
            ((q, row),) = source
            fired = self._fire(q, row, event, c)
            if not (len(fired) == 1 and fired[0][0].target == q and fired[0][1] is row and not fired[0][0].marks):
                found.append((cell, source, _step_of(fired)))
        return found

    def _states(self, key: Any) -> frozenset[int]:
        """The automaton states whose moves concern a live set."""
        return frozenset(q for q, _ in key)

    def _step(self, source: Configurations, event: int, c: int, memo: dict[Configuration, Step]) -> Step:
        steps = []
        for configuration in source:
            step = memo.get(configuration)
            if step is None:
                step = memo[configuration] = _step_of(self._fire(*configuration, event, c))
            steps.append(step)
        return steps[0] if len(steps) == 1 else Step.union(steps)

    def _fire(self, q: int, row: Hashable, event: int, c: int) -> list[tuple[Transition, Hashable]]:
        """The transitions that a configuration takes, with its rows after them.

        A transition fires if none of a lower rank does, guards included.
        """
        enabled = self._enabled.get((q, c))
        if enabled is None:
            vector = self._vectors[c]
            able = [t for need, t in self._out[q] if need & vector == need]
            enabled = [[t for t in able if t.rank == rank] for rank in sorted({t.rank for t in able})]
            self._enabled[q, c] = enabled
        for transitions in enabled:
            fired = []
            for t in transitions:
                after = act(self.registers, row, t, event) if t.actions else row
                if after is not None:
                    fired.append((t, after))
            if fired:
                return fired
        return []

    def _cell(self, live: _Live, target: Any) -> int:
        """The cell of a set of configurations, given one if it has none; NIL for the empty set."""
        if not target:
            return k.NIL
        sets = live.setdefault(self._states(target), {})
        cell = sets.get(target)
        if cell is None:
            if not self._free:
                if self._count >= self._budget:
                    raise BudgetExceeded("live_runs", self._budget, self._count + 1, "runs")
                first = len(self._arena.cells)
                self._arena.add_cells(first + min(max(64 - first, first), self._budget - self._count))
                self._free = list(range(len(self._arena.cells) - 1, first - 1, -1))
            cell = sets[target] = self._free.pop()
            self._count += 1
        return cell

    def _drop(self, sets: dict[Any, int], configurations: Any) -> None:
        cell = sets.pop(configurations)
        attempt(clear_cell, self._arena.cells, self._arena.entries, self._arena.st, cell)
        self._free.append(cell)
        self._count -= 1

    def _evict(self, key: int, low: int) -> None:
        """Forget the sets whose runs have all moved on, and now and then those whose runs are out of the window."""
        live, cells = self._live[key], self._arena.cells
        for configurations in self._left:
            sets = live[self._states(configurations)]
            if configurations in sets and cells[sets[configurations], k.HEAD] < 0:
                self._drop(sets, configurations)
        if self._count > self._sweep_at:
            for partition in [live] if self.own_windows else list(self._live.values()):
                for sets in partition.values():
                    for configurations, cell in list(sets.items()):
                        if cells[cell, k.HEAD] < 0 or cells[cell, k.HEAD_MAX] < low:
                            self._drop(sets, configurations)
            self._live = {other: sets for other, sets in self._live.items() if any(sets.values())}
            self._sweep_at = 2 * self._count + 256

    def _end(self, numbers: np.ndarray, alive: np.ndarray) -> int:
        cells, found = self._arena.cells, 0
        for key in numbers.tolist():
            for sets in self._live.pop(key, {}).values():
                for configurations, cell in list(sets.items()):
                    found += bool(cells[cell, k.HEAD] >= 0 and cells[cell, k.HEAD_MAX] >= alive[key])
                    self._drop(sets, configurations)
        return found

    def live(self) -> LiveSets:
        live = (
            (cell, key, configurations)
            for key, by_states in self._live.items()
            for sets in by_states.values()
            for configurations, cell in sets.items()
        )
        return LiveSets.of(live, *self._bounds())

    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        live = LiveSets.restore(state["live"], self._arena)
        self.follow(replace(live, sets=list(map(self._restore_set, live.sets))), vectors)

    def follow(self, live: LiveSets, vectors: list[int]) -> None:
        """Go on from the live runs. O(cells). Raises `InternalError` if two cells of one partition have one set."""
        self._take_bounds(live)
        for key, number, cell in zip(live.keys.tolist(), live.numbers.tolist(), live.cells.tolist(), strict=True):
            configurations = live.sets[number]
            self._live.setdefault(key, {}).setdefault(self._states(configurations), {})[configurations] = cell
        taken = np.zeros(len(self._arena.cells), bool)
        taken[live.cells] = True
        self._free = np.flatnonzero(~taken).tolist()
        self._count = sum(len(sets) for by_states in self._live.values() for sets in by_states.values())
        if self._count != len(live.cells):
            raise InternalError("two cells of one partition have the same live set")
        self.add_classes(vectors)

    def _restore_set(self, configurations: Any) -> Any:
        """A live set, as a snapshot has it."""
        states = range(self._stepper.states)
        known = type(configurations) is frozenset and all(type(q) is int and q in states for q, _ in configurations)
        expect(known and configurations, "states of the automaton")
        return configurations


def _step_of(fired: list[tuple[Transition, Hashable]]) -> Step:
    marks: dict[int, tuple[set[Any], set[Hashable]]] = {}
    skip: set[Any] = set()
    skip_rows: set[Hashable] = set()
    for t, row in fired:
        to, rows = marks.setdefault(t.label, (set(), set())) if t.marks else (skip, skip_rows)
        if t.target == ACCEPT:
            rows.add(row)
        else:
            to.add((t.target, row))
    ways = tuple((label, frozenset(to), frozenset(rows)) for label, (to, rows) in sorted(marks.items()))
    return Step(ways, frozenset(skip), frozenset(skip_rows))


def act(registers: Registers, row: Hashable, transition: Transition, event: int) -> Hashable | None:
    """The register row behind a transition on an event of the batch that `registers` have loaded; None if a guard
    rejects it."""
    for action in transition.actions:
        match action:
            case Take(guard, variables):
                row = registers.take(row, guard, variables, event)
                if row is None:
                    return None
            case Avoid(guard, variables):
                if registers.take(row, guard, variables, event) is not None:
                    return None
            case Leave(guard):
                row = registers.leave(row, guard)
                if row is None:
                    return None
            case Again(what):
                row = registers.again(row, what)
    return row


def registers_of(program: Program) -> Registers:
    """The meaning of the guards of a program; a pattern without guards has one register row."""
    if program.registers is None and program.cea.has_registers:
        raise InternalError("a pattern with guards was compiled without registers")
    return program.registers or _NoRegisters()


class _NoRegisters:
    empty: Hashable = ()

    def load(self, batch: Any) -> None:
        """Nothing is ever read from it."""

    def take(self, row: Any, guard: Any, variables: frozenset[str], event: int) -> Any:
        raise InternalError("a guard without registers")

    def leave(self, row: Any, guard: Any) -> Any:
        return row

    def again(self, row: Any, action: Any) -> Any:
        return row


@dataclass(slots=True, eq=False)
class Step:
    """The ways of a set of configurations on one event: by marking, by skipping, and the rows it accepts with.

    `marks`: (label, target, rows) for each label under which the event can be marked.
    """

    marks: tuple[tuple[int, Any, _Rows], ...]
    skip: Any
    skip_rows: _Rows

    @property
    def mark(self) -> list[Any]:
        """The configurations it reaches by marking, under any label."""
        return [one for _, where, _ in self.marks for one in where]

    @property
    def completes(self) -> bool:
        """True if it accepts by marking, under any label."""
        return any(rows for _, _, rows in self.marks)

    def greedy(self) -> Step:
        """As `spaseq.core.automata.determinise.greedy_step`."""
        skip = frozenset() if any(where for _, where, _ in self.marks) else self.skip
        return Step(self.marks, skip, _NO_ROWS if self.completes else self.skip_rows)

    @staticmethod
    def union(steps: list[Step]) -> Step:
        marks: dict[int, tuple[Any, _Rows]] = {}
        for step in steps:
            for label, where, rows in step.marks:
                before = marks.get(label, (_NO_ROWS, _NO_ROWS))
                marks[label] = before[0] | where, before[1] | rows
        return Step(
            tuple((label, *marks[label]) for label in sorted(marks)),
            frozenset().union(*(s.skip for s in steps)),
            frozenset().union(*(s.skip_rows for s in steps)),
        )
