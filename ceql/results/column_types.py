"""The Arrow types of the columns that SELECT computes, from those of the events' attributes.

An operator or a function is computed once, of a sample of each type that its arguments have: the type of the result is
that of the column. Values that depend on more than types (CASE, COALESCE) are widened to doubles if they differ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from ceql.expressions.scalar import compile_value
from ceql.operators.casts import RESULTS
from ceql.operators.functions import FUNCTIONS
from ceql.operators.values import ARROW_TYPES, kind_of
from ceql.syntax import ast
from ceql.syntax.ast import GROUP_START, SILENCE
from ceql.syntax.walk import is_aggregate
from spaseq.core.errors import EventError
from spaseq.core.events import Duration, Instant
from spaseq.core.events.columns import kind_of_items
from spaseq.core.kinds import KINDS

Types = Mapping[str, pa.DataType]
INSTANTS: Final = ARROW_TYPES["time"]
_CHOOSING: Final = ("COALESCE", "NULLIF", "LEAST", "GREATEST")


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnTypes:
    """The types of expressions, if those of `attributes` are these. `times`: the type of the times of matches; None if
    it is not known. `starts`: that of GROUP_START. `brackets`: for each attribute of PARTITION BY those of its
    bracket."""

    attributes: Types
    times: pa.DataType | None
    starts: pa.DataType | None
    brackets: Mapping[str, list[str]]

    def of(self, node: ast.Expression) -> pa.DataType | None:
        """The type of an expression's values; None if it is not known."""
        match node:
            case ast.Condition() | ast.Truth():
                return pa.bool_()
            case ast.Attribute(name, None) if name not in self.brackets:
                return {SILENCE: pa.int64(), GROUP_START: self.starts}.get(name, self.times)
            case ast.Attribute(name, None):
                return _common(self.attributes.get(each) for each in self.brackets[name])
            case ast.Attribute(name) | ast.Earlier(ast.Attribute(name)):
                return self.attributes.get(name)
            case ast.Case(_, results, otherwise):
                return self._common((*results, *([] if otherwise is None else [otherwise])))
            case ast.Call(function, arguments) if function in _CHOOSING:
                return self._common(arguments[:1] if function == "NULLIF" else arguments)
            case ast.Call("CAST" | "TRY_CAST", (_, ast.Text(kind))):
                return pa.int64() if KINDS[kind] == "INTEGER" else ARROW_TYPES[RESULTS[KINDS[kind]]]
            case ast.Call(function, (argument,)) if is_aggregate(node):
                return self._aggregate(function, argument)
        return self._type_of_sample(node)

    def _common(self, parts: Iterable[ast.Expression]) -> pa.DataType | None:
        """The one type of several expressions; NULL is of any."""
        return _common(self.of(part) for part in parts if not isinstance(part, ast.Null))

    def _aggregate(self, function: str, argument: ast.Expression) -> pa.DataType | None:
        match function:
            case "COUNT" | "COUNT DISTINCT":
                return pa.int64()
            case "STDDEV":
                return pa.float64()
        kind = self.of(argument)
        if function in ("AVG", "SUM"):
            return _span(kind) or (pa.float64() if function == "AVG" else _number(kind))
        return pa.list_(kind) if function == "COLLECT" and kind is not None else kind

    def _type_of_sample(self, node: ast.Expression) -> pa.DataType | None:
        """The type of the result for samples of the parts."""
        samples: dict[str, Any] = {}

        def sample(part: ast.Expression) -> ast.Expression:
            if isinstance(part, ast.CONSTANTS):
                return part
            name = f"#{len(samples)}"
            kind = self.of(part)
            samples[name] = None if kind is None else _sample(kind)
            return ast.Attribute(name)

        match node:
            case ast.Negate(child):
                node = ast.Negate(sample(child))
            case ast.Arithmetic(symbol, left, right):
                if symbol in "/%" and isinstance(right, ast.Number) and not right.value:
                    right = ast.Number(right.value + 1)  # NULL for any number, of the type of others
                left, right = _like_other(left, right), _like_other(right, left)
                node = dataclasses.replace(node, left=sample(left), right=sample(right))
            case ast.Call(_, arguments):
                node = dataclasses.replace(node, arguments=tuple(map(sample, arguments)))
        compute: Callable[[dict[str, Any]], Any]
        compute = compile_value(node, lambda attribute: lambda given: given[attribute.name])
        try:
            value = compute(samples)
        except EventError:
            value = None
        if value is not None:
            return pa.int64() if type(value) is int else ARROW_TYPES[kind_of(value)]
        return ARROW_TYPES.get(FUNCTIONS[node.function].gives) if isinstance(node, ast.Call) else None


def _like_other(side: ast.Expression, other: ast.Expression) -> ast.Expression:
    """The side of an operation, for NULL the other one: a number and NULL are as two numbers."""
    return other if isinstance(side, ast.Null) else side


def _common(kinds: Iterable[pa.DataType | None]) -> pa.DataType | None:
    """The one type of several; doubles for numbers of different types; None if one is not known."""
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    if None in found or not found:
        return None
    return pa.float64() if {_number(kind) for kind in found} <= {pa.int64(), pa.float64()} else None


def _number(kind: pa.DataType | None) -> pa.DataType | None:
    """The type of numbers that are computed of such ones; None for others."""
    if kind is None or pa.types.is_boolean(kind):
        return None
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else None


def _span(kind: pa.DataType | None) -> pa.DataType | None:
    """The type of times or durations that are computed of such ones; None for others."""
    if kind is None or not pa.types.is_temporal(kind) or pa.types.is_time(kind):
        return None
    return ARROW_TYPES["duration" if pa.types.is_duration(kind) else "time"]


def _sample(kind: pa.DataType) -> Any:
    """A value of a type; None if expressions have no values of it."""
    span = _span(kind)
    if span is not None:
        return Duration(1) if pa.types.is_duration(span) else Instant(0)
    if pa.types.is_boolean(kind):
        return True
    items = kind_of_items(kind)
    if items:
        return (1.0,) if items == "list" else ("1",)
    number = _number(kind)
    if number is not None:
        return 1 if number == pa.int64() else 1.5
    return "1" if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_time(kind) else None
