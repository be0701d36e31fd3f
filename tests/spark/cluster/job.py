"""A driver of the cluster tests, in a process of its own: it prints what it found as JSON, a line for each thing done.

job.py MASTER WAY,… FOLDER [SETTING=VALUE …]
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import ceql
import spaseq
import spaseq.spark

HEAT = """PREFIX : <http://example.org/>
SELECT ?x ?y WITHIN 20 SECONDS SLIDING FROM STREAM S <http://example.org/one>
WHERE { SEQ (A; B) DEFINE GPM A ON S { ?a :heat ?x GRAPH :kb { ?a :floor ?f } }
DEFINE GPM B ON S { ?a :heat ?y FILTER (?y > ?x) } }"""
RISING = "SELECT * FROM S WHERE (A; B) FILTER A[price > 3] WITHIN 9 EVENTS PARTITION BY [k]"


def session(master: str, settings: dict[str, str]) -> Any:
    if master.startswith("sc://"):
        return SparkSession.builder.remote(master).getOrCreate()
    builder = SparkSession.builder.master(master).appName("cluster test")
    ours = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "4",
        "spark.executorEnv.NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"],
    }
    for name, value in (ours | settings).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import sys

    import spaseq

    for _ in batches:
        pass
    time.sleep(0.3)  # so that both workers have a task
    yield pa.record_batch([pa.array([sys.executable]), pa.array([spaseq.__file__])], names=["python", "package"])


def places(spark: Any, folder: Path) -> Any:
    """Interpreters, and where each has the package from."""
    with spaseq.spark.clear_errors():
        rows = spark.range(0, 8, 1, 8).mapInArrow(where, "python string, package string").distinct().collect()
    return sorted(map(list, rows))


def _given(folder: Path) -> tuple[Any, dict[str, str], dict[str, str]]:
    streams = {"S": str(folder / "one*.nq")}
    return spaseq.compile(HEAT), streams, {"http://example.org/kb": str(folder / "kb.nt")}


def batch(spark: Any, folder: Path) -> Any:
    """The matches of the cluster, and those of the local engine."""
    query, streams, kb = _given(folder)
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, streams, kb, partitions=3))
    return _texts(found), _texts(query.run(streams, kb).to_arrow().select(found.column_names))


def paths(spark: Any, folder: Path) -> Any:
    """The same for a path that repeats, over knowledge that stays on Spark: by tasks, and by rounds of joins."""
    from spaseq.spark.solving import join_side

    _, streams, kb = _given(folder)
    query, found = spaseq.compile(HEAT.replace("?a :floor ?f", "?a (:floor/^:floor)+ :sensor0")), []
    for few in (join_side.few_edges, lambda rows: 0):
        join_side.few_edges = few
        frame = spaseq.spark.run(query, spark, streams, kb, partitions=3, knowledge_rows=1)
        found.append(_texts(spaseq.spark.collect(frame)))
    return found, _texts(query.run(streams, kb).to_arrow().select(frame.columns))


def lost(spark: Any, folder: Path) -> Any:
    """The same, where an executor is killed when the events were read, and another while the matches are found."""
    query, streams, kb = _given(folder)
    frame = spaseq.spark.run(query, spark, streams, kb, partitions=6)
    first = _kill(0)
    killer = Timer(1, _kill, (1,))
    killer.start()
    found = spaseq.spark.collect(frame)
    killer.join()
    assert first
    return _texts(found), _texts(query.run(streams, kb).to_arrow().select(found.column_names))


def lost_tuples(spark: Any, folder: Path) -> Any:
    """The same for tuples."""
    query = ceql.compile(RISING)
    frame = spaseq.spark.match(query, positions=True, partitions=6, type_column="type", time="at")(_tuples(spark, 4000))
    _kill(1)
    found = spaseq.spark.collect(frame)
    return found.num_rows, _local_tuples(4000).num_rows


def tuples(spark: Any, folder: Path) -> Any:
    query = ceql.compile(RISING)
    frame = spaseq.spark.match(query, positions=True, type_column="type", time="at")(_tuples(spark, 60))
    found = spaseq.spark.collect(frame).select(["start", "end", "positions"])
    return _texts(found), _texts(_local_tuples(60).select(found.column_names))


def sql(spark: Any, folder: Path) -> Any:
    """The table function `ceql` beside `match`."""
    spaseq.spark.register(spark)
    frame = _tuples(spark, 60)
    frame.createOrReplaceTempView("events")
    text = "SELECT COUNT(a) AS n, b.price WHERE A AS a+ ; B AS b WITHIN 9 EVENTS PARTITION BY [k]"
    with spaseq.spark.clear_errors():
        found = spark.sql(f"SELECT * FROM ceql(TABLE(events), '{text}', time => 'at')")
        return _texts(spaseq.spark.collect(found)), _texts(
            spaseq.spark.collect(spaseq.spark.match(text, time="at")(frame))
        )


def guide(spark: Any, folder: Path) -> Any:
    """The block of docs/spark.md that needs a Spark Connect server, as it stands."""
    from tests.support.fences import ROOT, fences

    query, streams, kb = _given(folder)
    blocks = [f for f in fences(ROOT / "docs" / "spark.md") if "Spark Connect server" in f.options.get("norun", "")]
    names: dict[str, Any] = {"query": query, "streams": streams, "kb": kb}
    exec(blocks[0].text.replace("sc://localhost", sys.argv[1]), names)
    found = names["table"]
    return _texts(found), _texts(query.run(streams, kb).to_arrow().select(found.column_names))


def stream(spark: Any, folder: Path) -> Any:
    query, streams, kb = _given(folder)
    place = folder / f"state-{time.time_ns()}"
    running = spaseq.spark.start(
        query, spark, streams, kb, checkpoint=f"{place}/checkpoint", output=f"{place}/output", tasks=2,
        available_now=True, reading=spaseq.spark.Reading(bounded=True),
    )  # fmt: skip
    assert spaseq.spark.wait(running)
    found = spark.read.parquet(f"{place}/output").select("start", "end", "positions", *query.variables).toArrow()
    try:
        assert spaseq.spark.progress(running)["matches"] == found.num_rows
    except spaseq.core.errors.OptionError as error:
        assert "Spark Connect" in str(error) and "connect" in type(spark).__module__
    return _texts(found), _texts(query.run(streams, kb).to_arrow().select(found.column_names))


def tuple_stream(spark: Any, folder: Path) -> Any:
    """Matches over a stream of tuples, given to a function."""
    query, place = ceql.compile(RISING), folder / f"state-{time.time_ns()}"
    rows = spark.createDataFrame([*_rows(60), (1000, "A", 0.0, 9)], "at long, type string, price double, k int")
    rows.write.parquet(f"{place}/in")
    running = spaseq.spark.start_tuples(
        query, spark.readStream.schema(rows.schema).parquet(f"{place}/in"), type_column="type", time="at",
        tasks=2, checkpoint=f"{place}/checkpoint", available_now=True, events=True,
        foreach_batch=lambda frame, number: frame.write.parquet(f"{place}/out/{number}"),
    )  # fmt: skip
    assert spaseq.spark.wait(running)
    found = spark.read.parquet(f"{place}/out/*").selectExpr("transform(events, e -> e.at) AS positions").toArrow()
    return _texts(found), _texts(_local_tuples(60).select(["positions"]))


def wrong(spark: Any, folder: Path) -> Any:
    """What is said of a line that cannot be read, in a batch and in a stream, and of a user's function that fails."""
    query, _, kb = _given(folder)
    place = folder / f"state-{time.time_ns()}"
    place.mkdir()
    (place / "bad.nq").write_text((folder / "one0.nq").read_text() + "nonsense\n")

    def fail(frame: Any, number: int) -> None:
        raise ValueError("of the user")

    said = []
    for way in (
        lambda: spaseq.spark.run(query, spark, {"S": str(place / "bad.nq")}, kb),
        lambda: _streamed(query, spark, str(place / "bad.nq"), kb, place, lambda frame, number: frame.count()),
        lambda: _streamed(query, spark, str(folder / "one0.nq"), kb, place / "user", fail),
    ):
        try:
            way()
        except spaseq.SpaseqError as error:
            said.append(f"{type(error).__name__}: {error}")
    return said, 3


