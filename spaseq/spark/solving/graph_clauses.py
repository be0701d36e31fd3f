"""GRAPH clauses over knowledge that stays on Spark, as DataFrames of solutions.

Basic graph patterns are joins of the triples with themselves, in Spark's order, or GraphFrames' motifs. Property paths
are DataFrames of pairs (`spaseq.spark.solving.paths`). Groups, OPTIONAL, UNION and FILTER (without EXISTS) around them
are their relational counterparts (SPARQL 1.1 §18.5). What else a GRAPH clause may hold (BIND, subselects, …) needs the
whole graph in one place: refused by name.

A solution is a row: a column (`column_of`) for each variable, a term key or null. Values of GPMs are sets, so
duplicates need not be counted, and are left out where a variable is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spaseq.core.errors import InternalError, UnsupportedFeature
from spaseq.gpm import Condition, GraphPattern, holds
from spaseq.gpm.algebra import (
    ALWAYS,
    BGP,
    Distinct,
    Expression,
    Filter,
    Join,
    LeftJoin,
    Node,
    Projected,
    Union,
    certain,
    has_exists,
    visible,
    walk,
)
from spaseq.gpm.property_paths import InvPath, Path, repeats
from spaseq.rdf import term_bytes, term_from_key
from spaseq.spark.ingest.time_ranges import rows_of
from spaseq.spark.session.failures import carried
from spaseq.spark.session.options import KNOWLEDGE_ROWS
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving.graphs import chosen_way, motif, why_joins
from spaseq.spark.solving.paths import PairsOf

_MOST_PAIRS: Final = 50_000_000
"""Of a path that repeats: the local engine's budget `solution_rows`."""
_TOO_LARGE: Final = ", which is too large to be sent to each task"
_HINT: Final = "raise knowledge_rows so that the graph comes to the driver, or write the clause with triple patterns"

_MARK: Final = "^"
"""No name of a variable or a blank node has it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a GRAPH clause: the GPM's name, and the number of the knowledge part. So a task finds it again."""

    gpm: str
    part: int

    def pattern(self, query: QueryText) -> GraphPattern:
        """The GPM."""
        return query.compiled().checked.patterns[self.gpm]

    def node(self, query: QueryText) -> Node:
        """The clause."""
        return self.pattern(query).knowledge[self.part][1]


def column_of(name: str) -> str:
    """The column of a variable. Spark compares columns without case, so letters that have one are marked: ?f and ?F
    are two."""
    return "v_" + _cased(name)


def variable_of(column: str) -> str | None:
    """The opposite of `column_of`; None for a column of another kind."""
    return column[2:].replace(_MARK, "") if column.startswith("v_") else None


def _cased(name: str) -> str:
    return "".join(c if c == c.casefold() else _MARK + c for c in name)


def few_edges(knowledge_rows: int) -> int:
    """The edges of a path that repeats, of some 100 bytes each, that come to the driver and are sent to tasks."""
    return max(10 * knowledge_rows, KNOWLEDGE_ROWS)


def solutions_on(
    triples: DataFrame, query: QueryText, place: Place, way: str, few: int
) -> tuple[DataFrame, tuple[str, ...]]:
    """The solutions of a GRAPH clause over `triples` (term keys), each once if variables were left out, and how they
    are worked out, for people. `way`: "auto", "graphframes" or "joins". `few`: the most edges that are sent to tasks
    (`few_edges`).

    Raises UnsupportedFeature, before anything runs, for what can only be evaluated on a graph that is in one place. A
    path that repeats runs jobs, and is a BudgetExceeded (`solution_rows`) for more pairs than the local engine allows.
    """
    node = place.node(query)
    translation = _Translation(triples, query, place, way, few)
    found = translation.of(node)
    names = sorted(visible(node))
    shown = found.select(*(column_of(name) for name in names))
    return (shown if len(names) == len(found.columns) else shown.distinct()), tuple(translation.told)


def refused(triples: DataFrame, query: QueryText, place: Place) -> str:
    """What of a GRAPH clause can only be evaluated on a graph that is in one place, or is quicker there while the graph
    is small; empty for nothing. Runs nothing."""
    try:
        _Translation(triples, query, place, None, 0).of(place.node(query))
    except UnsupportedFeature as error:
        return error.problem.removesuffix(_TOO_LARGE)
    return ""


