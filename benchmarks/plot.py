"""A picture of one report: a bar for each workload, on a logarithmic axis of events a second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.harness import Measurement

__all__ = ["plot"]


def plot(path: Path, title: str, measurements: Sequence[Measurement]) -> Path | None:
    """Draw to `path` (an SVG) and return it; None, said on standard output, where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed (pip install 'spaseq[plot]')")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [m.workload.name for m in measurements]
    rates = [m.events_per_second for m in measurements]
    spreads = [m.spread * m.events_per_second for m in measurements]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.24 * len(names)))
    axes.barh(names, rates, xerr=spreads, color="#4477aa", height=0.7, error_kw={"ecolor": "#bb5566"})
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("events a second, median of the runs, with half the distance between the fastest and the slowest")
    axes.set_title(title, loc="left")
    axes.grid(axis="x", color="#cccccc", linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
