"""A query in an editor: its errors, the meaning of a word, words to write. Places are offsets of code points."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from spaseq.core.errors import LimitReached
from spaseq.core.words import keywords
from spaseq.tools.studio.workers import MEMORY, QUERY, Worker

SECONDS: Final = 10.0
"""The time limit of a check."""
_UNDERLINED: Final = 200
"""Characters of a first line."""
_SIGN: Final = {"ceql": re.compile(r":\+|[;:+]"), "spaseq": re.compile(r"[;:,+?!&|]")}
_NAME: Final = re.compile(r"[?$]?\w[\w-]*|[?$]")
_SEQ: Final = re.compile(r"\bSEQ\b\s*(?:\([^{}]*)?$", re.IGNORECASE)
_BOUNDS: Final = re.compile(r"\{[\d\s,]*\}")
"""Of a repetition."""
_NOT_CODE: Final = {
    "ceql": re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\n]|'')*'|\"[^\"\n]*\"", re.DOTALL),
    "spaseq": re.compile(r"<[^<>\s]*>|(?:^|(?<=\s))#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.MULTILINE),
}
"""Comments, texts and IRIs."""
_MADE: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "ceql": (("variable", r"\bAS\s+(`[^`\n]+`|\w+)"), ("stream", r"\bFROM\s+(\w+)")),
    "spaseq": (
        ("variable", r"([?$]\w+)"),
        ("GPM", r"\bGPM\s+([\w-]+)"),
        ("stream", r"\bSTREAM\s+([\w-]+)"),
        ("prefix", r"\bPREFIX\s+((?:[\w.-]+)?:)"),
    ),
}
"""By language, the kinds of names that texts define, each with its pattern."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a stretch of the text: an `error`, a `warning` or a `note`."""

    kind: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Word:
    """A word that may be written, and its kind: `keyword`, `variable`, `function`, `GPM`, `stream` or `prefix`."""

    text: str
    kind: str


def remarks(worker: Worker, language: str, text: str, source: str) -> list[Remark]:
    """The messages of `check`. If it takes longer than `SECONDS`, or the text is too large, one remark says so."""
    if is_large(text):
        size = f"this text has {len(text):,} characters, and queries of at most {QUERY:,} are checked in an editor"
        return [_unchecked_remark(language, text, size)]
    asked = {
        "do": "check", "language": language, "text": text, "source": source, "shown": [], "groups": {}, "reading": {},
        "valuations": False, "seconds": SECONDS, "memory": MEMORY, "draws": False,
    }  # fmt: skip
    found = worker.ask(asked, SECONDS)
    for error in found["errors"]:
        if error["kind"] == LimitReached.__name__:
            return [_unchecked_remark(language, text, f"the check was {error['problem']}")]
    said = [_error(error, text) for error in found["errors"]]
    for kind, lines in (("warning", found.get("warnings", ())), ("note", found.get("notes", ()))):
        said += [_line(kind, line, text, source) for line in lines]
    return said


def _line(kind: str, said: str, text: str, source: str) -> Remark:
    """A line of `check`: at the word that it names the place of, else at the first line of the text."""
    place = re.match(r":(\d+):(\d+): ", said.removeprefix(source))
    if place is None:
        return Remark(kind, 0, _first_line(text), said.removeprefix(f"{source}: "))
    before = text.split("\n")[: int(place[1]) - 1]
    start = sum(len(line) + 1 for line in before) + int(place[2]) - 1
    word = _NAME.match(text, start)
    end = word.end() if word else start + 1
    return Remark(kind, start, end, said.removeprefix(source)[place.end() :])


def is_large(text: str) -> bool:
    """True if the text is larger than queries that are checked, and that words are looked for in."""
    return len(text) > QUERY


def _unchecked_remark(language: str, text: str, why: str) -> Remark:
    return Remark("warning", 0, _first_line(text), f"not checked: {why}\nhint: `{language} check` has no such limit")


def _first_line(text: str) -> int:
    """The end of the first line, as far as an editor has to underline it."""
    end = text.find("\n", 0, _UNDERLINED)
    return end if end >= 0 else min(len(text), _UNDERLINED)


def _error(error: Mapping[str, Any], text: str) -> Remark:
    lines = [error["problem"]]
    if error["expected"]:
        lines.append("expected: " + ", ".join(error["expected"]))
    if error["hint"]:
        lines.append("hint: " + error["hint"])
    if error["start"] is None:
        return Remark("error", 0, _first_line(text), "\n".join(lines))
    units = text.encode("utf-16-le", "surrogatepass")
    start, end = (len(units[: 2 * error[side]].decode("utf-16-le", "replace")) for side in ("start", "end"))
    return Remark("error", start, max(end, start + 1), "\n".join(lines))


@cache
def _hovers() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("spaseq.tools.lsp").joinpath("hovers.json").read_text("utf-8"))
    return found


def meaning(language: str, text: str, offset: int) -> tuple[int, int, str] | None:
    """(start, end, Markdown) of the reference's text on the word or sign at a place; None if it has none."""
    if any(part.start() <= offset < part.end() for part in _NOT_CODE[language].finditer(text)):
        return None
    words = _hovers()[language]["words"]
    for pattern in (_NAME, _SIGN[language]):
        for part in pattern.finditer(text, max(0, offset - 200)):
            if part.start() > offset:
                break
            if part.end() <= offset:
                continue
            word = part[0].lower()
            told = _hovers()[language]["functions"].get(word)
            if told is not None and text.startswith("(", part.end()):
                return part.start(), part.end(), f"**{word.upper()}**\n\n{told}"
            if word not in words or (pattern is not _NAME and language == "spaseq" and not _between(text, offset)):
                break
            title = words[word]
            told = _hovers()[language]["sections"][title]
            return part.start(), part.end(), f"**{title}**\n\n{told}"
    return None


def _between(text: str, offset: int) -> bool:
    """True if a sign stands between GPMs, in SEQ: elsewhere it is SPARQL's."""
    return _SEQ.search(_BOUNDS.sub("", text[:offset]).rsplit("{", 1)[-1]) is not None


def words_at(language: str, text: str, offset: int) -> list[Word]:
    """The words that may be written at a place, regardless of the grammar: names from the text, then keywords.

    Behind `?` there are variables only. The word that is being written is not in the list by itself.
    """
    before = re.search(r"[?$]?[\w-]*$", text[:offset])
    begun = before[0] if before else ""
    rest = _NOT_CODE[language].sub(" ", text[: offset - len(begun)]) + " " + _NOT_CODE[language].sub(" ", text[offset:])
    named = list(dict.fromkeys(_names(language, rest)))
    if begun[:1] in ("?", "$"):
        return [word for word in named if word.kind == "variable"]
    offered = named + [Word(word.upper() if len(word) > 1 else word, "keyword") for word in keywords(language)]
    return offered + [Word(name.upper(), "function") for name in _hovers()[language]["functions"]]


def _names(language: str, text: str) -> Iterator[Word]:
    for kind, pattern in _MADE[language]:
        for name in re.findall(pattern, text, re.IGNORECASE):
            yield Word(name, kind)
