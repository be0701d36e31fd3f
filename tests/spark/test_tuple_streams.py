"""CEQL over streams of tuples: in random micro-batches, and with Spark over a folder of files."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import LongType, StringType

import ceql
from ceql.results.history import Past
from ceql.runtime.batch import Partition
from spaseq.core.engine import Partitions, Window
from spaseq.core.errors import EventError, OptionError, QuerySemanticsError
from spaseq.core.events import EventBatch, EventOptions
from spaseq.core.events.batch import encode_texts
from spaseq.core.events.timestamps import TimestampAssigner
from spaseq.core.snapshot import encode
from spaseq.rdf import StreamOptions
from spaseq.spark import match, progress, start_tuples, wait
from spaseq.spark.streaming.processor import _again, _take_batch
from spaseq.spark.streaming.tuple_stream import TupleEvaluation, _Send, _send
from spaseq.spark.tuples.columns import has_dates, late_schema, row_schema
from spaseq.spark.tuples.frames import Layout
from spaseq.spark.tuples.plan import Plan
from spaseq.spark.tuples.rows import Job
from tests.spark.test_any_column import CONDITIONS, KEYS, _row
from tests.spark.test_tuples import _CASES as CASES
from tests.spark.test_tuples import QUERIES, _events, _schema
from tests.support import harness

pytestmark = pytest.mark.spark
SCHEMA = "type string, time long, id long, v long, seq long"
_CLOCK = StreamOptions(time="time", ties="arrival", late="error")
_NUMBER = "the number"


def _job(query: Any, schema: pa.Schema, names: tuple[str, ...] = ("",), **typing: Any) -> Job:
    """The work of a bucket whose tuples have these columns; its rows have the events with them."""
    own = {name: number for number, name in enumerate(schema.names)}
    kinds = tuple(from_arrow_type(field.type) for field in schema)
    times = (kinds[own["time"]],) * len(names)
    layout = Layout((own,) * len(names), ("time",) * len(names), times, kinds)
    options = EventOptions(**typing)
    rows = row_schema(query, names, layout, options, (_NUMBER,))
    return Job(query, names, layout, options, has_dates(layout), rows, (_NUMBER,))


def _tuples(table: pa.Table, times: Any, streams: Any, buckets: Any, names: tuple[str, ...]) -> pa.RecordBatch:
    """Some tuples as `one_frame` gives them, with their buckets."""
    columns = {f"c{number}": column for number, column in enumerate(table.columns)}
    columns |= {"time": pa.array(times, pa.int64())}
    if len(names) > 1:
        columns |= {"stream": pa.array(streams, pa.int32())}
    (batch,) = pa.table(columns | {"bucket": pa.array(buckets, pa.int32())}).combine_chunks().to_batches()
    return batch


def _in_micro_batches(
    query: Any, events: list[dict[str, Any]], seed: int, buckets: int, schema: Any = None, names: Any = ("",)
) -> list[Any]:
    """The numbers of the events of the rows that buckets give; the last event of each stream only says that those
    before it are complete."""
    rng = random.Random(seed)
    table = pa.Table.from_pylist(events, schema).append_column(_NUMBER, pa.array(range(len(events))))
    clock = TimestampAssigner(EventOptions(), "<events>", types=())
    times = [clock.read(table.slice(row, 1)).times[0] for row in range(len(events))]
    keys = Plan.of(query).keys
    numbers = Partition(keys, Partitions(Window("none"))).keys if keys else None
    found_keys = np.zeros(len(events), np.int64)
    if numbers is not None:
        clocks = np.arange(len(events))
        found_keys = numbers(EventBatch(encode_texts(table), "type", clocks, clocks), clocks)
    bucket_of = [None if key < 0 else int(key) % buckets for key in found_keys.tolist()]
    send = _Send(len(names), tuple(range(buckets)), drop=False)
    job = _job(query, table.schema, tuple(names))
    evaluations = [TupleEvaluation(job, _CLOCK) for _ in range(buckets)]
    logs: list[list[Any]] = [[evaluation.snapshot()] for evaluation in evaluations]
    found: list[Any] = []
    done = 0
    while done < len(events):
        size = rng.choice((1, 5, 40))
        rows: list[Any] = []
        for feed, name in enumerate(names):
            which = [done + i for i, e in enumerate(events[done : done + size]) if e.get("stream", name) == name]
            if which:
                batch = _tuples(table.take(pa.array(which)), [times[i] for i in which], [feed] * len(which),
                                [bucket_of[i] for i in which], names)  # fmt: skip
                for sent in _send(send, iter([batch])):
                    rows += zip(*(column.to_pylist() for column in sent.columns), strict=True)
        done += size
        for bucket, evaluation in enumerate(evaluations):
            own = [(0, body) for to, *_, body in rows if to == bucket]
            logs[bucket].append((0, own))
            for part in _take_batch(evaluation, 0, own):
                found += [[event[_NUMBER] for event in row] for row in part["events"].to_pylist()]
            if rng.random() < 0.3:  # goes on from a snapshot and what came behind it
                again = TupleEvaluation(job, _CLOCK)
                again.restore(logs[bucket][0])
                _again(again, [encode((again.words(), *entry)) for entry in logs[bucket][1:]])
                evaluations[bucket] = again
                if rng.random() < 0.5:
                    logs[bucket] = [again.snapshot()]
    return found


def _told(session: Any, events: list[dict[str, Any]], schema: Any, times: list[int]) -> list[list[int]]:
    """What a session gives of events pushed one by one, if it is told the time of each."""
    found = []
    for number, (event, time) in enumerate(zip(events, times, strict=True)):
        own = [event["stream"]] if "stream" in event else []
        found += session.push(pa.Table.from_pylist([event], schema), *own)
        if number + 1 < len(events):
            found += session.advance(time)
    return [list(m.positions) for m in found]


@pytest.mark.parametrize("typing", [{}, {"type": "E"}])
def test_tuples_without_a_column_of_types(typing: dict[str, Any]) -> None:
    """Taken by ANY, or given a type; the tasks leave it to the evaluation to ask for types."""
    query = ceql.compile(f"SELECT * WHERE {'E' if typing else 'ANY'} AS a ; ANY AS b FILTER a.x < b.x WITHIN 9 SECONDS")
    events = [{"time": time, "x": x} for time, x in enumerate([1, 3, 2, 4])]
    local = sorted(list(m.positions) for m in query.run(events, **typing))
    table = pa.Table.from_pylist([*events, {"time": 99, "x": 0}]).append_column(_NUMBER, pa.array(range(5)))
    evaluation = TupleEvaluation(_job(query, table.schema, **typing), _CLOCK)
    batch = _tuples(table, [int(t) * 10**9 for t in table["time"].to_pylist()], [], [0] * 5, ("",))
    for sent in _send(_Send(1, (0,), drop=False), iter([batch])):
        for body in sent.column("body").to_pylist():
            evaluation.take(0, body)
    found = [[e[_NUMBER] for e in row] for part in evaluation.release() for row in part["events"].to_pylist()]
    assert sorted(found) == local and len(local) == 5


@pytest.mark.parametrize(("name", "text"), QUERIES, ids=[name for name, _ in QUERIES])
def test_random_micro_batches(name: str, text: str) -> None:
    query = ceql.compile(text)
    events = _events(5, 150)
    local = sorted(list(m.positions) for m in query.run(events))
    last = events[-1]
    end = {"type": "end", "time": last["time"] + 1000, "id": -1, "v": 0, "seq": last["seq"] + 10_000}
    more = [*({**end, "id": key} for key in range(-1, 10)), {**end, "time": end["time"] + 1}]
    assert sorted(_in_micro_batches(query, [*events, *more], 1, 3 if Plan.of(query).keys else 1)) == local != []


_SOME = [case for case in CASES if case.events]
_MARKED = [
    pytest.param(case, id=case.place, marks=[pytest.mark.slow] if number % 8 else [])
    for number, case in enumerate(_SOME)
]
"""One case of eight is in every run: all are on every road of `tests/test_cases.py`."""


@pytest.mark.parametrize("case", _MARKED)
def test_cases(case: harness.Case) -> None:
    """What a session gives that is told the times and not closed: a stream has no end."""
    query = ceql.compile(case.query)
    events = [{"time": second, **event} for second, event in enumerate(case.events)]
    names = query.stream_names(tuple(dict.fromkeys(e["stream"] for e in events if "stream" in e)))
    ends = [
        {**events[-1], **({"stream": name} if "stream" in events[-1] else {}), "type": "end", "time": later}
        for later in (_later(events[-1]["time"], step) for step in range(1, 3))
        for name in names
    ]
    schema = _arrow_schema(events)
    clock = TimestampAssigner(EventOptions(), "<events>", types=())
    given = [*events, *ends[: len(names)]]
    times = [int(clock.read(pa.Table.from_pylist([event], schema)).times[0]) for event in given]
    with query.open(streams=[name for name in names if name] or None) as session:
        expected = _told(session, given, schema, times)
        session.close()
    found = _in_micro_batches(query, [*events, *ends], 5, 3 if Plan.of(query).keys else 1, schema, names)
    assert sorted(found) == sorted(expected)


WINDOWS = {
    "time": "WITHIN 20 SECONDS",
    "events": "WITHIN 20 EVENTS",
    "attribute": "WITHIN 20 [seq]",
    "events of a key": "WITHIN 20 EVENTS PARTITION BY [id]",
    "none": "PARTITION BY [id]",
}


ABSENCES = ["A; C; NOT B FOR 30 SECONDS", "NOT B FOR 30 SECONDS; A; C", "NOT B; A; C"]
_GROWS = [
    *((window, formula) for window in WINDOWS for formula in ("A; B", "A; NOT B")),
    *(("time", formula) for formula in ABSENCES),
]
_GROWS_ALSO = {("events", "A; B"), *((window, "A; NOT B") for window in ("attribute", "events of a key", "none"))}
"""Slow: each window and each formula is in a quick one."""


@pytest.mark.parametrize(
    ("window", "formula"),
    [pytest.param(*case, marks=[pytest.mark.slow] if case in _GROWS_ALSO else []) for case in _GROWS],
)
def test_the_state_does_not_grow_with_the_stream(window: str, formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds what is left of two batches and a window; keys that come no more are forgotten."""
    monkeypatch.setattr(Past, "worth", 1_000)
    monkeypatch.setattr(Partitions, "worth", 2)
    settings = ceql.Settings(forget_keys_after=50 if "PARTITION" in WINDOWS[window] else None)
    query = ceql.compile(f"SELECT * WHERE {formula} {WINDOWS[window]}", settings=settings)
    schema = pa.schema(
        {"type": pa.string(), "time": pa.int64(), "seq": pa.int64(), "id": pa.int64(), _NUMBER: pa.int64()}
    )
    job = _job(query, schema)
    evaluation = TupleEvaluation(job, _CLOCK)
    sizes, found = [], 0
    for first in range(0, 20_000, 500):
        seq = np.arange(first, first + 500)
        types = np.select([seq % 50 == 0, seq % 150 == 5], ["A", "B"], "C")
        events = pa.table({"type": types, "time": seq, "seq": seq, "id": seq // 100, _NUMBER: seq}).cast(schema)
        batch = _tuples(events, seq * 10**9, [], np.zeros(500, np.int32), ("",))
        for sent in _send(_Send(1, (0,), drop=False), iter([batch])):
            for body in sent.column("body").to_pylist():
                evaluation.take(0, body)
        found += sum(part.num_rows for part in evaluation.release())
        state = evaluation.snapshot()
        sizes.append(len(state))
        evaluation = TupleEvaluation(job, _CLOCK)
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
    every = pa.Table.from_pylist([*events, *ends], FIELDS)
    expected = sorted(list(m.positions) for m in query.run(table))
    found = _in_micro_batches(query, every.to_pylist(), 4, 3 if keys else 1, every.schema, ("S",))
    assert sorted(found) == expected
    assert bool(expected) == ("[nul]" not in clause)


def _later(time: Any, step: int) -> Any:
    """A time long behind `time`."""
    return f"{9000 + step}-01-01T00:00:00Z" if isinstance(time, str) else time + step * 10**6


def _arrow_schema(events: list[dict[str, Any]]) -> pa.Schema:
    names = list(dict.fromkeys(name for event in events for name in event))
    kinds = {
        "array<double>": pa.list_(pa.float64()),
        "array<string>": pa.list_(pa.string()),
        "boolean": pa.bool_(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
    }
    types = [part.rsplit(" ", 1)[1] for part in _schema(events, names).split(", ")]
    return pa.schema([(name, kinds[kind]) for name, kind in zip(names, types, strict=True)])


def test_late_tuples() -> None:
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 9 SECONDS")
    schema = pa.schema({"type": pa.string(), "time": pa.int64(), _NUMBER: pa.int64()})

    def bodies(*times: int) -> list[bytes]:
        table = pa.table({"type": ["A"] * len(times), "time": times, _NUMBER: times}).cast(schema)
        batch = _tuples(table, times, [], [0] * len(times), ("",))
        sent = list(_send(_Send(1, (0,), drop=False), iter([batch])))
        return [body for part in sent for body in part.column("body").to_pylist()]

    for late in ("drop", "error"):
        clock = StreamOptions(time="time", ties="arrival", late=late)
        evaluation = TupleEvaluation(_job(query, schema), clock)
        for body in bodies(5, 3):
            evaluation.take(0, body)
        list(evaluation.release())  # inside a batch there is no order
        behind, *_ = bodies(4)
        if late == "error":
            with pytest.raises(EventError, match="goes back in time"):
                evaluation.take(0, behind)
        else:
            evaluation.take(0, behind)
            assert evaluation.counts(True)[:2] == [3, 1]


@pytest.mark.slow
def test_a_folder_of_files_with_a_restart(tmp_path: Path, spark: Any) -> None:
    query = ceql.compile(QUERIES[0][1])
    events = _events(6, 200)
    expected = sorted(str([(e["time"], e["v"]) for e in m.events]) for m in query.run(events))
    (tmp_path / "in").mkdir()

    def go_on() -> Any:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
        running = start_tuples(query, frame, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
                               available_now=True, tasks=2, events=True)  # fmt: skip
        assert wait(running)
        return running

    end = {"type": "end", "time": events[-1]["time"] + 99, "id": 1, "v": 0, "seq": 0}
    for number, part in enumerate((events[:90], events[90:], [end])):
        text = "".join(json.dumps(event) + "\n" for event in part)
        (tmp_path / "in" / f"{number}.json").write_text(text)
        running = go_on()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(str([(e.time, e.v) for e in row.events]) for row in rows) == expected != []
    assert progress(running)["events"] == 201


def test_streams_without_times_are_refused(spark: Any, tmp_path: Path) -> None:
    frame = spark.readStream.schema("type string").json(str(tmp_path))
    with pytest.raises(OptionError, match="WITHIN 9 SECONDS needs the times"):
        frame.transform(match("SELECT * WHERE A ; B WITHIN 9 SECONDS"))
    with pytest.raises(OptionError, match="no column of times in the stream"):
        frame.transform(match("SELECT * WHERE A ; B"))


def test_what_a_stream_cannot_do_is_said(spark: Any, tmp_path: Path) -> None:
    frame = spark.readStream.schema(SCHEMA).json(str(tmp_path))
    for words, said in (
        ({"positions": True}, "positions=True is not for a stream"),
        ({"cut": "one"}, "cut='one' is not"),
    ):
        with pytest.raises(OptionError, match=said):
            frame.transform(match("SELECT * WHERE A ; B", **words))
    query = ceql.compile("SELECT * FROM S, T WHERE S>A ; T>B")
    with pytest.raises(OptionError, match="the stream T is no streaming DataFrame"):
        match(query)({"S": frame, "T": spark.createDataFrame([], SCHEMA)})


def test_a_column_that_is_not_there_is_an_error_before_anything_runs(spark: Any) -> None:
    frame = spark.createDataFrame([], "type string, time long, v long")
    for text in ("FILTER a[zz > 1] WITHIN 9 SECONDS", "PARTITION BY [zz] WITHIN 9 SECONDS", "WITHIN 9 [zz]"):
        query = ceql.compile(f"SELECT * WHERE A AS a ; B {text}")
        with pytest.raises(QuerySemanticsError, match="no event has an attribute zz") as found:
            frame.transform(match(query))
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
                           format="csv", available_now=True, tasks=1, events=True)  # fmt: skip
    assert wait(running)
    (row,) = spark.read.csv(str(tmp_path / "out")).collect()
    assert row[:2] == ("1", "2") and json.loads(row[2]) == [{"type": "A", "time": 1}, {"type": "B", "time": 2}]


LATE_SCHEMA = "type string, time long, id long, `a.b` string, v long"
_IN_FILES: list[list[tuple[Any, ...]]] = [
    [("A", 10, 1, "x", 1), ("B", 12, 1, None, 2)],
    [("A", 3, 1, "late", 7), ("A", 12, 2, "y", 3), ("B", 11, 2, "z", None), ("C", 14, None, "no key", 4)],
    [("B", 13, 2, "late", 5), ("B", 20, 2, "w", 6), ("end", 98, 1, None, 0)],
    [("end", 99, 1, None, 0)],
]
"""What is late is behind an earlier file: 3 behind 12, 11 behind 12, 13 behind 14."""


def _late_files(folder: Path, spark: Any) -> Any:
    """A stream of these files, each a batch; they are dated, as Spark reads them in that order."""
    names = ("type", "time", "id", "a.b", "v")
    folder.mkdir()
    for number, rows in enumerate(_IN_FILES):
        lines = (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
        (folder / f"{number}.json").write_text("".join(lines))
        os.utime(folder / f"{number}.json", (1_000 + number, 1_000 + number))
    return spark.readStream.schema(LATE_SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def test_late_events_are_rows_of_their_own(tmp_path: Path, spark: Any) -> None:
    """In a folder beside that of the matches, as many times as the stream is read."""
    frame = _late_files(tmp_path / "in", spark)
    query = ceql.compile("SELECT a.v AS low, b.v AS high WHERE A AS a ; B AS b PARTITION BY [id] WITHIN 30 SECONDS")
    places: dict[str, Any] = {"output": str(tmp_path / "out"), "late_output": str(tmp_path / "late")}
    running = start_tuples(query, frame, checkpoint=str(tmp_path / "state"), available_now=True, tasks=1, **places)
    assert wait(running)
    late = spark.read.parquet(str(tmp_path / "late"))
    assert late.columns == ["type", "time", "id", "a.b", "v", "late_by", "batch"]
    assert sorted(map(tuple, late.collect())) == [
        ("A", 3, 1, "late", 7, 9_000_000_000, 1),
        ("B", 11, 2, "z", None, 1_000_000_000, 1),
        ("B", 13, 2, "late", 5, 1_000_000_000, 2),
    ]
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch")
    assert sorted(map(tuple, found.collect())) == [(1, 1, 2, 10, 12), (2, 3, 6, 12, 20)]
    assert {name: progress(running)[name] for name in ("events", "late", "matches")} == {
        "events": 10, "late": 3, "matches": 2
    }  # fmt: skip
    with pytest.raises(OptionError, match="has batches of another checkpoint"):
        start_tuples(query, frame, checkpoint=str(tmp_path / "other"), available_now=True, tasks=1, **places)
    with pytest.raises(OptionError, match="was begun with sources"):  # all columns of late events are read
        start_tuples(query, frame, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "none"), tasks=1)


@pytest.mark.slow
def test_functions_get_matches_and_late_events_of_each_batch(tmp_path: Path, spark: Any) -> None:
    frame = _late_files(tmp_path / "in", spark)
    query = "SELECT b.v AS high WHERE A AS a ; B AS b PARTITION BY [id] WITHIN 30 SECONDS"
    found: dict[str, list[tuple[int, list[Any]]]] = {"matches": [], "late": []}

    def look(name: str) -> Any:
        return lambda rows, number: found[name].append((number, rows.select(rows.columns[0]).head(1)))

    running = start_tuples(
        ceql.compile(query), frame, checkpoint=str(tmp_path / "state"), available_now=True, tasks=2,
        foreach_batch=look("matches"), foreach_late=look("late"),
    )  # fmt: skip
    assert wait(running)
    assert [number for number, _ in found["matches"]] == [number for number, _ in found["late"]] == [0, 1, 2, 3]
    assert [len(rows) for _, rows in found["late"]] == [0, 1, 1, 0]
    assert progress(running)["late"] == 3
    (tmp_path / "in" / "4.json").write_text('{"type": "A", "time": 100}\n{"type": "A", "time": "soon"}\n')

    def broken(rows: Any, number: int) -> None:
        raise ValueError("no such table")

    running = start_tuples(ceql.compile(query), frame, checkpoint=str(tmp_path / "state"), available_now=True, tasks=2,
                           foreach_batch=look("matches"), foreach_late=broken)  # fmt: skip
    with pytest.raises((OptionError, EventError), match=r"no such table|no time that can be read"):
        wait(running)


def test_late_events_of_several_streams() -> None:
    """The name of its stream is in a row, and what the stream lacks is NULL."""
    query = ceql.compile("SELECT * FROM S, T WHERE S>A ; T>B WITHIN 9 SECONDS")
    kinds = (StringType(), LongType(), LongType())
    layout = Layout(({"type": 0, "time": 1}, {"type": 0, "time": 1, "v": 2}), ("time", "time"), (kinds[1],) * 2, kinds)
    late = late_schema(("S", "T"), layout, ("type", "time", "v"))
    job = Job(query, ("S", "T"), layout, EventOptions(), False, pa.schema([("match_start", pa.int64())]), None, late)
    evaluation = TupleEvaluation(job, StreamOptions(time="time", ties="arrival", late="drop"))

    def push(*rows: tuple[int, int]) -> list[dict[str, Any]]:
        times = [time * 10**9 for _, time in rows]
        given = [{"type": "A", "time": time, "v": 7 * stream or None} for stream, time in rows]
        table = pa.Table.from_pylist(given, pa.schema({"type": pa.string(), "time": pa.int64(), "v": pa.int64()}))
        batch = _tuples(table, times, [stream for stream, _ in rows], [0] * len(rows), ("S", "T"))
        bodies = [
            body for part in _send(_Send(2, (0,), drop=False), iter([batch])) for body in part["body"].to_pylist()
        ]
        list(_take_batch(evaluation, 0, [(0, body) for body in bodies]))
        return [row for rows in evaluation.late_rows() for row in rows.to_pylist()]

    assert push((0, 5), (1, 9)) == []
    assert push((0, 6), (1, 7), (0, 3)) == [
        {"type": "A", "time": 3, "v": None, "stream": "S", "late_by": 2_000_000_000},
        {"type": "A", "time": 7, "v": 7, "stream": "T", "late_by": 2_000_000_000},
    ]
    assert push((0, 9)) == []
    with pytest.raises(OptionError, match="two columns of the rows have the name late_by"):
        late_schema(("",), Layout(({"late_by": 0},), ("time",), kinds[:1], kinds[1:2]), ("late_by",))
