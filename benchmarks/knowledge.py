"""Built knowledge beside its source: the cost for a process before its first match, in processor time and memory.

    python -m benchmarks.knowledge --triples 100000,1000000

Claim: opening a built file takes the same for any number of triples, and the cost of the first use depends on the
query. Without it the source is read anew. The knowledge is made up: rooms, each with a floor, a name, an area, a
neighbour and a class. A query joins 100 events with the floors, a fifth of the triples. Each row is a process of its
own, whose kernels are compiled and warm; the least of `--runs`. Rows go to results/DATE-knowledge.csv. They have
milliseconds of processor time to open or read, for the first run and for one more. They also have the memory that both
took: MB that are its own, and MB of the mapped file, which processes share.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import spaseq
from spaseq.language.runtime.knowledge import knowledge_of
from spaseq.rdf import build_knowledge

V: Final = "http://example.org/v/"
KB: Final = "http://example.org/rooms"
EVENTS: Final = 100
QUERY: Final = f"""PREFIX : <{V}> SELECT * FROM STREAM S <http://example.org/S>
WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?sensor :at ?room . GRAPH <{KB}> {{ ?room :floor ?floor }} }} }}"""
COLUMNS: Final = ("open_ms", "first_ms", "again_ms", "own_mb", "mapped_mb", "matches")


def write_knowledge(path: Path, triples: int) -> None:
    """Five triples for each room, as N-Triples."""
    with path.open("w", encoding="ascii") as file:
        for number in range(triples // 5):
            room = f"<http://example.org/room/{number}>"
            file.write(f"{room} <{V}floor> <http://example.org/floor/{number % 1000}> .\n")
            file.write(f'{room} <{V}name> "room number {number}" .\n')
            file.write(f'{room} <{V}area> "{number % 977}.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n')
            file.write(f"{room} <{V}next> <http://example.org/room/{number * 7 % (triples // 5)}> .\n")
            file.write(f"{room} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{V}Room{number % 5}> .\n")


def write_stream(path: Path, triples: int) -> None:
    """Sensors in rooms of the knowledge, one event each."""
    rooms = triples // 5
    lines = (f"<http://example.org/s{i}> <{V}at> <http://example.org/room/{i * 37 % rooms}> .\n" for i in range(EVENTS))
    path.write_text("".join(lines), "ascii")


def measure(knowledge: str, stream: str, small: str) -> dict[str, float]:
    """One row, in this process; `small` is knowledge to warm up with."""
    query = spaseq.compile(QUERY)

    def run(kb: Any) -> int:
        return query.run({"S": stream}, kb, event_by="size:1", time_from="arrival", keep_events=False).count()

    for _ in range(2):
        run({KB: small})
    before, times = _memory(), [time.process_time()]
    known = knowledge_of({KB: knowledge})
    times.append(time.process_time())
    found = run(known)
    times.append(time.process_time())
    after = _memory()
    again = time.process_time()
    assert run(known) == found
    again = time.process_time() - again
    spent = [1e3 * (end - begin) for begin, end in pairwise(times)]
    sizes = [(now - then) / 1024 for now, then in zip(after, before, strict=True)]
    return dict(zip(COLUMNS, [*spent, 1e3 * again, *sizes, found], strict=True))


def _memory() -> tuple[int, int]:
    """KB of this process's own memory, and of files that are mapped."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    values = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Rss")}
    return values["RssAnon"], values["RssFile"]


def main() -> None:
    """Measures, prints and appends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.knowledge")
    parser.add_argument("--triples", default="100000,1000000")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    path = Path(__file__).parent / "results" / f"{date.today().isoformat()}-knowledge.csv"
    fresh = not path.exists()
    with tempfile.TemporaryDirectory(prefix="spaseq-") as name, path.open("a", newline="") as file:
        out = csv.writer(file)
        if fresh:
            out.writerow(["knowledge", "triples", "file_bytes", *COLUMNS, "commit"])
        folder = Path(name)
        source, stream, small = folder / "rooms.nt", folder / "s.nt", folder / "small.nt"
        built = str(folder / "rooms.spaseq-kb")
        write_knowledge(small, 50)
        for triples in map(int, options.triples.split(",")):
            write_knowledge(source, triples)
            write_stream(stream, triples)
            build_knowledge(str(source), built)
            for what, each in (("source", str(source)), ("built", built)):
                rows = [_ask(each, str(stream), str(small)) for _ in range(options.runs)]
                best = {column: min(row[column] for row in rows) for column in COLUMNS}
                row = [what, triples, os.path.getsize(each), *(f"{best[column]:.1f}" for column in COLUMNS)]
                print(*row)
                out.writerow([*row, commit.stdout.strip()])


def _ask(knowledge: str, stream: str, small: str) -> dict[str, float]:
    """`measure` in a process of its own, in which all kernels are compiled."""
    command = [sys.executable, "-m", "benchmarks.knowledge", "--one", knowledge, stream, small]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "SPASEQ_INTERPRET": "0"}
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
