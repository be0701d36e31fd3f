"""Each keyword is told to type checkers, and means the field or the word that it is named after."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any
from unittest.mock import MagicMock

import pytest

import ceql
import spaseq
from spaseq.core.engine import Settings
from spaseq.core.errors import OptionError
from spaseq.core.events import EventOptions, TupleWords
from spaseq.rdf import EventWords, StreamOptions
from spaseq.spark import match, start_tuples
from spaseq.spark.batch.job import explain, matches, run
from spaseq.spark.front import MatchWords
from spaseq.spark.session.options import QueryOptions, QueryWords
from spaseq.spark.streaming import tuple_stream
from spaseq.spark.streaming.checkpoint import read_note
from spaseq.spark.streaming.graph_stream import StreamWords, stream_matches


def _keywords(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_type_checkers_know_every_keyword() -> None:
    words = {field.name for field in fields(StreamOptions)} - {"format", "lookahead", "merge"} | {"time_from"}
    assert set(EventWords.__annotations__) == words
    own = {field.name for field in fields(QueryOptions)} - {"events"}
    assert set(QueryWords.__annotations__) == words | own | {"options"}
    assert set(StreamWords.__annotations__) == set(QueryWords.__annotations__) | _keywords(stream_matches) - {"format"}
    words = {field.name for field in fields(EventOptions)} - {"from_arrival", "by_type"} | {"time_column", "time_from"}
    assert set(TupleWords.__annotations__) == words
    own = _keywords(match) - {"cut", "partitions", "positions", "kb", "terms"} | {"tasks"}
    assert set(tuple_stream.StreamWords.__annotations__) == words | own
    of_graphs = set(QueryWords.__annotations__) - {"options", "event_by", "malformed"}
    assert set(MatchWords.__annotations__) == words | of_graphs


def test_keywords_make_the_value() -> None:
    given = QueryOptions.of("nq", time_unit="ms", entailment="rdfs", knowledge_rows=7)
    assert given == QueryOptions(StreamOptions(format="nq", time_unit="ms"), "rdfs", 7)
    whole = StreamOptions(late="drop")
    assert QueryOptions.of(None, options=whole, reference=True) == QueryOptions(whole, reference=True)
    with pytest.raises(OptionError, match="there is no option events"):
        QueryOptions.of(None, **{"events": whole})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="give options= or late=, not both"):
        QueryOptions.of(None, options=whole, late="drop")


@pytest.mark.parametrize("limit", ["time_limit", "memory_limit"])
def test_limits_that_no_task_looks_at_are_refused_before_spark_is_asked(limit: str) -> None:
    """By each of the functions; a session that is asked would answer anything."""
    given: dict[str, Any] = {limit: 1}
    settings = Settings(**given)
    graphs = spaseq.compile("SELECT ?x FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x ?p ?o } }",
                            settings=settings)  # fmt: skip
    tuples = ceql.compile("SELECT * WHERE A", settings=settings)
    session, said = MagicMock(), f"{limit} does not hold in Spark's tasks\nhint: leave it out"
    for function in (run, matches, stream_matches):
        with pytest.raises(OptionError, match=said):
            list(function(graphs, session, {"S": "s.nt"}))
    with pytest.raises(OptionError, match=said):
        match(tuples)(session)
    with pytest.raises(OptionError, match=said):
        start_tuples(tuples, session, checkpoint="there")
    assert limit not in explain(graphs)


@pytest.mark.parametrize("word", ["delimiter", "decimal", "quote", "encoding", "time_format", "column_types"])
def test_the_form_of_files_is_for_readers_of_spark(word: str) -> None:
    query, form = ceql.compile("SELECT * WHERE A"), {"decimal": ".", "encoding": "utf-8", "time_format": "%d.%m.%Y",
                                                "column_types": {"id": "TEXT"}}  # fmt: skip
    given: dict[str, Any] = {word: form.get(word, ";")}
    with pytest.raises(OptionError, match=f"match takes no {word}=: Spark reads the files"):
        match(query, **given)
    with pytest.raises(OptionError, match="there is no option types"):
        match(query, types={"A": "a.csv"})  # type: ignore[call-arg]


@pytest.mark.parametrize("note", ["", "null", "5", "[]", "[[1, 2]]", '"query"', "[" * 100_000, '{"query": 1', "NaN",
                                  '{"buckets": "4"}', '{"tasks": -1}'])  # fmt: skip
def test_a_note_of_a_checkpoint_that_is_none(note: str) -> None:
    """Whatever lies there, it is an error that names the folder."""
    session = MagicMock()
    session.read.text.return_value.collect.return_value = [(note,)]
    with pytest.raises(OptionError, match="checkpoint there cannot be read: its spaseq is not what was written"):
        read_note(session, "there")
