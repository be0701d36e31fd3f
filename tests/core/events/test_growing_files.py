"""Files that are written to while they are read, and standard input as it comes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventOptions, EventStream, GrowingFile
from spaseq.core.events import growing as module


class Stop(Exception):
    """Nothing more is written."""


@pytest.fixture
def writing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, list[str]], None]:
    """Instead of waiting, the next piece is written; behind the last, `Stop`."""

    def write(path: Path, pieces: list[str]) -> None:
        left = iter(pieces)

        def sleep(seconds: float) -> None:
            piece = next(left, None)
            if piece is None:
                raise Stop
            with path.open("a") as file:
                file.write(piece)

        monkeypatch.setattr(module.time, "sleep", sleep)

    return write


def batches(source: GrowingFile) -> Iterator[list[dict[str, object]]]:
    try:
        for batch in EventStream({"": source}, EventOptions()):
            yield batch.table.to_pylist()
    except Stop:
        return


def test_a_line_counts_once_it_is_whole(tmp_path: Path, writing: Callable[[Path, list[str]], None]) -> None:
    path = tmp_path / "events.csv"
    path.write_text("type,v\nA,1\nB")
    writing(path, ["", ",2\nC,3\nD,4", "", "5\n"])
    assert list(batches(GrowingFile(str(path)))) == [
        [{"type": "A", "v": 1}],
        [{"type": "B", "v": 2}, {"type": "C", "v": 3}],
        [{"type": "D", "v": 45}],
    ]


def test_an_empty_file_gets_its_header_later(tmp_path: Path, writing: Callable[[Path, list[str]], None]) -> None:
    path = tmp_path / "events.tsv"
    path.write_text("")
    writing(path, ["type\t", "v\n", "A\t1\n", "B\t1.5\n"])
    assert list(batches(GrowingFile(str(path)))) == [[{"type": "A", "v": 1}], [{"type": "B", "v": 1.5}]]


def test_a_quoted_field_may_have_lines(tmp_path: Path, writing: Callable[[Path, list[str]], None]) -> None:
    path = tmp_path / "events.csv"
    path.write_text('type,note\nA,"one\n')
    writing(path, ['two"\nB,"three', '"\n'])
    assert list(batches(GrowingFile(str(path)))) == [
        [{"type": "A", "note": "one\ntwo"}],
        [{"type": "B", "note": "three"}],
    ]


def test_json_lines_grow_too(tmp_path: Path, writing: Callable[[Path, list[str]], None]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type": "A", "v": 1}\n{"type"')
    writing(path, [': "B"}\n', '{"type": "C", "v": 2}\n'])
    assert list(batches(GrowingFile(str(path)))) == [
        [{"type": "A", "v": 1}],
        [{"type": "B"}],
        [{"type": "C", "v": 2}],
    ]


def test_errors_name_the_record_of_the_file(tmp_path: Path, writing: Callable[[Path, list[str]], None]) -> None:
    path = tmp_path / "events.csv"
    path.write_text("type,v\nA,1\n")
    writing(path, ["A,2\nA,3\n", "A,x\n"])
    with pytest.raises(EventError, match=r"events\.csv:5: attribute v is 'x' here"):
        list(batches(GrowingFile(str(path))))


def test_a_file_that_shrinks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.csv"
    path.write_text("type,v\nA,1\n")
    monkeypatch.setattr(module.time, "sleep", lambda seconds: path.write_text("type\n"))
    with pytest.raises(EventError, match="became shorter"):
        list(batches(GrowingFile(str(path))))
    path.unlink()
    with pytest.raises(EventError, match="no such file"):
        list(batches(GrowingFile(str(path))))


@pytest.mark.parametrize("message", ["the file is gone", "replaced by another", "written anew"])
def test_a_file_that_is_no_longer_the_same(message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "events.csv", tmp_path / "other.csv"
    path.write_text("type,v\nA,1\n")
    other.write_text("type,v\nA,1\nA,2\n")
    change: dict[str, Callable[[], object]] = {
        "the file is gone": path.unlink,
        "replaced by another": lambda: other.replace(path),
        "written anew": lambda: path.write_text("type,v\nA,2\nA,3\n"),
    }
    monkeypatch.setattr(module.time, "sleep", lambda seconds: change[message]())
    with pytest.raises(EventError, match=rf"{message} while it was followed: \d+ bytes of it had been read") as found:
        list(batches(GrowingFile(str(path))))
    assert found.value.source == str(path)


@pytest.mark.parametrize("name", ["events.parquet", "events.csv.gz", "events"])
def test_only_text_grows(name: str) -> None:
    with pytest.raises(OptionError, match="only text can be read as it grows"):
        GrowingFile(name)


@pytest.mark.parametrize("end", ["\n", ""])
def test_standard_input_ends_when_it_is_closed(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(read, "rb")))
    os.write(write, b"type,v\nA,1\n")
    found = batches(GrowingFile("-"))
    assert next(found) == [{"type": "A", "v": 1}]  # before there is more
    os.write(write, f"B,2{end}".encode())
    os.close(write)
    assert list(found) == [[{"type": "B", "v": 2}]]
