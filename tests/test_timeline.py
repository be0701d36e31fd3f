"""The axis of a timeline, and the table of a narrow terminal: what people read first."""

from __future__ import annotations

import io
import random

import pytest

from spaseq.core.drawing.timeline import _date_ticks, _position_ticks
from spaseq.tools.command.table import Table

HOUR = 3_600
DAY = 1_718_438_400.0


@pytest.mark.parametrize(
    ("seconds", "first", "axis"),
    [
        (5 * HOUR, "08:30", "time (UTC), 2024-06-15"),
        (22 * HOUR, "06-15 12:00", "time (UTC), 2024"),
        (40, "08:00:10", "time (UTC), 2024-06-15"),
        (300 * 24 * HOUR, "2024-07", "time (UTC)"),
    ],
)
def test_ticks_are_at_round_times(seconds: float, first: str, axis: str) -> None:
    ticks, said = _date_ticks(DAY + 1, DAY + 1 + seconds)
    assert 4 <= len(ticks) <= 11 and said == axis and ticks[0][1] == first


def test_there_are_ticks_for_every_length() -> None:
    draw = random.Random(7)
    for _ in range(2_000):
        low, length = draw.uniform(1e9, 2e9), 10 ** draw.uniform(0.5, 8.5)
        assert 3 <= len(_date_ticks(low, low + length)[0]) <= 11, (low, length)
    assert [label for _, label in _position_ticks(1027, 1085)] == ["1,030", "1,040", "1,050", "1,060", "1,070", "1,080"]


def test_a_narrow_table_leaves_out_what_can_be_spared_before_it_cuts() -> None:
    out = io.StringIO()
    table = Table(out, ["bindings", "from", "positions"], spare=2, width=30)
    table.row(["a=1  a.price=30", "2026-01-01T00:00:00Z", "0 1 2"])
    table.flush()
    assert "a=1  a.price=30" in out.getvalue() and (table.left_out, table.has_cut) == (2, False)
