"""Our errors across the process boundary: raised in a worker, caught on the driver, the same error to the user.

Spark turns an exception of a Python worker into the text of a Java exception. So a worker puts its error into that
text, as JSON: the name of a class of `spaseq.core.errors` and its fields. `clear_errors` reads it there and raises it
again. Nothing of the text is unpickled or evaluated.

Errors quote events, so the text may hold whatever an event says. The JSON stands behind a *mark* that no input can
know: random for each driver process, it travels to the workers with the functions that they run (`carried`). Text
without the mark, and JSON that is no error of ours, leave Spark's exception as it is.
"""

from __future__ import annotations

import json
import re
import secrets
import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple
from functools import partial, wraps
from typing import Any, Final, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spaseq.core.errors import (
    BudgetExceeded,
    EventError,
    InternalError,
    LimitReached,
    OptionError,
    QueryError,
    QuerySemanticsError,
    QuerySyntaxError,
    Span,
    SpaseqError,
    UnsupportedFeature,
)
from spaseq.spark.session.garbage import spare_what_lasts

MARK: Final = f"spaseq-error-{secrets.token_hex(16)}="
"""The mark of this process, for errors of the workers that it starts."""
_SHOWN: Final = 500
"""Characters of an error that stand in front of its mark, for those who read Spark's text: Spark Connect brings the
first 2,048 of a text in the head of a message, which takes 8 KB, and there a character may be nine bytes."""
_OWN_COLUMNS = re.compile(r", spaseq_(?:time|stream|order|position|row|part|own|slice)\b")
_LISTED: Final = re.compile(r"there are: .*")
_NO_WORKER = "Python worker failed to connect back"
_BUSY = (
    "where the machine is busy, run fewer tasks at a time, and start again: a stream goes on from its checkpoint; "
    "where it is not, look whether PYSPARK_PYTHON names a Python that has spaseq"
)
_MISSING = re.compile(
    r"ModuleNotFoundError: No module named '(spaseq|ceql|llvmlite|numba|numpy|pandas|pyarrow|pyoxigraph)\b"
)
_SEND = (
    "spaseq.spark.ship(spark) sends spaseq and ceql to the workers; what they need must be installed in the workers' "
    "Python, or come in an archive: docs/spark.md, On a cluster"
)

_OF_SPARK: tuple[type[Exception], ...] = (PySparkException,)
"""What PySpark raises. Of what goes wrong in a broadcast, Java's own exception, which a client of Connect lacks."""
with suppress(ImportError):
    from py4j.protocol import Py4JJavaError

    _OF_SPARK = (PySparkException, Py4JJavaError)

T = TypeVar("T")


class _Carrier(Exception):
    """What a worker raises in place of a SpaseqError; its text holds the error."""


# -- in a worker


def carried(generator: Callable[..., Iterator[Any]], *given: Any) -> Callable[..., Iterator[Any]]:
    """A generator function, its first arguments `given`, to be run by workers. Its SpaseqErrors reach `clear_errors`
    in this process."""
    return partial(carry, MARK, generator, *given)


def carry(mark: str, generator: Callable[..., Iterator[T]], *given: Any) -> Iterator[T]:
    """Run a generator function in a worker; the SpaseqErrors that it raises get the driver's `mark`."""
    try:
        with carrying(mark):
            yield from generator(*given)
    finally:
        spare_what_lasts()


@contextmanager
def carrying(mark: str) -> Iterator[None]:
    """Give the SpaseqErrors raised inside the driver's `mark`. With an empty one they stay as they are."""
    try:
        yield
    except SpaseqError as error:
        if not mark:
            raise
        raise _carrier(error, mark) from None


def carried_batches(
    function: Callable[[DataFrame, int], None], known: Callable[[Exception], SpaseqError | None]
) -> Callable[[DataFrame, int], None]:
    """A user's function for the batches of a stream, which Spark calls back. What goes wrong in it reaches
    `clear_errors`: a worker's error as itself, what the stream itself has done as `known` words it, anything else as an
    OptionError that says what, where and in which batch."""
    mark = MARK  # through Spark Connect the function runs in another process, which has a mark of its own

    @wraps(function)
    def run(frame: DataFrame, number: int) -> None:
        try:
            with _clear_errors(mark):
                function(frame, number)
        except SpaseqError as error:
            raise _carrier(error, mark) from None
        except Exception as error:
            raise _carrier(known(error) or _failed(function, number, error), mark) from error

    return run


def _failed(function: Callable[..., None], number: int, error: Exception) -> OptionError:
    """What to say of an exception of a user's function: its first line, and the last place in the function's file."""
    text = (str(error).splitlines() or [""])[0]
    code = getattr(function, "__code__", None)
    places = traceback.extract_tb(error.__traceback__)
    own = [place for place in places if code is not None and place.filename == code.co_filename]
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    hint = "when the query is started again with its checkpoint this batch comes again, with the same rows"
    return OptionError(f"the function foreach_batch failed in batch {number}{where}: {said}", hint)


