"""The commands as processes: how they are interrupted, and how they end."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

__all__ = ["run_command", "settle_interrupt"]

_AGAIN: Final = 1.0
"""Seconds until an interrupt that did not arrive is repeated."""


def run_command(main: Callable[[], int]) -> NoReturn:
    """Run `main` and end the process with its exit code, without taking the interpreter apart.

    Where that overlaps with threads of pyarrow that have just begun, their library aborts the process, once in some
    forty times on a busy machine; and a thread that reads a stream may wait for what is gone. What was to be done at
    the end of the process is done.

    Ctrl-C is a KeyboardInterrupt again and again, until `main` calls `settle_interrupt`: libraries that pass over
    exceptions of any kind, as rdflib does in some places, would swallow a single one.
    """
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGALRM, _interrupt)
    code = main()
    settle_interrupt()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # what could not be written was said, or nobody reads it
            stream.flush()
    os._exit(code)


def settle_interrupt() -> None:
    """The interrupt has arrived: it is not repeated."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, frame: Any) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    raise KeyboardInterrupt
