"""Values that are new in each solution, over columns: as many, and as different, as rdflib's evaluator gives."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rdflib import BNode, Literal, URIRef
from rdflib.namespace import XSD

import spaseq
from spaseq.gpm.columnar import truth

GROUPS = [
    "?s :p ?v BIND (BNODE() AS ?w)",
    "?s :p ?v BIND (BNODE() AS ?w) BIND (BNODE() AS ?x)",
    "?s :p ?v BIND (BNODE(?v) AS ?w)",
    '?s :p ?v BIND (BNODE(?v) AS ?w) BIND (BNODE("1") AS ?x) BIND (sameTerm(?w, ?x) AS ?y)',
    '?s :p ?v BIND (BNODE("a") AS ?w) FILTER (?v > 1) BIND (BNODE("a") AS ?x)',
    '?s :p ?v BIND (BNODE("a") AS ?w) BIND (BNODE(CONCAT("a", "")) AS ?x) BIND (BNODE("b") AS ?y)',
    "?s :p ?v BIND (BNODE(?s) AS ?w)",
    '?s :p ?v BIND (BNODE(IF(?v > 1, "a", ?s)) AS ?w) BIND (isBLANK(BNODE("a")) AS ?x)',
    "{ ?s :p ?v } UNION { ?s :p ?v } BIND (BNODE() AS ?w)",
    "?s :p ?v OPTIONAL { ?s :q ?u BIND (BNODE() AS ?w) }",
    "?s :p ?v { SELECT ?v (BNODE() AS ?w) { ?r :p ?v } }",
    "?s :p ?v { SELECT (COUNT(DISTINCT ?b) AS ?w) { ?r :p ?u BIND (BNODE() AS ?b) } }",
    '?s :p ?v { ?s :p ?u BIND (BNODE("a") AS ?w) } BIND (BNODE("a") AS ?x)',
    "?s :p ?v FILTER (EXISTS { ?s :q ?u BIND (BNODE() AS ?w) })",
    "?s :p ?v BIND (RAND() AS ?w) FILTER (?w >= 0 && ?w < 1)",
    "?s :p ?v FILTER (RAND() < 2)",
    "?s :p ?v FILTER (RAND() > 1)",
    "?s :p ?v BIND (UUID() AS ?w) BIND (STRUUID() AS ?x)",
    "?s :p ?v BIND (STRLEN(STRUUID()) AS ?w) BIND (STR(UUID()) = STR(UUID()) AS ?x)",
    '?s :p ?v BIND (IF(RAND() < 2, BNODE("a"), ?s) AS ?w) BIND (COALESCE(1/0, BNODE("a")) AS ?x)',
    "?s :p ?v FILTER (?v > 1) BIND (BNODE() AS ?w) FILTER (isBLANK(?w))",
    '?s :p ?v FILTER (sameTerm(BNODE("a"), BNODE("a")))',
    '?s :p ?v BIND (sameTerm(BNODE("a"), BNODE("a")) AS ?w) BIND (sameTerm(BNODE("a"), BNODE("b")) AS ?x)',
]


def _streams(folder: Path, events: int) -> dict[str, str]:
    lines = []
    for i in range(events):
        lines.append(f'<urn:g{i}> <http://www.w3.org/ns/prov#generatedAtTime> "{i}"^^<{XSD.integer}> <urn:g{i}> .')
        for k in range(i % 4):
            lines.append(f'<urn:s{k}> <urn:p> "{k}"^^<{XSD.integer}> <urn:g{i}> .')
            lines.append(f'<urn:s{k}> <urn:p> "1" <urn:g{i}> .')
            lines += [f"<urn:s{k}> <urn:q> <urn:o> <urn:g{i}> ."] * (k == 1)
    path = folder / "s.nq"
    path.write_text("\n".join(lines) + "\n")
    return {"S": str(path)}


def _shape(rows: list[dict[str, Any]]) -> Counter[Any]:
    """The rows, where a term that is made up is told by its first place in the row, and by its form; and how often
    such terms are in more than one row."""
    found: Counter[Any] = Counter()
    seen: Counter[Any] = Counter()
    for row in rows:
        own: dict[Any, str] = {}
        parts = []
        for name, term in sorted(row.items()):
            is_made = isinstance(term, BNode) or getattr(term, "datatype", None) == XSD.double
            is_made = is_made or re.search("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", term) is not None
            parts.append((name, own.setdefault(term, name), type(term).__name__) if is_made else (name, term))
        found[tuple(parts)] += 1
        seen.update(own.keys())
    return found + Counter({"shared": sum(count > 1 for count in seen.values())})


@pytest.mark.parametrize(
    ("few", "group"),
    [
        pytest.param(few, group, marks=[] if number % 2 == bool(few) else [pytest.mark.slow])
        for few in (0, 3)
        for number, group in enumerate(GROUPS)
    ],
)
def test_columns_give_what_rdflib_gives(group: str, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "FEW", few)
    head = "PREFIX : <urn:> SELECT * FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S "
    query, streams = spaseq.compile(f"{head} {{ {group} }} }}"), _streams(tmp_path, 12)
    expected = [m.bindings for m in query.run(streams, reference=True)]
    assert _shape([m.bindings for m in query.run(streams)]) == _shape(expected)
    assert expected or "> 1)" in group


CLAUSES = [
    ("?s (BNODE() AS ?w)", ""),
    ('?s (BNODE("a") AS ?w) (BNODE("a") AS ?x) (BNODE(?v) AS ?y)', ""),
    ("?s (BNODE() AS ?w)", "ORDER BY ?s ?v LIMIT 7"),
    ("DISTINCT ?s (BNODE() AS ?w)", ""),
    ("?v (COUNT(*) AS ?n) (BNODE() AS ?w)", "GROUP BY ?v"),
    ('?v (BNODE("a") AS ?w) (BNODE("a") AS ?x)', "GROUP BY ?v HAVING (isBLANK(BNODE()))"),
    ("(COUNT(DISTINCT ?w) AS ?n)", "GROUP BY (BNODE() AS ?w)"),
    ("?s (UUID() AS ?w) (STRUUID() AS ?x) (RAND() AS ?y)", "ORDER BY ?y"),
    ("(SUM(RAND() * 0) AS ?n)", ""),
    ("?s (BNODE() AS ?w)", "ORDER BY ?w"),
    ('(COUNT(DISTINCT BNODE("a")) AS ?n) (MAX(sameTerm(BNODE("a"), BNODE("a"))) AS ?w)', ""),
]  # fmt: skip


@pytest.mark.parametrize(("select", "tail"), CLAUSES)
def test_clauses_give_what_rdflib_gives(
    select: str, tail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spaseq.language.results.computing import Computation

    query = spaseq.compile(
        f"PREFIX : <urn:> SELECT {select} FROM STREAM S <urn:s> "
        f"WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?s :p ?v }} }} {tail}"
    )
    streams = _streams(tmp_path, 12)
    found = [m.bindings for m in query.run(streams)]
    monkeypatch.setattr(Computation, "of", lambda clauses: None)
    assert _shape(found) == _shape([m.bindings for m in query.run(streams)])
    assert found


def test_values_are_of_their_form_and_no_two_alike(tmp_path: Path) -> None:
    query = spaseq.compile(
        "PREFIX : <urn:> SELECT ?s (UUID() AS ?u) (STRUUID() AS ?t) (RAND() AS ?r) (BNODE() AS ?b) "
        "FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :p ?v } }"
    )
    rows = [m.bindings for m in query.run(_streams(tmp_path, 400))]
    assert len(rows) == 600
    form = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch("urn:uuid:" + form, row["u"]) and isinstance(row["u"], URIRef) for row in rows)
    assert all(re.fullmatch(form, row["t"]) and row["t"].datatype is None for row in rows)
    assert all(isinstance(row["r"], Literal) and 0 <= row["r"].value < 1 for row in rows)
    assert all(len({row[name] for row in rows}) == len(rows) for name in "utrb")
