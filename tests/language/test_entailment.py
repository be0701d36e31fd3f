"""Entailment: what a query finds with rewritten patterns is what it finds when everything is closed beforehand.

The closure here is written from the rules of RDF 1.1 Semantics §9.2.1 (rdfs2, 3, 5, 7, 9, 11) on sets of triples, and
shares no code with the engine.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from rdflib import BNode, Graph

import spaseq
from spaseq.cli.main import main
from spaseq.gpm import entail
from spaseq.gpm.columnar import plan
from spaseq.gpm.inline import InlineTerms
from spaseq.rdf import GraphColumns, build_knowledge, read_knowledge
from tests.support.sizes import some

E = "http://example.org/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE, BELOW, UNDER = f"<{RDF}type>", f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"
KB = f"{E}kb"

Triple = tuple[str, str, str]


def _t(text: str) -> Triple:
    """A triple from short words: `a` is rdf:type, `<` and `<<` sub-class and sub-property, `dom`, `ran`, `"…"` text."""
    words = {"a": TYPE, "<": BELOW, "<<": UNDER, "dom": DOMAIN, "ran": RANGE}
    s, p, o = (words.get(w, w if w[0] in '"<_' and len(w) > 1 else f"<{E}{w}>") for w in text.split())
    return s, p, o


def _consequences(data: set[Triple], schema: set[Triple]) -> set[Triple]:
    """What follows from one triple of `data`, one of `schema`, and a rule."""
    found = set()
    for s, p, o in data:
        for c, link, d in schema:
            if link == UNDER and p == c and d.startswith("<"):
                found.add((s, d, o))  # rdfs7; only an IRI is a predicate
            if link == BELOW and p in (TYPE, BELOW) and o == c:
                found.add((s, p, d))  # rdfs9, rdfs11
            if link == UNDER and p == UNDER and o == c:
                found.add((s, p, d))  # rdfs5
            if link == DOMAIN and p == c:
                found.add((s, TYPE, d))  # rdfs2
            if link == RANGE and p == c and not o.startswith('"'):
                found.add((o, TYPE, d))  # rdfs3
    return found


def _closure(data: set[Triple], schema: set[Triple]) -> set[Triple]:
    while True:
        more = _consequences(data, schema) - data
        if not more:
            return data
        data = data | more


def _proper(triples: set[Triple]) -> set[Triple]:
    """Without the triples that say a term is below itself: the engine's closure has none."""
    return {t for t in triples if t[0] != t[2] or t[1] not in (BELOW, UNDER)}


def _nt(triples: set[Triple]) -> str:
    return "".join(f"{s} {p} {o} .\n" for s, p, o in sorted(triples))


def _run(
    pattern: str, events: list[set[Triple]], kb: set[Triple], folder: Path, *, reference: bool = False, **more: Any
) -> set[tuple[tuple[int, ...], frozenset[tuple[str, str]]]]:
    lines = []
    for number, event in enumerate(events):
        lines += [f"{s} {p} {o} <{E}g{number}> .\n" for s, p, o in sorted(event)]
    (folder / "s.nq").write_text("".join(lines), "utf-8")
    (folder / "kb.nt").write_text(_nt(kb), "utf-8")
    known = str(folder / "kb.nt")
    if more and not reference:
        known = build_knowledge(known, str(folder / "kb.spaseq-kb")).path
    query = spaseq.compile(
        f"PREFIX : <{E}> PREFIX rdfs: <{RDFS}> SELECT * FROM STREAM S <{E}S> "
        f"SEQ (A) {{ DEFINE GPM A ON S {{ {pattern} }} }}"
    )
    found = query.run({"S": str(folder / "s.nq")}, {KB: known}, time_from="arrival", reference=reference, **more)
    return {(m.positions, frozenset((name, term.n3()) for name, term in m.bindings.items())) for m in found}


