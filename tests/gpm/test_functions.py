"""Functions and operators of single terms: SPARQL's values where rdflib gives others."""

from __future__ import annotations

import contextlib

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq import GraphEvent, Settings
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from tests.gpm.test_columnar import pattern, solved

CASES = {
    "the product of integers is an integer": ("2 * 3", "6"),
    "and so is a sum": ("1 + 2", "3"),
    "a quotient of integers is a decimal": ("3 / 2", "1.5"),
    "a decimal beside a double becomes one": ("1.5 * 2e0", "3.0e0"),
    "a product of floats is a float": ("'1.5'^^xsd:float * 2", "'3.0'^^xsd:float"),
    "a double is divided by zero": ("1e0 / 0", "'INF'^^xsd:double"),
    "an integer is not": ("1 / 0", None),
    "no number is added to text": ("'1' + 1", None),
    "what is no time": ("'2020-13-01T00:00:00Z'^^xsd:dateTime - '2020-01-01T00:00:00Z'^^xsd:dateTime", None),
    "time less an IRI": ("'2020-01-01T00:00:00Z'^^xsd:dateTime - :a", None),
    "a negative decimal": ("-0.5 + 1", "0.5"),
    "a negative decimal is read": ("-0.50", "-0.50"),
    "the absolute of a decimal": ("abs(-2.50)", "2.5"),
    "the absolute of a float": ("abs('-1.5'^^xsd:float)", "'1.5'^^xsd:float"),
    "the absolute of no number": ("abs('a')", None),
    "a date is neither true nor false": ("IF('2020-01-01'^^xsd:date, 1, 2)", None),
    "nor is its negation": ("!'2020-01-01'^^xsd:date", None),
    "NaN is false": ("IF('NaN'^^xsd:double, 1, 2)", "2"),
    "NaN negated": ("!'NaN'^^xsd:double", "true"),
    "NaN or nothing": ("'NaN'^^xsd:double || false", "false"),
    "no notation of a number is false": ("!'abc'^^xsd:integer", "true"),
    "a text with a language is true": ("IF('x'@en, 1, 2)", "1"),
    "an error is no literal": ("isLiteral(1 / 0)", None),
    "an error is not a number": ("isNumeric(1 / 0)", None),
    "an error is no IRI": ("isIRI(1 / 0)", None),
    "an error is no blank node": ("isBlank(1 / 0)", None),
    "an error is not the same term": ("sameTerm(1, 1 / 0)", None),
    "minus an integer": ("-(01)", "-1"),
    "text that is no number": ("xsd:integer('1.0')", None),
    "a decimal is cut off": ("xsd:integer(-2.7)", "-2"),
    "infinity is no integer": ("xsd:integer('INF'^^xsd:double)", None),
    "a number is true but for 0 and NaN": ("xsd:boolean('NaN'^^xsd:double)", "false"),
    "the text of a truth value": ("xsd:string('1'^^xsd:boolean)", "'true'"),
    "the text of a double": ("xsd:string(1e7)", "'1.0E7'"),
    "the text of a small double": ("xsd:string(25e-1)", "'2.5'"),
    "a date becomes a time": ("xsd:dateTime('2020-02-03Z'^^xsd:date)", "'2020-02-03T00:00:00Z'^^xsd:dateTime"),
    "a text with a tag is not cast": ("xsd:integer('1'@en)", None),
    "flag q: no metacharacters": ("regex('a.c', '.', 'q')", "true"),
    "flag x: white space left out": ("regex('ac', ' a\\n c ', 'x')", "true"),
    "flag x: but in a class": ("regex('a c', 'a[ ]c', 'x')", "true"),
    "the end is the end": ("regex('a\\n', 'a$')", "false"),
    "an end of a line": ("regex('a\\nb', 'a$', 'm')", "true"),
    "a half is rounded up": ("round(2.5)", "3.0"),
    "also below zero": ("round(-2.5)", "-2.0"),
    "what is just below a half is not": ("round(0.49999999999999994e0)", "'0'^^xsd:double"),
    "more digits than a decimal has by default": (f"round({'1' * 40}.5)", f"{'1' * 39}2.0"),
    "a double beyond all fractions": ("round(1e300) = 1e300", "true"),
    "infinity is as round as can be": ("round('INF'^^xsd:double)", "'INF'^^xsd:double"),
    "its floor": ("floor('-INF'^^xsd:float)", "'-INF'^^xsd:float"),
    "the ceiling of no number": ("ceil('NaN'^^xsd:double)", "'NaN'^^xsd:double"),
    "text is not rounded": ("ceil('a')", None),
    "the time zone of what is no time": ("timezone('2026-13-01T00:00:00Z'^^xsd:dateTime)", None),
    "SUBSTR from before the first place": ("substr('abc', 0)", "'abc'"),
    "SUBSTR counts the places before it": ("substr('12345', 0, 3)", "'12'"),
    "SUBSTR far from everything": ("substr('abc', -9, 99)", "'abc'"),
    "SUBSTR of nothing": ("substr('abc', 2, -1)", "''"),
    "SUBSTR with a tag": ("substr('abc'@en, 2, 1)", "'b'@en"),
    "SUBSTR from a fraction": ("substr('abc', 1.5)", None),
    "a tag": ("strlang('a', 'en-GB')", "'a'@en-GB"),
    "no tag": ("strlang('a', '1.5')", None),
    "an empty tag": ("strlang('a', '')", None),
    "a tag for what has one": ("strlang('a'@en, 'fr')", None),
    "REPLACE with a digit of another kind": ("replace('ab', '(a)', '$1\u00b2')", "'a\u00b2b'"),
    "time is linear in the text": (f"regex('{'a' * 60}!', '^(a+)+$')", "false"),
    "with flags too": (f"regex('{'A' * 60}', '^(a*)*$', 'i')", "true"),
    "an alternative that may be read in many ways": (f"regex('{'a' * 60}!', '^(a|aa)*$')", "false"),
    "optional parts": (f"regex('{'a' * 30}', '^{'(a?)' * 30}{'a' * 30}b')", "false"),
    "time is linear with escapes": (f"regex('{'a' * 60}!', '^(\\\\w+)+$')", "false"),
    "REPLACE is linear too": (f"replace('{'a' * 60}!', '^(a+)+$', 'b')", f"'{'a' * 60}!'"),
    "digits of any script": ("regex('\u0663', '^\\\\d$')", "true"),
    "letters of words": ("regex('na\u00efve_2', '^\\\\w+$')", "true"),
    "no letters of words": ("regex('a-b', '^\\\\w+$')", "false"),
    "white space in a class": ("regex('a b', 'a[\\\\s]b')", "true"),
    "no white space in a class": ("regex('a b', 'a[\\\\S]b')", "false"),
    "characters of names": ("regex('x:y-1', '^\\\\i\\\\c*$')", "true"),
    "a category": ("regex('\u00c9', '^\\\\p{Lu}$')", "true"),
    "an escaped mark": ("regex('a.c', '^a\\\\.c$')", "true"),
    "an escaped dollar at the end": ("regex('a$', 'a\\\\$')", "true"),
    "flag i beyond ASCII": ("regex('\u00c9', '\u00e9', 'i')", "true"),
    "flags q and i": ("regex('A.C', 'a.c', 'qi')", "true"),
    "an unknown escape": ("regex('a', '\\\\a')", None),
    "looking ahead": ("regex('a', 'a(?=b)')", None),
    "REPLACE with two groups": ("replace('ab', '(a)(b)', '$2$1')", "'ba'"),
    "REPLACE with the whole": ("replace('ab', 'b', '<$0>')", "'a<b>'"),
    "REPLACE with a group and a digit": ("replace('ab', '(a)', '$12')", "'a2b'"),
    "REPLACE with a dollar": ("replace('ab', 'b', '\\\\$')", "'a$'"),
    "REPLACE with flag q": ("replace('a.b', '.', '$1', 'q')", "'a$1b'"),
    "REPLACE with a lone dollar": ("replace('ab', 'b', '$')", None),
    "an integer of too many digits": (f"xsd:integer('{'9' * 5000}')", None),
    "no such flag": ("regex('a', 'a', 'z')", None),
    "not a regular expression": ("regex('a', '(')", None),
    "REPLACE with a group that took no part": ("replace('ab', '(a)|(x)', '[$1$2]')", "'[a]b'"),
    "REPLACE with flags": ("replace('aAb', 'a', '-', 'i')", "'--b'"),
    "REPLACE of nothing": ("replace('ab', 'x*', '-')", None),
    "CONCAT of nothing": ("concat()", "''"),
    "integers as long as Python reads": (f"{10**2_149} * {10**2_149}", str(10**4_298)),
    "a longer one overflows": (f"{10**2_151} * {10**2_151}", None),
    "a sum that overflows": (f"{10**4_299 * 9} + {10**4_299 * 9}", None),
    "a decimal that overflows": (f"{10**2_151}.5 * {10**2_151}.5", None),
    "a decimal beyond what decimals hold": (" * ".join([f"{10**4_000}.5"] * 300), None),
    "a decimal that is nearly 0": (f"0.{'0' * 2_200}1 * 0.{'0' * 2_200}1", "0.0"),
    "ROUND of a decimal that is longer than integers": (f"round({'9' * 5_000}.5)", None),
    "a cast of one": (f"xsd:integer({'9' * 5_000}.5)", None),
    "CONCAT of one language": ("concat('a'@en, 'b'@en)", "'ab'@en"),
    "STRDT takes no tag": ("strdt('a'@en, :t)", None),
    "COALESCE of nothing": ("coalesce()", None),
    "the zone of UTC": ("timezone('2020-01-01T00:00:00Z'^^xsd:dateTime)", "'PT0S'^^xsd:dayTimeDuration"),
    "a zone west": ("timezone('2020-01-01T00:00:00-03:30'^^xsd:dateTime)", "'-PT3H30M'^^xsd:dayTimeDuration"),
    "unknown datatypes with other texts": ("'a'^^:t != 'b'^^:t", None),
    "unknown datatypes with one text": ("'a'^^:t = 'a'^^:t", "true"),
    "a tag and an unknown datatype": ("'a'@en != 'a'^^:t", "true"),
    "a date with a zone and one without": ("'2020-01-01'^^xsd:date = '2020-01-01Z'^^xsd:date", None),
    "dates far apart": ("'2020-01-01'^^xsd:date < '2020-01-03Z'^^xsd:date", "true"),
    "midnight at the end of a day": (
        "'2020-01-01T24:00:00Z'^^xsd:dateTime = '2020-01-02T00:00:00Z'^^xsd:dateTime", "true",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_value(case: str) -> None:
    expression, expected = CASES[case]
    ((found,),) = solved(pattern(f"{{ BIND ({expression} AS ?x) }}"), [[]])[0][:1]
    if expected is None:
        assert found == ()
    else:
        ((wanted,),) = solved(pattern(f"{{ VALUES ?x {{ {expected} }} }}"), [[]])[0][:1]
        (_, term), (_, other) = found[0], wanted[0]
        assert (term.datatype, term.language) == (other.datatype, other.language)
        assert str(term) == str(other) or float(term) == float(other)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (r"regex('aa', '(a)\\1')", "back-references in regular expressions"),
        (r"replace('aa', '(a)\\1', 'b')", "back-references in regular expressions"),
        ("regex('a', '((a{100}){100}){100}')", "a regular expression is too large"),
        ("regex('a', 'a{2000}')", "a regular expression is too large"),
        ("regex('a', '[a-z-[aeiou]]')", "a character class inside another one"),
    ],
)
def test_regular_expressions_without_a_bound(expression: str, message: str) -> None:
    compiled = pattern(f"{{ BIND ({expression} AS ?x) }}")
    with pytest.raises(UnsupportedFeature, match=message):
        solved(compiled, [[]])


