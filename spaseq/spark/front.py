"""The front door: a query becomes a transformation of DataFrames of tuples or quads, for batches and for streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Unpack

from pyspark.sql import DataFrame

from spaseq.core.errors import OptionError, expect_type
from spaseq.core.events import EventOptions, TupleWords
from spaseq.core.events.options import Duration
from spaseq.core.protocols import Written
from spaseq.language.query import Query, compile_query
from spaseq.spark.session.versions import check_pyspark
from spaseq.spark.tuples.match import batch_rows, check_tasks, kind_name, refuse_form
from spaseq.spark.tuples.plan import Plan, Tabular, TupleQuery, tuple_query

_GRAPHS: Final = re.compile(r"\bDEFINE\s+GPM\b", re.IGNORECASE)
Transformation = Callable[[Any], DataFrame]


class MatchWords(TupleWords, total=False):
    """Keywords of `match`: how tuples are read, and, of a query over graphs, how graphs are."""

    ties: str | None
    entailment: str | None
    knowledge_rows: int
    graphs: str
    reference: bool


def match(
    query: TupleQuery | Tabular | Query | Written | str,
    *,
    kb: Any = None,
    partitions: int | None = None,
    cut: str = "auto",
    events: bool = False,
    positions: bool = False,
    terms: str = "text",
    idle: Duration = 0,
    clock: Duration | None = None,
    malformed: str = "error",
    **reading: Unpack[MatchWords],
) -> Transformation:
    """A transformation of DataFrames of events: `events.transform(spaseq.spark.match(query, time="ts"))`.

    It gives a DataFrame with a row for each match, and no job runs before an action. For CEQL the columns of the key
    come first: PARTITION BY, or an equality that every event is under. Then comes what SELECT computes, with Spark's
    types; `SELECT a[name]` gives a column `a.name`, a list. For SPAseq a column for each variable comes first. Both end
    with `match_start` and `match_end`, in the form of the input's times.

    Args:
        query: what `ceql.compile` or `spaseq.compile` gives, its text, or a pattern of `ceql.event`, `ceql.seq` ….
            `ceql.compile(text).timed_out()` gives the partial matches that time out: `waiting_for`, `since` and
            `start_time`, then the columns of matches. A `ceql.Network` gives `query`, the name of a match's query,
            and a column for each query, a struct of its row.
        kb: of a query over graphs, the background knowledge, as for `run`. Its answers are worked out when the
            transformation is applied, which runs jobs if it is on Spark.
        partitions: how many tasks find matches. By default as many as a stage of the session has
            (`spark.sql.shuffle.partitions`), of which Spark may make fewer; over graphs, as many as run at a time.
        cut: how to divide the work: "auto", "keys", "slices" (of time), "keys and slices" or "one". What would change
            an answer is refused. With "keys and slices" groups of keys with more than twice their share are cut by
            time, into fewer than twice `partitions` tasks. Keys and times are read once before, to find these groups.
            Over graphs "auto" or "one".
        events: also a column `events`, a list of structs of the input's columns. Not over graphs.
        positions: also `start`, `end` and `positions`: the numbers of tuples, in the order of time, then of their
            streams, then as Spark reads them; over graphs, of instants. One task counts them, so it costs another
            pass. Not in a stream.
        terms: of a query over graphs, the form of terms. "text" is N-Triples, and "value" an IRI or the characters of a
            literal. "struct" has `type` ("uri", "literal" or "bnode"), `value`, `datatype` and `language`, as in
            SPARQL's JSON results. "key" is for `spaseq.rdf.term_from_key`.
        idle, clock, malformed: of streams; as of `start_tuples`. With `clock` give the writer a trigger:
            `.trigger(processingTime="1 second")`.

    A streaming DataFrame gives one, of the same columns, for any sink: `.writeStream.toTable(…)`. Its rows come when
    every stream is past the end of their matches. `lateness` and `late` are about events that come in a later batch
    than they should. `start_tuples` and `start` also refuse the checkpoint of another query, and lock it.

    Tuples: `type_column`, `type`, `time`, `time_from` and `time_unit` are as for CEQL's `run`. Events are sorted by
    time, so none is late. Equal times keep the order of the streams, then that in which Spark reads the rows. With
    `time_from="arrival"`, and without a column of times if the query needs none, the k-th row of a DataFrame is at k
    times `interval`: one task counts them.

    Graphs: a row is a triple of an event (`spaseq.spark.ingest.frames`). `time_unit`, `ties`, `entailment`,
    `knowledge_rows`, `graphs` and `reference` are as for `run`.

    The transformation takes a DataFrame, or, if the query reads several streams, a dict: `match(query)({"S": frame,
    …})`. Raises `OptionError` for options that cannot be used, and when it is applied `OptionError` and `EventError`
    for columns that do not fit. What goes wrong in a task comes out as clearly only through `spaseq.spark.collect`.
    """
    compiled = query_of(query)
    check_tasks("partitions", partitions)
    for name, value in (("events", events), ("positions", positions)):
        expect_type(name, value, bool, "it is True or False")
    words: dict[str, Any] = {"partitions": partitions, "cut": cut, "events": events, "positions": positions}
    words |= {"terms": terms, "idle": idle, "clock": clock, "malformed": malformed}
    if isinstance(compiled, Query):
        return _over_graphs(compiled, kb, words, dict(reading))
    for name, given in (("kb", kb is not None), ("terms", terms != "text")):
        if given:
            raise OptionError(f"{name}= is for queries over graphs", "leave it out")
    return _over_tuples(compiled, words, EventOptions.parse(**reading))  # type: ignore[misc]  # or it names the word


def _over_tuples(query: TupleQuery, words: dict[str, Any], options: EventOptions) -> Transformation:
    refuse_form(options)
    Plan.of(query, words["cut"])

    def transform(given: DataFrame | Mapping[str, DataFrame]) -> DataFrame:
        own = {name: words[name] for name in ("partitions", "events")}
        if not _is_stream(given, words):
            return batch_rows(query, given, options, **own, cut=words["cut"], positions=words["positions"])
        check_pyspark("start_tuples")
        from spaseq.spark.streaming.tuple_stream import stream_rows  # older versions lack its operators

        return stream_rows(query, given, options, **own, silence=_silence(words), malformed=words["malformed"])

    return transform


def _over_graphs(query: Query, kb: Any, words: dict[str, Any], reading: dict[str, Any]) -> Transformation:
    if words["events"]:
        hint = "SELECT the variables that are wanted of them; positions=True gives their instants"
        raise OptionError("events=True is for tuples: a row has no place for graphs", hint)
    check_pyspark("run")
    from spaseq.spark.batch.quads import rows_over_quads  # older versions lack its operators
    from spaseq.spark.session.options import QueryOptions

    options = QueryOptions.of(None, malformed=words["malformed"], **reading)
    own = {name: words[name] for name in ("partitions", "terms")}

    def transform(given: DataFrame | Mapping[str, DataFrame]) -> DataFrame:
        if not _is_stream(given, words):
            return rows_over_quads(query, given, kb, options, **own, cut=words["cut"], positions=words["positions"])
        from spaseq.spark.streaming.graph_stream import stream_rows_over_quads

        return stream_rows_over_quads(query, given, kb, options, **own, silence=_silence(words))

    return transform


def _silence(words: Mapping[str, Any]) -> Any:
    """The `Silence` of a stream's words."""
    from spaseq.spark.streaming.watermark import Silence

    return Silence.of(words["idle"], words["clock"])


