"""The examples and random streams give the local engine's matches: in random micro-batches, and in batches of 1, 2 and
7 partitions, cut by windows, keys and slices of time. The case files stand in `test_cases.py`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import spaseq
import spaseq.spark
from spaseq.core.events import LateEvent
from spaseq.gpm.serialise import graph_object
from tests.spark.test_results import _CASES as RANDOM_STREAMS
from tests.spark.test_results import GRID_KB, GRID_STREAMS, Case, _streams
from tests.support.micro_batches import in_micro_batches
from tests.test_example_spaseq import EXAMPLES, Example

_ALL = {"smart grid": Example("smart-grid", GRID_STREAMS, (), 0, "", knowledge=GRID_KB), **EXAMPLES}
"""Use cases 1 to 5."""
_BLANK = re.compile(r"_:e[0-9a-f]{8}n\d+b\d+")


def _rows(rows: list[Any]) -> list[str]:
    """Comparable; the labels of blank nodes depend on how files are cut."""
    return sorted(_BLANK.sub("_:b", json.dumps(list(row))) for row in rows)


def _local(query: Any, streams: Any, kb: Any, **words: Any) -> list[Any]:
    found = []
    for m in query.run(streams, kb, keep_events=False, **words):
        terms = [m.bindings[v].n3() if v in m.bindings else None for v in query.variables]
        found.append((m.start, m.end, list(m.positions), list(m.times), *terms))
    return found


@pytest.mark.parametrize("case", RANDOM_STREAMS)
def test_random_streams(case: Case, folder: Path) -> None:
    query = spaseq.compile(case.query())
    streams = _streams(case, folder)
    kb = {"http://example.org/kb": str(folder / "kb.ttl")}
    local = query.run(streams, kb, keep_events=False, **case.words)
    expected = _rows(_local(query, streams, kb, **case.words))
    late: list[Any] = []
    found, counts = in_micro_batches(query, streams, kb, 1, case.partitions, told=late, **case.words)
    assert _rows(found) == expected != []
    local.count()
    assert counts[0][:2] == [local.counters.events, local.counters.late]
    told: list[Any] = []
    if local.counters.late:
        query.run(streams, kb, keep_events=False, **{**case.words, "on_late": told.append}).count()
    assert _rows([row.values() for row in late]) == _rows(list(map(_late_row, told)))
    assert len(late) == local.counters.late
    assert sum(count[3] for count in counts) == len(found)


def _late_row(late: LateEvent) -> tuple[Any, ...]:
    """The row of a late graph in a stream of Spark's."""
    event = graph_object(late.event)
    return late.stream, late.time, event["graph"], event["triples"], late.source, late.record, late.behind


def _given(example: Example) -> tuple[Any, dict[str, str], dict[str, Any], dict[str, Any]]:
    """The query, its streams and knowledge, and the words of an example."""
    query = spaseq.compile((example.path / example.query).read_text("utf-8"))
    streams = {name: str(example.path / file) for name, file in example.streams.items()}
    kb: dict[str, Any] = {iri: str(example.path / file) for iri, file in example.knowledge.items()}
    kb.update({iri: spaseq.Grouped(kb[iri], [by]) for iri, by in example.groups.items()})
    words = {"event_by": example.event_by, "time": example.time}
    return query, streams, kb, {name: word for name, word in words.items() if word is not None}


@pytest.mark.slow
@pytest.mark.parametrize("example", _ALL.values(), ids=list(_ALL))
def test_examples(example: Example) -> None:
    """Slow, as random streams take the same road, and `test_example_spaseq` has the examples locally."""
    query, streams, kb, words = _given(example)
    expected = _rows(_local(query, streams, kb, **words))
    found, _ = in_micro_batches(query, streams, kb, 1, 3, least=20_000, **words)
    assert _rows(found) == expected != []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("example", _ALL.values(), ids=list(_ALL))
def test_examples_in_batch(example: Example, partitions: int, spark: Any) -> None:
    query, streams, kb, words = _given(example)
    expected = query.run(streams, kb, **words).to_arrow()
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, streams, kb, partitions=partitions, **words))
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("example", _ALL.values(), ids=list(_ALL))
def test_examples_in_slices(example: Example, spark: Any) -> None:
    """The examples with windows that slide, and are short enough for several slices."""
    query, streams, kb, words = _given(example)
    sliding = spaseq.compile(re.sub(r"WITHIN \d+ MINUTES", "WITHIN 8 MINUTES SLIDING", query.text))
    expected = sliding.run(streams, kb, **words).to_arrow()
    frame = spaseq.spark.run(sliding, spark, streams, kb, partitions=7, **words)
    assert frame.rdd.getNumPartitions() > 1
    assert sorted(map(str, spaseq.spark.collect(frame).to_pylist())) == sorted(map(str, expected.to_pylist()))
    found, _ = in_micro_batches(sliding, streams, kb, 2, 3, least=20_000, **words)
    assert _rows(found) == _rows(_local(sliding, streams, kb, **words))
