"""Batches: what is put in comes out, and the value columns say what rdflib says of each literal."""

from __future__ import annotations

import dataclasses
import math
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import XSD, BNode, Literal, URIRef

from spaseq.core.events.time import UNITS, parse_time
from spaseq.rdf import GraphBatch, GraphEvent, Term, TermTable, plain_literal, term_from_key
from spaseq.rdf.columns import BLANK, IRI, LITERAL, Kinds, values
from spaseq.rdf.columns.dictionary import Dictionary
from spaseq.rdf.columns.kernels import literals

NAMES = ["integer", "int", "byte", "nonNegativeInteger", "decimal", "double", "float", "boolean", "dateTime", "string",
         "date", "duration"]  # fmt: skip
TEXTS = [
    "5", "-5", "+5", "007", "1.5", "24.470", ".5", "5.", "1e3", "1E-7", "-0", "0.1", "300", "9007199254740993",
    "9223372036854775808", "-9223372036854775808", "99999999999999999999999", "0.1234567890123456789", "1e400",
    "INF", "-INF", "NaN", "nan", " 5", "5 ", "1_0", "", "abc", "true", "false", "1", "0", "TRUE", "٣",
    "2024-05-01T12:00:00Z", "2024-05-01T12:00:00", "2024-05-01T12:00:00.123456789+02:00", "2024-02-30T00:00:00Z",
    "2024-05-01", "24:00:00", "2024-05-01T24:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z",
    "2024-05-01 12:00:00Z", "20240501T120000Z", "2024-05-01T12:00:00-14:00", "9999-12-31T23:59:59Z",
    "000000000000000000000005", "-000", "1.0e22", "1e23", "123456789012345e-22", "9.5e-5", "123456789012345",
    "1234567890123456", "0.00000000000000000000012", "-0.0", "1.5E+2", "1e", "e5", ".", "+", "-",
    "999999999999999999", "2024-05-01T12:00:00+14:30", "2024-05-01T12:00:00.Z", "2261-12-31T23:59:59Z",
    "2262-05-01T00:00:00Z", "1678-01-01T00:00:00Z", "2024-05-01T12:00:60Z", "2024-05-01T12:00:00.1234567891Z",
]  # fmt: skip


def typed(text: str, name: str) -> Literal:
    literal = term_from_key(f'"{text}"^^<{XSD[name]}>')
    assert isinstance(literal, Literal)
    return literal


iris = st.sampled_from([URIRef(f"http://example.org/{n}") for n in "abcdé"])
blanks = st.sampled_from([BNode(f"b{n}") for n in range(4)])
some_literals = st.one_of(
    st.text(max_size=6).map(Literal),
    st.builds(lambda text, tag: Literal(text, lang=tag), st.text(max_size=3), st.sampled_from(["en", "de", "en-gb"])),
    st.builds(typed, st.sampled_from(TEXTS), st.sampled_from(NAMES)),
)
terms = st.one_of(iris, blanks, some_literals)
events = st.builds(
    lambda time, triples, graph, record: GraphEvent("S", time, tuple(dict.fromkeys(triples)), graph, "f.nq", record),
    st.integers(-(10**18), 10**18),
    st.lists(st.tuples(st.one_of(iris, blanks), iris, terms.map(plain_literal)), max_size=5),
    st.one_of(st.none(), iris, blanks),
    st.integers(1, 10**9),
)


@given(st.lists(events, min_size=1, max_size=6))
def test_events_come_back_as_they_were(given_events: list[GraphEvent]) -> None:
    batch = GraphBatch.of(given_events)
    assert len(batch) == len(given_events)
    assert [batch.event(i) for i in range(len(batch))] == given_events
    assert batch.triples.dtype == np.int32 and batch.triples.shape == (int(batch.offsets[-1]), 3)


def test_a_batch_is_of_one_stream_and_one_source() -> None:
    a, b = (GraphEvent(name, 0, (), None, "f", 1) for name in "ab")
    with pytest.raises(ValueError, match="one stream"):
        GraphBatch.of([a, b])
    with pytest.raises(ValueError, match="at least one"):
        GraphBatch.of([])


@given(st.lists(terms, unique_by=lambda term: (type(term), term), max_size=12))
def test_terms_and_numbers(given_terms: list[Term]) -> None:
    table = TermTable.of(given_terms)
    for term in given_terms:
        number = table.id_of(term)
        assert table.term(number) == plain_literal(term)
        assert table.term(number) is table.term(number)
        assert table.kind[number] == (IRI, BLANK, LITERAL)[(URIRef, BNode, Literal).index(type(term))]
    assert len({table.key(number) for number in range(len(table))}) == len(table)
    assert table.id_of(URIRef("http://example.org/not-there")) == -1


def test_strings_and_tags_have_one_form() -> None:
    table = TermTable.of([Literal("a", datatype=XSD.string), Literal("b", lang="EN")])
    assert table.id_of(Literal("a")) == table.id_of(Literal("a", datatype=XSD.string)) == 0
    assert table.id_of(Literal("b", lang="en")) == 1
    assert table.key(1) == b'"b"@en'


