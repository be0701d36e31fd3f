"""One evaluation of a compiled query: instants in, matches out.

A `Recogniser` solves instants, feeds the engine and reads the engine's matches back as solutions. `Matches`
(`spaseq.language.runtime.matches`) reads streams lazily; events are pushed to a `Session`
(`spaseq.language.runtime.session`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.engine import MatchBatch, Partitions, Program, Progress, Settings, progress_of
from spaseq.core.engine.program.matches import within
from spaseq.core.errors import InternalError
from spaseq.core.held import Memory, Parts, joined, measured
from spaseq.core.integers import Memo
from spaseq.core.snapshot import expect
from spaseq.core.watch import check
from spaseq.gpm import IDENTITY, Mapping, MappingSet, project
from spaseq.language.guards.registers import MappingRegisters, Row
from spaseq.language.lowering.lower import Vectors
from spaseq.language.results.columns import FoundColumns, columns_of
from spaseq.language.results.history import History, Pool
from spaseq.language.results.match import Match
from spaseq.language.results.results import Results, term_order
from spaseq.language.runtime.absence import Endings, Sightings, Waiting, mappings_of
from spaseq.language.runtime.pace import Pace
from spaseq.language.runtime.steps import StepFinder
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.solving.chunks import Chunk, chunk_of, places_of
from spaseq.language.solving.instant_rows import InstantRows
from spaseq.language.solving.instants import InstantBatch, Rows
from spaseq.language.solving.solve import InstantSolutions, SolvedRows, Solver
from spaseq.language.syntax.printer import print_query
from spaseq.rdf import Counters, GraphEvent, Instant

if TYPE_CHECKING:
    from spaseq.core.engine.runs.single_event import Single
    from spaseq.gpm.columnar.evaluate import Solutions, Unsolved
    from spaseq.rdf import GraphBatch

__all__ = ["Found", "Recogniser"]

_SINGLE = 12
"""Instants pushed at once up to which each goes to the engine by itself.

PERF: 1,000 graphs of benchmarks/pushes.py, 10 at once, each by itself or as a batch: 16 or 43 ms under a FILTER, 38 or
56 where each begins a run; 20 at once 15 or 35, 37 or 38; with OPTIONAL, which the plan solves for all, 66 or 72 and
55 or 46.
"""


Found = FoundColumns | Iterable[Match]
"""Some matches in order."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A match of the engine with the mappings it was accepted with, not projected. `times`, `events`: as in `Match`."""

    start: int
    end: int
    positions: tuple[int, ...]
    mappings: MappingSet
    times: tuple[int, ...]
    events: Sequence[GraphEvent]


def _distinct(found: Iterable[_Found], selected: frozenset[str]) -> Iterator[Match]:
    """A match for each projected mapping, each once: partitions may give equal ones.

    All that have one end come in one call. Mappings of one match are in order.
    """
    seen: set[tuple[int, tuple[int, ...], Mapping]] = set()
    last_end = -1
    for match in found:
        check()
        if match.end != last_end:
            seen.clear()
            last_end = match.end
        mappings = project(match.mappings, selected)
        for mapping in sorted(mappings, key=term_order) if len(mappings) > 1 else mappings:
            key = (match.start, match.positions, mapping)
            if key not in seen:
                seen.add(key)
                yield Match(match.start, match.end, match.positions, dict(mapping), match.times, match.events)


def _same(batch: InstantBatch) -> InstantBatch:
    return batch


_HOLDS_NOTHING: frozenset[Row] = frozenset({(frozenset(), frozenset(), IDENTITY, ())})


def _parts(batch: MatchBatch) -> Iterator[tuple[int, int, tuple[int, ...], frozenset[Any]]]:
    """(start, end, positions, register rows) of the engine's matches."""
    starts, ends, offsets = batch.start.tolist(), batch.end.tolist(), batch.offsets.tolist()
    places = batch.positions.tolist()
    # The engine tells no rows where runs hold nothing: no variable is selected or shared.
    for i, rows in enumerate(batch.rows if batch.rows is not None else repeat(_HOLDS_NOTHING, len(starts))):
        yield starts[i], ends[i], tuple(places[offsets[i] : offsets[i + 1]]), rows