SCHEMA = {
    _t(text)
    for text in (
        "Dog < Mammal", "Mammal < Animal", "barks << sounds", "barks dom Dog", "owns ran Animal", "walks << owns",
        "owns dom Owner", "Owner < Person", f"kind << {TYPE}",
    )
}  # fmt: skip
EVENTS = [
    {_t(text) for text in event}
    for event in (
        ('rex barks "wau"',),
        ("ann walks rex", "rex a Dog"),
        ("ann owns tom", 'ann name "Ann"'),
        ('ann owns "literal"',),
        ("tom kind Mammal",),
        ("bob sounds x",),
    )
]
PATTERNS = [
    "?x a :Animal",
    "?x a ?c",
    "?x :sounds ?y",
    "?x :owns ?y . ?y a :Animal",
    "?x ?p ?y",
    "?x ?p ?x",
    "[] :owns [ a :Mammal ]",
    ":ann a :Person",
    ":ann ?p :rex",
    "?x a :Animal OPTIONAL { ?x :sounds ?s }",
    "{ ?x a :Dog } UNION { ?x a :Person }",
    "?x a :Animal MINUS { ?y :owns ?x }",
    "?x a :Animal FILTER NOT EXISTS { ?y :owns ?x }",
    "?x a ?c FILTER EXISTS { ?x a :Mammal }",
    "?x :sounds|:owns ?y",
    "?x ^:owns ?y",
    "?x :owns+ ?y",
    "SELECT ?x (COUNT(?c) AS ?n) { ?x a ?c } GROUP BY ?x",
    "?x a :Animal . BIND (STR(?x) AS ?s)",
    f"?x a ?c GRAPH <{KB}> {{ ?c rdfs:subClassOf :Animal }}",
    f"?x a :Person . GRAPH <{KB}> {{ ?z a :Person }}",
    "?x a :Person VALUES ?x { :ann :bob }",
]


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_as_if_everything_were_closed(pattern: str, reference: bool, tmp_path: Path) -> None:
    kb = SCHEMA | {_t("eve owns fido")}
    found = _run(pattern, EVENTS, kb, tmp_path, reference=reference, entailment="rdfs")
    schema = _closure(kb, kb)
    closed = [_closure(event, schema) for event in EVENTS]
    assert found == _run(pattern, closed, _proper(schema), tmp_path, reference=reference)
    assert found or pattern.startswith("?x ?p ?x")


def _random_case(rng: random.Random) -> tuple[str, list[set[Triple]], set[Triple]]:
    classes, properties, things = ["C0", "C1", "C2", "C3"], ["p0", "p1", "p2", "a"], ["x", "y", "z"]
    kb = set()
    for _ in range(rng.randrange(1, 7)):
        form = rng.choice(("<", "<<", "dom", "ran", "a"))
        first = rng.choice(classes if form == "<" else things if form == "a" else properties[:3])
        second = rng.choice(properties if form == "<<" and rng.random() < 0.9 else classes)
        second = TYPE if second == "a" else second
        if form == "<<" and rng.random() < 0.2:
            second = rng.choice(("_:b", '"t"'))
        kb.add(_t(f"{first} {form} {second}"))
    events = []
    for _ in range(3):
        event = set()
        for _ in range(rng.randrange(1, 6)):
            name = rng.choice(properties)
            value = rng.choice(classes if name == "a" else [*things, '"t"'])
            event.add(_t(f"{rng.choice(things)} {name} {value}"))
        events.append(event)
    terms = ["?u", "?v", "?u", "?v", "?w", ":x", "_:b"]
    triples = []
    for _ in range(rng.randrange(1, 3)):
        predicate = rng.choice([":p0", ":p1", ":p2", "a", "a", "?p"])
        other = rng.choice(["?c", ":C0", ":C1"] if predicate == "a" else terms)
        triples.append(f"{rng.choice(terms)} {predicate} {other}")
    return " . ".join(triples), events, kb


@pytest.mark.parametrize("block", range(4))
def test_random_schemas_and_patterns(block: int, tmp_path: Path) -> None:
    answers, cases = 0, some(25)
    for seed in range(block * 25, block * 25 + cases):
        pattern, events, kb = _random_case(random.Random(seed))
        schema = _closure(kb, kb)
        expected = _run(pattern, [_closure(event, schema) for event in events], _proper(schema), tmp_path)
        assert _run(pattern, events, kb, tmp_path, entailment="rdfs") == expected, (seed, pattern, events, kb)
        answers += len(expected)
    assert answers >= 20 * cases // 25


