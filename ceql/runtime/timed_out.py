"""The partial matches that time out, as rows: the step that each waited for, since when, and the events it took.

Each step is a query of its own with NOT at the end (`ceql.rewrites.timed_out`). All of them read the events in one
pass. A row comes once the window of its partial match has closed. Rows are in order of their starts, which is that in
which the windows close; those of one start in order of the steps, then of the last events.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np
import pyarrow as pa

from ceql.results.bindings import Shown
from ceql.results.history import History
from ceql.results.matches import MatchTable, count_rows, join_tables
from ceql.results.selected import Times
from ceql.rewrites.timed_out import timed_out_steps
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.evaluation import Matches, matches_of
from ceql.runtime.ordered_steps import OrderedSteps
from ceql.runtime.run import Run
from ceql.runtime.session import expect_place, identity, open_session, options_to_keep
from ceql.syntax.printer import print_query
from spaseq.core.engine.recognition.session import Session as Pushing
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.core.events import (
    EventBatch,
    EventCounters,
    EventFeed,
    EventOptions,
    TupleWords,
    frame_of,
    in_microseconds,
)
from spaseq.core.events.batch import DURATIONS, INSTANTS
from spaseq.core.events.options import OnLate
from spaseq.core.snapshot import Identity, expect, unseal
from spaseq.core.watch import limited_steps

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch, Program, Settings

_Found = Iterable[tuple["MatchBatch", History]]
_OF_ALL: Final = ("waiting_for", "since", "start_time")
_PLACED: Final = ("start", "end", "positions")


@dataclass(frozen=True, slots=True)
class WaitingStep:
    """A step that a partial match may wait for: the text of its part of the formula, and a query in CEQL. The matches
    of this query are the partial matches that timed out there."""

    waiting_for: str
    query: str


class TimedOut:
    """The steps of a query at which partial matches time out. `columns` are those of the rows."""

    def __init__(self, query: CompiledQuery) -> None:
        """Raises `UnsupportedFeature` for a query that has no such steps, by name."""
        if query.tree.grouping is not None:
            hint = "a partial match is in no group: leave GROUP BY out"
            raise UnsupportedFeature("partial matches that time out are not reported for GROUP BY", text=query.text,
                                     span=query.tree.grouping.span, source=query.source, hint=hint)  # fmt: skip
        self._query = query
        self.steps: tuple[WaitingStep, ...] = tuple(
            WaitingStep(step.waiting_for, print_query(step.query))
            for step in timed_out_steps(query.tree, query.text, query.source)
        )
        self._compiled = [
            CompiledQuery(step.query, f"{query.source}, waiting for {step.waiting_for}", query.settings)
            for step in self.steps
        ]
        if query.selected is not None:
            named: tuple[str, ...] = query.selected.names
        else:
            attributes = query.shown.attributes
            of_variables = ((v, *(f"{v}.{name}" for name in attributes[v] or ())) for v in query.shown.variables)
            named = (*_PLACED, *(name for names in of_variables for name in names))
        self.columns: tuple[str, ...] = tuple(dict.fromkeys((*_OF_ALL, *named)))

    def run(
        self,
        events: Any = None,
        *,
        streams: Mapping[str, Any] | None = None,
        types: Mapping[str, Any] | None = None,
        schema: Any = None,
        **reading: Unpack[TupleWords],
    ) -> TimedOutRows:
        """The rows over these events, lazily. Arguments and errors: those of `ceql.query.Query.run`."""
        return TimedOutRows(
            self, matches_of(self._query, events, streams=streams, types=types, schema=schema, **reading)
        )

    def open(self, state: bytes | None = None, **options: Any) -> TimedOutSession:
        """An evaluation that events are pushed to; from a snapshot, it goes on at its place. Arguments and errors are
        those of `ceql.query.Query.open`."""
        if state is not None:
            on_late = options.get("on_late")
            restore = functools.partial(TimedOutSession.restore, self, on_late=on_late)
            return unseal(state, self.identity, TimedOutSession._KINDS, restore)
        session = open_session(self._query, **options)  # which checks the options
        return TimedOutSession(self, *session.input)

    @functools.cached_property
    def identity(self) -> Identity:
        """The query that a snapshot belongs to, and its steps: the contents refer to their states."""
        steps = {f"step {number}": identity(query)["automaton"] for number, query in enumerate(self._compiled, 1)}
        return {**identity(self._query), "rows": "partial matches that time out", **steps}

    def telling(self, times: Times) -> Telling:
        """A new evaluation of all steps, before the first event."""
        return Telling(self.columns, [(step.waiting_for, query) for step, query in self._of_steps()], times)

    def in_tables(self) -> StepsOfTables:
        """The same as Spark reads it, over events that are put in order (`spaseq.spark.match`)."""
        return StepsOfTables(self)

    def _of_steps(self) -> Iterator[tuple[WaitingStep, CompiledQuery]]:
        return zip(self.steps, self._compiled, strict=True)


class Telling:
    """The evaluation of all steps of a query over batches of events, in one pass."""

    def __init__(self, columns: tuple[str, ...], steps: list[tuple[str, CompiledQuery]], times: Times) -> None:
        self._columns = columns
        self._times = times
        self._steps = [_StepRun(waiting_for, query, times) for waiting_for, query in steps]

    @property
    def runs(self) -> list[Run]:
        """The evaluation of each step, in their order."""
        return [step.run for step in self._steps]

    def advance(self, events: EventBatch) -> pa.Table:
        """The rows of the partial matches whose windows these events close."""
        return self._rows(lambda run: run.advance(events, at_once=True))

    def wait_until(self, now: int) -> pa.Table:
        """The rows of those whose windows closed before `now` (ns), before which no event will come any more."""
        return self._rows(lambda run: run.wait_until(now))

    def close(self) -> pa.Table:
        """The rows of those whose windows the end of the stream closes."""
        return self._rows(lambda run: run.close(at_once=True))

    @property
    def empty(self) -> pa.Table:
        """The table of no rows."""
        kinds = {"waiting_for": pa.string(), "start": pa.int64(), "end": pa.int64(), "positions": _LISTS}
        times = self._times.type or pa.int64()
        kinds |= {"since": times, "start_time": times}
        return pa.schema([(name, kinds.get(name, pa.null())) for name in self._columns]).empty_table()

    def _rows(self, advance: Callable[[Run], _Found]) -> pa.Table:
        found = [(step, *part) for step in self._steps for part in advance(step.run) if len(part[0])]
        if not found:
            return self.empty
        tables = [self._complete(step.table(matches, history)) for step, matches, history in found]
        steps = np.concatenate([np.full(len(m), self._steps.index(step)) for step, m, _ in found])
        starts, ends = (np.concatenate([getattr(m, name) for _, m, _ in found]) for name in ("start", "end"))
        return join_tables(tables).take(pa.array(np.lexsort((ends, steps, starts))))

    def _complete(self, table: pa.Table) -> pa.Table:
        """The table with all columns, in their order; a column of a later step is NULL."""
        missing = pa.nulls(len(table))
        known = set(table.column_names)
        return pa.table({name: table.column(name) if name in known else missing for name in self._columns})


class StepsOfTables:
    """Partial matches that time out, as `spaseq.spark.tuples.plan.TupleQuery` has queries."""

    def __init__(self, timed_out: TimedOut) -> None:
        self.compiled: CompiledQuery = timed_out._query
        self._steps = [(step.waiting_for, query) for step, query in timed_out._of_steps()]
        self._timed_out = timed_out
        self.columns: tuple[str, ...] = timed_out.columns

    @property
    def text(self) -> str:
        """The query's text, with a mark that the query itself lacks."""
        return f"partial matches that time out: {self.compiled.text}"

    @property
    def settings(self) -> Settings:
        """The budgets of each step."""
        return self.compiled.settings

    @property
    def identity(self) -> Identity:
        """As of `TimedOut.identity`."""
        return self._timed_out.identity

    def program(self) -> Program:
        """That of the first step: all have one window, and something that must not come."""
        return self._steps[0][1].program()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that conditions read, and those of PARTITION BY."""
        named = (query.attributes for query in (self.compiled, *(query for _, query in self._steps)))
        return tuple(dict.fromkeys(name for names in named for name in names))

    @property
    def partition(self) -> tuple[tuple[str, ...], ...]:
        """The keys that all steps have; none if a step has others."""
        first, *others = (query.lowered.partition for _, query in self._steps)
        return first if all(keys == first for keys in others) else ()

    @property
    def window_attribute(self) -> str | None:
        """The attribute that WITHIN is measured in."""
        return self.compiled.lowered.window_attribute

    def stream_names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """As of `ceql.query.Query.stream_names`."""
        return self.compiled.streams(given)

    def run(self, events: Any = None, **words: Any) -> TimedOutRows:
        """As of `TimedOut.run`."""
        return self._timed_out.run(events, **words)

    def in_order(self, names: tuple[str, ...], options: EventOptions, *, iso: bool) -> OrderedSteps:
        """The rows over events that the caller has put in order."""
        return OrderedSteps(self.compiled, self._steps, names, options, iso)


_LISTS: Final = pa.large_list(pa.int64())


class _StepRun:
    """The run of one step, and the rows of its matches."""

    def __init__(self, waiting_for: str, query: CompiledQuery, times: Times) -> None:
        self._waiting_for = waiting_for
        self._times = times
        self._computing = query.computing(times)
        valuations = self._computing is None or query.valuations
        self._bindings = query.bindings(valuations)
        if self._bindings is not None:  # a variable without a list of attributes shows its positions alone
            shown = self._bindings.shown
            self._bindings.shown = Shown(shown.variables, {v: shown.attributes[v] or () for v in shown.variables})
        self.run = Run(query.lowered, query.program(valuations))

    def table(self, matches: MatchBatch, history: History) -> pa.Table:
        """A row for each match."""
        stamps = {"since": matches.end, "start_time": matches.start}
        rows = {"waiting_for": pa.array([self._waiting_for] * len(matches), pa.string())}
        rows |= {name: self._times.column(history.times(places)) for name, places in stamps.items()}
        found = MatchTable.of(matches, history, self._bindings, self._computing)
        own = found.to_arrow(False)
        if self._computing is None:
            own = own.drop_columns(["start_time", "end_time"])
        return pa.table(rows | dict(zip(own.column_names, own.columns, strict=True)))


class TimedOutRows:
    """The rows over a stream: an iterable of dicts, evaluated as it is read. Each use reads the events anew."""

    def __init__(self, timed_out: TimedOut, matches: Matches) -> None:
        self._timed_out = timed_out
        self._matches = matches

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._timed_out.columns

    @property
    def counters(self) -> EventCounters:
        """The counts of the latest use."""
        return self._matches.counters

    @property
    def notes(self) -> tuple[str, ...]:
        """As of `Matches.notes`."""
        return self._matches.notes

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for table in self.tables():
            yield from in_microseconds(table).to_pylist()

    def tables(self) -> Iterator[pa.Table]:
        """The rows in columns, as many at a time as windows that events read together close."""
        return limited_steps(self._tables(), self._timed_out._query.settings)

    def _tables(self) -> Iterator[pa.Table]:
        matches = self._matches
        _, stream = matches.begin()
        telling = self._timed_out.telling(matches.form_of_times())
        for events in stream:
            if len(table := telling.advance(events)):
                yield table
        if len(table := telling.close()):
            yield table

    def count(self, limit: int | None = None) -> int:
        """The number of rows, or `limit` if there are as many."""
        return count_rows(self.tables(), limit)

    def to_arrow(self) -> pa.Table:
        """All rows as a table. A column of a variable that no step had is of type null."""
        return join_tables(list(self.tables()) or [self._timed_out.telling(self._matches.form_of_times()).empty])

    def to_pandas(self) -> Any:
        """All rows as a `pandas.DataFrame`. `OptionError` without pandas."""
        return frame_of(self.to_arrow)

    def to_polars(self) -> Any:
        """All rows as a `polars.DataFrame`. `OptionError` without Polars."""
        return frame_of(self.to_arrow, "polars")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table of `to_arrow` for DuckDB, Polars and others that read Arrow's streams."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


class TimedOutSession(Pushing[dict[str, Any]]):
    """Rows as they happen, of events that are pushed. Use it in a `with` and read its `rest`, or `close` it."""

    _KINDS = (INSTANTS, DURATIONS)
    _OVER = ("this stream is closed", "timed_out().open() begins a new one")

    def __init__(self, timed_out: TimedOut, names: tuple[str, ...], options: EventOptions) -> None:
        query = timed_out._query
        super().__init__(query.settings)
        self._timed_out = timed_out
        self._names = names
        self._options = options
        self._feed = EventFeed(names, options, query.timed, query.named_types)
        clocks = self._feed.clocks
        self._telling = timed_out.telling(Times(lambda: any(clock.iso for clock in clocks.values()), options.unit))

    @property
    def counters(self) -> EventCounters:
        """The counts of the events pushed so far."""
        return self._feed.counters

    def push(self, events: Any, stream: str | None = None, *, type: str | None = None) -> list[dict[str, Any]]:
        """The rows of the partial matches whose windows these events close. Arguments: those of `Session.push`."""
        if type is not None and stream is not None:
            raise OptionError("a push has a stream or a type", "leave one of them out")
        with self._use:
            self._check_open()
            return self._advance(self._feed.push(events, type if stream is None else stream))

    def _advance(self, batches: Iterator[EventBatch]) -> list[dict[str, Any]]:
        return self._join(batches, lambda events: _rows_of(self._telling.advance(events)))

    def _wait_until(self, now: int) -> list[dict[str, Any]]:
        return self._advance(self._feed.advance(now)) + _rows_of(self._telling.wait_until(now))

    def _latest_time(self) -> tuple[int | None, str | None]:
        return self._feed.orderer.reorder.latest, self._feed.time_column

    def _finish(self) -> list[dict[str, Any]]:
        found = self._advance(self._feed.finish())
        self._leave()
        return found + _rows_of(self._telling.close())

    @property
    def _taken(self) -> int:
        return self._feed.taken

    def _identity(self) -> Identity:
        return self._timed_out.identity

    def _contents(self) -> dict[str, Any]:
        return {
            "names": self._names,
            "options": options_to_keep(self._options),
            "feed": self._feed.snapshot(),
            "steps": [run.snapshot() for run in self._telling.runs],
        }

    @staticmethod
    def restore(timed_out: TimedOut, state: dict[str, Any], on_late: OnLate | None = None) -> TimedOutSession:
        """The opposite of `contents`, of the same query."""
        options = EventOptions(**state["options"], on_late=on_late)
        session = TimedOutSession(timed_out, tuple(state["names"]), options)
        session._feed.restore(state["feed"])
        runs = session._telling.runs
        expect(len(runs) == len(state["steps"]), "the progress of each step")
        for run, kept in zip(runs, state["steps"], strict=True):
            run.restore(kept)
            expect_place(run, session._feed)
        return session


def _rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table."""
    rows: list[dict[str, Any]] = in_microseconds(table).to_pylist()
    return rows
