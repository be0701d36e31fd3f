"""parse(print(tree)) == tree, for any tree that the parser gives."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceql.semantics.scopes import absences
from ceql.syntax import ast
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_expression, print_query
from spaseq.core.pattern import Preference, Skip
from spaseq.core.trees import walk
from tests.support.sizes import some

names = st.sampled_from(["A", "b", "x1", "Größe", "select", "Like", "max", "with space", "1st", "and", "true", "null"])
name_nodes = names.map(ast.Name)
numbers = st.builds(
    ast.Number, st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False, width=64)
)
texts = st.builds(
    ast.Text, st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs", "Cc"]), max_size=6)
)
truths = st.booleans().map(ast.Truth)
literals = numbers | texts | truths


def values(in_brackets: bool) -> st.SearchStrategy[ast.Expression]:
    variable = st.none() | names if in_brackets else names
    attributes = st.builds(ast.Attribute, names, variable)
    earlier = st.builds(ast.Earlier, attributes, st.integers(int(in_brackets), ast.MOST_BACK))
    leaves = literals | attributes | earlier | st.builds(ast.Null)
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(ast.Arithmetic, st.sampled_from("+-*/%"), inner, inner)
            | st.builds(ast.Negate, inner).filter(lambda n: not isinstance(n.child, ast.Number))
        ),
        max_leaves=4,
    )


def conditions(in_brackets: bool) -> st.SearchStrategy[ast.Condition]:
    value = values(in_brackets)
    bounds = st.tuples(value, value) | st.tuples(literals, st.none()) | st.tuples(st.none(), literals)
    leaves: st.SearchStrategy[ast.Condition] = (
        st.builds(ast.Compare, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), value, value)
        | st.builds(ast.Like, value, texts.map(lambda t: t.value))
        | st.builds(ast.In, value, st.lists(literals, min_size=1, max_size=3).map(tuple))
        | st.builds(lambda v, b: ast.InRange(v, *b), value, bounds)
    )
    if not in_brackets:
        leaves = leaves | st.builds(ast.Holds, name_nodes, conditions(True))
    return st.recursive(
        leaves,
        lambda inner: st.builds(ast.And, inner, inner) | st.builds(ast.Or, inner, inner) | st.builds(ast.Not, inner),
        max_leaves=4,
    )


def repetition(
    child: ast.Formula, low: int, more: int | None, skip: Skip, preference: Preference, until: ast.Formula | None
) -> ast.Formula:
    high = None if more is None else max(1, low + more)
    if (low, high) == (0, 1):
        skip = Skip.ANY  # `?`
    return ast.Repeat(child, low, high, skip, preference, None if until is None else ast.Without(until))


formulas = st.recursive(
    st.builds(ast.EventType, names, st.none() | name_nodes)
    | st.builds(ast.EventType, st.just(ast.EVERY), st.none() | name_nodes, st.just(True)),
    lambda inner: (
        st.builds(ast.As, inner, name_nodes)
        | st.builds(ast.Filter, inner, conditions(False))
        | st.builds(ast.Either, inner, inner)
        | st.builds(ast.Sequence, inner, inner, st.sampled_from(Skip))
        | st.builds(repetition, inner, st.integers(0, 5), st.none() | st.integers(0, 5), st.sampled_from(Skip),
                    st.sampled_from(Preference), st.none() | inner)
        | st.builds(ast.Without, inner)
        | st.builds(ast.Conjunction, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=6,
)  # fmt: skip
selected = st.builds(ast.Selected, names, st.lists(name_nodes, max_size=2).map(tuple))
selections = st.builds(
    ast.Selection, st.none() | st.sampled_from(ast.Strategy), st.none() | st.lists(selected, max_size=2).map(tuple)
)
windows = (
    st.builds(ast.WithinEvents, st.integers(0, 10**6))
    | st.builds(ast.WithinTime, st.integers(0, 2**62) | st.integers(0, 10**6).map(lambda n: n * 10**9))
    | st.builds(ast.WithinAttribute, st.integers(0, 10**9) | st.floats(0, 1e9), name_nodes)
)
queries = st.builds(
    ast.Query,
    selections,
    st.lists(name_nodes, max_size=2).map(tuple),
    formulas,
    st.lists(st.lists(name_nodes, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple),
    st.none() | windows,
    st.none() | st.sampled_from(ast.Consume).map(ast.Consumption),
    st.none() | st.integers(0, 99).map(ast.Limit),
)


@settings(max_examples=some(300), deadline=None)
@given(queries)
def test_round_trip(query: ast.Query) -> None:
    """Up to sequences with several NOTs in a row, which parsing joins."""
    read = parse(print_query(query))
    assert parse(print_query(read)) == read
    if not any(isinstance(part, ast.Without) for node in walk(query.where) for part in absences(node)):
        assert read == query


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("A ; NOT B ; NOT C ; D", "A ; NOT (B OR C) ; D"),
        ("A ; (NOT B ; C)", "A ; NOT B ; C"),
        ("NOT B ; NOT C ; NOT E ; D", "NOT (B OR (C OR E)) ; D"),
        ("NOT B -> (NOT C -> D)", "NOT (B OR C) -> D"),
        ("X ; (NOT B ; C)+ ; D", "X ; (NOT B ; C)+ ; D"),
        ("((A ; NOT B) OR C) ; D", "(A ; NOT B OR C) ; D"),
        ("X ; AND(A, NOT B, C)", "X ; AND(A, NOT B, C)"),
        ("NOT B ; NOT C", "NOT B ; NOT C"),
    ],
)
def test_sequences_with_nots(text: str, printed: str) -> None:
    read = parse(f"SELECT * WHERE {text}")
    assert print_query(read) == f"SELECT *\nWHERE {printed}"
    assert parse(print_query(read)) == read


def test_each_keyword_is_printed_in_quotes_where_it_is_a_name() -> None:
    grammar = (files("ceql.syntax") / "grammar.lark").read_text(encoding="utf-8")
    keywords = set(re.findall(r'"([A-Z]+)"i', grammar))
    assert {"WITHIN", "LIKE", "EVENT"} <= keywords
    assert {word for word in keywords if print_expression(ast.Attribute(word)) != f"`{word}`"} == set()
