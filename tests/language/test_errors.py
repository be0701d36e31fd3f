"""Golden texts of the errors for wrong queries: what is wrong, where, what was expected, what to do."""

from __future__ import annotations

import pytest
from rdflib import Literal, URIRef

import ceql
import spaseq
from spaseq import GraphEvent
from spaseq.core.engine import Settings

HEAD = """PREFIX : <http://example.org/>
SELECT ?a ?x
WITHIN 10 SECONDS
FROM STREAM S <http://example.org/S>
WHERE {
"""
A = "  DEFINE GPM A ON S { ?a :p ?x }\n"


def _query(body: str, head: str = HEAD) -> str:
    return f"{head}{body}}}\n"


GOLDEN: dict[str, tuple[str, type[spaseq.QueryError], str]] = {
    "a query of CEQL": (
        "SELECT * WHERE A ; B",
        spaseq.QuerySyntaxError,
        """<query>:1:16: found 'A'
  SELECT * WHERE A ; B
                 ^
expected: '{', SEQ
hint: SEQ (A ; B) with a DEFINE GPM for each; a query over typed tuples is one of CEQL: ceql run""",
    ),
    "variables of CEQL": (
        "SELECT a WHERE A AS a ; B",
        spaseq.QuerySyntaxError,
        """<query>:1:8: found 'a'
  SELECT a WHERE A AS a ; B
         ^
expected: '*', DISTINCT, FIRST, a ?variable, an expression ( … )
hint: variables begin with ?; a query over typed tuples is one of CEQL: ceql run""",
    ),
    "zero or more as in regular expressions": (
        _query("  SEQ (A ; B*)\n" + A),
        spaseq.QuerySyntaxError,
        """<query>:6:13: found '*'
    SEQ (A ; B*)
              ^
expected: '!', '&', ')', '+', ',', ';' or ':', ';+' or ':+', '?', '{', '|'
hint: A+ is one or more, A+? zero or more""",
    ),
    "PARTITION BY behind WHERE": (
        "SELECT * FROM STREAM S <http://e/S> WHERE { SEQ (A) DEFINE GPM A ON S { ?a ?p 1 } } PARTITION BY (?a)",
        spaseq.QuerySyntaxError,
        """<query>:1:85: found 'PARTITION'
  SELECT * FROM STREAM S <http://e/S> WHERE { SEQ (A) DEFINE GPM A ON S { ?a ?p 1 } } PARTITION BY (?a)
                                                                                      ^^^^^^^^^
expected: GROUP, HAVING, LIMIT, OFFSET, ORDER, VALUES, the end of the query
hint: PARTITION stands between SELECT and WHERE""",
    ),
    "plain SPARQL": (
        "SELECT ?x WHERE { ?x ?p ?o }",
        spaseq.QuerySyntaxError,
        """<query>:1:19: found '?x'
  SELECT ?x WHERE { ?x ?p ?o }
                    ^^
expected: SEQ
hint: graph patterns have names and an order: WHERE { SEQ (A ; B) DEFINE GPM A ON S { … } … }""",
    ),
    "unclosed brace before the next GPM": (
        _query("  SEQ (A; B)\n  DEFINE GPM A ON S { ?a :p ?x\n  DEFINE GPM B ON S { ?a :p ?y }\n"),
        spaseq.QuerySyntaxError,
        """<query>:7:21: the brace that opens GPM A is not closed before the next DEFINE GPM on line 8
    DEFINE GPM A ON S { ?a :p ?x
                      ^
expected: }
hint: count the braces of its graph pattern: OPTIONAL, UNION, MINUS and GRAPH each open and close their own""",
    ),
    "unclosed brace at the end": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S { ?a :p ?x\n"),
        spaseq.QuerySyntaxError,
        """<query>:5:7: this brace is never closed
  WHERE {
        ^
expected: '}' before the query ends
hint: either its own '}' is missing, or that of a graph pattern behind it""",
    ),
    "no brace closes the GPM": (
        HEAD + "  SEQ (A)\n  DEFINE GPM A ON S { ?a :p ?x\n",
        spaseq.QuerySyntaxError,
        """<query>:7:21: the brace that opens GPM A is not closed
    DEFINE GPM A ON S { ?a :p ?x
                      ^
expected: }
hint: count the braces of its graph pattern: OPTIONAL, UNION, MINUS and GRAPH each open and close their own""",
    ),
    "unclosed SEQ": (
        _query("  SEQ (A\n" + A),
        spaseq.QuerySyntaxError,
        """<query>:6:7: the parenthesis that opens SEQ is not closed
    SEQ (A
        ^
expected: )""",
    ),
    "unclosed string": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S { ?a :p 'x }\n"),
        spaseq.QuerySyntaxError,
        """<query>:7:29: this string is never closed
    DEFINE GPM A ON S { ?a :p 'x }
                              ^
hint: a string on one line stands between two ' or two ", a longer one between ''' or \"\"\"""",
    ),
    "missing operator": (
        _query("  SEQ (A B)\n" + A),
        spaseq.QuerySyntaxError,
        """<query>:6:10: found 'B'
    SEQ (A B)
           ^
expected: '!', '&', ')', '+', ',', ';' or ':', ';+' or ':+', '?', '{', '|'""",
    ),
    "missing ON": (
        _query("  SEQ (A)\n  DEFINE GPM A { ?a :p ?x }\n"),
        spaseq.QuerySyntaxError,
        """<query>:7:16: found '{'
    DEFINE GPM A { ?a :p ?x }
                 ^
expected: ON
hint: say which stream the GPM reads: DEFINE GPM name ON stream { … }""",
    ),
    "FROM without STREAM": (
        _query("  SEQ (A)\n" + A, HEAD.replace("FROM STREAM", "FROM")),
        spaseq.QuerySyntaxError,
        """<query>:4:6: found 'S'
  FROM S <http://example.org/S>
       ^
expected: STREAM
hint: streams are named with FROM STREAM name <iri>""",
    ),
    "unknown unit": (
        _query("  SEQ (A)\n" + A, HEAD.replace("SECONDS", "PARSECS")),
        spaseq.QuerySyntaxError,
        """<query>:3:11: found 'PARSECS'
  WITHIN 10 PARSECS
            ^^^^^^^
expected: SECONDS, MINUTES, HOURS or EVENTS
hint: a window is WITHIN n SECONDS, MINUTES, HOURS or EVENTS""",
    ),
    "two windows": (
        _query("  SEQ (A)\n" + A, HEAD.replace("WHERE", "WITHIN 3 HOURS WHERE")),
        spaseq.QuerySyntaxError,
        """<query>:5:1: WITHIN stands twice
  WITHIN 3 HOURS WHERE {
  ^^^^^^^^^^^^^^""",
    ),
    "not SPARQL": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S { ?a :p ?x . FILTRE(?x > 3) }\n"),
        spaseq.QuerySyntaxError,
        """<query>:7:34: the graph pattern of GPM A is not SPARQL at 'FILTRE'
    DEFINE GPM A ON S { ?a :p ?x . FILTRE(?x > 3) }
                                   ^^^^^^
hint: it holds triple patterns that end with '.', FILTER ( … ), OPTIONAL { … }, GRAPH <iri> { … }""",
    ),
    "not SPARQL, after tabs and letters beyond ASCII": (
        _query('  SEQ (A)\n  DEFINE GPM A ON S { ?a :p ?x . ?ü\t:q "é\t\\u00e9"\t?a }\n'),
        spaseq.QuerySyntaxError,
        "<query>:7:51: the graph pattern of GPM A is not SPARQL at '?a'\n"
        '    DEFINE GPM A ON S { ?a :p ?x . ?ü\t:q "é\t\\u00e9"\t?a }\n'
        "                                     \t     \t       \t^^\n"
        "hint: it holds triple patterns that end with '.', FILTER ( … ), OPTIONAL { … }, GRAPH <iri> { … }",
    ),
    "undeclared prefix that rdflib knows": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S { ?a foaf:name ?x }\n"),
        spaseq.QuerySemanticsError,
        """<query>:7:26: the prefix foaf: is not declared
    DEFINE GPM A ON S { ?a foaf:name ?x }
                           ^^^^^
hint: declare it: PREFIX foaf: <…>""",
    ),
    "undeclared prefix of a stream": (
        _query("  SEQ (A)\n" + A, HEAD.replace("<http://example.org/S>", "ex:S")),
        spaseq.QuerySemanticsError,
        """<query>:4:15: the prefix ex: is not declared
  FROM STREAM S ex:S
                ^^^^
hint: declare it: PREFIX ex: <…>""",
    ),
    "unknown stream": (
        _query("  SEQ (A)\n  DEFINE GPM A ON T { ?a :p ?x }\n"),
        spaseq.QuerySemanticsError,
        """<query>:7:19: GPM A reads the unknown stream T
    DEFINE GPM A ON T { ?a :p ?x }
                    ^
hint: there is S""",
    ),
    "unknown GPM": (
        _query("  SEQ (A; Power2)\n" + A + "  DEFINE GPM Power1 ON S { ?a :p ?x }\n"),
        spaseq.QuerySemanticsError,
        """<query>:6:11: SEQ names the unknown GPM Power2
    SEQ (A; Power2)
            ^^^^^^
hint: did you mean Power1?""",
    ),
    "unknown variable in SELECT": (
        _query("  SEQ (A)\n" + A, HEAD.replace("?x", "?z")),
        spaseq.QuerySemanticsError,
        """<query>:2:11: SELECT names the unknown variable ?z: no GPM in SEQ binds it
  SELECT ?a ?z
            ^^
hint: there is ?a, ?x""",
    ),
    "unknown variable in FILTER": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S { ?a :p ?x . FILTER(?xx > 3) }\n"),
        spaseq.QuerySemanticsError,
        """<query>:7:41: GPM A names the unknown variable ?xx: neither it nor a GPM before it binds ?xx
    DEFINE GPM A ON S { ?a :p ?x . FILTER(?xx > 3) }
                                          ^^^
hint: did you mean ?x?""",
    ),
    "a variable of a later GPM in FILTER": (
        _query("  SEQ (B, A)\n" + A + "  DEFINE GPM B ON S { ?b :p ?y FILTER (?y > ?x) }\n"),
        spaseq.QuerySemanticsError,
        """<query>:8:45: a FILTER of GPM B names ?x, which is bound only after B, or in an alternative to it
    DEFINE GPM B ON S { ?b :p ?y FILTER (?y > ?x) }
                                              ^^
hint: a FILTER can name variables of its own GPM, of GPMs before it, and of those joined to it by '&' or AND""",
    ),
    "unknown variable in PARTITION BY": (
        _query("  SEQ (A)\n" + A, HEAD.replace("WHERE", "PARTITION BY (?b) WHERE")),
        spaseq.QuerySemanticsError,
        """<query>:5:15: PARTITION BY names the unknown variable ?b: no GPM in SEQ binds it
  PARTITION BY (?b) WHERE {
                ^^
hint: there is ?a, ?x""",
    ),
    "a GPM does not bind the key": (
        _query(
            "  SEQ (A, B)\n" + A + "  DEFINE GPM B ON S { ?b :p ?x }\n",
            HEAD.replace("WHERE", "PARTITION BY (?a) WHERE"),
        ),
        spaseq.QuerySemanticsError,
        """<query>:5:15: PARTITION BY ?a, and GPM B does not bind it
  PARTITION BY (?a) WHERE {
                ^^
hint: every GPM in SEQ must bind what partitions the streams""",
    ),
    "Kleene+ below conjunction": (
        _query("  SEQ (A+ & B)\n" + A + "  DEFINE GPM B ON S { ?a :p ?x }\n"),
        spaseq.QuerySemanticsError,
        """<query>:6:8: '+' stands inside '&' or '|'
    SEQ (A+ & B)
         ^^
hint: they combine GPMs at one instant; write (A | B)+""",
    ),
    "a start that is no time": (
        _query("  SEQ (A)\n" + A, HEAD.replace("SECONDS", "SECONDS STARTING AT 'noon'")),
        spaseq.QuerySemanticsError,
        """<query>:3:1: STARTING AT: 'noon' is not a time
  WITHIN 10 SECONDS STARTING AT 'noon'
  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: a time is an xsd:dateTime such as 2024-05-01T12:00:00Z, or a number (here counted in s)""",
    ),
    "SERVICE": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S { ?a :p ?x . SERVICE <http://example.org/> { ?a :q ?y } }\n"),
        spaseq.UnsupportedFeature,
        """<query>:7:34: SERVICE is refused: a query never opens a connection
    DEFINE GPM A ON S { ?a :p ?x . SERVICE <http://example.org/> { ?a :q ?y } }
                                   ^^^^^^^""",
    ),
    "optional below conjunction": (
        _query("  SEQ (A? & B)\n" + A + "  DEFINE GPM B ON S { ?a :p ?x }\n"),
        spaseq.QuerySemanticsError,
        """<query>:6:8: '?' stands inside '&' or '|'
    SEQ (A? & B)
         ^^
hint: they combine GPMs at one instant; write (A | B)?""",
    ),
    "a negation that is optional": (
        _query("  SEQ (A, B!?)\n" + A + "  DEFINE GPM B ON S { ?a :p ?x }\n"),
        spaseq.QuerySemanticsError,
        """<query>:6:11: '!' stands together with a repetition or '?'
    SEQ (A, B!?)
            ^^^
hint: what must not occur cannot be repeated or left out: write '!' alone""",
    ),
    "nothing that must occur": (
        _query("  SEQ (A!)\n" + A),
        spaseq.QuerySemanticsError,
        """<query>:6:8: SEQ holds nothing that must occur
    SEQ (A!)
         ^^
hint: name a GPM without '!'""",
    ),
    "a variable that only a negated GPM has": (
        _query("  SEQ (A, B!)\n" + A + "  DEFINE GPM B ON S { ?a :p ?y }\n", HEAD.replace("?x", "?y")),
        spaseq.QuerySemanticsError,
        """<query>:2:11: SELECT names ?y, which only a negated GPM has
  SELECT ?a ?y
            ^^
hint: a negated GPM binds nothing""",
    ),
    "a sequence below conjunction": (
        _query("  SEQ (A, (A; A) & A)\n" + A),
        spaseq.QuerySemanticsError,
        """<query>:6:11: a sequence stands inside '&'
    SEQ (A, (A; A) & A)
            ^^^^^^
hint: '&' combines GPMs at one instant; '|' takes sequences""",
    ),
    "a sequence that is negated": (
        _query("  SEQ (A, (A; A)!)\n" + A),
        spaseq.QuerySemanticsError,
        """<query>:6:11: '!' stands behind a sequence
    SEQ (A, (A; A)!)
            ^^^^^^^
hint: what must not come is at one instant: a GPM, or several joined by '&' and '|'""",
    ),
    "rounds that end with a negation": (
        _query("  SEQ ((A; A!)+)\n" + A),
        spaseq.UnsupportedFeature,
        """<query>:6:8: a sequence under a repetition or '|' that may be empty, or begin or end with '!' \
is not supported by this version
    SEQ ((A; A!)+)
         ^^^^^^^^
hint: put '!' between two elements, and '?' behind the parentheses: (A ; N! ; B)+, (A ; B)+?""",
    ),
    "aggregates over rounds and over solutions": (
        _query("  SEQ (A+)\n" + A, HEAD.replace("?a ?x", "(AVG(?x) AS ?y) (COUNT(*) AS ?n)")),
        spaseq.UnsupportedFeature,
        """<query>:2:13: an aggregate over ?x, which a Kleene+ binds in every round, \
with GROUP BY or one over solutions is not supported by this version
  SELECT (AVG(?x) AS ?y) (COUNT(*) AS ?n)
              ^^
hint: aggregates over rounds alone give a result for each match""",
    ),
    "the list of rounds of what has no rounds": (
        _query("  SEQ (A; B+)\n" + A + "  DEFINE GPM B ON S { ?a :p ?y }\n", HEAD.replace("?x", "(?x+ AS ?xs)")),
        spaseq.QuerySemanticsError,
        """<query>:2:11: (?x+ AS ?xs) lists the values of ?x in rounds of a Kleene+, and it has one
  SELECT ?a (?x+ AS ?xs)
            ^^^^^^^^^^^^
hint: no GPM under '+' binds ?x afresh in each round: write ?x""",
    ),
    "the list of rounds with an aggregate over solutions": (
        _query(
            "  SEQ (A; B+)\n" + A + "  DEFINE GPM B ON S { ?a :p ?y }\n",
            HEAD.replace("?a ?x", "(COUNT(*) AS ?n) (?y+ AS ?ys)"),
        ),
        spaseq.UnsupportedFeature,
        """<query>:2:25: the list of a variable's rounds with GROUP BY or an aggregate over solutions is not \
supported by this version
  SELECT (COUNT(*) AS ?n) (?y+ AS ?ys)
                          ^^^^^^^^^^^^
hint: a list is of one match: aggregate over its rounds, or select it without GROUP BY""",
    ),
    "VALUES with a row too short": (
        _query("  SEQ (A)\n" + A).rstrip() + " VALUES (?a ?x) { (:a 1) (:b) }",
        spaseq.QuerySemanticsError,
        """<query>:8:3: a row of VALUES has 1 terms for 2 variables (SPARQL 1.1 §19.8, note 10)
  } VALUES (?a ?x) { (:a 1) (:b) }
    ^^^^^^
hint: write UNDEF for a variable that a row leaves open""",
    ),
    "VALUES not closed": (
        _query("  SEQ (A)\n" + A).rstrip() + " VALUES ?a { :a",
        spaseq.QuerySyntaxError,
        """<query>:8:13: the brace that opens the data of VALUES is not closed
  } VALUES ?a { :a
              ^
expected: }
hint: count the braces of its graph pattern: OPTIONAL, UNION, MINUS and GRAPH each open and close their own""",
    ),
    "a row too short in a graph pattern": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S {\n    ?a :p ?x\n    VALUES (?a ?x) { (:a) }\n  }\n"),
        spaseq.QuerySemanticsError,
        """<query>:9:5: a row of VALUES has 1 terms for 2 variables (SPARQL 1.1 §19.8, note 10)
      VALUES (?a ?x) { (:a) }
      ^^^^^^
hint: write UNDEF for a variable that a row leaves open""",
    ),
    "a property path that is not one": (
        _query("  SEQ (A)\n  DEFINE GPM A ON S {\n    ?a :p/ ?x .\n  }\n"),
        spaseq.QuerySyntaxError,
        """<query>:8:5: the graph pattern of GPM A is not SPARQL at '?a'
      ?a :p/ ?x .
      ^^
hint: it holds triple patterns that end with '.', FILTER ( … ), OPTIONAL { … }, GRAPH <iri> { … }""",
    ),
    "a FILTER behind non-ASCII text": (
        _query('  SEQ (A)\n  DEFINE GPM A ON S { ?a :p "écluse" ; :q ?x FILTER (?x >) }\n'),
        spaseq.QuerySyntaxError,
        """<query>:7:46: the graph pattern of GPM A is not SPARQL at 'FILTER'
    DEFINE GPM A ON S { ?a :p "écluse" ; :q ?x FILTER (?x >) }
                                               ^^^^^^
hint: it holds triple patterns that end with '.', FILTER ( … ), OPTIONAL { … }, GRAPH <iri> { … }""",
    ),
    "an expression without a name": (
        _query("  SEQ (A)\n" + A, HEAD.replace("?x", "(?x + 1)")),
        spaseq.QuerySyntaxError,
        """<query>:2:11: an expression in SELECT has no name
  SELECT ?a (?x + 1)
            ^^^^^^^^
expected: (expression AS ?name)""",
    ),
    "an expression that is not SPARQL": (
        _query("  SEQ (A)\n" + A, HEAD.replace("?x", "(?x * AS ?y)")),
        spaseq.QuerySyntaxError,
        """<query>:2:11: SELECT is not SPARQL at '('
  SELECT ?a (?x * AS ?y)
            ^""",
    ),
    "a computed variable that is bound": (
        _query("  SEQ (A)\n" + A, HEAD.replace("?x", "(?x + 1 AS ?x)")),
        spaseq.QuerySemanticsError,
        """<query>:2:11: SELECT computes ?x, which is bound already (SPARQL 1.1 §18.2.1)
  SELECT ?a (?x + 1 AS ?x)
            ^^^^^^^^^^^^^^
hint: give it another name""",
    ),
    "a variable of a group": (
        _query("  SEQ (A)\n" + A, HEAD.replace("?x", "(COUNT(*) AS ?n)")),
        spaseq.QuerySemanticsError,
        """<query>:2:8: SELECT names ?a, which is neither aggregated nor in GROUP BY (SPARQL 1.1 §11.4)
  SELECT ?a (COUNT(*) AS ?n)
         ^^
hint: add it to GROUP BY, or take one of its values: (SAMPLE(?a) AS ?one)""",
    ),
    "an unknown variable in ORDER BY": (
        _query("  SEQ (A)\n" + A) + "ORDER BY ?y",
        spaseq.QuerySemanticsError,
        """<query>:9:10: ORDER BY names the unknown variable ?y: no GPM in SEQ binds it
  ORDER BY ?y
           ^^
hint: there is ?a, ?x""",
    ),
    "ORDER BY in a window that slides": (
        _query("  SEQ (A)\n" + A, HEAD.replace("SECONDS", "SECONDS SLIDING")) + "ORDER BY ?x",
        spaseq.UnsupportedFeature,
        """<query>:2:1: ORDER BY with WITHIN … SLIDING is not supported by this version
  SELECT ?a ?x
  ^^^^^^^^^^^^
hint: it ranges over the solutions of one window: leave out SLIDING""",
    ),
    "a template that is not SPARQL": (
        _query("  SEQ (A)\n" + A, HEAD.replace("SELECT ?a ?x", "CONSTRUCT { ?a :q }")),
        spaseq.QuerySyntaxError,
        """<query>:2:13: the CONSTRUCT template is not SPARQL at '?a'
  CONSTRUCT { ?a :q }
              ^^""",
    ),
    "ASK with a limit": (
        _query("  SEQ (A)\n" + A, HEAD.replace("SELECT ?a ?x", "ASK")) + "LIMIT 2",
        spaseq.QuerySemanticsError,
        """<query>:9:1: ASK with LIMIT
  LIMIT 2
  ^^^^^^^
hint: ASK only says whether there is a match: use SELECT""",
    ),
    "a nested FILTER over another GPM": (
        _query(
            "  SEQ (A, B)\n" + A + "  DEFINE GPM B ON S { ?b :p ?y OPTIONAL { ?b :q ?z FILTER(?z > ?x) } }\n",
        ),
        spaseq.UnsupportedFeature,
        """<query>:8:64: a FILTER inside OPTIONAL of GPM B that names ?x of another GPM is not supported by this version
    DEFINE GPM B ON S { ?b :p ?y OPTIONAL { ?b :q ?z FILTER(?z > ?x) } }
                                                                 ^^
hint: compare with other GPMs in a FILTER at the top of the graph pattern, or rename the variable""",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_error(name: str) -> None:
    query, kind, text = GOLDEN[name]
    with pytest.raises(spaseq.QueryError) as caught:
        spaseq.compile(query)
    assert str(caught.value) == text
    assert type(caught.value) is kind


@pytest.mark.parametrize("text", ["", "   ", "#only a comment", "hello", "SELECT", "\0", "SELECT ?a WHERE { SEQ () }"])
def test_garbage_is_a_syntax_error(text: str) -> None:
    with pytest.raises(spaseq.QuerySyntaxError):
        spaseq.compile(text)


def test_an_unused_gpm_is_a_warning() -> None:
    query = spaseq.compile(_query("  SEQ (A)\n" + A + "  DEFINE GPM B ON S { ?a :p ?y }\n"))
    assert query.warnings == ("GPM B is defined and SEQ does not use it",)


def test_a_negation_without_effect_is_a_warning() -> None:
    query = spaseq.compile(_query("  SEQ (A; B!, A)\n" + A + "  DEFINE GPM B ON S { ?a :p ?y }\n"))
    assert query.warnings == ("B! forbids nothing between ';' and ',': no instant can lie there",)


def test_a_call_of_no_function_is_a_warning() -> None:
    b = "  DEFINE GPM B ON S { ?a :p ?y FILTER (xsd:int(?y) > 1) FILTER EXISTS { ?a :q ?q BIND(:f(:f(?q)) AS ?r) } }\n"
    query = spaseq.compile("PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n" + _query("  SEQ (A; B)\n" + A + b))
    assert query.warnings == (
        "GPM B calls <http://example.org/f>, which is no function here: it never has a value "
        '(spaseq.register_function("http://example.org/f", function) makes it one)',
        "GPM B calls <http://www.w3.org/2001/XMLSchema#int>, which is no function here: it never has a value "
        "(casts are xsd:integer, decimal, float, double, boolean, string and dateTime)",
    )


def test_too_many_variants_are_a_budget() -> None:
    with pytest.raises(spaseq.BudgetExceeded) as caught:
        spaseq.compile(_query("  SEQ (A" + ", A?" * 9 + ")\n" + A))
    assert (caught.value.limit, caught.value.used, caught.value.exit_code) == (256, 512, 4)
    assert (caught.value.setting, caught.value.limit) == ("variants", Settings().variants)
    spaseq.compile(_query("  SEQ (A" + ", A?" * 3 + ")\n" + A), settings=Settings(variants=8))
    with pytest.raises(spaseq.BudgetExceeded, match="variants is 4 "):
        spaseq.compile(_query("  SEQ (A" + ", A?" * 3 + ")\n" + A), settings=Settings(variants=4))


def test_too_many_alternatives_under_one_negation_are_a_budget() -> None:
    gpms = A + "".join(f"  DEFINE GPM N{i} ON S {{ ?a :n ?x{i} FILTER (?x{i} > ?x) }}\n" for i in range(3))
    text = _query("  SEQ (A; (N0 | N1 | N2)!; A)\n" + gpms)
    spaseq.compile(text)
    with pytest.raises(spaseq.BudgetExceeded, match="negated_conditions is 2 alternatives under one negation and 3"):
        spaseq.compile(text, settings=Settings(negated_conditions=2))


def test_the_source_is_named() -> None:
    with pytest.raises(spaseq.QuerySyntaxError, match=r"^power\.rq:1:1: "):
        spaseq.compile("hello", source="power.rq")


@pytest.mark.parametrize(
    ("sequence", "hint"),
    [
        ("A -> B", "A ; B is then, the first that fits; A : B every later one; A , B directly after"),
        ("A THEN B", "A ; B is then, the first that fits; A : B every later one; A , B directly after"),
        ("A{2} , B*", "A+ is one or more, A+? zero or more"),
        ("A AND B", "at one time is A & B; in any order AND(A, B); in order A ; B"),
        ("A OR B", "one of them is A | B"),
        ("NOT A", "what must not come is written A!"),
        ("A ; AND", ""),
    ],
)
def test_signs_and_words_of_other_languages_in_seq(sequence: str, hint: str) -> None:
    with pytest.raises(spaseq.QueryError) as error:
        spaseq.compile(_query(f"  SEQ ({sequence})\n" + A))
    assert (error.value.hint == hint) if hint else ("&" not in error.value.hint)


def test_a_window_behind_a_stream() -> None:
    with pytest.raises(spaseq.QuerySyntaxError) as error:
        spaseq.compile("SELECT ?x FROM STREAM S <urn:s> [RANGE 5s] WHERE { SEQ (A) DEFINE GPM A ON S { ?x ?p ?y } }")
    assert error.value.hint == "the window is that of the query: WITHIN n SECONDS between SELECT and WHERE"


@pytest.mark.parametrize(("before", "behind"), [(0, 900), (900, 0), (900, 900), (30, 30)])
def test_of_a_long_line_the_part_around_the_error_is_shown(before: int, behind: int) -> None:
    """Half a megabyte of parentheses were shown with half a megabyte of blanks under them."""
    with pytest.raises(ceql.QuerySyntaxError) as raised:
        ceql.compile(f"SELECT * WHERE {'A OR ' * before}A ) {'OR A ' * behind}")
    head, line, carets, *_ = str(raised.value).splitlines()
    assert "')'" in head and len(line) <= 405 and len(carets) <= 405
    assert line[carets.index("^")] == ")" and carets.strip() == "^"
    assert line.startswith("  …") == (before == 900) and line.endswith("…") == (behind == 900)


def test_matches_that_wait_for_a_negation_are_under_the_budget_of_the_output() -> None:
    query = spaseq.compile(
        "PREFIX : <urn:> SELECT ?a WITHIN 1 HOURS FROM STREAM S <urn:s> WHERE { SEQ (A : B!) "
        "DEFINE GPM A ON S { ?a :p ?x } DEFINE GPM B ON S { ?b :q ?a } }",
        settings=Settings(output_bytes=5_000),
    )
    session = query.open()
    for i in range(2):
        session.push(GraphEvent("urn:s", i * 10**9, ((URIRef(f"urn:{i}"), URIRef("urn:p"), Literal(i)),), None))
    with pytest.raises(spaseq.BudgetExceeded, match="output_bytes is 5,000 bytes and 6,000 are needed"):
        session.push(
            [GraphEvent("urn:s", i * 10**9, ((URIRef(f"urn:{i}"), URIRef("urn:p"), Literal(i)),), None) for i in (2, 3)]
        )
