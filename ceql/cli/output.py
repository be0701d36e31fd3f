"""The matches of `ceql run` in the shapes that writers of formats ask for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from spaseq.core.errors import EventError
from spaseq.core.events import format_time
from spaseq.core.events.time import unit_nanoseconds
from spaseq.tools.command.writers import Results

if TYPE_CHECKING:
    import pyarrow as pa

    from ceql.results.bindings import Shown
    from ceql.results.matches import MatchTable
    from spaseq.core.events import EventCounters

_WIDTH: Final = 60
_PLACED: Final = ("from", "to", "start", "end", "positions")
"""The columns of a table that a narrow terminal leaves out first, if there are others to read."""


class Tables(Protocol):
    """The members of `ceql.Matches` that writers use."""

    counters: EventCounters

    @property
    def shown(self) -> Shown | None: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def repeats(self) -> bool: ...

    @property
    def by_group(self) -> bool: ...

    def empty(self) -> pa.Table: ...

    def tables(self) -> Iterator[MatchTable]: ...

    def count(self, limit: int | None = None) -> int: ...


class FoundMatches(Results):
    """The first `limit` matches. `unit`: the unit of times that are written as numbers. With `live`, of a stream that
    goes on, the matches that some events complete are out before the next ones are waited for: `out` is the file of the
    writer.

    PERF: one flush for all of these. One for each of 400,000 matches that were there at once: 9.0 µs a match, not 2.3
    (2026-11-26).
    """

    ruled = False

    def __init__(self, matches: Tables, limit: int | None, unit: str, *, live: bool = False) -> None:
        self.live = live
        self.out: Any = None
        self._matches = matches
        self._shown = matches.shown
        self.spare = 0 if self._shown is None else len(_PLACED)
        self._lead = bool(self.spare) + matches.repeats
        self.right = [*([self._lead - 1] if matches.repeats else []), *(i + self._lead for i in range(4))]
        self._limit = limit
        self._unit = unit

    def _tables(self) -> Iterator[MatchTable]:
        if self.live:  # the head is out before the first match is waited for
            self.out.flush()
        for table in _limit(self._matches.tables(), self._limit):
            yield table
            if self.live:
                self.out.flush()

    def _of(self, table: MatchTable) -> Iterator[dict[str, Any]]:
        show = clock(self._matches.counters.iso_times, self._unit)
        ends = (table.matches.start, table.matches.end)
        spans = zip(*(map(show, table.history.times(places).tolist()) for places in ends), strict=True)
        for match, span in zip(table, spans, strict=True):
            record = {"start": match.start, "end": match.end, "positions": list(match.positions),
                      "bindings": match.bindings, "time": list(span)}  # fmt: skip
            if match.silence:
                record["silence"] = match.silence
            if self._shown is not None:
                record["attributes"] = as_json(match.attributes)
            yield record
            self.written += 1

    def objects(self) -> Iterator[dict[str, Any]]:
        """A match as JSON; with valuations, its `attributes` too."""
        for table in self._tables():
            yield from self._of(table)

    def cells(self) -> Iterator[Sequence[Any]]:
        """Rows of cells; positions are separated by blanks. With valuations, each variable v has a column `v`, its
        positions, and columns `v.attribute`, JSON arrays of its events' values. The attributes are those that SELECT
        lists, or all that the events up to the first match have. Raises `EventError` for an attribute that comes
        later."""
        known: list[str] | None = None
        bound = self._columns([])
        head = partial(_head, repeats=self._matches.repeats)
        open_ended = self._shown is not None and None in self._shown.attributes.values()
        if self.live and not open_ended:
            known = []
            yield head(bound)
        for table in self._tables():
            names = [] if table.bindings is None else table.bindings.names(table.history.table)
            if known is None:
                known, bound = names, self._columns(names)
                yield head(bound)
            elif open_ended:
                new = next((name for name in names if name not in known), None)
                if new is not None:
                    raise _unforeseen(f"attribute {new} comes up after the header was written")
            for match in self._of(table):
                row = [match["start"], match["end"], _blanks(match["positions"]) or None, *match["time"]]
                row += [match["silence"]] if self._matches.repeats else []
                row += [_bound_cell(match, variable, name) for variable, name in bound]
                yield row
        if known is None:
            yield head(bound)

    def _columns(self, names: list[str]) -> list[tuple[str, str]]:
        """(variable, "") for the positions of each variable, then (variable, attribute) for its values; `names`: the
        attributes that events have."""
        listed = {} if self._shown is None else self._shown.attributes
        return [
            (variable, name) for variable, some in listed.items() for name in ("", *(names if some is None else some))
        ]

    def texts(self) -> Iterator[Sequence[str]]:
        """With valuations, the first column has the events of each variable."""
        repeats = self._matches.repeats
        yield [*([] if self._shown is None else ["bindings"]), *(["silence"] if repeats else []), *_PLACED]
        for match in self.objects():
            positions = _blanks(match["positions"])
            if len(positions) > _WIDTH:
                positions = f"{positions[: _WIDTH - 20].rsplit(' ', 1)[0]} … ({len(match['positions'])} events)"
            row = [str(match["silence"])] if repeats else []
            row += [*map(str, match["time"]), str(match["start"]), str(match["end"]), positions]
            yield row if self._shown is None else ["  ".join(self._bindings(match)), *row]

    def _bindings(self, match: dict[str, Any]) -> Iterator[str]:
        """`x=0,2` for the positions of x and, for attributes that SELECT lists, `x.price=3,4`."""
        assert self._shown is not None
        for variable, taken in match["bindings"].items():
            yield f"{variable}={','.join(map(str, taken))}"
            for name in self._shown.attributes[variable] or ():
                values = [event.get(name, "NULL") for event in match["attributes"][variable]]
                yield f"{variable}.{name}={','.join(map(str, values))}"

    def closing(self, written: int) -> str:
        """The number of matches."""
        return f"{written:,} match{'' if written == 1 else 'es'}\n"

    def tables(self) -> Iterator[pa.Table]:
        """The columns of `Matches.to_arrow`. `EventError` for a column that the first table did not have, or with
        values of another type there."""
        schema: pa.Schema | None = None
        for table in self._tables():
            columns = table.to_arrow(self._matches.counters.iso_times)
            schema = schema or columns.schema
            yield columns if columns.schema == schema else _fit(columns, schema)
            self.written += len(table)
        if schema is None:
            yield self._matches.empty()

    def count(self) -> int:
        """The number of matches, none of which is enumerated."""
        return self._matches.count(self._limit)


def as_json(value: Any) -> Any:
    """A value for JSON: times as xsd:dateTime, numbers that JSON lacks (NaN, infinity) as text."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [as_json(part) for part in value]
    if isinstance(value, dict):
        return {key: as_json(part) for key, part in value.items()}
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)


