"""Relative IRIs: the examples of RFC 3986 §5.4, and what SPARQL's own tests ask."""

from __future__ import annotations

import pytest

from spaseq.rdf.iri import local_name, resolve_iri

BASE = "http://a/b/c/d;p?q"
EXAMPLES = {
    "g:h": "g:h", "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/", "/g": "http://a/g",
    "//g": "http://g", "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y", "#s": "http://a/b/c/d;p?q#s",
    "g#s": "http://a/b/c/g#s", "g?y#s": "http://a/b/c/g?y#s", ";x": "http://a/b/c/;x", "g;x": "http://a/b/c/g;x",
    "g;x?y#s": "http://a/b/c/g;x?y#s", "": "http://a/b/c/d;p?q", ".": "http://a/b/c/", "./": "http://a/b/c/",
    "..": "http://a/b/", "../": "http://a/b/", "../g": "http://a/b/g", "../..": "http://a/", "../../": "http://a/",
    "../../g": "http://a/g", "../../../g": "http://a/g", "../../../../g": "http://a/g", "/./g": "http://a/g",
    "/../g": "http://a/g", "g.": "http://a/b/c/g.", ".g": "http://a/b/c/.g", "g..": "http://a/b/c/g..",
    "..g": "http://a/b/c/..g", "./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/", "g/./h": "http://a/b/c/g/h",
    "g/../h": "http://a/b/c/h", "g;x=1/./y": "http://a/b/c/g;x=1/y", "g;x=1/../y": "http://a/b/c/y",
    "g?y/./x": "http://a/b/c/g?y/./x", "g?y/../x": "http://a/b/c/g?y/../x", "g#s/./x": "http://a/b/c/g#s/./x",
    "g#s/../x": "http://a/b/c/g#s/../x", "http:g": "http:g",
}  # fmt: skip
"""Reference to IRI beside `BASE`, as §5.4.1 and §5.4.2 have them."""


@pytest.mark.parametrize("reference", EXAMPLES)
def test_the_examples_of_the_rfc(reference: str) -> None:
    assert resolve_iri(BASE, reference) == EXAMPLES[reference]


@pytest.mark.parametrize(
    ("base", "reference", "iri"),
    [
        ("http://example.org/x/", "#", "http://example.org/x/#"),
        ("http://example.org/x/", "", "http://example.org/x/"),
        ("http://example.org/x/", "#a:b", "http://example.org/x/#a:b"),
        ("http://example.org/x/?q#f", "#", "http://example.org/x/?q#"),
        ("http://example.org", "a", "http://example.org/a"),
        ("urn:a:b", "#c", "urn:a:b#c"),
        ("urn:ex/a", "c", "urn:ex/c"),
        ("tag:me@e.org,2026:x/y", "?", "tag:me@e.org,2026:x/y?"),
        ("", "a", "a"),
        ("http://e/", "http://e/a/../b", "http://e/a/../b"),
        ("http://ü/é/", "日本#ß", "http://ü/é/日本#ß"),
    ],
)
def test_beside_a_base(base: str, reference: str, iri: str) -> None:
    """An IRI with a scheme stays as it is written: a term of a pattern is the very same term of a stream."""
    assert resolve_iri(base, reference) == iri


def test_the_local_part_of_a_name_without_its_escapes() -> None:
    assert local_name(r"a\,b\%c%20d:e") == "a,b%c%20d:e"
