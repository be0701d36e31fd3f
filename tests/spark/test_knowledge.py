"""Background knowledge as files and DataFrames: held or left on Spark, the matches are those of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rdflib

import spaseq
from spaseq.core.errors import EventError, OptionError, UnsupportedFeature
from spaseq.rdf import build_knowledge, load_knowledge, term_key
from spaseq.spark import Reading, start, wait
from spaseq.spark.ingest import knowledge_files
from spaseq.spark.session.layout import event_part, late_conditions
from tests.spark.test_micro_batches import _local
from tests.spark.test_micro_batches import _rows as _comparable
from tests.spark.test_results import CASES, FLOOR, Case, _rows, _streams

pytestmark = pytest.mark.spark

KB = "http://example.org/kb"
_BY_NAME = {case.name: case for case in CASES}
_FILTERED = Case(
    "a clause with more than triples",
    "A; B",
    more={
        "A": f"GRAPH <{KB}> {{ ?r :floor ?f . OPTIONAL {{ ?r :limit ?m }} FILTER (?f != :f2) }}",
        "B": f"GRAPH <{KB}> {{ {{ ?r :label ?g }} UNION {{ ?r :limit ?g . ?r :floor [] }} }}",
    },
)
_CASES = [_BY_NAME["knowledge in keys"], _FILTERED, _BY_NAME["knowledge"], _BY_NAME["two graphs"]]
_MARKED = [pytest.param(c, id=c.name, marks=[] if i < 1 else [pytest.mark.slow]) for i, c in enumerate(_CASES)]


def _terms(spark: Any, folder: Path) -> Any:
    """The folder's knowledge as a DataFrame, with triples that nobody asks for."""
    lines = rdflib.Graph().parse(folder / "kb.ttl").serialize(format="nt").splitlines()
    rows = [tuple(line.removesuffix(" .").split(" ", 2)) for line in lines if line]
    more = [(f"<http://example.org/x{i}>", "<http://example.org/other>", '"unasked"') for i in range(50)]
    return spark.createDataFrame(rows + more, "subject string, predicate string, object string")


@pytest.mark.parametrize(
    "rows", [pytest.param(1000, id="held", marks=pytest.mark.slow), pytest.param(2, id="left on Spark")]
)
@pytest.mark.parametrize("case", _MARKED)
def test_a_dataframe_is_knowledge(case: Case, rows: int, folder: Path, spark: Any) -> None:
    query = spaseq.compile(case.query())
    streams = _streams(case, folder)
    expected = query.run(streams, {KB: str(folder / "kb.ttl")}, **case.words).to_arrow()
    kb = {KB: _terms(spark, folder)}
    found = spaseq.spark.collect(
        spaseq.spark.run(query, spark, streams, kb, partitions=3, knowledge_rows=rows, **case.words)
    )
    assert _rows(found) == _rows(expected) != []


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1000, 2], ids=["held", "left on Spark"])
def test_in_a_stream(rows: int, folder: Path, spark: Any, tmp_path: Path) -> None:
    case = _BY_NAME["knowledge in keys"] if rows == 2 else _BY_NAME["knowledge"]
    query = spaseq.compile(case.query())
    streams = _streams(case, folder)
    running = start(query, spark, streams, {KB: _terms(spark, folder)}, checkpoint=str(tmp_path / "state"),
                    output=str(tmp_path / "out"), available_now=True, tasks=2, knowledge_rows=rows,
                    reading=Reading(bounded=True), **case.words)  # fmt: skip
    assert wait(running)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    rows_found = [(r.start, r.end, list(r.positions), list(r.times), *(r[v] for v in query.variables)) for r in found]
    assert _comparable(rows_found) == _comparable(_local(query, streams, {KB: str(folder / "kb.ttl")})) != []


