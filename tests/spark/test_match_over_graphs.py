"""`match` over DataFrames of quads: the rows of `run` without their numbers, lazy, in a batch and in a stream."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.spark import collect, explain_match, match, parse_rdf, run
from tests.spark.test_frames import QUADS_OF, _messages, _quads
from tests.spark.test_results import CASES, FLOOR, Case

pytestmark = pytest.mark.spark

_QUICK = ("knowledge",)
_OVER_FRAMES = [case for case in CASES if not case.files and not set(case.words) & {"event_by", "time_from", "time"}]


@pytest.fixture(scope="module")
def quads(folder: Path, spark: Any) -> Any:
    rows = [(stream, int(time), *terms) for stream, time, *terms in _quads(folder)]
    return spark.createDataFrame(rows, QUADS_OF.replace("time string", "time long")).repartition(3).persist()


def knowledge(folder: Path) -> dict[str, str]:
    return {"http://example.org/kb": str(folder / "kb.ttl")}


def rows(table: Any, columns: list[str], scale: int = 1) -> list[str]:
    """The rows as texts; `scale`: what the column `time` is divided by."""
    found = table.select(columns).to_pylist()
    return sorted(str([v // scale if k == "time" else v for k, v in row.items()]) for row in found)


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=[] if c.name in _QUICK else pytest.mark.slow) for c in _OVER_FRAMES],
)
def test_the_rows_are_those_of_run(case: Case, folder: Path, spark: Any, quads: Any) -> None:
    query, kb = spaseq.compile(case.query()), knowledge(folder)
    expected = collect(run(query, spark, quads, kb, **case.words))
    variables = expected.column_names[4:]
    whole = collect(match(query, kb=kb, positions=True, partitions=case.partitions, **case.words)(quads))
    assert whole.column_names == [*variables, "match_start", "match_end", "start", "end", "positions"]
    numbered = ["start", "end", "positions", *variables]
    assert rows(whole, numbered) == rows(expected, numbered) != []
    found = collect(match(query, kb=kb, partitions=case.partitions, **case.words)(quads))
    timed = rows(expected, ["time", *variables], 1_000_000_000)
    assert rows(found.rename_columns({"match_end": "time"}), ["time", *variables]) == timed


def test_nothing_runs_before_an_action(folder: Path, spark: Any, quads: Any) -> None:
    query = spaseq.compile(Case("sliding", "A; B", clauses="WITHIN 9 SECONDS SLIDING").query())
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = jobs(None)
    found = match(query, partitions=2)(quads)
    assert found.columns == [*query.variables, "match_start", "match_end"]
    assert jobs(None) == before
    assert found.count()
    assert jobs(None) != before


def test_times_and_terms_come_in_the_form_that_is_asked_for(spark: Any) -> None:
    text = """PREFIX : <http://example.org/>
        SELECT ?s ?x ?y WITHIN 20 SECONDS FROM STREAM S <http://example.org/S>
        WHERE { SEQ (A; B) DEFINE GPM A ON S { ?s :heat ?x } DEFINE GPM B ON S { ?s :said ?y } }"""
    at = datetime.datetime(2026, 3, 1, 12, 0, 0, 250_000)
    given = [
        ("S", at, None, "<urn:oven>", "<http://example.org/heat>", '"20"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("S", at.replace(second=5), None, "<urn:oven>", "<http://example.org/said>", '"h\\u00E4\\nll"@de'),
    ]
    quads = spark.createDataFrame(given, QUADS_OF.replace("time string", "time timestamp"))
    plain = match(text)(quads)
    assert plain.schema["match_end"].dataType.simpleString() == "timestamp"
    (row,) = plain.collect()
    assert row["match_start"] == at and row["match_end"] == at.replace(second=5)
    assert row["y"] == '"hä\\nll"@de'
    (row,) = match(text, terms="value")(quads).collect()
    assert (row["s"], row["x"], row["y"]) == ("urn:oven", "20", "hä\nll")
    (row,) = match(text, terms="struct")(quads).collect()
    assert row["s"].asDict() == {"type": "uri", "value": "urn:oven", "datatype": None, "language": None}
    assert row["x"]["datatype"] == "http://www.w3.org/2001/XMLSchema#integer"
    assert (row["y"]["type"], row["y"]["language"], row["y"]["value"]) == ("literal", "de", "hä\nll")


@pytest.mark.slow  # `test_streams.py` has such streams
def test_a_stream_gives_the_rows_of_a_batch(folder: Path, spark: Any, tmp_path: Path, quads: Any) -> None:
    query = spaseq.compile(Case("knowledge", "A; B", clauses="WITHIN 9 SECONDS", more={"A": FLOOR}).query())
    messages = _messages(folder)
    end = max(time for _, time, _, _ in messages) + 1000
    messages += [(iri, end, "<a:end>", "<a:a> <a:b> <a:c> .") for iri in sorted({m[0] for m in messages})]
    (tmp_path / "in").mkdir()
    for number, part in enumerate((messages[:60], messages[60:])):
        lines = [json.dumps({"stream": s, "time": t, "graph": g, "value": text}) for s, t, g, text in part]
        file = tmp_path / "in" / f"{number}.json"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(file, (number, number))
    raw = spark.readStream.schema("stream string, time long, graph string, value string")
    raw = raw.option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    kb = knowledge(folder)
    found = match(query, kb=kb, partitions=2)(parse_rdf(raw, format="nt"))
    whole = collect(match(query, kb=kb, partitions=2)(quads))
    assert found.columns == whole.column_names
    running = found.writeStream.format("memory").queryName("over_graphs").option(
        "checkpointLocation", str(tmp_path / "state")
    ).trigger(availableNow=True).start()  # fmt: skip
    running.awaitTermination()
    got = spark.table("over_graphs").toArrow()
    assert rows(got, whole.column_names) == rows(whole, whole.column_names) != []


def test_what_cannot_be_is_said(spark: Any, quads: Any) -> None:
    text = Case("sliding", "A; B", clauses="WITHIN 9 SECONDS SLIDING").query()
    for words, said in (
        ({"events": True}, "events=True is for tuples"),
        ({"cut": "keys"}, "cut='keys' is for tuples"),
        ({"terms": "turtle"}, "terms turtle: not one of text, value, struct, key"),
        ({"idle": "30s"}, "idle='30s' is for a stream"),
        ({"malformed": "drop"}, "malformed='drop' is for a stream"),
        ({"type_column": "x"}, "there is no option type_column"),
        ({"partitions": 0}, "partitions=0"),
    ):
        with pytest.raises(OptionError) as raised:
            match(text, **words)(quads)
        assert said in str(raised.value)
    with pytest.raises(EventError, match="no column graph"):
        match(text)(quads.drop("graph"))
    with pytest.raises(OptionError, match="kb= is for queries over graphs"):
        match(ceql.compile("SELECT * WHERE A ; B"), kb={})
    with pytest.raises(OptionError, match="terms= is for queries over graphs"):
        match("SELECT * WHERE A ; B", terms="value")
    with pytest.raises(OptionError, match="a query, compiled or a text"):
        match(3)  # type: ignore[arg-type]
    assert "slices of time" in explain_match(text)
    assert "one partition" in explain_match(text, cut="one")


def test_explain_names_the_plan_that_runs(folder: Path, spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    query = spaseq.compile(Case("sliding", "A; B", clauses="WITHIN 9 SECONDS SLIDING").query())
    streams = {"S1": [str(folder / "one-a.nq"), str(folder / "one-b.nq")], "S2": str(folder / "two.nq")}
    said = spaseq.spark.explain(query, spark=spark, streams=streams)
    why = said.splitlines()[0].partition("shuffled: ")[2]
    with caplog.at_level("INFO", logger="spaseq.spark"):
        run(query, spark, streams)
    assert why and f"not in slices of time without a shuffle: {why}" in caplog.text
