"""Resident memory over millions of events: flat behind the first window, for any window.

Claim: a session, or `spaseq run --follow` on a pipe, holds as much memory at the end of a stream as at its half, within
5%. This is measured for each kind of window, in partitions, with absence, and with conditions over several events. It
is also measured with keys that are forgotten after a pause, with alerts, and for graphs whose IRIs are ever new.

Tuples come a millisecond apart, as tables of 50,000. Keys are ever new (10,000 at a time). The exception is windows of
events, which keep the last events of each key: for these 1,000 keys recur. Graphs come one by one, a twentieth as many,
or as columns, which are read from a file of 50,000. The pipe has 50,000 lines at a time, each a graph, as fast as they
are read.

`python -m benchmarks.memory [MILLIONS] [NAME …]` (4 by default) runs each in a process of its own, prints a table and
appends to two files:

* results/DATE-memory.csv: megabytes at an eighth, at the half and at the end, the most in the sixteenth before each,
  and the share that was added in the second half;
* results/DATE-memory-rates.csv: thousands of events a second of processor time, in each quarter, with the making of the
  tables or graphs.

The first half includes the first sizes of buffers, the compiling of kernels, and the memory that the allocator keeps
for itself.
"""

from __future__ import annotations

import csv
import datetime
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from rdflib import URIRef as IRI

import ceql
import spaseq
from spaseq.rdf import GraphEvent, StreamOptions, StreamSource
from spaseq.rdf.columns.reader import open_batches

BATCH, SEED, SPAN = 50_000, 7, 10_000
QUERIES: Final = {
    "window of time": "SELECT * WHERE A AS a ; B AS b ; D AS d FILTER b[v > 990] WITHIN 50 MILLISECONDS",
    "window of events": "SELECT * WHERE A AS a ; B AS b ; D AS d FILTER b[v > 990] WITHIN 50 EVENTS",
    "window over an attribute": "SELECT * WHERE A AS a ; B AS b ; D AS d FILTER b[v > 990] WITHIN 50 [n]",
    "keys, window of time": "SELECT * WHERE A ; B ; D PARTITION BY [k] WITHIN 1 SECOND",
    "keys, window of events": "SELECT * WHERE A ; B ; D PARTITION BY [again] WITHIN 5 EVENTS",
    "keys by conditions": "SELECT * WHERE A AS a ; B AS b ; D AS d FILTER a.k = b.k AND b.k = d.k WITHIN 1 SECOND",
    "keys forgotten after 20 s": "SELECT * WHERE A ; B ; D PARTITION BY [k]",
    "keys forgotten after 20 s, an order": "SELECT * WHERE A AS a ; B AS b ; D AS d FILTER b.v > a.v PARTITION BY [k]",
    "absence between": "SELECT * WHERE A AS a ; NOT B ; C AS c PARTITION BY [k] WITHIN 100 MILLISECONDS",
    "absence at the end": "SELECT * WHERE A AS a ; NOT B PARTITION BY [k] WITHIN 100 MILLISECONDS",
    "an order of values": (
        "SELECT * WHERE A AS a ; B AS b ; D AS d FILTER b.v > a.v AND b[v > 990] WITHIN 100 MILLISECONDS"
    ),
    "a join of texts": "SELECT * WHERE A AS a ; B AS b FILTER a.s = b.s WITHIN 20 MILLISECONDS",
    "alerts": "SELECT * WHERE A AS a ; B AS b ; D AS d FILTER b[v > 990] WITHIN 50 MILLISECONDS",
}
GRAPHS: Final = {
    "graphs, new IRIs": "SELECT ?x ?y WITHIN 1 SECONDS",
    "graphs, new IRIs, several mappings": "SELECT ?x ?y WITHIN 1 SECONDS",
    "graphs, new IRIs, keys": "SELECT ?k ?x WITHIN 1 SECONDS PARTITION BY (?k)",
    "graphs, new IRIs, keys forgotten after 20 s": "SELECT ?k ?x PARTITION BY (?k)",
}
COLUMNS: Final = {name.replace("graphs", "graphs as columns"): query for name, query in GRAPHS.items()}
FOLLOWED: Final = {
    "--follow, new IRIs": "SELECT ?k ?x ?y WITHIN 1 SECONDS",
    "--follow, new IRIs, keys": "SELECT ?k ?x ?y WITHIN 1 SECONDS PARTITION BY (?k)",
}
"""By `spaseq run --follow` on a pipe."""
_BODY: Final = """ FROM STREAM S <http://example.org/S>
WHERE { SEQ (A ; B)
  DEFINE GPM A ON S { ?k <http://example.org/a> ?x }
  DEFINE GPM B ON S { ?k <http://example.org/b> ?y } }"""
