"""OWL 2 RL over columns gives what the library owlrl gives, triple for triple; what is for owlrl goes there."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rdflib
from rdflib import OWL, RDF, RDFS, BNode, Graph, Literal, URIRef

from spaseq.core.engine import Settings
from spaseq.core.errors import BudgetExceeded, EventError, LimitReached
from spaseq.core.watch import limited
from spaseq.rdf import GraphColumns, build_knowledge, close_owl_rl, quiet_literals, read_knowledge
from spaseq.rdf.columns import close_owl
from tests.support.sizes import some

owlrl = pytest.importorskip("owlrl", reason="owlrl, the extra `owl`, is not installed")
PREFIXES = """@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def _closed(triples: set) -> set:
    """The oracle."""
    graph = Graph()
    for triple in triples:
        graph.add(triple)
    with quiet_literals():
        owlrl.DeductiveClosure(owlrl.OWLRL_Semantics, axiomatic_triples=False, datatype_axioms=False).expand(graph)
    return set(graph)


def _turtle(text: str) -> set:
    return set(Graph().parse(data=PREFIXES + text, format="turtle"))


COVERED = {
    "eq-rep": ":a owl:sameAs :b . :b :p :c . :p owl:sameAs :q . :d :q :a . :c owl:sameAs :e .",
    "eq-diff, none": ":a owl:differentFrom :b .",
    "prp-dom, prp-rng": ":p rdfs:domain :C ; rdfs:range :D . :a :p :b, 7 .",
    "prp-fp": ":p a owl:FunctionalProperty . :a :p :b, :c . :b :q :d . :c :r :e .",
    "prp-fp of literals": ":p a owl:FunctionalProperty . :a :p 1, 2 . :b :q 2 .",
    "prp-ifp": ":p a owl:InverseFunctionalProperty . :a :p :b . :c :p :b . :c :q :d .",
    "prp-symp": ":p a owl:SymmetricProperty . :a :p :b, 1 .",
    "prp-trp": ":p a owl:TransitiveProperty . :a :p :b . :b :p :c . :c :p :a, :d .",
    "prp-spo1": ":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r . :a :p :b .",
    "prp-spo2": ":p owl:propertyChainAxiom (:q :r :q) . :a :q :b . :b :r :c, :d . :d :q :a . :c :q 1 .",
    "prp-eqp": ":p owl:equivalentProperty :q . :a :p :b . :c :q :d .",
    "prp-inv": ":p owl:inverseOf :q . :a :p :b . :c :q :d . _:x owl:inverseOf :p .",
    "cls-int": ":C owl:intersectionOf (:D :E) . :a a :D, :E . :b a :C . :c a :D .",
    "cls-uni": ":C owl:unionOf (:D :E) . :a a :D . :b a :C .",
    "cls-svf": ":C owl:someValuesFrom :D ; owl:onProperty :p . :a :p :b . :b a :D . :c :p :d . "
    ":E owl:someValuesFrom owl:Thing ; owl:onProperty :p .",
    "cls-avf": ":C owl:allValuesFrom :D ; owl:onProperty :p . :a a :C ; :p :b, 3 .",
    "cls-hv": ":C owl:hasValue :v ; owl:onProperty :p . :a a :C . :b :p :v .",
    "cls-maxc2": ':C owl:maxCardinality "1"^^xsd:nonNegativeInteger ; owl:onProperty :p . :a a :C ; :p :b, :c .',
    "cls-oo": ":C owl:oneOf (:a :b) .",
    "cax-sco": ":C rdfs:subClassOf :D . :D rdfs:subClassOf :E, :C . :a a :C .",
    "cax-eqc": ":C owl:equivalentClass :D . :a a :C . :b a :D .",
    "cax-dw, none": ":C owl:disjointWith :D . :a a :C . [] a owl:AllDisjointClasses ; owl:members (:C :D :E) .",
    "scm": ":C a owl:Class . :p a owl:ObjectProperty . :q a owl:DatatypeProperty . :r a rdf:Property .",
    "scm-dom": ":p rdfs:domain :C ; rdfs:range :C . :C rdfs:subClassOf :D . :q rdfs:subPropertyOf :p .",
    "scm-restrictions": ":A owl:someValuesFrom :C ; owl:onProperty :p . :B owl:someValuesFrom :D ; owl:onProperty :p . "
    ":C rdfs:subClassOf :D . :E owl:someValuesFrom :C ; owl:onProperty :q . :p rdfs:subPropertyOf :q . "
    ":F owl:allValuesFrom :C ; owl:onProperty :p . :G owl:allValuesFrom :D ; owl:onProperty :p . "
    ":H owl:allValuesFrom :C ; owl:onProperty :q . :I owl:hasValue :v ; owl:onProperty :p . "
    ":J owl:hasValue :v ; owl:onProperty :q .",
    "dt": ':a :p 1, 1.5, true, "x", "y"@en, "z"^^:own, "3"^^xsd:byte . :b a xsd:int .',
    "words are the same": ":kind owl:sameAs rdf:type . :a :kind :C . :C rdfs:subClassOf :D .",
    "a class is the same": ":C owl:sameAs :D . :C rdfs:subClassOf :E . :E rdfs:subClassOf :D . :a a :D .",
    "words below": ":isA rdfs:subPropertyOf rdf:type . :a :isA :C . :C :under :D . :under rdfs:subPropertyOf "
    "rdfs:subClassOf .",
    "a word of OWL gets a character when its own pairs are closed": ":x :p rdfs:subClassOf . :p owl:inverseOf :q . "
    ":q owl:inverseOf :r . :r owl:inverseOf :s . :s owl:inverseOf :t . :t owl:inverseOf :u . "
    ":u rdfs:domain owl:TransitiveProperty . :C rdfs:subClassOf :D . :D rdfs:subClassOf :C .",
    "a literal as a property": ':p rdfs:subPropertyOf "x" . :a :p :b .',
    "nothing": "",
}
FOR_OWLRL = {
    "owl:hasKey": ":C owl:hasKey (:p :q) . :a a :C ; :p 1 ; :q 2 . :b a :C ; :p 1 ; :q 2 .",
    "qualified": ':C owl:maxQualifiedCardinality "1"^^xsd:nonNegativeInteger ; owl:onProperty :p ; owl:onClass :D . '
    ":a a :C ; :p :b, :c . :b a :D . :c a :D .",
    "eq-diff1": ":a owl:sameAs :b . :a owl:differentFrom :b .",
    "eq-diff2": "[] a owl:AllDifferent ; owl:members (:a :b :c) . :a owl:sameAs :b .",
    "prp-irp": ":p a owl:IrreflexiveProperty . :a :p :a .",
    "prp-asyp": ":p a owl:AsymmetricProperty . :a :p :b . :b :p :a .",
    "prp-pdw": ":p owl:propertyDisjointWith :q . :a :p :b ; :q :b .",
    "prp-npa": "[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetIndividual :b . :a :p :b .",
    "cls-nothing2": ":C rdfs:subClassOf owl:Nothing . :a a :C .",
    "cls-com": ":C owl:complementOf :D . :a a :C, :D .",
    "cls-maxc1": ":C owl:maxCardinality 0 ; owl:onProperty :p . :a a :C ; :p :b .",
    "cax-dw": ":C owl:disjointWith :D . :a a :C, :D .",
    "cax-adc": "[] a owl:AllDisjointClasses ; owl:members (:C :D) . :a a :C, :D .",
    "dt-not-type": ':a :p "x"^^xsd:integer .',
    "sameAs of a literal": ":a owl:sameAs 7 .",
    "about sameAs": ":same rdfs:subPropertyOf owl:sameAs . :a :same :b . :b :p :c .",
    "about lists": ":C owl:unionOf _:l . _:l :item :D ; rdf:rest rdf:nil . :item rdfs:subPropertyOf rdf:first .",
    "prp-spo2 beside prp-key": ":p owl:propertyChainAxiom (:q :r :q), (), (:r) . :C owl:hasKey (:p) . "
    ":a :q :b, :c, :d . :b :r :b, :c . :c :r :b . :d :q :a . :b :q :x, 1 . :c :q :x .",
    "prp-key of many values": ":C owl:hasKey (:p :q :r), () . :a a :C ; :p 1, 2 ; :q 3, 4 ; :r 5 . "
    ":b a :C ; :p 2, 7 ; :q 4, 8 ; :r 9 . :c a :C ; :p 2 ; :q 4 . :d a :C ; :p 1 ; :q 9 ; :r 5 .",
    "words are one": "rdfs:domain owl:sameAs rdfs:range . :p rdfs:domain :C . :a :p :b .",
}


