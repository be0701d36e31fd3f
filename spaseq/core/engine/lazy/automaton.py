"""The automaton of one branch: a chain ([Lazy] §4) or a tree (§7), whose states are sets of taken leaves.

The state of an instance selects a leaf. The instance takes every candidate for that leaf in the buffer, and becomes an
instance for each. It goes on waiting only if an event of that leaf may still come. Chain: the leaf is the next of a
fixed order. Tree: it is the rarest in the instance's own part of the buffer, selected anew each time, once there is a
candidate for every leaf.

Why no match is found twice in a tree: an instance remembers, for each leaf, the first event that it has not tried
(`Partial.seen`). At the leaf A, it hands all matches with the As there are to the instances it becomes, which inherit
its memory. It keeps the matches with As to come. So each match belongs to one instance at any time.

Tree states are made when an instance first reaches them, and forgotten with the last instance. States that took the
same leaves in another order behave alike and are one state here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from spaseq.core.engine.lazy.partial import Partial
from spaseq.core.engine.lazy.plan import BranchPlan
from spaseq.core.engine.lazy.rounds import with_rounds
from spaseq.core.engine.lazy.space import Space
from spaseq.core.snapshot import array, expect

State = frozenset[int]
_ROOT: State = frozenset()


class Automaton:
    """The instances of one branch. `order`: of a chain; None for a tree."""

    def __init__(self, plan: BranchPlan, order: tuple[int, ...] | None) -> None:
        self.plan = plan
        self.order = order
        self.waiting: dict[State, list[Partial]] = {}
        self._asked: dict[State, tuple[int, ...]] = {}
        self._root_seen = {leaf: np.zeros(1, np.int64) for leaf in plan.leaves}
        self.states: set[State] = set()
        """States that were ever made, the root apart."""

    def __len__(self) -> int:
        return sum(len(p) for parts in self.waiting.values() for p in parts)

    @property
    def nbytes(self) -> int:
        return sum(p.nbytes for parts in self.waiting.values() for p in parts)

    def advance(self, space: Space, keys: np.ndarray, fresh: int) -> Iterator[Partial]:
        """The matches that the events from handle `fresh` on complete. `keys`: their partitions, each once."""
        for state in sorted(self.waiting, key=len, reverse=True):
            parts = self.waiting.pop(state)
            inserted = self._arrivals(space, state)
            if self._asked.get(state) == inserted:
                self.waiting[state] = parts  # nothing has come that it could take
                continue
            self._asked[state] = inserted
            yield from self._ask(space, state, Partial.concat(parts), again=True)
        root = Partial(keys)
        if self.order is None:
            self._grow_root(int(keys.max(initial=0)) + 1)
            root.seen = {leaf: seen[keys] for leaf, seen in self._root_seen.items()}
        else:
            root.seen = {self.order[0]: np.full(len(keys), fresh)}
        yield from self._ask(space, _ROOT, root)
        for leaf, seen in root.seen.items():
            if self.order is None:
                self._root_seen[leaf][keys] = seen

    def _grow_root(self, count: int) -> None:
        for leaf, seen in self._root_seen.items():
            if len(seen) < count:
                self._root_seen[leaf] = np.concatenate([seen, np.zeros(2 * count - len(seen), np.int64)])

    def _arrivals(self, space: Space, state: State) -> tuple[int, ...]:
        """The number of events that have come for each leaf that the state may select."""
        leaves = self._wanted_leaves(state)
        # A next event that did not come ends the wait: then ask in any case.
        passed = int(space.counts.sum()) if any(a in state for a in self.plan.next_of) else 0
        return (passed, *(space.postings[self.plan.kind[leaf]].inserted for leaf in leaves))

    def _wanted_leaves(self, state: State) -> list[int]:
        if self.order is not None:
            return [self.order[len(state)]]
        return [leaf for leaf in self.plan.leaves if leaf not in state]

    def _ask(self, space: Space, state: State, partial: Partial, again: bool = False) -> Iterator[Partial]:
        """The instances that `partial` becomes with the events in the buffer; those that may still find more wait
        (`again`: as before)."""
        waiting = self._ask_tree if self.order is None else self._ask_chain
        left = yield from waiting(space, state, partial)
        if state and len(left):
            self._wait(space, state, left)
            if space.trace is not None and not again:
                space.trace.waiting.append((left.low, left.high))

    def _ask_chain(self, space: Space, state: State, partial: Partial) -> Generator[Partial, None, Partial]:
        assert self.order is not None
        leaf = self.order[len(state)]
        first, last = space.ranges(partial, self.plan, leaf)
        yield from self._take(space, state, partial, leaf, first, last)
        partial.seen[leaf] = np.full(len(partial), space.rows.end)
        closed = self._is_closed(space, state, partial, leaf)
        return partial if not closed.any() else partial.take(~closed)

    def _ask_tree(self, space: Space, state: State, partial: Partial) -> Generator[Partial, None, Partial]:
        leaves = self._wanted_leaves(state)
        bounds = [space.ranges(partial, self.plan, leaf) for leaf in leaves]
        counts = np.stack([last - first for first, last in bounds], axis=1)
        ready = (counts > 0).all(axis=1)
        rarest = np.where(ready, counts.argmin(axis=1), -1)
        waits = np.ones(len(partial), bool)
        for turn, leaf in enumerate(leaves):
            closed = self._is_closed(space, state, partial, leaf)
            asked = np.flatnonzero(rarest == turn)
            if len(asked):
                first, last = bounds[turn]
                yield from self._take(space, state, partial.take(asked), leaf, first[asked], last[asked])
                partial.seen[leaf][asked] = space.rows.end
                waits &= ~(closed & (rarest == turn))
            waits &= ~(closed & (counts[:, turn] == 0))
        return partial if waits.all() else partial.take(waits)

    def _is_closed(self, space: Space, state: State, partial: Partial, leaf: int) -> np.ndarray:
        """For each row, True if no event of `leaf` may come any more: bool (n,)."""
        if not self.plan.is_open(leaf, state):
            return np.ones(len(partial), bool)
        closed = np.zeros(len(partial), bool)
        for a, b in self.plan.next_of.items():
            if b == leaf and a in state:
                closed |= space.is_past(partial, a)
        return closed

    def _take(
        self, space: Space, state: State, partial: Partial, leaf: int, first: np.ndarray, last: np.ndarray
    ) -> Iterator[Partial]:
        after = state | {leaf}
        complete = len(after) == len(self.plan.leaves)
        for rows, events in space.candidates(self.plan.kind[leaf], first, last):
            found = space.bind(partial, rows, leaf, events, [(self.plan, 0)], after)
            if not len(found):
                continue
            space.instances += len(found)
            if space.trace is not None:
                space.trace.made.append((found.low, found.high))
            if complete:
                yield from with_rounds(space, [(self.plan, 0)], found)
            else:
                yield from self._ask(space, after, found)

    def _wait(self, space: Space, state: State, partial: Partial) -> None:
        if state not in self.waiting:
            self.waiting[state] = []
            self.states.add(state)
            self._asked[state] = self._arrivals(space, state)
        self.waiting[state].append(partial)

    def evict(self, space: Space) -> None:
        """Evict the instances that have left the window, and the states that nobody is in."""
        for state in list(self.waiting):
            partial = Partial.concat(self.waiting[state])
            alive = partial.low >= space.floor_of(partial.key)
            if not alive.all():
                partial = partial.take(alive)
            if len(partial):
                self.waiting[state] = [partial]
            else:
                del self.waiting[state]
                self._asked.pop(state, None)

    def snapshot(self) -> dict[str, Any]:
        """The waiting instances, and the events that each state has seen, as plain values."""
        return {
            "waiting": [(state, [p.snapshot() for p in parts]) for state, parts in self.waiting.items()],
            "asked": list(self._asked.items()),
            "root": self._root_seen,
            "states": list(self.states),
        }

    def restore(self, state: dict[str, Any], space: Space) -> None:
        """The opposite of `snapshot`, of instances over the events in `space`."""
        leaves = self.plan.leaves
        for where, parts in state["waiting"]:
            expect(type(where) is frozenset and where and where < leaves.keys(), "states of the automaton")
            expect(parts, "instances in a state that waits")
            self.waiting[where] = found = [Partial.restore(part, leaves) for part in parts]
            for part in found:
                taken = [part.low, part.high, *part.columns.values()]
                there = all(((c >= space.rows.base) & (c < space.rows.end)).all() for c in taken)
                expect(there and part.columns.keys() == where, "instances over events that are kept")
                expect(part.seen.keys() == set(self._wanted_leaves(where)), "the events tried for each leaf that waits")
        self._asked = dict(state["asked"])
        expect(set(state["root"]) == set(leaves) and self.waiting.keys() <= self._asked.keys(), "all leaves")
        self._root_seen = {leaf: array(seen, "leaves") for leaf, seen in state["root"].items()}
        self.states = set(state["states"])

    def renumber(self, change: Any) -> None:
        """New handles for old ones."""
        for parts in self.waiting.values():
            for p in parts:
                p.low, p.high = change(p.low), change(p.high)
                p.columns = {leaf: change(c) for leaf, c in p.columns.items()}
                p.seen = {leaf: change(c) for leaf, c in p.seen.items()}
        self._root_seen = {leaf: change(seen) for leaf, seen in self._root_seen.items()}
