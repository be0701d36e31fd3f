"""The times of events: the columns that hold them, and their values in nanoseconds; and the types, which must be
present.

A `TimestampAssigner` reads the tables of one stream and gives `Part`s: tables with their times. If no times were given
and the query needs them, the error names the columns that may hold them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.blocks import check_names
from spaseq.core.events.columns import Instant, MixedColumn, NumberColumn, TextColumn, TimeColumn, column_of, text_array
from spaseq.core.events.options import EventOptions, TextForm
from spaseq.core.events.time import decimal_times, is_date, parse_time, time_by_form, unit_nanoseconds
from spaseq.core.slips import did_you_mean

TIME_COLUMNS: Final = ("time", "timestamp")
"""The columns that times are read from if the caller names none, the first that is there."""
_LOOKED_AT: Final = 1000
"""Rows of a table that are looked at for dates."""
_SHOWN: Final = 6
_NAME: Final = re.compile(
    r"(?:.*[_\-. ])?(?:t|ts|times?|timestamp|date|datetime|epoch|at|when|created|occurred)(?:[_\-. ]?[mun]?s)?"
    r"|.*(?:time|timestamp|datetime)",
    re.IGNORECASE,
)
"""Names that columns of times have; of these also numbers count."""
INDEX: Final = "index"
"""The column of a pandas frame's index of times that has no name."""
_TYPE_LIKE: Final = frozenset(("event_type", "eventtype", "event_kind", "kind"))
"""Columns besides `type` that may hold the types of events, in small letters."""
_BY_TURNS: Final = (
    'no stream has times, so their events are taken by turns, the first of each first (time="COLUMN" names what holds '
    'times; time_from="arrival" if that is meant)'
)
_FEW_TYPES: Final = 20
"""A column with more different texts is hardly one of types."""
_CHUNKS: Final = 16
"""Of the events that wait: each push adds one, and Arrow's calls take time for each."""


@dataclass(slots=True)
class Part:
    """Some events of one stream, in order: `table` and int64 `times`."""

    table: pa.Table
    times: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def between(self, start: int, end: int) -> Part:
        return Part(self.table.slice(start, end - start), self.times[start:end])

    def take(self, rows: np.ndarray | slice) -> Part:
        """Some rows; nothing is copied of a slice."""
        if isinstance(rows, slice):
            return self.between(rows.start, rows.stop)
        return Part(self.table.take(rows), self.times[rows])

    def packed(self) -> Part:
        """The same part, in one piece."""
        many = self.table.num_columns and self.table.column(0).num_chunks > _CHUNKS
        return Part(self.table.combine_chunks(), self.times) if many else self


