"""Automata whose guards are operations on registers, as the arrays that `run_guarded` reads.

A run is in a set of states at once. A set is made when a run first reaches it, with its transitions on all symbol
classes, as in `spaseq.core.automata.determinise`. Besides the transitions the arrays hold two things for each set.

They hold the registers that a state still needs, so that runs with no difference that can matter are one. They also
hold the index of the set's configurations. If a set waits, and every transition that could move it is under one test,
the configurations that pass the test are looked up instead of tried one after another. The index is a hash for `=` and
a skip list for an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL, Transition
from spaseq.core.automata.determinise import SKIP, Stepper
from spaseq.core.automata.families import Way, find_families, find_ways
from spaseq.core.engine.kernels.registers import layout as k
from spaseq.core.engine.kernels.registers.index import note_state
from spaseq.core.engine.program.lazy_plan import LazyPlan
from spaseq.core.engine.program.program import Program, codes_of
from spaseq.core.engine.program.register_ops import (
    Append,
    Codes,
    Copy,
    Drop,
    ForEachValue,
    Gather,
    Keep,
    MergeRule,
    Op,
    ResidualTest,
    Test,
    Unless,
    needed_registers,
    reads,
    rows_of,
    writes,
)
from spaseq.core.engine.program.selection import after_rule, kernel_order
from spaseq.core.jit import attempt
from spaseq.core.pattern import are_exclusive
from spaseq.core.tecs.kernels.layout import (
    AS_NODES,
    DIMENSIONS,
    ENDS,
    KEEP_ALL,
    KEEP_OPEN,
    POOL_COLUMNS,
    POOL_HOME,
    STEPS,
)

_REACH = {"=": k.SAME, "<": k.BELOW, "<=": k.BELOW, ">": k.ABOVE, ">=": k.ABOVE}


SMALL = 16
"""A window of so many events has too few runs for pools, and an event costs a tenth less in the kernel without them."""
SHORT = 128
"""So has one of so many events if an order ends runs: those that are left have extreme values.

