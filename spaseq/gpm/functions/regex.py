"""Regular expressions of REGEX and REPLACE (XPath Functions §5.6.1), in time linear in the text.

A pattern is translated for RE2, which never backtracks. `UnsupportedFeature` is raised for back-references, and for
patterns whose automaton would be too large (RE2's own bound: 8 MB, repetition up to 1,000 times). Python's engine is
used only for patterns with neither a repetition nor an alternative, which cannot backtrack.

Beyond XPath, `\\w` matches `_` too, and `\\b` and `\\B` are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rdflib.plugins.sparql.sparql import SPARQLError

from spaseq.core.errors import UnsupportedFeature
from spaseq.core.watch import made_text

_GROUPS: Final = 9
_DIGITS: Final = frozenset("0123456789")
"""The digits of the groups that a replacement can name in RE2."""
_SPACE: Final = r" \t\n\r"
_NO_SPACE: Final = r"\x{0}-\x{8}\x{b}\x{c}\x{e}-\x{1f}\x{21}-\x{10ffff}"
_START: Final = (
    r":A-Z_a-z\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{2ff}\x{370}-\x{37d}\x{37f}-\x{1fff}\x{200c}\x{200d}\x{2070}-\x{218f}"
    r"\x{2c00}-\x{2fef}\x{3001}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{fffd}\x{10000}-\x{effff}"
)
_NAME: Final = _START + r"\-.0-9\x{b7}\x{300}-\x{36f}\x{203f}\x{2040}"
_CLASSES: Final = {"d": r"\p{Nd}", "w": r"\p{L}\p{M}\p{N}\p{S}_", "s": _SPACE, "i": _START, "c": _NAME}
"""The multi-character escapes (XML Schema §G.4.2.5), as the inside of a character class of RE2."""
_PLAIN: Final = frozenset("nrtbBpP")
"""Letters whose escapes have the same meaning in RE2."""
_SHORT: Final = 100_000
"""Characters that a replacement may give without matches being counted first."""
_TOO_LARGE: Final = ("pattern too large", "invalid repetition size")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression: `text` for RE2, with its flags; `groups`, the number of groups it captures; `simple`, the
    same for Python if it cannot backtrack, else None."""

    text: str
    groups: int
    simple: re.Pattern[str] | None


@lru_cache(256)
def pattern_of(pattern: str, flags: str) -> Pattern:
    """Translates an XPath regular expression. SPARQLError if it is none; `UnsupportedFeature` if RE2 cannot do it."""
    if set(flags) - set("smixq"):
        raise SPARQLError(f"no such flag of a regular expression: {flags}")
    if "q" in flags:
        text, groups = re.sub(r"([^\w\s])", r"\\\1", pattern, flags=re.ASCII), 0
        simple = None if "i" in flags else re.compile(re.escape(pattern))
    else:
        reader = _Reader(pattern, spaced="x" in flags)
        text, groups = "".join(reader.translated()), reader.groups
        simple = _simple(text) if not set(flags) - {"x"} else None
    known = "".join(sorted(set(flags) & set("ims")))
    made = Pattern(f"(?{known}){text}" if known else text, groups, simple)
    if simple is None:
        _matches(made.text, [""])
    return made


def _simple(text: str) -> re.Pattern[str] | None:
    """The pattern for Python, if it consists of letters, digits, anchors and escaped punctuation; else None."""
    if not re.fullmatch(r"\^?(?:[\w ,;:/#=<>@%&'\"~`!-]|\\[^\w\s])*\$?", text, re.ASCII):
        return None
    return re.compile(text.removesuffix("$") + r"\Z" if re.search(r"(?<!\\)(\\\\)*\$$", text) else text)


