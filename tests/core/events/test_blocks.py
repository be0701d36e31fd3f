"""Blocks of bytes, and how pyarrow's readers get them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from spaseq.core.events.blocks import to_arrow

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("size", [0, 1, 5_000, 1 << 20])
def test_a_reader_of_pyarrow_holds_nothing_of_python(size: int) -> None:
    """Its threads may let go of it when the process has ended, which would end it with SIGABRT."""
    data = bytes(bytearray(size))
    held = sys.getrefcount(data)
    reader = to_arrow(data)
    assert sys.getrefcount(data) == held
    assert reader.read() == data


def test_every_reader_of_text_gets_bytes_of_arrow() -> None:
    files = [path for room in ("spaseq", "ceql") for path in (_ROOT / room).rglob("*.py")]
    given = {path.name: re.findall(r"\.read_(?:csv|json)\(\s*(\w+)", path.read_text()) for path in files}
    assert {name: set(calls) for name, calls in given.items() if calls} == {
        "csv_files.py": {"to_arrow"}, "json_lines.py": {"to_arrow"},
    }  # fmt: skip
    assert [path.name for path in files if "BufferReader(" in path.read_text()] == ["blocks.py"]