def _next_midnight(text: str) -> Literal:
    day = date.fromisoformat(text[:10]) + timedelta(days=1)
    return Literal(f"{day}T00:00:00{text[19:]}", datatype=XSD.dateTime)


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_value_columns_say_what_rdflib_says(name: str) -> None:
    table = TermTable.of([typed(text, name) for text in TEXTS])
    columns = table.literals()
    numbers, is_number = table.numbers()
    for text in TEXTS:
        term = plain_literal(typed(text, name))
        assert isinstance(term, Literal)
        number = table.id_of(term)
        kind, value = columns.kind[number], term.value
        if name == "string":
            assert kind == Kinds.STRING
        elif name == "dateTime" and "T24:00:00" in text:  # of which rdflib knows no value
            following = values.empty_columns(1)
            values.set_value(following, 0, _next_midnight(text))
            assert value is None and kind == Kinds.DATE_TIME and columns.whole[number] == following.whole[0]
        elif value is None:
            assert kind == Kinds.ILL_TYPED
        elif name == "boolean":
            assert kind == Kinds.BOOLEAN and columns.whole[number] == value
        elif name in ("date", "duration"):
            assert kind == Kinds.OTHER
        elif name == "dateTime":
            assert kind == Kinds.DATE_TIME and columns.has_whole[number] == (1678 <= value.year <= 2261)
        elif isinstance(value, float):
            assert kind == Kinds.DOUBLE and columns.exact[number]
            assert numbers[number] == value or math.isnan(value)
        else:
            assert kind == (Kinds.DECIMAL if name == "decimal" else Kinds.INTEGER)
            assert not columns.exact[number] or numbers[number] == float(value)
            assert columns.has_whole[number] == (isinstance(value, int) and -(2**63) <= value < 2**63)
            assert not columns.has_whole[number] or int(columns.whole[number]) == value
        assert is_number[number] == (kind in (Kinds.INTEGER, Kinds.DECIMAL, Kinds.DOUBLE))


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f")) and bool((np.signbit(a) == np.signbit(b)).all())


def check_values(given_terms: list[Literal]) -> None:
    """The kernel's values are those of rdflib's terms, one by one."""
    table = TermTable.of(given_terms)
    columns = table.literals()
    for number in np.flatnonzero(table.lexical >= 0).tolist():
        alone = values.empty_columns(1)
        term = table.term(number)
        assert isinstance(term, Literal)
        values.set_value(alone, 0, term)
        for field in dataclasses.fields(columns):
            one, all_of_them = getattr(alone, field.name), getattr(columns, field.name)
            assert same(one, all_of_them[number : number + 1]), (table.key(number), field.name)
    by_key = values.values_of_keys([table.key(number) for number in range(len(table))])
    for field in dataclasses.fields(columns):
        assert same(getattr(by_key, field.name), getattr(columns, field.name)), field.name


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_the_kernel_reads_what_rdflib_reads(name: str) -> None:
    check_values([typed(text, name) for text in TEXTS])


def test_values_of_keys_of_any_kind() -> None:
    """More datatypes than the kernel tells apart, quotes and signs inside of texts, tags, and what is no literal."""
    terms: list[Literal] = [Literal("1", datatype=URIRef(f"urn:type:{n}")) for n in range(values._DATATYPES + 3)]
    terms += [typed("17", "integer"), typed("0.30000000000000004", "double"), typed("-1e-7", "float")]
    terms += [Literal('"^^<a>'), Literal("^^<http://www.w3.org/2001/XMLSchema#integer>"), Literal('"'), Literal("")]
    terms += [Literal('"5"', lang="de"), Literal("\u00e4\u4e2d", lang="en-gb"), typed("\u4e2d", "integer")]
    check_values(terms)
    keys = [b"<urn:a>", b"_:b", b'"5"^^<http://www.w3.org/2001/XMLSchema#integer>']
    assert values.values_of_keys(keys).kind.tolist() == [Kinds.NO_LITERAL, Kinds.NO_LITERAL, Kinds.INTEGER]
    assert len(values.values_of_keys([]).kind) == 0


numerals = st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
moments = st.from_regex(
    r"(19|20|16|22)[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,10})?"
    r"(Z|[+-][01][0-9]:[0-6][0-9])?",
    fullmatch=True,
)


@given(st.lists(st.builds(typed, st.one_of(numerals, moments), st.sampled_from(NAMES)), max_size=20))
def test_the_kernel_reads_random_numerals_as_rdflib_does(given_terms: list[Literal]) -> None:
    check_values(given_terms)


def read_time(text: str, unit: str) -> int | None:
    """What the kernel reads, None where it leaves the text to others."""
    dictionary = Dictionary()
    rows = np.full((1, 4), dictionary.intern_terms([Literal(text)])[0], dtype=np.int32)
    time, status = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint8)
    table = dictionary.table
    literals.read_times(rows, 0, 1, rows[0, 1], UNITS[unit], table.text.view(np.uint8), table, time, status)
    return int(time[0]) if status[0] == literals.TIME else None


@given(st.one_of(numerals, moments), st.sampled_from(["s", "ms", "us", "ns"]))
@settings(max_examples=200)
def test_times_are_read_as_everywhere(text: str, unit: str) -> None:
    time = read_time(text, unit)
    assert time is None or time == parse_time(text, unit)


@pytest.mark.parametrize(
    "text", ["0", "1767225600", "1767225600.25", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00", "-5"]
)
def test_usual_times_need_no_second_look(text: str) -> None:
    assert read_time(text, "s") == parse_time(text)


def test_exact_numbers_compare_as_their_values_do() -> None:
    texts = ["9007199254740992", "9007199254740993", "0.1", "0.10", "0.100000000000000", "0.1000000000000001", "-7"]
    values = [typed(text, "decimal") for text in texts]
    table = TermTable.of(values)
    columns = table.literals()
    exact = [value for value in values if columns.exact[table.id_of(value)]]
    assert typed("0.1", "decimal") in exact and typed("0.1000000000000001", "decimal") not in exact
    for a in exact:
        for b in exact:
            assert (columns.number[table.id_of(a)] < columns.number[table.id_of(b)]) == (a.value < b.value)
