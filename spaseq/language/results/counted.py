"""The number of the solutions of a window, and the instants of their matches, without a list of them.

A choice has a mapping for each of the first steps of a sequence (`spaseq.language.semantics.counting`). For each step
the choices up to it are counted by the values of the variables that later steps share. Let an instant have the mapping
x of a step. Then the choices that end with x are all those of the step before, by now. Those that this step before had
at the last instant with x are the same choices again; so the others are new. Solutions at an instant are choices of all
steps that end there, so the number of the step before the last one is added for each mapping. That is how distinct
subsequences are counted; numbers are exact.

The least match of a solution takes each mapping at the first instant that it can. So these are the instants at which a
step has new choices, if the rest of the sequence follows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, Final

import numpy as np

from spaseq.core.engine import Progress
from spaseq.core.engine.program.register_ops import NOTHING
from spaseq.core.integers import different
from spaseq.core.snapshot import array, expect
from spaseq.core.watch import check
from spaseq.language.guards.terms import STRING
from spaseq.language.lowering.lower import Holds
from spaseq.language.results.history import History
from spaseq.language.results.instant_values import InstantValues, each_once
from spaseq.language.semantics.counting import CountedStep
from spaseq.language.solving.instants import InstantBatch

_Taken = tuple[int, ...]
"""A mapping of a step: the codes of its terms."""
_Place = tuple[int, int, _Taken]
"""The row of an instant, a step, and one of its mappings there."""
_CHECKED: Final = 1 << 12
"""After so many mappings the limits of time and memory are looked at."""


class Counting:
    """Counts the solutions of one window after the other. Memory is O(different mappings of a window, and its instants
    with new choices). `window`: the number of the window, None before the first; `number`: of its solutions so far;
    `time`: that of the last instant with one. `history` has the instants of the window."""

    def __init__(self, steps: Sequence[CountedStep], history: History) -> None:
        self.history: History = history
        self._steps = tuple(steps)
        self._before = [_key_of(step.before) for step in steps]
        self._behind = [_key_of(step.behind) for step in steps]
        self._values = InstantValues()
        self._seen = [False] * len(steps)
        self._furthest = 0
        self.start_window(None)

    def start_window(self, window: int | None) -> None:
        """Begin with a window of this number."""
        count = len(self._steps)
        self.window: int | None = window
        self.number: int = 0
        self.time: int = 0
        self._choices: list[dict[_Taken, int]] = [{} for _ in range(count - 1)]  # by the last mapping
        self._totals: list[dict[Hashable, int]] = [{} for _ in range(count - 1)]  # by the values that are shared
        self._taken: list[tuple[list[int], list[_Taken]]] = [([], []) for _ in range(count)]

    # -- instants come

    def read(self, batch: InstantBatch, numbers: Sequence[int], begins: np.ndarray) -> list[list[_Place]]:
        """The mappings of steps at the instants of a batch, window by window, as `add` takes them. `numbers`: those of
        the windows; `begins`: their first rows, int64."""
        self._renumber()
        rows, places, taken = self._read(batch, begins, open_before=numbers[0] == self.window)
        every = list(zip(rows.tolist(), places, taken, strict=True))
        bounds = [*np.searchsorted(rows, begins).tolist(), len(rows)]
        self._values.forget()
        return [every[first:last] for first, last in pairwise(bounds)]

    def read_one(self, batch: InstantBatch) -> list[_Place]:
        """The mappings of steps at an instant, the only row of the batch, as `add` takes them."""
        self._renumber()
        found: list[_Place] = []
        for place, step in reversed(list(enumerate(self._steps))):
            mappings = batch.mappings(step.conjunction, 0)
            if mappings:
                self._seen[place] = True
                codes = self._values.codes_of(mappings, step.names)
                if self._values.terms.has_aliases:
                    codes = self._plain(np.array(codes, np.int64).reshape(len(codes), len(step.names))).tolist()
                found += [(0, place, mapping) for mapping in dict.fromkeys(map(tuple, codes))]
        return found

    def _read(
        self, batch: InstantBatch, begins: np.ndarray, *, open_before: bool
    ) -> tuple[np.ndarray, list[int], list[_Taken]]:
        """The mappings of each step at the instants at which choices may be continued: their rows, ascending, their
        steps, the last first at one instant, and themselves."""
        every = np.arange(len(batch))
        begin = begins[np.searchsorted(begins, every, "right") - 1]
        within = np.ones(len(batch), bool)
        columns: list[np.ndarray] = []
        taken: list[_Taken] = []
        for place, step in enumerate(self._steps):
            # A step that was never seen is looked for everywhere, since `why_none` reports on it.
            holds = batch.holds(step.conjunction, within if self._seen[place] else None)
            self._seen[place] |= bool(holds.any())
            held = np.flatnonzero(holds & within)
            own, codes = self._values.at(batch, step.conjunction, step.names, held)
            if self._values.terms.has_aliases:
                own, codes = each_once(own, self._plain(codes))
            columns.append(np.stack([own, np.full(len(own), -place), np.arange(len(own)) + len(taken)]))
            taken += zip(*codes.T.tolist(), strict=True) if step.names else [()] * len(own)
            if place < len(self._choices):
                latest = np.full(len(batch) + 1, -1)  # the last row before each that holds
                latest[held + 1] = held
                within = np.maximum.accumulate(latest)[:-1] >= begin
                within |= open_before and bool(self._choices[place]) and begin == 0
        order = np.concatenate(columns, axis=1)
        rows, places, numbers = order[:, np.lexsort((order[1], order[0]))]
        return rows, (-places).tolist(), [taken[number] for number in numbers.tolist()]

    def add(self, window: int, batch: InstantBatch, taken: Sequence[_Place]) -> None:
        """Takes the mappings of one window that `read` gave. O(mappings)."""
        if window != self.window:
            self.start_window(window)
        if not taken:
            return
        last, positions, found = len(self._steps) - 1, batch.positions, -1
        for done, (row, step, mapping) in enumerate(taken):
            if not done % _CHECKED:
                check()
            new = self._totals[step - 1].get(self._before[step](mapping), 0) if step else 1
            if not new:
                continue
            if step == last:
                self.number += new
                found = row
            else:
                choices = self._choices[step]
                old = choices.get(mapping, 0)
                if new == old:
                    continue
                choices[mapping] = new
                key, totals = self._behind[step](mapping), self._totals[step]
                totals[key] = totals.get(key, 0) + new - old
                self._furthest = max(self._furthest, step + 1)
            at, mappings = self._taken[step]
            at.append(int(positions[row]))
            mappings.append(mapping)
        if found >= 0:
            self.time = int(batch.times[found])

    def _plain(self, codes: np.ndarray) -> np.ndarray:
        """The codes, with one for each term: a text with its datatype is the text."""
        terms = self._values.terms
        used, places = different(codes)
        bound = used != NOTHING
        used[bound] = terms.of_keys([key.removesuffix(STRING) for key in terms.keys(used[bound].tolist())])
        return used[places]

    def _renumber(self) -> None:
        """Lets go of terms that no mapping has, if there are many."""
        if self._values.terms.full:
            self._values.terms.keep(self._numbers())
            self._values.forget()

    def _numbers(self) -> set[int]:
        """The numbers of terms in use, and the code for no term."""
        return {NOTHING}.union(*(mapping for _, mappings in self._taken for mapping in mappings))

    # -- what it has to tell

    def positions(self) -> np.ndarray:
        """The instants of the least matches of the solutions: int64, ascending. There is a solution at least. Cost:
        O(instants with new choices)."""
        useful: list[list[int]] = []
        latest: dict[Hashable, int] = {}
        for step in reversed(range(len(self._steps))):
            at, mappings = self._taken[step]
            if useful:
                ends = map(latest.get, map(self._behind[step], mappings))
                kept = [place for place, end in enumerate(ends) if end is not None and at[place] < end]
                at, mappings = [at[place] for place in kept], [mappings[place] for place in kept]
            useful.append(at)
            latest = dict(zip(map(self._before[step], mappings), at, strict=True))
        return np.array(sorted(set(chain.from_iterable(useful))), np.int64)

    def progress(self) -> Progress:
        """The steps that no instant fulfilled, and the one behind the furthest that choices came."""
        names = [frozenset({Holds(step.conjunction)}) for step in self._steps]
        unmet = tuple(name for name, seen in zip(names, self._seen, strict=True) if not seen)
        awaited = (names[self._furthest],) if self._furthest else None
        return Progress(tuple(dict.fromkeys(unmet)), awaited, None)

    # -- snapshots

    def snapshot(self) -> Any:
        """The counts and the mappings, as plain values."""
        both = zip(self._choices, self._steps, strict=False)
        choices = [(_columns(own, step), list(own.values())) for own, step in both]
        taken = [(list(at), _columns(own, step)) for (at, own), step in zip(self._taken, self._steps, strict=True)]
        return (
            self.window,
            self.number,
            self.time,
            list(self._seen),
            self._furthest,
            choices,
            taken,
            self._values.terms.snapshot(),
        )

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`, before the first instant."""
        window, number, time, seen, furthest, choices, taken, terms = state
        known = {*self._values.terms.restore(terms), NOTHING}
        count = len(self._steps)
        expect(type(number) is int and number >= 0 and type(time) is int, "a number of solutions")
        expect(len(seen) == count and all(type(own) is bool for own in seen), "the steps that were seen")
        expect(type(furthest) is int and 0 <= furthest < count, "the furthest step")
        expect(len(choices) == count - 1 and len(taken) == count, "mappings of each step")
        expect(window is None or type(window) is int, "the number of a window")
        self.start_window(window)
        self.number, self.time, self._seen, self._furthest = number, time, list(seen), furthest
        for place, (columns, numbers) in enumerate(choices):
            expect(all(type(n) is int and n > 0 for n in numbers), "a number for each mapping")
            for mapping, n in zip(_mappings(columns, self._steps[place], len(numbers)), numbers, strict=True):
                self._choices[place][mapping] = n
                key, totals = self._behind[place](mapping), self._totals[place]
                totals[key] = totals.get(key, 0) + n
        for place, (at, columns) in enumerate(taken):
            positions = array(np.array(at, np.int64), "positions", low=0)
            expect(bool((np.diff(positions) >= 0).all()), "positions in order")
            self._taken[place] = list(at), list(_mappings(columns, self._steps[place], len(at)))
        expect(self._numbers() <= known, "a term for each value")
        expect(bool(self._taken[-1][0]) == (number > 0), "instants of the solutions")


def _key_of(places: tuple[int, ...]) -> Callable[[_Taken], Hashable]:
    """The values at some places of a mapping."""
    return itemgetter(*places) if places else lambda mapping: None


def _columns(mappings: Any, step: CountedStep) -> list[np.ndarray]:
    """The codes of mappings by variable."""
    if not step.names:
        return []
    return [column.copy() for column in np.array(list(mappings), np.int64).reshape(-1, len(step.names)).T]


def _mappings(columns: Sequence[Any], step: CountedStep, count: int) -> Iterator[_Taken]:
    """The opposite of `_columns`."""
    expect(len(columns) == len(step.names), "values of each variable")
    if not columns:
        return iter([()] * count)
    return zip(*(array(column, "terms", rows=count).tolist() for column in columns), strict=True)
