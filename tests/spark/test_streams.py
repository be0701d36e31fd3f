"""Spark Structured Streaming: growing folders, restarts, what goes wrong, what is counted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.spark import Reading, progress, start, wait
from spaseq.spark.session.layout import lay_out
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.streaming.bucket_messages import _kept_solver
from spaseq.spark.streaming.checkpoint import file_manager
from tests.spark.test_micro_batches import _local, _rows
from tests.spark.test_results import GRID, GRID_KB, GRID_STREAMS

pytestmark = pytest.mark.spark

HEAT = """PREFIX : <http://example.org/>
SELECT ?x ?y WITHIN 20 SECONDS FROM STREAM S <http://example.org/one>
WHERE { SEQ (A; B) DEFINE GPM A ON S { ?a :heat ?x } DEFINE GPM B ON S { ?a :heat ?y FILTER (?y > ?x) } }"""
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"


def _reading(number: int, time: int, heat: int, sensor: str = "s1") -> str:
    graph = f"<http://example.org/g{number}>"
    sensor = f"<http://example.org/{sensor}>"
    return f'{graph} {TIME} "{time}" .\n{sensor} <http://example.org/heat> {heat_literal(heat)} {graph} .\n'


def heat_literal(heat: int) -> str:
    return f'"{heat}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def _read(spark: Any, folder: Path, variables: Any) -> list[Any]:
    rows = spark.read.parquet(str(folder)).collect()
    return [(r.start, r.end, list(r.positions), list(r.times), *(r[v] for v in variables)) for r in rows]


def _run(query: Any, spark: Any, streams: Any, kb: Any, place: Path, **more: Any) -> Any:
    running = start(query, spark, streams, kb, checkpoint=str(place / "state"), output=str(place / "out"),
                    available_now=True, tasks=2, **more)  # fmt: skip
    assert wait(running)
    return running


@pytest.mark.slow
def test_a_restart_goes_on_where_it_was(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GRID)
    query = spaseq.compile((GRID / "query.rq").read_text("utf-8"))
    expected = _rows(_local(query, GRID_STREAMS, GRID_KB))
    first = _run(query, spark, GRID_STREAMS, GRID_KB, tmp_path, reading=Reading(max_bytes=20_000))
    known = len(_read(spark, tmp_path / "out", query.variables))
    assert 0 < known < len(expected)
    assert progress(first)["matches"] == known
    second = _run(query, spark, GRID_STREAMS, GRID_KB, tmp_path, reading=Reading(bounded=True))
    found = _read(spark, tmp_path / "out", query.variables)
    assert _rows(found) == expected
    counts = progress(second)
    assert (counts["events"], counts["late"], counts["malformed"]) == (252, 0, 0)
    assert counts["matches"] == len(expected)
    assert counts["state_bytes"] > 0


@pytest.mark.slow
def test_files_that_grow_and_appear(tmp_path: Path, spark: Any) -> None:
    streams = {"S": str(tmp_path / "in" / "*.nq")}
    query = spaseq.compile(HEAT)
    (tmp_path / "in").mkdir()
    one, two = tmp_path / "in" / "1.nq", tmp_path / "in" / "2.nq"
    later = _reading(1, 3, 12)
    one.write_text(_reading(0, 1, 10) + later[: len(later) - 9])  # the last event is not there in full
    grown = Reading(growing=True)
    _run(query, spark, streams, {}, tmp_path, reading=grown)
    one.write_text(_reading(0, 1, 10) + later)
    two.write_text(_reading(2, 5, 15))
    running = _run(query, spark, streams, {}, tmp_path, reading=grown)
    assert progress(running)["events"] == 2  # those of the first file; that of the second may grow
    running = _run(query, spark, streams, {}, tmp_path, reading=Reading(growing=True, bounded=True))
    assert progress(running)["events"] == 3
    found = _read(spark, tmp_path / "out", query.variables)
    assert _rows(found) == _rows(_local(query, streams, {}))
    assert len(found) == 2


@pytest.mark.slow
def test_what_goes_wrong_in_a_stream_is_said_on_the_driver(tmp_path: Path, spark: Any) -> None:
    """Slow, as `test_messages` has an error of a stream of graphs, and `test_failures` this one in a batch."""
    (tmp_path / "late.nq").write_text(_reading(0, 9, 10) + _reading(1, 3, 12))
    with pytest.raises(EventError, match=r"goes back in time.*1970-01-01T00:00:03Z comes after") as late:
        _run(HEAT, spark, {"S": str(tmp_path / "late.nq")}, {}, tmp_path / "a")
    assert late.value.record == 4


@pytest.mark.slow
def test_what_is_wrong_in_a_stream_is_named_dropped_or_put_aside(tmp_path: Path, spark: Any) -> None:
    """Slow, as it starts three streams: batches drop and put aside in `test_failures`, messages in `test_messages`."""
    (tmp_path / "late.nq").write_text(_reading(0, 9, 10) + _reading(1, 3, 12))
    late = str(tmp_path / "told")
    running = _run(HEAT, spark, {"S": str(tmp_path / "late.nq")}, {}, tmp_path / "b", late_output=late)
    assert progress(running)["late"] == 1
    triple = f"<http://example.org/s1> <http://example.org/heat> {heat_literal(12)}"
    stream, file = "http://example.org/one", str(tmp_path / "late.nq")
    rows = [tuple(row) for row in spark.read.parquet(late).drop("batch").collect()]
    assert rows == [(stream, 3 * 10**9, "<http://example.org/g1>", [triple], file, 4, 6 * 10**9)]
    assert spark.read.parquet(str(tmp_path / "b" / "out")).columns[:7] == [
        "start", "end", "positions", "time", "times", "x", "y"
    ]  # fmt: skip
    (tmp_path / "bad.nq").write_text(_reading(0, 1, 10) + "nonsense\n" + _reading(1, 3, 12))
    with pytest.raises(EventError, match=r"bad\.nq:3: "):
        _run(HEAT, spark, {"S": str(tmp_path / "bad.nq")}, {}, tmp_path / "c")
    running = _run(HEAT, spark, {"S": str(tmp_path / "bad.nq")}, {}, tmp_path / "d",
                   reading=Reading(bounded=True, quarantine=str(tmp_path / "aside")))  # fmt: skip
    assert progress(running)["malformed"] == 1
    assert [p.read_text() for p in (tmp_path / "aside").iterdir()] == ["3\tnonsense\n"]
    assert len(_read(spark, tmp_path / "d" / "out", ("x", "y"))) == 1


@pytest.mark.slow
def test_files_that_go_and_come_between_restarts(tmp_path: Path, spark: Any) -> None:
    """One that was read may go; one in front, and one that goes before its last event was read, is an error. Slow, as
    `test_feed` has all of these cases without Spark."""
    streams = {"S": str(tmp_path / "*.nq")}
    reading = Reading(growing=True)
    (tmp_path / "2.nq").write_text(_reading(0, 1, 10))
    (tmp_path / "4.nq").write_text(_reading(1, 3, 11) + _reading(2, 5, 12))
    running = _run(HEAT, spark, streams, {}, tmp_path / "a", reading=reading)
    assert progress(running)["events"] == 2
    (tmp_path / "2.nq").unlink()
    (tmp_path / "4.nq").rename(tmp_path / "held")
    with pytest.raises(
        EventError, match=r"4\.nq.*the file is gone: of the file \d+ of \d+ bytes, 2 lines, had been read"
    ):
        _run(HEAT, spark, streams, {}, tmp_path / "a", reading=reading)
    (tmp_path / "held").rename(tmp_path / "4.nq")
    (tmp_path / "3.nq").write_text(_reading(3, 2, 10))
    with pytest.raises(EventError, match=r"3\.nq appeared in front of those already read, up to 4\.nq"):
        _run(HEAT, spark, streams, {}, tmp_path / "a", reading=reading)
    (tmp_path / "3.nq").unlink()
    running = _run(HEAT, spark, streams, {}, tmp_path / "a", reading=Reading(growing=True, bounded=True))
    assert progress(running)["events"] == 3


def test_where_it_cannot_be_kept(tmp_path: Path, spark: Any) -> None:
    streams = {"S": str(tmp_path / "*.nq")}
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"checkpoint .* cannot be used: "):
        start(HEAT, spark, streams, checkpoint=str(tmp_path / "file" / "state"), output=str(tmp_path / "out"))
    with pytest.raises(OptionError, match=r"the query cannot start: .*unheard"):
        start(HEAT, spark, streams, checkpoint="unheard://of/state", output=str(tmp_path / "out"))
    with pytest.raises(OptionError, match="where do the matches go"):
        start(HEAT, spark, streams, checkpoint=str(tmp_path / "state"))


def test_the_data_source_gives_triples_and_events(folder: Path, spark: Any) -> None:
    spaseq.spark.register(spark)
    path = str(folder / "one-*.nq")
    triples = spark.read.format("spaseq").option("path", path).load()
    lines = sum(len((folder / name).read_text("utf-8").splitlines()) for name in ("one-a.nq", "one-b.nq"))
    assert triples.count() == lines
    events = spark.read.format("spaseq").option("path", path).option("rows", "events").load()
    graphs = events.where("terms is not null")
    assert graphs.count() == 70
    assert graphs.agg(F.min("time")).first()[0] >= 0
    for options, message in (({"rows": "cows"}, "rows cows"), ({"malformed": "quarantine"}, "where?")):
        reader = spark.read.format("spaseq").option("path", path)
        for name, value in options.items():
            reader = reader.option(name, value)
        with pytest.raises(OptionError, match=message), spaseq.spark.clear_errors():
            reader.load().count()


@pytest.mark.slow
def test_a_checkpoint_is_of_one_query(tmp_path: Path, spark: Any) -> None:
    streams = {"S": str(tmp_path / "*.nq")}
    (tmp_path / "1.nq").write_text(_reading(0, 1, 10) + _reading(1, 3, 12))
    _run(HEAT, spark, streams, {}, tmp_path)
    _run(HEAT.replace("\n", "  "), spark, streams, {}, tmp_path)
    with pytest.raises(OptionError, match="is of another query"):
        _run(HEAT.replace("20", "9"), spark, streams, {}, tmp_path)
    with pytest.raises(OptionError, match=r"the query cannot start: .*now and then"):
        start(HEAT, spark, streams, checkpoint=str(tmp_path / "x"), output=str(tmp_path / "y"), every="now and then")
    with pytest.raises(OptionError, match="idle a while: not a duration"):
        start(HEAT, spark, streams, checkpoint=str(tmp_path / "x"), output=str(tmp_path / "y"), idle="a while")


@pytest.mark.slow
def test_a_damaged_checkpoint_is_one_clear_error(tmp_path: Path, spark: Any) -> None:
    streams = {"S": str(tmp_path / "*.nq")}
    (tmp_path / "1.nq").write_text(_reading(0, 1, 10) + _reading(1, 3, 12))
    _run(HEAT, spark, streams, {}, tmp_path)
    (tmp_path / "2.nq").write_text(_reading(2, 5, 14))
    offset = (tmp_path / "state" / "offsets" / "0").read_text()
    damages = {
        "words": ("offsets/0", b"garbage"),
        "no UTF-8": ("offsets/0", b"\0\xff"),
        "half": ("offsets/0", offset[: len(offset) // 2].encode()),
        "another offset": ("offsets/0", "\n".join([*offset.splitlines()[:2], '{"x": 1}']).encode()),
        "half a commit": ("commits/0", b"v1\n{"),
        "no commit": ("commits/0", b"\0\xff"),
        "no metadata": ("metadata", b"{"),
        "no note": ("spaseq/part-*", b"\0\xff"),
        "no state": ("state", None),
        "no schema": ("state/0/_metadata", None),
        "half the state": ("state/0/0", None),
    }
    words: dict[str, Any] = {"available_now": True, "tasks": 2, "foreach_batch": lambda frame, _: frame.count()}
    for name, (place, content) in damages.items():
        shutil.copytree(tmp_path / "state", tmp_path / "damaged")
        for file in (tmp_path / "damaged").rglob(".*.crc"):
            file.unlink()
        if content is None:
            shutil.rmtree(tmp_path / "damaged" / place)
        else:
            (file,) = (tmp_path / "damaged").glob(place)
            file.write_bytes(content)
        with pytest.raises(OptionError) as said:
            wait(start(HEAT, spark, streams, checkpoint=str(tmp_path / "damaged"), **words))
        assert "checkpoint" in str(said.value) and "foreach_batch failed" not in str(said.value), name
        shutil.rmtree(tmp_path / "damaged")


def test_files_of_a_checkpoint_on_this_machine_are_written_without_processes(tmp_path: Path, spark: Any) -> None:
    """Spark by itself starts ten processes for each file; what a session says, and other places, stay as they are."""
    (name,) = given = file_manager(spark, [str(tmp_path), f"file:{tmp_path}/out"])
    assert given[name].endswith("FileSystemBasedCheckpointFileManager")
    spark.conf.set(name, "mine")
    try:
        assert file_manager(spark, [str(tmp_path)]) == {}
    finally:
        spark.conf.unset(name)


def test_a_process_keeps_the_solver_of_a_query_for_the_next_batch() -> None:
    query = spaseq.compile(HEAT)
    graphs: Any = {}
    first = _kept_solver(QueryText.of(query), lay_out(query.compiled), graphs)
    assert _kept_solver(QueryText.of(query), lay_out(query.compiled), graphs) is first
    assert _kept_solver(QueryText.of(query), lay_out(query.compiled), dict(graphs)) is not first
