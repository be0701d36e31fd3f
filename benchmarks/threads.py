"""Two threads beside one: SPAseq over large files, from their bytes to the number of matches, by the clock.

    python -m benchmarks.threads --triples 10000000 --runs 3

Claim: with a second thread that reads and matches ahead of the engine a run takes 1/1.6 of the time, on a machine with
two processors that are free. The streams are those of `graphs` (smart grid, stock, card: seed 42) and of `spark` (grid,
stock, there with seeds 1 and 2). Both numbers of threads take turns, and the least time of each counts. Every run's
number of matches is compared. Rows go to results/DATE-threads.csv: seconds by the clock and of processors.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import spaseq
from benchmarks import graphs, spark
from spaseq.tools.start import keep_freed

THREADS = (1, 2)
WARM = 200_000


def _run(text: str, path: str, kb: Any, threads: int, words: dict[str, Any]) -> Callable[[], int]:
    query = spaseq.compile(text, settings=spaseq.Settings(threads=threads))
    return lambda: query.run({"S": path}, kb, keep_events=False, **words).count()


def workloads(folder: Path, triples: int, only: str) -> Iterator[tuple[str, Callable[[int], Callable[[], int]]]]:
    """The name of each, and what makes its run for a number of threads. The files of one are there at a time."""
    for name in ("smart grid", "stock", "card"):
        if only in name:
            path = graphs.write(folder, name, triples)
            known = graphs.knowledge(graphs.KNOWLEDGE[0])
            words = {"options": graphs.STREAMS[name][2]}
            yield name, partial(_run, graphs.QUERIES[name], path, known, words=words)
            Path(path).unlink()
    for name, (text, files, write, more) in spark.WORKLOADS.items():
        if only in f"{name} of spark":
            write(folder, triples)
            yield f"{name} of spark", partial(_run, text, str(folder / files), None, words=more)
            for part in folder.glob(files):
                part.unlink()


def _measure(work: Callable[[], int]) -> tuple[float, float, int]:
    begin, used = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - begin, time.process_time() - used, found


def main() -> None:
    """Measures, prints and appends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="only workloads whose name has this in it")
    parser.add_argument("--scratch", default=None, help="where the streams are written")
    options = parser.parse_args()
    keep_freed()  # as the command does
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    results = Path(__file__).parent / "results" / f"{date.today().isoformat()}-threads.csv"
    fresh = not results.exists()
    with results.open("a", newline="") as file, tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        out = csv.writer(file)
        if fresh:
            out.writerow(["workload", "triples", "threads", "matches", "seconds", "processor_s", "commit"])
        small = Path(scratch) / "small"
        small.mkdir()
        for (_, warm), (name, make) in zip(
            workloads(small, WARM, options.only), workloads(Path(scratch), options.triples, options.only), strict=True
        ):
            best: dict[int, tuple[float, float, int]] = {}
            for threads in THREADS:
                warm(threads)()
            for _ in range(options.runs):
                for threads in THREADS:
                    found = _measure(make(threads))
                    best[threads] = min(found, best.get(threads, found))
            assert len({matches for _, _, matches in best.values()}) == 1, best
            for threads, (seconds, used, matches) in best.items():
                row = [name, options.triples, threads, matches, f"{seconds:.3f}", f"{used:.3f}", commit.stdout.strip()]
                out.writerow(row)
                file.flush()
            (alone, _, _), (several, _, matches) = (best[threads] for threads in THREADS)
            print(f"{name:16} {matches:>9,} matches {alone:8.2f} s {several:8.2f} s {alone / several:6.2f}", flush=True)


if __name__ == "__main__":
    main()
