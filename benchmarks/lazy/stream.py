"""The input of `benchmarks.lazy.experiments`: [Lazy]'s stream, generated; its condition; and the automata it compares
with.

Stream: 2,100 symbols in 8 regions, a price for each about two minutes of five (80.5 million prices a year, as in [Lazy]
§8). Prices are random walks with a part common to all and one common to a region. An event has its region as type and
the last ten prices. Seed: 2018. The paper names two regions' sizes (Europe 267, Africa 8) and ratios up to 1:700; the
others are ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spaseq.core.engine.lazy.automaton import Automaton
from spaseq.core.engine.lazy.evaluator import LazyEvaluator
from spaseq.core.engine.lazy.partial import Partial
from spaseq.core.engine.lazy.plan import BranchPlan
from spaseq.core.engine.lazy.space import Space
from spaseq.core.pattern import Atom, Correlate, Pattern

REGIONS = {"NA": 1420, "EU": 267, "AS": 220, "SA": 90, "ME": 75, "OC": 18, "AF": 8, "CA": 2}
PER_MINUTE = 80_509_033 / (252 * 390) / 2100
"""The part of the symbols that have a price in a minute."""
HISTORY, SEED = 10, 2018


@dataclass(frozen=True)
class RegionIs:
    """The event is of this region."""

    code: int

    def evaluate(self, batch: Prices) -> np.ndarray:
        return batch.regions == self.code


@dataclass
class Prices:
    """A batch: region, normalised price history (n, 10), position, and time in seconds."""

    regions: np.ndarray
    histories: np.ndarray
    positions: np.ndarray
    times: np.ndarray
    keys: None = None

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, rows: slice) -> Prices:
        return Prices(self.regions[rows], self.histories[rows], self.positions[rows], self.times[rows])


def stream(minutes: int, rates: Mapping[str, float] | None = None) -> Prices:
    """`minutes` of trading. `rates`: events a minute of each region instead of the sizes of the regions."""
    rng = np.random.default_rng(SEED)
    region_of = np.repeat(np.arange(len(REGIONS)), list(REGIONS.values()))
    steps = minutes + HISTORY
    common, regional = rng.normal(size=steps), rng.normal(size=(steps, len(REGIONS)))
    own = rng.normal(size=(steps, len(region_of)))
    moves = 0.3 * common[:, None] + 0.3 * regional[:, region_of] + own
    prices = np.cumsum(moves, axis=0)
    chance = np.full(len(region_of), PER_MINUTE)
    if rates is not None:
        wanted = np.array([rates.get(name, 0.0) for name in REGIONS])
        chance = (wanted / np.array(list(REGIONS.values())))[region_of]
    regions, histories, times = [], [], []
    for minute in range(minutes):
        symbols = np.flatnonzero(rng.random(len(chance)) < chance)
        # More events than symbols: some have several prices a minute.
        symbols = np.repeat(symbols, np.maximum(1, np.round(chance[symbols])).astype(int))
        rng.shuffle(symbols)
        last = prices[minute : minute + HISTORY, symbols].T
        centred = last - last.mean(axis=1, keepdims=True)
        histories.append(centred / np.linalg.norm(centred, axis=1, keepdims=True))
        regions.append(region_of[symbols])
        times.append(60 * minute + np.sort(rng.integers(0, 60, len(symbols))))
    count = sum(map(len, regions))
    return Prices(np.concatenate(regions), np.concatenate(histories).astype(np.float32), np.arange(count),
                  np.concatenate(times))  # fmt: skip


# The condition


@dataclass(frozen=True)
class Correlated:
    """Pearson's correlation of the histories of the two variables is at least `threshold`."""

    variables: frozenset[str]
    threshold: float


@dataclass
class Histories:
    """Memory of histories: their correlation is a product, as they are normalised."""

    kept: np.ndarray = field(default_factory=lambda: np.zeros((0, HISTORY), np.float32))
    parts: list[np.ndarray] = field(default_factory=list)
    start: int = 0

    @property
    def nbytes(self) -> int:
        return int(self.kept.nbytes)

    def append(self, batch: Prices, rows: np.ndarray) -> None:
        self.kept = np.concatenate([self.kept[self.start :], batch.histories[rows]])
        self.start = 0

    def drop(self, count: int) -> None:
        self.start += count

    def keep(self, index: np.ndarray) -> None:
        self.kept, self.start = self.kept[self.start :][index], 0

    def test(self, guard: Correlated, events: Mapping[str, np.ndarray]) -> np.ndarray:
        a, b = (self.kept[self.start + events[v]] for v in sorted(guard.variables))
        return np.einsum("ij,ij->i", a, b) >= guard.threshold

    def test_whole(self, guard: Hashable, events: Sequence[tuple[int, frozenset[str]]]) -> bool:
        raise NotImplementedError("no such guard here")


