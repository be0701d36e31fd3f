"""The way of a match through its automaton, computed again when a match is shown.

A match has the events taken, and its automaton may take them in several ways. These events alone are given to the
automaton once more, and its guards decide as in the run. The first of the remaining ways is the answer. Nothing is kept
for it while a query runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from spaseq.core.automata import UNSEEN
from spaseq.core.automata.cea import ACCEPT, INITIAL, Take, Transition
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.settings import Registers
from spaseq.core.engine.runs.row_sets import act, registers_of
from spaseq.core.pattern import Batch
from spaseq.core.watch import check

_Place: TypeAlias = tuple[int, Any]
"""A state and the contents of the registers."""
_Way: TypeAlias = tuple[Transition, ...]
_Layer: TypeAlias = dict[_Place, tuple[_Place | None, _Way]]
"""By place how it was come to: from which place, and how."""
_MOST: Final = 1_000
"""Places that one event may lead to; more are not followed."""


class Taken(NamedTuple):
    """An event that a match took. It has a row of a batch, its position in the stream, and the predicates that hold of
    it (a bit each). If known, it also has the variables that took it."""

    batch: Batch
    row: int
    position: int
    truth: int
    names: frozenset[str] | None = None


class Ways:
    """Finds the ways of matches of a program. `registers`: of its guards, which no run uses at the same time."""

    def __init__(self, program: Program, registers: Registers | None) -> None:
        cea = program.cea
        self._predicates = cea.predicates
        self._quiets = program.around.quiets
        self._labels = program.labels
        unseen = {i for i, label in enumerate(cea.labels or ()) if UNSEEN in label}
        # An event that only a mark takes is one that the match leaves out.
        moves = [[replace(t, marks=t.marks and t.label not in unseen) for t in out] for out in cea.transitions]
        self._out = [[(sum(1 << p for p in t.predicates), t) for t in out] for out in moves]
        self._registers: Registers = registers_of(program) if registers is None else registers
        over = [t for out in moves for t in out if not t.marks and t.target != t.source]
        # If some taken events are missing in a match, as with SELECT of some variables, guards over these cannot be
        # evaluated.
        self._guarded = not any(isinstance(action, Take) for t in over for action in t.actions)
        self._over = {t.source: [other for other in over if other.source == t.source] for t in over}
        self._waits = [tuple(t for t in out if not t.marks and t.target == t.source) for out in moves]

    def truths(self, batch: Batch) -> list[int]:
        """Of each row the predicates that hold of it."""
        truths = [0] * len(batch)
        for place, predicate in enumerate(self._predicates):
            # There was silence in front of a match, or it would be none.
            holds = np.ones(len(batch), bool) if predicate in self._quiets else predicate.evaluate(batch)
            for row in holds.nonzero()[0].tolist():
                truths[row] |= 1 << place
        return truths

    def of(self, taken: Sequence[Taken], start: int, end: int, fits: Callable[[Any], bool] = lambda row: True) -> _Way:
        """The way of a match from `start` to `end`; empty if there is none, or it is not found.

        `fits`: True if a match may have been accepted with this register row. O(events * transitions * places).
        """
        layers: list[_Layer] = []
        here: _Layer = {(INITIAL, self._registers.empty): (None, ())}
        before = start - 1
        for event in taken:
            check()
            if self._guarded:
                self._registers.load(event.batch)
            there: _Layer = {}
            for place in here:
                for (q, row), moves in self._passing(place, event.position - before - 1):
                    for t, after in self._taking(q, row, event):
                        there.setdefault((t.target, after), (place, (*moves, t)))
                if len(there) > _MOST:
                    break
            layers.append(here)
            here, before = there, event.position
        layers.append(here)
        ends: list[tuple[_Place, _Way]] = [(place, ()) for place in here if place[0] == ACCEPT and fits(place[1])]
        if not ends and end > before:  # by events that the match does not tell
            ways = ((place, *way) for place in here for way in self._passing(place, end - before))
            ends = [(place, moves) for place, (q, row), moves in ways if q == ACCEPT and fits(row)]
        if not ends:
            return ()
        at: _Place | None
        at, way = ends[0]
        for layer in reversed(layers):
            if at is not None:
                at, moves = layer[at]
                way = (*moves, *way)
        return way

    def _taking(self, q: int, row: Any, event: Taken) -> Iterator[tuple[Transition, Any]]:
        for need, t in self._out[q] if q != ACCEPT else ():
            if not t.marks or need & event.truth != need:
                continue
            if self._labels is not None and event.names is not None and self._labels[t.label] != event.names:
                continue
            after = act(self._registers, row, t, event.row) if self._guarded and t.actions else row
            if after is not None:
                yield t, after

    def _passing(self, place: _Place, events: int) -> Iterator[tuple[_Place, _Way]]:
        """The places that a run may be in behind so many events that the match leaves out, and its moves there."""
        q, row = place
        yield place, (self._waits[q] if events and q != ACCEPT else ())
        seen = {q}
        paths: list[tuple[int, _Way]] = [(q, ())]
        for _ in range(min(events, len(self._out))):
            check()
            further: list[tuple[int, _Way]] = []
            for state, moves in paths:
                for t in self._over.get(state, ()):
                    if t.target not in seen:
                        seen.add(t.target)
                        further.append((t.target, (*moves, t)))
            yield from (((state, row), moves) for state, moves in further)
            paths = further
