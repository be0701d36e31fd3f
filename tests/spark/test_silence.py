"""A stream that falls silent: batches that bring nothing let time go on, so absences are known all the same."""

from __future__ import annotations

import datetime
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.core.snapshot import encode
from spaseq.rdf import StreamOptions
from spaseq.spark import match, start, start_tuples, stream_matches
from spaseq.spark.streaming.processor import _again, _take_batch
from spaseq.spark.streaming.tuple_stream import TupleEvaluation, _Send, _send
from spaseq.spark.streaming.watermark import Silence
from spaseq.spark.tuples.plan import Plan
from tests.spark.conftest import write_stream
from tests.spark.test_tuple_streams import _job, _tuples
from tests.support.micro_batches import in_micro_batches
from tests.support.sizes import some

pytestmark = pytest.mark.spark

SECOND = 10**9
BEHIND = 2 * SECOND
START = 1_700_000_000
"""Seconds since 1970: the clock of the batches begins here."""
SILENT = [
    "SELECT * WHERE A AS a ; NOT B WITHIN 4 SECONDS",
    "SELECT * WHERE A AS a ; NOT B FOR 2 SECONDS PARTITION BY [id] WITHIN 9 SECONDS",
    "SELECT * WHERE A AS a ; C ; NOT B FOR 3 SECONDS PARTITION BY [id]",
    "SELECT * WHERE NOT B FOR 3 SECONDS ; A PARTITION BY [id]",
    "SELECT * WHERE NOT B ; A ; C PARTITION BY [id] WITHIN 5 SECONDS",
    "SELECT NEXT * WHERE A ; C PARTITION BY [id] WITHIN 5 SECONDS",
    "SELECT * WHERE A ; NOT C PARTITION BY [id] WITHIN 3 EVENTS",
]
"""Absences, and queries whose matches wait for no time."""


def _compare(text: str, seed: int) -> int:
    """The number of rows after random batches, of which some bring nothing. They are those of a session that is pushed
    the same events, and advanced to the times that the silent batches let time go on to."""
    rng = random.Random(seed)
    query = ceql.compile(text)
    schema = pa.schema({"type": pa.string(), "time": pa.int64(), "id": pa.int64(), "the number": pa.int64()})
    job = _job(query, schema)
    order = StreamOptions(time="time", ties="arrival", late="drop")
    count = 3 if Plan.of(query).keys else 1
    silence = Silence(0, BEHIND)
    evaluations = [TupleEvaluation(job, order, silence, count) for _ in range(count)]
    logs: list[list[Any]] = [[evaluation.snapshot()] for evaluation in evaluations]
    found: list[list[int]] = []
    expected: list[list[int]] = []
    taken: list[int] = []  # positions count the events that are not late, numbers all
    now, at, number = START + 1, START, 0
    session = query.open(late="drop")

    def tell(matches: list[Any]) -> None:
        expected.extend([taken[position] for position in match.positions] for match in matches)

    for _ in range(rng.randint(3, 12)):
        now += rng.choice((0, 1, 2, 5))
        silent = rng.random() < 0.5
        if silent and not evaluations[0].awaits:
            assert not any(evaluation.awaits for evaluation in evaluations)
            continue  # no timer is set
        sent: list[Any] = []
        if silent:
            tell(session.advance(now * SECOND - BEHIND))
        else:
            events: list[dict[str, Any]] = []
            for _ in range(rng.randint(1, 4)):
                at = max(at, now - 4) + rng.choice((0, 0, 1, 2))
                events.append({"type": rng.choice("AABC"), "time": at, "id": rng.randint(0, 3)})
            for place, event in enumerate(events, number):
                late = session.counters.late
                taken.append(place)
                tell(session.push(event))
                if session.counters.late > late:
                    taken.pop()
            given = pa.Table.from_pylist([{**e, "the number": number + i} for i, e in enumerate(events)], schema)
            number += len(events)
            times, own = [e["time"] * SECOND for e in events], [e["id"] % count for e in events]
            for part in _send(_Send(1, tuple(range(count)), drop=False), iter([_tuples(given, times, [], own, ("",))])):
                sent += zip(*(column.to_pylist() for column in part.columns), strict=True)
        for bucket, evaluation in enumerate(evaluations):
            bodies = None if silent else [(0, body) for to, *_, body in sent if to == bucket]
            logs[bucket].append((now * SECOND, bodies))
            for table in _take_batch(evaluation, now * SECOND, bodies):
                found += [[event["the number"] for event in row] for row in table["events"].to_pylist()]
            if rng.random() < 0.3:  # goes on from a snapshot and what came behind it
                again = TupleEvaluation(job, order, silence, count)
                again.restore(logs[bucket][0])
                _again(again, [encode((again.words(), *entry)) for entry in logs[bucket][1:]])
                evaluations[bucket] = again
                if rng.random() < 0.5:
                    logs[bucket] = [again.snapshot()]
        if silent and not evaluations[0].awaits:
            assert sorted(found) == sorted(expected), f"{seed}: {text}"
    now += 30
    if number:
        tell(session.advance(now * SECOND - BEHIND))
    for evaluation in evaluations:
        if evaluation.awaits:
            for table in _take_batch(evaluation, now * SECOND, None):
                found += [[event["the number"] for event in row] for row in table["events"].to_pylist()]
            assert not evaluation.awaits
    assert sum(evaluation.counts(False)[1] for evaluation in evaluations) == session.counters.late
    session.close()
    assert sorted(found) == sorted(expected), f"{seed}: {text}"
    return len(found)


