"""Lines of N-Quads and N-Triples, read by Spark's own readers, as quads with times: no Python on the way.

    quads = parse_lines(spark.read.text("s3a://bucket/power/*.nq"))

Spark says nothing of the order of lines. So an event is what has one graph, or one subject.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from spaseq.core.errors import OptionError
from spaseq.core.events.options import one_of
from spaseq.rdf import GENERATED_AT

_NAMED: Final = r"<[^\x00-\x20<>\"{}|^`]*>|_:[^\s<>\"]+"
_LITERAL: Final = r"\"(?:[^\"\\]|\\.)*\"(?:@[A-Za-z0-9-]+|\^\^<[^\x00-\x20<>\"{}|^`]*>)?"
_TRIPLE: Final = r"<<\((?:[^\"]|\"(?:[^\"\\]|\\.)*\")*\)>>"
_LINE: Final = rf"^({_NAMED})\s*(<[^\s<>]*>)\s*({_NAMED}|{_LITERAL}|{_TRIPLE})\s*({_NAMED})?\s*\.\s*(?:#.*)?$"
"""The terms of a line. Whether they are right, the tasks that read them decide."""
_SHOWN: Final = 100
_MADE: Final = ("time", "graph", "subject", "predicate", "object")


def parse_lines(
    lines: DataFrame, column: str = "value", *, event_by: str = "graph", time: str = GENERATED_AT
) -> DataFrame:
    """A row for each statement: `time`, `graph`, `subject`, `predicate` and `object`, and the other columns of `lines`;
    for `match` and `run`. Nothing runs. One shuffle, as the time of an event may stand in any line.

    Args:
        column: a line of N-Quads or N-Triples each; blank ones and comments are left out.
        event_by: "graph": an event is a named graph. Its time is what it, or the default graph, says of its name, or
            else what it says of any subject; the default graph is otherwise passed over. "subject": an event is what is
            said of a subject, which must be an IRI. If `lines` have a column `stream`, each stream has events of its
            own.
        time: the IRI of the predicate of times.

    The query that reads the rows reports errors: a line that is no statement, an event with several times, and a blank
    node as the subject of an event. With `malformed="drop"` of `run` such rows are left out and counted. Raises
    `OptionError` for a stream that goes on, for a missing column, and for another `event_by`.
    """
    one_of("event_by", event_by, "graph", "subject")
    if lines.isStreaming:
        hint = "send a message for each event, and take it apart with parse_rdf"
        raise OptionError("the lines of an event may come in several batches of a stream", hint)
    if column not in lines.columns:
        raise OptionError(f"the lines have no column {column}", f"there are {', '.join(lines.columns)}")
    text = F.trim(F.col(column))
    others = [name for name in lines.columns if name != column and name not in _MADE]
    parts = [F.regexp_extract(text, _LINE, number) for number in range(1, 5)]
    stated = text.rlike(_LINE)
    by_subject = event_by == "subject"
    unnamed = stated & parts[0].startswith("_:") if by_subject else F.lit(False)
    good = stated & ~unnamed
    said = F.when(unnamed, "a blank node is no subject of an event: ").otherwise("no statement of N-Quads: ")
    terms = [F.when(good, part).alias(name) for name, part in zip(_MADE[2:4], parts[:2], strict=True)]
    shown = F.concat(said, F.substring(text, 1, _SHOWN))
    graph = F.lit(None).cast("string") if by_subject else F.when(good & (parts[3] != ""), parts[3])
    whole = lines.where(text.isNotNull() & ~text.rlike("^(#.*)?$")).select(
        *others, graph.alias("graph"), *terms, F.when(good, parts[2]).otherwise(shown).alias("object")
    )
    is_time = F.col("predicate") == f"<{time}>"
    key = F.col("subject") if by_subject else F.coalesce("graph", F.when(is_time, F.col("subject")))
    keyed = whole.withColumn("spaseq_event", key)
    event = Rows.partitionBy(*(["stream"] if "stream" in others else []), "spaseq_event")
    timed = keyed.withColumn("time", _time(is_time, event))
    kept = timed if by_subject else timed.where("graph is not null or subject is null")
    named = kept.withColumn("graph", F.col("subject")) if by_subject else kept
    return named.select(*others, *_MADE)


def _time(is_time: Column, event: WindowSpec) -> Column:
    """The time of each event as a text, NULL for none: what is said of its name in it, else in it, else outside."""
    inside, about = F.col("graph").isNotNull(), F.col("subject") == F.col("spaseq_event")
    chosen = []
    for where in (inside & about, inside, ~inside):
        said = F.when(is_time & where, F.regexp_extract("object", '^"(.*)"', 1))
        least, most = F.min(said).over(event), F.max(said).over(event)
        chosen.append(F.when(least == most, least).when(least != most, F.concat_ws(" and ", least, most)))
    return F.coalesce(*chosen)
