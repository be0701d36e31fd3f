"""Columnar event batches: reading them, their time and their order.

`EventStream` makes one ordered stream of batches of any number of sources (files, frames, tables, dicts); `EventFeed`
does the same for events that are pushed. An `EventBatch` gives its attributes as plain arrays. `spaseq.events.time`
holds what is common to all front ends: time literals, durations, the policy for late events.
"""

from __future__ import annotations

from spaseq.events.batch import EventBatch, Instant
from spaseq.events.columns import (
    Column,
    ListColumn,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
    column_of,
    text_array,
    truths_of,
)
from spaseq.events.growing import GrowingFile
from spaseq.events.readers import source_name, tables
from spaseq.events.streams import EventCounters, EventFeed, EventOptions, EventStream
from spaseq.events.time import format_time, order_events, parse_duration, parse_time

__all__ = [
    "Column",
    "EventBatch",
    "EventCounters",
    "EventFeed",
    "EventOptions",
    "EventStream",
    "GrowingFile",
    "Instant",
    "ListColumn",
    "NumberColumn",
    "TextColumn",
    "TimeColumn",
    "TruthColumn",
    "column_of",
    "format_time",
    "order_events",
    "parse_duration",
    "parse_time",
    "source_name",
    "tables",
    "text_array",
    "truths_of",
]