class TimestampAssigner:
    """Gives the events of one stream their times, and checks that they have types, if the query names any.

    * `records`: the number of events it has seen.
    * `column`: the column of their times, None for arrival; `known`: True once that is decided, by the first events.
    * `iso`: True if some time was a date; `plain`: True if some was a number.
    * `timed`: the clause or option that needs times, for errors.
    * `head` gives the first events with all columns, or None.
    * `types`: the event types that the query names; None if they are not known.
    * `clocks`: those of all streams by name, of which all have times, or none has.
    * `guessed`: a line for each assumption that no option stated and that the answer depends on.
    """

    def __init__(
        self,
        options: EventOptions,
        source: str,
        timed: str = "",
        head: Callable[[], pa.Table | None] = lambda: None,
        clocks: Mapping[str, TimestampAssigner] = MappingProxyType({}),
        types: Collection[str] | None = None,
    ) -> None:
        self.options = options
        self.source = source
        self.timed = timed or ("lateness" if options.lateness else "")
        self.head = head
        self.clocks = clocks
        self.types = types
        self.records: int = 0
        self._before: int = 0
        self.column: str | None = None
        self.known: bool = False
        self.iso: bool = False
        self.plain: bool = False
        self.guessed: tuple[str, ...] = ()

    def choose(self, table: pa.Table) -> None:
        """Find the column of times by the first events, or by their columns alone. Raises `EventError` for events
        without types. Raises `OptionError` if they have no times and `timed` needs them, or if other streams do have
        times."""
        if self.known:
            return
        self._check_type(table)
        column = self._choose(table)
        if column is None and (self.guesses or self._all_may_have_times()):
            whole = self.head()
            whole = table if whole is None else whole
            column = self._guess(whole)
            if column is None:
                raise no_times(self.timed, self.source or "<events>", whole, self.options.time_format)
        for other, clock in self.clocks.items():
            if clock.known and (clock.column is None) != (column is None):
                own = next((name for name, clock in self.clocks.items() if clock is self), "") or self.source
                if column is None:
                    raise unlike_clocks(other, own, table)
                raise unlike_clocks(own, other, clock.head())
        self.column, self.known = column, True

    @property
    def guesses(self) -> bool:
        """True if the column of times is guessed if none has the usual name, because the query needs times."""
        return self.options.time is None and not self.options.counts and bool(self.timed)

    def _guess(self, table: pa.Table) -> str | None:
        """The only column that may hold times; None if there is none, or several."""
        likely = time_candidates(table, self.options.time_format)
        return likely[0] if len(likely) == 1 and likely[0].lower() != "t" else None  # which may be a temperature

    def _all_may_have_times(self) -> bool:
        """True if each of several streams, whose events need an order, has times or a column that is guessed."""
        if len(self.clocks) < 2 or self.options.time is not None or self.options.counts:
            return False
        return all(clock._has_times for clock in self.clocks.values())

    @functools.cached_property
    def _has_times(self) -> bool:
        whole = self.head()
        return whole is not None and (self._choose(whole) or self._guess(whole)) is not None

    @property
    def needs_types(self) -> bool:
        """True if an event without a column of types is an error."""
        named = self.types is None or len(self.types) > 0
        return self.options.in_columns and (named or self.options.type_column is not None)

    def state(self) -> tuple[int, str | None, bool, bool]:
        """The progress, as plain values."""
        return self.records, self.column, self.known, self.iso

    def restore(self, state: tuple[int, str | None, bool, bool]) -> None:
        """The opposite of `state`."""
        self.records, self.column, self.known, self.iso = state

    def enter(self, source: str) -> None:
        """The next events are of this file: errors name it, and count its events."""
        if source != self.source:
            self.source, self._before = source, self.records

    def record(self, row: int) -> int:
        """The number that errors give the event of a row that is read next."""
        return self.records - self._before + row + 1

    def read(self, table: pa.Table) -> Part:
        """The events with their times. `EventError` for one without a time or a type; errors as of `choose`."""
        self._check_type(table)
        self.choose(table)
        count = table.num_rows
        if self.column is None:
            self._check_timeless(table)
            places = np.arange(self.records, self.records + count, dtype=np.int64)
            times = places * self.options.step
        else:
            times = self._times(table, self.column)
        if not self.records:
            self.guessed = tuple(self._guesses(table))
        self.records += count
        return Part(table, times)

    def _guesses(self, table: pa.Table) -> Iterator[str]:
        """`guessed`, by the first events."""
        if self.options.type_column is None and self.options.in_columns:
            like = [name for name in table.column_names if name.lower() in _TYPE_LIKE]
            if "type" not in table.column_names:
                yield _note_without_types(like[0] if like else "COLUMN")
            elif like:
                yield f'types are read from the column type (type_column="{like[0]}" reads another one)'
        if self.column is None:
            if self.options.counts:
                return
            found = time_candidates(table, self.options.time_format)
            likely = [name for name in found if name == INDEX or _NAME.fullmatch(name)]
            if len(self.clocks) > 1:
                yield _BY_TURNS
            elif likely and likely[0].lower() != "t":
                yield f'the query needs no times, so events count in their order (time="{likely[0]}" reads times)'
            return
        unsaid = self.options.time is None
        told = self.timed or self.column not in (self.options.time, *TIME_COLUMNS)
        others: list[str] = []
        if unsaid and told:
            others = [name for name in time_candidates(table, self.options.time_format) if name != self.column]
        unit = self.plain and self.options.time_unit is None
        if told and (unit or others or (unsaid and self.column != TIME_COLUMNS[0])):
            words = [f'time="{others[0] if others else "COLUMN"}"'] * unsaid + ['time_unit="ms"'] * unit
            what = f"times are read from the column {self.column}{', as seconds' if unit else ''}"
            yield f"{what} ({' and '.join(words)} read{'s' * (len(words) == 1)} others)"

    def _check_type(self, table: pa.Table) -> None:
        check_names(table.column_names, self.source)
        if not self.options.in_columns:
            return
        name = self.options.type_column or "type"
        if name in table.column_names:
            if _has_lists(table.schema.field(name).type):
                raise EventError(
                    f"attribute {name} holds lists, and says the type of each event", source=self.source,
                    attribute=name, hint="types are texts; --type-column COLUMN (type_column= in Python) names them",
                )  # fmt: skip
            return
        if not self.needs_types:
            return  # ANY takes events of no type
        names = table.column_names
        hint = did_you_mean(name, names, "{!r}") if self.options.type_column is not None else ""
        hint = hint or self._ways_to_types(table)
        if len(names) == 1 and (sign := next((c for c in ";\t|" if c in names[0]), None)):
            word = "tab" if sign == "\t" else sign
            hint = f'this is one column, and its name has {sign!r}: delimiter="{word}" separates the fields there'
        raise EventError(
            f"no column {name!r}, which would say the type of each event; there are: {listed(names)}",
            source=self.source,
            attribute=name,
            hint=hint,
        )

    def _ways_to_types(self, table: pa.Table) -> str:
        """The hint for events without a column of types, with the column that seems to hold them, if there is one."""
        whole = self.head()
        table = table if whole is None else whole
        one = next(iter(self.types)) if self.types is not None and len(self.types) == 1 else "NAME"
        way = f'type="{one}" gives all events this type'
        found = type_candidate(table, self.types or ())
        if found is None:
            return f'type_column="COLUMN" names the column that holds the types of events; {way}'
        column, values = found
        return f'type_column="{column}" reads the types of events from that column ({listed(values[:_SHOWN])}); {way}'

    def _check_timeless(self, table: pa.Table) -> None:
        """`EventError` for an event with a time behind events that had none, unless the caller has them counted."""
        if self.options.from_arrival or (found := self._choose(table)) is None:
            return
        given = pc.is_valid(table[found].combine_chunks()).to_pylist()
        raise EventError(
            f"this event has a time, in the column {found}, and those before it have none",
            source=self.source,
            record=self.records + 1 + (given.index(True) if True in given else 0),
            counted="event",
            attribute=found,
            hint='all events need times, or none has one; time_from="arrival" counts them all',
        )

    def _choose(self, table: pa.Table) -> str | None:
        if self.options.from_arrival:
            return None
        if self.options.time is None:
            return next((c for c in TIME_COLUMNS if c in table.column_names), None)
        return self.options.time

    def _times(self, table: pa.Table, name: str) -> np.ndarray:
        if (pair := self.options.clock(table.column_names)) is not None:
            table = table.append_column(name, self._join(table, *pair))
        if name not in table.column_names:
            missing = name
            if "," in name:  # of two columns one is there
                parts = [part.strip() for part in name.split(",")]
                missing = next((part for part in parts if part not in table.column_names), name)
            raise EventError(
                f"no column {missing!r} to take times from; there are: {listed(table.column_names)}",
                source=self.source,
                attribute=missing,
                hint=did_you_mean(missing, table.column_names, "{!r}") or "--time COLUMN names it",
            )
        column = column_of(table[name], name, self.source)
        unknown = None if column is None or isinstance(column, TextColumn) else column.known
        match column:
            case NumberColumn() if self.options.time_format is not None:
                raise self._no_time(0, name, "a number", "--time-format is the form of texts; leave it out")
            case NumberColumn(values, known):
                self.plain = True
                times = self._scale(_plain(table[name], column), values, known, name)
            case MixedColumn(values, _):
                times = self._each(values, name)
            case TimeColumn(values, _):
                self.iso = True
                times = values
            case TextColumn(codes, texts):
                times, unknown = self._parse(codes, texts, name), codes >= 0
            case None if table.num_rows == 0:
                return np.zeros(0, np.int64)
            case None:
                times, unknown = np.zeros(table.num_rows, np.int64), np.zeros(table.num_rows, bool)
            case _:
                raise EventError(
                    f"column {name!r} holds true or false, not times",
                    source=self.source,
                    record=self.record(0),
                    counted="event",
                    attribute=name,
                    hint="--time COLUMN names another column",
                )
        if unknown is not None and not unknown.all():
            record = int(np.argmin(unknown))
            raise EventError(
                "this event has no time", source=self.source, record=self.record(record), counted="event",
                attribute=name,
                hint=f"every event needs a value in column {name!r}; --time COLUMN names another one",
            )  # fmt: skip
        return times

    def _join(self, table: pa.Table, date: str, clock: str) -> pa.ChunkedArray:
        """Dates and times of day as texts of both, with a blank between them."""
        blank = text_array([" "])[0]  # Arrow would import pandas to make a scalar of a text
        return pc.binary_join_element_wise(self._as_text(table, date), self._as_text(table, clock), blank)

    def _as_text(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """The texts, dates or times of day of a column as texts. `EventError` for other values."""
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        if pa.types.is_timestamp(kind):
            dates = column.cast(pa.date32(), safe=False)
            if pc.all(pc.equal(dates.cast(kind), column)).as_py() is not False:
                column, kind = dates, pa.date32()
        if not (kind == pa.string() or pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_null(kind)):
            raise EventError(
                f"column {name!r} holds values of type {kind}, and times are joined of a date and a time of day",
                source=self.source, attribute=name, hint=f'column_types="{name}=TEXT" reads CSV as it is written',
            )  # fmt: skip
        return column.cast(pa.string())

    def _scale(self, raw: pa.ChunkedArray, values: np.ndarray, known: np.ndarray | None, name: str) -> np.ndarray:
        """Numbers in the time unit as ns: integers exactly, others as their shortest decimal notation says.

        An arbitrary value for a number that is not `known`.
        """
        scale = unit_nanoseconds(self.options.unit)
        whole = values.dtype == np.int64 or bool((np.trunc(values) == values).all())
        if not whole or pa.types.is_decimal(raw.type):
            times, done = np.zeros(len(values), np.int64), np.zeros(len(values), bool)
            if pa.types.is_float64(raw.type):
                times, done = decimal_times(values, scale)
            rest = ~done if known is None else known & ~done
            if rest.any():
                texts = pc.dictionary_encode(pc.cast(raw, pa.string()).combine_chunks())
                codes = np.where(rest, np.asarray(pc.fill_null(texts.indices, -1)), -1)
                times = np.where(done, times, self._parse(codes, texts.dictionary, name))
            return times
        beyond = ((1 << 63) - 1) // scale + 1
        far = np.flatnonzero((values >= beyond) | (values <= -beyond))
        if len(far):
            raise EventError(
                f"the time {values[far[0]]} is outside those that can be held (1677 to 2262)", source=self.source,
                record=self.record(int(far[0])), counted="event",
                hint="is the unit right? --time-unit is s, ms, us or ns",
            )  # fmt: skip
        return values.astype(np.int64) * scale

    def _each(self, values: Sequence[Any], name: str) -> np.ndarray:
        """The times of values of several kinds; an arbitrary value for a row without one."""
        times, codes = np.zeros(len(values), np.int64), np.full(len(values), -1)
        texts: list[str] = []
        for row, value in enumerate(values):
            if isinstance(value, Instant):
                self.iso, times[row] = True, int(value)
            elif isinstance(value, bool | tuple):
                raise self._no_time(row, name, "a truth value" if isinstance(value, bool) else "a list")
            elif value is not None:
                codes[row] = len(texts)
                texts.append(value if isinstance(value, str) else repr(value))
        return np.where(codes < 0, times, self._parse(codes, pa.array(texts, pa.string()), name))

    def _no_time(self, row: int, name: str, what: str, hint: str = "--time COLUMN names another column") -> EventError:
        return EventError(
            f"{name!r} is {what} here, and times are taken from it",
            source=self.source,
            record=self.record(row),
            counted="event",
            attribute=name,
            hint=hint,
        )

    def parse(self, text: str) -> int:
        """The time of a text, ns. Raises `EventError` without a source."""
        form = self.options.time_format
        return parse_time(text, self.options.unit) if form is None else time_by_form(text, form)

    def _parse(self, codes: np.ndarray, texts: pa.StringArray, name: str) -> np.ndarray:
        """The times of rows that hold a text each; an arbitrary value for code -1."""
        values, form = np.zeros(len(texts) + 1, np.int64), self.options.time_format
        used = np.zeros(len(texts) + 1, bool)
        used[codes] = True
        for index, text in enumerate(texts.to_pylist()):
            if not used[index]:
                continue
            try:
                values[index] = self.parse(text)
                dated = form is not None or text.strip()[4:5] == "-"
                self.iso, self.plain = self.iso or dated, self.plain or not dated
            except EventError as error:
                record = self.record(int(np.argmax(codes == index)))
                others = "--time-format '%d.%m.%Y %H:%M' reads other forms, --time COLUMN names another column"
                hint = f"{error.hint}; {others}, --time-from arrival takes none"
                raise EventError(
                    error.problem, source=self.source, record=record, counted="event", attribute=name, hint=hint
                ) from None
        return np.asarray(values[codes])


def _plain(raw: pa.ChunkedArray, column: NumberColumn) -> pa.ChunkedArray:
    """The numbers as Arrow has them; doubles if they are whole numbers and decimals."""
    if not pa.types.is_union(raw.type):
        return raw
    return pa.chunked_array([pa.array(column.values, mask=None if column.known is None else ~column.known)])


def _has_lists(kind: pa.DataType) -> bool:
    kinds = [field.type for field in kind] if pa.types.is_union(kind) else [kind]
    return any(pa.types.is_list(k) or pa.types.is_large_list(k) or pa.types.is_fixed_size_list(k) for k in kinds)


def listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "") if names else "none"