def _errors_by_text(triples: set) -> set:
    """Triples with the names of blank nodes of errors, which are made up, left out."""
    made = {s for s, _, o in triples if str(o).endswith("ErrorMessage")}
    return {(None if s in made else s, p, o) for s, p, o in triples}


@pytest.mark.parametrize("name", COVERED)
def test_rules_over_columns(name: str) -> None:
    triples = _turtle(COVERED[name])
    found = close_owl(GraphColumns.of(triples))
    assert isinstance(found, GraphColumns), found
    assert len(found) == len(set(found))
    assert set(found) == _closed(triples)


@pytest.mark.parametrize("name", FOR_OWLRL)
def test_what_is_for_owlrl(name: str) -> None:
    graph = GraphColumns.of(_turtle(FOR_OWLRL[name]))
    assert isinstance(close_owl(graph), str)
    assert _errors_by_text(set(close_owl_rl(graph)[0])) == _errors_by_text(_closed(set(graph)))


@pytest.mark.parametrize("way", ["read", "built"])
def test_knowledge_from_files(way: str, tmp_path: Path) -> None:
    """Their terms are numbered by kernels, and where they are built, mapped."""
    graph = Graph().parse(data=PREFIXES + COVERED["dt"] + COVERED["cls-int"] + COVERED["prp-ifp"], format="turtle")
    path = str(tmp_path / "kb.nt")
    graph.serialize(path, format="nt", encoding="utf-8")
    read = read_knowledge(path if way == "read" else build_knowledge(path, str(tmp_path / "kb.spaseq-kb")).path)
    found = close_owl(read)
    assert isinstance(found, GraphColumns)
    assert set(found) == _closed(set(read))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            ":C owl:unionOf _:l . _:l rdf:first :D ; rdf:rest _:l .",
            "<http://e/C> <http://www.w3.org/2002/07/owl#unionOf>",
        ),
        (":p owl:propertyChainAxiom _:l . _:l rdf:rest _:m . _:m rdf:rest _:l .", "#propertyChainAxiom> _:"),
        (":C owl:hasKey _:l . _:l rdf:first :p ; rdf:rest _:l .", "#hasKey> _:"),
        (":C owl:maxCardinality :D ; owl:onProperty :p .", "#maxCardinality> <http://e/D>"),
        (f":C owl:maxCardinality <http://e/{'D' * 999}> ; owl:onProperty :p .", "DDD…"),
    ],
)
def test_what_no_rule_takes_is_an_error_that_names_graph_and_triple(text: str, told: str) -> None:
    with pytest.raises(EventError, match=r"^<http://e/kb>: OWL 2 RL has no rule for .*\nhint: ") as error:
        close_owl_rl(GraphColumns.of(_turtle(text)), None, "<http://e/kb>")
    assert told in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        f":p owl:propertyChainAxiom ({':q ' * 60}) . :a :q :a, :b . :b :q :a, :b . :C owl:hasKey () .",
        f":C owl:hasKey ({':p ' * 60}) . :a a :C ; :p 1, 2 . :b a :C ; :p 1, 2 .",
    ],
    ids=["ways through a chain", "values of keys"],
)
def test_what_doubles_with_each_step_is_not_tried_one_by_one(text: str) -> None:
    """owlrl would need 2^60 steps, in which no limit is looked at."""
    closed, why = close_owl_rl(GraphColumns.of(_turtle(text)))
    assert why and len(closed) < 500


