"""The W3C's suites of SPARQL 1.2 and RDF 1.2: triple terms, reifiers, annotations, base directions.

Each evaluation case is asked in every way in, by the plan and by the reference, as in `test_w3c`; CONSTRUCT cases as
graphs. The suites lie outside the project; where they are not there, all is skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pyoxigraph
import pytest
from rdflib import RDF, BNode, Graph, Literal, URIRef

import spaseq
from spaseq.language.syntax.scan import mask
from spaseq.rdf import DirectionalString, GraphEvent, Term, Terms, TripleTerm, plain_literal
from tests.gpm import test_w3c as older
from tests.gpm.test_w3c import FORM, MF, QT, STREAM, SUITES, Row, _path, inside, spaseq_text
from tests.gpm.test_w3c_syntax import as_pattern
from tests.support.data import DATA, cases_of

FOLDER = SUITES / "sparql12"
RDF12 = DATA / "w3c-rdf" / "rdf" / "rdf12"


class Case(NamedTuple):
    name: str
    query: Path
    data: Path | None
    result: Path
    graphs: tuple[Path, ...] = ()


def _manifests() -> Iterator[tuple[str, Graph]]:
    for manifest in sorted(FOLDER.glob("*/manifest.ttl")):
        yield manifest.parent.name, Graph().parse(manifest, publicID=manifest.as_uri())


def _evaluations() -> Iterator[Case]:
    for folder, graph in _manifests():
        for test in sorted(graph.subjects(RDF.type, MF.QueryEvaluationTest), key=str):
            action, result = graph.value(test, MF.action), graph.value(test, MF.result)
            query, data = graph.value(action, QT.query), graph.value(action, QT.data)
            query = action if query is None else query
            graphs = tuple(sorted(map(_path, graph.objects(action, QT.graphData))))
            name = f"{folder}/{str(test).rpartition('#')[2]}"
            yield Case(name, _path(query), None if data is None else _path(data), _path(result), graphs)


def _syntax(positive: bool) -> Iterator[tuple[str, Path]]:
    kind = MF.PositiveSyntaxTest if positive else MF.NegativeSyntaxTest
    for folder, graph in _manifests():
        for test in sorted(graph.subjects(RDF.type, kind), key=str):
            yield f"{folder}/{str(test).rpartition('#')[2]}", _path(graph.value(test, MF.action))


_FORMS = {
    ".ttl": pyoxigraph.RdfFormat.TURTLE, ".nt": pyoxigraph.RdfFormat.N_TRIPLES, ".trig": pyoxigraph.RdfFormat.TRIG,
    ".nq": pyoxigraph.RdfFormat.N_QUADS,
}  # fmt: skip


def quads(path: Path) -> list[pyoxigraph.Quad]:
    return list(pyoxigraph.parse(path.read_bytes(), _FORMS[path.suffix], base_iri=path.as_uri()))


def event_of(case: Case) -> GraphEvent:
    """The default graph of the data as an event."""
    convert = Terms().convert
    found = [] if case.data is None else quads(case.data)
    own = [quad for quad in found if isinstance(quad.graph_name, pyoxigraph.DefaultGraph)]
    triples = tuple((convert(q.subject), convert(q.predicate), convert(q.object)) for q in own)
    return GraphEvent(STREAM, 0, triples, None, case.name, 1)


def graphs_of(case: Case) -> dict[str, Any]:
    """The named graphs of the data."""
    found: dict[str, list[Any]] = {}
    for quad in [] if case.data is None else quads(case.data):
        if isinstance(quad.graph_name, pyoxigraph.NamedNode):
            found.setdefault(quad.graph_name.value, []).append((quad.subject, quad.predicate, quad.object))
    return dict(found)


@pytest.fixture(autouse=True)
def _newer_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways in of `test_w3c` on data that rdflib does not read."""
    monkeypatch.setattr(older, "event_of", event_of)
    monkeypatch.setattr(older, "graphs_of", graphs_of)
    monkeypatch.setattr(older, "_comparable", _comparable)


