"""A silence as one side of an OR, as the reader of query text takes it: `A ; (NOT B FOR 5 SECONDS OR C) ; D` is
`A ; NOT B FOR 5 SECONDS ; D` or `A ; C ; D` (docs/semantics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.support.oracle import Formula, Or

Element = tuple[bool, Any, Fraction | None]
"""A part of a sequence: True for a NOT, the formula (in it), and its time."""


@dataclass(frozen=True, slots=True)
class Silent:
    """`NOT child FOR span` alone, which takes no event; only a side of an OR."""

    child: Formula
    span: Fraction


def ways(part: Element) -> list[Element]:
    """A part of a sequence, once for each side of an OR with a silence: that is no event, but a NOT in its place."""
    sides = _sides(part[1])
    if part[0] or not any(isinstance(side, Silent) for side in sides):
        return [part]
    return [(True, side.child, side.span) if isinstance(side, Silent) else (False, side, None) for side in sides]


def _sides(formula: Any) -> list[Any]:
    return [*_sides(formula.left), *_sides(formula.right)] if isinstance(formula, Or) else [formula]
