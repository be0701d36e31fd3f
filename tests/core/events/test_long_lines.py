"""Lines without end, and blocks of lines: bounded before the memory is taken."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pytest
import zstandard

from spaseq.core import watch
from spaseq.core.engine import Settings
from spaseq.core.errors import EventError, LimitReached
from spaseq.core.events import blocks
from spaseq.core.events.readers import tables


@pytest.mark.parametrize("name", ["e.csv.zst", "e.csv.gz", "e.jsonl.zst"])
@pytest.mark.parametrize("fill", [b"x", b'"\n' * 2, b"[", b"[],"])
def test_a_line_without_end_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fill: bytes) -> None:
    """By what the reader says it is about to hold: how much the process holds also depends on what ran before."""
    head = b'type,v\nA,"' if "csv" in name else b'{"type":"A","v":' + (b"" if b"[" in fill else b'"')
    pack = gzip.compress if name.endswith("gz") else zstandard.compress
    path = tmp_path / name
    path.write_bytes(pack(head + fill * ((50 << 20) // len(fill))))
    monkeypatch.setattr(watch, "resident_bytes", lambda: 0)
    with pytest.raises((EventError, LimitReached)), watch.limited(Settings(memory_limit=120_000_000)):
        for _ in tables(str(path)):
            pass


def test_a_record_that_is_longer_than_any_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 10)
    rest = blocks.Unfinished("e.csv", most=100)
    monkeypatch.setattr(blocks, "Unfinished", lambda name: rest)
    found = blocks.line_blocks(blocks.Joined(b"a,b\n" + b"x" * 200, io.BytesIO()), "e.csv", b'"')
    with pytest.raises(EventError, match=r"e\.csv: a line of more than 100 bytes"):
        list(found)


@pytest.mark.parametrize("seed", range(30))
def test_blocks_end_with_lines_outside_of_quotes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """As reading the whole text says, line by line."""
    rng = random.Random(seed)
    monkeypatch.setattr(blocks, "_BLOCK", rng.randint(1, 12))
    text = bytes(rng.choice(b'ab"\n\n') for _ in range(rng.randint(0, 80)))
    found = list(blocks.line_blocks(blocks.Joined(text, io.BytesIO()), "e.csv", b'"'))
    assert b"".join(found) == text
    for block in found[:-1]:
        assert block.endswith(b"\n") and block.count(b'"') % 2 == 0
