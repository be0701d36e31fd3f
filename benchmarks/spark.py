"""Spark: triples and events a second on one and two cores, batch and streaming, and where the time goes.

    python -m benchmarks.spark --triples 1000000 10000000 --cores 1 2 --modes stages batch stream

Claims: each stage is linear in the size of the input; the engine's part, behind the parser, is at least 1.7 times as
fast on two cores as on one; a batch of a stream costs a fixed part and one linear in its events.

The streams are generated: `grid` has graph events of six triples from many houses, `stock` subject events of four
triples. Both queries are cut by PARTITION BY key and tumbling window. For each workload, size and number of cores there
is a process, which warms each mode up on a small stream first; so JVM, imports and kernels are not in the times. Rows
go to results/DATE-spark.csv; at the end come the rates on the most cores over those on the fewest. A million triples
take about five minutes on two quiet cores.

What is timed: `to triples`, `to events`: the data source's rows, written nowhere. `batch`: `run` (read, evaluate GPMs,
order), and counting its rows (recognise). `stream`: all of a bounded stream into Parquet, in batches of
50 MB; of it `behind the first batch`, as the first also starts the workers.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
NS = "http://example.org/ns#"
WARM = 20_000
FILES = 4
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
CHUNK = 50_000_000  # bytes of a stream for one batch

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


def measure(name: str, folder: Path, modes: list[str], cores: int) -> dict[str, float]:
    """Seconds (and for `events`, a number) by what was measured."""
    import spaseq.spark

    query, file, write, words = WORKLOADS[name]
    spark = spaseq.spark.local_session(cores, memory="4g")
    small = folder.parent / "warm"
    small.mkdir(exist_ok=True)
    write(small, WARM)
    found: dict[str, float] = {}
    for mode in modes:
        run = {"stages": _stages, "batch": _batch, "stream": _stream}[mode]
        run(spark, query, str(small / file), words, cores)
        found |= run(spark, query, str(folder / file), words, cores)
    return found


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _stages(spark: Any, query: str, path: str, words: dict[str, str], cores: int) -> dict[str, float]:
    """Each stage with those before it, no rows kept."""
    import spaseq.spark

    spaseq.spark.register(spark)
    seconds = {}
    for rows in ("triples", "events"):
        reader = spark.read.format("spaseq").option("path", path).option("rows", rows)
        for key, value in (words | {"partitions": str(cores)}).items():
            reader = reader.option(key, value)
        seconds[f"to {rows}"] = _timed(lambda r=reader: r.load().write.format("noop").mode("overwrite").save())
    return seconds


def _batch(spark: Any, query: str, path: str, words: dict[str, str], cores: int) -> dict[str, float]:
    import spaseq.spark

    frames: list[Any] = []
    read = _timed(lambda: frames.append(spaseq.spark.run(query, spark, {"S": path}, partitions=cores, **words)))
    found = _timed(lambda: frames[0].count())
    return {"batch: read, evaluate GPMs, order": read, "batch: recognise": found, "batch": read + found}


def _stream(spark: Any, query: str, path: str, words: dict[str, str], cores: int) -> dict[str, float]:
    import spaseq.spark

    reading = spaseq.spark.Reading(bounded=True, max_bytes=CHUNK)
    with tempfile.TemporaryDirectory() as folder:
        running = spaseq.spark.start(query, spark, {"S": path}, checkpoint=f"{folder}/state", output=f"{folder}/out",
                                     available_now=True, reading=reading, tasks=cores, **words)  # fmt: skip
        seconds = _timed(lambda: spaseq.spark.wait(running))
        state = spaseq.spark.progress(running)["state_bytes"]
        batches = [record.batchDuration / 1000 for record in running.recentProgress]
    return {"stream": seconds, "stream: batches": len(batches), "stream: behind the first batch": sum(batches[1:]),
            "stream: last batch, which only closes": batches[-1], "stream: MB of state": state / 1e6}  # fmt: skip


# -- all of them


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--modes", nargs="+", choices=("stages", "batch", "stream"), default=["stages", "batch", "stream"]
    )
    parser.add_argument("--workloads", nargs="+", choices=tuple(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--note", default="", help="kept with the rows: what else the machine was doing")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, folder, modes, cores = options.one
        print(json.dumps(measure(name, Path(folder), modes.split(","), int(cores))))
        return 0
    path = RESULTS / f"{datetime.date.today().isoformat()}-spark.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as file, tempfile.TemporaryDirectory() as scratch:
        out = csv.writer(file, lineterminator="\n")
        if fresh:
            out.writerow(["workload", "triples", "cores", "what", "value", "triples_per_s", "machine", "note"])
        for name in options.workloads:
            for triples in options.triples:
                folder = Path(scratch, f"{name}{triples}")
                folder.mkdir()
                WORKLOADS[name][2](folder, triples)
                _measure_all(options, name, triples, folder, out)
                file.flush()
    return 0


def _measure_all(options: argparse.Namespace, name: str, triples: int, folder: Path, out: Any) -> None:
    """One workload of one size on each number of cores, and how much faster the most of them are than the fewest."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    by_cores: dict[int, dict[str, float]] = {}
    for cores in options.cores:
        words = ["--one", name, str(folder), ",".join(options.modes), str(cores)]
        command = [sys.executable, "-m", "benchmarks.spark", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        by_cores[cores] = json.loads(done.stdout.splitlines()[-1])
        for what, value in by_cores[cores].items():
            rate = "" if what.endswith(_NO_TIME) or not value else f"{triples / value:.0f}"
            shown = f"{int(rate):12,} triples/s" if rate else ""
            print(f"{name:6} {triples:>11,} {cores} {what:38} {value:9.2f} {shown}", flush=True)
            out.writerow([name, triples, cores, what, f"{value:.3f}", rate, machine, options.note])
    few, most = min(by_cores), max(by_cores)
    for what, value in by_cores[most].items():
        if few != most and value and not what.endswith(_NO_TIME):
            print(f"{name:6} {triples:>11,} {what:38} {by_cores[few][what] / value:5.2f} x from {few} to {most} cores")


_NO_TIME = ("batches", "MB of state", "closes")


if __name__ == "__main__":
    sys.exit(main())
