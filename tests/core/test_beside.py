"""Files that are written beside their place: whole or not at all, and through nobody's links."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from spaseq.core.files.beside import write_beside


def _write(path: Path, data: bytes) -> None:
    with write_beside(str(path)) as file:
        file.write(data)


def test_a_new_file_has_the_rights_that_open_gives(tmp_path: Path) -> None:
    _write(tmp_path / "new", b"1")
    (tmp_path / "other").write_bytes(b"1")
    assert (tmp_path / "new").read_bytes() == b"1"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["new", "other"]


def test_a_file_that_is_replaced_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    for mode in (0o600, 0o664):
        path.chmod(mode)
        _write(path, b"now")
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"now", mode)


def test_an_exception_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    for name in ("file", "new"):
        with pytest.raises(KeyboardInterrupt), write_beside(str(tmp_path / name)) as file:
            file.write(b"now")
            raise KeyboardInterrupt
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["file"]


def test_of_a_link_the_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("folder/file")
    _write(tmp_path / "link", b"now")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "file").read_bytes() == b"now"


def test_links_that_wait_under_names_of_the_process_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    for name in (f"file.{os.getpid()}.part", f".file.{os.getpid()}.part", "file.part", "file.tmp"):
        (tmp_path / name).symlink_to(victim)
    _write(tmp_path / "file", b"now")
    assert victim.read_bytes() == b"mine" and not (tmp_path / "file").is_symlink()


def test_a_device_is_written_directly() -> None:
    _write(Path(os.devnull), b"now")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        _write(tmp_path, b"now")


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write all files")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        _write(path, b"now")
    assert path.read_bytes() == b"before"


def test_an_open_file_is_written_directly(tmp_path: Path) -> None:
    """By its number it would be another file after a rename."""
    with open(tmp_path / "file", "w+b") as file:
        (tmp_path / "link").symlink_to(f"/dev/fd/{file.fileno()}")
        for name in (Path(f"/dev/fd/{file.fileno()}"), Path(f"/proc/self/fd/{file.fileno()}"), tmp_path / "link"):
            _write(name, str(name).encode())
            assert os.pread(file.fileno(), 1000, 0) == str(name).encode()


def test_a_file_that_is_mounted_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    (tmp_path / "file").write_bytes(b"longer before")
    _write(tmp_path / "file", b"now")
    assert (tmp_path / "file").read_bytes() == b"now" and os.listdir(tmp_path) == ["file"]
