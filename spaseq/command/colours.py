"""Colours of what people read on a terminal: not in files and pipes, nor where NO_COLOR is set (no-color.org)."""

from __future__ import annotations

import os
from typing import Any, Final

__all__ = ["is_coloured", "styled"]

_STYLES: Final = {"error": "1;31", "warning": "33", "note": "36", "head": "1"}


def is_coloured(file: Any) -> bool:
    """Whether what is written to the file is shown in colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):  # closed, or none
        return False


def styled(text: str, style: str, file: Any) -> str:
    """The text in a style, `error`, `warning`, `note` or `head`, if the file shows it."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if text and is_coloured(file) else text
