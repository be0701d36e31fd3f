"""A batch of typed events in columns, in the order of the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.core.events.columns import (
    Column,
    Duration,
    Instant,
    TextColumn,
    TimeColumn,
    column_of,
    getter_of,
    rows_of,
    text_array,
)
from spaseq.core.events.mixed import parts_of
from spaseq.core.snapshot import Kind

__all__ = ["DURATIONS", "EVENT_TIME", "INSTANTS", "EventBatch", "Instant", "encode_texts"]

EVENT_TIME: Final = "\0time"
"""The name of a column with the times of events, for conditions that a query does not write. No attribute has it."""


class EventBatch:
    """Events of one or several streams, merged; immutable, with columns decoded on first use.

    Attributes:
        table: attributes as columns; texts dictionary-encoded.
        typed_by: the column that holds the type of each event, or the type of the events of each of `streams`.
        times: int64 (n,), ns, never decreasing.
        positions: int64 (n,), the place of each event in the whole stream, from 0.
        streams: names of the streams; `stream_codes`: int32 (n,), the stream of each event, or None if there is one.
    """

    __slots__ = ("_columns", "positions", "stream_codes", "streams", "table", "times", "typed_by")

    def __init__(
        self,
        table: pa.Table,
        typed_by: str | tuple[str, ...],
        times: np.ndarray,
        positions: np.ndarray,
        streams: tuple[str, ...] = (),
        stream_codes: np.ndarray | None = None,
    ) -> None:
        self.table: Any = table
        self.typed_by: str | tuple[str, ...] = typed_by
        self.times: np.ndarray = times
        self.positions: np.ndarray = positions
        self.streams: tuple[str, ...] = streams
        self.stream_codes: np.ndarray | None = stream_codes
        self._columns: dict[str, Column | None] = {}

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def source(self) -> str:
        """The name of the source of these events in messages."""
        return ", ".join(s for s in self.streams if s) or "<events>"

    def column(self, name: str) -> Column | None:
        """The column of an attribute; None if no event of the batch has it (NULL throughout)."""
        try:
            return self._columns[name]
        except KeyError:
            column = self._columns[name] = self._column(name)
            return column

    def _column(self, name: str) -> Column | None:
        if name == EVENT_TIME:
            return TimeColumn(self.times, None)
        return column_of(self.table[name], name, self.source) if name in self.table.column_names else None

    @property
    def types(self) -> TextColumn | None:
        """The event types; None if every one is NULL (such events are of no type)."""
        column = self._columns.get("\0type")
        if column is None:
            column = self._columns["\0type"] = self._types()
        return column if isinstance(column, TextColumn) else None

    def _types(self) -> Column | None:
        name = self.typed_by
        if isinstance(name, tuple):
            codes = np.zeros(len(self), np.int32) if self.stream_codes is None else self.stream_codes
            return TextColumn(codes, text_array(list(name)))
        if name not in self.table.column_names:
            return None
        values = self.column(name)
        if values is not None and not isinstance(values, TextColumn):
            values = column_of(_as_texts(self.table[name]), name)
        return values

    def getter(self, name: str) -> Callable[[int], Any]:
        """A function from a row to the value of an attribute: a number, str, bool, `Instant`, tuple (list), None."""
        return getter_of(self.column(name))

    def part(self, start: int, stop: int) -> EventBatch:
        """These rows as a batch of their own."""
        return _Part(self, start, stop)

    def take(self, rows: np.ndarray) -> EventBatch:
        """These rows, ascending, as a batch that holds nothing of the others, their texts included."""
        table = self.table.take(pa.array(rows))
        for index, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                texts = table.column(index).cast(field.type.value_type)
                table = table.set_column(index, pa.field(field.name, texts.type), texts)
        codes = None if self.stream_codes is None else self.stream_codes[rows]
        return EventBatch(encode_texts(table), self.typed_by, self.times[rows], self.positions[rows], self.streams,
                          codes)  # fmt: skip

    def event(self, row: int) -> dict[str, Any]:
        """The attributes of one event that are not NULL, as Python values."""
        return event_of(self.table, row)


def event_of(table: pa.Table, row: int) -> dict[str, Any]:
    """The attributes of an event that are not NULL, as Python values."""
    pairs = ((name, table[name][row].as_py()) for name in table.column_names)
    return {name: value for name, value in pairs if value is not None}


class _Part(EventBatch):
    """Some rows of another batch; its columns are cut from those, which are decoded once for all parts."""

    __slots__ = ("_rows", "_whole")

    def __init__(self, whole: EventBatch, start: int, stop: int) -> None:
        self._whole, self._rows = whole, slice(start, stop)
        codes = None if whole.stream_codes is None else whole.stream_codes[start:stop]
        super().__init__(whole.table.slice(start, stop - start), whole.typed_by, whole.times[start:stop],
                         whole.positions[start:stop], whole.streams, codes)  # fmt: skip

    def column(self, name: str) -> Column | None:
        if name not in self._columns:
            whole = self._whole.column(name)
            self._columns[name] = None if whole is None else rows_of(whole, self._rows)
        return self._columns[name]


INSTANTS: Final = Kind("instant", (Instant,), lambda value: str(int(value)), Instant)
"""The form of times in snapshots."""
DURATIONS: Final = Kind("duration", (Duration,), lambda value: str(int(value)), Duration)
"""The form of differences of times in snapshots."""


def _as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column of values that are not texts, as the texts that Arrow writes."""
    if not pa.types.is_union(column.type):
        return column.cast(pa.string())
    texts = np.full(len(column), None, object)
    for rows, child in parts_of(column.combine_chunks()):
        texts[rows] = child.cast(pa.string()).to_pylist()
    return pa.array(texts, pa.string())


def encode_texts(table: pa.Table) -> pa.Table:
    """The table with its string columns dictionary-encoded, each in one chunk, and integers as they are."""
    if table.num_rows == 0:
        return table
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type) or field.type == pa.string_view():
            texts = table.column(index)
            if field.type != pa.string():
                texts = texts.cast(pa.string())
            encoded = pc.dictionary_encode(texts)
            table = table.set_column(index, pa.field(field.name, encoded.type), encoded)
    return table.unify_dictionaries().combine_chunks()
