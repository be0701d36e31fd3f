"""The GPM that took each event, and the way of a match through its automaton.

They are computed again, from the events of a match's instants, when a match is shown.

A match has the instants taken, but not the GPMs that took them. The query is run once more over these instants alone.
Its automaton gives the GPMs of each (valuations), without window and without absences: the match has passed these. Of
the ways to take all instants, the answer is the first whose mapping agrees with the match's.

An event of an instant had a part in it if the GPM has a solution on the event that joins with the others. That is so if
the way is found again when the GPM sees no other event of the instant. (So an event counts that joins with mappings
that a condition on the instants between has called off; a match does not hold these.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.automata.cea import Transition
from spaseq.core.engine import Program, Window, compile_program
from spaseq.core.steps import Step
from spaseq.language.guards.registers import MappingRegisters
from spaseq.language.lowering.lower import lower
from spaseq.language.runtime.absence import mappings_of
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Conjunction, Variant
from spaseq.language.semantics.expand import Step as VariantStep
from spaseq.language.solving.chunks import Chunk, EventList, Piece, chunk_of
from spaseq.language.solving.instants import InstantBatch
from spaseq.language.solving.solve import Solver
from spaseq.rdf import GraphEvent, Instant

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch
    from spaseq.core.engine.ways import Ways
    from spaseq.language.results.match import Match

Events = Sequence[GraphEvent]
Way = tuple[bool, tuple[str, ...]]
"""A way to take all instants: True if it disagrees with the match, and the GPMs by instant."""


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
        """The query without its negated parts, and its program; made on first use."""
        if self._aligned is None:
            query = replace(self._query, variants=tuple(dict.fromkeys(map(_bare, self._query.variants))), after=None)
            registers, window = MappingRegisters(query.patterns), Window("none")
            program = compile_program(
                lower(query, None), window, registers=registers, settings=self._program.settings, valuations=True
            )
            self._aligned = query, program
        return self._aligned

    def way(self, match: Match, instants: Sequence[Events]) -> tuple[Transition, ...]:
        """The way of a match through the automaton of the query. O(instants) evaluations of the GPMs."""
        from spaseq.core.engine.ways import Taken  # loads the kernels

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
        from spaseq.core.engine.ways import Ways  # loads the kernels

        if self._found_ways is None:
            self._found_ways = Ways(self._program, MappingRegisters(self._query.patterns))
        return self._found_ways

    def steps(self, match: Match, instants: Sequence[Events]) -> tuple[Step, ...]:
        """The steps, by position, then by name. O(instants) evaluations of the GPMs, and so many again for some of the
        events that the GPM of an instant matches besides others."""
        chunk = chunk_of(_instants(match, instants), self._solver.solve_pushed)
        found = self._ways_of(match, chunk)
        return tuple(self._steps(match, instants, chunk, min(found))) if found else ()

    def _ways_of(self, match: Match, chunk: Chunk) -> set[Way]:
        query, program = self._bare()
        run = self._recogniser(query, program, self._solver, keep_events=False)
        return {way for batch in run.found(chunk) for way in _ways(batch, program, match)}

    def _steps(self, match: Match, instants: Sequence[Events], chunk: Chunk, way: Way) -> Iterator[Step]:
        taken = zip(match.positions, match.times, instants, way[1], strict=True)
        for place, (position, time, events, names) in enumerate(taken):
            for name in names.split("+"):

                def joins(some: Sequence[int], at: int = place, of: str = name, every: Events = events) -> bool:
                    return way in self._ways_of(match, self._seeing(chunk, at, of, [every[i] for i in some]))

                yield from (
                    Step(name, position, time, events[i]) for i in _leave_needed(self._matched(name, events), joins)
                )

    def _matched(self, name: str, events: Events) -> list[int]:
        """The numbers of the events that the GPM has a solution on."""
        found: list[int] = []
        for stream in self._query.patterns[name].streams:
            numbers = [number for number, event in enumerate(events) if event.stream == stream]
            solutions = self._solver.solve_pushed(stream, [events[n] for n in numbers]).get(name) if numbers else None
            if solutions is not None:
                found += [numbers[i] for i in np.unique(solutions.events[solutions.kept]).tolist()]
        return sorted(found)

    def _seeing(self, chunk: Chunk, place: int, name: str, seen: Events) -> Chunk:
        """The chunk in which the GPM sees only the events `seen` of the instant at `place`."""
        pieces: list[Piece] = []
        wanted = set(map(id, seen))
        for piece in chunk.pieces:
            here = (piece.instants == place).tolist()
            if name not in piece.solutions or not any(here):
                pieces.append(piece)
                continue
            others = {other: solutions for other, solutions in piece.solutions.items() if other != name}
            pieces.append(replace(piece, solutions=others))
            own = EventList(piece.batch.event(piece.low + i) for i in range(len(here)))
            kept = [i for i, event in enumerate(own) if not here[i] or id(event) in wanted]
            if kept:
                events = EventList(own[i] for i in kept)
                solved = self._solver.solve_pushed(events[0].stream, events)
                alone = {name: solved[name]} if name in solved else {}
                pieces.append(Piece(events, 0, len(events), piece.instants[kept], alone))
        return replace(chunk, pieces=tuple(pieces))


def _leave_needed(candidates: Sequence[int], joins: Callable[[Sequence[int]], bool]) -> list[int]:
    """The candidates that join by themselves. Together they do: so of two halves the second does if the first does not.
    O(k log n) tests for k of n."""
    if len(candidates) < 2:
        return list(candidates)
    middle = len(candidates) // 2
    first, second = candidates[:middle], candidates[middle:]
    if not joins(first):
        return _leave_needed(second, joins)
    return [*_leave_needed(first, joins), *(_leave_needed(second, joins) if joins(second) else ())]


class _NothingBefore:
    """`Before` of a match, for which negation at the start has been checked."""

    def __init__(self, query: CheckedQuery) -> None:
        self.conjunctions: tuple[Conjunction, ...] = tuple({c for variant in query.variants for c in variant.before})

    def pass_over(self, batch: InstantBatch, conjunction: Conjunction) -> np.ndarray:
        return np.ones(len(batch), bool)


def _instants(match: Match, instants: Sequence[Events]) -> list[Instant]:
    pairs = zip(match.times, instants, strict=True)
    return [Instant(i, time, tuple(events)) for i, (time, events) in enumerate(pairs)]


def _bare(variant: Variant) -> Variant:
    return Variant(_without_absences(variant.steps))


def _without_absences(steps: Iterable[VariantStep]) -> tuple[VariantStep, ...]:
    return tuple(
        replace(step, absent=(), inner=tuple(map(_without_absences, step.inner))) for step in steps if not step.gap
    )


def _ways(batch: MatchBatch, program: Program, match: Match) -> Iterator[Way]:
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
