"""Standard output in whole lines, also where the process is killed."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
from typing import Any

__all__ = ["write_whole_lines"]


class _Pipe(io.FileIO):
    """A pipe that gets whole lines, at most PIPE_BUF bytes at a time: these it takes at once or not at all (POSIX). A
    longer line goes in pieces."""

    def write(self, data: Any, /) -> int:
        """The number of bytes that were written: callers go on with the others."""
        piece = bytes(data[: select.PIPE_BUF])
        return super().write(piece[: piece.rfind(b"\n") + 1] or piece)


def write_whole_lines() -> None:
    """Makes `sys.stdout`, where it is a pipe, one that is cut after a line whenever the process ends.

    A process that is killed while it waits for the reader of a full pipe would leave the part of its block that fitted.
    Files take a block at once.
    """
    stream = sys.stdout
    try:
        number = stream.fileno()
        if not (isinstance(stream, io.TextIOWrapper) and stat.S_ISFIFO(os.fstat(number).st_mode)):
            return
    except (AttributeError, OSError, ValueError):  # closed, or none
        return
    stream.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Pipe(number, "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
