"""Closure of register match automata under union, concatenation and Kleene⁺ ([RMA] Definition 5.4, Theorem 5.5).

Each operation keeps the registers of its operands apart and gives an automaton without ε-transitions.

Definition 5.4 takes the second match of a concatenation from the whole stream. The construction of Theorem 5.1, which
its proof refers to, lets the second automaton begin behind the first match. This module follows the construction. For
automata that may wait before their matches (a TRUE/∘ loop on the start, as the automaton of every expression has) both
are the same.
"""

from __future__ import annotations

from dataclasses import replace

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, Transition, with_registers_renamed
from spaseq.core.automata.rma.epsilon import eliminate_epsilon, merge_alike, single_final


def union(left: RMA, right: RMA) -> RMA:
    """The matches of `left` and those of `right`. Linear."""
    a, b, shift = _apart(left, right)
    start = a.states + b.states
    joints = [_epsilon(start, q) for q in a.starts] + [_epsilon(start, q + shift) for q in b.starts]
    finals = a.finals | {q + shift for q in b.finals}
    return _join(a, b, frozenset({start}), finals, joints)


def concatenation(left: RMA, right: RMA) -> RMA:
    """The matches M₁·M₂: M₁ of `left`, and M₂ of `right` over the events behind the last one of M₁. Linear."""
    a, b, shift = _apart(left, right)
    joints = [_epsilon(p, q + shift) for p in a.finals for q in b.starts]
    return _join(a, b, a.starts, frozenset(q + shift for q in b.finals), joints)


def kleene_plus(automaton: RMA) -> RMA:
    """The matches M₁·…·Mₙ, n ≥ 1, each of `automaton` over the events behind the match before. Linear."""
    given = _single(automaton)
    joints = tuple(_epsilon(p, q) for p in given.finals for q in given.starts)
    again = RMA(given.names, given.starts, given.finals, given.registers, (*given.transitions, *joints))
    return merge_alike(eliminate_epsilon(again))


def _single(automaton: RMA) -> RMA:
    return single_final(eliminate_epsilon(automaton) if automaton.has_epsilon else automaton)


def _apart(left: RMA, right: RMA) -> tuple[RMA, RMA, int]:
    """Both automata with a single final state each, the registers of `right` renamed so that they share none; and by
    how much to shift the states of `right`."""
    a, b = _single(left), _single(right)
    taken, names, number = set(a.registers), {}, 1
    for register in b.registers:
        while f"r{number}" in taken:
            number += 1
        names[register] = f"r{number}"
        taken.add(names[register])
    return a, with_registers_renamed(b, names), a.states


def _join(a: RMA, b: RMA, starts: frozenset[int], finals: frozenset[int], joints: list[Transition]) -> RMA:
    moved = [replace(t, source=t.source + a.states, target=t.target + a.states) for t in b.transitions]
    names = (*a.names, *(f"{name}′" for name in b.names), "qˢ")
    joined = RMA(names, starts, finals, (*a.registers, *b.registers), (*a.transitions, *moved, *joints))
    return merge_alike(eliminate_epsilon(joined))


def _epsilon(source: int, target: int) -> Transition:
    return Transition(source, f.TRUE, target, epsilon=True)
