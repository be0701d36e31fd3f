"""The table of solutions: what the GPMs of a query are at each instant, one mapping a row.

Its columns are those of SOLUTIONS (`spaseq.spark.session.tables`).

Tasks evaluate the GPMs without their knowledge, but for those that need it at once (`solver_of`). `join_knowledge` has
Spark join the answers of the GRAPH clauses (`spaseq.spark.solving.join_side`) to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spaseq.gpm import GraphPattern, Knowledge, event_graph, holds
from spaseq.gpm.algebra import certain
from spaseq.gpm.pattern import with_answers
from spaseq.language.solving.solve import InstantSolutions, Solver
from spaseq.rdf import term_from_key, term_key
from spaseq.spark.ingest.time_ranges import rows_of
from spaseq.spark.session.failures import carried
from spaseq.spark.session.layout import Layout, event_part, late_conditions
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving.join_side import Sides, join_rows
from spaseq.spark.solving.knowledge import used_predicates

INSTANT: Final = -1
"""The `gpm` of a row that only says that its instant exists."""
Graphs = Mapping[str, tuple[tuple[str, ...], ...]]
"""Background knowledge to be sent: by IRI, the triples as keys of terms."""
Answer = tuple[tuple[str, ...], list[tuple[str | None, ...]]]
"""What a GRAPH clause gives: variables, and rows of a term key or None for each."""
Answers = Mapping[str, Sequence[Answer]]
"""By GPM, the answers to its GRAPH clauses, in their order."""


# -- evaluating


def graph_keys(query: QueryText, layout: Layout, knowledge: Knowledge) -> Graphs:
    """What is sent of the background knowledge: of the graphs that GPMs ask whose knowledge Spark does not join, the
    triples that these can use."""
    alone = [p for p in query.compiled().checked.patterns.values() if p.name not in layout.joined]
    needed = set(knowledge.graphs) if any(p.any_graph for p in alone) else {iri for p in alone for iri in p.graphs}
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for iri in sorted(needed):
        used = used_predicates(query, iri, layout.joined)
        triples = (t for t in knowledge.graphs[iri] if used is None or str(t[1]) in used)
        found[iri] = tuple(tuple(map(_key, triple)) for triple in triples)
    return found


def solver_of(query: QueryText, layout: Layout, graphs: Graphs) -> Solver:
    """The local solver, for the parts of the GPMs that are not joined later."""
    checked = query.compiled().checked
    joined = layout.joined
    patterns = {name: event_part(p) if name in joined else p for name, p in checked.patterns.items()}
    if joined:  # a key may come with the knowledge: the rows get theirs after the join
        checked = replace(checked, partition=())
    return Solver(replace(checked, patterns=patterns), _named(graphs), **_words(query))


def answered_solver(query: QueryText, graphs: Graphs, answers: Answers) -> Solver:
    """The local solver, with the answers of the knowledge in place of their GRAPH clauses: all in one place."""
    checked = query.compiled().checked
    patterns = {name: _answered(p, answers[name]) if name in answers else p for name, p in checked.patterns.items()}
    asked = {iri: graphs.get(iri, ()) for pattern in checked.patterns.values() for iri in pattern.graphs}
    return Solver(replace(checked, patterns=patterns), _named({**graphs, **asked}), **_words(query))


def _words(query: QueryText) -> dict[str, Any]:
    """What `Solver` is told besides."""
    return {"solution_rows": query.compiled().settings.solution_rows, "reference": query.reference}


def _answered(pattern: GraphPattern, answers: Sequence[Answer]) -> GraphPattern:
    """A GPM with a VALUES of its answer in place of each GRAPH clause."""
    return with_answers(
        pattern, [(names, [_mapping(row[: len(names)], names) for row in rows]) for names, rows in answers]
    )


def _named(graphs: Graphs) -> Knowledge:
    return Knowledge({iri: event_graph(_triples(graph)) for iri, graph in graphs.items()})


def _triples(keys: Iterable[tuple[str, ...]]) -> Iterator[tuple[Any, Any, Any]]:
    for s, p, o in keys:
        yield term_from_key(s), term_from_key(p), term_from_key(o)


# -- joining


def join_knowledge(table: DataFrame, query: QueryText, layout: Layout, sides: Sides) -> DataFrame:
    """`table` with the knowledge of the layout's `joined` GPMs joined, the conditions on it applied, and keys. Its rows
    are those of SOLUTIONS, or have other columns in place of `position`."""
    if not layout.joined:
        return table
    checked = query.compiled().checked
    for name in layout.joined:
        pattern, place = checked.patterns[name], layout.gpms.index(name)
        sure = certain(pattern.event)
        for side in sides[name]:
            table = join_rows(table, place, layout.variables[place], sure, side, ("time",))
            sure |= side.sure
    if any(late_conditions(checked.patterns[name]) for name in layout.joined):
        table = table.mapInArrow(carried(_keep, query, layout), table.schema)
    return _keyed(table, checked.partition, layout)


def _keep(query: QueryText, layout: Layout, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows whose mapping satisfies its GPM's conditions on knowledge."""
    joined = {layout.gpms.index(name) for name in layout.joined}
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("gpm", "terms"))
        mask = [gpm not in joined or satisfies(query, layout, gpm, terms) for gpm, terms in zip(*columns, strict=True)]
        yield batch.filter(pa.array(mask, pa.bool_()))


