"""Operations on registers as the rows of `ops` that kernels read."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from spaseq.core.engine.kernels.registers import layout as k
from spaseq.core.engine.program.register_ops import (
    Append,
    ColumnTest,
    Copy,
    Drop,
    ForEachValue,
    Gather,
    Keep,
    MergeRule,
    Op,
    Operand,
    ResidualTest,
    Test,
    Total,
    TotalTest,
    Unless,
    Value,
)

_SYMBOLS = {"=": k.EQUAL, "!=": k.DIFFERENT, "<": k.LESS, "<=": k.AT_MOST, ">": k.GREATER, ">=": k.AT_LEAST}
_RULES = {
    MergeRule.SAME: k.KEEP_SAME,
    MergeRule.OLD: k.KEEP_OLD,
    MergeRule.ONE: k.KEEP_ONE,
    MergeRule.GREATEST: k.KEEP_GREATEST,
    MergeRule.LEAST: k.KEEP_LEAST,
    MergeRule.OVERWRITE: k.KEEP_NEW,
    MergeRule.SET: k.KEEP_NEW,
}
_TOTALS = {
    Total.COUNT: k.GATHER_COUNT,
    Total.SUM: k.GATHER_SUM,
    Total.GREATEST: k.GATHER_GREATEST,
    Total.LEAST: k.GATHER_LEAST,
}
_STEPS = {
    "+": k.ADD,
    "-": k.SUBTRACT,
    "*": k.MULTIPLY,
    "/": k.DIVIDE,
    "neg": k.NEGATE,
    "abs": k.ABSOLUTE,
    "not": k.NOT,
    "and": k.AND,
    "or": k.OR,
    "mean": k.MEAN,
}


def rows_of(op: Op) -> list[tuple[int, int, int, int]]:
    """An operation as rows of `ops`."""
    match op:
        case Test(symbol, register, column, _):
            return [(k.TEST, register, column, _SYMBOLS[symbol] + (k.STRICT if op.strict else 0))]
        case ColumnTest(symbol, left, right):
            return [(k.BOTH, left, right, _SYMBOLS[symbol])]
        case Keep(rule, register, column):
            return [(k.KEEP, register, column, _RULES[rule])]
        case TotalTest(symbol, left, right):
            first = (k.TOTAL, left[0], left[1] if len(left) > 1 else -1, _SYMBOLS[symbol])
            if isinstance(right, float):
                return [first, _constant(right, 0)]
            return [first, (k.HELD, right[0], right[1] if len(right) > 1 else -1, 0)]
        case Gather(rule, register, column, most):
            return [(k.GATHER, register, column, _TOTALS[rule] + 8 * most)]
        case Drop(register):
            return [(k.DROP, register, 0, 0)]
        case Copy(register, source):
            return [(k.COPY, register, source, 0)]
        case Append(register, column):
            return [(k.APPEND, register, column, 0)]
        case Unless(tests):
            rows = [row for test in tests for row in rows_of(test)]
            return [(k.UNLESS, len(rows), 0, 0), *rows]
        case ResidualTest(number, about, program, lenient):
            steps = [_step(step) for step in program] if _height(program) <= k.STACK else []
            rows = [_operand(o, k.NAMED) for o in about] + steps
            return [(k.ASK, number, len(rows), k.LENIENT if lenient else 0), *rows]
        case ForEachValue(others, first):
            return [(k.EACH, first, others, 0)]


def _operand(operand: Operand, role: int) -> tuple[int, int, int, int]:
    register, column = operand.register, operand.column
    kind = k.HELD if column is None else k.GIVEN if register is None else k.EITHER
    return kind, register or 0, column or 0, role


def _height(program: tuple[Operand | Value | float | str, ...]) -> int:
    """The most values that there are at a time."""
    changes = (1 if not isinstance(s, str) else 0 if s in ("neg", "abs", "not") else -1 for s in program)
    return max(accumulate(changes), default=0)


def _step(step: Operand | Value | float | str) -> tuple[int, int, int, int]:
    match step:
        case Operand():
            return _operand(step, k.EXACT if step.exact else k.NUMBER)
        case str():
            if step in _STEPS:
                return _STEPS[step], 0, 0, 0
            symbol = step.removeprefix("exact ")
            return k.COMPARE, 0, 0 if symbol == step else k.EXACT, _SYMBOLS[symbol]
        case _:
            return _constant(step.number, k.EXACT) if isinstance(step, Value) else _constant(step, 0)


def _constant(number: float, role: int) -> tuple[int, int, int, int]:
    low, high = np.array([number], np.float64).view(np.int32).tolist()
    return k.CONSTANT, low, high, role
