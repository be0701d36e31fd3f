"""Options for reading events: the times of tuples and graphs, their order, and the columns of tuples."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Final, Literal, TypedDict, Unpack

from spaseq.core.errors import OptionError
from spaseq.core.events.time import UNITS, check_form, parse_duration
from spaseq.core.kinds import KINDS, kind_hint

ARRIVAL: Final = "arrival"
_SIGNS: Final[dict[str, dict[str | None, str]]] = {
    "delimiter": {"tab": "\t", "\\t": "\t"},
    "quote": {"none": ""},
}
"""Words for signs that are hard to write."""
_EXAMPLES: Final = {"delimiter": "';', '|' or tab", "quote": "\", ' or none"}
_NO_SIGNS: Final = "\r\n\0 \ufeff0123456789.-+"
UNSAID: Final = ("time_unit", "interval")
"""Options of which None is the same as none given."""
Duration = str | int | datetime.timedelta
"""As the library takes it: a text such as "5s", or nanoseconds, or a timedelta."""


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event that came too late, and was dropped.

    `event`: a dict of its attributes that are not NULL in CEQL, a `GraphEvent` in SPAseq. `time`: ns. `behind`: the ns
    that its time is before the time that the stream had come to. That is the greatest time of the events before it, or
    the time that the stream was advanced to. `stream`: its name, empty if it has none. `source`, `record`: its place.
    """

    event: Any
    time: int
    behind: int
    stream: str
    source: str
    record: int


