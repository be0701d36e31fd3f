"""The library's face: `compile` a query, `run` it over events, or `open` it and push.

A `Query` never changes; `Matches` are lazy, one pass over the events per use; a `Stream` is one evaluation in progress.
"""

from __future__ import annotations

import difflib
import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ceql import ast
from ceql.bindings import Bindings, Shown, lists_attributes
from ceql.check import check, conditions, event_types
from ceql.lower import lower
from ceql.matches import Match, MatchTable, empty_table
from ceql.options import Duration, event_options
from ceql.parse import parse
from ceql.printer import print_query
from ceql.rewrites import rewrite
from ceql.schemas import Schema, inferred, read_schema
from ceql.stream import Stream, identity, opened, restored
from ceql.types import check_types
from ceql.values import KIND_WORDS
from ceql.walk import attributes_of
from spaseq.engine import Program, Settings, compile_program
from spaseq.errors import EventError, OptionError, named_query
from spaseq.events import EventBatch, EventOptions, EventStream, Summary
from spaseq.pattern import Pattern

if TYPE_CHECKING:
    import pandas

    from ceql.recognise import Alerts
    from ceql.run import Run

__all__ = ["Match", "Matches", "Query", "Stream", "compile_query"]


def compile_query(text: str, *, source: str = "<query>", settings: Settings | None = None) -> Query:
    """A query, parsed, checked and compiled.

    Args: `text` in CEQL; `source` is what errors call it; `settings` are the budgets of the engine.
    Raises: `QuerySyntaxError`, `QuerySemanticsError`, `UnsupportedFeature`, each with line, column and a hint.

    >>> compile_query("SELECT * WHERE A AS x ; B AS y WITHIN 10 EVENTS").run(
    ...     [{"type": "A"}, {"type": "C"}, {"type": "B"}]).count()
    1
    """
    if not isinstance(text, str):
        raise OptionError(f"a query is text, and this is a {type(text).__name__}", "open(path).read() reads a file")
    tree = parse(text, source)
    check(tree, text, source)
    return Query(text, source, tree, settings or Settings())


