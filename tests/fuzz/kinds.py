"""The kinds of inputs. Each is drawn from a seed alone: something right, from the cases, the examples and the random
queries of the other tests, and then mutated."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph
import zstandard

from spaseq.core.engine import Settings
from tests.fuzz import borders, clocks
from tests.fuzz.bombs import BOMBS
from tests.fuzz.inputs import Input
from tests.fuzz.mutate import NUMBERS, TEXTS, WORDS, mutated_bytes, mutated_lines, mutated_text
from tests.support import graph_patterns, harness, strategies
from tests.support.harness import Case, Events

__all__ = ["KINDS", "Input", "drawn"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RDF = pyoxigraph.RdfFormat


def drawn(kind: str, seed: int) -> Input:
    """The input of a kind and a seed: always the same."""
    found = KINDS[kind](random.Random(f"{kind} {seed}"))
    return Input(found.how, found.arguments, found.files, found.stdin, kind, seed)


# -- what is right


@cache
def _cases() -> tuple[list[Case], list[Case]]:
    """Of CEQL, of SPAseq."""
    found = harness.load_all()
    return [case for case in found if not case.is_spaseq], [case for case in found if case.is_spaseq]


@cache
def _queries(language: str) -> list[str]:
    pattern = "*.ceql" if language == "ceql" else "*.rq"
    ours = [path.read_text("utf-8") for path in sorted(EXAMPLES.rglob(pattern))]
    return ours + [case.query for case in _cases()[language == "spaseq"]]


def _ceql_case(rng: random.Random) -> Case:
    """A case with events, of the files or a random one."""
    if rng.random() < 0.4:
        made = strategies.ceql_case(rng)
        return Case("random", made.text, made.stream)
    return rng.choice([case for case in _cases()[0] if case.events and not harness.streams_of(case.events)])


def _spaseq_case(rng: random.Random) -> Case:
    chance = rng.random()
    if chance < 0.25:
        made = strategies.spaseq_case(rng)
        return Case("random", made.text, graphs=made.graphs, kb=strategies.BACKGROUND)
    if chance < 0.5:
        return graph_patterns.pattern_case(rng).case()
    return rng.choice([case for case in _cases()[1] if case.graphs])


def _known_case(rng: random.Random) -> Case:
    """A case with background knowledge that its query reads."""
    while True:
        case = _spaseq_case(rng)
        if case.kb and "GRAPH" in case.query:
            return case


def _query(language: str, rng: random.Random) -> str:
    if rng.random() < 0.3:
        return (_ceql_case if language == "ceql" else _spaseq_case)(rng).query
    return rng.choice(_queries(language))


def _slipped(language: str, text: str, rng: random.Random) -> str:
    return mutated_text(text, rng, WORDS[language], _queries(language))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _as_csv(events: Events, separator: str = ",") -> bytes:
    names = list(dict.fromkeys(name for event in events for name in event))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([event.get(name) for name in names] for event in events)
    return _utf8(out.getvalue())


def _as_jsonl(events: Events) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


_ARROW_TYPES = (pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.timestamp("us"), pa.decimal128(20, 3),
                pa.date32(), pa.time64("ns"), pa.duration("s"))  # fmt: skip
_TEXTS = ("", "é\n", "u", "\U0001f600")
_NUMBERS = (0, -1, -0.0, 0.5, 2**53, 2**53 + 1, 2**62, -(2**63), 1e308, 5e-324, float("nan"), float("inf"), 3)


def _as_parquet(events: Events, rng: random.Random) -> bytes:
    names = list(dict.fromkeys(name for event in events for name in event))
    columns: dict[str, Any] = {}
    for name in names:
        values = [event.get(name) for event in events]
        if len({type(v) for v in values if v is not None}) > 1:
            values = [v if v is None else str(v) for v in values]
        columns[name] = pa.array(values)
        if pa.types.is_integer(columns[name].type) and rng.random() < 0.2:
            columns[name] = pa.array([v if v is None else v % 100 for v in values], rng.choice(_ARROW_TYPES))
    table = pa.table(columns)
    if rng.random() < 0.1 and names:
        table = table.append_column(rng.choice((*names, "", "a.b", "time")), table.column(0))
    out = io.BytesIO()
    pq.write_table(table, out, compression=rng.choice(("none", "snappy", "zstd")), row_group_size=rng.choice((2, 1000)))
    return out.getvalue()


def _written(case: Case) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The streams and the knowledge of a case: by name, and by IRI as N-Triples."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        streams = harness.write_streams(case.graphs, folder)
        knowledge = harness.write_knowledge(case.kb, folder)
        return ({name: Path(path).read_bytes() for name, path in streams.items()},
                {iri: Path(path).read_bytes() for iri, path in knowledge.items()})  # fmt: skip


def _as_quads(data: bytes) -> list[Any]:
    """TriG holds N-Quads but for their fourth place: one of both reads it."""
    try:
        return list(pyoxigraph.parse(data, RDF.N_QUADS))
    except SyntaxError:
        return list(pyoxigraph.parse(data, RDF.TRIG))


def _converted(data: bytes, form: Any) -> bytes:
    quads = _as_quads(data)
    out = io.BytesIO()
    prefixes = {"": harness.NAMESPACE, "prov": "http://www.w3.org/ns/prov#"}
    if form in (RDF.TRIG, RDF.N_QUADS, RDF.JSON_LD):
        pyoxigraph.serialize(quads, out, form, prefixes=prefixes)
    else:
        pyoxigraph.serialize([quad.triple for quad in quads], out, form, prefixes=prefixes)
    return out.getvalue()


# -- queries


def _compile(language: str) -> Callable[[random.Random], Input]:
    def draw(rng: random.Random) -> Input:
        return Input("compile", (language,), {"query": _utf8(_slipped(language, _query(language, rng), rng))})

    return draw


def _ceql_roads(rng: random.Random) -> Input:
    case = _ceql_case(rng)
    query = case.query if rng.random() < 0.3 else _slipped("ceql", case.query, rng)
    events = [dict(event) for event in case.events]
    for _ in range(rng.choice((0, 1, 2, 4))):
        event = rng.choice(events) if events else {}
        names = [name for name in event if name not in ("type", "time")]
        match rng.randrange(5):
            case 0 if len(events) > 1:
                events.remove(event)
            case 1 if events:
                events.insert(events.index(event), dict(event))
            case 2 if names:
                del event[rng.choice(names)]
            case _ if names:
                name = rng.choice(names)
                old = event[name]
                other: tuple[Any, ...] = _TEXTS if isinstance(old, str) else _NUMBERS
                if isinstance(old, bool | list) or rng.random() < 0.3:
                    other = (*_TEXTS, *_NUMBERS, True, False, [1, 2.5], [])
                event[name] = rng.choice((None, *other))
    return Input("roads", ("ceql",), {"query": _utf8(query), "events": json.dumps(events).encode()})


def _spaseq_roads(rng: random.Random) -> Input:
    case = _spaseq_case(rng)
    query = case.query if rng.random() < 0.3 else _slipped("spaseq", case.query, rng)
    graphs: dict[str, list[list[Any]]] = {name: [[t, text] for t, text in g] for name, g in case.graphs.items()}
    for events in graphs.values():
        for _ in range(rng.choice((0, 1, 2))):
            if events:
                here, there = rng.randrange(len(events)), rng.randrange(len(events))
                match rng.randrange(4):
                    case 0 if len(events) > 1:
                        del events[here]
                    case 1:
                        events[here][1] = events[there][1]
                    case 2:
                        events.insert(here, list(events[here]))
                    case _:
                        parts = " . ".join(
                            filter(None, (e[1].strip().rstrip(". ") for e in (events[here], events[there])))
                        )
                        events[here][1] = parts if "[" not in parts else events[here][1]
    whole = json.dumps({"graphs": graphs, "kb": dict(case.kb)}).encode()
    return Input("roads", ("spaseq",), {"query": _utf8(query), "graphs": whole})


# -- files of events


_TIMES = ((), (), (), ("--time-unit", "ns"), ("--time-from", "arrival"), ("--late", "drop"), ("--lateness", "2s"),
          ("--late", "drop", "--lateness", "1s"), ("--time", "t"), ("--interval", "1h"))  # fmt: skip


def _of_events(name: str, write: Callable[[Events], bytes]) -> Callable[[random.Random], Input]:
    def draw(rng: random.Random) -> Input:
        case = _ceql_case(rng)
        data = mutated_lines(write(case.events), rng)
        return Input("events", (name, *rng.choice(_TIMES)), {"query.ceql": _utf8(case.query), name: data})

    return draw


def _parquet(rng: random.Random) -> Input:
    case = _ceql_case(rng)
    data = _as_parquet(case.events, rng)
    if rng.random() < 0.8:
        data = mutated_bytes(data, rng)
    return Input("events", ("e.parquet", *rng.choice(_TIMES)), {"query.ceql": _utf8(case.query), "e.parquet": data})


def _schema(rng: random.Random) -> Input:
    case = _ceql_case(rng)
    names = list(dict.fromkeys(name for event in case.events for name in event))
    kinds = [rng.choice(("number", "text", "truth", "time", "list", "int64")) for _ in names]
    if rng.random() < 0.5:
        text = json.dumps({n: k for n, k in zip(names, kinds, strict=True)})
    else:
        text = "".join(f"{rng.choice(('', 'A.', ''))}{n}: {k}\n" for n, k in zip(names, kinds, strict=True))
    schema = mutated_lines(text.encode(), rng)
    name = rng.choice(("schema.txt", "schema.json"))
    files = {"query.ceql": _utf8(case.query), "e.jsonl": _as_jsonl(case.events), name: schema}
    arguments = ("ceql", "run", "query.ceql", "--events", "e.jsonl", "--schema", name, "--format", "jsonl")
    return Input("command", arguments, files)


# -- graphs


_READING = ((), (), ("--late", "drop"), ("--ties", "arrival"), ("--event-by", "subject"), ("--event-by", "size:2"),
            ("--time-from", "arrival"), ("--lateness", "3s"))  # fmt: skip


def _graphs(suffix: str, form: Any) -> Callable[[random.Random], Input]:
    def draw(rng: random.Random) -> Input:
        case = _spaseq_case(rng)
        streams, knowledge = _written(case)
        files = {"query.rq": _utf8(case.query)}
        arguments: list[str] = []
        broken = rng.choice(list(streams))
        for name, data in streams.items():
            lines = form is None or form in (RDF.N_TRIPLES, RDF.N_QUADS)
            data = data if form is None else _converted(data, form)
            own = suffix if not (form is None and b"{" in data) else "trig"
            files[f"{name}.{own}"] = mutated_lines(data, rng) if name == broken else data
            arguments += ["--stream", f"{name}={name}.{own}"]
            if lines and name == broken and rng.random() < 0.5 and "--malformed" not in arguments:
                arguments += ["--malformed", "drop"]
        for number, (iri, data) in enumerate(knowledge.items()):
            files[f"kb{number}.nt"] = data
            arguments += ["--kb", f"{iri}=kb{number}.nt"]
        arguments += rng.choice(_READING)
        if suffix not in ("nq", "trig") and rng.random() < 0.7:
            arguments += ["--time", "http://www.w3.org/ns/prov#generatedAtTime"] * rng.randrange(2)
        return Input("graphs", tuple(arguments), files)

    return draw


_KNOWLEDGE = {"nt": RDF.N_TRIPLES, "ttl": RDF.TURTLE, "rdf": RDF.RDF_XML, "jsonld": RDF.JSON_LD, "trig": RDF.TRIG,
              "nq": RDF.N_QUADS, "n3": RDF.TURTLE, "xml": RDF.RDF_XML}  # fmt: skip


def _knowledge(suffixes: tuple[str, ...]) -> Callable[[random.Random], Input]:
    def draw(rng: random.Random) -> Input:
        case = _known_case(rng)
        streams, knowledge = _written(case)
        files = {"query.rq": _utf8(case.query)}
        arguments: list[str] = []
        for name, data in streams.items():
            files[f"{name}.trig"] = data
            if not data.lstrip().startswith(b"<") or b"{" not in data:
                files[f"{name}.nq"] = files.pop(f"{name}.trig")
            arguments += ["--stream", f"{name}={name}.{'trig' if f'{name}.trig' in files else 'nq'}"]
        for number, (iri, data) in enumerate(knowledge.items()):
            suffix = rng.choice(suffixes)
            data = _converted(data, _KNOWLEDGE[suffix])
            if rng.random() < 0.2 and suffix in ("ttl", "nt", "n3", "trig"):
                data += b"<http://e/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://e/B> .\n"
            files[f"kb{number}.{suffix}"] = mutated_lines(data, rng)
            arguments += ["--kb", f"{iri}=kb{number}.{suffix}"]
        if rng.random() < 0.25:
            arguments += ["--entailment", rng.choice(("rdfs", "rdfs", "rdfs", "owl-rl"))]
        return Input("command", ("spaseq", "run", "query.rq", "--format", "jsonl", *arguments), files)

    return draw


# -- ontologies


_ONTOLOGY = """@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
_CLASSES = (":C0", ":C1", ":C2", ":C3", ":C4", "_:k", "owl:Thing")
_PROPERTIES = (":p0", ":p1", ":p2", ":p3")
_THINGS = (":x0", ":x1", ":x2", ":x3", "_:y")
_LITERALS = (
    "1", "01", "0", "1.5", "true", '"t"', '"u"@en', '""', '"z"^^:own', '"3"^^xsd:byte', '"300"^^xsd:byte',
    '"x"^^xsd:integer', '"2020-02-30"^^xsd:date', '"1"^^xsd:nonNegativeInteger', '"NaN"^^xsd:double',
)  # fmt: skip
_ODD = (
    "owl:Nothing", "rdf:nil", "rdf:type", "rdf:first", "rdf:rest", "owl:sameAs", "rdfs:subClassOf", "rdfs:domain",
    "rdfs:subPropertyOf", "owl:inverseOf", "owl:Class", "rdfs:Literal", "rdfs:Resource", "xsd:integer", "xsd:string",
    "owl:TransitiveProperty", "owl:equivalentClass", "owl:topObjectProperty", "rdfs:label", "_:p", "<>", "<u:v>",
)  # fmt: skip
_CHARACTERS = ("owl:SymmetricProperty", "owl:TransitiveProperty", "owl:FunctionalProperty", "owl:ObjectProperty",
               "owl:InverseFunctionalProperty", "owl:DatatypeProperty", "owl:AsymmetricProperty",
               "owl:IrreflexiveProperty", "rdf:Property", "owl:AnnotationProperty")  # fmt: skip
