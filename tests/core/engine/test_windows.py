"""Windows against their definition in Python's own numbers: at the edges of int64 and of float64, decimals."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.core import jit
from spaseq.core.engine import Window
from spaseq.core.engine.kernels.keys import FACTOR, hash_of
from spaseq.core.engine.program.partitions import code
from spaseq.core.engine.program.window import Lows
from spaseq.core.errors import OptionError
from tests.support.sizes import some

LEAST, MOST = -(1 << 63), (1 << 63) - 1
DAY = 86_400 * 10**9

edges = st.sampled_from([LEAST, LEAST + 1, -(10**18), -DAY, -1, 0, 1, DAY, 10**18, MOST - 1, MOST])
places = st.one_of(edges, st.integers(LEAST, MOST), st.integers(-5, 5), st.integers(MOST - 5, MOST),
                   st.integers(LEAST, LEAST + 5))  # fmt: skip
sizes = st.one_of(
    st.sampled_from([0, 1, DAY, 36_500 * DAY, 9 * 10**18, MOST - 1, MOST]), st.integers(0, 9), st.integers(0, MOST)
)
decimals = st.one_of(
    st.integers(-50, 50).map(lambda n: n / 10),
    st.integers(-(10**15), 10**15).map(lambda n: n / 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 2),
)


def exact(number: int | float) -> Fraction:
    """A number as it is written in decimal."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def holds(window: Window, start: int | float, end: int | float) -> bool:
    """The definition: `start` before `end`."""
    match window.kind:
        case "none":
            return True
        case "tumbling":
            return (start - window.origin) // window.size == (end - window.origin) // window.size
        case _:
            # A size is a number of the attribute's own kind: of decimals another decimal.
            size = float(window.size) if isinstance(end, float) else window.size
            return exact(end) - exact(start) <= exact(size)


def windows() -> st.SearchStrategy[Window]:
    return st.one_of(
        st.just(Window("none")),
        sizes.map(lambda size: Window("events", size)),
        sizes.map(lambda size: Window("span", size)),
        st.floats(0, 1e30).map(lambda size: Window("span", size)),
        st.tuples(sizes.filter(bool), places).map(lambda both: Window("tumbling", *both)),
    )


def lows_of(window: Window, values: Any, dtype: Any, cuts: list[int]) -> list[int]:
    """The first live start of each row, pushed in batches that end at `cuts`."""
    lows, found, start = Lows(window, False), [], 0
    array = np.array(values, dtype)
    for stop in [*sorted(cut % (len(array) + 1) for cut in cuts), len(array)]:
        if stop > start:
            found += lows.of(np.arange(start, stop), array[start:stop], None)[0].tolist()
            start = stop
    return found


@settings(max_examples=some(300), deadline=None)
@given(windows(), st.lists(places, min_size=1, max_size=12), st.lists(st.integers(0, 12), max_size=3))
def test_the_first_live_start_of_whole_numbers_is_that_of_the_definition(
    window: Window, values: list[int], cuts: list[int]
) -> None:
    values.sort()
    expected = [next(i for i, start in enumerate(values) if holds(window, start, end)) for end in values]
    assert lows_of(window, values, np.int64, cuts) == expected


@settings(max_examples=some(300), deadline=None)
@given(st.one_of(decimals.map(abs), sizes), st.lists(decimals, min_size=1, max_size=12),
       st.lists(st.integers(0, 12), max_size=3))  # fmt: skip
def test_the_first_live_start_of_decimals_is_that_of_the_definition(
    size: float, values: list[float], cuts: list[int]
) -> None:
    window = Window("span", size)
    values.sort()
    expected = [next(i for i, start in enumerate(values) if holds(window, start, end)) for end in values]
    assert lows_of(window, values, np.float64, cuts) == expected


@settings(max_examples=some(300), deadline=None)
@given(windows(), places, places)
def test_bounds_of_whole_numbers_are_those_of_the_definition(window: Window, one: int, other: int) -> None:
    start, end = min(one, other), max(one, other)
    alive = holds(window, start, end)
    assert (start >= window.open_from(end)) == alive
    assert window.bounds(np.array([end])).tolist() == [window.open_from(end)]
    closes = window.closes_at(start)
    assert (closes is None or end <= closes) == alive
    if window.kind == "tumbling":
        assert (window.number(start) == window.number(end)) == alive
        assert window.number(window.origin) == 0


@settings(max_examples=some(300), deadline=None)
@given(st.one_of(decimals.map(abs), sizes), decimals, decimals)
def test_bounds_of_decimals_are_those_of_the_definition(size: float, one: float, other: float) -> None:
    window, start, end = Window("span", size), min(one, other), max(one, other)
    alive = holds(window, start, end)
    bound = window.open_from(end)
    assert (start >= bound) == alive
    assert window.bounds(np.array([end])).tolist() == [bound]
    closes = window.closes_at(start)
    assert closes is not None and (end <= closes) == alive
    low, sure = window.doubt(end)
    assert low <= bound and (sure >= bound or sure == end)
    assert [d[0] for d in window.doubts(np.array([end]))] == [low, sure]


