"""Following a stream beside a run over its file: processor time for a triple, of the streams of `graphs`.

    python -m benchmarks.followed [TRIPLES]

Claim: if all input is there at once, `spaseq run --follow` costs no more than twice as much as a run over the file.
Matches are iterated in both; the followed stream is standard input. The least of three runs each, which take turns;
seed 42, 200,000 triples by default.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import spaseq
from benchmarks import graphs

TRIPLES, RUNS = 200_000, 3


def _measure(name: str, path: str, *, follow: bool) -> tuple[float, int]:
    """Seconds of the processor, and the number of matches."""
    query, known = spaseq.compile(graphs.QUERIES[name]), graphs.knowledge(graphs.KNOWLEDGE[0])
    options = graphs.STREAMS[name][2]
    begin = time.process_time()
    if not follow:
        found = sum(1 for _ in query.run({"S": path}, known, options=options, keep_events=False))
    else:
        options = replace(options, format=Path(path).suffix[1:])
        with open(path, "rb") as file:
            before, sys.stdin = sys.stdin, io.TextIOWrapper(file)
            try:
                found = sum(1 for _ in query.follow({"S": "-"}, known, options=options, keep_events=False))
            finally:
                sys.stdin = before
    return time.process_time() - begin, found


def main() -> None:
    """Measures and prints."""
    triples = int(sys.argv[1]) if len(sys.argv) > 1 else TRIPLES
    print("µs a triple      run  follow")
    with tempfile.TemporaryDirectory() as folder:
        for name in graphs.QUERIES:
            path = graphs.write(Path(folder), name, triples)
            runs = [[_measure(name, path, follow=follow) for follow in (False, True)] for _ in range(RUNS + 1)][1:]
            counts = {found for both in runs for _, found in both}
            if len(counts) != 1:
                raise SystemExit(f"{name}: {counts} matches")
            least = [min(both[way][0] for both in runs) for way in (0, 1)]
            print(f"{name:12} {least[0] / triples * 1e6:7.2f} {least[1] / triples * 1e6:7.2f}")


if __name__ == "__main__":
    main()
