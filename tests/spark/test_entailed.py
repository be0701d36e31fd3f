"""Entailment on Spark: the answers of the local engine, in batches and in streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.cli.main import main
from spaseq.core.errors import BudgetExceeded, OptionError, UnsupportedFeature
from spaseq.spark import Reading, start, wait
from tests.spark.test_micro_batches import _local, _rows
from tests.support.micro_batches import in_micro_batches

E = "http://example.org/"
KB = f"{E}kb"
ONTOLOGY = f"""
@prefix : <{E}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:Dog rdfs:subClassOf :Mammal . :Mammal rdfs:subClassOf :Animal . :Cat rdfs:subClassOf :Animal .
:Hound owl:equivalentClass :Dog .
:barks rdfs:subPropertyOf :sounds . :barks rdfs:domain :Dog . :owns rdfs:domain :Person ; rdfs:range :Animal .
:Dog :eats :meat . :Animal :eats :food . :ann :owns :rex ."""
EVENTS = [
    f'<{E}rex> <{E}barks> "1"',
    f"<{E}tom> a <{E}Cat>",
    f"<{E}ann> <{E}owns> <{E}tom>",
    f"<{E}old> a <{E}Hound>",
    f'<{E}rex> <{E}sounds> "2"',
    f"<{E}tim> a <{E}Dog>",
]
PATTERNS = [
    "?x a :Animal",
    "?x :sounds ?y",
    f"?x a ?c . GRAPH <{KB}> {{ ?c :eats ?y }}",
    "?x a :Person . ?x :owns ?z OPTIONAL { ?z a ?y }",
    f"?x a :Animal FILTER NOT EXISTS {{ GRAPH <{KB}> {{ ?y :owns ?x }} }}",
    "?x a ?c FILTER EXISTS { ?x a :Mammal }",
]


def _query(pattern: str, partition: str = "") -> Any:
    return spaseq.compile(
        f"PREFIX : <{E}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> SELECT * {partition} "
        f"FROM STREAM S <{E}S> WHERE {{ SEQ (A ; B) DEFINE GPM A ON S {{ {pattern} }} "
        f"DEFINE GPM B ON S {{ ?b a :Animal . GRAPH <{KB}> {{ :Animal :eats ?e }} }} }}"
    )


@pytest.fixture
def given(tmp_path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Streams and knowledge."""
    (tmp_path / "kb.ttl").write_text(ONTOLOGY, encoding="utf-8")
    graphs = (f'GRAPH <{E}g{i}> {{ {event} . <{E}g{i}> prov:generatedAtTime "{i}" }}' for i, event in enumerate(EVENTS))
    (tmp_path / "s.trig").write_text(
        "@prefix prov: <http://www.w3.org/ns/prov#> .\n" + "\n".join(graphs), encoding="utf-8"
    )
    return {"S": str(tmp_path / "s.trig")}, {KB: str(tmp_path / "kb.ttl")}