PERF: `A AS a ; NOT (B AS b FILTER b.price > a.price) ; E` within 100 events keeps six runs, and an event takes 0.12 us,
in the kernel with pools 0.13 (2026-11-27).
"""


class Pooled(NamedTuple):
    """The registers whose values the pools of a set of states keep. `by_tests`: there is one, and runs move only by
    tests on it. `ends`: tests end runs, so that few of them stay for long. `family`: the sets of states that
    share pools of several steps, in this order; empty if there is one step."""

    registers: tuple[int, ...] = ()
    by_tests: bool = False
    ends: bool = False
    family: tuple[frozenset[int], ...] = ()


NO_POOLS = Pooled()


class GuardTables(NamedTuple):
    """The arrays; `indexed` is that of `k.Configurations`, `pooled` that of `Pools`."""

    automaton: k.Automaton
    indexed: np.ndarray
    pooled: np.ndarray


class GuardedAutomaton:
    """The sets of states met so far, and `tables` of them for the symbol classes met so far.

    `sets[i]`: the states of set i, 0 being that of the initial state alone. `several`: whether an event may have
    several values at once, and a configuration several rows. No set has pools then; if some could have, no event is
    taken to have several values until one has (`take_several`). `may_take_several`: one may have. `pools`: for each
    set, the registers whose values tell the runs of a pool apart (`spaseq.core.engine.kernels.registers.pooling`), and
    whether there is one and runs move only by a test on it. `unpooled`: the sets that have lost theirs. `has_pools`:
    True if a state alone may have pools; they must be `allowed`. `short`: as of `is_short`. `families`: the sets whose
    pools have several steps, if the evaluation `keeps` such pools; of one family all are taken note of together.
    """

    def __init__(self, cea: CEA, codes: Codes, allowed: bool = True, short: bool = False, keeps: bool = False) -> None:
        self.stepper: Stepper = Stepper(cea)
        self._is_short = short
        self._all = [t for out in cea.transitions for t in out]
        self._predicates = cea.predicates
        self._needs = [sum(1 << p for p in t.predicates) for t in self._all]
        self._ops = [codes.ops(t) for t in self._all]
        self._out = [[i for i, t in enumerate(self._all) if t.source == q] for q in range(cea.states)]
        self._outputs = frozenset(codes.outputs)
        self._alive = needed_registers(cea.states, self._all, self._ops, self._outputs)
        self._filled = self._contents()
        self._flat = self._flatten()
        self.sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._indexed: list[tuple[int, int]] = []
        self.pools: list[Pooled] = []
        self.unpooled: set[int] = set()
        self.families: dict[frozenset[int], Pooled] = self._families() if keeps and allowed else {}
        self.has_pools: bool = allowed and any(self._pool(frozenset([q])).registers for q in range(cea.states))
        self.may_take_several: bool = any(isinstance(op, ForEachValue) for ops in self._ops for op in ops)
        self.several: bool = self.may_take_several and not self.has_pools
        self.add(1 << INITIAL)

    def add(self, bits: int) -> None:
        """Take note of a set of states, given as bits."""
        states = frozenset(q for q in range(len(self._out)) if bits >> q & 1)
        if states in self._numbers:  # with its family
            return
        self._numbers[states] = len(self.sets)
        self.sets.append(states)
        self.pools.append(self._pool(states) if self.has_pools else NO_POOLS)
        equal = self._index(states, self.pools[-1].registers)
        self._indexed.append(equal if equal[0] == k.SAME else self._index(states))
        for members in self.pools[-1].family:
            self.add(_bits(members))

    def unpool(self, number: int) -> None:
        """A set of states has no pools any more: an event takes away some of the runs of one."""
        self.unpooled.add(number)
        self.pools[number] = NO_POOLS
        self._indexed[number] = self._index(self.sets[number])

    def take_several(self) -> None:
        """Events may have several values from now on: no set of states has pools any more."""
        self.several, self.has_pools, self.families = True, False, {}
        for number in range(len(self.sets)):
            self.pools[number] = NO_POOLS
            self._indexed[number] = self._index(self.sets[number])

    def read_in(self, state: int, held: list[int]) -> list[int]:
        """Of the registers of a run, those that one of its states needs; the others hold nothing."""
        return [code if r in self._alive[state] else k.NOTHING for r, code in enumerate(held)]

    def _contents(self) -> list[set[int]]:
        """For each state, the registers that may hold something there."""
        filled: list[set[int]] = [set() for _ in self._out]
        changed = True
        while changed:
            changed = False
            for t, ops in zip(self._all, self._ops, strict=True):
                held = set(filled[t.source])
                for op in ops:
                    if isinstance(op, Drop):
                        held.discard(op.register)
                    elif isinstance(op, Keep | Gather | Copy | Append):
                        held.add(op.register)
                if t.target != ACCEPT:
                    changed |= not held <= filled[t.target]
                    filled[t.target] |= held
        return filled

    def _flatten(self) -> tuple[np.ndarray, np.ndarray]:
        arcs: list[tuple[int, int, int, int, int, int]] = []
        rows: list[tuple[int, int, int, int]] = []
        for t, ops in zip(self._all, self._ops, strict=True):
            first = len(rows)
            rows += [row for op in ops for row in rows_of(op)]
            arcs.append((t.label if t.marks else SKIP, t.target, t.rank, first, len(rows), t.source))
        return np.array(arcs, np.int64).reshape(-1, 6), np.array(rows, np.int32).reshape(-1, 4)

    def _pool(self, states: frozenset[int]) -> Pooled:
        """The registers of the pools of a set.

        All transitions may only compare them with values of the event, and none may need them afterwards. Runs must be
        able to wait. There must be no other register, or an equality must look up the pool. A register that is only
        tested by `=`, if runs move on by that, needs no pool.
        """
        if states in self.families:
            return self.families[states]
        alive = self._registers_of(states)
        ways = [i for q in states for i in self._out[q]]
        loops = [i for i in ways if _is_loop(self._all[i], self._ops[i])]
        waits = {self._all[i].source for i in loops} == states and not any(self._all[i].rank for i in ways)
        if not waits or ACCEPT in states or INITIAL in states:
            return NO_POOLS
        unless = [test for i in ways for op in self._ops[i] if isinstance(op, Unless) for test in op.tests]
        if self._is_short and any(isinstance(test, Test) and test.symbol not in ("=", "!=") for test in unless):
            return NO_POOLS
        found = tuple(r for r in sorted(alive) if self._orders(ways, r) and all(self._compares(i, r) for i in ways))
        others = alive - set(found)
        if not found or len(found) > DIMENSIONS or not all(self._equates(ways, other) for other in others):
            return NO_POOLS
        if others and self._index(states, found)[0] != k.SAME:
            return NO_POOLS
        return Pooled(found, self._by_tests(states, found), bool(unless))

    def _by_tests(self, states: frozenset[int], registers: tuple[int, ...]) -> bool:
        """True if there is one register, and runs in these states move only by tests on it."""
        ways = [i for q in states for i in self._out[q]]
        loops = [i for i in ways if _is_loop(self._all[i], self._ops[i])]
        always = {self._all[i].source for i in loops if not self._needs[i]} == states
        moving = [i for i in ways if i not in loops]
        return always and len(registers) == 1 and all(self._moves_by_test(i, registers[0]) for i in moving)

    def _families(self) -> dict[frozenset[int], Pooled]:
        """For each set of states of a family its pools.

        Sets are of one family if marking transitions lead from one to another and keep the registers that the latter
        needs. Runs wait in each whatever else an event does. All transitions may only compare the registers with values
        of the event, and no state outside the family may need those that are ordered. The others are the same in all
        sets, and an equality with one of them looks the pools up. There is no way back to an earlier set, and at most
        STEPS sets.
        """
        ways = find_ways(frozenset([INITIAL]), self._bundles, self._fit, self._targets)
        able = {way.target: self._registers_of(way.target) for way in ways if self._may_keep(way.target)}
        kept = {way for way in ways if self._keeps(way, able)}
        found: dict[frozenset[int], Pooled] = {}
        for sets in find_families(((way.source, way.target) for way in kept), STEPS):
            every = set().union(*(able[states] for states in sets))
            own = [way for way in ways if way.source in sets]
            fired = sorted({i for way in own for i in way.fired})
            leaving = {i for way in own if way not in kept for i in way.fired}
            apart = all(way in kept or way.target not in sets or way.target == way.source for way in own)
            registers = tuple(r for r in sorted(every) if self._orders(fired, r))
            compares = all(self._compares(i, r) for r in registers for i in leaving)
            filled = all(self._alive[q] & every <= able[states] for states in sets for q in states)
            others = self._look_up_alike(sets, registers, every - set(registers), able)
            if apart and compares and filled and others and 0 < len(registers) <= DIMENSIONS:
                found |= {states: Pooled(registers, self._by_tests(states, registers), False, sets) for states in sets}
        return found

    def _look_up_alike(
        self, sets: tuple[frozenset[int], ...], registers: tuple[int, ...], others: set[int],
        able: dict[frozenset[int], set[int]],
    ) -> bool:  # fmt: skip
        """True if an equality looks up the pools of all these sets, of `registers`, by one register of `others`, if
        there are any. `able`: the registers of each set."""
        if not others:
            return True
        indexes = {self._index(states, registers) for states in sets}
        ways = [i for states in sets for q in states for i in self._out[q]]
        equated = all(self._equates(ways, other) for other in others)
        alike = all(others <= able[states] for states in sets) and len(indexes) == 1
        return equated and alike and indexes.pop()[0] == k.SAME

    def _bundles(self, states: frozenset[int]) -> list[list[tuple[int, ...]]]:
        """For each label of transitions of these states, bundles: those with the same conditions."""
        found: dict[int, dict[Any, list[int]]] = {}
        for i in (i for q in sorted(states) for i in self._out[q]):
            t = self._all[i]
            label = t.label if t.marks else SKIP
            found.setdefault(label, {}).setdefault((t.predicates, _condition(self._ops[i])), []).append(i)
        return [[tuple(bundle) for bundle in bundles.values()] for bundles in found.values()]

    def _fit(self, one: int, other: int) -> bool:
        """True if two transitions may fire at one event, so far as their predicates tell."""
        return not are_exclusive(*([self._predicates[p] for p in self._all[i].predicates] for i in (one, other)))

    def _targets(self, fired: tuple[int, ...]) -> frozenset[int]:
        """The states that transitions lead to."""
        return frozenset(self._all[i].target for i in fired) - {ACCEPT}

    def _may_keep(self, states: frozenset[int]) -> bool:
        """True if a set of states may be of a family: it has registers, runs stay there whatever an event does, and
        transitions mark."""
        ways = [i for q in states for i in self._out[q]]
        loops = [i for i in ways if _is_loop(self._all[i], self._ops[i])]
        waits = states == {self._all[i].source for i in loops if not self._needs[i]}
        moves = all((self._all[i].marks or i in loops) and not self._all[i].rank for i in ways)
        return bool(states) and INITIAL not in states and bool(self._registers_of(states)) and waits and moves

    def _keeps(self, way: Way, able: dict[frozenset[int], set[int]]) -> bool:
        """True if a way leads from one set in `able` to one that needs no other registers. Its transitions mark, only
        compare the registers, and keep those that are needed then.
        """
        held, needed = able.get(way.source, set()), able.get(way.target, set())
        if not needed or not needed <= held or not all(self._all[i].marks for i in way.fired):
            return False
        ops = [(op, self._needed_at(self._all[i].target)) for i in way.fired for op in self._ops[i]]
        keeps = not any(needed & alive & writes(op) for op, alive in ops)
        return keeps and all(isinstance(op, Test) for op, _ in ops if held & reads((op,)))

    def _registers_of(self, states: frozenset[int]) -> set[int]:
        """The registers that a run in all of these states may hold: each state that needs one may find it filled."""
        needed = set().union(*(self._alive[q] for q in states))
        return {r for r in needed if all(r in self._filled[q] for q in states if r in self._alive[q])}

    def _moves_by_test(self, i: int, register: int) -> bool:
        """True if a run does nothing by transition i if no test of a register holds."""
        t, ops = self._all[i], self._ops[i]
        ends = not t.marks and t.target == t.source and all(isinstance(op, Unless) for op in ops)
        return ends or any(isinstance(op, Test) and op.register == register for op in ops)

    def _orders(self, ways: list[int], register: int) -> bool:
        """True if some test on a register lets many of its values pass, or ends runs."""
        own = [op for i in ways for op in self._ops[i]]
        ended = [test for op in own if isinstance(op, Unless) for test in op.tests]
        return any(isinstance(op, Test) and op.register == register and op.symbol != "=" for op in own) or any(
            isinstance(test, Test) and test.register == register for test in ended
        )

    def _compares(self, i: int, register: int) -> bool:
        """True if all that transition i does with a register is to compare it, and no state behind it needs it."""
        t, written, tainted = self._all[i], False, False
        if _is_loop(t, self._ops[i]):
            return True
        for op in self._ops[i]:
            match op:
                case Test() if op.register == register:
                    if tainted:
                        return False
                case Unless(tests):
                    own = [test for test in tests if register in reads((Unless((test,)),))]
                    if own and (tainted or not all(isinstance(test, Test) for test in own)):
                        return False
                    if not t.marks and t.target == t.source and len(self._ops[i]) == 1:
                        return not any(isinstance(test, ResidualTest) for test in tests)
                case Drop() if op.register == register:
                    written, tainted = True, False
                case Copy() if op.register == register and op.source != register:
                    written, tainted = True, False
                case Keep() if op.register == register:
                    if op.rule is MergeRule.ONE:
                        return False
                    written = op.rule is MergeRule.SET
                    tainted = not written
                case Gather() | Append() | Copy() if register in _registers_of(op):
                    return False
                case _:
                    if register in reads((op,)):
                        return False
        return written or register not in self._needed_at(t.target)

    def _needed_at(self, target: int) -> frozenset[int] | set[int]:
        """The registers that a state needs, or matches do for ACCEPT."""
        return self._outputs if target == ACCEPT else self._alive[target]

    def _equates(self, ways: list[int], register: int) -> bool:
        """True if some transition looks the register up by `=`, and none compares it otherwise."""
        symbols = {op.symbol for i in ways for op in self._ops[i] if isinstance(op, Test) and op.register == register}
        return symbols == {"="}

    def _index(self, states: frozenset[int], pooled: tuple[int, ...] = ()) -> tuple[int, int]:
        """The index of the configurations of a set (`REACH` of its movers), and its register, which is not `pooled`."""
        ways = [(q, i) for q in sorted(states) for i in self._out[q]]
        found = [test for q, i in ways for test, _ in self._looked_up(q, i) if test.register not in pooled]
        for wanted in (("=",), ("<", "<=", ">", ">=")):
            for test in found:
                if test.symbol in wanted:
                    return _REACH[test.symbol], test.register
        return k.ALL_OF_THEM, 0

    def _looked_up(self, state: int, i: int) -> list[tuple[Test, ForEachValue | None]]:
        """The tests that transition i makes of the earlier contents of the registers, and the `ForEachValue` of
        each."""
        found: list[tuple[Test, ForEachValue | None]] = []
        written: set[int] = set()
        each: ForEachValue | None = None
        for op in self._ops[i]:
            match op:
                case ForEachValue():
                    each = op
                case Test(symbol, register, _, _):
                    if symbol in _REACH and register in self._alive[state] - written:
                        found.append((op, each))
                case Keep() | Gather() | Drop() | Copy() | Append():
                    written.add(op.register)
        return found

    def pooled_values(self, state: int) -> int:
        """The number of values of each row of a pool of this state alone, or of a family with it; 0 if it has no
        pools."""
        if not self.has_pools:
            return 0
        kept = [pooled for states, pooled in self.families.items() if state in states]
        return len((kept or [self._pool(frozenset([state]))])[0].registers)

    @property
    def steps(self) -> int:
        """The most steps of a pool, 0 if all have one."""
        return max((len(pooled.family) for pooled in self.families.values()), default=0)

    @property
    def family_numbers(self) -> np.ndarray:
        """For each home of a family, the numbers of its sets by step, and bits of the registers that they need: int64
        (sets, STEPS, 2)."""
        found = np.full((len(self.sets), STEPS, 2), -1, np.int64)
        for states, pooled in self.families.items():
            if states in self._numbers:
                needed = [_bits(set().union(*(self._alive[q] for q in members))) for members in pooled.family]
                numbers = [self._numbers[members] for members in pooled.family]
                found[numbers[0], : len(numbers)] = list(zip(numbers, needed, strict=True))
        return found

    def growth(self) -> Iterator[tuple[str, bool]]:
        """For people: the keeping of runs in each state with registers, and the cost of an event there. With each line
        True if an event may cost the values that runs hold."""
        for q, alive in enumerate(self._alive):
            held = alive & self._filled[q]
            if q == INITIAL or not held:
                continue
            index, _ = self._index(frozenset([q]))
            values = self.pooled_values(q)
            if any(q in states for states in self.families):
                found = "a tree by the value" if values == 1 else f"a tree by the {values} values"
                found += " compared, which later events compare again: O(log² n) an event, of n runs"
                found += "" if values == 1 else f", if these go together, at most O(n^{values - 1}/{values} log n)"
                found += ", once it would move more than a few"
            elif values == 1:
                found = "a tree by the value compared: O(log n) an event, of n runs, once it would move more than a few"
            elif values:
                found = (
                    f"a tree by the {values} values compared: O(log n) an event, of n runs, if these go together, at"
                    f" most O(n^{values - 1}/{values}), once it would move more than a few"
                )
            elif index == k.SAME:
                found = "looked up by an equality: each event costs the values kept beside it that pass"
            elif index != k.ALL_OF_THEM:
                found = "in the order of a value: each event costs the values that pass"
            else:
                found = "tried one by one: each event costs the values kept"
            yield f"runs in state {q}: {found}", not values and index != k.SAME

    def tables(self, vectors: list[int], capacity: int) -> GuardTables:
        """The arrays for these symbol classes, given as bit vectors, with room for `capacity` sets.

        O(classes * transitions of the sets).
        """
        able: list[int] = []
        movers: list[tuple[int, ...]] = []
        movers_from = [0]
        for vector in vectors:
            for number, states in enumerate(self.sets):
                if number and all(self.stepper.stays(q, vector) for q in states):
                    continue
                arcs = [self._able(q, vector) for q in sorted(states)]
                first = len(able)
                able += [i for mine in arcs for i in mine]
                if number:
                    reach, ends = self._reach(number, arcs), self._only_ends(arcs)
                    movers.append((number, first, len(able), *reach, ends, *self._home(number)))
                elif arcs[0]:
                    movers.append((0, first, len(able), k.STARTS, 0, -1, -1, False, -1, k.ALL_OF_THEM))
            movers_from.append(len(movers))
        indexed = np.zeros((capacity, 2), np.int32)
        indexed[: len(self._indexed)] = self._indexed
        pooled = np.full((capacity, POOL_COLUMNS), -1, np.int32)
        pooled[:, :2] = 0
        for row, (registers, by_tests, ends, family), states in zip(pooled, self.pools, self.sets, strict=False):
            row[: 2 + len(registers)] = len(registers), by_tests + 2 * ends, *registers
            if family:
                row[POOL_HOME:] = self._numbers[family[0]], family.index(states), len(family)
        return GuardTables(
            k.Automaton(
                np.array(able, np.int32),
                *self._flat,
                np.array([_bits(registers) for registers in self._alive], np.int64),
                _bits(self._outputs),
                self._known(),
                np.array(movers_from, np.int64),
                np.array(movers, np.int64).reshape(-1, k.MOVER_COLUMNS),
            ),
            indexed,
            pooled,
        )

    def _home(self, number: int) -> tuple[int, int]:
        """The set whose list has the pools of set `number`, -1 if it is this one, and which of them can move."""
        family = self.pools[number].family
        home = self._numbers[family[0]] if family else number
        if home == number:
            return -1, k.ALL_OF_THEM
        index = self._indexed[number]
        alike = index == self._indexed[home] and index[0] == k.SAME and index[1] not in self.pools[number].registers
        return home, k.SAME_AT_HOME if alike else k.ALL_OF_THEM

    def _known(self) -> np.ndarray:
        """The hash table of the sets of states: int64 (slots, 2), bits and number."""
        known = np.zeros((1 << (2 * len(self.sets)).bit_length(), 2), np.int64)
        for states, number in self._numbers.items():
            attempt(note_state, known, _bits(states), number)
        return known

    def _able(self, state: int, vector: int) -> list[int]:
        """The transitions of a state whose predicates hold, by rank."""
        found = [i for i in self._out[state] if self._needs[i] & vector == self._needs[i]]
        return sorted(found, key=lambda i: self._all[i].rank)

    def _only_ends(self, arcs: list[list[int]]) -> bool:
        """True if runs of a set wait where they are, whatever else they do, and all else is to complete."""
        for mine in arcs:
            moving = [self._all[i] for i in mine if not _is_loop(self._all[i], self._ops[i])]
            stays = len(moving) < len(mine) and not any(self._all[i].rank for i in mine)
            if not stays or any(t.target != ACCEPT for t in moving):
                return False
        return True

    def _reach(self, number: int, arcs: list[list[int]]) -> tuple[int, int, int, int]:
        """The configurations of a set that must be tried, the column looked up, and those of its `ForEachValue`, or -1.

        Not all of them only if a run stays put when no other transition fires, and all others are under the indexed
        test.
        """
        kind, register = self._indexed[number]
        columns: list[tuple[int, ForEachValue | None]] = []
        for mine in arcs:
            moving = [i for i in mine if not _is_loop(self._all[i], self._ops[i])]
            tests = [
                [(t.column, each) for t, each in self._looked_up(self._all[i].source, i)
                 if t.register == register and _REACH[t.symbol] == kind]
                for i in moving
            ]  # fmt: skip
            if len(moving) == len(mine) or not all(tests):
                return k.ALL_OF_THEM, 0, -1, -1
            columns += [found[0] for found in tests]
        if kind == k.ALL_OF_THEM or len(set(columns)) != 1:
            return k.ALL_OF_THEM, 0, -1, -1
        column, each = columns[0]
        return (kind, column, -1, -1) if each is None else (kind, column, each.others, each.first)


def explain_growth(program: Program) -> list[str]:
    """Lines on the keeping of runs: one for each state if conditions are tests of codes. One more if the evaluator is
    chosen while the stream runs."""
    if isinstance(program.lazy, LazyPlan) or not program.cea.has_registers:
        return []
    codes = codes_of(program)
    automaton = None if codes is None else automaton_of(program, codes)
    lines = [] if automaton is None else [line for line, _ in automaton.growth()]
    if program.choosable is not None and compares_all(program, automaton):
        lines.append("a lazy chain or tree takes over from 256 events on if it costs less: it begins with rare events")
    return lines


def compares_all(program: Program, automaton: GuardedAutomaton | None) -> bool:
    """True if an event may be compared with all runs of a program with registers, one by one, and a window may have
    many of them. `automaton`: None if guards are no tests of codes, so that each run costs much."""
    if automaton is None:
        return True
    return not _is_within(program, SMALL) and any(costs for _, costs in automaton.growth())


def automaton_of(program: Program, codes: Codes) -> GuardedAutomaton:
    """The automaton of a program whose guards are operations on `codes`."""
    return GuardedAutomaton(program.cea, codes, may_pool(program), is_short(program), may_keep(program))


def may_keep(program: Program) -> bool:
    """True if pools may have several steps: NEXT, LAST or a rule does not choose among matches that wait. These would
    have to go through products."""
    order = kernel_order(program)
    return order in (KEEP_ALL, ENDS, AS_NODES) or (order == KEEP_OPEN and program.chosen is None)


def may_pool(program: Program) -> bool:
    """True if all runs are kept, a rule discards none of them by its start, and the window may have many of them."""
    every = after_rule(program) is None and kernel_order(program) in (KEEP_ALL, KEEP_OPEN, ENDS, AS_NODES)
    return every and not _is_within(program, SMALL)


def is_short(program: Program) -> bool:
    """True if the window has few runs if an order ends some."""
    return _is_within(program, SHORT)


def _is_within(program: Program, events: int) -> bool:
    return program.window.by_position and program.window.size <= events


def _is_loop(t: Transition, ops: tuple[Op, ...]) -> bool:
    return not t.marks and t.target == t.source and not ops


def _registers_of(op: Gather | Append | Copy) -> set[int]:
    """The registers that an operation reads or writes."""
    return {op.register, op.source} if isinstance(op, Copy) else {op.register}


def _bits(numbers: set[int] | frozenset[int]) -> int:
    return sum(1 << n for n in numbers)


def _condition(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operations up to the last that may keep a transition from firing."""
    writes = Drop | Copy | Keep | Gather | Append
    last = max((number for number, op in enumerate(ops) if not isinstance(op, writes)), default=-1)
    return ops[: last + 1]
