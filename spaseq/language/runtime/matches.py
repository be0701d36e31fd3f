"""The matches of a query over streams, found as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spaseq.core.collected import Lazy, Part
from spaseq.core.drawing import Timeline
from spaseq.core.engine import Program, Progress
from spaseq.core.events import frame_of
from spaseq.core.measure import shorten
from spaseq.core.watch import check, limited, limited_steps
from spaseq.gpm import Knowledge, Template
from spaseq.gpm.functions.own import Failures
from spaseq.language.results.columns import FoundColumns, Texts
from spaseq.language.results.gathered import Gathered
from spaseq.language.results.match import Match, expect_template, graph_of
from spaseq.language.results.solutions import distinct_solutions, match_table
from spaseq.language.results.timelines import drawn_matches, listed_matches
from spaseq.language.results.typed import typed_table
from spaseq.language.runtime.opened import Opened, Streams
from spaseq.language.runtime.read_ahead import ReadAhead, thread_count
from spaseq.language.runtime.recogniser import Found, Recogniser
from spaseq.language.runtime.unmatched import Input
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.solving.chunks import merge_batches
from spaseq.language.solving.solve import Solver
from spaseq.rdf import Counters

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions, Unsolved
    from spaseq.rdf import GraphBatch


class Graphs:
    """The graphs that a CONSTRUCT makes of matches, as `Query.run` takes a stream: pairs of a time (ns) and triples, in
    the order of the matches. Each use finds the matches anew; there is none of an empty graph."""

    def __init__(self, matches: Matches, template: Template) -> None:
        self._matches = matches
        self._template = template

    def __iter__(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for match in self._matches:
            if triples := graph_of(match, self._template):
                yield match.time, triples


class Matches(Lazy[Match]):
    """The matches of a query over streams, found as they are asked for. Iterating again reads the streams again.

    `counters` has the counts of the latest iteration: read, late, malformed. `open_streams` opens the streams, for the
    predicates that it is given (None: for all); with `reference` rdflib's evaluator does all graph patterns.
    """

    def __init__(
        self,
        query: CheckedQuery,
        program: Program,
        knowledge: Knowledge,
        open_streams: Callable[[frozenset[str] | None], Opened],
        *,
        keep_events: bool = True,
        reference: bool = False,
    ) -> None:
        self._query = query
        self._program = program
        self._knowledge = knowledge
        self._open = open_streams
        self._keep_events = keep_events
        self._reference = reference
        self._latest: tuple[Recogniser, Input, Failures] | None = None
        self.counters: Counters = Counters()

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the result, in order."""
        return self._query.select

    def __iter__(self) -> Iterator[Match]:
        return islice(self._find(), 1) if self._query.clauses.ask else self._find()

    def __bool__(self) -> bool:
        return self.ask()

    def ask(self) -> bool:
        """True if there is a match (the answer of an ASK query); reads no further than the first."""
        return next(self._find(), None) is not None

    def parts(self) -> Iterator[Part[Match]]:
        """Lists of the matches of `blocks`."""
        if self._query.clauses.ask:
            return iter([list(self)])
        return limited_steps((list(found) for found in self.blocks()), self._program.settings)

    def table_of(self, parts: Sequence[Part[Match]], **form: Any) -> pa.Table:
        """`to_arrow`, of some of the `parts`."""
        return self._table([match for part in parts for match in part], **form)

    def _table(self, matches: list[Match], *, typed: bool = False, terms: bool = False) -> pa.Table:
        if not (typed or terms):
            return pa.Table.from_batches([match_table(matches, self.variables)])
        gathered = Gathered(self.variables)
        gathered.add(matches)
        return typed_table(gathered, self.variables, terms=terms)

    def _find(self) -> Iterator[Match]:
        return limited_steps((match for found in self.blocks() for match in found), self._program.settings)

    def blocks(self) -> Iterator[Found]:
        """The matches in parts, as columns if possible; read each before the next. An ASK goes on after its first."""
        failures = Failures(self._query.functions)
        solver = self._solver()
        recogniser = Recogniser(self._query, self._program, solver, keep_events=self._keep_events)
        opened = self._open(None if self._keep_events else solver.wanted)
        self.counters, self._latest = opened.counters, (recogniser, opened.read, failures)
        recogniser.counters = self.counters
        self.counters.about(recogniser)
        seen, threads = opened.read.seen, thread_count(self._program.settings.threads)
        reading = ReadAhead(
            opened.parts, solver.solve_ahead, lambda: self._helper(solver), opened.counters, seen, threads
        )
        with reading:
            for chunk in merge_batches(reading.streams(), apart=opened.apart):
                check()
                seen.span(chunk.times)
                yield from recogniser.push_blocks(chunk)
            yield from recogniser.close_blocks()

    def _helper(self, solver: Solver) -> Callable[[GraphBatch], MappingABC[str, Solutions | Unsolved]]:
        """The solver of another thread, which leaves out the work of the first one."""
        helper = self._solver()
        helper.rare = solver.rare
        return helper.solve_ahead

    def _solver(self) -> Solver:
        rows = self._program.settings.solution_rows
        return Solver(self._query, self._knowledge, solution_rows=rows, reference=self._reference)

    def __repr__(self) -> str:
        return f"<spaseq.Matches of {shorten(' '.join(f'?{name}' for name in self.variables), 60)}>"

    def _repr_html_(self) -> str:
        return listed_matches(self, self._query)

    def timeline(self, limit: int = 200) -> Timeline:
        """The first `limit` matches on a time axis: `svg()`, `html()`, `save(path)`; a notebook shows it."""
        return drawn_matches(self, self._query, limit)

    def why_none(self) -> list[str]:
        """The input of the latest use, and the GPMs that no event matched, a line each: reasons for no match."""
        if self._latest is None:
            return ["no events were read"]
        recogniser, read, _ = self._latest
        return recogniser.why_none(read)

    def progress(self) -> Progress | None:
        """The progress of the latest use; None before the first."""
        return None if self._latest is None else self._latest[0].progress()

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for each guess in the latest use about options not given, and for each function of the user that
        raised an exception in it. Also for each graph of knowledge that owlrl closed, slowly, with the reason."""
        closed = self._knowledge.told(slow=True)
        if self._latest is None:
            return tuple(closed)
        _, read, failures = self._latest
        return (*closed, *read.notes, *failures.lines())

    def graphs(self) -> Graphs:
        """The graphs that the query constructs, each with the time of its match: a stream of another query.

        Raises `OptionError` if the query is no CONSTRUCT.
        """
        return Graphs(self, expect_template(self._query.clauses.template))

    def count(self) -> int:
        """The number of matches. None is made if no clause reads them."""
        if self._query.clauses.ask:
            return sum(1 for _ in self)
        with limited(self._program.settings):
            return sum(
                len(found) if isinstance(found, FoundColumns) else sum(1 for _ in found) for found in self.blocks()
            )

    def solutions(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The set of pairs (time of the last matched instant, projected mapping) of Definition 16, in order of time."""
        return distinct_solutions(self, self.variables, ordered=self._query.clauses.ordered)

    def to_arrow(self, *, typed: bool = False, terms: bool = False) -> pa.Table:
        """One row per match, with each term as text in N-Triples syntax: see `match_table`. With `typed`, terms are
        numbers, times, dates, truth values and texts; with `terms`, structs: see `typed_table`."""
        if typed or terms:
            return self._type(terms)
        texts: dict[str, Texts] = {}
        tables = [match_table([], self.variables)]
        with limited(self._program.settings):
            for found in iter([list(self)]) if self._query.clauses.ask else self.blocks():
                if isinstance(found, FoundColumns):
                    tables.append(found.table(self.variables, texts))
                else:
                    tables.append(match_table(list(found), self.variables))
        return pa.Table.from_batches(tables).combine_chunks()

    def _type(self, terms: bool) -> pa.Table:
        gathered = Gathered(self.variables)
        with limited(self._program.settings):
            for found in iter([list(self)]) if self._query.clauses.ask else self.blocks():
                gathered.add(found)
        return typed_table(gathered, self.variables, terms=terms)

    def to_pandas(self, *, typed: bool = False, terms: bool = False) -> Any:
        """`to_arrow` as a `pandas.DataFrame`. `OptionError` without pandas."""
        return frame_of(partial(self.to_arrow, typed=typed, terms=terms))

    def to_polars(self, *, typed: bool = False, terms: bool = False) -> Any:
        """`to_arrow` as a `polars.DataFrame`. `OptionError` without Polars."""
        return frame_of(partial(self.to_arrow, typed=typed, terms=terms), "polars")


def with_graphs(streams: Streams) -> Streams:
    """The streams of a run, with the graphs of matches in their place. `OptionError` for those of no CONSTRUCT."""
    if not isinstance(streams, MappingABC):
        return streams
    return {name: value.graphs() if isinstance(value, Matches) else value for name, value in streams.items()}
