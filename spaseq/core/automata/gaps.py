"""The gap between two parts, if something must not come there for a time: what its transitions do about that time.

A transition into the gap keeps its event, the last one before. In the gap, what must not come is tested by the guard
of its atom. A transition out of it is for an event behind that time, and forgets what was kept. So a loop keeps one
event at a time, that of the round before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from spaseq.core.automata.cea import Action, Avoid, Leave, Take
from spaseq.core.pattern import Atom, Border

_E = TypeVar("_E", bound=Any)
"""An edge: a dataclass with `actions`."""


def keep_times(border: Border) -> tuple[Action, ...]:
    """The actions of a transition into a gap with this border: its event is kept."""
    return tuple(Take(guard, frozenset({last})) for guard, last in _kept(border))


def begin_in_time(begin: tuple[_E, ...], border: Border) -> tuple[_E, ...]:
    """The edges `begin`, which end a gap with this border, for events behind its times alone."""
    times = {str(a.lasting.guard): a.lasting for a in border if a.lasting is not None}
    if not times:
        return begin
    late = tuple(Avoid(times[name].guard, frozenset({times[name].event})) for name in sorted(times))
    left = tuple(Leave(guard) for guard, _ in _kept(border))
    return tuple(replace(e, actions=(*late, *left, *e.actions)) for e in begin)


def _kept(border: Border) -> Iterator[tuple[Hashable, str]]:
    """The guards that keep the last event before a gap, each with its variable, in an order that is the same in every
    process."""
    found: dict[Hashable, str] = {}
    for absent in border:
        if absent.lasting is not None:
            found[absent.lasting.guard] = absent.lasting.last
            if isinstance(absent.pattern, Atom) and absent.pattern.guard is not None:
                found[absent.pattern.guard] = absent.lasting.last
    return iter(sorted(found.items(), key=str))
