"""The matches of a query over events that are there: read, checked and evaluated as matches are asked for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Unpack, cast

import pyarrow as pa

from ceql.operators.values import KIND_WORDS
from ceql.results.bindings import Shown
from ceql.results.matches import Match, MatchTable, empty_table, join_tables
from ceql.results.selected import Times, value_type
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.run import Run
from ceql.runtime.unmatched import Lacking, unknown_attributes, unlike_keys, why_none
from ceql.semantics.schemas import Schema, infer
from ceql.semantics.types import check_types
from spaseq.core.collected import Lazy, Part
from spaseq.core.drawing import Timeline, matches_html, time_text, timeline_of
from spaseq.core.engine import Program, Progress
from spaseq.core.engine.opening import explain_evaluator
from spaseq.core.errors import EventError, OptionError, expect_count, expect_type
from spaseq.core.events import EventBatch, EventCounters, EventOptions, EventStream, TupleWords
from spaseq.core.events.mixed import flat_type
from spaseq.core.measure import shorten
from spaseq.core.watch import check, limited, limited_steps


def matches_of(
    query: CompiledQuery,
    events: Any = None,
    *,
    streams: Mapping[str, Any] | None = None,
    types: Mapping[str, Any] | None = None,
    valuations: bool = False,
    schema: Any = None,
    **reading: Unpack[TupleWords],
) -> Matches:
    """The matches over these events, lazily. Arguments: those of `ceql.query.Query.run`.

    Raises `OptionError` for events that cannot be used, `QuerySemanticsError` if the query does not fit the schema.
    """
    return Matches(
        query,
        *asked_of(query, events, streams=streams, types=types, valuations=valuations, schema=schema, **reading),
    )


def asked_of(
    query: CompiledQuery,
    events: Any,
    *,
    streams: Mapping[str, Any] | None,
    types: Mapping[str, Any] | None,
    valuations: bool,
    schema: Any,
    **reading: Unpack[TupleWords],
) -> tuple[dict[str, Any], EventOptions, bool, Schema | None]:
    """The sources by stream, the options, if valuations are shown, and the schema, of the arguments of `matches_of`."""
    declared = query.declared(schema)
    expect_type("valuations", valuations, bool, "it is True or False")
    options = EventOptions.parse(**reading)
    if types is not None:
        options = replace(options, by_type=True)
    sources = query.sources(events, streams, types)
    query.check_given(options.typed_by(tuple(sources)))
    return sources, options, query.shows(valuations), declared


class Matches(Lazy[Match]):
    """The matches of a query over a stream: an iterable, evaluated as it is read. Each use reads the events anew."""

    def __init__(
        self, query: CompiledQuery, sources: dict[str, Any], options: EventOptions, valuations: bool,
        schema: Schema | None,
    ) -> None:  # fmt: skip
        self._query = query
        self._schema = schema
        self._valuations = valuations
        self._sources = sources
        self._options = options
        self._run: Run | None = None
        self._lacking: Lacking | None = None
        self._used = False
        self._times: Times | None = None
        self._watcher: Callable[[EventBatch | int | None], None] | None = None
        self._types: dict[str, pa.DataType] = {}
        self._known = False
        self.counters: EventCounters = EventCounters()

    def __bool__(self) -> bool:
        """True if there is a match; reads no further than the batch that completes the first."""
        return self.count(1) > 0

    def tables(self) -> Iterator[MatchTable]:
        """The matches in columns, as many at a time as the engine gives."""
        return limited_steps(self._tables(), self._query.settings)

    def _tables(self) -> Iterator[MatchTable]:
        run, stream = self.begin()
        bindings = self._query.bindings(self._valuations, self._schema)
        computing = self._query.computing(self.form_of_times(), self._schema)
        for events in stream:
            for matches, history in run.advance(events):
                yield MatchTable.of(matches, history, bindings, computing)
        for rest, history in run.close():
            yield MatchTable.of(rest, history, bindings, computing)

    def count(self, limit: int | None = None) -> int:
        """The number of matches, or `limit` if there are as many; none is written out. No event is evaluated behind
        those that complete so many."""
        if limit is not None:
            expect_count("limit", limit)
        with limited(self._query.settings):
            run, stream = self.begin(self._query.read, self._query.counting(self._valuations))
            found = 0
            for events in stream:
                if limit is not None and found >= limit:
                    return limit
                found += run.count(events, None if limit is None else limit - found)
                check()
            if limit is None or found < limit:
                found += run.count(None, None if limit is None else limit - found)
        return found if limit is None else min(found, limit)

    def to_arrow(self) -> pa.Table:
        """All matches as a table: the columns that SELECT computes; else start, end, positions, start_time, end_time.

        Valuations have for each variable v a column `v` of the positions it took, and columns `v.attribute`: lists.
        """
        return self.table_of(list(self.tables()))

    def parts(self) -> Iterator[Part[Match]]:
        """`tables`."""
        return self.tables()

    def table_of(self, parts: Sequence[Part[Match]], **form: Any) -> pa.Table:
        """`to_arrow`, of some of the `parts`; it has no other forms."""
        tables = [cast("MatchTable", part).to_arrow(self.counters.iso_times, **form) for part in parts]
        return join_tables(tables) if tables else self.empty()

    def to_reader(self) -> pa.RecordBatchReader:
        """`to_arrow` as it is read, a part at a time.

        The columns are known before the events are for matches with positions, and if the input has columns of known
        types (tables, frames, files of CSV and Parquet). Else all matches are found first.
        """
        parts = self.tables()
        first = next(parts, None)
        schema = None if first is None else self._fixed_schema()
        if first is None or schema is None:
            return self.table_of([] if first is None else [first, *parts]).to_reader()
        tables = (part.to_arrow(self.counters.iso_times).cast(schema) for part in chain((first,), parts))
        return pa.RecordBatchReader.from_batches(schema, (batch for table in tables for batch in table.to_batches()))

    def _fixed_schema(self) -> pa.Schema | None:
        """The columns of `to_arrow`, if these are known behind the first match; else None."""
        schema = self.empty().schema
        fixed = not self._valuations if self._query.selected is None else self._known
        return schema if fixed and not any(pa.types.is_null(kind) for kind in schema.types) else None

    def empty(self) -> pa.Table:
        """The table of no matches, of the columns that are known without any."""
        if self._query.selected is not None:
            types = self._query.selected.types(self._types, self.form_of_times().type)
            return pa.schema([(field.name, flat_type(field.type)) for field in types]).empty_table()
        return empty_table(self.counters.iso_times, self.shown, repeats=self.repeats)

    def with_times(self, *, iso: bool, unit: str) -> Matches:
        """The same matches; SELECT computes with times as dates, or else as numbers in `unit`, whatever events have."""
        found = copy.copy(self)
        found._times = Times(lambda: iso, unit)
        return found

    def form_of_times(self) -> Times:
        """The form in which SELECT has the times of events."""
        counters = self.counters
        return self._times or Times(lambda: counters.iso_times, self._options.unit)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that SELECT computes."""
        return () if self._query.selected is None else self._query.selected.names

    @property
    def repeats(self) -> bool:
        """True if a match is reported again after each silence behind it."""
        return self._query.repeats

    @property
    def by_group(self) -> bool:
        """True if a row stands for all matches of a group."""
        return self._query.summing is not None

    @property
    def shown(self) -> Shown | None:
        """The variables that matches show, and their attributes, if matches are valuations."""
        return self._query.shown if self._valuations else None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """`to_reader`, for DuckDB, Polars and others that read Arrow's streams."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def begin(
        self, wanted: Collection[str] | None = None, program: Program | None = None
    ) -> tuple[Run, Iterator[EventBatch]]:
        """A run of the query's program, or of another one made of it, and the events; only `wanted` attributes."""
        run, stream = self.begin_as_it_comes(wanted, program)
        return run, (batch for batch in stream if not isinstance(batch, int))

    def begin_as_it_comes(
        self, wanted: Collection[str] | None = None, program: Program | None = None
    ) -> tuple[Run, Iterator[EventBatch | int]]:
        """As `begin`, with the times of `spaseq.core.events.EventStream.as_it_comes` behind the first batch."""
        if self._used:
            expect_again(self._sources.values())
        self._used = True
        if self._watcher is not None:
            wanted = None
        stream = EventStream(self._sources, self._options, wanted, self._query.timed, self._query.named_types)
        self.counters = stream.counters
        ordering = None if program else self._query.ordering(self.form_of_times())
        program = program or self._query.program(self._valuations)
        self._run = Run(self._query.lowered, program, ordering=ordering)
        self._run.counters = self.counters
        self.counters.about(self._run)
        self._lacking = Lacking(self._query.tree) if wanted is None else None
        batches = self._check(stream)
        return self._run, batches if self._watcher is None else self._watch(batches, self._watcher)

    def watched_by(self, watcher: Callable[[EventBatch | int | None], None]) -> None:
        """Call `watcher` with each batch of events of the next use, with the times (ns) of `begin_as_it_comes` between
        them, and with None at their end."""
        self._watcher = watcher

    def _watch(
        self, batches: Iterator[EventBatch | int], watcher: Callable[[EventBatch | int | None], None]
    ) -> Iterator[EventBatch | int]:
        for events in batches:
            watcher(events)
            yield events
        watcher(None)

    def explain(self) -> str:
        """The evaluator of the events so far, and its counts."""
        return "no events were read" if self._run is None else explain_evaluator(self._run.evaluator)

    def __repr__(self) -> str:
        return f"<ceql.Matches of {shorten(self._query.text, 60)!r}>"

    def _repr_html_(self) -> str:
        if any(_once(source) for source in self._sources.values()):
            return "<p>matches over events that can be read only once: none is shown here</p>"
        if self.columns:
            return matches_html(self, self.columns, lambda match: tuple(match.row.values()))
        return matches_html(
            self, ("start", "end", "positions", "time", *(("bindings",) if self._valuations else ())), _row
        )

    def timeline(self, limit: int = 200) -> Timeline:
        """The first `limit` matches on a time axis, over positions if events have no dates: `svg()`, `html()`,
        `save(path)`; a notebook shows it."""
        return timeline_of(self, title=self._query.source, limit=limit)

    def why_none(self) -> list[str]:
        """Reasons for no match in the latest use, for people: events by type, their first and last times, and the parts
        of the query that no event fulfilled. A line each."""
        if self._run is None:
            return ["no events were read"]
        return why_none(self._query, self._run, self.counters, self._options)

    def progress(self) -> Progress | None:
        """The progress of the latest use; None if it is not known: before the first, and of lazy evaluators."""
        return None if self._run is None else self._run.progress()

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for each guess in the latest use about options not given, and for attributes that no event had."""
        partition = None if self._run is None else self._run.partition
        unlike = () if partition is None else unlike_keys(partition.kinds)
        lacking = () if self._lacking is None else self._lacking.lines(self.counters.attributes)
        unknown = unknown_attributes(self._query, self.counters.attributes) if self.counters.events else ()
        return (*self.counters.guesses, *unknown, *lacking, *unlike)

    def _check(self, stream: EventStream) -> Iterator[EventBatch | int]:
        """The batches; before the first, the query is checked against the columns of the input."""
        batches = stream.as_it_comes()
        first = next((batch for batch in batches if not isinstance(batch, int)), None)
        for own in stream.schemas.values():
            self._types |= {field.name: value_type(field.type) for field in own}
        schema = infer(self._sources, stream.schemas)
        self._known = schema is not None and schema.closed
        if schema is not None:
            if self._schema is not None:
                _check_declared(self._schema, schema)
            else:
                check_types(self._query.tree, schema, self._query.text, self._query.source)
        for batch in () if first is None else chain((first,), batches):
            if self._lacking is not None and not isinstance(batch, int):
                self._lacking.note(batch)
            yield batch


def _row(match: Match) -> tuple[Any, ...]:
    taken = "  ".join(f"{name}={','.join(map(str, places))}" for name, places in match.bindings.items())
    row = (match.start, match.end, " ".join(map(str, match.positions)), time_text(match.time))
    return (*row, taken) if taken else row


def _check_declared(declared: Schema, found: Schema) -> None:
    """`EventError` if the input's columns are of other kinds than the schema says."""
    for name, kind in found.common.items():
        said = declared.kind(name, None)
        if said is not None and kind is not None and said != kind and (said, kind) != ("time", "text"):
            problem = f"attribute {name} is {KIND_WORDS[kind]} here and {KIND_WORDS[said]} in {declared.source}"
            raise EventError(problem, source=found.source, attribute=name, hint="is it the right schema?")


def expect_again(sources: Iterable[Any]) -> None:
    """`OptionError` if one of the sources, which were read, can be read only once."""
    if any(map(_once, sources)):
        raise OptionError("these events can be read only once", "call run again, with the events from their start")


def _once(source: Any) -> bool:
    return (
        source == "-"
        if isinstance(source, str)
        else hasattr(source, "__next__") or isinstance(source, pa.RecordBatchReader)
    )
