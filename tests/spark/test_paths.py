"""GRAPH clauses with paths and motifs over knowledge that stays on Spark: what the local engine finds on the graph, by
tasks, by joins and by GraphFrames (in whose place `tests.support.graph_frames` stands if its jar is not there)."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import rdflib

import spaseq
from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.gpm import Knowledge, PatternEvaluator
from spaseq.rdf import term_key
from spaseq.spark.session.failures import clear_errors
from spaseq.spark.session.layout import knowledge_parts
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving import graphs, searches
from spaseq.spark.solving.graph_clauses import Place, refused, solutions_on, variable_of
from spaseq.spark.solving.knowledge import used_predicates
from spaseq.spark.solving.searches import Edges, pairs_within
from tests.spark.test_knowledge import KB
from tests.spark.test_results import Case, _rows, _streams
from tests.support.graph_frames import installed

pytestmark = pytest.mark.spark

E = rdflib.Namespace("http://example.org/")
SEARCH = ["find", "shortestPaths", "connectedComponents"]
CLAUSES = {
    "?a :p/:q ?b": [],
    "?a (:p|^:q)/:p? ?b . ?b :q ?c": [],
    "?a !(:p|^:q) ?b . ?a :p ?b": [],
    "?a :p+ ?b": [],
    "?a :p+ ?a": [],
    ":n1 :p+ ?b": ["shortestPaths"],
    "?a (:p|:q)* :n2 . ?b :q ?a": ["shortestPaths"],
    ":nowhere :p* ?b": ["shortestPaths"],
    "?a (:p/:q)* :n3": ["shortestPaths"],
    "?a ^(:p+) ?b . ?a :q :n1": [],
    "?a :q ?b . ?b :q ?c . ?c :p+ ?d": ["find"],
    "?d :p+ ?a . ?a :q :n2": [],
    "?a (:p|^:p)+ ?b . ?b :q ?c": ["connectedComponents"],
    "?a (:p|^:p)* :n4": ["connectedComponents"],
    "?a :p ?b . ?b :q ?c . ?c :q ?a": ["find"],
    "?a :p ?a . ?a :q [] . ?x ?y :n1": ["find"],
    '?a :p+/:q "end" . ?a :q* ?b': [],
}
QUICK = "?a :q ?b . ?b :q ?c . ?c (:p|:q)* :n2 . ?a :p+ ?d . ?d (:p|^:p)+ ?b"
CLAUSES[QUICK] = SEARCH


def _graph(seed: int, nodes: int, edges: int) -> Any:
    rng, graph = random.Random(seed), rdflib.Graph()
    for predicate in (E.p, E.q):
        for _ in range(edges):
            graph.add((E[f"n{rng.randrange(nodes)}"], predicate, E[f"n{rng.randrange(nodes)}"]))
    graph.add((E.n2, E.p, E.n2))
    graph.add((E.n2, E.q, E.n3))
    graph.add((E.n5, E.q, rdflib.Literal("end")))
    graph.add((E.n4, E.other, E.n1))
    return graph


Rows = set[frozenset[tuple[str, str]]]


def _found(spark: Any, clause: str, graph: Any, way: str, few: int) -> tuple[Rows, Rows, tuple[str, ...]]:
    """The solutions of a GRAPH clause on Spark, those of the local engine, and how Spark found them. Spark is given the
    triples whose predicates the clause can use, as in a query."""
    from spaseq.gpm.columnar.evaluate import value_on

    query = spaseq.compile(Case("", "A; B", more={"A": f"GRAPH <{KB}> {{ {clause} }}"}).query())
    text, place = QueryText.of(query), Place("A", 0)
    used = used_predicates(text, KB)
    rows = [tuple(map(term_key, triple)) for triple in graph if used is None or str(triple[1]) in used]
    triples = spark.createDataFrame(rows, "subject string, predicate string, object string")
    frame, told = solutions_on(triples, text, place, way, few)
    names = list(map(variable_of, frame.columns))
    found = {frozenset((n, k) for n, k in zip(names, row, strict=True) if n and k) for row in frame.collect()}
    ((_, part),) = knowledge_parts(query.checked.patterns["A"])
    mappings = value_on(PatternEvaluator(part, Knowledge({KB: graph})), graph)
    assert bool(refused(triples, text, place)) == _repeats(clause)
    return found, {frozenset((name, term_key(term)) for name, term in m) for m in mappings}, told


def _repeats(clause: str) -> bool:
    return "+" in clause or "*" in clause


# Slow: `test_a_query_with_paths_over_large_knowledge` goes by joins, too, and `test_graphs.py` by GraphFrames.
@pytest.mark.parametrize(
    "way", ["tasks", *(pytest.param(way, marks=pytest.mark.slow) for way in ("joins", "graphframes"))]
)
@pytest.mark.parametrize("clause", [pytest.param(c, marks=[] if c == QUICK else [pytest.mark.slow]) for c in CLAUSES])
def test_clauses_are_as_on_a_graph_in_one_place(
    clause: str, way: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = None if graphs.has_graphframes(spark) else installed(monkeypatch)
    few, chosen = (100, "joins") if way == "tasks" else (0, way)
    found, expected, told = _found(spark, clause, _graph(7, 9, 8), chosen, few)
    assert found == expected != set()
    if stand_in is not None and way == "graphframes":
        assert sorted(stand_in.called) == sorted(CLAUSES[clause])
    assert any("GraphFrames" in line for line in told) == (way == "graphframes" and bool(CLAUSES[clause]))
    if _repeats(clause):
        assert any("by tasks" in line for line in told) == (way == "tasks")


def _random_path(rng: random.Random, depth: int = 0) -> str:
    def inner() -> str:
        return _random_path(rng, depth + 1)

    kind = rng.random()
    if depth > 2 or kind < 0.3:
        return rng.choice([":p", ":q"])
    if kind < 0.65:
        return f"({inner()}){rng.choice('+*?')}"
    if kind < 0.85:
        return f"({inner()}{rng.choice('/|')}{inner()})"
    return f"^({inner()})" if kind < 0.9 else rng.choice(["!(:p|^:q)", "!(:q)", "(:p|^:p)*", "(^:q|:q)+"])


@pytest.mark.slow
@pytest.mark.parametrize(("few", "count"), [pytest.param(100, 40, id="tasks"), pytest.param(0, 8, id="joins")])
def test_random_paths_over_random_graphs(few: int, count: int, spark: Any) -> None:
    """With both ends open, bound, or one variable; cycles, and constants that the graph does not have. On 2026-11-26,
    400 such by tasks and 160 by joins."""
    some = 0
    for seed in range(count):
        rng = random.Random(seed)
        ends = [rng.choice([variable, variable, "?a", ":n1", ":n2", ":nowhere"]) for variable in ("?a", "?b")]
        path = f"({_random_path(rng)}){rng.choice('+*')}"
        clause = f"{ends[0]} {path} {ends[1]}" + rng.choice(["", "", " . ?a :q ?c", " . ?c :p ?b"])
        found, expected, _ = _found(spark, clause, _graph(seed, rng.choice([3, 6]), rng.choice([2, 5])), "joins", few)
        assert found == expected, (seed, clause)
        some += bool(expected)
    assert some > count // 2


def test_a_long_chain_is_one_search(spark: Any) -> None:
    """400 edges in a row: with a job for each step it took minutes."""
    chain = rdflib.Graph()
    for i in range(400):
        chain.add((E[f"n{i}"], E.p, E[f"n{i + 1}"]))
    found, expected, told = _found(spark, "?a :p+ :n400 . :n0 :p* ?a", chain, "joins", 400)
    assert found == expected
    assert len(found) == 400
    assert told == ("a path that repeats is a breadth-first search by tasks, which are sent its edges (400)",)


def test_a_query_with_paths_over_large_knowledge(
    folder: Path, spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Joined by Spark if the graph is larger than `knowledge_rows`, else held on the driver; `explain` says which."""
    lines = [f"<{E}f{i}> <{E}in> <{E}f{i + 1}> ." for i in range(6)]
    lines += [f"<{E}room{i}> <{E}floor> <{E}f{i}> ." for i in range(3)]
    (tmp_path / "kb.nt").write_text("\n".join(lines) + "\n")
    more = {"A": f"GRAPH <{KB}> {{ ?r :floor/:in+ ?f . ?f :in :f4 }}"}
    query, kb = spaseq.compile(Case("", "A; B", more=more).query()), {KB: str(tmp_path / "kb.nt")}
    streams = _streams(Case("", ""), folder)
    expected = _rows(query.run(streams, kb).to_arrow())
    caplog.set_level("INFO", "spaseq.spark")
    found = spaseq.spark.run(query, spark, streams, kb, partitions=2, knowledge_rows=2, graphs="joins")
    assert _rows(spaseq.spark.collect(found)) == expected != []
    said = caplog.text
    assert "files with more than 2 triples, read by tasks; Spark works it out" in said
    assert "a path that repeats is a breadth-first search by tasks, which are sent its edges (6)" in said
    assert "9 triples of it held on the driver, as a path that repeats" in spaseq.spark.explain(query, kb)
    with pytest.raises(OptionError, match="way magic: not known"):
        spaseq.spark.explain(query, kb, knowledge_rows=2, graphs="magic")


