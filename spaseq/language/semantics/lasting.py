"""The times of absences, `B! FOR 10 SECONDS`, in front of a sequence and behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from spaseq.core.errors import OptionError, Span
from spaseq.core.events.time import parse_duration
from spaseq.language.syntax import ast

Fail = Callable[[str, Span, str], NoReturn]
"""Raises the error for a problem, at a place, with a hint."""
_PLACES: Final = "it stands in front of all that SEQ takes, behind it, or between two elements: A ; B! FOR 1 SECOND ; C"


@dataclass(frozen=True, slots=True)
class Lasting:
    """The times (ns) for which what is negated must not come in front of a match, `silence`, and behind it, `patience`;
    None for the window."""

    silence: int | None = None
    patience: int | None = None


def read_lasting(sequence: ast.Element, fail: Fail, refuse: Fail) -> Lasting:
    """The times of the absences of a sequence. `fail` is for what has no meaning, `refuse` for what is not run."""
    elements = sequence.elements if isinstance(sequence, ast.Chain) else (sequence,)
    negated = [_absence(element) for element in elements]
    taken = [i for i, absence in enumerate(negated) if absence is None]
    for i in taken:
        for absence in _inside(elements[i]):
            if absence.lasting is not None:
                refuse("'!' with FOR in parentheses", absence.span, _PLACES)
    if not taken:
        return Lasting()  # refused elsewhere
    if isinstance(sequence, ast.Chain):
        _check_between(sequence, negated, taken, fail, refuse)
    return Lasting(_one_time(negated[: taken[0]], fail, refuse), _one_time(negated[taken[-1] + 1 :], fail, refuse))


def _check_between(
    sequence: ast.Chain, negated: Sequence[ast.Negated | None], taken: Sequence[int], fail: Fail, refuse: Fail
) -> None:
    """Checks the absences between two elements: those side by side have one time, and no `,` is beside them."""
    operators = [None, *(operator for operator, _ in sequence.rest)]
    for i in range(taken[0] + 1, taken[-1]):
        absence = negated[i]
        if absence is None:
            continue
        _one_time([absence, negated[i + 1]], fail, refuse)
        if absence.lasting is None:
            continue
        sure = [k for k, e in enumerate(sequence.elements) if negated[k] is None and not _may_be_left_out(e)]
        if not any(k < i for k in sure) or not any(k > i for k in sure):
            hint = "some element on each side always takes an instant: A ; B! FOR 1 SECOND ; C"
            refuse("'!' with FOR beside elements that may all be left out", absence.span, hint)
        # An optional element behind it may be left out: then the sign in front of the next one joins both.
        behind = next(k for k in sure if k > i)
        if ast.Operator.STRICT in operators[i : behind + 1]:
            refuse("'!' with FOR beside ','", absence.span, "a time passes behind A: A ; B! FOR 1 SECOND ; C")


def _may_be_left_out(element: ast.Element) -> bool:
    while isinstance(element, ast.Repeated | ast.Optional):
        if isinstance(element, ast.Optional) or element.low == 0:
            return True
        element = element.child
    return isinstance(element, ast.Chain) and all(map(_may_be_left_out, element.elements))


def _absence(element: ast.Element) -> ast.Negated | None:
    while isinstance(element, ast.Repeated | ast.Optional):
        element = element.child
    return element if isinstance(element, ast.Negated) else None


def _inside(element: ast.Element) -> Iterator[ast.Negated]:
    match element:
        case ast.Negated(child):
            yield element
            yield from _inside(child)
        case ast.Repeated(child) | ast.Optional(child):
            yield from _inside(child)
        case ast.Both(parts) | ast.Either(parts) | ast.Unordered(parts):
            for part in parts:
                yield from _inside(part)
        case ast.Chain():
            for part in element.elements:
                yield from _inside(part)


def _one_time(absences: Sequence[ast.Negated | None], fail: Fail, refuse: Fail) -> int | None:
    """The time that several absences side by side have in common."""
    found: list[tuple[int | None, ast.Negated]] = [(time_of(a, fail), a) for a in absences if a is not None]
    for time, absence in found[1:]:
        if time != found[0][0]:
            hint = "give all of them one time, as in A ; B! FOR 1 SECOND ; C! FOR 1 SECOND, or write two queries"
            refuse("'!' of different times side by side", absence.span, hint)
    return found[0][0] if found else None


def time_of(absence: ast.Negated, fail: Fail) -> int | None:
    """The time of an absence, ns; None without FOR."""
    lasting = absence.lasting
    if lasting is None:
        return None
    if lasting.unit == "EVENTS":
        fail("FOR takes a time", lasting.span, "B! FOR 10 SECONDS; WITHIN 10 EVENTS counts events")
    try:
        time = parse_duration(f"{lasting.amount} {lasting.unit.lower()}")
    except OptionError:
        fail("this time is longer than time itself", lasting.span, "up to 292 years")
    if time <= 0:
        fail("FOR without a time", lasting.span, "FOR needs a duration above zero")
    return time
