"""The evaluation cases of the W3C's SPARQL 1.0 and 1.1 suites: each graph as one event, each query with one GPM.

SELECT cases without FROM, SERVICE and entailment. Each is asked in every way in: from a file, pushed, as columns and by
rdflib. Where the clauses behind WHERE mean another thing in SPAseq, the whole SELECT is a subquery inside the GPM.
Results are compared as sets, as the value of a GPM is a set of mappings. The suites lie outside the project; where they
are not there, all is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import rdflib
from rdflib import RDF, BNode, Graph, Literal, Namespace, URIRef
from rdflib.query import Result
from rdflib.term import Node

import spaseq
from spaseq.core.errors import SpaseqError
from spaseq.gpm import GraphPattern, Knowledge, PatternEvaluator, Source, compile_pattern
from spaseq.gpm.columnar import uncovered_pattern
from spaseq.gpm.columnar.evaluate import BatchEvaluator
from spaseq.gpm.serialise import nquads_term
from spaseq.language.syntax.scan import mask
from spaseq.rdf import GraphBatch, GraphEvent, Term, plain_literal
from tests.support.data import DATA, cases_of

SUITES = DATA / "w3c-sparql"
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
STREAM = "http://example.org/S"
OTHER = re.compile(r"\b(FROM|SERVICE)\b", re.IGNORECASE)
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
FORM = re.compile(r"(?<![?$\w:-])(SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE)
Row = frozenset[tuple[str, Any]]


class Case(NamedTuple):
    name: str
    query: Path
    data: Path | None
    result: Path
    graphs: tuple[Path, ...] = ()


def _path(uri: Any) -> Path:
    return Path(str(uri).removeprefix("file://"))


def _cases() -> Iterator[Case]:
    for manifest in sorted(SUITES.glob("sparql1[01]/*/manifest.ttl")):
        if manifest.parent.name == "entailment":
            continue
        graph = Graph().parse(manifest, publicID=manifest.as_uri())
        for test in sorted(graph.subjects(RDF.type, MF.QueryEvaluationTest), key=str):
            action, result = graph.value(test, MF.action), graph.value(test, MF.result)
            query, data = graph.value(action, QT.query), graph.value(action, QT.data)
            if query is None or result is None:
                continue
            graphs = tuple(sorted(map(_path, graph.objects(action, QT.graphData))))
            text = _path(query).read_text("utf-8")
            form = FORM.search(mask(text))
            if form and form[0].upper() == "SELECT" and not OTHER.search(mask(text)):
                name = f"{manifest.parent.parent.name}/{manifest.parent.name}/{str(test).rpartition('#')[2]}"
                yield Case(name, _path(query), None if data is None else _path(data), _path(result), graphs)


def spaseq_text(text: str, base: str) -> str:
    """A SPARQL SELECT as a SPAseq query of one GPM."""
    masked = mask(text)
    form = FORM.search(masked)
    assert form is not None
    start = masked.index("{", form.end())
    end = start + 1
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(masked[end], 0)
        end += 1
    items = re.sub(r"\bWHERE\s*$", "", text[form.start() : start].rstrip(), flags=re.IGNORECASE)
    prologue = text[: form.start()]
    base_line = "" if re.search(r"\bBASE\b", masked[: form.start()], re.IGNORECASE) else f"BASE <{base}>\n"
    group, tail = text[start:end], text[end:]
    if (values := re.search(r"\bVALUES\b", masked[end:], re.IGNORECASE)) is not None:
        # Inline data behind the query is joined with its solutions: so it is inside the group.
        group, tail = f"{{ {group} {tail[values.start() :]} }}", tail[: values.start()]
    body = f"WHERE {{ SEQ (A) DEFINE GPM A ON S {group} }}"
    return f"{base_line}{prologue}{items}\nFROM STREAM S <{STREAM}>\n{body}\n{tail}"


@contextmanager
def as_written() -> Iterator[None]:
    """While it is open, rdflib keeps the text of literals."""
    before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = before


def _graph(path: Path) -> Graph:
    with as_written():
        return Graph().parse(path, publicID=path.as_uri())


def expected_rows(path: Path) -> set[Row]:
    """The rows of a result file."""
    if path.suffix in (".ttl", ".rdf"):
        return _result_graph(_graph(path))
    form = {".srx": "xml", ".srj": "json", ".csv": "csv", ".tsv": "tsv"}[path.suffix]
    with as_written(), path.open("rb") as file:
        result = Result.parse(file, format=form)
        return {_row({str(k): v for k, v in row.items()}) for row in result.bindings}


def _result_graph(graph: Graph) -> set[Row]:
    return {
        _row({str(graph.value(b, RS.variable)): graph.value(b, RS.value) for b in graph.objects(solution, RS.binding)})
        for solution in graph.objects(None, RS.solution)
    }


def _row(bindings: dict[str, Any]) -> Row:
    return frozenset((name, _comparable(term)) for name, term in bindings.items() if term is not None)


def _comparable(term: Any) -> Any:
    """Numbers by value: the suites write 2.0 and 2 for one decimal."""
    if (isinstance(term, Literal) and isinstance(term.value, (int, float))) or hasattr(
        getattr(term, "value", 0), "adjusted"
    ):
        return (str(term.datatype), float(term.value))
    return plain_literal(term) if isinstance(term, Literal) else term


def same(found: set[Row], expected: set[Row]) -> bool:
    """Whether two sets of rows are equal up to the names of blank nodes."""
    nodes, others = _blank(found), _blank(expected)
    if not nodes or not others or len(nodes) > 7:
        hide = frozenset(nodes) | frozenset(others) if nodes or others else frozenset()
        return _renamed(found, dict.fromkeys(hide)) == _renamed(expected, dict.fromkeys(hide))
    if len(nodes) != len(others):
        return False
    return any(_renamed(found, dict(zip(nodes, names, strict=True))) == expected for names in permutations(others))


def _blank(rows: set[Row]) -> list[BNode]:
    return sorted({term for row in rows for _, term in row if isinstance(term, BNode)})


def _renamed(rows: set[Row], names: dict[Any, Any]) -> set[Row]:
    return {frozenset((name, names.get(term, term)) for name, term in row) for row in rows}


def query_text(case: Case) -> str:
    """The case as a query of SPAseq: with its own clauses, or as a subquery of its GPM."""
    text = case.query.read_text("utf-8")
    if case.name not in AS_SUBQUERY:
        return spaseq_text(text, case.query.as_uri())
    form = FORM.search(mask(text))
    assert form is not None
    prologue = f"BASE <{case.query.as_uri()}>\n{text[: form.start()]}"
    group = "{ { " + text[form.start() :] + "\n} }"
    return f"{prologue}SELECT *\nFROM STREAM S <{STREAM}>\nWHERE {{ SEQ (A) DEFINE GPM A ON S {group} }}"


def by_run(query: Any, case: Case, folder: Path, reference: bool) -> set[Row]:
    """From a file."""
    lines = [" ".join(map(nquads_term, triple)) + " ." for triple in event_of(case).triples]
    path = folder / "event.trig"
    path.write_text(f"<{STREAM}#1> <{TIME}> 0 .\n<{STREAM}#1> {{\n" + "\n".join(lines) + "\n}\n", "utf-8")
    found = query.run({"S": str(path)}, kb=graphs_of(case), reference=reference)
    return {_row(match.bindings) for match in found}


def by_push(query: Any, case: Case, folder: Path, reference: bool) -> set[Row]:
    """Pushed."""
    session = query.open(kb=graphs_of(case), reference=reference)
    found = session.push([event_of(case)])
    found += session.close()
    return {_row(match.bindings) for match in found}


def inside(case: Case) -> GraphPattern:
    """The whole SELECT as a subquery that is the graph pattern of one GPM."""
    text = case.query.read_text("utf-8")
    masked = mask(text)
    form = FORM.search(masked)
    assert form is not None
    prologue = re.sub(r"#[^\n>]*$", "", text[: form.start()], flags=re.MULTILINE)
    prefixes = tuple(re.findall(r"\bPREFIX\s+([\w-]*):\s*<([^>]*)>", prologue, re.IGNORECASE))
    base = re.findall(r"\bBASE\s+<([^>]*)>", prologue, re.IGNORECASE)
    group = "{ { " + text[form.start() :] + "\n} }"
    place = base[-1] if base else case.query.as_uri()
    return compile_pattern(Source(group, mask(group), 0, len(group), "A", prefixes, place, case.name), (STREAM,))


def _term(node: Node) -> Term:
    assert isinstance(node, URIRef | BNode | Literal)
    return node


def event_of(case: Case) -> GraphEvent:
    """The case's graph as an event."""
    graph = Graph() if case.data is None else _graph(case.data)
    triples = tuple((_term(s), _term(p), plain_literal(_term(o))) for s, p, o in graph)
    return GraphEvent(STREAM, 0, triples, None, case.name, 1)


