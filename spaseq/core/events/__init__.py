"""Columnar event batches: reading them, their time and their order.

`EventStream` makes one ordered stream of batches of any number of sources (files, frames, tables, dicts); `EventFeed`
does the same for events that are pushed. An `EventBatch` gives its attributes as plain arrays.
`spaseq.core.events.time` holds what is common to all front ends: time literals and durations; `reorder` the order of
time, and which events are late.

The road: `readers` make Arrow tables of sources; `streams` gives them times and an order, and cuts them into batches
(`batch`) of `columns`.

Modules:

* `ahead` (`THREAD`, `Ahead`, `Crew`, `ahead`): Work ahead of who uses the results: threads read and work on items
  before they are asked for.
* `mixed` (`DEEPEST`, `Odd`, `array_of`, `beyond_exact`, `flattened`, `parts_of`, `together`, `united`): Columns whose
  values are of several kinds: whole numbers and decimals, numbers and lists, texts and truth values.
* `columns`: Columns of a batch as plain arrays, each of one of six kinds.
* `batch` (`INSTANTS`, `EventBatch`): A batch of typed events in columns, in the order of the stream.
* `unfinished` (`LONGEST`, `Fed`, `Unfinished`, `too_long`): What has been read of a line, or a record, that has not
  ended: bounded, and gathered once.
* `blocks` (`Joined`, `clean`, `decoded`, `first_line`, `line_blocks`, `read_some`): Bytes of files, in blocks of whole
  lines; what the readers of text formats share.
* `csv_files` (`padded`, `read_csv`): CSV and TSV files, block by block: typed as the first block is, texts as
  dictionaries, errors with their record.
* `json_lines` (`read_json_lines`): JSON Lines, block by block: by pyarrow's reader where that reads them right.
* `growing` (`GrowingBytes`, `GrowingFile`, `Watched`): Files of text that grow, read as lines are added, and standard
  input as it comes.
* `beside` (`check_output`, `save_text`, `write_beside`): Files that are written: beside their place and renamed, so
  that a name stands for a whole file, the new one or the old one; and never over a file that is read.
* `places`: Where files are: on this machine, or on a file system that only Spark's libraries read.
* `parquet_pages` (`rows_at_once`): How much memory the pages of a Parquet file take, before they are decompressed.
* `readers` (`FORMATS`, `frame_of`, `source_name`, `tables`): Readers: whatever holds events becomes a run of Arrow
  tables.
* `time`: Time as the project holds it: an integer count of nanoseconds since 1970-01-01T00:00:00Z.
* `options` (`Duration`, `EventOptions`, `TimeOptions`, `TupleWords`): How the times of tuples and graphs are read, and
  in what order events may come.
* `reorder` (`Arrivals`, `Reorderer`, `SingleReorderer`): Which events come too late, and the order of time of the
  others.
* `seen` (`Seen`, `closest`): What kinds of events were read, how many of each, and from when to when.
* `timestamps` (`TIME_COLUMNS`, `Part`, `TimestampAssigner`, `counted_hint`, `listed`, `read_by`, `time_candidates`):
  The times of events: where they stand, and what they are as nanoseconds; and the types, which must be there.
* `streams` (`EventCounters`, `EventFeed`, `EventStream`): From sources to one stream of event batches: types, times,
  order, merging.
"""

from __future__ import annotations

from spaseq.core.events.batch import EventBatch, Instant
from spaseq.core.events.columns import (
    Column,
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
from spaseq.core.events.options import Duration, EventOptions, TimeOptions, TupleWords
from spaseq.core.events.readers import frame_of, source_name, tables
from spaseq.core.events.seen import Seen, closest
from spaseq.core.events.streams import EventCounters, EventFeed, EventStream
from spaseq.core.events.time import format_duration, format_time, parse_duration, parse_time

__all__ = [
    "Column",
    "Duration",
    "EventBatch",
    "EventCounters",
    "EventFeed",
    "EventOptions",
    "EventStream",
    "GrowingFile",
    "Instant",
    "ListColumn",
    "MixedColumn",
    "NumberColumn",
    "Seen",
    "TextColumn",
    "TimeColumn",
    "TimeOptions",
    "TruthColumn",
    "TupleWords",
    "closest",
    "column_of",
    "format_duration",
    "format_time",
    "frame_of",
    "parse_duration",
    "parse_time",
    "source_name",
    "tables",
    "text_array",
    "truths_of",
]