def form_of(options: EventOptions) -> TextForm:
    """The form of text files, with the columns that times may be taken from."""
    return options.form(TIME_COLUMNS if options.time is None else (options.time,))


def check_columns(form: TextForm) -> None:
    """`EventError` if the caller gave a kind to a column that no CSV file has, `OptionError` if no file is of CSV."""
    if form.column_types and not form.columns:
        raise OptionError(
            "--column-types gives kinds to columns of CSV, and no events are read from CSV",
            "CAST(x.id AS TEXT) makes a text of a value",
        )
    for name in form.column_types:
        if name not in form.columns:
            there = listed(list(form.columns))
            raise EventError(
                f"no column {name!r}, to which --column-types gives a kind; there are: {there}",
                source=next(iter(form.columns.values())), attribute=name, hint=did_you_mean(name, form.columns, "{!r}"),
            )  # fmt: skip


def read_by(options: EventOptions) -> set[str]:
    """The columns that are looked at for types and times."""
    times = () if options.from_arrival else TIME_COLUMNS if options.time is None else (options.time,)
    parts = [part.strip() for time in times for part in time.split(",")]
    return {*times, *parts, options.type_column or "type"} if options.in_columns else {*times, *parts}


# -- types that nobody gave


def _note_without_types(column: str) -> str:
    """The note for events without types, if the query names none."""
    return f'no column type: events are of no type, and ANY takes them (type_column="{column}" reads types)'


