"""Spark: triples and events a second on one and two cores, batch and streaming, and the parts of the time.

    python -m benchmarks.spark --triples 1000000 10000000 100000000 --cores 1 2

Claims: cost is linear in the size of the input. The engine's part, behind the parser, is at least 1.7 times as fast on
two cores as on one. A batch of a stream costs a fixed part and one linear in its events. Every run's number of matches
is compared with the local engine's; a difference ends the benchmark.

The streams are generated: `grid` has graph events of six triples from many houses, `stock` subject events of four
triples. Both queries are cut by PARTITION BY key and tumbling window. One size of one workload is on disk at a time, in
`--scratch`, and is deleted before the next. For each workload, size and number of cores there is a process, which warms
each mode up on a small stream first. So JVM, imports and kernels are not in the times. Rows go to
results/DATE-spark.csv as they are measured; at the end of each size come the rates on the most cores over those on the
fewest.

These modes are timed (`--modes`); `processor` is the processor time of all processes together:

* `batch`: `run` (read, evaluate GPMs, order) and counting its rows (recognise). Of it, by jobs of their own that keep
  no rows: `read` (files into columns) and `evaluate GPMs` (the same with them, less `read`); `order` is the rest.
* `slices`: `run` by the plan that has each task run the whole query on a slice of time (`batch` shuffles a table).
* `stream`: all of a bounded stream into Parquet, in batches of 50 MB (`--chunk`). Parts of it: `behind the first
  batch`, as the first also starts the workers; `in buckets`, the time of all tasks of the operator with state, waiting
  included; `planning and commits`, the time outside of tasks.
* `local`: the local engine over the same files, for the number of matches and for comparison.
* `rows` (if asked for: ten times as slow): the data source's triples and events, written nowhere.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import glob
import json
import os
import pickle
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

RESULTS = Path(__file__).parent / "results"
NS = "http://example.org/ns#"
WARM = 400_000
FILES = 4
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"

GRID = f"""PREFIX : <{NS}>
SELECT ?h ?x ?y WITHIN 10 MINUTES PARTITION BY (?h) FROM STREAM S <http://example.org/grid>
WHERE {{ SEQ (A; B)
  DEFINE GPM A ON S {{ ?h :load ?x ; :state ?s ; :at ?d . FILTER (?x > 95) }}
  DEFINE GPM B ON S {{ ?h :load ?y ; :state ?s ; :at ?d . FILTER (?y < 5) }} }}"""
STOCK = f"""PREFIX : <{NS}>
SELECT ?name ?p ?q WITHIN 1 MINUTES PARTITION BY (?name) FROM STREAM S <http://example.org/stock>
WHERE {{ SEQ (A; B)
  DEFINE GPM A ON S {{ ?a :name ?name ; :price ?p ; :volume ?v . FILTER (?v > 980) }}
  DEFINE GPM B ON S {{ ?b :name ?name ; :price ?q ; :volume ?w . FILTER (?w < 20 && ?q > ?p) }} }}"""


def in_files(folder: Path, name: str, events: int, lines: Callable[[int], str]) -> None:
    """The lines of events 0, 1, … in four files, one behind the other in time: a task of a batch reads a file."""
    for number in range(FILES):
        with (folder / name.replace("*", str(number))).open("w") as file:
            for event in range(number * events // FILES, (number + 1) * events // FILES):
                file.write(lines(event))


def write_grid(folder: Path, triples: int) -> None:
    """Events of six statements: the time, and five triples of a house."""
    rng = random.Random(1)

    def lines(event: int) -> str:
        g, h = f"<http://example.org/g/{event}>", f"<http://example.org/house/{rng.randint(0, 999)}>"
        return (
            f'{g} <http://www.w3.org/ns/prov#generatedAtTime> "{event // 50}" .\n'
            f'{h} <{NS}load> "{rng.randint(0, 100)}"^^{INTEGER} {g} .\n'
            f'{h} <{NS}state> "on" {g} .\n{h} <{NS}at> <http://example.org/d/{rng.randint(0, 20)}> {g} .\n'
            f'{h} <{NS}volt> "{rng.randint(220, 240)}"^^{INTEGER} {g} .\n'
            f"{h} <{NS}kind> <{NS}House> {g} .\n"
        )

    in_files(folder, "grid-*.nq", triples // 6, lines)


def write_stock(folder: Path, triples: int) -> None:
    """Events of four triples: name, price, volume, time."""
    rng = random.Random(2)

    def lines(event: int) -> str:
        s = f"<http://example.org/trade/{event}>"
        return (
            f'{s} <{NS}name> "{rng.randint(0, 999)}" .\n{s} <{NS}price> "{rng.randint(0, 500)}"^^{INTEGER} .\n'
            f'{s} <{NS}volume> "{rng.randint(0, 999)}"^^{INTEGER} .\n{s} <{NS}time> "{event // 200}" .\n'
        )

    in_files(folder, "stock-*.nt", triples // 4, lines)


WORKLOADS: dict[str, tuple[str, str, Callable[[Path, int], None], dict[str, str]]] = {
    "grid": (GRID, "grid-*.nq", write_grid, {}),
    "stock": (STOCK, "stock-*.nt", write_stock, {"time": f"{NS}time"}),
}


# -- one measurement, in a process of its own


def measure(name: str, folder: Path, options: argparse.Namespace, cores: int) -> dict[str, float]:
    """Seconds and counts, by the name of the measurement. `cores` 0: the local engine."""
    query, file, write, words = WORKLOADS[name]
    small = folder.parent / "warm"
    small.mkdir(exist_ok=True)
    write(small, WARM)
    if cores == 0:
        return _local(query, str(small / file), words) and _local(query, str(folder / file), words)
    import spaseq.spark

    spark = spaseq.spark.local_session(cores, memory=options.memory)
    # else only the last 100 batches are reported
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    found: dict[str, float] = {}
    for mode in options.modes:
        run = {"rows": _rows, "batch": _batch, "slices": _slices, "stream": _stream}[mode]
        run(spark, query, str(small / file), words, cores, options.chunk)
        found |= run(spark, query, str(folder / file), words, cores, options.chunk)
    return found


def _time(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    done = work()
    return time.perf_counter() - start, done


def _local(query: str, path: str, words: dict[str, Any]) -> dict[str, float]:
    import spaseq

    run = spaseq.compile(query).run({"S": path}, keep_events=False, **words)
    used = _processor()
    seconds, matches = _time(run.count)
    return {"local": seconds, "local: processor": _processor() - used, "local: matches": matches}


def _rows(spark: Any, query: str, path: str, words: dict[str, Any], cores: int, chunk: int) -> dict[str, float]:
    """The data source's rows, triple by triple; no rows kept."""
    import spaseq.spark

    spaseq.spark.register(spark)
    seconds = {}
    for rows in ("triples", "events"):
        reader = spark.read.format("spaseq").option("path", path).option("rows", rows)
        for key, value in (words | {"partitions": str(cores)}).items():
            reader = reader.option(key, value)
        seconds[f"rows: to {rows}"] = _noop(reader.load())
    return seconds


