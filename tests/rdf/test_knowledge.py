"""Files of knowledge as columns, beside the reader of statements."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

import spaseq
from spaseq.core.errors import EventError
from spaseq.language.runtime.knowledge import knowledge_of
from spaseq.rdf import GraphColumns, format_of, read_knowledge, read_statements, term_key


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


LINES = r"""
<urn:a> <urn:p> "x" .
<urn:a> <urn:p> "x"^^<http://www.w3.org/2001/XMLSchema#string> .
_:b <urn:p> <urn:h\u00e4us> <urn:graph> .
# a comment
_:c <urn:q> _:b .
<urn:a> <urn:p> "cold"@EN .
<urn:a> <urn:p> "zwei\nZeilen"@de-AT .
<urn:a> <urn:n> "010"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:a> <urn:p> "x" <urn:graph> .
"""
TURTLE = "\ufeff@prefix : <urn:> . :a :p [ :q 1, 1.0, 'h\u00e4'@en ] ; :q ( :a _:b ) . _:b :p :a , [] ."
XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:x:">'
    '<rdf:Description rdf:about="urn:h1"><u:name xml:lang="en">Ada</u:name><u:of rdf:parseType="Resource"/>'
    "</rdf:Description></rdf:RDF>"
)


def _stated(path: str) -> set[tuple[str, ...]]:
    """The triples by the reader of statements, with the names of blank nodes as `read_knowledge` gives them."""
    form = format_of(path, documents=True)
    data = Path(path).read_bytes()
    own = path.encode() + b"%d" % len(data) + data[: 1 << 14] + data[-(1 << 14) :]
    names: dict[str, str] = {}
    found = set()
    for s, p, o, _, _ in read_statements(path, form):
        triple = []
        for key in map(term_key, (s, p, o)):
            if key.startswith("_:"):
                label = key[2:] if form.lines else str(len(names))
                key = names.setdefault(key, f"_:k{zlib.crc32(own):08x}b{label}")
            triple.append(key)
        found.add(tuple(triple))
    return found


def _keys(graph: GraphColumns) -> list[tuple[str, ...]]:
    return [tuple(map(term_key, triple)) for triple in graph]


@pytest.mark.parametrize(
    ("name", "text"),
    [("kb.nq", LINES), ("kb.nq", LINES * 3), ("kb.ttl", TURTLE), ("kb.rdf", XML), ("kb.nt", ""), ("kb.ttl", "# none"),
     ("kb.trig", "@prefix : <urn:> . :g { _:b :p :a } :h { _:b :p :a . :a :p [] }")],
)  # fmt: skip
def test_columns_have_the_triples_that_the_statements_have(name: str, text: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, text)
    found = _keys(read_knowledge(path))
    assert len(set(found)) == len(found)  # each once
    assert len(found) == len(_stated(path))
    if name != "kb.ttl" and name != "kb.rdf":  # there the parser makes up labels
        assert set(found) == _stated(path)


def test_files_of_one_graph_share_terms_and_no_blank_nodes(tmp_path: Path) -> None:
    paths = [write(tmp_path, f"{k}.nt", '_:b <urn:p> "1" .\n<urn:a> <urn:p> "1" .\n') for k in "ab"]
    graph = read_knowledge(paths)
    assert set(_keys(graph)) == _stated(paths[0]) | _stated(paths[1])
    assert len(graph) == 3
    assert len(graph.about(["urn:p"])) == 3
    assert len(graph.about(["urn:p", "urn:none"])) == 3
    assert len(graph.about(["urn:none"])) == 0


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("kb.nt", '<urn:a> <urn:p> "1" .\n<urn:a> nonsense\n', r"kb\.nt:2: not N-Triples"),
        ("kb.ttl", "@prefix : <urn:> .\n:a :p 1 .\n:a :p ?x .", r"kb\.ttl:3: not Turtle"),
        ("kb.ttl", "@prefix : <urn:> .\n:a :p <<( :a :p )>> .", r"kb\.ttl:2: not Turtle"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(name: str, text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(EventError, match=told):
        read_knowledge(write(tmp_path, name, text))


def test_no_graph_of_rdflib_is_made_for_patterns_over_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphColumns, "graph", lambda *_: pytest.fail("a graph of rdflib"))
    path = write(tmp_path, "kb.nt", '<urn:x> <urn:in> <urn:r> .\n<urn:y> <urn:in> "r" .\n')
    stream = write(tmp_path, "s.nt", "<urn:x> <urn:p> <urn:r> .\n<urn:y> <urn:p> <urn:r> .\n")
    text = """SELECT * FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S {
              ?s <urn:p> ?r GRAPH <urn:kb> { ?s <urn:in> ?r } } }"""
    matches = spaseq.compile(text).run({"S": stream}, knowledge_of({"urn:kb": path}), event_by="subject",
                                       time_from="arrival")  # fmt: skip
    assert [str(match.bindings["s"]) for match in matches] == ["urn:x"]
