"""Triple terms, reifiers and directions in graph patterns: random patterns on random graphs, against the SPARQL 1.2
engine of pyoxigraph, in every way in; and named cases."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyoxigraph
import pytest
from rdflib import BNode, Literal, URIRef
from rdflib import Graph as Graph_

import spaseq
from spaseq.gpm import Knowledge, PatternEvaluator, Source, compile_pattern
from spaseq.gpm.columnar.evaluate import BatchEvaluator
from spaseq.language.syntax.scan import mask
from spaseq.rdf import (
    DirectionalString,
    GraphBatch,
    GraphEvent,
    Terms,
    TripleTerm,
    build_knowledge,
    given,
    term_from_key,
    term_key,
    term_of,
)
from spaseq.rdf.given import to_pyoxigraph
from tests.gpm.test_w3c_sparql12 import Row, _comparable, same
from tests.support.sizes import some

E = "http://e/"
STREAM = f"{E}S"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
PROLOGUE = f"PREFIX : <{E}>\n"


REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
DOUBLE = '"1"^^<http://www.w3.org/2001/XMLSchema#double>'
Node = str | tuple[Any, Any, Any]
"""A term of SPARQL, or the parts of a triple term."""
Graph = list[tuple[str, str, Node]]


def random_node(rng: random.Random) -> str:
    return rng.choice([":a", ":b", ":c", "_:x", "_:y"])


def random_object(rng: random.Random, deep: int = 2) -> Node:
    if deep and rng.random() < 0.45:
        return random_node(rng), rng.choice([":p", ":q"]), random_object(rng, deep - 1)
    return rng.choice([":a", ":b", "_:x", "1", DOUBLE, '"s"', '"s"@en', '"s"@en--ltr', '"s"@en--rtl'])


def random_graph(rng: random.Random) -> Graph:
    return [(random_node(rng), rng.choice([":p", ":q", REIFIES]), random_object(rng)) for _ in range(rng.randint(3, 9))]


def written(term: Node) -> str:
    return term if isinstance(term, str) else f"<<( {' '.join(map(written, term))} )>>"


def text_of(graph: Graph) -> str:
    return PROLOGUE + "\n".join(f"{' '.join(map(written, triple))} ." for triple in graph)


def opened(rng: random.Random, term: Node, label: str, names: dict[Node, str], *, object: bool = True) -> Node:
    """A term of the graph, or a variable or a blank node for it: mostly the same for the same term."""
    if not isinstance(term, str) and rng.random() < 0.7:
        subject, predicate, inner = term
        return (
            opened(rng, subject, label, names, object=False),
            predicate if rng.random() < 0.6 else names.setdefault(predicate, f"?{rng.choice('vw')}"),
            opened(rng, inner, label, names),
        )
    if isinstance(term, str) and rng.random() < 0.3 and not term.startswith("_:"):
        return term
    if rng.random() < 0.15:
        return f"_:{label}{rng.choice('01')}"
    if rng.random() < 0.15:
        return f"?{rng.choice('xyz')}"
    return names.setdefault(term, f"?{rng.choice('xyzu')}")


def random_triples(rng: random.Random, graph: Graph, label: str, names: dict[Node, str]) -> str:
    """Triples of the graph with variables; triples with `rdf:reifies` also as reified triples and annotations."""
    out = []
    for _ in range(rng.randint(1, 3)):
        subject, predicate, term = rng.choice(graph)
        s = written(opened(rng, subject, label, names, object=False))
        p = predicate if rng.random() < 0.7 else names.setdefault(predicate, f"?{rng.choice('vw')}")
        o = opened(rng, term, label, names)
        if isinstance(o, tuple) and predicate == REIFIES and rng.random() < 0.7:
            parts = " ".join(map(written, o))
            out.append(f"<< {parts} ~ {s} >> ?k ?l ." if rng.random() < 0.5 else f"{parts} ~ {s} .")
        else:
            out.append(f"{s} {p} {written(o)} .")
    return " ".join(out)


def random_filter(rng: random.Random) -> str:
    one, other = rng.choice("xyz"), rng.choice("xyzuw")
    return rng.choice([
        f"FILTER (?{one} = ?{other})", f"FILTER (?{one} != ?{other})", f"FILTER (isTRIPLE(?{one}))",
        f"FILTER (OBJECT(?{one}) = 1)", f"BIND (TRIPLE(?{one}, :p, ?{other}) AS ?t)", f"FILTER (hasLANGDIR(?{one}))",
        f"BIND (<<( :a :p ?{one} )>> AS ?t)", f"FILTER (isLITERAL(?{one}))", f"BIND (LANGDIR(?{one}) AS ?t)",
        f"BIND (DATATYPE(?{one}) AS ?t)", f"BIND (LANG(?{one}) AS ?t)", f"FILTER (?{one} IN (<<( :a :p 1 )>>, 1))",
        f"BIND (SUBJECT(?{one}) AS ?t)", f"FILTER (sameTerm(?{one}, ?{other}))", f"FILTER (!isTRIPLE(?{one}))",
        f"VALUES ?{one} {{ <<( :a :p 1 )>> :a 1 }}", "",
    ])  # fmt: skip


def random_group(rng: random.Random, graph: Graph) -> str:
    names: dict[Node, str] = {}
    inner = random_triples(rng, graph, "n", names)
    more = [random_triples(rng, graph, label, names) for label in "mk"]
    rest = rng.choice([
        "", f"OPTIONAL {{ {more[0]} }}", f"MINUS {{ {more[0]} }}", f"FILTER EXISTS {{ {more[0]} }}",
        f"FILTER NOT EXISTS {{ {more[0]} }}", f"{{ {more[0]} }} UNION {{ {more[1]} }}",
    ])  # fmt: skip
    return f"{{ {inner} {rest} {random_filter(rng)} }}"


def expected_rows(graph: str, group: str) -> set[Row]:
    """By pyoxigraph."""
    store = pyoxigraph.Store()
    store.load(graph.encode(), pyoxigraph.RdfFormat.TURTLE)
    found = store.query(f"{PROLOGUE}SELECT * WHERE {group}")
    terms = Terms()
    assert isinstance(found, pyoxigraph.QuerySolutions)
    names = [(variable.value, variable) for variable in found.variables]
    return {
        frozenset((name, _comparable(terms.convert(row[v]))) for name, v in names if row[v] is not None)
        for row in found
    }  # fmt: skip


def triples_of(graph: str) -> tuple[Any, ...]:
    quads = list(pyoxigraph.parse(graph, pyoxigraph.RdfFormat.TURTLE))
    return given.triples_of([(q.subject, q.predicate, q.object) for q in quads], "a test")[0]


def rows_of(graph: str, group: str, *, reference: bool) -> set[Row]:
    """As a subquery of one GPM: a FILTER of its outermost group may name variables of others."""
    group = f"{{ {{ SELECT * WHERE {group} }} }}"
    source = Source(group, mask(group), 0, len(group), "A", (("", E),), "", "<test>")
    evaluator = PatternEvaluator(compile_pattern(source, (STREAM,)), Knowledge({}))
    solved = BatchEvaluator([evaluator], reference=reference)
    event = GraphEvent(STREAM, 0, triples_of(graph), None, "<test>", 1)
    return {
        frozenset((name, _comparable(term)) for name, term in found.mapping(row, None))
        for found in solved.solve(GraphBatch.of([event])).values()
        for row in range(len(found.events))
        if found.kept[row]
    }


def compare(first: int, count: int) -> int:
    """Compares `count` random cases; how many of them have solutions."""
    full = 0
    for seed in range(first, first + count):
        rng = random.Random(seed)
        made = random_graph(rng)
        graph, group = text_of(made), random_group(rng, made)
        try:
            # pyoxigraph's EXISTS is true if a term of the outer solution may not stand in its place in a pattern.
            exists = "EXISTS" in group
            expected = rows_of(graph, group, reference=True) if exists else expected_rows(graph, group)
        except RuntimeError:  # TRIPLE of a literal as subject, which is an error in SPARQL
            continue
        except (SyntaxError, spaseq.QueryError):  # BIND of a variable in scope
            with pytest.raises(spaseq.QueryError):
                rows_of(graph, group, reference=False)
            continue
        full += bool(expected)
        for reference in (False, True):
            found = rows_of(graph, group, reference=reference)
            assert same(found, expected), (
                f"{seed=} {reference=}\n{graph}\n{group}\nmissing {expected - found}\nsurplus {found - expected}"
            )
    return full


def test_random_patterns() -> None:
    assert compare(0, some(60)) > some(60) // 9


@pytest.mark.slow
def test_more_random_patterns() -> None:
    assert compare(1_000, 3_000) > 400


# -- every way in


def by_time(query: Any, found: Any) -> dict[int, set[Row]]:
    rows: dict[int, set[Row]] = {}
    for match in found:
        own = frozenset((name, _comparable(term)) for name, term in match.bindings.items())
        rows.setdefault(match.times[-1] // 10**9, set()).add(own)
    return rows


def roads(query: Any, graphs: list[Graph], folder: Path) -> Iterator[tuple[str, dict[int, set[Row]]]]:
    """What the query finds if each graph is an event: from files, pushed, and behind a snapshot."""
    blocks = [
        f":g{i} <{TIME}> {i} .\n:g{i} {{ {text_of(graph).removeprefix(PROLOGUE)} }}" for i, graph in enumerate(graphs)
    ]
    trig = folder / "events.trig"
    trig.write_text(PROLOGUE + "\n".join(blocks), "utf-8")
    quads = list(pyoxigraph.parse(trig.read_bytes(), pyoxigraph.RdfFormat.TRIG))
    lines = folder / "events.nq"
    lines.write_bytes(pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS) or b"")
    for path in (trig, lines):
        for reference in (False, True):
            yield f"{path.name} {reference=}", by_time(query, query.run({"S": str(path)}, reference=reference))
    turtle = pyoxigraph.RdfFormat.TURTLE
    parsed = (pyoxigraph.parse(text_of(graph), turtle) for graph in graphs)
    given_ = [(i * 10**9, [(q.subject, q.predicate, q.object) for q in own]) for i, own in enumerate(parsed)]
    yield "memory", by_time(query, query.run({"S": given_}))
    session, found = query.open(), []
    for number, (time, graph) in enumerate(given_):
        found += session.push(graph, time=time)
        if number == 0:
            session = query.open(state=session.snapshot())
    yield "pushed", by_time(query, [*found, *session.close()])


def compare_roads(first: int, count: int, folder: Path) -> int:
    full = 0
    for seed in range(first, first + count):
        rng = random.Random(seed)
        graphs = [random_graph(rng) for _ in range(3)]
        group = f"{{ {random_triples(rng, graphs[0], 'n', {})} }}"
        query = spaseq.compile(
            f"{PROLOGUE}SELECT * FROM STREAM S <{STREAM}> WHERE {{ SEQ (A) DEFINE GPM A ON S {group} }}"
        )
        expected = {i: rows_of(text_of(graph), group, reference=False) for i, graph in enumerate(graphs)}
        expected = {time: rows for time, rows in expected.items() if rows}
        full += bool(expected)
        for road, found in roads(query, graphs, folder):
            assert found.keys() == expected.keys(), f"{seed=} {road}"
            for time, rows in found.items():
                assert same(rows, expected[time]), f"{seed=} {road} {time=}\n{group}\n{text_of(graphs[time])}"
    return full


def test_random_roads(tmp_path: Path) -> None:
    assert compare_roads(0, some(12), tmp_path) > some(12) * 5 // 12


@pytest.mark.slow
def test_more_random_roads(tmp_path: Path) -> None:
    assert compare_roads(1_000, 400, tmp_path) > 400 * 5 // 12


# -- named cases

EVENTS = (
    ":ann :claims <<( :s :temp 99 )>> , <<( :s :temp _:b )>> . _:b :v 1 .",
    ':bob :denies <<( :s :temp 99.0 )>> ; :label "x"@en--ltr .',
    ':cat :denies <<( :s :temp 99 )>> ; :label "x"@en--rtl .',
    ':ann :claims <<( :s :temp 5 )>> . :dan :denies <<( :s :temp 99 )>> ; :label "x"@en .',
)
CLAIM, DENIAL = "DEFINE GPM A ON S { ?x :claims ?t }", "DEFINE GPM B ON S { ?who :denies ?u . %s }"
LABEL = "SEQ (B) DEFINE GPM B ON S { ?who :denies ?t ; :label ?l }"
INTEGER, DECIMAL = (
    f'"{n}"^^<http://www.w3.org/2001/XMLSchema#{t}>' for n, t in (("99", "integer"), ("99.0", "decimal"))
)
TEMP = f"<<( <{E}s> <{E}temp> %s )>>"
WHOLE, EXACT = TEMP % INTEGER, TEMP % DECIMAL
CASES: dict[str, tuple[str, str, str, list[tuple[str, ...]]]] = {
    "the same term joins": ("?who", f"SEQ (A : B) {CLAIM} {DENIAL.replace('?u', '?t') % ''}", "", [("cat",), ("dan",)]),
    "equal by value": (
        "?who ?u",
        f"SEQ (A : B) {CLAIM} {DENIAL % 'FILTER (?u = ?t)'}",
        "",
        [("bob", EXACT), ("cat", WHOLE), ("dan", WHOLE)],
    ),
    "unequal": ("?who", f"SEQ (A : B) {CLAIM} {DENIAL % 'FILTER (?u != ?t)'}", "", [("bob",), ("cat",), ("dan",)]),
    "no order": ("?who", f"SEQ (A : B) {CLAIM} {DENIAL % 'FILTER (?u < ?t)'}", "", []),
    "a key": (
        "?who PARTITION BY (?t)", f"SEQ (A : B) {CLAIM} {DENIAL.replace('?u', '?t') % ''}", "", [("cat",), ("dan",)]
    ),
    "groups": (
        "?t (COUNT(*) AS ?n) WITHIN 1 HOURS", LABEL, "GROUP BY ?t", [(EXACT, "1"), (WHOLE, "2")],
    ),
    "the greatest, by its parts": (
        "(MAX(?t) AS ?m) (GROUP_CONCAT(?t) AS ?c) WITHIN 1 HOURS", LABEL, "", [(EXACT, "-")],
    ),
    "inline": ("?who", LABEL, "VALUES ?t { <<( :s :temp 99 )>> }", [("cat",), ("dan",)]),
    "directions differ": ("?who", f'{LABEL[:-1]} . VALUES ?l {{ "x"@en--ltr "x"@EN }} }}', "", [("bob",), ("dan",)]),
    "a constant": ("?who", "SEQ (B) DEFINE GPM B ON S { ?who :denies <<( :s :temp 99 )>> }", "", [("cat",), ("dan",)]),
    "a node of the event": (
        "?x ?v", "SEQ (A) DEFINE GPM A ON S { ?x :claims <<( :s :temp ?b )>> . ?b :v ?v }", "", [("ann", "1")],
    ),
}  # fmt: skip


def cell(term: Any) -> str:
    return "-" if term is None else str(term).removeprefix(E)


@pytest.mark.parametrize("name", list(CASES))
def test_cases(name: str, tmp_path: Path) -> None:
    items, body, behind, expected = CASES[name]
    query = spaseq.compile(f"{PROLOGUE}SELECT {items} FROM STREAM S <{STREAM}> WHERE {{ {body} }} {behind}")
    path = tmp_path / "events.trig"
    blocks = (f":g{i} <{TIME}> {i} .\n:g{i} {{ {event} }}" for i, event in enumerate(EVENTS))
    path.write_text(PROLOGUE + "\n".join(blocks), "utf-8")
    given_ = [(i * 10**9, PROLOGUE + event) for i, event in enumerate(EVENTS)]
    session = query.open()
    pushed = [match for time, event in given_ for match in session.push(event, time=time)]
    names = query.compiled.variables
    for found in (
        query.run({"S": str(path)}), query.run({"S": str(path)}, reference=True), query.run({"S": given_}),
        [*pushed, *session.close()],
    ):  # fmt: skip
        assert sorted(tuple(cell(match.bindings.get(n)) for n in names) for match in found) == sorted(expected)


def test_knowledge(tmp_path: Path) -> None:
    """GRAPH with a name, with a variable, and in OPTIONAL; of files, built files and lists."""
    for seed in range(some(6)):
        rng = random.Random(seed)
        graph = random_graph(rng)
        group = f"{{ {random_triples(rng, graph, 'n', {})} }}"
        expected = rows_of(text_of(graph), group, reference=False)
        quads = list(pyoxigraph.parse(text_of(graph), pyoxigraph.RdfFormat.TURTLE))
        triples = [pyoxigraph.Triple(q.subject, q.predicate, q.object) for q in quads]
        turtle, lines, built = tmp_path / "k.ttl", tmp_path / "k.nt", tmp_path / f"k{seed}.spaseq-kb"
        turtle.write_text(text_of(graph), "utf-8")
        lines.write_bytes(pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES) or b"")
        build_knowledge(str(lines), str(built))
        for pattern in (f"GRAPH <{E}kb> {group}", f"GRAPH ?g {group}", f"OPTIONAL {{ GRAPH <{E}kb> {group} }}"):
            body = f"SEQ (A) DEFINE GPM A ON S {{ :e :v ?one . {pattern} }}"
            query = spaseq.compile(f"{PROLOGUE}SELECT * FROM STREAM S <{STREAM}> WHERE {{ {body} }}")
            for kb in (str(turtle), str(lines), str(built), [tuple(triple) for triple in triples]):
                events = [(0, f"{PROLOGUE} :e :v 1 .")]
                for reference in (False, True):
                    found = {
                        frozenset((n, _comparable(t)) for n, t in match.bindings.items() if n not in ("g", "one"))
                        for match in query.run({"S": events}, kb={f"{E}kb": kb}, reference=reference)
                    }
                    assert same(found, expected or ({frozenset()} if "OPTIONAL" in pattern else set())), (seed, pattern)


def test_knowledge_from_a_table() -> None:
    cells = {
        "subject": [f"<{E}a>"] * 2,
        "predicate": [f"<{E}p>"] * 2,
        "object": ['<<( _:b <e:q> "x" )>>', '"x"@en--ltr'],
    }
    query = spaseq.compile(
        f"{PROLOGUE}SELECT ?o FROM STREAM S <{STREAM}> WHERE {{ SEQ (A) "
        f"DEFINE GPM A ON S {{ ?s ?v 1 . GRAPH <{E}kb> {{ :a :p ?o }} }} }}"
    )
    found = query.run({"S": [(0, f"{PROLOGUE} :e :v 1 .")]}, kb={f"{E}kb": pyarrow.table(cells)})
    assert sorted(type(match.bindings["o"]).__name__ for match in found) == ["DirectionalString", "TripleTerm"]
    cells["object"][0] = "<<( _:b <e:q> )>>"
    with pytest.raises(spaseq.EventError, match="the object '<<"):
        query.run({"S": []}, kb={f"{E}kb": pyarrow.table(cells)})


def test_terms_in_python() -> None:
    text = DirectionalString("a\n", "en", "ltr")
    term = TripleTerm(URIRef("urn:s"), URIRef("urn:p"), text)
    assert term == TripleTerm(URIRef("urn:s"), URIRef("urn:p"), DirectionalString("a\n", "EN--ltr")) != str(term)
    assert str(term) == '<<( <urn:s> <urn:p> "a\\n"@en--ltr )>>'
    assert (text.tag, text.direction, text.language) == ("en", "ltr", "en--ltr")
    assert text != Literal("a\n", lang="en") and text != DirectionalString("a\n", "en", "rtl")
    for value in (text, term, TripleTerm(BNode("b"), URIRef("urn:p"), term)):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and type(again) is type(value) and hash(again) == hash(value)
        assert term_from_key(term_key(value)) == value
        assert term_of(to_pyoxigraph(value), "a test") == value
    graph = Graph_()
    graph.add((URIRef("urn:s"), URIRef("urn:p"), term))
    read = list(pyoxigraph.parse(graph.serialize(format="nt"), pyoxigraph.RdfFormat.N_TRIPLES))
    assert term_of(read[0].object, "a test") == term
    for wrong in (
        (Literal("x"), URIRef("urn:p"), term),
        (URIRef("urn:s"), BNode(), term),
        (URIRef("urn:s"), URIRef("urn:p"), 1),
    ):
        with pytest.raises(spaseq.OptionError, match="no triple term"):
            TripleTerm(*wrong)
    with pytest.raises(spaseq.OptionError, match="no base direction"):
        DirectionalString("x", "en", "up")
    with pytest.raises(spaseq.OptionError, match="the subject is a triple term"):
        spaseq.GraphEvent("urn:s", 0, [(term, URIRef("urn:p"), text)])


@pytest.mark.parametrize("wrong", [
    "?s :p ?o {| |}", "?s :p+ ?o ~ ?r", "<<( ?s :p ?o )>>", "<< ?s :p+ ?o >> :q ?z", "?s :p << ?s (:p|:q) ?o >>",
    "BIND (<< ?s :p ?o >> AS ?t)", "VALUES ?t { <<( ?s :p 1 )>> }", 'BIND ("x"@en--up AS ?t)',
])  # fmt: skip
def test_what_is_refused_has_its_place(wrong: str) -> None:
    with pytest.raises(spaseq.QuerySyntaxError) as caught:
        spaseq.compile(
            f"{PROLOGUE}SELECT * FROM STREAM S <{STREAM}> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ {wrong} }} }}"
        )
    assert caught.value.span is not None


def test_rdflib_keeps_its_own_grammar() -> None:
    with pytest.raises(Exception, match="Expected"):
        Graph_().query("SELECT * { ?s ?p <<( ?a ?b ?c )>> }")
