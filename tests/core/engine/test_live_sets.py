"""What one run hands to the next, and to snapshots."""

from __future__ import annotations

import numpy as np
import pytest

from spaseq.core.engine.runs.base import LiveSets
from spaseq.core.errors import OptionError
from spaseq.core.tecs import Arena

ONE, BOTH = frozenset({1}), frozenset({1, 2})


def some() -> LiveSets:
    """Three cells in two partitions, two of them with one set."""
    return LiveSets.of([(5, 0, ONE), (2, 1, BOTH), (3, 1, ONE)], np.array([4, 7]), np.array([0, 6]))


def test_equal_sets_have_one_number() -> None:
    live = some()
    assert live.sets == [ONE, BOTH] and live.numbers.tolist() == [0, 1, 0]
    assert live.cells.tolist() == [5, 2, 3] and live.keys.tolist() == [0, 1, 1]
    assert LiveSets.of([], live.lows, live.floors).cells.shape == (0,)


def test_it_comes_back_as_it_was() -> None:
    arena = Arena(1 << 20)
    arena.add_cells(6)
    state = some().snapshot()
    again = LiveSets.restore(state, arena).snapshot()
    assert all(np.array_equal(a, b) for a, b in zip(again, state, strict=True))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (0, np.array([5, 2, 6])),  # no such cell
        (0, np.array([5, 2, 5])),  # twice
        (1, np.array([0, 1, 2])),  # no such partition
        (1, np.array([0, 1])),  # a partition is missing
        (2, np.array([0, 1, -1])),  # no such set
        (3, [ONE, ONE]),
        (4, np.array([4])),
        (5, np.array([0, -6])),
    ],
)
def test_columns_that_do_not_fit_are_refused(column: int, value: object) -> None:
    arena = Arena(1 << 20)
    arena.add_cells(6)
    state = list(some().snapshot())
    state[column] = value
    with pytest.raises(OptionError, match="damaged"):
        LiveSets.restore(tuple(state), arena)