def _noop(frame: Any) -> float:
    return _time(lambda: frame.write.format("noop").mode("overwrite").save())[0]


def _batch(spark: Any, query: str, path: str, words: dict[str, Any], cores: int, chunk: int) -> dict[str, float]:
    import spaseq.spark

    reading, solving = (_noop(frame) for frame in _first_stages(spark, query, path, words))
    used = _processor()
    ready, frame = _time(lambda: spaseq.spark.run(query, spark, {"S": path}, partitions=cores, plan="table", **words))
    found, matches = _time(frame.count)
    return {
        "batch: read": reading,
        "batch: evaluate GPMs": solving - reading,
        "batch: order": ready - solving,
        "batch: read, evaluate GPMs, order": ready,
        "batch: recognise": found,
        "batch": ready + found,
        "batch: processor": _processor() - used,
        "batch: matches": matches,
    }


def _slices(spark: Any, query: str, path: str, words: dict[str, Any], cores: int, chunk: int) -> dict[str, float]:
    import spaseq.spark

    def count() -> int:
        return int(spaseq.spark.run(query, spark, {"S": path}, partitions=cores, plan="slices", **words).count())

    used = _processor()
    seconds, matches = _time(count)
    return {"slices": seconds, "slices: processor": _processor() - used, "slices: matches": matches}


