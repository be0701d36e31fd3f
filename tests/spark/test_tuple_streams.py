"""CEQL over streams of tuples: in random micro-batches, and with Spark over a folder of files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import harness
import numpy as np
import pyarrow as pa
import pytest
from test_tuples import _CASES as CASES
from test_tuples import QUERIES, _events, _schema

import ceql
from spaseq.errors import EventError, OptionError
from spaseq.events import EventOptions
from spaseq.rdf import StreamOptions
from spaseq.spark import progress, start_tuples, stream_tuples, wait
from spaseq.spark.cuts import TIME, TupleCut
from spaseq.spark.parcels import Parcel
from spaseq.spark.tuple_stream import TupleEvaluation, _Send, _send

pytestmark = pytest.mark.spark
SCHEMA = "type string, time long, id long, v long, seq long"


def _in_micro_batches(
    query: Any, events: list[dict[str, Any]], seed: int, buckets: int, schema: Any = None
) -> list[Any]:
    """The rows that buckets give; the last event only says that those before it are complete."""
    rng = random.Random(seed)
    keys = TupleCut.of(query).keys
    job = _Send(0, EventOptions(), keys, tuple(range(buckets if keys else 1)))
    clock = StreamOptions(time=TIME, ties="arrival", late="error")
    evaluations = [TupleEvaluation(query, ("",), clock, None) for _ in job.buckets]
    found, done = [], 0
    table = pa.Table.from_pylist(events, schema)
    while done < len(events):
        size = rng.choice((1, 5, 40))
        rows = []
        batch = table[done : done + size].combine_chunks().to_batches()[0]
        for sent in _send(job, iter([batch])):
            rows += zip(*(column.to_pylist() for column in sent.columns), strict=True)
        done += size
        for bucket, feed, *_, body in rows:
            evaluations[bucket].take(feed, Parcel.unpack(body))
        for bucket, evaluation in enumerate(evaluations):
            found += evaluation.release()
            if rng.random() < 0.3:
                evaluations[bucket] = TupleEvaluation(query, ("",), clock, None)
                evaluations[bucket].restore(evaluation.snapshot())
    return found


@pytest.mark.parametrize(("name", "text"), QUERIES, ids=[name for name, _ in QUERIES])
def test_random_micro_batches(name: str, text: str) -> None:
    query = ceql.compile(text)
    events = _events(5, 150)
    local = sorted((m.start, m.end, tuple(m.positions), [dict(e) for e in m.events]) for m in query.run(events))
    last = events[-1]
    end = {"type": "end", "time": last["time"] + 1000, "id": -1, "v": 0, "seq": last["seq"] + 10_000}
    more = [*({**end, "id": key} for key in range(-1, 10)), {**end, "time": end["time"] + 1}]
    found = _in_micro_batches(query, [*events, *more], 1, 3)
    assert sorted((r[0], r[1], tuple(r[2]), json.loads(r[5])) for r in found) == local != []
    assert all(events[r[0]]["time"] * 10**9 == r[3] and events[r[1]]["time"] * 10**9 == r[4] for r in found)


@pytest.mark.parametrize("case", CASES, ids=[case.place for case in CASES])
def test_cases(case: harness.Case) -> None:
    """What a session gives without being closed: a stream has no end."""
    query = ceql.compile(case.query)
    events = [{"time": second, **event} for second, event in enumerate(case.events)]
    if any("stream" in event for event in events):
        pytest.skip("several streams: they are pushed by name, and test_several_streams has them")
    if not events or not all(isinstance(event["time"], int) for event in events):
        pytest.skip("no events, or times that are no whole numbers: the last one cannot be followed by a later one")
    schema = _arrow_schema(events)
    end = {**events[-1], "type": "end", "time": events[-1]["time"] + 10**6}
    table = pa.Table.from_pylist([*events, end], schema)
    with query.open() as session:
        expected = [(m.start, m.end, list(m.positions)) for m in session.push(table)]
    last = {**end, "time": end["time"] + 1}
    found = _in_micro_batches(query, [*events, end, last], 5, 3, schema)
    assert sorted((r[0], r[1], list(r[2])) for r in found) == sorted(expected)


def _arrow_schema(events: list[dict[str, Any]]) -> pa.Schema:
    names = list(dict.fromkeys(name for event in events for name in event))
    kinds = {
        "array<double>": pa.list_(pa.float64()),
        "boolean": pa.bool_(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
    }
    types = [part.rsplit(" ", 1)[1] for part in _schema(events, names).split(", ")]
    return pa.schema([(name, kinds[kind]) for name, kind in zip(names, types, strict=True)])


def test_late_tuples(tmp_path: Path) -> None:
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 9 SECONDS")
    for late, dropped in (("drop", 1), ("error", 0)):
        evaluation = TupleEvaluation(query, ("",), StreamOptions(time=TIME, ties="arrival", late=late), None)
        evaluation.take(0, Parcel(np.array([5, 3]), np.array([1, 2]), [], "<events>", None))
        list(evaluation.release())  # inside a batch there is no order
        behind = Parcel(np.array([4]), np.array([1]), [], "<events>", None)
        if late == "error":
            with pytest.raises(EventError, match="goes back in time"):
                evaluation.take(0, behind)
        else:
            evaluation.take(0, behind)
            assert evaluation.counts()[:2] == [3, dropped]


@pytest.mark.slow
def test_a_folder_of_files_with_a_restart(tmp_path: Path, spark: Any) -> None:
    query = ceql.compile(QUERIES[0][1])
    events = _events(6, 200)
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(events))
    (tmp_path / "in").mkdir()

    def go_on() -> Any:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
        running = start_tuples(query, frame, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
                               available_now=True, tasks=2)  # fmt: skip
        assert wait(running)
        return running

    end = {"type": "end", "time": events[-1]["time"] + 99, "id": 1, "v": 0, "seq": 0}
    for number, part in enumerate((events[:90], events[90:], [end])):
        text = "".join(json.dumps(event) + "\n" for event in part)
        (tmp_path / "in" / f"{number}.json").write_text(text)
        running = go_on()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((r.start, r.end, tuple(r.positions)) for r in rows) == expected != []
    assert progress(running)["events"] == 201


def test_streams_without_times_are_refused(spark: Any) -> None:
    frame = spark.createDataFrame([("A",)], "type string")
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 9 SECONDS")
    with pytest.raises(OptionError, match="no column time or timestamp"):
        stream_tuples(query, frame)
