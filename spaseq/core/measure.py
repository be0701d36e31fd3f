"""Texts as people see them: how wide one is, one that is not wider, and one that cannot command a terminal."""

from __future__ import annotations

import unicodedata
from typing import Final

_UNKNOWN: Final = "\ufffd"
_VISIBLE: Final[dict[int, int | str]] = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(
        (*range(0x80, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), _UNKNOWN
    ),
}
"""The visible replacements, one for one, of control characters (C0 and C1) and of those that turn the direction of a
text."""


def visible(text: str) -> str:
    """The text with a visible character in place of each that would command a terminal; ends of lines and tabs stay."""
    return text if text.isprintable() else text.translate(_VISIBLE)


def width_of(text: str) -> int:
    """The number of columns that a text takes on a terminal; wide characters (East Asian, emoji) take two.
    O(characters)."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def shorten(text: str, most: int) -> str:
    """The text on one line, at most `most` columns wide; if it is wider, `…` replaces its end."""
    text = "".join(c if c.isprintable() else " " for c in text)
    if width_of(text) <= most:
        return text
    while width_of(text) > most - 1:
        text = text[: max(1, most - 1 if len(text) > most else len(text) - 1)]
        if len(text) <= 1:
            break
    return text + "…"
