"""Cuts the embedded SPARQL out of a SPAseq query, before it is parsed.

A SPAseq query embeds SPARQL in four places: the group graph pattern of a GPM, the template of CONSTRUCT, the data of
VALUES, and expressions (`SELECT (AVG(?x) AS ?y)`, HAVING, ORDER BY). `skeleton` finds them by matching brackets outside
of strings, IRIs and comments. It replaces their insides by as many blanks, so that offsets, lines and columns of the
skeleton are those of the query. The parts that were cut out are kept with their offsets, and rdflib parses them
(`spaseq.gpm`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.core.errors import QuerySyntaxError, Span

_OPAQUE = re.compile(
    r"""
      (?P<iri><(?:[^<>"{}|^`\\\s]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>)
    | (?P<comment>\#[^\n]*)
    | (?P<string>'{3}(?:\\.|[^\\])*?'{3} | \"{3}(?:\\.|[^\\])*?\"{3}
                | '(?:\\.|[^'\\\n])*'  | \"(?:\\.|[^\"\\\n])*\")
    | (?P<open>['\"])
    """,
    re.VERBOSE | re.DOTALL,
)
_HEADER = re.compile(
    r"\bDEFINE\s+GPM\s+(?P<name>[^\W\d][\w-]*)\s+ON\s+[^\W\d][\w-]*(?:\s*,\s*[^\W\d][\w-]*)*\s*\{", re.IGNORECASE
)
_NEXT_HEADER = re.compile(r"(?<![?$\w:-])DEFINE\s+GPM\b", re.IGNORECASE)
_TEMPLATE = re.compile(r"(?<![?$\w:-])CONSTRUCT(?:\s+FIRST)?\s*\{", re.IGNORECASE)
_VALUES = re.compile(r"(?<![?$\w:-])VALUES\s*(?:[?$]\w+|\([^(){}]*\))\s*\{", re.IGNORECASE)
_PARENTHESIS = re.compile(r"(?:(?<![?$\w:-])(?P<ours>SEQ|PARTITION\s+BY)\s*)?\(", re.IGNORECASE)
_CLOSING = {"{": "}", "(": ")"}


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A query with its embedded SPARQL blanked out.

    `text` is as long as the query. `closing` maps the offset of each opening bracket of embedded SPARQL to the offset
    behind its closing bracket.
    """

    text: str
    closing: dict[int, int]


def mask(text: str, source: str = "<query>") -> str:
    """`text` with comments and the insides of strings and IRIs replaced by as many blanks.

    Raises `QuerySyntaxError` for a string that is not closed.
    """
    parts: list[str] = []
    done = 0
    for match in _OPAQUE.finditer(text):
        start, end = match.span()
        if match.lastgroup == "open":
            raise QuerySyntaxError(
                "this string is never closed",
                text=text,
                span=Span.at(text, start, start + 1),
                source=source,
                hint="a string on one line stands between two ' or two \", a longer one between ''' or \"\"\"",
            )
        parts.append(text[done:start])
        if match.lastgroup == "comment":
            parts.append(" " * (end - start))
        else:
            parts.append(text[start] + _blank(text[start + 1 : end - 1]) + text[end - 1])
        done = end
    parts.append(text[done:])
    return "".join(parts)


def skeleton(text: str, source: str = "<query>") -> Skeleton:
    """The skeleton of a query. Raises `QuerySyntaxError` for a string, brace or parenthesis that is not closed."""
    masked = mask(text, source)
    closing: dict[int, int] = {}
    for start, name in _groups(masked):
        if not _inside(closing, start):
            closing[start] = _group_end(text, masked, start, name, source)
    closing.update(_expressions(text, _cut(masked, closing), source))
    return Skeleton(_cut(text, closing), closing)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _cut(text: str, closing: dict[int, int]) -> str:
    """`text` with the parts between the brackets of `closing` blanked out."""
    for start, end in closing.items():
        text = text[: start + 1] + _blank(text[start + 1 : end - 1]) + text[end - 1 :]
    return text


def _groups(masked: str) -> Iterator[tuple[int, str]]:
    """For each GPM's group, CONSTRUCT template and VALUES: the offset of its opening brace, and a name for errors."""
    for match in _HEADER.finditer(masked):
        yield match.end() - 1, f"GPM {match['name']}"
    for match in _TEMPLATE.finditer(masked):
        yield match.end() - 1, "the CONSTRUCT template"
    for match in _VALUES.finditer(masked):
        yield match.end() - 1, "the data of VALUES"


def _inside(closing: dict[int, int], offset: int) -> bool:
    return any(start < offset < end for start, end in closing.items())


def _group_end(text: str, masked: str, start: int, name: str, source: str) -> int:
    end = _closing_offset(masked, start)
    following = _NEXT_HEADER.search(masked, start, end if end is not None else len(masked))
    if end is not None and following is None:
        return end
    where = ""
    if following is not None:
        line = Span.at(text, following.start(), following.end()).line
        where = f" before the next DEFINE GPM on line {line}"
    raise QuerySyntaxError(
        f"the brace that opens {name} is not closed{where}",
        text=text,
        span=Span.at(text, start, start + 1),
        source=source,
        expected=("}",),
        hint="count the braces of its graph pattern: OPTIONAL, UNION, MINUS and GRAPH each open and close their own",
    )


def _closing_offset(masked: str, start: int) -> int | None:
    """The offset behind the bracket that closes the one at `start`; None if it is not closed."""
    opening = masked[start]
    closing = _CLOSING[opening]
    depth = 0
    for match in re.compile("[" + re.escape(opening + closing) + "]").finditer(masked, start):
        depth += 1 if match[0] == opening else -1
        if depth == 0:
            return match.end()
    return None


def _expressions(text: str, blanked: str, source: str) -> dict[int, int]:
    """The parentheses of SPARQL expressions, as in `Skeleton.closing`: all that do not belong to SEQ or PARTITION
    BY."""
    closing: dict[int, int] = {}
    offset = 0
    while match := _PARENTHESIS.search(blanked, offset):
        start = match.end() - 1
        end = _closing_offset(blanked, start)
        if end is None:
            what = re.sub(r"\s+", " ", match["ours"]).upper() if match["ours"] else "the expression"
            raise QuerySyntaxError(
                f"the parenthesis that opens {what} is not closed",
                text=text,
                span=Span.at(text, start, start + 1),
                source=source,
                expected=(")",),
            )
        if not match["ours"]:
            closing[start] = end
        offset = end
    return closing
