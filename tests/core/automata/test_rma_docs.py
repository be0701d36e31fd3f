"""The guide says what is so: its examples run, and its figures are what the library draws.

To draw them anew: `python -m tests.core.automata.test_rma_docs`.
"""

from __future__ import annotations

import doctest
from pathlib import Path

from spaseq.core.automata import rma
from tests.core.automata.test_rma_paper import PHI_1, PHI_4
from tests.support.drawn import drawn

DOCS = Path(__file__).resolve().parents[3] / "docs"


def figures() -> dict[str, str]:
    """Every figure of [RMA] by its file."""
    short, tree = (rma.unroll(rma.build(PHI_1), window) for window in (2, 3))
    one_run = rma.determinise(short, output_agnostic=True)
    return {
        "figure-1.svg": rma.to_svg(rma.build(PHI_1), "Figure 1: expression (1)"),
        "figure-2.svg": rma.to_svg(rma.construct(PHI_4), "Figure 2: expression (4), constructed"),
        "figure-3a-2.svg": rma.to_svg(short, "Figure 3(a): expression (1) WINDOW 2, unrolled"),
        "figure-3a.svg": rma.to_svg(tree, "Figure 3(a): expression (1) WINDOW 3, unrolled"),
        "figure-3b.svg": rma.to_svg(one_run, "Figure 3(b): expression (1) WINDOW 2, output-agnostic deterministic"),
    }


def test_examples() -> None:
    failed, tried = doctest.testfile(
        str(DOCS / "rma.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE, encoding="utf-8"
    )
    assert tried > 15 and not failed


def test_figures() -> None:
    """They say the same. Where Graphviz places it depends on its version."""
    kept = {path.name: path.read_text("utf-8") for path in (DOCS / "rma").glob("*.svg")}
    found = figures()
    assert kept.keys() == found.keys()
    for name, svg in found.items():
        assert (drawn(kept[name]).texts, drawn(kept[name]).edges) == (drawn(svg).texts, drawn(svg).edges), name


if __name__ == "__main__":
    for name, svg in figures().items():
        (DOCS / "rma" / name).write_text(svg, "utf-8")