_ENTAILED = (
    "?x a :C0", "?x a ?c", "?x :p0 ?y", "?x :p0 ?y . ?y a :C1", "?x ?p ?y", "[] :p1 [ a :C2 ]", ":x0 ?p :x1",
    "?x a :C3 OPTIONAL { ?x :p2 ?s }", "{ ?x a :C0 } UNION { ?x :p3 ?y }", "?x :p0 ?y GRAPH <http://e/k> { ?y a ?c }",
    "?x :p1 ?y GRAPH <http://e/k> { ?x ?q ?z }", "?x a :C1 FILTER NOT EXISTS { ?x :p0 ?y }",
    "?x :p2 ?y GRAPH <http://e/k> { ?c rdfs:subClassOf :C0 }",
)  # fmt: skip


def _axioms(rng: random.Random) -> str:
    """Statements of an ontology in Turtle, most of them as an author means them."""
    odd = rng.choice((0.0, 0.0, 0.05, 0.3))

    def one(of: tuple[str, ...]) -> str:
        return rng.choice(of) if rng.random() >= odd else rng.choice((*_ODD, *_CLASSES, *_PROPERTIES, *_THINGS))

    def value(of: tuple[str, ...]) -> str:
        return rng.choice(_LITERALS) if rng.random() < odd else one(of)

    def members(of: tuple[str, ...], count: int) -> str:
        """A list: of its own, or node by node, that is broken, ends twice, or begins again."""
        if rng.random() < 0.8:
            return f"( {' '.join(value(of) for _ in range(count))} )"
        nodes = [f"_:l{rng.randrange(10**6)}" for _ in range(count + 1)]
        for node, following in pairwise(nodes):
            lines.append(f"{node} rdf:first {value(of)} ; rdf:rest {following} .")
        lines.append(f"{nodes[-1]} rdf:rest {rng.choice((nodes[0], 'rdf:nil', '7', ':x0', '[]'))} .")
        if rng.random() < 0.3:
            lines.append(f"{rng.choice(nodes)} rdf:{rng.choice(('first', 'rest'))} {value(of)} .")
        return nodes[0]

    def restriction() -> str:
        said = rng.choice(
            (f"owl:someValuesFrom {value(_CLASSES)}", f"owl:allValuesFrom {value(_CLASSES)}",
             f"owl:hasValue {rng.choice((*_THINGS, *_LITERALS))}", f"owl:maxCardinality {rng.choice(_LITERALS)}",
             f"owl:maxQualifiedCardinality {rng.choice(_LITERALS)} ; owl:onClass {value(_CLASSES)}")
        )  # fmt: skip
        return f"{said} ; owl:onProperty {value(_PROPERTIES)}"

    lines: list[str] = []
    for _ in range(rng.choice((1, 3, 6, 12, 25))):
        c, p = one(_CLASSES), one(_PROPERTIES)
        match rng.choices(range(10), (6, 4, 4, 4, 4, 3, 2, 2, 1, 1))[0]:
            case 0:
                link = rng.choice(("rdfs:subClassOf", "rdfs:subClassOf", "owl:equivalentClass"))
                what = value(_CLASSES) if rng.random() < 0.7 else f"[ a owl:Restriction ; {restriction()} ]"
                lines.append(f"{c} {link} {what} .")
            case 1:
                link = rng.choice(("rdfs:subPropertyOf", "owl:equivalentProperty", "owl:inverseOf"))
                lines.append(f"{p} {link} {value(_PROPERTIES)} .")
            case 2:
                lines.append(f"{p} rdfs:{rng.choice(('domain', 'range'))} {value(_CLASSES)} .")
            case 3:
                lines.append(f"{p} a {rng.choice(_CHARACTERS)} .")
            case 4:
                lines.append(f"{c} {restriction()} .")
            case 5:
                link = rng.choice(("owl:unionOf", "owl:intersectionOf", "owl:oneOf"))
                of = _THINGS if link == "owl:oneOf" else _CLASSES
                lines.append(f"{c} {link} {members(of, rng.choice((0, 1, 2, 3, 8)))} .")
            case 6:
                lines.append(f"{p} owl:propertyChainAxiom {members(_PROPERTIES, rng.choice((0, 1, 2, 3)))} .")
            case 7:
                lines.append(f"{one(_THINGS)} owl:sameAs {value(_THINGS)} .")
            case 8:
                link = rng.choice(("owl:disjointWith", "owl:complementOf", "owl:differentFrom", "owl:sameAs",
                                   "owl:propertyDisjointWith", "rdf:type"))  # fmt: skip
                lines.append(f"{c} {link} {value(_CLASSES)} .")
            case _:
                lines.append(
                    rng.choice(
                        (f"[] a owl:AllDifferent ; owl:members {members(_THINGS, 3)} .",
                         f"[] a owl:AllDisjointClasses ; owl:members {members(_CLASSES, 3)} .",
                         f"{c} owl:hasKey {members(_PROPERTIES, rng.choice((0, 1, 2, 3)))} .",
                         f"[] owl:sourceIndividual :x0 ; owl:assertionProperty {p} ; owl:targetIndividual :x1 .")
                    )
                )  # fmt: skip
    for _ in range(rng.choice((0, 2, 5, 12))):
        lines.append(f"{one(_THINGS)} a {value(_CLASSES)} ." if rng.random() < 0.4 else
                     f"{one(_THINGS)} {one(_PROPERTIES)} {value((*_THINGS, *_LITERALS))} .")  # fmt: skip
    return "\n".join(lines) + "\n"


