"""How many partitions the case files are run in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest


def with_partitions(cases: Sequence[Any]) -> list[Any]:
    """Each case with a number of partitions: 1, 2 and 7 in turn, or with SPASEQ_PARTITIONS=all all three (an hour)."""
    every = os.environ.get("SPASEQ_PARTITIONS") == "all"
    return [
        pytest.param(case, count, id=f"{case.place} in {count}")
        for i, case in enumerate(cases)
        for count in ((1, 2, 7) if every else ((1, 2, 7)[i % 3],))
    ]
