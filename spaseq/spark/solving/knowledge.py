"""Background knowledge of a query on Spark: left on Spark where it can be joined, held on the driver where it must be.

Knowledge is what `Query.run` takes, and Spark DataFrames: of the columns `subject`, `predicate` and `object`, terms in
N-Triples form, or of one text column, `value`, lines of N-Triples (`spark.read.text`). A list may hold several of them,
and files: they are one graph. A blank node is the same wherever a DataFrame has its label.

* Files and DataFrames stay on Spark, as triples that tasks read: those with the predicates that the query's GRAPH
  clauses name. A GRAPH clause is a DataFrame of its own (`spaseq.spark.solving.graph_clauses`), which Spark joins with
  those of the events.
* What only a graph in one place can answer (a clause with more than triple patterns, paths, groups, OPTIONAL, UNION and
  FILTER; GRAPH inside another pattern; entailment) has these triples come to the driver, up to `knowledge_rows`. So has
  a path that repeats; of a larger graph it stays on Spark.
* Graphs and tables of this process are here already. Their GRAPH clauses are evaluated here, and the answers joined.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spaseq.core.errors import EventError, OptionError
from spaseq.gpm import GraphPattern, Knowledge, event_graph
from spaseq.gpm.algebra import BGP, GraphNode, Node, patterns_inside, visible, walk
from spaseq.gpm.columnar import read_predicates
from spaseq.language.runtime.knowledge import knowledge_of
from spaseq.rdf import GROUP, Grouped, term_from_key, term_key
from spaseq.spark.ingest.frames import with_columns
from spaseq.spark.ingest.knowledge_files import triples_of_files
from spaseq.spark.ingest.terms import keys_of_lines, lines_of_terms
from spaseq.spark.session.connecting import task_count
from spaseq.spark.session.failures import carried, clear_errors
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.options import KNOWLEDGE_ROWS
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.storage import access_to
from spaseq.spark.session.tables import KNOWLEDGE, batch_of, spark_schema
from spaseq.spark.solving.graph_clauses import Place, refused
from spaseq.spark.solving.grouping import with_group_triples

_COLUMNS: Final = tuple(KNOWLEDGE.names)
_LINE: Final = "value"
_STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class Known:
    """`knowledge`: the graphs that are held here. `frames`: by IRI, the triples (term keys) of those left on Spark.
    `lines`: what was decided on each, for people."""

    knowledge: Knowledge
    frames: Mapping[str, DataFrame]
    lines: tuple[str, ...] = ()

    def check(self, patterns: Iterable[GraphPattern], joined: Iterable[str]) -> None:
        """OptionError where a GPM names a graph that was not given, or asks one left on Spark what only one that is
        held here can be asked. `joined`: the GPMs whose knowledge Spark may join."""
        given = Knowledge({iri: event_graph(()) for iri in (*self.knowledge.graphs, *self.frames)})
        for pattern in patterns:
            given.check([pattern])
            asked = _asked(pattern, self.frames)
            if asked and pattern.name not in joined:
                raise OptionError(
                    f"GPM {pattern.name} asks GRAPH <{min(asked)}> other than beside its own pattern, or waits for the "
                    "very next instant of a partition: such knowledge is sent whole to each task, and this is large",
                    _RAISE,
                )


_RAISE: Final = "raise knowledge_rows if the driver and each task can hold it, or write the GRAPH clause by itself"


def known_of(
    spark: SparkSession,
    kb: Knowledge | Mapping[str, Any] | None,
    query: QueryText,
    layout: Layout,
    *,
    rows: int = KNOWLEDGE_ROWS,
    whole: bool = False,
    way: str = "auto",
) -> Known:
    """Background knowledge by the IRI that GRAPH names; `rows`: the most triples that come to the driver.

    `whole`: all triples of all graphs do, as for entailment; a DataFrame with more is an OptionError then, while files
    are read here, as locally. `way`: who finds groups (`spaseq.rdf.Grouped`) and works out paths of knowledge on Spark.
    Runs a job for each graph that must be held, and for each that is grouped.
    """
    with clear_errors():
        if kb is None or isinstance(kb, Knowledge) or not isinstance(kb, Mapping):
            return Known(knowledge_of(kb), {})
        return _known(spark, kb, query, layout, rows, whole, way)


def _known(
    spark: SparkSession, kb: Mapping[str, Any], query: QueryText, layout: Layout, rows: int, whole: bool, way: str
) -> Known:
    held: dict[str, Any] = {}
    frames: dict[str, DataFrame] = {}
    lines: list[str] = []
    every = (part for value in kb.values() for part in (value if isinstance(value, (list, tuple)) else [value]))
    access_to(spark, map(str, filter(_is_file, every)))
    for name, value in kb.items():
        iri = name.removeprefix("<").removesuffix(">")
        by, inner = (value.by, value.knowledge) if isinstance(value, Grouped) else ((), value)
        parts = list(inner) if isinstance(inner, (list, tuple)) else [inner]
        on_spark = any(isinstance(part, DataFrame) for part in parts)
        if not on_spark and (whole or not all(map(_is_file, parts))):
            held[iri] = value
            lines.append(f"GRAPH <{iri}>: held on the driver" + (" whole, for what follows from it" if whole else ""))
            continue
        used, what = None if whole else used_predicates(query, iri), _described(parts)
        by = by if used is None or GROUP in used else ()
        frame = _frame(spark, parts, iri, None if used is None else used | set(by))
        if by:
            frame, how = with_group_triples(frame, by, rows, way)
            frame = frame if used is None else frame.where(F.col("predicate").isin([f"<{p}>" for p in used]))
            what += f", {how}"
        why = "entailment" if whole else _must_be_held(frame, query, layout, iri)
        few = frame.limit(rows + 1).toArrow() if why else None
        if few is None:
            lines.append(f"GRAPH <{iri}>: {what}, read by tasks; Spark joins what the query asks of it")
        elif few.num_rows <= rows:
            held[iri] = event_graph(_terms(few))
            lines.append(f"GRAPH <{iri}>: {what}, {few.num_rows:,} triples of it held on the driver, as {why}")
            continue
        elif whole:
            raise OptionError(
                f"GRAPH <{iri}> has more than {rows:,} triples, and entailment needs them all on the driver",
                "raise knowledge_rows, or give what follows in the DataFrame itself",
            )
        else:
            lines.append(f"GRAPH <{iri}>: {what} with more than {rows:,} triples, read by tasks; Spark works it out")
        frames[iri] = frame
    return Known(knowledge_of(held), frames, tuple(lines))


def _is_file(part: Any) -> bool:
    return isinstance(part, str | os.PathLike) and str(part) != _STDIN


def _described(parts: Sequence[Any]) -> str:
    frames = any(isinstance(part, DataFrame) for part in parts)
    others = any(not isinstance(part, DataFrame) for part in parts)
    return " and ".join(["a DataFrame"] * frames + ["files"] * others)


def _frame(spark: SparkSession, parts: Sequence[Any], iri: str, used: frozenset[str] | None) -> DataFrame:
    """The triples of files, DataFrames and graphs as one DataFrame."""
    files = [str(part) for part in parts if _is_file(part)]
    found = [_triples(part, iri, used) for part in parts if isinstance(part, DataFrame)]
    if files:
        found.append(triples_of_files(spark, files, used, task_count(spark)))
    for part in parts:
        if not isinstance(part, DataFrame) and not _is_file(part):
            (graph,) = knowledge_of({iri: part}).graphs.values()
            own = [tuple(map(term_key, triple)) for triple in graph]  # type: ignore[arg-type]
            found.append(spark.createDataFrame(own, spark_schema(KNOWLEDGE)))
    return reduce(DataFrame.unionByName, found)


def _must_be_held(frame: DataFrame, query: QueryText, layout: Layout, iri: str) -> str:
    """Why Spark cannot join what the query asks of a graph; empty where it can."""
    for pattern in query.compiled().checked.patterns.values():
        if pattern.name not in layout.joined:
            if _asked(pattern, [iri]):
                return f"GPM {pattern.name} asks it inside of another pattern, or for the very next instant of a key"
            continue
        for number, (name, _) in enumerate(pattern.knowledge):
            if name == iri and (why := refused(frame, query, Place(pattern.name, number))):
                return why
    return ""


def _asked(pattern: GraphPattern, graphs: Iterable[str]) -> set[str]:
    """Those of `graphs` that a GPM asks."""
    return set(graphs) if pattern.any_graph else set(graphs) & set(pattern.graphs)


def used_predicates(query: QueryText, iri: str, apart: Sequence[str] = ()) -> frozenset[str] | None:
    """The predicates that the GRAPH clauses on a graph can use; None where that may be any. `apart`: GPMs of which this
    is not asked."""
    found: frozenset[str] = frozenset()
    patterns = [p for p in query.compiled().checked.patterns.values() if p.name not in apart]
    for node in (node for pattern in patterns for node in _clauses(pattern, iri)):
        read = read_predicates(node)
        if read is None:
            return None
        found |= frozenset(map(str, read))
    return found


def _clauses(pattern: GraphPattern, iri: str) -> Iterator[Node]:
    """What a GPM asks of a graph."""
    conditions = (*pattern.local, *pattern.correlated)
    inside = [node for condition in conditions for node in patterns_inside(condition.expression)]
    for name, part in pattern.knowledge:
        if name == iri:
            yield part
    for node in (pattern.event, *(part for _, part in pattern.knowledge), *inside):
        for inner in walk(node):
            if isinstance(inner, GraphNode) and (visible(GraphNode(inner.name, BGP(()))) or str(inner.name) == iri):
                yield inner.child


# -- reading


def _triples(frame: DataFrame, iri: str, used: frozenset[str] | None) -> DataFrame:
    """The triples of a DataFrame as keys of terms, those with the predicates in `used`."""
    if frame.isStreaming:
        raise OptionError(f"knowledge <{iri}> is a stream", "background knowledge does not change while a query runs")
    if set(_COLUMNS) <= set(frame.columns):
        frame = with_columns(frame, _COLUMNS, f"knowledge <{iri}>")
        frame = frame.select(*(F.col(name).cast("string") for name in _COLUMNS))
        column = F.col("predicate")
        near = None if used is None else column.isin([f"<{p}>" for p in used]) | column.contains("\\")
    elif _LINE in frame.columns:
        frame = with_columns(frame, [_LINE], f"knowledge <{iri}>").select(F.col(_LINE).cast("string"))
        names = [F.col(_LINE).contains(str(p)) for p in used or ()]
        near = None if used is None else reduce(lambda a, b: a | b, names, F.col(_LINE).contains("\\"))
    else:
        raise EventError(
            f"the DataFrame of background knowledge has no column {_missing(frame)}",
            source=f"knowledge <{iri}>",
            attribute=_missing(frame),
            hint=f"it has {', '.join(frame.columns)}; there must be {', '.join(_COLUMNS)}, or {_LINE} (a line)",
        )
    frame = frame if near is None else frame.where(near)
    keys = frame.mapInArrow(carried(_keys, f"knowledge <{iri}>"), spark_schema(KNOWLEDGE))
    return keys if used is None else keys.where(F.col("predicate").isin([f"<{p}>" for p in used]))


def _missing(frame: DataFrame) -> str:
    return next(name for name in _COLUMNS if name not in frame.columns)


def _keys(what: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of terms, or of lines, as rows of keys."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        lines = columns[0] if len(columns) == 1 else list(lines_of_terms(zip(*columns, strict=True), what))
        keys = [row[:3] for row in keys_of_lines(lines, what)]
        if keys:
            yield batch_of(KNOWLEDGE, keys)


def _terms(table: pa.Table) -> Iterator[tuple[Any, Any, Any]]:
    columns = (table.column(name).to_pylist() for name in _COLUMNS)
    for s, p, o in zip(*columns, strict=True):
        yield term_from_key(s), term_from_key(p), term_from_key(o)
