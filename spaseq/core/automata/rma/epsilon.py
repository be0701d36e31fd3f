"""Removes ε-transitions, and merges states with the same future ([RMA], end of the proof of Theorem 5.1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from spaseq.core.automata.rma.automaton import RMA, Transition, trim
from spaseq.core.automata.states import alike, closure


def eliminate_epsilon(automaton: RMA) -> RMA:
    """An automaton with the same matches and without ε-transitions.

    A state gets the transitions of all states that it reaches over ε, and is final if one of them is. States that are
    on no path from a start to a final state are removed. It has at most states × transitions transitions.
    """
    steps = [(t.source, t.target) for t in automaton.transitions if t.epsilon]
    reach = [closure({q}, steps) for q in range(automaton.states)]
    transitions = dict.fromkeys(
        replace(t, source=q)
        for q in range(automaton.states)
        for p in sorted(reach[q])
        for t in automaton.leaving[p]
        if not t.epsilon
    )
    finals = frozenset(q for q in range(automaton.states) if reach[q] & automaton.finals)
    return trim(RMA(automaton.names, automaton.starts, finals, automaton.registers, tuple(transitions)))


def merge_alike(automaton: RMA) -> RMA:
    """The automaton with states of the same future merged."""

    def future(q: int, block: Mapping[int, Hashable]) -> Hashable:
        return frozenset((t.formula, t.writes, t.marks, t.epsilon, block[t.target]) for t in automaton.leaving[q])

    states = range(automaton.states)
    block = alike(states, lambda q: (q in automaton.starts, q in automaton.finals), future)
    names = {block[q]: automaton.names[q] for q in reversed(states)}
    transitions = dict.fromkeys(
        replace(t, source=block[t.source], target=block[t.target]) for t in automaton.transitions
    )
    return RMA(
        tuple(names[number] for number in sorted(names)),
        frozenset(block[q] for q in automaton.starts),
        frozenset(block[q] for q in automaton.finals),
        automaton.registers,
        tuple(transitions),
    )


def single_final(automaton: RMA) -> RMA:
    """An automaton with the same matches and one final state, which no transition leaves and only marking transitions
    enter.

    A run accepts only if it has just marked an event (Definition 4.4), so a run in this state accepts. Constructions
    that join automata or runs need that. The given automaton must have no ε-transitions.
    """
    marked = all(t.marks for t in automaton.transitions if t.target in automaton.finals)
    left = automaton.starts | {t.source for t in automaton.transitions}
    if len(automaton.finals) == 1 and marked and not automaton.finals & left:
        return automaton
    end = automaton.states
    copies: list[Transition] = [
        replace(t, target=end) for t in automaton.transitions if t.marks and t.target in automaton.finals
    ]
    transitions = tuple(dict.fromkeys((*automaton.transitions, *copies)))
    joined = RMA((*automaton.names, "qᶠ"), automaton.starts, frozenset({end}), automaton.registers, transitions)
    return trim(joined)