def _streamed(query: Any, spark: Any, path: str, kb: Any, place: Path, function: Any) -> None:
    running = spaseq.spark.start(
        query, spark, {"S": path}, kb, checkpoint=f"{place}/checkpoint", foreach_batch=function, tasks=2,
        available_now=True,
    )  # fmt: skip
    spaseq.spark.wait(running)


def ship(spark: Any, folder: Path) -> Any:
    return Path(spaseq.spark.ship(spark)).name == Path(spaseq.spark.ship(spark)).name


# -- its pieces


def _rows(count: int) -> list[tuple[Any, ...]]:
    return [(number, "AB"[number % 2], float(number * 7 % 5), number % 3) for number in range(count)]


def _tuples(spark: Any, count: int) -> Any:
    return spark.createDataFrame(_rows(count), "at long, type string, price double, k int")


def _local_tuples(count: int) -> pa.Table:
    columns = zip(*_rows(count), strict=True)
    table = pa.table(dict(zip(("at", "type", "price", "k"), map(list, columns), strict=True)))
    return ceql.compile(RISING).run(table, type_column="type", time="at").to_arrow()


def _texts(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def _kill(worker: int) -> int:
    """The executor of a worker is killed; its process number, 0 if it has none."""
    parent = os.environ["CLUSTER_WORKERS"].split(",")[worker]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if words[1] == parent:
            os.kill(int(path.parent.name), signal.SIGKILL)
            return int(path.parent.name)
    return 0


if __name__ == "__main__":
    master, ways, place, *given = sys.argv[1:]
    spark = session(master, dict(text.split("=", 1) for text in given))
    for way in ways.split(","):
        print(json.dumps(globals()[way](spark, Path(place))), flush=True)
    spark.stop()