def _limit(tables: Iterable[MatchTable], limit: int | None) -> Iterator[MatchTable]:
    """The tables cut to the first `limit` matches; no batch of events after them is evaluated."""
    left = limit
    for table in tables:
        if left is not None and len(table) >= left:
            if left:
                yield table[:left]
            return
        left = None if left is None else left - len(table)
        yield table


def clock(iso: bool, unit: str) -> Callable[[int], Any]:
    """The function that shows a time: as xsd:dateTime if the events had such times, else as a number in `unit`."""
    if iso:
        return format_time
    scale = unit_nanoseconds(unit)
    return lambda ns: ns // scale if ns % scale == 0 else ns / scale


def _fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
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


def _head(bound: list[tuple[str, str]], *, repeats: bool) -> list[str]:
    columns = [f"{variable}.{name}" if name else variable for variable, name in bound]
    return ["start", "end", "positions", "start_time", "end_time", *(["silence"] if repeats else []), *columns]


def _bound_cell(match: dict[str, Any], variable: str, name: str) -> str | None:
    """The positions of a variable, None if it took no event; or the values of one attribute of its events."""
    if not name:
        return _blanks(match["bindings"].get(variable, ())) or None
    return json.dumps([event.get(name) for event in match["attributes"].get(variable, ())], ensure_ascii=False)


def _blanks(positions: Iterable[int]) -> str:
    return " ".join(map(str, positions))
