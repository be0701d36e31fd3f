"""Compile kernels ahead, for this kind of processor: `python -m spaseq.tools.kernels`.

numba compiles a kernel when it is first called, and keeps it (`spaseq.core.jit`). Here the two commands run small
queries of many kinds, with nothing interpreted. So their kernels are kept, and every later process loads them. There
is no list of kernels, or of types of arguments: what a query needs is what its command calls. A kernel that no query
here calls is compiled when one does.

*Where.* They are kept where numba keeps them: NUMBA_CACHE_DIR, else beside the package, else the user's cache folder.

*For what.* Kept kernels are for one kind of processor, one version of numba and of Python. With NUMBA_CPU_NAME=generic
and an empty NUMBA_CPU_FEATURES they are for all processors of an architecture. All processes that read them need both.

*Cost.* Three to five minutes of processor time for an empty folder, half a minute for a full one (2026-11-28, a busy
machine). Commands run in up to four processes, of which one compiles a kernel and the others wait for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

Command = tuple[str, ...]

_EVENTS: Final = 60
"""Of each input. All orders of types, keys and prices come within a window."""
_PROCESSES: Final = 4
"""At the most: more would wait for each other."""

_PATTERNS: Final = (
    "A ; B WITHIN 9 EVENTS",
    "A AS a ; B AS b FILTER b[price > a.price] WITHIN 40 EVENTS",
    "A AS a ; B AS b FILTER b[id = a.id] WITHIN 9 EVENTS",
)
"""Of CEQL: plain, with pools, which short windows do not have, and with an index of keys."""
_CEQL: Final = (
    *(f"SELECT * FROM S WHERE {pattern}" for pattern in _PATTERNS),
    "SELECT NEXT * FROM S WHERE A ; B ; C WITHIN 9 EVENTS",
    "SELECT * FROM S WHERE A ; B LIMIT 1 WITHIN 9 EVENTS",
    f"SELECT NEXT * FROM S WHERE {_PATTERNS[1]}",
    f"SELECT NEXT * FROM S WHERE {_PATTERNS[2]}",
    f"SELECT MAX * FROM S WHERE {_PATTERNS[1].replace('B AS', 'B+ AS')}",
    "SELECT MAX * FROM S WHERE A ; B+ ; C WITHIN 9 EVENTS",
    "SELECT * FROM S WHERE A ; NOT C WITHIN 9 EVENTS",
    "SELECT * FROM S WHERE A AS a ; B AS b FILTER a.price + b.price > 9 WITHIN 9 EVENTS",
    "SELECT * FROM S WHERE A AS a ; B AS b FILTER b[price > a.price] LIMIT 1 WITHIN 9 EVENTS",
    "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c FILTER a.price < b.price AND b.price < c.price WITHIN 40 EVENTS",
    "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c FILTER c.price > a.price WITHIN 40 EVENTS",
    "SELECT * FROM S WHERE A ; B PARTITION BY [id] WITHIN 9 EVENTS",
    "SELECT COUNT(*) AS n, SUM(a.price) AS s FROM S WHERE A AS a ; B WITHIN 9 EVENTS GROUP BY EVENT",
    "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 40 EVENTS ORDER BY b.price - a.price DESC LIMIT 3",
    "SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS AFTER MATCH SKIP TO NEXT EVENT",
)
_GRAPHS: Final = "DEFINE GPM A ON S {{ ?x ex:p ?v{} }} DEFINE GPM B ON S {{ ?x ex:q ?w{} }}"
_WINDOW: Final = "WITHIN 9 MINUTES SLIDING FROM STREAM S <http://e/s> WHERE"
_OPTIONAL: Final = " OPTIONAL { ?x ex:n ?t } FILTER(?v > 1)"
_PATH: Final = " . ?x ex:r+ ?z"
_KNOWN: Final = " . GRAPH <http://e/kb> { ?y ex:name ?m . ?y ex:l ?z } FILTER(?w >= 1)"
_SPASEQ: Final = (
    f"SELECT * {_WINDOW} {{ SEQ (A ; B) {_GRAPHS.format('', '')} }}",
    f"SELECT ?x (COUNT(?w) AS ?n) {_WINDOW} {{ SEQ (A , B+) {_GRAPHS.format('', '')} }}",
    f"SELECT * {_WINDOW} {{ SEQ (A ; B) {_GRAPHS.format(_OPTIONAL, ' FILTER(?w >= ?v)')} }}",
    f"SELECT * {_WINDOW} {{ SEQ (A ; B+ ; A) {_GRAPHS.format(_PATH, _KNOWN)} }}",
)


def main(arguments: Sequence[str]) -> int:
    """Compiles kernels and says what it took. Returns 1 if a command fails, or if no kernel can be kept."""
    if arguments:
        print("usage: python -m spaseq.tools.kernels", file=sys.stderr)
        return 2
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        todo = commands(Path(folder))
        with ThreadPoolExecutor(min(_PROCESSES, os.cpu_count() or 1)) as pool:
            for number, problem in enumerate(pool.map(_run, todo), 1):
                if problem:
                    pool.shutdown(cancel_futures=True)
                    print(f"error: {problem}", file=sys.stderr)
                    return 1
                _tell(f"kernels: {number} of {len(todo)} queries")
    _tell("")
    print(f"kernels of {len(todo)} kinds of queries are kept ({time.perf_counter() - began:.0f} s)")
    return 0


def commands(folder: Path) -> list[Command]:
    """The commands, of which those that compile most come first; inputs are written to the folder."""
    _write_inputs(folder)
    events, graphs, known = (str(folder / name) for name in ("events.csv", "graphs.nq", "known.ttl"))
    ceql = [("ceql", "run", text, "--events", events, "--time", "ts", "--format", "json") for text in _CEQL]
    spaseq = [
        ("spaseq", "run", f"PREFIX ex: <http://e/> {text}", "--stream", f"S={graphs}", "--format", "json",
         "--kb", f"http://e/kb={known}", "--entailment", "rdfs")
        for text in _SPASEQ
    ]  # fmt: skip
    return [ceql[0], spaseq[0], *ceql[1:], *spaseq[1:]]


def _write_inputs(folder: Path) -> None:
    rows = ["type,id,price,ts\n"]
    quads, date = [], "http://www.w3.org/2001/XMLSchema#dateTime"
    for i in range(_EVENTS):
        rows.append(f"{'ABCDAABB'[i % 8]},{i % 3},{i * 7 % 11}.5,{i}\n")
        facts = (
            f'<http://e/g{i}> <http://www.w3.org/ns/prov#generatedAtTime> "2026-06-15T06:{i:02}:00Z"^^<{date}>',
            f'<http://e/x{i % 3}> <http://e/{"pq"[i % 2]}> "{i % 7}"^^<http://www.w3.org/2001/XMLSchema#integer>',
            f"<http://e/x{i % 3}> <http://e/r> <http://e/y{i % 5}>",
            f"<http://e/y{i % 5}> <http://e/r> <http://e/z{i % 2}>",
            f'<http://e/x{i % 3}> <http://e/n> "text {i % 4}"',
        )
        quads += [f"{fact} <http://e/g{i}> .\n" for fact in facts]
    known = [f'ex:y{i} a ex:C ; ex:k ex:z{i % 2} ; ex:name "n{i}" .\n' for i in range(5)]
    schema = "ex:C rdfs:subClassOf ex:D . ex:k rdfs:subPropertyOf ex:l .\n"
    prefixes = "@prefix ex: <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    (folder / "events.csv").write_text("".join(rows), "utf-8")
    (folder / "graphs.nq").write_text("".join(quads), "utf-8")
    (folder / "known.ttl").write_text("".join((prefixes, schema, *known)), "utf-8")


def _run(command: Command) -> str:
    """Runs a command with all kernels compiled. Returns what went wrong, or an empty text."""
    environment = {**os.environ, "SPASEQ_INTERPRET": "0"}
    ended = subprocess.run(
        [sys.executable, "-m", *command], env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    kept = "compiled kernels cannot be kept" not in ended.stderr
    return "" if ended.returncode == 0 and kept else f"{' '.join(command[:3])}: {ended.stderr.strip()}"


def _tell(text: str) -> None:
    """Progress on one line of a terminal; nothing else gets it."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
