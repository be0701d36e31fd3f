"""The run of NEXT and LAST over lists of places (`spaseq.core.automata.preference`), for automata without registers."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Final

import numpy as np

from spaseq.core.automata.preference import Preferences
from spaseq.core.engine.kernels.preference import end_groups, run_lists
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.settings import Selection
from spaseq.core.engine.runs.base import LiveSets
from spaseq.core.engine.runs.deterministic import ClassRun
from spaseq.core.jit import Bound, Kernel, attempt_rows
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k

_LOG: Final = logging.getLogger("spaseq.core.engine")
_GROUPS: Final = 8


class PreferredRun(ClassRun):
    """Groups of machines, each in one list, and the kernel that moves them.

    Group g has a row of `groups`, and its place i has cell `g * width + i`. If all starts of a partition die at one
    time (no window, or one that tumbles), only the machine of the first one is kept.
    """

    block: ClassVar[int] = 1 << 15

    def __init__(self, program: Program, arena: Arena) -> None:
        super().__init__(program, arena)
        latest = program.choice.selection is Selection.LAST
        self._order, self._limit = k.PREFERRED, 0
        self._preferences = Preferences(program.cea, latest, program.settings.automaton_bytes)
        self._single = not program.window.slides
        self.kernel: Kernel = Bound(run_lists)
        self.width: int = 4
        self._first = np.full(1, k.NIL)
        self._groups = np.zeros((0, k.GROUP_COLUMNS), np.int64)
        arena.has_keys = True
        arena.st[k.FREE_GROUP] = k.NIL
        self._add_groups(_GROUPS)

    @property
    def statistics(self) -> dict[str, int]:
        known = self._preferences
        return {"deterministic_states": len(known.lists) - 1, "automaton_bytes": known.memory_usage(),
                "automaton_clears": known.clears, "fell_back": int(known.outgrown)}  # fmt: skip

    def parts(self) -> dict[str, list[Any]]:
        found = super().parts()
        keys = [self._first, self._groups, *([self._arena.cells] if self.partitions > 1 else [])]
        return found | {"keys": found["keys"] + keys, "automaton": [*found["automaton"], self._preferences]}

    def _sets(self) -> list[frozenset[int]] | None:
        if self._preferences.clears:
            return None
        return [states for places in self._preferences.lists for states in places]

    def add_classes(self, vectors: list[int]) -> None:
        super().add_classes(vectors)
        self._preferences.add_classes(vectors)

    def arguments(self, write: bool) -> tuple[Any, ...]:
        _, output, _ = self._arena.output(self._order, self._limit, write)
        return (self._arena.structure, self._preferences.tables(), self._groups, self._first, self.width, self.floors,
                self._consume, self._single, self._scratch, output)  # fmt: skip

    def fit(self) -> None:
        """A chain for every partition."""
        extra = max(self.partitions, 1) - len(self._first)
        if extra > 0:
            self._first = np.concatenate([self._first, np.full(max(extra, len(self._first)), k.NIL)])

    def _add_groups(self, count: int) -> None:
        """`count` more groups, and the cells of all."""
        old = len(self._groups)
        rows = np.zeros((count, k.GROUP_COLUMNS), np.int64)
        rows[:, k.G_LIST] = k.NIL
        rows[:, k.G_NEXT] = np.arange(old + 1, old + count + 1)
        rows[-1, k.G_NEXT] = self._arena.st[k.FREE_GROUP]
        self._arena.st[k.FREE_GROUP] = old
        self._groups = np.concatenate([self._groups, rows])
        self._arena.add_cells(len(self._groups) * self.width)
        self._make_scratch()

    def _make_scratch(self) -> None:
        self._scratch = k.Scratch(
            made=np.zeros((17, 2), np.int64),
            moved=np.zeros(len(self._groups) + 1, np.int64),
            fresh=np.zeros((self.width, 5), np.int64),
            trail=np.zeros((130, 4), np.int64),
        )

    def _widen(self, places: int) -> None:
        """Cells for lists of so many places."""
        width = self.width
        while width < places:
            width *= 2
        if width != self.width:
            arena, old = self._arena, self.width
            cells = arena.cells.reshape(-1, old, 5)
            arena.cells = np.zeros((0, 5), np.int64)
            self.width = width
            arena.add_cells(len(cells) * width)
            arena.cells.reshape(-1, width, 5)[:, :old] = cells
            self._make_scratch()

    def _provide(self, status: int, events: np.ndarray) -> None:
        """Room for another group, or the step that a list lacks on a class; forget the lists that no group is in if the
        budget is spent."""
        if status == k.GROW_GROUPS:
            self._add_groups(len(self._groups))
            return
        st, known = self._arena.st, self._preferences
        self._widen(known.learn(int(st[k.UNKNOWN_STATE]), int(st[k.UNKNOWN_CLASS])))
        if known.over_budget:
            used = self._groups[:, k.G_LIST]
            before = known.outgrown
            numbers = known.clear(used[used >= 0].tolist(), self.program.settings.live_runs)
            self._groups[used >= 0, k.G_LIST] = [numbers[old] for old in used[used >= 0].tolist()]
            if known.outgrown and not before:
                budget = f"{self.program.settings.automaton_bytes:,}"
                _LOG.warning("the automaton has more live lists of places than automaton_bytes (%s bytes)", budget)

    def _end(self, numbers: np.ndarray, alive: np.ndarray) -> int:
        ours = np.flatnonzero((self._groups[:, k.G_LIST] >= 0) & np.isin(self._groups[:, k.G_KEY], numbers))
        keys = self._groups[ours, k.G_KEY]
        starts = self._arena.cells.reshape(-1, self.width, 5)[ours, :, k.HEAD_MAX]
        heads = self._arena.cells.reshape(-1, self.width, 5)[ours, :, k.HEAD]
        found = int(np.count_nonzero((heads >= 0) & (starts >= alive[keys][:, None])))
        attempt_rows(
            end_groups, len(ours) * self.width, self._arena.structure, self._groups, self._first, ours, self.width
        )
        return found

    def waiting(self, low: int, most: int) -> list[tuple[frozenset[int], np.ndarray]] | None:
        if len(self._arena.cells) > most:
            return None
        live = np.flatnonzero(self._groups[:, k.G_LIST] >= 0)
        first = self._arena.cells[live * self.width]
        live = live[(first[:, k.HEAD] >= 0) & (first[:, k.HEAD_MAX] >= low)]
        lists, keys = self._groups[live, k.G_LIST], self._groups[live, k.G_KEY]
        states = (frozenset().union(*places) for places in self._preferences.lists)
        return [(some, keys[lists == number]) for number, some in enumerate(states) if (lists == number).any()]

    def live(self) -> LiveSets:
        cells = np.flatnonzero(self._arena.cells[:, k.HEAD] >= 0)
        groups = cells // self.width
        lists = self._groups[groups, k.G_LIST]
        rows = zip(cells.tolist(), self._groups[groups, k.G_KEY].tolist(), lists.tolist(), strict=True)
        known = self._preferences.lists
        return LiveSets.of(
            ((cell, key, (known[number], cell % self.width)) for cell, key, number in rows), *self._bounds()
        )

    def snapshot(self) -> dict[str, Any]:
        return {**super().snapshot(), "width": self.width, "oldest": self._groups[:, k.G_OLDEST].copy()}

    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        live = LiveSets.restore(state["live"], self._arena)
        self._take_bounds(live)
        self.add_classes(vectors)
        arena, width = self._arena, state["width"]
        expect(type(width) is int and width >= 4 and width & (width - 1) == 0, "a width that grew by doubling")
        expect(len(arena.cells) and len(arena.cells) % width == 0, "cells for each group")
        count = len(arena.cells) // width
        oldest = array(state["oldest"], "groups", rows=count, low=0)
        expect(all(type(some) is tuple and len(some) == 2 for some in live.sets), "places of lists")
        lists = list(dict.fromkeys(places for places, _ in live.sets))
        self._preferences.restore([(), *lists])
        number = {places: i for i, places in enumerate(lists, 1)}
        found = np.full((count, width), k.NIL)
        keys = np.zeros(count, np.int64)
        for cell, key, some in zip(live.cells.tolist(), live.keys.tolist(), live.numbers.tolist(), strict=True):
            places, place = live.sets[some]
            expect(type(place) is int and place == cell % width and place < len(places), "the places of each list")
            found[cell // width, place] = number[places]
            keys[cell // width] = key
        self._take_groups(width, oldest, keys, found)

    def _take_groups(self, width: int, oldest: np.ndarray, keys: np.ndarray, found: np.ndarray) -> None:
        """Take groups from a snapshot. `found`: int64 (groups, width), the list of each cell, NIL for none.

        A group is dead if a node of one of its cells was reclaimed; its other cells are emptied.
        """
        self.width, self._groups = width, np.zeros((0, k.GROUP_COLUMNS), np.int64)
        arena = self._arena
        arena.st[k.FREE_GROUP] = k.NIL
        self._add_groups(len(found))
        cells = arena.cells.reshape(-1, width, 5)
        self.fit()
        arena.st[k.FREE_GROUP] = k.NIL
        for group in range(len(found)):
            number, key = int(found[group, 0]), int(keys[group])
            places = len(self._preferences.lists[number]) if number >= 0 else 0
            own, there = found[group], cells[group, :, k.HEAD] >= 0
            expect((own[places:] < 0).all() and (own[:places] == number).all(), "a list for each group")
            alive = places > 0 and bool(there[:places].all())
            if alive:
                first = int(self._first[key])
                self._groups[group] = number, first, oldest[group], key
                expect((cells[group, :places, k.HEAD_MAX] == cells[group, 0, k.HEAD_MAX]).all(), "one key for a group")
                self._first[key] = group
            else:
                self._groups[group, k.G_NEXT] = arena.st[k.FREE_GROUP]
                arena.st[k.FREE_GROUP] = group
                cells[group, there, k.HEAD] = k.NIL
                cells[group, there, k.FIRST] = k.NIL
                cells[group, there, k.LENGTH] = 0
