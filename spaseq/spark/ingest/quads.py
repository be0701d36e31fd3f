"""In a task: the quads of DataFrames as batches of graph events.

The rows of an event come one behind the other. Their texts are put together as lines of N-Quads, and read as columns,
as files are: what is accepted as a term is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.core.errors import EventError
from spaseq.rdf import Counters
from spaseq.spark.ingest.columns import Placed
from spaseq.spark.ingest.frames import NAME
from spaseq.spark.ingest.terms import refused_row
from spaseq.spark.ingest.told import UNREADABLE
from spaseq.spark.session.tables import QUADS

_ROWS: Final = 1 << 16
"""Rows that are read together."""
_TERMS: Final = tuple(QUADS.names[3:])
_SCOPE: Final = "f"
"""The beginning of the labels of blank nodes; the number of their event follows."""


@dataclass(frozen=True, slots=True)
class GraphEvents:
    """Some events of stream number `stream`, in order, and the names of their `graphs` (text, or NULL)."""

    stream: int
    placed: Placed
    graphs: pa.Array


@dataclass(frozen=True, slots=True)
class QuadReader:
    """Reads QUADS (`spaseq.spark.session.tables`) as events of the streams `iris`. With `malformed` "drop", rows that
    cannot be read are left out and counted."""

    iris: tuple[str, ...]
    malformed: Literal["error", "drop"]

    def events(
        self, batches: Iterable[pa.RecordBatch], wanted: Collection[str] | None, counters: Counters
    ) -> Iterator[GraphEvents]:
        """The events of rows that come in order. `counters` is given what was read. Of `wanted` predicates alone there
        are triples; None: all.

        EventError for a row that is no quad, and for one without a time.
        """
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            if count >= _ROWS:
                table = pa.Table.from_batches(held).combine_chunks()
                last = int(_first_rows(table)[-1])  # more rows of the last event may come
                if last:
                    yield from self._read(table.slice(0, last), wanted, counters)
                held = table.slice(last).to_batches()
                count = table.num_rows - last
        if count:
            yield from self._read(pa.Table.from_batches(held).combine_chunks(), wanted, counters)

    def sorted_events(
        self, batches: Iterable[pa.RecordBatch], wanted: Collection[str] | None, counters: Counters
    ) -> Iterator[GraphEvents]:
        """The same of rows in no order, which are held together."""
        held = [batch for batch in batches if batch.num_rows]
        if held:
            table = pa.Table.from_batches(held)
            by = table.set_column(2, "graph", pc.fill_null(table["graph"], ""))  # no name comes first, as Spark sorts
            order = pc.sort_indices(by, sort_keys=[(name, "ascending") for name in QUADS.names])
            yield from self.events(table.take(order).to_batches(), wanted, counters)

    def _read(self, table: pa.Table, wanted: Collection[str] | None, counters: Counters) -> Iterator[GraphEvents]:
        from spaseq.rdf.columns.reader import GivenQuads  # loads the kernels

        rows = table.num_rows
        table = self._whole(table)
        text = _lines(table)
        if b"\r" in text or text.count(b"\n") > table.num_rows:
            table = self._of_one_line(table)
            text = _lines(table)
        try:
            quads = GivenQuads(text, NAME, Counters(), wanted, self.malformed)
        except EventError as error:
            if error.record is None:
                raise
            raise refused_row(error.problem, NAME, _row(table, error.record - 1)) from None
        lines = quads.lines
        named = table["graph"].is_valid().to_numpy()
        right = quads.named == named[lines]
        if self.malformed == "error":
            if not right.all():
                row = _row(table, int(lines[np.argmin(right)]))
                raise EventError("a row has more than one term in a column", source=NAME, hint=f"the row is {row}")
            if len(lines) < table.num_rows:
                place = int(np.setdiff1d(np.arange(table.num_rows), lines)[0])
                raise EventError("a row is no triple", source=NAME, hint=f"the row is {_row(table, place)}")
        if not right.all():
            quads.keep(np.flatnonzero(right))
        kept = quads.lines
        counters.malformed += rows - len(kept)
        counters.triples += len(kept)
        if not len(kept):
            return
        if len(kept) < table.num_rows:
            table = table.take(pa.array(kept))
        first = _first_rows(table)
        sizes = np.diff(np.append(first, table.num_rows))
        streams, times = (table[name].to_numpy()[first] for name in ("stream", "time"))
        graphs = table["graph"].combine_chunks().take(pa.array(first))
        for low, high in _runs(streams):
            own = slice(low, high)
            stream = int(streams[low])
            names = graphs.slice(low, high - low)
            numbers = _numbers(stream, times[own], names) if b"_:" in text else np.zeros(high - low, np.int64)
            records = counters.events + np.arange(1, high - low + 1)
            batch = quads.batch(self.iris[stream], _SCOPE, first[own], sizes[own], times[own], numbers, records)
            counters.events += high - low
            yield GraphEvents(stream, Placed(batch, np.arange(high - low)), names)

    def _whole(self, table: pa.Table) -> pa.Table:
        """The rows that have a term in each column, and a time."""
        lacking = sum(table[name].null_count for name in (*_TERMS, "time"))
        if not lacking:
            return table
        whole = np.logical_and.reduce([table[name].is_valid().to_numpy() for name in (*_TERMS, "time")])
        if self.malformed == "error":
            raise _lacks(table, int(np.argmin(whole)))
        return table.filter(pa.array(whole))

    def _of_one_line(self, table: pa.Table) -> pa.Table:
        """The rows whose terms have no line breaks."""
        columns = [table[name] for name in (*_TERMS, "graph")]
        broken = [pc.fill_null(pc.match_substring_regex(column, "[\r\n]"), False).to_numpy() for column in columns]
        bad = np.logical_or.reduce(broken)
        if self.malformed == "error":
            raise refused_row("a line break inside a term", NAME, _row(table, int(np.argmax(bad))))
        return table.filter(pa.array(~bad))


def _lacks(table: pa.Table, place: int) -> EventError:
    row = table.slice(place, 1).to_pylist()[0]
    subject, predicate, said = (row[name] for name in _TERMS)
    if subject is None and predicate is None and said is not None:  # as `parse_rdf` tells it
        return EventError(f"a message cannot be read: {said}", source=NAME, hint=UNREADABLE)
    if None in (subject, predicate, said):
        return EventError("a triple lacks a term", source=NAME, hint=f"the row is {_row(table, place)}")
    problem = "an event has no time, or one outside those that can be held (1677 to 2262)"
    return EventError(problem, source=NAME, attribute="time", hint="is the unit right? time_unit= is s, ms, us or ns")


def _row(table: pa.Table, place: int) -> str:
    row = table.slice(place, 1).to_pylist()[0]
    terms = [row[name] for name in (*_TERMS, "graph")]
    return " ".join(str(term) for number, term in enumerate(terms) if number < len(_TERMS) or term is not None)[:300]


def _lines(table: pa.Table) -> bytes:
    """The rows as lines of N-Quads."""
    columns = [table[name].combine_chunks() for name in (*_TERMS, "graph")]
    lines = pc.binary_join_element_wise(*columns, ".\n", " ", null_handling="skip")
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")
    return bytes(whole.cast(pa.binary())[0].as_buffer())


def _first_rows(table: pa.Table) -> np.ndarray:
    """The first row of each event: int64, ascending."""
    fresh = np.zeros(table.num_rows, bool)
    fresh[0] = True
    for name in QUADS.names[:3]:
        column = table[name].combine_chunks()
        if name == "graph":
            codes = pc.dictionary_encode(column, null_encoding="encode").indices.to_numpy()
        else:
            codes = pc.fill_null(column, -1).to_numpy()
        fresh[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(fresh)


def _runs(values: np.ndarray) -> Iterator[tuple[int, int]]:
    """The ranges of equal values that stand together."""
    cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return pairwise(cuts)


def _numbers(stream: int, times: Sequence[int], graphs: pa.Array) -> np.ndarray:
    """A number for each event, which is the same whenever it is read: int64, not negative."""
    places = zip(times, graphs.to_pylist(), strict=True)
    return np.array([int(t) % (1 << 31) << 32 | crc32(f"{stream} {t} {g}".encode()) for t, g in places], np.int64)
