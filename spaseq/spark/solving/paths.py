"""Property paths over knowledge that is left on Spark, as DataFrames of pairs (SPARQL 1.1 §18.4).

`/`, `|`, `^`, `!` and `?` are joins and unions of the triples. What repeats, `+` and `*`, is worked out by rounds of
jobs: a search from a constant or from terms that other patterns bind, connected components where the path leads back
the way it came (`(p|^p)+`), else the closure of all pairs (`spaseq.spark.solving.graphs`).

`spaseq.gpm.columnar.paths` is the same on a graph in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spaseq.core.errors import InternalError
from spaseq.gpm.property_paths import (
    AlternativePath,
    InvPath,
    MulPath,
    NegatedPath,
    SequencePath,
    URIRef,
    inverse,
    leads_back,
    repeats,
)
from spaseq.spark.solving.graphs import chosen_way, components, reached, why_joins

_SEARCH: Final = "a path that repeats is a breadth-first search"
_GROUPS: Final = "a path that repeats both ways is connected components"
_CLOSED: Final = "a path that repeats is closed over all pairs"


@dataclass(frozen=True, slots=True)
class PairsOf:
    """What evaluates paths over `triples` (term keys). `key` gives a term's key; `way` is who does it (`chosen_way`);
    `most_rows`: of pairs, before BudgetExceeded; `told` is given what was decided, for people."""

    triples: DataFrame
    key: Callable[[Any], str]
    way: str
    most_rows: int
    told: list[str] = field(default_factory=list)

    def pairs(self, path: Any, start: str | None, end: str | None, seeds: DataFrame | None = None) -> DataFrame:
        """The pairs (`src`, `dst`) of a path; of them those that begin at `start` and end at `end`, keys of constants.

        `seeds`: a column `src`. Pairs that begin elsewhere may be left out. A pair may occur several times.
        """
        ends = tuple(end for end in (start, end) if end is not None)
        return self._of(path, start, end, seeds, ends)

    def _of(
        self, path: Any, start: str | None, end: str | None, seeds: DataFrame | None, ends: tuple[str, ...]
    ) -> DataFrame:
        match path:
            case URIRef():
                return self._at(self._edges(F.col("predicate") == self.key(path)), start, end)
            case InvPath(arg=URIRef() | NegatedPath() as arg):
                return _turned(self._of(arg, end, start, None, ends))
            case InvPath(arg=arg):
                return self._of(inverse(arg), start, end, seeds, ends)
            case AlternativePath(args=args):
                return reduce(DataFrame.union, (self._of(arg, start, end, seeds, ends) for arg in args))
            case SequencePath(args=args):
                return self._sequence(list(args), start, end, seeds, ends)
            case NegatedPath(args=args):
                return self._at(self._outside(args), start, end)
            case MulPath(zero=zero, more=more):
                found = self._repeated(path, start, end, seeds, ends) if more else None
                found = self._of(path.path, start, end, seeds, ends) if found is None else found
                return found.union(self._nodes(start, end, ends)) if zero else found
        raise InternalError(f"no rule for a property path {type(path).__name__}")

    def _sequence(
        self, args: list[Any], start: str | None, end: str | None, seeds: DataFrame | None, ends: tuple[str, ...]
    ) -> DataFrame:
        """From the constant to the open end: so that each step begins where the one before ended."""
        if start is None and end is not None:
            return _turned(self._of(inverse(SequencePath(*args)), end, None, None, ends))
        found = self._of(args[0], start, None, seeds, ends)
        for i, arg in enumerate(args[1:], 2):
            via = found.select("src", F.col("dst").alias("via"))
            begins = via.select(F.col("via").alias("src")).distinct() if repeats(arg) else None
            step = self._of(arg, None, end if i == len(args) else None, begins, ends)
            found = via.join(step.select(F.col("src").alias("via"), "dst"), "via").select("src", "dst")
        return found

    def _repeated(
        self, path: Any, start: str | None, end: str | None, seeds: DataFrame | None, ends: tuple[str, ...]
    ) -> DataFrame:
        """One step or more."""
        inner, way = path.path, chosen_way(self.triples.sparkSession, self.way)
        if leads_back(inner):
            self._tell(_GROUPS, way)
            labels = components(self._of(inner, None, None, None, ends), way)
            first = labels.select(F.col("entity").alias("src"), "group")
            last = labels.select(F.col("entity").alias("dst"), "group")
            pairs = self._at(first, start, None).join(self._at(last, None, end), "group")
            return pairs.select("src", "dst")
        edges = self._of(inner, None, None, None, ends)
        if start is None and end is None:
            self._tell(_CLOSED if seeds is None else _SEARCH + " from what is bound", "joins", "only joins do that")
        else:
            self._tell(_SEARCH, way)
        return reached(edges, start, end, seeds, way=way, most_rows=self.most_rows)

    def _tell(self, what: str, way: str, why: str = "") -> None:
        why = why or why_joins(self.triples.sparkSession, self.way)
        line = f"{what}, by GraphFrames" if way == "graphframes" else f"{what}, by joins: {why}"
        if line not in self.told:
            self.told.append(line)

    def _edges(self, condition: Any) -> DataFrame:
        return self.triples.where(condition).select(F.col("subject").alias("src"), F.col("object").alias("dst"))

    def _outside(self, args: Any) -> DataFrame:
        """A negated set: the triples with predicates that are not in it; if it has inverse ones, also the triples with
        predicates other than these, exchanged."""
        forward = [self.key(arg) for arg in args if isinstance(arg, URIRef)]
        backward = [self.key(arg.arg) for arg in args if isinstance(arg, InvPath)]
        parts = []
        if forward or not backward:
            parts.append(self._edges(~F.col("predicate").isin(forward)))
        if backward:
            parts.append(_turned(self._edges(~F.col("predicate").isin(backward))))
        return reduce(DataFrame.union, parts)

    def _nodes(self, start: str | None, end: str | None, ends: tuple[str, ...]) -> DataFrame:
        """A path of length zero: from each node of the graph to itself, and from constants at the ends of the whole
        path, whether the graph has them or not."""
        spark = self.triples.sparkSession
        nodes = self.triples.select(F.col("subject").alias("src")).union(self.triples.select("object"))
        if ends:
            nodes = nodes.union(spark.createDataFrame([(end,) for end in ends], "src string"))
        return self._at(nodes.distinct().select("src", F.col("src").alias("dst")), start, end)

    @staticmethod
    def _at(pairs: DataFrame, start: str | None, end: str | None) -> DataFrame:
        found = pairs if start is None else pairs.where(F.col("src") == start)
        return found if end is None else found.where(F.col("dst") == end)


def _turned(pairs: DataFrame) -> DataFrame:
    return pairs.select(F.col("dst").alias("src"), F.col("src").alias("dst"))