def _matches(session: spaseq.Session, *events: GraphEvent) -> list[spaseq.Match]:
    return [*session.push(events), *session.close()]


_THAT_GROW = (
    "concat(?t, ?t)",
    "replace(?t, 'a', 'aa')",
    "concat(?t, ?t, str(?t), lang(?t))",
    "replace(?t, '(.+)', '$1$1')",
    "replace(?t, 'a', 'aa', 'q')",
    "replace(?t, '.', 'bcd')",
)


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        pytest.param(text, reference, marks=[] if number < 2 or number % 2 == reference else [pytest.mark.slow])
        for number, text in enumerate(_THAT_GROW)
        for reference in (False, True)
    ],
)
def test_texts_that_grow_end_at_text_length(expression: str, reference: bool) -> None:
    """Ten times twice as long is a thousand times as long: forty times was the end of the memory."""
    steps = " ".join(f"BIND({expression.replace('?t', f'?t{n}')} AS ?t{n + 1})" for n in range(40))
    text = "PREFIX : <urn:e#> SELECT ?s FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :p ?t0 %s } }"
    event = GraphEvent("urn:s", 0, ((URIRef("urn:a"), URIRef("urn:e#p"), Literal("aaaa")),))
    for settings, most in ((Settings(), "1,000,000"), (Settings(text_length=1000), "1,000")):
        with pytest.raises(BudgetExceeded, match=f"text_length is {most} characters and"):
            _matches(spaseq.compile(text % steps, settings=settings).open(reference=reference), event)
    few = spaseq.compile(text % steps[: steps.index("BIND", 5)], settings=settings).open(reference=reference)
    assert len(_matches(few, event)) == 1


