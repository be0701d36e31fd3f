"""A picture of one report: a bar for each workload, on a logarithmic axis of events a second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["plot"]


def plot(path: Path, title: str, bars: Sequence[tuple[str, float, float]]) -> Path | None:
    """Draw a bar for each workload: its name, events a second, and the spread of them as a part.

    Draws to `path` (an SVG) and returns it; None, with a message on standard output, if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed (pip install 'spaseq[plot]')")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [name for name, _, _ in bars]
    rates = [rate for _, rate, _ in bars]
    spreads = [spread * rate for _, rate, spread in bars]
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