class Query:
    """A compiled query. `text` is as written, `tree` its syntax tree."""

    def __init__(self, text: str, source: str, tree: ast.Query, settings: Settings) -> None:
        self.text = text
        self.source = source
        self.tree = tree
        self._rewritten = rewrite(tree, settings.rewrite_size)
        self._lowered = lower(self._rewritten.query, text, source, settings.repeated_events)
        self._settings = settings
        self._shown = Shown.of(tree)
        self._valuations = lists_attributes(tree)
        self._programs: dict[bool, Program] = {}
        self._program_of(self._valuations)

    def _program_of(self, valuations: bool) -> Program:
        """The automaton that reports complex events, or valuations; each compiled when it is first asked for."""
        if valuations not in self._programs:
            with named_query(self.source):
                self._programs[valuations] = compile_program(
                    self._lowered.pattern,
                    self._lowered.window,
                    strict=self._lowered.strict,
                    choice=self._lowered.choice,
                    absent=self._lowered.absent,
                    registers=self._lowered.registers,
                    settings=self._settings,
                    valuations=valuations,
                    shown=frozenset(self._shown.variables) if valuations else None,
                )
        return self._programs[valuations]

    def _bindings_of(self, valuations: bool, schema: Schema | None = None) -> Bindings | None:
        labels = self._program_of(valuations).labels
        return None if labels is None else Bindings(self._shown, labels, None if schema is None else schema.arrow)

    def __reduce__(self) -> tuple[Any, ...]:
        return (functools.partial(compile_query, source=self.source, settings=self._settings), (self.text,))

    @property
    def partition(self) -> tuple[tuple[str, ...], ...]:
        """PARTITION BY, and what conditions imply: for each key the attributes of which the first not NULL counts."""
        return self._lowered.partition

    @property
    def window_attribute(self) -> str | None:
        """The attribute that WITHIN is measured in; None for time and events."""
        return self._lowered.window_attribute

    @property
    def pattern(self) -> Pattern:
        """The query as a pattern of the core."""
        return self._lowered.pattern

    @property
    def automaton(self) -> Program:
        """The compiled automaton with its window and budgets."""
        return self._program_of(self._valuations)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is probably not meant: parts that no event can match, and a query all of which is such."""
        found = tuple(f"{self.source}:{part}" for part in self._rewritten.removed)
        if self._rewritten.unsatisfiable:
            return (*found, f"{self.source}: no stream has a match: the query reports nothing")
        return found

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that conditions read, and PARTITION BY where it leaves no choice."""
        found = [a.name for c in conditions(self.tree.where) for a in attributes_of(c)]
        found += [name.text for bracket in self.tree.partition if len(bracket) == 1 for name in bracket]
        return tuple(dict.fromkeys(found))

    @property
    def _read(self) -> frozenset[str]:
        """Every attribute that evaluation looks at."""
        window = () if self._lowered.window_attribute is None else (self._lowered.window_attribute,)
        return frozenset([*self.attributes, *itertools.chain(*self._lowered.partition), *window])

    def alerts(self) -> Alerts:
        """Says at which events the query matches, without enumerating matches (`ceql.recognise`)."""
        from ceql.recognise import alerts

        return alerts(self)

    def explain(self) -> str:
        """How the query is understood and run, as text."""
        lowered = self._lowered
        lines = ["query:", *("  " + line for line in print_query(self.tree).splitlines())]
        lines += self._explain_rewrites()
        if lowered.window_attribute is not None:
            lines.append(f"window over: {lowered.window_attribute} (its own numbers, closed)")
        if lowered.partition:
            keys = ", ".join(" or ".join(bracket) for bracket in lowered.partition)
            lines.append(f"partition by: {keys}")
        for key in lowered.keys:
            lines.append(
                f"  {key} by conditions that every event of a match is under; they need no evaluation of their own"
            )
        if lowered.strict:
            lines.append("selection: STRICT, matched positions are consecutive")
        if lowered.absent is not None:
            lines.append(f"at the end: {lowered.absent}; matches are reported as their windows close")
        return "\n".join([*lines, "automaton:", *("  " + line for line in self.automaton.explain().splitlines())])

    def _explain_rewrites(self) -> Iterator[str]:
        """What the query is compiled as, where that is something else, and what was left out of it."""
        if self._rewritten.query != self.tree:
            yield "compiled as:"
            yield from ("  " + line for line in print_query(self._rewritten.query).splitlines())
        if self._rewritten.removed:
            yield "left out, as no stream matches it:"
            yield from (f"  {part}" for part in self._rewritten.removed)
        if self._rewritten.unsatisfiable:
            yield "  which is all of it: the query reports nothing"
        for name, span in self._rewritten.unsafe:
            place = f"{span.line}:{span.column}"
            yield f"{name} is bound again at {place}: it holds the events of both (not safe, seed CEL)"

    def run(
        self,
        events: Any = None,
        *,
        streams: Mapping[str, Any] | None = None,
        type_column: str | None = None,
        time_column: str | None = None,
        time_from: str | None = None,
        time_unit: str = "s",
        interval: Duration = "1ms",
        lateness: Duration = 0,
        late: str = "error",
        valuations: bool = False,
        schema: Any = None,
    ) -> Matches:
        """The matches of the query, lazily: nothing is read before they are asked for.

        Args:
            events: a pyarrow Table or RecordBatch(Reader), a pandas or Polars frame, a list of dicts, a path (CSV, JSON
                Lines, Parquet, plain or compressed, a glob, `-`), or an iterable of these.
            streams: the same by stream name, where the query reads several.
            type_column: the column of the event type; `type` if not given.
            time_column: the column of the time; `time` or `timestamp` if not given and there, else times are taken from
                arrival. `time_from="arrival"` takes them from arrival in any case.
            time_unit: s, ms, us or ns, of times that are numbers.
            interval: between events whose times are taken from arrival ("1ms"; a timedelta, or int nanoseconds).
            lateness, late: how far time may go back, and whether what goes further is an "error" or to "drop".
            valuations: matches say which variable took which positions (`Match.bindings`), and two that differ in that
                are two. A list of attributes in SELECT asks for it too.
            schema: what kinds of attributes events have: a pyarrow Schema, a dict or a file
                (`ceql.schemas.read_schema`). The query is checked against it now; without it, when the columns of the
                input are known (tables, frames, CSV, Parquet). A misfit is a `QuerySemanticsError`.
        """
        declared = self._declared(schema)
        options = event_options(type_column, time_column, time_from, time_unit, interval, lateness, late)
        return Matches(self, self._sources(events, streams), options, valuations or self._valuations, declared)

    def open(
        self,
        state: bytes | None = None,
        *,
        streams: Iterable[str] | None = None,
        type_column: str | None = None,
        time_column: str | None = None,
        time_from: str | None = None,
        time_unit: str = "s",
        interval: Duration = "1ms",
        lateness: Duration = 0,
        late: str = "error",
        valuations: bool = False,
        schema: Any = None,
    ) -> Stream:
        """An evaluation that events are pushed to; from a snapshot, it goes on where that was taken, options and all.

        `streams` are the names of the streams, where the query has no FROM to say so. The other arguments are those of
        `run`. A snapshot of anything else is an `OptionError`. It holds plain data and runs no code; its matches are as
        trustworthy as whoever wrote it.
        """
        self._declared(schema)
        if state is not None:
            return opened(self, state)
        options = event_options(type_column, time_column, time_from, time_unit, interval, lateness, late)
        return Stream(self, self._names(tuple(streams or ())), options, valuations or self._valuations)

    @property
    def identity(self) -> Mapping[str, str]:
        """What a snapshot of an evaluation of this query says that it is of (`spaseq.snapshot`)."""
        return identity(self)

    def reopened(self, contents: dict[str, Any]) -> Stream:
        """The evaluation that had these `Stream.contents`: for whoever keeps them in a snapshot of its own."""
        return restored(self, contents)

    def _declared(self, given: Any) -> Schema | None:
        """The schema that was given, if any, once the query is known to fit it."""
        if given is None:
            return None
        schema = read_schema(given)
        check_types(self.tree, schema, self.text, self.source)
        return schema

    def _from(self) -> tuple[str, ...]:
        """The streams that the query names."""
        if self.tree.streams:
            return tuple(s.text for s in self.tree.streams)
        return tuple(dict.fromkeys(a.stream.text for a in event_types(self.tree.where) if a.stream is not None))

    def stream_names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The streams to read, in their order, where `given` are there; `()` asks for those that the query names.

        Raises `OptionError` for one that is missing or unknown.
        """
        return self._names(given)

    def _names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        named = self._from()
        if not given:
            return named or ("",)
        for name in given:
            if self.tree.streams and name not in named:
                raise _unknown_stream(name, named)
        for name in named:
            if name not in given:
                raise OptionError(
                    f"no events for stream {name}", f"the query reads {', '.join(named)}; given: {', '.join(given)}"
                )
        return named if self.tree.streams else given

    def _sources(self, events: Any, streams: Mapping[str, Any] | None) -> dict[str, Any]:
        if (events is None) == (streams is None):
            problem = "no events to run over" if events is None else "events and streams are given together"
            raise OptionError(problem, "give run(events), or run(streams={name: events, …})")
        if streams is not None:
            if not streams:
                raise OptionError("no streams to run over", "run(streams={name: events, …})")
            return {name: streams[name] for name in self._names(tuple(streams))}
        named = self._from()
        if len(named) > 1:
            raise OptionError(
                f"the query reads several streams: {', '.join(named)}",
                "give each its events: streams={name: events, …} (--stream NAME=FILE for each)",
            )
        return {(named or ("",))[0]: events}


def _unknown_stream(name: str, named: tuple[str, ...]) -> OptionError:
    close = difflib.get_close_matches(name, named, 1, 0.6)
    hint = f"did you mean {close[0]}?" if close else f"the query reads {', '.join(named)}"
    return OptionError(f"unknown stream {name}", hint)


class Matches:
    """The matches of a query over a stream: an iterable, evaluated as it is read. Each use reads the events anew."""

    def __init__(
        self, query: Query, sources: dict[str, Any], options: EventOptions, valuations: bool, schema: Schema | None
    ) -> None:
        self._query = query
        self._schema = schema
        self._valuations = valuations
        self._sources = sources
        self._options = options
        self._run: Run | None = None
        self._used = False
        self.summary = Summary()

    def __iter__(self) -> Iterator[Match]:
        for table in self.tables():
            yield from table

    def tables(self) -> Iterator[MatchTable]:
        """The matches in columns, as many at a time as the engine gives."""
        run, stream = self._begin()
        bindings = self._query._bindings_of(self._valuations, self._schema)
        for events in stream:
            for matches, history in run.advance(events):
                yield MatchTable(matches, history, bindings)
        rest, history = run.close()
        if len(rest):
            yield MatchTable(rest, history, bindings)

    def count(self) -> int:
        """How many matches there are; none of them is written out."""
        run, stream = self._begin(self._query._read)
        return sum(run.count(events) for events in stream) + len(run.close()[0])

    def to_arrow(self) -> pa.Table:
        """All matches as a table: start, end, positions, start_time, end_time.

        Valuations have for each variable v a column `v` of the positions it took, and columns `v.attribute`: lists.
        """
        parts = list(self.tables())
        tables = [part.to_arrow(self.summary.iso_times) for part in parts]
        if not tables:
            return empty_table(shown=self.shown)
        return pa.concat_tables(tables, promote_options="none" if self.shown is None else "permissive")

    @property
    def shown(self) -> Shown | None:
        """The variables that matches show, and their attributes, where they are valuations."""
        return self._query._shown if self._valuations else None

    def to_pandas(self) -> pandas.DataFrame:
        """All matches as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def _begin(
        self, wanted: Collection[str] | None = None, program: Program | None = None
    ) -> tuple[Run, Iterator[EventBatch]]:
        """A run of the query's program, or of another one made of it, and the events; only `wanted` attributes."""
        from ceql.run import Run

        if self._used and any(_once(s) for s in self._sources.values()):
            raise OptionError("these events can be read only once", "call run again, with the events from their start")
        self._used = True
        stream = EventStream(self._sources, self._options, wanted)
        self.summary = stream.summary
        self._run = Run(self._query._lowered, program or self._query._program_of(self._valuations))
        return self._run, self._checked(stream)

    def explain(self) -> str:
        """How the events were evaluated, as far as they have been: by which evaluator, and what it counted."""
        return "no events were read" if self._run is None else self._run.explain()

    def _checked(self, stream: EventStream) -> Iterator[EventBatch]:
        """The batches; before the first, the query is checked against the columns of the input."""
        batches = iter(stream)
        first = next(batches, None)
        schema = inferred(self._sources, stream.schemas)
        if schema is not None:
            if self._schema is not None:
                _check_declared(self._schema, schema)
            else:
                check_types(self._query.tree, schema, self._query.text, self._query.source)
        if first is not None:
            yield first
            yield from batches


def _check_declared(declared: Schema, found: Schema) -> None:
    """`EventError` where the input's columns are of other kinds than the schema says."""
    for name, kind in found.common.items():
        said = declared.kind(name, None)
        if said is not None and kind is not None and said != kind and (said, kind) != ("time", "text"):
            problem = f"attribute {name} is {KIND_WORDS[kind]} here and {KIND_WORDS[said]} in {declared.source}"
            raise EventError(problem, source=found.source, attribute=name, hint="is it the right schema?")


def _once(source: Any) -> bool:
    return (
        source == "-"
        if isinstance(source, str)
        else hasattr(source, "__next__") or isinstance(source, pa.RecordBatchReader)
    )