def _random_graph(rng: random.Random) -> set:
    def name(text: str) -> URIRef:
        return URIRef(f"http://e/{text}")

    classes = [name(f"C{i}") for i in range(4)] + [BNode("k"), OWL.Thing]
    properties = [name(f"p{i}") for i in range(3)]
    things = [name(f"x{i}") for i in range(4)] + [BNode("y")]
    values = [*things, Literal(1), Literal("t"), Literal("u", lang="en")]
    graph = Graph()

    def members(of: list, count: int) -> rdflib.term.Node:
        head = BNode(f"l{rng.randrange(10**9)}")
        rdflib.collection.Collection(graph, head, [rng.choice(of) for _ in range(count)])
        return head

    strange = rng.random() < 0.2
    for _ in range(rng.randrange(2, 9)):
        form = rng.randrange(17)
        c: Any
        d: Any
        p: Any
        q: Any
        c, d = rng.choices(classes, k=2)
        p, q = rng.choices(properties, k=2)
        if strange:
            pool = [*classes, *properties, *things, RDF.type, RDFS.subClassOf, OWL.inverseOf, Literal(2)]
            c, p = (t if isinstance(t, (URIRef, BNode)) else c for t in rng.choices(pool, k=2))
            d, q = rng.choices(pool, k=2)
        if form < 6:
            link = (RDFS.subClassOf, OWL.equivalentClass, OWL.disjointWith, RDF.type, OWL.complementOf, OWL.sameAs)[
                form
            ]
            if form in (2, 4) and rng.random() < 0.7:
                continue
            graph.add((c, link, OWL.Class if form == 3 else d))
        elif form < 9:
            graph.add((p, (RDFS.subPropertyOf, OWL.equivalentProperty, OWL.inverseOf)[form - 6], q))
        elif form == 9:
            graph.add((p, rng.choice((RDFS.domain, RDFS.range)), d))
        elif form in (10, 11):
            kinds = [OWL.SymmetricProperty, OWL.TransitiveProperty, OWL.FunctionalProperty, OWL.ObjectProperty,
                     OWL.InverseFunctionalProperty, OWL.TransitiveProperty, OWL.AsymmetricProperty]  # fmt: skip
            graph.add((p, RDF.type, rng.choice(kinds)))
        elif form in (12, 13):
            link, value = rng.choice(
                [(OWL.someValuesFrom, d), (OWL.allValuesFrom, d), (OWL.hasValue, rng.choice(values)),
                 (OWL.maxCardinality, Literal(1))]
            )  # fmt: skip
            graph.add((c, link, value))
            graph.add((c, OWL.onProperty, p))
        elif form == 14:
            graph.add((c, rng.choice((OWL.intersectionOf, OWL.unionOf)), members(classes, rng.randrange(4))))
        elif form == 15:
            graph.add((c, OWL.oneOf, members(things, rng.randrange(3))))
        else:
            graph.add((p, OWL.propertyChainAxiom, members(properties, rng.randrange(1, 4))))
    for _ in range(rng.randrange(1, 9)):
        s = rng.choice(things)
        graph.add((s, RDF.type, rng.choice(classes)) if rng.random() < 0.4 else
                  (s, rng.choice(properties), rng.choice(values)))  # fmt: skip
    if rng.random() < 0.2:
        graph.add((rng.choice(things), OWL.sameAs, rng.choice(things)))
    return set(graph)


