"""[RMA]'s own examples: stream, expressions (1) to (4), figures, runs; and two theorems that fail as printed."""

from __future__ import annotations

import pytest

from spaseq.core.automata import rma
from spaseq.core.automata.rma import Either, Then, Where, Within, compare, event, relate
from spaseq.core.errors import BudgetExceeded, OptionError, QuerySemanticsError
from tests.support import oracle_rma as o

TABLE_1 = [
    {"type": kind, "id": sensor, "value": value}
    for kind, sensor, value in (("T", 1, 22), ("T", 1, 24), ("T", 2, 32), ("H", 1, 70), ("H", 1, 68), ("T", 2, 33))
]
PAIRS = Then(event("T", "x"), event("H", "y"))
PHI_1 = Where(PAIRS, relate("x.id", "=", "y.id"))
PHI_2 = Then(rma.Plus(Where(event("T", "x"), relate("x.id", "=", "y.id"))), event("H", "y"))
PHI_4 = Where(
    Then(
        Either(
            Where(event("T", "x"), compare("x.value", "<", -40)), Where(event("T", "x"), compare("x.value", ">", 50))
        ),
        event("T", "y"),
    ),
    relate("y.id", "=", "x.id"),
)
NESTED = rma.Plus(
    Then(
        Where(Then(event("T", "x1"), event("T", "x2")), relate("x1.value", "=", "x2.value")),
        rma.Plus(Where(Then(event("H", "x3"), event("H", "x4")), relate("x3.value", "=", "x4.value"))),
    )
)


def arrows(automaton: rma.RMA) -> set[tuple[str, str, str]]:
    """(source, label, target) of each transition."""
    return {(automaton.names[t.source], t.label(), automaton.names[t.target]) for t in automaton.transitions}


def test_figure_1() -> None:
    automaton = rma.build(PHI_1)
    assert (
        automaton.describe()
        == """\
3 states, 4 transitions, registers: r1
  q0 (start)
    TRUE / (~) / ∅ / ∘ → q0
    ~.type = T / (~) / {r1} / • → q1
  q1
    TRUE / (~) / ∅ / ∘ → q1
    ~.type = H ∧ r1.id = ~.id / (~, r1) / ∅ / • → q3
  q3 (final)"""
    )
    assert rma.is_deterministic(automaton), "as the paper says below Definition 5.3"
    assert not rma.is_deterministic(automaton, output_agnostic=True)


def test_pairs_and_expression_1_over_table_1() -> None:
    assert rma.matches(rma.build(PAIRS), TABLE_1) == {(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)}
    # The text says "the same, except for {2,3}"; t2 and t4 differ in their sensors as well.
    assert rma.matches(rma.build(PHI_1), TABLE_1) == {(0, 3), (0, 4), (1, 3), (1, 4)}


def test_run_3() -> None:
    """After the first four events the accepting runs are {1,3}, which the paper writes out, and {0,3}."""
    assert rma.matches(rma.build(PHI_1), TABLE_1[:4]) == {(0, 3), (1, 3)}
    shown = {rma.show_run(run) for run in rma.accepting_runs(rma.build(PHI_1), TABLE_1[:4])}
    assert shown == {
        "[0, q0, ♯] •→ [1, q1, r1 = t0] ∘→ [2, q1, r1 = t0] ∘→ [3, q1, r1 = t0] •→ [4, q3, r1 = t0]",
        "[0, q0, ♯] ∘→ [1, q0, ♯] •→ [2, q1, r1 = t1] ∘→ [3, q1, r1 = t1] •→ [4, q3, r1 = t1]",
    }
    assert TABLE_1[1] == {"type": "T", "id": 1, "value": 24}


def test_expression_2_is_not_bounded() -> None:
    with pytest.raises(QuerySemanticsError) as error:
        rma.build(PHI_2)
    assert error.value.problem == (
        "not a bounded expression: variable y used but not defined in what the condition stands on: "
        "x.id = y.id, a condition on (T AS x)"
    )


def test_what_else_is_not_bounded() -> None:
    shared = Then(event("T", "x"), event("H", "x"))
    with pytest.raises(QuerySemanticsError, match="variable x defined on both sides of ;"):
        rma.construct(shared)
    iterated = Where(Then(rma.Plus(event("T", "x")), event("H", "y")), relate("x.id", "=", "y.id"))
    with pytest.raises(QuerySemanticsError, match="variable x may have no event or several there"):
        rma.construct(iterated)
    one_side = Where(Then(Either(event("T", "x"), event("H", "z")), event("H", "y")), relate("x.id", "=", "y.id"))
    with pytest.raises(QuerySemanticsError, match="variable x may have no event or several there"):
        rma.construct(one_side)
    with pytest.raises(QuerySemanticsError, match="WINDOW inside an expression"):
        rma.build(Then(Within(event("T", "x"), 2), event("H", "y")))


