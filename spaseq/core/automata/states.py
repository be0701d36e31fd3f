"""States of an automaton, of whatever kind: which can be reached, and which have the same future."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence


def closure(seeds: Iterable[int], edges: Iterable[tuple[int, int]]) -> frozenset[int]:
    """The states that can be reached from `seeds` over `edges`, `seeds` included."""
    following: dict[int, list[int]] = {}
    for a, b in edges:
        following.setdefault(a, []).append(b)
    seen, todo = set(seeds), list(seeds)
    while todo:
        for q in following.get(todo.pop(), ()):
            if q not in seen:
                seen.add(q)
                todo.append(q)
    return frozenset(seen)


def alike(
    states: Sequence[int],
    kind: Callable[[int], Hashable],
    future: Callable[[int, Mapping[int, Hashable]], Hashable],
) -> dict[int, int]:
    """The number of each state's block in the coarsest partition that transitions respect (partition refinement).

    States of one block have the same `kind` and the same `future(state, block of each state)`. Blocks are numbered in
    the order of their first states.
    """
    block: Mapping[int, Hashable] = {q: kind(q) for q in states}
    count = 0
    while True:
        keys: dict[Hashable, int] = {}
        refined = {q: keys.setdefault((block[q], future(q, block)), len(keys)) for q in states}
        if len(keys) == count:
            return refined
        count, block = len(keys), refined
