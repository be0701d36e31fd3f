"""Matches on a time axis: a line from start to end for each, a dot at each position it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spaseq.errors import OptionError

__all__ = ["Span", "draw_timeline"]

_ENDINGS: Final = (".svg", ".png", ".pdf")
_LABEL: Final = 48


@dataclass(frozen=True, slots=True)
class Span:
    """One match: the points of its events (times in seconds, or positions), in order, and the text beside it."""

    points: tuple[float, ...]
    label: str = ""


def draw_timeline(
    spans: Sequence[Span], path: str, *, title: str = "", axis: str = "time (s)", dates: bool = False
) -> None:
    """Draws `spans`, the first on top, into the file `path` (`.svg`, `.png` or `.pdf`).

    `axis` is the label of the axis. `dates`: the points are seconds since the epoch, and shown as dates in UTC. Raises
    `OptionError` for another ending of `path`, if the file cannot be written, and if matplotlib is missing.
    """
    if Path(path).suffix.lower() not in _ENDINGS:
        raise OptionError(f"cannot tell from {path} what picture to make", "name it with .svg, .png or .pdf")
    try:
        import matplotlib
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise OptionError(
            f"a timeline needs {error.name}, which is not installed", "install it: pip install 'spaseq[plot]'"
        ) from None
    scale = 86_400.0 if dates else 1.0  # matplotlib counts days
    with matplotlib.rc_context({"svg.hashsalt": "spaseq", "svg.fonttype": "none"}):
        figure = Figure(figsize=(10, min(60.0, 1.6 + 0.28 * max(1, len(spans)))), layout="constrained")
        axes = figure.add_subplot()
        for row, span in enumerate(spans):
            points = [point / scale for point in span.points]
            axes.plot([points[0], points[-1]], [row, row], color="tab:blue", linewidth=2)
            axes.plot(points, [row] * len(points), "o", color="tab:blue", markersize=5)
        axes.set_yticks(range(len(spans)), [_shortened(span.label) for span in spans], fontsize=8)
        axes.set_ylim(max(1, len(spans)) - 0.5, -0.5)
        if dates:
            locator = AutoDateLocator()
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.set_xlabel("time (UTC)" if dates else axis)
        axes.set_title(title or f"{len(spans)} matches", fontsize=10)
        axes.grid(axis="x", alpha=0.3)
        _save(figure, path)


def _save(figure: object, path: str) -> None:
    try:
        metadata = {"Date": None} if path.lower().endswith(".svg") else None
        figure.savefig(path, metadata=metadata)  # type: ignore[attr-defined]
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None


def _shortened(text: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"
