"""Background knowledge of a query on Spark: held on the driver where it is small, left on Spark where it is large.

Knowledge is what `Query.run` takes (files, graphs, tables), and Spark DataFrames: of the columns `subject`, `predicate`
and `object`, terms in N-Triples form, or of one text column, `value`, lines of N-Triples (`spark.read.text`). A list
may hold several of them: they are one graph. A blank node is the same wherever a DataFrame has its label.

Of a DataFrame only the triples count that the query's GRAPH clauses can use: those with the predicates they name. Up to
`knowledge_rows` of them come to the driver, and the graph is one like those from files. More stay on Spark. Then a
GRAPH clause is a DataFrame of its own (`solutions_on`), which Spark joins with those of the events by a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spaseq.errors import EventError, OptionError
from spaseq.gpm import GraphPattern, Knowledge, event_graph
from spaseq.gpm.algebra import BGP, GraphNode, Node, patterns_inside, visible, walk
from spaseq.gpm.columnar import read_predicates
from spaseq.language.query import knowledge_of
from spaseq.rdf import term_from_key, term_key
from spaseq.spark.ingest.terms import keys_of_lines, lines_of_terms
from spaseq.spark.session.failures import carried, clear_errors
from spaseq.spark.session.options import KNOWLEDGE_ROWS
from spaseq.spark.session.tables import KNOWLEDGE, batch_of, spark_schema

__all__ = ["Known", "known_of", "large_gpms"]

_COLUMNS: Final = tuple(KNOWLEDGE.names)
_LINE: Final = "value"


@dataclass(frozen=True, slots=True)
class Known:
    """`knowledge`: the graphs that are held here. `large`: by IRI, the triples (term keys) of those left on Spark.
    `lines`: what was decided on each DataFrame, for people."""

    knowledge: Knowledge
    large: Mapping[str, DataFrame]
    lines: tuple[str, ...] = ()

    def check(self, patterns: Iterable[GraphPattern], joined: Iterable[str]) -> None:
        """OptionError where a GPM names a graph that was not given, or asks a large one what only one that is held
        here can be asked. `joined`: the GPMs whose knowledge Spark may join."""
        given = Knowledge({**self.knowledge.graphs, **{iri: event_graph(()) for iri in self.large}})
        for pattern in patterns:
            given.check([pattern])
            asked = set(self.large) if pattern.any_graph else set(self.large) & set(pattern.graphs)
            if asked and pattern.name not in joined:
                raise OptionError(
                    f"GPM {pattern.name} asks GRAPH <{min(asked)}> other than beside its own pattern, or waits for the "
                    "very next instant of a partition: such knowledge is sent whole to each task, and this is large",
                    _RAISE,
                )


_RAISE: Final = "raise knowledge_rows if the driver and each task can hold it, or write the GRAPH clause by itself"


def known_of(
    kb: Knowledge | Mapping[str, Any] | None,
    patterns: Iterable[GraphPattern],
    *,
    rows: int = KNOWLEDGE_ROWS,
    whole: bool = False,
) -> Known:
    """Background knowledge by the IRI that GRAPH names; `rows`: the most triples of a DataFrame that are held here.

    `whole`: all triples count, as for entailment, and a large graph is an OptionError. Runs a job for each DataFrame.
    """
    with clear_errors():
        return _known(kb, list(patterns), rows, whole)


def _known(kb: Knowledge | Mapping[str, Any] | None, patterns: Sequence[GraphPattern], rows: int, whole: bool) -> Known:
    if kb is None or isinstance(kb, Knowledge):
        return Known(knowledge_of(kb), {})
    held: dict[str, Any] = {}
    large: dict[str, DataFrame] = {}
    lines: list[str] = []
    for name, value in kb.items():
        iri = name.removeprefix("<").removesuffix(">")
        parts = list(value) if isinstance(value, (list, tuple)) else [value]
        frames = [part for part in parts if isinstance(part, DataFrame)]
        if not frames:
            held[iri] = value
            continue
        others = [part for part in parts if not isinstance(part, DataFrame)]
        graphs = [next(iter(knowledge_of({iri: part}).graphs.values())) for part in others]
        used = None if whole else used_predicates(patterns, iri)
        frame = reduce(DataFrame.unionByName, [_triples(part, iri, used) for part in frames])
        few = frame.limit(rows + 1).toArrow()
        if few.num_rows <= rows:
            held[iri] = event_graph([*_terms(few), *(triple for graph in graphs for triple in graph)])
            lines.append(f"GRAPH <{iri}>: {few.num_rows:,} triples of a DataFrame, broadcast")
            continue
        if whole:
            raise OptionError(
                f"GRAPH <{iri}> has more than {rows:,} triples, and entailment needs them all on the driver",
                "raise knowledge_rows, or give what follows in the DataFrame itself",
            )
        if graphs:
            own = [tuple(term_key(term) for term in triple) for graph in graphs for triple in graph]  # type: ignore[arg-type]
            frame = frame.unionByName(frame.sparkSession.createDataFrame(own, spark_schema(KNOWLEDGE)))
        large[iri] = frame
        lines.append(f"GRAPH <{iri}>: more than {rows:,} triples of a DataFrame, left on Spark and joined by a shuffle")
    return Known(knowledge_of(held), large, tuple(lines))


def large_gpms(patterns: Iterable[GraphPattern], known: Known) -> tuple[str, ...]:
    """The names of the GPMs that ask for a graph left on Spark."""
    return tuple(pattern.name for pattern in patterns if set(pattern.graphs) & set(known.large))


def used_predicates(patterns: Iterable[GraphPattern], iri: str) -> frozenset[str] | None:
    """The predicates that the GRAPH clauses on a graph can use; None where that may be any."""
    found: frozenset[str] = frozenset()
    for node in (node for pattern in patterns for node in _clauses(pattern, iri)):
        read = read_predicates(node)
        if read is None:
            return None
        found |= read
    return found


def _clauses(pattern: GraphPattern, iri: str) -> Iterator[Node]:
    """What a GPM asks of a graph."""
    conditions = (*pattern.local, *pattern.correlated)
    inside = [node for condition in conditions for node in patterns_inside(condition.expression)]
    for name, part in pattern.knowledge:
        if name == iri:
            yield part.node
    for node in (pattern.event.node, *(part.node for _, part in pattern.knowledge), *inside):
        for inner in walk(node):
            if isinstance(inner, GraphNode) and (visible(GraphNode(inner.name, BGP(()))) or str(inner.name) == iri):
                yield inner.child


# -- reading


def _triples(frame: DataFrame, iri: str, used: frozenset[str] | None) -> DataFrame:
    """The triples of a DataFrame as keys of terms, those with the predicates in `used`."""
    if frame.isStreaming:
        raise OptionError(f"knowledge <{iri}> is a stream", "background knowledge does not change while a query runs")
    if set(_COLUMNS) <= set(frame.columns):
        frame = frame.select(*(F.col(name).cast("string") for name in _COLUMNS))
        column = F.col("predicate")
        near = None if used is None else column.isin([f"<{p}>" for p in used]) | column.contains("\\")
    elif _LINE in frame.columns:
        frame = frame.select(F.col(_LINE).cast("string"))
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
    keys = frame.mapInArrow(partial(_keys, f"knowledge <{iri}>"), spark_schema(KNOWLEDGE))
    return keys if used is None else keys.where(F.col("predicate").isin([f"<{p}>" for p in used]))


def _missing(frame: DataFrame) -> str:
    return next(name for name in _COLUMNS if name not in frame.columns)


@carried
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
