"""The ends of a query's words: helpers of both languages' tests of their keywords, for a text and its tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from spaseq.core.errors import QueryError


def plain(node: Any, word: str) -> Any:
    """A tree with its spans as tuples, with `word` as `?`."""
    if is_dataclass(node):
        return (type(node).__name__, *(plain(getattr(node, field.name), word) for field in fields(node)))
    if isinstance(node, tuple):
        return tuple(plain(child, word) for child in node)
    return re.sub(re.escape(word), "?", node, flags=re.IGNORECASE) if isinstance(node, str) else node


def read(parse: Callable[[str], Any], text: str, word: str) -> Any:
    """The result of `parse` for `text`: its tree with `word` as `?`, or the span of the error."""
    try:
        return plain(parse(text), word)
    except QueryError as error:
        assert error.span is not None
        return error.span


def with_plurals(words: Collection[str]) -> set[str]:
    """The words, and each with the S that units of time may have."""
    return {*words, *(word + "S" for word in words)}


def joined(
    query: str, places: Iterable[tuple[int, int]], joints: Iterable[str], known: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """`query` with one of the words at `places` joined to one of `joints`, before it and behind it.

    Gives the text before, the joined word, and the text behind. A word that is one of the `known` keywords is left out.
    """
    for start, end in places:
        for joint in joints:
            for word in (query[start:end] + joint, joint + query[start:end]):
                if word.upper() not in known or not word.isascii():
                    yield query[:start], word, query[end:]