def _processor() -> float:
    """Processor seconds so far of this process and all that it began: Spark's JVM and the workers (Linux)."""
    used: dict[int, tuple[int, int]] = {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):  # one that ended since
            fields = Path(stat).read_text().rpartition(")")[2].split()
            used[int(stat.split("/")[2])] = int(fields[1]), sum(map(int, fields[11:15]))
    mine, rest = {os.getpid()}, dict(used)
    while more := {pid for pid, (parent, _) in rest.items() if parent in mine} - mine:
        mine |= more
    return sum(used[pid][1] for pid in mine) / os.sysconf("SC_CLK_TCK")


def _first_stages(spark: Any, query: str, path: str, words: dict[str, Any]) -> Iterator[Any]:
    """The first stages of `run`, as jobs of their own: the files read into columns, and the GPMs evaluated on them."""
    import spaseq
    from spaseq.language.runtime.opened import stream_options, stream_sources
    from spaseq.rdf import settle
    from spaseq.spark.ingest.inputs import inputs_of
    from spaseq.spark.session.layout import lay_out
    from spaseq.spark.session.query_text import QueryText
    from spaseq.spark.solving.read_and_solve import solved_files
    from spaseq.spark.solving.solutions import solver_of

    compiled = spaseq.compile(query)
    (source,) = sources = stream_sources(compiled.checked, {"S": path})
    settled, text, layout = (
        settle(stream_options(None, words), sources),
        QueryText.of(compiled),
        lay_out(compiled.compiled),
    )
    files = [(i, replace(source, files=(each,))) for i, each in enumerate(sorted(glob.glob(path)))]
    wanted = solver_of(text, layout, {}).wanted
    given = spark.createDataFrame([(i, pickle.dumps(each)) for i, each in files], "number int, body binary")

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        from spaseq.rdf import Counters
        from spaseq.rdf.columns.reader import read_batches

        for batch in batches:
            for body in batch.column("body").to_pylist():
                events = sum(len(held) for held in read_batches(pickle.loads(body), settled, Counters(), wanted))
                yield pa.record_batch([pa.array([events])], names=["events"])

    yield given.repartitionById(len(files), "number").mapInArrow(read, "events long")
    inputs = inputs_of(sources, settled, len(files), whole=True)
    yield solved_files(spark, inputs, len(files), settled, text, layout, {})


def _stream(spark: Any, query: str, path: str, words: dict[str, Any], cores: int, chunk: int) -> dict[str, float]:
    import spaseq.spark

    reading = spaseq.spark.Reading(bounded=True, max_bytes=chunk)
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        running = spaseq.spark.start(query, spark, {"S": path}, checkpoint=f"{folder}/state", output=f"{folder}/out",
                                     available_now=True, reading=reading, tasks=cores, **words)  # fmt: skip
        seconds, _ = _time(lambda: spaseq.spark.wait(running))
        state = spaseq.spark.progress(running)["state_bytes"]
        told = running.recentProgress
        matches = spark.read.parquet(f"{folder}/out").count()
    durations = [record.batchDuration / 1000 for record in told]
    outside = [record.batchDuration - record.durationMs.get("addBatch", 0) for record in told]
    buckets = [operator.allUpdatesTimeMs for record in told for operator in record.stateOperators]
    return {
        "stream": seconds,
        "stream: behind the first batch": sum(durations[1:]),
        "stream: planning and commits": sum(outside) / 1000,
        "stream: in buckets": sum(buckets) / 1000,
        "stream: last batch, which only closes": durations[-1],
        "stream: batches": len(told),
        "stream: MB of state": state / 1e6,
        "stream: matches": matches,
    }


