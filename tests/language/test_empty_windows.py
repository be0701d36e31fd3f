"""Without GROUP BY, aggregates have a group in each window that has an instant: COUNT is 0 if no match is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq import GraphEvent

S = "http://example.org/s"
S1 = 10**9
SEEN = [(1, "v", 1), (2, "w", 2), (12, "other", 1), (15, "other", 1), (33, "v", 1), (34, "w", 5), (51, "v", 1)]
"""Seconds, a predicate and its value. Of the windows of ten seconds the third and the fifth have no instant."""
EVERY = [(2, "1"), (15, "0"), (34, "1"), (51, "0")]
"""The time of each row, and the count."""


def _query(select: str = "(COUNT(*) AS ?n)", clauses: str = "", tail: str = "", sequence: str = "A ; B") -> Any:
    return spaseq.compile(
        f"PREFIX : <http://example.org/> SELECT {select} {clauses} FROM STREAM S <{S}> WHERE {{ SEQ ({sequence}) "
        f"DEFINE GPM A ON S {{ ?a :v ?v }} DEFINE GPM B ON S {{ ?a :w ?w }} }} {tail}"
    )


def _events() -> list[GraphEvent]:
    subject = URIRef("http://example.org/a")
    return [
        GraphEvent(S, time * S1, ((subject, URIRef(f"http://example.org/{name}"), Literal(value)),))
        for time, name, value in SEEN
    ]


def _file(folder: Path) -> str:
    lines = []
    for time, name, value in SEEN:
        lines.append(f'<urn:g{time}> <http://www.w3.org/ns/prov#generatedAtTime> "{time}" .')
        lines.append(f"<http://example.org/a> <http://example.org/{name}> {Literal(value).n3()} <urn:g{time}> .")
    (folder / "s.nq").write_text("\n".join(lines) + "\n")
    return str(folder / "s.nq")


def _shown(matches: Any) -> list[tuple[int, str | None]]:
    return [(m.time // S1, str(m.bindings["n"]) if "n" in m.bindings else None) for m in matches]


def _all_roads(query: Any, folder: Path) -> list[tuple[int, str | None]]:
    expected = _shown(query.run({"S": _file(folder)}))
    events = _events()
    session = query.open()
    assert _shown([m for event in events for m in session.push(event)] + session.close()) == expected, "one by one"
    session = query.open()
    assert _shown(session.push(events) + session.close()) == expected, "at once"
    session, found = query.open(), []
    for event in events:
        found += session.push(event)
        session = query.open(session.snapshot())
    assert _shown(found + session.close()) == expected, "from snapshots"
    session, found = query.open(), []
    for event in events:
        found += session.push(event) + session.advance(event.time + 1)
    assert _shown(found + session.close()) == expected, "as time is said to pass"
    assert query.run({"S": _file(folder)}).count() == len(expected) == len(query.run({"S": _file(folder)}).to_arrow())
    return expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, EVERY),
        ({"clauses": "WITHIN 10 SECONDS PARTITION BY (?a)"}, EVERY),
        ({"tail": "HAVING (COUNT(*) = 0)"}, [(15, "0"), (51, "0")]),
        ({"tail": "HAVING (COUNT(*) > 0)"}, [(2, "1"), (34, "1")]),
        ({"select": "(MAX(?w) AS ?n)"}, [(2, "2"), (15, None), (34, "5"), (51, None)]),
        ({"select": "(SUM(?w) + 1 AS ?n)"}, [(2, "3"), (15, "1"), (34, "6"), (51, "1")]),
        ({"select": "(COUNT(?a) AS ?n)", "tail": "GROUP BY ?a"}, [(2, "1"), (34, "1")]),
        ({"tail": "LIMIT 0"}, []),
        ({"tail": "OFFSET 1"}, []),
        ({"sequence": "A ; B!"}, [(15, "0"), (51, "1")]),
        ({"clauses": "", "select": "(COUNT(*) AS ?n)"}, [(34, "2")]),
        ({"clauses": "", "tail": "VALUES ?x { 1 2 }", "sequence": "B ; A , B , A"}, [(51, "0"), (51, "0")]),
    ],
)
def test_a_window_without_a_match_has_a_group(given: dict[str, str], expected: Any, tmp_path: Path) -> None:
    query = _query(**{"clauses": "WITHIN 10 SECONDS", **given})
    if given.get("sequence") == "A ; B!":  # which has a match that begins in the first window, too
        expected = [(2, "0"), (15, "0"), (34, "0"), (51, "1")]
    assert _all_roads(query, tmp_path) == expected


def test_a_window_is_closed_by_time_alone() -> None:
    session = _query(clauses="WITHIN 10 SECONDS").open()
    assert session.push(_events()[2]) == [] and session.advance(19 * S1) == []
    (found,) = session.advance(20 * S1)
    assert (found.time, str(found.bindings["n"]), found.positions, found.events) == (12 * S1, "0", (0,), ())
    assert session.close() == []


def test_a_stream_without_events_has_no_window() -> None:
    assert _query().open().close() == []
