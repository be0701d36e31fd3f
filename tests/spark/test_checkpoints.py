"""The checkpoint of a stream: what it is of, that it is one driver's, and a disk that is full."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from spaseq.core.errors import OptionError
from spaseq.spark import Reading, match, start, start_tuples, wait
from spaseq.spark.streaming import checkpoint as checkpoints
from spaseq.spark.streaming import retasking
from tests.spark.test_streams import HEAT, _reading

pytestmark = pytest.mark.spark

HOLD = (
    "import fcntl, sys, time\nfile = open(sys.argv[1], 'w')\nfcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    "print('held', flush=True)\ntime.sleep(100)"
)
TRY = "import fcntl, sys\nfcntl.lockf(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def _run(spark: Any, place: Path, streams: dict[str, str], query: Any = HEAT, **more: Any) -> None:
    words = {"available_now": True, "tasks": 1, "output": str(place / "out"), **more}
    wait(start(query, spark, streams, checkpoint=str(place / "state"), **words))


@pytest.mark.slow
def test_a_checkpoint_says_what_it_is_of(tmp_path: Path, spark: Any) -> None:
    """The same streams, options and settings; lateness, limits, budgets and tasks may change. Slow, as that of tuples
    below says it in the same way, with one start less."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.nq").write_text(_reading(0, 1, 10) + _reading(1, 3, 12))
    streams = {"S": str(tmp_path / "a.nq")}
    _run(spark, tmp_path, streams)
    _run(spark, tmp_path, streams, lateness="1s", reading=Reading(max_bytes=9), query=spaseq.compile(HEAT))
    for other, more, said in (
        ({"S": str(tmp_path / "b.nq")}, {}, r"begun with sources .*/one.*/a\.nq.*, not .*/b\.nq"),
        (streams, {"time_unit": "ms"}, r"was begun with options .*, not .*\"time_unit\": \"ms\""),
        (streams, {"query": HEAT.replace("20", "9")}, "is of another query"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=said):
            _run(spark, tmp_path, other, **more)


@pytest.mark.slow  # five streams of Spark
def test_columns_that_are_read_belong_to_what_a_checkpoint_of_tuples_is_of(tmp_path: Path, spark: Any) -> None:
    query = ceql.compile("SELECT * FROM S WHERE A; B WITHIN 3 EVENTS")
    words: dict[str, Any] = {"checkpoint": str(tmp_path / "state"), "output": str(tmp_path / "out"), "tasks": 1,
                             "type_column": "type", "time": "at", "available_now": True}  # fmt: skip
    rows = spark.createDataFrame([(1, "A"), (2, "B"), (9, "C")], "at long, type string")
    rows.write.parquet(str(tmp_path / "in"))
    wait(start_tuples(query, spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in")), **words))
    more = spark.readStream.schema("at long, type string, more int").parquet(str(tmp_path / "in"))
    wait(start_tuples(query, more, **words))
    other = spark.readStream.schema("at double, type string").parquet(str(tmp_path / "in"))
    with pytest.raises(OptionError, match=r"was begun with sources .*time at.*bigint.*, not .*double"):
        start_tuples(query, other, **words)


@pytest.mark.slow
def test_tasks_may_change(tmp_path: Path, spark: Any) -> None:
    """They become more and fewer, and the rows stay those of a batch; a start that says nothing keeps them."""
    text = "SELECT id, a.time AS at, b.time AS bt WHERE A AS a ; B AS b PARTITION BY [id] WITHIN 40 SECONDS"
    query, schema = ceql.compile(text), "type string, time long, id long"
    (tmp_path / "in").mkdir()
    for number, tasks in enumerate((2, 5, None, 1)):
        start_at = 20 * number
        rows = [{"type": "AB"[i % 2], "time": start_at + i, "id": i % 7} for i in range(20)]
        rows += [{"type": "end", "time": 1000, "id": 1}] * (tasks == 1)
        (tmp_path / "in" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        frame = spark.readStream.schema(schema).json(str(tmp_path / "in"))
        words: dict[str, Any] = {"checkpoint": str(tmp_path / "state"), "output": str(tmp_path / "out")}
        running = start_tuples(query, frame, available_now=True, tasks=tasks, **words)
        wait(running)
        states = [record.stateOperators[0] for record in running.recentProgress if record.stateOperators]
        assert {state.numShufflePartitions for state in states} == {tasks or 5}
    expected = spark.read.schema(schema).json(str(tmp_path / "in")).transform(match(text, partitions=2)).collect()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(map(str, found)) == sorted(map(str, expected)) != []


@pytest.mark.slow
def test_tasks_of_graphs_may_change(tmp_path: Path, spark: Any) -> None:
    streams = {"S": str(tmp_path / "*.nq")}
    for number, tasks in enumerate((2, 1)):
        (tmp_path / f"{number}.nq").write_text(
            "".join(_reading(n, n + 2, 14 + n) for n in range(6 * number, 6 * number + 6))
        )
        _run(spark, tmp_path, streams, tasks=tasks, reading=Reading(bounded=tasks == 1))
    found = spark.read.parquet(str(tmp_path / "out")).select("start", "end").toArrow().to_pylist()
    expected = spaseq.compile(HEAT).run(streams).to_arrow().select(["start", "end"]).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected)) != []


@pytest.mark.slow
def test_tasks_that_cannot_change_yet(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with an older PySpark; not before a batch that was begun is done."""
    (tmp_path / "a.nq").write_text(_reading(0, 1, 10) + _reading(1, 3, 12))
    streams = {"S": str(tmp_path / "*.nq")}

    def fails(frame: Any, number: int) -> None:
        raise ValueError("no such table")

    _run(spark, tmp_path, streams, output=None, foreach_batch=lambda frame, number: frame.collect())
    (tmp_path / "b.nq").write_text(_reading(2, 5, 14))
    with pytest.raises(OptionError, match="no such table"):
        _run(spark, tmp_path, streams, output=None, foreach_batch=fails)
    with pytest.raises(OptionError, match=r"begun and is not done(.|\n)*start once with tasks=1"):
        _run(spark, tmp_path, streams, output=None, foreach_batch=fails, tasks=2)
    monkeypatch.setattr(retasking, "pyspark_version", lambda: (4, 1))
    with pytest.raises(OptionError, match=r"has tasks 1, not 2(.|\n)*PySpark 4.2 or later"):
        _run(spark, tmp_path, streams, output=None, foreach_batch=fails, tasks=2)


def test_a_checkpoint_is_one_drivers(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second driver is refused, waits for the first to end, and nobody holds it afterwards."""
    monkeypatch.setattr(checkpoints, "_PATIENCE", 0.5)
    (tmp_path / "a.nq").write_text(_reading(0, 1, 10) + _reading(1, 3, 12))
    streams, lock = {"S": str(tmp_path / "*.nq")}, tmp_path / "state" / "spaseq.lock"
    lock.parent.mkdir()
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(OptionError, match="is in use by another driver"):
            _run(spark, tmp_path, streams)
    finally:
        holder.kill()
        holder.wait()
    words: dict[str, Any] = {"checkpoint": str(tmp_path / "state"), "output": str(tmp_path / "out"), "tasks": 1}
    running = start(HEAT, spark, streams, **words)
    assert _refused(lock)
    running.stop()
    until = time.monotonic() + 60
    while _refused(lock):
        assert time.monotonic() < until
        time.sleep(0.1)
    _run(spark, tmp_path, streams)


def _refused(lock: Path) -> bool:
    """Whether another process cannot lock the file."""
    done = subprocess.run([sys.executable, "-c", TRY, str(lock)], capture_output=True, text=True)
    assert not done.returncode or "BlockingIOError" in done.stderr, done.stderr
    return bool(done.returncode)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_one_clear_error_and_loses_nothing(tmp_path: Path, small: Path, spark: Any) -> None:
    streams = {"S": str(tmp_path / "*.nq")}
    (tmp_path / "1.nq").write_text(_reading(0, 1, 10) + _reading(1, 3, 12))
    _run(spark, small, streams)
    (tmp_path / "2.nq").write_text("".join(_reading(n, n + 2, 14 + n) for n in range(2, 12)))
    with (small / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(4096))
    with pytest.raises(OptionError, match=r"cannot be written: .*No space left on device(.|\n)*make room"):
        _run(spark, small, streams)
    (small / "filler").unlink()
    _run(spark, small, streams, reading=Reading(bounded=True))
    query = spaseq.compile(HEAT)
    found = spark.read.parquet(str(small / "out")).select("start", "end").toArrow().to_pylist()
    expected = query.run(streams).to_arrow().select(["start", "end"]).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected)) != []
