"""How the commands end."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn

__all__ = ["leave"]


def leave(code: int) -> NoReturn:
    """End the process without taking the interpreter apart.

    Where that overlaps with threads of pyarrow that have just begun, their library aborts the process, once in some
    forty times on a busy machine; and a thread that reads a stream may wait for what is gone. What was to be done at
    the end of the process is done.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # what could not be written was said, or nobody reads it
            stream.flush()
    os._exit(code)
