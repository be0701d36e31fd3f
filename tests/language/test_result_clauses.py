"""What a query makes of its solutions: expressions, DISTINCT, groups, order, limits, in the windows they range over."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rdflib import BNode, Literal, URIRef

import spaseq
from spaseq.gpm import list_literal
from spaseq.language.results.computing import Computation
from spaseq.language.results.match import Match
from spaseq.language.results.results import finish
from spaseq.language.runtime.opened import stream_sources
from spaseq.rdf import Counters, StreamOptions
from tests.support import harness
from tests.support.graph_events import open_streams

GRAPHS: harness.Graphs = {
    "S": [(1, ":m :p 5"), (2, ":n :p 3"), (3, ":m :p 2 . :m :p 7"), (11, ":m :p 1"), (12, ":n :p 4")]
}
"""Two windows of ten seconds."""

XSD = "http://www.w3.org/2001/XMLSchema#"
Shown = list[tuple[int, tuple[int, ...], str]]


def _text(select: str, tail: str, sequence: str, clauses: str) -> str:
    return (
        f"PREFIX : <http://example.org/>\n{select} {clauses} FROM STREAM S <http://example.org/S>\n"
        f"WHERE {{ SEQ ({sequence}) DEFINE GPM A ON S {{ ?s :p ?x }} DEFINE GPM B ON S {{ ?t :p ?y }} }} {tail}"
    )


def _shown(matches: list[spaseq.Match]) -> Shown:
    """(time in seconds, positions, bindings with short names) of each match."""
    return [
        (m.time // 10**9, m.positions, " ".join(f"{k}={str(v).split('/')[-1]}" for k, v in m.bindings.items()))
        for m in matches
    ]


CASES: dict[str, tuple[str, str, str, Shown]] = {
    "an expression": (
        "SELECT ?s (?x + 1 AS ?y) (?y * 2 AS ?z)",
        "",
        "A",
        [
            (1, (0,), "s=m y=6 z=12"),
            (2, (1,), "s=n y=4 z=8"),
            (3, (2,), "s=m y=3 z=6"),
            (3, (2,), "s=m y=8 z=16"),
            (11, (3,), "s=m y=2 z=4"),
            (12, (4,), "s=n y=5 z=10"),
        ],
    ),
    "an expression that fails is unbound, and equal results are one": (
        "SELECT (?s + 1 AS ?y)",
        "",
        "A",
        [(1, (0,), ""), (2, (1,), ""), (3, (2,), ""), (11, (3,), ""), (12, (4,), "")],
    ),
    "DISTINCT, once in a window": (
        "SELECT DISTINCT ?s",
        "",
        "A",
        [(1, (0,), "s=m"), (2, (1,), "s=n"), (11, (3,), "s=m"), (12, (4,), "s=n")],
    ),
    "ORDER BY": (
        "SELECT ?s",
        "ORDER BY ?s DESC(?x)",
        "A",
        [(3, (2,), "s=m"), (1, (0,), "s=m"), (3, (2,), "s=m"), (2, (1,), "s=n"), (11, (3,), "s=m"), (12, (4,), "s=n")],
    ),
    "ORDER BY what is computed": (
        "SELECT ?x (0 - ?x AS ?k)",
        "ORDER BY ?k LIMIT 1",
        "A",
        [(3, (2,), "k=-7 x=7"), (12, (4,), "k=-4 x=4")],
    ),
    "ORDER BY a function by its IRI": (
        "SELECT ?x",
        "ORDER BY xsd:string(?x) LIMIT 1",
        "A",
        [(3, (2,), "x=2"), (11, (3,), "x=1")],
    ),
    "LIMIT and OFFSET": (
        "SELECT ?x",
        "ORDER BY ?x LIMIT 2 OFFSET 1",
        "A",
        [(2, (1,), "x=3"), (1, (0,), "x=5"), (12, (4,), "x=4")],
    ),
    "LIMIT alone: the first to end": ("SELECT ?x", "LIMIT 1", "A", [(1, (0,), "x=5"), (11, (3,), "x=1")]),
    "groups": (
        "SELECT ?s (COUNT(*) AS ?n) (SUM(?x) AS ?all) (?all / ?n AS ?mean)",
        "GROUP BY ?s",
        "A",
        [
            (2, (1,), "all=3 mean=3 n=1 s=n"),
            (3, (0, 2), "all=14 mean=4.666666666666666666666666667 n=3 s=m"),
            (11, (3,), "all=1 mean=1 n=1 s=m"),
            (12, (4,), "all=4 mean=4 n=1 s=n"),
        ],
    ),
    "HAVING": (
        "SELECT ?s (MIN(?x) AS ?least)",
        "GROUP BY ?s HAVING (COUNT(?x) > 1)",
        "A",
        [(3, (0, 2), "least=2 s=m")],
    ),
    "groups in order": (
        "SELECT ?s (MAX(?x) AS ?most)",
        "GROUP BY ?s ORDER BY DESC(?most)",
        "A",
        [(3, (0, 2), "most=7 s=m"), (2, (1,), "most=3 s=n"), (12, (4,), "most=4 s=n"), (11, (3,), "most=1 s=m")],
    ),
    "one group": (
        "SELECT (COUNT(*) AS ?n) (GROUP_CONCAT(?x ; separator=',') AS ?all)",
        "",
        "A",
        [(3, (0, 1, 2), "all=5,3,2,7 n=4"), (12, (3, 4), "all=1,4 n=2")],
    ),
    "an aggregate over an error is one, but for COUNT and SAMPLE": (
        "SELECT (SUM(?s) AS ?a) (AVG(?s) AS ?b) (MIN(?s + 1) AS ?c) (COUNT(?s + 1) AS ?n) (SAMPLE(?s) AS ?d)",
        "",
        "A",
        [(3, (0, 1, 2), "d=m n=0"), (12, (3, 4), "d=m n=0")],
    ),
    "least and greatest of IRIs are IRIs": (
        "SELECT (MIN(?s) AS ?least) (isIRI(MAX(?s)) AS ?iri) (COUNT(DISTINCT *) AS ?n)",
        "",
        "A",
        [(3, (0, 1, 2), "iri=true least=m n=4"), (12, (3, 4), "iri=true least=m n=2")],
    ),
    "ORDER BY an error, which comes first": (
        "SELECT ?x",
        "ORDER BY (1 / (?x - 3)) LIMIT 2",
        "A",
        [(2, (1,), "x=3"), (3, (2,), "x=2"), (11, (3,), "x=1"), (12, (4,), "x=4")],
    ),
    "a computed key, and counts of what is not always there": (
        "SELECT ?big (COUNT(?y) AS ?n)",
        "GROUP BY (?x > 4 AS ?big)",
        "A , B?",
        [(3, (0, 1, 2), "big=true n=1"), (3, (1, 2), "big=false n=2"), (12, (3, 4), "big=false n=1")],
    ),
}


CASES |= {
    "VALUES keeps what joins with its rows": (
        "SELECT ?x",
        "VALUES (?s ?x) { (:m UNDEF) (UNDEF 3) }",
        "A",
        [(1, (0,), "x=5"), (2, (1,), "x=3"), (3, (2,), "x=2"), (3, (2,), "x=7"), (11, (3,), "x=1")],
    ),
    "VALUES binds what nothing else does": (
        "SELECT *",
        "LIMIT 3 VALUES (?s ?why) { (:n 'new') (:n 'near') }",
        "A",
        [
            (2, (1,), "s=n why=new x=3"),
            (2, (1,), "s=n why=near x=3"),
            (12, (4,), "s=n why=new x=4"),
            (12, (4,), "s=n why=near x=4"),
        ],
    ),
    "VALUES behind groups joins with them": (
        "SELECT ?s (COUNT(*) AS ?n)",
        "GROUP BY ?s VALUES ?s { :n }",
        "A",
        [(2, (1,), "n=1 s=n"), (12, (4,), "n=1 s=n")],
    ),
    "VALUES with parentheses and braces in its strings": (
        "SELECT ?x ?note",
        "ORDER BY ?x LIMIT 1 VALUES ?note { ') } VALUES ?s {' }",
        "A",
        [(3, (2,), "note=) } VALUES ?s { x=2"), (11, (3,), "note=) } VALUES ?s { x=1")],
    ),
    "ASK: the first match, and no other": ("ASK", "", "A ; B", [(2, (0, 1), "")]),
}


@pytest.fixture
def streams(tmp_path: Path) -> dict[str, str]:
    return harness.write_streams(GRAPHS, tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_results(name: str, streams: dict[str, str]) -> None:
    """At once, and in batches with snapshots."""
    select, tail, sequence, expected = CASES[name]
    query = spaseq.compile(_text(select, tail, sequence, "WITHIN 10 SECONDS"))
    assert _shown(list(query.run(streams=streams))) == expected
    events, options = open_streams(stream_sources(query.checked, streams), StreamOptions(), Counters())
    rng, session, found = random.Random(0), query.open(options=options), []
    for batch in harness.cut(list(events), rng):
        found += session.push(batch)
        session = query.open(session.snapshot(), options=options)
    assert _shown(found + session.close()) == expected


ROUNDS: harness.Graphs = {
    "S": [(1, ":m :p 5"), (2, ":m :q 3"), (3, ":m :q 7 . :m :q 8"), (4, ":n :q 1"), (5, ":m :r 1")]
}
OVER_ROUNDS: dict[str, tuple[str, str, str, Shown]] = {
    "all rounds of a match; outside aggregates the last": (
        "SELECT ?y (AVG(?y) AS ?mean) (?y - MIN(?y) AS ?over)",
        "",
        "A ; B+",
        [
            (2, (0, 1), "mean=3 over=0 y=3"),
            (3, (0, 1, 2), "mean=5 over=4 y=7"),
            (3, (0, 1, 2), "mean=5.5 over=5 y=8"),
            (4, (0, 1, 2, 3), "mean=3.666666666666666666666666667 over=0 y=1"),
            (4, (0, 1, 2, 3), "mean=4 over=0 y=1"),
        ],
    ),
    "with a variable that no round binds": (
        "SELECT (SUM(?y - ?x) AS ?d)",
        "HAVING (COUNT(?y) = 2)",
        "A ; B+",
        [(3, (0, 1, 2), "d=0"), (3, (0, 1, 2), "d=1")],
    ),
    "in their order, and the results in theirs": (
        "SELECT (GROUP_CONCAT(?y) AS ?all)",
        "HAVING (COUNT(?y) > 2) ORDER BY DESC(?all)",
        "A ; B+",
        [(4, (0, 1, 2, 3), "all=3 8 1"), (4, (0, 1, 2, 3), "all=3 7 1")],
    ),
    "no round, and equal values": (
        "SELECT (COUNT(DISTINCT ?t) AS ?n)",
        "",
        "A ; B+?",
        [(1, (0,), "n=0"), (2, (0, 1), "n=1"), (3, (0, 1, 2), "n=1"), (4, (0, 1, 2, 3), "n=2")],
    ),
}


OVER_ROUNDS |= {
    "the list of a variable's values": (
        "SELECT ?y (?y+ AS ?ys)",
        "",
        "A ; B+",
        [
            (2, (0, 1), "y=3 ys=[3]"),
            (3, (0, 1, 2), "y=7 ys=[3, 7]"),
            (3, (0, 1, 2), "y=8 ys=[3, 8]"),
            (4, (0, 1, 2, 3), "y=1 ys=[3, 7, 1]"),
            (4, (0, 1, 2, 3), "y=1 ys=[3, 8, 1]"),
        ],
    ),
    "a list beside aggregates, in their order": (
        "SELECT (?y+ AS ?ys) (SUM(?y) AS ?all)",
        "HAVING (COUNT(?y) > 1) ORDER BY DESC(?all) ?ys",
        "A ; B+",
        [
            (4, (0, 1, 2, 3), "all=12 ys=[3, 8, 1]"),
            (4, (0, 1, 2, 3), "all=11 ys=[3, 7, 1]"),
            (3, (0, 1, 2), "all=11 ys=[3, 8]"),
            (3, (0, 1, 2), "all=10 ys=[3, 7]"),
        ],
    ),
    "values of rounds before the last that nothing looks at make no results": (
        "SELECT ?y (COUNT(?t) AS ?n)",
        "ORDER BY ?n ?y",
        "A ; B+",
        [
            (2, (0, 1), "n=1 y=3"),
            (3, (0, 1, 2), "n=2 y=7"),
            (3, (0, 1, 2), "n=2 y=8"),
            (4, (0, 1, 2, 3), "n=3 y=1"),
        ],
    ),
    "ORDER BY what is not selected": (
        "SELECT (COUNT(?y) AS ?n)",
        "HAVING (COUNT(?y) > 1) ORDER BY DESC(?y)",
        "A ; B+",
        [(3, (0, 1, 2), "n=2"), (3, (0, 1, 2), "n=2"), (4, (0, 1, 2, 3), "n=3"), (4, (0, 1, 2, 3), "n=3")],
    ),
    "the list of no round is empty, and lists are values like others": (
        "SELECT DISTINCT (?y+ AS ?ys)",
        "ORDER BY STRLEN(STR(?ys)) ?ys LIMIT 2",
        "A ; B+?",
        [(1, (0,), "ys=[]"), (2, (0, 1), "ys=[3]")],
    ),
}


@pytest.mark.parametrize("name", OVER_ROUNDS)
def test_aggregates_over_rounds(name: str, tmp_path: Path) -> None:
    select, tail, sequence, expected = OVER_ROUNDS[name]
    text = _text(select, tail, sequence, "WITHIN 10 SECONDS").replace("?t :p ?y", "?t :q ?y")
    assert _shown(list(spaseq.compile(text).run(streams=harness.write_streams(ROUNDS, tmp_path)))) == expected


def test_a_list_is_one_literal() -> None:
    terms = [
        Literal(1),
        Literal("2.50", datatype=URIRef(f"{XSD}decimal")),
        Literal('a"b', lang="en"),
        URIRef("http://e/x"),
        BNode("z"),
    ]
    terms += [
        Literal("01", datatype=URIRef(f"{XSD}byte"), normalize=False),
        Literal("true", datatype=URIRef(f"{XSD}boolean")),
        Literal("1e3", datatype=URIRef(f"{XSD}double"), normalize=False),
    ]
    text = r'[1, 2.50, "a\"b"@en, <http://e/x>, _:z, "01"^^<http://www.w3.org/2001/XMLSchema#byte>, true, 1e3]'
    made = list_literal(terms)
    assert (str(made), str(made.datatype)) == (text, "http://w3id.org/awslabs/neptune/SPARQL-CDTs/List")
    assert str(list_literal([])) == "[]"


def test_ask_reads_no_further_than_the_answer(tmp_path: Path) -> None:
    """What is wrong with the stream behind the first match is never seen; without a match the answer is no."""
    good = [(i, ":m :p 5") for i in range(600)]
    streams = harness.write_streams({"S": good}, tmp_path)
    with open(streams["S"], "a", encoding="utf-8") as file:
        file.write("this is no statement\n")
    text = _text("ASK", "", "A ; B", "")
    assert spaseq.compile(text).run(streams=streams).ask()
    assert [m.positions for m in spaseq.compile(text).run(streams=streams)] == [(0, 1)]
    with pytest.raises(spaseq.EventError):
        list(spaseq.compile(text.replace("ASK", "SELECT *")).run(streams=streams))
    never = spaseq.compile(text.replace("?x }", "?x FILTER (?x > 5) }"))
    assert not never.run(streams=harness.write_streams({"S": good}, tmp_path)).ask()


def test_without_a_window_the_stream_is_one(streams: dict[str, str]) -> None:
    query = spaseq.compile(_text("SELECT (COUNT(*) AS ?n)", "", "A", ""))
    assert _shown(list(query.run(streams=streams))) == [(12, (0, 1, 2, 3, 4), "n=6")]


def test_a_window_is_reported_when_the_next_begins(streams: dict[str, str]) -> None:
    query = spaseq.compile(_text("SELECT ?x", "ORDER BY ?x LIMIT 1", "A", "WITHIN 10 SECONDS"))
    events, options = open_streams(stream_sources(query.checked, streams), StreamOptions(), Counters())
    session = query.open(options=options)
    assert [len(session.push([event])) for event in events] == [0, 0, 0, 0, 1]
    assert len(session.close()) == 1


def test_a_group_shows_the_events_of_all_its_matches(streams: dict[str, str]) -> None:
    query = spaseq.compile(_text("SELECT ?s (COUNT(*) AS ?n)", "GROUP BY ?s", "A", ""))
    group = next(match for match in query.run(streams=streams) if str(match.bindings["s"]).endswith("m"))
    assert (group.start, group.end, len(group.events)) == (0, 3, 3)


def test_construct(streams: dict[str, str]) -> None:
    """Blank nodes of the template are the solution's own; what is no triple is left out."""
    query = spaseq.compile(_text("CONSTRUCT { ?s :q [ :r ?x ] . ?x :of ?s }", "ORDER BY ?x LIMIT 1", "A", ""))
    (match,) = query.run(streams=streams)
    graph = {tuple(term.n3() for term in triple) for triple in query.construct(match.bindings, 7)}
    e, one = "<http://example.org/", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert graph == {(f"{e}m>", f"{e}q>", "_:spaseq7x0"), ("_:spaseq7x0", f"{e}r>", one)}
    with pytest.raises(spaseq.OptionError, match="constructs no graph"):
        spaseq.compile(_text("SELECT *", "", "A", "")).construct(match.bindings)


