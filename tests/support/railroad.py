"""Railroad diagrams of a lark grammar, as SVG: `python -m tests.support.railroad` writes those of the references.

A rule that begins with itself is drawn as its first part, followed by any number of the parts that may come behind. A
list with a separator is a loop with the separator on the way back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from spaseq.core.measure import width_of

__all__ = ["DIAGRAMS", "Diagrams", "write_all"]

ROOT = Path(__file__).resolve().parents[2]
DIAGRAMS: Final = {
    "ceql": (ROOT / "ceql" / "syntax" / "grammar.lark", ROOT / "docs" / "ceql"),
    "spaseq": (ROOT / "spaseq" / "language" / "syntax" / "grammar.lark", ROOT / "docs" / "spaseq"),
}
_SHOWN: Final = {"IDENT": "name", "QUOTED": "`name`", "NUMBER": "number", "STRING": "text", "REGEX": "<<pattern>>",
                 "VALUES": "{value, …}", "VAR": "?variable", "NAME": "name", "PNAME_NS": "prefix:",
                 "PNAME_LN": "prefix:name", "IRIREF": "<iri>", "GROUP": "{ … }", "EXPRESSION": "( … )",
                 "DATETIME": "date and time"}  # fmt: skip
"""Terminals that are described by a regular expression."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"i?|/(?:[^/\\\n]|\\.)+/i?|->\s*\w+|[\w!?]\w*|[()|*+?\[\]]')
_GAP, _ROW, _HALF, _LETTER = 12, 10, 12, 7.3


@dataclass(frozen=True)
class Box:
    """A word or sign (`kind` word), a rule (rule) or a token with a shape of its own (token); or nothing (text "")."""

    text: str
    kind: str = "word"


@dataclass(frozen=True)
class Row:
    """One after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Pick:
    """One of these; the first on the straight way."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Loop:
    """Once or more, with `back` between two rounds."""

    part: Part
    back: Part


Part = Box | Row | Pick | Loop
_NOTHING: Final = Box("")


