"""CEQL over streams of tuples: in random micro-batches, and with Spark over a folder of files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ceql
import spaseq.spark
from ceql.results.history import Past
from spaseq.core.engine import Partitions
from spaseq.core.errors import EventError, OptionError, QuerySemanticsError
from spaseq.core.events import EventOptions
from spaseq.rdf import StreamOptions
from spaseq.spark import progress, start_tuples, stream_tuples, wait
from spaseq.spark.batch.cuts import TIME, TupleCut
from spaseq.spark.session.tables import plain_name
from spaseq.spark.streaming.bucket_messages import Parcel
from spaseq.spark.streaming.tuple_stream import TupleEvaluation, _Send, _send
from tests.spark.test_any_column import CONDITIONS, KEYS, _row
from tests.spark.test_tuples import _CASES as CASES
from tests.spark.test_tuples import QUERIES, _events, _schema
from tests.support import harness

pytestmark = pytest.mark.spark
SCHEMA = "type string, time long, id long, v long, seq long"


def _in_micro_batches(
    query: Any, events: list[dict[str, Any]], seed: int, buckets: int, schema: Any = None, names: Any = ("",)
) -> list[Any]:
    """The rows that buckets give; the last event of each stream only says that those before it are complete."""
    rng = random.Random(seed)
    keys = TupleCut.of(query).keys
    jobs = [_Send(feed, EventOptions(), keys, tuple(range(buckets if keys else 1))) for feed in range(len(names))]
    clock = StreamOptions(time=TIME, ties="arrival", late="error")
    evaluations = [TupleEvaluation(query, tuple(names), clock, None) for _ in jobs[0].buckets]
    found: list[Any] = []
    done = 0
    table = pa.Table.from_pylist(events, schema)
    while done < len(events):
        size = rng.choice((1, 5, 40))
        rows: list[Any] = []
        for job, name in zip(jobs, names, strict=True):
            which = [done + i for i, e in enumerate(events[done : done + size]) if e.get("stream", name) == name]
            for batch in table.take(pa.array(which, pa.int64())).combine_chunks().to_batches():
                for sent in _send(job, iter([batch])):
                    rows += zip(*(column.to_pylist() for column in sent.columns), strict=True)
        done += size
        for bucket, feed, *_, body in rows:
            evaluations[bucket].take(feed, Parcel.unpack(body))
        for bucket, evaluation in enumerate(evaluations):
            found += evaluation.release()
            if rng.random() < 0.3:
                evaluations[bucket] = TupleEvaluation(query, tuple(names), clock, None)
                evaluations[bucket].restore(evaluation.snapshot())
    return found


@pytest.mark.parametrize("typing", [{}, {"type": "E"}])
def test_tuples_without_a_column_of_types(typing: dict[str, Any]) -> None:
    """Taken by ANY, or given a type; the tasks leave it to the evaluation to ask for types."""
    query = ceql.compile(f"SELECT * WHERE {'E' if typing else 'ANY'} AS a ; ANY AS b FILTER a.x < b.x WITHIN 9 SECONDS")
    events = [{"time": time, "x": x} for time, x in enumerate([1, 3, 2, 4])]
    local = sorted((m.start, m.end) for m in query.run(events, **typing))
    clock = StreamOptions(time=TIME, ties="arrival", late="error")
    evaluation = TupleEvaluation(query, ("",), clock, typing)
    job = _Send(0, EventOptions(**typing), (), (0,))
    (batch,) = pa.Table.from_pylist([*events, {"time": 99, "x": 0}]).to_batches()
    for sent in _send(job, iter([batch])):
        for _, feed, *_, body in zip(*(column.to_pylist() for column in sent.columns), strict=True):
            evaluation.take(feed, Parcel.unpack(body))
    assert sorted(tuple(row[:2]) for row in evaluation.release()) == local and len(local) == 5


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
    names = query.stream_names(tuple(dict.fromkeys(e["stream"] for e in events if "stream" in e))) if events else ("",)
    ends = [
        {**events[-1], **({"stream": name} if "stream" in events[-1] else {}), "type": "end", "time": later}
        for later in (_later(events[-1]["time"], step) for step in range(1, 3) if events)
        for name in names
    ]
    schema = _arrow_schema(events) if events else None
    with query.open(streams=[name for name in names if name] or None) as session:
        expected = []
        for event in [*events, *ends[: len(names)]]:
            own = [event["stream"]] if "stream" in event else []
            pushed = session.push(pa.Table.from_pylist([event], schema), *own)
            expected += [(m.start, m.end, list(m.positions)) for m in pushed]
    found = _in_micro_batches(query, [*events, *ends], 5, 3, schema, names)
    assert sorted((r[0], r[1], list(r[2])) for r in found) == sorted(expected)


WINDOWS = {
    "time": "WITHIN 20 SECONDS",
    "events": "WITHIN 20 EVENTS",
    "attribute": "WITHIN 20 [seq]",
    "events of a key": "WITHIN 20 EVENTS PARTITION BY [id]",
    "none": "PARTITION BY [id]",
}


@pytest.mark.parametrize("formula", ["A; B", "A; NOT B"], ids=["match", "absence"])
@pytest.mark.parametrize("window", list(WINDOWS))
def test_the_state_does_not_grow_with_the_stream(window: str, formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds what is left of two batches and a window; keys that come no more are forgotten."""
    monkeypatch.setattr(Past, "worth", 1_000)
    monkeypatch.setattr(Partitions, "worth", 2)
    settings = ceql.Settings(forget_keys_after=50 if "PARTITION" in WINDOWS[window] else None)
    query = ceql.compile(f"SELECT * WHERE {formula} {WINDOWS[window]}", settings=settings)
    job = _Send(0, EventOptions(), TupleCut.of(query).keys, (0,))
    clock = StreamOptions(time=TIME, ties="arrival", late="error")
    evaluation = TupleEvaluation(query, ("",), clock, None)
    sizes, found = [], 0
    for first in range(0, 20_000, 500):
        seq = np.arange(first, first + 500)
        types = np.select([seq % 50 == 0, seq % 150 == 5], ["A", "B"], "C")
        events = pa.record_batch({"type": types, "time": seq, "seq": seq, "id": seq // 100})
        for sent in _send(job, iter([events])):
            evaluation.take(0, Parcel.unpack(sent.column("body")[0].as_py()))
        found += sum(1 for _ in evaluation.release())
        state = evaluation.snapshot()
        sizes.append(len(state))
        evaluation = TupleEvaluation(query, ("",), clock, None)
        evaluation.restore(state)
    assert found > 100
    assert max(sizes[20:]) < 1.1 * max(sizes[:20])


FIELDS = pa.schema({
    "time": pa.int64(), "type": pa.string(), "ts": pa.timestamp("us", "UTC"), "ntz": pa.timestamp("us"),
    "day": pa.date32(), "dec": pa.decimal128(10, 2), "bin": pa.binary(), "flag": pa.bool_(), "dbl": pa.float64(),
    "flt": pa.float32(), "sml": pa.int16(), "txt": pa.string(), "st": pa.struct({"in ner-x.y": pa.int32()}),
    "arr": pa.list_(pa.int32()), "mp": pa.map_(pa.string(), pa.int32()), "a.b": pa.int32(), "c`d": pa.int32(),
    "e f": pa.int32(), "g-h": pa.int32(), "Case": pa.int32(), "case": pa.string(), "iv": pa.duration("us"),
    "nul": pa.null(),
})  # fmt: skip


def _of_every_type(count: int) -> list[dict[str, Any]]:
    events = []
    for number in range(count):
        row = dict(zip(FIELDS.names, _row(number), strict=True)) | {"time": number}
        if row["st"] is not None:
            row |= {"st": {"in ner-x.y": 1}, "mp": list(row["mp"].items()), "bin": bytes([97 + number % 3])}
        events.append(row)
    return events


@pytest.mark.parametrize("clause", [*(f"PARTITION BY [{key}]" for key in KEYS), *CONDITIONS])
def test_columns_of_every_type(clause: str) -> None:
    """As keys and in conditions, with NULL, NaN and both zeros among them; the others are carried along."""
    keys, condition = (clause, "") if clause.startswith("PARTITION") else ("", f"FILTER A[{clause}]")
    query = ceql.compile(f"SELECT * FROM S WHERE (A; B) {condition} WITHIN 6 SECONDS {keys}")
    events = _of_every_type(14)
    table = pa.Table.from_pylist(events, FIELDS)
    ends = [{**event, "time": 1000 + n, "type": "end"} for n, event in enumerate(events[:4])]
    every = pa.Table.from_pylist([*events, *ends], FIELDS).rename_columns([plain_name(n) for n in FIELDS.names])
    expected = sorted((m.start, m.end, list(m.positions)) for m in query.run(table))
    found = _in_micro_batches(query, every.to_pylist(), 4, 3, every.schema, ("S",))
    assert sorted((r[0], r[1], list(r[2])) for r in found) == expected
    assert bool(expected) == ("[nul]" not in clause)


def _later(time: Any, step: int) -> Any:
    """A time long behind `time`."""
    return f"{9000 + step}-01-01T00:00:00Z" if isinstance(time, str) else time + step * 10**6


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
    for options in (StreamOptions(time=TIME, ties="arrival", late="drop"), StreamOptions(time=TIME, ties="arrival")):
        evaluation = TupleEvaluation(query, ("",), options, None)
        evaluation.take(0, Parcel(np.array([5, 3]), np.array([1, 2]), [], "<events>", None))
        list(evaluation.release())  # inside a batch there is no order
        behind = Parcel(np.array([4]), np.array([1]), [], "<events>", None)
        if options.late == "error":
            with pytest.raises(EventError, match="goes back in time"):
                evaluation.take(0, behind)
        else:
            evaluation.take(0, behind)
            assert evaluation.counts()[:2] == [3, 1]


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


def test_a_column_that_is_not_there_is_an_error_before_anything_runs(spark: Any) -> None:
    frame = spark.createDataFrame([], "type string, time long, v long")
    for text in ("FILTER a[zz > 1] WITHIN 9 SECONDS", "PARTITION BY [zz] WITHIN 9 SECONDS", "WITHIN 9 [zz]"):
        query = ceql.compile(f"SELECT * WHERE A AS a ; B {text}")
        for call in (stream_tuples, spaseq.spark.run_tuples):
            with pytest.raises(QuerySemanticsError, match="no event has an attribute zz") as found:
                call(query, frame)
            assert found.value.hint.endswith("are type, time, v")


@pytest.mark.slow
def test_what_goes_wrong_in_foreach_batch_is_one_message(tmp_path: Path, spark: Any) -> None:
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 9 SECONDS")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text('{"type": "A", "time": "soon"}\n')

    def broken(frame: Any, number: int) -> None:
        raise ValueError("no such table\nand more")

    def asking(frame: Any, number: int) -> None:
        frame.collect()

    for number, (function, kind, message) in enumerate(
        ((broken, OptionError, r"batch 0 \(.*test_tuple_streams.py:\d+\): ValueError: no such table\n"),
         (asking, EventError, "'soon' is not a time"))
    ):  # fmt: skip
        frame = spark.readStream.schema("type string, time string").json(str(tmp_path / "in"))
        running = start_tuples(query, frame, checkpoint=str(tmp_path / f"state{number}"), foreach_batch=function,
                               available_now=True, tasks=1)  # fmt: skip
        with pytest.raises(kind, match=message):
            wait(running)


@pytest.mark.slow
def test_csv_has_lists_as_json(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "in").mkdir()
    rows = [("A", 1), ("B", 2), ("end", 99), ("end", 100)]
    (tmp_path / "in" / "0.json").write_text("".join(f'{{"type": "{t}", "time": {at}}}\n' for t, at in rows))
    frame = spark.readStream.schema("type string, time long").json(str(tmp_path / "in"))
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 9 SECONDS")
    running = start_tuples(query, frame, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
                           format="csv", available_now=True, tasks=1)  # fmt: skip
    assert wait(running)
    (row,) = spark.read.csv(str(tmp_path / "out"), escape='"').collect()
    assert row[:3] == ("0", "1", "[0,1]")
