"""A GRAPH clause as the other side of a join with the solutions of events, in a batch and in a stream.

Where its graph is held on the driver it is evaluated there, once, and the side is broadcast if it has up to 100,000
rows. Where the graph was left on Spark, so is the clause (`spaseq.spark.solving.graph_clauses`), and the join is a
shuffle: both sides are sorted by the variables they share. That needs one that is bound in every solution of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spaseq.errors import OptionError
from spaseq.gpm import GraphPattern, PatternEvaluator
from spaseq.gpm.algebra import certain
from spaseq.rdf import term_key
from spaseq.spark.session.layout import knowledge_parts
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving.graph_clauses import Place, column_of, solutions_on
from spaseq.spark.solving.knowledge import Known

__all__ = ["Side", "joined_terms", "side_of"]

_BROADCAST_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Side:
    """`frame` has a column `v0`, `v1`, … for each of the variables `names`: a term key or null. `sure`: those that are
    never null. `keys`: those the join can be sorted by; none if it is broadcast."""

    frame: DataFrame
    names: tuple[str, ...]
    sure: frozenset[str]
    keys: tuple[str, ...] = ()

    def column(self, name: str) -> str:
        """The column of a variable."""
        return f"v{self.names.index(name)}"

    def kept(self, tasks: int) -> Side:
        """The same, computed now and kept where a stream's batches find it, divided and sorted by its keys."""
        if not self.keys:
            return self
        columns = [self.column(name) for name in self.keys]
        divided = self.frame.repartition(tasks, *columns).sortWithinPartitions(*columns)
        return replace(self, frame=divided.localCheckpoint().hint("merge"))


def side_of(
    spark: SparkSession, query: QueryText, pattern: GraphPattern, number: int, sure: frozenset[str], known: Known
) -> Side:
    """The side of knowledge part `number` of a GPM. `sure`: variables that all solutions bind with which it is joined.

    Raises OptionError where the join would be of everything with everything.
    """
    iri, part = list(knowledge_parts(pattern))[number]
    if iri in known.large:
        return _left_on_spark(known.large[iri], query, Place(pattern.name, number), sure)
    from spaseq.gpm.columnar.evaluate import value_on  # loads the kernels

    triples: Iterable[Any] = known.knowledge.graphs[iri]
    found = value_on(PatternEvaluator(part, known.knowledge), triples)
    solutions = [dict(mapping) for mapping in found]
    names = sorted({name for solution in solutions for name in solution})
    rows = [tuple(term_key(s[n]) if n in s else None for n in names) for s in solutions]
    schema = ", ".join(f"v{i} string" for i in range(len(names))) or "v0 string"
    frame = spark.createDataFrame(rows if names else [(None,)] * len(rows), schema)
    always = frozenset(n for n in names if all(n in s for s in solutions)) | certain(part.event.node)
    side = Side(frame, tuple(names), always, tuple(n for n in names if n in always & sure))
    return side if len(rows) > _BROADCAST_ROWS else replace(side, frame=F.broadcast(frame), keys=())


def _left_on_spark(triples: DataFrame, query: QueryText, place: Place, sure: frozenset[str]) -> Side:
    node = place.node(query)
    solved = solutions_on(triples, query, place)
    names = tuple(name for name in sorted(column[2:] for column in solved.columns if column.startswith("v_")))
    frame = solved.select(*(F.col(column_of(name)).alias(f"v{i}") for i, name in enumerate(names)))
    always = certain(node)
    keys = tuple(name for name in names if name in always & sure)
    if not keys:
        raise OptionError(
            f"GRAPH <{place.pattern(query).knowledge[place.part][0]}> of GPM {place.gpm} is large and shares no "
            "variable that is always bound with what it is joined with: each of its solutions would meet each event",
            "bind a variable in both, or raise knowledge_rows",
        )
    return Side(frame.hint("merge"), names, always, keys)


def joined_terms(
    side: Side, variables: Sequence[str], terms: Sequence[Column], sure: frozenset[str]
) -> tuple[list[Column], list[Column]]:
    """The conditions under which a mapping and a row of `side` are compatible, and the merged mapping.

    `terms`: the mapping's columns, for `variables`; those in `sure` are never null.
    """
    matches: list[Column] = []
    for name in side.names:
        mine, theirs = terms[variables.index(name)], F.col(side.column(name))
        everywhere = name in sure and name in side.sure
        matches.append(mine == theirs if everywhere else mine.isNull() | theirs.isNull() | (mine == theirs))
    merged = [
        F.coalesce(term, F.col(side.column(name))) if name in side.names else term
        for name, term in zip(variables, terms, strict=True)
    ]
    return matches, merged
