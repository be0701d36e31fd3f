"""Evaluation of automata whose guards are operations on codes: configurations in arrays, moved by the kernel.

It evaluates what `spaseq.core.engine.runs.row_sets` evaluates, for the guards that most queries have. These are
comparisons of a value of one variable with one of another, joins on single terms, and conditions on values of several
events. If these arrays cannot give an exact answer, it hands over, for good. There are three such cases:

* a run is in several configurations at once (an event may be marked in two ways that leave different registers);
* one code is not enough for the values taken;
* the values of a batch have no order with earlier ones, as numbers and texts.

An event may have several values at once (`ForEachValue` of `spaseq.core.engine.program.register_ops`). A configuration
then holds a set of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spaseq.core.automata import ACCEPT, INITIAL
from spaseq.core.engine.kernels.registers import layout as reg
from spaseq.core.engine.kernels.registers.index import leave_cells, rebuild, rehash, renumber
from spaseq.core.engine.kernels.registers.keeping import pool_family
from spaseq.core.engine.kernels.registers.machine import run_guarded
from spaseq.core.engine.kernels.registers.operations import remember_answers
from spaseq.core.engine.kernels.registers.pooling import pool_bucket
from spaseq.core.engine.program.matches import CodedRows, Emit, MatchBatch, matches_of
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.register_ops import Codes
from spaseq.core.engine.runs.base import HandOver, LiveSets, Run
from spaseq.core.engine.runs.coded_automaton import GuardedAutomaton, GuardTables, automaton_of
from spaseq.core.engine.runs.pooled import RunPools, leading
from spaseq.core.errors import BudgetExceeded
from spaseq.core.integers import different, in_order, ranges
from spaseq.core.jit import Bound, Kernel, attempt, attempt_events, attempt_rows, interprets
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs import NO_ROOTS, Arena, Chunk
from spaseq.core.tecs.kernels import layout as k

_ANSWERS = 1 << 16
_QUESTIONS = 1 << 10
"""Rows: of the table of answers, which is emptied when half full, and of questions that are answered at a time."""
_KEPT = (reg.CONF_ROWS, reg.CONF_HASH, reg.CONF_VALUE)
"""The columns of a configuration that are neither links nor in `LiveSets`."""


def _longer(links: np.ndarray, size: int) -> np.ndarray:
    """As many rows, the new ones without links."""
    return np.concatenate([links, np.full((size - len(links), *links.shape[1:]), k.NIL, links.dtype)])


class GuardRun(Run):
    """The live configurations, each with a cell of the arena. A configuration is a partition, a set of states, and rows
    with a code per register: the first row in `_confs`, others in `_held`."""

    def __init__(self, program: Program, arena: Arena, codes: Codes) -> None:
        super().__init__(program, arena)
        self._codes = codes
        self.automaton: GuardedAutomaton = automaton_of(program, codes)
        width = codes.registers
        self._tables: GuardTables = self.automaton.tables([], 2)
        self.kernel: Kernel = Bound(run_guarded)
        self._out = np.full((2, width), reg.NOTHING, np.int64)
        self._groups = np.zeros((len(program.cea.labels or ()) + 2, reg.GROUP_REGISTERS + 2 * width), np.int64)
        self._sets = np.zeros((64, width), np.int64)
        self._accepted = np.zeros((64, 2), np.int64)
        self._answers = np.zeros((64, width), np.int64)
        self._held = np.zeros((0, reg.HELD_REGISTERS + width), np.int64)
        self._levels = np.zeros(reg.LEVELS, np.int64)
        self._memo = np.zeros((_ANSWERS if codes.asked else 1, 2 + codes.asked), np.int64)
        self._remembered, self._emptied_at = 0, -1
        self._questions = np.zeros((_QUESTIONS if codes.asked else 1, 2 + codes.asked), np.int64)
        self._figures = np.zeros((2, reg.STACK))
        self._confs = np.zeros((0, reg.REGISTERS + width), np.int64)
        self._heads = np.zeros(0, np.int64)
        self._tops = self._links = np.zeros((0, reg.LEVELS), np.int32)
        self._ordered = False
        self._pools: RunPools | None = None
        arena.st[k.POOL_FROM] = k.NEVER
        if self.automaton.has_pools:
            starts_only, budget = self._order == k.ENDS, program.settings.live_runs
            tests, steps = len(self._tables.automaton.ops), self.automaton.steps
            self._pools = RunPools(arena, width, tests, budget, starts_only, steps)
        arena.st[k.RANDOM] = 1
        arena.st[reg.SWEEP_AT] = 256
        arena.st[reg.CONF_FREE] = k.NIL
        arena.st[reg.HELD_FREE] = k.NIL

    @property
    def statistics(self) -> dict[str, int]:
        count = int(self._arena.st[reg.CONF_COUNT])
        if self._pools is not None:
            which, owners = self._owners(self._pool_lows())
            count += int(np.count_nonzero(owners >= 0)) - len(which)
        return {"live_runs": count}

    def parts(self) -> dict[str, list[Any]]:
        found = super().parts()
        keys = [self._heads, self._tops] if self.partitions > 1 else []
        keys += [] if self._pools is None else self._pools.parts
        made = [self.automaton, self._tables]
        values = [self._codes.terms] if self._codes.chains is None else [self._codes.terms, self._codes.chains]
        return {"keys": found["keys"] + keys, "values": values, "automaton": found["automaton"] + made}

    @property
    def reached(self) -> frozenset[int] | None:
        return frozenset().union(*self.automaton.sets[1:])

    def waiting(self, low: int, most: int) -> list[tuple[frozenset[int], np.ndarray]] | None:
        if int(self._arena.st[reg.CONF_COUNT]) > most:
            return None
        found = self._waiting(low)
        families = self.automaton.families  # a pool may have runs at each step
        steps = [(members, keys) for some, keys in found if some in families for members in families[some].family]
        return found + steps

    @property
    def has_rows(self) -> bool:
        return bool(self._tables.automaton.outputs)

    def matches(self, chunk: Chunk) -> MatchBatch:
        if not self._tables.automaton.outputs:
            return super().matches(chunk)
        tags, places = different(np.where(chunk.tag < 0, -chunk.tag, chunk.tag))
        firsts, counts = self._accepted[tags].T
        begins = np.cumsum(counts) - counts
        rows = CodedRows(
            self._answers[ranges(firsts, counts)], begins[places], counts[places], self._accepted_row, self._codes
        )
        return matches_of(chunk, self._labels, rows)

    def _accepted_row(self, codes: list[list[int]]) -> Any:
        return self._codes.row(codes, ACCEPT)

    def add_classes(self, vectors: list[int]) -> None:
        known = len(self._vectors)
        super().add_classes(vectors)
        if len(vectors) > known:
            self._tables = self.automaton.tables(self._vectors, len(self._tables.indexed))

    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        codes, rows = self._codes, events[:, k.E_ROW]
        if codes.full_before(batch):  # not behind the batch: its matches may not have been read yet
            self._evict(int(events[0, k.E_LOW]))
        self._admit(events)
        values = codes.load(batch, rows)
        if values is None and codes.full:
            self._evict(int(events[0, k.E_LOW]))
            values = codes.load(batch, rows)
        if len(codes.extras) and not self.automaton.several:
            self._dissolve_pools(int(events[0, k.E_LOW]))
            self._take_several()
        if values is not None:
            yield from self._move(events, np.ascontiguousarray(values), codes.extras, emit, write)
            self._note_lows(events)
        done = int(self._arena.st[k.ROW])
        if done < len(events):
            raise HandOver(self._configurations(int(events[done, k.E_LOW])), done)

    def _evict(self, low: int) -> None:
        """Free the values of codes that no run has; the codes may be numbered anew. `low`: the first live start."""
        self._dissolve_families(low)
        live = np.flatnonzero(self._confs[:, reg.CONF_STATE] >= 0)
        first, others = self._confs[live, reg.REGISTERS :], self._held[:, reg.HELD_REGISTERS :]
        if self._pools is None:
            codes = self._codes.evict(np.concatenate([first, others]))
        else:
            lows = self._pool_lows(low)
            _, owners = self._owners(lows)
            pools, registers, rows, held = self._pools.registers(self._confs, live, owners)
            first[pools, registers] = reg.NOTHING
            codes = self._codes.evict(np.concatenate([first, others, rows]))
        if codes is None or not len(first):
            return
        first, others, coded = np.split(codes, np.cumsum([len(first), len(others)]))
        if self._pools is not None:
            first[pools, registers] = reg.POOLED
            found = self._pools.values(owners)
            found[leading(held, found.shape[1])] = coded[held]
        self._confs[live, reg.REGISTERS :], self._held[:, reg.HELD_REGISTERS :] = first, others
        attempt_rows(renumber, len(first), self._confs, self._held, self._tables.indexed)
        self._index_anew()
        if self._pools is not None:
            self._pools.plant(self._pool_arrays, owners, lows, self._pool_counts, found)

    @property
    def _pool_counts(self) -> np.ndarray:
        """The number of values that each row of a cell has, 0 if it is no pool: int64 (cells,)."""
        found: np.ndarray = (self._confs[:, reg.REGISTERS :] == reg.POOLED).sum(axis=1)
        return found

    def _move(
        self, events: np.ndarray, values: np.ndarray, extras: np.ndarray, emit: Emit, write: bool
    ) -> Iterator[None]:
        """Run over `events`; stops before the first that needs sets of configurations."""
        arena = self._arena
        arena.st[reg.ACCEPTED] = 0
        arena.st[reg.ANSWERS] = 0

        def kernel() -> int:
            writes = write or interprets(self.kernel)  # see `base.Run.advance`
            arguments = (events, values, extras if self.automaton.several else None, *self.arguments(writes))
            return attempt_events(self.kernel, arena.st, k.ROW, k.DONE, *arguments)

        while True:
            status = self._run_kernel(kernel, emit, events)
            yield
            if status == reg.GROW_CELLS:
                self._grow()
            elif status == reg.GROW_MOVES:
                arena.add_moves(2 * len(arena.moves))
            elif status == reg.GROW_ACCEPTED:
                self._accepted = np.concatenate([self._accepted, np.zeros_like(self._accepted)])
                self._answers = np.concatenate([self._answers, np.zeros_like(self._answers)])
            elif status == k.GROW_POOLS:
                self._grow_pools(events)
            elif status == k.GROW_PIECES and self._pools is not None:
                self._pools.add_pieces()
            elif status == k.POOL_UP:
                self._pool_up(events, int(arena.st[k.NEEDED]))
            elif status == k.UNPOOL:
                low = int(events[arena.st[k.ROW], k.E_LOW])
                self._note_lows(events)
                self._unpool([int(arena.st[k.NEEDED])], self._pool_lows(low))
            elif status == reg.GROW_HELD:
                self._grow_held(int(arena.st[k.NEEDED]))
            elif status == reg.GROW_SETS:
                self._check_rows(2 * len(self._sets))
                self._sets = np.zeros((2 * len(self._sets), self._codes.registers), np.int64)
            elif status == reg.GROW_CHAINS and self._codes.chains is not None:
                self._codes.chains.grow()
            elif status == reg.NEED_ANSWERS:
                self._answer(events[arena.st[k.ROW]])
            elif status == k.NEED_STATES:
                self._add_states(int(arena.st[k.NEEDED]))
            elif status != k.FLUSH:
                break

    def arguments(self, write: bool) -> tuple[Any, ...]:
        """Those of `run_guarded` behind the events and their values, until an array grows or there are new transitions
        or symbol classes."""
        arena, codes = self._arena, self._codes
        return (
            self._tables.automaton, arena.structure, self._arrays, self._several,
            reg.Effects(
                self._groups, self._out, self._accepted, self._answers,
                None if self._pools is None else self._pool_arrays,
            ),
            reg.Asking(self._memo, self._questions, self._figures) if codes.asked else None,
            None if codes.chains is None else codes.chains.array, self.floors, self._consume, self.own_windows,
            self.program.settings.live_runs, *arena.output(self._order, self._limit, write),
            self.after,
        )  # fmt: skip

    @property
    def _arrays(self) -> reg.Configurations:
        return reg.Configurations(
            self._confs, self._table, self._heads, self._equals, self._links, self._tops, self._tables.indexed,
            self._levels,
        )  # fmt: skip

    @property
    def _pool_arrays(self) -> k.Pools:
        assert self._pools is not None
        return self._pools.arrays(self._tables)

    @property
    def _several(self) -> reg.Several | None:
        return reg.Several(self._held, self._sets) if self.automaton.several else None

    def step(self, batch: Batch, event: np.ndarray, kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
        """Move the runs over one event, the row of `batch`, of a partition there is, by `kernel`, compiled or
        interpreted; `arguments`: those it has.

        False if there is more to be done than the kernel can, by `advance`, whatever has been done so far.
        """
        codes = self._codes
        values = None if codes.full else codes.load(batch, event[:, k.E_ROW])
        if values is None or (len(codes.extras) and not self.automaton.several):
            return False
        state = self._arena.st
        state[reg.ACCEPTED] = 0
        state[reg.ANSWERS] = 0
        extras = codes.extras if self.automaton.several else None
        return bool(kernel(event, np.ascontiguousarray(values), extras, *arguments) == k.DONE)

    def _answer(self, event: np.ndarray) -> None:
        """Answer the questions of guards at an event, each question once."""
        count = int(self._questions[0, 0])
        self._questions[0, 0] = 0
        asked = np.unique(self._questions[1 : 1 + count], axis=0)
        for question in asked:
            number, _, *about = question.tolist()
            question[1] = self._codes.answer(number - 1, about, int(event[k.E_ROW]))
        if self._remembered + len(asked) > len(self._memo) // 2:
            # All that one event asks must fit: emptied a second time, it would ask for ever.
            size = len(self._memo) * (2 if self._emptied_at == event[k.E_POSITION] else 1)
            self._memo = np.zeros((size, self._memo.shape[1]), np.int64)
            self._remembered, self._emptied_at = 0, int(event[k.E_POSITION])
        self._remembered += len(asked)
        attempt(remember_answers, self._memo, asked)

    def _add_states(self, bits: int) -> None:
        """Take note of a set of states that a run has reached for the first time."""
        self.automaton.add(bits)
        capacity = len(self._tables.indexed)
        while capacity < len(self.automaton.sets):
            capacity *= 2
        self._tables = self.automaton.tables(self._vectors, capacity)
        self._index_anew()

    def _admit(self, events: np.ndarray) -> None:
        room = self.room
        super()._admit(events)
        if not room:
            self._index_anew()
        elif self.room > room:
            buckets = self.room * len(self._tables.indexed)
            self._heads = _longer(self._heads, buckets)
            if self._pools is not None:
                self._pools.fit(buckets)
            if self._ordered:
                self._tops = _longer(self._tops, buckets)

    def _grow(self) -> None:
        """Double the cells. Raises `BudgetExceeded` if no more are allowed."""
        count, budget = int(self._arena.st[reg.CONF_COUNT]), self.program.settings.live_runs
        if count >= budget:
            raise BudgetExceeded("live_runs", budget, count + 1, "runs")
        size = max(64, 2 * len(self._confs))
        fresh = np.zeros((size - len(self._confs), self._confs.shape[1]), np.int64)
        fresh[:, reg.CONF_STATE] = k.NIL
        self._confs = np.concatenate([self._confs, fresh])
        self._arena.add_cells(size)
        self._new_tables()
        if self._ordered:
            self._links = _longer(self._links, size)
        attempt_rows(rehash, size, self._arrays, self._arena.st)

    def _grow_held(self, need: int) -> None:
        """Double the rows of configurations with several. Raises `BudgetExceeded` if no more are allowed."""
        first, size = len(self._held), max(64, 2 * len(self._held), len(self._held) + need)
        self._check_rows(size)
        fresh = np.zeros((size - first, self._held.shape[1]), np.int64)
        fresh[:, reg.HELD_NEXT] = np.arange(first + 1, size + 1)
        fresh[-1, reg.HELD_NEXT] = self._arena.st[reg.HELD_FREE]
        self._arena.st[reg.HELD_FREE] = first
        self._arena.st[reg.HELD_LEFT] += size - first
        self._held = np.concatenate([self._held, fresh])

    def _check_rows(self, rows: int) -> None:
        """A run with several rows counts once for each."""
        budget = self.program.settings.live_runs
        if rows > 2 * budget:
            raise BudgetExceeded("live_runs", budget, rows // 2, "runs")

    def _new_tables(self) -> None:
        """Empty hash tables for all configurations there may be."""
        slots = max(64, 2 * len(self._confs))
        self._table = np.full(slots, k.NIL, np.int64)
        self._equals = np.full(slots if (self._tables.indexed[:, 0] == reg.SAME).any() else 1, k.NIL, np.int64)

    def _index_anew(self) -> None:
        """Tables and lists for all configurations and partitions there may be, filled.

        PERF: if there are more of either, the lists only become longer. 300,000 keys in one batch, each a run under
        `b.price > a.price`: 4.8 to 2.6 us a key, 1,150 to 645 MB (2026-11-23).
        """
        buckets = self.room * len(self._tables.indexed)
        ordered = self._ordered = bool((self._tables.indexed[:, 0] >= reg.BELOW).any())
        self._new_tables()
        if self._pools is not None:
            pools = self._confs[self._pool_cells]
            sets = len(self._tables.indexed)
            self._pools.open_buckets(buckets, pools[:, reg.CONF_KEY] * sets + pools[:, reg.CONF_STATE])
        self._heads = np.full(buckets, k.NIL, np.int64)
        self._tops = np.full((buckets if ordered else 1, reg.LEVELS), k.NIL, np.int32)
        self._links = np.full((len(self._confs) if ordered else 1, reg.LEVELS), k.NIL, np.int32)
        attempt(rebuild, self._arrays, self._arena.st)

    # Pools

    def _grow_pools(self, events: np.ndarray) -> None:
        assert self._pools is not None
        self._note_lows(events)
        lows = self._pool_lows(int(events[self._arena.st[k.ROW], k.E_LOW]))
        self._pools.make_room(self._pool_arrays, self._pool_cells, lows)

    def _pool_up(self, events: np.ndarray, bucket: int) -> None:
        """Make pools of the configurations of a partition and a set of states, since an event moves many of them."""
        assert self._pools is not None
        arena = self._arena
        low = self._low_at(events)
        key, state = divmod(bucket, len(self._tables.indexed))
        home = int(self._tables.pooled[state, k.POOL_HOME])
        while True:
            if home < 0:
                status = attempt(pool_bucket, self._arrays, arena.structure, self._pool_arrays, bucket, low)
            else:
                status = attempt(pool_family, self._arrays, arena.structure, self._pool_arrays, key, home, low)
            if status == k.DONE:
                return
            if status == reg.GROW_CELLS:
                self._grow()
            elif status == k.GROW_POOLS:
                self._grow_pools(events)
            else:
                arena.grow_nodes()

    def _low_at(self, events: np.ndarray) -> int:
        """The first live start at the event that the kernel stopped at, in its partition."""
        at = events[self._arena.st[k.ROW]]
        low = int(at[k.E_LOW])
        if self._has_floors:
            low = max(low, int(self.floors[at[k.E_KEY]]))
        return max(low, int(self._arena.st[k.FLOOR])) if self._consume == k.CONSUME_ANY else low

    @property
    def _pool_cells(self) -> np.ndarray:
        """The pools that have runs."""
        return RunPools.cells(self._confs, self._tables.pooled, self._arena.cells)

    def _pool_lows(self, low: int = 0) -> np.ndarray:
        """The first live start of each cell; `low`: that of the event, unless windows differ between partitions."""
        return self.cell_lows() if self.own_windows else np.maximum(self.cell_lows(), low)

    def _owners(self, lows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pools that have runs, and the pool of each of their rows. Called only if there are pools."""
        assert self._pools is not None
        which = self._pool_cells
        return which, self._pools.owners(self._pool_arrays, which, lows)

    def _unpool(self, numbers: list[int], lows: np.ndarray) -> None:
        """Make configurations of the runs of all pools of some sets of states, which have none any more."""
        assert self._pools is not None
        which, owners = self._owners(lows)
        for number in numbers:
            self.automaton.unpool(number)
        self._tables = self.automaton.tables(self._vectors, len(self._tables.indexed))
        self._index_anew()
        states = self._confs[:, reg.CONF_STATE]
        for number in numbers:
            own = np.where(np.isin(owners, which[states[which] == number]), owners, -1)
            self._pools.dissolve(lambda: (self._arrays, self._pool_arrays), own, lows, self._grow)
        self._leave_pools(numbers)

    def _leave_pools(self, numbers: list[int]) -> None:
        """Free the pools of some sets of states, which have no runs any more, or had none before."""
        own = np.isin(self._confs[:, reg.CONF_STATE], numbers)
        cells = np.flatnonzero(own & (self._confs[:, reg.REGISTERS :] == reg.POOLED).any(axis=1))
        attempt_rows(leave_cells, len(cells), self._arena.structure, self._arrays, self._several, cells)

    def _dissolve_families(self, low: int = 0) -> None:
        """Make configurations of all pools with several steps: codes and snapshots then find all values in registers.
        `low`: as of `_pool_lows`. O(n log n)."""
        if self._pools is not None and self.automaton.families and len(self._pool_cells):
            lows, numbers = self._pool_lows(low), self.automaton.family_numbers
            arrays = lambda: (self._arrays, self._pool_arrays)  # noqa: E731
            self._pools.dissolve_families(arrays, self._pool_cells, lows, self._grow, numbers)
            self._leave_pools(np.flatnonzero(numbers[:, 0, 0] >= 0).tolist())

    def _dissolve_pools(self, low: int) -> None:
        """Make configurations of all pools, for good. `low`: as of `_pool_lows`. O(n log n)."""
        self._dissolve_families(low)
        if self._pools is not None:
            pooled = np.flatnonzero(self._tables.pooled[:, 0] > 0).tolist()
            self._unpool([number for number in pooled if number < len(self.automaton.sets)], self._pool_lows(low))

    def _take_several(self) -> None:
        """Events may have several values from now on. There are no pools any more."""
        self.automaton.take_several()
        self._pools, self._arena.st[k.POOL_FROM] = None, k.NEVER
        self.kernel = Bound(run_guarded)  # its arguments have other types now
        self._tables = self.automaton.tables(self._vectors, len(self._tables.indexed))
        self._index_anew()

    def compact(self, lows: np.ndarray, roots: np.ndarray = NO_ROOTS) -> None:
        if self._pools is None:
            super().compact(lows, roots)
            return
        _, owners = self._owners(lows)
        if self._order == k.ENDS:
            super().compact(lows, roots)
            return
        every = np.concatenate([roots, self._pools.roots(owners, lows)])
        super().compact(lows, every)
        roots[:] = every[: len(roots)]
        self._pools.move_roots(owners, lows, every[len(roots) :])

    def starts(self) -> np.ndarray:
        if self._pools is None:
            return super().starts()
        return self._pools.starts(self._owners(self._pool_lows())[1])

    def _configurations(self, low: int) -> LiveSets:
        """The live runs, in sets of configurations. `low`: the first live start."""
        self._dissolve_pools(low)
        live = []
        twins: Counter[Any] = Counter()
        for cell, conf in enumerate(self._confs.tolist()):
            if conf[reg.CONF_STATE] >= 0 and self._arena.cells[cell, k.HEAD] >= 0:
                rows = self._rows(conf)
                read = {q: [self.automaton.read_in(q, held) for held in rows]
                        for q in self.automaton.sets[conf[reg.CONF_STATE]]}  # fmt: skip
                found = [(q, self._codes.row(held, q)) for q, held in read.items()]
                key = conf[reg.CONF_KEY]
                number = twins[key, frozenset(found)]
                twins[key, frozenset(found)] += 1
                if number:  # two configurations that codes tell apart, and values do not
                    found = [(q, self._codes.twin(row, number)) for q, row in found]
                live.append((cell, key, frozenset(found)))
        return LiveSets.of(live, *self._bounds())

    def _rows(self, conf: list[int]) -> list[list[int]]:
        """The codes that a configuration holds, row by row."""
        rows, more = [conf[reg.REGISTERS :]], conf[reg.CONF_MORE]
        while more >= 0:
            following, *held = self._held[more].tolist()
            rows.append(held)
            more = following
        return rows

    def _end(self, numbers: np.ndarray, alive: np.ndarray) -> int:
        ended = np.zeros(self.partitions, bool)
        ended[numbers] = True
        keys = self._confs[:, reg.CONF_KEY]
        cells = np.flatnonzero(self._confs[:, reg.CONF_STATE] >= 0)
        cells = cells[ended[keys[cells]]]
        held = self._arena.cells[cells]
        found = int(np.count_nonzero((held[:, k.HEAD] >= 0) & (held[:, k.HEAD_MAX] >= alive[keys[cells]])))
        attempt_rows(leave_cells, len(cells), self._arena.structure, self._arrays, self._several, cells)
        return found

    def live(self) -> LiveSets:
        cells = np.flatnonzero(self._confs[:, reg.CONF_STATE] >= 0)
        keys, numbers = self._confs[cells, reg.CONF_KEY], self._confs[cells, reg.CONF_STATE]
        return LiveSets(cells, keys, numbers, self.automaton.sets, *self._bounds())

    def snapshot(self) -> dict[str, Any]:
        self._dissolve_families()
        found = super().snapshot()
        confs = self._confs[self._confs[:, reg.CONF_STATE] >= 0]
        return {
            **found,
            "confs": tuple(confs[:, column].copy() for column in _KEPT),
            "registers": tuple(column.copy() for column in confs[:, reg.REGISTERS :].T),
            "held": tuple(column.copy() for column in self._held_rows(confs).T),
            "codes": self._codes.snapshot(),
            **({} if self._pools is None else self._pools_snapshot(self._pools)),
        }

    def _pools_snapshot(self, pools: RunPools) -> dict[str, Any]:
        """The rows of pools; and the sets of states that have none, though they might."""
        cells = np.flatnonzero(self._confs[:, reg.CONF_STATE] >= 0)
        numbers = np.full(len(self._confs), -1, np.int64)
        numbers[cells] = np.arange(len(cells))
        _, owners = self._owners(self._pool_lows())
        return {"pools": pools.snapshot(owners, numbers), "unpooled": sorted(self.automaton.unpooled)}

    def _held_rows(self, confs: np.ndarray) -> np.ndarray:
        """The rows of configurations behind their first: int64 (rows, registers), one configuration's after
        another's."""
        owners, places = np.arange(len(confs)), confs[:, reg.CONF_MORE]
        found = [owners[:0]], [places[:0]]
        while len(places):
            owners, places = owners[places >= 0], places[places >= 0]
            found[0].append(owners)
            found[1].append(places)
            places = self._held[places, reg.HELD_NEXT]
        order = in_order(np.concatenate(found[0]))
        return self._held[np.concatenate(found[1])[order], reg.HELD_REGISTERS :]

    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        live = LiveSets.restore(state["live"], self._arena)
        if self._pools is not None and self.automaton.may_take_several and "pools" not in state:
            self._take_several()
        states = range(self.program.cea.states)
        known = all(type(some) is frozenset and some and all(type(q) is int and q in states for q in some)
                    for some in live.sets)  # fmt: skip
        expect(known and live.sets[0] == {INITIAL}, "sets of the automaton's states")
        for some in live.sets[1:]:
            self._add_states(sum(1 << q for q in some))
        expect(self.automaton.sets == list(live.sets), "sets of states in the order of their families")
        self.add_classes(vectors)
        self._take_bounds(live)
        self._restore_confs(live, state)
        held = self._confs[live.cells, reg.REGISTERS :]
        if self._pools is None:
            self._codes.restore(state["codes"], np.concatenate([held, self._held[:, reg.HELD_REGISTERS :]]))
            self._index_anew()
            return
        expect(not len(self._held), "one row for each configuration beside pools")
        for number in state["unpooled"]:
            expect(type(number) is int and 0 <= number < len(self.automaton.sets), "numbers of sets of states")
            self.automaton.unpool(number)
        self._tables = self.automaton.tables(self._vectors, len(self._tables.indexed))
        owners = self._pools.restore(state["pools"], live.cells)
        numbers = self._confs[owners[owners >= 0], reg.CONF_STATE]
        pooled = self._tables.pooled[numbers]
        expect(
            (pooled[:, 0] > 0).all() and (pooled[:, k.POOL_HOME] < 0).all(), "pools of sets of states that have some"
        )
        counts = self._pool_counts
        owned = counts[owners[owners >= 0]]
        expect(((owned > 0) & (owned <= self._pools.values(owners).shape[1])).all(), "the values of rows of pools")
        pools, registers, rows, _ = self._pools.registers(self._confs, live.cells, owners)
        expect(np.isin(owners[owners >= 0], live.cells[pools]).all(), "rows of pools alone")
        theirs = self._tables.pooled[live.numbers[pools], 2:]
        expect((theirs == registers[:, None]).any(axis=1).all(), "values in the registers of pools alone")
        held[pools, registers] = reg.NOTHING
        self._codes.restore(state["codes"], np.concatenate([held, self._held[:, reg.HELD_REGISTERS :], rows]))
        self._index_anew()
        self._arena.cells[live.cells[pools], k.HEAD] = k.NIL
        lows = np.zeros(len(self._arena.cells), np.int64)
        self._pools.plant(self._pool_arrays, owners, lows, counts)

    def _restore_confs(self, live: LiveSets, state: dict[str, Any]) -> None:
        """Configurations and their rows, the links between them made anew."""
        cells = live.cells
        confs = np.full((len(self._arena.cells), self._confs.shape[1]), k.NIL, np.int64)
        confs[cells, reg.CONF_KEY], confs[cells, reg.CONF_STATE] = live.keys, live.numbers
        for column, values, low, high in zip(
            _KEPT, state["confs"], (1, None, None), (1 << 32, None, None), strict=True
        ):
            confs[cells, column] = array(values, "configurations", rows=len(cells), low=low, high=high)
        for register, values in enumerate(state["registers"]):
            confs[cells, reg.REGISTERS + register] = array(values, "registers", rows=len(cells))
        width = self._codes.registers
        expect(len(state["registers"]) == len(state["held"]) == width, "a column for each register")
        rows = confs[cells, reg.CONF_ROWS]
        total = len(state["held"][0]) if width else 0
        expect(int(rows.sum()) - len(cells) == total, "as many rows as configurations have")
        self._held = np.full((total, reg.HELD_REGISTERS + width), k.NIL, np.int64)
        for register, values in enumerate(state["held"]):
            self._held[:, reg.HELD_REGISTERS + register] = array(values, "rows", rows=total)
        several = rows > 1
        ends = np.cumsum(rows - 1)
        self._held[:, reg.HELD_NEXT] = np.arange(1, total + 1)
        self._held[ends[several] - 1, reg.HELD_NEXT] = k.NIL
        confs[cells[several], reg.CONF_MORE] = (ends - rows + 1)[several]
        self._confs = confs
        self._arena.st[reg.CONF_COUNT] = len(cells)
