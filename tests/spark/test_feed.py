"""No event of a stream of files is lost silently: files that go away, become shorter, are replaced, appear in front."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spaseq.core.errors import EventError, InternalError, OptionError
from spaseq.rdf import StreamOptions, StreamSource
from spaseq.spark.ingest import feed as module
from spaseq.spark.ingest.feed import Feed, FeedPart, Place, advance, listing, parts_between
from spaseq.spark.ingest.parts import part_chunks

TIME = "http://www.w3.org/ns/prov#generatedAtTime"


def _event(number: int) -> str:
    return f'<a:g{number:04}> <{TIME}> "{number}" .\n<a:s> <a:heat> "{number}" <a:g{number:04}> .\n'


SIZE = len(_event(10))


class Folder:
    """A folder of files of two events each, and a stream of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        source = StreamSource("http://example.org/s", (str(path / "*.nq"),))
        self.feed = Feed(0, source, StreamOptions(time=TIME))

    def write(self, name: str, *numbers: int) -> None:
        (self.path / name).write_text("".join(map(_event, numbers)))

    def go_on(self, start: Place = Place(), **words: Any) -> Place:  # noqa: B008
        """The next place, as it is read back from Spark's log."""
        return Place.of(json.loads(json.dumps(advance(self.feed, start, **words).to_dict())))

    def bytes(self, start: Place, end: Place, tasks: int = 1) -> bytes:
        parts = parts_between(self.feed, start, end, tasks, smallest=1)
        return b"".join(b"".join(part_chunks(p.path, p.start, p.end)) for p in parts)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    for number in (2, 4, 6):
        made.write(f"{number}.nq", 10 * number, 10 * number + 1)
    return made


def test_files_read_to_their_ends_may_go(folder: Folder) -> None:
    place = folder.go_on()
    (folder.path / "2.nq").unlink()
    assert folder.go_on(place) == place
    for name in ("4.nq", "6.nq"):
        (folder.path / name).unlink()
    assert folder.go_on(place) == place
    folder.write("8.nq", 80)
    last = folder.go_on(place)
    assert folder.bytes(place, last) == _event(80).encode()
    assert (last.files, last.known) == (4, "")


@pytest.mark.parametrize("gone", [[], ["2.nq"], ["2.nq", "4.nq"], ["2.nq", "4.nq", "6.nq"]])
@pytest.mark.parametrize("name", ["1.nq", "3.nq", "5.nq"])
def test_a_file_in_front_is_an_error_whatever_was_removed(gone: list[str], name: str, folder: Folder) -> None:
    place = folder.go_on()
    for each in gone:
        (folder.path / each).unlink()
    folder.write(name, 1)
    with pytest.raises(EventError, match=rf"{name} appeared in front of those already read, up to 6.nq \(\d+ bytes, 4"):
        folder.go_on(place)


def test_the_check_goes_on_where_files_go_and_come(folder: Folder) -> None:
    """Also behind a batch, which knows only the files that were still there."""
    place = folder.go_on()
    (folder.path / "2.nq").unlink()
    folder.write("8.nq", 80)
    place = folder.go_on(place)
    (folder.path / "4.nq").unlink()
    folder.write("2.nq", 20, 21)
    with pytest.raises(EventError, match=r"2\.nq appeared in front"):
        folder.go_on(place)


def _half(folder: Folder) -> Place:
    folder.feed = replace(folder.feed, max_bytes=1)
    place = folder.go_on()
    assert (os.path.basename(place.name), place.byte, place.line) == ("2.nq", SIZE, 3)
    return place