TIED: harness.Graphs = {"S": [(0, ":a :p 1"), (1, ":a :p 1"), (2, ":b :p 2"), (3, ":c :q 5"), (4, ":c :q 5")]}
"""Two matches of one solution end at 3, and at 4; the engine finds the latest start first."""


@pytest.mark.parametrize(
    "select, tail, expected",
    [
        ("SELECT DISTINCT ?y", "", [(3, (0, 3), "y=5")]),
        ("SELECT ?x ?y", "LIMIT 2", [(3, (0, 3), "x=1 y=5"), (3, (2, 3), "x=2 y=5")]),
        ("SELECT ?x ?y", "ORDER BY ?y LIMIT 3 OFFSET 1", [(3, (2, 3), "x=2 y=5"), (4, (0, 4), "x=1 y=5"),
                                                          (4, (2, 4), "x=2 y=5")]),
        ("SELECT ?x (COUNT(?y) AS ?n)", "GROUP BY ?x", [(4, (0, 3, 4), "n=2 x=1"), (4, (2, 3, 4), "n=2 x=2")]),
        ("ASK", "", [(3, (0, 3), "")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pushed", [False, True])
def test_the_least_match_stands_for_a_solution(
    select: str, tail: str, expected: Shown, pushed: bool, tmp_path: Path
) -> None:
    text = _text(select, tail, "A : B", "").replace("?t :p ?y", "?t :q ?y")
    query, streams = spaseq.compile(text), harness.write_streams(TIED, tmp_path)
    if not pushed:
        assert _shown(list(query.run(streams=streams))) == expected
        return
    events, _ = open_streams(stream_sources(query.checked, streams), StreamOptions())
    with query.open() as session:
        found = [match for event in events for match in session.push([event])]
        assert _shown([*found, *session.close()]) == expected


@pytest.mark.parametrize("tail", ["", "LIMIT 3", "ORDER BY ?y LIMIT 4 OFFSET 1", "GROUP BY ?x"])
def test_results_do_not_depend_on_the_order_of_matches(tail: str) -> None:
    select = "SELECT ?x (COUNT(?y) AS ?n)" if "GROUP" in tail else "SELECT DISTINCT ?x ?y"
    clauses = spaseq.compile(_text(select, tail, "A ; B", "")).checked.clauses
    rng = random.Random(1)
    for _ in range(50):
        found = {}
        for _ in range(rng.randrange(12)):
            start, middle, end = sorted(rng.sample(range(5), 3))
            positions = rng.choice(((start, end), (start, middle, end)))
            bindings = {"x": Literal(rng.randrange(2)), "y": rng.choice((Literal(1), Literal("1"), URIRef("a:b")))}
            found[positions, tuple(bindings.items())] = Match(start, end, positions, bindings, positions, ())
        matches = list(found.values())
        expected = finish(clauses, matches)
        rng.shuffle(matches)
        assert finish(clauses, matches) == expected


EXISTS = {
    "a condition on the solution": ("?s ?x (IF(EXISTS { FILTER (?x > 2) }, 1, 0) AS ?e)", ""),
    "triples, of which there are none": ("?s (NOT EXISTS { ?s :p ?x } AS ?e)", ""),
    "a path of length zero": ("?s (EXISTS { ?s :p* ?s } AS ?e) (EXISTS { :a :p* ?s } AS ?f)", ""),
    "OPTIONAL and MINUS": (
        "?x (EXISTS { OPTIONAL { ?s :p ?x } } AS ?e) (EXISTS { VALUES ?x { 1 3 } MINUS { VALUES ?x { 3 } } } AS ?f)",
        ""),
    "in an aggregate": ("(SUM(IF(EXISTS { { VALUES ?x { 1 } } UNION { FILTER (?x = 3) } }, ?x, 0)) AS ?m)", ""),
    "in HAVING": ("?s (SUM(?x) AS ?m)", "GROUP BY ?s HAVING (EXISTS { VALUES ?s { :a :b } })"),
    "in a key of ORDER BY": (
        "?s ?x", "ORDER BY DESC(EXISTS { VALUES ?x { 1 3 } FILTER NOT EXISTS { ?x :p ?s } }) ?x LIMIT 9"),
    "in a key of GROUP BY": ("(COUNT(?x) AS ?m)", "GROUP BY (EXISTS { FILTER (?x > 2) } AS ?k)"),
    "a subquery": ("DISTINCT (EXISTS { SELECT ?x { VALUES ?x { 4 3 2 1 } } LIMIT 2 } AS ?e) ?x", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", EXISTS)
def test_exists_in_clauses_looks_at_an_empty_graph(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over columns as by rdflib's algebra: the terms of a solution stand in the pattern."""
    select, tail = EXISTS[name]
    rng = random.Random(name)
    drawn = [{f":{rng.choice('abc')} :p {rng.randrange(5)}" for _ in range(rng.randrange(1, 3))} for _ in range(30)]
    events = [(i, " . ".join(sorted(triples))) for i, triples in enumerate(drawn)]
    query = spaseq.compile(
        f"PREFIX : <http://example.org/> SELECT {select} WITHIN 10 SECONDS FROM STREAM S <http://example.org/S> "
        f"WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?s :p ?x }} }} {tail}"
    )
    streams = harness.write_streams({"S": events}, tmp_path)
    assert Computation.of(query.checked.clauses) is not None
    found = _shown(list(query.run(streams=streams)))
    monkeypatch.setattr(Computation, "of", lambda clauses: None)
    assert found == _shown(list(query.run(streams=streams))) and found
