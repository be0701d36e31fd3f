"""The common part of the oracles' readers of query texts: tokens, and arithmetic over them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any


class Tokens(ABC):
    """The tokens of a text, (kind, text) each, and the next one to read.

    `pattern` has a named group for each kind; those of `skip` are left out. `words`: the kinds that keywords may have.
    Wrong text raises `ValueError`.
    """

    pattern: re.Pattern[str]
    words: tuple[str, ...] = ("name", "sign")

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = position = 0
        while position < len(text):
            match = self.pattern.match(text, position)
            if match is None:
                raise ValueError(f"unexpected {text[position : position + 20]!r}")
            position = match.end()
            if match.lastgroup != "skip":
                self.tokens.append((str(match.lastgroup), match.group()))

    def kind(self) -> str:
        """The kind of the next token, `end` behind the last."""
        return self.tokens[self.at][0] if self.at < len(self.tokens) else "end"

    def ahead(self, *words: str, offset: int = 0) -> bool:
        """True if the next token is one of `words`: keywords are whole words of ASCII letters, in any case."""
        if self.at + offset >= len(self.tokens):
            return False
        kind, text = self.tokens[self.at + offset]
        return kind in self.words and text.isascii() and text.upper() in words

    def take(self, *words: str) -> bool:
        """Reads the next token if it is one of `words`."""
        if self.ahead(*words):
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        """Reads the next token, which must be `word`."""
        if not self.take(word):
            raise ValueError(f"expected {word} at {self.tokens[self.at :][:4]}")

    def next(self, kind: str) -> str:
        """Reads the next token, which must be of that kind."""
        if self.kind() != kind:
            raise ValueError(f"expected a {kind} at {self.tokens[self.at :][:4]}")
        self.at += 1
        return self.tokens[self.at - 1][1]

    # arithmetic

    @abstractmethod
    def operand(self) -> tuple[Any, ...]:
        """An operand of signs."""

    def sum(self) -> tuple[Any, ...]:
        left = self.product()
        while self.ahead("+", "-"):
            left = (self.next("sign"), left, self.product())
        return left

    def product(self) -> tuple[Any, ...]:
        left = self.operand()
        while self.ahead("*", "/", "%"):
            left = (self.next("sign"), left, self.operand())
        return left
