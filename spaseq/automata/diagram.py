"""A complex event automaton as DOT, SVG and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spaseq.automata.cea import ACCEPT, CEA, Transition, show_action
from spaseq.drawing import Diagram, Edge, Node, to_dot, to_svg
from spaseq.errors import OptionError

__all__ = ["automaton_data", "automaton_diagram", "automaton_text"]


def automaton_diagram(automaton: CEA) -> Diagram:
    """The automaton as a diagram: solid edges mark their event, dashed ones pass over it. Actions are notes."""
    nodes = [Node(str(q), str(q), start=q == 0) for q in range(automaton.states)]
    edges = []
    for transition in (t for out in automaton.transitions for t in out):
        notes = tuple(show_action(action) for action in transition.actions)
        label = _condition(automaton, transition)
        edges.append(Edge(str(transition.source), _target(transition), label, notes, dashed=not transition.marks))
    return Diagram((*nodes, Node("accept", "✓", final=True)), tuple(edges))


def automaton_data(automaton: CEA) -> dict[str, Any]:
    """The automaton as plain data for JSON: states, and transitions with their conditions and actions as text."""
    return {
        "states": automaton.states,
        "predicates": [str(predicate) for predicate in automaton.predicates],
        "transitions": [
            {
                "source": t.source,
                "target": "accept" if t.target == ACCEPT else t.target,
                "condition": _condition(automaton, t),
                "marks": t.marks,
                "actions": [show_action(action) for action in t.actions],
            }
            for out in automaton.transitions
            for t in out
        ],
    }


def _target(transition: Transition) -> str:
    return "accept" if transition.target == ACCEPT else str(transition.target)


def _condition(automaton: CEA, transition: Transition) -> str:
    if transition.otherwise:
        return "otherwise"
    return " & ".join(str(automaton.predicates[p]) for p in sorted(transition.predicates)) or "true"


def automaton_text(automaton: CEA, form: str, about: Mapping[str, Any]) -> str:
    """The automaton in a format of `explain`: `dot`, `svg` or `json`. `about` has further entries for JSON.

    Raises `OptionError` for another format.
    """
    match form:
        case "dot":
            return to_dot(automaton_diagram(automaton))
        case "svg":
            return to_svg(automaton_diagram(automaton))
        case "json":
            return json.dumps({**about, "automaton": automaton_data(automaton)}, ensure_ascii=False, indent=2) + "\n"
        case _:
            raise OptionError(f"there is no format {form}", "there is text, dot, svg, json")
