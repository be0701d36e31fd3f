"""Our errors across the process boundary: raised in a worker, caught on the driver, the same object to the user.

Spark turns whatever a Python worker raises into the text of a Java exception. So `carried` puts the error itself,
pickled, into that text, and `clear_errors` takes it out again. What is not ours passes through unchanged.
"""

from __future__ import annotations

import base64
import pickle
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spaseq.errors import OptionError, SpaseqError

_MARK = "spaseq-error="
_OWN_COLUMNS = re.compile(r", spaseq_(?:time|stream|order|position|row|part|own|slice)\b")
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
_CARRIED = re.compile(_MARK + r"([A-Za-z0-9+/=]+)\.")

P = ParamSpec("P")
T = TypeVar("T")


class _Carrier(Exception):
    """What a worker raises in place of a SpaseqError; its text holds the error."""


def carried(generator: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """A worker's generator function whose SpaseqErrors reach `clear_errors` on the driver."""

    @wraps(generator)
    def run(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from generator(*args, **kwargs)
        except SpaseqError as error:
            raise _carrier(error) from None

    return run


def carried_call(function: Callable[P, T]) -> Callable[P, T]:
    """As `carried`, for a function that Spark calls in a process of its own."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except SpaseqError as error:
            raise _carrier(error) from None

    return run


def carried_batches(
    function: Callable[[DataFrame, int], None], known: Callable[[Exception], SpaseqError | None]
) -> Callable[[DataFrame, int], None]:
    """A user's function for the batches of a stream, which Spark calls back. What goes wrong in it reaches
    `clear_errors`: a worker's error as itself, what the stream itself has done as `known` words it, anything else as an
    OptionError that says what, where and in which batch."""

    @wraps(function)
    def run(frame: DataFrame, number: int) -> None:
        try:
            with clear_errors():
                function(frame, number)
        except SpaseqError as error:
            raise _carrier(error) from None
        except Exception as error:
            raise _carrier(known(error) or _failed(function, number, error)) from error

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


def _carrier(error: SpaseqError) -> _Carrier:
    for name in ("problem", "hint"):  # columns that we added to a user's, which a message may list
        if _OWN_COLUMNS.search(getattr(error, name, "")):
            setattr(error, name, _OWN_COLUMNS.sub("", getattr(error, name)))
    body = base64.b64encode(pickle.dumps(error)).decode("ascii")
    return _Carrier(f"{error}\n{_MARK}{body}.")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Around an action on the driver: a SpaseqError raised in a worker comes out as itself, and a worker that did not
    start, or lacks this package or one that it needs, as an OptionError."""
    try:
        yield
    except PySparkException as error:
        found = _CARRIED.search(str(error))
        if found is not None:
            original: SpaseqError = pickle.loads(base64.b64decode(found[1]))
            raise original from None
        if _NO_WORKER in str(error):
            raise OptionError("a Python process that Spark started did not answer it in time", _BUSY) from error
        missing = _MISSING.search(str(error))
        if missing is not None:
            raise OptionError(f"the Python that Spark starts has no module {missing[1]}", _SEND) from error
        raise
