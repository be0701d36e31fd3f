"""The ways in: single pushes, a CSV file through the whole command, the first match of a fresh process, memory.

* `push`: the stock trace, one dict at a time, into S3' and S3 and a partitioned query. Goal: 300,000 a second.
* `csv`: `ceql run --format count` over a file of 10 million events, from the shell's point of view: interpreter,
  imports and all. Goal: 3 million a second. The file is made once (seed 42, 370 MB) in the system's temporary folder.
* `start`: import and first match in a process of its own, with the kernels cached (goal 3 s) and with an empty
  cache (goal 15 s).
* `memory`: 100 million synthetic events through a window, 1 million at a time. The number of matches it reports is
  the growth of the structure after the first tenth, in bytes: 0. SPASEQ_BENCH_EVENTS makes it smaller.
"""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

import ceql
from benchmarks.harness import Workload
from benchmarks.stock import TRACE, sequence
from ceql.runtime.run import Run
from spaseq.core.events import EventOptions, EventStream

ROWS = 10_000_000
NAMES = ("INTC", "RIMM", "QQQ", "IPIX", "AMAT", "CSCO", "YHOO", "DELL", "ORCL", "MSFT")
CSV_QUERY = (
    "SELECT * FROM S WHERE (SELL AS a; BUY AS b; SELL AS c) FILTER a[name = 'MSFT'] AND b[name = 'ORCL'] AND "
    "c[name = 'AMAT'] AND a[price > 119] WITHIN 100 [stock_time]"
)
PARTITIONED = (
    "SELECT * FROM S WHERE BUY AS b; SELL AS s FILTER b[volume > 3000] AND s[price > 30.5] PARTITION BY [name] "
    "WITHIN 20 EVENTS"
)


def trace_events() -> list[dict[str, Any]]:
    """The stock trace as dicts."""
    kinds = {"id": int, "volume": int, "price": float, "stock_time": int}
    with gzip.open(TRACE, "rt") as file:
        return [{k: kinds.get(k, str)(v) for k, v in row.items()} for row in csv.DictReader(file)]


def pushing(text: str, events: list[dict[str, Any]]) -> Callable[[], int]:
    """Each event by itself."""
    query = ceql.compile(text)

    def run() -> int:
        with query.open(type_column="event_type", time_from="arrival") as stream:
            push = stream.push
            return sum([len(push(event)) for event in events])

    return run


def big_file() -> Path:
    """The CSV file, made if it is not there."""
    path = Path(tempfile.gettempdir()) / f"spaseq-bench-{ROWS}.csv"
    if not path.exists():
        rng = np.random.default_rng(42)
        sides = pa.array(["BUY", "SELL"]).take(pa.array(rng.integers(0, 2, ROWS)))
        names = pa.array(NAMES).take(pa.array(rng.integers(0, len(NAMES), ROWS)))
        table = pa.table({
            "type": sides, "id": np.arange(ROWS), "name": names, "volume": rng.integers(1, 50, ROWS) * 100,
            "price": np.round(rng.uniform(10, 120, ROWS), 2), "stock_time": np.cumsum(rng.integers(0, 20, ROWS)),
        })  # fmt: skip
        partial = path.with_suffix(".part")
        pa.csv.write_csv(table, partial, pa.csv.WriteOptions(quoting_style="none"))
        partial.rename(path)
    return path


def counting_csv() -> int:
    """The command; the matches it counted."""
    path = big_file()
    arguments = ["run", "-", "--events", str(path), "--format", "count", "--time-from", "arrival"]
    return int(_python("-m", "ceql", *arguments, stdin=CSV_QUERY))


def first_match(cache: str | None) -> Callable[[], int]:
    """A process that imports the library and finds one match; with `cache` empty, its kernels are compiled first."""
    code = "import ceql; print(len(list(ceql.compile('SELECT * WHERE A ; B').run([{'type': 'A'}, {'type': 'B'}]))))"

    def run() -> int:
        if cache is None:
            return int(_python("-c", code))
        with tempfile.TemporaryDirectory() as folder:
            return int(_python("-c", code, env={"NUMBA_CACHE_DIR": folder, "SPASEQ_INTERPRET": "0"}))

    return run


def _python(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
    done = subprocess.run([sys.executable, *arguments], input=stdin, env={**os.environ, **(env or {})}, text=True,
                          capture_output=True, check=True)  # fmt: skip
    return done.stdout


def growth(events: int) -> int:
    """Bytes that the structure grew by after the first tenth of the stream."""
    query = ceql.compile("SELECT * WHERE A AS a ; B+ AS b ; C AS c WITHIN 1000 EVENTS LIMIT 1")
    run, rng, settled, at = Run(query.compiled.lowered, query.program()), np.random.default_rng(7), 0, 0

    def million() -> pa.Table:
        codes = pa.array(rng.choice(4, 1_000_000, p=[0.3, 0.3, 0.001, 0.399]).astype(np.int32))
        return pa.table({"type": pa.DictionaryArray.from_arrays(codes, pa.array(list("ABCD")))})

    parts = (million() for _ in range(max(1, events // 1_000_000)))
    for batch in EventStream({"": parts}, EventOptions(from_arrival=True)):
        run.count(batch)
        at += len(batch)
        if at <= max(events // 10, 1_000_000):
            settled = run.statistics["arena_bytes"]
    return run.statistics["arena_bytes"] - settled


def workloads() -> list[Workload]:
    """Pushes (if the trace is there), the CSV file, the start, memory."""
    found = []
    if TRACE.exists():
        events = trace_events()
        for name, text in (("S3'", sequence(3, impossible=True)), ("S24'", sequence(24, impossible=True)),
                           ("S3", sequence(3)), ("partitioned", PARTITIONED)):  # fmt: skip
            found.append(Workload(f"push {name}", "300 k/s or more", len(events), pushing(text, events)))
    else:
        print(f"edges: pushes are skipped, {TRACE} is not there (set SPASEQ_DATA)")
    many = int(os.environ.get("SPASEQ_BENCH_EVENTS", "100000000"))
    return [
        *found,
        Workload("csv 10 M", "3 M events/s or more", ROWS, counting_csv, repeats=5),
        Workload("start warm", "3 s or less", 2, first_match(None), repeats=5),
        Workload("start cold", "15 s or less", 2, first_match(""), repeats=1),
        Workload(f"memory {many // 1_000_000} M", "flat: 0 bytes more", many, lambda: growth(many), repeats=1),
    ]
