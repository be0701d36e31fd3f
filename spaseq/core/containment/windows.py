"""Two windows as bounds on the lengths of matches, and the times by which a match can leave one of them.

A window in EVENTS bounds the number of events from the start of a match to its end, in its partition. A window of time
bounds no number: all events of a match may have one time. And a match of two events or more can have any duration,
since nothing else reads times. So of a match of both automata, one query alone reports it if its duration may lie
inside one window and outside the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.core.engine import Window


@dataclass(frozen=True, slots=True)
class Goal:
    """A kind of word to be found: one that the automata of the queries accept as `old` and `new` say.

    `reported_by` is the query, or "both". `several`: it needs two events or more, as it must have a duration.
    `lasts`: the durations, of both windows' measures, by which the match is reported by just that query.
    """

    reported_by: str
    old: bool
    new: bool
    several: bool = False
    lasts: tuple[int | float, int | float] = (0, 0)


def events_in(window: Window) -> int | None:
    """The most events that a match may span; None if the window is not counted in events."""
    return int(window.size) + 1 if window.by_position else None


def goals(old: Window, new: Window, one_measure: bool) -> tuple[Goal, ...]:
    """The words that show a match of the old query alone, of the new one alone, and of both.

    `one_measure`: both windows, if they are of time, measure the same times or the same attribute.
    """
    found = [Goal("old", True, False), Goal("new", False, True), Goal("both", True, True)]
    for who, inside, outside in (("old", old, new), ("new", new, old)):
        lasts = _outside(inside, outside, one_measure)
        if lasts is not None:
            found.append(Goal(who, True, True, several=True, lasts=lasts if who == "old" else lasts[::-1]))
    return tuple(found)


def _outside(inside: Window, outside: Window, one_measure: bool) -> tuple[int | float, int | float] | None:
    """The durations, in the measures of both windows, of a match in one window and not in the other; None if there are
    none. Windows in events are none of time."""
    if outside.kind != "span":
        return None
    if inside.kind != "span" or not one_measure:
        return 0, _beyond(outside.size)
    return (inside.size, inside.size) if inside.size > outside.size else None


def _beyond(size: int | float) -> int | float:
    """A size that is greater, a whole second if sizes are nanoseconds."""
    step = 1_000_000_000 if isinstance(size, int) and size and size % 1_000_000_000 == 0 else 1
    return size + step
