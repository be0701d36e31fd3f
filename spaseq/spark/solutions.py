"""The table of solutions: what the GPMs of a query are at each instant, one mapping a row.

Columns (`SCHEMA`): `position` and `time` of the instant; `gpm` the place of the GPM in the layout, or -1 for a row
that only says that the instant exists; `terms` the mapping, a term (`spaseq.rdf.term_key`) or null for each of the
GPM's variables, sorted; `key` the terms of the PARTITION BY variables, sorted by name, null without PARTITION BY.

`solve_events` evaluates the GPMs on ranges of instants, at the same time. Where the layout says so it leaves the
background knowledge to `join_knowledge`, which joins it to the table with Spark: each GRAPH clause is evaluated once,
to a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import groupby
from operator import and_, itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spaseq.engine import Settings
from spaseq.gpm import Knowledge, PatternEvaluator, event_graph, holds
from spaseq.gpm.algebra import certain
from spaseq.language.query import Query, compile_query
from spaseq.language.solve import InstantSolutions, Solver
from spaseq.rdf import StreamOptions, term_from_key, term_key
from spaseq.spark.events import FilePlan, own_instants, read_instants, rows_of
from spaseq.spark.failures import carried
from spaseq.spark.plan import Layout, event_part, knowledge_parts

__all__ = ["INSTANT", "SCHEMA", "QueryText", "instants_of", "join_knowledge", "solve_events"]

SCHEMA: Final = "position long, time long, gpm int, terms array<string>, key array<string>"
INSTANT: Final = -1
_ARROW: Final = pa.schema(
    [
        ("position", pa.int64()),
        ("time", pa.int64()),
        ("gpm", pa.int32()),
        ("terms", pa.list_(pa.string())),
        ("key", pa.list_(pa.string())),
    ]
)
_ROWS: Final = 10_000
_BROADCAST_ROWS: Final = 100_000

Graphs = Mapping[str, tuple[tuple[str, ...], ...]]
"""Background knowledge to be sent: by IRI, the triples as keys of terms."""


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query as it travels to the workers, where it is compiled once per process."""

    text: str
    source: str
    settings: Settings

    def compiled(self) -> Query:
        """The query."""
        return _compiled(self)


@lru_cache(8)
def _compiled(query: QueryText) -> Query:
    return compile_query(query.text, query.source, query.settings)


# -- evaluating


def solve_events(
    ordered: DataFrame,
    query: QueryText,
    layout: Layout,
    knowledge: Knowledge,
    plans: Sequence[FilePlan],
    firsts: dict[int, int],
    options: StreamOptions,
) -> DataFrame:
    """The table of solutions of the events in `ordered`, a task for each range, without the joins of the layout."""
    patterns = query.compiled().checked.patterns
    whole = [pattern for name, pattern in patterns.items() if name not in layout.joined]
    needed = {iri for pattern in whole for iri in (knowledge.graphs if pattern.any_graph else pattern.graphs)}
    graphs = {iri: _graph_keys(knowledge.graphs[iri]) for iri in sorted(needed)}
    shared = ordered.sparkSession.sparkContext.broadcast(graphs)
    job = _Solve(query, layout, {plan.file.number: plan for plan in plans}, firsts, own_instants(options))
    return ordered.mapInArrow(partial(_solve, job, shared), SCHEMA)


