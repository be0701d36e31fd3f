"""Rewrites of formulas: golden pairs, the same answers before and after, normal forms that are normal, budgets."""

from __future__ import annotations

import dataclasses
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ceql
from ceql import rewrites
from ceql.semantics.check import check
from ceql.semantics.contradictions import contradictory
from ceql.semantics.filters import Leaf, as_test, leaves
from ceql.semantics.scopes import defined_names
from ceql.syntax import ast
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_formula, print_query
from ceql.syntax.walk import calls_of
from spaseq.core.engine import Settings
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from tests.support import harness, oracle, oracle_ceql_text
from tests.support.drawn_totals import totals_case
from tests.support.sizes import some
from tests.support.strategies import ceql_case, draw_stream

PAIRS = tomllib.loads((Path(__file__).parent / "rewrites.toml").read_text("utf-8"))["pair"]
LIMIT = Settings().rewrite_size
PREFIX = "SELECT * WHERE "
SAMPLE = 100
"""Random queries that every rewrite is compared on."""

each_pair = pytest.mark.parametrize("pair", PAIRS, ids=[f"{p['rule']}: {p['in'][:60]}" for p in PAIRS])


def read(text: str) -> ast.Query:
    query = parse(text)
    check(query, text)
    return query


def apply(rule: str, query: ast.Query, limit: int = LIMIT) -> tuple[ast.Query | None, list[str]]:
    """The query after a rule, None if nothing of it is left; and what was removed, columns counted in the formula."""
    match rule:
        case "safe_form":
            return rewrites.safe_form(query, limit), []
        case "remove_unsatisfiable":
            left, removed = rewrites.remove_unsatisfiable(query.where)
            shifted = [dataclasses.replace(r, span=dataclasses.replace(r.span, column=r.span.column - len(PREFIX)))
                       for r in removed]  # fmt: skip
            return None if left is None else dataclasses.replace(query, where=left), list(map(str, shifted))
        case "fold_constants":
            return dataclasses.replace(query, where=rewrites.fold_constants(query.where)), []
    found = getattr(rewrites, rule)(query.where, limit)
    return dataclasses.replace(query, where=found), []


@each_pair
def test_golden(pair: dict[str, Any]) -> None:
    found, removed = apply(pair["rule"], read(PREFIX + pair["in"]))
    expected = " ".join(pair["out"].split()) if "out" in pair else None
    assert (None if found is None else print_formula(found.where)) == expected
    assert removed == pair.get("removed", [])


@each_pair
def test_golden_pairs_match_the_same(pair: dict[str, Any]) -> None:
    before, after = PREFIX + pair["in"], PREFIX + pair["out"] if "out" in pair else None
    rng = random.Random(len(pair["in"]))
    by_definition = oracle_ceql_text.read(before)
    for _ in range(some(6)):
        stream = [dict(event) for event in draw_stream(rng, 8)]
        if "engine_only" in pair:
            assert harness.ceql_whole(before, stream) == harness.ceql_whole(str(after), stream)
            continue
        expected = oracle.evaluate(by_definition, stream)
        if after is None:
            assert expected == []
        else:
            assert oracle.evaluate(oracle_ceql_text.read(after), stream) == expected
            assert sorted(harness.ceql_whole(after, stream)) == expected
        assert sorted(harness.ceql_whole(before, stream)) == expected


RULES = ("fold_constants", "count_rounds", "pop_filters", "remove_unsatisfiable", "lp_normal_form", "safe_form")


@pytest.mark.parametrize("rule", RULES)
def test_random_queries_match_the_same(rule: str) -> None:
    """By the definitions alone, before and after."""
    changed = 0
    for seed in range(SAMPLE):
        case = (totals_case if rule == "count_rounds" else ceql_case)(random.Random(seed))
        query = read(case.text)
        try:
            after, _ = apply(rule, query)
            expected = oracle.evaluate(case.query, case.stream)
        except (oracle.TooBig, BudgetExceeded, UnsupportedFeature):
            continue
        if after is None:
            assert expected == [], case.text
            continue
        if after == query:
            continue
        changed += 1
        text = print_query(after)
        assert parse(text) == after, text
        try:
            found = oracle.evaluate(oracle_ceql_text.read(text), case.stream)
        except oracle.TooBig:
            continue
        assert found == expected, f"seed {seed}\n{case.text}\n{text}"
    least = {"fold_constants": 0, "count_rounds": 5, "pop_filters": 2, "remove_unsatisfiable": 1}
    assert changed >= least.get(rule, 20)


