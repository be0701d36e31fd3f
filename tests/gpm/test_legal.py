"""SPARQL that its grammar takes and its rules forbid is refused with its place and the rule; what is like it is taken.

Inside a GPM, in its subqueries and in the clauses of SPAseq.
"""

from __future__ import annotations

import pytest

import spaseq
from spaseq.language.syntax.parse import parse

HEAD = "PREFIX : <http://e/> SELECT {items} FROM STREAM S :S WHERE {{ SEQ (A) DEFINE GPM A ON S\n"


def query(group: str, items: str = "*", behind: str = "") -> str:
    return HEAD.format(items=items) + f"{{ {group} }} }} {behind}"


def refused(text: str) -> spaseq.QueryError:
    with pytest.raises(spaseq.QueryError) as caught:
        spaseq.compile(text)
    assert caught.value.span is not None
    return caught.value


WRONG = {
    # graph pattern: (column in the second line, the rule, what the carets are under)
    "_:a :p ?x . OPTIONAL { _:a :q ?y }": (26, "§19.6", "_:a"),
    "_:a :p ?x . { _:a :q ?y }": (17, "§19.6", "_:a"),
    "{ _:a :p ?x } UNION { _:a :q ?y }": (25, "§19.6", "_:a"),
    "_:a :p ?x . GRAPH :g { _:a :q ?y }": (26, "§19.6", "_:a"),
    "_:a :p ?x . MINUS { :b :q _:a }": (29, "§19.6", "_:a"),
    "_:a :p ?x . FILTER EXISTS { _:a :q ?x }": (31, "§19.6", "_:a"),
    "_:a :p ?x . BIND (1 AS ?y) _:a :q ?z": (30, "§19.6", "_:a"),
    "_:a :p ?x . { SELECT ?y { _:a :q ?y } }": (29, "§19.6", "_:a"),
    "?s :p ?x . BIND (?x + 1 AS ?x)": (30, "§18.2.1", "?x"),
    "?s :p ?x . OPTIONAL { ?s :q ?y } BIND (1 AS ?y)": (47, "§18.2.1", "?y"),
    "{ ?s :p ?y } UNION { ?s :q ?x } BIND (1 AS ?y)": (46, "§18.2.1", "?y"),
    "?s :p ?x . { SELECT ?s (1 AS ?y) { ?s :q ?z } } BIND (1 AS ?y)": (62, "§18.2.1", "?y"),
    "?s :p ?x . VALUES ?y { 1 } BIND (1 AS ?y)": (41, "§18.2.1", "?y"),
    "?s :p ?x . BIND (1 AS ?y) BIND (2 AS ?y)": (40, "§18.2.1", "?y"),
    "?s :p ?x . FILTER EXISTS { ?s :q ?y BIND (1 AS ?y) }": (50, "§18.2.1", "?y"),
    "{ SELECT (?x AS ?s) { ?s :p ?x } }": (19, "§18.2.1", "?s"),
    "{ SELECT (1 AS ?y) (2 AS ?y) { ?s :p ?x } }": (28, "§18.2.1", "?y"),
    "{ SELECT (MAX(?x) AS ?x) { ?s :p ?x } }": (24, "§18.2.1", "?x"),
    "{ SELECT ?y { ?s :p ?x } GROUP BY (?x AS ?s) (1 AS ?y) }": (44, "§18.2.1", "?s"),
    "{ SELECT ?s (COUNT(*) AS ?n) { ?s :p ?x } }": (12, "§11.4", "?s"),
    "{ SELECT ?x { ?s :p ?x } GROUP BY ?s }": (12, "§11.4", "?x"),
    "{ SELECT ((?x + MAX(?x)) AS ?y) { ?s :p ?x } }": (14, "§11.4", "?x"),
    "{ SELECT (?x + ?s AS ?y) { ?s :p ?x } GROUP BY (?x + ?s) }": (18, "§11.4", "?s"),
    "{ SELECT ?s { ?s :p ?x } HAVING (COUNT(*) > 1) }": (12, "§11.4", "?s"),
    "{ SELECT ?s { ?s :p ?x } ORDER BY COUNT(*) }": (12, "§11.4", "?s"),
    "{ SELECT * { ?s :p ?x } GROUP BY ?s }": (12, "§11.4", "*"),
    "{ SELECT (SUM(AVG(?x)) AS ?y) { ?s :p ?x } }": (17, "§19.8, note 13", "AVG"),
    "?s :p ?x . FILTER (MAX(?x) > 1)": (22, "§19.8, note 13", "MAX"),
    "?s :p ?x . BIND (COUNT(?x) AS ?n)": (20, "§19.8, note 13", "COUNT"),
    "{ SELECT ?s { ?s :p ?x } GROUP BY ?s (SUM(?x) AS ?n) }": (41, "§19.8, note 13", "SUM"),
    "?s :p ?x . OPTIONAL { ?s :q ?y FILTER (SUM(?x) > 1) }": (42, "§19.8, note 13", "SUM"),
    "?s :p ?x . FILTER (:f(DISTINCT ?x))": (25, "§19.8, note 14", "DISTINCT"),
    "?s :p ?x . VALUES (?s ?x) { (1) }": (14, "§19.8, note 10", "VALUES"),
    "VALUES () { (1) } ?s :p ?x": (3, "§19.8, note 10", "VALUES"),
    "?s :p ?x . VALUES (?y ?y) { (1 2) }": (22, "§18.1.8", "?y"),
    "?s :p ?x . FILTER (?x<?s&&?s>?x)": (24, "§19.8, note 3", "<?s&&?s>"),
}
RIGHT = (
    "_:a :p ?x . FILTER (?x > 1) _:a :q ?y",
    "_:a :p ?x ; :q [ :r _:a ] . :b :q (_:a 1)",
    "_:a :p/:q ?x . _:a :r ?y",
    "?s :p ?x . { BIND (1 AS ?x) }",
    "{ BIND (1 AS ?x) } UNION { ?s :p ?x }",
    "BIND (1 AS ?x) ?s :p ?x",
    "?s :p ?x . MINUS { ?s :q ?y } BIND (1 AS ?y)",
    "?s :p ?x . { SELECT ?s { ?s :q ?y } } BIND (1 AS ?y)",
    "?s :p ?x . FILTER EXISTS { ?s :q ?y } BIND (1 AS ?y)",
    "{ SELECT ?s (?x + 1 AS ?y) (?y + 1 AS ?z) { ?s :p ?x } }",
    "{ SELECT (SAMPLE(?x) AS ?y) (?y + 1 AS ?z) { ?s :p ?x } }",
    "{ SELECT ?s (STR(?s) AS ?y) (COUNT(*) AS ?n) { ?s :p ?x } GROUP BY ?s HAVING (?s != :a) ORDER BY ?s }",
    "{ SELECT ?k (COUNT(*) AS ?n) { ?s :p ?x } GROUP BY (?x + 1 AS ?k) }",
    "{ SELECT (COUNT(*) AS ?n) { ?s :p ?x } GROUP BY (?x + 1) (?x + 2) }",
    "{ SELECT (COUNT(DISTINCT ?x) AS ?n) (GROUP_CONCAT(DISTINCT ?x ; SEPARATOR=',') AS ?g) { ?s :p ?x } }",
    "{ SELECT * { ?s :p ?x } ORDER BY ?s }",
    "?s :p ?x . FILTER (?x < ?s && ?s > ?x)",
    "?s :p ?x . VALUES (?y ?z) { (1 UNDEF) (2 3) }",
)


