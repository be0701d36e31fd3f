"""Expressions on whole batches: columns in, a truth value per event out.

They have the meaning of `ceql.operators.values` on single values. A text column is tested once per distinct text, and
the results are gathered by code. Conditions are evaluated to the events for which they are *true*. Those for which they
are *known* (true or false, not NULL) are computed only below a NOT, which needs them. Values that columns cannot hold
exactly, those of several kinds and arithmetic of whole numbers among decimals beyond 2^53, are evaluated row by row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ceql.expressions.exact import compare
from ceql.expressions.members import members
from ceql.expressions.scalar import compile_condition, compile_value
from ceql.operators import values
from ceql.operators.arithmetic import ARITHMETIC, negate
from ceql.operators.columns import ByRow, Constant, Operand, both_known, choose, known_rows, operand_kind
from ceql.operators.function import OwnFunctionError
from ceql.operators.functions import FUNCTIONS
from ceql.operators.times import moved_columns
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import EventError, InternalError
from spaseq.core.events import (
    Column,
    Duration,
    EventBatch,
    ListColumn,
    MixedColumn,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
    text_array,
    truths_of,
)
from spaseq.core.events.columns import mixed_column

Known = np.ndarray | None
_ARROW: Final = {symbol: getattr(pc, row.arrow) for symbol, row in COMPARISONS.items()}
_EXACT: Final = 1 << 53
_SPANS: Final = {"time", "duration"}


@dataclass(frozen=True, slots=True)
class _Truth:
    """`true`: bool (n,), the condition holds. `known()`: it is true or false; None means everywhere."""

    true: np.ndarray
    known: Callable[[], Known]


def evaluate(node: ast.Condition, batch: EventBatch) -> np.ndarray:
    """bool (n,): `node` is true, not unknown. `EventError` if kinds of values do not go together."""
    try:
        return _truth(node, batch).true
    except (ByRow, EventError) as error:
        truths = _by_row(compile_condition, node, batch, error)
        return np.fromiter((truth is True for truth in truths), bool, len(batch))


def truths(node: ast.Condition, batch: EventBatch) -> tuple[np.ndarray, Known]:
    """bool (n,): `node` is true; and bool (n,): it is true or false, None for everywhere. Errors as of `evaluate`."""
    try:
        found = _truth(node, batch)
        return found.true, found.known()
    except (ByRow, EventError) as error:
        values_of = _by_row(compile_condition, node, batch, error)
        known = np.fromiter((truth is not None for truth in values_of), bool, len(batch))
        return np.fromiter((truth is True for truth in values_of), bool, len(batch)), known


def _by_row(
    compiled: Callable[[Any, Any], Callable[[int], Any]], node: Any, batch: EventBatch, why: Exception
) -> list[Any]:
    """The values of an expression or condition, one by one. Kinds of columns may differ if no event has values of both.
    The first event that has is an error: `why`, if it is one, or one that names the event."""
    of_row, found = compiled(node, lambda attribute: batch.getter(attribute.name)), []
    for row in range(len(batch)):
        try:
            found.append(of_row(row))
        except EventError as error:
            if isinstance(why, EventError) and not isinstance(error, OwnFunctionError):
                raise why from None
            places = getattr(batch, "positions", None)
            record = None if places is None else int(places[row]) + 1
            raise EventError(error.problem, record=record, counted="event", hint=error.hint) from None
    return found


def _truth(node: ast.Condition, batch: EventBatch) -> _Truth:
    match node:
        case ast.And(left, right):
            return _and(_truth(left, batch), _truth(right, batch))
        case ast.Or(left, right):
            return _or(_truth(left, batch), _truth(right, batch))
        case ast.Not(child):
            return _not(_truth(child, batch))
        case ast.Compare(symbol, left, right):
            return _compare(symbol, _value(left, batch), _value(right, batch), len(batch), node)
        case ast.Like(value, pattern):
            return _like(_value(value, batch), pattern, len(batch), node)
        case ast.IsNull(value):
            return _Truth(~known_rows(_value(value, batch), len(batch)), lambda: None)
        case ast.In(value):
            return _in(_value(value, batch), len(batch), node)
        case ast.InRange(value):
            operand = _value(value, batch)
            bounds = [(symbol, _value(bound, batch)) for symbol, bound in node.bounds]
            return functools.reduce(_and, [_compare(s, operand, bound, len(batch), node) for s, bound in bounds])
    raise InternalError(f"no evaluation of {type(node).__name__}")


# Kleene's logic


def _not(a: _Truth) -> _Truth:
    known = a.known()
    return _Truth(~a.true if known is None else known & ~a.true, lambda: known)


def _and(a: _Truth, b: _Truth) -> _Truth:
    def known() -> Known:
        ka, kb = a.known(), b.known()
        if ka is None and kb is None:
            return None
        false_a = ~a.true if ka is None else ka & ~a.true
        false_b = ~b.true if kb is None else kb & ~b.true
        return np.asarray((a.true & b.true) | false_a | false_b)

    return _Truth(a.true & b.true, known)


def _or(a: _Truth, b: _Truth) -> _Truth:
    true = a.true | b.true

    def known() -> Known:
        ka, kb = a.known(), b.known()
        if ka is None or kb is None:
            return None if ka is kb else np.asarray(true | (kb if ka is None else ka))
        return np.asarray(true | (ka & kb))

    return _Truth(true, known)


def _unknown(count: int) -> _Truth:
    nothing = np.zeros(count, bool)
    return _Truth(nothing, lambda: nothing)


def _settle(true: np.ndarray, known: Known) -> _Truth:
    return _Truth(true if known is None else true & known, lambda: known)


# Comparisons


def _compare(symbol: str, left: Operand, right: Operand, count: int, node: ast.Condition) -> _Truth:
    if left is None or right is None:
        return _unknown(count)
    if isinstance(left, Constant):
        if isinstance(right, Constant):
            constants = left.value, right.value
            truth = _name(node, lambda: values.compare(symbol, *constants))
            return _Truth(np.full(count, bool(truth)), lambda: None)
        left, right, symbol = right, left, COMPARISONS[symbol].mirror
    if isinstance(left, TextColumn):
        return _compare_text(symbol, left, right, node)
    if isinstance(right, TextColumn):
        raise values.mismatch(operand_kind(left), operand_kind(right), print_expression(node))
    other: Any = right.value if isinstance(right, Constant) else right.values
    if isinstance(left, TimeColumn) and isinstance(other, str):
        other = _name(node, lambda: values.time_of(str(other)))
    elif operand_kind(left) != operand_kind(right) or (isinstance(left, TruthColumn) and COMPARISONS[symbol].is_order):
        raise values.mismatch(operand_kind(left), operand_kind(right), print_expression(node))
    if isinstance(left, ListColumn):
        raise values.mismatch(left.kind, left.kind, print_expression(node))
    known = left.known if isinstance(right, Constant) else both_known(left.known, right.known)
    if isinstance(left, NumberColumn):
        return _settle(compare(symbol, left, right if isinstance(right, NumberColumn) else other), known)
    return _settle(np.asarray(COMPARISONS[symbol].holds(left.values, other)), known)


def _compare_text(symbol: str, left: TextColumn, right: Column | Constant, node: ast.Condition) -> _Truth:
    if isinstance(right, TextColumn):
        true = _ARROW[symbol](_decode(left), _decode(right)).fill_null(False)
        return _Truth(np.asarray(true), lambda: (left.codes >= 0) & (right.codes >= 0))
    if not isinstance(right, Constant) or not isinstance(right.value, str):
        raise values.mismatch("text", operand_kind(right), print_expression(node))
    return _by_text(left, _ARROW[symbol](left.texts, text_array([right.value])[0]))


def _by_text(column: TextColumn, answers: pa.BooleanArray) -> _Truth:
    """The truth per event, from the answers per distinct text."""
    return _Truth(column.where(truths_of(answers)), lambda: column.codes >= 0)


def _decode(column: TextColumn) -> pa.Array:
    codes = pa.array(column.codes, pa.int32(), mask=column.codes < 0)
    return column.texts.take(codes)


def _like(operand: Operand, pattern: str, count: int, node: ast.Condition) -> _Truth:
    match operand:
        case None:
            return _unknown(count)
        case TextColumn():
            return _by_text(operand, pc.match_substring_regex(operand.texts, values.whole_string(pattern)))
        case Constant(str() as text):
            return _Truth(np.full(count, bool(values.like(text, pattern))), lambda: None)
    raise values.mismatch(operand_kind(operand), "text", print_expression(node))


def _in(operand: Operand, count: int, node: ast.In) -> _Truth:
    if operand is None:
        return _unknown(count)
    prepared = members(node)
    if not isinstance(operand, Constant):
        found = _name(node, lambda: prepared.where(operand))
        if found is not None:
            return _by_text(operand, found) if isinstance(operand, TextColumn) else _settle(found, operand.known)
    first, *others = [_compare("=", operand, Constant(value), count, node) for value in prepared.constants]
    return functools.reduce(_or, others, first)


def _name(node: ast.Expression, work: Callable[[], Any]) -> Any:
    """The result of `work()`; its `EventError` is raised with the expression's text."""
    try:
        return work()
    except EventError as error:
        raise EventError(f"{print_expression(node)}: {error.problem}", hint=error.hint) from None


