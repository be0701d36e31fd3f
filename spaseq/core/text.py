"""The text of queries in both languages: the ends of words, and the characters that no text may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lark import Token

from spaseq.core.errors import QuerySyntaxError, Span

ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|\\)")
r"""An escape of SPARQL, \u00E9 or \U000000E9 (SPARQL 1.1 §19.2), or a backslash that is itself escaped."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")

_FILE: Final = re.compile(r"\s*\S+\.(?:ceql|rq|spaseq|sparql)\s*", re.IGNORECASE)


_CEQL: Final = "CEQL (ceql run)"
_SPASEQ: Final = "SPAseq (spaseq run)"
_WINDOWED: Final = "SELECT ?x WITHIN 10 SECONDS FROM STREAM S <iri> WHERE { SEQ (A ; B) DEFINE GPM A ON S { … } … }"
_SEQUENCE: Final = "SELECT * WHERE A AS a ; B AS b FILTER a.id = b.id WITHIN 10 SECONDS"
_ABSENCE: Final = "SELECT * WHERE A AS a ; NOT (B AS b FILTER b.id = a.id) FOR 10 SECONDS"
_ABSENT: Final = re.compile(r"\bNOT(?:FOLLOWEDBY|NEXT)?\b|!\s*\(", re.IGNORECASE)
_FOREIGN: Final = tuple(
    (re.compile(pattern, re.IGNORECASE | re.VERBOSE), name, home, spelling)
    for pattern, name, home, spelling in (
        (r"\bFROM \s+ NAMED \s+ WINDOW\b | \bREGISTER \s+ [RID]STREAM\b", "RSP-QL", _SPASEQ, _WINDOWED),
        (
            r"\bREGISTER \s+ (?:QUERY|STREAM)\b | \bFROM \s+ STREAM \s* <[^<>\s]*> \s* \[",
            "C-SPARQL",
            _SPASEQ,
            _WINDOWED,
        ),
        (
            r"\bMATCH_RECOGNIZE \s* \(",
            "SQL with MATCH_RECOGNIZE",
            _CEQL,
            "SELECT * WHERE A AS a ; B+ AS b FILTER b[price > 3] PARTITION BY [key] WITHIN 10 SECONDS",
        ),
        (r"\A \s* (?:PATTERN|EVENT) \s+ (?:SEQ|AND|OR) \s* \(", "SASE", _CEQL, _SEQUENCE),
        (r"\A [^\[]* \b FROM \s+ PATTERN \s* \[ | \A \s* EVERY \b .* ->", "Esper's EPL", _CEQL, _SEQUENCE),
        (
            r"\A \s* (?:@\w+ .*)? (?:DEFINE \s+ STREAM\b | FROM \s+ (?:EVERY\b | NOT\b | \w+ \s* =))",
            "Siddhi",
            _CEQL,
            _SEQUENCE,
        ),
        (
            r"\A [^;]* \b PATTERN \s* \. \s* (?:<[^<>]*> \s*)? BEGIN \b | \A \s* \.? BEGIN \s* \(",
            "Flink CEP",
            _CEQL,
            _SEQUENCE,
        ),
        (
            r"\A \s* (?:SEQUENCE|SAMPLE) \b [^\[]* \[ | \A \s* (?!SELECT\b) \w+ \s+ WHERE\b",
            "EQL",
            _CEQL,
            "SELECT * WHERE A ; B FILTER A[name = 'x'] PARTITION BY [user] WITHIN 1 MINUTE",
        ),
    )
)
"""Queries of other languages: a pattern that tells them, their language, the nearest one here, the nearest spelling."""


def file_hint(text: str) -> str:
    """A hint if the text of a query is the name of a file; else nothing."""
    if _FILE.fullmatch(text) is None:
        return ""
    return "this is the name of a file, and a query is the text in it: open(path).read()"


def foreign_hint(text: str) -> str:
    """A hint if a text that does not parse is a query of another language; else nothing."""
    for pattern, name, home, spelling in _FOREIGN:
        if pattern.search(text):
            if spelling == _SEQUENCE and _ABSENT.search(text):
                spelling = _ABSENCE
            return f"this looks like {name}; the nearest in {home} is {spelling} (docs/same.md compares the languages)"
    return ""


class WholeWords:
    """lark's `postlex` for a grammar whose keywords are words that the terminal `name` would take too.

    The contextual lexer knows only the terminals that the parser takes next. If that is OR and no name, it would read
    `order` as OR and `der`. With `name` among them it reads the longest word, then looks it up among the keywords.
    Those are of ASCII letters: `ſelect`, which case folding takes for `select`, is a name.
    """

    def __init__(self, name: str) -> None:
        self.always_accept: tuple[str, ...] = (name,)

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


def check_escapes(text: str, source: str, start: int = 0, end: int | None = None) -> None:
    r"""Raises `QuerySyntaxError` at an escape in `text[start:end]` that is no character: \uD800, \U00110000.

    Also in a comment: SPARQL expands escapes before it looks for comments.
    """
    for escape in ESCAPE.finditer(text, start, len(text) if end is None else end):
        code = _code(escape)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            last = escape.end()
            low = ESCAPE.match(text, last)
            hint = r"code points go from U+0000 to U+D7FF and from U+E000 to U+10FFFF"
            if code < 0xDC00 and low and 0xDC00 <= _code(low) < 0xE000:
                last = low.end()
                whole = 0x10000 + ((code - 0xD800) << 10) + _code(low) - 0xDC00
                hint = f"a character beyond U+FFFF is one escape: \\U{whole:08X}"
            raise QuerySyntaxError(
                f"{escape[0]} is no character",
                text=text,
                span=Span.at(text, escape.start(), last),
                source=source,
                hint=hint,
            )


def unescape(escape: re.Match[str]) -> str:
    """The character that an `ESCAPE` stands for; an escaped backslash stays one."""
    return chr(_code(escape)) if escape.lastindex else escape[0]


def _code(escape: re.Match[str]) -> int:
    return int(escape[1] or escape[2] or "0", 16)
