"""How wide a text is, and a text that is not wider: in columns of a terminal, in characters of a picture."""

from __future__ import annotations

import unicodedata

__all__ = ["shortened", "width_of"]


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes; wide characters (East Asian, emoji) two. O(characters)."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def shortened(text: str, most: int) -> str:
    """The text on one line, at most so wide, `…` in place of its end where it is wider."""
    text = "".join(c if c.isprintable() else " " for c in text)
    if width_of(text) <= most:
        return text
    while width_of(text) > most - 1:
        text = text[: max(1, most - 1 if len(text) > most else len(text) - 1)]
        if len(text) <= 1:
            break
    return text + "…"