class Correlations:
    """The registers of the condition, and its `Conditions`. A row: (guard, variable, position) of the event taken."""

    empty: Hashable = frozenset()

    def __init__(self) -> None:
        self._histories: dict[int, np.ndarray] = {}

    def load(self, batch: Prices) -> None:
        self._positions = batch.positions
        self._now = batch.histories

    def take(self, row: Any, guard: Correlated, variables: frozenset[str], event: int) -> Any:
        own, place = self._now[event], int(self._positions[event])
        taken = variables & guard.variables
        for other, name, position in row:
            if other == guard and name not in taken and self._histories[position] @ own < guard.threshold:
                return None
        self._histories[place] = own
        return row | {(guard, v, place) for v in taken}

    def leave(self, row: Any, guard: Correlated) -> Any:
        return frozenset(entry for entry in row if entry[0] != guard)

    def again(self, row: Any, action: Hashable) -> Any:
        return row

    def conditions(self) -> Correlations:
        return self

    def kind(self, guard: Hashable) -> str:
        return "tuples"

    def memory(self) -> Histories:
        return Histories()


# Patterns


def event(region: str, variable: str) -> Atom:
    """An event of a region."""
    return Atom(frozenset({RegionIs(list(REGIONS).index(region))}), frozenset({variable}))


def correlated(pattern: Pattern, variables: Sequence[str], threshold: float) -> Pattern:
    """With the condition on each pair of `variables`."""
    for i, a in enumerate(variables):
        for b in variables[i + 1 :]:
            both = frozenset((a, b))
            pattern = Correlate(pattern, both, Correlated(both, threshold))
    return pattern


# The eager automaton


class EagerAutomaton(Automaton):
    """The plain NFA of [Lazy] §2.2: each event extends every instance that can take it, as it arrives.

    Conjunctions have a state for each set of events taken, and the state of an iterated event takes more of them.
    Instances wait until their window is over. Blocks and columns as with the lazy automata, so that what is compared
    is the order of evaluation.
    """

    def __init__(self, plan: BranchPlan) -> None:
        super().__init__(plan, None)
        self.parts: dict[tuple[frozenset[int], int], list[Partial]] = {}
        self.loops = {min(r.before, key=lambda n: len(plan.after[n])): n for r in plan.rounds
                      for n in r.branches[0].leaves}  # fmt: skip
        """An iterated leaf, and the leaf that its earlier events are of."""

    def __len__(self) -> int:
        return sum(len(p) for parts in self.parts.values() for p in parts)

    @property
    def nbytes(self) -> int:
        return sum(p.nbytes for parts in self.parts.values() for p in parts)

    def advance(self, space: Space, keys: np.ndarray, fresh: int) -> Iterator[Partial]:
        for state in list(self.parts):
            for partial in self.parts.pop(state):
                yield from self._extend(space, state[0], partial, again=True)
        root = Partial(keys)
        root.seen = {leaf: np.full(len(keys), fresh) for leaf in self.plan.leaves}
        yield from self._extend(space, frozenset(), root)

    def _extend(self, space: Space, taken: frozenset[int], partial: Partial, again: bool = False) -> Iterator[Partial]:
        plan = self.plan
        for leaf in plan.leaves:
            if leaf not in taken and not (plan.after[leaf] & plan.leaves.keys()) - taken:
                yield from self._step(space, partial, leaf, taken | {leaf})
            elif leaf in taken and leaf in self.loops and not plan.before[leaf] & taken:
                longer = partial.take(slice(None))
                longer.extra = np.hstack([partial.extra, longer.columns.pop(leaf)[:, None]])
                longer.kinds = (*partial.kinds, self.loops[leaf])
                yield from self._step(space, longer, leaf, taken)
        if taken and len(partial):
            partial.seen = dict.fromkeys(plan.leaves, np.full(len(partial), space.rows.end))
            self.parts.setdefault((taken, len(partial.kinds)), []).append(partial)
            if space.trace is not None and not again:
                space.trace.waiting.append((partial.low, partial.high))

    def _step(self, space: Space, partial: Partial, leaf: int, after: frozenset[int]) -> Iterator[Partial]:
        first, last = space.ranges(partial, self.plan, leaf, partial.high)
        for rows, events in space.candidates(self.plan.kind[leaf], first, last):
            found = space.bind(partial, rows, leaf, events, [(self.plan, 0)], after)
            found.seen = {}
            space.instances += len(found)
            if space.trace is not None:
                space.trace.made.append((found.low, found.high))
            if len(after) == len(self.plan.leaves):
                yield found
            elif len(found):
                yield from self._extend(space, after, found)

    def evict(self, space: Space) -> None:
        for state in list(self.parts):
            left = [p.take(p.low >= space.floors[0]) for p in self.parts.pop(state)]
            whole = Partial.concat(left)
            whole.extra, whole.kinds = np.concatenate([p.extra for p in left]), left[0].kinds
            if len(whole):
                self.parts[state] = [whole]


class Eager(LazyEvaluator):
    """An evaluation by eager automata."""

    def _start(self, batch: Any, truth: np.ndarray) -> None:
        super()._start(batch, truth)
        self._automata = [EagerAutomaton(plan) for plan in self._plans]


__all__ = ["REGIONS", "BranchPlan", "Correlations", "Eager", "Prices", "correlated", "event", "stream"]
