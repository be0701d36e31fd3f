"""Streams from DataFrames of quads: in a batch, in a stream fed by messages, and what is wrong with them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.rdf import Counters, StreamOptions
from spaseq.spark import parse_rdf, progress, start, wait
from spaseq.spark.ingest import frames
from spaseq.spark.session.tables import QUADS
from spaseq.spark.streaming.watermark import Clock, Silence
from tests.spark.test_micro_batches import _local
from tests.spark.test_micro_batches import _rows as _comparable
from tests.spark.test_results import FLOOR, Case, _rows, _streams

pytestmark = pytest.mark.spark

QUADS_OF = "stream string, time string, graph string, subject string, predicate string, object string"
IRIS = {"one-a": "http://example.org/one", "one-b": "http://example.org/one", "two": "http://example.org/two"}
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
FLOORS = Case("floors", "A; B", more={"A": FLOOR})
SHOWN = Case("shown", "A; B", select="?hA ?hB ?r")
PAIRS = Case("pairs", "A: B", select="?hA ?hB ?r", clauses="WITHIN 5 SECONDS SLIDING")


def _messages(folder: Path) -> list[tuple[str, int, str, str]]:
    """(stream, time, graph, N-Triples) of each event of the folder's streams, by time."""
    found = []
    for file, iri in IRIS.items():
        graphs: dict[str, list[Any]] = defaultdict(list)
        for quad in pyoxigraph.parse((folder / f"{file}.nq").read_bytes(), pyoxigraph.RdfFormat.N_QUADS):
            graphs[str(quad.graph_name)].append(quad.triple)
        for graph, triples in graphs.items():
            (time,) = (t.object.value for t in triples if str(t.predicate) == TIME)
            found.append((iri, int(time), graph, "".join(f"{t} .\n" for t in triples)))
    return sorted(found, key=lambda message: message[1])


def _quads(folder: Path) -> list[tuple[str, ...]]:
    return [
        (stream, str(time), graph, str(t.subject), str(t.predicate), str(t.object))
        for stream, time, graph, text in _messages(folder)
        for t in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_TRIPLES)
    ]


@pytest.mark.parametrize("case", [SHOWN, pytest.param(PAIRS, marks=pytest.mark.slow)], ids=lambda case: case.name)
def test_a_batch(case: Case, folder: Path, spark: Any) -> None:
    query = spaseq.compile(case.query())
    local = query.run(_streams(case, folder))
    expected = _rows(local.to_arrow())
    rows = [*_quads(folder), ("http://example.org/other", "1", "<a:g>", "<a:a>", "<a:b>", "<a:c>")]
    counters = Counters()
    frame = spark.createDataFrame(rows, QUADS_OF).repartition(3)
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, frame, partitions=3, counters=counters))
    assert _rows(found) == expected != []
    assert counters.events == local.counters.events


@pytest.mark.slow
@pytest.mark.parametrize("case", [SHOWN, PAIRS], ids=lambda case: case.name)
def test_a_batch_by_the_names_of_streams(case: Case, folder: Path, spark: Any) -> None:
    """Slow, as `test_subjects_are_events` of `test_lines` names a stream."""
    query, rows = spaseq.compile(case.query()), _quads(folder)
    by_name = {
        name: spark.createDataFrame(
            [row[1:] for row in rows if row[0] == iri], QUADS_OF.removeprefix("stream string, ")
        )
        for name, iri in (("S1", IRIS["one-a"]), ("S2", IRIS["two"]))
    }
    again = spaseq.spark.collect(spaseq.spark.run(query, spark, by_name, partitions=2))
    assert _rows(again) == _rows(query.run(_streams(case, folder)).to_arrow()) != []


@pytest.mark.slow
def test_messages_of_a_stream(folder: Path, spark: Any, tmp_path: Path) -> None:
    """What the recipe for Kafka does, with a folder of files in its place."""
    query = spaseq.compile(SHOWN.query())
    messages = _messages(folder)
    end = max(time for _, time, _, _ in messages) + 1000
    messages += [(iri, end, "<a:end>", "<a:a> <a:b> <a:c> .") for iri in sorted(set(IRIS.values()))]
    iri, early, *_ = messages[0]
    messages.append((iri, early, "<a:late>", '<a:a> <a:b> "c" .\n<a:a> <a:b> _:d .'))
    reached = max(time for stream, time, *_ in messages[:90] if stream == iri)
    (tmp_path / "in").mkdir()
    for number, part in enumerate((messages[:50], messages[50:90], messages[90:])):
        lines = [
            json.dumps({"topic": stream, "timestamp": time, "graph": graph, "value": text})
            for stream, time, graph, text in part
        ]
        file = tmp_path / "in" / f"{number}.json"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(file, (number, number))  # Spark reads files by age, which three written at once have in common
    raw = spark.readStream.schema("topic string, timestamp long, graph string, value string")
    raw = raw.option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    quads = parse_rdf(raw.withColumnsRenamed({"topic": "stream", "timestamp": "time"}), format="nt")
    running = start(query, spark, quads, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
                    available_now=True, tasks=2, late_output=str(tmp_path / "late"))  # fmt: skip
    assert wait(running)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    found = [(r.start, r.end, list(r.positions), list(r.times), *(r[v] for v in query.variables)) for r in rows]
    assert _comparable(found) == _comparable(_local(query, _streams(SHOWN, folder), {})) != []
    assert progress(running)["events"] == len(messages)
    (late,) = spark.read.parquet(str(tmp_path / "late")).collect()
    assert (late.stream, late.graph, late.source, late.record) == (iri, "<a:late>", None, None)
    assert late.triples[0] == '<a:a> <a:b> "c"' and late.triples[1].startswith("<a:a> <a:b> _:")
    assert late.late_by == (reached - early) * 10**9


