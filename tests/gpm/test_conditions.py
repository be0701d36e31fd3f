"""Basic graph patterns by the plan against rdflib's matching, and conditions on one mapping against the plan's
columns."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Literal, URIRef

from spaseq.gpm import EventGraph, Knowledge, PatternEvaluator, holds
from spaseq.gpm.columnar.evaluate import value_on
from spaseq.rdf import plain_literal
from tests.gpm.test_columnar import XSD_, E, pattern

_open = st.sampled_from(["?x", "?y", "?z", "_:b"])
_fixed = st.sampled_from([":a", ":b", ":p", ":q"])
_patterns = st.lists(
    st.tuples(
        _open | _fixed, _open.filter(lambda t: t != "_:b") | _fixed, _open | _fixed | st.sampled_from(["1", "'1'"])
    ),
    min_size=1,
    max_size=4,
)
_terms = st.sampled_from([URIRef(E + name) for name in "abpq"])
_objects = _terms | st.sampled_from([Literal(1), Literal("1"), Literal("1", datatype=URIRef(XSD_ + "string"))])
_facts = st.lists(st.tuples(_terms, _terms, _objects), max_size=6)


@given(_patterns, _facts)
def test_basic_graph_patterns(triples: list[tuple[str, str, str]], facts: list[tuple[Any, Any, Any]]) -> None:
    evaluator = PatternEvaluator(pattern("{ " + " . ".join(" ".join(t) for t in triples) + " }"), Knowledge())
    facts = list(dict.fromkeys((s, p, plain_literal(o)) for s, p, o in facts))
    assert value_on(evaluator, facts) == evaluator.by_rdflib(EventGraph(facts))


_values = [
    "1", "1.0", "01", "1e0", "2", "'1'", "'b'", "'b'@en", "true", ":a", "'x'^^:t", "'y'^^:t", "'2019-01-01'^^xsd:date",
    "'no'^^xsd:int", "0.1", "0.1e0", "1e400",
    "'2020-01-01T00:00:00Z'^^xsd:dateTime", "'2020-01-01T00:00:00'^^xsd:dateTime", "'NaN'^^xsd:double",
]  # fmt: skip


@pytest.mark.parametrize("sign", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons(sign: str) -> None:
    given = " ".join(_values)
    inline = pattern(f"{{ VALUES ?x {{ {given} }} }}")
    terms = [term for ((_, term),) in value_on(PatternEvaluator(inline, Knowledge()), ())]
    assert len(terms) == len(_values)
    (condition,) = pattern(f"{{ FILTER (?x {sign} ?y) }}").correlated
    whole = pattern(f"{{ VALUES ?x {{ {given} }} VALUES ?y {{ {given} }} FILTER (?x {sign} ?y) }}")
    kept = value_on(PatternEvaluator(whole, Knowledge()), ())
    for left, right in product(terms, terms):
        mapping = (("x", left), ("y", right))
        assert holds(condition, mapping, inline.prologue) == (mapping in kept), mapping


@pytest.mark.parametrize("value", _values)
def test_comparisons_with_a_constant(value: str) -> None:
    inline = f"VALUES ?x {{ {' '.join(_values)} }}"
    mappings = value_on(PatternEvaluator(pattern(f"{{ {inline} }}"), Knowledge()), ())
    prologue = pattern("{ }").prologue
    for comparison in (f"?x = {value}", f"{value} >= ?x"):
        (condition,) = pattern(f"{{ FILTER ({comparison}) }}").correlated
        kept = value_on(PatternEvaluator(pattern(f"{{ {inline} FILTER ({comparison}) }}"), Knowledge()), ())
        assert kept == {mapping for mapping in mappings if holds(condition, mapping, prologue)}


def test_an_unbound_variable_is_no_truth() -> None:
    for condition in pattern("{ FILTER (?x = 1) FILTER (?x != 1) FILTER (1 > ?x) }").correlated:
        assert not holds(condition, (), pattern("{ }").prologue)
