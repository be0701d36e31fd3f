"""Tree to pattern: what each construct becomes."""

from __future__ import annotations

import pytest

import ceql
from ceql.expressions.predicates import Satisfies, StreamIs, TypeIs
from ceql.guards.guard import Guard
from ceql.lowering.lower import Lowered, lower
from ceql.semantics.check import check
from ceql.syntax.parse import parse
from spaseq.core.engine import Choice, Consume, Selection, Settings, Window
from spaseq.core.errors import BudgetExceeded
from spaseq.core.pattern import And, As, Atom, Correlate, Filter, Iterate, NoneOf, Or, Pattern, Project, Sequence, Skip


def lowered(text: str) -> Lowered:
    tree = parse(text)
    check(tree, text)
    return lower(tree, text)


def pattern(formula: str) -> Pattern:
    return lowered(f"SELECT * WHERE {formula}").pattern


def atom(name: str, *more: str) -> Atom:
    return Atom(frozenset((TypeIs(name),)), frozenset((name, *more)))


def test_atoms_take_their_type_as_a_variable() -> None:
    assert pattern("A") == atom("A")
    assert pattern("s>A") == Atom(frozenset((TypeIs("A"), StreamIs("s"))), frozenset(("A", "s>A")))


def test_operators() -> None:
    assert pattern("A ; B : C") == Sequence(Sequence(atom("A"), atom("B"), Skip.ANY), atom("C"), Skip.NONE)
    assert pattern("A+ OR B:+ AS x") == Or(Iterate(atom("A"), Skip.ANY), As(Iterate(atom("B"), Skip.NONE), "x"))


def predicate(text: str) -> Satisfies:
    (found,) = [f for f in _filters(pattern(f"A FILTER A[{text}]"))]
    return found


def _filters(node: Pattern) -> list[Satisfies]:
    return [node.predicate, *_filters(node.child)] if isinstance(node, Filter) else []  # type: ignore[list-item]


def test_conjunctions_become_filters_of_their_own() -> None:
    expected = Filter(Filter(atom("A"), "A", predicate("p > 1")), "A", predicate("q = 2"))
    assert pattern("A FILTER A[p > 1 AND q = 2]") == expected
    assert pattern("A FILTER A[p > 1] AND A[q = 2]") == expected
    assert pattern("A FILTER A.p > 1 FILTER A.q = 2") == expected


def test_or_distributes_over_formulas() -> None:
    one, two = predicate("p > 1"), predicate("q = 2")
    both = Iterate(atom("A"), Skip.ANY)
    assert pattern("A+ FILTER A[p > 1] OR A[q = 2]") == Or(Filter(both, "A", one), Filter(both, "A", two))
    pair = Sequence(atom("A"), atom("B"), Skip.ANY)
    assert pattern("A ; B FILTER A[p > 1] OR B[q = 2]") == Or(Filter(pair, "A", one), Filter(pair, "B", two))


def test_or_about_one_event_stays_one_filter() -> None:
    assert pattern("A ; B FILTER A[p > 1] OR A[q = 2]") == Filter(
        Sequence(atom("A"), atom("B"), Skip.ANY), "A", predicate("p > 1 OR q = 2")
    )


def test_negation_goes_inward() -> None:
    assert pattern("A FILTER NOT (A[p > 1] OR A[q = 2])") == Filter(
        Filter(atom("A"), "A", predicate("NOT p > 1")), "A", predicate("NOT q = 2")
    )


def test_conditions_on_several_variables_correlate() -> None:
    node = pattern("A AS x ; B AS y FILTER x.p < y.p AND y[q > x.q]")
    assert isinstance(node, Correlate) and isinstance(node.child, Correlate)
    assert node.variables == node.child.variables == frozenset("xy")
    assert [str(node.child.guard), str(node.guard)] == ["x.p < y.p", "y.q > x.q"]


def test_a_condition_reaches_variables_of_a_wider_scope() -> None:
    """[CEL] §2, φ4: the filter inside the iteration is about x, outside of it."""
    node = pattern("H AS x ; (T AS y FILTER y.id > x.id)+")
    assert isinstance(node, Correlate) and isinstance(node.guard, Guard)
    assert str(node.guard) == "`y#1`.id > x.id" and node.variables == frozenset(("x", "y#1"))
    assert node.child == Sequence(As(atom("H"), "x"), Iterate(As(As(atom("T"), "y"), "y#1"), Skip.ANY), Skip.ANY)