# Values


def operand(node: ast.Expression, batch: EventBatch) -> Column | None:
    """The values of an expression per event; None if it is NULL for all of them. It contains an attribute.
    `EventError` if kinds of values do not go together."""
    try:
        found = _value(node, batch)
    except (ByRow, EventError) as error:
        return mixed_column(_by_row(compile_value, node, batch, error))
    return _spread(found, len(batch)) if isinstance(found, Constant) else found


def _spread(constant: Constant, count: int) -> Column | None:
    """A column that is constant in a batch: CASE WHEN v > 3 THEN 1 ELSE 1 END."""
    return choose([(np.ones(count, bool), constant)], count)


def _value(node: ast.Expression, batch: EventBatch) -> Operand:
    match node:
        case ast.Number(value) | ast.Text(value) | ast.Truth(value):
            return Constant(value)
        case ast.Null():
            return None
        case ast.Duration(nanoseconds):
            return Constant(Duration(nanoseconds))
        case ast.Attribute(name):
            column = batch.column(name)
            if isinstance(column, MixedColumn):
                raise ByRow
            return column
        case ast.Negate(child):
            inner = _value(child, batch)
            zero = Duration(0) if inner is not None and operand_kind(inner) == "duration" else 0
            return _arithmetic("-", Constant(zero), inner, node, negated=True)
        case ast.Arithmetic(symbol, left, right):
            return _arithmetic(symbol, _value(left, batch), _value(right, batch), node)
        case ast.Call(name, arguments):
            operands = [_value(argument, batch) for argument in arguments]
            return _name(node, lambda: FUNCTIONS[name].of_columns(operands, len(batch)))
        case ast.Case():
            return _case(node, batch)
    raise InternalError(f"no evaluation of {type(node).__name__}")