@pytest.mark.parametrize("group", WRONG)
def test_inside_a_graph_pattern(group: str) -> None:
    column, rule, under = WRONG[group]
    text = query(group)
    error = refused(text)
    assert error.span is not None
    assert f"(SPARQL 1.1 {rule})" in error.problem
    assert (error.span.line, error.span.column) == (2, column)
    assert text[error.span.start : error.span.end] == under


@pytest.mark.parametrize("group", RIGHT)
def test_what_is_right_is_taken(group: str) -> None:
    spaseq.compile(query(group))


@pytest.mark.parametrize(
    ("items", "behind", "rule", "under"),
    [
        ("?s (?x + 1 AS ?y) (COUNT(*) AS ?n)", "GROUP BY ?s", "§11.4", "?x"),
        ("((?s + ?x) AS ?y) (COUNT(?x) AS ?n)", "GROUP BY (?s + ?x)", "§11.4", "?s"),
        ("?x", "GROUP BY ?s", "§11.4", "?x"),
        ("*", "GROUP BY ?s", "§11.4", "*"),
        ("?s (MAX(SUM(?x)) AS ?y)", "GROUP BY ?s", "§19.8, note 13", "SUM"),
        ("?s", "GROUP BY ?s (SUM(?x) AS ?y)", "§19.8, note 13", "SUM"),
        ("(?x AS ?s)", "", "§18.2.1", "(?x AS ?s)"),
        ("?y", "GROUP BY (?x AS ?s) (1 AS ?y)", "§18.2.1", "GROUP BY (?x AS ?s) (1 AS ?y)"),
        ("?s", "VALUES (?s ?x) { (1) }", "§19.8, note 10", "VALUES"),
        ("?s (:f(DISTINCT ?x) AS ?y)", "", "§19.8, note 14", "DISTINCT"),
    ],
)
def test_in_the_clauses_of_spaseq(items: str, behind: str, rule: str, under: str) -> None:
    text = query("?s :p ?x", items, behind)
    error = refused(text)
    assert error.span is not None and f"(SPARQL 1.1 {rule})" in error.problem
    assert text[error.span.start : error.span.end].strip() == under