@pytest.mark.parametrize("above", ["_:b", '"t"'])
def test_only_iris_are_predicates(above: str, tmp_path: Path) -> None:
    """A property may be said to be below what is none: nothing follows for triples, and the next rule goes on."""
    kb = {_t(f"p << {above}"), _t("k p v"), _t("q << p")}
    events = [{_t("x p y")}, {_t("x q y")}]
    for pattern, expected in (("?s ?p ?o", 3), (f"?s ?p ?o GRAPH <{KB}> {{ :k ?k :v }}", 3)):
        assert len(_run(pattern, events, kb, tmp_path, entailment="rdfs")) == expected, pattern


@pytest.fixture
def looks_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every schema were a large one."""
    monkeypatch.setattr(entail, "_CLASSES", 0)
    monkeypatch.setattr(entail, "_PROPERTIES", 0)
    monkeypatch.setattr(plan, "_MANY", 0)


@pytest.mark.usefixtures("looks_up")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_large_schemas_are_looked_up(pattern: str, tmp_path: Path) -> None:
    test_as_if_everything_were_closed(pattern, False, tmp_path)


@pytest.mark.usefixtures("looks_up")
def test_random_large_schemas(tmp_path: Path) -> None:
    test_random_schemas_and_patterns(1, tmp_path)


@pytest.mark.parametrize("pattern", ["?x a :C0", "?x a ?c", "?x :p0 ?y", "?x ?p ?y", "?x :p0/:q ?y"])
def test_classes_and_properties_without_end(pattern: str, tmp_path: Path) -> None:
    """No recursion over them, and no pattern for each."""
    kb = {_t(f"{c}{i} {link} {c}{i // 9}") for c, link in (("C", "<"), ("p", "<<")) for i in range(1, 1_200)}
    events = [{_t("x a C1199"), _t("x p1199 y"), _t("y q z")}, {_t("x a D")}, {_t("y a C0"), _t("x p5 z")}]
    schema = _closure_above(kb)
    closed = [event | {(s, p, d) for s, p, o in event for c, d in schema if p == TYPE and o == c}
              | {(s, d, o) for s, p, o in event for c, d in schema if p == c} for event in events]  # fmt: skip
    found = _run(pattern, events, kb, tmp_path, entailment="rdfs")
    assert found == _run(pattern, closed, {_t("a b c")}, tmp_path) and found


def test_nothing_is_made_for_each_pair_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a graph of rdflib's, nor its terms, for a hierarchy of which an event asks little."""

    def refused(*_: object) -> None:
        raise AssertionError("made for all")

    monkeypatch.setattr(GraphColumns, "graph", refused)
    monkeypatch.setattr(InlineTerms, "__iter__", refused)
    kb = {_t(f"{c}{i} {link} {c}{i // 9}") for c, link in (("C", "<"), ("p", "<<")) for i in range(1, 1_200)}
    events = [{_t("x a C100"), _t("x p5 y")}]
    for pattern, expected in (("?x a ?c", 4), ("?x a :C0", 1), ("?x ?p ?y", 6), ("?x :p0 ?y", 1)):
        assert len(_run(pattern, events, kb, tmp_path, entailment="rdfs")) == expected


def _closed_together(graphs: list[set[Triple]]) -> list[set[Triple]]:
    while True:
        schema = set().union(*graphs)
        grown = [graph | _consequences(graph, schema) for graph in graphs]
        if grown == graphs:
            return graphs
        graphs = grown


def _columns(graph: set[Triple]) -> GraphColumns:
    triples: Any = Graph().parse(data=_nt(graph), format="nt")
    return GraphColumns.of(triples)


def _text(term: Any) -> str:
    if isinstance(term, BNode):
        return "_:z0" if term.startswith("k") else "_:z1"
    return str(term.n3())


