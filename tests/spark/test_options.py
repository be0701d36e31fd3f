"""Each keyword is told to type checkers, and means the field or the word that it is named after."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any
from unittest.mock import MagicMock

import pytest

from spaseq.errors import OptionError
from spaseq.events import EventOptions, TupleWords
from spaseq.rdf import EventWords, StreamOptions
from spaseq.spark.session.options import QueryOptions, QueryWords
from spaseq.spark.streaming import tuple_stream
from spaseq.spark.streaming.checkpoint import check_note
from spaseq.spark.streaming.graph_stream import StreamWords, stream_matches
from spaseq.spark.streaming.tuple_stream import stream_tuples


def _keywords(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_type_checkers_know_every_keyword() -> None:
    words = {field.name for field in fields(StreamOptions)} - {"format", "lookahead", "merge"} | {"time_from"}
    assert set(EventWords.__annotations__) == words
    own = {field.name for field in fields(QueryOptions)} - {"events"}
    assert set(QueryWords.__annotations__) == words | own | {"options"}
    assert set(StreamWords.__annotations__) == set(QueryWords.__annotations__) | _keywords(stream_matches) - {"format"}
    words = {field.name for field in fields(EventOptions)} - {"from_arrival"} | {"time_column", "time_from"}
    assert set(TupleWords.__annotations__) == words
    assert set(tuple_stream.StreamWords.__annotations__) == words | _keywords(stream_tuples)


def test_keywords_make_the_value() -> None:
    given = QueryOptions.of("nq", time_unit="ms", entailment="rdfs", knowledge_rows=7)
    assert given == QueryOptions(StreamOptions(format="nq", time_unit="ms"), "rdfs", 7)
    whole = StreamOptions(late="drop")
    assert QueryOptions.of(None, options=whole, reference=True) == QueryOptions(whole, reference=True)
    with pytest.raises(OptionError, match="there is no option events"):
        QueryOptions.of(None, **{"events": whole})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="give options= or late=, not both"):
        QueryOptions.of(None, options=whole, late="drop")


@pytest.mark.parametrize("note", ["", "null", "5", "[]", "[[1, 2]]", '"query"', "[" * 100_000, '{"query": 1', "NaN"])
def test_a_note_of_a_checkpoint_that_is_none(note: str) -> None:
    """Whatever lies there, it is an error that names the folder."""
    session = MagicMock()
    session.read.text.return_value.collect.return_value = [(note,)]
    with pytest.raises(OptionError, match="checkpoint there cannot be read: its spaseq is not what was written"):
        check_note(session, "there", {"query": "SELECT"})
