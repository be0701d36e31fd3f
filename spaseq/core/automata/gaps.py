"""The gap between two parts, if something must not come there for a time: what its transitions do about that time.

A transition into the gap keeps its event, the last one before. In the gap, what must not come is tested by the guard
of its atom. A transition out of it is for an event behind that time, and forgets what was kept. So a loop keeps one
event at a time, that of the round before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from spaseq.core.automata.cea import ACCEPT, Action, Avoid, Leave, Take
from spaseq.core.automata.edges import Edge, add_marks
from spaseq.core.pattern import Atom, Border, NoneOf


def keep_times(border: Border) -> tuple[Action, ...]:
    """The actions of a transition into a gap with this border: its event is kept.

    PERF: a time is forgotten before it is kept, though none is there. So no register is needed before the gap, and runs
    before it and in it have one configuration. `A+ ; NOT B FOR 3 SECONDS ; C` took 145 to 170 µs an event with sets
    of rows, and takes 13 to 16 µs in the kernels.
    """
    opened = frozenset(a for a in border if a.lasting is not None and a.lasting.opens)
    times = {a.lasting.guard for a in opened if a.lasting is not None}
    kept = (
        (Leave(guard),) * (guard in times) + (Take(guard, frozenset({last})),) for guard, last in _guards_of(opened)
    )
    return tuple(action for actions in kept for action in actions)


def opened_by(border: Border) -> frozenset[str]:
    """The variables that keep the last event before a gap with this border."""
    return frozenset(a.lasting.last for a in border if a.lasting is not None and a.lasting.opens)


def open_times(edge: Edge, kept: frozenset[str]) -> Edge:
    """The edge of a match's first event. With it begins the time of a conjunction that nothing is in front of."""
    border = frozenset(a for a in edge.head if a.lasting is not None and a.lasting.opens and not a.lasting.closes)
    if not border:
        return edge
    return add_marks(replace(edge, actions=(*keep_times(border), *edge.actions)), opened_by(border) & kept)


def close_times(edge: Edge) -> Edge:
    """The edge, which forgets the time of a conjunction if it ends a match: nothing follows in the pattern."""
    border = frozenset(a for a in edge.tail if a.lasting is not None and a.lasting.closes and not a.lasting.opens)
    if not border or edge.target != ACCEPT:
        return edge
    return replace(edge, actions=(*edge.actions, *(Leave(guard) for guard, _ in _guards_of(border))))


def begin_in_time(begin: tuple[Edge, ...], border: Border) -> tuple[Edge, ...]:
    """The edges `begin`, which end a gap with this border, for events behind its times alone."""
    closed = frozenset(a for a in border if a.lasting is not None and a.lasting.closes)
    if not closed:
        return begin
    times = {str(a.lasting.guard): a.lasting for a in closed if a.lasting is not None}
    late = tuple(Avoid(times[name].guard, frozenset({times[name].event})) for name in sorted(times))
    left = tuple(Leave(guard) for guard, _ in _guards_of(closed))
    return tuple(replace(e, actions=(*late, *left, *e.actions)) for e in begin)


def pass_in_time(edge: Edge, atoms: Iterable[Atom]) -> list[Edge]:
    """The edges in place of one that passes over events, for those that satisfy none of `atoms`, or come too late for
    the guard of the one that they satisfy."""
    edges = [edge]
    for atom in atoms:
        other = NoneOf(frozenset({atom.predicates}))
        none = [replace(e, predicates=e.predicates | {other}) for e in edges]
        meets = () if atom.guard is None else (Avoid(atom.guard, atom.variables),)
        late = [replace(e, predicates=e.predicates | atom.predicates, actions=(*e.actions, *meets)) for e in edges]
        edges = none + (late if meets else [])
    return edges


def _guards_of(border: Border) -> Iterator[tuple[Hashable, str]]:
    """The guards that keep the last event before a gap, each with its variable, in an order that is the same in every
    process."""
    found: dict[Hashable, str] = {}
    for absent in border:
        if absent.lasting is not None:
            found[absent.lasting.guard] = absent.lasting.last
            if isinstance(absent.pattern, Atom) and absent.pattern.guard is not None:
                found[absent.pattern.guard] = absent.lasting.last
    return iter(sorted(found.items(), key=str))
