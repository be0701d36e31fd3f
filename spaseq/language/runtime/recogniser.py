"""One evaluation of a compiled query: instants in, matches out.

A `Recogniser` solves instants, feeds the engine and reads the engine's matches back as solutions. `Matches`
(`spaseq.language.runtime.matches`) reads streams lazily; events are pushed to a `Session`
(`spaseq.language.runtime.session`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.engine import MatchBatch, Program, Progress, Settings
from spaseq.core.engine.program.matches import within
from spaseq.core.engine.recognition.recognition import Recognition
from spaseq.core.errors import InternalError
from spaseq.core.held import Memory, Parts
from spaseq.core.integers import Memo
from spaseq.core.snapshot import expect
from spaseq.core.watch import check
from spaseq.gpm import IDENTITY, Mapping, project
from spaseq.gpm.functions.own import OWN
from spaseq.language.guards.registers import MappingRegisters, Row
from spaseq.language.lowering.lower import Vectors
from spaseq.language.results.columns import FoundColumns, columns_of
from spaseq.language.results.counted import Counting
from spaseq.language.results.history import History, Pool
from spaseq.language.results.match import Match
from spaseq.language.results.results import Results, term_order
from spaseq.language.results.step_values import StepValues
from spaseq.language.runtime.absence import Endings, Sightings, Waiting, mappings_of
from spaseq.language.runtime.pace import Pace
from spaseq.language.runtime.steps import StepFinder
from spaseq.language.runtime.unmatched import Input, why_none
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.counting import counted_steps
from spaseq.language.semantics.lookups import lookups_of
from spaseq.language.solving.chunks import Chunk, chunk_of, places_of
from spaseq.language.solving.instant_rows import InstantRows
from spaseq.language.solving.instants import InstantBatch, Rows
from spaseq.language.solving.solve import InstantSolutions, SolvedRows, Solver
from spaseq.language.syntax.printer import print_query
from spaseq.rdf import Counters, GraphBatch, GraphEvent, Instant

if TYPE_CHECKING:
    from spaseq.core.engine.runs.single_event import Single, SingleAround

_SINGLE = 12
"""Instants pushed at once up to which each goes to the engine by itself.

PERF: 1,000 graphs of benchmarks/pushes.py, ms singly or as a batch. 10 at once: 16 or 43 under a FILTER, 38 or 56 if
each begins a run. 20 at once: 15 or 35, 37 or 38; with OPTIONAL, which the plan solves for all, 66 or 72 and 55 or 46.
"""


Found = FoundColumns | Iterable[Match]
"""Some matches in order."""


def _distinct(settled: Iterable[Waiting], selected: frozenset[str]) -> Iterator[Match]:
    """A match for each projected mapping, each once: partitions may give equal ones.

    All that have one end come in one call. Mappings of one match are in order.
    """
    seen: set[tuple[int, tuple[int, ...], Mapping]] = set()
    last_end = -1
    for match in settled:
        check()
        if match.end != last_end:
            seen.clear()
            last_end = match.end
        mappings = project(match.sure, selected)
        for mapping in sorted(mappings, key=term_order) if len(mappings) > 1 else mappings:
            key = (match.start, match.positions, mapping)
            if key not in seen:
                seen.add(key)
                yield Match(match.start, match.end, match.positions, dict(mapping), *match.held)


def _same(batch: InstantBatch) -> InstantBatch:
    return batch


_HOLDS_NOTHING: frozenset[Row] = frozenset({((frozenset(),), IDENTITY, ())})


def _parts(batch: MatchBatch) -> Iterator[tuple[int, int, tuple[int, ...], frozenset[Any]]]:
    """(start, end, positions, register rows) of the engine's matches."""
    starts, ends, offsets = batch.start.tolist(), batch.end.tolist(), batch.offsets.tolist()
    places = batch.positions.tolist()
    # The engine tells no rows where runs hold nothing: no variable is selected or shared.
    for i, rows in enumerate(batch.rows if batch.rows is not None else repeat(_HOLDS_NOTHING, len(starts))):
        yield starts[i], ends[i], tuple(places[offsets[i] : offsets[i + 1]]), rows


