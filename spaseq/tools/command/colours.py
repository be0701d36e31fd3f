"""Texts for people: messages on standard error, texts on standard output.

Control characters in them are made visible, because names, queries and values of events may have some. There are
colours on a terminal: not in files and pipes, and not if NO_COLOR is set (no-color.org).
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Final

from spaseq.core.measure import visible

_STYLES: Final = {"error": "1;31", "warning": "33", "note": "36", "head": "1"}


def is_coloured(file: Any) -> bool:
    """True if texts written to the file are shown in colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):  # closed, or none
        return False


def styled(text: str, style: str, file: Any) -> str:
    """The text in a style, `error`, `warning`, `note` or `head`, if the file shows it."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if text and is_coloured(file) else text


def tell(text: str, *, style: str = "", head: str = "") -> None:
    """Print a message on standard error: its first line in a style, or behind a `head`, `warning` or `note`."""
    first, *others = visible(text).split("\n")
    first = f"{styled(f'{head}:', head, sys.stderr)} {first}" if head else first
    with contextlib.suppress(OSError):  # the reader is gone, for example a closed terminal
        print("\n".join([styled(first, style, sys.stderr) if style else first, *others]), file=sys.stderr)


def say(text: str, *, data: bool = False) -> None:
    """Write a text to standard output. `data`: for programs, so that only a terminal gets it changed; else letters that
    the output does not have are escaped."""
    if not data or sys.stdout.isatty():
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        text = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(text)
