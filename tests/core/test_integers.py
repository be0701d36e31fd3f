"""Integers put in order and told apart, beside numpy's own ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spaseq.core.integers import Memo, apart, different, first_of_each, in_order

SPANS = [3, 300, 70_000, 1 << 33, (1 << 62) - 1]


@given(st.data(), st.sampled_from([np.int32, np.int64]), st.sampled_from(SPANS), st.integers(0, 60))
def test_as_numpy_has_it(data: st.DataObject, dtype: type, span: int, size: int) -> None:
    span = min(span, (1 << 31) - 1) if dtype is np.int32 else span
    values = data.draw(arrays(dtype, size, elements=st.integers(-span, span)))
    _compare(values)
    _compare(np.sort(values))


@pytest.mark.parametrize(
    "values", [[], [7], [7, 7], [-1, -1, 5], [1 << 40, -(1 << 40)], [65_536, 0, 65_535, 0, 65_536]]
)
def test_edges(values: list[int]) -> None:
    _compare(np.array(values, np.int64))


def test_the_span_of_all_numbers() -> None:
    _compare(np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max]))
    _compare(np.array([np.iinfo(np.int32).max, np.iinfo(np.int32).min, 0, np.iinfo(np.int32).min], np.int32))


def test_rows_of_several_columns() -> None:
    values = np.array([[3, 1], [1, 2]])
    assert apart(values).tolist() == [1, 2, 3]
    assert apart(np.array([[1], [2]])).tolist() == [1, 2]
    for rows in (values, values << 40, values[:0], values[:, :1]):
        used, places = different(rows)
        assert used.tolist() == np.unique(rows).tolist()
        assert places.shape == rows.shape
        assert (used[places] == rows).all()


def test_a_memo_is_a_dict_of_numbers() -> None:
    rng, memo, known = np.random.default_rng(3), Memo(), dict[int, int]()
    for _ in range(200):
        numbers = rng.integers(0, 1 << int(rng.integers(1, 16)), int(rng.integers(0, 9)))
        assert memo.of(numbers).tolist() == [known.get(number, -1) for number in numbers.tolist()]
        numbers = apart(numbers)
        told = rng.integers(-1, 100, len(numbers))
        memo.tell(numbers, told)
        known.update(zip(numbers.tolist(), told.tolist(), strict=True))
        one = int(rng.integers(0, 1 << 17))
        assert memo.of_one(one) == known.get(one, -1)
        memo.tell_one(one, 7)
        known[one] = 7
    memo.clear()
    assert memo.of(np.array([0, 1 << 18])).tolist() == [-1, -1]


def _compare(values: np.ndarray) -> None:
    assert in_order(values).tolist() == np.argsort(values, kind="stable").tolist()
    used, first, places = np.unique(values, return_index=True, return_inverse=True)
    for found in (apart(values), different(values)[0]):
        assert found.tolist() == used.tolist()
        assert found.dtype == values.dtype
    assert different(values)[1].tolist() == places.tolist()
    assert [part.tolist() for part in first_of_each(values)] == [first.tolist(), places.tolist()]