def graphs_of(case: Case) -> dict[str, Graph]:
    """The case's named graphs."""
    return {path.as_uri(): _graph(path) for path in case.graphs}


def by_plan(pattern: GraphPattern, case: Case, *, reference: bool = False) -> set[Row]:
    """The value of a GPM on the case's graph: as columns, or by rdflib."""
    evaluator = BatchEvaluator([PatternEvaluator(pattern, Knowledge(graphs_of(case)))], reference=reference)
    return {
        _row(dict(found.mapping(row, None)))
        for found in evaluator.solve(GraphBatch.of([event_of(case)])).values()
        for row in range(len(found.events))
        if found.kept[row]
    }


SETS = "OFFSET and LIMIT count solutions, and equal ones are one: the value of a GPM is a set"
EMPTY = "where nothing matches there is no solution and no window, so no group of it"
AS_SUBQUERY = {
    "sparql10/solution-seq/offset-1": SETS,
    "sparql10/solution-seq/slice-1": SETS,
    "sparql10/solution-seq/slice-2": SETS,
    "sparql10/solution-seq/slice-4": SETS,
    "sparql11/aggregates/agg-avg-03": EMPTY,
    "sparql11/aggregates/agg-empty-group-count-2": EMPTY,
    "sparql11/aggregates/agg-empty-group-max-2": EMPTY,
}
"""What the clauses of SPAseq mean otherwise than those of SPARQL, and why: asked as a subquery inside the GPM."""
_SLIP = "names the unknown variable"
REFUSED = {
    "sparql11/bind/bind04": _SLIP,
    "sparql11/functions/coalesce01": _SLIP,
    "sparql11/project-expression/projexp06": _SLIP,
    "sparql10/graph/graph-not-exist": "no such background knowledge is given",
}
"""What a query of SPAseq may not do, and its message; as patterns they are reproduced."""
CONTRADICTION = "sparql10/optional-filter/dawg-optional-filter-005-simplified"
"""One of two variants of the suite, which contradict each other: in it a FILTER of a group nested in OPTIONAL sees the
outside. SPARQL 1.1 §18.2.2.6 gives the other one, dawg-optional-filter-005-not-simplified."""

