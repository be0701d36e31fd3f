"""Automata against what expressions mean: constructions, closure laws, windows, determinisation ([RMA] §§3 to 6)."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spaseq.core.automata import rma
from spaseq.core.automata.rma.simulation import simulators
from spaseq.core.errors import BudgetExceeded, OptionError
from tests.support import oracle_rma as o
from tests.support.rma_expressions import Names, formula, lowered, random_condition, random_expression, random_stream
from tests.support.sizes import some

SEEDS = st.integers(0, 2**32)
LIMITS = rma.Limits(max_states=400, max_registers=12, max_minterms=300, max_configurations=20_000)


def drawn(seed: int, size: int = 7, depth: int = 3, beyond: bool = False) -> tuple[random.Random, Any, list[Any]]:
    rng = random.Random(seed)
    expression, _ = random_expression(rng, depth, Names(), beyond)
    return rng, expression, random_stream(rng, size)


def ends(found: list[bool]) -> set[int]:
    return {i for i, yes in enumerate(found) if yes}


@settings(max_examples=some(150))
@given(SEEDS)
def test_an_expression_and_its_automaton_have_the_same_matches(seed: int) -> None:
    _, expression, stream = drawn(seed)
    expected = o.matches(expression, stream)
    node = lowered(expression)
    assert rma.matches(rma.construct(node), stream) == expected
    assert rma.matches(rma.build(node), stream) == expected
    assert ends(rma.accepts(rma.build(node), stream)) == o.ends(expected)


@settings(max_examples=some(100))
@given(SEEDS)
def test_contiguity_and_optional_parts(seed: int) -> None:
    _, expression, stream = drawn(seed, beyond=True)
    assert rma.matches(rma.build(lowered(expression)), stream) == o.matches(expression, stream)


@settings(max_examples=some(60))
@given(SEEDS)
def test_matches_that_begin_with_the_first_event(seed: int) -> None:
    _, expression, stream = drawn(seed, beyond=True)
    found = {m for m, _, k, _ in o.outcomes(expression, stream, 0, False, frozenset()) if m and m[-1] == k - 1}
    assert rma.matches(rma.build(lowered(expression), anywhere=False), stream) == found


def pairs(seed: int) -> tuple[Any, Any, list[Any]]:
    rng = random.Random(seed)
    a, _ = random_expression(rng, 2, Names("x"))
    b, _ = random_expression(rng, 2, Names("y"))
    return a, b, random_stream(rng, 6)


@settings(max_examples=some(80))
@given(SEEDS)
def test_closure_under_union_and_concatenation(seed: int) -> None:
    a, b, stream = pairs(seed)
    left, right = rma.build(lowered(a)), rma.build(lowered(b))
    first, second = o.matches(a, stream), o.matches(b, stream)
    assert rma.matches(rma.union(left, right), stream) == first | second
    assert rma.matches(rma.concatenation(left, right), stream) == o.concatenated(first, second)


@settings(max_examples=some(80))
@given(SEEDS)
def test_closure_under_iteration(seed: int) -> None:
    _, expression, stream = drawn(seed, size=6, depth=2)
    found = rma.matches(rma.kleene_plus(rma.build(lowered(expression))), stream)
    assert found == o.iterated(o.matches(expression, stream))


@settings(max_examples=some(60))
@given(SEEDS, st.integers(1, 4))
def test_windows(seed: int, window: int) -> None:
    _, expression, stream = drawn(seed, size=7, depth=2)
    expected = o.matches(("window", expression, window), stream)
    automaton = rma.build(lowered(expression))
    assert rma.matches(rma.count_events(automaton, window), stream) == expected
    tree = rma.unroll(automaton, window)
    assert rma.matches(tree, stream) == expected
    assert rma.matches(rma.build(rma.Within(lowered(expression), window)), stream) == expected
    loops = [t for t in tree.transitions if t.target <= t.source]
    assert [(t.source, t.target) for t in loops] in ([], [(0, 0)]), "a tree but for the loop on its start"


@settings(max_examples=some(60))
@given(SEEDS, st.integers(1, 4))
def test_output_agnostic_determinisation_under_a_window(seed: int, window: int) -> None:
    """Corollary 6.7, from the tree and from the counter; and its complement as a recogniser."""
    _, expression, stream = drawn(seed, size=9, depth=2)
    expected = o.ends(o.matches(("window", expression, window), stream))
    automaton = rma.build(lowered(expression))
    for bounded in (rma.unroll(automaton, window), rma.count_events(automaton, window)):
        one = within_limits(partial(rma.determinise, bounded, output_agnostic=True, limits=LIMITS))
        assert rma.is_deterministic(one, output_agnostic=True)
        assert ends(rma.accepts(one, stream)) == expected
        whole = within_limits(partial(rma.determinise, bounded, output_agnostic=True, complete=True, limits=LIMITS))
        acceptor = rma.Acceptor(whole)
        assert ends([acceptor.push(event) for event in stream]) == expected
        assert acceptor.configurations == 1, "one run"
        assert ends(rma.accepts(rma.complement(whole), stream)) == set(range(len(stream))) - expected


def within_limits(work: Callable[[], rma.RMA]) -> rma.RMA:
    try:
        return work()
    except BudgetExceeded:
        assume(False)
        raise


@settings(max_examples=some(80))
@given(SEEDS, st.booleans())
def test_determinisation_keeps_the_matches(seed: int, windowed: bool) -> None:
    """Theorem 5.5, where the construction ends: with a window always, without one where registers are enough."""
    _, expression, stream = drawn(seed, size=7, depth=2)
    automaton = rma.build(lowered(expression))
    if windowed:
        expression, automaton = ("window", expression, 3), rma.count_events(automaton, 3)
    deterministic = within_limits(lambda: rma.determinise(automaton, limits=LIMITS))
    assert rma.is_deterministic(deterministic)
    assert rma.matches(deterministic, stream) == o.matches(expression, stream)


@settings(max_examples=some(80))
@given(SEEDS)
def test_any_automaton_runs_as_its_definition_says(seed: int) -> None:
    """Random automata, not from expressions; and the constructions that any automaton has."""
    rng = random.Random(seed)
    states, stream = rng.randrange(2, 4), random_stream(rng, 4)
    finals = {rng.randrange(states)}
    plain = [random_transition(rng, states) for _ in range(rng.randrange(1, 6))]
    automaton = rma.RMA(
        tuple(f"q{i}" for i in range(states)),
        frozenset({0}),
        frozenset(finals),
        ("r1", "r2"),
        tuple(rma.Transition(q, formula(c), p, frozenset(w), m) for q, c, p, w, m in plain),
    )
    try:
        rma.check_registers(automaton)
    except OptionError:
        assume(False)
    expected = o.walk_matches({0}, finals, plain, stream)
    assert rma.matches(automaton, stream) == expected
    assert {marked(run) for run in rma.accepting_runs(automaton, stream)} == expected
    assert rma.matches(rma.merge_alike(automaton), stream) == expected
    assert rma.matches(rma.single_final(automaton), stream) == expected
    assert rma.matches(rma.union(automaton, automaton), stream) == expected
    assert ends(rma.accepts(automaton, stream)) == o.ends(expected)
    behind = {i: {tuple(p + i for p in m) for m in o.walk_matches({0}, finals, plain, stream[i:])}
              for i in range(len(stream) + 1)}  # fmt: skip
    joined = {a + b for a in expected for b in behind[a[-1] + 1]}
    assert rma.matches(rma.concatenation(automaton, automaton), stream) == joined


def marked(run: tuple[rma.Configuration, ...]) -> tuple[int, ...]:
    """The positions of the events that a run marks."""
    return tuple(c.position - 1 for c in run if c.marks)


def random_transition(rng: random.Random, states: int) -> tuple[int, Any, int, tuple[str, ...], bool]:
    condition: Any = ("true",) if rng.random() < 0.4 else random_condition(rng, ["~", "~", "r1", "r2"])
    writes = tuple(r for r in ("r1", "r2") if rng.random() < 0.5)
    return rng.randrange(states), condition, rng.randrange(states), writes, rng.random() < 0.6


@settings(max_examples=some(60))
@given(SEEDS)
def test_what_a_state_can_do_its_simulators_can(seed: int) -> None:
    rng, expression, stream = drawn(seed, size=7, depth=2, beyond=True)
    automaton = rma.count_events(rma.build(lowered(expression)), rng.randrange(1, 4))
    plain = [t for t in automaton.transitions if not t.reads]  # what is in the registers plays no part

    def accepted_from(state: int) -> set[int]:
        from_here = rma.RMA(automaton.names, frozenset({state}), automaton.finals, automaton.registers, tuple(plain))
        return ends(rma.accepts(from_here, stream))

    without = rma.RMA(automaton.names, automaton.starts, automaton.finals, automaton.registers, tuple(plain))
    found = [accepted_from(q) for q in range(automaton.states)]
    for q, able in enumerate(simulators(without)):
        assert able >> q & 1
        assert all(found[q] <= found[p] for p in range(automaton.states) if able >> p & 1)


def test_of_the_runs_in_one_state_of_a_window_one_is_enough() -> None:
    """Twelve events of A ; B ; C: the youngest run behind A and the youngest behind B, not every set of them."""
    sequence = rma.Then(rma.Then(rma.event("A", "x"), rma.event("B", "y")), rma.event("C", "z"))
    counted = rma.count_events(rma.build(sequence), 12)
    one = rma.determinise(counted, output_agnostic=True, complete=True)
    assert one.states <= 12 * 12
    rng = random.Random(5)
    stream = [{"type": rng.choice("ABCDDD")} for _ in range(300)]
    assert rma.accepts(one, stream) == rma.accepts(counted, stream)


def many(test: Any, *drawn_from: Any) -> Any:
    """The same test on many more examples."""
    return pytest.mark.random(settings(max_examples=2000)(given(*drawn_from)(test.hypothesis.inner_test)))


test_many_expressions = many(test_contiguity_and_optional_parts, SEEDS)
test_many_concatenations = many(test_closure_under_union_and_concatenation, SEEDS)
test_many_iterations = many(test_closure_under_iteration, SEEDS)
test_many_single_runs = many(test_output_agnostic_determinisation_under_a_window, SEEDS, st.integers(1, 4))
test_many_determinisations = many(test_determinisation_keeps_the_matches, SEEDS, st.booleans())
test_many_automata = many(test_any_automaton_runs_as_its_definition_says, SEEDS)
