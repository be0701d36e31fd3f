"""Schemas: the kind of value of each attribute, given by the user or by the input.

Kinds are number, text, truth (true or false), time, duration, list (of numbers) and texts (a list). A schema is given
(`schema=…`, `--schema FILE`) for all events or by event type. Otherwise it is the schema of tables, frames, CSV and
Parquet files, whose columns are known from the start. JSON Lines and dicts have none: a later event may have further
attributes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from ceql.operators.values import ARROW_TYPES
from spaseq.core.errors import OptionError
from spaseq.core.events.columns import kind_of_items

_NAMES: Final = {
    "number": (
        "number",
        "int",
        "integer",
        "long",
        "float",
        "double",
        "decimal",
        "int32",
        "int64",
        "float32",
        "float64",
    ),
    "text": ("text", "string", "str", "varchar"),
    "truth": ("truth", "bool", "boolean"),
    "time": ("time", "timestamp", "datetime", "date"),
    "duration": ("duration", "timedelta", "interval"),
    "list": ("list", "numbers"),
    "texts": ("texts",),
}
_KINDS: Final = {name: kind for kind, names in _NAMES.items() for name in names}
_FILES: Final = re.compile(r"\.(csv|tsv|tab|parquet|pq)(\.(gz|zst|bz2|lz4))?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Schema:
    """The kinds of attributes of all events, and of events of one type (`R` or `s>R`); None is an unknown kind.

    `closed`: events have no other attributes. `source` is the schema's name in messages.
    """

    common: Mapping[str, str | None]
    of_type: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    closed: bool = True
    source: str = "the schema"

    @property
    def names(self) -> tuple[str, ...]:
        """All attributes."""
        return tuple(dict.fromkeys([*self.common, *(name for own in self.of_type.values() for name in own)]))

    @property
    def arrow(self) -> dict[str, pa.DataType]:
        """An Arrow type for each attribute of one known kind."""
        kinds = {name: self.kind(name, None) for name in self.names}
        return {name: ARROW_TYPES[kind] for name, kind in kinds.items() if kind is not None}

    def kind(self, name: str, types: frozenset[str] | None) -> str | None:
        """The kind of an attribute of events of these types (None: all types); None if it is unknown, differs between
        the types, or no event of them has the attribute."""
        if name in self.common:
            return self.common[name]
        found = {own.get(name) for kind, own in self.of_type.items() if types is None or kind in types}
        found.discard(None)
        return found.pop() if len(found) == 1 else None


# Sources of schemas


def read_schema(given: Any) -> Schema:
    """The schema given as a pyarrow Schema, a mapping, or the path of a file.

    A mapping has a kind for each attribute, or for an event type a mapping of such: `{"price": "number", "SELL":
    {"name": "text"}}`. A file has this in JSON, or a line for each attribute: `price: number`, `SELL.name: text`; a
    `#` begins a comment. Kinds have synonyms (int, float, double; string; bool; timestamp, date).
    Raises `OptionError`.
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema({f.name: arrow_kind(f.type) for f in given})
    if isinstance(given, Mapping):
        return _of_mapping(given, "schema")
    if not isinstance(given, str | os.PathLike):
        raise OptionError(f"a {type(given).__name__} is no schema", "give a pyarrow Schema, a dict, or a file's path")
    path = os.fspath(given)
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        unread = "this is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "no such file"
        reason = getattr(error, "strerror", None) or unread
        raise OptionError(f"{path}: {reason.lower()}", "a schema is a file of lines such as price: number") from None
    return _of_mapping(_json(text, path) if text.lstrip().startswith("{") else _lines(text, path), path)


def _json(text: str, path: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}") from None
    assert isinstance(found, dict)
    return found


def _lines(text: str, path: str) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, colon, kind = (part.strip() for part in line.rpartition(":"))
        if not colon or not name or not kind:
            raise OptionError(f"{path}:{number}: {line!r} is not NAME: KIND", "for example price: number")
        of, dot, attribute = name.rpartition(".")
        target = found.setdefault(of, {}) if dot else found
        if not isinstance(target, dict):
            raise OptionError(f"{path}:{number}: {of} is an attribute and an event type")
        target[attribute if dot else name] = kind
    return found


def _of_mapping(given: Mapping[str, Any], source: str) -> Schema:
    common: dict[str, str | None] = {}
    of_type: dict[str, Mapping[str, str | None]] = {}
    for name, said in given.items():
        if isinstance(said, Mapping):
            of_type[name] = {attribute: _kind(kind, f"{name}.{attribute}", source) for attribute, kind in said.items()}
        else:
            common[name] = _kind(said, name, source)
    return Schema(common, of_type, True, source)


def _kind(said: Any, name: str, source: str) -> str | None:
    if isinstance(said, pa.DataType):
        return arrow_kind(said)
    kind = _KINDS.get(said.strip().lower()) if isinstance(said, str) else None
    if kind is None:
        raise OptionError(f"{source}: {name} is of no known kind: {said!r}", f"kinds are {', '.join(_NAMES)}")
    return kind


def arrow_kind(kind: pa.DataType) -> str | None:
    """The kind of an Arrow type's values; None for types whose values conditions cannot read."""
    types = pa.types
    if types.is_dictionary(kind):
        return arrow_kind(kind.value_type)
    if types.is_boolean(kind):
        return "truth"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "time"
    if types.is_duration(kind):
        return "duration"
    if types.is_nested(kind):
        return kind_of_items(kind) or None
    text = types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view()
    return "text" if text or types.is_time(kind) or types.is_binary(kind) or types.is_large_binary(kind) else None


_FRAMES: Final = ("to_arrow", "iloc", "scanner", "__arrow_c_stream__", "__arrow_c_array__")
"""Members of frames and tables (`spaseq.core.events.memory`)."""


def infer(sources: Mapping[str, Any], schemas: Mapping[str, pa.Schema]) -> Schema | None:
    """The schema of the input, from its sources and their Arrow schemas by stream; None if none has columns that are
    known from the start."""
    known = {name: schemas[name] for name, source in sources.items() if name in schemas and _is_closed(source)}
    if not known:
        return None
    common: dict[str, str | None] = {}
    for schema in known.values():
        for attribute in schema:
            kind = arrow_kind(attribute.type)
            before = common.setdefault(attribute.name, kind)
            common[attribute.name] = kind if before is None else before if kind in (None, before) else None
    names = ", ".join(name for name in known if name) or "the events"
    return Schema(common, {}, len(known) == len(sources), names)


def _is_closed(source: Any) -> bool:
    """True if the first table of a source has all its columns."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return _FILES.search(path) is not None and os.path.exists(path)
    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return True
    return (hasattr(source, "collect") and hasattr(source, "lazy")) or any(hasattr(source, name) for name in _FRAMES)