def _compared(made: Callable[[random.Random], set], seeds: range) -> int:
    """How many of the graphs are closed over columns, each as owlrl closes it."""
    covered = 0
    for seed in seeds:
        triples = made(random.Random(seed))
        found = close_owl(GraphColumns.of(triples))
        if isinstance(found, GraphColumns):
            covered += 1
            expected = _closed(triples)
            assert set(found) == expected, (seed, set(found) ^ expected)
            assert len(found) == len(expected), seed  # each once
    return covered


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in (1, 2, 3))])
def test_random_ontologies(block: int) -> None:
    cases = some(40)
    assert _compared(_random_graph, range(block * 40, block * 40 + cases)) >= 15 * cases // 40


@pytest.mark.parametrize(
    "text",
    [
        ":p a owl:TransitiveProperty . " + " ".join(f":n{i} :p :n{i + 1} ." for i in range(60)),
        " ".join(f":n0 owl:sameAs :n{i} ." for i in range(1, 60)),
    ],
    ids=["a chain", "equal terms"],
)
def test_what_grows_too_much_says_so(text: str) -> None:
    with pytest.raises(BudgetExceeded, match=r"^closed_triples is 1,000 triples and"):
        close_owl_rl(GraphColumns.of(_turtle(text)), 1_000)
    assert len(close_owl_rl(GraphColumns.of(_turtle(text)), 10_000)[0]) > 1_000


