"""Programs of questions: what the kernel is sure of is so, in exact arithmetic and in that of doubles."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.core.engine.kernels.registers import layout as reg
from spaseq.core.engine.kernels.registers.operations import decide
from spaseq.core.engine.program.register_ops import Operand, ResidualTest, rows_of
from tests.support.oracle import ARITHMETIC, COMPARISONS

_VALUES = [0.0, 1.0, -1.0, 2.0, 3.0, 0.1, 0.2, 0.3, -0.3, 1e9, 1e18, 1e300, 7.25]
_SUMS = st.recursive(
    st.integers(0, 2).map(lambda i: (i,)) | st.sampled_from(_VALUES).map(lambda v: (v,)),
    lambda inner: (
        st.tuples(inner, inner, st.sampled_from("+-*/")).map(lambda t: (*t[0], *t[1], t[2]))
        | st.tuples(inner, st.sampled_from(("neg", "abs"))).map(lambda t: (*t[0], t[1]))
    ),
    max_leaves=6,
)
_CONDITIONS = st.recursive(
    st.tuples(_SUMS, _SUMS, st.sampled_from(sorted(COMPARISONS))).map(lambda t: (*t[0], *t[1], t[2])),
    lambda inner: (
        st.tuples(inner, inner, st.sampled_from(("and", "or"))).map(lambda t: (*t[0], *t[1], t[2]))
        | inner.map(lambda i: (*i, "not"))
    ),
    max_leaves=3,
)


_OF_ONE: dict[str, Callable[[Any], Any]] = {"neg": operator.neg, "abs": abs, "not": operator.not_}


def _code(value: float) -> int:
    bits = int(np.float64(value + 0.0).view(np.int64))
    return bits if bits >= 0 else bits ^ ((1 << 63) - 1)


def _decided(program: tuple[Any, ...], values: list[float]) -> int:
    steps = tuple(Operand(column=s) if isinstance(s, int) else s for s in program)
    rows = np.array(rows_of(ResidualTest(0, (), steps)), np.int32).reshape(-1, 4)
    codes = np.array([_code(v) for v in values], np.int64)
    return int(decide(rows, 1, len(rows), codes, codes, np.zeros((2, reg.STACK))))


def _truth(program: tuple[Any, ...], values: list[Any], number: Callable[[Any], Any]) -> bool | None:
    """By the arithmetic of `number`; None where something has no value."""
    both = {**ARITHMETIC, **COMPARISONS, "and": lambda x, y: x and y, "or": lambda x, y: x or y}
    stack: list[Any] = []
    for step in program:
        if isinstance(step, int):
            stack.append(number(values[step]))
        elif isinstance(step, float):
            stack.append(number(step))
        elif step in ("neg", "abs", "not"):
            stack.append(_OF_ONE[step](stack.pop()))
        else:
            b, a = stack.pop(), stack.pop()
            try:
                stack.append(both[step](a, b))
            except (ZeroDivisionError, OverflowError):
                return None
    return bool(stack.pop())


@given(_CONDITIONS, st.lists(st.sampled_from(_VALUES), min_size=3, max_size=3))
def test_what_is_decided_is_so(program: tuple[Any, ...], values: list[float]) -> None:
    found = _decided(program, values)
    exact = _truth(program, [Fraction(str(v)) for v in values], lambda v: Fraction(str(v)))
    doubles = _truth(program, values, float)
    for expected in (exact, doubles):
        if expected is not None and found >= 0:
            assert found == expected


@pytest.mark.parametrize(
    ("program", "values", "expected"),
    [
        ((0, 1, "+", 2, "<"), [1.0, 2.0, 4.0], 1),
        ((0, 1, "+", 2, ">"), [1.0, 2.0, 4.0], 0),
        ((0, 1, "+", 2, "="), [0.1, 0.2, 0.3], -1),
        ((0, 1, "+", 2, "!="), [0.1, 0.2, 0.4], 1),
        ((0, 1, "/", 2, "<"), [1.0, 0.0, 0.3], -1),
        ((0, 1, "/", 2, "<", 2, 5.0, "<", "or"), [1.0, 0.0, 0.3], 1),
        ((0, 1, "/", 2, "<", 2, 5.0, ">", "and", "not"), [1.0, 0.0, 0.3], 1),
        ((0, 1, "*", 2, ">"), [1e10, 1e10, 0.3], -1),
    ],
)
def test_close_or_without_a_value_is_open(program: tuple[Any, ...], values: list[float], expected: int) -> None:
    assert _decided(program, values) == expected


def test_programs_too_high_are_always_asked() -> None:
    program: tuple[Operand | float | str, ...] = (*([1.0] * (reg.STACK + 1)), *(["+"] * reg.STACK), 5.0, "<")
    assert len(rows_of(ResidualTest(0, (), program))) == 1
