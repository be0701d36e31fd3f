"""The library's face: `compile` a query, `run` it over events, `follow` those that come, or `open` it and push.

A `Query` never changes; `Matches` are lazy, one pass over the events per use; a `Session` is an evaluation in progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from ceql.results.matches import Match
from ceql.runtime.alerts import Alerts
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.evaluation import Matches, matches_of
from ceql.runtime.follow import FollowedMatches, follow
from ceql.runtime.ordered import OrderedMatches
from ceql.runtime.session import Session, identity, open_session, opened, restore
from ceql.runtime.thresholds import Threshold
from ceql.runtime.timed_out import TimedOut
from ceql.runtime.ways import are_valuations, ways_of
from ceql.syntax import ast
from spaseq.core import protocols
from spaseq.core.automata import CEA
from spaseq.core.automata.rma import Limits
from spaseq.core.engine import Settings
from spaseq.core.errors import expect_type
from spaseq.core.events import EventOptions, TupleWords, frame_like
from spaseq.core.events.options import Duration
from spaseq.core.protocols import Written

__all__ = ["Match", "Matches", "Query", "Session", "Stream", "compile_query", "match"]

Stream = Session  # the name that it had before both languages showed one face


def text_of(query: str | Written) -> str:
    """The text of a query that is one, or stands for one. Anything else is given back: `CompiledQuery` refuses it."""
    return query.__ceql__() if isinstance(query, Written) else query


def compile_query(text: str | Written, source: str = "<query>", settings: Settings | None = None) -> Query:
    """A query, parsed, checked and compiled.

    Args: `text` in CEQL, or a value that stands for it; `source` is its name in errors; `settings` are the budgets of
    the engine. Raises: `QuerySyntaxError`, `QuerySemanticsError`, `UnsupportedFeature`, each with line, column and a
    hint.

    >>> compile_query("SELECT * WHERE A AS x ; B AS y WITHIN 10 EVENTS").run(
    ...     [{"type": "A"}, {"type": "C"}, {"type": "B"}]).count()
    1
    """
    return Query(CompiledQuery(text_of(text), source, settings))


def match(
    events: Any, query: str | Written | Query, *, settings: Settings | None = None, schema: Any = None,
    **reading: Unpack[TupleWords],
) -> Any:  # fmt: skip
    """The matches as rows, in a frame of the kind that `events` is. A lazy frame of Polars gives a lazy one, a
    RecordBatchReader a reader, a list of events a list of dicts. Files and others give a pyarrow Table.

    The rows are those of `Matches.to_arrow`: the columns that SELECT computes, or positions and times. Arguments and
    errors: those of `compile_query` and `Query.run`.

    >>> match([{"type": "A", "v": 1}, {"type": "B", "v": 5}], "SELECT y.v - x.v AS rise WHERE A AS x ; B AS y")
    [{'rise': 4}]
    """
    compiled = query if isinstance(query, Query) else compile_query(query, settings=settings)
    return frame_like(events, compiled.run(events, schema=schema, **reading).to_reader)


class Query(protocols.Query):
    """A compiled query. Its evaluations are made from `compiled`."""

    compiled: CompiledQuery

    @property
    def tree(self) -> ast.Query:
        """Its syntax tree."""
        return self.compiled.tree

    @property
    def partition(self) -> tuple[tuple[str, ...], ...]:
        """PARTITION BY, and keys that conditions imply: for each the attributes of which the first not NULL counts."""
        return self.compiled.lowered.partition

    @property
    def selected(self) -> tuple[str, ...]:
        """The attributes that SELECT lists, each as it is written there: `b[price]`."""
        items = self.compiled.tree.selection.items or ()
        return tuple(f"{item.variable}[{name.text}]" for item in items for name in item.attributes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that SELECT computes; () if it lists variables."""
        return () if self.compiled.selected is None else self.compiled.selected.names

    @property
    def window_attribute(self) -> str | None:
        """The attribute that WITHIN is measured in; None for time and events."""
        return self.compiled.lowered.window_attribute

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that conditions read, and those of PARTITION BY without alternatives."""
        return self.compiled.attributes

    def explain(self, format: str = "text") -> str:
        """The plan of the query, for people (`text`), its automaton as a picture (`dot`, `svg`), or both as `json`.

        Raises `OptionError` for another format, and for `svg` without Graphviz (the extra `draw`).
        """
        return self.compiled.explain(format)

    def ways(self, run: Any) -> tuple[CEA, protocols.Ways]:
        """The automaton of a run, or of a list of matches, and the ways of matches through it."""
        program = self.compiled.program_with_labels if are_valuations(run) else self.compiled.program_of(False)
        return program.cea, lambda matches: ways_of(program, matches)

    def alerts(
        self, *, limits: Limits | None = None, at_least: int | None = None, timeframe: Any = None, realert: Any = None
    ) -> Alerts:
        """Says at which events the query matches, without enumerating matches (`ceql.runtime.alerts`).

        Args:
            limits: those of its register match automaton, which forecasts are made of.
            at_least: an alert is reported only if its key has had so many in the `timeframe` up to it, itself included.
                The key is that of PARTITION BY, without which all events are of one key.
            timeframe: a duration: "10m", a timedelta, or nanoseconds.
            realert: no alert is reported so soon after another one of its key that was; `timeframe` if not given.
        """
        partition = tuple(tuple(name.text for name in bracket) for bracket in self.compiled.tree.partition)
        threshold = Threshold.of(at_least, timeframe, realert, partition)
        if limits is None:
            return Alerts(self.compiled, threshold=threshold)
        expect_type("limits", limits, Limits, "spaseq.core.automata.rma.Limits(max_states=…)")
        return Alerts(self.compiled, limits, threshold)

    def timed_out(self) -> TimedOut:
        """The partial matches that time out: the steps that they wait for, and rows (`ceql.runtime.timed_out`).

        Raises `UnsupportedFeature` for a query that has no such steps, by name.

        >>> list(compile_query("SELECT * WHERE A AS x ; B AS y WITHIN 2 EVENTS").timed_out().run(
        ...     [{"type": "A"}, {"type": "C"}, {"type": "C"}, {"type": "B"}]))[0]["x"]
        [0]
        """
        return TimedOut(self.compiled)

    def run(
        self,
        events: Any = None,
        *,
        streams: Mapping[str, Any] | None = None,
        types: Mapping[str, Any] | None = None,
        valuations: bool = False,
        schema: Any = None,
        **reading: Unpack[TupleWords],
    ) -> Matches:
        """The matches of the query, lazily: nothing is read before they are asked for.

        Args:
            events: a pyarrow Table or RecordBatch(Reader), a pandas or Polars frame, a list of dicts, a path, or an
                iterable of these. Paths are of CSV, JSON Lines or Parquet, plain or compressed, a glob, or `-`.
            streams: the same by stream name, if the query reads several.
            types: the same by event type: `{"fail": "failures.csv", "login": table}`. Events are merged by time, those
                of equal times in the order given.
            valuations: matches have the positions that each variable took (`Match.bindings`), and two that differ in
                that are two. A list of attributes in SELECT asks for it too.
            schema: the kinds of the events' attributes: a pyarrow Schema, a dict or a file
                (`ceql.semantics.schemas.read_schema`). The query is checked against it now; without it, when the
                columns of the input are known (tables, frames, CSV, Parquet). A misfit is a `QuerySemanticsError`.

        The words of `reading` set how events are read. Each may be left out:

        * `type_column`: the column of the event type; `type` if not given. A query that names no type, but ANY, takes
          events without one.
        * `type`: the type of all events, if no column holds it.
        * `time`: the column of the time, or two, `date,clock`; `time` or `timestamp` if not given and there. Without
          times a query that needs them is an `OptionError`; `time_from="arrival"` counts the events instead.
        * `time_unit`: s, ms, us or ns, of times that are numbers; s if not given.
        * `interval`: between events whose times are taken from arrival ("1ms"; a timedelta, or int nanoseconds).
        * `lateness`: the most that time may go back.
        * `late`: "error" or "drop", for events that go back further.
        * `on_late`: a function that is called with each one that is dropped, as a `LateEvent`.
        * `delimiter`, `decimal`, `quote`: signs of CSV files; guessed if not given, and said in `Matches.notes`.
        * `encoding`: of CSV and JSON Lines; UTF-8 if not given. `time_format`: of texts that are times, as of
          `datetime.strptime`; ISO 8601 if not given.
        * `column_types`: kinds of columns of CSV, in the words of CAST: `{"id": "TEXT"}` or `"id=TEXT, price=FLOAT"`.
        """
        return matches_of(
            self.compiled, events, streams=streams, types=types, valuations=valuations, schema=schema, **reading
        )

    def follow(
        self,
        events: Any = None,
        *,
        streams: Mapping[str, Any] | None = None,
        types: Mapping[str, Any] | None = None,
        clock: Duration | None = None,
        valuations: bool = False,
        schema: Any = None,
        **reading: Unpack[TupleWords],
    ) -> FollowedMatches:
        """The matches over a stream that goes on: the matches of `run` over all of it, each as it is found.

        `events` is the path of a CSV, TSV or JSON Lines file that grows, a folder into which files are moved, or `-`
        for standard input. `streams` or `types` have such a path for each instead. What is there is merged by time;
        then a silent stream does not hold up the others. The other arguments are those of `run`. If
        events have times, `clock="2s"` lets time go on while nothing comes, by the machine's clock, so much behind it:
        absences are then known as their windows close. An event that takes longer from its time to here is late.
        Raises `OptionError` for what cannot grow.
        """
        return follow(
            self.compiled, events, streams=streams, types=types, clock=clock, valuations=valuations, schema=schema,
            **reading,
        )  # fmt: skip

    def open(
        self,
        state: bytes | None = None,
        *,
        streams: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        valuations: bool = False,
        schema: Any = None,
        **reading: Unpack[TupleWords],
    ) -> Session:
        """An evaluation that events are pushed to. From a snapshot, it goes on at its place, with its options.

        `streams` are the names of the streams, if the query has no FROM with them. `types` are those that pushes name:
        `push(events, type="fail")`. The other arguments are those of `run`; of these, `on_late` goes with a
        snapshot, too. A snapshot of anything else is an `OptionError`. It holds plain data and runs no code; its
        matches are as trustworthy as its author.
        """
        if state is not None:
            self.compiled.declared(schema)
            return opened(self.compiled, state, reading.get("on_late"))
        return open_session(
            self.compiled, streams=streams, types=types, valuations=valuations, schema=schema, **reading
        )

    def in_order(self, names: tuple[str, ...], options: EventOptions, *, iso: bool) -> OrderedMatches:
        """The matches over events that the caller has put in order, as rows that stand for themselves."""
        return OrderedMatches(self.compiled, names, options, lambda: iso)

    @property
    def identity(self) -> Mapping[str, str]:
        """The query that a snapshot of an evaluation belongs to (`spaseq.core.snapshot`)."""
        return identity(self.compiled)

    def reopened(self, contents: dict[str, Any]) -> Session:
        """The evaluation that had these `Session.contents`, for callers that keep them in a snapshot of their own."""
        return restore(self.compiled, contents)

    def stream_names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The streams to read, in their order, if `given` are there; `()` asks for those that the query names.

        Raises `OptionError` for one that is missing or unknown.
        """
        expect_type("the names of streams", given, tuple, "give a tuple of texts")
        return self.compiled.streams(given)