def test_decimals_count_as_they_are_written() -> None:
    """0.4 - 0.3 is 0.10000000000000003 in float64."""
    tenths = [n / 10 for n in range(1, 10)]
    assert lows_of(Window("span", 0.1), tenths, np.float64, []) == [0, 0, 1, 2, 3, 4, 5, 6, 7]
    assert lows_of(Window("span", 0.1), tenths, np.float64, [1, 2, 3, 4]) == [0, 0, 1, 2, 3, 4, 5, 6, 7]


def test_whole_numbers_may_become_decimals() -> None:
    lows = Lows(Window("span", 1.5), False)
    assert lows.of(np.arange(2), np.array([1, 2]), None)[0].tolist() == [0, 0]
    assert lows.of(np.arange(2, 4), np.array([2.5, 3.75]), None)[0].tolist() == [0, 2]


def test_sizes_that_are_none_are_refused() -> None:
    wrong: list[tuple[Any, ...]] = [("events", -1), ("events", 1.5), ("events", 1 << 63), ("span", float("nan")),
                                    ("span", float("inf")), ("span", -1), ("tumbling", 0), ("tumbling", 1.0),
                                    ("tumbling", 1 << 63), ("hopping", 1)]  # fmt: skip
    for given_window in wrong:
        with pytest.raises(OptionError):
            Window(*given_window)
    Window("span", sys.float_info.max)


@pytest.mark.parametrize("compiled", [False, True])
def test_windows_of_events_by_key_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    """Random keys in batches; partitions that are forgotten, and snapshots between batches."""
    monkeypatch.setattr(jit, "BUDGET", 0.0 if compiled else 60.0)
    monkeypatch.setattr(jit, "_PATIENCE", 1)
    rng = np.random.default_rng(5)
    for size in (0, 1, 2, 3, 5, 8, 9, 17, 100, MOST):
        window, begin = Window("events", size), 0
        seen: dict[int, list[int]] = {}
        lows = Lows(window, True)
        for count in (1, 5, 300, 60, 300):
            keys, positions = rng.integers(-1, rng.choice([1, 3, 40]), count), np.arange(begin, begin + count)
            begin += count
            expected = []
            for key, position in zip(keys.tolist(), positions.tolist(), strict=True):
                own = seen.setdefault(key, [])
                own.append(position)
                expected.append(own[max(0, len(own) - 1 - size)])
            rows = np.flatnonzero(rng.random(count) < 0.7)
            assert lows.of(positions, positions, keys, rows)[0].tolist() == [expected[row] for row in rows.tolist()]
            gone = int(rng.integers(0, 40))
            lows.forget(np.array([gone]))
            seen.pop(gone, None)
            state = lows.snapshot()
            assert {key: places.tolist() for key, places in state["recent"].items()} == {
                key: own[max(0, len(own) - size) :] for key, own in seen.items() if size
            }
            lows = Lows(window, True)
            lows.restore(state, 40)


@pytest.mark.parametrize("key", [40, -2, 1 << 61, "0"])
def test_a_window_of_a_partition_that_cannot_be_is_refused(key: Any) -> None:
    lows = Lows(Window("events", 3), True)
    with pytest.raises(OptionError, match="numbers of partitions"):
        lows.restore({"times": None, "positions": np.zeros(0, np.int64), "recent": {key: np.zeros(1, np.int64)}}, 40)


@pytest.mark.parametrize("compiled", [False, True])
def test_codes_tell_values_apart(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    """Of whole numbers, doubles and truths; 0.0 is -0.0. Values that meet in one slot of the table are sorted."""
    monkeypatch.setattr(jit, "BUDGET", 0.0 if compiled else 60.0)
    monkeypatch.setattr(jit, "_PATIENCE", 1)
    rng = np.random.default_rng(6)
    products = [(n << 50) * pow(FACTOR, -1, 1 << 64) % (1 << 64) for n in range(6_000)]  # 18 bits above the slot's
    meeting = np.array([x ^ x >> 32 for x in products if x < 1 << 63], np.int64)
    with np.errstate(over="ignore"):
        assert len({int(hash_of.interpreted(value)) & 0xFFFF for value in meeting[:100]}) == 1
    whole = (rng.integers(0, 30, 500), rng.integers(LEAST, MOST, 5_000), np.zeros(0, np.int64))
    for values in (*whole, meeting, rng.integers(-2, 3, 500) * -0.25, np.arange(9) > 4):
        codes, found = code(values)
        assert (found[codes] == values).all()
        assert len(found) == len(set(values.tolist()))
