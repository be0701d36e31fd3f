"""The parts of a branch's cost that do not depend on the stream: its subsets of leaves, as bit masks.

Bit i of a mask is the i-th leaf of the branch. Each value is computed on first use and kept, so that comparing costs
again while the stream runs does not count orders again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from spaseq.core.automata import ACCEPT, CEA, INITIAL
from spaseq.core.engine.program.normal_form import Branch, Rounds, Test
from spaseq.core.pattern import Predicate

SUBSETS: Final = 8
"""Leaves of a branch up to which all subsets are gone through: 256."""
COUNTED: Final = 12
"""And up to which the orders of a set are counted."""


class Shape:
    """The subsets of one branch."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.numbers: list[int] = [leaf.number for leaf in branch.leaves]
        place = {n: i for i, n in enumerate(self.numbers)}
        self.place = place
        self.all: int = (1 << len(self.numbers)) - 1
        self.preceding: list[int] = [_mask({a for a, b in branch.before if b == n}, place) for n in self.numbers]
        """For each leaf those that come before it."""
        self.behind: list[int] = [len(_bits(before)) for before in self.preceding]
        self.tests: list[Test] = [t for t in branch.tests if not t.whole]
        self.needs: list[int] = [_mask(t.leaves, place) for t in self.tests]
        """The leaves that each test is about; those inside rounds are not among them."""
        self.adjacent: list[int] = [_mask(a.left | a.right, place) for a in branch.adjacent]
        self.rounds: list[tuple[Rounds, int]] = [
            (r, _mask({b for a, b in branch.before if a == r.number}, place)) for r in branch.rounds
        ]
        """Each iteration with the leaves behind it."""
        self.absent: list[tuple[int, int, int, frozenset[Predicate]]] = [
            (_mask(x.left, place), _mask(x.right, place), _mask(a.test.leaves, place), a.predicates)
            for x in branch.absences for a in x.alternatives if a.test is not None
        ]  # fmt: skip
        """The conditional absences: the leaves between which an event must not come, the leaves it is compared with,
        and its predicates."""
        self.within: Callable[[int], tuple[int, ...]] = functools.cache(self._within)
        self.decided: Callable[[int, int], tuple[int, ...]] = functools.cache(self._completed_tests)
        self.allowed: Callable[[int], float] = functools.cache(self._allowed_part)
        self.read: Callable[[int], int] = functools.cache(self._read)
        self.moving: Callable[[], tuple[tuple[int, tuple[int, ...]], ...]] = functools.cache(self._moving)
        self._extensions = functools.cache(self._count)

    def mask(self, leaves: frozenset[int]) -> int | None:
        """The set as a mask; None if some are not leaves of this branch."""
        return _mask(leaves, self.place) if all(n in self.place for n in leaves) else None

    def leaves(self, mask: int) -> frozenset[int]:
        """The opposite."""
        return frozenset(self.numbers[i] for i in bits(mask))

    def find_pooled(self, cea: CEA, values: Callable[[int], int]) -> dict[int, int]:
        """The sets whose runs are kept in pools, each with the number of values of a row; `values`: that of a state of
        the automaton, 0 if it has none. A set that some state without pools stands for is not among them."""
        found: dict[int, int] = {}
        met, open_ = {(INITIAL, 0)}, [(INITIAL, 0)]
        while open_:
            state, mask = open_.pop()
            if state != INITIAL:
                own = values(state)
                found[mask] = max(own, found.get(mask, own)) if own and found.get(mask, 1) else 0
            for t in cea.transitions[state]:
                holds = {cea.predicates[p] for p in t.predicates}
                for after in self._taking(mask, holds) if t.marks or t.target != state else ():
                    if t.target != ACCEPT and (t.target, after) not in met:
                        met.add((t.target, after))
                        open_.append((t.target, after))
        return {mask: count for mask, count in found.items() if count}

    def _taking(self, mask: int, holds: set[Predicate]) -> Iterator[int]:
        """The sets after an event of which these predicates hold, if a run may take it for some leaf."""
        for i, leaf in enumerate(self.branch.leaves):
            if not mask >> i & 1 and not self.preceding[i] & ~mask and leaf.predicates <= holds:
                yield mask | 1 << i

    def _within(self, mask: int) -> tuple[int, ...]:
        """The tests about leaves in `mask` alone."""
        return tuple(t for t, need in enumerate(self.needs) if need and need & mask == need)

    def _completed_tests(self, before: int, leaf: int) -> tuple[int, ...]:
        """The tests that `leaf` completes."""
        return tuple(t for t in self.within(before | 1 << leaf) if self.needs[t] >> leaf & 1)

    def _allowed_part(self, mask: int) -> float:
        """The part of the orders of `mask` that the pattern allows, a window's worth for each contiguity."""
        count = mask.bit_count()
        return self._extensions(mask) / math.factorial(count) if count <= COUNTED else 1.0

    def near(self, mask: int) -> int:
        """Contiguities within `mask`: each leaves one event of a window."""
        return sum(need & mask == need for need in self.adjacent)

    def _count(self, mask: int) -> int:
        if not mask:
            return 1
        return sum(self._extensions(mask & ~(1 << i)) for i in self.last(mask))

    def last(self, mask: int) -> list[int]:
        """The leaves of a set that may be its last."""
        return [i for i in bits(mask) if not any(self.preceding[j] >> i & 1 for j in bits(mask))]

    def _read(self, mask: int) -> int:
        """The leaves that the remaining tests read of runs that have taken `mask`."""
        read = 0
        for need in self.needs:
            if need & ~mask:
                read |= need & mask
        for _, right, compared, _ in self.absent:
            if right & ~mask:
                read |= compared & mask
        return read

    def _moving(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The sets that a run may have taken, each with the leaves that may be next."""
        count = len(self.numbers)
        if count > SUBSETS:
            return tuple(((1 << i) - 1, (i,)) for i in range(1, count))
        found = []
        for mask in range(1, self.all):
            if any(self.preceding[i] & ~mask for i in bits(mask)):
                continue  # no run takes an event before those that precede it
            able = (i for i in range(count) if not mask >> i & 1 and not self.preceding[i] & ~mask)
            found.append((mask, tuple(able)))
        return tuple(found)


def _mask(leaves: frozenset[int] | set[int], place: Mapping[int, int]) -> int:
    return sum(1 << place[n] for n in leaves if n in place)


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


bits: Callable[[int], list[int]] = functools.lru_cache(1 << (SUBSETS + 2))(_bits)
"""The places of the ones; the caller must not change the list."""