OnLate = Callable[[LateEvent], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOptions:
    """Options for the times of events, and for the order in which events may come.

    * `time`: the column name or the predicate IRI that holds an event's time. None: the reader's default.
    * `time_unit`: `s`, `ms`, `us` or `ns`, of times that are numbers. None: `s`, as a guess. Use the property `unit`.
    * `interval`: ns between two events whose times are taken from arrival: the k-th is at k times that. None: 1 ms, if
      the query needs no times. Use the property `step`.
    * `lateness`: the ns by which an event may come after a later one; it is put in order. `late`: the action for one
      that comes later than that: `"error"`, or `"drop"` it and count (`spaseq.core.events.reorder`).
    * `on_late`: a function that is called with each event that is dropped so, as a `LateEvent`, in order of arrival. It
      is no part of the state of an evaluation, so a snapshot does not have it.
    """

    time: str | None = None
    time_unit: str | None = None
    interval: int | None = None
    lateness: int = 0
    late: Literal["error", "drop"] = "error"
    on_late: OnLate | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        one_of("--time-unit", self.unit, *UNITS)
        one_of("--late", self.late, "error", "drop")
        if self.on_late is not None:
            if not callable(self.on_late):
                raise OptionError(
                    f"on_late cannot be a {type(self.on_late).__name__}", "it is a function of a LateEvent"
                )
            if self.late != "drop":
                raise OptionError("on_late takes events that are dropped, and late is error", "leave late out")
        text_of("--time", self.time)
        for option, length in (("--interval", self.step), ("--lateness", self.lateness)):
            if type(length) is not int:
                raise OptionError(f"{option} {length!r}: not a number of nanoseconds")
            if length < 0:
                raise OptionError(f"{option} {length} ns: must not be negative")

    @property
    def unit(self) -> str:
        """The unit of times that are numbers."""
        return "s" if self.time_unit is None else self.time_unit

    @property
    def step(self) -> int:
        """ns between two events whose times are taken from arrival."""
        return 1_000_000 if self.interval is None else self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class TextForm:
    """The form of text files: as the caller says, or None for what the reader guesses.

    * `delimiter`: the byte between the fields of CSV; `quote`: the one around a field, "" if there is none.
    * `decimal`: `.` or `,`, in the numbers of CSV. With `,` points may stand between groups of three digits.
    * `encoding`: of CSV and JSON Lines; None is UTF-8.
    * `time_format`: as of `datetime.strptime`, of the texts that are times; None is ISO 8601.
    * `times`: the columns that times may be taken from.
    * `column_types`: a word for the kind of each column of CSV that the caller gave one (`spaseq.core.kinds`).
    * `guesses`: a line for each guess of a reader; readers add to it.
    * `columns`: the columns of CSV files that were read, and the first file with each; readers add to it.
    """

    delimiter: str | None = None
    quote: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    time_format: str | None = None
    times: tuple[str, ...] = ()
    column_types: Mapping[str, str] = field(default_factory=dict)
    guesses: list[str] = field(default_factory=list, compare=False)
    columns: dict[str, str] = field(default_factory=dict, compare=False)


class TupleWords(TypedDict, total=False):
    """The words of `EventOptions.parse`. `time_column` is an older name of `time`."""

    type_column: str | None
    type: str | None
    time: str | None
    time_column: str | None
    time_from: str | None
    time_unit: str | None
    interval: Duration | None
    lateness: Duration
    late: str
    on_late: OnLate | None
    delimiter: str | None
    decimal: str | None
    quote: str | None
    encoding: str | None
    time_format: str | None
    column_types: Mapping[str, str] | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions(TimeOptions):
    """Options for reading tuples from columns.

    * `type_column`: the column that holds the type of each event; None means `type`.
    * `type`: the one type of all events, which no column holds then.
    * `by_type`: the name of each stream is the type of its events.
    * `time`: None means `time`, else `timestamp`, else arrival, the place of the event in its source, if nothing needs
      times. `date,clock` are two columns, of dates and of times of day, unless one column has this name.
    * `from_arrival`: the place, whatever columns there are.
    * `delimiter`, `decimal`, `quote`, `encoding`, `time_format`, `column_types`: as of `TextForm`; `quote` may be
      `none`, and the delimiter `tab`.
    """

    type_column: str | None = None
    type: str | None = None
    by_type: bool = False
    from_arrival: bool = False
    delimiter: str | None = None
    decimal: str | None = None
    quote: str | None = None
    encoding: str | None = None
    time_format: str | None = None
    column_types: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        TimeOptions.__post_init__(self)
        text_of("--type-column", self.type_column)
        if self.type is not None:
            type_name("--type", self.type)
        if self.type is not None and self.type_column is not None:
            raise OptionError("--type and --type-column contradict each other", "give one of them")
        if self.by_type and not (self.type is None is self.type_column):
            option = "--type-column" if self.type is None else "--type"
            raise OptionError(f"{option} does not go with inputs that have a type each", "leave it out")
        from_arrival(self.time, ARRIVAL if self.from_arrival else None)
        delimiter, quote = self._sign("delimiter"), self._sign("quote")
        if self.decimal is not None:
            one_of("--decimal", self.decimal, ".", ",")
        if self.decimal == "," == delimiter:
            raise OptionError("--decimal , and --delimiter , contradict each other", "one sign cannot be both")
        if delimiter is not None and delimiter == quote:
            raise OptionError("--delimiter and --quote are one sign", "give two different ones")
        encoding, time_format = text_of("--encoding", self.encoding), text_of("--time-format", self.time_format)
        if encoding is not None:
            _check_encoding(encoding)
        if time_format is not None:
            check_form(time_format)
        _check_kinds(self.column_types)

    def _sign(self, word: str) -> str | None:
        """The sign that `delimiter` or `quote` names, "" for no quote. `OptionError` if it is no single sign."""
        value = text_of(f"--{word}", getattr(self, word))
        value = _SIGNS[word].get(value, value)
        if value and (len(value) > 1 or not value.isascii() or value in _NO_SIGNS):
            problem = f"--{word} {value!r}: not a sign that can be one"
            raise OptionError(problem, f"one sign, for example {_EXAMPLES[word]}")
        if value == "" and word == "delimiter":
            raise OptionError("--delimiter is empty", f"one sign, for example {_EXAMPLES[word]}")
        return value

    def form(self, times: tuple[str, ...]) -> TextForm:
        """The form of text files; `times` are the columns that times may be taken from."""
        return TextForm(delimiter=self._sign("delimiter"), quote=self._sign("quote"), decimal=self.decimal,
                        encoding=self.encoding, time_format=self.time_format, times=times,
                        column_types=self.column_types or {})  # fmt: skip

    @staticmethod
    def parse(**words: Unpack[TupleWords]) -> EventOptions:
        """Options from the words of the library and of the command line. Raises `OptionError` for values that cannot be
        used.
        """
        given: dict[str, Any] = {**words}
        known_words(given, TupleWords.__annotations__)
        older, time = given.pop("time_column", None), given.pop("time", None)
        if older is not None and time is not None:
            raise OptionError("time= and time_column= are two names of one option", "give one of them")
        given["time"] = time = older if time is None else time
        given["from_arrival"] = from_arrival(time, given.pop("time_from", None))
        drop_late(given)
        given = {word: value for word, value in given.items() if value is not None or word not in UNSAID}
        for word in given.keys() & {"interval", "lateness"}:
            given[word] = length_of(f"--{word}", given[word])
        if isinstance(given.get("column_types"), str):
            given["column_types"] = _kinds_by_name(given["column_types"])
        return EventOptions(**given)

    def clock(self, names: Collection[str]) -> tuple[str, str] | None:
        """The columns of the date and of the time of day, if `time` names two of these columns: `date,clock`."""
        return None if self.time is None else two_columns(self.time, names)

    def typed_by(self, streams: tuple[str, ...]) -> str | tuple[str, ...]:
        """The column of types; or, if no column says them, the type of the events of each of `streams`."""
        if self.by_type:
            return streams
        return (self.type,) * len(streams) if self.type is not None else self.type_column or "type"

    @property
    def typing(self) -> dict[str, str | None]:
        """The words for the types of events."""
        return {"type_column": self.type_column, "type": self.type}

    @property
    def in_columns(self) -> bool:
        """True if the type of an event is the value of a column."""
        return self.type is None and not self.by_type

    @property
    def counts(self) -> bool:
        """True if the caller said that events without times are to be counted."""
        return self.from_arrival or self.interval is not None


def two_columns(time: str, names: Collection[str]) -> tuple[str, str] | None:
    """The two of `names` that `date,clock` is, unless it is one of them."""
    date, _, clock = (part.strip() for part in time.partition(","))
    return (date, clock) if time not in names and date in names and clock in names else None


def _check_encoding(name: str) -> None:
    """`OptionError` if Python has no such encoding of texts."""
    try:
        b"".decode(name)
        "".encode(name)
    except (LookupError, ValueError):
        hint = "encodings have Python's names: utf-8, utf-16, latin-1, windows-1252, shift_jis, …"
        raise OptionError(f"--encoding {name}: there is no such encoding", hint) from None


def _kinds_by_name(text: str) -> dict[str, str]:
    """The kinds of columns in `id=TEXT, price=FLOAT`. `OptionError` if this is not its form."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, word = (piece.strip() for piece in part.rpartition("="))
        if not name or not word:
            raise OptionError(f"--column-types {part.strip()!r}: not NAME=KIND", "for example id=TEXT, price=FLOAT")
        if name in found:
            raise OptionError(f"--column-types names {name} twice", "a column has one kind")
        found[name] = word
    return found


def _check_kinds(given: Any) -> None:
    """`OptionError` if `given`, which is not None, has no word of a kind for each name."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        problem = f"--column-types cannot be a {type(given).__name__}"
        raise OptionError(problem, 'it is a dict such as {"id": "TEXT"}, or a text: "id=TEXT, price=FLOAT"')
    for name, word in given.items():
        if not isinstance(name, str) or not isinstance(word, str):
            odd = word if isinstance(name, str) else name
            raise OptionError(f"--column-types: {odd!r} is not a text", 'it is a dict such as {"id": "TEXT"}')
        if word.upper() not in KINDS:
            raise OptionError(f"--column-types {name}={word}: no kind of values", kind_hint(word))


def from_arrival(time: str | None, time_from: str | None) -> bool:
    """True if --time-from takes times from arrival. Raises `OptionError` if --time is given too."""
    if text_of("--time-from", time_from) not in (None, ARRIVAL):
        raise OptionError(f"--time-from {time_from}: no such clock", "use --time-from arrival, or --time")
    if time is not None and time_from is not None:
        raise OptionError("--time and --time-from arrival contradict each other", "give one of them")
    return time_from is not None


def drop_late(given: dict[str, Any]) -> None:
    """Set the word `late`, if it is not given, as `on_late` needs it."""
    if given.get("on_late") is not None:
        given.setdefault("late", "drop")


def known_words(given: Iterable[str], known: Iterable[str]) -> None:
    """`OptionError` for a word that is no option."""
    names = list(known)
    for word in given:
        if word not in names:
            raise OptionError(f"there is no option {word}", "there is " + ", ".join(names))


def one_of(option: str, value: str, *allowed: str) -> str:
    """`value`, if it is allowed; else an `OptionError`."""
    if not isinstance(value, str) or value not in allowed:
        raise OptionError(f"{option} {value}: not one of {', '.join(allowed)}")
    return value


def text_of(option: str, value: str | None) -> str | None:
    """`value`, if it is a text or None; else an `OptionError`."""
    if value is not None and not isinstance(value, str):
        raise OptionError(f"{option} {value!r}: not a name", "it is a text, in Python a str")
    return value


def type_name(option: str, value: str) -> str:
    """`value`, if it can be the type of events; else an `OptionError`."""
    text = text_of(option, value)
    if not text:
        raise OptionError(f"{option} is empty", "it is the name of a type of the query")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(f"{option} {text!r}: no Unicode text", "it is the name of a type of the query") from None
    return text


def length_of(option: str, given: Duration) -> int:
    """Nanoseconds; `OptionError` for a text that is no duration."""
    if isinstance(given, datetime.timedelta):
        return ((given.days * 86_400 + given.seconds) * 1_000_000 + given.microseconds) * 1_000
    if isinstance(given, Real) and math.isfinite(given):
        return int(given)
    if isinstance(given, str):
        with suppress(OptionError):
            return parse_duration(given)
    raise OptionError(f"{option} {given}: not a duration", "write for example 5s, 100ms or 2 minutes")
