"""Lines of N-Quads and N-Triples by Spark's own readers: the events of the local engine's readers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.rdf import Counters
from spaseq.spark import collect, match, parse_lines, run
from tests.spark.test_results import Case

pytestmark = pytest.mark.spark
SLIDING = Case("sliding", "A; B", select="?hA ?hB ?r", clauses="WITHIN 9 SECONDS SLIDING")
AT = "http://example.org/at"


def found(table: Any, variables: list[str]) -> list[tuple[Any, ...]]:
    """The times of matches in ns, and the terms."""
    ends = "time" if "time" in table.column_names else "match_end"
    rows = table.select([ends, *variables]).to_pylist()
    time = (lambda t: t) if ends == "time" else (lambda t: int(t.timestamp() * 1000) * 1_000_000)
    return sorted((time(row[ends]), *(str(row[name]) for name in variables)) for row in rows)


@pytest.mark.parametrize("by_name", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_named_graphs_are_events(by_name: bool, folder: Path, spark: Any, tmp_path: Path) -> None:
    """In one DataFrame; in one for each stream is slow, as subjects below are in such."""
    query = spaseq.compile(SLIDING.query())
    for name in ("one-a.nq", "one-b.nq", "two.nq"):
        shutil.copy(folder / name, tmp_path)
    # Elsewhere than in its graph stands the time of each tenth event; comments and blank lines are passed over.
    text = (tmp_path / "two.nq").read_text("utf-8")
    lines = []
    for number, line in enumerate(text.splitlines()):
        graph = line.split()[0]
        lines.append(f"{line[: line.rindex(graph)]}." if "generatedAtTime" in line and number % 10 == 0 else line)
    (tmp_path / "two.nq").write_text("# readings\n\n" + "\n".join(lines) + "  # the end\n", encoding="utf-8")
    files = {"S1": [str(tmp_path / "one-a.nq"), str(tmp_path / "one-b.nq")], "S2": str(tmp_path / "two.nq")}
    expected = query.run(files).to_arrow()
    if by_name:
        quads = {name: parse_lines(spark.read.text(given)) for name, given in files.items()}
        told = collect(match(query)(quads))
        assert found(told, list(query.variables)) == found(expected, list(query.variables)) != []
        return
    one = spark.read.text(files["S1"]).withColumn("stream", F.lit("S1"))
    both = one.union(spark.read.text(files["S2"]).withColumn("stream", F.lit("S2")))
    counters = Counters()
    whole = collect(run(query, spark, parse_lines(both), counters=counters))
    assert found(whole, list(query.variables)) == found(expected, list(query.variables)) != []
    local = query.run(files)
    assert local.count() and counters.events == local.counters.events


def test_subjects_are_events(spark: Any, tmp_path: Path) -> None:
    text = """PREFIX : <http://example.org/> SELECT ?x ?y WITHIN 9 SECONDS SLIDING FROM STREAM S <http://example.org/S>
        WHERE { SEQ (A; B) DEFINE GPM A ON S { ?s :heat ?x FILTER (?x > 3) }
                                 DEFINE GPM B ON S { ?t :heat ?y FILTER (?y < 3) } }"""
    lines = []
    for number, heat in enumerate((5, 1, 4, 2, 2)):
        subject = f"<http://example.org/r{number}>"
        lines.append(f'{subject} <{AT}> "{number}" .')
        lines.append(f'{subject} <http://example.org/heat> "{heat}"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    path = tmp_path / "readings.nt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    query = spaseq.compile(text)
    expected = query.run({"S": str(path)}, time=AT).to_arrow()
    quads = parse_lines(spark.read.text(str(path)).repartition(3), event_by="subject", time=AT)
    assert found(collect(match(query)({"S": quads})), ["x", "y"]) == found(expected, ["x", "y"]) != []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("<urn:a> <urn:b> .", "no statement of N-Quads: <urn:a> <urn:b> ."),
        pytest.param(
            f'<urn:g> <{AT}> "2" <urn:g> .\n<urn:g> <{AT}> "3" <urn:g> .',
            "'2 and 3' is not a time",
            marks=pytest.mark.slow,  # as what has no time
        ),
        ("<urn:a> <urn:b> <urn:c> <urn:g> .", "has no time"),
        # As what is no statement.
        pytest.param('<urn:a> <urn:b> "\\q" <urn:g1> .', "the row is", marks=pytest.mark.slow),
    ],
)
def test_what_is_wrong_is_an_error_of_the_query(line: str, said: str, spark: Any) -> None:
    good = f'<urn:g1> <{AT}> "1" <urn:g1> .'
    lines = spark.createDataFrame([(each,) for each in (good, *line.splitlines())], "value string")
    quads = parse_lines(lines, time=AT).withColumn("stream", F.lit("S1"))
    query = spaseq.compile(SLIDING.query())
    with pytest.raises(EventError) as raised:
        collect(match(query)(quads))
    assert said in f"{raised.value}"
    counters = Counters()
    run(query, spark, quads, malformed="drop", counters=counters)
    assert counters.malformed


def test_a_blank_node_is_no_event(spark: Any) -> None:
    quads = parse_lines(spark.createDataFrame([("_:a <urn:b> <urn:c> .",)], "value string"), event_by="subject")
    with pytest.raises(EventError, match="a blank node is no subject of an event"):
        collect(match(SLIDING.query())({"S1": quads, "S2": quads}))


def test_what_cannot_be_is_said(spark: Any, tmp_path: Path) -> None:
    lines = spark.createDataFrame([("",)], "value string")
    with pytest.raises(OptionError, match="event_by file: not one of graph, subject"):
        parse_lines(lines, event_by="file")
    with pytest.raises(OptionError, match="no column body"):
        parse_lines(lines, "body")
    with pytest.raises(OptionError, match="several batches of a stream"):
        parse_lines(spark.readStream.text(str(tmp_path)))