def _great(rng: random.Random) -> str:
    """What much follows from, or what is long or deep."""
    n, link = rng.choice((20, 60, 200)), rng.choice(("rdfs:subClassOf", "rdfs:subPropertyOf", "owl:sameAs", ":t"))
    match rng.randrange(6):
        case 0:  # a chain, or a cycle
            ends = n if rng.random() < 0.5 else n - 1
            return ":t a owl:TransitiveProperty .\n" + "".join(f":n{i} {link} :n{(i + 1) % n} .\n" for i in range(ends))
        case 1:
            word = rng.choice(("owl:unionOf", "owl:oneOf", "owl:intersectionOf"))
            return f":C0 {word} ( {' '.join(f':n{i}' for i in range(n))} ) .\n"
        case 2:  # nested lists
            return f":C0 owl:unionOf {'( :C1 ' * n}{')' * n} .\n"
        case 3:  # nested classes
            return f":C0 rdfs:subClassOf {'[ owl:unionOf ( :C1 ' * n}{') ]' * n} .\n"
        case 4:  # keys of many values
            values = ", ".join(map(str, range(n // 10)))
            said = "".join(f"{x} a :C0 ; :p0 {values} ; :p1 {values} ; :p2 {values} ; :p3 7 .\n" for x in _THINGS)
            return f":C0 owl:hasKey ( {' '.join(_PROPERTIES * (n // 20))} ) .\n{said}"
        case _:
            steps = " ".join([":p1"] * n)
            return f":p0 owl:propertyChainAxiom ( {steps} ) .\n:x0 :p1 :x1, :x0 . :x1 :p1 :x0, :x1 .\n"


def _as_lines(turtle: bytes) -> bytes:
    """As N-Triples, with blank nodes named in order of appearance: pyoxigraph draws names."""
    out, names = io.BytesIO(), dict[bytes, bytes]()
    pyoxigraph.serialize(pyoxigraph.parse(turtle, RDF.TURTLE, base_iri="http://e/"), out, RDF.N_TRIPLES)
    return re.sub(rb"_:\w+", lambda found: names.setdefault(found[0], b"_:b%d" % len(names)), out.getvalue())


def _entailment(rng: random.Random) -> Input:
    """An ontology as knowledge of a small query, under entailment."""
    great = rng.random() < 0.2
    data = _utf8(_ONTOLOGY + _axioms(rng) + (_great(rng) if great else ""))
    name = "kb.ttl"
    if rng.random() < 0.5:
        with contextlib.suppress(SyntaxError):  # what is odd need not be Turtle
            name, data = "kb.nt", _as_lines(data)
    if rng.random() < 0.4:
        data = mutated_lines(data, rng)
    gpms = {step: rng.choice(_ENTAILED) for step in "AB"[: rng.randint(1, 2)]}
    defined = " ".join(f"DEFINE GPM {step} ON S {{ {pattern} }}" for step, pattern in gpms.items())
    query = ("PREFIX : <http://e/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> SELECT * WITHIN 10 SECONDS "
             f"FROM STREAM S <http://e/S> WHERE {{ SEQ ({'; '.join(gpms)}) {defined} }}")  # fmt: skip
    events = []
    for number in range(rng.choice((1, 3, 6))):
        for _ in range(rng.choice((1, 2))):
            s, p, o = rng.choice(_THINGS[:4]), rng.choice(_PROPERTIES), rng.choice(_THINGS[:4])
            if rng.random() < 0.4:
                p, o = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", rng.choice(_CLASSES[:5])
            said = " ".join(term if term[0] == "<" else f"<http://e/{term[1:]}>" for term in (s, p, o))
            events.append(f"{said} <http://e/g{number}> .\n")
    words = ["--entailment", "owl-rl" if rng.random() < 0.75 else "rdfs"]
    if great or rng.random() < 0.2:
        words += ["--set", f"closed_triples={rng.choice((0, 1, 20, 300, 2000))}"]
    words += ["--set", f"time_limit={rng.choice(('0s', '1ms', '50ms')) if rng.random() < 0.1 else '2s'}"]
    files = {"query.rq": _utf8(query), "S.nq": _utf8("".join(events)), name: data}
    arguments = ("--stream", "S=S.nq", "--time-from", "arrival", "--kb", f"http://e/k={name}", *words)
    return Input("entailment", arguments, files)


def _compressed(rng: random.Random) -> Input:
    if rng.random() < 0.5:
        case = _ceql_case(rng)
        name = rng.choice(("e.jsonl.gz", "e.jsonl.zst", "e.csv.gz", "e.csv.zst", "e.tsv.gz"))
        data = _as_jsonl(case.events) if "jsonl" in name else _as_csv(case.events, "\t" if "tsv" in name else ",")
        arguments = ("ceql", "run", "query", "--format", "jsonl", "--events", name)
        return Input("command", arguments, {"query": _utf8(case.query), name: _squeezed(name, data, rng)})
    case = _spaseq_case(rng)
    streams, knowledge = _written(case)
    files, given = {"query": _utf8(case.query)}, []
    for stream, data in streams.items():
        name = f"{stream}.{'trig' if b'{' in data else 'nq'}{rng.choice(('.gz', '.zst'))}"
        files[name] = _squeezed(name, data, rng)
        given += ["--stream", f"{stream}={name}"]
    for number, (iri, data) in enumerate(knowledge.items()):
        name = f"kb{number}.nt{rng.choice(('.gz', '.zst'))}"
        files[name] = _squeezed(name, data, rng)
        given += ["--kb", f"{iri}={name}"]
    return Input("command", ("spaseq", "run", "query", "--format", "jsonl", *given), files)


def _squeezed(name: str, data: bytes, rng: random.Random) -> bytes:
    def pack(part: bytes) -> bytes:
        return gzip.compress(part, 1, mtime=0) if name.endswith("gz") else zstandard.ZstdCompressor().compress(part)

    at = rng.randrange(len(data) + 1)
    packed = pack(data[:at]) + pack(data[at:]) if rng.random() < 0.3 else pack(data)
    return mutated_bytes(packed, rng) if rng.random() < 0.8 else packed


def _streams_file(rng: random.Random) -> Input:
    case = _spaseq_case(rng)
    streams, knowledge = _written(case)
    files = {"query.rq": _utf8(case.query)}
    lines = []
    for name, data in streams.items():
        files[f"{name}.nt"] = _converted(data, RDF.N_TRIPLES)
        form = rng.choice(("<{}>", "{}"))
        lines.append(f"<{harness.NAMESPACE}{name}> {form.format(f'{name}.nt')} {rng.randint(1, 4)}\n")
    files["STREAMS.txt"] = mutated_lines("".join(lines).encode(), rng)
    arguments = ["spaseq", "run", "query.rq", "--streams", "STREAMS.txt", "--format", "jsonl"]
    for number, (iri, data) in enumerate(knowledge.items()):
        files[f"kb{number}.nt"] = data
        arguments += ["--kb", f"{iri}=kb{number}.nt"]
    return Input("command", tuple(arguments), files)


# -- options


_FORMATS = ("table", "json", "jsonl", "csv", "tsv", "parquet", "count", "xml", "nquads", "text", "dot", "svg", "pdf")
_VALUES = {
    "--format": _FORMATS, "--output": ("out.csv", "out.json", "out.parquet", "out.svg", "-", "", ".", "no/such", "out"),
    "--limit": ("0", "1", "2", "10000000000000000000000"), "--evaluator": ("auto", "compact", "chain", "tree"),
    "--time": ("t", "time", "a", "s", "http://www.w3.org/ns/prov#generatedAtTime", "<http://e/t>", "x y"),
    "--time-from": ("arrival", "departure"), "--time-unit": ("s", "ms", "us", "ns", "m"),
    "--interval": ("1ms", "0s", "1h", "-1s", "1e30d", "100000000d"), "--late": ("drop", "error"),
    "--lateness": ("0s", "3s", "100000d", "1e400s", "nan s", "-2s", "200000000d"),
    "--type-column": ("type", "s", "no", ""), "--schema": ("e.jsonl", "query", "no"),
    "--event-by": ("graph", "subject", "size:1", "size:0", "size:999999999", "file"),
    "--ties": ("instant", "arrival"), "--malformed": ("drop", "error"), "--entailment": ("rdfs", "owl-rl"),
    "--gpm": ("columnar", "rdflib"), "--train": ("e.jsonl", "no"), "--order": ("0", "1", "2", "-1", "100"),
    "--least": ("0", "1", "1000000"), "--threshold": ("0", "0.5", "1", "nan", "2", "-1"),
    "--horizon": ("0", "1", "100", "-1", "1000000"),
    "--events": ("e.jsonl", "e.csv", "*.csv", "e.*", "no.csv", "-", "."),
    "--plan": ("auto", "table"), "--knowledge-rows": ("0", "5"), "--quarantine": ("q",), "--explain": None,
    "--valuations": None, "--evaluate": None, "--typed": None,
}  # fmt: skip


def _options(rng: random.Random) -> Input:
    if rng.random() < 0.5:
        case = _ceql_case(rng)
        files = {"query": _utf8(case.query), "e.jsonl": _as_jsonl(case.events), "e.csv": _as_csv(case.events)}
        command = rng.choice(("run", "run", "run", "check", "explain", "alert", "alert", "forecast", "plot"))
        arguments = ["ceql", command, "query"]
        if command not in ("check", "explain"):
            arguments += ["--events", rng.choice(("e.jsonl", "e.csv"))]
        arguments += ["--train", "e.jsonl"] if command == "forecast" else []
        arguments += ["--output", "out.svg"] if command == "plot" else []
        known: tuple[str, ...] = (
                 "--format", "--output", "--limit", "--evaluator", "--time", "--time-from", "--time-unit", "--interval",
                 "--late", "--lateness", "--type-column", "--schema", "--events", "--order", "--least", "--threshold",
                 "--horizon", "--explain", "--valuations", "--evaluate", "--train")  # fmt: skip
    else:
        case = _spaseq_case(rng)
        command = rng.choice(("run", "run", "run", "check", "explain"))
        files, given = _given(case) if command == "run" else ({}, [])
        files |= {"query": _utf8(case.query), "e.jsonl": b""}
        arguments = ["spaseq", command, "query", *given]
        known = ("--format", "--output", "--limit", "--evaluator", "--time", "--time-from", "--time-unit", "--interval",
                 "--late", "--lateness", "--event-by", "--ties", "--malformed", "--entailment", "--gpm", "--plan",
                 "--knowledge-rows", "--quarantine", "--typed")  # fmt: skip
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        name = rng.choice(known if rng.random() < 0.97 else tuple(_VALUES))
        values: Any = _VALUES[name]
        value = None if values is None else rng.choice(values if rng.random() < 0.8 else (*NUMBERS, *TEXTS))
        arguments += [name] if value is None else [f"{name}={value}"] if rng.random() < 0.2 else [name, value]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        here, there = rng.randrange(1, len(arguments)), rng.randrange(1, len(arguments))
        match rng.randrange(4):
            case 0:
                del arguments[here]
            case 1:
                arguments.insert(here, arguments[there])
            case 2:
                arguments[here], arguments[there] = arguments[there], arguments[here]
            case _:
                arguments[here] = mutated_text(arguments[here], rng)
        if len(arguments) < 2:
            break
    return Input("command", tuple(a for a in arguments if _harmless(a)), files, stdin=rng.choice(list(files.values())))


def _given(case: Any) -> tuple[dict[str, bytes], list[str]]:
    """The files of a case of SPAseq, and the words of the command that name them."""
    streams, knowledge = _written(case)
    files: dict[str, bytes] = {}
    words: list[str] = []
    for name, data in streams.items():
        path = f"{name}.{'trig' if b'{' in data else 'nq'}"
        files[path] = data
        words += ["--stream", f"{name}={path}"]
    for number, (iri, data) in enumerate(knowledge.items()):
        files[f"kb{number}.nt"] = data
        words += ["--kb", f"{iri}=kb{number}.nt"]
    return files, words


def _harmless(argument: str) -> bool:
    """Nothing that waits for ever (--follow on files), that starts Spark, or that is written elsewhere."""
    waits = len(argument) > 3 and "--follow".startswith(argument.partition("=")[0])
    return not waits and "spark" not in argument and not argument.startswith(("/", "~", "..")) and "=/" not in argument


def _settings(rng: random.Random) -> Input:
    names = sorted(name for name, of in Settings.__dataclass_fields__.items() if of.type == "int")
    given = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(names) if rng.random() < 0.95 else mutated_text(rng.choice(names), rng)
        value = (
            str(rng.choice((0, 1, 2, 3, 5, 8, 20, 100, 1000, 5000, 10**5)))
            if rng.random() < 0.85
            else rng.choice(NUMBERS)
        )
        given += ["--set", f"{name}={value}" if rng.random() < 0.95 else mutated_text(f"{name}={value}", rng)]
    if rng.random() < 0.6:
        case = _ceql_case(rng)
        case = case if rng.random() < 0.5 else Case("", _slipped("ceql", case.query, rng), case.events)
        files = {"query": _utf8(case.query), "e.jsonl": _as_jsonl(case.events)}
        arguments = ["ceql", rng.choice(("run", "run", "alert")), "query", "--events", "e.jsonl"]
        if rng.random() < 0.3:
            given += ["--evaluator", rng.choice(("auto", "chain", "tree"))]
    else:
        case = _spaseq_case(rng)
        files, words = _given(case)
        files["query"] = _utf8(case.query)
        arguments = ["spaseq", "run", "query", *words]
    return Input("command", (*arguments, "--format", rng.choice(("jsonl", "csv")), *given), files)


# -- pipes


def _follow(rng: random.Random) -> Input:
    """A command that follows standard input until that ends."""
    if rng.random() < 0.5:
        case = _ceql_case(rng)
        data = mutated_lines(_as_jsonl(case.events) if rng.random() < 0.7 else _as_csv(case.events), rng)
        arguments = ["ceql", "alert", "query", "--events", "-", "--follow", *rng.choice(_TIMES)]
        return Input("command", (*arguments, "--format", "jsonl"), {"query": _utf8(case.query)}, data)
    case = _spaseq_case(rng)
    while len(case.graphs) > 1:
        case = _spaseq_case(rng)
    streams, knowledge = _written(case)
    ((name, data),) = streams.items()
    arguments = ["spaseq", "run", "query", "--stream", f"{name}=-", "--follow"]
    arguments += ["--malformed", "drop"] * rng.randrange(2)
    files = {"query": _utf8(case.query)}
    for number, (iri, text) in enumerate(knowledge.items()):
        files[f"kb{number}.nt"] = text
        arguments += ["--kb", f"{iri}=kb{number}.nt"]
    return Input("command", tuple(arguments), files, mutated_lines(data, rng))


# -- the studio and editors


def _studio(rng: random.Random) -> Input:
    """What a page sends: right, or with fields left out, exchanged and of other types, or with a slip in its JSON."""
    language = rng.choice(("ceql", "spaseq"))
    files: list[dict[str, Any]]
    if language == "ceql":
        case = _ceql_case(rng)
        data, name = rng.choice(((_as_csv(case.events), "e.csv"), (_as_jsonl(case.events), "e.jsonl")))
        files = [{"role": "events", "name": "", "file": name, "text": _utf8_text(mutated_lines(data, rng))}]
    else:
        case = _spaseq_case(rng)
        streams, knowledge = _written(case)
        given = [("stream", name, "trig" if b"{" in data else "nq", data) for name, data in streams.items()]
        given += [("kb", iri, "nt", data) for iri, data in knowledge.items()]
        files = [
            {"role": role, "name": name, "file": f"f{number}.{suffix}", "text": _utf8_text(data)}
            for number, (role, name, suffix, data) in enumerate(given)
        ]
    query = case.query if rng.random() < 0.5 else _slipped(language, case.query, rng)
    body: dict[str, Any] = {
        "version": 1, "language": language, "text": query, "source": f"query.{language}", "files": files,
        "reading": rng.choice(({}, {}, {"time": "t"}, {"late": "drop"}, {"time_from": "arrival"}, {"ties": "x"})),
        "valuations": rng.random() < 0.3, "limit": rng.choice((0, 1, 20, 500)), "seconds": 3,
    }  # fmt: skip
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        holder = rng.choice((body, body, *files)) if files else body
        name = rng.choice(list(holder))
        match rng.randrange(3):
            case 0:
                del holder[name]
            case 1:
                holder[name] = rng.choice((None, True, -1, 1e300, 10**400, "", "x", "\ud800", [], {}, [[]], {"a": {}}))
            case _:
                holder[name] = rng.choice((*NUMBERS, *TEXTS))
        if not holder:
            break
    text = json.dumps(body).encode()
    return Input("studio", (rng.choice(("check", "run", "run")),), {"body": text if rng.random() < 0.8 else
                                                                  mutated_bytes(text, rng)})  # fmt: skip


def _utf8_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _editor(rng: random.Random) -> Input:
    """A text as it is being written, and places in it."""
    language = rng.choice(("ceql", "spaseq"))
    text = _slipped(language, _query(language, rng), rng)
    if rng.random() < 0.3:
        text = text[: rng.randrange(len(text) + 1)]
    places = [str(rng.randrange(len(text) + 1)) for _ in range(5)]
    return Input("editor", (language, "0", str(len(text)), *places), {"text": _utf8(text)})


# -- states


@cache
def _taken(language: str) -> list[tuple[str, bytes, Any]]:
    from tests import test_snapshots

    found = []
    for kept in test_snapshots.BY_NAME[language]:
        state, _ = test_snapshots.broken(kept)
        found.append((kept.name, state, kept))
    return found


def _snapshot(rng: random.Random) -> Input:
    from spaseq.core.events.batch import INSTANTS
    from spaseq.rdf import TERMS
    from tests import test_snapshots

    language = rng.choice(("ceql", "spaseq"))
    name, state, _ = rng.choice(_taken(language))
    if rng.random() < 0.5:
        return Input("snapshot", (language, name), {"state": test_snapshots.mutated(state, rng)})
    made = test_snapshots.made_up(state, (INSTANTS,) if language == "ceql" else (TERMS,), rng)
    return Input("snapshot", (language, name), {"state": state if made is None else made})


def _note(rng: random.Random) -> Input:
    note = json.dumps({"query": "SELECT …", "tasks": 4, "streams": {"S": ["a.nq"]}, "settings": [1, None]})
    if rng.random() < 0.3:
        note = rng.choice(
            ("null", "5", "[]", "[[1, 2]]", "{}", '"x"', "[" * 100_000, '{"query": {"a": []}}', "NaN", "")
        )
    else:
        note = mutated_lines(note.encode(), rng).decode("utf-8", "replace")
    return Input("note", (), {"note": _utf8(note)})


def _forged(rng: random.Random) -> Input:
    from tests.fuzz import forged  # it replaces values of the other kinds

    return forged.draw(rng)


def _left(case: Case) -> Input:
    """A case whose session is left in every way (`library`)."""
    files = {"query": _utf8(case.query)}
    if case.is_spaseq:
        graphs = {name: [[t, text] for t, text in events] for name, events in case.graphs.items()}
        return Input("left", ("spaseq",), files | {"graphs": json.dumps({"graphs": graphs, "kb": case.kb}).encode()})
    return Input("left", ("ceql",), files | {"events": json.dumps(list(case.events)).encode()})


KINDS: Mapping[str, Callable[[random.Random], Input]] = {
    "ceql query": _compile("ceql"),
    "spaseq query": _compile("spaseq"),
    "ceql roads": _ceql_roads,
    "spaseq roads": _spaseq_roads,
    "csv": _of_events("e.csv", _as_csv),
    "json lines": _of_events("e.jsonl", _as_jsonl),
    "parquet": _parquet,
    "schema": _schema,
    "n-quads": _graphs("nq", None),
    "n-triples": _graphs("nt", RDF.N_TRIPLES),
    "trig": _graphs("trig", RDF.TRIG),
    "turtle": _graphs("ttl", RDF.TURTLE),
    "knowledge": _knowledge(("nt", "ttl", "nq", "trig", "n3")),
    "knowledge documents": _knowledge(("rdf", "jsonld", "xml")),
    "entailment": _entailment,
    "compressed": _compressed,
    "streams file": _streams_file,
    "options": _options,
    "settings": _settings,
    "follow": _follow,
    "studio request": _studio,
    "editor": _editor,
    "snapshot": _snapshot,
    "checkpoint note": _note,
    "forged": _forged,
    "left ceql session": lambda rng: _left(_ceql_case(rng)),
    "left spaseq session": lambda rng: _left(_spaseq_case(rng)),
    "odd arguments": lambda rng: Input("odd"),
    "first bytes": borders.draw_first_bytes,
    "full disk": borders.draw_full_disk,
    "clocks": lambda rng: Input(*clocks.draw(rng)),
    **BOMBS,
}
"""By name how a kind is drawn."""
