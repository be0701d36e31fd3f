"""docs/limits.md has every setting, with its default, and no other."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from spaseq.engine import Settings


def test_the_page_has_every_budget_with_its_default() -> None:
    page = (Path(__file__).parents[1] / "docs" / "limits.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE))
    assert rows == {f.name: str(f.default) for f in fields(Settings) if f.name != "evaluator"}
