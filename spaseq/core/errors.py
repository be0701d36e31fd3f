"""The exceptions of spaseq, a class for each party that has to act.

Every exception carries its facts as attributes; the text is built from them. A message gives the facts found, their
place (line, column and a caret, or file and record), the expected input, and the remedy.

======================  ==========================================  =========
class                   has to act                                  exit code
======================  ==========================================  =========
`QuerySyntaxError`      the author of the query                     2
`QuerySemanticsError`   the author of the query                     2
`UnsupportedFeature`    the author of the query (or us)             2
`OptionError`           the caller of the command                   2
`EventError`            the supplier of the events                  3
`BudgetExceeded`        the user who runs it: raise the setting     4
`LimitReached`          the same user: raise its time or memory     4
`InternalError`         us                                          1
======================  ==========================================  =========
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["BudgetExceeded", "EventError", "InternalError", "LimitReached", "OptionError", "QueryError",
           "QuerySemanticsError", "QuerySyntaxError", "Span", "SpaseqError", "UnsupportedFeature", "expect_count",
           "expect_type", "in_command_words", "in_reader_words", "named_query", "naming_options"]  # fmt: skip

UNNAMED: Final = "<query>"
"""The name in errors of a query that came from no file."""
_SHOWN: Final = 400
_BEFORE: Final = 60
"""Characters that are shown of a long line, and how many of them in front of the error."""


# -- options of the commands are arguments of the library

_VALUES: Final = r"[A-Z]{2,}(?:=\S*?FILE)?|\d+\w*|arrival|drop|error|subject|size:N|graph"
_OPTIONS: Final = (
    "time-unit|time-from|time-format|time|column-types|type-column|type|delimiter|decimal|quote|encoding"
    "|interval|lateness|late|event-by|ties|malformed|entailment|forget-keys-after|at-least|timeframe|realert"
)
_OPTION: Final = re.compile(rf"(?<![\w-])--({_OPTIONS})(?![\w-])(?: ({_VALUES})(?![\w-]))?")
_ARGUMENT: Final = re.compile(rf'\b({_OPTIONS.replace("-", "_")})="([^"\n]*)"')
_BY_NAME: Final = re.compile(r"(?<![\w-])--(stream|kb|set) ([^\s=]+)=(\w+(?:,FILE)?)")
_NAMES: Final = {"stream": 'streams={{"{0}": "{1}"}}', "kb": 'kb={{"{0}": "{1}"}}', "set": "settings=Settings({0}={1})"}


class _Speaks:
    """True while a command runs: its errors name options as they are written."""

    options: bool = False


@contextmanager
def naming_options() -> Iterator[None]:
    """Inside, the texts of errors name the options of the commands, else the arguments of the library."""
    before, _Speaks.options = _Speaks.options, True
    try:
        yield
    finally:
        _Speaks.options = before


def in_reader_words(text: str) -> str:
    """A message that names options of the commands, as its reader writes them.

    >>> in_reader_words("--lateness 5s puts in order what comes late; --late drop leaves it out")
    'lateness="5s" puts in order what comes late; late="drop" leaves it out'
    """
    if _Speaks.options or "--" not in text:
        return text
    text = _BY_NAME.sub(lambda found: _NAMES[found[1]].format(found[2], found[3]), text)
    return _OPTION.sub(lambda at: at[1].replace("-", "_") + (f'="{at[2]}"' if at[2] else ""), text)


def in_command_words(text: str) -> str:
    """The opposite of `in_reader_words`: a text that names arguments of the library, with the options of the commands.

    >>> in_command_words('which is in time="ts"')
    'which is in --time ts'
    """
    return _ARGUMENT.sub(lambda at: f"--{at[1].replace('_', '-')} {shlex.quote(at[2])}", text)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of query text: `start` and `end` are code point offsets, `line` and `column` count from 1."""

    start: int
    end: int
    line: int
    column: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.start, other.end, self.line, self.column)

    @staticmethod
    def at(text: str, start: int, end: int) -> Span:
        """The span of `text[start:end]`."""
        line = text.count("\n", 0, start) + 1
        return Span(start, end, line, start - (text.rfind("\n", 0, start) + 1) + 1)


class SpaseqError(Exception):
    """Root of everything spaseq and ceql raise on purpose.

    Its text names the arguments of the library, in a command the options; attributes name options.
    """

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__.copy())

    def __str__(self) -> str:
        return in_reader_words(super().__str__())


class QueryError(SpaseqError):
    """A query that cannot be run as written.

    Attributes: `problem` (the finding), `source` (name of the query file or `<query>`), `text` (the whole query),
    `span` (its place, or None). `expected` has the words that could stand there, `hint` the remedy.
    """

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        text: str = "",
        span: Span | None = None,
        source: str = UNNAMED,
        expected: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        self.problem = problem
        self.text = text
        self.span = span
        self.source = source
        self.expected = expected
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        if self.span is None:
            lines = [f"{self.source}: {in_reader_words(self.problem)}"]
        else:
            lines = [f"{self.source}:{self.span.line}:{self.span.column}: {in_reader_words(self.problem)}"]
            lines += caret_lines(self.text, self.span)
        if self.expected:
            lines.append("expected: " + ", ".join(self.expected))
        if self.hint:
            lines.append("hint: " + in_reader_words(self.hint))
        return "\n".join(lines)


