"""Does a query fit the attributes of its events? Checked against a schema, before the first event.

A `Schema` says what kind of value each attribute has: number, text, truth (true or false), time, or list (of numbers).
It is given (`schema=…`, `--schema FILE`), for all events or by event type, or it is that of the input: of tables,
frames, CSV and Parquet files, whose columns are known from the start. JSON Lines and dicts may always bring another
attribute, so there mistakes are found as events are read.

An attribute that no event of any stream can have is a mistake of the query. One that only other types of events have is
NULL (`docs/semantics.md`), and so is anything computed of it.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from ceql import ast
from ceql.printer import print_expression
from ceql.values import KIND_WORDS
from spaseq.errors import EventError, OptionError, QuerySemanticsError, Span
from spaseq.events import parse_time

__all__ = ["Schema", "check_types", "inferred", "read_schema"]

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
    "list": ("list", "numbers"),
}
_KINDS: Final = {name: kind for kind, names in _NAMES.items() for name in names}
_ARROW: Final = {
    "number": pa.float64(),
    "text": pa.string(),
    "truth": pa.bool_(),
    "time": pa.timestamp("ns", "UTC"),
    "list": pa.list_(pa.float64()),
}
_FILES: Final = re.compile(r"\.(csv|tsv|tab|parquet|pq)(\.(gz|zst|bz2|lz4))?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Schema:
    """Kinds of attributes, None where it is not known: of all events, and of those of one type (`R` or `s>R`).

    `closed`: there are no other attributes. `source` is what messages call it.
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
        return {name: _ARROW[kind] for name, kind in kinds.items() if kind is not None}

    def kind(self, name: str, types: frozenset[str] | None) -> str | None:
        """The kind of an attribute of events of these types (None: any); None where it is NULL or not one kind."""
        if name in self.common:
            return self.common[name]
        found = {own.get(name) for kind, own in self.of_type.items() if types is None or kind in types}
        found.discard(None)
        return found.pop() if len(found) == 1 else None


# Where schemas come from


def read_schema(given: Any) -> Schema:
    """A schema of a pyarrow Schema, a mapping, or a file of either notation.

    A mapping has a kind for each attribute, or a mapping of these for each event type: `{"price": "number", "SELL":
    {"name": "text"}}`. A file is that in JSON, or has a line for each attribute: `price: number`, `SELL.name: text`; a
    `#` begins a comment. Kinds go by several names (int, float, double; string; bool; timestamp, date).
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
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "this is not UTF-8 text"
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
    """What values of an Arrow type are in conditions; None for what has no value in them, or is not known."""
    types = pa.types
    if types.is_dictionary(kind):
        return arrow_kind(kind.value_type)
    if types.is_boolean(kind):
        return "truth"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "time"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list" if arrow_kind(kind.value_type) == "number" else None
    text = types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view()
    return "text" if text or types.is_time(kind) or types.is_binary(kind) or types.is_large_binary(kind) else None


def inferred(sources: Mapping[str, Any], schemas: Mapping[str, pa.Schema]) -> Schema | None:
    """The schema of the input, by stream; None where nothing is known of it from the start."""
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
    """Whether a source's first table has all the columns it will ever have."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return _FILES.search(path) is not None and os.path.exists(path)
    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return True
    return (
        hasattr(source, "to_arrow")
        or hasattr(source, "iloc")
        or (hasattr(source, "collect") and hasattr(source, "lazy"))
    )


# The check


def check_types(query: ast.Query, schema: Schema, text: str = "", source: str = "<query>") -> None:
    """Raises `QuerySemanticsError` for the first attribute, operation or clause that does not fit."""
    _Types(query, schema, text, source).check()