@pytest.mark.parametrize("one", [False, True])
def test_knowledge_is_closed_as_the_rules_say(one: bool, tmp_path: Path) -> None:
    """Also where the schema is about its own predicates, and where several graphs have parts of it."""
    words = {TYPE: "a", BELOW: "<", UNDER: "<<", DOMAIN: "dom", RANGE: "ran"}
    grown, cases = 0, some(60)
    for seed in range(cases):
        rng = random.Random(seed)
        links = list(words) if seed % 3 == 0 else [BELOW, UNDER, DOMAIN, RANGE, f"<{E}p>", f"<{E}q>"]
        names = [f"<{E}{n}>" for n in "abcpq"] + (list(words) if seed % 3 == 0 else [])
        graphs = []
        for number in range(1 if one else 2):
            ends = [*names, f"_:z{number}", '"t"']
            graphs.append({(rng.choice(names), rng.choice(links), rng.choice(ends)) for _ in range(7)})
        (tmp_path / "kb.nt").write_text(_nt(graphs[0]), "utf-8")
        known = {"0": read_knowledge(str(tmp_path / "kb.nt"))}
        for number, graph in enumerate(graphs[1:], 1):
            known[str(number)] = _columns(graph)
        closed, _ = entail.close_knowledge(known)
        for number, expected in enumerate(_closed_together(graphs)):
            found = {(_text(s), _text(p), _text(o)) for s, p, o in closed[str(number)]}
            assert _proper(found) == _proper(expected), (seed, number)
            grown += len(expected) - len(graphs[number])
    assert grown > 100 * cases // 60


def test_a_graph_of_which_nothing_follows_stays() -> None:
    graph = _columns({_t("x a C"), _t("D < E")})
    assert entail.close_knowledge({"g": graph})[0]["g"] is graph


def _closure_above(kb: set[Triple]) -> set[tuple[str, str]]:
    """The pairs of a term and one above it, in a tree."""
    above, found = {s: o for s, _, o in kb}, set()
    for first in above:
        term = first
        while term in above:
            term = above[term]
            found.add((first, term))
    return found


def test_a_sequence_with_entailment(tmp_path: Path) -> None:
    """The rewritten patterns stand in a sequence as the others do; a session has them too."""
    kb = {_t("Dog < Animal"), _t("barks dom Dog")}
    (tmp_path / "kb.nt").write_text(_nt(kb), "utf-8")
    (tmp_path / "s.nt").write_text(f'<{E}r> <{E}barks> "1" .\n<{E}t> {TYPE} <{E}Cat> .\n<{E}r> {TYPE} <{E}Dog> .\n')
    text = (
        f"PREFIX : <{E}> SELECT ?x FROM STREAM S <{E}S> SEQ (A ; B) "
        "{ DEFINE GPM A ON S { ?x a :Animal } DEFINE GPM B ON S { ?x a :Animal } }"
    )
    query, kb_files = spaseq.compile(text), {KB: str(tmp_path / "kb.nt")}
    assert [m.positions for m in query.run({"S": str(tmp_path / "s.nt")}, kb_files, entailment="rdfs")] == [(0, 2)]
    assert not query.run({"S": str(tmp_path / "s.nt")}, kb_files).count()
    events = [event for m in spaseq.compile(text.replace("?x a :Animal", "?x ?p ?o").replace("A ; B", "A")).run(
        {"S": str(tmp_path / "s.nt")}) for event in m.events]  # fmt: skip
    with query.open(kb=kb_files, entailment="rdfs", time_from="arrival") as session:
        assert [m.positions for m in [*session.push(events), *session.close()]] == [(0, 2)]


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("?x a/rdfs:subClassOf ?c", "rdf:type inside a property path in GPM A with entailment is not supported"),
        ("?x !:p ?c", "a negated property set in GPM A with entailment is not supported"),
    ],
)
def test_what_cannot_be_rewritten_is_refused_by_name(pattern: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(spaseq.UnsupportedFeature, match=part):
        _run(pattern, EVENTS, SCHEMA, tmp_path, entailment="rdfs")


def test_wrong_words(tmp_path: Path) -> None:
    with pytest.raises(spaseq.OptionError, match="entailment owl: not known"):
        _run("?x a ?c", EVENTS, SCHEMA, tmp_path, entailment="owl")
    (tmp_path / "s.nt").write_text("")
    query = spaseq.compile(
        f"PREFIX : <{E}> SELECT * FROM STREAM S <{E}S> SEQ (A) {{ DEFINE GPM A ON S {{ ?x a ?c }} }}"
    )
    with pytest.raises(spaseq.OptionError, match="entailment rdfs without background knowledge"):
        query.run({"S": str(tmp_path / "s.nt")}, entailment="rdfs")


def test_owl_rl(tmp_path: Path) -> None:
    """What OWL says of classes and properties reaches the knowledge and the events."""
    pytest.importorskip("owlrl", reason="owlrl, the extra `owl`, is not installed")
    owl = "http://www.w3.org/2002/07/owl#"
    kb = {
        (f"<{E}Hound>", f"<{owl}equivalentClass>", f"<{E}Dog>"),
        (f"<{E}ownedBy>", f"<{owl}inverseOf>", f"<{E}owns>"),
        _t("rex a Hound"),
        _t("rex ownedBy ann"),
    }
    events = [{_t("tom a Hound")}, {_t("tim a Dog")}]
    pattern = f"?x a :Dog GRAPH <{KB}> {{ ?o :owns ?d . ?d a :Dog }}"
    found = _run(pattern, events, kb, tmp_path, entailment="owl-rl")
    assert {(at, dict(bound)["x"]) for at, bound in found} == {((0,), f"<{E}tom>"), ((1,), f"<{E}tim>")}
    assert {dict(bound)["o"] for _, bound in found} == {f"<{E}ann>"}
    assert _run(pattern, events, kb, tmp_path) == set() == _run(pattern, events, kb, tmp_path, entailment="rdfs")


def test_without_owlrl_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "owlrl", None)
    with pytest.raises(spaseq.OptionError, match=r"OWL 2 RL needs owlrl, which is not installed\nhint: install it"):
        _run("?x a ?c", EVENTS, SCHEMA, tmp_path, entailment="owl-rl")