def test_a_group_that_is_too_long_ends_at_text_length() -> None:
    text = "SELECT (GROUP_CONCAT(?t; SEPARATOR='--') AS ?all) WITHIN 1 SECONDS FROM STREAM S <urn:s> WHERE { SEQ (A) "
    text += "DEFINE GPM A ON S { ?s <urn:e#p> ?t } }"
    triples = tuple((URIRef(f"urn:{n}"), URIRef("urn:e#p"), Literal("aaaa")) for n in range(20))
    for most, needed in ((118, True), (117, False)):
        session = spaseq.compile(text, settings=Settings(text_length=most)).open()
        with contextlib.nullcontext() if needed else pytest.raises(BudgetExceeded, match="117 characters and 118 are"):
            assert len(_matches(session, GraphEvent("urn:s", 0, triples))) == 1


def test_what_exists_asks_compares_as_sparql_does() -> None:
    """In a FILTER inside EXISTS rdflib's own comparison stayed: text was greater than a number."""
    graph = [(URIRef("http://example.org/a"), URIRef("http://example.org/p"), Literal("x"))]
    assert solved(pattern("{ ?a :p ?v FILTER NOT EXISTS { ?a :p ?z FILTER (?z > 1) } }"), [graph])[0][1]


def test_negated_property_sets_with_inverses() -> None:
    """rdflib forgets the IRI of an inverse in a negated set."""
    from rdflib import URIRef

    a, p, q, b = (URIRef(f"http://example.org/{name}") for name in "apqb")
    graph = [(a, p, b), (b, q, a)]
    for text, pairs in (("!^:p", {(a, b)}), ("!(:p|^:q)", {(b, a)}), ("!(^:p|^:q)", set())):
        found = solved(pattern(f"{{ ?x {text} ?y }}"), [graph])[0][1]
        assert {(dict(m)["x"], dict(m)["y"]) for m in found} == pairs, text


def test_a_registered_function_is_not_called_with_an_error() -> None:
    from rdflib.plugins.sparql.operators import register_custom_function, unregister_custom_function

    name = URIRef("http://example.org/joined")
    register_custom_function(name, lambda *terms: Literal("|".join(terms)))
    try:
        graph = [(URIRef("http://example.org/a"), URIRef("http://example.org/p"), Literal(1))]
        for argument, values in (("STR(?v)", {"1|x"}), ("STR(?none)", set()), ("?none", set())):
            made = pattern(f"{{ ?a :p ?v BIND (<{name}>({argument}, 'x') AS ?r) }}")
            for reference in (False, True):
                (mapping,) = solved(made, [graph], reference=reference)[0][1]
                assert {str(term) for variable, term in mapping if variable == "r"} == values
    finally:
        unregister_custom_function(name)
