"""Property paths over knowledge that is left on Spark, as DataFrames of pairs (SPARQL 1.1 §18.4).

`/`, `|`, `^`, `!` and `?` are joins and unions of the triples. `+` and `*` are a search from a constant, from terms
that other patterns bind, or from all terms. Tasks search over few edges, which they are sent
(`spaseq.spark.solving.searches`); over more, rounds of jobs do (`spaseq.spark.solving.graphs`). There a path that leads
back the way it came, `(p|^p)+`, is connected components.

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
from spaseq.spark.solving.graphs import chosen_way, components, search_from, search_rounds, turn_edges, why_joins
from spaseq.spark.solving.searches import Edges, pairs_within

_SEARCH: Final = "a path that repeats is a breadth-first search"
_GROUPS: Final = "a path that repeats both ways is connected components"
_CLOSED: Final = "a path that repeats is closed over all pairs"


@dataclass(frozen=True, slots=True)
class PairsOf:
    """Paths over `triples` (term keys).

    * `key` gives a term's key.
    * `way`: "auto", "graphframes" or "joins" (`chosen_way`).
    * `few`: the most edges that are sent to tasks.
    * `most_rows`: of pairs, before BudgetExceeded.
    * `told` receives the decisions, for people.
    """

    triples: DataFrame
    key: Callable[[Any], str]
    way: str
    few: int
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
                return turn_edges(self._of(arg, end, start, None, ends))
            case InvPath(arg=arg):
                return self._of(inverse(arg), start, end, seeds, ends)
            case AlternativePath(args=args):
                return reduce(DataFrame.union, (self._of(arg, start, end, seeds, ends) for arg in args))
            case SequencePath(args=args):
                return self._sequence(list(args), start, end, seeds, ends)
            case NegatedPath(args=args):
                return self._at(self._outside(args), start, end)
            case MulPath(zero=zero, more=more):
                found = self._search(path, start, end, seeds, ends) if more else None
                found = self._of(path.path, start, end, seeds, ends) if found is None else found
                return found.union(self._nodes(start, end, ends)) if zero else found
        raise InternalError(f"no rule for a property path {type(path).__name__}")

    def _sequence(
        self, args: list[Any], start: str | None, end: str | None, seeds: DataFrame | None, ends: tuple[str, ...]
    ) -> DataFrame:
        """From the constant to the open end: so that each step begins where the one before ended."""
        if start is None and end is not None:
            return turn_edges(self._of(inverse(SequencePath(*args)), end, None, None, ends))
        found = self._of(args[0], start, None, seeds, ends)
        for i, arg in enumerate(args[1:], 2):
            via = found.select("src", F.col("dst").alias("via"))
            begins = via.select(F.col("via").alias("src")).distinct() if repeats(arg) else None
            step = self._of(arg, None, end if i == len(args) else None, begins, ends)
            found = via.join(step.select(F.col("src").alias("via"), "dst"), "via").select("src", "dst")
        return found

    def _search(
        self, path: Any, start: str | None, end: str | None, seeds: DataFrame | None, ends: tuple[str, ...]
    ) -> DataFrame:
        """One step or more."""
        if start is None and end is not None:
            return turn_edges(self._search(MulPath(inverse(path.path), path.mod), end, None, None, ends))
        spark, inner = self.triples.sparkSession, path.path
        way, both_ways = chosen_way(spark, self.way), leads_back(inner)
        edges = self._of(inner, None, None, None, ends)
        asked = self.way == "graphframes" and (both_ways or start is not None)
        few = None if asked else Edges.collect(edges, self.few)
        if few is not None:
            self._tell(f"{_SEARCH} by tasks, which are sent its edges ({len(few):,})")
            found = pairs_within(spark, few, start, seeds, self.most_rows)
        elif both_ways:
            self._tell_way(_GROUPS, way, asked)
            labels = components(edges, way)
            first = labels.select(F.col("entity").alias("src"), "group")
            last = labels.select(F.col("entity").alias("dst"), "group")
            found = self._at(first, start, None).join(last, "group").select("src", "dst")
        elif start is not None:
            self._tell_way(_SEARCH, way, asked)
            found = search_from(edges, start, way, self.most_rows)
        else:
            self._tell(f"{_CLOSED if seeds is None else _SEARCH + ' from what is bound'}, by joins: only joins do that")
            found = search_rounds(edges, seeds, self.most_rows)
        return self._at(found, None, end)

    def _tell_way(self, what: str, way: str, asked: bool) -> None:
        why = "asked for" if asked else f"it has more than {self.few:,} edges"
        if way == "joins":
            why += f", and {why_joins(self.triples.sparkSession, self.way)}"
        self._tell(f"{what}, by {'GraphFrames' if way == 'graphframes' else way}: {why}")

    def _tell(self, line: str) -> None:
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
            parts.append(turn_edges(self._edges(~F.col("predicate").isin(backward))))
        return reduce(DataFrame.union, parts)

    def _nodes(self, start: str | None, end: str | None, ends: tuple[str, ...]) -> DataFrame:
        """A path of length zero. With a constant at its ends, it leads from that to itself. Otherwise it leads so from
        each node of the graph, and from `ends`, even if the graph does not have them."""
        spark, bound = self.triples.sparkSession, {start, end} - {None}
        if bound:
            return spark.createDataFrame([(one, one) for one in bound if len(bound) == 1], "src string, dst string")
        nodes = self.triples.select(F.col("subject").alias("src")).union(self.triples.select("object"))
        if ends:
            nodes = nodes.union(spark.createDataFrame([(end,) for end in ends], "src string"))
        return nodes.distinct().select("src", F.col("src").alias("dst"))

    @staticmethod
    def _at(pairs: DataFrame, start: str | None, end: str | None) -> DataFrame:
        found = pairs if start is None else pairs.where(F.col("src") == start)
        return found if end is None else found.where(F.col("dst") == end)