@pytest.mark.slow
def test_lines_and_files_are_one_graph(folder: Path, spark: Any, tmp_path: Path) -> None:
    case = _BY_NAME["knowledge"]
    query = spaseq.compile(case.query())
    streams = _streams(case, folder)
    lines = rdflib.Graph().parse(folder / "kb.ttl").serialize(format="nt").splitlines()
    (tmp_path / "some.nt").write_text("\n".join(lines[:3]) + "\n", encoding="utf-8")
    (tmp_path / "more.nt").write_text("# others\n\n" + "\n".join(lines[3:]) + "\n", encoding="utf-8")
    kb = {KB: [str(tmp_path / "some.nt"), spark.read.text(str(tmp_path / "more.nt"))]}
    expected = _rows(query.run(streams, {KB: str(folder / "kb.ttl")}).to_arrow())
    for rows in (1000, 1):
        found = spaseq.spark.run(query, spark, streams, kb, partitions=2, knowledge_rows=rows)
        assert _rows(spaseq.spark.collect(found)) == expected != []


def test_explain_says_how_it_is_joined(folder: Path, spark: Any) -> None:
    query = Case("", "A; B", more={"A": FLOOR}).query()
    kb = {KB: _terms(spark, folder)}
    assert "an answer of 3 rows, broadcast" in spaseq.spark.explain(query, kb)
    few = spaseq.spark.explain(query, {KB: str(folder / "kb.ttl")}, knowledge_rows=2)
    assert f"GRAPH <{KB}>: files, read by tasks" in few
    assert "an answer of more than 2 rows, left on Spark and joined by sorting both sides" in few
    path = Case("", "A; B", more={"A": f"GRAPH <{KB}> {{ ?r (^:floor|:floor)+ ?f }}"}).query()
    assert "3 triples of it held on the driver, as a path that repeats" in spaseq.spark.explain(path, kb)


@pytest.mark.parametrize(("rows", "threshold", "join"), [
    (1000, "10MB", "BroadcastHashJoin"),
    pytest.param(2, "10MB", "SortMergeJoin", marks=pytest.mark.slow),  # as a DataFrame left on Spark is joined
    pytest.param(1000, "-1", "SortMergeJoin", marks=pytest.mark.slow),  # sorting both sides is quick above
])  # fmt: skip
def test_files_are_joined_by_spark(rows: int, threshold: str, join: str, folder: Path, spark: Any) -> None:
    query = spaseq.compile(_FILTERED.query())
    streams, kb = _streams(_FILTERED, folder), {KB: [str(folder / "kb.ttl")]}
    conf, name = spark.conf, "spark.sql.autoBroadcastJoinThreshold"
    before = conf.get(name)
    conf.set(name, threshold)
    try:
        frame = spaseq.spark.run(query, spark, streams, kb, partitions=2, knowledge_rows=rows)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        found = spaseq.spark.collect(frame)
    finally:
        conf.set(name, before)
    assert join in plan
    assert {"BroadcastHashJoin", "SortMergeJoin"} & set(plan.replace(" ", "\n").split()) == {join}
    assert _rows(found) == _rows(query.run(streams, kb).to_arrow()) != []


@pytest.mark.parametrize(
    "clause",
    [
        pytest.param("?r :label ?f ; :label ?F . FILTER (STR(?f) < STR(?F))", marks=pytest.mark.slow),
        '?r :label "cold"@EN',
    ],
    ids=["case", "tag"],
)
def test_terms_and_variables_are_told_apart_as_locally(clause: str, folder: Path, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(
        '@prefix : <http://example.org/> . :room0 :label "cold"@en , "COLD"@eN . :room1 :label "warm" , "hot" .',
        "utf-8",
    )
    query = spaseq.compile(Case("", "A; B", more={"A": f"GRAPH <{KB}> {{ {clause} }}"}).query())
    streams, kb = _streams(Case("", ""), folder), {KB: str(tmp_path / "kb.ttl")}
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, streams, kb, partitions=2, knowledge_rows=0))
    assert _rows(found) == _rows(query.run(streams, kb).to_arrow()) != []


