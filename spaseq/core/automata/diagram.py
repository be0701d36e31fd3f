"""A complex event automaton as DOT, SVG and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL, Transition, say_action
from spaseq.core.drawing import Diagram, Edge, Lit, Node, edge_class, node_class, to_dot, to_svg
from spaseq.core.errors import OptionError
from spaseq.core.pattern import Predicate


@dataclass(frozen=True, slots=True)
class Light:
    """The known effects of a run on its automaton.

    `ways`: of matches. `matches`: their number, if not all of them are in `ways`. `reached`: the states that some run
    was in, None if unknown. `unmet`: the steps (predicates) that no event fulfilled.
    """

    ways: Sequence[tuple[Transition, ...]]
    matches: int
    reached: frozenset[int] | None = None
    unmet: frozenset[frozenset[Predicate]] = frozenset()


def automaton_diagram(automaton: CEA, light: Light | None = None) -> Diagram:
    """The automaton as a diagram: solid edges mark their event, dashed ones pass over it. Actions are notes. With
    `light` it shows a run's effects."""
    lamp = None if light is None else _Lamp(automaton, light)
    states = [(str(q), str(q), q) for q in range(automaton.states)] + [("accept", "✓", ACCEPT)]
    nodes = [
        Node(name, label, q == INITIAL, q == ACCEPT, *(lamp.of_state(q) if lamp is not None else ()))
        for name, label, q in states
    ]
    edges = []
    for transition in (t for out in automaton.transitions for t in out):
        notes = tuple(say_action(action) for action in transition.actions)
        label, shown = _condition(automaton, transition), lamp.of_move(transition) if lamp is not None else ()
        edges.append(Edge(_name(transition.source), _target(transition), label, notes, not transition.marks, *shown))
    return Diagram(tuple(nodes), tuple(edges), legend=() if lamp is None else lamp.legend())


def classes_of(way: Sequence[Transition]) -> list[str]:
    """The classes that the parts of a way have in the SVG of a diagram that is lit."""
    states = dict.fromkeys(node_class(_name(q)) for t in way for q in (t.source, t.target))
    return [*states, *dict.fromkeys(edge_class(_name(t.source), _target(t), not t.marks) for t in way)]


class _Lamp:
    """Assigns a light to the parts of an automaton."""

    def __init__(self, automaton: CEA, light: Light) -> None:
        self._automaton = automaton
        self._light = light
        self._moves = Counter(t for way in light.ways for t in set(way))
        self._states = Counter(q for way in light.ways for q in {q for t in way for q in (t.source, t.target)})

    def of_state(self, q: int) -> tuple[Lit, int]:
        """The light of a state, and the number of matches that came through it."""
        if self._states[q]:
            return "taken", self._states[q]
        return ("open" if self._came(q) else "never"), 0

    def of_move(self, t: Transition) -> tuple[Lit, int]:
        """The light of a transition, and the number of matches that took it."""
        if self._moves[t]:
            return "taken", self._moves[t]
        unmet = frozenset(self._automaton.predicates[p] for p in t.predicates) in self._light.unmet
        return ("open" if self._came(t.source) and not unmet and self._came(t.target) else "never"), 0

    def _came(self, q: int) -> bool:
        """True if a run may have come to a state."""
        if q == ACCEPT:
            return bool(self._light.matches) or self._light.reached is None
        return q == INITIAL or self._light.reached is None or q in self._light.reached

    def legend(self) -> tuple[str, ...]:
        """The meaning of the colours and numbers."""
        found, matches = sum(map(bool, self._light.ways)), self._light.matches
        of = "1 match" if matches == 1 else f"{matches:,} matches"
        if found:
            lines = [f"blue: the ways of {of if found == matches else f'{found:,} of {of}'}, and of how many (×)"]
        else:
            lines = [f"{of}, of which no way is known" if matches else "no match"]
        if self._light.reached is not None:
            lines.append("thin: runs came here too; dotted grey: none did, or no event fulfils the condition")
        elif self._light.unmet:
            lines.append("dotted grey: no event fulfils the condition")
        return tuple(lines)


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
                "actions": [say_action(action) for action in t.actions],
            }
            for out in automaton.transitions
            for t in out
        ],
    }


def _target(transition: Transition) -> str:
    return _name(transition.target)


def _name(q: int) -> str:
    return "accept" if q == ACCEPT else str(q)


def _condition(automaton: CEA, transition: Transition) -> str:
    found = " & ".join(str(automaton.predicates[p]) for p in sorted(transition.predicates))
    return f"otherwise {found}".rstrip() if transition.rank else found or "true"


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