def test_nested_iterations_are_bounded() -> None:
    """The paper's example at the end of §3."""
    assert rma.bound_names(NESTED) == frozenset()
    events = [("T", 1), ("H", 9), ("T", 1), ("H", 5), ("T", 7), ("H", 5), ("H", 6), ("H", 6)]
    stream = [{"type": kind, "value": value} for kind, value in events]
    e = (
        "+",
        (
            ";",
            ("filter", (";", ("as", "T", "a"), ("as", "T", "b")), ("=", ("a", "value"), ("b", "value"))),
            ("+", ("filter", (";", ("as", "H", "c"), ("as", "H", "d")), ("=", ("c", "value"), ("d", "value")))),
        ),
    )
    expected = o.matches(e, stream)
    assert expected == {(0, 2, 3, 5), (0, 2, 6, 7), (0, 2, 3, 5, 6, 7)}
    assert rma.matches(rma.build(NESTED), stream) == expected


def test_figure_2() -> None:
    """Three base automata, two states and four ε for OR, one ε for `;`, and the condition on the last transition."""
    automaton = rma.construct(PHI_4)
    assert (
        automaton.describe()
        == """\
8 states, 11 transitions, registers: r1
  q0
    TRUE / (~) / ∅ / ∘ → q0
    ~.type = T ∧ ~.value < -40 / (~) / {r1} / • → q1
  q1
    ε → q5
  q2
    TRUE / (~) / ∅ / ∘ → q2
    ~.type = T ∧ ~.value > 50 / (~) / {r1} / • → q3
  q3
    ε → q5
  q4 (start)
    ε → q0
    ε → q2
  q5
    ε → q6
  q6
    TRUE / (~) / ∅ / ∘ → q6
    ~.type = T ∧ ~.id = r1.id / (~, r1) / ∅ / • → q7
  q7 (final)"""
    )
    assert len(automaton.registers) == 1, "one register for x, whichever alternative binds it"


def test_expression_4() -> None:
    automaton = rma.build(PHI_4)
    assert rma.matches(automaton, TABLE_1) == set()
    broken = [{"type": "T", "id": i, "value": v} for i, v in ((1, 60), (2, 20), (1, 20), (2, -41), (2, 0))]
    assert rma.matches(automaton, broken) == {(0, 2), (3, 4)}
    assert not rma.eliminate_epsilon(automaton).has_epsilon


@pytest.mark.parametrize(("window", "states", "registers"), [(2, 3, 1), (3, 8, 2)])
def test_figure_3a(window: int, states: int, registers: int) -> None:
    """w = 2: three states in a row, one register. w = 3: the whole tree, and two registers for two T before an H."""
    tree = rma.unroll(rma.build(PHI_1), window)
    assert (tree.states, len(tree.registers)) == (states, registers)
    inside = [t for t in tree.transitions if (t.source, t.target) != (0, 0)]
    assert len({t.target for t in inside}) == len(inside) == states - 1, "a tree"


def test_figure_3b() -> None:
    automaton = rma.determinise(rma.unroll(rma.build(PHI_1), 2), output_agnostic=True)
    assert (
        automaton.describe()
        == """\
3 states, 7 transitions, registers: r1
  {q0} (start)
    ~.type = T / (~) / {r1} / • → {q0, q0·q1}
    ¬(~.type = T) / (~) / ∅ / ∘ → {q0}
  {q0, q0·q1}
    ~.type = T / (~) / {r1} / • → {q0, q0·q1}
    ~.type = H ∧ r1.id = ~.id / (~, r1) / ∅ / • → {q0, q0·q1·q3}
    ¬(~.type = T) ∧ ¬(~.type = H ∧ r1.id = ~.id) / (~, r1) / ∅ / ∘ → {q0}
  {q0, q0·q1·q3} (final)
    ~.type = T / (~) / {r1} / • → {q0, q0·q1}
    ¬(~.type = T) / (~) / ∅ / ∘ → {q0}"""
    )
    assert rma.is_deterministic(automaton, output_agnostic=True)


def test_two_t_and_an_h_are_marked_alike_below_corollary_6_7() -> None:
    """The unrolled automaton marks the second T and the H; its single run marks both T as well."""
    stream = [{"type": kind, "id": 1} for kind in "TTH"]
    tree = rma.unroll(rma.build(PHI_1), 2)
    assert rma.matches(tree, stream) == {(1, 2)}
    assert rma.matches(rma.determinise(tree, output_agnostic=True), stream) == {(0, 1, 2)}


def test_theorem_6_2_no_number_of_registers_is_enough() -> None:
    for registers in (1, 2, 5):
        with pytest.raises(BudgetExceeded, match=f"max_registers is {registers}"):
            rma.determinise(rma.build(PHI_1), output_agnostic=True, limits=rma.Limits(max_registers=registers))