def test_select_projects() -> None:
    assert lowered("SELECT A WHERE A ; B").pattern == Project(
        Sequence(atom("A"), atom("B"), Skip.ANY), frozenset(("A",))
    )
    assert lowered("SELECT NONE WHERE A").pattern == Project(atom("A"), frozenset())


@pytest.mark.parametrize(
    ("clause", "window", "attribute"),
    [
        ("", Window("none"), None),
        ("WITHIN 5 EVENTS", Window("events", 5), None),
        ("WITHIN 1.5 SECONDS", Window("span", 1_500_000_000), None),
        ("WITHIN 100 [t]", Window("span", 100), "t"),
    ],
)
def test_windows(clause: str, window: Window, attribute: str | None) -> None:
    found = lowered(f"SELECT * WHERE A {clause}")
    assert (found.window, found.window_attribute) == (window, attribute)


def test_partition_and_strict() -> None:
    found = lowered("SELECT STRICT * WHERE A PARTITION BY [a, b], [c]")
    assert found.strict and found.partition == (("a", "b"), ("c",))


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("SELECT * WHERE A", Choice()),
        ("SELECT NEXT * WHERE A LIMIT 3", Choice(Selection.NEXT, limit=3)),
        ("SELECT STRICT * WHERE A CONSUME BY ANY", Choice(consume=Consume.ANY)),
        ("SELECT MAX * WHERE A CONSUME BY PARTITION", Choice(Selection.MAX, Consume.PARTITION)),
    ],
)
def test_what_is_chosen_and_consumed(text: str, choice: Choice) -> None:
    assert lowered(text).choice == choice


def test_conjunction_and_repetition() -> None:
    a, b, c = atom("A"), atom("B"), atom("C")
    assert pattern("AND(A, B, C)") == And(And(a, b), c)
    assert pattern("A{1}") == a and pattern("A{2}") == Sequence(a, a, Skip.ANY)
    assert pattern("A{1,2}") == Or(a, Sequence(a, a, Skip.ANY))
    assert pattern("A{2,}") == Sequence(a, Iterate(a, Skip.ANY), Skip.ANY)


def test_not_between_two_parts_is_absent() -> None:
    node = pattern("A AS a ; NOT ((B AS b FILTER b.id = a.id AND b[p > 1]) OR C) ; D")
    assert isinstance(node, Correlate) and isinstance(node.child, Sequence)
    b, c = node.child.absent
    assert node.guard == b.guard and str(b.guard) == "`#1`.id = a.id" and node.variables == frozenset(("a", "#1"))
    assert b.predicates == frozenset((TypeIs("B"), predicate("p > 1"))) and b.variables == frozenset(("#1",))
    assert c.predicates == frozenset((TypeIs("C"),)) and c.guard is None
    assert node.child.skip is Skip.ANY and node.child.right == atom("D")


def test_not_at_the_end_is_apart_from_the_pattern() -> None:
    found = lowered("SELECT * WHERE (A ; NOT B) FILTER A[p > 1] WITHIN 5 EVENTS")
    assert found.pattern == Filter(atom("A"), "A", predicate("p > 1"))
    assert found.around.absent == NoneOf(frozenset((frozenset((TypeIs("B"),)),)))


def test_any_other_not_is_one_event() -> None:
    other = NoneOf(frozenset((frozenset((TypeIs("B"),)),)))
    for node in (pattern("A : NOT B").right, pattern("A ; (NOT B) AS n").right.child):  # type: ignore[attr-defined]
        assert isinstance(node, Atom) and node.predicates == frozenset((other,)) and node.variables


def test_conditions_with_aggregates_correlate() -> None:
    node = pattern("A+ AS a FILTER COUNT(a) >= 3 AND a[p > 1]")
    assert isinstance(node, Filter) and isinstance(node.child, Correlate)
    assert node.child.variables == frozenset("a") and str(node.child.guard) == "COUNT(a) >= 3"


def test_ends_of_loops_have_a_budget() -> None:
    ends = f"({' OR '.join(f'X{i}' for i in range(7))})"
    text = f"SELECT * WHERE A -> ((B->+ UNTIL {ends})->+ UNTIL {ends})->+ UNTIL {ends} -> C"
    with pytest.raises(BudgetExceeded, match="negated_conditions"):
        ceql.compile(text).program()
    more = Settings(negated_conditions=9)
    assert ceql.compile(text, settings=more).program().cea.states > 3
