"""Functions of the user, as rows of the table of functions.

A function gets plain values: ints, floats, texts, bools, datetimes (UTC), timedeltas, lists of floats. With
`vectorized` it gets Arrow arrays, one for each argument, and gives one of the same length. It is NULL if an argument
is. It is taken to give the same result for the same arguments: it may be called once for equal ones.
"""

from __future__ import annotations

import datetime
import inspect
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ceql.operators.columns import Constant, Operand, arrow_of, both_known, column_from, known_rows, values_of
from ceql.operators.function import Function, OwnFunctionError
from ceql.operators.functions import FUNCTIONS
from ceql.operators.values import KIND_WORDS, kind_of
from spaseq.core.errors import OptionError
from spaseq.core.events import Duration, Instant, column_of
from spaseq.core.queries.own_functions import OwnFunctions
from spaseq.core.slips import did_you_mean

_NAME: Final = re.compile(r"[^\W\d]\w*")
_WORDS: Final = ("PREV", "ANY", "SOME", "ALL")
"""Words before parentheses that are no rows of the table of functions."""
_KINDS: Final = ("number", "text", "truth", "time", "duration")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def register_function(
    name: str, function: Callable[..., Any], *, returns: str = "number", vectorized: bool = False, replace: bool = False
) -> None:
    """Makes a function of Python one of CEQL, in conditions and in SELECT of queries that are compiled from now on.

    Args:
        name: its name in queries, in any case.
        function: its arguments are positional, as many as it has in queries.
        returns: the kind of its results: "number", "text", "truth", "time" or "duration". None is NULL.
        vectorized: it takes and gives Arrow arrays; single values come as arrays of one.
        replace: a function of this name that was registered before is replaced, in queries that have it, too.

    Raises `OptionError` for a name that is none or is taken, and for a function of no fixed number of arguments. What
    the function itself raises becomes an `EventError` that names the event. Queries on Spark take it with them.

    >>> register_function("BUCKET", lambda price: price // 10 * 10, replace=True)
    >>> import ceql
    >>> [m.row for m in ceql.compile("SELECT BUCKET(A.price) AS b WHERE A").run([{"type": "A", "price": 37}])]
    [{'b': 30}]
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(f"{name!r} is no name of a function", "letters, digits and _, not beginning with a digit")
    upper = name.upper()
    if upper in _WORDS or (upper in FUNCTIONS and upper not in OWN):
        raise OptionError(f"{upper} is a function of CEQL", "choose another name")
    if returns not in _KINDS:
        raise OptionError(f"returns={returns!r}", did_you_mean(str(returns), _KINDS) or f"one of {', '.join(_KINDS)}")
    OWN.register(upper, (function, returns, vectorized, _arguments(function)), replace=replace)


def _enter(name: str) -> None:
    """Makes a function that is registered a row of the table."""
    _, returns, vectorized, count = OWN[name]
    columns = _columns(name) if vectorized else None
    sample = f"{name}({', '.join(f'x.{letter}' for letter in 'abcdefgh'[:count])})"
    FUNCTIONS[name] = Function(name, ("any",) * count, returns, _of_values(name), columns=columns, sample=sample)


OWN: Final = OwnFunctions(_enter, lambda name: FUNCTIONS.__delitem__(name))
"""For each name in capitals the function, the kind of its results, whether it takes columns, and how many arguments."""


def _arguments(function: Callable[..., Any]) -> int:
    """The number of arguments of a function, all of which must be given by position."""
    if not callable(function):
        raise OptionError(f"{function!r} is no function", "register_function(name, function)")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise OptionError("the function does not say how many arguments it has", "wrap it in a lambda") from None
    needed = [p for p in parameters if p.default is p.empty]
    if not needed or any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in needed):
        hint = "wrap it in a lambda with one or more arguments: lambda price: f(price)"
        raise OptionError("a function has a fixed number of positional arguments", hint)
    return len(needed)


def _of_values(name: str) -> Callable[..., Any]:
    """The function of single values. It is looked up at each call, so that one that is replaced is so on every road."""

    def work(*arguments: Any) -> Any:
        function, returns, vectorized, _ = OWN[name]
        if vectorized:
            return values_of(_columns(name)(*map(Constant, arguments), count=1), 1)[0]
        try:
            found = function(*map(_plain, arguments))
        except Exception as error:
            raise _error_of(name, error) from error
        return _value(name, found, returns)

    return work


def _columns(name: str) -> Callable[..., Any]:
    """The vectorized function of columns."""

    def columns(*operands: Operand, count: int) -> Operand:
        function, returns, _, _ = OWN[name]
        arrays = [arrow_of(operand, count) for operand in operands]
        known: np.ndarray | None = None
        for operand in operands:
            known = both_known(known, known_rows(operand, count))
        try:
            given = function(*arrays)
            found = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else pa.array(given, from_pandas=True)
        except Exception as error:
            raise _error_of(name, error) from error
        if len(found) != count:
            raise OwnFunctionError(f"{name} gave {len(found)} values for {count}", hint="one for each, in their order")
        if known is not None and not known.all():
            found = pc.if_else(pa.array(known), found, pa.scalar(None, found.type))
        return _check_result(name, found, returns)

    return columns


def _check_result(name: str, found: pa.Array, returns: str) -> Operand:
    """A result as a column of the kind that was promised."""
    if pa.types.is_duration(found.type):
        spans = found.cast(pa.duration("ns")).cast(pa.int64()).to_pylist()
        column: Any = column_from([None if span is None else Duration(span) for span in spans])
    else:
        column = column_of(found, name)
    if column is not None and column.kind != returns:
        raise _misfit(name, column.kind, returns)
    return column


def _plain(value: Any) -> Any:
    """An argument as Python has it."""
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(microseconds=int(value) // 1000)
    if isinstance(value, Duration):
        return datetime.timedelta(microseconds=int(value) // 1000)
    return list(value) if isinstance(value, tuple) else value


def _value(name: str, found: Any, returns: str) -> Any:
    """A result as expressions have it; NaN and whole numbers beyond 64 bits are NULL."""
    if isinstance(found, np.generic):
        found = found.item()
    if isinstance(found, datetime.datetime):
        moment = found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)
        found = Instant((moment - _EPOCH) // _MICROSECOND * 1000)
    elif isinstance(found, datetime.timedelta):
        found = Duration(found // _MICROSECOND * 1000)
    elif isinstance(found, list):
        found = tuple(found)
    if found is None or (isinstance(found, float) and found != found):
        return None
    if not isinstance(found, bool | int | float | str | tuple):
        raise OwnFunctionError(f"{name} gave a {type(found).__name__}, and returns={returns!r}")
    if kind_of(found) != returns:
        raise _misfit(name, kind_of(found), returns)
    return found if type(found) is not int or -(1 << 63) <= found < 1 << 63 else None


def _misfit(name: str, kind: str, returns: str) -> OwnFunctionError:
    words = KIND_WORDS.get(kind, "values of several kinds")
    return OwnFunctionError(f"{name} gave {words}, and returns={returns!r}", hint="say what it gives: returns=…")


def _error_of(name: str, error: Exception) -> OwnFunctionError:
    return OwnFunctionError(f"{name} raised {type(error).__name__}: {error}")
