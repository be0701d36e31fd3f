"""Output files. Each is written beside its place and then renamed, so that a name always stands for a whole file.

No output replaces a file that is being read.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

from spaseq.core.errors import OptionError
from spaseq.core.files.places import is_elsewhere, local_path, matching

_OPEN_FILE: Final = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+")
_LINKS: Final = 40
"""Links that may lead to one another."""


@contextmanager
def write_beside(path: str) -> Iterator[BinaryIO]:
    """Give a file to write, which takes the place of `path` when the block ends without an exception.

    Until then `path` is as it was, and after an exception too: what was written is removed. The file is written in the
    same folder, under a new name that cannot be guessed, and links of such a name are not followed. If `path` is a link
    to a file that may be written, that file is replaced, not the link. The owner and the mode of a file that is
    replaced are kept; a new file has those that `open` gives. A pipe or a device cannot be replaced: it is written
    directly, as is what a name like /dev/stdout stands for, which is an open file.

    OSError if it cannot be written. `PermissionError` also if the file may be written, but no file may be created in
    its folder.
    """
    if _is_open_file(path):
        with open(path, "wb") as file:
            yield file
        return
    try:
        there = os.open(path, os.O_WRONLY)  # and so the system says whether a link may be followed here
    except FileNotFoundError:
        with _replacement(path, None) as file:
            yield file
        return
    before = os.fstat(there)
    if stat.S_ISREG(before.st_mode):
        os.close(there)
        with _replacement(os.path.realpath(path), before) as file:
            yield file
    else:
        with os.fdopen(there, "wb") as file:
            yield file


def check_output(path: str | None, inputs: Iterable[str], *, globs_are_open: bool = True) -> None:
    """Raise `OptionError` if an output is an input: by its name or a link, as one of a glob, or in a folder.

    `None` and `-` stand for standard output, and for standard input among the inputs. Nothing is opened.
    `globs_are_open`: globs are expanded while the output is being written, so that it may be among their files.
    """
    output = None if path is None or path == "-" else path
    own, place = _identity(1 if output is None else output), None if output is None else os.path.realpath(output)
    for given in inputs:
        if is_elsewhere(given):
            continue
        found: list[int | str] = [0]
        if given != "-":
            found = [local_path(given)]
            with suppress(OSError):  # its reader reports it
                found += matching(given)
        if any(_is_read(own, place, name) for name in found) or (globs_are_open and _would_match(output, given)):
            called = "standard input" if given == "-" else given
            problem = f"the output is an input: {called}" if output is None else f"{output} is an input, {called}"
            raise OptionError(problem, "write to another file" if output is None else "--output another file")


def _identity(file: int | str) -> tuple[int, int] | None:
    """The device and number of a regular file; None if it is none."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _is_read(own: tuple[int, int] | None, place: str | None, name: int | str) -> bool:
    """True if a file that is read, or a file of a folder that is read, is the output."""
    if own is not None and own == _identity(name):
        return True
    if place is None or isinstance(name, int):
        return False
    read = os.path.realpath(name)
    if os.path.isdir(read):
        return os.path.commonpath([read, place]) == read
    return not os.path.exists(read) and read == place


def _would_match(output: str | None, pattern: str) -> bool:
    """True for an output that is not there yet and would be found by a glob, which is looked at while it is written."""
    if output is None or not glob.has_magic(pattern) or os.path.exists(pattern):
        return False
    names, wanted = (os.path.abspath(local_path(name)).split(os.sep) for name in (output, pattern))
    if "**" in wanted:
        return fnmatch.fnmatchcase(os.sep.join(names), os.sep.join(wanted).replace("**/", "*"))
    return len(names) == len(wanted) and all(map(fnmatch.fnmatchcase, names, wanted))


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
def _replacement(place: str, before: os.stat_result | None) -> Iterator[BinaryIO]:
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