@pytest.mark.parametrize("text", SILENT)
def test_silent_batches_give_what_a_session_gives_that_is_advanced(text: str) -> None:
    assert sum(_compare(text, seed) for seed in range(some(10))) > 1


@pytest.mark.slow
@pytest.mark.parametrize("text", SILENT)
def test_many_silent_batches_give_what_a_session_gives(text: str) -> None:
    assert sum(_compare(text, seed) for seed in range(10, 300)) > 25


GRAPHS = {
    "absence": ("A; B!", "WITHIN 9 SECONDS SLIDING"),
    "absence in a tumbling window": ("A; B!", "WITHIN 20 SECONDS"),
    "absence of a key": ("A; B!", "WITHIN 9 SECONDS SLIDING PARTITION BY (?room)"),
    "no absence": ("A; B", "WITHIN 9 SECONDS SLIDING"),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_silent_batch_gives_what_the_end_of_graphs_gives(name: str, tmp_path: Path) -> None:
    """Streams that no one closes: time goes on past all windows, and then there is no other match."""
    sequence, clauses = GRAPHS[name]
    query = spaseq.compile(f"""PREFIX : <http://example.org/> SELECT * {clauses}
        FROM STREAM S <http://example.org/one> FROM STREAM T <http://example.org/two> WHERE {{ SEQ ({sequence})
        DEFINE GPM A ON S {{ ?a :room ?room ; :heat ?x }} DEFINE GPM B ON T {{ ?b :room ?room ; :heat ?y
        FILTER (?y > 24) }} }}""")
    count = 0
    for seed in range(3):
        streams = {"S": str(tmp_path / f"one{seed}.nq"), "T": str(tmp_path / f"two{seed}.nq")}
        for number, file in enumerate(streams.values()):
            write_stream(Path(file), 2 * seed + number, 15, start=START)
        expected = [(m.start, m.end, list(m.positions)) for m in query.run(streams, keep_events=False)]
        found, _ = in_micro_batches(query, streams, {}, seed, 2, silent=True)
        assert sorted((row[0], row[1], list(row[2])) for row in found) == sorted(expected)
        count += len(expected)
    assert count


def _evaluation(**more: Any) -> TupleEvaluation:
    schema = pa.schema({"type": pa.string(), "time": pa.int64(), "the number": pa.int64()})
    order = StreamOptions(time="time", ties="arrival", **more)
    return TupleEvaluation(_job(ceql.compile("SELECT * WHERE A ; NOT B WITHIN 4 SECONDS"), schema), order,
                           Silence(0, BEHIND))  # fmt: skip


def _batch(evaluation: TupleEvaluation, now: int, *times: int) -> int:
    bodies = None
    if times:
        table = pa.table({"type": ["A"] * len(times), "time": list(times), "the number": list(range(len(times)))})
        batch = _tuples(table, [t * SECOND for t in times], [], [0] * len(times), ("",))
        parts = _send(_Send(1, (0,), drop=False), iter([batch]))
        bodies = [(0, body) for part in parts for body in part.column("body").to_pylist()]
    return sum(len(table) for table in _take_batch(evaluation, now * SECOND, bodies))


def test_an_event_behind_the_clock_is_late() -> None:
    for late in ("drop", "error"):
        evaluation = _evaluation(late=late)
        assert _batch(evaluation, START + 1, START) == 0 and evaluation.awaits
        assert _batch(evaluation, START + 3) == 0
        again = _evaluation(late=late)
        again.restore(evaluation.snapshot())
        assert _batch(evaluation, START + 7) == 1 and not evaluation.awaits  # 5 seconds passed, of which it waits 4
        if late == "drop":
            assert _batch(evaluation, START + 7, START + 4, START + 5) == 0 and evaluation.counts(True)[:2] == [3, 1]
        else:
            with pytest.raises(EventError, match="goes back in time, behind the clock"):
                _batch(evaluation, START + 7, START + 4)
            with pytest.raises(EventError, match="behind the time that it was advanced to"):
                _batch(again, START + 7, START)


def test_events_that_are_not_timed_by_a_clock_are_refused() -> None:
    evaluation = _evaluation()
    _batch(evaluation, START, 5)
    with pytest.raises(OptionError, match="the clock goes on, and time is not of it: 1970-01-01T00:00:05"):
        _batch(evaluation, START + 1)


def test_the_words_of_a_log_that_has_no_clock_are_those_of_none() -> None:
    """Logs of the version before."""
    evaluation = _evaluation()
    evaluation.use((0, "drop", 7))
    assert evaluation.words() == (0, "drop", 7, None)


def test_what_a_clock_cannot_do_is_said(spark: Any, tmp_path: Path) -> None:
    frame = spark.readStream.schema("type string, time timestamp").json(str(tmp_path))
    query = ceql.compile("SELECT * WHERE A ; NOT B WITHIN 9 SECONDS")
    words: dict[str, Any] = {"checkpoint": str(tmp_path / "state"), "output": str(tmp_path / "out")}
    with pytest.raises(OptionError, match="clock= lets time go on, and available_now=True stops"):
        start_tuples(query, frame, **words, available_now=True, clock="5s")
    with pytest.raises(OptionError, match="events would be late as they come"):
        frame.transform(match(query, clock=0))
    with pytest.raises(OptionError, match="clock='5s' is for a stream"):
        match(query, clock="5s")(spark.createDataFrame([], "type string, time timestamp"))


def _until(rows: Callable[[], list[Any]], running: Any) -> list[Any]:
    """The first rows that a query gives."""
    until = time.monotonic() + 180
    while not (given := rows()):
        assert time.monotonic() < until and running.exception() is None
        time.sleep(0.2)
    return given


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.user AS user WHERE alarm AS a ; NOT ack FOR 1 SECONDS",
        pytest.param("SELECT user WHERE alarm ; NOT ack FOR 1 SECONDS PARTITION BY [user]", marks=pytest.mark.slow),
    ],
    ids=["one bucket", "keys"],
)
def test_absences_end_on_a_silent_stream(text: str, spark: Any, tmp_path: Path) -> None:
    """A folder into which one file comes, and no other: in a session of Spark's, by its timers."""
    (tmp_path / "in").mkdir()
    now = datetime.datetime.now(datetime.UTC).isoformat()
    events = (("bob", "alarm"), ("bob", "ack"), ("ann", "alarm"))
    rows = [{"user": user, "type": kind, "time": now} for user, kind in events]
    (tmp_path / "in" / "0.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    frame = spark.readStream.schema("user string, type string, time timestamp").json(str(tmp_path / "in"))
    given: list[Any] = []
    running = start_tuples(
        ceql.compile(text), frame, checkpoint=str(tmp_path / "state"), clock="1s", every="500 milliseconds", tasks=1,
        foreach_batch=lambda found, number: given.extend(found.collect()),
    )  # fmt: skip
    try:
        assert [row.user for row in _until(lambda: given, running)] == ["ann"]
    finally:
        running.stop()
    with pytest.raises(OptionError, match="clock"):  # Spark's state has timers, or none
        start_tuples(
            ceql.compile(text), frame, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"), tasks=1
        )


@pytest.mark.slow
def test_absences_of_graphs_end_on_a_silent_stream(spark: Any, tmp_path: Path) -> None:
    text = """PREFIX : <http://example.org/> SELECT ?x WITHIN 2 SECONDS SLIDING FROM STREAM S <http://example.org/S>
        WHERE { SEQ (A; B!) DEFINE GPM A ON S { ?x :alarm ?a } DEFINE GPM B ON S { ?x :ack ?b } }"""
    (tmp_path / "in").mkdir()
    now = datetime.datetime.now(datetime.UTC)
    times = [(now + datetime.timedelta(milliseconds=number)).isoformat() for number in range(3)]
    quads = [{"stream": "S", "time": times[number], "graph": f"<a:{number}>",
              "subject": f"<u:{user}>", "predicate": f"<http://example.org/{said}>", "object": '"1"'}
             for number, (user, said) in enumerate((("ann", "alarm"), ("bob", "alarm"), ("bob", "ack")))]  # fmt: skip
    (tmp_path / "in" / "0.json").write_text("".join(json.dumps(line) + "\n" for line in quads))
    schema = "stream string, time timestamp, graph string, subject string, predicate string, object string"
    frame = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    given: list[Any] = []
    running = start(
        text, spark, frame, checkpoint=str(tmp_path / "state"), clock="1s", tasks=1,
        foreach_batch=lambda found, number: given.extend(found.collect()),
    )  # fmt: skip
    try:
        assert [row.x for row in _until(lambda: given, running)] == ["<u:ann>"]
    finally:
        running.stop()
    assert stream_matches(text, spark, frame, clock="1s").isStreaming
