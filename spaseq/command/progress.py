"""A line on the terminal while events are read; it is erased at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

__all__ = ["watched"]

_T = TypeVar("_T")
_EVERY = 0.25
"""Seconds between two updates."""


def watched(items: Iterable[_T], events: Callable[[], int], *, batches: bool = False) -> Iterable[_T]:
    """`items` unchanged. While they are iterated, the numbers of events and matches are shown on standard error, if
    that is a terminal and standard output is not. `events()` returns how many events were read so far. With `batches`
    an item is a table of matches, else one match."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        return items
    return _watched(items, events, batches)


def _watched(items: Iterable[_T], events: Callable[[], int], batches: bool) -> Iterator[_T]:
    terminal, found, shown, begin = sys.stderr, 0, 0.0, time.monotonic()
    try:
        for item in items:
            found += len(item) if batches and isinstance(item, Sized) else 1
            now = time.monotonic()
            if now - shown > _EVERY:
                read = events()
                rate = read / max(now - begin, 1e-9)
                terminal.write(f"\r\x1b[K{read:,} events, {found:,} matches, {rate:,.0f} events/s")
                terminal.flush()
                shown = now
            yield item
    finally:
        terminal.write("\r\x1b[K")
        terminal.flush()
