"""What a query asks of its knowledge, as the other side of a join with the solutions of events, in a batch and in a
stream.

A GRAPH clause over triples on Spark is a DataFrame (`spaseq.spark.solving.graph_clauses`); over a graph held on the
driver it is evaluated there. An answer of up to `knowledge_rows` rows comes to the driver, and is broadcast for a hash
join if Spark's own threshold (`spark.sql.autoBroadcastJoinThreshold`) allows as many bytes. Otherwise, and where an
answer has more rows and stays where it is, both sides are sorted by the variables that they share. That needs one that
is bound in every solution of both. Each join is told which it is: Spark itself takes a table that tasks make for as
small as the list of what they read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spaseq.core.errors import OptionError
from spaseq.gpm import PatternEvaluator
from spaseq.gpm.algebra import certain
from spaseq.rdf import term_key
from spaseq.spark.session.failures import clear_errors
from spaseq.spark.session.layout import Layout, knowledge_parts
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.session import broadcast_bytes
from spaseq.spark.session.tables import spark_schema
from spaseq.spark.solving.graph_clauses import Place, column_of, solutions_on, variable_of
from spaseq.spark.solving.knowledge import Known


@dataclass(frozen=True, slots=True)
class Side:
    """An answer. `frame` has a column `v0`, `v1`, … for each of the variables `names`: a term key or null. `sure`:
    those that are never null. `keys`: those the join can be sorted by. `table`: the rows, where they are on the driver.
    `line`: for people."""

    frame: DataFrame
    names: tuple[str, ...]
    sure: frozenset[str]
    keys: tuple[str, ...]
    table: pa.Table | None
    line: str

    def column(self, name: str) -> str:
        """The column of a variable."""
        return f"v{self.names.index(name)}"

    def kept(self, tasks: int) -> Side:
        """The same where a stream's batches find it: what is left on Spark is divided and sorted by its keys in the
        first batch, and kept; what is lost with an executor is made again."""
        if self.table is not None:
            return self
        columns = [self.column(name) for name in self.keys]
        divided = self.frame.repartition(tasks, *columns).sortWithinPartitions(*columns)
        return replace(self, frame=divided.persist().hint("merge"))


Sides = Mapping[str, tuple[Side, ...]]
"""For each GPM whose knowledge Spark joins, the answers to its GRAPH clauses, in their order."""


def sides_of(
    spark: SparkSession, query: QueryText, layout: Layout, known: Known, rows: int, way: str = "auto"
) -> Sides:
    """What the query asks of its knowledge; `rows`: the most that an answer may have to come to the driver, `way`: who
    does motifs and paths (`spaseq.spark.solving.graphs`).

    Runs a job for each GRAPH clause over triples on Spark. Raises OptionError where a join would be of everything with
    everything.
    """
    patterns = query.compiled().checked.patterns
    found: dict[str, tuple[Side, ...]] = {}
    with clear_errors():
        for name in layout.joined:
            sure = certain(patterns[name].event)
            sides = []
            for number in range(len(patterns[name].knowledge)):
                sides.append(_side(spark, query, Place(name, number), sure, known, rows, way))
                sure |= sides[-1].sure
            found[name] = tuple(sides)
    return found


def _side(
    spark: SparkSession, query: QueryText, place: Place, sure: frozenset[str], known: Known, rows: int, way: str
) -> Side:
    iri = place.pattern(query).knowledge[place.part][0]
    what = f"GPM {place.gpm} with GRAPH <{iri}>"
    frame: DataFrame | None = None
    how = ""
    table: pa.Table | None
    if iri in known.frames:
        frame, names, always, told = _asked_on_spark(known.frames[iri], query, place, way)
        how = "".join(f"; {line}" for line in told)
        few = frame.limit(rows + 1).toArrow()
        table = few.group_by(few.column_names).aggregate([]) if few.num_rows <= rows else None
    else:
        table, names, always = _answered_here(query, place, known)
    keys = tuple(name for name in names if name in always & sure)
    if table is not None:
        small = spark.createDataFrame(table, spark_schema(table.schema))
        broadcast = not keys or table.nbytes <= broadcast_bytes(spark)
        joined = "broadcast" if broadcast else "larger than Spark broadcasts: both sides are sorted"
        line = f"{what}: an answer of {table.num_rows:,} rows, {joined}{how}"
        return Side(small.hint("broadcast" if broadcast else "merge"), names, always, keys, table, line)
    assert frame is not None
    if not keys:
        raise OptionError(
            f"GRAPH <{iri}> of GPM {place.gpm} is large and shares no variable that is always bound with what it is "
            "joined with: each of its solutions would meet each event",
            "bind a variable in both, or raise knowledge_rows",
        )
    line = f"{what}: an answer of more than {rows:,} rows, left on Spark and joined by sorting both sides{how}"
    return Side(frame.hint("merge"), names, always, keys, None, line)


def _asked_on_spark(
    triples: DataFrame, query: QueryText, place: Place, way: str
) -> tuple[DataFrame, tuple[str, ...], frozenset[str], tuple[str, ...]]:
    """The answer of a graph on Spark, as `_answered_here`, and how it is worked out."""
    solved, told = solutions_on(triples, query, place, way)
    names = tuple(sorted(filter(None, map(variable_of, solved.columns))))
    columns = [F.col(column_of(name)).alias(f"v{i}") for i, name in enumerate(names)]
    frame = solved.select(*(columns or [F.lit(None).cast("string").alias("v0")]))
    return frame, names, certain(place.node(query)), told


def _answered_here(query: QueryText, place: Place, known: Known) -> tuple[pa.Table, tuple[str, ...], frozenset[str]]:
    """The answer of a graph that is held on the driver: its rows, their variables, and those that are never null."""
    from spaseq.gpm.columnar.evaluate import value_on  # loads the kernels

    iri, part = list(knowledge_parts(place.pattern(query)))[place.part]
    triples: Iterable[Any] = known.knowledge.graphs[iri]
    solutions = [dict(mapping) for mapping in value_on(PatternEvaluator(part, known.knowledge), triples)]
    names = tuple(sorted({name for solution in solutions for name in solution}))
    columns = [[term_key(s[name]) if name in s else None for s in solutions] for name in names]
    columns = columns or [[None] * len(solutions)]
    table = pa.table({f"v{i}": pa.array(column, pa.string()) for i, column in enumerate(columns)})
    return table, names, certain(part.event) | {n for n in names if all(n in s for s in solutions)}


def join_rows(
    rows: DataFrame, gpm: int, variables: Sequence[str], sure: frozenset[str], side: Side, apart: Sequence[str]
) -> DataFrame:
    """The rows of GPM number `gpm` joined with `side`, each with the merged mapping as `terms`; all others as they are.

    `terms` hold a term or null for each of `variables`; those in `sure` are never null. `apart`: columns that differ
    from row to row. Rows that are not of this GPM are sent by these, where no term is, to many tasks.
    """
    mine = F.col("gpm") == gpm
    terms = [F.get("terms", F.lit(i)) for i in range(len(variables))]
    conditions = [mine]
    for name in side.names:
        own, theirs = terms[variables.index(name)], F.col(side.column(name))
        if not (name in sure and name in side.sure):
            conditions.append(own.isNull() | theirs.isNull() | (own == theirs))
    elsewhere = F.concat(F.lit("?"), *(F.col(name).cast("string") for name in apart))
    for place, name in enumerate(side.keys):
        own = F.when(mine, terms[variables.index(name)]).otherwise(F.lit("?") if place else elsewhere)
        conditions.append(F.col(side.column(name)) == own)
    merged = [
        F.coalesce(term, F.col(side.column(name))) if name in side.names else term
        for name, term in zip(variables, terms, strict=True)
    ]
    joined = rows.join(side.frame.withColumn("hit", F.lit(1)), reduce(and_, conditions), "left_outer")
    kept = joined.where(~mine | F.col("hit").isNotNull())
    return kept.withColumn("terms", F.when(mine, F.array(*merged)).otherwise(F.col("terms"))).select(*rows.columns)
