"""Our errors across the process boundary: raised in a worker, caught on the driver, the same object to the user.

Spark turns whatever a Python worker raises into the text of a Java exception. So `carried` puts the error itself,
pickled, into that text, and `clear_errors` takes it out again. What is not ours passes through unchanged.
"""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.errors import PySparkException

from spaseq.errors import SpaseqError

_MARK = "spaseq-error="
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


def _carrier(error: SpaseqError) -> _Carrier:
    body = base64.b64encode(pickle.dumps(error)).decode("ascii")
    return _Carrier(f"{error}\n{_MARK}{body}.")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Around an action on the driver: a SpaseqError raised in a worker comes out as itself."""
    try:
        yield
    except PySparkException as error:
        found = _CARRIED.search(str(error))
        if found is None:
            raise
        original: SpaseqError = pickle.loads(base64.b64decode(found[1]))
        raise original from None