class _Translation:
    """`way` None: only to see whether it can be done, without rounds of jobs."""

    def __init__(self, triples: DataFrame, query: QueryText, place: Place, way: str | None, few: int) -> None:
        self._triples = triples
        self._query = query
        self._place = place
        self._way = way
        self._nodes = list(walk(place.node(query)))
        self._paths = PairsOf(triples, _key, way or "joins", few, _MOST_PAIRS)

    @property
    def told(self) -> list[str]:
        return self._paths.told

    def of(self, node: Node) -> DataFrame:
        match node:
            case BGP(triples) if triples:
                return self._basic(list(triples))
            case Join(BGP(()), right):
                return self.of(right)
            case Join(left, BGP(())):
                return self.of(left)
            case Join(left, right):
                return _join(self.of(left), self.of(right), certain(left) & certain(right), "inner")
            case LeftJoin(left, right, condition) if condition == ALWAYS:
                return _join(self.of(left), self.of(right), certain(left) & certain(right), "left_outer")
            case Union(left, right):
                return self.of(left).unionByName(self.of(right), allowMissingColumns=True)
            case Filter(child, condition) if not has_exists(condition):
                return self._filtered(node, self.of(child), condition)
            case Projected(child, names):
                return self.of(child).select(*(column_of(name) for name in names)).distinct()
            case Distinct(child):
                return self.of(child).distinct()
        raise self._refused(_NAMES.get(type(node).__name__, type(node).__name__))

    def _refused(self, what: str) -> UnsupportedFeature:
        iri = self._place.pattern(self._query).knowledge[self._place.part][0]
        return UnsupportedFeature(
            f"{what} in GRAPH <{iri}> of GPM {self._place.gpm}{_TOO_LARGE}",
            hint=_HINT,
        )

    def _basic(self, triples: list[tuple[Any, Any, Any]]) -> DataFrame:
        """A join of its triple patterns, each with one that shares a variable before those that share none, and paths
        behind them: those that repeat begin where others ended."""
        plain, found = self._motif([triple for triple in triples if not isinstance(triple[1], Path)])
        rest = [*plain, *(triple for triple in triples if isinstance(triple[1], Path))]
        while rest:
            known = set() if found is None else set(found.columns)
            chosen = next((t for t in rest if known & set(_columns(t))), rest[0])
            rest.remove(chosen)
            step = self._along(chosen, found) if isinstance(chosen[1], Path) else self._step(chosen)
            shared = [name for name in step.columns if name in known]
            found = step if found is None else found.join(step, shared) if shared else found.crossJoin(step)
        assert found is not None
        return found

    def _motif(self, plain: list[tuple[Any, Any, Any]]) -> tuple[list[tuple[Any, Any, Any]], DataFrame | None]:
        """Triple patterns that share terms, by GraphFrames where it is there: those left for joins, and what it found.
        Not with a variable for a predicate, of which a motif knows nothing."""
        steps = [triple for triple in plain if not _is_open(triple[1]) and _columns(triple)]
        if len(steps) < 2 or self._way is None:
            return plain, None
        if chosen_way(self._triples.sparkSession, self._way) == "joins":
            self._tell(f"triple patterns are joined: {why_joins(self._triples.sparkSession, self._way)}")
            return plain, None
        self._tell("triple patterns are a motif of GraphFrames")
        names = {column: f"?m{i}" for i, column in enumerate(dict.fromkeys(c for t in steps for c in _columns(t)))}
        terms = [[names[_column(t)] if _is_open(t) else _key(t) for t in triple] for triple in steps]
        found = motif(self._triples, [(s, p, o) for s, p, o in terms])
        by_name = {name[1:]: column for column, name in names.items()}
        return [t for t in plain if t not in steps], found.toDF(*(by_name[name] for name in found.columns))

    def _tell(self, line: str) -> None:
        if line not in self.told:
            self.told.append(line)

    def _step(self, triple: tuple[Any, Any, Any]) -> DataFrame:
        """The triples that match a triple pattern, a column for each variable (a blank node is one)."""
        return _shown(self._triples, triple, ("subject", "predicate", "object"))

    def _along(self, triple: tuple[Any, Any, Any], found: DataFrame | None) -> DataFrame:
        """The pairs of a property path, as `_step`. `found`: what it is joined with."""
        first, path, last = triple
        if repeats(path) and self._way is None:
            raise self._refused("a path that repeats")
        start, end = (None if _is_open(term) else _key(term) for term in (first, last))
        bound = set() if found is None else set(found.columns)
        seeds, turned = None, False
        if found is not None and repeats(path) and start is None and end is None:
            turned = _column(first) not in bound and _column(last) in bound
            column = _column(last if turned else first)
            if column in bound:
                seeds = found.select(F.col(column).alias("src")).where("src is not null").distinct()
        pairs = self._paths.pairs(InvPath(path) if turned else path, start, end, seeds)
        return _shown(pairs, (last, first) if turned else (first, last), ("src", "dst"))

    def _filtered(self, node: Node, found: DataFrame, condition: Expression) -> DataFrame:
        number = next(i for i, inner in enumerate(self._nodes) if inner is node)
        keep = carried(_keep, self._query, self._place, number, tuple(found.columns))
        return found.mapInArrow(keep, found.schema)