class Diagrams:
    """The rules of a grammar and their drawings."""

    def __init__(self, grammar: str) -> None:
        lines = [re.sub(r"^//.*| // .*", "", line) for line in grammar.splitlines()]
        text = re.sub(r"^%.*$", "", "\n".join(lines), flags=re.MULTILINE)
        found = re.split(r"^([?!]?\w+)(?:\.\d+)?:", text, flags=re.MULTILINE)[1:]
        bodies = {name.lstrip("?!"): body for name, body in zip(found[::2], found[1::2], strict=True)}
        self._terminals = {name: body.strip() for name, body in bodies.items() if name.isupper()}
        self.rules: dict[str, Part] = {}
        for name, body in bodies.items():
            if not name.isupper():
                self.rules[name] = self._unroll(name, self._parse(_TOKEN.findall(body)))

    def svg(self, name: str) -> str:
        """The drawing of a rule."""
        part = self.rules[name]
        wide, above, below = _size(part)
        width, height, y = wide + 4 * _GAP, above + below + 2 * _GAP, above + _GAP
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="Menlo,Consolas,monospace" font-size="12" role="img" '
            f'aria-label="syntax of {name.replace("_", " ")}">',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
            f'<path d="M{_GAP} {y - 6}v12M{_GAP} {y}h{_GAP}M{wide + 2 * _GAP:.1f} {y}h{_GAP}M{wide + 3 * _GAP:.1f} '
            f'{y - 6}v12" fill="none" stroke="#555555"/>',
            *_draw(part, 2 * _GAP, y),
        ]
        return "\n".join([*lines, "</svg>", ""])

    # -- the grammar

    def _parse(self, tokens: list[str]) -> Part:
        part, rest = self._choice(tokens)
        assert not rest, rest
        return part

    def _choice(self, tokens: list[str]) -> tuple[Part, list[str]]:
        found, rest = [], tokens
        while True:
            row, rest = self._row(rest)
            found.append(row)
            if not rest or rest[0] != "|":
                return (found[0] if len(found) == 1 else Pick(tuple(found))), rest
            rest = rest[1:]

    def _row(self, tokens: list[str]) -> tuple[Part, list[str]]:
        parts: list[Part] = []
        while tokens and tokens[0] not in ("|", ")", "]"):
            token, tokens = tokens[0], tokens[1:]
            if token.startswith("->"):
                continue
            if token in "([":
                part, tokens = self._choice(tokens)
                tokens = tokens[1:]
                parts.append(Pick((_NOTHING, part)) if token == "[" else part)
            elif token in "*+?":
                parts.append(_repeat(parts, token))
            else:
                parts.append(self._box(token))
        return (parts[0] if len(parts) == 1 else Row(tuple(parts))), tokens

    def _box(self, token: str) -> Part:
        if token.startswith('"'):
            text = token.removesuffix("i")[1:-1]
            return Box(text.upper() if text.isalpha() else text)
        if not token.isupper() and token.lstrip("_") == token.lower():
            return Box(token.replace("_", " "), "rule")
        if token in _SHOWN:
            return Box(_SHOWN[token], "token")
        body = re.sub(r"\s*/\(\?=.*/$", "", self._terminals[token])  # without what must follow
        if body.startswith("/("):
            words = re.match(r"/\(([^)]*)\)", body)
            assert words is not None
            return Pick(tuple(Box(re.sub(r"s?\?$", "S", word).upper()) for word in words[1].split("|")))
        return self._parse(_TOKEN.findall(body))

    def _unroll(self, name: str, part: Part) -> Part:
        """Without the rule at its own beginning."""
        ways = part.parts if isinstance(part, Pick) else (part,)
        own = Box(name.replace("_", " "), "rule")
        behind = [Row(way.parts[1:]) for way in ways if isinstance(way, Row) and way.parts[0] == own]
        if not behind:
            return part
        first = [way for way in ways if not (isinstance(way, Row) and way.parts[0] == own)]
        more = behind[0] if len(behind) == 1 else Pick(tuple(behind))
        begin = first[0] if len(first) == 1 else Pick(tuple(first))
        if all(len(way.parts) == 2 and way.parts[1] == begin for way in behind):
            signs = tuple(way.parts[0] for way in behind)
            return Loop(begin, signs[0] if len(signs) == 1 else Pick(signs))
        return Row((begin, Pick((_NOTHING, Loop(more, _NOTHING)))))


def _repeat(parts: list[Part], sign: str) -> Part:
    """The last of the parts, taken off them, under `*`, `+` or `?`."""
    part = parts.pop()
    if sign == "?":
        return Pick((_NOTHING, part))
    if isinstance(part, Row) and len(part.parts) == 2 and parts and parts[-1] == part.parts[1]:
        loop = Loop(parts.pop(), part.parts[0])
        if sign == "*":
            return loop
    return Loop(part, _NOTHING) if sign == "+" else Pick((_NOTHING, Loop(part, _NOTHING)))


# -- the drawing: a part is as wide as `_size` says, so much above its line and so much below


def _size(part: Part) -> tuple[float, float, float]:
    match part:
        case Box(""):
            return _GAP, 0.0, 0.0
        case Box(text):
            return _LETTER * width_of(text) + 2 * _GAP, _HALF, _HALF
        case Row(parts):
            sizes = [_size(p) for p in parts]
            return (
                sum(s[0] for s in sizes) + _GAP * (len(sizes) - 1),
                max(s[1] for s in sizes),
                max(s[2] for s in sizes),
            )
        case Pick(parts):
            sizes = [_size(p) for p in parts]
            below = sizes[0][2] + sum(_ROW + max(s[1], 4) + s[2] for s in sizes[1:])
            return max(s[0] for s in sizes) + 4 * _GAP, sizes[0][1], below
        case Loop(inner, back):
            (wide, above, below), (other, up, down) = _size(inner), _size(back)
            return max(wide, other) + 4 * _GAP, above, below + _ROW + max(up, 4) + down
    raise TypeError(part)


