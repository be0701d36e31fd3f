"""Writes matches in the formats of the command line."""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from spaseq.errors import EventError, OptionError
from spaseq.events import format_time
from spaseq.events.time import unit_nanoseconds

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ceql.bindings import Shown
    from ceql.evaluation import Matches
    from ceql.matches import MatchTable

__all__ = ["FORMATS", "clock", "write"]

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
    writer = _WRITERS[form](out, matches.shown)
    for table in tables:
        show = clock(matches.counters.iso_times, unit)
        spans = zip(
            *(map(show, table.history.times(p).tolist()) for p in (table.matches.start, table.matches.end)), strict=True
        )
        writer.begin([] if table.bindings is None else table.bindings.names(table.history.table))
        for match, span in zip(table, spans, strict=True):
            row = {"start": match.start, "end": match.end, "positions": list(match.positions),
                   "bindings": match.bindings, "time": list(span)}  # fmt: skip
            if matches.shown is not None:
                row["attributes"] = _plain(match.attributes)
            writer.row(row)
            written += 1
    writer.end(written)
    return written


def _plain(value: Any) -> Any:
    """A value as JSON has it: times as xsd:dateTime, what JSON has no number for as text."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


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
                terminal.write(f"\r\x1b[K{matches.counters.events:,} events, {written:,} matches")
                terminal.flush()
                shown = time.monotonic()
            yield table
    finally:
        terminal.write("\r\x1b[K")
        terminal.flush()


def clock(iso: bool, unit: str) -> Callable[[int], Any]:
    """How a time is shown: as xsd:dateTime where the events had such times, else as a number in the time unit."""
    if iso:
        return format_time
    scale = unit_nanoseconds(unit)
    return lambda ns: ns // scale if ns % scale == 0 else ns / scale


def _parquet(matches: Matches, tables: Iterator[MatchTable], path: str | None) -> int:
    import pyarrow.parquet as pq

    from ceql.matches import empty_table

    if path is None:
        raise OptionError("parquet is written to a file", "add --output FILE.parquet")
    written = 0
    writer: pq.ParquetWriter | None = None
    schema: pa.Schema | None = None
    try:
        for table in tables:
            columns = table.to_arrow(matches.counters.iso_times)
            schema = schema or columns.schema
            writer = writer or pq.ParquetWriter(path, schema)
            writer.write_table(columns if columns.schema == schema else _fitted(columns, schema))
            written += len(table)
        if writer is None:
            pq.write_table(empty_table(matches.counters.iso_times, matches.shown), path)
    finally:
        if writer is not None:
            writer.close()
    return written


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns that the first matches had; `EventError` for one that these have and those did not."""
    import pyarrow as pa

    columns = []
    for field in schema:
        column = table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        try:
            columns.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise _unforeseen(f"column {field.name} holds {column.type} and held {field.type} before") from None
    new = next((name for name in table.column_names if name not in schema.names), None)
    if new is not None:
        raise _unforeseen(f"column {new} comes up after others were written")
    return pa.table(columns, schema=schema)


def _unforeseen(problem: str) -> EventError:
    hint = "--schema FILE says what attributes there are, SELECT x[a] which to write; jsonl needs no columns"
    return EventError(problem, hint=hint)


class _JsonLines:
    def __init__(self, out: IO[str], shown: Shown | None) -> None:
        self.out = out

    def begin(self, names: list[str]) -> None:
        pass

    def row(self, match: dict[str, Any]) -> None:
        self.out.write(json.dumps(match) + "\n")

    def end(self, written: int) -> None:
        pass


class _Json:
    """One array of the objects of `jsonl`."""

    def __init__(self, out: IO[str], shown: Shown | None) -> None:
        self.out = out
        self.lead = "["

    def begin(self, names: list[str]) -> None:
        pass

    def row(self, match: dict[str, Any]) -> None:
        self.out.write(f"{self.lead}\n  {json.dumps(match)}")
        self.lead = ","

    def end(self, written: int) -> None:
        self.out.write("\n]\n" if written else "[]\n")