def type_candidate(table: pa.Table, types: Collection[str]) -> tuple[str, list[str]] | None:
    """The column that seems to hold the types of events, and the different texts in its first rows; None if there is
    none.

    That is the first column with one of `types`, else one with the name of a type, else the only column with few texts.
    O(columns).
    """
    head = table.slice(0, _LOOKED_AT)
    texts = {name: _few_texts(head, name) for name in dict.fromkeys(table.column_names)}
    texts = {name: values for name, values in texts.items() if values}
    for name, values in texts.items():
        if not set(types).isdisjoint(values):
            return name, values
    like = [name for name in texts if name.lower() in _TYPE_LIKE]
    like = like[:1] or [name for name, values in texts.items() if len(values) < head.num_rows]
    return (like[0], texts[like[0]]) if len(like) == 1 else None


def _few_texts(table: pa.Table, name: str) -> list[str]:
    """The different texts of a column; none if it has others values, or many."""
    if table.column_names.count(name) > 1:
        return []
    with suppress(EventError):
        column = column_of(table[name], name)
        if isinstance(column, TextColumn):
            used = [column.texts[code].as_py() for code in np.unique(column.codes) if code >= 0]
            few = len(used) <= _FEW_TYPES and not all(map(is_date, used))
            return used if few else []
    return []