def _filters(node: ast.Formula) -> Iterator[ast.Filter]:
    if isinstance(node, ast.Filter):
        yield node
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, ast.Formula) and not isinstance(node, ast.Without):
                yield from _filters(part)


def _is_unary(leaf: Leaf) -> bool:
    return len(leaf.variables) == 1 and not any(True for _ in calls_of(leaf.condition))


def _is_lp(node: ast.Formula) -> bool:
    """[CEL] §5.2: conditions on one variable stand on definitions of it."""
    for found in _filters(node):
        atom = found.child.child if isinstance(found.child, ast.As) else found.child
        for leaf in leaves(as_test(found.condition)):
            if _is_unary(leaf) and not isinstance(atom, ast.EventType | ast.Without):
                return False
    return True


def test_normal_forms_are_normal() -> None:
    for seed in range(SAMPLE):
        query = read(ceql_case(random.Random(seed)).text)
        try:
            assert _is_lp(rewrites.lp_normal_form(query.where, LIMIT)), seed
            safe = rewrites.safe_form(query, LIMIT)
        except (BudgetExceeded, UnsupportedFeature):
            continue
        assert not rewrites.unsafe_variables(safe.where), seed
        assert rewrites.safe_form(safe, LIMIT) is safe


def test_unsafe_variables_are_named_with_their_place() -> None:
    (found,) = rewrites.unsafe_variables(read(PREFIX + "A AS x ; B AS y ; C AS x").where)
    assert (found[0], found[1].column) == ("x", len(PREFIX) + 24)
    explained = ceql.compile(PREFIX + "A AS x ; C AS x").explain()
    assert "x is bound again at 1:30: it holds the events of both (not safe, [CEL])" in explained


def test_explosions_meet_the_budget() -> None:
    many = " ; ".join(["A AS x"] * 8 + ["B AS y"] * 8 + ["C AS z"] * 8)
    with pytest.raises(BudgetExceeded, match=r"rewrite_size is 100 conditions and 512 are needed") as caught:
        rewrites.safe_form(read(PREFIX + many + " FILTER x.a + y.a < z.a"), 100)
    assert "x (8 names), y (8 names), z (8 names) in the condition at line 1" in str(caught.value)
    ways = " ; ".join(f"((B FILTER x.a > {i}) OR C)" for i in range(8))
    with pytest.raises(BudgetExceeded, match=r"rewrite_size is 100 nodes.*\n.*the condition on x at line 1, column"):
        rewrites.lp_normal_form(read(f"{PREFIX}A AS x ; {ways}").where, 100)


def test_a_query_is_compiled_as_far_as_the_budget_allows() -> None:
    """The conditions that are not moved out are decided by registers."""
    ways = " ; ".join(f"((B FILTER x.a > {i}) OR C)" for i in range(3))
    text = f"{PREFIX}A AS x ; {ways}"
    events: list[dict[str, Any]] = [{"type": "A", "a": 2}, {"type": "B"}, {"type": "C"}, {"type": "C"}, {"type": "B"}]
    expected = oracle.evaluate(oracle_ceql_text.read(text), events)
    for limit, registers in ((2000, False), (40, True), (1, True)):
        query = ceql.compile(text, settings=Settings(rewrite_size=limit))
        assert query.automaton.has_registers == registers
        found = [(m.start, m.end, m.positions) for m in query.run(events)]
        assert sorted(found) == expected


def test_deep_formulas_are_compiled_as_they_stand() -> None:
    for length in (150, 700):
        query = read(PREFIX + "; ".join(["A"] * length) + " FILTER A.a > 1 + 1")
        assert (rewrites.rewrite(query, LIMIT).query is query) == (length == 700)