@contextmanager
def named_query(source: str) -> Iterator[None]:
    """Give query errors raised inside the name `source`, if they carry none: the engine, for example, has no name for
    the query.

    Recursion beyond Python's limit, in functions that walk formulas, becomes an error about the query.
    """
    try:
        yield
    except RecursionError:
        hint = "write fewer steps or alternatives, and long lists of values with IN"
        raise QuerySemanticsError("the query is nested too deeply", source=source, hint=hint) from None
    except QueryError as error:
        if error.source == UNNAMED:
            error.source = source
        raise


def _rebuild(kind: type[SpaseqError], args: tuple[Any, ...], state: dict[str, object]) -> SpaseqError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def caret_lines(text: str, span: Span) -> list[str]:
    """The line of `text` that holds `span`, of a long one the part around it, and a line of carets under it."""
    lines = text.splitlines()
    if not 1 <= span.line <= len(lines):
        return []
    line = lines[span.line - 1]
    width = max(1, min(span.end - span.start, len(line) - span.column + 1))
    lead = "".join("\t" if c == "\t" else " " for c in line[: span.column - 1])
    under = lead + "^" * width
    if len(line) <= _SHOWN:
        return ["  " + line, "  " + under]
    first = max(0, min(span.column - 1 - _BEFORE, len(line) - _SHOWN))
    before, behind = "…" if first else "", "…" if first + _SHOWN < len(line) else ""
    part = slice(first, first + _SHOWN)
    return ["  " + before + line[part] + behind, "  " + " " * len(before) + under[part]]


class QuerySyntaxError(QueryError):
    """The text is not in the language."""


class QuerySemanticsError(QueryError):
    """The text is in the language but means nothing: an unknown variable, stream or type."""


class UnsupportedFeature(QueryError):
    """The language has it and this version does not run it yet; the message names it."""


class OptionError(SpaseqError):
    """A command-line option or an argument of the library that cannot be used."""

    exit_code = 2

    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(problem + (f"\nhint: {hint}" if hint else ""))


def expect_type(name: str, value: object, kind: type | tuple[type, ...], hint: str) -> None:
    """Raises `OptionError` if an argument of the library is of another type."""
    if not isinstance(value, kind):
        raise OptionError(f"{name} cannot be a {type(value).__name__}", hint)


def expect_count(name: str, value: object) -> None:
    """Raises `OptionError` if an argument of the library is no count."""
    if type(value) is not int or value < 0:
        raise OptionError(f"{name} cannot be {value if type(value) is int else f'a {type(value).__name__}'}",
                          "it is a whole number, 0 or more")  # fmt: skip


class EventError(SpaseqError):
    """The input cannot be read as events.

    Attributes: `problem`, `source` (the file or stream), `record` (line or event number, from 1, or None), `counted`
    (`event` if `record` counts the events of a stream), `attribute`, `hint`.
    """

    exit_code = 3

    def __init__(
        self,
        problem: str,
        *,
        source: str = "",
        record: int | None = None,
        counted: Literal["", "event"] = "",
        attribute: str = "",
        hint: str = "",
    ) -> None:
        self.problem = problem
        self.source = source
        self.record = record
        self.counted = counted
        self.attribute = attribute
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = self.source
        if self.record is not None and self.counted:
            place += f"{', ' if place else ''}{self.counted} {self.record}"
        elif self.record is not None:
            place = f"{place}:{self.record}" if place else f"record {self.record}"
        text = in_reader_words(f"{place}: {self.problem}" if place else self.problem)
        return text + (f"\nhint: {in_reader_words(self.hint)}" if self.hint else "")


class BudgetExceeded(SpaseqError):
    """A stated limit was reached. Attributes: `setting` (its name), `limit`, `used`, `unit`."""

    exit_code = 4

    def __init__(self, setting: str, limit: float, used: float, unit: str = "bytes", hint: str = "") -> None:
        self.setting = setting
        self.limit = limit
        self.used = used
        self.unit = unit
        self.hint = hint
        super().__init__(f"{self._problem()}\nhint: {hint or f'raise {setting}, or narrow the window'}")

    def _problem(self) -> str:
        return f"{self.setting} is {self.limit:,} {self.unit} and {self.used:,} are needed"


class LimitReached(BudgetExceeded):
    """An evaluation has taken all the time or memory it was given (`time_limit`, `memory_limit`), so it was stopped.

    What it had found before was reported; it cannot be gone on with.
    """

    def _problem(self) -> str:
        return f"stopped at {self.setting}, which is {self.limit:,.12g} {self.unit}: {self.used:,.12g} were reached"


class InternalError(SpaseqError):
    """A bug in spaseq. Please report it with the query and the input."""