class _Reader:
    """Translates a pattern in one pass; after it, `groups` is the number of groups that the pattern captures."""

    def __init__(self, pattern: str, *, spaced: bool) -> None:
        self._pattern = pattern
        self._spaced = spaced
        self.groups = 0

    def translated(self) -> Iterator[str]:
        """The pieces of the pattern for RE2."""
        at, text = 0, self._pattern
        while at < len(text):
            character = text[at]
            at += 1
            if character == "\\":
                yield self._escape(text[at : at + 1])
                at += 1
            elif character == "[":
                end = self._end_of_class(at)
                yield "[" + "".join(self._inside(text[at:end])) + "]"
                at = end + 1
            elif self._spaced and character in " \t\n\r":
                continue
            else:
                if character == "(" and text[at : at + 1] != "?":
                    self.groups += 1
                elif character == "(" and text[at : at + 2] != "?:":
                    raise SPARQLError(f"not a regular expression: {text[at - 1 : at + 2]}")
                yield character

    def _escape(self, letter: str) -> str:
        if letter.isascii() and letter.isdigit():
            raise UnsupportedFeature(
                f"back-references in regular expressions (\\{letter}) are refused: there is no bound on their time",
                hint="compare the parts with = and SUBSTR, STRBEFORE or STRAFTER",
            )
        if (inside := _CLASSES.get(letter)) is not None:
            return f"[{inside}]"
        if letter.isupper() and (inside := _CLASSES.get(letter.lower())) is not None:
            return f"[^{inside}]"
        return "\\" + _known(letter)

    def _end_of_class(self, at: int) -> int:
        """The end of the character class whose inside begins at `at`."""
        while at < len(self._pattern) and self._pattern[at] != "]":
            if self._pattern[at] == "[":
                raise UnsupportedFeature(
                    "a character class inside another one ([a-z-[aeiou]]) is refused in regular expressions",
                    hint="write the characters out, or put a backslash before the inner [",
                )
            at += 2 if self._pattern[at] == "\\" else 1
        if at >= len(self._pattern):
            raise SPARQLError("not a regular expression: a [ without its ]")
        return at

    def _inside(self, text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            letter = text[at + 1 : at + 2]
            if text[at] != "\\":
                yield text[at]
                at += 1
                continue
            if letter in _CLASSES:
                yield _CLASSES[letter]
            elif letter == "S":
                yield _NO_SPACE
            elif letter == "D":
                yield r"\P{Nd}"
            elif letter.lower() in _CLASSES and letter:
                raise UnsupportedFeature(f"\\{letter} inside a character class is refused in regular expressions")
            else:
                yield "\\" + _known(letter)
            at += 2


def _known(letter: str) -> str:
    """The escape of a character that XPath allows to be escaped; SPARQLError for others."""
    if not letter or ((letter.isalnum() or letter == "_") and letter not in _PLAIN):
        raise SPARQLError(f"not a regular expression: \\{letter}")
    return letter


def is_found(pattern: Pattern, text: str) -> bool:
    """True if the pattern matches somewhere in `text`. O(pattern · text)."""
    return found_in(pattern, [text])[0]


def found_in(pattern: Pattern, texts: Sequence[str]) -> list[bool]:
    """`is_found` of each text."""
    if pattern.simple is not None:
        search = pattern.simple.search
        return [search(text) is not None for text in texts]
    return _matches(pattern.text, texts)


def _matches(pattern: str, texts: Sequence[str]) -> list[bool]:
    import pyarrow as pa  # not light to load
    import pyarrow.compute as pc

    try:
        matched: list[bool] = pc.match_substring_regex(pa.array(texts, pa.string()), pattern).to_pylist()
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression:").strip()
        if any(words in reason for words in _TOO_LARGE):
            raise UnsupportedFeature(
                f"a regular expression is too large: {reason}", hint="repeat less often, at most 1,000 times in all"
            ) from None
        raise SPARQLError(f"not a regular expression: {reason}") from None
    return matched


def replace(pattern: Pattern, text: str, replacement: str, *, literal: bool) -> str:
    """`replaced_in` of one text."""
    return replaced_in(pattern, [text], replacement, literal=literal)[0]


def replaced_in(pattern: Pattern, texts: Sequence[str], replacement: str, *, literal: bool) -> list[str]:
    """`texts` with each match replaced; unless `literal`, `$1` to `$9` stand for groups. O(pattern · texts).

    Raises SPARQLError if the pattern matches the empty text, or if the replacement is not one of XPath. Raises
    `BudgetExceeded` (`text_length`) if a result may be too long: each group that the replacement names may be the whole
    text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_found(pattern, ""):
        raise SPARQLError("REPLACE with a pattern that matches nothing at all")
    new = replacement.replace("\\", r"\\") if literal else "".join(_rewrite(replacement, pattern.groups))
    given = pa.array(texts, pa.string())
    for place, text in enumerate(texts):
        if len(text) * (len(new) + 1) > _SHORT:
            count = pc.count_substring_regex(given[place : place + 1], pattern.text)[0].as_py()
            references = 0 if literal else replacement.count("$")
            made_text(len(text) * (1 + references) + count * len(new))
    made: list[str] = pc.replace_substring_regex(given, pattern.text, new).to_pylist()
    return made


def _rewrite(replacement: str, groups: int) -> Iterator[str]:
    """A replacement of XPath (§5.6.4) for RE2. The N of `$N` is the longest number for which there is a group."""
    at = 0
    while at < len(replacement):
        character, following = replacement[at], replacement[at + 1 : at + 2]
        if character == "\\":
            if following not in ("\\", "$") or not following:
                raise SPARQLError("a replacement has \\ before \\ or $ only")
            yield r"\\" if following == "\\" else "$"
            at += 2
        elif character == "$":
            if not (following.isascii() and following.isdigit()):
                raise SPARQLError("a replacement has $ before a digit only")
            end = at + 2
            while replacement[end : end + 1] in _DIGITS and int(replacement[at + 1 : end + 1]) <= groups:
                end += 1
            yield _reference(int(replacement[at + 1 : end]), groups)
            at = end
        else:
            yield character
            at += 1


def _reference(number: int, groups: int) -> str:
    if number > groups:
        return ""
    if number > _GROUPS:
        raise UnsupportedFeature(f"a replacement may name groups up to ${_GROUPS}, not ${number}")
    return f"\\{number}"