def _comparable(term: Any) -> Any:
    return ("triple", *map(_comparable, term.parts)) if isinstance(term, TripleTerm) else plain_literal(term)


def same(found: set[Row], expected: set[Row]) -> bool:
    """True if two sets of rows are equal up to the names of blank nodes, for some bijection of these."""
    nodes, others = _blank(found), _blank(expected)
    if len(nodes) != len(others):
        return False
    if len(nodes) > 7:  # then they are not told apart
        hidden = dict.fromkeys((*nodes, *others))
        return _renamed(found, hidden) == _renamed(expected, hidden)
    return any(_renamed(found, dict(zip(nodes, names, strict=True))) == expected for names in permutations(others))


def _blank(rows: set[Row]) -> list[BNode]:
    return sorted({node for row in rows for _, term in row for node in _nodes(term)})


def _nodes(term: Any) -> set[BNode]:
    if isinstance(term, tuple):
        return set().union(*map(_nodes, term))
    return {term} if isinstance(term, BNode) else set()


def _renamed(rows: set[Row], names: dict[Any, Any]) -> set[Row]:
    return {frozenset((name, _rename(term, names)) for name, term in row) for row in rows}


def _rename(term: Any, names: dict[Any, Any]) -> Any:
    return tuple(_rename(part, names) for part in term) if isinstance(term, tuple) else names.get(term, term)


def expected_rows(path: Path) -> set[Row]:
    if path.suffix == ".srj":
        rows = json.loads(path.read_text("utf-8"))["results"]["bindings"]
        return {older._row({name: _json_term(term) for name, term in row.items()}) for row in rows}
    root = ElementTree.parse(path).getroot()
    return {
        older._row({one.attrib["name"]: _xml_term(one[0]) for one in result})
        for result in root.iter(f"{_SRX}result")
    }  # fmt: skip


_SRX = "{http://www.w3.org/2005/sparql-results#}"
_XML = "{http://www.w3.org/XML/1998/namespace}lang"
_ITS = "{http://www.w3.org/2005/11/its}dir"


def _json_term(term: dict[str, Any]) -> Term:
    value = term["value"]
    if term["type"] == "triple":
        return TripleTerm(*(_json_term(value[name]) for name in ("subject", "predicate", "object")))
    return _made(term["type"], value, term.get("xml:lang"), term.get("its:dir"), term.get("datatype"))


def _xml_term(node: ElementTree.Element) -> Term:
    kind = node.tag.removeprefix(_SRX)
    if kind == "triple":
        return TripleTerm(*(_xml_term(part[0]) for part in node))
    attributes = node.attrib
    return _made(kind, node.text or "", attributes.get(_XML), attributes.get(_ITS), attributes.get("datatype"))


def _made(kind: str, text: str, tag: str | None, direction: str | None, datatype: str | None) -> Term:
    if kind == "uri":
        return URIRef(text)
    if kind == "bnode":
        return BNode(text)
    if tag is not None:
        return DirectionalString(text, tag, direction) if direction else Literal(text, lang=tag)
    return Literal(text, datatype=None if datatype is None else URIRef(datatype), normalize=False)


def is_select(case: Case) -> bool:
    form = FORM.search(mask(case.query.read_text("utf-8")))
    return form is not None and form[0].upper() == "SELECT"


CASES = list(_evaluations()) if FOLDER.is_dir() else []
SELECTS = [case for case in CASES if is_select(case)]
OTHERS = [case for case in CASES if not is_select(case)]
DIFFERENT = {
    "expression/not-not": "the truth of a string with a tag, and of an ill-typed boolean, is of SPARQL 1.1 (§17.2.2)"
}
"""The evaluation cases in which SPARQL 1.1 says otherwise, and its suite, too."""
OLDER = {
    "codepoint-escapes/codepoint-esc-01-bad": "an escape may stand anywhere in SPARQL 1.1 (§19.2), here in keywords",
    "codepoint-escapes/codepoint-esc-03-bad": "an escape may stand anywhere in SPARQL 1.1 (§19.2), here in a name",
}
"""The negative syntax cases that are queries of SPARQL 1.1."""


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", cases_of(FOLDER, SELECTS), ids=named)
def test_patterns(case: Case) -> None:
    """As the pattern of one GPM: by the plan over columns, and by the reference."""
    if case.name in DIFFERENT:
        pytest.xfail(DIFFERENT[case.name])
    pattern, expected = inside(case), expected_rows(case.result)  # type: ignore[arg-type]
    for reference in (False, True):
        found = older.by_plan(pattern, case, reference=reference)  # type: ignore[arg-type]
        assert same(found, expected), f"{reference=}\nmissing {expected - found}\nsurplus {found - expected}"