def test_messages_are_taken_apart(spark: Any) -> None:
    texts = [
        ("k1", '<a:a> <a:b> "x\\"y" .\n<a:a> <a:b> _:c <a:g> .'),
        ("k2", ""),
        ("k3", "nonsense"),
        ("k4", None),
    ]
    frame = spark.createDataFrame(texts, "key string, value string")
    rows = [tuple(row) for row in parse_rdf(frame).collect()]
    assert rows[0] == ("k1", None, "<a:a>", "<a:b>", '"x\\"y"')
    assert rows[1][:4] == ("k1", "<a:g>", "<a:a>", "<a:b>")
    assert rows[2][:4] == ("k3", None, None, None)
    assert "not N-Quads" in rows[2][4]
    assert len(rows) == 3
    with pytest.raises(OptionError, match="no column body"):
        parse_rdf(frame, "body")


_GOOD = ("http://example.org/one", "1", "<a:g>", "<a:a>", "<a:b>", "<a:c>")


def _run_with(spark: Any, *rows: tuple[Any, ...], **words: Any) -> Any:
    """A query over an event of each stream, and these rows."""
    frame = spark.createDataFrame([_GOOD, ("http://example.org/two", *_GOOD[1:]), *rows], QUADS_OF)
    return spaseq.spark.run(SHOWN.query(), spark, frame, partitions=2, **words)


def test_what_is_wrong_with_rows_is_said_on_the_driver(spark: Any) -> None:
    bad = (*_GOOD[:3], "a", "<a:b>", "<a:c>")
    with pytest.raises(EventError, match=r"not N-Quads.*(?s:.*)the row is a <a:b>"):
        _run_with(spark, bad)
    counters = Counters()
    _run_with(spark, bad, (*_GOOD[:3], None, None, "why"), malformed="drop", counters=counters)
    assert (counters.malformed, counters.events) == (2, 2)
    with pytest.raises(EventError, match="time"):
        frames._time("9999-12-31T23:59:59Z", "s", False)
    with pytest.raises(EventError, match="no column graph"):
        spaseq.spark.run(SHOWN.query(), spark, spark.createDataFrame([_GOOD], QUADS_OF).drop("graph"))
    with pytest.raises(OptionError, match="some streams are DataFrames and some are files"):
        spaseq.spark.run(SHOWN.query(), spark, {"S1": spark.range(1), "S2": "a.nq"})
    with pytest.raises(OptionError, match="time with DataFrames"):
        _run_with(spark, time_from="arrival")


@pytest.mark.slow
def test_wrong_times_and_terms_of_rows_are_said_on_the_driver(spark: Any) -> None:
    """Slow, as a row that is no statement goes the same way, and `test_lines` has one without a time."""
    with pytest.raises(EventError, match="an event has no time"):
        _run_with(spark, (_GOOD[0], None, *_GOOD[2:]))
    with pytest.raises(EventError, match="'noon' is not a time"):
        _run_with(spark, (_GOOD[0], "noon", *_GOOD[2:]))
    far = spark.createDataFrame([_GOOD], QUADS_OF).withColumn("time", F.lit("9999-12-31 23:59:59").cast("timestamp"))
    with pytest.raises(EventError, match="has no time, or one outside those that can be held"):
        spaseq.spark.run(SHOWN.query(), spark, far)
    with pytest.raises(EventError, match="more than one term in a column"):
        _run_with(spark, (*_GOOD[:2], None, "<a:a> <a:b>", *_GOOD[4:]))


TIMES = {
    "timestamp": "TIMESTAMP'2024-03-10 02:30:00.25Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ'2024-03-10 02:30:00.25'",  # an hour that New York does not have
    "date": "DATE'2024-03-10'",
    "decimal(20,2)": "1710037800.25",
    "double": "1710037800.25D",
    "long": "1710037800L",
    "string": "'2024-03-09T21:30:00.25-05:00'",
    "binary": "CAST('2024-03-10T02:30:00.25Z' AS binary)",
}
OTHER = ("boolean", "map<string, long>")
MORE = ("array<long>", "struct<a: long>", "interval day to second")


@pytest.fixture
def new_york(spark: Any) -> Any:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def _one(spark: Any, time: str) -> Any:
    """A row, with columns besides that have odd names and types, one of them named as another but for case."""
    terms = "CAST(NULL AS string) AS graph, '<a:a>' AS subject, CAST('<a:b>' AS binary) AS predicate, '1' AS Object"
    others = "'\"1\"' AS object, 5 AS Time, named_struct('x.y', 1) AS `st.x`, NULL AS `no``thing`, X'FF' AS `b c`"
    return spark.sql(f"SELECT 'http://example.org/one' AS stream, {time} AS time, {terms}, {others}")


