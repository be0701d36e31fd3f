"""The borders of a pattern: all that must not come before and behind its matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spaseq.core.pattern.nodes import Absent, And, Atom, Bordered, Optional, Or, Pattern, Sequence
from spaseq.core.trees import children, fold

Border = frozenset[Absent]
"""All that must not come at one border of a match."""
_OPEN: Final = frozenset({frozenset[Absent]()})


@dataclass(frozen=True, slots=True)
class Borders:
    """The borders that matches of a pattern may have: `before` their first event and `behind` their last one.
    `empty`: the pattern may take no event."""

    before: frozenset[Border] = _OPEN
    behind: frozenset[Border] = _OPEN
    empty: bool = False


KnownBorders = dict[int, tuple[Pattern, Borders]]
"""Nodes, which stay alive, by their `id`, with their borders."""


def borders(pattern: Pattern, known: KnownBorders | None = None) -> Borders:
    """The borders of a pattern's matches, several if its alternatives differ. O(size of the pattern * borders).

    `known` is for calls about patterns with parts in common: each adds its nodes, and looks at no node twice.
    """
    found: KnownBorders = {} if known is None else known

    def combine(node: Pattern, below: list[Borders]) -> Borders:
        if id(node) not in found:
            found[id(node)] = node, _borders(node, below)
        return found[id(node)][1]

    return fold(pattern, combine, lambda node: () if id(node) in found else children(node))


def _borders(node: Pattern, below: list[Borders]) -> Borders:
    match node, below:
        case Atom(), _:
            return Borders()
        case Or(), [left, right]:
            return Borders(left.before | right.before, left.behind | right.behind, left.empty or right.empty)
        case Sequence(), [left, right]:
            before = left.before | right.before if left.empty else left.before
            behind = left.behind | right.behind if right.empty else right.behind
            return Borders(before, behind, left.empty and right.empty)
        case And(), [left, right]:
            return Borders(empty=left.empty and right.empty)
        case Optional(), [child]:
            return Borders(child.before, child.behind, True)
        case Bordered(_, before, behind), [child]:
            return Borders(
                frozenset(found | frozenset(before) for found in child.before),
                frozenset(found | frozenset(behind) for found in child.behind),
                child.empty,
            )
    (child,) = below
    return child
