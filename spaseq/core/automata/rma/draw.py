"""Automata as DOT for Graphviz, and as SVG.

As in the paper's figures, a transition is labelled formula / register selection / write registers / output, formulas
have names, and the legend lists the formulas by name.
"""

from __future__ import annotations

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, Transition, register_order
from spaseq.core.automata.rma.formulas import Formula
from spaseq.core.drawing import Diagram, Edge, Node
from spaseq.core.drawing import to_dot as diagram_dot
from spaseq.core.drawing import to_svg as diagram_svg


def _names(automaton: RMA) -> dict[Formula, str]:
    """The names f1, f2, … of the formulas other than TRUE, in order of appearance."""
    found = dict.fromkeys(t.formula for t in automaton.transitions if not t.epsilon and t.formula != f.TRUE)
    return {formula: f"f{i}" for i, formula in enumerate(found, 1)}


def _label(t: Transition, names: dict[Formula, str]) -> str:
    if t.epsilon:
        return "ε"
    writes = ", ".join(sorted(t.writes, key=register_order))
    selection = ", ".join(t.selection) or f.CURRENT
    shown = names.get(t.formula, "TRUE")
    return f"{shown} / ({selection}) / {'{' + writes + '}' if writes else '∅'} / {'•' if t.marks else '∘'}"


def _diagram(automaton: RMA, title: str) -> Diagram:
    names = _names(automaton)
    nodes = (
        Node(str(q), name, start=q in automaton.starts, final=q in automaton.finals)
        for q, name in enumerate(automaton.names)
    )
    edges = (Edge(str(t.source), str(t.target), _label(t, names), dashed=not t.marks) for t in automaton.transitions)
    legend = (f"{name} := {f.show(formula)}" for formula, name in names.items())
    return Diagram(tuple(nodes), tuple(edges), title, tuple(legend))


def to_dot(automaton: RMA, title: str = "") -> str:
    """The automaton in Graphviz's language: start states with an arrow, final states doubled, formulas in a legend;
    transitions that mark their event are solid, others dashed."""
    return diagram_dot(_diagram(automaton, title))


def to_svg(automaton: RMA, title: str = "") -> str:
    """The automaton as an SVG document, as `to_dot` has it. Raises `OptionError` if there is no Graphviz."""
    return diagram_svg(_diagram(automaton, title))