class _Types:
    def __init__(self, query: ast.Query, schema: Schema, text: str, source: str) -> None:
        self.query = query
        self.schema = schema
        self.text = text
        self.source = source
        self.types: dict[str, frozenset[str] | None] = {}
        for variable, types in _types(query.where):
            before = self.types.get(variable, frozenset())
            self.types[variable] = None if types is None or before is None else before | types

    def error(self, problem: str, span: Span, hint: str = "") -> QuerySemanticsError:
        return QuerySemanticsError(problem, text=self.text, span=span, source=self.source, hint=hint)

    def check(self) -> None:
        from ceql.check import conditions

        for condition in conditions(self.query.where):
            self.condition(condition, None)
        for item in self.query.selection.items or ():
            for name in item.attributes:
                self.known(name.text, name.span)
        for name in (name for bracket in self.query.partition for name in bracket):
            self.known(name.text, name.span)
            if self.schema.kind(name.text, None) == "list":
                raise self.error(f"PARTITION BY {name.text}, which is a list of numbers", name.span)
        if isinstance(self.query.within, ast.WithinAttribute):
            name = self.query.within.attribute
            self.known(name.text, name.span)
            kind = self.schema.kind(name.text, None)
            if kind not in (None, "number", "time"):
                raise self.error(
                    f"WITHIN is measured in {name.text}, which is {KIND_WORDS[kind]}",
                    name.span,
                    "a window is over numbers or times, in order",
                )

    def known(self, name: str, span: Span) -> None:
        names = self.schema.names
        if not self.schema.closed or name in names:
            return
        close = difflib.get_close_matches(name, names, 1, 0.6)
        listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        hint = f"did you mean {close[0]}?" if close else f"the attributes of {self.schema.source} are {listed}"
        raise self.error(f"no event has an attribute {name}", span, hint)

    def condition(self, node: ast.Condition, variable: str | None) -> None:
        match node:
            case ast.And(left, right) | ast.Or(left, right):
                self.condition(left, variable)
                self.condition(right, variable)
            case ast.Not(child):
                self.condition(child, variable)
            case ast.Holds(name, child):
                self.condition(child, name.text)
            case ast.Compare(symbol, left, right):
                self.compared(symbol, left, right, node, variable)
            case ast.Like(value, _):
                kind = self.kind(value, variable)
                if kind not in (None, "text"):
                    raise self.mismatch(kind, "text", value, value, node)
            case ast.In(value, items):
                for item in items:
                    self.compared("=", value, item, node, variable)
            case ast.InRange(value, low, high):
                for bound in (low, high):
                    if bound is not None:
                        self.compared("<=", value, bound, node, variable)

    def compared(
        self, symbol: str, left: ast.Expression, right: ast.Expression, node: ast.Condition, variable: str | None
    ) -> None:
        one, two = self.kind(left, variable), self.kind(right, variable)
        if one is None or two is None:
            return
        if {one, two} == {"time", "text"}:
            for side in (left, right):
                if isinstance(side, ast.Text):
                    self.time(side)
        elif one != two or one == "list" or (one == "truth" and symbol not in ("=", "!=")):
            raise self.mismatch(one, two, left, right, node)

    def time(self, node: ast.Text) -> None:
        try:
            parse_time(node.value)
        except EventError as error:
            raise self.error(error.problem, node.span, error.hint) from None

    def mismatch(
        self, one: str, two: str, left: ast.Expression, right: ast.Expression, node: ast.Expression
    ) -> QuerySemanticsError:
        said = dict.fromkeys(
            f"{print_expression(side)} is {KIND_WORDS[kind]}"
            for side, kind in ((left, one), (right, two))
            if not isinstance(side, ast.Number | ast.Text | ast.Truth)
        )
        problem = f"{print_expression(node)}: {KIND_WORDS[one]} cannot be set against {KIND_WORDS[two]}"
        hint = f"in {self.schema.source}, {' and '.join(said)}" if said else ""
        return self.error(problem, node.span, hint)

    def kind(self, node: ast.Expression, variable: str | None) -> str | None:
        """The kind of value an expression has; None for NULL and what is not known."""
        match node:
            case ast.Number():
                return "number"
            case ast.Text():
                return "text"
            case ast.Truth():
                return "truth"
            case ast.Attribute(name, own):
                self.known(name, node.span)
                of = own or variable
                return self.schema.kind(name, None if of is None else self.types.get(of))
            case ast.Negate(child):
                self.number(child, node, variable)
                return "number"
            case ast.Arithmetic(_, left, right):
                self.number(left, node, variable)
                self.number(right, node, variable)
                return "number"
            case ast.Call():
                return self.call(node, variable)
        return None

    def number(self, node: ast.Expression, around: ast.Expression, variable: str | None) -> None:
        kind = self.kind(node, variable)
        if kind not in (None, "number"):
            raise self.mismatch(kind, "number", node, node, around)

    def call(self, node: ast.Call, variable: str | None) -> str | None:
        kinds = [self.kind(a, variable) for a in node.arguments if not isinstance(a, ast.Variable)]
        wanted = {"AVG": "number", "SUM": "number", "STDDEV": "number", "CORR": "list"}.get(node.function)
        for argument, kind in zip(node.arguments, kinds, strict=False):
            if wanted is not None and kind not in (None, wanted):
                raise self.error(
                    f"{node.function} of {print_expression(argument)}, which is {KIND_WORDS[kind]}",
                    argument.span,
                    f"{node.function} is of {'lists of numbers' if wanted == 'list' else 'numbers'}",
                )
            if node.function in ("MIN", "MAX") and kind in ("list", "truth"):
                raise self.error(f"{node.function} of {KIND_WORDS[kind]}", argument.span, "these have no order")
        return "number" if wanted is not None or node.function == "COUNT" else kinds[0]


def _types(node: ast.Formula) -> Iterator[tuple[str, frozenset[str] | None]]:
    """The event types that each variable of a formula may take; None for any. `s>R` counts as R and as itself."""
    match node:
        case ast.EventType(name, stream):
            types = frozenset((name,) if stream is None else (name, f"{stream.text}>{name}"))
            yield from ((variable, types) for variable in types)
        case ast.As(child, variable):
            inner = list(_types(child))
            yield from inner
            yield variable.text, _together(child)
        case ast.Filter(child, _) | ast.Iterate(child, _) | ast.Repeat(child, _, _) | ast.Without(child):
            yield from _types(child)
        case ast.Either(left, right) | ast.Sequence(left, right, _):
            yield from _types(left)
            yield from _types(right)
        case ast.Conjunction(children):
            for child in children:
                yield from _types(child)


def _together(node: ast.Formula) -> frozenset[str] | None:
    """The types of all events that a formula takes; None for any."""
    match node:
        case ast.EventType(name, stream):
            return frozenset((name,) if stream is None else (name, f"{stream.text}>{name}"))
        case ast.As(child, _) | ast.Filter(child, _) | ast.Iterate(child, _) | ast.Repeat(child, _, _):
            return _together(child)
        case ast.Sequence(ast.Sequence(left, ast.Without(), False), right, False):
            return _union(_together(part) for part in (left, right))
        case ast.Either(left, right) | ast.Sequence(left, right, _):
            return _union(_together(part) for part in (left, right))
        case ast.Conjunction(children):
            return _union(map(_together, children))
    return None


def _union(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for part in parts:
        if part is None:
            return None
        found |= part
    return found