class Recogniser:
    """One evaluation of a query over instants in order.

    Args: `solver` may be None where rows are solved elsewhere (`push_rows`). `keep_events`: whether matches show
    events.
    """

    def __init__(
        self, query: CheckedQuery, program: Program, solver: Solver | None, *, keep_events: bool = True
    ) -> None:
        from spaseq.core.engine import Evaluator  # loads the kernels

        self._query = query
        self._program = program
        self._solver = solver
        self._keep_events = keep_events
        self._evaluator = Evaluator(program)
        self._selected = frozenset(query.clauses.needed)
        self._results = Results(query.clauses, program.window)
        registers = MappingRegisters(query.patterns)
        self._sightings = Sightings(query, program.window, registers)
        self._endings = Endings.of(query, program, registers)
        self._partitions = Partitions(program.window, program.settings.forget_keys_after)
        self.counters: Counters = Counters()
        """Where forgotten keys are counted."""
        self._known = Memo()  # the numbers that the solver's keys have there; not in a snapshot
        self._history = History()
        if solver is not None and keep_events:
            self._history.teller = StepFinder(query, program, solver, Recogniser)
        self._vectors = Vectors(program.cea.predicates)
        self._pace = Pace()
        self._single = self._single_road()
        self._entered = False
        self._last = (-1, 0)
        self._time: int | None = None

    def push(self, instants: Sequence[Instant]) -> Iterator[Match]:
        """The matches that these instants complete; exhaust it before the next call."""
        if self._solver is None:
            raise InternalError("a recogniser without a solver takes rows, not instants")
        if not instants:
            return
        self._reach(instants[0].time)
        self._time = instants[-1].time
        if self._results.counts_windows:
            self._results.see(*places_of(instants))
        if len(instants) <= _SINGLE and self._enter():
            for instant, rows in zip(instants, self._solver.instant_rows(instants), strict=True):
                yield from self._push_alone(instant, rows)
            return
        self._leave()
        events = [instant.events for instant in instants]
        self._history.add(*places_of(instants), events.__getitem__ if self._keep_events else None)
        yield from self._push(self._solver.rows(chunk_of(instants, self._solver.solve_pushed)))
        self._evict(instants[-1].time)

    @property
    def wanted(self) -> frozenset[str] | None:
        """The predicates whose triples are needed, to be matched or to be shown; None: all."""
        return None if self._keep_events or self._solver is None else self._solver.wanted

    def solve(self, batch: GraphBatch) -> MappingABC[str, Solutions | Unsolved]:
        """The values of the GPMs at the events of a batch, as chunks have them."""
        if self._solver is None:
            raise InternalError("a recogniser without a solver solves nothing")
        return self._solver.solve_ahead(batch)

    def slowly_closed(self) -> list[str]:
        """A line for each graph of knowledge that owlrl closed."""
        return [] if self._solver is None else self._solver.knowledge.told(slow=True)

    def push_chunk(self, chunk: Chunk) -> Iterator[Match]:
        """The matches that a chunk of instants completes; exhaust it before the next call."""
        return (match for found in self.push_blocks(chunk) for match in found)

    def push_blocks(self, chunk: Chunk) -> Iterator[Found]:
        """The matches that a chunk of instants completes, as columns where they stay that; each is to be read before
        the next is asked for."""
        if self._solver is None:
            raise InternalError("a recogniser without a solver takes rows, not instants")
        self._leave()
        self._reach(int(chunk.times[0]))
        self._time = int(chunk.times[-1])
        positions = np.arange(chunk.first, chunk.first + len(chunk))
        self._history.add(positions, chunk.times, chunk.events if self._keep_events else None)
        self._results.see(positions, chunk.times)
        rows = self._solver.rows(chunk)
        yield from self._blocks(rows)
        self._solver.learn(rows)
        self._evict(int(chunk.times[-1]))

    def push_rows(self, rows: Sequence[InstantSolutions]) -> Iterator[Match]:
        """The matches that these rows complete. The rows of one instant belong into one call. With PARTITION BY, one
        without a key only says that its instant exists."""
        if rows:
            self._leave()
            self._reach(rows[0].time)
            self._time = rows[-1].time
            solved = SolvedRows(rows)
            positions, first = np.unique(solved.positions, return_index=True)
            self._history.add(positions, solved.times[first], None)
            self._results.see(positions, solved.times[first])
            if self._query.partition and self._results.counts_windows:
                solved = SolvedRows([row for row in rows if row.key is not None])
            yield from self._push(solved)
            self._evict(rows[-1].time)

    def _push(self, rows: Rows) -> Iterator[Match]:
        return (match for found in self._blocks(rows) for match in found)

    def _blocks(self, rows: Rows) -> Iterator[Found]:
        codes = self._partition_codes(rows)
        positions, last = rows.positions, 0
        while last < len(positions):
            # The rows of an instant stay together: its matches are told apart together.
            piece = positions[last : last + self._pace.rows]
            first, last = last, int(np.searchsorted(positions, piece[-1], "right"))
            batch = InstantBatch(rows, self._query.patterns, codes, self._sightings, first, last)
            if codes is not None and self._partitions.pauses:
                batch.born = self._partitions.born(codes[first:last])
            found = self._pace.noted(within(self._evaluator.stream(batch), self._program.settings.output_bytes))
            passes = self._results.passes
            if self._endings is not None:
                yield from self._results.push(self._matches(found, batch), int(batch.times[-1]))
                continue
            if self._query.partition or not passes:  # the matches of one end belong together
                found = iter((MatchBatch.concat(list(found)),))
            for part in found:
                if not len(part):
                    if not passes:
                        yield from self._results.push((), int(batch.times[-1]))
                    continue
                columns = columns_of(part, self._selected, self._history)
                if columns is None or not passes:
                    matches = self._matches(iter((part,)), batch) if columns is None else columns
                    yield from self._results.push(matches, int(batch.times[-1]))
                elif len(columns):
                    yield columns

    # -- single instants

    def _single_road(self) -> Single | None:
        """The engine's road of single events, where nothing is looked at behind a row but what must not follow matches,
        and that not where keys are forgotten after a pause."""
        from spaseq.core.engine.runs.single_event import Single

        applies = not self._sightings.conjunctions and Single.applies(self._evaluator)
        if self._endings is not None and self._partitions.pauses:
            applies = False
        return Single(self._evaluator) if applies else None

    def _enter(self) -> bool:
        """Whether instants go past batches of rows, from here on."""
        if self._single is None or self._entered:
            return self._entered
        self._single.enter(bool(self._query.partition))
        self._entered = True
        return True

    def _leave(self) -> None:
        """Batches of rows from here on."""
        if self._entered and self._single is not None:
            self._single.leave(*self._last)
            self._entered = False

    def _push_alone(self, instant: Instant, rows: InstantRows) -> Iterator[Match]:
        """The matches that an instant completes. Rows that move no run end at their symbol class."""
        assert self._single is not None
        self._last = instant.position, instant.time
        batch: InstantBatch | None = None
        found: list[MatchBatch] = []
        for row in range(len(rows)):
            held = 0
            for place, conjunction in enumerate(self._vectors.conjunctions):
                if all(rows.has(name, row) for name in conjunction):
                    if len(conjunction) == 1:  # no condition is left to be decided here
                        held |= 1 << place
                    else:
                        one = InstantBatch(rows, self._query.patterns, None, None, row, row + 1)
                        held |= bool(one.value(conjunction, 0)) << place
            symbol = self._single.symbols[self._vectors[held]]
            number = rows.number(row)
            key = 0
            if number is not None and (symbol >= 0 or self._partitions.pauses):
                key = self._code_at(number, rows.keys[row], instant)
            if symbol < 0:
                continue
            if batch is None:
                self._evict(instant.time)
                self._history.add(rows.positions[:1], rows.times[:1], self._held(instant))
            batch = InstantBatch(rows, self._query.patterns, None, self._sightings, row, row + 1)
            found += self._single.push(symbol, instant.position, instant.time, key, partial(_same, batch))
        if not found and not self._results.waits and self._endings is None:
            return
        if not len(rows):  # an instant of no partition
            yield from self.advance(instant.time)
            return
        whole = InstantBatch(rows, self._query.patterns, None, None, 0, len(rows))
        yield from chain.from_iterable(self._results.push(self._matches(iter(found), whole), instant.time))

    def _held(self, instant: Instant) -> Callable[[int], tuple[GraphEvent, ...]] | None:
        return (instant.events,).__getitem__ if self._keep_events else None

    def advance(self, now: int) -> Iterator[Match]:
        """The matches that complete because no instant before `now` (ns) will come any more."""
        done = () if self._endings is None else self._endings.until(now)
        settled = _distinct((_Found(w.start, w.end, w.positions, w.sure, *w.held) for w in done), self._selected)
        yield from chain.from_iterable(self._results.push(settled, now))

    @property
    def settings(self) -> Settings:
        """The budgets of the evaluation."""
        return self._program.settings

    def progress(self) -> Progress | None:
        """How far the evaluation came."""
        return progress_of(self._evaluator)

    @property
    def matched(self) -> bool:
        """Whether there was a match since the beginning or the snapshot, and none is held for the end of its window."""
        return self._results.matched and not self._results.holds

    def held(self, outside: Parts = MappingProxyType({})) -> Memory:
        """What it holds in memory, and what else is held `outside`."""
        solver = self._solver
        own: Parts = {
            "knowledge": [] if solver is None else [solver.knowledge], "patterns": [solver],
            "keys": [self._partitions, self._known], "events": [self._history],
            "waiting": [self._endings, self._results], "runs": [self._sightings, self._single], "rest": [self],
        }  # fmt: skip
        return measured(
            joined(self._evaluator.parts(), own, outside), [self._query, self._program],
            keys_held=len(self._partitions) if self._query.partition else 0, events_held=len(self._history),
        )  # fmt: skip

    def found(self, chunk: Chunk) -> Iterator[MatchBatch]:
        """The engine's matches of a chunk, as it gives them."""
        assert self._solver is not None
        rows = self._solver.rows(chunk)
        own = self._query.patterns, self._partition_codes(rows), self._sightings
        return self._evaluator.stream(InstantBatch(rows, *own, 0, len(rows.positions)))

    @property
    def live_runs(self) -> int:
        """Runs that the engine holds; equal ones count once."""
        return self._evaluator.statistics.get("live_runs", 0)

    def close(self) -> Iterator[Match]:
        """The matches that the end of the streams completes."""
        return chain.from_iterable(self.close_blocks())

    def close_blocks(self) -> Iterator[Found]:
        """`close`, as `push_blocks` gives matches."""
        self._leave()
        if self._time is not None:
            self._partitions.hush(self._time)
            self._make_room()
        matches = self._matches(iter((self._evaluator.none(),)), None) if self._endings is not None else ()
        yield from self._results.close(matches)

    def identity(self) -> dict[str, str]:
        """What a snapshot of this evaluation is of, the language apart.

        Budgets and background knowledge may change between taking and opening; what runs have taken of the knowledge
        before, they keep. The automaton is that of this version of spaseq: its states are what the contents speak of.
        """
        settings, window = self._program.settings, self._program.window
        return {
            "query": print_query(self._query.tree),
            "settings": f"variants={settings.variants}, negated_conditions={settings.negated_conditions}, "
            f"forget_keys_after={settings.forget_keys_after}, keep_events={self._keep_events}",
            "window": f"{window.kind} of {window.size} ns from {window.origin}",
            "schema": self._query.schema,
            "automaton": self._program.cea.describe(),
        }

    def snapshot(self) -> dict[str, Any]:
        """The state between two calls, as plain values and terms; `restore` goes on from it."""
        self._leave()
        self._make_room()
        pool = Pool()
        return {
            "engine": self._evaluator.snapshot(),
            "keys": self._partitions.snapshot(),
            "history": self._history.snapshot(pool),
            "sightings": self._sightings.snapshot(),
            "endings": None if self._endings is None else self._endings.snapshot(pool),
            "results": self._results.snapshot(pool),
            "events": pool.snapshot(),
            "time": self._time,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a snapshot of a recogniser of the same query, before the first instant."""
        from spaseq.core.engine import Evaluator

        events = Pool.restore(state["events"])
        self._evaluator = Evaluator.restore(self._program, state["engine"])
        self._single, self._entered = self._single_road(), False
        self._partitions.restore(state["keys"], self._program.settings.partitions)
        self._history.restore(state["history"], events)
        self._sightings.restore(state["sightings"])
        self._results.restore(state["results"], events)
        if self._endings is not None:
            self._endings.restore(state["endings"], events)
        self._time = state["time"]
        expect(self._time is None or type(self._time) is int, "the time of the last instant")

    def _partition_codes(self, rows: Rows) -> np.ndarray | None:
        if rows.partitions is None:
            return None
        if rows.numbers is None:
            codes = np.array(self._partitions.of(list(rows.keys)), np.int64)
        else:
            codes = self._known.of(rows.numbers)
            fresh = np.flatnonzero(codes < 0)
            codes[fresh] = self._partitions.of([rows.keys[place] for place in fresh.tolist()])
            self._known.tell(rows.numbers[fresh], codes[fresh])
        self._partitions.see(codes)
        forgotten = self._partitions.forgotten
        found = self._partitions.lives(codes[rows.partitions], rows.positions, rows.times)
        if self._partitions.forgotten != forgotten:
            self._known.clear()
        return found

    def _code_at(self, number: int, key: Mapping, instant: Instant) -> int:
        """The number of the partition of a row of an instant, to which it belongs now."""
        if self._partitions.pauses:
            self._known.tell_one(number, -1)  # the key may have another number from here on
            return self._partitions.number_at(key, instant.position, instant.time)
        code = self._known.of_one(number)
        if code < 0:
            code = self._partitions.number(key)
            self._known.tell_one(number, code)
        self._partitions.see(code)
        return code

    def _reach(self, time: int) -> None:
        """No instant will come before `time`: partitions whose window has passed are forgotten, by the solver too."""
        if self._partitions.reach(time, time):
            self._known.clear()
            if self._solver is not None:
                self._solver.forget_keys()
        self._make_room()

    def _make_room(self) -> None:
        """Ends the runs of keys that are forgotten, and counts them."""
        if self._partitions.pauses:
            self._partitions.make_room(self._forget)
            self.counters.forgotten_keys, self.counters.lost_runs = self._partitions.forgotten, self._partitions.lost

    def _forget(self, numbers: np.ndarray) -> int:
        self._sightings.forget(numbers)
        if self._endings is not None and self._program.ends_by_key:
            self._endings.settle(self._partitions, self._query.partition)
        if self._entered and self._single is not None:
            return self._single.forget(numbers)
        return self._evaluator.forget(numbers)

    def _matches(self, found: Iterator[MatchBatch], batch: InstantBatch | None) -> Iterator[Match]:
        """The matches settled by what the engine finds in `batch`, or at the end of the streams where that is None."""
        if self._endings is None:
            every = chain.from_iterable(map(_parts, found))
            return _distinct((self._found(s, e, at, mappings_of(rows)) for s, e, at, rows in every), self._selected)
        waiting = [self._waiting(*parts) for some in found for parts in _parts(some)]
        done = self._endings.close() if batch is None else self._endings.push(batch, waiting)
        return _distinct((_Found(w.start, w.end, w.positions, w.sure, *w.held) for w in done), self._selected)

    def _found(self, start: int, end: int, positions: tuple[int, ...], mappings: MappingSet) -> _Found:
        return _Found(start, end, positions, mappings, *self._history.held(positions))

    def _waiting(self, start: int, end: int, positions: tuple[int, ...], rows: Iterable[Row]) -> Waiting:
        held = self._history.held(positions)
        owing = [row for row in rows if row[3]]
        sure = mappings_of(row for row in rows if not row[3])
        return Waiting(start, end, self._history.time(start), positions, held, sure, owing)

    def _evict(self, now: int) -> None:
        """Drops the instants that no match to come can hold: they left the window, or no key had its first event since
        then."""
        if self._program.ends_by_key:
            self._history.evict_before(self._partitions.oldest)
        else:
            self._history.evict(self._program.window.open_from(now))