@pytest.mark.parametrize("road", [older.by_run, older.by_push])
@pytest.mark.parametrize("case", cases_of(FOLDER, SELECTS), ids=named)
def test_queries(case: Case, road: Any, tmp_path: Path) -> None:
    """As queries of SPAseq with their own clauses: from a file, and pushed."""
    if case.name in DIFFERENT:
        pytest.xfail(DIFFERENT[case.name])
    text = spaseq_text(case.query.read_text("utf-8"), case.query.as_uri())
    query, expected = spaseq.compile(text), expected_rows(case.result)
    for reference in (False, True):
        found = road(query, case, tmp_path, reference)
        assert same(found, expected), f"{reference=}\nmissing {expected - found}\nsurplus {found - expected}"


def construct_text(text: str, base: str) -> str:
    """A CONSTRUCT as a query of SPAseq; CONSTRUCT WHERE has its pattern as template."""
    masked = mask(text)
    form = FORM.search(masked)
    assert form is not None
    where = re.compile(r"\bWHERE\b", re.IGNORECASE).search(masked, form.end())
    assert where is not None
    group = text[masked.index("{", where.end()) :]
    template = text[form.end() : where.start()].strip() or group.rstrip()
    return (
        f"BASE <{base}>\n{text[: form.start()]}CONSTRUCT {template} FROM STREAM S <{STREAM}>\n"
        f"WHERE {{ SEQ (A) DEFINE GPM A ON S {group} }}"
    )


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("case", cases_of(FOLDER, OTHERS), ids=named)
def test_graphs(case: Case, reference: bool) -> None:
    """CONSTRUCT as a graph; ASK as a match or none."""
    text = case.query.read_text("utf-8")
    if case.result.suffix in (".srj", ".srx"):
        session = spaseq.compile(as_pattern(text)).open(reference=reference)
        found = session.push([event_of(case)])
        found += session.close()
        assert bool(found) is json.loads(case.result.read_text("utf-8"))["boolean"]
        return
    session_query = spaseq.compile(construct_text(text, case.query.as_uri()))
    session = session_query.open(kb=graphs_of(case), reference=reference)
    found = session.push([event_of(case)])
    found += session.close()
    made = pyoxigraph.Dataset()
    for match in found:
        for quad in session_query.construct(match, as_="pyoxigraph"):
            made.add(quad)
    expected = pyoxigraph.Dataset(quads(case.result))
    for dataset in (made, expected):
        dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    assert made == expected


# -- syntax

RIGHT = list(_syntax(True)) if FOLDER.is_dir() else []
WRONG = list(_syntax(False)) if FOLDER.is_dir() else []


def _ids(case: tuple[str, Path]) -> str:
    return case[0]


@pytest.mark.parametrize("case", cases_of(FOLDER, RIGHT), ids=_ids)
def test_what_is_right_is_taken(case: tuple[str, Path]) -> None:
    spaseq.compile(as_pattern(case[1].read_text("utf-8")))


@pytest.mark.parametrize("case", cases_of(FOLDER, WRONG), ids=_ids)
def test_what_is_wrong_is_refused_with_its_place(case: tuple[str, Path]) -> None:
    text = case[1].read_text("utf-8")
    if case[0] in OLDER:
        pytest.xfail(OLDER[case[0]])
    with pytest.raises(spaseq.QueryError) as caught:
        spaseq.compile(as_pattern(text))
    assert caught.value.span is not None