def _graph_keys(graph: Iterable[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(term_key(term) for term in triple) for triple in graph)


@dataclass(frozen=True, slots=True)
class _Solve:
    """What a task needs to know to evaluate its instants."""

    query: QueryText
    layout: Layout
    plans: dict[int, FilePlan]
    firsts: dict[int, int]
    apart: bool


@carried
def _solve(job: _Solve, shared: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the table for the instants of one range."""
    solver = _solver(job, shared.value)
    rows: list[tuple[Any, ...]] = []
    for instant in read_instants(batches, job.plans, job.firsts, job.apart):
        for solutions in solver.solve(instant):
            rows += _table_rows(solutions, job.layout)
        if len(rows) >= _ROWS:
            yield _batch(rows)
            rows.clear()
    if rows:
        yield _batch(rows)


def _solver(job: _Solve, graphs: Graphs) -> Solver:
    """The local solver, for the parts of the GPMs that are not joined later."""
    checked = job.query.compiled().checked
    joined = job.layout.joined
    patterns = {name: event_part(p) if name in joined else p for name, p in checked.patterns.items()}
    if joined:  # a key may come with the knowledge: the rows get theirs after the join
        checked = replace(checked, partition=())
    named = {iri: event_graph(_triples(graph)) for iri, graph in graphs.items()}
    return Solver(replace(checked, patterns=patterns), Knowledge(named))


def _triples(keys: Iterable[tuple[str, ...]]) -> Iterator[tuple[Any, Any, Any]]:
    for s, p, o in keys:
        yield term_from_key(s), term_from_key(p), term_from_key(o)


def _table_rows(solutions: InstantSolutions, layout: Layout) -> Iterator[tuple[Any, ...]]:
    key = None if solutions.key is None else [term_key(term) for _, term in solutions.key]
    head = (solutions.position, solutions.time)
    if layout.blanks:
        yield (*head, INSTANT, None, key)
    for gpm, (name, variables) in enumerate(zip(layout.gpms, layout.variables, strict=True)):
        for mapping in solutions.values.get(name, ()):
            terms = dict(mapping)
            yield (*head, gpm, [term_key(terms[v]) if v in terms else None for v in variables], key)


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)


# -- joining


def join_knowledge(table: DataFrame, query: QueryText, layout: Layout, knowledge: Knowledge) -> DataFrame:
    """`table` with the knowledge of the layout's `joined` GPMs joined, their own conditions applied, and keys."""
    if not layout.joined:
        return table
    checked = query.compiled().checked
    places = [layout.gpms.index(name) for name in layout.joined]
    pieces = [table.where(~F.col("gpm").isin(places))]
    for place in places:
        pattern = checked.patterns[layout.gpms[place]]
        piece = table.where(F.col("gpm") == place)
        sure = certain(pattern.event.node)
        for iri, part in knowledge_parts(pattern):
            found = PatternEvaluator(part, knowledge).solve(knowledge.graphs[iri], frozenset())[1]
            piece = _joined(piece, layout.variables[place], sure, [dict(mapping) for mapping in found])
            sure |= certain(part.event.node)
        if pattern.local:
            piece = piece.mapInArrow(partial(_keep, query, layout), SCHEMA)
        pieces.append(piece)
    return _keyed(reduce(DataFrame.unionByName, pieces), checked.partition, layout)


def _joined(
    piece: DataFrame, variables: Sequence[str], sure: frozenset[str], solutions: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """`piece` ⋈ `solutions`, on the variables they share; `sure` are bound in every row of `piece`."""
    names = sorted({name for solution in solutions for name in solution})
    rows = [tuple(term_key(s[n]) if n in s else None for n in names) for s in solutions]
    columns = [f"v{i}" for i in range(len(names))]
    schema = ", ".join(f"{column} string" for column in columns) or "v0 string"
    side = _local_table(piece.sparkSession, rows if names else [(None,)] * len(rows), schema)
    terms = [F.get("terms", F.lit(i)) for i in range(len(variables))]
    matches: list[Column] = []
    for name, column in zip(names, columns, strict=True):
        mine, theirs = terms[variables.index(name)], F.col(column)
        everywhere = name in sure and all(name in solution for solution in solutions)
        matches.append(mine == theirs if everywhere else mine.isNull() | theirs.isNull() | (mine == theirs))
    joined = piece.join(side, reduce(and_, matches) if matches else F.lit(True))
    merged = [
        F.coalesce(term, F.col(columns[names.index(name)])) if name in names else term
        for name, term in zip(variables, terms, strict=True)
    ]
    return joined.withColumn("terms", F.array(*merged)).select(*piece.columns)


def _local_table(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    table = spark.createDataFrame(rows, schema)
    return F.broadcast(table) if len(rows) <= _BROADCAST_ROWS else table


@carried
def _keep(query: QueryText, layout: Layout, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows whose mapping satisfies its GPM's own conditions."""
    patterns = query.compiled().checked.patterns
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("gpm", "terms"))
        mask = []
        for gpm, terms in zip(*columns, strict=True):
            pattern = patterns[layout.gpms[gpm]]
            mapping = _mapping(terms, layout.variables[gpm])
            mask.append(all(holds(condition, mapping, pattern.prologue) for condition in pattern.local))
        yield batch.filter(pa.array(mask, pa.bool_()))


def _keyed(table: DataFrame, partition: Sequence[str], layout: Layout) -> DataFrame:
    """`table` with the key of each row; rows that do not bind all of the partition's variables have none and go."""
    if not partition:
        return table
    key: Column = F.lit(None)
    for gpm, variables in enumerate(layout.variables):
        own = F.array(*(F.get("terms", F.lit(variables.index(name))) for name in sorted(partition)))
        key = F.when(F.col("gpm") == gpm, own).otherwise(key)
    keyed = table.withColumn("key", key)
    return keyed.where("key is not null and not exists(key, term -> term is null)")


# -- reading back


def instants_of(
    batches: Iterable[pa.RecordBatch], layout: Layout, partition: Sequence[str]
) -> Iterator[list[InstantSolutions]]:
    """The rows of a part of the table, in order of position, as the engine's: one list per instant."""
    names = sorted(partition)
    for (position, time), rows in groupby(rows_of(batches), key=itemgetter(0, 1)):
        by_key: dict[tuple[str, ...] | None, dict[str, set[Any]]] = {}
        for _, _, gpm, terms, key in rows:
            values = by_key.setdefault(None if key is None else tuple(key), {})
            if gpm != INSTANT:
                values.setdefault(layout.gpms[gpm], set()).add(_mapping(terms, layout.variables[gpm]))
        yield [
            InstantSolutions(
                position,
                time,
                None if key is None else _mapping(key, names),
                {name: frozenset(mappings) for name, mappings in values.items()},
            )
            for key, values in by_key.items()
        ]


def _mapping(terms: Sequence[str | None], variables: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The mapping of a row: pairs in order of the variables' names."""
    return tuple((name, _term(key)) for name, key in zip(variables, terms, strict=True) if key is not None)


_term = lru_cache(1 << 17)(term_from_key)
