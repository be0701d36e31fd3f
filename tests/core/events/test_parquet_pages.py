"""Parquet files that are small and stand for much: what their pages take is known before they are decompressed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spaseq.core import watch
from spaseq.core.engine import Settings
from spaseq.core.errors import EventError, LimitReached
from spaseq.core.events.parquet_pages import rows_at_once
from spaseq.core.events.readers import tables

MB = 1 << 20
MOST = 1 << 18


def _at_once(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        return rows_at_once(file, str(path), "e.parquet", None, MOST)


def _coded(texts: list[str], rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(texts))


def _long_text() -> Any:
    """One of a million characters in each of 10,000 rows."""
    return _coded(["x" * MB, *(f"s{n}" for n in range(1000))], 10_000)


_BOMBS: dict[str, Callable[[], Any]] = {
    "a text of many rows": _long_text,
    "the same in a list": lambda: pa.ListArray.from_arrays([0] * 10_000 + [10_000], _long_text()),
    "a long list": lambda: pa.ListArray.from_arrays([0] * 10_000 + [40 * MB], pa.array(np.zeros(40 * MB))),
    "a long text": lambda: pa.array(["x" * (300 * MB)] + ["y"] * 9_999),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "a long list" else [pytest.mark.slow]) for name in _BOMBS]
)
@pytest.mark.parametrize("version", [pytest.param("1.0", marks=pytest.mark.slow), "2.0"])
def test_a_bomb_is_refused_or_read_in_few_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str
) -> None:
    path = tmp_path / "e.parquet"
    table = pa.table({"type": ["A"] * 10_000, "v": _BOMBS[name]()})
    pq.write_table(
        table, path, compression="zstd", store_schema=False, data_page_version=version,
        use_dictionary=("list" not in name and name != "a long text") or name == "the same in a list",
        dictionary_pagesize_limit=1 << 40,
    )  # fmt: skip
    del table
    assert path.stat().st_size < MB
    if name == "a text of many rows":
        assert _at_once(path) <= 128
    monkeypatch.setattr(watch, "resident_bytes", lambda: 0)  # what the reader is about to hold is what counts
    with pytest.raises(LimitReached), watch.limited(Settings(memory_limit=200 * MB)):
        held = list(itertools.islice(tables(str(path)), 300))
        watch.to_hold(sum(table.nbytes for table in held))


_TEXTS = ["", "a", "häuser", "x" * 300]


_FORMS = [
    pytest.param(
        version, codec, dictionary, marks=[] if dictionary or codec in ("none", "zstd") else [pytest.mark.slow]
    )
    for version in ("1.0", "2.0")
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
    for dictionary in (True, False)
]


@pytest.mark.parametrize(("version", "codec", "dictionary"), _FORMS)
def test_usual_files_are_read_as_before(tmp_path: Path, version: str, codec: str, dictionary: bool) -> None:
    path = tmp_path / "e.parquet"
    rng = np.random.default_rng(1)
    rows = 12_000
    table = pa.table({
        "type": pa.array(["A", "B", None]).take(pa.array(rng.integers(0, 3, rows))),
        "text": pa.array(_TEXTS).take(pa.array(rng.integers(0, 4, rows))),
        "own": pa.array([f"text number {n}" for n in range(rows)]),
        "n": pa.array(rng.integers(0, 9, rows)),
        "list": pa.array([[1.5, 2.0], [], None] * (rows // 3)),
        "fixed": pa.array([b"abcd"] * rows, pa.binary(4)),
    })  # fmt: skip
    pq.write_table(
        table, path, compression=codec, data_page_version=version, use_dictionary=dictionary, data_page_size=5_000,
        dictionary_pagesize_limit=50_000, row_group_size=4_000, write_statistics=True,
    )  # fmt: skip
    assert _at_once(path) == MOST
    found = [row for part in tables(str(path)) for row in part.to_pylist()]
    assert found == table.to_pylist()


def test_files_without_rows_and_columns_not_wanted(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"type": pa.array([], pa.string())}), path)
    assert _at_once(path) == MOST
    pq.write_table(pa.table({"type": ["A"] * 10_000, "v": _long_text()}), path, dictionary_pagesize_limit=1 << 40)
    with pq.ParquetFile(path) as file:
        assert rows_at_once(file, str(path), "e.parquet", ["type"], MOST) == MOST
        assert rows_at_once(file, pa.BufferReader(path.read_bytes()), "e.parquet", None, MOST) <= 128


@pytest.mark.parametrize("at", range(4, 40))
def test_damaged_pages_are_an_error_or_read(tmp_path: Path, at: int) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"type": ["A", "B"], "v": [1, 2]}), path)
    data = bytearray(path.read_bytes())
    for value in (0, 0x1C, 0xFF):
        path.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
        try:
            list(tables(str(path)))
        except EventError as error:
            assert error.source == str(path)
