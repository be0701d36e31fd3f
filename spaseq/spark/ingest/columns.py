"""Parts of a feed as batches of graph events in columns, with the places of the events in the source.

Whether an event is late is not decided here: a batch is in order of time, and says which event of the part each of its
events is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import numpy as np

from spaseq.core.integers import in_order
from spaseq.rdf import Counters, GraphBatch, GraphEvent, term_from_key
from spaseq.spark.ingest.feed import Feed, FeedPart
from spaseq.spark.ingest.reading import event_batches
from spaseq.spark.ingest.told import Told

_GATHERED: Final = 5_000


@dataclass(frozen=True, slots=True)
class Placed:
    """Events of one stream, and which of the events given together each is: `numbers`, int64 (m,), a permutation."""

    batch: GraphBatch
    numbers: np.ndarray


def part_batches(feed: Feed, part: FeedPart, wanted: Collection[str] | None, counters: Counters) -> Iterator[Placed]:
    """The events of a part, some at a time, in the order of the source from one batch to the next.

    `wanted` and errors as of `event_batches`. Counts what was read.
    """
    if feed.access is not None:
        feed.access.use()
    for batch in event_batches(feed, part, wanted, counters):
        order = in_order(batch.times)
        yield Placed(batch if bool((order[1:] > order[:-1]).all()) else batch.select(order), order)


def gathered(stream: str, events: Iterable[GraphEvent]) -> Iterator[Placed]:
    """Events as batches of up to 5,000, in their order."""
    rest = iter(events)
    while held := list(islice(rest, _GATHERED)):
        batch = replace(GraphBatch.of([replace(event, stream=stream) for event in held]), stream=stream)
        yield Placed(batch, np.arange(len(held)))


def graph_events(rows: Iterable[tuple[Any, ...]], told: list[tuple[str, Told]]) -> Iterator[GraphEvent]:
    """The events of EVENTS (`spaseq.spark.session.tables`); what such rows tell goes to `told`, with the file."""
    for _, _, _, stream, time, file, line, graph, keys, counts in rows:
        if counts is not None:
            told.append((file, Told.of(counts)))
            continue
        terms = list(map(_term, keys))
        triples = tuple(zip(terms[::3], terms[1::3], terms[2::3], strict=True))
        yield GraphEvent(stream, time, triples, None if graph is None else _term(graph), file, line)


_term = lru_cache(1 << 17)(term_from_key)