# -- all of them


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--modes", nargs="+", choices=(*_MODES, "rows"), default=list(_MODES))
    parser.add_argument("--workloads", nargs="+", choices=tuple(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--chunk", type=int, default=50_000_000, help="bytes of a stream for one batch")
    parser.add_argument("--memory", default="6g", help="heap of Spark's Java process")
    parser.add_argument("--scratch", help="folder for generated streams and Spark's own files (default: the system's)")
    parser.add_argument("--note", default="", help="kept with the rows: what else the machine was doing")
    parser.add_argument("--one", nargs=3, metavar=("WORKLOAD", "FOLDER", "CORES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, folder, cores = options.one
        print(json.dumps(measure(name, Path(folder), options, int(cores))))
        return 0
    path = RESULTS / f"{datetime.date.today().isoformat()}-spark.csv"
    fresh = not path.exists()
    with path.open("a", newline="", buffering=1) as file:
        out = csv.writer(file, lineterminator="\n")
        if fresh:
            out.writerow(["workload", "triples", "cores", "what", "value", "triples_per_s", "machine", "note"])
        for name in options.workloads:
            for triples in options.triples:
                with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:  # one size at a time is on disk
                    folder = Path(scratch, "streams")
                    folder.mkdir()
                    WORKLOADS[name][2](folder, triples)
                    _measure_all(options, name, triples, folder, out)
    return 0


def _measure_all(options: argparse.Namespace, name: str, triples: int, folder: Path, out: Any) -> None:
    """One workload of one size on each number of cores, and how much faster the most of them are than the fewest."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    by_cores: dict[int, dict[str, float]] = {}
    modes = [mode for mode in options.modes if mode != "local"]
    for cores in [*([0] if "local" in options.modes else []), *(options.cores if modes else [])]:
        words = ["--one", name, str(folder), str(cores), "--chunk", str(options.chunk), "--memory", options.memory]
        command = [sys.executable, "-m", "benchmarks.spark", *words, "--modes", *(modes or ["local"])]
        # otherwise the kernels of the small warm-up stream would be interpreted, and compiled within the timed part
        environment = os.environ | {"SPARK_LOCAL_DIRS": str(folder.parent), "SPASEQ_INTERPRET": "0"}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        by_cores[cores] = json.loads(done.stdout.splitlines()[-1])
        for what, value in by_cores[cores].items():
            rate = "" if what.endswith(_NO_TIME) or value <= 0 else f"{triples / value:.0f}"
            shown = f"{int(rate):12,} triples/s" if rate else ""
            print(f"{name:6} {triples:>11,} {cores or '-'} {what:38} {value:9.2f} {shown}", flush=True)
            out.writerow([name, triples, cores or "", what, f"{value:.3f}", rate, machine, options.note])
    _check_matches(name, triples, by_cores)
    few, most = min(options.cores), max(options.cores)
    for what, value in by_cores.get(most, {}).items():
        if few != most and value > 0 and not what.endswith(_NO_TIME):
            print(f"{name:6} {triples:>11,} {what:38} {by_cores[few][what] / value:5.2f} x from {few} to {most} cores")


def _check_matches(name: str, triples: int, by_cores: dict[int, dict[str, float]]) -> None:
    """All runs must have found as many matches."""
    counts = {
        f"{what} on {cores}" if cores else what: int(value)
        for cores, found in by_cores.items()
        for what, value in found.items()
        if what.endswith("matches")
    }
    if len(set(counts.values())) > 1:
        raise SystemExit(f"{name}, {triples:,} triples: the numbers of matches differ: {counts}")
    if counts:
        print(f"{name:6} {triples:>11,} every run found {next(iter(counts.values())):,} matches", flush=True)


_MODES = ("local", "batch", "slices", "stream")
_NO_TIME = ("batches", "MB of state", "closes", "matches")


if __name__ == "__main__":
    sys.exit(main())
