"""Output in whole lines, even if the process is killed or interrupted."""

from __future__ import annotations

import fcntl
import io
import os
import select
import stat
import sys
import termios
from typing import Any


class _Pipe(io.FileIO):
    """A pipe that gets whole lines, at most PIPE_BUF bytes at a time: these it takes at once or not at all (POSIX). A
    longer line goes in pieces. `cut`: True if the output so far ends in the middle of a line."""

    cut = False
    unread = 0

    def write(self, data: Any, /) -> int:
        """The number of bytes that were written: callers go on with the others."""
        piece = bytes(data[: select.PIPE_BUF])
        piece = piece[: piece.rfind(b"\n") + 1] or piece
        written = super().write(piece)
        if written:
            self.cut = piece[written - 1] != 10  # a newline
        return written

    def moves(self) -> bool:
        """True if the reader has read since the last call."""
        before, self.unread = self.unread, _unread(self.fileno())
        return before != self.unread


def _unread(number: int) -> int:
    """The bytes in a pipe that its reader has not read yet; 0 if the system does not report them."""
    try:
        return int.from_bytes(fcntl.ioctl(number, termios.FIONREAD, bytes(4)), sys.byteorder)
    except OSError:
        return 0


def whole_lines(stream: Any) -> Any:
    """`stream`, or, if it is a pipe or a socket, a replacement that is cut behind a line when the process ends.

    A process that is killed while it waits for the reader of a full pipe would leave the part of its block that fitted.
    Files take a block without waiting. The system checks for a kill between two of a block's pages, which cannot be
    avoided.
    """
    try:
        number = stream.fileno()
        mode = os.fstat(number).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or none
        return stream
    if not (isinstance(stream, io.TextIOWrapper) and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Pipe(number, "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def write_whole_lines() -> None:
    """Makes `sys.stdout` one of `whole_lines`."""
    sys.stdout = whole_lines(sys.stdout)


def _pipe(stream: Any) -> _Pipe | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Pipe) else None


def is_cut(stream: Any) -> bool:
    """True if the output to a stream of `whole_lines` ends in the middle of a line, which is a long one."""
    pipe = _pipe(stream)
    return pipe is not None and pipe.cut


def moves(stream: Any) -> bool:
    """True if such a stream is in the middle of a line, and its reader has read since the last call."""
    pipe = _pipe(stream)
    return pipe is not None and pipe.moves() and pipe.cut
