"""The file systems of files: this machine's, or one that only Spark's libraries read (`s3a://`, `hdfs://`, …).

All reading of files by name goes through this module. `file:` names a file of this machine. For other file systems a
process is given a `Storage` (`use_storage`), as Spark's processes are (`spaseq.spark.session.storage`). A process
without one, such as the local engine, refuses these files.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from typing import BinaryIO, Final, Protocol, cast
from urllib.parse import unquote

from spaseq.core.errors import OptionError

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE: Final = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/))", re.IGNORECASE)


class Storage(Protocol):
    """File systems other than this machine's. Errors are OSErrors."""

    def matching(self, pattern: str) -> dict[str, int | None]:
        """The files that a path or a glob stands for now, with their sizes; None for a folder."""

    def open(self, path: str) -> BinaryIO:
        """A file, to be read from any place in it."""


_storage: Storage | None = None


def use_storage(storage: Storage | None) -> None:
    """Set the reader of files of other file systems, for this process, from now on."""
    global _storage
    _storage = storage


def is_elsewhere(path: str) -> bool:
    """True if a name is that of a file system other than this machine's."""
    return _SCHEME.match(path) is not None and _FILE.match(path) is None


def local_path(path: str) -> str:
    """The path of a file of this machine; of one elsewhere its name."""
    found = _FILE.match(path)
    return path if found is None else unquote(path[found.end() :])


def whole_name(path: str) -> str:
    """The name under which other processes find a file."""
    return path if is_elsewhere(path) else os.path.abspath(local_path(path))


def matching(pattern: str) -> dict[str, int | None]:
    """The files that a path or a glob stands for now, by name, with their sizes in bytes; None for a folder.

    Empty if there are none. Raises OSError if one cannot be examined, OptionError if this process has no access.
    """
    if is_elsewhere(pattern):
        return _elsewhere(pattern).matching(pattern)
    path = local_path(pattern)
    names = [path] if os.path.exists(path) or not glob.has_magic(path) else sorted(glob.glob(path, recursive=True))
    found: dict[str, int | None] = {}
    for name in names:
        with suppress(FileNotFoundError, ValueError):  # it has just been removed, or no file can have this name
            found[name] = None if os.path.isdir(name) else os.stat(name, follow_symlinks=os.path.exists(name)).st_size
    return found


def is_there(path: str) -> bool:
    """True if there is a file or a folder of this name; globs are no names."""
    return path in _elsewhere(path).matching(path) if is_elsewhere(path) else os.path.exists(local_path(path))


def file_size(path: str) -> int:
    """The size of a file in bytes. Raises OSError if there is no such file."""
    if not is_elsewhere(path):
        return os.stat(local_path(path)).st_size
    size = _elsewhere(path).matching(path).get(path)
    if size is None:
        raise FileNotFoundError(2, "No such file or directory", path)
    return size


def open_file(path: str) -> BinaryIO:
    """A file, to be read from any place in it. Raises OSError if it cannot be opened."""
    if is_elsewhere(path):
        return _elsewhere(path).open(path)
    return cast(BinaryIO, open(local_path(path), "rb"))


def _elsewhere(path: str) -> Storage:
    if _storage is None:
        scheme = path.partition(":")[0]
        problem = f"{path}: files of {scheme}:// are read by Spark, and this is the local engine"
        hint = "--engine spark (spaseq.spark.run; for tuples spaseq.spark.match), or a copy of the file here"
        raise OptionError(problem, hint)
    return _storage
