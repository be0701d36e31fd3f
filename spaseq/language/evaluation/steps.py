"""Which GPM took which event: found again, for a match that somebody looks at, from the events of its instants.

A match says which instants were taken, not as what. The query is run once more over these instants alone, by an
automaton that tells the GPMs of each (valuations), without window and without what must not occur: the match has
passed these. Of the ways to take all instants, the first whose mapping agrees with the match's is told; of the events
of an instant, those that the GPM matches in agreement with what the match binds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.engine import Program, Settings, Window, compile_program
from spaseq.language.evaluation.absence import mappings_of
from spaseq.language.lowering.lower import lower
from spaseq.language.lowering.registers import MappingRegisters
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Variant
from spaseq.language.solving.solve import Solver
from spaseq.rdf import GraphEvent, Instant
from spaseq.steps import Step

if TYPE_CHECKING:
    from spaseq.engine import MatchBatch
    from spaseq.language.evaluation.match import Match

__all__ = ["StepFinder"]


class StepFinder:
    """Finds the steps of matches of a query. `recogniser` makes an evaluation of a query by a program and a solver."""

    def __init__(self, query: CheckedQuery, settings: Settings, solver: Solver, recogniser: Any) -> None:
        self._query = query
        self._settings = settings
        self._solver = solver
        self._recogniser = recogniser
        self._aligned: tuple[CheckedQuery, Program] | None = None

    def _bare(self) -> tuple[CheckedQuery, Program]:
        """The query without what must not occur, and its program; made when first asked for."""
        if self._aligned is None:
            query = replace(self._query, variants=tuple(dict.fromkeys(map(_bare, self._query.variants))))
            registers, window = MappingRegisters(query.patterns), Window("none")
            program = compile_program(
                lower(query), window, registers=registers, settings=self._settings, valuations=True
            )
            self._aligned = query, program
        return self._aligned

    def __call__(self, match: Match, instants: Sequence[Sequence[GraphEvent]]) -> tuple[Step, ...]:
        """The steps, by position, then by name. O(instants) evaluations of the GPMs."""
        query, program = self._bare()
        pairs = zip(match.times, instants, strict=True)
        again = [Instant(i, time, tuple(events)) for i, (time, events) in enumerate(pairs)]
        run = self._recogniser(query, program, self._solver, keep_events=False)
        found = [way for batch in run.found(again) for way in _ways(batch, program, match)]
        if not found:
            return ()
        names = min(found)[1]
        return tuple(self._steps(match, instants, names))

    def _steps(self, match: Match, instants: Sequence[Sequence[GraphEvent]], names: tuple[str, ...]) -> Iterator[Step]:
        for position, time, events, taken in zip(match.positions, match.times, instants, names, strict=True):
            for name in taken.split("+"):
                fit = [(event, self._fits(name, event, match.bindings)) for event in events]
                best = max((how for _, how in fit), default=0)
                yield from (Step(name, position, time, event) for event, how in fit if how == best > 0)

    def _fits(self, name: str, event: GraphEvent, bindings: dict[str, Any]) -> int:
        """2 where the GPM has a solution on the event that agrees with what the match binds, 1 where it has another, as
        the earlier rounds of a repetition have, 0 where it has none."""
        if event.stream not in self._query.patterns[name].streams:
            return 0
        solutions = self._solver.solve_pushed(event.stream, [event]).get(name)
        rows = [] if solutions is None else np.flatnonzero(solutions.kept).tolist()
        if solutions is None or not rows:
            return 0
        return 1 + any(_agree(dict(solutions.mapping(row, None)), bindings) for row in rows)


def _bare(variant: Variant) -> Variant:
    return Variant(tuple(replace(step, absent=()) for step in variant.steps if not step.gap))


def _ways(batch: MatchBatch, program: Program, match: Match) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Of each way to take all instants, whether it disagrees with the match, and the GPMs by instant."""
    labels = program.labels or ()
    for i in range(len(batch)):
        begin, end = int(batch.offsets[i]), int(batch.offsets[i + 1])
        if end - begin == len(match.positions) and batch.labels is not None:
            names = tuple("+".join(sorted(labels[label])) for label in batch.labels[begin:end].tolist())
            rows: Any = () if batch.rows is None else batch.rows[i]
            mappings = mappings_of(rows)
            agrees = not mappings or any(_agree(dict(mapping), match.bindings) for mapping in mappings)
            yield not agrees, names


def _agree(mapping: dict[str, Any], bindings: dict[str, Any]) -> bool:
    return all(bindings[name] == term for name, term in mapping.items() if name in bindings)
