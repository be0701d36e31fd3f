"""Writes matches in the formats of the command line."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from ceql.cli.formats import MATCHES
from spaseq.command import Table, watched
from spaseq.errors import EventError
from spaseq.events import format_time
from spaseq.events.time import unit_nanoseconds

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ceql.results.bindings import Shown
    from ceql.results.matches import MatchTable
    from ceql.runtime.evaluation import Matches

__all__ = [
    "JsonLinesWriter",
    "JsonWriter",
    "TableWriter",
    "clock",
    "csv_writer",
    "tsv_writer",
    "write",
    "write_count",
    "write_parquet",
]

_WIDTH: Final = 60


def write(
    matches: Matches,
    form: str,
    out: IO[str],
    path: str | None = None,
    limit: int | None = None,
    unit: str = "s",
) -> int:
    """Writes the matches to `out`, or to `path` for a binary format; returns how many it wrote. `unit`: the unit of
    times that are written as numbers."""
    make = MATCHES[form].load()
    if form == "count":
        return int(make(matches, limit, out))
    tables = watched(_limited(matches.tables(), limit), lambda: matches.counters.events, batches=True)
    if MATCHES[form].binary:
        return int(make(matches, tables, path))
    written = 0
    writer = make(out, matches.shown)
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


def write_count(matches: Matches, limit: int | None, out: IO[str]) -> int:
    """Writes the number of matches, without enumerating them, and returns it."""
    count = matches.count() if limit is None else min(limit, matches.count())
    out.write(f"{count}\n")
    return count


def _plain(value: Any) -> Any:
    """A value for JSON: times as xsd:dateTime, numbers that JSON lacks (NaN, infinity) as text."""
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
    """The tables cut to the first `limit` matches; no batch of events after them is evaluated."""
    left = limit
    for table in tables:
        if left is not None and len(table) >= left:
            if left:
                yield table.head(left)
            return
        left = None if left is None else left - len(table)
        yield table


def clock(iso: bool, unit: str) -> Callable[[int], Any]:
    """The function that shows a time: as xsd:dateTime if the events had such times, else as a number in `unit`."""
    if iso:
        return format_time
    scale = unit_nanoseconds(unit)
    return lambda ns: ns // scale if ns % scale == 0 else ns / scale


def write_parquet(matches: Matches, tables: Iterable[MatchTable], path: str) -> int:
    """Writes the columns of `Matches.to_arrow` to `path`; returns how many matches. `EventError` for a column that the
    first table did not have."""
    import pyarrow.parquet as pq

    from ceql.results.matches import empty_table

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
    """The table with the columns of `schema`, that of the first table; `EventError` for a column that is not in it, or
    of another type."""
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


class JsonLinesWriter:
    """An object a line for each match."""

    def __init__(self, out: IO[str], shown: Shown | None) -> None:
        self.out = out

    def begin(self, names: list[str]) -> None:
        pass

    def row(self, match: dict[str, Any]) -> None:
        self.out.write(json.dumps(match) + "\n")

    def end(self, written: int) -> None:
        pass


class JsonWriter:
    """One array of the objects of `jsonl`."""

    def __init__(self, out: IO[str], shown: Shown | None) -> None:
        self.out = out
        self.lead: str = "["

    def begin(self, names: list[str]) -> None:
        pass

    def row(self, match: dict[str, Any]) -> None:
        self.out.write(f"{self.lead}\n  {json.dumps(match)}")
        self.lead = ","

    def end(self, written: int) -> None:
        self.out.write("\n]\n" if written else "[]\n")


class _Separated:
    """A header, and a line per match, with its positions separated by blanks.

    With valuations, each variable v has a column `v`, its positions, and columns `v.attribute`, JSON arrays of its
    events' values: for the attributes that SELECT lists, or all that the events up to the first match have.
    """

    def __init__(self, out: IO[str], delimiter: str, shown: Shown | None) -> None:
        self.rows = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        self.shown = shown
        self.bound: list[tuple[str, str]] | None = None
        self.known: list[str] = []

    def begin(self, names: list[str]) -> None:
        """Called before the matches of each table, with the attributes of its events; the first call writes the header.
        `EventError` for an attribute that comes later."""
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


class TableWriter:
    """For people: aligned columns, as wide as the first matches need; with valuations, a column of what each variable
    took."""

    def __init__(self, out: IO[str], shown: Shown | None) -> None:
        head = ["start", "end", "positions", "from", "to", *(["bindings"] if shown is not None else [])]
        self.out = out
        self.shown = shown
        self.table: Table = Table(out, head, right=(0, 1, 3, 4), rule=False)

    def begin(self, names: list[str]) -> None:
        pass

    def row(self, match: dict[str, Any]) -> None:
        positions = _blanks(match["positions"])
        if len(positions) > _WIDTH:
            positions = f"{positions[: _WIDTH - 20].rsplit(' ', 1)[0]} … ({len(match['positions'])} events)"
        row = [str(match["start"]), str(match["end"]), positions, *map(str, match["time"])]
        if self.shown is not None:
            row.append("  ".join(self.bindings(match)))
        self.table.row(row)

    def bindings(self, match: dict[str, Any]) -> Iterator[str]:
        """`x=0,2` for the positions of x and, for attributes that SELECT lists, `x.price=3,4`."""
        assert self.shown is not None
        for variable, taken in match["bindings"].items():
            yield f"{variable}={','.join(map(str, taken))}"
            for name in self.shown.attributes[variable] or ():
                values = [event.get(name, "NULL") for event in match["attributes"][variable]]
                yield f"{variable}.{name}={','.join(map(str, values))}"

    def end(self, written: int) -> None:
        if written:
            self.table.flush()
        self.out.write(f"{written:,} match{'' if written == 1 else 'es'}\n")


def csv_writer(out: IO[str], shown: Shown | None) -> _Separated:
    """Comma separated values."""
    return _Separated(out, ",", shown)


def tsv_writer(out: IO[str], shown: Shown | None) -> _Separated:
    """Tab separated values."""
    return _Separated(out, "\t", shown)