def satisfies(query: QueryText, layout: Layout, gpm: int, terms: Sequence[str | None]) -> bool:
    """True if the conditions of GPM number `gpm` that wait for its knowledge hold of a mapping: a term key or None for
    each of its variables."""
    pattern = query.compiled().checked.patterns[layout.gpms[gpm]]
    mapping = _mapping(terms, layout.variables[gpm])
    return all(holds(condition, mapping, pattern.prologue) for condition in late_conditions(pattern))


def _keyed(table: DataFrame, partition: Sequence[str], layout: Layout) -> DataFrame:
    """`table` with the key of each row; rows that do not bind all of the partition's variables have none and go."""
    if not partition:
        return table
    key: Column = F.lit(None)
    for gpm, variables in enumerate(layout.variables):
        own = F.array(*(F.get("terms", F.lit(variables.index(name))) for name in sorted(partition)))
        key = F.when(F.col("gpm") == gpm, own).otherwise(key)
    keyed = table.withColumn("key", key)
    return keyed.where(f"gpm = {INSTANT} or (key is not null and not exists(key, term -> term is null))")


# -- reading back


def instants_of(
    batches: Iterable[pa.RecordBatch], layout: Layout, partition: Sequence[str], place: Sequence[str]
) -> Iterator[list[InstantSolutions]]:
    """The rows of a part of the table, in order, as the engine's: one list per instant. Its position is that of the
    rows if `place`, the columns that differ between instants, is `position`, else its number in the part."""
    names, count = sorted(partition), len(place)
    columns = [*place, "time", "gpm", "terms", "key"]
    each = rows_of(batch.select(columns) for batch in batches)
    for number, (at, rows) in enumerate(groupby(each, key=itemgetter(slice(count)))):
        held = list(rows)
        found = (
            (None if key is None else tuple(key), () if gpm == INSTANT else ((gpm, terms),))
            for gpm, terms, key in (row[count + 1 :] for row in held)
        )
        position = at[0] if place[0] == "position" else number
        yield at_instant(position, held[0][count], found, layout, names)


def at_instant(
    position: int, time: int, rows: Iterable[tuple[Any, Iterable[Any]]], layout: Layout, partition: Sequence[str]
) -> list[InstantSolutions]:
    """What the GPMs are at an instant, as the engine has it: a value for each PARTITION BY key, in order of the keys.

    `rows`: a key (None without PARTITION BY) and mappings, each a GPM's place and its terms. `partition` is sorted.
    """
    by_key: dict[tuple[str, ...] | None, dict[str, set[Any]]] = {}
    for key, mappings in rows:
        values = by_key.setdefault(key, {})
        for gpm, terms in mappings:
            values.setdefault(layout.gpms[gpm], set()).add(_mapping(terms, layout.variables[gpm]))
    return [
        InstantSolutions(
            position,
            time,
            None if key is None else _mapping(key, partition),
            {name: frozenset(mappings) for name, mappings in values.items()},
        )
        for key, values in sorted(by_key.items(), key=lambda pair: pair[0] or ())
    ]


def _mapping(terms: Sequence[str | None], variables: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The mapping of a row: pairs in order of the variables' names."""
    return tuple((name, _term(key)) for name, key in zip(variables, terms, strict=True) if key is not None)


_key: Callable[[Any], str] = term_key
_term = lru_cache(1 << 17)(term_from_key)
