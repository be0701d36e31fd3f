"""What both languages do with the text of a query: where its words end, and which characters no text has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lark import Token

from spaseq.errors import QuerySyntaxError, Span

__all__ = ["SURROGATES", "WholeWords", "check_characters"]

SURROGATES: Final = range(0xD800, 0xE000)
"""Halves of characters in UTF-16. They are no characters, and UTF-8 cannot write them (Unicode, §3.9)."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class WholeWords:
    """lark's `postlex` for a grammar whose keywords are words that the terminal `name` would take too.

    The contextual lexer knows only the terminals that the parser takes next. Where that is OR and no name, it would
    read `order` as OR and `der`. With `name` among them it reads the longest word, then looks it up among the keywords.
    Those are of ASCII letters: `ſelect`, which case folding takes for `select`, is a name.
    """

    def __init__(self, name: str) -> None:
        self.always_accept = (name,)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        (name,) = self.always_accept
        for token in stream:
            keyword = token.type != name and token.isalpha() and not token.isascii()
            yield Token.new_borrow_pos(name, token, token) if keyword else token


def check_characters(text: str, source: str) -> None:
    """Raises `QuerySyntaxError` at a surrogate: a Python text can hold one, and nothing could ever be written of it."""
    if found := _SURROGATE.search(text):
        raise QuerySyntaxError(
            f"the character U+{ord(found[0]):04X} is half of one",
            text=_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text),
            span=Span.at(text, found.start(), found.end()),
            source=source,
            hint="the text was decoded wrongly: surrogates come in pairs, which are one character of a Python text",
        )
