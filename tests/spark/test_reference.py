"""`--gpm rdflib` reaches the tasks: rdflib evaluates the graph patterns there, on every road of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import spaseq
import spaseq.cli.main as command
import spaseq.gpm.columnar.evaluate as columnar
from spaseq.cli import distributed
from spaseq.language.runtime.opened import stream_options, stream_sources
from spaseq.rdf import settle
from spaseq.spark.ingest.inputs import inputs_of
from spaseq.spark.ingest.quads import QuadReader
from spaseq.spark.session.layout import lay_out
from spaseq.spark.session.query_text import under_entailment
from spaseq.spark.session.tables import QUADS, batch_of
from spaseq.spark.solving import read_and_solve as solved
from spaseq.spark.solving import table
from tests.spark.test_results import GRID, GRID_KB, GRID_STREAMS
from tests.support.micro_batches import in_micro_batches

QUERY = """PREFIX : <http://example.org/> SELECT ?x FROM STREAM S <http://example.org/one>
WHERE { SEQ (A) DEFINE GPM A ON S { ?a :heat ?x } }"""
LINE = '<http://example.org/a> <http://example.org/heat> "1" .\n'


@pytest.fixture
def by_rdflib(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The GPMs that were evaluated without a plan."""
    seen: list[str] = []
    own = columnar._by_event

    def spy(evaluator: Any, *rest: Any) -> Any:
        seen.append(evaluator.pattern.name)
        return own(evaluator, *rest)

    monkeypatch.setattr(columnar, "_by_event", spy)
    return seen


def _text(reference: bool) -> Any:
    query = spaseq.compile(QUERY)
    return under_entailment(query, spaseq.gpm.Knowledge(), None, reference=reference)[0], lay_out(query.compiled)


@pytest.mark.parametrize("reference", [False, True])
def test_tasks_that_read_files(reference: bool, tmp_path: Path, by_rdflib: list[str]) -> None:
    (tmp_path / "one.nt").write_text(LINE)
    text, layout = _text(reference)
    sources = stream_sources(spaseq.compile(QUERY).checked, {"S": str(tmp_path / "one.nt")})
    options = settle(stream_options(None, {}), sources)
    bodies = [each.to_json() for each in inputs_of(sources, options, 1, whole=True)]
    batch = pa.record_batch([pa.array(bodies)], names=["body"])
    rows = list(solved._of_files(solved._Job(text, layout, options), SimpleNamespace(value={}), [batch]))
    assert sum(batch.column("found").null_count < batch.num_rows for batch in rows) == 1
    assert by_rdflib == ["A"] * reference


@pytest.mark.parametrize("reference", [False, True])
def test_tasks_that_take_events_of_dataframes(reference: bool, by_rdflib: list[str]) -> None:
    text, layout = _text(reference)
    terms = ["<http://example.org/a>", "<http://example.org/heat>", '"1"']
    rows = batch_of(QUADS, [(0, 1, None, *terms)])
    reader = QuadReader(("http://example.org/one",), "error")
    found = list(solved._of_quads(text, layout, reader, SimpleNamespace(value={}), [rows]))
    assert found[0].column("found").null_count == 0
    assert by_rdflib == ["A"] * reference


def test_tasks_of_streams(monkeypatch: pytest.MonkeyPatch, by_rdflib: list[str]) -> None:
    monkeypatch.chdir(GRID)
    query = spaseq.compile((GRID / "query.rq").read_text("utf-8"))
    plain, _ = in_micro_batches(query, GRID_STREAMS, GRID_KB, 1, 2)
    assert not by_rdflib
    assert sorted(in_micro_batches(query, GRID_STREAMS, GRID_KB, 1, 2, reference=True)[0]) == sorted(plain) != []
    assert set(by_rdflib) == set(query.checked.patterns)


@pytest.mark.parametrize("words", [[], ["--follow"]])
def test_the_command_hands_it_on(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def matches(*first: Any, **more: Any) -> Iterator[Any]:
        given.update(more, kb=first[3])
        return iter(())

    def start(*first: Any, **more: Any) -> Any:
        given.update(more, kb=first[3])
        return SimpleNamespace(isActive=False, stop=lambda: None)

    def session(configuration: dict[str, str]) -> None:
        given["configuration"] = configuration

    fake = SimpleNamespace(local_session=session, matches=matches, start=start, Reading=dict, wait=lambda _: None,
                           progress=lambda _: {})  # fmt: skip
    monkeypatch.setattr(distributed, "_spark", lambda: fake)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "one.nt").write_text(LINE)
    for gpm, reference in (("rdflib", True), ("columnar", False)):
        stream = f"S={tmp_path / 'one.nt'}"
        assert command.main(["run", str(tmp_path / "q.rq"), "--stream", stream, "--engine", "spark", "--gpm", gpm,
                             *words]) == 0  # fmt: skip
        assert given["reference"] is reference
    given.clear()
    more = ["--knowledge-rows", "5", *([] if words else ["--plan", "table"])]
    command.main(["run", str(tmp_path / "q.rq"), "--stream", stream, "--engine", "spark", *more, *words])
    assert (given["knowledge_rows"], given.get("plan")) == (5, None if words else "table")
    groups = ["--kb", "urn:k=k.nt", "--groups", "urn:k=urn:p,urn:q", "--spark", "spark.jars=a.jar=b"]
    assert command.main(["run", str(tmp_path / "q.rq"), "--stream", stream, "--engine", "spark", *groups, *words]) == 0
    assert given["kb"] == {"urn:k": spaseq.Grouped(["k.nt"], ["urn:p", "urn:q"])}
    assert given["configuration"] == {"spark.jars": "a.jar=b"}
    given.clear()
    for wrong in (
        ["--spark", "spark.jars=a.jar"],
        ["--engine", "spark", "--spark", "jars=a"],
        ["--groups", "urn:k=urn:p"],
        ["--plan", "slices"],
        ["--knowledge-rows", "5"],
    ):
        assert command.main(["run", str(tmp_path / "q.rq"), "--stream", stream, *wrong]) == 2
    assert command.main(["run", str(tmp_path / "q.rq"), "--stream", stream, "--engine", "spark", "--plan", "auto",
                         "--follow"]) == 2  # fmt: skip
    assert not given


@pytest.mark.spark
def test_it_is_in_what_is_sent_and_changes_no_answer(
    folder: Path, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bool] = []
    own = table.solved_files

    def spy(*given: Any) -> Any:
        sent.append(given[4].reference)
        return own(*given)

    monkeypatch.setattr(table, "solved_files", spy)
    streams = {"S": str(folder / "one-a.nq")}
    spaseq.spark.run(QUERY, spark, streams, partitions=2)
    found = spaseq.spark.collect(spaseq.spark.run(QUERY, spark, streams, partitions=2, reference=True)).to_pylist()
    assert sent == [False, True]
    plain = spaseq.compile(QUERY).run(streams).to_arrow().to_pylist()
    assert sorted(map(str, plain)) == sorted(map(str, found)) != []
