"""Parts of a feed as batches of graph events in columns, with the places of the events in the source.

Whether an event is late is not decided here: a batch is in order of time, and says which event of the part each of its
events is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from spaseq.core.integers import in_order
from spaseq.rdf import Counters, GraphBatch
from spaseq.spark.ingest.feed import Feed, FeedPart
from spaseq.spark.ingest.reading import event_batches

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
