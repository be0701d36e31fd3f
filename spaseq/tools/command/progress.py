"""A line on the terminal while events are read; it is erased at the end."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

_EVERY = 0.25
"""Seconds between two updates."""


@contextlib.contextmanager
def watching(events: Callable[[], int], results: Callable[[], int], noun: str) -> Iterator[None]:
    """Show the numbers of events read and results written on standard error while the block runs. This is done if
    standard error is a terminal and standard output is not. A thread reads the numbers, so the evaluation does the same
    work with and without it."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield
        return
    ended = threading.Event()
    shown = threading.Thread(target=_show, args=(ended, events, results, noun), daemon=True)
    shown.start()
    try:
        yield
    finally:
        ended.set()
        shown.join()


def _show(ended: threading.Event, events: Callable[[], int], results: Callable[[], int], noun: str) -> None:
    terminal, begin = sys.stderr, time.monotonic()
    with contextlib.suppress(OSError, ValueError):  # the terminal has gone
        while True:
            last = ended.wait(_EVERY)
            read, rate = events(), events() / max(time.monotonic() - begin, 1e-9)
            terminal.write(f"\r\x1b[K{read:,} events, {results():,} {noun}, {rate:,.0f} events/s")
            if last:
                terminal.write("\r\x1b[K")
            terminal.flush()
            if last:
                return
