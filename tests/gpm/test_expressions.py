"""Expressions over columns beside the same expressions asked once for each choice of terms: the same terms, the same
truth, the same errors."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rdflib import BNode, Literal, URIRef

from spaseq.gpm import Source, algebra, compile_pattern
from spaseq.gpm.columnar import kernels
from spaseq.gpm.columnar import truth as conditions
from spaseq.gpm.columnar.table import Space, Table
from spaseq.gpm.columnar.truth import Scope, compute, truth
from spaseq.language.syntax.scan import mask
from spaseq.rdf import term_key
from spaseq.rdf.columns import TermTable
from tests.support.sizes import some

E = "http://example.org/"
XSD_ = "http://www.w3.org/2001/XMLSchema#"


def _typed(kind: str, *texts: str) -> list[Literal]:
    return [Literal(text, datatype=URIRef(XSD_ + kind), normalize=False) for text in texts]


TERMS: list[Any] = [
    *_typed("integer", "0", "1", "-3", "007", "4611686018427387904", "9223372036854775807", "99999999999999999999"),
    *_typed("int", "5", "-0"), *_typed("byte", "7"),
    *_typed("decimal", "0.0", "1.50", "-2.25", "0.1", "100", "-0.0", ".5", "3.", "123456789012345.6", "1e3"),
    *_typed("decimal", "0.000000000000000001", "12345678901234567890.123456789", "99999999999999.9", "2.5", "-2.5"),
    *_typed("double", "1e0", "0.1", "-0.0", "INF", "NaN", "1e308", "2.5", "-7.5E-3", "zwei"),
    *_typed("boolean", "true", "0", "maybe"),
    *_typed("dateTime", "2026-06-15T08:09:10Z", "2026-06-15T23:59:59.25+02:00", "2026-02-31T08:00:00Z",
            "2026-06-15T24:00:00Z", "-0044-03-15T12:00:00", "2026-06-15T08:09:10.120-05:30", "2026-06-15T08:09:07.000",
            "2026-06-15T08:09:10+00:00", "2026-06-15T08:09:10.1234567-00:45"),
    *_typed("double", "123456.789", "0.00012", "1e6", "-1e15", "3"), *_typed("decimal", "007.250", "-0.50", "+3"),
    *_typed("date", "2026-06-15", "2026-06-15Z"),
    *_typed("string", "abc"),
    Literal("1", datatype=URIRef(E + "odd"), normalize=False),
    Literal(""), Literal("abc"), Literal("Äß\"q\\n"), Literal("12"), Literal(" 3.5 "), Literal("2026-06-15T08:00:00Z"),
    Literal("abc", lang="en"), Literal("colour", lang="en-gb"), Literal("b"), Literal("1e2"),
    URIRef(E + "a"), URIRef(E + "abc"), BNode("n1"),
]  # fmt: skip
FLOATS = _typed("float", "1.1", "-3e10")
SHAPES = [
    "?x + ?y", "?x - ?y", "?x * ?y", "?x / ?y", "?x + ?y * 2", "(?x - 0.5) / 4", "-?x", "+?x", "?x + 1 - ?y + 0.25",
    "ABS(?x)", "CEIL(?x)", "FLOOR(?x)", "ROUND(?x)", "ROUND(?x * 1.5)", "ABS(-?x) + ?y", "?x / 3", "?x * ?x * ?y * ?y",
    "CEIL(?x - ?y)", "FLOOR(?x / 8)", "1 / ?x", "-(?x / ?y)", "+ROUND(?x)", "ROUND(?x) + 0", "ABS(CEIL(?x))",
    "ROUND(-?x)",
    "IF(?x < ?y, ?x, ?y)", "IF(?x, 1, 2)", "IF(BOUND(?x), ?x * 2, \"none\")", "COALESCE(?x + ?y, ?x, \"none\")",
    "COALESCE(?x / 0, ?y)", "COALESCE(?z, ?x)", "IF(?x > 1, 1/0, ?y)",
    "?x > ?y", "?x = \"abc\"", "?x != 1.5", "?x < \"b\"", "?x <= ?y", "?x = true", "?x = \"abc\"@en", "?x = :a",
    "isNUMERIC(?x) && ?x > 1", "isIRI(?x) || ?x > ?y", "?x < ?y && (?x = 1 || ?y != \"b\")",
    "?x < ?y", "?x = ?y", "?x != ?y", "?x >= 1.5", "?x = ?y + 0.5", "ROUND(?x) = 2", "STR(?x) = STR(?y)",
    "STRLEN(?x) > 2", "ABS(?x) < ABS(?y)", "HOURS(?x) = 8", "UCASE(?x) = \"ABC\"", "LANG(?x) = \"en\"",
    "?x < STR(?y)", "IF(?x > 1, ?x, ?y) > ?y", "!(?x = ?y)", "?x && ?y", "?x || ?y = 2", "!?x",
    "?x IN (1, 2.5, \"abc\", :a)", "?x NOT IN (1, 2.5, \"abc\", :a)", "?x IN (:a, :abc)", "?x NOT IN (:a)", "?x IN ()",
    "?x IN (?y, 1)", "?x + 1 IN (1, 2.5)", "?x IN (\"abc\"@en, 1)", "?x IN (1e0, 0.1)", "?x NOT IN ()",
    "?x IN (\"abc\", \"12\")", "STR(?x) IN (\"abc\", \"1\")", "?x IN (99999999999999999999, 1)",
    "STR(?x)", "LANG(?x)", "DATATYPE(?x)", "isIRI(?x)", "isBLANK(?x)", "isLITERAL(?x)", "isNUMERIC(?x)", "STRLEN(?x)",
    "UCASE(?x)", "LCASE(?x)", "CONTAINS(?x, ?y)", "STRSTARTS(?x, ?y)", "STRENDS(?x, \"c\")", "STRBEFORE(?x, ?y)",
    "STRAFTER(?x, ?y)", "STRBEFORE(?x, \"b\")", "STRAFTER(?x, \"b\")", "STRAFTER(?x, \"\")", "SUBSTR(?x, 2)",
    "SUBSTR(STR(?x), ?y, 2)", "SUBSTR(?x, 0, 2)", "CONCAT(?x, ?y)", "CONCAT(STR(?x), \"-\", STR(?y))", "CONCAT(?x)",
    "REGEX(?x, \"b+\")", "REGEX(STR(?x), ?y, \"i\")", "REGEX(?x, \"(\")", "REGEX(STR(?x), \"^A\", \"i\")",
    "REPLACE(?x, \"b\", \"z\")", "ENCODE_FOR_URI(?x)", "sameTerm(?x, ?y)", "LANGMATCHES(LANG(?x), \"en\")",
    "YEAR(?x)", "MONTH(?x)", "DAY(?x)", "HOURS(?x)", "MINUTES(?x)", "SECONDS(?x)", "TIMEZONE(?x)", "TZ(?x)",
    "xsd:integer(?x)", "xsd:decimal(?x)", "xsd:double(?x)", "xsd:string(?x)", "xsd:boolean(?x)", "xsd:dateTime(?x)",
    "xsd:integer(STR(?x)) + 1", "xsd:float(?x)", "CONTAINS(STR(?x), \"b\") || ?y < 2", "BOUND(?x) && ?x > 0",
    "STRLEN(CONCAT(STR(?x), \"!\")) * 2 + ?y", "MD5(STR(?x))", "IRI(?x)", "STRDT(?x, xsd:integer)",
    "STRLANG(?x, \"en\")", "STRLANG(?x, ?y)", "STRLANG(STR(?x), \"EN-gb\")", "STRDT(STR(?x), xsd:string)",
    "STRDT(?x, ?y)", "STRDT(STR(?x), xsd:integer) + 1", "URI(STR(?x))", "IRI(CONCAT(\"urn:\", ?x))",
    "SHA1(?x)", "SHA256(STR(?x))", "SHA384(?x)", "SHA512(?x)", "ENCODE_FOR_URI(STR(?x))", "LANGMATCHES(STR(?x), ?y)",
    "LANGMATCHES(LANG(?x), \"*\")", "REPLACE(STR(?x), \"(b+)\", \"<$1>\")", "REPLACE(?x, ?y, \"z\")",
    "REPLACE(STR(?x), \"B\", \"$\", \"iq\")", "REPLACE(STR(?x), \"x*\", \"-\")", "REPLACE(?x, \"a\", \"$\")",
    "BOUND(?x)", "BOUND(?z)", "!BOUND(?x) || ?x > 1", "sameTerm(?x, 1)", "sameTerm(?x, ?x)", "!sameTerm(?x, ?y)",
    "?x IN (?y, ?x)", "?x NOT IN (?y, 2.5)", "?x IN (?z, 1)", "xsd:double(STR(?x))", "xsd:decimal(STR(?x))",
    "xsd:string(?x * 0.5)", "xsd:integer(?x / 3)", "xsd:decimal(?x + 0.5e0)", "STR(TZ(?x))", "xsd:double(?x) > ?y",
]  # fmt: skip


def _expression(text: str) -> tuple[algebra.Expression, Any]:
    group = f"{{ ?x :p ?y BIND ({text} AS ?found) }}"
    made = compile_pattern(Source(group, mask(group), 0, len(group), "A", (("", E), ("xsd", XSD_)), "", "q"), (E,))
    found = next(n for n in algebra.walk(made.event) if isinstance(n, algebra.Extend))
    return found.value, made.prologue


def _scope(rows: list[tuple[Any, Any]], prologue: Any, read: bool) -> Scope:
    """`read`: whether the terms are those of a batch, or added by a query."""
    terms = list(dict.fromkeys(term for row in rows for term in row if term is not None))
    space = Space(TermTable.of(terms) if read else TermTable.of(()))
    numbers = [[-1 if term is None else space.number(term) for term in row] for row in rows]
    columns = np.array(numbers, np.int32).reshape(-1, 2)
    table = Table(np.zeros(len(rows), np.int32), {"x": columns[:, 0].copy(), "y": columns[:, 1].copy()})
    return Scope(table, space, prologue, lambda pattern, table: np.zeros(len(table), bool), {})


def _keys(numbers: np.ndarray, scope: Scope) -> Iterator[str | None]:
    return (None if n < 0 else term_key(scope.space.term(n)) for n in numbers.tolist())


def _pairs(terms: list[Any]) -> list[tuple[Any, Any]]:
    return [*itertools.product([*terms, None], repeat=2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_give_what_is_asked_one_by_one(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expression, prologue = _expression(shape)
    for terms, read in ((TERMS, True), (TERMS, False), ([*TERMS[::3], *FLOATS], True)):
        pairs = _pairs(terms)
        pairs = pairs if "?y" in shape else [(x, None) for x in [*terms, None]]
        rows = pairs if len(pairs) < 150 else random.Random(7).sample(pairs, some(240))
        scope = _scope(rows, prologue, read)
        values, held = compute(expression, scope), truth(expression, scope)
        monkeypatch.setattr(conditions, "FEW", len(rows))
        monkeypatch.setattr(conditions, "by_kind", lambda _, left, *__: np.full(len(left), kernels.OPEN, np.int8))
        other = _scope(rows, prologue, read)
        expected = compute(expression, other), truth(expression, other)
        monkeypatch.undo()
        for row, mine, theirs in zip(rows, _keys(values, scope), _keys(expected[0], other), strict=True):
            assert mine == theirs, row
        assert held.tolist() == expected[1].tolist(), [
            row for row, a, b in zip(rows, held, expected[1], strict=True) if a != b
        ]


def test_equal_results_are_one_term() -> None:
    """Values that are computed have the numbers of equal terms, whoever made them."""
    expression, prologue = _expression("?x * 2")
    one, two, half = _typed("decimal", "1.0", "2", "0.5")
    scope = _scope([(half, two), (one, two), (half, one), (one, one), (two, two)], prologue, True)
    found = compute(expression, scope)
    assert found[1] == found[3] == scope.space.find(two)
    assert found[0] == found[2] == scope.space.number(Literal("1", datatype=URIRef(XSD_ + "decimal")))


def test_sums_of_dense_columns_ask_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expression, prologue = _expression("?x * ?y + 1")
    numbers = [*_typed("decimal", *(f"{n / 100:.2f}" for n in range(500)))]
    counts = [*_typed("integer", *(str(n) for n in range(500)))]
    scope = _scope(list(zip(numbers, counts, strict=True)), prologue, True)
    monkeypatch.setattr(conditions, "value_or_none", lambda *_: pytest.fail("a row was asked"))
    found = compute(expression, scope)
    assert str(scope.space.term(int(found[250]))) == "626"