@pytest.mark.parametrize("entailment", ["rdfs", "owl-rl"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_in_micro_batches(pattern: str, entailment: str, given: Any) -> None:
    if entailment == "owl-rl":
        pytest.importorskip("owlrl", reason="owlrl is not installed (extra `owl`): no OWL RL closure")
    query, (streams, kb) = _query(pattern), given
    expected = _rows(_local(query, streams, kb, entailment=entailment))
    found, _ = in_micro_batches(query, streams, kb, 3, 2, entailment=entailment)
    assert _rows(found) == expected != []
    assert expected != _rows(_local(query, streams, kb))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("pattern", PATTERNS)
def test_in_a_batch(pattern: str, given: Any, spark: Any) -> None:
    """Slow, as the command below has the rows of a batch under entailment."""
    query, (streams, kb) = _query(pattern), given
    expected = query.run(streams, kb, entailment="rdfs").to_arrow().to_pylist()
    found = spaseq.spark.run(query, spark, streams, kb, partitions=2, entailment="rdfs")
    assert sorted(map(str, spaseq.spark.collect(found).to_pylist())) == sorted(map(str, expected)) != []


@pytest.mark.spark
@pytest.mark.slow
def test_in_a_stream(given: Any, spark: Any, tmp_path: Path) -> None:
    query, (streams, kb) = _query(PATTERNS[2]), given
    running = start(query, spark, streams, kb, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
                    available_now=True, tasks=1, reading=Reading(bounded=True), entailment="rdfs")  # fmt: skip
    assert wait(running)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    found = [(r.start, r.end, list(r.positions), list(r.times), *(r[v] for v in query.variables)) for r in rows]
    assert _rows(found) == _rows(_local(query, streams, kb, entailment="rdfs")) != []


@pytest.mark.spark
def test_what_cannot_be_is_refused_as_locally(given: Any, spark: Any) -> None:
    streams, kb = given
    with pytest.raises(OptionError, match="entailment owl: not known"):
        spaseq.spark.run(_query(PATTERNS[0]), spark, streams, kb, entailment="owl")
    with pytest.raises(OptionError, match="without background knowledge"):
        spaseq.spark.run(_query(PATTERNS[0]), spark, streams, entailment="rdfs")
    with pytest.raises(UnsupportedFeature, match="a negated property set"):
        spaseq.spark.run(_query("?x !:barks ?y"), spark, streams, kb, entailment="rdfs")


@pytest.mark.spark
def test_the_command(given: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: Any) -> None:
    streams, kb = given
    (tmp_path / "q.rq").write_text(_query(PATTERNS[2]).text, encoding="utf-8")
    words = ["run", str(tmp_path / "q.rq"), "--stream", f"S={streams['S']}", "--kb", f"{KB}={kb[KB]}"]
    words += ["--format", "csv", "--entailment", "rdfs"]
    assert main(words) == 0
    local = capsys.readouterr().out
    assert main([*words, "--engine", "spark"]) == 0
    distributed = capsys.readouterr()
    assert sorted(distributed.out.splitlines()) == sorted(local.splitlines())
    assert len(local.splitlines()) > 2 and not distributed.err


@pytest.mark.spark
@pytest.mark.parametrize("entailment", ["rdfs", "owl-rl"])
def test_closed_knowledge_has_its_limit(
    entailment: str, given: Any, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As locally: a batch, a stream and the command say the setting's name; a limit that is high enough is none."""
    if entailment == "owl-rl":
        pytest.importorskip("owlrl", reason="owlrl is not installed (extra `owl`): no OWL RL closure")
    streams, kb = given
    with Path(kb[KB]).open("a", encoding="utf-8") as file:
        file.writelines(f"\n:c{n} rdfs:subClassOf :c{n + 1} ." for n in range(50))
    text, told = _query(PATTERNS[0]).text, "^closed_triples is 600 triples and"
    query = spaseq.compile(text, settings=spaseq.Settings(closed_triples=600))
    with pytest.raises(BudgetExceeded, match=told):
        spaseq.spark.run(query, spark, streams, kb, entailment=entailment)
    with pytest.raises(BudgetExceeded, match=told):
        start(query, spark, streams, kb, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
              available_now=True, tasks=1, reading=Reading(bounded=True), entailment=entailment)  # fmt: skip
    with pytest.raises(BudgetExceeded, match=told):
        spaseq.spark.explain(query, kb, spark=spark, entailment=entailment)
    (tmp_path / "q.rq").write_text(text, encoding="utf-8")
    words = ["run", str(tmp_path / "q.rq"), "--stream", f"S={streams['S']}", "--kb", f"{KB}={kb[KB]}"]
    words += ["--format", "csv", "--entailment", entailment, "--set", "closed_triples=600"]
    errors = []
    for engine in ("local", "spark"):
        assert main([*words, "--engine", engine]) == 4
        errors.append(capsys.readouterr().err)
        assert errors[-1].startswith("closed_triples is 600 triples and") and "hint: raise closed_triples" in errors[-1]
    assert errors[1].startswith(errors[0])
    query = spaseq.compile(text, settings=spaseq.Settings(closed_triples=9_000))
    assert "closed_triples" in spaseq.spark.explain(query, kb, spark=spark, entailment=entailment)
