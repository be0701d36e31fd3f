"""[Lazy]'s Figures 10 and 11: throughput and peak memory over the size of the window, eager and lazy.

Claim: a chain is faster than the eager automaton by one to two orders of magnitude, and holds less at its peak. That
holds if three or more positive events are taken. With two of them, each pair in the window is compared once in any
order. Eager, chain and tree share buffers, columns and the code for conditions, and read the same stream: 45 minutes,
seed 2018 (`benchmarks/lazy/stream.py`). Windows are 5 to 20 minutes (the paper has 5 to 30), for ITER3 a quarter of
that. Memory is the peak, at the ends of batches of 512 events, of buffers and instances together.

Both methods of negation are there for NSEQ5, as in the paper. NSEQ3 and NAND3 use first chance; the paper measured
post-processing. SPASEQ_LAZY=2 doubles the windows and the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.figures import Figure, Point
from benchmarks.lazy.experiments import MINUTES, SCALE, Experiment, experiments, running
from benchmarks.lazy.stream import Prices, stream
from spaseq.core.engine.lazy import LazyEvaluator

WINDOWS = tuple(minutes * SCALE for minutes in (5, 10, 15, 20))
WAYS = ("eager", "chain", "tree")
SMALL = 512
"""Events between two measurements of memory."""


def peak_bytes(experiment: Experiment, way: str, prices: Prices) -> Callable[[], int]:
    """The most bytes of buffers and instances, at the ends of small batches."""

    def run() -> int:
        evaluator, peak = experiment.open(way), 0
        assert isinstance(evaluator, LazyEvaluator)
        for start in range(0, len(prices), SMALL):
            evaluator.count(prices[start : start + SMALL])
            peak = max(peak, evaluator.statistics["lazy_bytes"])
        return peak

    return run


def figures() -> list[Figure]:
    """Figures 10 and 11, of the same points."""
    return [Figure("lazy 10", "a chain is faster and smaller", list(_points(stream(MINUTES))), runs=3)]


def _points(prices: Prices) -> Iterator[Point]:
    for window in WINDOWS:
        for e in experiments(window):
            for way in WAYS:
                run, held = running(e, way, prices), peak_bytes(e, way, prices)
                yield Point(e.name, way, f"{window:g}", len(prices), run, held)
