"""The start of both commands: interrupts while modules are imported, and settings of the whole process.

These settings, which a library leaves alone, are Python's garbage collector, malloc, and NumPy's threads. Importing the
modules of a command takes some tenths of a second. Ctrl-C in that time ends the process with a message and exit code
130, as later (`spaseq.tools.command.process`). This module imports nothing that takes time.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sys
from typing import Any, Final, NoReturn

_CONTAINERS: Final = 20_000
"""Python's garbage collector looks for cycles once so many containers more are alive, in place of 700.

PERF: modules and grammars are 200,000 containers and no garbage. A run over 15 events, libraries' imports included:
0.58 s of processor time became 0.53.
"""

_BLAS: Final = "OPENBLAS_NUM_THREADS"
"""Threads of the library for matrices that NumPy begins when it is imported; nothing here multiplies large ones.

PERF: a run over two graphs, two processors, nothing else to do: 0.74 to 0.77 s of processor time became 0.63 to 0.66.
"""
_TRIM_THRESHOLD: Final = (-1, 128 << 20)
_MMAP_THRESHOLD: Final = (-3, 32 << 20)
"""glibc's `mallopt`: bytes that are kept at the end of a heap, and bytes from which memory is the system's own."""


def command(module: str) -> NoReturn:
    """Runs the `entry` of a command's module."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)
    _stand_in()
    os.environ.setdefault(_BLAS, "1")
    gc.set_threshold(_CONTAINERS, 20, 20)
    entry = importlib.import_module(module).entry
    keep_freed()
    gc.freeze()  # imported modules stay to the end
    entry()
    raise SystemExit(1)  # not reached: `entry` ends the process


def keep_freed() -> None:
    """Let malloc keep up to 128 MB of free memory, unless MALLOC_TRIM_THRESHOLD_ or another of its settings is in the
    environment.

    This is for the whole process, so the library does not do it by itself. It does nothing if the C library is not
    glibc.

    PERF: batches are some ten MB of arrays each. If they are returned and requested again, they are cleared page by
    page, and threads wait for each other there. Two threads over three million triples: 0.58 s became 0.55; one thread:
    no change.
    """
    if sys.platform != "linux" or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    import ctypes  # numpy has

    with contextlib.suppress(AttributeError, OSError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for which, size in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            mallopt(which, size)


def _stand_in() -> None:
    """Give a process a file for each of its streams that was closed at its start (`>&-`) and is None in Python. For
    input it is an empty one, for output one in which each write fails with an OSError, for errors one that discards
    all. Otherwise a file opened for another purpose could get the number 1, and warnings would be printed on standard
    output."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def leave(number: int, frame: Any) -> NoReturn:
    """Ends the process, which has done nothing yet."""
    os.write(2, b"interrupted\n")
    raise SystemExit(128 + number)


def spaseq() -> NoReturn:
    """The `spaseq` command."""
    command("spaseq.cli.main")
