"""A process that compiles ever new queries, and opens ever new sessions, keeps nothing of them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from rdflib import Literal, URIRef

import ceql
import spaseq
from ceql.expressions import values
from spaseq.rdf import GraphEvent

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


@pytest.mark.parametrize("compiles", [True, False], ids=["queries", "sessions"])
@pytest.mark.parametrize("language", ["ceql", "spaseq"])
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
