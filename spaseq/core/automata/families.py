"""Families of sets of states: runs go from one to another and keep the values that transitions compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

_MOST_SETS = 64
"""Sets of states that are looked at before it is given up."""


class Way(NamedTuple):
    """A move of runs that are in the states `source`: transitions fire together, and the runs are in `target` then."""

    source: frozenset[int]
    fired: tuple[int, ...]
    target: frozenset[int]


def find_ways(
    begin: frozenset[int],
    bundles_of: Callable[[frozenset[int]], Sequence[Sequence[tuple[int, ...]]]],
    fit: Callable[[int, int], bool],
    target_of: Callable[[tuple[int, ...]], frozenset[int]],
) -> list[Way]:
    """All ways from the states `begin` on; none if there are very many sets of states.

    `bundles_of`: for a set of states and each label, the bundles of transitions that fire together or not at all.
    `fit`: True if two transitions may fire at one event. `target_of`: the states that transitions lead to.
    """
    found, todo, known = list[Way](), [begin], {begin}
    while todo:
        states = todo.pop()
        for bundles in bundles_of(states):
            choices: list[tuple[tuple[int, ...], ...]] = [()]
            for bundle in bundles:
                choices += [(*some, bundle) for some in choices if all(fit(bundle[0], other[0]) for other in some)]
                if len(choices) > _MOST_SETS:
                    return []
            for chosen in choices[1:]:
                fired = tuple(i for bundle in chosen for i in bundle)
                way = Way(states, fired, target_of(fired))
                found.append(way)
                if way.target and way.target not in known:
                    known.add(way.target)
                    todo.append(way.target)
            if len(known) > _MOST_SETS or len(found) > 16 * _MOST_SETS:
                return []
    return found


def find_families(
    links: Iterable[tuple[frozenset[int], frozenset[int]]], most: int
) -> list[tuple[frozenset[int], ...]]:
    """The sets of states that `links` (source, target) join, each family in an order in which no link leads back.

    Families of more than `most` sets, and those with a way back to an earlier set, are left out.
    """
    after: dict[frozenset[int], set[frozenset[int]]] = {}
    joined: dict[frozenset[int], set[frozenset[int]]] = {}
    for source, target in links:
        after.setdefault(source, set()).add(target)
        both = joined.get(source, {source}) | joined.get(target, {target})
        joined |= dict.fromkeys(both, both)
    families = {frozenset(sets) for sets in joined.values()}
    ordered = [_in_order(sets, after) for sets in sorted(families, key=lambda sets: min(map(sorted, sets)))
               if len(sets) <= most]  # fmt: skip
    return [sets for sets in ordered if sets]


def _in_order(
    sets: frozenset[frozenset[int]], after: dict[frozenset[int], set[frozenset[int]]]
) -> tuple[frozenset[int], ...]:
    """The sets, none before one that leads to it; empty if there is no such order."""
    found: list[frozenset[int]] = []
    while len(found) < len(sets):
        rest = sets - set(found)
        first = [some for some in rest if not any(some in after.get(other, ()) for other in rest - {some})]
        if not first:
            return ()
        found.append(min(first, key=sorted))
    return tuple(found)
