"""Absences before and behind a match: negation at the start and at the end of a sequence.

At the start (`Sightings`), without FOR: a match may begin at an instant only if the negated GPM matched at none since
the window opened. At the end (`Endings`): matches wait until their window closes. If the negated GPM joins with the
run's mappings at an instant behind a waiting match, and inside its window, that match is off. The end of the streams
closes all windows. With FOR, a match waits for that time behind its last instant, and not for its window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np

from spaseq.core.engine import Partitions, Program, Window
from spaseq.core.engine.program.open_matches import OpenMatches
from spaseq.core.errors import BudgetExceeded
from spaseq.core.snapshot import expect
from spaseq.gpm import IDENTITY, MappingSet, bound_everywhere, project
from spaseq.language.guards.registers import MappingRegisters, Row
from spaseq.language.results.history import Made, Pool
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.solving.instants import InstantBatch

_BYTES: Final = 2_000
"""Of a match that waits, with the mappings of its run: 4,400 were resident for each of 45,000, runs included."""


class Sightings:
    """When the GPMs that must not come before a match were last seen: per conjunction and partition, in which window.

    Only for windows that begin at a time of their own: tumbling ones, and the whole stream.
    """

    def __init__(self, query: CheckedQuery, window: Window, registers: MappingRegisters) -> None:
        self.conjunctions: tuple[Conjunction, ...] = tuple(
            dict.fromkeys(c for variant in query.variants for c in variant.before if query.lasting.silence is None)
        )
        self._window = window
        self._registers = registers
        self._seen: dict[tuple[Conjunction, int], int] = {}

    def pass_over(self, batch: InstantBatch, conjunction: Conjunction) -> np.ndarray:
        """For each row, True if not seen before, in the row's window and partition: bool (n,). Remembers the batch.

        It is seen if it joins with a run that has taken nothing, for which a FILTER over other GPMs is not true.
        """
        holds = batch.holds(conjunction).tolist()
        keys = [0] * len(batch) if batch.keys is None else batch.keys.tolist()
        unseen = np.ones(len(batch), bool)
        for row, time in enumerate(batch.times.tolist()):
            number = self._window.number(time)
            place = (conjunction, keys[row])
            unseen[row] = self._seen.get(place) != number
            if holds[row] and self._registers.joined(IDENTITY, conjunction, batch, row):
                self._seen[place] = number
        return unseen

    def forget(self, numbers: np.ndarray) -> None:
        """The keys of these partitions are forgotten, and the numbers will be those of others."""
        if self._seen:
            gone = set(numbers.tolist())
            self._seen = {place: window for place, window in self._seen.items() if place[1] not in gone}

    def snapshot(self) -> Any:
        """The time at which each was last seen, as plain values."""
        return [(conjunction, key, window) for (conjunction, key), window in self._seen.items()]

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        self._seen = {(conjunction, key): window for conjunction, key, window in state}
        expect({conjunction for conjunction, _ in self._seen} <= set(self.conjunctions), "GPMs of the query")


@dataclass(slots=True)
class Waiting:
    """A match whose window may still be open: its interval and positions, and its contents.

    `since`: the time from which it waits, that of its first instant; with FOR, of its last one. `held`: the caller's
    own data. `sure`: mappings that hold whatever follows. `rows`: rows of the run that wait.
    """

    start: int
    end: int
    since: int
    positions: tuple[int, ...]
    held: Any
    sure: MappingSet
    rows: list[Row]


class Endings:
    """The matches of one evaluation that wait for their windows to close, in order of their ends.

    They are given out in order of their ends too, so one that is sure waits for those that end before or with it. Those
    with rows that wait are in `_open` besides. Their names are the conjunctions that must stay absent, each with a
    variable that both sides bind and a term of it, if there is one.

    `budget`: bytes that they may take (`Settings.output_bytes`), at `_BYTES` each; beyond, `BudgetExceeded`.
    """

    def __init__(self, query: CheckedQuery, window: Window, registers: MappingRegisters, budget: int) -> None:
        self._certain = {c: _certain(query, c) for variant in query.variants for c in variant.after}
        self._shared: dict[Conjunction, set[str]] = {c: set() for c in self._certain}  # the variables of names
        self._window = window
        self._registers = registers
        self._budget = budget
        self._matches: list[Waiting] = []
        self._open: OpenMatches[Waiting] = OpenMatches()

    @staticmethod
    def of(query: CheckedQuery, program: Program, registers: MappingRegisters) -> Endings | None:
        """Those of a query; None if nothing is negated at the end of its sequence."""
        if not any(variant.after for variant in query.variants):
            return None
        patience = query.lasting.patience
        window = program.window if patience is None else Window("span", patience)
        return Endings(query, window, registers, program.settings.output_bytes)

    def push(self, batch: InstantBatch, found: Sequence[Waiting]) -> list[Waiting]:
        """The matches that are settled, after `batch`, among those waiting and those `found` in it (in order of end).

        A match that is off is settled too, with no mappings. A row that matches a negated part costs the waiting
        matches that share a term with it.
        """
        holds = {c: batch.holds(c) for c in self._certain}
        arriving = iter([*found, None])
        upcoming = next(arriving)
        times, positions = batch.times.tolist(), batch.positions.tolist()
        for row, (time, position) in enumerate(zip(times, positions, strict=True)):
            while upcoming is not None and upcoming.end < position:
                self._add(upcoming)
                upcoming = next(arriving)
            self._hold(self._open.due(time))
            for conjunction, there in holds.items():
                if there[row]:
                    self._strike(batch, row, conjunction)
        while upcoming is not None:
            self._add(upcoming)
            upcoming = next(arriving)
        return self._settle()

    def until(self, now: int) -> list[Waiting]:
        """The matches that are settled once no instant before `now` (ns) can come."""
        self._hold(self._open.due(now))
        return self._settle()

    def settle(self, partitions: Partitions, variables: Sequence[str]) -> None:
        """Note that the waiting matches of forgotten keys are sure. `variables`: those of PARTITION BY. O(waiting)."""
        names = frozenset(variables)
        for number, match in self._open.items():
            (key,) = project(match.rows[0][1], names)
            if match.start < partitions.since(key):
                self._hold([number])

    def close(self) -> list[Waiting]:
        """All that still waits: the streams end, and nothing can come behind."""
        self._hold(number for number, _ in self._open.items())
        return self._settle()

    def _add(self, match: Waiting) -> None:
        self._matches.append(match)
        if len(self._matches) * _BYTES > self._budget:
            hint = "raise output_bytes, or narrow the window: matches wait in it for what must not follow them"
            raise BudgetExceeded("output_bytes", self._budget, len(self._matches) * _BYTES, hint=hint)
        if match.rows:
            owed = [(conjunction, run[1]) for run in match.rows for conjunction in run[2] or ()]
            names = {name for conjunction, mappings in owed for name in self._names(conjunction, mappings)}
            self._open.add(match, tuple(names), self._window.closes_at(match.since))

    def _names(self, conjunction: Conjunction, mappings: MappingSet) -> set[Hashable]:
        """The names of a row with these mappings that owes the absence of `conjunction`."""
        variable = min(self._certain[conjunction] & bound_everywhere(mappings), default="")
        self._shared[conjunction].add(variable)
        return _names_by(variable, conjunction, mappings)

    def _hold(self, numbers: Iterable[int]) -> None:
        """Nothing can take these matches off any more."""
        for number in numbers:
            match = self._open.drop(number)
            match.sure |= mappings_of(match.rows)
            match.rows = []

    def _strike(self, batch: InstantBatch, row: int, conjunction: Conjunction) -> None:
        """Takes off the rows that owe the absence of `conjunction`, which matches at `row`, and join with it."""
        born = -1 if batch.born is None else int(batch.born[row])
        mappings = batch.value(conjunction, row)
        names = [name for variable in self._shared[conjunction] for name in _names_by(variable, conjunction, mappings)]
        for number in {number for name in names for number in self._open.numbers_under(name)}:
            match = self._open[number]
            if match.start < born:
                continue  # of the key before it was forgotten, or of another
            match.rows = [
                run
                for run in match.rows
                if conjunction not in (run[2] or ()) or not self._registers.joined(run[1], conjunction, batch, row)
            ]
            if not match.rows:
                self._open.drop(number)

    def _settle(self) -> list[Waiting]:
        first = self._open.first
        if first is not None and self._matches[0].end == first.end:
            return []
        count = len(self._matches) if first is None else bisect_left(self._matches, first.end, key=attrgetter("end"))
        settled = self._matches[:count]
        del self._matches[:count]
        return settled

    def snapshot(self, pool: Pool) -> Any:
        """The matches that wait, as plain values and terms; their events are put into `pool`."""
        return [
            (m.start, m.end, m.since, m.positions, m.held[0], pool.put(m.held[1]), m.sure, m.rows)
            for m in self._matches
        ]

    def restore(self, state: Any, events: Made) -> None:
        """The opposite of `snapshot`, before the first match; `events` gives those of the pool."""
        for start, end, since, positions, times, numbers, sure, rows in state:
            expect(all(type(x) is int for x in (start, end, since, *positions, *times)), "positions and times")
            owed = {conjunction for row in rows for conjunction in row[2] or ()}
            expect(owed <= self._certain.keys() and type(sure) is frozenset, "GPMs of the query")
            self._add(Waiting(start, end, since, positions, (times, events(numbers)), sure, rows))


def _names_by(variable: str, conjunction: Conjunction, mappings: MappingSet) -> set[Hashable]:
    """The names of a conjunction with these mappings, by the terms of a variable that all of them bind, "" for none."""
    return {(conjunction, variable, dict(mapping)[variable] if variable else None) for mapping in mappings}


def _certain(query: CheckedQuery, conjunction: Conjunction) -> frozenset[str]:
    return frozenset().union(*(query.patterns[name].certain for name in conjunction))


def mappings_of(rows: Iterable[Row]) -> MappingSet:
    """The mappings that a match was accepted with."""
    return frozenset(mapping for row in rows for mapping in row[1])