def _carrier(error: SpaseqError, mark: str) -> Exception:
    """What to raise for an error: one whose text holds it, or itself if it has fields that JSON cannot hold."""
    for name in ("problem", "hint"):  # a message may list columns, and some are ours
        text = getattr(error, name, "")
        if _OWN_COLUMNS.search(text):
            setattr(error, name, _LISTED.sub(lambda found: _OWN_COLUMNS.sub("", found[0]), text))
    try:
        body = _packed(error)
    except (TypeError, ValueError):
        return error
    return _Carrier(f"{str(error)[:_SHOWN]}\n{mark}{body}.")


# -- on the driver


@contextmanager
def clear_errors() -> Iterator[None]:
    """Around an action on the driver: a SpaseqError raised in a worker comes out as itself, and a worker that did not
    start, or lacks this package or one that it needs, as an OptionError."""
    with _clear_errors(MARK):
        yield


@contextmanager
def _clear_errors(mark: str) -> Iterator[None]:
    """The same, also for errors behind another `mark` than that of this process."""
    try:
        yield
    except _OF_SPARK as error:
        text = str(error)
        for piece in (piece for each in {mark, MARK} for piece in text.split(each)[1:]):
            original = _unpacked(piece.partition(".")[0])
            if original is not None:
                raise original from None
        if _NO_WORKER in text:
            raise OptionError("a Python process that Spark started did not answer it in time", _BUSY) from error
        missing = _MISSING.search(text)
        if missing is not None:
            raise OptionError(f"the Python that Spark starts has no module {missing[1]}", _SEND) from error
        raise


# -- an error as data


def _packed(error: SpaseqError) -> str:
    """The name of the error's class and its fields: JSON, in base64. TypeError for other classes and values."""
    kind = type(error)
    if _KINDS.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} is no class of spaseq.core.errors")
    fields = {name: getattr(error, name) for name in _TABLE[kind]} or str(error)
    text = json.dumps([kind.__name__, fields], default=_plain, ensure_ascii=False)
    return b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def _unpacked(body: str) -> SpaseqError | None:
    """The inverse of `_packed`; None for anything else."""
    try:
        name, given = json.loads(b64decode(body, validate=True))
        kind = _KINDS[name]
        fields = _TABLE[kind]
        if not fields:
            return kind(_text(given))
        if given.keys() != fields.keys():
            return None
        return kind(**{field: fields[field](value) for field, value in given.items()})
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """A span as a list, a number of numpy as one of Python."""
    if isinstance(value, Span):
        return astuple(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a {type(value).__name__} in an error")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("no text")
    return value


def _number(value: Any) -> Any:
    if type(value) not in (int, float):
        raise TypeError("no number")
    return value


def _record(value: Any) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError("no number of a record")
    return value


def _counted(value: Any) -> str:
    if value not in ("", "event"):
        raise ValueError("neither records nor events")
    return _text(value)


def _span(value: Any) -> Span | None:
    if value is None:
        return None
    start, end, line, column = value
    if any(type(each) is not int for each in value):
        raise TypeError("no places")
    return Span(start, end, line, column)


def _texts(value: Any) -> tuple[str, ...]:
    if type(value) is not list:
        raise TypeError("no list")
    return tuple(map(_text, value))


_Fields = Mapping[str, Callable[[Any], Any]]
_OF_QUERY: Final[_Fields] = {
    "problem": _text, "text": _text, "span": _span, "source": _text, "expected": _texts, "hint": _text,
}  # fmt: skip
_OF_EVENT: Final[_Fields] = {
    "problem": _text, "source": _text, "record": _record, "counted": _counted, "attribute": _text, "hint": _text,
}  # fmt: skip
_OF_BUDGET: Final[_Fields] = {"setting": _text, "limit": _number, "used": _number, "unit": _text, "hint": _text}
_TABLE: Final[dict[type[SpaseqError], _Fields]] = {
    QueryError: _OF_QUERY,
    QuerySyntaxError: _OF_QUERY,
    QuerySemanticsError: _OF_QUERY,
    UnsupportedFeature: _OF_QUERY,
    OptionError: {"problem": _text, "hint": _text},
    EventError: _OF_EVENT,
    BudgetExceeded: _OF_BUDGET,
    LimitReached: _OF_BUDGET,
    InternalError: {},
    SpaseqError: {},
}
"""Each class with its fields, and the check of each field's value."""
_KINDS: Final[dict[str, type[SpaseqError]]] = {kind.__name__: kind for kind in _TABLE}
