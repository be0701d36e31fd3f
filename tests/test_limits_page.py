"""docs/limits.md has every setting, with its default, and no other."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path
from unittest import mock

from spaseq.core import watch
from spaseq.core.engine import Settings


def test_the_page_has_every_budget_with_its_default() -> None:
    page = (Path(__file__).parents[1] / "docs" / "limits.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
    with mock.patch("spaseq.core.engine.program.settings.memory_of_machine", lambda: 8 * 10**9):
        small = Settings()
    with mock.patch("spaseq.core.engine.program.settings.memory_of_machine", lambda: 10**12):
        large = Settings()
    for f in fields(Settings):
        if f.name == "evaluator":
            continue
        default = rows.pop(f.name)
        if f.default is not MISSING:
            assert default == str(f.default), f.name
            continue
        part = re.match(r"1/(\d+) of the memory(?:, up to (\d+))?", default)
        assert part is not None, f.name
        most = int(part[2] or 10**12)
        assert getattr(small, f.name) == 8 * 10**9 // int(part[1]), f.name
        assert getattr(large, f.name) == min(10**12 // int(part[1]), most), f.name
    assert not rows


def test_the_memory_is_that_of_the_container(tmp_path: Path) -> None:
    """Both versions of control groups, and a group around the process's that allows less."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("9:name=systemd:/\n4:memory:/a/b\n3:cpuset:/a\n0::/c/d\n")
    for path, text in (("memory/a/b", "9223372036854771712"), ("memory/a", "700"), ("c/d", "max"), ("c", "600")):
        name = "memory.limit_in_bytes" if path.startswith("memory") else "memory.max"
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path / name).write_text(text + "\n")
    found = [limit for limit in watch._of_containers(root, own) if limit is not None]
    assert found == [9223372036854771712, 700, 600]
    assert not list(watch._of_containers(root, tmp_path / "none"))