@pytest.mark.parametrize("seeded", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_closure_has_the_local_budget(seeded: bool, spark: Any) -> None:
    chain = [(str(i), str(i + 1)) for i in range(20)]
    edges = spark.createDataFrame(chain, "src string, dst string")
    seeds, most = (spark.createDataFrame([("0",)], "src string"), 5) if seeded else (None, 25)
    with pytest.raises(BudgetExceeded, match="solution_rows"):
        graphs.search_rounds(edges, seeds, most)
    few = Edges.collect(edges, 20)
    assert few is not None
    with pytest.raises(BudgetExceeded, match="solution_rows"), clear_errors():
        pairs_within(spark, few, None, seeds, most).collect()
    assert Edges.collect(edges, 19) is None


def test_a_task_searches_batch_by_batch_and_gives_away_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources in several batches, some without edges, and room for the pairs of one source at a time."""
    monkeypatch.setattr(searches, "_ROWS", 1)
    for seed in range(20):
        rng = random.Random(seed)
        pairs = {(f"n{rng.randrange(7)}", f"n{rng.randrange(7)}") for _ in range(9)}
        closed = set(pairs)
        while more := {(a, d) for a, b in closed for c, d in pairs if b == c} - closed:
            closed |= more
        terms = sorted({term for pair in pairs for term in pair})
        numbers = np.array(sorted((terms.index(a), terms.index(b)) for a, b in pairs), np.int32)
        edges = Edges(pa.array(terms), numbers[:, 0].copy(), numbers[:, 1].copy())
        sources = [*(f"n{i}" for i in range(7)), "elsewhere"]
        batches = [pa.record_batch([pa.array(sources[i : i + 3])], names=["src"]) for i in range(0, 8, 3)]
        found = [b for b in searches._search(SimpleNamespace(value=edges), 1000, batches) if b.num_rows]
        rows = [tuple(row.values()) for batch in found for row in batch.to_pylist()]
        assert len(found) > 2
        assert sorted(rows) == sorted(closed)
