"""Columnar event batches: reading them, their time and their order.

`EventStream` makes one ordered stream of batches of any number of sources (files, frames, tables, dicts). `EventFeed`
does the same for events that are pushed. An `EventBatch` gives its attributes as plain arrays. All front ends use
`time`, for time literals and durations, and `reorder`, for the order of time and for late events.

The steps: `readers` turn sources into Arrow tables. `streams` gives these times and an order, and cuts them into
batches (`batch`) of `columns`.

Modules:

* `ahead`: Work ahead of the consumer: threads read and process items before the consumer asks for them.
* `mixed`: Columns with values of several kinds: whole numbers and decimals, numbers and lists, texts and truth values.
* `columns`: Columns of a batch as plain arrays, each of one of six kinds.
* `batch`: A batch of typed events in columns, in the order of the stream.
* `unfinished`: The parts read so far of an unfinished line or record: bounded, and joined once.
* `blocks`: Bytes of files in blocks of whole lines; the readers of text formats share them.
* `csv_files`: CSV and TSV files, block by block, typed as the first block is.
* `json_lines`: JSON Lines, block by block: by pyarrow's reader if it reads the block correctly.
* `growing`: Text files that grow, read as lines are added, and standard input as it arrives.
* `parquet_pages`: The memory that the pages of a Parquet file will take, computed before they are decompressed.
* `memory`: Events in memory as Arrow tables: frames of any library, dicts, and objects of classes.
* `readers`: Readers: any source of events becomes a sequence of Arrow tables.
* `time`: Time as the project holds it: an integer count of nanoseconds since 1970-01-01T00:00:00Z.
* `options`: Options for reading the times of tuples and graphs, and for the order in which events may come.
* `reorder`: Late events, and the order of time of the others.
* `seen`: The kinds of events read, the number of each, and the time range.
* `timestamps`: The times of events, in nanoseconds, the columns that hold them, and the types of events.
* `streams`: From sources to one stream of event batches: types, times, order, merging.
"""

from __future__ import annotations

from spaseq.core.events.batch import EVENT_TIME, EventBatch, Instant
from spaseq.core.events.columns import (
    Column,
    Duration,
    DurationColumn,
    ListColumn,
    MixedColumn,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
    column_of,
    text_array,
    truths_of,
)
from spaseq.core.events.growing import GrowingFile
from spaseq.core.events.memory import frame_like, frame_of, in_microseconds
from spaseq.core.events.options import EventOptions, LateEvent, TimeOptions, TupleWords
from spaseq.core.events.readers import tables
from spaseq.core.events.seen import Seen
from spaseq.core.events.streams import EventCounters, EventFeed, EventStream
from spaseq.core.events.time import format_duration, format_time, parse_time

__all__ = [
    "EVENT_TIME",
    "Column",
    "Duration",
    "DurationColumn",
    "EventBatch",
    "EventCounters",
    "EventFeed",
    "EventOptions",
    "EventStream",
    "GrowingFile",
    "Instant",
    "LateEvent",
    "ListColumn",
    "MixedColumn",
    "NumberColumn",
    "Seen",
    "TextColumn",
    "TimeColumn",
    "TimeOptions",
    "TruthColumn",
    "TupleWords",
    "column_of",
    "format_duration",
    "format_time",
    "frame_like",
    "frame_of",
    "in_microseconds",
    "parse_time",
    "tables",
    "text_array",
    "truths_of",
]