CASES = [case for case in _cases() if case.name != CONTRADICTION] if SUITES.is_dir() else []


def named(case: Case) -> str:
    return case.name


@pytest.mark.slow
@pytest.mark.parametrize("road", [by_run, by_push])
@pytest.mark.parametrize("case", cases_of(SUITES, CASES), ids=named)
def test_queries(case: Case, road: Any, tmp_path: Path) -> None:
    if case.name in REFUSED:
        with pytest.raises(SpaseqError, match=REFUSED[case.name]):
            road(spaseq.compile(query_text(case)), case, tmp_path, False)
        return
    query, expected = spaseq.compile(query_text(case)), expected_rows(case.result)
    for reference in (False, True):
        found = road(query, case, tmp_path, reference)
        assert same(found, expected), f"{reference=}\nmissing {expected - found}\nsurplus {found - expected}"


@pytest.mark.slow
@pytest.mark.parametrize("case", cases_of(SUITES, CASES), ids=named)
def test_patterns(case: Case) -> None:
    pattern, expected = inside(case), expected_rows(case.result)
    for reference in (False, True):
        found = by_plan(pattern, case, reference=reference)
        assert same(found, expected), f"{reference=}\nmissing {expected - found}\nsurplus {found - expected}"


@pytest.mark.slow
def test_what_the_plan_leaves_to_rdflib() -> None:
    """Nothing of these."""
    left = {case.name.rpartition("/")[2] for case in CASES if uncovered_pattern(inside(case)) is not None}
    assert not left
