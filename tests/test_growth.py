"""A process that compiles ever new queries, and opens ever new sessions, keeps nothing of them; and terms are let go of
when that is worth its while."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rdflib import Literal, URIRef

import ceql
import spaseq
from ceql.operators import values
from spaseq.language.guards import terms
from spaseq.language.runtime import pace
from spaseq.rdf import GraphBatch, GraphEvent

_OURS = ("spaseq", "ceql", "rdflib", "lark", "pyparsing")


def _tuples(number: int, known: dict[str, Any]) -> None:
    text = (
        f"SELECT * WHERE A AS a{number} ; B AS b FILTER a{number}[v > {number}] AND b.v > a{number}.v WITHIN 9 EVENTS"
    )
    query = known.get("ceql") or ceql.compile(text)
    list(query.run(pa.table({"type": ["A", "B"], "v": [number + 1, number + 2]})))
    session = query.open()
    session.push({"type": "A", "v": number + 3})
    query.open(session.snapshot())
    query.explain()


def _graphs(number: int, known: dict[str, Any]) -> None:
    text = f"""SELECT ?k ?x WITHIN {number + 1} SECONDS FROM STREAM S <http://e/S{number}> WHERE {{ SEQ (A ; B)
      DEFINE GPM A ON S {{ ?k <http://e/a{number}> ?x FILTER (?x >= {number}) }}
      DEFINE GPM B ON S {{ ?k <http://e/b> ?y{number} }} }}"""
    query = known.get("spaseq") or spaseq.compile(text)
    ((_, stream),) = query.streams
    session = query.open()
    for time, predicate in enumerate((f"a{number}", "b")):
        triple = (URIRef(f"http://e/k{number}"), URIRef(f"http://e/{predicate}"), Literal(number))
        session.push(GraphEvent(stream, time, (triple,)))
    query.open(session.snapshot())
    session.close()
    query.explain()


def _held(run: Callable[[int], None], first: int, end: int) -> Counter[str]:
    for number in range(first, end):
        run(number)
    gc.collect()
    kinds = (f"{type(each).__module__}.{type(each).__name__}" for each in gc.get_objects())
    return Counter(kind for kind in kinds if kind.startswith((*_OURS, "builtins.dict", "builtins.function")))


@pytest.mark.parametrize(("language", "compiles"), [
    ("ceql", True), ("spaseq", False),
    pytest.param("ceql", False, marks=pytest.mark.slow), pytest.param("spaseq", True, marks=pytest.mark.slow),
])  # fmt: skip
def test_what_is_done_with_is_forgotten(language: str, compiles: bool) -> None:
    """What the first queries leave behind is the caches' first contents. Of eighty others each would leave one more."""
    known: dict[str, Any] = {"ceql": ceql.compile("SELECT * WHERE A ; B"), "spaseq": spaseq.compile(
        "SELECT ?k FROM STREAM S <http://e/S> WHERE { SEQ (A) DEFINE GPM A ON S { ?k <http://e/b> ?y } }"
    )}  # fmt: skip

    def run(number: int) -> None:
        if language == "ceql":
            _tuples(number, {} if compiles else known)
        else:
            _graphs(number, {} if compiles else known)

    before = _held(run, 0, 20)
    grown = {kind: more for kind, more in (_held(run, 20, 100) - before).items() if more >= 40}
    assert not grown


def test_long_texts_are_not_remembered() -> None:
    """65,536 of them would be as much memory as they are long."""
    before = values._known_like.cache_info().currsize
    assert values.like("a" * 1_000, "a+") and not values.like("a" * 1_000, "b+")
    assert values._known_like.cache_info().currsize == before
    assert values.like("never asked before", "never.*") and values._known_like.cache_info().currsize == before + 1


def test_terms_that_a_batch_asks_for_again_are_not_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece of a batch asks for the terms of all of it. Where these were more than are held, they were let go of
    before each piece, and numbered anew."""
    monkeypatch.setattr(terms, "_TERMS", 64)
    monkeypatch.setattr(pace, "_MOST", 8)
    numbered: list[int] = []
    of_keys = terms.NumberedTerms.of_keys

    def counted(self: terms.NumberedTerms, keys: Sequence[bytes]) -> np.ndarray:
        numbered.append(len(keys))
        return of_keys(self, keys)

    monkeypatch.setattr(terms.NumberedTerms, "of_keys", counted)
    query = spaseq.compile("""SELECT ?x ?y WITHIN 6 SECONDS FROM STREAM S <http://e/S> WHERE { SEQ (A ; B)
      DEFINE GPM A ON S { ?k <http://e/a> ?x } DEFINE GPM B ON S { ?k <http://e/b> ?y } }""")
    session = query.open()
    found, events = 0, 300
    for first in range(0, 3 * events, events):
        batch = [
            GraphEvent(
                "http://e/S", number * 10**9,
                ((URIRef(f"http://e/k{number // 2}"), URIRef(f"http://e/{'ab'[number % 2]}"), URIRef(f"http://e/{number}")),),
            )
            for number in range(first, first + events)
        ]  # fmt: skip
        found += len(session.push(GraphBatch.of(batch)))
    assert found + len(session.close()) == 3 * events // 2
    different = 3 * (events + events // 2)
    assert different <= sum(numbered) <= 3 * different


def test_an_event_that_waits_holds_no_batch() -> None:
    """The last instant of a batch may go on with the next one."""
    held = []
    for events in (1_000, 4_000):
        triple = (URIRef("http://e/k"), URIRef("http://e/b"), URIRef("http://e/x"))
        batch = GraphBatch.of([GraphEvent("http://e/S", number * 10**9, (triple,)) for number in range(events)])
        session = spaseq.compile(
            "SELECT ?k FROM STREAM S <http://e/S> WHERE { SEQ (A) DEFINE GPM A ON S { ?k <http://e/b> ?y } }"
        ).open()
        assert len(session.push(batch)) == events - 1
        held.append(session.counters.memory.waiting)
        assert len(session.push(batch.select(np.arange(events - 1, events)))) == 0
        assert [len(match.events) for match in session.close()] == [2]
    assert held[1] <= held[0] + 1_000
