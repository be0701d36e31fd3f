"""The variables of a match that its positions alone determine."""

from __future__ import annotations

from spaseq.core.pattern.nodes import As, Atom, Bordered, Correlate, Filter, Iterate, Optional, Or, Pattern, Sequence
from spaseq.core.pattern.variables import variables
from spaseq.core.trees import fold

_VARIES = -1
_UNTOLD = -2


def told_by_positions(pattern: Pattern, names: frozenset[str]) -> bool:
    """True if any two valuations of `pattern` with equal positions give the variables `names` equal positions.

    Sufficient, not necessary: the parts of the pattern follow each other, and at most one of them takes a number of
    events that varies. Then the number of positions determines which part took which. O(size of the pattern).
    """
    return _events(pattern, names) != _UNTOLD


def _events(pattern: Pattern, names: frozenset[str]) -> int:
    """The number of events that every match of the pattern takes; `_VARIES`; or `_UNTOLD` if they do not determine
    `names`.
    """
    match pattern:
        case Atom():
            return 1
        case As(child, _) | Filter(child, _, _) | Correlate(child, _, _) | Bordered(child):
            return _events(child, names)
        case Sequence(left, right, _, _):
            one, two = _events(left, names), _events(right, names)
            if _UNTOLD in (one, two) or one == two == _VARIES:
                return _VARIES if not names & variables(pattern) else _UNTOLD
            return _VARIES if _VARIES in (one, two) else one + two
        case Iterate(child) | Optional(child):
            inside = _events(child, names)
            return _VARIES if inside > 0 or not names & variables(child) else _UNTOLD
        case Or(left, right):
            if names & variables(pattern):
                return _UNTOLD
            one, two = _events(left, names), _events(right, names)
            return one if one == two else _VARIES
        case _:
            return _UNTOLD if names & variables(pattern) else _VARIES


def all_shown(pattern: Pattern, kept: frozenset[str]) -> bool:
    """True if each event that a match of `pattern` takes is taken by one of the variables `kept`."""

    def is_shown(node: Pattern, below: list[bool]) -> bool:
        match node:
            case Atom(_, bound, _):
                return bool(bound & kept)
            case As(_, variable):
                return variable in kept or below[0]
        return all(below)

    return fold(pattern, is_shown)