def test_a_label_in_two_graph_patterns_of_one_query() -> None:
    text = """PREFIX : <http://e/> SELECT ?x FROM STREAM S :S WHERE { SEQ (A ; B)
        DEFINE GPM A ON S { ?x :p _:b }  # _:c
        DEFINE GPM B ON S { _:b :q ?x . a_:b :q "_:c" } }"""
    error = refused("PREFIX a_: <http://e/> " + text)
    assert error.span is not None and (error.span.line, error.span.column) == (3, 29)
    assert error.problem == "the blank node label _:b stands in GPM A and in GPM B (SPARQL 1.1 §19.6)"
    spaseq.compile("PREFIX a_: <http://e/> " + text.replace("{ _:b :q", "{ _:c :q"))


@pytest.mark.parametrize("group", ["<< ?s :p+ ?x >> :q ?y", "?s :p|:q ?x {| :q ?y |}"])
def test_a_property_path_is_not_reified(group: str) -> None:
    assert "is not SPARQL at" in refused(query(group)).problem


# -- BASE and PREFIX


def patterns(text: str) -> str:
    return repr(spaseq.compile(text).checked.patterns["A"].event)


@pytest.mark.parametrize(
    ("prologue", "term", "iri"),
    [
        ("BASE <http://example.org/x/> PREFIX : <#>", ":x", "http://example.org/x/#x"),
        ("BASE <http://example.org/x/> PREFIX : <>", ":x", "http://example.org/x/x"),
        ("BASE <http://e/a/> PREFIX : <b#> BASE <http://f/>", ":x", "http://e/a/b#x"),
        ("BASE <http://e/a/> PREFIX : <b#> BASE <http://f/>", "<x>", "http://f/x"),
        ("BASE <http://e/a/> BASE <../c/>", "<x>", "http://e/c/x"),
        ("PREFIX : <http://e/> PREFIX : <http://f/>", ":x", "http://f/x"),
        ("PREFIX : <http://e/> PREFIX a: <http://e/> PREFIX b: <http://e/>", "a:x", "http://e/x"),
        ("BASE <http://e/a>", "<#b:c>", "http://e/a#b:c"),
        ("BASE <urn:e:a>", "<#b>", "urn:e:a#b"),
        (r"PREFIX : <http://e/\u00E9#>", r":x\,y", "http://e/é#x,y"),
        ("", r"<http://e/\u0061#b>", "http://e/a#b"),
    ],
)
def test_names_are_resolved_where_they_stand(prologue: str, term: str, iri: str) -> None:
    """Each declaration holds for what stands behind it; RFC 3986 says what a relative IRI is."""
    text = f"{prologue} SELECT ?s FROM STREAM S <http://e/S> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?s {term} 1 }} }}"
    assert f"URIRef('{iri}')" in patterns(text)
    assert parse(text.replace("<http://e/S>", "<#S>").replace("SELECT", "BASE <http://z/> SELECT")).streams[0].iri == (
        "http://z/#S"
    )
    declared = parse(text.replace("<http://e/S>", term)).streams[0].iri if "," not in term else iri
    assert declared == iri


# -- characters


@pytest.mark.parametrize("escape", [r"\uD800", r"\udfff", r"\U0000DC00", r"\U00110000", r"\UFFFFFFFF"])
@pytest.mark.parametrize("where", ["'{}'", "<http://e/{}>", '"""\n{}"""', "1 . ?s :q '\u00e9{}'", "1 . # {}\n"])
def test_an_escape_of_no_character(escape: str, where: str) -> None:
    text = query("?s :p " + where.format(escape))
    error = refused(text)
    assert error.span is not None and text[error.span.start : error.span.end] == escape
    assert error.problem == f"{escape} is no character"


@pytest.mark.parametrize("place", [":S", "?s ", "PREFIX : <http://e/"])
def test_an_escape_of_no_character_in_the_clauses(place: str) -> None:
    new = {":S": r"<http://e/\uD800>", "?s ": r"('\uD800' AS ?z) ", "PREFIX : <http://e/": r"PREFIX : <http://e/\uD800"}
    error = refused(query("?s :p 1", "?s ").replace(place, new[place], 1))
    assert error.problem == r"\uD800 is no character"


def test_a_pair_of_halves_is_told_what_to_write() -> None:
    assert refused(query(r"?s :p '\uD83D\uDE00'")).hint == r"a character beyond U+FFFF is one escape: \U0001F600"
    assert "Literal('\U0001f600')" in patterns(query(r"?s :p '\U0001F600'"))


def test_an_escaped_backslash_begins_no_escape() -> None:
    assert r"Literal('\\uD800')" in patterns(query(r"?s :p '\\uD800'"))


def test_escapes_are_expanded_once() -> None:
    for group in (r"?s :p \u005cU00000031", r"?s :p \U0000005cu0031"):
        refused(query(group))


@pytest.mark.parametrize("text", [query("?s :p 'a\ud800b'"), query("?s :p 1", "?\udfff"), "\ud83d\ude00" + query("")])
def test_half_a_character_in_the_text(text: str) -> None:
    error = refused(text)
    assert "is half of one" in error.problem
    str(error).encode("utf-8")