def _remove(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    path.write_text(_event(20)[:-9])


def _replace(path: Path) -> None:
    path.write_text(_event(99) + _event(98) + _event(97))


def _grow(path: Path) -> None:
    path.write_text(path.read_text() + _event(99))


@pytest.mark.parametrize(
    "change, message",
    [
        (_remove, r"the file is gone: of the file \d+ of \d+ bytes, 2 lines, had been read"),
        (_truncate, r"of the file \d+ of \d+ bytes, 2 lines, had been read; now it has only"),
        (_replace, r"2 lines, had been read; now its first bytes are others"),
    ],
)
def test_a_file_that_was_read_in_part(change: Callable[[Path], None], message: str, folder: Folder) -> None:
    place = _half(folder)
    change(folder.path / "2.nq")
    with pytest.raises(EventError, match=message) as found:
        folder.go_on(place)
    assert found.value.source == str(folder.path / "2.nq")
    assert "put it back" in found.value.hint


@pytest.mark.parametrize("change", [_truncate, _grow])
def test_a_file_behind_that_changes(change: Callable[[Path], None], folder: Folder) -> None:
    place = folder.go_on()
    change(folder.path / "4.nq")
    with pytest.raises(EventError, match="changed after it had been read to its end") as found:
        folder.go_on(place)
    assert found.value.source == str(folder.path / "4.nq")


@pytest.mark.parametrize("change", [_truncate, _replace])
def test_the_last_file_that_was_read_whole_changes(change: Callable[[Path], None], folder: Folder) -> None:
    place = folder.go_on()
    change(folder.path / "6.nq")
    with pytest.raises(EventError, match="had been read; now it"):
        folder.go_on(place)


def test_a_file_that_is_not_cut_changes(folder: Folder) -> None:
    folder.feed = replace(folder.feed, whole=True)
    place = folder.go_on()
    _grow(folder.path / "6.nq")
    with pytest.raises(EventError, match="had been read to its end; now it has"):
        folder.go_on(place)


@pytest.mark.parametrize("change", [_remove, _truncate])
@pytest.mark.parametrize("name", ["2.nq", "4.nq", "6.nq"])
def test_a_planned_file_is_gone_before_its_batch(change: Callable[[Path], None], name: str, folder: Folder) -> None:
    place = folder.go_on()
    change(folder.path / name)
    with pytest.raises(EventError, match=r"a batch is planned to read its bytes 0 to \d+") as found:
        parts_between(folder.feed, Place(), place, 2)
    assert found.value.source == str(folder.path / name)


def test_a_planned_part_is_gone_while_it_is_read(folder: Folder) -> None:
    place = folder.go_on()
    part: FeedPart = parts_between(folder.feed, Place(), place, 1)[0]
    _truncate(folder.path / "2.nq")
    with pytest.raises(EventError, match="the file ends at byte"):
        list(part_chunks(part.path, part.start, part.end))


def test_a_growing_file_that_goes_before_its_last_event_is_read(folder: Folder) -> None:
    folder.feed = replace(folder.feed, growing=True)
    place = folder.go_on()
    assert (os.path.basename(place.name), place.byte) == ("6.nq", SIZE)
    _grow(folder.path / "6.nq")
    more = folder.go_on(place)
    assert folder.bytes(place, more) == _event(61).encode()
    (folder.path / "6.nq").unlink()
    with pytest.raises(EventError, match="the file is gone"):
        folder.go_on(more)


def test_a_batch_is_planned_alike_when_files_have_come_since(folder: Folder) -> None:
    """What an offset says is read, whatever is there by now."""
    folder.feed = replace(folder.feed, max_files=2)
    first = folder.go_on()
    whole = folder.bytes(Place(), first)
    folder.write("8.nq", 80)
    assert folder.bytes(Place(), first, tasks=3) == whole == "".join(map(_event, (20, 21, 40, 41))).encode()
    second = folder.go_on(first)
    assert folder.bytes(first, second) == "".join(map(_event, (60, 61, 80))).encode()
    with pytest.raises(InternalError, match="do not follow each other"):
        parts_between(folder.feed, Place(), second, 1)


def test_of_many_files_the_last_are_known_by_name(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset does not grow without end: of the older ones the number counts."""
    monkeypatch.setattr(module, "_KNOWN", 1)
    place = folder.go_on()
    assert (place.older, os.path.basename(place.floor), len(place.known)) == (1, "2.nq", 8)
    folder.write("1.nq", 1)
    with pytest.raises(EventError, match="appeared in front"):
        folder.go_on(place)
    (folder.path / "1.nq").unlink()
    folder.write("3.nq", 1)
    with pytest.raises(EventError, match=r"3\.nq appeared in front"):
        folder.go_on(place)


def test_what_another_version_wrote_is_refused() -> None:
    with pytest.raises(OptionError, match="the checkpoint is of another version"):
        Place.of({"name": "a.nq", "files": 1, "byte": 7, "line": 1, "closed": False})


def test_the_end_is_said_once(folder: Folder) -> None:
    place = folder.go_on(among=listing(folder.feed))
    closed = folder.go_on(place, closing=True)
    assert closed.closed
    assert [part.last for part in parts_between(folder.feed, place, closed, 1)] == [True]
    assert folder.go_on(closed, closing=True) == closed
