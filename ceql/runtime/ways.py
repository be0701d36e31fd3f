"""The ways of matches through the automaton of their query, for pictures of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ceql.results.history import events_of
from ceql.results.matches import Match
from ceql.runtime.batch import EngineBatch
from ceql.runtime.evaluation import Matches
from spaseq.core.automata.cea import Transition
from spaseq.core.engine import Program


def are_valuations(run: Any) -> bool:
    """True if the matches of a run, or some given matches, have the positions of each variable."""
    return run.shown is not None if isinstance(run, Matches) else any(match.bindings for match in run)


def ways_of(program: Program, matches: Sequence[Match]) -> list[tuple[Transition, ...]]:
    """The way of each match of a program; an empty one if its events are not known.

    Cost: the conditions of the query, once for each event that a match took.
    """
    from spaseq.core.engine.ways import Taken, Ways  # loads the kernels

    finder = Ways(program, copy.copy(program.registers))  # a run may have a batch in the program's own
    pieces = [match.pieces for match in matches]
    batches = {id(batch): batch for found in pieces for batch, _ in found}
    rows: dict[int, set[int]] = {}
    for batch, row in (piece for found in pieces for piece in found):
        rows.setdefault(id(batch), set()).add(row)
    known: dict[tuple[int, int], Taken] = {}
    for key, batch in batches.items():
        chosen = sorted(rows[key])
        events = events_of(batch, np.array(chosen))
        part = EngineBatch(events, events.positions, events.times, None)
        places = zip(chosen, events.positions.tolist(), finder.truths(part), strict=True)
        for place, (row, position, truth) in enumerate(places):
            known[key, row] = Taken(part, place, position, truth)
    ways: list[tuple[Transition, ...]] = []
    for match, found in zip(matches, pieces, strict=True):
        taken = [known[id(batch), row] for batch, row in found]
        if match.bindings:
            taken = [event._replace(names=_takers(match, event.position)) for event in taken]
        ways.append(finder.of(taken, match.start, match.end) if taken else ())
    return ways


def _takers(match: Match, position: int) -> frozenset[str]:
    return frozenset(name for name, positions in match.bindings.items() if position in positions)
