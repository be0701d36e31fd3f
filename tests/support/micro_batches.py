"""A streaming query without Spark: the same parts, parcels, buckets and snapshots, in random micro-batches."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from spaseq.core.snapshot import encode
from spaseq.language.query import Query
from spaseq.language.runtime.knowledge import knowledge_of
from spaseq.language.runtime.opened import stream_options, stream_sources
from spaseq.spark.batch.form import PlacedRows
from spaseq.spark.ingest.datasource import part_row
from spaseq.spark.ingest.feed import Feed, Place, advance, parts_between
from spaseq.spark.ingest.files import Reading, settled_by_names, source_options
from spaseq.spark.session.layout import lay_out
from spaseq.spark.session.query_text import under_entailment
from spaseq.spark.session.tables import PARTS, batch_of
from spaseq.spark.solving.solutions import graph_keys
from spaseq.spark.streaming.bucket_messages import Cut, _Send, _send_parts
from spaseq.spark.streaming.evaluation import GraphEvaluation
from spaseq.spark.streaming.graph_stream import _cut
from spaseq.spark.streaming.processor import _again, _take_batch
from spaseq.spark.streaming.watermark import AWAKE, Silence

FAR = 4_000_000_000 * 10**9
"""A time behind all windows."""
RESTARTS = 0.3
"""The share of batches at which a bucket goes on from a snapshot."""


class _Shared:
    def __init__(self, value: Any) -> None:
        self.value = value


def in_micro_batches(
    query: Query,
    streams: Mapping[str, Any],
    kb: Mapping[str, Any],
    seed: int,
    buckets: int,
    *,
    least: int = 0,
    silent: bool = False,
    entailment: str | None = None,
    reference: bool = False,
    told: list[Any] | None = None,
    **words: Any,
) -> tuple[list[tuple[Any, ...]], list[list[int]]]:
    """The rows that the buckets give, and their counters at the end. Now and then a bucket goes on from a snapshot.

    `least`: batches of a stream have about so many bytes or more. `silent`: no stream is closed, and in place of that
    a last batch brings nothing, at `FAR`. `told`: is given the rows of late events.
    """
    rng = random.Random(seed)
    options = stream_options(None, words)
    sources = stream_sources(query.checked, streams)
    settled = settled_by_names(options, sources)
    text, knowledge = under_entailment(query, knowledge_of(kb), entailment, reference=reference)
    layout = replace(lay_out(text.compiled()), joined=())  # the tasks have all the knowledge
    cut = _cut_into(query, layout, settled, buckets)
    shared = _Shared(graph_keys(text, layout, knowledge))
    feeds = [Feed(i, s, settled, max_bytes=max(least, rng.choice((0, 1, 500, 5000)))) for i, s in enumerate(sources)]
    planned = json.dumps(source_options(sources, settled, Reading(), 1))
    silence = Silence(0, 10**9) if silent else AWAKE
    make = partial(GraphEvaluation, text, layout, settled, len(sources), PlacedRows("text"), silence=silence)
    evaluations = [make() for _ in cut.buckets]
    logs: list[list[Any]] = [[evaluation.snapshot()] for evaluation in evaluations]
    places = [Place() for _ in feeds]
    found: list[tuple[Any, ...]] = []
    still = 0  # rounds that brought nothing
    while not all(place.closed for place in places) and still < 30:
        before = list(places)
        parts = []
        for i, feed in enumerate(feeds):
            end = advance(feed, places[i]) if rng.random() < 0.8 else places[i]
            if end == places[i] and rng.random() < 0.3 and not silent:
                end = advance(feed, places[i], closing=True)
            parts += parts_between(feed, places[i], end, rng.choice((1, 3)), smallest=1)
            places[i] = end
        rows: list[tuple[Any, ...]] = []
        for part in parts:
            batch = batch_of(PARTS, [part_row(planned, part)])
            for sent in _send_parts(_Send(text, layout, cut, told is not None), shared, [batch]):
                rows += zip(*(column.to_pylist() for column in sent.columns), strict=True)
        still = still + 1 if silent and places == before else 0
        found += _evaluate(rows, evaluations, logs, rng, make, told)
    if silent:
        for evaluation, log in zip(evaluations, logs, strict=True):
            restored = make()
            restored.restore(log[0])
            _again(restored, list(map(encode, log[1:])))
            assert restored.awaits == evaluation.awaits
            if evaluation.awaits:
                for table in _take_batch(evaluation, FAR, None):
                    found += _rows_of(table)
            assert not evaluation.awaits
    return found, [evaluation.counts(first=True) for evaluation in evaluations]


def _cut_into(query: Query, layout: Any, options: Any, buckets: int) -> Cut:
    """The cut, with buckets that are numbered from 0."""
    found = _cut(query, layout, options, buckets)
    return replace(found, buckets=tuple(range(len(found.buckets))))


def _evaluate(
    rows: Sequence[Any], evaluations: list[Any], logs: Any, rng: random.Random, make: Any, told: list[Any] | None
) -> list[Any]:
    """The rows of a batch. Now and then a bucket goes on from its last snapshot and the log behind it."""
    found: list[Any] = []
    rows = sorted(rows, key=lambda row: row[:5])
    for bucket, group in groupby(rows, key=lambda row: row[0]):
        own = [(feed, body) for _, feed, _, _, _, body in group]
        logs[bucket].append((evaluations[bucket].words(), 0, own))
        for table in _take_batch(evaluations[bucket], 0, own):
            found += _rows_of(table)
        for table in () if told is None else evaluations[bucket].late_rows():
            told += table.to_pylist()
        if rng.random() < RESTARTS:
            evaluations[bucket] = make()
            evaluations[bucket].restore(logs[bucket][0])
            _again(evaluations[bucket], list(map(encode, logs[bucket][1:])))
            if rng.random() < 0.5:
                logs[bucket] = [evaluations[bucket].snapshot()]
    return found


def _rows_of(table: Any) -> list[tuple[Any, ...]]:
    """The rows without the time of the last event, which is the last of the times."""
    return list(zip(*(column.to_pylist() for column in table.drop_columns(["time"]).columns), strict=True))
