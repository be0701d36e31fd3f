"""GRAPH clauses with paths and motifs over knowledge that stays on Spark: what the local engine finds on the graph, by
joins and by GraphFrames (in whose place `tests.support.graph_frames` stands where its jar is not there)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import rdflib

import spaseq
from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.gpm import Knowledge, PatternEvaluator
from spaseq.rdf import term_key
from spaseq.spark.session.layout import knowledge_parts
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving import graphs
from spaseq.spark.solving.graph_clauses import Place, refused, solutions_on, variable_of
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


@pytest.mark.parametrize("way", ["joins", "graphframes"])
@pytest.mark.parametrize("clause", [pytest.param(c, marks=[] if c == QUICK else [pytest.mark.slow]) for c in CLAUSES])
def test_clauses_are_as_on_a_graph_in_one_place(
    clause: str, way: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = None if graphs.has_graphframes(spark) else installed(monkeypatch)
    from spaseq.gpm.columnar.evaluate import value_on

    graph = _graph(7, 9, 8)
    query = spaseq.compile(Case("", "A; B", more={"A": f"GRAPH <{KB}> {{ {clause} }}"}).query())
    place, rows = Place("A", 0), [tuple(map(term_key, triple)) for triple in graph]
    triples = spark.createDataFrame(rows, "subject string, predicate string, object string")
    frame, told = solutions_on(triples, QueryText.of(query), place, way)
    names = list(map(variable_of, frame.columns))
    found = {frozenset(zip(names, row, strict=True)) for row in frame.collect()}
    ((_, part),) = knowledge_parts(query.checked.patterns["A"])
    mappings = value_on(PatternEvaluator(part, Knowledge({KB: graph})), graph)
    assert found == {frozenset((name, term_key(term)) for name, term in mapping) for mapping in mappings}
    assert found
    if stand_in is not None and way == "graphframes":
        assert sorted(stand_in.called) == sorted(CLAUSES[clause])
    assert any("GraphFrames" in line for line in told) == (way == "graphframes" and bool(CLAUSES[clause]))
    assert bool(refused(triples, QueryText.of(query), place)) == ("+" in clause or "*" in clause)


def test_a_query_with_paths_over_large_knowledge(
    folder: Path, spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Joined by Spark where the graph is larger than `knowledge_rows`, held where it is not; `explain` says which."""
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
    assert "a path that repeats is a breadth-first search from what is bound, by joins: only joins do that" in said
    assert "9 triples of it held on the driver, as a path that repeats" in spaseq.spark.explain(query, kb)
    with pytest.raises(OptionError, match="way magic: not known"):
        spaseq.spark.explain(query, kb, knowledge_rows=2, graphs="magic")


def test_a_closure_has_the_local_budget(spark: Any) -> None:
    chain = [(str(i), str(i + 1)) for i in range(20)]
    edges = spark.createDataFrame(chain, "src string, dst string")
    for seeds in (None, spark.createDataFrame([("0",)], "src string")):
        with pytest.raises(BudgetExceeded, match="solution_rows"):
            graphs.reached(edges, seeds=seeds, most_rows=25 if seeds is None else 5)
