"""The run that aggregates over all matches of each event instead of finding them: `spaseq.core.engine.kernels.sums`.

It has the deterministic states of `DeterministicRun`, and in place of the structure a row of numbers for each state,
and what a sliding window needs of its events. Memory is O(events of the window that move a run), and for each partition
O(states²).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from spaseq.core.automata.determinise import Cache
from spaseq.core.engine.kernels.sums import layout as s
from spaseq.core.engine.kernels.sums.layout import Held, Output, Rows
from spaseq.core.engine.kernels.sums.machine import run_sums
from spaseq.core.engine.program.matches import Emit, MatchBatch
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.sums import Sums, no_rows, plain_rows, read_rows
from spaseq.core.engine.runs.base import LiveSets, Run
from spaseq.core.errors import BudgetExceeded
from spaseq.core.jit import Bound, Kernel, attempt_events
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k

_OUTPUTS: Final = 1 << 12
"""Rows of the output."""
_FIRST: Final = 64
"""Room for so many events of the back, and entries of the front, to begin with."""


class SummingRun(Run):
    """Aggregates over the matches of an automaton without registers, all of them."""

    def __init__(self, program: Program, arena: Arena) -> None:
        super().__init__(program, arena)
        assert program.summed is not None
        self._summed = program.summed
        self._cache = Cache(program.cea, program.settings.automaton_bytes)
        self._stores = int(program.window.is_bounded)
        self._labelled = self._summed.takes(program.labels)
        self._kernel: Kernel = Bound(run_sums)
        self._kinds = self._summed.kinds()
        self._may = np.zeros((0, len(self._labelled.ints)), bool)
        self._width = 2
        self._keys = 0
        rows = self._rows
        one = rows(s.SPARE_ROWS)
        one.ints[s.SPARE_ONE, 0] = 1
        one.ints[s.SPARE_ONE, self._summed.totals :] = s.NO_LEAST
        own = np.zeros(s.OWN_SLOTS, np.int64)
        own[[s.FREE_ENTRY, s.FREE_EVENT]] = k.NIL
        self._held = Held(
            arena.st, own, np.zeros((0, s.KEYED_COLUMNS), np.int64), rows(0), rows(0),
            np.zeros((0, s.LINK_COLUMNS), np.int64), rows(0), np.zeros((0, s.CHAIN_COLUMNS), np.int64), rows(0), one,
            rows(0),
        )  # fmt: skip
        self._output = Output(np.zeros((3, _OUTPUTS), np.int64), rows(_OUTPUTS))

    def _rows(self, count: int) -> Rows:
        return no_rows(self._summed, count)

    def _more(self, rows: Rows, count: int) -> Rows:
        """The rows, and rows of no runs behind them, `count` in all."""
        fresh = self._rows(count)
        fresh.ints[: len(rows.ints)], fresh.floats[: len(rows.floats)] = rows
        return fresh

    @property
    def statistics(self) -> dict[str, int]:
        return {"deterministic_states": len(self._cache), "automaton_bytes": self._cache.memory_usage(),
                "automaton_clears": 0}  # fmt: skip

    def parts(self) -> dict[str, list[Any]]:
        found = super().parts()
        return found | {"runs": [self._held], "automaton": [*found["automaton"], self._cache]}

    @property
    def reached(self) -> frozenset[int] | None:
        return frozenset().union(*(self._cache.states[i] for i in self._cache.learnt))

    def add_classes(self, vectors: list[int]) -> None:
        fresh = vectors[len(self._vectors) :]
        super().add_classes(vectors)
        self._cache.add_classes(vectors)
        may = np.zeros((len(fresh), len(self._labelled.ints)), bool)
        for number, vector in enumerate(fresh):
            may[number, list(self._stepper.labels(vector))] = True
        self._may = np.concatenate([self._may, may])

    def none(self) -> MatchBatch:
        return MatchBatch(sums=Sums(*self._rows(0), kinds=self._known_kinds()))

    def _known_kinds(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(tuple(kind) for kind in self._kinds)

    def matches(self, chunk: Any) -> MatchBatch:
        found: MatchBatch = chunk
        return found

    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        if not len(events):
            return
        self._admit(events)
        may = self._may[events[:, k.E_CLASS]]
        weights = self._summed.weights(batch, events[:, k.E_ROW], may, self.program.labels, self._kinds)
        st = self._arena.st
        while True:
            self._fit()
            status = attempt_events(
                self._kernel, st, k.ROW, s.SUMS_DONE, events, weights, self._held, self._cache.tables(), self._width,
                self.floors, self._consume, self._stores, self._summed.totals, self._labelled, self._output,
            )  # fmt: skip
            self._flush(emit)
            yield
            self._note_lows(events)
            if status == s.SUMS_DONE:
                return
            self._provide(status, events)

    def _flush(self, emit: Emit) -> None:
        """Give what the kernel has written to `emit`, as matches whose only position is that of their end."""
        count = int(self._held.own[s.OUTPUTS])
        if not count:
            return
        self._held.own[s.OUTPUTS] = 0
        ends, rows = self._output.ends[0, :count].copy(), self._output.rows
        sums = Sums(rows.ints[:count].copy(), rows.floats[:count].copy(), self._known_kinds())
        emit(MatchBatch(ends, ends, np.arange(count + 1), ends, sums=sums))  # type: ignore[arg-type]

    def _provide(self, status: int, events: np.ndarray) -> None:
        """Make room, or compute the steps, that the kernel's `status` asks for."""
        held = self._held
        if status == s.SUMS_STATES:
            self._arena.st[k.UNKNOWN_STATE] = 0
            known = self._cache.tables().known
            held_states = np.flatnonzero((held.back.ints[:, 0].reshape(-1, self._width) != 0).any(axis=0))
            moved = np.flatnonzero((held.matrix.ints[:, 0].reshape(-1, self._width) != 0).any(axis=0))
            self._cache.learn([q for q in {*held_states.tolist(), *moved.tolist()} if q >= len(known) or not known[q]])
            if self._cache.over_budget:
                budget = self.program.settings.automaton_bytes
                hint = "raise automaton_bytes, or leave GROUP BY out"
                raise BudgetExceeded("automaton_bytes", budget, self._cache.memory_usage(), hint=hint)
        elif status == s.SUMS_FRONT:
            key = int(events[int(self._arena.st[k.ROW]), k.E_KEY])
            self._add_entries(int(held.keyed[key, s.LENGTH]))
        elif status == s.SUMS_CHAIN:
            self._add_events(len(held.chain) or _FIRST)

    def _add_entries(self, least: int) -> None:
        """Room for `least` more entries of the front."""
        before = len(self._held.links)
        count = before + max(least, before, _FIRST)
        links = np.zeros((count, s.LINK_COLUMNS), np.int64)
        links[:before] = self._held.links
        own = self._held.own
        links[before:, s.NEWER] = np.arange(before + 1, count + 1)
        links[-1, s.NEWER] = own[s.FREE_ENTRY]
        own[s.FREE_ENTRY] = before
        own[s.FREE_ENTRIES] += count - before
        self._take(links=links, front=self._more(self._held.front, count * self._width))

    def _add_events(self, more: int) -> None:
        before = len(self._held.chain)
        chain = np.zeros((before + more, s.CHAIN_COLUMNS), np.int64)
        chain[:before] = self._held.chain
        own = self._held.own
        chain[before:, s.EARLIER] = np.arange(before + 1, before + more + 1)
        chain[-1, s.EARLIER] = own[s.FREE_EVENT]
        own[s.FREE_EVENT] = before
        self._take(chain=chain, weights=self._more(self._held.weights, before + more))

    def _take(self, **arrays: Any) -> None:
        """Other arrays in place of those held. `BudgetExceeded` if they are more than the arena may be."""
        held = self._held._replace(**arrays)
        used = sum(each.nbytes for part in held[2:] for each in (part if isinstance(part, tuple) else (part,)))
        budget = self.program.settings.arena_bytes
        if used > budget:
            raise BudgetExceeded("arena_bytes", budget, used)
        self._held = held

    def _fit(self) -> None:
        """Rows for every partition and deterministic state, and for the moves of any event."""
        tables, width = self._cache.tables(), self._width
        while width < len(self._cache):
            width *= 2
        keys = self._keys
        while keys < self.partitions:
            keys = max(1, 2 * keys)
        if (width, keys) != (self._width, self._keys):
            self._resize(width, keys)
        ways = s.SPARE_ROWS + int(np.diff(tables.affected_from).max(initial=0))
        if len(self._held.spare.ints) < ways:
            self._take(spare=self._more(self._held.spare, 2 * ways))
        if len(self._held.product.ints) < width * width:
            self._take(product=self._rows(width * width))

    def _resize(self, width: int, keys: int) -> None:
        """Give each of so many partitions, and each entry, so many states."""
        held, old = self._held, self._width

        def wider(rows: Rows, count: int, by: int) -> Rows:
            """The first axes of `rows` are `count`, and `by` times the states."""
            found = []
            for part, fresh in zip(rows, self._rows(count * width**by), strict=True):
                shape = (*(old,) * by, part.shape[1])
                own = part.reshape(-1, *shape) if part.shape[1] else part.reshape(len(part) // old**by, *shape)
                target = fresh.reshape(count, *(width,) * by, part.shape[1])
                target[(slice(len(own)), *(slice(old),) * by)] = own
                found.append(target.reshape(-1, part.shape[1]) if part.shape[1] else fresh)
            return Rows(*found)

        keyed = np.full((keys, s.KEYED_COLUMNS), k.NIL)
        keyed[:, s.FIRST], keyed[:, s.LENGTH] = k.NEVER, 0
        keyed[: len(held.keyed)] = held.keyed
        self._take(keyed=keyed, back=wider(held.back, keys, 1), matrix=wider(held.matrix, keys, 2),
                   front=wider(held.front, len(held.links), 1))  # fmt: skip
        self._width, self._keys = width, keys

    # Partitions, starts

    def _end(self, numbers: np.ndarray, alive: np.ndarray) -> int:
        held, width, found = self._held, self._width, 0
        for key in numbers[numbers < self._keys].tolist():
            found += int(held.keyed[key, s.LAST] >= alive[key])
            self._free(key)
            held.back.ints[key * width : (key + 1) * width, 0] = 0
            held.keyed[key] = k.NIL, k.NIL, k.NEVER, k.NIL, 0
        return found

    def _free(self, key: int) -> None:
        """Free the events and entries of a partition."""
        held, own = self._held, self._held.own
        for event in self._events_of(key):
            held.chain[event, s.EARLIER] = own[s.FREE_EVENT]
            own[s.FREE_EVENT] = event
        for entry in self._entries_of(key):
            held.links[entry, s.NEWER] = own[s.FREE_ENTRY]
            own[s.FREE_ENTRY] = entry
            own[s.FREE_ENTRIES] += 1

    def _events_of(self, key: int) -> list[int]:
        """The events of the back, the last first."""
        return _chain_from(self._held.chain[:, s.EARLIER], int(self._held.keyed[key, s.BACK]))

    def _entries_of(self, key: int) -> list[int]:
        """The entries of the front, by their starts."""
        return _chain_from(self._held.links[:, s.NEWER], int(self._held.keyed[key, s.FRONT]))

    def starts(self) -> np.ndarray:
        held = self._held
        found = [held.chain[self._events_of(key), s.PLACE] for key in range(self._keys)]
        found += [held.links[self._entries_of(key), s.START] for key in range(self._keys)]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def live(self) -> LiveSets:
        return LiveSets.of((), *self._bounds())

    # Snapshots

    def snapshot(self) -> dict[str, Any]:
        held, cache, width = self._held, self._cache, self._width
        events = [self._events_of(key)[::-1] for key in range(self._keys)]
        entries = [self._entries_of(key) for key in range(self._keys)]
        flat = np.array([e for part in events for e in part], np.int64)
        fronts = np.array([e for part in entries for e in part], np.int64)
        vectors = (fronts[:, None] * width + np.arange(width)).ravel()
        return {
            "live": self.live().snapshot(),
            "states": list(cache.states),
            "width": width,
            "kinds": self._known_kinds(),
            "keyed": held.keyed[:, [s.FIRST, s.LAST, s.LENGTH]].ravel(),
            "events": np.array([len(part) for part in events], np.int64),
            "classes": held.chain[flat, s.CLASS],
            "places": held.chain[flat, s.PLACE],
            "entries": np.array([len(part) for part in entries], np.int64),
            "starts": held.links[fronts, s.START],
            **plain_rows("weights", Rows(held.weights.ints[flat], held.weights.floats[flat])),
            **plain_rows("front", Rows(held.front.ints[vectors], held.front.floats[vectors])),
            **plain_rows("back", held.back),
            **plain_rows("matrix", held.matrix),
        }

    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        live = LiveSets.restore(state["live"], self._arena)
        self._take_bounds(live)
        self.add_classes(vectors)
        self._kinds = self._summed.read_kinds(state["kinds"])
        self._cache.restore(state["states"])
        self._cache.learn(list(range(len(self._cache))))
        width = state["width"]
        expect(
            type(width) is int and 2 <= width <= 1 << 20 and width & (width - 1) == 0, "a width that grew by doubling"
        )
        keyed = array(state["keyed"], "partitions").reshape(-1, 3)
        keys = len(keyed)
        expect(keys >= self.partitions, "room for each partition")
        if not keys:
            return
        events = array(state["events"], "events", rows=keys, low=0)
        entries = array(state["entries"], "starts", rows=keys, low=0)
        count, fronts = int(events.sum()), int(entries.sum())
        classes = array(state["classes"], "events", rows=count, low=0, high=len(vectors) - 1)
        places = array(state["places"], "events", rows=count, low=0)
        starts = array(state["starts"], "starts", rows=fronts, low=0)
        self._width = width
        self._keys = keys
        own = np.zeros(s.OWN_SLOTS, np.int64)
        own[[s.FREE_ENTRY, s.FREE_EVENT]] = k.NIL
        chain, links = np.zeros((count, s.CHAIN_COLUMNS), np.int64), np.zeros((fronts, s.LINK_COLUMNS), np.int64)
        chain[:, s.EARLIER], chain[:, s.CLASS], chain[:, s.PLACE] = np.arange(count) - 1, classes, places
        links[:, s.NEWER], links[:, s.START] = np.arange(fronts) + 1, starts
        all_keyed = np.full((keys, s.KEYED_COLUMNS), k.NIL)
        all_keyed[:, [s.FIRST, s.LAST, s.LENGTH]] = keyed
        last, first = np.cumsum(events), np.cumsum(entries) - entries
        chain[(last - events)[events > 0], s.EARLIER] = k.NIL
        links[(first + entries - 1)[entries > 0], s.NEWER] = k.NIL
        all_keyed[:, s.BACK] = np.where(events > 0, last - 1, k.NIL)
        all_keyed[:, s.FRONT] = np.where(entries > 0, first, k.NIL)
        all_keyed[:, s.LENGTH] = np.maximum(events, 0)  # no fewer than starts among them
        self._take(
            own=own, keyed=all_keyed, chain=chain, links=links,
            weights=read_rows(self._summed, state, "weights", count),
            front=read_rows(self._summed, state, "front", fronts * width),
            back=read_rows(self._summed, state, "back", keys * width),
            matrix=read_rows(self._summed, state, "matrix", keys * width * width),
        )  # fmt: skip


def _chain_from(links: np.ndarray, first: int) -> list[int]:
    """The numbers that lead from `first` to the end of its list. O(their number)."""
    found = []
    while first != k.NIL:
        found.append(first)
        first = int(links[first])
    return found
