"""The simulation relation between states; runs that another run covers are left out by it."""

from __future__ import annotations

from spaseq.core.automata.rma.automaton import RMA, Transition

_Label = tuple[object, frozenset[str], bool]


def _label(t: Transition) -> _Label:
    return (t.formula, t.writes, t.marks)


def simulators(automaton: RMA) -> list[int]:
    """For each state the states that simulate it, as the bits of an int; every state simulates itself.

    State p simulates q on two conditions. If q is final, so is p. For each transition of q there is one of p with the
    same formula, writes and output, to a state that simulates its target. So, with the same events in the registers, a
    run from p accepts wherever a run from q does. This is the greatest such relation. It takes at worst states² ×
    transitions steps, in a windowed automaton about transitions². The automaton must have no ε-transitions.
    """
    by_label: dict[_Label, list[Transition]] = {}
    entering: list[set[int]] = [set() for _ in range(automaton.states)]
    for t in automaton.transitions:
        by_label.setdefault(_label(t), []).append(t)
        entering[t.target].add(t.source)
    everything = (1 << automaton.states) - 1
    final = sum(1 << q for q in automaton.finals)
    found = [final if q in automaton.finals else everything for q in range(automaton.states)]
    todo = dict.fromkeys(reversed(range(automaton.states)))
    while todo:
        q = next(iter(todo))
        del todo[q]
        able = found[q]
        for t in automaton.leaving[q]:
            able &= sum({1 << s.source for s in by_label[_label(t)] if found[t.target] >> s.target & 1})
        if able != found[q]:
            found[q] = able
            todo.update(dict.fromkeys(entering[q]))
    return found
