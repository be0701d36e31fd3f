"""Registers with the same value: conditions are tested against one of them, and the others are not kept.

Behind `b.id = a.id`, a run that has taken b knows that b.id is a.id. So `c.id = b.id` may be tested as `c.id = a.id`,
and `c.id = a.id` with the register of `b.id = a.id`. Then equalities of many events read one register in all states, by
which pools of several steps are looked up (`spaseq.core.engine.runs.coded_automaton`). `b.price > a.price` and
`c.price > a.price` read one register, too, so their pools are trees by one value.

It is decided on the operations, along the transitions. Two registers have the same value in a state if they have it on
every way there. A register takes the value of a column of the event, and columns of equal expressions have equal
values. A test by `=` makes its register and its column equal, if the register holds something. So each test has the
result that it had, and nothing can change about matches, strategies or consumption.

Codes are compared, which are of one kind, so that equality is transitive: a text may be equal to a time, and another
text to the same time. For values of several kinds the evaluation goes on with sets of register rows, which have all
values again (`Sharing.own_registers`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from spaseq.core.automata import ACCEPT, CEA, INITIAL, Transition
from spaseq.core.engine.program.register_ops import (
    NOTHING,
    Drop,
    Keep,
    Op,
    Test,
    Unless,
    needed_registers,
    reads,
    writes,
)
from spaseq.core.pattern import are_exclusive

_EMPTY: Final = 0
"""The value of a register that holds nothing."""
_MOST: Final = 512
"""Transitions of an automaton that is looked at."""
_Some = TypeVar("_Some", bound=Op)
_Place = tuple[int, int, int]
"""A transition, an operation of it, and a test of that."""


class Known(NamedTuple):
    """The knowledge in a state, or at an event: for each register the number of its value, and the numbers of values
    that are something. Registers with one number hold the same."""

    values: tuple[int, ...]
    some: frozenset[int]

    def canonical(self) -> Known:
        """The same with other numbers, which are equal for equal knowledge."""
        numbers = {_EMPTY: _EMPTY}
        for value in self.values:
            numbers.setdefault(value, len(numbers))
        return Known(tuple(numbers[v] for v in self.values), frozenset(numbers[v] for v in self.some if v in numbers))

    def meet(self, other: Known) -> Known:
        """The knowledge that both have in common."""
        pairs = list(zip(self.values, other.values, strict=True))
        numbers = {(_EMPTY, _EMPTY): _EMPTY}
        for pair in pairs:
            numbers.setdefault(pair, len(numbers))
        some = frozenset(n for (v, w), n in numbers.items() if v in self.some and w in other.some)
        return Known(tuple(numbers[pair] for pair in pairs), some).canonical()


class Sharing(NamedTuple):
    """`ops`: the operations of each transition. `holders`: for each state and each register that the operations of the
    guards need there, a register that has its value in these."""

    ops: Mapping[Transition, tuple[Op, ...]]
    holders: tuple[Mapping[int, int], ...]

    def own_registers(self, held: Sequence[int], state: int) -> list[int]:
        """The registers of a run as the guards' own operations leave them."""
        holders = self.holders[state]
        return [held[holders[r]] if r in holders else NOTHING for r in range(len(held))]


def share(
    cea: CEA, ops: tuple[tuple[Op, ...], ...], columns: tuple[tuple[Hashable | None, ...], ...]
) -> Sharing | None:  # fmt: skip
    """Operations that read fewer registers in place of `ops`, which has those of each transition; None if there is
    nothing to gain.

    `columns`: for each guard, what each of its columns holds the code of. Columns that hold the code of the same thing
    have the same code, which is never `NOTHING`. None is of something unknown, or of columns that may hold nothing.
    """
    guards = Counter(name for own in columns for name in set(own) - {None})
    if len(ops) > _MOST or max(guards.values(), default=0) < 2:
        return None
    return _share(cea, ops, tuple(itertools.chain(*columns)))


@lru_cache(maxsize=128)
def _share(cea: CEA, ops: tuple[tuple[Op, ...], ...], columns: tuple[Hashable | None, ...]) -> Sharing | None:
    """PERF: a query is evaluated many times. Three events take 1 ms, as long as all else that opens a session."""
    return _Sharing(cea, ops, columns).sharing()


