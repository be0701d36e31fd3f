"""Cutting files: every line is in one part, with the right number."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaseq.errors import EventError, OptionError
from spaseq.rdf import StreamSource
from spaseq.spark import parts
from spaseq.spark.parts import FilePart, InputFile, cut, input_files, newlines_before_end, part_chunks, with_lines

TEXT = st.lists(st.sampled_from([b"", b"a", b"bc", b"def\r", b"\xc3\xa9"]), max_size=12).map(b"\n".join)


@given(data=TEXT, tasks=st.integers(1, 9), block=st.sampled_from([1, 3, 1000]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_hold_each_line_once(
    data: bytes, tasks: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.nt"
    path.write_bytes(data)
    monkeypatch.setattr(parts, "_BLOCK", block)
    found = cut([InputFile(0, 0, "a.nt", str(path))], None, tasks, smallest=1)
    texts = [b"".join(part_chunks(part)) for part in found]
    assert b"".join(texts) == data
    line = 1
    for part, text in zip(with_lines(found, map(newlines_before_end, found)), texts, strict=True):
        assert not text or part.first_line == line
        line += text.count(b"\n")


def test_compressed_files_and_documents_are_not_cut(tmp_path: Path) -> None:
    for name in ("a.nq.gz", "b.trig", "c.nt"):
        (tmp_path / name).write_bytes(b"x" * 100)
    files = input_files([StreamSource("s", (str(tmp_path / "*"),)), StreamSource("t", (str(tmp_path / "c.nt"),))])
    assert [(file.number, file.stream) for file in files] == [(0, 0), (1, 0), (2, 0), (3, 1)]
    found = cut(files, None, 4, smallest=10)
    assert [part.end for part in found if part.file in (0, 1)] == [None, None]
    assert [(part.start, part.end) for part in found if part.file == 3] == [(0, 100)]


def test_small_files_are_one_part(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(b"x\n" * 100)
    (file,) = input_files([StreamSource("s", (str(tmp_path / "a.nt"),))])
    assert cut([file], None, 50) == [FilePart(0, file.name, file.path, 0, 200)]


def test_an_empty_file_is_an_empty_part(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(b"")
    (part,) = cut(input_files([StreamSource("s", (str(tmp_path / "a.nt"),))]), None, 3)
    assert list(part_chunks(part)) == []


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(OptionError, match="Spark cannot read standard input"):
        input_files([StreamSource("s", ("-",))])
    with pytest.raises(EventError, match=r"power\.nt: cannot read: No such file"):
        list(part_chunks(FilePart(0, "power.nt", "/nowhere/power.nt", 0, 10)))
    with pytest.raises(EventError, match=r"^power\.nt\.gz: no such file"):
        list(part_chunks(FilePart(0, "power.nt.gz", "/nowhere/power.nt.gz")))