@pytest.mark.parametrize("name", ["eq-rep", "prp-trp", "cax-sco", "scm-restrictions", "dt", "owl:hasKey", "cax-dw"])
def test_the_limit_is_that_of_the_closed_graph(name: str) -> None:
    """By either road: half of it is too little, and what rules find again and again does not count."""
    graph = GraphColumns.of(_turtle((COVERED | FOR_OWLRL)[name]))
    closed, why = close_owl_rl(graph)
    assert bool(why) == (name in FOR_OWLRL)
    with pytest.raises(BudgetExceeded, match="closed_triples"):
        close_owl_rl(graph, len(closed) // 2)
    assert len(close_owl_rl(graph, len(closed) + 20)[0]) == len(closed)


@pytest.mark.parametrize("name", ["scm", "owl:hasKey"])
def test_limits_of_time_are_heard(name: str) -> None:
    with limited(Settings(time_limit=0.0)), pytest.raises(LimitReached, match="time_limit"):
        close_owl_rl(GraphColumns.of(_turtle((COVERED | FOR_OWLRL)[name])))


def _deep_graph(rng: random.Random) -> set:
    """Hierarchies of classes and of properties, with domains and ranges: chains, several ways, circles, equal terms."""

    def name(kind: str, number: int) -> URIRef:
        return URIRef(f"http://e/{kind}{number}")

    graph: set = set()
    depth, things = rng.randrange(4, 14), [name("a", i) for i in range(4)]
    for kind, link in (("C", RDFS.subClassOf), ("p", RDFS.subPropertyOf)):
        for i in range(depth):
            for _ in range(rng.choice((1, 1, 2))):
                graph.add((name(kind, i), link, name(kind, min(depth, i + rng.randrange(1, 4)))))
        if rng.random() < 0.3:
            low = rng.randrange(depth)
            graph.add((name(kind, min(depth, low + rng.randrange(3))), link, name(kind, low)))
    for _ in range(rng.randrange(4)):
        link = rng.choice((RDFS.domain, RDFS.range))
        graph.add((name("p", rng.randrange(depth)), link, name("C", rng.randrange(depth))))
    for _ in range(rng.randrange(2, 8)):
        if rng.random() < 0.5:
            graph.add((rng.choice(things), RDF.type, name("C", rng.randrange(depth))))
        else:
            graph.add((rng.choice(things), name("p", rng.randrange(depth)), rng.choice([*things, Literal(1)])))
    more = [
        (name("C", rng.randrange(depth)), OWL.sameAs, name("C", rng.randrange(depth))),
        (name("C", rng.randrange(depth)), OWL.equivalentClass, name("C", rng.randrange(depth))),
        (name("p", rng.randrange(depth)), OWL.equivalentProperty, name("p", rng.randrange(depth))),
        (name("p", rng.randrange(depth)), OWL.inverseOf, name("p", rng.randrange(depth))),
        (name("p", rng.randrange(depth)), RDFS.subPropertyOf, rng.choice((RDF.type, RDFS.subClassOf, Literal("x")))),
        (name("p", rng.randrange(depth)), RDF.type, OWL.FunctionalProperty),
        (name("C", rng.randrange(depth)), RDF.type, OWL.Class),
    ]
    return graph | set(rng.sample(more, rng.randrange(3)))


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in (1, 2))])
def test_deep_hierarchies(block: int) -> None:
    cases = some(20)
    assert _compared(_deep_graph, range(block * 20, block * 20 + cases)) >= 15 * cases // 20


def test_a_deep_hierarchy_that_is_too_large_is_refused_before_it_is_made() -> None:
    """40 times 2,000 types are counted; 4 MB are what tables of the terms need."""
    levels = " ".join(f":C{i} rdfs:subClassOf :C{i + 1} . :p{i} rdfs:subPropertyOf :p{i + 1} ." for i in range(40))
    for each in (":a{i} a :C0 .", ":a{i} :p0 :a{i} ."):
        graph = GraphColumns.of(_turtle(levels + " ".join(each.format(i=i) for i in range(2_000))))
        tracemalloc.start()
        try:
            with pytest.raises(BudgetExceeded, match=r"^closed_triples is 20,000 triples and"):
                close_owl(graph, 20_000)
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
        finally:
            tracemalloc.stop()
