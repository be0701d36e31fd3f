"""Every figure of [RMA] drawn: well-formed, complete, and what is drawn stays inside."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml

import pytest

from spaseq.automata import rma
from tests.automata.test_rma_paper import PHI_1, PHI_4

FIGURES = {
    "1": rma.build(PHI_1),
    "2": rma.construct(PHI_4),
    "3a": rma.unroll(rma.build(PHI_1), 3),
    "3b": rma.determinise(rma.unroll(rma.build(PHI_1), 2), output_agnostic=True),
    "none": rma.RMA((), frozenset(), frozenset(), (), ()),
}


@pytest.mark.parametrize("figure", FIGURES)
def test_svg(figure: str) -> None:
    automaton = FIGURES[figure]
    root = xml.fromstring(rma.to_svg(automaton, f"Figure {figure} <&>"))
    texts = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == f"Figure {figure} <&>"
    assert all(name in texts for name in automaton.names)
    labels = [t for t in texts if t == "ε" or re.search(r"/ [•∘]$", t)]
    assert len(labels) == len(automaton.transitions)
    outlines = len(list(root.iter("{http://www.w3.org/2000/svg}rect")))
    assert outlines == automaton.states + len(automaton.finals), "final states are doubled"
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for e in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= float(e.get("x", -1)) <= width
        assert 0 <= float(e.get("y", -1)) <= height


def test_dot() -> None:
    assert (
        rma.to_dot(FIGURES["1"], 'one "quoted"')
        == r"""digraph rma {
  rankdir=LR;
  node [shape=circle];
  label="one \"quoted\"";
  q0 [label="q0"];
  q1 [label="q1"];
  q2 [label="q3", shape=doublecircle];
  start0 [shape=point];
  start0 -> q0;
  q0 -> q0 [label="TRUE / (~) / ∅ / ∘", style=dashed];
  q0 -> q1 [label="f1 / (~) / {r1} / •"];
  q1 -> q1 [label="TRUE / (~) / ∅ / ∘", style=dashed];
  q1 -> q2 [label="f2 / (~, r1) / ∅ / •"];
  formulas [shape=box, label="f1 := ~.type = T\lf2 := ~.type = H ∧ r1.id = ~.id\l"];
}
"""
    )
