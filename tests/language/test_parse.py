"""Text to syntax tree, and back."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.core.after import AfterText
from spaseq.language import parse, print_query
from spaseq.language.syntax import ast
from spaseq.language.syntax.printer import print_sequence
from spaseq.language.syntax.scan import mask, skeleton

QUERY = """
# fares
PREFIX : <http://example.org/#>
select ?a  ?x
  Within 90 minutes
partition by (?a, ?l)
from stream S1 <http://example.org/s#1>
FROM STREAM S2 :two
where {
  seq (A; (B | C)+, D & E)
  define gpm A on S1 { ?a :p "}" . # not the end }
                       ?a :q '''it's } ''' OPTIONAL { ?a :r ?l } }
  DEFINE GPM B ON S1, S2 { ?a :p ?x }
  DEFINE GPM C ON S2 { ?a :p <http://example.org/#it's> }
  DEFINE GPM D ON S2 {} DEFINE GPM E ON S2 { }
}
"""


def test_a_whole_query() -> None:
    query = parse(QUERY)
    assert query.form == "SELECT"
    assert [v.text for v in query.select if isinstance(v, ast.Variable)] == ["a", "x"]
    assert query.within == ast.Within("90", "MINUTES")
    assert [v.text for v in query.partition] == ["a", "l"]
    assert [(s.name, s.iri) for s in query.streams] == [
        ("S1", "http://example.org/s#1"),
        ("S2", "http://example.org/#two"),
    ]
    assert isinstance(query.sequence, ast.Chain)
    assert [operator for operator, _ in query.sequence.rest] == [ast.Operator.NEXT, ast.Operator.STRICT]
    assert query.sequence.rest[0][1] == ast.Repeated(ast.Either((ast.Reference("B"), ast.Reference("C"))))
    assert [d.name for d in query.definitions] == list("ABCDE")
    assert query.definitions[0].group.text.startswith("{ ?a :p") and query.definitions[0].group.text.endswith("} }")


def test_spans_count_code_points_from_one() -> None:
    query = parse("SELECT ?größe ?x FROM STREAM S <http://e/ü>\nSEQ (A) { DEFINE GPM A ON S { ?größe ?p ?x } }")
    assert (query.select[1].span.line, query.select[1].span.column) == (1, 15)
    group = query.definitions[0].group
    assert (group.span.line, group.span.column) == (2, 29)


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("WHERE SEQ (A) { DEFINE GPM A ON S { } }", "A"),  # the original engine
        ("WHERE { SEQ (A) DEFINE GPM A ON S { } }", "A"),  # the paper
        ("SEQ (A) { DEFINE GPM A ON S { } }", "A"),
        ("WHERE { SEQ (A) { DEFINE GPM A ON S { } } }", "A"),
        ("WHERE SEQ (A) DEFINE GPM A ON S { } DEFINE GPM B ON S { }", "AB"),
    ],
)
def test_where_braces_may_stand_on_either_side(where: str, names: str) -> None:
    assert [d.name for d in parse(f"SELECT * FROM STREAM S <http://e/> {where}").definitions] == list(names)


def test_clauses_come_in_any_order() -> None:
    rest = "WHERE { SEQ (A) DEFINE GPM A ON S { } }"
    clauses = ["WITHIN 3 HOURS", "PARTITION BY (?a)", "FROM STREAM S <http://e/>"]
    trees = {parse(f"SELECT * {a} {b} {c} {rest}") for a, b, c in [clauses, clauses[::-1], clauses[1:] + clauses[:1]]}
    assert len(trees) == 1


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("A", "A"),
        ("((A))", "A"),
        ("A,B;C:D", "A , B ; C : D"),
        ("A|B&C|D", "A | B & C | D"),
        ("(A|B)&C", "(A | B) & C"),
        ("(A|B)+", "(A | B)+"),
        ("A+,B?,C!", "A+ , B? , C!"),
        ("(A;B),C", "(A ; B) , C"),
        ("(A;B)+,C|(D,E)", "(A ; B)+ , C | (D , E)"),
        ("(A & B) & C", "(A & B) & C"),
        ("((A | (B & (C | D)))+ ; (E))", "(A | B & (C | D))+ ; E"),
    ],
)
def test_precedence(text: str, printed: str) -> None:
    query = parse(f"SELECT * FROM STREAM S <http://e/> SEQ ({text}) {{ DEFINE GPM A ON S {{ }} }}")
    assert print_sequence(query.sequence) == printed


def test_masking_keeps_every_offset() -> None:
    text = 'a <http://e/#x> # c \'\n \'it\\\'s\' """two\n"lines""" < > ?b'
    masked = mask(text)
    assert len(masked) == len(text) and masked.count("\n") == text.count("\n")
    assert masked.endswith("< > ?b") and "it" not in masked and "lines" not in masked and "c '" not in masked


def test_the_skeleton_keeps_every_offset() -> None:
    cut = skeleton(QUERY)
    assert len(cut.text) == len(QUERY)
    assert "OPTIONAL" not in cut.text and "seq (A; (B | C)+, D & E)" in cut.text


# -- parse(print(x)) == x

_names = st.text(string.ascii_letters, min_size=1, max_size=6).map("G".__add__)
_variables = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=5).map(ast.Variable)
_iris = st.text(string.ascii_letters + string.digits + "/#:?=", max_size=10).map("http://e/".__add__)
_atoms = _names.map(ast.Reference)


