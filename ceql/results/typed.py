"""Rows of matches as objects of a class of the user's: a dataclass, a NamedTuple, a TypedDict, or a model of pydantic.

A class is read once: its fields, those that need no value, and the kinds of values that their annotations admit. The
names are compared with the columns once, the kinds with the values of each row: columns may have values of several
kinds, and NULL. A class whose objects are made by a function that checks values itself, as pydantic's, is left to it.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import functools
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from spaseq.core.errors import EventError, OptionError
from spaseq.core.slips import did_you_mean

R = TypeVar("R")

_KINDS: Final[dict[Any, tuple[type, ...]]] = {
    int: (int,),
    float: (float, int),
    str: (str,),
    bool: (bool,),
    datetime.datetime: (datetime.datetime,),
    datetime.date: (datetime.date,),
    datetime.timedelta: (datetime.timedelta,),
    decimal.Decimal: (decimal.Decimal,),
    bytes: (bytes,),
    dict: (dict,),
    None: (type(None),),
    type(None): (type(None),),
}
"""The classes of the values of rows that an annotation admits. As in type checkers, int is a float."""
_WORDS: Final = "int, float, str, bool, datetime, date, timedelta, Decimal, bytes, list and None"
_HINT: Final = "a dataclass, a NamedTuple, a TypedDict or a pydantic model, with a field for each column that is wanted"


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a class. `kinds`: the classes of its values; None for any."""

    name: str
    needed: bool
    kinds: tuple[type, ...] | None

    def takes(self, value: Any) -> bool:
        """True if the annotation admits the value."""
        kinds = self.kinds
        if kinds is None:
            return True
        return bool in kinds if value.__class__ is bool else isinstance(value, kinds)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes objects of a class of rows with some columns: of `fields`, by `make`."""

    name: str
    fields: tuple[_Field, ...]
    make: Callable[..., Any]

    def of(self, row: dict[str, Any]) -> Any:
        """The object of one row."""
        values = {}
        for field in self.fields:
            value = values[field.name] = row[field.name]
            if not field.takes(value):
                raise EventError(
                    f"{self.name}.{field.name} takes {_names_of(field.kinds)}, and this match has {_text_of(value)}",
                    source="SELECT", attribute=field.name, hint=_remedy(field, value),
                )  # fmt: skip
        try:
            return self.make(**values)
        except ValueError as error:  # of a class that checks its values
            said = " ".join(str(error).split())
            raise EventError(f"{self.name} refuses the row of this match: {said}", source="SELECT") from error


def row_as(kind: type[R], row: dict[str, Any]) -> R:
    """The row as an object of this class; columns that it has no field for are left out.

    Raises `OptionError` for a class that is none of the kinds above, or has a field that is no column; `EventError` for
    a value that an annotation does not admit. Cost: the class is read once for the columns of a query.
    """
    try:
        maker = _maker(cast("Hashable", kind), tuple(row))
    except TypeError:  # of what is not hashable
        raise OptionError(f"{kind!r} is no class for rows", _HINT) from None
    made: R = maker.of(row)
    return made


@functools.lru_cache(maxsize=256)
def _maker(kind: Any, columns: tuple[str, ...]) -> _Maker:
    fields = _fields_of(kind)
    name = kind.__name__
    if not columns:
        raise OptionError(f"this match has no row for {name}: SELECT computes no columns", "SELECT x.price AS price …")
    for field in fields:
        if field.needed and field.name not in columns:
            hint = did_you_mean(field.name, columns) or "give the field a default, or a column of SELECT its name: AS …"
            raise OptionError(f"{name}.{field.name} is no column of SELECT; there are: {', '.join(columns)}", hint)
    return _Maker(name, tuple(field for field in fields if field.name in columns), kind)


def _fields_of(kind: Any) -> list[_Field]:
    """The fields of a class that its objects are made with. `OptionError` if it is none for rows."""
    if not isinstance(kind, type):
        raise OptionError(f"{kind!r} is no class for rows", _HINT)
    own: Any = kind
    if hasattr(own, "model_fields"):  # pydantic, which checks kinds by itself
        return [_Field(name, found.is_required(), None) for name, found in own.model_fields.items()]
    hints = _hints_of(kind)
    if dataclasses.is_dataclass(kind):
        given = [field for field in dataclasses.fields(kind) if field.init]
        absent = dataclasses.MISSING
        needs = {f.name: f.default is absent and f.default_factory is absent for f in given}
    elif typing.is_typeddict(kind):
        needs = {name: _is_needed(hints.get(name), name in own.__required_keys__) for name in own.__annotations__}
    elif issubclass(kind, tuple) and hasattr(own, "_fields"):
        needs = {name: name not in own._field_defaults for name in own._fields}
    else:
        raise OptionError(f"{kind.__name__} is no class for rows", _HINT)
    return [_Field(name, needed, _kinds_of(hints.get(name, Any), f"{kind.__name__}.{name}")) for name, needed
            in needs.items()]  # fmt: skip


def _hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a class. {} if one names what is not there when the program runs: then none is checked."""
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError:  # of imports for type checkers alone
        return {}


def _is_needed(hint: Any, total: bool) -> bool:
    """True if a key of a TypedDict is needed; `total`: if it is without NotRequired and Required."""
    said = typing.get_origin(hint)
    return said is typing.Required or (total and said is not typing.NotRequired)


def _kinds_of(hint: Any, field: str) -> tuple[type, ...] | None:
    """The classes of values that an annotation admits; None for any. `OptionError` if no value of a row is so."""
    while (wrapped := typing.get_origin(hint)) in _WRAPPERS or hasattr(hint, "__supertype__"):
        hint = hint.__supertype__ if hasattr(hint, "__supertype__") else typing.get_args(hint)[0]
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return None
    if wrapped in (typing.Union, types.UnionType):
        parts = [_kinds_of(part, field) for part in typing.get_args(hint)]
        return None if None in parts else _union_of(part for part in parts if part is not None)
    if wrapped is typing.Literal:
        return _union_of((value.__class__,) for value in typing.get_args(hint))
    plain = wrapped or hint
    if plain in _LISTS:
        return (list,)
    if plain not in _KINDS:
        shown = getattr(hint, "__name__", str(hint))
        raise OptionError(f"{field} is a {shown}, which no column of SELECT holds", f"columns hold {_WORDS}")
    return _KINDS[plain]


_WRAPPERS: Final = (typing.Annotated, typing.Final, typing.ClassVar, typing.Required, typing.NotRequired)
_LISTS: Final = (list, Sequence, Iterable)


def _union_of(parts: Iterable[tuple[type, ...]]) -> tuple[type, ...]:
    return tuple(dict.fromkeys(kind for part in parts for kind in part))


def _names_of(kinds: tuple[type, ...] | None) -> str:
    return " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds or ())


def _text_of(value: Any) -> str:
    name = value.__class__.__name__
    return "NULL" if value is None else f"{value!r:.60}, a{'n' if name[0] in 'aeiou' else ''} {name}"


def _remedy(field: _Field, value: Any) -> str:
    """The hint for a value of another kind."""
    if value is None:
        return f"{field.name}: … | None takes NULL; COALESCE in SELECT replaces it"
    return "change the annotation, or use CAST in SELECT"