class Recogniser(Recognition):
    """One evaluation of a query over instants in order.

    Args: `solver` may be None if rows are solved elsewhere (`push_rows`). `keep_events`: True if matches show events.
    """

    def __init__(
        self, query: CheckedQuery, program: Program, solver: Solver | None, *, keep_events: bool = True
    ) -> None:
        from spaseq.core.engine import Evaluator  # loads the kernels

        super().__init__(program, Evaluator(program), partitioned=bool(query.partition))
        self.query: CheckedQuery = query
        self._solver = solver
        self._keep_events = keep_events
        self._selected = frozenset(query.clauses.needed)
        self._history = History()
        steps = counted_steps(query)
        self._counting = None if steps is None else Counting(steps, self._history)
        self._results = Results(query.clauses, program.window, self._counting)
        registers = MappingRegisters(query.patterns)
        self._sightings = Sightings(query, program.window, registers)
        self._endings = Endings.of(query, program, registers)
        lookups = lookups_of(query) if steps is None else None
        self._values = None if lookups is None else StepValues(lookups, query.patterns)
        self.counters: Counters = Counters()
        self._known = Memo()  # the numbers that the solver's keys have there; not in a snapshot
        if solver is not None and keep_events:
            self._history.teller = StepFinder(query, program, solver, Recogniser)
        self._pace = Pace()
        self._last: tuple[int, int] | None = None
        self.open_door()
        self._vectors = Vectors(() if self.door is None else self.door.predicates)

    def push(self, instants: Sequence[Instant]) -> Iterator[Match]:
        """The matches that these instants complete; exhaust it before the next call."""
        if not instants:
            return
        if self._counting is not None and len(instants) <= _SINGLE:
            yield from self._count_alone(instants)
            return
        if self.door is not None and len(instants) <= _SINGLE:
            self._forget_keys(instants[0].time)
            self.time = instants[-1].time
            if self._results.counts_windows:
                self._results.see(*places_of(instants))
            self.enter()
            for instant, rows in zip(instants, self.solver.instant_rows(instants), strict=True):
                yield from self._push_alone(self.door, instant, rows)
            return
        events = [instant.events for instant in instants]
        self._begin(*places_of(instants), events.__getitem__)
        yield from self._push(self.solver.rows(chunk_of(instants, self.solver.solve_pushed)))
        self._evict(instants[-1].position, instants[-1].time)

    def _begin(
        self, positions: np.ndarray, times: np.ndarray, events: Callable[[int], tuple[GraphEvent, ...]] | None
    ) -> None:
        """Instants come, whose rows are to be pushed: int64 (n,) each; `events(i)` gives the events of the i-th."""
        self.leave(self._last)
        self._forget_keys(int(times[0]))
        self.time = int(times[-1])
        self._history.add(positions, times, events if self._keep_events else None)
        self._results.see(positions, times)

    @property
    def solver(self) -> Solver:
        """The solver of instants. `InternalError` if rows are solved elsewhere."""
        if self._solver is None:
            raise InternalError("a recogniser without a solver takes rows, not instants")
        return self._solver

    @property
    def settings(self) -> Settings:
        """The budgets of the query."""
        return self.program.settings

    @property
    def streams(self) -> tuple[tuple[str, str], ...]:
        """(name, IRI) of the streams, in order of the FROM clauses."""
        return self.query.streams

    @property
    def functions(self) -> tuple[str, ...]:
        """The IRIs of the functions that the query calls."""
        return self.query.functions

    def solve_ahead(self, batch: GraphBatch) -> MappingABC[str, Any]:
        """As of `Solver.solve_ahead`."""
        return self.solver.solve_ahead(batch)

    def remarks(self) -> list[str]:
        """A line for each graph of knowledge that owlrl closed, slowly."""
        return self.solver.knowledge.told(slow=True)

    @property
    def wanted(self) -> frozenset[str] | None:
        """The predicates whose triples are needed, to be matched or to be shown; None: all."""
        return None if self._keep_events else self.solver.wanted

    def push_chunk(self, chunk: Chunk) -> Iterator[Match]:
        """The matches that a chunk of instants completes; exhaust it before the next call."""
        return chain.from_iterable(self.push_blocks(chunk))

    def push_blocks(self, chunk: Chunk) -> Iterator[Found]:
        """The matches that a chunk of instants completes, as columns if they stay that; read each before the next."""
        self._begin(np.arange(chunk.first, chunk.first + len(chunk)), chunk.times, chunk.events)
        rows = self.solver.rows(chunk)
        yield from self._blocks(rows)
        self.solver.learn(rows)
        self._evict(chunk.first + len(chunk) - 1, int(chunk.times[-1]))

    def push_rows(self, rows: Sequence[InstantSolutions]) -> Iterator[Match]:
        """The matches that these rows complete. The rows of one instant belong into one call. With PARTITION BY, one
        without a key only shows that its instant exists."""
        if rows:
            solved = SolvedRows(rows)
            positions, first = np.unique(solved.positions, return_index=True)
            self._begin(positions, solved.times[first], None)
            if self.query.partition and self._results.counts_windows:
                solved = SolvedRows([row for row in rows if row.key is not None])
            yield from self._push(solved)
            self._evict(int(positions[-1]), rows[-1].time)

    def _push(self, rows: Rows) -> Iterator[Match]:
        return chain.from_iterable(self._blocks(rows))

    def _blocks(self, rows: Rows) -> Iterator[Found]:
        codes = self._partition_codes(rows)
        positions, last = rows.positions, 0
        if self._values is not None:
            self._values.read(rows)
        while last < len(positions):
            # The rows of an instant stay together, as its matches are distinguished together.
            piece = positions[last : None if self._counting is not None else last + self._pace.rows]
            first, last = last, int(np.searchsorted(positions, piece[-1], "right"))
            batch = InstantBatch(rows, self.query.patterns, codes, self._sightings, first, last)
            if self._counting is not None:
                yield from self._results.count(batch)
                continue
            if codes is not None and self.pauses:
                batch.born = self.partitions.born(codes[first:last])
            found = self._pace.noted(within(self.evaluator.stream(batch), self.program.settings.output_bytes))
            passes = self._results.passes
            if self._endings is not None:
                yield from self._results.push(self._matches(found, batch), int(batch.times[-1]))
                continue
            apart = self.query.partition or self.program.labels is not None
            if apart or not passes:  # the matches of one end belong together
                found = iter((MatchBatch.concat(list(found)),))
            for part in found:
                if not len(part):
                    if not passes:
                        yield from self._results.push((), int(batch.times[-1]))
                    continue
                columns = columns_of(part, self._selected, self._history, self._values)
                if columns is None or not passes:
                    matches = self._matches((part,), batch) if columns is None else columns
                    yield from self._results.push(matches, int(batch.times[-1]))
                elif len(columns):
                    yield columns
        if self._counting is not None and self.time is not None:  # before instants of a window that is over are dropped
            yield from self._results.push((), self.time)

    # -- single instants

    def _count_alone(self, instants: Sequence[Instant]) -> Iterator[Match]:
        """The results that some instants complete, if solutions are counted."""
        self.time = instants[-1].time
        self._results.see(*places_of(instants))
        for instant, rows in zip(instants, self.solver.instant_rows(instants), strict=True):
            shown = (instant.events,).__getitem__ if self._keep_events else None
            self._history.add(rows.positions, rows.times, shown)
            batch = InstantBatch(rows, self.query.patterns, None)
            yield from chain.from_iterable(self._results.count_one(batch, instant.time))
            self._evict(instant.position, instant.time)

    def open_door(self) -> Single | SingleAround | None:
        """The engine's door. None if more than negation at the end is checked behind a row, or that with keys forgotten
        after a pause."""
        looks = self._sightings.conjunctions or (self._endings is not None and self.pauses)
        return None if looks or self._counting is not None else super().open_door()

    def _push_alone(self, door: Single | SingleAround, instant: Instant, rows: InstantRows) -> Iterator[Match]:
        """The matches that an instant completes. Rows that move no run end at their symbol class."""
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
                        one = InstantBatch(rows, self.query.patterns, None, None, row, row + 1)
                        held |= bool(one.value(conjunction, 0)) << place
            symbol = door.symbols[self._vectors[held]]
            number = rows.number(row)
            key = 0
            if number is not None and (symbol >= 0 or self.pauses):
                key = self._code_at(number, rows.keys[row], instant)
            if symbol < 0:
                continue
            if batch is None:
                self._evict(instant.position, instant.time)
                shown = (instant.events,).__getitem__ if self._keep_events else None
                self._history.add(rows.positions[:1], rows.times[:1], shown)
            batch = InstantBatch(rows, self.query.patterns, None, self._sightings, row, row + 1)
            if self._values is not None:
                self._values.read_one(batch)
            found += door.push(symbol, instant.position, instant.time, key, partial(_same, batch))
        if not found and not self._results.waits and self._endings is None:
            return
        if not len(rows):  # an instant of no partition
            yield from self.advance(instant.time)
            return
        whole = InstantBatch(rows, self.query.patterns, None, None, 0, len(rows))
        yield from chain.from_iterable(self._results.push(self._matches(found, whole), instant.time))

    def advance(self, now: int) -> Iterator[Match]:
        """The matches that complete because no instant before `now` (ns) will come any more."""
        done = () if self._endings is None else self._endings.until(now)
        yield from chain.from_iterable(self._results.push(_distinct(done, self._selected), now))

    @property
    def waits(self) -> int | None:
        """The time (ns) behind the last instant within which time alone may complete a match. It does so for an absence
        at the end of the sequence, and for a clause over a window. None if it completes none."""
        by_window = self.query.clauses.by_window
        if self._endings is None and not by_window:
            return None
        window, patience = self.program.window, self.query.lasting.patience
        return (int(window.size) if window.is_bounded and not window.by_position else 0) + (patience or 0)

    def progress(self) -> Progress | None:
        return super().progress() if self._counting is None else self._counting.progress()

    @property
    def matched(self) -> bool:
        """True if there was a match since the beginning or the snapshot, and none is held for the end of its window."""
        return self._results.matched and not self._results.holds

    def why_none(self, read: Input) -> list[str]:
        """A line for each possible reason why there was no match, of this input."""
        return why_none(self.query, read, self.progress(), matched=self.matched)

    def held(self, outside: Parts = MappingProxyType({})) -> Memory:
        """The bytes that it holds in memory, and those held `outside`."""
        solver = self._solver
        own: Parts = {
            "knowledge": [] if solver is None else [solver.knowledge], "patterns": [solver], "keys": [self._known],
            "events": [self._history], "values": [self._values], "waiting": [self._endings, self._results],
            "runs": [self._sightings],
        }  # fmt: skip
        return self.measured(own, outside, [self.query], len(self._history))

    def found(self, chunk: Chunk) -> Iterator[MatchBatch]:
        """The engine's matches of a chunk, as it gives them."""
        rows = self.solver.rows(chunk)
        own = self.query.patterns, self._partition_codes(rows), self._sightings
        return self.evaluator.stream(InstantBatch(rows, *own, 0, len(rows.positions)))

    def close(self) -> Iterator[Match]:
        """The matches that the end of the streams completes."""
        return chain.from_iterable(self.close_blocks())

    def close_blocks(self) -> Iterator[Found]:
        """`close`, as `push_blocks` gives matches."""
        self.leave(self._last)
        self.hush(self.time)
        yield from self._results.close(self._matches((), None))

    def identity(self) -> dict[str, str]:
        """The query that a snapshot of this evaluation belongs to, the language apart.

        Budgets and background knowledge may change between taking and opening; runs keep the knowledge that they have
        taken. The automaton is that of this version of spaseq, as the contents refer to its states.
        """
        settings, window = self.program.settings, self.program.window
        return {
            "query": print_query(self.query.tree),
            "settings": f"variants={settings.variants}, negated_conditions={settings.negated_conditions}, "
            f"forget_keys_after={settings.forget_keys_after}, keep_events={self._keep_events}",
            "window": f"{window.kind} of {window.size}{'' if window.by_position else ' ns'} from {window.origin}",
            "schema": self.query.schema,
            "automaton": self.program.cea.describe(),
            **({} if self._counting is None else {"solutions": "counted"}),
            **OWN.identity(self.query.functions),
        }

    def snapshot(self) -> dict[str, Any]:
        """The state between two calls, as plain values and terms; `restore` goes on from it."""
        self.leave(self._last)
        pool, state = Pool(), super().snapshot()
        return state | {
            "history": self._history.snapshot(pool),
            "sightings": self._sightings.snapshot(),
            "endings": None if self._endings is None else self._endings.snapshot(pool),
            "values": None if self._values is None else self._values.snapshot(),
            "results": self._results.snapshot(pool),
            "events": pool.snapshot(),
        }

    def restore(self, state: dict[str, Any], position: int) -> None:
        """Goes on from a snapshot of a recogniser of the same query, before the first instant, whose `position` is that
        of the next one."""
        from spaseq.core.engine import Evaluator

        events = Pool.restore(state["events"])
        self.restore_engine(state, Evaluator.restore(self.program, state["engine"]))
        last = self.evaluator.last_position
        expect(last is None or last < position, "the last instant is in front of the next")
        self.open_door()
        self._history.restore(state["history"], events)
        self._sightings.restore(state["sightings"])
        self._results.restore(state["results"], events)
        if self._endings is not None:
            self._endings.restore(state["endings"], events)
        if self._values is not None:
            self._values.restore(state["values"])

    def _partition_codes(self, rows: Rows) -> np.ndarray | None:
        if rows.partitions is None:
            return None
        if rows.numbers is None:
            codes = np.array(self.partitions.of(list(rows.keys)), np.int64)
        else:
            codes = self._known.of(rows.numbers)
            fresh = np.flatnonzero(codes < 0)
            codes[fresh] = self.partitions.of([rows.keys[place] for place in fresh.tolist()])
            self._known.tell(rows.numbers[fresh], codes[fresh])
        self.partitions.see(codes)
        forgotten = self.partitions.forgotten
        found = self.partitions.lives(codes[rows.partitions], rows.positions, rows.times)
        if self.partitions.forgotten != forgotten:
            self._known.clear()
        return found

    def _code_at(self, number: int, key: Mapping, instant: Instant) -> int:
        """The number of the partition of a row of an instant, to which it belongs now."""
        if self.pauses:
            self._known.tell_one(number, -1)  # the key may have another number from here on
            return self.partitions.number_at(key, instant.position, instant.time)
        code = self._known.of_one(number)
        if code < 0:
            code = self.partitions.number(key)
            self._known.tell_one(number, code)
        self.partitions.see(code)
        return code

    def _forget_keys(self, time: int) -> None:
        """No instant will come before `time`: partitions whose window has passed are forgotten, by the solver too."""
        if self.reach(time, time):
            self._known.clear()
            if self._solver is not None:
                self._solver.forget_keys()

    def forget(self, numbers: np.ndarray) -> int | None:
        self._sightings.forget(numbers)
        if self._endings is not None and self.by_key:
            self._endings.settle(self.partitions, self.query.partition)
        return super().forget(numbers)

    def _matches(self, found: Iterable[MatchBatch], batch: InstantBatch | None) -> Iterator[Match]:
        """The matches settled by the engine's findings in `batch`; if that is None, at the end of the streams."""
        every: Iterable[Waiting] = (self._waiting(*parts) for some in found for parts in _parts(some))
        if self._endings is not None:
            every = self._endings.close() if batch is None else self._endings.push(batch, list(every))
        return _distinct(every, self._selected)

    def _waiting(self, start: int, end: int, positions: tuple[int, ...], rows: Iterable[Row]) -> Waiting:
        """A match that waits for as long as its rows owe an absence."""
        held = self._history.held(positions)
        if self._endings is None:
            sure = mappings_of(rows)
            if self._values is not None:
                sure = self._values.mappings(sure, positions)
            return Waiting(start, end, 0, positions, held, sure, [])
        owing = [row for row in rows if row[2]]
        sure = mappings_of(row for row in rows if not row[2])
        since = self._history.time(start if self.query.lasting.patience is None else end)
        return Waiting(start, end, since, positions, held, sure, owing)

    def _evict(self, position: int, time: int) -> None:
        """Drops instants that no match can hold that ends at this position and time, or later: they left the window, or
        no key had its first event since then."""
        window = self.program.window
        if self.by_key:
            self._history.evict(self.partitions.oldest, attrgetter("positions"))
        elif window.by_position:
            self._history.evict(window.open_from(position), attrgetter("positions"))
        else:
            self._history.evict(window.open_from(time))
        if self._values is not None:
            first = self._history.first
            self._values.forget(position + 1 if first is None else first)