# -- times that nobody gave


def time_candidates(table: pa.Table, form: str | None = None) -> list[str]:
    """The columns that may hold times: those of dates, by type or by their texts, then numbers with the name of a time.
    `form`: of texts that are times, as of `datetime.strptime`; None for xsd:dateTime. Looks at the first rows.
    O(columns)."""
    dated, named = [], []
    for name in dict.fromkeys(table.column_names):
        kind = _kind(table.slice(0, _LOOKED_AT), name, form)
        if kind == "dates":
            dated.append(name)
        elif kind == "numbers" and _NAME.fullmatch(name):
            named.append(name)
    return [*sorted(dated, key=lambda name: _NAME.fullmatch(name) is None), *named]


def _kind(table: pa.Table, name: str, form: str | None) -> str:
    """`dates`, `numbers`, or nothing of both; a column without values may be either."""
    if table.column_names.count(name) > 1:
        return ""
    with suppress(EventError):
        match column_of(table[name], name):
            case TimeColumn():
                return "dates"
            case TextColumn(codes, texts):
                used = {texts[code].as_py() for code in set(codes.tolist()) if code >= 0}
                return "dates" if used and all(_is_time(text, form) for text in used) else ""
            case MixedColumn(values, _):
                return "dates" if all(v is None or (isinstance(v, str) and is_date(v)) for v in values) else ""
            case NumberColumn():
                return "numbers"
            case None:
                kind = table.schema.field(name).type
                dates = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
                return "dates" if dates else "numbers"
    return ""


