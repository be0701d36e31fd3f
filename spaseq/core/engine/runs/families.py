"""Which states share pools of several steps: those that transitions lead along, without a way back."""

from __future__ import annotations

from collections.abc import Iterable


def find_families(links: Iterable[tuple[int, int]], most: int) -> list[tuple[int, ...]]:
    """The states that `links` (source, target) join, each family in an order in which no link leads back.

    Families of more than `most` states, and those with a way back to an earlier state, are left out.
    """
    after: dict[int, set[int]] = {}
    joined: dict[int, set[int]] = {}
    for source, target in links:
        after.setdefault(source, set()).add(target)
        both = joined.get(source, {source}) | joined.get(target, {target})
        joined |= dict.fromkeys(both, both)
    families = {min(states): states for states in joined.values()}
    ordered = [_in_order(states, after) for states in families.values() if len(states) <= most]
    return [states for states in ordered if states]


def _in_order(states: set[int], after: dict[int, set[int]]) -> tuple[int, ...]:
    """The states, none before one that leads to it; empty if there is no such order."""
    found: list[int] = []
    while len(found) < len(states):
        rest = states - set(found)
        first = [q for q in sorted(rest) if not any(q in after.get(other, ()) for other in rest - {q})]
        if not first:
            return ()
        found.append(first[0])
    return tuple(found)
