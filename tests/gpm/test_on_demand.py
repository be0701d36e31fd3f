"""Knowledge that is looked up for a batch's terms gives what all of its solutions give, on each road."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.gpm.columnar import knowledge
from spaseq.rdf import build_knowledge, load_knowledge
from tests.support.sizes import some

E = "http://example.org/"
KB = f"{E}kb"
ROOMS = 120
CLAUSES = [
    f"?s :at ?room GRAPH <{KB}> {{ ?room :floor ?floor }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?next :next ?room }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?room :next ?next . ?next :next ?third . ?third :floor ?floor }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?room :next ?next . ?next :floor :f1 . ?next :name ?name }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?room :area ?area FILTER (?area > 20) BIND (?area * 2 AS ?twice) }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?room :next [ :area ?area ] }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?room :next ?room }}",
    f"?s :at ?room ; :heat ?name GRAPH <{KB}> {{ ?room :name ?name }}",
    f"?s :heat ?h GRAPH <{KB}> {{ ?room :floor ?floor . ?room :area 7.5 }}",
    f"?s :at ?room OPTIONAL {{ ?s :near ?other }} GRAPH <{KB}> {{ ?other :floor ?floor }}",
    f"?s :at ?room OPTIONAL {{ GRAPH <{KB}> {{ ?room :floor ?floor . ?room :next ?n }} }}",
    f"?s :at ?room FILTER EXISTS {{ GRAPH <{KB}> {{ ?room :floor :f1 . ?room :next ?n }} }}",
    f"?s :at ?room FILTER NOT EXISTS {{ GRAPH <{KB}> {{ ?room :floor :f1 }} }}",
    f"?s :at ?room MINUS {{ GRAPH <{KB}> {{ ?room :floor :f2 }} }}",
    "?s :at ?room GRAPH ?g { ?room :floor ?floor }",
    f"?s :at ?room {{ SELECT ?room (COUNT(?n) AS ?count) {{ GRAPH <{KB}> {{ ?n :next ?room }} }} GROUP BY ?room }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?room :absent ?floor }}",
    f"?s :at ?room GRAPH <{KB}> {{ ?room :floor :nowhere }}",
]


def _files(folder: Path) -> tuple[str, str]:
    rng, lines = random.Random(7), []
    for i in range(ROOMS):
        room = f"<{E}r{i}>"
        lines.append(f"{room} <{E}floor> <{E}f{i % 5}> .\n")
        lines.append(f"{room} <{E}next> <{E}r{i if i == 60 else rng.randrange(ROOMS)}> .\n")
        lines.append(f'{room} <{E}area> "{i % 50}.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n')
        lines.append(f'{room} <{E}name> "room {i}"@en .\n')
    (folder / "kb.nt").write_text("".join(lines), "ascii")
    events = []
    for i in range(24):
        sensor, number = f"<{E}s{i}>", rng.randrange(ROOMS + 3) if i % 8 else 60
        events.append(f"{sensor} <{E}at> <{E}r{number}> <{E}g{i}> .\n")
        events.append(f'{sensor} <{E}heat> "room {number}"@EN <{E}g{i}> .\n')
        if i % 2:
            events.append(f"{sensor} <{E}near> <{E}r{rng.randrange(ROOMS)}> <{E}g{i}> .\n")
    (folder / "s.nq").write_text("".join(events), "ascii")
    return str(folder / "kb.nt"), str(folder / "s.nq")


def _query(clause: str) -> spaseq.Query:
    return spaseq.compile(
        f"PREFIX : <{E}> SELECT * FROM STREAM S <{E}S> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ {clause} }} }}"
    )


def _found(matches: Any) -> list[tuple[tuple[int, ...], frozenset[tuple[str, str]]]]:
    return sorted(
        ((m.positions, frozenset((name, term.n3().lower()) for name, term in m.bindings.items())) for m in matches),
        key=repr,
    )


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_same_answers_on_each_road(clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kb, stream = _files(tmp_path)
    query = _query(clause)
    words: dict[str, Any] = {"time_from": "arrival"}
    expected = _found(query.run({"S": stream}, {KB: kb}, **words))
    monkeypatch.setattr(knowledge, "_LARGE", 1)
    monkeypatch.setattr(knowledge, "_LOOKED_UP", 0)
    built = build_knowledge(kb, str(tmp_path / "kb.spaseq-kb")).path
    for known in (kb, built, load_knowledge(kb)):
        assert _found(query.run({"S": stream}, {KB: known}, **words)) == expected
    assert _found(query.run({"S": stream}, {KB: kb}, reference=True, **words)) == expected
    events = [event for m in _query("?s :at ?r").run({"S": stream}, **words) for event in m.events]
    # to spend 100 changes to all solutions in the middle
    for spent, size in [(0, 1), (100, 5), (100, 1), (0, 5)][: some(6)]:
        monkeypatch.setattr(knowledge, "_LOOKED_UP", spent)
        with query.open(kb={KB: built}, **words) as session:
            found = [m for i in range(0, len(events), size) for m in session.push(events[i : i + size])]
            assert _found([*found, *session.close()]) == expected
    assert bool(expected) == (clause not in CLAUSES[-2:])


@pytest.mark.parametrize("clause", CLAUSES[:4])
def test_few_terms_do_not_wait_for_all_solutions(clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kb, stream = _files(tmp_path)
    lines = Path(stream).read_text("ascii").splitlines(keepends=True)
    Path(stream).write_text("".join(lines[:2]), "ascii")

    def refused(*_: object) -> None:
        raise AssertionError("all solutions")

    monkeypatch.setattr(knowledge, "_LARGE", 1)
    monkeypatch.setattr(knowledge, "_LOOKED_UP", 0)
    monkeypatch.setattr(knowledge.KnowledgeOnDemand, "_all", refused)
    assert _query(clause).run({"S": stream}, {KB: kb}, time_from="arrival").count() == (1 if ":f1" not in clause else 0)


def test_many_lookups_end_in_all_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kb, stream = _files(tmp_path)
    monkeypatch.setattr(knowledge, "_LARGE", 1)
    monkeypatch.setattr(knowledge, "_LOOKED_UP", ROOMS // 3)
    asked: list[bool] = []
    evaluated = knowledge.Graphs._once

    def counted(self: Any, iri: str, node: Any, rows: Any, budget: int) -> Any:
        asked.append(rows is None)
        return evaluated(self, iri, node, rows, budget)

    monkeypatch.setattr(knowledge.Graphs, "_once", counted)
    events = [event for m in _query("?s :at ?r").run({"S": stream}, time_from="arrival") for event in m.events]
    with _query(CLAUSES[0]).open(kb={KB: kb}, time_from="arrival") as session:
        for event in events:
            session.push([event])
    assert asked[-1] and 1 < len(asked) < 6 and not any(asked[:-1])