def _grow(children: st.SearchStrategy[ast.Element]) -> st.SearchStrategy[ast.Element]:
    several = st.lists(children, min_size=2, max_size=3).map(tuple)
    link = st.tuples(st.sampled_from(ast.Operator), children)
    return st.one_of(
        several.map(ast.Both),
        several.map(ast.Either),
        several.map(ast.Unordered),
        children.map(ast.Repeated),
        children.map(ast.Optional),
        children.map(ast.Negated),
        st.builds(ast.Chain, children, st.lists(link, min_size=1, max_size=2).map(tuple)),
    )


_elements = st.recursive(_atoms, _grow, max_leaves=8)
_groups = st.sampled_from(["{ }", "{ ?a :p ?x }", '{ ?a :p "}" . FILTER (?a > 3) }', "{ { ?a :p '''\n}''' } }"])
_within = st.builds(
    ast.Within,
    st.sampled_from(["1", "2.5", "10"]),
    st.sampled_from(["SECONDS", "MINUTES", "HOURS", "DAYS", "MILLISECONDS"]),
    st.booleans(),
    st.none() | st.sampled_from(["0", "2020-01-01T00:00:00Z"]),
)
_queries = st.builds(
    ast.Query,
    prologue=st.lists(st.builds(ast.Prefix, st.sampled_from(["", "a", "b-c"]), _iris), max_size=2).map(tuple),
    form=st.just("SELECT"),
    quantifier=st.sampled_from([None, "DISTINCT"]),
    select=st.lists(_variables, max_size=3).map(tuple),
    within=st.none() | _within,
    partition=st.lists(_variables, max_size=2).map(tuple),
    streams=st.lists(st.builds(ast.Stream, _names, _iris), min_size=1, max_size=2).map(tuple),
    sequence=_elements,
    definitions=st.lists(
        st.builds(
            ast.Definition,
            _names,
            st.lists(_names.map(ast.Name), min_size=1, max_size=2).map(tuple),
            _groups.map(ast.Embedded),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    modifiers=st.sampled_from(
        [
            (),
            (ast.Modifier("LIMIT", "3"),),
            (ast.Modifier("HAVING", "(COUNT(?x) > 3)"),),
            (ast.Modifier("VALUES", "(?x  ?y) { ('a  }' UNDEF) }"),),
        ]
    ),
    once=st.booleans(),
    after=st.none()
    | st.sampled_from([AfterText.PAST_LAST, AfterText.TO_NEXT, AfterText.NO_SKIP]).map(ast.AfterMatch)
    | st.builds(ast.AfterMatch, st.sampled_from([AfterText.TO_FIRST, AfterText.TO_LAST]), st.just(ast.Name("A"))),
)


@given(_queries)
def test_printing_and_parsing_are_inverse(query: ast.Query) -> None:
    assert parse(print_query(query)) == query
