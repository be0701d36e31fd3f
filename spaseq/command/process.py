"""Interrupts, and the end of the process, for both commands."""

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
"""Seconds until an interrupt that has had no effect is repeated."""


def run_command(main: Callable[[], int]) -> NoReturn:
    """Runs `main` and ends the process with its exit code, by `os._exit`. Functions registered with `atexit` are run.

    The regular end of the interpreter is avoided: if it overlaps with threads that pyarrow has just started, pyarrow
    aborts the process, about once in forty times on a busy machine; and a thread that reads a stream may then wait for
    an object that no longer exists.

    Ctrl-C raises KeyboardInterrupt repeatedly until `main` calls `settle_interrupt`, because libraries that catch all
    exceptions, as rdflib does in some places, would swallow a single one.
    """
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGALRM, _interrupt)
    code = main()
    settle_interrupt()
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: the process was started with it closed
        with contextlib.suppress(OSError, ValueError):  # already reported, or the reader has gone
            stream.flush()
    os._exit(code)


def settle_interrupt() -> None:
    """Stops repeating the interrupt: it has been handled."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, frame: Any) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    raise KeyboardInterrupt