class _Separated:
    """A header and a line per match; positions with blanks between them.

    Valuations have for each variable v a column `v` of its positions, and columns `v.attribute` of the attributes of
    its events, as JSON arrays: those that SELECT lists, or all that there are when the first match comes.
    """

    def __init__(self, out: IO[str], delimiter: str, shown: Shown | None) -> None:
        self.rows = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        self.shown = shown
        self.bound: list[tuple[str, str]] | None = None
        self.known: list[str] = []

    def begin(self, names: list[str]) -> None:
        """Before the matches of a table, with the attributes of its events; the first time, writes the header."""
        if self.bound is None:
            self.known, self.bound = names, []
            for variable, listed in () if self.shown is None else self.shown.attributes.items():
                self.bound += [(variable, ""), *((variable, n) for n in (names if listed is None else listed))]
            columns = [f"{variable}.{name}" if name else variable for variable, name in self.bound]
            self.rows.writerow(["start", "end", "positions", "start_time", "end_time", *columns])
        elif self.shown is not None and None in self.shown.attributes.values():
            new = next((name for name in names if name not in self.known), None)
            if new is not None:
                raise _unforeseen(f"attribute {new} comes up after the header was written")

    def row(self, match: dict[str, Any]) -> None:
        row = [match["start"], match["end"], _blanks(match["positions"]), *match["time"]]
        for variable, name in self.bound or ():
            if name:
                values = [event.get(name) for event in match["attributes"].get(variable, ())]
                row.append(json.dumps(values, ensure_ascii=False))
            else:
                row.append(_blanks(match["bindings"].get(variable, ())))
        self.rows.writerow(row)

    def end(self, written: int) -> None:
        if self.bound is None:
            self.begin([])


def _blanks(positions: Iterable[int]) -> str:
    return " ".join(map(str, positions))


class _Table:
    """For people: aligned columns, as wide as the first matches need; of valuations what each variable took."""

    def __init__(self, out: IO[str], shown: Shown | None) -> None:
        self.out = out
        self.shown = shown
        head = ["start", "end", "positions", "from", "to", *(["bindings"] if shown is not None else [])]
        self.waiting: list[list[str]] = [head]
        self.widths: list[int] | None = None

    def begin(self, names: list[str]) -> None:
        pass

    def row(self, match: dict[str, Any]) -> None:
        positions = _blanks(match["positions"])
        if len(positions) > _WIDTH:
            positions = f"{positions[: _WIDTH - 20].rsplit(' ', 1)[0]} … ({len(match['positions'])} events)"
        row = [str(match["start"]), str(match["end"]), positions, *map(str, match["time"])]
        if self.shown is not None:
            row.append("  ".join(self.bindings(match)))
        self.waiting.append(row)
        if self.widths is not None or len(self.waiting) > 100:
            self._flush()

    def bindings(self, match: dict[str, Any]) -> Iterator[str]:
        """`x=0,2` and, of attributes that SELECT lists, `x.price=3,4`."""
        assert self.shown is not None
        for variable, taken in match["bindings"].items():
            yield f"{variable}={','.join(map(str, taken))}"
            for name in self.shown.attributes[variable] or ():
                values = [event.get(name, "NULL") for event in match["attributes"][variable]]
                yield f"{variable}.{name}={','.join(map(str, values))}"

    def _flush(self) -> None:
        if self.widths is None:
            self.widths = [max(len(row[c]) for row in self.waiting) for c in range(len(self.waiting[0]))]
        for row in self.waiting:
            cells = [
                text.ljust(w) if c in (2, 5) else text.rjust(w)
                for c, (text, w) in enumerate(zip(row, self.widths, strict=True))
            ]
            self.out.write("  ".join(cells).rstrip() + "\n")
        self.waiting = []

    def end(self, written: int) -> None:
        if written:
            self._flush()
        self.out.write(f"{written:,} match{'' if written == 1 else 'es'}\n")


_WRITERS: Final[dict[str, Callable[[IO[str], Any], Any]]] = {
    "table": _Table,
    "json": _Json,
    "jsonl": _JsonLines,
    "csv": lambda out, shown: _Separated(out, ",", shown),
    "tsv": lambda out, shown: _Separated(out, "\t", shown),
}
