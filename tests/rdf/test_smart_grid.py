"""The smart-grid example: its data is what its generator makes, its expected result is what its query means.

Also the project's ontologies: they parse, everything in them is labelled, and the example uses no term they lack.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from rdflib import OWL, RDF, RDFS, URIRef

import spaseq
from spaseq.events.time import format_time
from spaseq.rdf import StreamOptions, StreamSource, instants, load_knowledge, open_streams, read_stream, term_key
from tests.support import oracle_spaseq, oracle_spaseq_text

ROOT = Path(__file__).resolve().parents[2]
GRID = ROOT / "examples" / "smart-grid"
STREAMS = {"S1": "power", "S2": "weather", "S3": "storage"}
COLUMNS = ["time", "house", "oname", "city", "house2", "fr1", "storage", "fr2"]
NS = "http://smartgrid.org/ns#"

Row = tuple[str, ...]


def _graph(triples: object) -> oracle_spaseq.Graph:
    return frozenset((term_key(s), term_key(p), term_key(o)) for s, p, o in triples)  # type: ignore[attr-defined]


def _text(key: str) -> str:
    """A term as SPARQL's CSV writes it."""
    return key[1:-1] if key.startswith("<") else key[1 : key.rindex('"')]


def _answers() -> set[oracle_spaseq.Answer]:
    """The answers of the naive evaluator."""
    streams = {
        name: [
            (event.time, _graph(event.triples))
            for event in read_stream(f"http://smartgrid.org/{file}", [str(GRID / f"{file}.nq")], StreamOptions())
        ]
        for name, file in STREAMS.items()
    }
    knowledge = {"<http://smartgrid.org/db>": _graph(load_knowledge(str(GRID / "kb.ttl")))}
    query = oracle_spaseq_text.read((GRID / "query.rq").read_text("utf-8"))
    return oracle_spaseq.evaluate(query, streams, knowledge)


def _rows(answers: set[oracle_spaseq.Answer]) -> list[Row]:
    rows = []
    for time, solution in oracle_spaseq.solutions(answers):
        values = {name: _text(key) for name, key in solution}
        rows.append((format_time(time), *(values[name] for name in COLUMNS[1:])))
    return sorted(rows)


def test_the_generator_makes_the_files_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(GRID / "generate.py"), str(tmp_path)], check=True)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["kb.ttl", "power.nq", "storage.nq", "weather.nq"]
    for name in made:
        assert (tmp_path / name).read_bytes() == (GRID / name).read_bytes(), name


def test_the_expected_result_is_what_the_query_means() -> None:
    with (GRID / "expected.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == COLUMNS
    answers = _answers()
    assert [tuple(row) for row in rows] == _rows(answers)
    assert len(rows) == 23
    assert len({at for _, _, at, _ in answers}) == 17


def test_the_engine_finds_the_expected_result() -> None:
    query = spaseq.compile((GRID / "query.rq").read_text("utf-8"))
    streams = {name: str(GRID / f"{file}.nq") for name, file in STREAMS.items()}
    found = query.run(streams, {"http://smartgrid.org/db": str(GRID / "kb.ttl")})
    rows = {(format_time(match.time), *(str(match.bindings[name]) for name in COLUMNS[1:])) for match in found}
    with (GRID / "expected.csv").open(encoding="utf-8", newline="") as file:
        assert rows == {tuple(row) for row in list(csv.reader(file))[1:]}


def test_the_story_of_the_readme() -> None:
    """Runs of different length, one that waits past a storage report, and storages that directly follow the weather."""
    found = {tuple(format_time(time)[11:16] for time in at) for _, _, at, _ in _answers()}
    assert ("09:33", "09:48", "09:53", "09:55") in found
    assert ("11:00", "11:38", "11:43", "11:48", "11:53", "11:55") in found
    assert {len(at) for at in found} == {4, 5, 6}
    assert not any(at[0] == "08:02" for at in found)


def test_the_instants_are_as_the_generator_says() -> None:
    sources = [StreamSource(f"http://smartgrid.org/{file}", (str(GRID / f"{file}.nq"),)) for file in STREAMS.values()]
    merged, options = open_streams(sources, StreamOptions())
    sizes = [len(instant.events) for instant in instants(merged, options)]
    assert len(sizes) == 12 * (6 + 4 + 1)
    assert sum(sizes) == 12 * (6 + 12 + 3)


@pytest.mark.parametrize("name", ["event", "smart-grid"])
def test_ontologies_are_labelled(name: str) -> None:
    ontology = load_knowledge(str(ROOT / "ontologies" / f"{name}.ttl"))
    kinds = {OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty, OWL.AnnotationProperty}
    terms = {term for kind in kinds for term in ontology.subjects(RDF.type, kind)}
    assert len(terms) >= 12
    for term in terms:
        assert ontology.value(term, RDFS.label), term
        assert ontology.value(term, RDFS.comment), term
    assert not list(ontology.subject_objects(OWL.imports))


def test_the_example_uses_no_term_that_its_ontology_lacks() -> None:
    ontology = load_knowledge(str(ROOT / "ontologies" / "smart-grid.ttl"))
    known = {term for term in ontology.subjects(RDFS.label, None) if str(term).startswith(NS)}
    used = set()
    for path in (*(str(GRID / f"{file}.nq") for file in STREAMS.values()), str(GRID / "kb.ttl")):
        for triple in load_knowledge(path):
            used |= {term for term in triple if isinstance(term, URIRef) and str(term).startswith(NS)}
    assert used <= known
    assert {URIRef(NS + "loc"), URIRef(NS + "nearBy"), URIRef(NS + "House")} <= used