def test_files_cut_for_tasks_have_the_triples_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(knowledge_files, "_SMALLEST", 1)
    lines = [f'_:b{i % 7} <http://example.org/p{i % 3}> "h\\u00e4ll {i}"@en .' for i in range(40)]
    (tmp_path / "a.nt").write_text("# first\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "b.ttl").write_text("@prefix : <http://example.org/> . [] :p0 [ :p1 1 ] .", encoding="utf-8")
    for name, tasks in (("a.nt", 13), ("b.ttl", 2)):
        pieces = list(knowledge_files._pieces(name, None, tasks))
        assert len(pieces) == (tasks if name == "a.nt" else 1)
        found = [triple for piece in pieces for triple in knowledge_files._triples(piece, None)]
        whole = [tuple(map(term_key, triple)) for triple in load_knowledge(name)]  # type: ignore[arg-type]
        assert sorted(found) == sorted(whole) != []
        used = frozenset({"http://example.org/p1"})
        some = [triple for piece in pieces for triple in knowledge_files._triples(piece, used)]
        assert sorted(some) == sorted(triple for triple in whole if "p1" in triple[1]) != []
    monkeypatch.setattr(knowledge_files, "_KEPT_ROWS", 1)
    build_knowledge(["a.nt", "b.ttl"], "c.spaseq-kb")
    whole = [tuple(map(term_key, triple)) for triple in load_knowledge(["a.nt", "b.ttl"])]  # type: ignore[arg-type]
    for names in (None, frozenset({"http://example.org/p1", "http://example.org/p2"})):
        pieces = list(knowledge_files._pieces("c.spaseq-kb", names, 5))
        assert len(pieces) == 5
        found = [triple for piece in pieces for triple in knowledge_files._triples(piece, names)]
        assert sorted(found) == sorted(t for t in whole if names is None or t[1][1:-1] in names) != []
    (tmp_path / "a.nt").write_text("\n".join([*lines, "<a> nonsense", *lines]), encoding="utf-8")
    with pytest.raises(EventError) as told:
        [list(knowledge_files._triples(piece, None)) for piece in knowledge_files._pieces("a.nt", None, 13)]
    assert (told.value.source, told.value.record) == ("a.nt", 41)


def test_conditions_that_knowledge_cannot_change_are_decided_before_the_join() -> None:
    more = f"OPTIONAL {{ ?sA :door ?m }} FILTER (?hA > 3 && ?f = :f0 && BOUND(?m)) GRAPH <{KB}> {{ ?r :floor ?f }}"
    for also, late in (("", {"f"}), (f"GRAPH <{KB}> {{ ?r :limit ?m }}", {"f", "m"})):
        pattern = spaseq.compile(Case("", "A; B", more={"A": f"{more} {also}"}).query()).checked.patterns["A"]
        assert {name for condition in late_conditions(pattern) for name in condition.variables} == late
        early = {name for condition in event_part(pattern).local for name in condition.variables}
        assert early == {"hA", "f", "m"} - late


def test_what_is_wrong_with_it_is_said_on_the_driver(folder: Path, spark: Any) -> None:
    streams = _streams(Case("", "A; B"), folder)

    def run(more: str, frame: Any, rows: int = 1000) -> None:
        spaseq.spark.run(Case("", "A; B", more={"A": more}).query(), spark, streams, {KB: frame}, knowledge_rows=rows)

    terms = "subject string, predicate string, object string"
    with pytest.raises(EventError, match="no column predicate"):
        run(FLOOR, spark.createDataFrame([("<a:a>", "<a:b>")], "subject string, object string"))
    with pytest.raises(EventError, match=r"knowledge <http://example.org/kb>: not N-Triples.*(?s:.*)the row is room0"):
        run(FLOOR, spark.createDataFrame([("room0", "<http://example.org/floor>", "<a:f>")], terms))
    frame = _terms(spark, folder)
    with pytest.raises(OptionError, match="other than beside its own pattern"):
        run(f"OPTIONAL {{ {FLOOR} }}", frame, rows=0)
    with pytest.raises(OptionError, match="shares no variable that is always bound"):
        run(f"GRAPH <{KB}> {{ ?other :floor ?f }}", frame, rows=0)
    with pytest.raises(UnsupportedFeature, match=r"BIND in GRAPH <http://example\.org/kb> of GPM A"):
        run(f"GRAPH <{KB}> {{ ?r :floor ?g BIND (?g AS ?f) }}", frame, rows=0)
    with pytest.raises(EventError, match=r"no/such\.nt: no such file"):
        run(FLOOR, "no/such.nt")
    with pytest.raises(OptionError, match="entailment needs them all on the driver"):
        spaseq.spark.run(Case("", "A; B", more={"A": FLOOR}).query(), spark, streams, {KB: frame}, knowledge_rows=1,
                         entailment="rdfs")  # fmt: skip
