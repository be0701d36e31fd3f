"""The rows that SELECT computes of matches, in the shapes that writers of formats ask for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ceql.cli.output import FoundMatches, Tables, as_json
from spaseq.core.events import format_time, text_array
from spaseq.core.events.time import clock_duration, iso_duration
from spaseq.tools.command.writers import QUOTED

if TYPE_CHECKING:
    import pyarrow as pa


class FoundRows(FoundMatches):
    """The rows of the first `limit` matches: exactly the columns that SELECT computes, in every format."""

    ruled = True

    def __init__(self, matches: Tables, limit: int | None, unit: str, *, live: bool = False) -> None:
        super().__init__(matches, limit, unit, live=live)
        self.spare = 0
        self.right: Sequence[int] = ()

    def objects(self) -> Iterator[dict[str, Any]]:
        """A row as JSON: times as xsd:dateTime, durations as xsd:dayTimeDuration, numbers that JSON lacks as texts."""
        for table in self._rows():
            yield from self._objects(_with_texts(table, iso_duration))

    def _objects(self, table: pa.Table) -> Iterator[dict[str, Any]]:
        for row in table.to_pylist():
            yield {name: as_json(value) for name, value in row.items()}
            self.written += 1

    def cells(self) -> Iterator[Sequence[Any]]:
        """Rows of cells. A list is a JSON array."""
        yield list(self._matches.columns)
        for table in self._rows():
            table = _with_texts(table, iso_duration)
            self.plain = table.num_columns > 1 and _is_plain(table)
            for row in self._objects(table):
                yield [_cell(value) for value in row.values()]

    def texts(self) -> Iterator[Sequence[str]]:
        """As `cells`, with NULL by its name; numbers at the right."""
        import pyarrow as pa

        tables = self._rows()
        first = next(tables, None)
        if first is not None:
            numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_duration)
            self.right = [place for place, kind in enumerate(first.schema.types) if any(test(kind) for test in numbers)]
        yield list(self._matches.columns)
        while first is not None:
            for row in _with_texts(first, clock_duration).to_pylist():
                yield ["NULL" if value is None else str(_cell(as_json(value))) for value in row.values()]
                self.written += 1
            first = next(tables, None)

    def closing(self, written: int) -> str:
        """The number of matches, or of rows if each stands for several."""
        if not self._matches.by_group:
            return super().closing(written)
        return f"{written:,} row{'' if written == 1 else 's'}\n"

    def _rows(self) -> Iterator[pa.Table]:
        return (table.rows(natural=True) for table in self._tables())


def results_of(matches: Tables, limit: int | None, unit: str, *, live: bool = False) -> FoundMatches:
    """The results of a query: rows if SELECT computes columns, else matches. `live`: they come as events do."""
    return (FoundRows if matches.columns else FoundMatches)(matches, limit, unit, live=live)


def _with_texts(table: pa.Table, duration: Callable[[int], str]) -> pa.Table:
    """The table with times in UTC and durations as texts."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_duration(kind) or (pa.types.is_timestamp(kind) and kind.tz == "UTC"):
            in_ns = pa.duration("ns") if pa.types.is_duration(kind) else pa.timestamp("ns", "UTC")
            write = duration if pa.types.is_duration(kind) else format_time
            values = table.column(place).cast(in_ns).cast(pa.int64()).to_pylist()
            texts = [None if value is None else write(value) for value in values]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def _is_plain(table: pa.Table) -> bool:
    """As of `Results.plain`. O(rows), in Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    quoted = text_array(QUOTED)
    for column in table.columns:
        kind = column.type
        if pa.types.is_string(kind):
            if pc.any(pc.is_in(column, quoted)).as_py():
                return False
        elif not (pa.types.is_primitive(kind) or pa.types.is_list(kind) or pa.types.is_null(kind)):
            return False
    return True


def _cell(value: Any) -> Any:
    if value is not None and isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value
