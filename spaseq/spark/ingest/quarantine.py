"""Lines that cannot be read, put aside: they are left out, counted, and written to a file.

A part is read with the policy `malformed="drop"` and with counters of our own, which whatever reads it tells of each
line that it leaves out. The files are written once the part is read, under names that say which part it is, so a part
that is read again after a failure writes the same files again. Each of their lines is a line's number, a tab, and the
line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from spaseq.core.errors import OptionError
from spaseq.core.files.places import is_elsewhere
from spaseq.rdf import Counters


class _Quarantine(Counters):
    """Counters that keep the lines left out, by source."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, list[str]] = {}

    def leave_out(self, source: str, line: int, text: bytes) -> None:
        super().leave_out(source, line, text)
        self.lines.setdefault(source, []).append(f"{line}\t{text.decode('utf-8', 'replace')}\n")


@contextmanager
def counted(folder: str, names: Mapping[str, str]) -> Iterator[Counters]:
    """The counters to read a part with. What was left out of each source is written at the end, each file whole or not
    at all, under its name among `names` in `folder`; nothing is if that is empty. OptionError where it cannot be
    written."""
    if not folder:
        yield Counters()
        return
    counters = _Quarantine()
    yield counters
    for source, lines in counters.lines.items():
        _put(os.path.join(folder, names[source]), lines)


def _put(path: str, lines: Iterable[str]) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            file.writelines(lines)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise OptionError(f"cannot write {path}: {error.strerror or error}", "quarantine=FOLDER") from error


def check_folder(folder: str) -> None:
    """OptionError where a folder of this machine cannot be made, and for one elsewhere."""
    if is_elsewhere(folder):
        raise OptionError(f"quarantine {folder}: tasks write to a folder of their machine", "name one they all see")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OptionError(f"quarantine {folder} cannot be used: {error.strerror or error}", "name a folder") from None