def _line(*steps: str) -> str:
    return f'<path d="{"".join(steps)}" fill="none" stroke="#555555"/>'


def _draw(part: Part, x: float, y: float) -> Iterator[str]:
    wide = _size(part)[0]
    match part:
        case Box(""):
            yield _line(f"M{x:.1f} {y}h{wide:.1f}")
        case Box(text, kind):
            round_, fill = {"word": (12, "#fdf3d8"), "rule": (0, "#e3eefb"), "token": (4, "#e9f6e6")}[kind]
            yield (
                f'<rect x="{x:.1f}" y="{y - _HALF}" width="{wide:.1f}" height="{2 * _HALF}" rx="{round_}" '
                f'fill="{fill}" stroke="#555555"/>'
            )
            yield f'<text x="{x + wide / 2:.1f}" y="{y + 4}" text-anchor="middle">{escape(text)}</text>'
        case Row(parts):
            for i, inner in enumerate(parts):
                if i:
                    yield _line(f"M{x:.1f} {y}h{_GAP}")
                    x += _GAP
                yield from _draw(inner, x, y)
                x += _size(inner)[0]
        case Pick(parts):
            at = y
            for i, inner in enumerate(parts):
                own, above, below = _size(inner)
                if i:
                    at += _ROW + max(above, 4)
                    down = at - y
                    yield _line(
                        f"M{x:.1f} {y}q{_GAP} 0 {_GAP} {_GAP / 2}v{down - _GAP:.1f}q0 {_GAP / 2} {_GAP} {_GAP / 2}"
                    )
                    yield _line(f"M{x + own + 2 * _GAP:.1f} {at}H{x + wide - 2 * _GAP:.1f}q{_GAP} 0 {_GAP} {-_GAP / 2}"
                                f"v{_GAP - down:.1f}q0 {-_GAP / 2} {_GAP} {-_GAP / 2}")  # fmt: skip
                else:
                    yield _line(f"M{x:.1f} {y}h{2 * _GAP}M{x + own + 2 * _GAP:.1f} {y}H{x + wide:.1f}")
                yield from _draw(inner, x + 2 * _GAP, at)
                at += below
        case Loop(inner, back):
            own, _, below = _size(inner)
            other, up, _ = _size(back)
            yield _line(f"M{x:.1f} {y}h{2 * _GAP}M{x + own + 2 * _GAP:.1f} {y}H{x + wide:.1f}")
            yield from _draw(inner, x + 2 * _GAP, y)
            at = y + below + _ROW + max(up, 4)
            right, down = x + wide - 2 * _GAP, at - y
            yield _line(f"M{right:.1f} {y}q{_GAP} 0 {_GAP} {_GAP / 2}v{down - _GAP:.1f}q0 {_GAP / 2} {-_GAP} {_GAP / 2}"
                        f"H{x + 2 * _GAP + other:.1f}M{x + 2 * _GAP:.1f} {at}q{-_GAP} 0 {-_GAP} {-_GAP / 2}"
                        f"v{_GAP - down:.1f}q0 {-_GAP / 2} {_GAP} {-_GAP / 2}")  # fmt: skip
            yield from _draw(back, x + 2 * _GAP, at)


def write_all(languages: Sequence[str] = tuple(DIAGRAMS)) -> None:
    """Writes the diagrams of the references, `docs/LANGUAGE/rail/RULE.svg`."""
    for language in languages:
        grammar, folder = DIAGRAMS[language]
        diagrams = Diagrams(grammar.read_text("utf-8"))
        (folder / "rail").mkdir(exist_ok=True)
        for name in diagrams.rules:
            (folder / "rail" / f"{name}.svg").write_text(diagrams.svg(name), encoding="utf-8")


if __name__ == "__main__":
    write_all()
