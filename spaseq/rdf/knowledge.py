"""Background knowledge: a file of RDF in any format as one graph (seed SPAseq, Definition 15)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import rdflib

from spaseq.rdf.files import expand_files, format_of
from spaseq.rdf.statements import read_statements
from spaseq.rdf.terms import Term, Terms

__all__ = ["load_knowledge"]


def load_knowledge(path: str | Sequence[str], *, format: str | None = None) -> rdflib.Graph:
    """The triples of the file (or files, or glob) `path` as one graph, named graphs in it merged.

    The format is told by the extension (N-Triples, N-Quads, TriG, Turtle, N3, RDF/XML, JSON-LD; `.gz` and `.zst` are
    decompressed) or by `format`. Blank nodes of different files stay different. EventError with file and line for
    what cannot be read.
    """
    graph = rdflib.Graph()
    for file in expand_files([path] if isinstance(path, str) else path):
        prefix = f"k{zlib.crc32(file.encode()):08x}b"
        blanks: dict[Term, rdflib.BNode] = {}

        def own(term: Term, blanks: dict[Term, rdflib.BNode] = blanks, prefix: str = prefix) -> Term:
            if not isinstance(term, rdflib.BNode):
                return term
            return blanks.setdefault(term, rdflib.BNode(f"{prefix}{len(blanks)}"))

        for s, p, o, _, _ in read_statements(file, format_of(file, format, documents=True), terms=Terms()):
            graph.add((own(s), p, own(o)))
    return graph