class _Sharing:
    def __init__(self, cea: CEA, ops: tuple[tuple[Op, ...], ...], columns: tuple[Hashable | None, ...]) -> None:
        self._cea = cea
        self._all = [t for out in cea.transitions for t in out]
        self._ops = ops
        self._columns = columns
        self._touched = self._touches()
        self._known = self._reach()

    def sharing(self) -> Sharing | None:
        readers = self._readers()
        ops = self._rewritten(readers)
        before, after = (needed_registers(self._cea.states, self._all, some, ()) for some in (self._ops, ops))
        holders: list[dict[int, int]] = []
        for known, old, new in zip(self._known, before, after, strict=True):
            holders.append({})
            if known is None:
                continue
            held = {r for r in old if known.values[r] != _EMPTY}
            for r in held:
                same = sorted(s for s in new if known.values[s] == known.values[r])
                if not same:
                    return None
                holders[-1][r] = r if r in same else same[0]
            if len([r for r in new if known.values[r] != _EMPTY]) > len(held):
                return None
        if before == after or self._may_clash(ops, before, after):
            return None
        return Sharing(dict(zip(self._all, ops, strict=True)), tuple(holders))

    # Knowledge

    def _touches(self) -> list[set[int]]:
        """For each state, the registers that transitions behind it read or write, other than by dropping them."""
        touched: list[set[int]] = [set() for _ in range(self._cea.states)]
        changed = True
        while changed:
            changed = False
            for t, ops in zip(self._all, self._ops, strict=True):
                found = _uses(ops) | (set() if t.target == ACCEPT else touched[t.target])
                changed |= not found <= touched[t.source]
                touched[t.source] |= found
        return touched

    def _is_over(self, i: int, at: int, register: int) -> bool:
        """True if nothing behind operation `at` of transition i does anything with a register but drop it. Then it may
        as well hold what it held."""
        target = self._all[i].target
        later = set() if target == ACCEPT else self._touched[target]
        return register not in later and register not in _uses(self._ops[i][at + 1 :])

    def _reach(self) -> list[Known | None]:
        """The knowledge in each state; None for one that no run reaches."""
        known: list[Known | None] = [None] * self._cea.states
        known[INITIAL] = Known((_EMPTY,) * (1 + max(_registers(self._ops), default=-1)), frozenset())
        todo = {INITIAL}
        while todo:
            state = todo.pop()
            for i, t in enumerate(self._all):
                if t.source != state or t.target == ACCEPT:
                    continue
                *_, (_, behind, _) = self._along(i, known[state])
                old = known[t.target]
                new = behind.canonical() if old is None else old.meet(behind)
                if new != old:
                    known[t.target] = new
                    todo.add(t.target)
        return known

    def _along(self, i: int, known: Known | None) -> Iterator[tuple[int, Known, bool]]:
        """For each operation of a transition its number, the knowledge before it, and True for a test that holds of any
        event, or if an earlier one does. At last the knowledge behind all."""
        assert known is not None
        values, some = list(known.values), set(known.some)
        fresh = itertools.count(1 + max(values, default=_EMPTY))
        given: dict[Hashable, int] = {}
        passed: set[int] = set()

        def column(at: int) -> int | None:
            name = self._columns[at]
            if name is None:
                return None
            if name not in given:
                given[name] = next(fresh)
                some.add(given[name])
            return given[name]

        for at, op in enumerate(self._ops[i]):
            holds = False
            if isinstance(op, Test) and not op.strict:
                value = values[op.register]
                equal = op.symbol == "=" and value in passed and column(op.column) == value
                holds = value == _EMPTY or equal
            yield at, Known(tuple(values), frozenset(some)), holds
            match op:
                case Test("=", register, where) if values[register] in some and (own := column(where)) is not None:
                    kept = values[register]
                    values[:] = [kept if v == own else v for v in values]
                    given.update({name: kept for name, v in given.items() if v == own})
                    passed.add(kept)
                case Keep(_, register, where) if (own := column(where)) is not None:
                    if values[register] == _EMPTY:
                        values[register] = own
                    elif values[register] != own:
                        values[register] = next(fresh)
                        some.add(values[register])
                case Drop(register):
                    if not self._is_over(i, at, register):
                        values[register] = _EMPTY
                case _:
                    for register in writes(op):
                        values[register] = next(fresh)
        yield len(self._ops[i]), Known(tuple(values), frozenset(some)), False

    # Tests and their registers

    def _readers(self) -> dict[_Place, int | None]:
        """The register that each test reads from now on, if it holds something: of those with the same value the one
        that most tests may read. None for a test that holds anyway."""
        able: dict[_Place, list[int]] = {}
        needless: set[_Place] = set()
        for i, t in enumerate(self._all):
            if self._known[t.source] is None:
                continue
            for at, known, holds in self._along(i, self._known[t.source]):
                if holds:
                    needless.add((i, at, 0))
                    continue
                for n, test in enumerate(_tests(self._ops[i][at]) if at < len(self._ops[i]) else ()):
                    value = known.values[test.register] if isinstance(test, Test) else _EMPTY
                    if value != _EMPTY:
                        able[i, at, n] = [r for r, v in enumerate(known.values) if v == value]
        counts = Counter(r for registers in able.values() for r in registers)
        found = {place: min(registers, key=lambda r: (-counts[r], r)) for place, registers in able.items()}
        return {**found, **dict.fromkeys(needless)}

    def _rewritten(self, readers: dict[_Place, int | None]) -> list[tuple[Op, ...]]:
        """The operations with tests of other registers, which stay as long as they are read."""
        found = [[_reading(op, readers, i, at) for at, op in enumerate(ops)] for i, ops in enumerate(self._ops)]
        read = set[int]().union(*(reads(tuple(op for op in ops if op is not None)) for ops in found))
        used = set(readers.values())

        def is_idle(op: Op, i: int, at: int) -> bool:
            if isinstance(op, Drop) and op.register in used and self._is_over(i, at, op.register):
                return True
            return isinstance(op, Keep | Drop) and op.register not in read

        return [
            tuple(op for at, op in enumerate(ops) if op is not None and not is_idle(op, i, at))
            for i, ops in enumerate(found)
        ]

    def _may_clash(
        self, ops: list[tuple[Op, ...]], before: Sequence[set[int]], after: Sequence[set[int]]
    ) -> bool:  # fmt: skip
        """True if one event may give a run two values in one register, which were in two registers before: it is in
        several states at once."""
        longer = [new - old for old, new in zip(before, after, strict=True)]
        written = [set[int]().union(*map(writes, some)) for some in ops]
        moving = [set() if t.target == ACCEPT else longer[t.target] for t in self._all]
        suspects = {
            (i, j)
            for i, j in itertools.product(range(len(ops)), repeat=2)
            if i != j and written[i] & moving[j] and self._go_together(i, j)
        }
        if not suspects:
            return False
        together = self._states_together()
        return any((self._all[i].source, self._all[j].source) in together for i, j in suspects)

    def _states_together(self) -> set[tuple[int, int]]:
        """Pairs of states that one run may be in at once."""
        out: list[list[int]] = [[] for _ in range(self._cea.states)]
        for i, t in enumerate(self._all):
            out[t.source].append(i)
        found, todo = {(INITIAL, INITIAL)}, [(INITIAL, INITIAL)]
        while todo:
            one, other = todo.pop()
            for i, j in itertools.product(out[one], out[other]):
                pair = self._all[i].target, self._all[j].target
                if ACCEPT not in pair and pair not in found and (i == j or self._go_together(i, j)):
                    found.add(pair)
                    todo.append(pair)
        return found

    def _go_together(self, i: int, j: int) -> bool:
        """True if a run may move by both transitions at one event."""
        one, other = self._all[i], self._all[j]
        if (one.marks, one.label) != (other.marks, other.label):
            return False
        return not are_exclusive(*([self._cea.predicates[p] for p in t.predicates] for t in (one, other)))


def _tests(op: Op) -> tuple[Op, ...]:
    """The tests of an operation."""
    if isinstance(op, Unless):
        return op.tests
    return (op,) if isinstance(op, Test) else ()


def _reading(op: Op, readers: dict[_Place, int | None], i: int, at: int) -> Op | None:
    """The operation with the registers that its tests read from now on; None if it is needless."""
    if readers.get((i, at, 0), 0) is None:
        return None
    if isinstance(op, Unless):
        return Unless(tuple(_test_of(test, readers.get((i, at, n))) for n, test in enumerate(op.tests)))
    return _test_of(op, readers.get((i, at, 0)))


def _test_of(test: _Some, register: int | None) -> _Some:
    """The test, of another register if that is given."""
    if register is None or not isinstance(test, Test):
        return test
    return dataclasses.replace(test, register=register)


def _uses(ops: Sequence[Op]) -> set[int]:
    """The registers that operations read or write, other than by dropping them."""
    return reads(tuple(ops)).union(*(writes(op) for op in ops if not isinstance(op, Drop)))


def _registers(ops: Sequence[tuple[Op, ...]]) -> set[int]:
    """All registers of operations."""
    return set[int]().union(*(reads(some) for some in ops), *(writes(op) for some in ops for op in some))