def _is_stream(given: DataFrame | Mapping[str, DataFrame], words: Mapping[str, Any]) -> bool:
    """True if the events are streams. Raises `OptionError` for words that are for streams, or are not."""
    frames = given.values() if isinstance(given, Mapping) else [given]
    found = any(getattr(frame, "isStreaming", False) for frame in frames)
    usual = {"positions": False, "cut": "auto"} if found else {"idle": 0, "clock": None, "malformed": "error"}
    for name, value in usual.items():
        if words[name] != value:
            hint = _INSTEAD.get(name, "leave it out")
            kinds = "is not for a stream" if found else "is for a stream, and these events are all there"
            raise OptionError(f"{name}={words[name]!r} {kinds}", hint)
    return found


_INSTEAD: Final = {
    "positions": "events=True gives the matched tuples",
    "malformed": "spaseq.spark.run counts the rows of graphs that it leaves out; of tuples, filter them out before",
}


def explain_match(query: TupleQuery | Tabular | Query | Written | str, *, cut: str = "auto") -> str:
    """The division of the work by `match`, as far as the query alone says. A line each."""
    compiled = query_of(query)
    if not isinstance(compiled, Query):
        return "\n".join(Plan.of(compiled, cut).explain())
    check_pyspark("explain")
    from spaseq.spark.batch.quads import parts_of
    from spaseq.spark.session.layout import lay_out

    return "\n".join(parts_of(lay_out(compiled.compiled), compiled, cut).explain())


def query_of(query: Any) -> TupleQuery | Query:
    """The query. Raises `OptionError` for what is none, and the errors of the language for a text."""
    built = isinstance(query, Written)
    if built or isinstance(query, str):
        found: TupleQuery | Query = (
            compile_query(query) if not built and _GRAPHS.search(query) else import_module("ceql").compile(query)
        )
        return found
    query = tuple_query(query)
    if isinstance(query, Query) or (hasattr(query, "window_attribute") and hasattr(query, "stream_names")):
        return query
    hint = "match(ceql.compile(text)), match(spaseq.compile(text)), or match(text)"
    raise OptionError(f"match takes a query, compiled or a text, and this is {kind_name(query)}", hint)