_WORTH: Final = 16


def _settings(name: str) -> spaseq.Settings:
    return spaseq.Settings(forget_keys_after=20.0 if "forgotten" in name else None)


def _table(rng: np.random.Generator, first: int) -> pa.Table:
    number = np.arange(first, first + BATCH)
    key = number // SPAN * SPAN + rng.integers(0, SPAN, BATCH)
    kinds = pa.DictionaryArray.from_arrays(
        rng.choice(4, BATCH, p=(0.4, 0.3, 0.2999, 0.0001)).astype(np.int32), list("ABCD")
    )
    columns = {"type": kinds, "n": number, "k": key, "again": key % 1_000, "v": rng.integers(0, 1_000, BATCH)}
    return pa.table(
        {**columns, "s": pa.array(key.astype(str)), "time": pa.array(number * 1_000_000).cast(pa.timestamp("ns"))}
    )


def _resident(process: int | str = "self") -> float:
    """Megabytes that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def _tuples(name: str) -> Callable[[int], int]:
    """A function that pushes the next of so many batches, and returns the number of matches."""
    query = ceql.compile(QUERIES[name], settings=_settings(name))
    rng = np.random.default_rng(SEED)
    session = query.alerts().open(time="time") if name == "alerts" else query.open(time="time")
    return lambda batch: len(session.push(_table(rng, batch * BATCH)))


def _graphs(name: str) -> Callable[[int], int]:
    rng, several = np.random.default_rng(SEED), 3 if "several" in name else 1
    session = spaseq.compile(GRAPHS[name] + _BODY, settings=_settings(name)).open()

    def push(batch: int) -> int:
        found = 0
        for number in range(batch * BATCH // 20, (batch + 1) * BATCH // 20):
            key = number // 20 * 20 + int(rng.integers(0, 20))
            about = IRI(f"http://example.org/k{key}"), IRI(f"http://example.org/{'ab'[number % 2]}")
            graph = tuple((*about, IRI(f"http://example.org/x{number}/{n}")) for n in range(several))
            found += len(session.push(GraphEvent("http://example.org/S", number * 1_000_000, graph)))
        return found

    return push


def _text(*parts: bytes | np.ndarray) -> np.ndarray:
    """Texts of one length each, uint8 (n, length): of constant bytes, of bytes (n, k), and of numbers, int64 (n,), in
    ten digits."""
    count = next(len(part) for part in parts if isinstance(part, np.ndarray))
    found = []
    for part in parts:
        if isinstance(part, bytes):
            part = np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part)))
        elif part.ndim == 1:
            part = (part[:, None] // 10 ** np.arange(9, -1, -1) % 10 + ord("0")).astype(np.uint8)
        found.append(part)
    return np.concatenate(found, axis=1)


def _lines(rng: np.random.Generator, first: int, several: int = 1) -> bytes:
    """N-Triples of `BATCH` graphs, `several` lines each, as `_graphs` pushes them, but of ten times as many keys.

    So a graph in 75 completes a match, not one in eight; otherwise the matches' objects would take most of the time.
    """
    number = np.arange(first, first + BATCH)
    key, which = number // 20 * 200 + rng.integers(0, 200, BATCH), (ord("a") + number % 2).astype(np.uint8)[:, None]
    names = b"<http://example.org/k", b"> <http://example.org/", b"> <http://example.org/x"
    about = _text(names[0], key, names[1], which, names[2], number)
    each = [_text(about, f"/{n}> .\n".encode()) for n in range(several)]
    return np.concatenate(each, axis=1).tobytes()


def _columns(name: str) -> Callable[[int], int]:
    rng, several = np.random.default_rng(SEED), 3 if "several" in name else 1
    session = spaseq.compile(COLUMNS[name] + _BODY, settings=_settings(name)).open()
    options = StreamOptions.parse(event_by=f"size:{several}", time_from="arrival")
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "graphs.nt"

    def push(batch: int) -> int:
        assert folder  # it goes with this function
        path.write_bytes(_lines(rng, batch * BATCH, several))
        ((_, batches),), _ = open_batches([StreamSource("http://example.org/S", (str(path),))], options)
        found, at = 0, batch * BATCH
        for read in batches:
            found += len(session.push(replace(read, times=np.arange(at, at + len(read)) * 1_000_000)))
            at += len(read)
        assert at == (batch + 1) * BATCH
        return found

    return push


def measure(name: str, millions: float) -> tuple[int, list[float], list[float]]:
    """The matches of a query over so many million events, and measurements after each sixteenth of them.

    These are megabytes (the most in that sixteenth, as memory goes up and down with each batch), and the processor time
    so far.
    """
    if name in FOLLOWED:
        return _measure_command(name, millions)
    push = (_tuples if name in QUERIES else _columns if name in COLUMNS else _graphs)(name)
    found, most, steps, times = 0, 0.0, [], []
    batches = int(millions * 1e6) // BATCH
    for batch in range(batches):
        found += push(batch)
        most = max(most, _resident())
        if (batch + 1) * _WORTH // batches > batch * _WORTH // batches:
            steps.append(most)
            times.append(time.process_time())
            most = 0.0
    return found, steps, times


def _processor_time(process: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measure_command(name: str, millions: float) -> tuple[int, list[float], list[float]]:
    """`measure` of the command, which is fed by a pipe: it holds that much while the next lines wait."""
    command = [sys.executable, "-m", "spaseq", "run", FOLLOWED[name] + _BODY, "--stream", "S=-", "--format", "jsonl"]
    more = ["--follow", "--event-by", "size:1", "--time-from", "arrival"]
    rng, batches, most = np.random.default_rng(SEED), int(millions * 1e6) // BATCH, 0.0
    steps, times = [], []
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([*command, *more], stdin=subprocess.PIPE, stdout=out)
        assert process.stdin is not None
        for batch in range(batches):
            process.stdin.write(_lines(rng, batch * BATCH))
            process.stdin.flush()
            most = max(most, _resident(process.pid))
            if (batch + 1) * _WORTH // batches > batch * _WORTH // batches:
                steps.append(most)
                times.append(_processor_time(process.pid))
                most = 0.0
        process.stdin.close()
        if process.wait():
            raise RuntimeError(f"{name}: exit {process.returncode}")
        out.seek(0)
        return sum(1 for _ in out), steps, times


def main() -> None:
    """Measures each query in a process of its own."""
    if "--one" in sys.argv:
        found, steps, times = measure(sys.argv[3], float(sys.argv[1]))
        print(found, *(f"{figure:.2f}" for figure in (*steps, *times)))
        return
    millions = sys.argv[1] if len(sys.argv) > 1 else "4"
    path = Path(__file__).parent / "results" / f"{datetime.datetime.now(datetime.UTC).date()}-memory.csv"
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(("query", "million events", "matches", "MB at 1/8", "MB at 1/2", "MB at the end", "added"))
        for name in sys.argv[2:] or (*QUERIES, *GRAPHS, *COLUMNS, *FOLLOWED):
            command = [sys.executable, "-m", "benchmarks.memory", millions, "--one", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            told, *figures = done.stdout.split()
            early, half, end = (round(float(figures[i]), 1) for i in (1, 7, _WORTH - 1))
            events = float(millions) / (20 if name in GRAPHS else 1)
            row = (name, events, told, early, half, end, f"{end / half - 1:+.1%}")
            writer.writerow(row)
            file.flush()
            spent = np.diff([float(figures[_WORTH + i]) for i in (0, 3, 7, 11, 15)])
            shares = np.array((3, 4, 4, 4)) / _WORTH
            rates = [f"{rate:.0f}" for rate in events * 1e3 * shares / spent]  # the first sixteenth starts everything
            print(*row, *rates, sep="\t", flush=True)
            _add_rates(path.with_name(path.name.replace("memory", "memory-rates")), (name, events, *rates))


def _add_rates(path: Path, row: tuple[object, ...]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(("query", "million events", *(f"thousand a second, quarter {n}" for n in (1, 2, 3, 4))))
        writer.writerow(row)


if __name__ == "__main__":
    main()
