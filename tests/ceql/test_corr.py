"""CORR and lists of numbers: where they come from, and the errors where they do not belong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import ceql
from spaseq.core.errors import EventError


def test_lists_are_compared_with_nothing() -> None:
    events = [{"type": "A", "h": [1, 2], "v": 1}, {"type": "B", "h": [2, 4], "v": 2}]
    run = lambda text: ceql.compile(f"SELECT * WHERE A AS x ; B AS y {text}").run(events).count()  # noqa: E731
    assert run("FILTER CORR(x.h, y.h) = 1") == 1
    for text, message in [
        ("FILTER x.h > 3", "a list of numbers cannot be combined with a number"),
        ("FILTER x.h != y.h", "a list of numbers cannot be combined with a list of numbers"),
        ("FILTER x[h = h]", "a list of numbers cannot be combined with a list of numbers"),
        ("FILTER x.h + 1 > 3", "a list of numbers cannot be combined with a number"),
        ("FILTER CORR(x.h, y.v) > 0", "CORR is of two lists of numbers, and this is a number"),
        ("FILTER x[CORR(h, v) > 0]", "CORR is of two lists of numbers, and this is a number"),
        ("PARTITION BY [h]", "attribute h is a list, and PARTITION BY goes by"),
    ]:
        with pytest.raises(EventError, match=message):
            run(text)


def test_correlation_of_what_is_in_files(tmp_path: Path) -> None:
    """JSON arrays and Arrow lists of any kind of number, in pushes too."""
    path = tmp_path / "events.jsonl"
    lines = ['{"type": "A", "h": [1, 2.5, null]}', '{"type": "A", "h": [1, 2, 4]}', '{"type": "B", "h": [2, 4, 8]}']
    path.write_text("\n".join(lines))
    query = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER CORR(x.h, y.h) > 0.99")
    assert [m.positions for m in query.run(str(path))] == [(1, 2)]
    for kind in (pa.list_(pa.int8()), pa.large_list(pa.float32()), pa.list_(pa.int64(), 3)):
        table = pa.table({"type": ["A", "B"], "h": pa.array([[1, 2, 4], [2, 4, 8]], kind)})
        assert [m.positions for m in query.run(table)] == [(0, 1)]
    with query.open() as stream:
        found = [m for e in ([1, 2, 4], [2, 4, 8]) for m in stream.push([{"type": "AB"[e[0] - 1], "h": e}])]
    assert [m.positions for m in found] == [(0, 1)]