def _shown(rows: DataFrame, terms: Sequence[Any], names: Sequence[str]) -> DataFrame:
    """The rows whose columns `names` match `terms`, a column for each variable; each once where there is none."""
    columns: dict[str, Column] = {}
    for term, name in zip(terms, names, strict=True):
        if not _is_open(term):
            rows = rows.where(F.col(name) == _key(term))
            continue
        if _column(term) in columns:
            rows = rows.where(columns[_column(term)] == F.col(name))
        columns.setdefault(_column(term), F.col(name))
    if not columns:
        return rows.select(F.lit(1).alias("v_")).distinct()
    return rows.select(*(column.alias(name) for name, column in columns.items()))


def _columns(triple: tuple[Any, Any, Any]) -> list[str]:
    return [_column(term) for term in triple if _is_open(term)]


def _is_variable(term: Any) -> bool:
    return bool(visible(BGP(((term, term, term),))))


def _is_open(term: Any) -> bool:
    """Whether a term of a triple pattern is a variable, or a blank node, which acts as one; a property path is not."""
    return isinstance(term, str) and (_is_variable(term) or _key(term).startswith("_:"))


def _key(term: Any) -> str:
    """As the triples have it, which are read: tags in lower case, no xsd:string."""
    return term_bytes(term).decode()


def _column(term: Any) -> str:
    return column_of(str(term)) if _is_variable(term) else f"b_{_cased(term)}"


def _join(left: DataFrame, right: DataFrame, sure: frozenset[str], how: str) -> DataFrame:
    """Compatible solutions, merged; `sure`: bound in all of both."""
    shared = [name for name in left.columns if name in right.columns]
    other = right.select(*(F.col(name).alias(f"r_{name}") for name in right.columns))
    conditions: list[Column] = []
    for name in shared:
        mine, theirs = F.col(name), F.col(f"r_{name}")
        everywhere = variable_of(name) in sure
        conditions.append(mine == theirs if everywhere else mine.isNull() | theirs.isNull() | (mine == theirs))
    joined = left.join(other, reduce(and_, conditions) if conditions else F.lit(True), how)
    kept = [F.coalesce(n, f"r_{n}").alias(n) if n in shared else F.col(n) for n in left.columns]
    return joined.select(*kept, *(F.col(f"r_{n}").alias(n) for n in right.columns if n not in shared))


def _keep(
    query: QueryText, place: Place, number: int, columns: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The solutions for which the FILTER that is node `number` of the clause is true."""
    node = list(walk(place.node(query)))[number]
    if not isinstance(node, Filter):
        raise InternalError(f"node {number} of a GRAPH clause is no FILTER")
    pattern = place.pattern(query)
    condition = Condition.of(node.condition)
    names = list(map(variable_of, columns))
    for batch in batches:
        mask = []
        for row in rows_of([batch]):
            bound = sorted((n, term_from_key(key)) for n, key in zip(names, row, strict=True) if n and key is not None)
            mask.append(holds(condition, tuple(bound), pattern.prologue))
        yield batch.filter(pa.array(mask, pa.bool_()))


_NAMES: Final = {
    "BGP": "an empty group",
    "Minus": "MINUS",
    "GraphNode": "GRAPH",
    "Extend": "BIND",
    "Values": "VALUES",
    "Ordered": "ORDER BY",
    "Sliced": "LIMIT",
    "Grouped": "GROUP BY",
    "Aggregated": "an aggregate",
    "Filter": "a FILTER with EXISTS",
    "LeftJoin": "OPTIONAL with a FILTER",
}
