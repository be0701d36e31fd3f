"""Groups of entities that belong together, as background knowledge."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import rdflib

import spaseq
from spaseq.core.errors import OptionError
from spaseq.language.runtime.knowledge import knowledge_of
from spaseq.rdf import GROUP, Grouped, group_labels, group_triples

E = rdflib.Namespace("http://example.org/")


def test_labels_are_the_least_of_what_is_connected() -> None:
    rng = random.Random(5)
    for edges in range(0, 60, 3):
        links = [(f"n{rng.randrange(40)}", f"n{rng.randrange(40)}") for _ in range(edges)]
        expected = {name: name for link in links for name in link}
        for _ in links:
            for left, right in links:
                expected[left] = expected[right] = min(expected[left], expected[right])
        assert group_labels(links) == expected


def test_only_what_the_properties_connect_is_grouped() -> None:
    triples: list[Any] = [
        (E.b, E.p, E.a), (E.c, E.q, E.b), (E.x, E.p, rdflib.BNode("y")), (E.d, E.other, E.a),
        (E.a, E.p, rdflib.Literal("a")), (E.c, E.p, rdflib.Literal("a")),
    ]  # fmt: skip
    found = set(group_triples(triples, [str(E.p), str(E.q)]))
    property_ = rdflib.URIRef(GROUP)
    abc = {(name, property_, E.a) for name in (E.a, E.b, E.c)}
    assert found == abc | {(name, property_, E.x) for name in (E.x, rdflib.BNode("y"))}


def test_any_knowledge_can_be_grouped(tmp_path: Path) -> None:
    path = tmp_path / "roads.nt"
    path.write_text(f"<{E.b}> <{E.p}> <{E.a}> .\n")
    graph = rdflib.Graph().parse(path)
    for value in (str(path), path, [str(path)], graph):
        known = knowledge_of({"urn:k": Grouped(value, f"<{E.p}>")}).graphs["urn:k"]
        assert len(list(known)) == 3
    assert len(graph) == 1
    assert spaseq.Grouped is Grouped
    for wrong in ("", [], ["urn:p", "<>"]):
        with pytest.raises(OptionError, match="groups without a property"):
            Grouped(graph, wrong)
