"""The notebooks of the examples show what they show when they are run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.notebooks import NOTEBOOKS, executed, read, shown


def test_there_is_one_for_each_use_case() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["card-fraud", "smart-grid", "stock", "traffic", "vessels"]


_QUICK = ("smart-grid",)
"""The others take five to twenty seconds each, mostly for a kernel of Jupyter, and go the same way."""


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[] if p.stem in _QUICK else pytest.mark.slow) for p in NOTEBOOKS]
)
def test_every_cell_shows_what_the_file_has(path: Path) -> None:
    assert path.stat().st_size < 300_000
    before, again = read(path), executed(path)
    for number, (old, new) in enumerate(zip(before.cells, again.cells, strict=True), 1):
        assert shown(old) == shown(new), f"cell {number}; python -m tests.support.notebooks makes it anew"
        assert str(path.parent) not in str(shown(new)), f"cell {number} has a path of this machine"