def _case(node: ast.Case, batch: EventBatch) -> Operand:
    rest, parts = np.ones(len(batch), bool), []
    for condition, result in zip(node.conditions, node.results, strict=True):
        true = _truth(condition, batch).true
        parts.append((rest & true, _value(result, batch)))
        rest = rest & ~true
    if node.otherwise is not None:
        parts.append((rest, _value(node.otherwise, batch)))
    return choose(parts, len(batch))


def _arithmetic(symbol: str, left: Operand, right: Operand, node: ast.Expression, negated: bool = False) -> Operand:
    if left is None or right is None:
        return None
    if isinstance(left, Constant) and isinstance(right, Constant):
        value = negate(right.value) if negated else ARITHMETIC[symbol].of_values(left.value, right.value)
        return None if value is None else Constant(value)
    kinds = operand_kind(left), operand_kind(right)
    if not _SPANS.isdisjoint(kinds):
        return moved_columns(symbol, left, right, print_expression(node))
    if kinds != ("number", "number"):
        raise values.mismatch(*kinds, print_expression(node))
    a, known_a = _array(left)
    b, known_b = _array(right)
    known = both_known(known_a, known_b)
    with np.errstate(all="ignore"):
        if negated and np.asarray(b).dtype == np.float64:
            return NumberColumn(-b, known, right.whole if isinstance(right, NumberColumn) else None)
        result, defined = ARITHMETIC[symbol].of_columns(a, b)
    whole = None if symbol == "/" else _whole(left, right, result)
    known = known if defined is None else both_known(known, defined)
    return NumberColumn(result if known is None else np.where(known, result, 0), known, whole)


def _whole(left: Column | Constant, right: Column | Constant, result: np.ndarray) -> np.ndarray | None:
    """The results of two whole numbers, in columns with both these and others. `ByRow` if doubles may not hold one."""
    sides = [s for s in (left, right) if isinstance(s, NumberColumn)]
    if all(side.whole is None for side in sides):
        return None
    whole = np.ones(len(result), bool)
    for side in (left, right):
        if isinstance(side, Constant):
            whole &= isinstance(side.value, int)
        elif isinstance(side, NumberColumn) and side.values.dtype == np.float64:
            whole &= False if side.whole is None else side.whole
    inputs = [np.asarray(s.value if isinstance(s, Constant) else s.values) for s in (left, right)]  # type: ignore[union-attr]
    if any((whole & (np.abs(part.astype(np.float64)) > _EXACT)).any() for part in (*inputs, result)):
        raise ByRow
    return whole


def _array(operand: Column | Constant) -> tuple[np.ndarray, Known]:
    if isinstance(operand, Constant):
        return np.asarray(operand.value), None
    assert isinstance(operand, NumberColumn)
    return operand.values, operand.known
