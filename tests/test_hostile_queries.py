"""Queries of people who wish no good: each ends within ten seconds and a gigabyte, with a result or an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hostile import QUERIES, Query, costs

SECONDS = 10.0
BYTES = 1 << 30


def _are_bounded(queries: list[Query], folder: Path) -> None:
    found = costs(queries, folder)
    assert found.keys() == {query.name for query in queries}
    wrong = {
        name: cost
        for name, cost in found.items()
        if cost.code not in (0, 2, 3, 4)
        or cost.seconds > SECONDS
        or cost.bytes > BYTES
        or "Traceback" in cost.said
        or (cost.code and not cost.said.strip())
    }
    assert not wrong


def test_some_of_them(tmp_path: Path) -> None:
    _are_bounded([query for query in QUERIES if query.quick], tmp_path)


@pytest.mark.slow
def test_all_of_them(tmp_path: Path) -> None:
    """Of both languages more than 100."""
    assert len(QUERIES) > 100
    _are_bounded(list(QUERIES), tmp_path)