def _is_time(text: str, form: str | None) -> bool:
    if form is None:
        return is_date(text)
    with suppress(EventError):
        time_by_form(text, form)
        return True
    return False


def counted_hint(word: str, candidates: Iterable[str], *, what: str, placeholder: str) -> str:
    """The hint with the options that take one of the candidates, or count events instead. `word`: the option that names
    a clock; `what`: the noun for a candidate.
    """
    first, *others = candidates = list(candidates)[:_SHOWN] or [placeholder]
    if first == placeholder:
        taken = f'{word}="{placeholder}" names the {what} that holds times'
    else:
        also = f" (or {', '.join(others)})" if others else ""
        taken = f'{word}="{first}" takes them from that {what}{also}'
    return f'{taken}; time_from="arrival" counts the events instead, 1 ms apart'


def no_times(timed: str, source: str, table: pa.Table, form: str | None = None) -> OptionError:
    """Times are needed by `timed`, a clause or an option, and the events of `source` have none that were named."""
    return OptionError(
        f"{timed} needs the times of the events, and {source} has no column {' or '.join(TIME_COLUMNS)}; "
        f"there are: {listed(table.column_names)}",
        counted_hint("time", time_candidates(table, form), what="column", placeholder="COLUMN"),
    )


def unlike_clocks(timed: str, timeless: str, table: pa.Table | None) -> OptionError:
    """One stream has times, the other has none; `table` is some of its events."""
    candidates = [] if table is None else time_candidates(table)
    return OptionError(
        f"{timed} has times and {timeless} has none: their order is unknown",
        counted_hint("time", candidates, what="column", placeholder="COLUMN"),
    )
