"""`B! FOR 10 SECONDS` as it happens, and AND of many parts: what cases do not show."""

from __future__ import annotations

from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq import GraphEvent, Settings

S = "http://example.org/s"
SECOND = 10**9


def _query(sequence: str, clauses: str = "", settings: Settings | None = None) -> Any:
    used = [name for name in "ABCDE" if name in sequence.replace("AND", "").replace("SECONDS", "")]
    gpms = " ".join(f"DEFINE GPM {name} ON S {{ ?k :{name.lower()} ?{name.lower()} }}" for name in used)
    text = f"PREFIX : <http://example.org/> SELECT * {clauses} FROM STREAM S <{S}> WHERE {{ SEQ ({sequence}) {gpms} }}"
    return spaseq.compile(text, settings=settings or Settings())


def _event(name: str, time: float, key: str = "k", value: int = 1) -> GraphEvent:
    triple = (URIRef(f"http://example.org/{key}"), URIRef(f"http://example.org/{name}"), Literal(value))
    return GraphEvent(S, round(time * SECOND), (triple,))


def _instants(matches: Any) -> list[tuple[int, ...]]:
    return [match.positions for match in matches]


def test_a_time_that_is_over_is_told_by_advance() -> None:
    """Not when the window closes, at 100."""
    session = _query("A ; B! FOR 10 SECONDS", "WITHIN 100 SECONDS").open()
    assert session.push(_event("a", 1)) == [] and session.advance(11 * SECOND) == []
    assert _instants(session.advance(11 * SECOND + 1)) == [(0,)]
    assert session.close() == []


def test_a_later_event_tells_it_too() -> None:
    """Its instant is over as the next one begins."""
    session = _query("A ; B! FOR 10 SECONDS").open()
    assert session.push([_event("a", 1), _event("a", 2, "l"), _event("b", 5), _event("c", 12), _event("c", 13)]) == []
    assert _instants(session.push(_event("c", 14))) == [(1,)]


def test_it_waits_in_a_snapshot() -> None:
    query = _query("B! FOR 3 SECONDS ; A ; B! FOR 10 SECONDS")
    session = query.open()
    assert session.push([_event("b", 1), _event("a", 2), _event("a", 4.5)]) == []
    again = query.open(session.snapshot())
    assert _instants(again.advance(15 * SECOND)) == [(2,)]


def test_it_needs_times(tmp_path: Any) -> None:
    (tmp_path / "s.nt").write_text("<http://example.org/k> <http://example.org/a> 1 .\n".replace(" 1 ", ' "1" '))
    with pytest.raises(spaseq.OptionError, match="FOR needs"):
        list(_query("A ; B! FOR 10 SECONDS").run({"S": str(tmp_path / "s.nt")}))


def test_explain_tells_the_times() -> None:
    text = _query("B! FOR 90 SECONDS ; A ; (C & D)! FOR 1 MINUTE").explain()
    assert "at the start: no B for 90 s\n" in text and "at the end: no C & D for 60 s\n" in text


@pytest.mark.parametrize(("parts", "states"), [(2, 3), (3, 7), (4, 15), (5, 31)])
def test_and_has_a_state_for_each_set_of_parts(parts: int, states: int) -> None:
    query = _query(f"AND({', '.join('ABCDE'[:parts])})", settings=Settings(variants=541))
    assert query.automaton.states == states


def test_and_of_five_parts_in_every_order() -> None:
    query = _query("AND(A, B, C, D, E)", "WITHIN 10 SECONDS", Settings(variants=541))
    for names in ("abcde", "edcba", "caebd"):
        session = query.open()
        events = [_event(name, i + 1, value=i) for i, name in enumerate(names)]
        assert _instants(session.push(events) + session.close()) == [(0, 1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("sequence", "orders"),
    [("AND(A, B, C, D, E)", 541), ("AND(A | B, B | C, C | D, D | E)", 1200), ("AND(A, B, C, D){4}", 300),
     ("AND(A, B, C) ; (AND(A, B, C, D) | E)? ; A? ; B?", 704)],
)  # fmt: skip
def test_orders_are_a_budget(sequence: str, orders: int) -> None:
    with pytest.raises(spaseq.BudgetExceeded) as caught:
        _query(sequence)
    assert (caught.value.setting, caught.value.limit, caught.value.used) == ("variants", 256, orders)
