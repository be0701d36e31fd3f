"""Files that are written beside their place and renamed: a name stands for a whole file, the new one or the old one."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

from spaseq.errors import OptionError

__all__ = ["save_text", "write_beside"]

_OPEN_FILE: Final = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+")
_LINKS: Final = 40
"""Links that may lead to one another."""


@contextmanager
def write_beside(path: str) -> Iterator[BinaryIO]:
    """Give a file to write, which takes the place of `path` when the block ends without an exception.

    Until then `path` is as it was, and after an exception too: what was written is removed. The file is written in the
    same folder, under a new name that cannot be guessed, and links of such a name are not followed. If `path` is a
    link to a file that may be written, that file is replaced, not the link. The owner and the mode of a file that is
    replaced are kept; a new file has those that `open` gives. A pipe or a device cannot be replaced: it is written
    directly, as is what a name like /dev/stdout stands for, which is an open file.

    OSError if it cannot be written. `PermissionError` also where the file may be written, but none may be made in its
    folder.
    """
    if _is_open_file(path):
        with open(path, "wb") as file:
            yield file
        return
    try:
        there = os.open(path, os.O_WRONLY)  # and so the system says whether a link may be followed here
    except FileNotFoundError:
        with _renamed(path, None) as file:
            yield file
        return
    before = os.fstat(there)
    if stat.S_ISREG(before.st_mode):
        os.close(there)
        with _renamed(os.path.realpath(path), before) as file:
            yield file
    else:
        with os.fdopen(there, "wb") as file:
            yield file


def save_text(path: str | Path, text: str) -> None:
    """Write a file of text by `write_beside`. Raises `OptionError` if it cannot be written."""
    try:
        with write_beside(os.fspath(path)) as file:
            file.write(text.encode())
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None


def _is_open_file(path: str) -> bool:
    """True for a name of an open file, and for a link to one."""
    for _ in range(_LINKS):
        if _OPEN_FILE.match(os.path.abspath(path)):
            return True
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return False


@contextmanager
def _renamed(place: str, before: os.stat_result | None) -> Iterator[BinaryIO]:
    beside = os.path.join(os.path.dirname(place), f".spaseq-{secrets.token_hex(8)}.part")
    mode = 0o666 if before is None else 0o600  # nobody opens it while it has more rights than the file before
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with cast(BinaryIO, os.fdopen(descriptor, "wb")) as file:
            if before is not None:
                _keep_owner_and_mode(descriptor, before)
            yield file
            file.flush()
            os.fsync(descriptor)
        try:
            os.replace(beside, place)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            shutil.copyfile(beside, place)  # it is mounted as a file, as containers do
            os.unlink(beside)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _keep_owner_and_mode(descriptor: int, before: os.stat_result) -> None:
    now = os.fstat(descriptor)
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        if owner not in (-1, now.st_uid) or group not in (-1, now.st_gid):
            with suppress(OSError):  # only the administrator may give files away
                os.fchown(descriptor, owner, group)
    os.fchmod(descriptor, before.st_mode & 0o777)