def test_what_cannot_be_matched_is_said() -> None:
    query = ceql.compile("SELECT * WHERE (A AS x FILTER x.a > 5 AND x.a < 3) OR B")
    assert query.warnings == ("<query>:1:17: A AS x: a > 5 and a < 3 never hold together",)
    assert "left out, as no stream matches it:\n  1:17: A AS x: a > 5 and a < 3 never" in query.explain()
    nothing = ceql.compile("SELECT * WHERE A AS x FILTER x.a > 5 AND x.a < 3")
    assert nothing.warnings[-1] == "<query>: no stream has a match: the query reports nothing"
    assert "which is all of it" in nothing.explain()
    assert nothing.run([{"type": "A", "a": 4}]).count() == 0


def test_a_copy_of_a_part_that_cannot_be_matched_is_not_said() -> None:
    """φ6 of [CEL] §5.2 has matches by each of its alternatives. Its x is copied, and a copy matches nothing."""
    query = ceql.compile("SELECT * WHERE T AS x ; ((T AS y FILTER x.tmp >= 40) OR (H AS y FILTER x.tmp < 40))")
    assert query.warnings == () and "left out" not in query.explain()
    both = ceql.compile("SELECT * WHERE A AS x ; ((B FILTER x.a > 1) OR C) FILTER (x.a > 5 AND x.a < 3) OR x.a = 1")
    assert [line.split(": ")[-1] for line in both.warnings] == ["a > 5 and a < 3 never hold together"]
    gone = ceql.compile("SELECT * WHERE (A AS x FILTER x.a > 5) ; ((B FILTER x.a < 3) OR C)")
    assert gone.warnings == ("<query>:1:17: A AS x: a < 3 and a > 5 never hold together",), "so no B is left"


def test_a_selected_variable_that_is_left_out_is_empty() -> None:
    query = ceql.compile("SELECT x WHERE (A AS x FILTER x.a > 5 AND x.a < 3) OR B")
    assert [m.positions for m in query.run([{"type": "B"}])] == [()]


def _condition(text: str) -> ast.Condition:
    (leaf,) = leaves(as_test(read(f"{PREFIX}A FILTER A[({text}) OR 1 > 2]").where.condition))  # type: ignore[attr-defined]
    return leaf.condition


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = TRUE AND a = FALSE", True),
        ("a != TRUE AND a != FALSE", True),
        ("a != TRUE", False),
        ("a = 1 AND a = 1.0", False),
        ("a = 'x' AND a = 1", False),  # the types are wrong, which is for another check
        ("a IN {1, 2} AND a != 1 AND a != 2", True),
        ("a >= 1 AND a <= 1 AND a != 1", True),
        ("(a = 1 OR a = 2) AND (a = 3 OR a = 4)", True),
        ("(a = 1 OR b = 2) AND a = 3 AND b = 4", True),
        ("(a = 1 OR b = 2) AND a = 3", False),
        ("3 > a AND 5 < a", True),
        ("a = '5' AND a = '5.0'", False),  # one time, as seconds
        ("a = 'x' AND a = 'y'", True),
        ("a LIKE 'x.*' AND a NOT LIKE 'x.*'", False),  # not looked into
        ("a / 0 = 1", False),
        ("NOT (a < 1 OR a >= 1)", True),
    ],
)
def test_contradictions(text: str, expected: bool) -> None:
    assert contradictory([_condition(text)]) is expected
    assert defined_names(read(PREFIX + "A").where) == {"A"}


def test_a_column_of_a_variable_with_several_names_has_no_safe_form() -> None:
    """Its name would stand for a part of its events."""
    safe = read("SELECT x.v, y.v AS w WHERE A AS x ; B AS y")
    assert rewrites.safe_form(safe, LIMIT) is safe
    with pytest.raises(UnsupportedFeature, match="that reads x, bound on both sides"):
        rewrites.safe_form(read("SELECT x.v WHERE A AS x ; B AS y ; C AS x"), LIMIT)
