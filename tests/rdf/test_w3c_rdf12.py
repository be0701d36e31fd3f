"""The W3C's suites of RDF 1.2: files that are read as background knowledge and as events, and files that are refused.

The suites lie outside the project; where they are not there, all is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
import pytest
from rdflib import RDF, Graph

import spaseq
from spaseq.rdf import ARRIVAL, EventBy, GraphEvent, StreamOptions, StreamSource, read_knowledge
from spaseq.rdf.columns.reader import open_batches
from spaseq.rdf.given import to_pyoxigraph
from spaseq.rdf.model import Counters
from tests.gpm.test_w3c import MF, _path
from tests.support.data import DATA, cases_of

FOLDER = DATA / "w3c-rdf" / "rdf" / "rdf12"
FORMS = {
    ".nt": pyoxigraph.RdfFormat.N_TRIPLES, ".nq": pyoxigraph.RdfFormat.N_QUADS,
    ".ttl": pyoxigraph.RdfFormat.TURTLE, ".trig": pyoxigraph.RdfFormat.TRIG,
}  # fmt: skip


class Case(NamedTuple):
    name: str
    kind: str
    file: Path
    result: Path | None


def _cases() -> Iterator[Case]:
    for manifest in sorted(FOLDER.glob("rdf-*/*/manifest.ttl")):
        graph = Graph().parse(manifest, publicID=manifest.as_uri())
        for test, action in sorted(graph.subject_objects(MF.action), key=str):
            kind = str(graph.value(test, RDF.type)).rpartition("#")[2]
            result = graph.value(test, MF.result)
            path = "/".join(manifest.parent.parts[-2:])
            name = f"{path}/{str(test).rpartition('#')[2]}"
            yield Case(name, kind, _path(action), None if result is None else _path(result))


CASES = list(_cases()) if FOLDER.is_dir() else []
RIGHT = [case for case in CASES if "Negative" not in case.kind]
WRONG = [case for case in CASES if "Negative" in case.kind]


def named(case: Case) -> str:
    return case.name


def parsed(path: Path) -> pyoxigraph.Dataset:
    """The triples of a file by the parser alone, named graphs merged."""
    found = pyoxigraph.Dataset()
    base = None if path.suffix in (".nt", ".nq") else path.as_uri()
    for quad in pyoxigraph.parse(path.read_bytes(), FORMS[path.suffix], base_iri=base):
        found.add(pyoxigraph.Quad(quad.subject, quad.predicate, quad.object))
    return _canonical(found)


def _canonical(dataset: pyoxigraph.Dataset) -> pyoxigraph.Dataset:
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def _dataset(triples: object) -> pyoxigraph.Dataset:
    found = pyoxigraph.Dataset()
    for triple in triples:  # type: ignore[attr-defined]
        found.add(pyoxigraph.Quad(*map(to_pyoxigraph, triple)))
    return _canonical(found)


def with_base(case: Case, folder: Path) -> Path:
    """The file with its own address as the base, which readers of streams do not assume."""
    if case.file.suffix in (".nt", ".nq"):
        return case.file
    path = folder / case.file.name
    path.write_bytes(f"@base <{case.file.as_uri()}> .\n".encode() + case.file.read_bytes())
    return path


@pytest.mark.parametrize("case", cases_of(FOLDER, RIGHT), ids=named)
def test_files_are_read_as_they_are(case: Case, tmp_path: Path) -> None:
    """As knowledge, and as an event of the whole file: the triples that the parser finds, or the expected ones."""
    path = with_base(case, tmp_path)
    expected = parsed(case.file if case.result is None or "c14n" in case.name else case.result)
    assert _dataset(read_knowledge(str(path)).graph()) == expected
    options = StreamOptions(event_by=EventBy("file"), time=ARRIVAL)
    streams, _ = open_batches([StreamSource("http://example.org/S", (str(path),))], options, Counters())
    events: list[GraphEvent] = [
        batch.event(place) for _, batches in streams for batch in batches for place in range(len(batch))
    ]
    assert _dataset(triple for event in events for triple in event.triples) == expected


@pytest.mark.parametrize("case", cases_of(FOLDER, WRONG), ids=named)
def test_files_that_are_wrong_are_refused(case: Case, tmp_path: Path) -> None:
    with pytest.raises(spaseq.EventError):
        read_knowledge(str(with_base(case, tmp_path)))