# -- background knowledge from tables


def test_knowledge_from_tables(tmp_path: Path) -> None:
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    rows = {"subject": [f"<{E}x>", "_:b"], "predicate": [f"<{E}in>"] * 2, "object": ['"é\\"q"@fr', f'"3"^^<{E}n>']}
    (tmp_path / "s.nt").write_text(f'<{E}s> <{E}p> "1" .\n')
    query = spaseq.compile(
        f"PREFIX : <{E}> SELECT ?v FROM STREAM S <{E}S> SEQ (A) "
        f"{{ DEFINE GPM A ON S {{ ?x :p ?y GRAPH <{KB}> {{ ?z :in ?v }} }} }}"
    )
    for table in (pa.table(rows), pd.DataFrame(rows), pa.table(rows).to_batches()[0]):
        found = {m.bindings["v"].n3() for m in query.run({"S": str(tmp_path / "s.nt")}, {KB: table})}
        assert found == {'"é\\"q"@fr', f'"3"^^<{E}n>'}
    graph = Graph().parse(data=f"<{E}x> <{E}in> 7 .", format="turtle")
    assert [str(m.bindings["v"]) for m in query.run({"S": str(tmp_path / "s.nt")}, {KB: graph})] == ["7"]


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ({"subject": ["<http://e/a>"]}, "has no column predicate"),
        ({"subject": ["http://e/a"], "predicate": ["<http://e/p>"], "object": ["_:b"]}, "row 1 .* the subject 'http:"),
        (
            {"subject": ["_:a"] * 2, "predicate": ["<http://e/p>", '"p"'], "object": ["_:b"] * 2},
            "row 2 .* the predicate",
        ),
        ({"subject": ["_:a"], "predicate": ["<http://e/p>"], "object": [None]}, "row 1 .* the object None"),
    ],
)
def test_a_wrong_table(rows: dict[str, list[str]], part: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from spaseq.rdf import table_knowledge

    with pytest.raises(spaseq.EventError, match=part):
        table_knowledge(pa.table(rows))


def _with_knowledge(kb: str, tmp_path: Path) -> tuple[str, list[str]]:
    """A query that reads the knowledge, and what the command is told besides."""
    (tmp_path / "kb.ttl").write_text(
        f"@prefix : <{E}> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
        f"@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . {kb}"
    )
    (tmp_path / "s.nt").write_text(f"<{E}r> {TYPE} <{E}Dog> .\n")
    (tmp_path / "q.rq").write_text(
        f"PREFIX : <{E}> SELECT ?x FROM STREAM S <{E}S> SEQ (A) "
        f"{{ DEFINE GPM A ON S {{ ?x a ?c GRAPH <{KB}> {{ ?c a ?k }} }} }}"
    )
    return str(tmp_path / "q.rq"), ["--kb", f"{KB}={tmp_path / 'kb.ttl'}"]


_ROADS = {
    ("rdfs", ":Dog rdfs:subClassOf :Animal . :x a :Dog ."): "closed under rdfs, 2 triples to 3, over columns",
    (
        "owl-rl",
        ":Dog owl:equivalentClass :Hound . :x a :Dog .",
    ): "closed under owl-rl, 2 triples to [0-9]+, over columns",
    ("owl-rl", ":Dog owl:hasKey (:p) ."): "closed under owl-rl, 3 triples to [0-9]+, by owlrl, triple by triple: "
    "<http://www.w3.org/2002/07/owl#hasKey>",
    ("owl-rl", ":Dog owl:disjointWith :Cat . :x a :Dog, :Cat ."): "closed under owl-rl, 3 triples to [0-9]+, by owlrl, "
    "triple by triple: an inconsistency",
}


@pytest.mark.parametrize(("entailment", "kb"), _ROADS)
def test_it_is_said_how_knowledge_was_closed(
    entailment: str, kb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By explain and check; a run, however, says it only of the slow road."""
    if entailment == "owl-rl":
        pytest.importorskip("owlrl", reason="owlrl, the extra `owl`, is not installed")
    told = f"GRAPH <{KB}>: {_ROADS[entailment, kb]}"
    query, words = _with_knowledge(kb, tmp_path)
    words += ["--entailment", entailment]
    assert main(["explain", query, *words]) == 0
    assert re.search(f"^{told}$", capsys.readouterr().out, re.MULTILINE)
    assert main(["check", query, *words]) == 0
    assert re.search(f"{told}$", capsys.readouterr().err, re.MULTILINE)
    assert main(["run", query, *words, "--stream", f"S={tmp_path / 's.nt'}"]) == 0
    assert bool(re.search(f"{told}$", capsys.readouterr().err, re.MULTILINE)) == ("owlrl" in told)
    compiled = spaseq.compile(Path(query).read_text())
    graphs = {KB: str(tmp_path / "kb.ttl")}
    plan = json.loads(compiled.explain("json", kb=graphs, entailment=entailment))["plan"]
    assert any(re.fullmatch(told, line) for line in plan)
    followed = compiled.follow({"S": str(tmp_path)}, graphs, entailment=entailment)
    assert any(re.search(f"{told}$", note) for note in followed.notes) == ("owlrl" in told)


@pytest.mark.parametrize("entailment", ["rdfs", "owl-rl"])
def test_closed_knowledge_has_a_limit(entailment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every way to ask for it."""
    if entailment == "owl-rl":
        pytest.importorskip("owlrl", reason="owlrl, the extra `owl`, is not installed")
    query, words = _with_knowledge(" ".join(f":c{n} rdfs:subClassOf :c{n + 1} ." for n in range(50)), tmp_path)
    words += ["--entailment", entailment, "--set", "closed_triples=600"]
    for command in (["run", "--stream", f"S={tmp_path / 's.nt'}"], ["check"], ["explain"]):
        assert main([command[0], query, *command[1:], *words]) == 4
        error = capsys.readouterr().err
        assert "closed_triples is 600 " in error and "hint: raise closed_triples" in error
    assert main(["check", query, *words[:-1], "closed_triples=9000"]) == 0
    compiled = spaseq.compile(Path(query).read_text(), settings=spaseq.Settings(closed_triples=600))
    graphs, streams = {KB: str(tmp_path / "kb.ttl")}, {"S": str(tmp_path / "s.nt")}
    for ask in (
        lambda: compiled.run(streams, graphs, entailment=entailment),
        lambda: compiled.open(kb=graphs, entailment=entailment),
        lambda: compiled.follow(streams, graphs, entailment=entailment),
        lambda: compiled.compiled.solver(graphs, entailment=entailment),
        lambda: compiled.explain(kb=graphs, entailment=entailment),
    ):
        with pytest.raises(spaseq.BudgetExceeded, match="closed_triples is 600 "):
            ask()


def test_explain_asks_for_entailment_with_knowledge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, words = _with_knowledge(":x a :Dog .", tmp_path)
    assert main(["explain", query, *words]) == 2
    assert "need --engine spark or --entailment" in capsys.readouterr().err
    assert main(["check", query, "--kb", f"{E}other={tmp_path / 'kb.ttl'}"]) == 2
    assert "no such background knowledge is given" in capsys.readouterr().err
