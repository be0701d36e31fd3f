"""The input buffer that the instances of all states share, and the selection of its events for partial matches."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from spaseq.core.engine.lazy.buffers import BIG, Postings, Rows
from spaseq.core.engine.lazy.partial import Partial
from spaseq.core.engine.lazy.plan import BranchPlan, Check
from spaseq.core.engine.program.guard_conditions import Memory
from spaseq.core.engine.program.normal_form import Absence, Adjacent, Test
from spaseq.core.integers import in_order, ranges
from spaseq.core.snapshot import array, expect

CHUNK: Final = 1 << 17
"""Candidates that are looked at together; bounds the memory of instances that do not wait."""

Steps = dict[tuple[frozenset[int], int], tuple[int, int]]
Frame = tuple[BranchPlan, int]
"""A branch and, inside a round, the column of `Partial.extra` from which on events are of this round."""


@dataclass(slots=True)
class Trace:
    """For measurements: (first handle, last handle) of instances as they are made, and of those that wait."""

    made: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    waiting: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)


def _with_counts(tests: Sequence[Test], counts: Sequence[Any]) -> Iterator[tuple[Test, Any]]:
    """The tests that were made, with their counts."""
    return ((test, count) for test, count in zip(tests, counts, strict=True) if count is not None)


class Space:
    """The input buffer of one evaluation with its counters."""

    def __init__(self, kinds: int, keyed: bool, own_windows: bool, memory: Memory | None) -> None:
        self.rows: Rows = Rows()
        self.postings: list[Postings] = [Postings(keyed) for _ in range(kinds)]
        self.memory = memory
        self.own_windows = own_windows
        """True if partitions have windows of their own (those in events)."""
        self.floors: np.ndarray = np.zeros(1, np.int64)
        """By partition (one, if they share windows): no window that ends from now on holds an earlier handle."""
        self.counts: np.ndarray = np.zeros(1, np.int64)
        """By partition: how many events it has had, kept or not."""
        self.evaluations: int = 0
        self.instances: int = 0
        self.searches: int = 0
        self.trace: Trace | None = None
        self.tried: dict[Test, tuple[int, int]] = {}
        """Tests of tuples that no other had chosen: how many were made, and how many held."""
        self.steps: Steps = {}
        """For leaves taken and the next one: candidates, and how many of them passed its tests."""
        self._chosen = False
        self._order: tuple[int, np.ndarray, np.ndarray] | None = None

    def snapshot(self, tests: Sequence[Test]) -> dict[str, Any]:
        """The buffer and its counters, as plain values. `tests`: those whose counts are reported."""
        return {
            "rows": self.rows.snapshot(),
            "postings": [postings.snapshot() for postings in self.postings],
            "memory": None if self.memory is None else self.memory.snapshot(),
            "floors": self.floors,
            "counts": self.counts,
            "counters": (self.evaluations, self.instances, self.searches),
            "tried": [self.tried.get(test) for test in tests],
            "steps": [(*step, *counts) for step, counts in self.steps.items()],
        }

    def restore(self, state: dict[str, Any], tests: Sequence[Test]) -> None:
        """The opposite of `snapshot`, before the first event."""
        self.rows.restore(state["rows"])
        for postings, kept in zip(self.postings, state["postings"], strict=True):
            postings.restore(kept, self.rows)
        if self.memory is not None:
            self.memory.restore(state["memory"], len(self.rows))
        self.floors, self.counts = array(state["floors"], "floors"), array(state["counts"], "counts")
        least = 1 + int(self.rows.key.values.max(initial=0))
        expect(len(self.counts) >= least, "a count for each partition")
        expect(len(self.floors) >= (least if self.own_windows else 1), "a first handle for each window")
        self.evaluations, self.instances, self.searches = state["counters"]
        self.tried = {t: (made, held) for t, (made, held) in _with_counts(tests, state["tried"])}
        self.steps = {(leaves, leaf): (made, held) for leaves, leaf, made, held in state["steps"]}
        pairs = (*self.tried.values(), *self.steps.values())
        counts = (*state["counters"], *(count for pair in pairs for count in pair))
        expect(all(type(count) in (int, float) for count in counts), "counts")

    # The places of candidates

    def floor_of(self, keys: np.ndarray) -> np.ndarray:
        """The first handle that is still in some window, by partition."""
        return self.floors[keys] if self.own_windows else np.full(len(keys), self.floors[0])

    def is_past(self, partial: Partial, leaf: int) -> np.ndarray:
        """True if the event right after that of `leaf` has come."""
        ordinals = self.rows.ordinal.values[partial.columns[leaf] - self.rows.base]
        return np.asarray(ordinals + 1 < self.counts[partial.key])

    def low_of(self, handles: np.ndarray) -> np.ndarray:
        """First handle in a window that ends with these."""
        return self.rows.low.values[handles - self.rows.base]

    def end_of(self, partial: Partial) -> np.ndarray:
        """The first handle that no longer fits into a window with the first event of each row."""
        lows = self.rows.low.values
        if not self.own_windows:
            return np.searchsorted(lows, partial.low, "right") + self.rows.base
        keys = self.rows.key.values
        if self._order is None or self._order[0] != self.rows.end:
            order = in_order(keys)
            self._order = self.rows.end, order, (keys[order] << 40) | lows[order]
        _, order, codes = self._order
        at = np.searchsorted(codes, (partial.key << 40) | np.minimum(partial.low, BIG), "right")
        last = np.minimum(at, len(order) - 1)
        beyond = (at == len(order)) | (keys[order[last]] != partial.key)
        return np.where(beyond, BIG, order[last] + self.rows.base)

    def ranges(
        self, partial: Partial, plan: BranchPlan, leaf: int, lower: np.ndarray | None = None,
        upper: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The candidates for `leaf`, as bounds into its postings: int64 (n,) each.

        The ordering filters of [Lazy] §3, the window, and what was tried before. `lower` and `upper` are exclusive.
        """
        self.searches += len(partial)
        columns, count = partial.columns, len(partial)
        if columns:
            after, until = self.low_of(partial.high), self.end_of(partial)
        else:
            after, until = self.floor_of(partial.key), np.full(count, BIG, np.int64)
        for node in plan.after[leaf]:
            if node in columns:
                after = np.maximum(after, columns[node] + 1)
        for node in plan.before[leaf]:
            if node in columns:
                until = np.minimum(until, columns[node])
            elif node in partial.marks:
                until = np.minimum(until, partial.marks[node])
        if leaf in partial.seen:
            after = np.maximum(after, partial.seen[leaf])
        if lower is not None:
            after = np.maximum(after, lower + 1)
        if upper is not None:
            until = np.minimum(until, upper)
        postings = self.postings[plan.kind[leaf]]
        first = postings.find(partial.key, after)
        last = np.maximum(postings.find(partial.key, until), first)
        for a, b in plan.next_of.items():
            if b == leaf and a in columns:
                last = np.minimum(last, np.maximum(postings.find(partial.key, columns[a] + 1) + 1, first))
            if a == leaf and b in columns:
                first = np.maximum(first, np.minimum(postings.find(partial.key, columns[b]) - 1, last))
        return first, last

    def candidates(self, kind: int, first: np.ndarray, last: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(row, event) of all events in ranges of postings, `CHUNK` or a row's worth at a time."""
        postings = self.postings[kind]
        counts = last - first
        total = np.cumsum(counts)
        start = 0
        while start < len(counts):
            done = int(total[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(total, done + CHUNK, "right")))
            size = counts[start:stop]
            if size.any():
                yield np.repeat(np.arange(start, stop), size), postings.at(ranges(first[start:stop], size))
            start = stop

    # Taking events

    def bind(
        self, partial: Partial, rows: np.ndarray, leaf: int, events: np.ndarray, frames: list[Frame],
        done: frozenset[int],
    ) -> Partial:  # fmt: skip
        """The rows of `partial` at `rows`, each with an event for `leaf`, as far as conditions allow.

        Every condition on a tuple is tested when the tuple's last event is taken. `done` includes `leaf`.
        """
        new = partial.take(rows)
        new.columns[leaf] = events
        new.seen.pop(leaf, None)
        np.minimum(new.low, events, out=new.low)
        np.maximum(new.high, events, out=new.high)
        new = self._apply_tests(new, leaf, frames, len(done) > 2)
        plan, since = frames[-1]
        if len(frames) == 1:
            step = done - {leaf}, leaf
            made, held = self.steps.get(step, (0, 0))
            self.steps[step] = made + len(rows), held + len(new)
        return self.checked(new, plan.ready(leaf, done), since)

    def _apply_tests(self, new: Partial, leaf: int, frames: list[Frame], chosen: bool) -> Partial:
        """The rows that pass the tests which `leaf` completes; `chosen`: by other tests before, unless in rounds."""
        self._chosen = chosen and len(frames) == 1
        for plan, since in frames:
            for test in plan.tests.get(leaf, ()):
                if not len(new):
                    return new
                ok = self._holds(new, test, leaf, since)
                if not ok.all():
                    new = new.take(ok)
        return new

    def checked(self, partial: Partial, checks: list[Check], since: int) -> Partial:
        """The rows that pass `checks`."""
        for check in checks:
            if not len(partial):
                return partial
            match check.what:
                case Adjacent(left, right):
                    ok = self._adjacent(partial, left, right)
                case Absence():
                    ok = self._absent(partial, check.what, check.kinds, since)
                case Test():
                    ok = self._whole(partial, check.what, since)
            partial = partial if ok.all() else partial.take(ok)
        return partial

    # Conditions

    def _sources(self, partial: Partial, leaves: frozenset[int], since: int) -> list[np.ndarray]:
        """The events taken for any of `leaves`, a column each."""
        found = [partial.columns[n] for n in sorted(leaves) if n in partial.columns]
        return found + [partial.extra[:, c] for c in range(since, len(partial.kinds)) if partial.kinds[c] in leaves]

    def _holds(self, partial: Partial, test: Test, leaf: int, since: int) -> np.ndarray:
        """For each row, True if all tuples hold that contain the event of `leaf`: bool (n,)."""
        ok = np.ones(len(partial), bool)
        own = [partial.columns[leaf]]
        for turn, (_, leaves) in enumerate(test.variables):
            if leaf not in leaves:
                continue
            choices = [
                own if i == turn else self._sources(partial, others, since)
                for i, (_, others) in enumerate(test.variables)
            ]
            for choice in itertools.product(*choices):
                self._narrow(ok, test, choice)
        return ok

    def _narrow(
        self, ok: np.ndarray, test: Test, choice: tuple[np.ndarray, ...], mark: str = "",
        strays: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Remove from `ok` the rows for which this choice of events fails; `strays` are those of `mark`."""
        index = np.flatnonzero(ok)
        if len(index):
            events = {v: column[index] for (v, _), column in zip(test.variables, choice, strict=True)}
            if strays is not None:
                events[mark] = strays[index]
            ok[index] = self.test(test, events)

    def test(self, test: Test, events: dict[str, np.ndarray]) -> np.ndarray:
        """The truth of the guard for the tuples of handles `events`: bool (n,)."""
        assert self.memory is not None
        base = self.rows.base
        found = self.memory.test(test.guard, {v: e - base for v, e in events.items()})
        if not self._chosen:
            tried, held = self.tried.get(test, (0, 0))
            self.tried[test] = tried + len(found), held + int(np.count_nonzero(found))
        self.evaluations += len(found)
        return found

    def _adjacent(self, partial: Partial, left: frozenset[int], right: frozenset[int]) -> np.ndarray:
        ordinals = self.rows.ordinal.values
        ends, starts = self._hull(partial, left, right)
        return ordinals[ends - self.rows.base] + 1 == ordinals[starts - self.rows.base]

    def _hull(self, partial: Partial, left: frozenset[int], right: frozenset[int]) -> tuple[np.ndarray, np.ndarray]:
        """The end of the nodes `left`, which are leaves, and the start of the nodes `right`."""
        ends = functools.reduce(np.maximum, [partial.columns[n] for n in left])
        starts = [partial.columns[n] if n in partial.columns else partial.marks[n] for n in right]
        return ends, functools.reduce(np.minimum, starts)

    def _absent(self, partial: Partial, absence: Absence, kinds: tuple[int, ...], since: int) -> np.ndarray:
        ends, starts = self._hull(partial, absence.left, absence.right)
        ok = np.ones(len(partial), bool)
        for alternative, kind in zip(absence.alternatives, kinds, strict=True):
            postings = self.postings[kind]
            self.searches += len(partial)
            first = postings.find(partial.key, ends + 1)
            last = np.maximum(postings.find(partial.key, starts), first)
            if alternative.test is None:
                ok &= first == last
                continue
            last = np.where(ok, last, first)
            for rows, strays in self.candidates(kind, first, last):
                matched = np.ones(len(rows), bool)
                some = partial.take(rows)
                choices = [self._sources(some, leaves, since) for _, leaves in alternative.test.variables]
                for choice in itertools.product(*choices):
                    self._narrow(matched, alternative.test, choice, alternative.mark, strays)
                ok[rows[~matched if alternative.clears else matched]] = False
        return ok

    def _whole(self, partial: Partial, test: Test, since: int) -> np.ndarray:
        """For each row, the value of a guard over all events at once."""
        assert self.memory is not None
        named = [(v, self._sources(partial, leaves, since)) for v, leaves in test.variables]
        base = self.rows.base
        ok = np.zeros(len(partial), bool)
        for i in range(len(partial)):
            events: dict[int, set[str]] = {}
            for v, sources in named:
                for column in sources:
                    events.setdefault(int(column[i]) - base, set()).add(v)
            ok[i] = self.memory.test_whole(test.guard, [(e, frozenset(events[e])) for e in sorted(events)])
        self.evaluations += len(partial)
        return ok
