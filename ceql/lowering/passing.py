"""The events that each step and loop of a query passes over, in words: a part of `explain`."""

from __future__ import annotations

from collections.abc import Iterator

from ceql.semantics.scopes import absences, is_between, without_border
from ceql.syntax import ast
from ceql.syntax.printer import print_formula
from spaseq.core.events import format_duration
from spaseq.core.pattern import Preference, Skip
from spaseq.core.trees import children, walk

_BETWEEN = {
    Skip.ANY: "any events may lie between, and each that fits is taken in a match of its own",
    Skip.NEXT: "the next event that fits is taken, others are passed over",
    Skip.NONE: "the very next event must fit",
}
_CHOICES = {
    Preference.GREEDY: "if an event also fits what follows, it is taken here",
    Preference.RELUCTANT: "if an event also fits what follows, it is taken there",
    Preference.EACH: "every number of rounds is a match of its own",
}
_OPTIONAL = {
    Preference.GREEDY: "between steps with ->, an event that also fits what follows is taken here",
    Preference.RELUCTANT: "between steps with ->, an event that also fits what follows is taken there",
    Preference.EACH: "with it and without it are matches of their own",
}
_NONE = "none of the events that lie there may be"
_LONGEST = 40


def explain_steps(node: ast.Formula) -> Iterator[str]:
    """A line for each sequence and repetition, in the order of the text, with its place."""
    node = without_border(node).formula
    read = {id(part.left) for part in walk(node) if isinstance(part, ast.Sequence) and is_between(part)}
    for part in _outside_not(node):
        match part:
            case ast.Sequence(left, ast.Without() as no, Skip.ANY | Skip.NEXT):
                if id(part) not in read:
                    none = f"none of the events that lie there may be {_short(no.child)}{_time_of(no, 'what follows')}"
                    yield _line(left, f"behind {_short(left)}", none)
            case ast.Sequence(ast.Without() as no, right, Skip.ANY | Skip.NEXT):
                none = f"none of the events that lie there may be {_short(no.child)}{_time_of(no, 'it')}"
                yield _line(right, f"before {_short(right)}", none)
            case ast.Conjunction() if absences(part):
                forever = [_short(absent.child) for absent in absences(part) if absent.duration is None]
                if forever:
                    why = f"none may be {' and '.join(forever)}, nor may those before and behind them"
                    yield _line(part, f"between the events of {_short(part)}", why)
                for absent in absences(part):
                    if absent.duration is not None:
                        why = f"none may be {_short(absent.child)}{_time_of(absent, 'what follows')}"
                        yield _line(part, f"behind the part in front of {_short(part)}", why)
            case ast.Sequence(ast.Sequence(_, ast.Without() as no), right, skip) if is_between(part):
                none = f"none may be {_short(no.child)}{_time_of(no, 'it')}"
                yield _line(right, f"before {_short(right)}", f"{_BETWEEN[skip]}; {none}")
            case ast.Sequence(_, right, skip):
                yield _line(right, f"before {_short(right)}", _BETWEEN[skip])
            case ast.Repeat(child, 0, 1, _, preference):
                yield _line(part, _short(part), f"{_short(child)} may be missing; {_OPTIONAL[preference]}")
            case ast.Repeat(_, _, _, skip, preference, until):
                ends = "" if until is None else f"; {_short(until.child)} ends it"
                choice = "" if skip is not Skip.NEXT else f"; {_CHOICES[preference]}"
                yield _line(part, f"rounds of {_short(part)}", f"{_BETWEEN[skip]}{choice}{ends}")


def _time_of(absent: ast.Without, following: str) -> str:
    return "" if absent.duration is None else f" for {format_duration(absent.duration)}, and {following} comes later"


def _outside_not(node: ast.Formula) -> Iterator[ast.Formula]:
    """A formula and its parts, the sides of a sequence before the sequence."""
    if isinstance(node, ast.Without):
        return
    if isinstance(node, ast.Sequence):
        yield from _outside_not(node.left)
        yield node
        yield from _outside_not(node.right)
        return
    yield node
    for child in children(node):
        yield from _outside_not(child)


def _line(place: ast.Formula, what: str, why: str) -> str:
    return f"{place.span.line}:{place.span.column} {what}: {why}"


def _short(node: ast.Formula) -> str:
    text = print_formula(node)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
