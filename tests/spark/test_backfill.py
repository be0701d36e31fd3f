"""Files that are there, then files that come, on one checkpoint: in every sink the rows of a batch over all of them."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from spaseq.core.errors import OptionError
from spaseq.spark import match, wait
from tests.spark.kill_streams import processes_under

pytestmark = pytest.mark.spark
SCHEMA = "type string, time long, id long, v long"
QUERY = """SELECT id, a.time AS at, b.time AS bt, a.v AS v WHERE A AS a ; B AS b ; NOT C FILTER b.v > a.v
PARTITION BY [id] WITHIN 20 SECONDS"""
LATENESS = 5


@pytest.fixture(autouse=True)
def few_tasks(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.unset("spark.sql.shuffle.partitions")


def _files(count: int, size: int) -> list[list[dict[str, Any]]]:
    """Files of events, whose times grow. Equal times are frequent, in two files too, but for events of several types,
    as Spark reads rows in any order. Some events stand in the file behind theirs, at most `LATENESS` s late."""
    rng, now, kind = random.Random(1), 0, "A"
    files: list[list[dict[str, Any]]] = [[] for _ in range(count + 1)]
    for number in range(count * size):
        step = rng.choice((0, 0, 1, 2))
        now, kind = now + step, rng.choice("AABBC") if step else kind
        files[number // size].append({"type": kind, "time": now, "id": rng.randint(0, 3), "v": rng.randint(0, 9)})
    for file, behind in pairwise(files[:-1]):
        for event in file[-4:]:
            if event["time"] >= file[-1]["time"] - 3 and rng.random() < 0.5:
                file.remove(event)
                behind.insert(rng.randint(0, 2), event)
    # The last two files only say that the time has passed.
    files[-1] = [{"type": "end", "time": now + 100, "id": 0, "v": 0}]
    return [*files, [{"type": "end", "time": now + 200, "id": 0, "v": 0}]]


def _put(folder: Path, number: int, events: list[dict[str, Any]]) -> None:
    """A file that is there as a whole, and later than those before: Spark reads files in order of that."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number:03}.json"
    hidden.write_text("".join(json.dumps(event) + "\n" for event in events))
    os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
    hidden.rename(folder / f"{number:03}.json")


def _stream(spark: Any, folder: Path) -> Any:
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    return frame.transform(match(QUERY, lateness=f"{LATENESS}s", partitions=3)).writeStream


def _sink(name: str, spark: Any, folder: Path) -> tuple[Callable[[Any], Any], Callable[[], list[Any]]]:
    """How a stream is started, and what it has written."""
    if name == "parquet":
        return (lambda w: w.format("parquet").option("path", str(folder / "out")).start(),
                lambda: spark.read.parquet(str(folder / "out")).collect())  # fmt: skip
    if name == "table":
        table = f"found_{os.getpid()}"
        return (lambda w: w.option("path", str(folder / "out")).toTable(table), lambda: spark.table(table).collect())
    batches: dict[int, list[Any]] = {}
    return (lambda w: w.foreachBatch(lambda frame, number: batches.update({number: frame.collect()})).start(),
            lambda: [row for rows in batches.values() for row in rows])  # fmt: skip


def _expected(spark: Any, folder: Path) -> list[str]:
    rows = spark.read.schema(SCHEMA).json(str(folder / "in")).transform(match(QUERY, partitions=2)).collect()
    return sorted(map(str, rows))


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["parquet", "table", "foreachBatch"])
def test_files_then_live_on_one_checkpoint(sink: str, spark: Any, tmp_path: Path) -> None:
    """With a stop, workers that are killed, and a session anew between."""
    files = _files(6, 60)
    start, found = _sink(sink, spark, tmp_path)
    try:
        for number in range(3):
            _put(tmp_path / "in", number, files[number])
        checkpoint = str(tmp_path / "state")
        old = start(_stream(spark, tmp_path).option("checkpointLocation", checkpoint).trigger(availableNow=True))
        assert old.awaitTermination(120) and len(old.recentProgress) >= 3
        live = start(_stream(spark, tmp_path).option("checkpointLocation", checkpoint))
        _put(tmp_path / "in", 3, files[3])
        live.processAllAvailable()
        workers = [pid for pid, command in processes_under(os.getpid()).items() if "pyspark.daemon" in command]
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        assert workers
        _put(tmp_path / "in", 4, files[4])
        for _ in range(8):  # a task of this session has one attempt, and Spark meets its dead workers one by one
            try:
                live.processAllAvailable()
                break
            except StreamingQueryException:
                live = start(_stream(spark, tmp_path).option("checkpointLocation", checkpoint))
        live.stop()
        fresh = spark.newSession()
        fresh.conf.set("spark.sql.shuffle.partitions", "7")  # Spark keeps to what the checkpoint has
        again = start(_stream(fresh, tmp_path).option("checkpointLocation", checkpoint))
        for number in range(5, len(files)):
            _put(tmp_path / "in", number, files[number])
        again.processAllAvailable()
        again.stop()
        assert sorted(map(str, found())) == _expected(spark, tmp_path) != []
    finally:
        spark.sql(f"DROP TABLE IF EXISTS found_{os.getpid()}")


@pytest.mark.slow
def test_a_memory_sink(spark: Any, tmp_path: Path) -> None:
    """It cannot go on from a checkpoint, so all files are read by one start."""
    for number, events in enumerate(_files(3, 60)):
        _put(tmp_path / "in", number, events)
    name = f"memory_{time.monotonic_ns()}"
    running = _stream(spark, tmp_path).format("memory").queryName(name).trigger(availableNow=True).start()
    assert running.awaitTermination(120)
    assert sorted(map(str, spark.table(name).collect())) == _expected(spark, tmp_path) != []


@pytest.mark.slow
def test_another_number_of_buckets_is_refused(spark: Any, tmp_path: Path) -> None:
    """It would look for the state of a key in another bucket."""
    _put(tmp_path / "in", 0, _files(1, 60)[0])
    frame = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    for partitions in (3, 4):
        if partitions == 4:
            _put(tmp_path / "in", 1, [{"type": "A", "time": 1000, "id": key, "v": 1} for key in range(4)])
        rows = frame.transform(match(QUERY, partitions=partitions))
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        running = writer.format("parquet").option("path", str(tmp_path / "out")).start()
        if partitions == 3:
            wait(running)
        else:
            with pytest.raises(OptionError, match="taken of '3', and this is '4'"):
                wait(running)
