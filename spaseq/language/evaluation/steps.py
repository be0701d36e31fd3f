"""Which GPM took which event, and the way of a match through its automaton.

They are found again, for a match that somebody looks at, from the events of its instants.

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

from spaseq.automata.cea import Transition
from spaseq.engine import Program, Window, compile_program
from spaseq.language.evaluation.absence import mappings_of
from spaseq.language.lowering.lower import lower
from spaseq.language.lowering.registers import MappingRegisters
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Conjunction, Variant
from spaseq.language.solving.chunks import chunk_of
from spaseq.language.solving.instants import InstantBatch
from spaseq.language.solving.solve import Solver
from spaseq.rdf import GraphEvent, Instant
from spaseq.steps import Step

if TYPE_CHECKING:
    from spaseq.engine import MatchBatch
    from spaseq.engine.runs.ways import Ways
    from spaseq.language.evaluation.match import Match

__all__ = ["StepFinder"]


class StepFinder:
    """Finds the steps of matches of a query, and their ways through the automaton of its `program`. `recogniser` makes
    an evaluation of a query by a program and a solver."""

    def __init__(self, query: CheckedQuery, program: Program, solver: Solver, recogniser: Any) -> None:
        self._query = query
        self._program = program
        self._solver = solver
        self._recogniser = recogniser
        self._aligned: tuple[CheckedQuery, Program] | None = None
        self._found_ways: Ways | None = None

    def _bare(self) -> tuple[CheckedQuery, Program]:
        """The query without what must not occur, and its program; made when first asked for."""
        if self._aligned is None:
            query = replace(self._query, variants=tuple(dict.fromkeys(map(_bare, self._query.variants))))
            registers, window = MappingRegisters(query.patterns), Window("none")
            program = compile_program(
                lower(query), window, registers=registers, settings=self._program.settings, valuations=True
            )
            self._aligned = query, program
        return self._aligned

    def way(self, match: Match, instants: Sequence[Sequence[GraphEvent]]) -> tuple[Transition, ...]:
        """The way of a match through the automaton of the query. O(instants) evaluations of the GPMs."""
        from spaseq.engine.runs.ways import Taken  # loads the kernels

        rows = self._solver.rows(chunk_of(_instants(match, instants), self._solver.solve_pushed))
        batch = InstantBatch(rows, self._query.patterns, None, _NothingBefore(self._query))
        truths, places = self._ways().truths(batch), rows.positions.tolist()
        keys = [0] * len(batch) if rows.partitions is None else rows.partitions.tolist()

        def fits(row: Any) -> bool:
            mappings = mappings_of((row,))
            return not mappings or any(_agree(dict(mapping), match.bindings) for mapping in mappings)

        for key in dict.fromkeys(keys):
            own = [row for row in range(len(batch)) if keys[row] == key]
            if len(own) == len(match.positions):
                taken = [Taken(batch, row, match.positions[places[row]], truths[row]) for row in own]
                way = self._ways().of(taken, match.start, match.end, fits)
                if way:
                    return way
        return ()

    def _ways(self) -> Ways:
        """Over registers of its own, as a run may be going on."""
        from spaseq.engine.runs.ways import Ways  # loads the kernels

        if self._found_ways is None:
            self._found_ways = Ways(self._program, MappingRegisters(self._query.patterns))
        return self._found_ways

    def steps(self, match: Match, instants: Sequence[Sequence[GraphEvent]]) -> tuple[Step, ...]:
        """The steps, by position, then by name. O(instants) evaluations of the GPMs."""
        query, program = self._bare()
        run = self._recogniser(query, program, self._solver, keep_events=False)
        found = [way for batch in run.found(_instants(match, instants)) for way in _ways(batch, program, match)]
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


class _NothingBefore:
    """`Before` of a match, which has passed what must not come before it."""

    def __init__(self, query: CheckedQuery) -> None:
        self.conjunctions: tuple[Conjunction, ...] = tuple({c for variant in query.variants for c in variant.before})

    def pass_over(self, batch: InstantBatch, conjunction: Conjunction) -> np.ndarray:
        return np.ones(len(batch), bool)


def _instants(match: Match, instants: Sequence[Sequence[GraphEvent]]) -> list[Instant]:
    pairs = zip(match.times, instants, strict=True)
    return [Instant(i, time, tuple(events)) for i, (time, events) in enumerate(pairs)]


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
