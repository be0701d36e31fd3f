"""Values that are told apart without sorting are those of numpy's sorting."""

import random

import numpy as np
import pytest

from spaseq.gpm.columnar.table import different, distinct


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(40))
def test_random_values(seed: int, kind: type) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        count, low = rng.randrange(60), rng.choice([0, -1, 7, -(1 << 31)])
        spread = rng.choice([1, 2, 5, 50, 1_000, 5_000])
        columns: list[np.ndarray] = [
            np.array([low + rng.randrange(spread) for _ in range(count)], kind) for _ in range(rng.randrange(1, 4))
        ]
        if kind is np.int64 and count and rng.random() < 0.2:
            columns[0][rng.randrange(count)] = rng.choice([-(1 << 63), (1 << 63) - 1])
        used, places = different(columns[0])
        wanted, theirs = np.unique(columns[0], return_inverse=True)
        assert used.dtype == wanted.dtype
        assert places.dtype == np.int64
        assert used.tolist() == wanted.tolist()
        assert places.tolist() == theirs.tolist()
        first, codes = distinct(columns, count)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        kinds = sorted(set(rows))
        assert [rows[row] for row in first.tolist()] == kinds
        assert first.tolist() == [rows.index(own) for own in kinds]
        assert codes.tolist() == [kinds.index(row) for row in rows]
