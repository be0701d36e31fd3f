"""Solutions that are counted, and not listed: `COUNT(*)` over a sequence joined by `:`. The proof has random ones."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb
from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq import GraphEvent

E = "http://example.org/"
S1 = 10**9
GPMS = {"A": "?a :p ?x", "B": "?b :q ?y", "C": "?c :r ?z"}


def _query(
    sequence: str = "A : B : C", select: str = "(COUNT(*) AS ?n)", within: str = "", tail: str = "", **gpms: str
) -> Any:
    defined = " ".join(f"DEFINE GPM {name} ON S {{ {body} }}" for name, body in (GPMS | gpms).items())
    return spaseq.compile(
        f"PREFIX : <{E}> SELECT {select} {within} FROM STREAM S <{E}S> WHERE {{ SEQ ({sequence}) {defined} }} {tail}"
    )


def _events(steps: Iterable[tuple[int, str, Any]]) -> list[GraphEvent]:
    """Events of one triple: second, predicate, value."""
    return [
        GraphEvent(f"{E}S", second * S1, ((URIRef(f"{E}s"), URIRef(E + name), Literal(value)),))
        for second, name, value in steps
    ]


def _found(query: Any, events: list[GraphEvent]) -> list[tuple[int, tuple[int, ...]]]:
    """(count, positions) of each result; the same from single pushes, and after snapshots."""
    session = query.open()
    found = session.push(events) + session.close()
    shown = [(int(str(match.bindings["n"])), match.positions) for match in found]
    for cut in (0, len(events) // 2, len(events)):
        session = query.open()
        parts = [match for event in events[:cut] for match in session.push(event)]
        session = query.open(session.snapshot())
        parts += [match for event in events[cut:] for match in session.push(event)] + session.close()
        assert parts == found
    assert all(event in events for match in found for event in match.events)
    return shown


def test_numbers_have_no_bound() -> None:
    gpms = {f"G{i}": f"?a{i} :p ?x{i}" for i in range(24)}
    query = _query(" : ".join(gpms), **gpms)
    session = query.open()
    (match,) = session.push(_events((i, "p", i) for i in range(100))) + session.close()
    assert (int(match.bindings["n"]), match.positions) == (comb(100, 24), tuple(range(100)))
    assert "none is listed" in query.explain()


def test_equal_mappings_of_one_end_are_one_solution() -> None:
    steps = [(1, "p", 1), (2, "p", 1), (3, "q", 5), (4, "q", 5), (5, "p", 2), (6, "q", 5), (7, "r", 0), (8, "r", 0)]
    # At 7 and at 8: (1, 5) and (2, 5). The matches that stand for these take 1, 3 and 5, 6.
    assert _found(_query(), _events(steps)) == [(4, (0, 2, 4, 5, 6, 7))]


def test_an_instant_is_taken_once() -> None:
    query = _query("A : B", A="?a :p ?x", B="?b :p ?y")
    assert _found(query, _events([(1, "p", 1), (1, "p", 2), (2, "p", 3)])) == [(2, (0, 1))]
    assert _found(_query("A : A"), _events([(1, "p", 1), (1, "p", 2), (2, "p", 2)])) == [(1, (0, 1))]


def test_steps_agree_on_the_variables_they_share() -> None:
    same = {"A": "?a :p ?k", "B": "?b :q ?k", "C": "?c :r ?k"}
    steps = [(i, name, i % 3) for i, name in enumerate("pppqqqrrr")]
    assert _found(_query(**same), _events(steps)) == [(3, tuple(range(9)))]


def test_windows_and_clauses() -> None:
    steps = [
        (1, "p", 1),
        (2, "q", 1),
        (3, "r", 1),
        (11, "p", 1),
        (22, "q", 1),
        (31, "p", 1),
        (32, "p", 2),
        (33, "q", 2),
    ]
    query = _query("A : B", within="WITHIN 10 SECONDS")
    assert _found(query, _events(steps)) == [(1, (0, 1)), (0, (3,)), (0, (4,)), (2, (5, 6, 7))]
    some = _query("A : B", "(COUNT(?x) AS ?n) (COUNT(*) * 2 AS ?m)", "WITHIN 10 SECONDS", "HAVING (COUNT(*) > 1)")
    assert "none is listed" in some.explain()
    assert _found(some, _events(steps)) == [(2, (5, 6, 7))]


def test_reasons_for_no_solution() -> None:
    matches = _query("A : B", tail="HAVING (COUNT(*) > 0)").run({f"{E}S": _events([(1, "p", 1), (2, "r", 1)])})
    assert matches.count() == 0
    assert matches.why_none()[-1].startswith("no event matches GPM B")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (_query(tail="GROUP BY ?x"), "there is a GROUP BY"),
        (_query(select="(SUM(?x) AS ?n)"), "more is asked of them than their number"),
        (_query(select="(COUNT(DISTINCT *) AS ?n)"), "more is asked of them than their number"),
        (_query(tail="VALUES ?x { 1 }"), "more is asked of them than their number"),
        (_query("A : B ; C"), "a run skips to the next match: only ':' skips to any"),
        (_query("A : B+ : C"), "a GPM repeats"),
        (_query("A : B! : C"), "a GPM is negated"),
        (_query("A : B? : C"), "the sequence has alternatives"),
        (_query(B="?b :q ?y FILTER (?y > ?x)"), "a FILTER names variables of several GPMs"),
        (_query(C="?c :r ?x"), "GPMs share a variable that one between them has not"),
        (_query("A : B", B="?b :q ?y OPTIONAL { ?b :p ?x }"), "GPMs share a variable that may be unbound"),
    ],
)
def test_reasons_for_a_list(query: Any, reason: str) -> None:
    assert f"aggregates over solutions: of a list of them, O(matches), since {reason}\n" in query.explain()


def test_other_results_have_no_such_line() -> None:
    assert "aggregates over solutions" not in _query(select="*").explain()
