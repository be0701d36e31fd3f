"""The formats that more than one command has, for the results of commands.

A writer is a function of (results, out) and returns the number of results it wrote; `out` takes texts, of a binary
format bytes. A format of one command only has its writer beside that command.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from spaseq.tools.command.process import unbroken
from spaseq.tools.command.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

_JSON: Final = json.JSONEncoder(ensure_ascii=False).encode
"""PERF: `json.dumps` makes an encoder for each call if it is not given its defaults: 0.70 s instead of 0.60 for 120,000
matches."""
QUOTED: Final = ("", "NULL", "null")
"""Texts that readers of CSV would take for NULL without quotes."""
_NULL: Final = [None]


class Results(Protocol):
    """The results of a command, in the shapes that writers ask for.

    A writer uses one shape, once. Results are computed as they are iterated over. If they have to be read as they come,
    the iterator flushes the output before it waits for the next one.
    """

    line_end: str = "\n"
    """The end of a line of CSV and TSV."""
    right: Sequence[int] = ()
    """The columns for people that are aligned at the right."""
    spare: int = 0
    """The number of last columns that are left out on a terminal before others are shortened to fit."""
    ruled: bool = True
    """True if a line is shown below the names of columns."""
    live: bool = False
    """True if results are read as they come."""
    written: int = 0
    """The number of results requested and handled."""
    plain: bool = False
    """True if no cell of the rows at hand is a text that CSV quotes (`QUOTED`), and none is a NULL alone. A writer that
    knows need not look: PERF: 0.25 µs a row of 4."""

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """Each result as a JSON object."""

    def lines(self) -> Iterator[str]:
        """`objects` as JSON."""
        return map(_JSON, self.objects())

    def cells(self) -> Iterator[Sequence[Any]]:
        """The names of columns, then the cells of each result, for programs; None for NULL."""

    def texts(self) -> Iterator[Sequence[str]]:
        """The names of columns, then the cells of each result, for people."""
        for row in self.cells():
            yield ["" if cell is None else str(cell) for cell in row]

    def closing(self, written: int) -> str:
        """The text for people below so many results."""
        return ""

    def count(self) -> int:
        """The number of results."""
        return sum(1 for _ in self.objects())


class Columnar(Protocol):
    """Results that can be had as columns, too."""

    def tables(self) -> Iterator[pa.Table]:
        """All results, with one schema; at least one table, which may be empty."""


def write_table(results: Results, out: IO[str]) -> int:
    """Aligned columns for people."""
    rows = results.texts()
    table = Table(
        out, next(rows), right=results.right, live=results.live, rule=results.ruled, spare=results.spare,
        width=getattr(out, "columns", None),
    )  # fmt: skip
    written = 0
    try:
        for row in rows:
            table.row(row)
            written += 1
    finally:
        if written:
            table.flush()
    if table.left_out:
        more = f"{table.left_out} more column{'s' if table.left_out > 1 else ''}"
        out.write(f"… {more}: use --format csv or a wider terminal\n")
    elif table.has_cut:
        out.write("… stands for more text: use --format csv or a wider terminal\n")
    out.write(results.closing(written))
    return written


def write_csv(results: Results, out: IO[str], delimiter: str = ",") -> int:
    """Comma separated values with a head, which `spaseq.core.events.csv_files` reads back: NULL is empty, an empty text
    is `""`, and a text that says NULL has quotes. A line of one NULL, which would be blank, says NULL."""
    rows = csv.writer(out, delimiter=delimiter, lineterminator=results.line_end)
    is_plain, write, written = frozenset(QUOTED).isdisjoint, rows.writerow, -1
    for written, row in enumerate(results.cells()):  # noqa: B007 - how many, the head left out
        if results.plain or (is_plain(row) and row != _NULL):
            write(row)
        else:
            out.write(delimiter.join(_fields(row, delimiter)) + results.line_end)
    return written


def _fields(row: Sequence[Any], delimiter: str) -> Iterator[str]:
    """The fields of a row as CSV has them."""
    field = io.StringIO()
    rows = csv.writer(field, delimiter=delimiter)  # a field with a sign of its line's end, \r or \n, has quotes
    for cell in row:
        if cell is None:
            yield "" if len(row) > 1 else "NULL"
        elif cell in QUOTED:
            yield f'"{cell}"'
        else:
            rows.writerow([cell])
            yield field.getvalue().removesuffix("\r\n")
            field.seek(0)
            field.truncate()


def write_tsv(results: Results, out: IO[str]) -> int:
    """Tab separated values with a head."""
    return write_csv(results, out, "\t")


def write_jsonl(results: Results, out: IO[str]) -> int:
    """A JSON object a line."""
    written = 0
    for line in results.lines():
        out.write(line + "\n")
        written += 1
    return written


def write_json(results: Results, out: IO[str]) -> int:
    """One array of the objects of `jsonl`."""
    written = 0
    try:
        for record in results.objects():
            out.write(f"{',' if written else '['}\n  {_JSON(record)}")
            written += 1
    except BaseException:
        out.write("\n]\n" if written else "")  # the results so far can be read
        raise
    out.write("\n]\n" if written else "[]\n")
    return written


def write_count(results: Results, out: IO[str]) -> int:
    """The number of results, as cheaply as it can be had."""
    count = results.count()
    out.write(f"{count}\n")
    return count


def write_parquet(results: Columnar, out: BinaryIO) -> int:
    """The columns of the results. Whatever ends them early, those before can be read if `out` can be written."""
    import pyarrow.parquet as pq

    tables, written = results.tables(), 0
    first = next(tables)
    with unbroken(_yes):
        writer = pq.ParquetWriter(out, first.schema)
    try:
        for table in chain((first,), tables):
            if len(table):
                with unbroken(_yes):
                    writer.write_table(table)
            written += len(table)
    finally:
        with unbroken(_yes):
            writer.close()
    return written


def _yes() -> bool:
    """A file is written, which takes no reader."""
    return True
