"""The work of the lazy evaluators for a match, counted: the experiments of `benchmarks/lazy/experiments.py`.

`python -m benchmarks.lazy.counts` counts peak instances, predicate evaluations and memory operations (instances made
and dropped, events buffered and forgotten) per event. The peak of bytes, of buffers and waiting instances, is that at
the ends of batches. Then it compares `auto` with every evaluator (`benchmarks/lazy/choice.py`), and writes
results/DATE-lazy-counts.csv and DATE-lazy-choice.csv. With names, as in `python -m benchmarks.lazy.counts NSEQ SEQ3`,
it only counts the patterns that begin so.
"""

from __future__ import annotations

import csv
import datetime
import itertools
import sys
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import RESULTS
from benchmarks.lazy import choice as lazy_choice
from benchmarks.lazy.experiments import MINUTES, WINDOWS, Experiment, batches, drifting, experiments, ratios
from benchmarks.lazy.stream import Prices, stream
from spaseq.core.engine.lazy import LazyEvaluator
from spaseq.core.engine.lazy.space import Trace


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one evaluation; `evaluations` and `operations` per event."""

    matches: int
    peak: int
    peak_bytes: int
    evaluations: float
    operations: float


def count(experiment: Experiment, way: str, prices: Prices) -> Counts:
    """Run and count."""
    evaluator = experiment.open(way, trace=True)
    assert isinstance(evaluator, LazyEvaluator)
    matches = peak_bytes = 0
    for batch in batches(prices):
        matches += evaluator.count(batch)
        peak_bytes = max(peak_bytes, evaluator.statistics["lazy_bytes"])
    found, events = evaluator.statistics, len(prices)
    buffered = 0 if way == "eager" else found["buffer_insertions"]
    assert evaluator.trace is not None
    peak = peak_of(evaluator.trace, kept_times(evaluator, prices), experiment.minutes * 60)
    return Counts(matches, peak, peak_bytes, found["predicate_evaluations"] / events,
                  2 * (found["instances_made"] + buffered) / events)  # fmt: skip


def kept_times(evaluator: LazyEvaluator, prices: Prices) -> np.ndarray:
    """The times of the events that were buffered, by handle."""
    kept = np.zeros(len(prices), bool)
    for predicate in {predicate for kind in evaluator._kinds for predicate in kind}:
        kept |= predicate.evaluate(prices)
    return prices.times[kept]


def peak_of(trace: Trace, times: np.ndarray, window: float) -> int:
    """The most instances at one time: those that wait, from their last event to the end of their window, and at each
    event those that come and go with it."""
    change = np.zeros(len(times) + 1, np.int64)
    passing = np.zeros(len(times) + 1, np.int64)
    for _, high in trace.made:
        np.add.at(passing, high, 1)
    for low, high in trace.waiting:
        np.add.at(passing, high, -1)
        np.add.at(change, high, 1)
        np.add.at(change, np.searchsorted(times, times[low] + window, "right"), -1)
    return int((np.cumsum(change) + np.maximum(passing, 0)).max())


def main(names: tuple[str, ...]) -> None:
    """Print and keep the counts, of the patterns that begin with one of `names`, or of all."""
    plain, (drift, moving) = stream(MINUTES), drifting(3 * MINUTES)
    path = RESULTS / f"{datetime.date.today().isoformat()}-lazy-counts.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["pattern", "window_min", "way", "matches", "peak_instances", "evaluations_per_event",
                      "memory_operations_per_event", "peak_bytes"])  # fmt: skip
        for window in WINDOWS:
            for e in experiments(window):
                if e.name.startswith(names or ("",)):
                    table(e, plain, out)
        if names:
            print(f"-> {path}")
            return
        for e in ratios(WINDOWS[1]):
            table(e, plain, out)
        orders = tuple(f"chain {''.join(order)}" for order in itertools.permutations("012"))
        for e in drift:
            table(e, moving, out, ("eager", *orders, "tree"))
    print(f"-> {path}")
    path = RESULTS / f"{datetime.date.today().isoformat()}-lazy-choice.csv"
    with path.open("w", newline="") as file:
        lazy_choice.table(csv.writer(file))
    print(f"-> {path}")


def table(e: Experiment, prices: Prices, out: object, ways: tuple[str, ...] = ("eager", "chain", "tree")) -> None:
    """One line of each way, and how many times fewer than eager."""
    base: Counts | None = None
    for way in ways:
        c = count(e, way, prices)
        base = base or c
        if c.matches != base.matches:
            raise AssertionError(f"{e.name}: {base.matches} matches, with {way} {c.matches}")
        fewer = [b / max(x, 1e-9) for b, x in ((base.peak, c.peak), (base.evaluations, c.evaluations),
                                               (base.operations, c.operations))]  # fmt: skip
        print(f"{e.name:20} {e.minutes:4.1f} min {way:9} {c.matches:>9,} matches"
              f" {c.peak:>8,} instances (1/{fewer[0]:5.1f}) {c.evaluations:10.2f} evaluations (1/{fewer[1]:6.1f})"
              f" {c.operations:8.2f} operations (1/{fewer[2]:5.1f})"
              f" {c.peak_bytes / 1e6:6.2f} MB", flush=True)  # fmt: skip
        row = [e.name, e.minutes, way, c.matches, c.peak, f"{c.evaluations:.3f}", f"{c.operations:.3f}", c.peak_bytes]
        out.writerow(row)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
