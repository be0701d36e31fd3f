"""Times that are doubles: in columns as one by one, exactly what their shortest decimal notation says."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.core.events.time import UNITS, decimal_times
from tests.support.sizes import some

DECIMALS = st.builds(
    lambda whole, digits: float(f"{whole}e-{digits}"), st.integers(-(10**17), 10**17), st.integers(0, 12)
)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=64)


def _exactly(value: float, scale: int) -> int:
    return int((Decimal(repr(value)) * scale).to_integral_value(ROUND_FLOOR))


@given(st.lists(DECIMALS | DOUBLES, max_size=20), st.sampled_from(sorted(UNITS.values())))
@settings(max_examples=some(500))
def test_what_is_known_is_what_the_decimal_says(values: list[float], scale: int) -> None:
    times, known = decimal_times(np.array(values, np.float64), scale)
    for value, time, told in zip(values, times.tolist(), known.tolist(), strict=True):
        assert not told or time == _exactly(value, scale)


@pytest.mark.parametrize(("value", "unit"), [
    (1_700_000_000.123456, "s"), (0.000000001, "s"), (-3.25, "s"),
    (1_700_000_000_123.5, "ms"), (-0.0001, "us"), (0.0, "ns"),
])  # fmt: skip
def test_usual_times_are_known(value: float, unit: str) -> None:
    times, known = decimal_times(np.array([value]), UNITS[unit])
    assert known.all()
    assert times[0] == _exactly(value, UNITS[unit])


def test_far_and_odd_ones_are_left() -> None:
    _, known = decimal_times(np.array([1e300, 0.1 + 0.2, np.nan, np.inf, 2.0**62 + 0.5]), UNITS["s"])
    assert not known.any()
