"""The front door for tables: a query becomes a transformation of DataFrames, for batches and for streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Unpack

from pyspark.sql import DataFrame

from spaseq.core.errors import OptionError, expect_type
from spaseq.core.events import EventOptions, TupleWords
from spaseq.spark.session.versions import check_pyspark
from spaseq.spark.tuples.match import batch_rows, check_tasks, kind_name, refuse_form
from spaseq.spark.tuples.plan import Plan, TupleQuery

_GRAPHS: Final = re.compile(r"\bDEFINE\s+GPM\b", re.IGNORECASE)
Transformation = Callable[[Any], DataFrame]


def match(
    query: TupleQuery | str,
    *,
    partitions: int | None = None,
    cut: str = "auto",
    events: bool = False,
    positions: bool = False,
    idle: int = 0,
    malformed: str = "error",
    **reading: Unpack[TupleWords],
) -> Transformation:
    """A transformation of DataFrames of events: `events.transform(spaseq.spark.match(query, time="ts"))`.

    It gives a DataFrame with a row for each match. The columns of the key come first: PARTITION BY, or an equality that
    every event is under. Then comes what SELECT computes, with Spark's types, then `match_start` and `match_end`, in
    the form of the input's times. `SELECT a[name]` gives a column `a.name`, a list. No job runs before an action.

    Args:
        query: what `ceql.compile` gives, or its text.
        partitions: how many tasks find matches; by default as many as a stage of the session has
            (`spark.sql.shuffle.partitions`), of which Spark may make fewer.
        cut: how to divide the work: "auto", "keys", "slices" (of time), "keys and slices" or "one". What would change
            an answer is refused. With "keys and slices" groups of keys with more than twice their share are cut by
            time, into fewer than twice `partitions` tasks. Keys and times are read once before, to find these groups.
        events: also a column `events`, a list of structs of the input's columns.
        positions: also `start`, `end` and `positions`, the numbers of events in the order of time, then of their
            streams, then as Spark reads them. One task counts them, so it costs another pass. Not in a stream.
        idle, malformed: of streams; as of `start_tuples`.

    A streaming DataFrame gives one, of the same columns, for any sink: `.writeStream.toTable(…)`. Its rows come when
    every stream is past the end of their matches. `lateness` and `late` are about tuples that come in a later batch
    than they should. `start_tuples` also refuses the checkpoint of another query, and locks it.

    `type_column`, `type`, `time`, `time_from` and `time_unit` are as for CEQL's `run`. Events are sorted by time, so
    none is late. Equal times keep the order of the streams, then that in which Spark reads the rows. With
    `time_from="arrival"`, and without a column of times if the query needs none, the k-th row of a DataFrame is at k
    times `interval`: one task counts them.

    The transformation takes a DataFrame, or, if the query reads several streams, a dict: `match(query)({"S": frame,
    …})`. Raises `OptionError` for options that cannot be used, and when it is applied `OptionError` and `EventError`
    for columns that do not fit. What goes wrong in a task comes out as clearly only through `spaseq.spark.collect`.
    """
    compiled = tuple_query(query)
    options = EventOptions.parse(**reading)
    refuse_form(options)
    check_tasks("partitions", partitions)
    Plan.of(compiled, cut)
    for name, value in (("events", events), ("positions", positions)):
        expect_type(name, value, bool, "it is True or False")

    def transform(given: DataFrame | Mapping[str, DataFrame]) -> DataFrame:
        frames = given.values() if isinstance(given, Mapping) else [given]
        if any(getattr(frame, "isStreaming", False) for frame in frames):
            if positions or cut != "auto":
                word = "positions=True" if positions else f"cut={cut!r}"
                raise OptionError(f"{word} is not for a stream", "events=True gives the matched events")
            check_pyspark("start_tuples")
            from spaseq.spark.streaming.tuple_stream import stream_rows  # older versions lack its operators

            return stream_rows(
                compiled, given, options, partitions=partitions, events=events, idle=idle, malformed=malformed
            )
        if idle or malformed != "error":
            word = f"idle={idle}" if idle else f"malformed={malformed!r}"
            raise OptionError(f"{word} is for a stream, and these events are all there", "leave it out")
        return batch_rows(compiled, given, options, partitions=partitions, cut=cut, events=events, positions=positions)

    return transform


def explain_match(query: TupleQuery | str, *, cut: str = "auto") -> str:
    """The division of the work by `match`, as far as the query alone says. A line each."""
    return "\n".join(Plan.of(tuple_query(query), cut).explain())


def tuple_query(query: Any) -> TupleQuery:
    """The query over tuples. Raises `OptionError` for anything else, and the errors of the language for a text."""
    if isinstance(query, str) and not _GRAPHS.search(query):
        found: TupleQuery = import_module("ceql").compile(query)
        return found
    if hasattr(query, "window_attribute") and hasattr(query, "stream_names"):
        return query
    graphs = isinstance(query, str) or hasattr(query, "streams")
    given = "one over graphs" if graphs else kind_name(query)
    hint = (
        "spaseq.spark.run and spaseq.spark.start take these" if graphs else "match(ceql.compile(text)), or match(text)"
    )
    raise OptionError(f"match takes a query over tuples, a text or compiled, and this is {given}", hint)