def test_times_of_every_type_in_a_session_of_another_zone(spark: Any, new_york: None) -> None:
    numbers = {"http://example.org/one": 0}
    options = frames.frame_options(StreamOptions())
    timed = [
        frames._timed(frames.with_columns(_one(spark, time), QUADS.names, "events"), numbers, options)
        for time in TIMES.values()
    ]
    rows = [tuple(row) for row in reduce(DataFrame.unionAll, timed).collect()]
    found = dict(zip(TIMES, rows, strict=True))
    whole, part = 1710037800 * 10**9, 250_000_000
    expected = {"date": whole - 9000 * 10**9, "long": whole}
    assert {kind: quad[1] for kind, quad in found.items()} == {kind: expected.get(kind, whole + part) for kind in TIMES}
    assert {quad[2:] for quad in found.values()} == {(None, "<a:a>", "<a:b>", '"1"')}


@pytest.mark.parametrize("kind", [*OTHER, *(pytest.param(kind, marks=pytest.mark.slow) for kind in MORE)])
def test_a_column_of_another_type_is_named_before_anything_runs(kind: str, spark: Any, tmp_path: Path) -> None:
    for name in ("time", "subject"):
        frame = spark.createDataFrame([], QUADS_OF.replace(f"{name} string", f"{name} {kind}"))
        with pytest.raises(EventError, match=rf"column {name} in the DataFrame of events is {kind.split('<')[0]}"):
            spaseq.spark.run(SHOWN.query(), spark, frame)
        stream = spark.readStream.schema(frame.schema).json(str(tmp_path))
        with pytest.raises(EventError, match=rf"column {name} in the DataFrame of events is"):
            start(SHOWN.query(), spark, stream, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"))
    kb = spark.createDataFrame([], "subject string, predicate string, object array<string>")
    with pytest.raises(EventError, match=r"column object in the DataFrame of knowledge <.*/kb> is array"):
        spaseq.spark.run(FLOORS.query(), spark, spark.createDataFrame([], QUADS_OF), {"http://example.org/kb": kb})
    twice = spark.createDataFrame([], QUADS_OF).select("*", "time")
    with pytest.raises(EventError, match="more than one column time"):
        spaseq.spark.run(SHOWN.query(), spark, twice)


def test_a_silent_stream_is_waited_for_no_longer_than_it_may_be_idle() -> None:
    second = 10**9
    clock = Clock(2, StreamOptions(late="drop"), loose=True, silence=Silence(10 * second))
    nothing = np.zeros(0, np.int64)

    def batch(now: int, feed: int, *times: int) -> dict[Any, int]:
        clock.begin_batch(now * second)
        clock.take(feed, np.array(times, np.int64), nothing, "")
        clock.end_batch()
        return clock.complete()

    assert batch(0, 0, 1, 2, 3) == {}
    assert batch(9, 0, 4) == {}
    assert batch(11, 0, 5) == {1: 0, 2: 1, 3: 2, 4: 3}
    assert batch(12, 1, 2, 5, 6) == {}  # it is back, and holds the others up again; what was complete is too late
    assert clock.late == 1
    assert batch(13, 0, 7) == {5: 4}
    assert batch(30, 0, 20) == {6: 5, 7: 6}
    state, clock = clock.snapshot(), Clock(2, StreamOptions(), loose=True, silence=Silence(10 * second))
    clock.restore(state)
    with pytest.raises(EventError, match="silent for more than 10 s, and what it brings now is too late"):
        clock.take(1, np.array([7]), np.array([1]), "")


@pytest.mark.slow
def test_an_idle_stream_in_a_query(folder: Path, spark: Any, tmp_path: Path) -> None:
    text = """PREFIX : <http://example.org/> SELECT ?x WITHIN 9 SECONDS SLIDING FROM STREAM S <http://example.org/one>
    FROM STREAM T <http://example.org/two> WHERE { SEQ (A; B) DEFINE GPM A ON S { ?a :heat ?x }
    DEFINE GPM B ON S, T { ?b :heat ?y } }"""
    (tmp_path / "in").mkdir()
    for idle, expected in ((0, 0), ("1ms", 1)):
        place = tmp_path / str(idle)
        for number, time in enumerate((1, 2, 3)):
            event = f'<a:g{number}> {TIME} "{time}" .\n<a:s> <http://example.org/heat> "{time}" <a:g{number}> .\n'
            (tmp_path / "in" / f"{number}.nq").write_text(event)
            running = start(text, spark, {"S": str(tmp_path / "in" / "*.nq"), "T": str(tmp_path / "none" / "*.nq")},
                            checkpoint=str(place / "state"), output=str(place / "out"), available_now=True,
                            tasks=1, idle=idle)  # fmt: skip
            assert wait(running)
        assert spark.read.schema("x string").parquet(str(place / "out")).count() == expected
        for file in (tmp_path / "in").iterdir():
            file.unlink()