def test_a_loop_on_the_start_must_not_overwrite_what_a_run_still_reads() -> None:
    """Corollary 6.7 with Algorithm 5 as printed: at the second T the run that waits for the first one's H loses r1."""
    stream = [{"type": kind, "id": sensor} for kind, sensor in (("T", 1), ("T", 2), ("H", 1))]
    tree = rma.unroll(rma.build(PHI_1), 3)
    assert rma.matches(tree, stream) == {(0, 2)}
    automaton = rma.determinise(tree, output_agnostic=True)
    assert rma.accepts(automaton, stream) == [False, False, True]
    both = [t for t in automaton.transitions if len(t.reads) == 2]
    assert both, "two sensors are compared with at once"
    counted = rma.determinise(rma.count_events(rma.build(PHI_1), 3), output_agnostic=True)
    assert rma.accepts(counted, stream) == [False, False, True]


def test_theorem_5_5_does_not_hold_for_determinisation_without_a_window() -> None:
    """T+ ; T AS x ; T+ ; H AS y FILTER x.id = y.id: one set of marks, and any T but the first and the last may be x."""
    inner = Then(Then(rma.Plus(event("T", "u")), event("T", "x")), rma.Plus(event("T", "v")))
    expression = Where(Then(inner, event("H", "y")), relate("x.id", "=", "y.id"))
    stream = [{"type": kind, "id": i} for i, kind in enumerate("TTTTH")]
    for sensor in range(5):
        stream[4]["id"] = sensor
        found = rma.matches(rma.build(expression), stream)
        assert ((0, 1, 2, 3, 4) in found) == (sensor in (1, 2))
    with pytest.raises(BudgetExceeded, match="max_registers is 6 registers and 7 are needed"):
        rma.determinise(rma.build(expression), limits=rma.Limits(max_registers=6))
    windowed = rma.determinise(rma.count_events(rma.build(expression), 5))
    stream[4]["id"] = 2
    assert (0, 1, 2, 3, 4) in rma.matches(windowed, stream)


def test_limits_on_states_and_minterms() -> None:
    automaton = rma.build(PHI_1)
    with pytest.raises(BudgetExceeded, match="max_states is 50"):
        rma.unroll(automaton, 40, limits=rma.Limits(max_states=50))
    with pytest.raises(BudgetExceeded, match="max_minterms is 1 "):
        rma.determinise(rma.unroll(automaton, 4), output_agnostic=True, limits=rma.Limits(max_minterms=1))
    with pytest.raises(BudgetExceeded, match=r"max_moves is 10 .*\n.*rma\.Limits"):
        rma.determinise(rma.unroll(automaton, 4), output_agnostic=True, limits=rma.Limits(max_moves=10))


def test_complement_needs_a_deterministic_automaton() -> None:
    with pytest.raises(OptionError, match="not complete and output-agnostic deterministic"):
        rma.complement(rma.build(PHI_1))


def test_leaving_out_a_part_is_decided_before_its_first_round() -> None:
    """(T+ ; T)? has no match of a single T: the iteration's rounds begin behind the choice, not at it."""
    expression = rma.Maybe(Then(rma.Plus(event("T", "x")), event("T", "y")))
    stream = [{"type": "T"}, {"type": "H"}, {"type": "T"}]
    assert rma.matches(rma.build(expression), stream) == {(0, 2)}


def test_adjacent_rounds_do_not_wait_for_what_is_left_out() -> None:
    """(H+ OR T?):+ : between two rounds nothing passes, though an H+ inside may wait for its next H."""
    rounds = Either(rma.Plus(event("H", "x")), rma.Maybe(event("T", "y")))
    stream = [{"type": kind} for kind in "HTTHT"]
    found = rma.matches(rma.build(rma.Plus(rounds, adjacent=True)), stream)
    e = (":+", ("or", ("+", ("as", "H", "x")), ("?", ("as", "T", "y"))))
    assert found == o.matches(e, stream)
    assert (0, 3) in found and (0, 2) not in found


def test_given_registers_and_regular_operators() -> None:
    """An event written to r, then at once one or more that rise above it, then one of the same value."""
    rise = rma.read("T", where=rma.Test(rma.Relates("value", ">", "value"), ("~", "r")))
    same = rma.read("T", where=rma.Test(rma.Relates("value", "=", "value"), ("~", "r")))
    rising = Then(rma.read("T", writes="r"), rma.Plus(rise, adjacent=True), adjacent=True)
    expression = Then(rising, same, adjacent=True)
    stream = [{"type": "T", "value": v} for v in (3, 1, 2, 5, 1, 1)]
    assert rma.matches(rma.build(expression), stream) == {(1, 2, 3, 4)}
    with pytest.raises(OptionError, match="reads r, which may be empty there"):
        rma.build(rise)
