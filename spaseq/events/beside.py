"""Files that are written beside their place and renamed: a name stands for a whole file, the new one or the old one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

__all__ = ["write_beside"]


@contextmanager
def write_beside(path: str) -> Iterator[BinaryIO]:
    """Give a file to write, which takes the place of `path` when the block ends without an exception.

    Until then `path` is as it was, and after an exception too: what was written is removed. The file is written in the
    same folder, under a new name that cannot be guessed, and links of such a name are not followed. If `path` is a
    link to a file that may be written, that file is replaced, not the link. The owner and the mode of a file that is
    replaced are kept; a new file has those that `open` gives. A pipe or a device cannot be replaced: it is written
    directly.

    OSError if it cannot be written. `PermissionError` also where the file may be written, but none may be made in its
    folder.
    """
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
        os.replace(beside, place)
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
