"""Writes matches in the formats of the command line."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from spaseq.errors import OptionError
from spaseq.events import format_time
from spaseq.events.time import unit_nanoseconds

if TYPE_CHECKING:
    from ceql.query import Matches, MatchTable

__all__ = ["FORMATS", "write"]

FORMATS: Final = ("table", "json", "csv", "tsv", "jsonl", "parquet", "count")
_WIDTH: Final = 60


def write(
    matches: Matches,
    form: str,
    out: IO[str],
    path: str | None = None,
    limit: int | None = None,
    unit: str = "s",
    progress: IO[str] | None = None,
) -> int:
    """Writes the matches to `out`, or to `path` for parquet; returns how many. Counts go to the terminal `progress`."""
    if form == "count":
        count = matches.count() if limit is None else min(limit, matches.count())
        out.write(f"{count}\n")
        return count
    tables = _limited(matches.tables(), limit)
    if progress is not None:
        tables = _watched(tables, matches, progress)
    if form == "parquet":
        return _parquet(matches, tables, path)
    written = 0
    writer = _WRITERS[form](out)
    for table in tables:
        show = _clock(matches.summary.iso_times, unit)
        spans = zip(
            *(map(show, table.history.times(p).tolist()) for p in (table.matches.start, table.matches.end)), strict=True
        )
        for match, span in zip(table, spans, strict=True):
            writer.row({"start": match.start, "end": match.end, "positions": list(match.positions),
                        "bindings": match.bindings, "time": list(span)})  # fmt: skip
            written += 1
    writer.end(written)
    return written


def _limited(tables: Iterable[MatchTable], limit: int | None) -> Iterator[MatchTable]:
    """The first `limit` matches; nothing is evaluated beyond them."""
    left = limit
    for table in tables:
        if left is not None and len(table) >= left:
            if left:
                yield table.head(left)
            return
        left = None if left is None else left - len(table)
        yield table


def _watched(tables: Iterator[MatchTable], matches: Matches, terminal: IO[str]) -> Iterator[MatchTable]:
    """The same tables, with counts on one line of a terminal a few times a second; the line is wiped at the end."""
    written, shown = 0, 0.0
    try:
        for table in tables:
            written += len(table)
            if time.monotonic() - shown > 0.25:
                terminal.write(f"\r\x1b[K{matches.summary.events:,} events, {written:,} matches")
                terminal.flush()
                shown = time.monotonic()
            yield table
    finally:
        terminal.write("\r\x1b[K")
        terminal.flush()


def _clock(iso: bool, unit: str) -> Callable[[int], Any]:
    """How a time is shown: as xsd:dateTime where the events had such times, else as a number in the time unit."""
    if iso:
        return format_time
    scale = unit_nanoseconds(unit)
    return lambda ns: ns // scale if ns % scale == 0 else ns / scale


def _parquet(matches: Matches, tables: Iterator[MatchTable], path: str | None) -> int:
    import pyarrow.parquet as pq

    from ceql.query import empty_table

    if path is None:
        raise OptionError("parquet is written to a file", "add --output FILE.parquet")
    written = 0
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            columns = table.to_arrow(matches.summary.iso_times)
            writer = writer or pq.ParquetWriter(path, columns.schema)
            writer.write_table(columns)
            written += len(table)
        if writer is None:
            pq.write_table(empty_table(matches.summary.iso_times), path)
    finally:
        if writer is not None:
            writer.close()
    return written


class _JsonLines:
    def __init__(self, out: IO[str]) -> None:
        self.out = out

    def row(self, match: dict[str, Any]) -> None:
        self.out.write(json.dumps(match) + "\n")

    def end(self, written: int) -> None:
        pass


class _Json:
    """One array of the objects of `jsonl`."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.lead = "["

    def row(self, match: dict[str, Any]) -> None:
        self.out.write(f"{self.lead}\n  {json.dumps(match)}")
        self.lead = ","

    def end(self, written: int) -> None:
        self.out.write("\n]\n" if written else "[]\n")


class _Separated:
    """A header and a line per match; positions with blanks between them."""

    def __init__(self, out: IO[str], delimiter: str) -> None:
        self.rows = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        self.rows.writerow(["start", "end", "positions", "start_time", "end_time"])

    def row(self, match: dict[str, Any]) -> None:
        positions = " ".join(map(str, match["positions"]))
        self.rows.writerow([match["start"], match["end"], positions, *match["time"]])

    def end(self, written: int) -> None:
        pass


class _Table:
    """For people: aligned columns, as wide as the first matches need."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.waiting: list[list[str]] = [["start", "end", "positions", "from", "to"]]
        self.widths: list[int] | None = None

    def row(self, match: dict[str, Any]) -> None:
        positions = " ".join(map(str, match["positions"]))
        if len(positions) > _WIDTH:
            positions = f"{positions[: _WIDTH - 20].rsplit(' ', 1)[0]} … ({len(match['positions'])} events)"
        self.waiting.append([str(match["start"]), str(match["end"]), positions, *map(str, match["time"])])
        if self.widths is not None or len(self.waiting) > 100:
            self._flush()

    def _flush(self) -> None:
        if self.widths is None:
            self.widths = [max(len(row[c]) for row in self.waiting) for c in range(5)]
        for row in self.waiting:
            cells = [
                text.ljust(w) if c == 2 else text.rjust(w)
                for c, (text, w) in enumerate(zip(row, self.widths, strict=True))
            ]
            self.out.write("  ".join(cells).rstrip() + "\n")
        self.waiting = []

    def end(self, written: int) -> None:
        if written:
            self._flush()
        self.out.write(f"{written:,} match{'' if written == 1 else 'es'}\n")


_WRITERS: Final[dict[str, Callable[[IO[str]], Any]]] = {
    "table": _Table,
    "json": _Json,
    "jsonl": _JsonLines,
    "csv": lambda out: _Separated(out, ","),
    "tsv": lambda out: _Separated(out, "\t"),
}
