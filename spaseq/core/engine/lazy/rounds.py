"""The rounds of iterations, generated once the rest of a match is known ([Lazy] §4.5).

A chain of rounds grows backwards from the last round, whose events are leaves. Each step prepends one round that ends
before the chain starts, so all subsets come out, and each condition is tested as a round is added. A round may be a
whole branch with iterations of its own: nested iteration is recursion.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.core.engine.lazy.buffers import BIG
from spaseq.core.engine.lazy.partial import Partial
from spaseq.core.engine.lazy.plan import BranchPlan, RoundsPlan
from spaseq.core.engine.lazy.space import Frame, Space


def with_rounds(space: Space, frames: list[Frame], partial: Partial, inside: int | None = None) -> Iterator[Partial]:
    """`partial`, all of whose leaves are known, with every choice of rounds that its branch allows.

    `inside`: the rounds that the branch is one round of. Yields tables of at most `CHUNK` rows or those of one row.
    """
    yield from _from(space, frames, partial, inside, 0, frozenset(frames[-1][0].leaves))


def _from(
    space: Space, frames: list[Frame], partial: Partial, inside: int | None, turn: int, done: frozenset[int]
) -> Iterator[Partial]:
    if not len(partial):
        return
    plan, since = frames[-1]
    if turn == len(plan.rounds):
        yield partial
        return
    rounds = plan.rounds[turn]
    number = rounds.rounds.number
    _set_bounds(partial, rounds, inside)
    known = done | {number}
    checks = plan.ready(number, known)
    for chain in _chains(space, frames, partial, rounds):
        yield from _from(space, frames, space.checked(chain, checks, since), inside, turn + 1, known)


def _set_bounds(partial: Partial, rounds: RoundsPlan, inside: int | None) -> None:
    """The bounds of a chain with no rounds yet; its own first event is BIG."""
    number = rounds.rounds.number
    below = np.full(len(partial), -1, np.int64) if inside is None else partial.marks["below", inside]
    for node in rounds.after:
        if node in partial.columns:
            below = np.maximum(below, partial.columns[node])
    above = np.full(len(partial), BIG, np.int64)
    for node in rounds.before:
        above = np.minimum(above, partial.columns[node] if node in partial.columns else partial.marks[node])
    partial.marks |= {("below", number): below, ("above", number): above, number: np.full(len(partial), BIG, np.int64)}


def _chains(space: Space, frames: list[Frame], partial: Partial, rounds: RoundsPlan) -> Iterator[Partial]:
    """`partial` with no round, with one, with two…, depth first."""
    todo = [partial]
    while todo:
        chain = todo.pop()
        yield chain.take(slice(None))  # its own dicts: the consumer changes them
        for branch in rounds.branches:
            todo += [longer for longer in _prepend(space, frames, chain, rounds, branch) if len(longer)]


def _prepend(
    space: Space, frames: list[Frame], chain: Partial, rounds: RoundsPlan, branch: BranchPlan
) -> Iterator[Partial]:
    """The chains with another round, of `branch`, before them."""
    number = rounds.rounds.number
    since = chain.extra.shape[1]
    inside = [*frames, (branch, since)]
    order = sorted(branch.leaves, key=lambda n: len(space.postings[branch.kind[n]]))
    for whole in _leaves(space, inside, chain, rounds, order, frozenset()):
        for full in with_rounds(space, inside, whole, number):
            yield _fold(space, full, rounds, branch)


def _leaves(
    space: Space, frames: list[Frame], partial: Partial, rounds: RoundsPlan, order: list[int], done: frozenset[int]
) -> Iterator[Partial]:
    """The events of a round's leaves, strictly between the bounds of the chain."""
    if not len(partial):
        return
    if not order:
        yield partial
        return
    leaf, plan = order[0], frames[-1][0]
    number, adjacent = rounds.rounds.number, rounds.rounds.adjacent
    below, above = partial.marks["below", number], partial.marks["above", number]
    first, last = space.ranges(partial, plan, leaf, below, above)
    if adjacent and plan.branch.last == {leaf}:
        first = np.maximum(first, last - 1)  # only the last of them can be the one before
    known = done | {leaf}
    for rows, events in space.candidates(plan.kind[leaf], first, last):
        found = space.bind(partial, rows, leaf, events, frames, known)
        space.instances += len(found)
        yield from _leaves(space, frames, found, rounds, order[1:], known)


def _fold(space: Space, partial: Partial, rounds: RoundsPlan, branch: BranchPlan) -> Partial:
    """The round's leaves as further events of the chain, which now starts with it."""
    number = rounds.rounds.number
    leaves = sorted(branch.leaves)
    events = np.stack([partial.columns[n] for n in leaves], axis=1)
    starts = [events, *(partial.marks[r.rounds.number][:, None] for r in branch.rounds)]
    start = np.hstack(starts).min(axis=1)
    if rounds.rounds.adjacent:
        ordinals, base = space.rows.ordinal.values, space.rows.base
        end = np.stack([partial.columns[n] for n in branch.branch.last], axis=1).max(axis=1)
        ok = ordinals[end - base] + 1 == ordinals[partial.marks["above", number] - base]
        partial, events, start = partial.take(ok), events[ok], start[ok]
    for leaf in leaves:
        del partial.columns[leaf]
    inner = {r.rounds.number for r in branch.rounds}
    partial.marks = {
        name: column for name, column in partial.marks.items()
        if name not in inner and not (isinstance(name, tuple) and name[1] in inner)
    }  # fmt: skip
    partial.extra = np.hstack([partial.extra, events])
    partial.kinds += tuple(leaves)
    partial.marks["above", number] = partial.marks[number] = start
    return partial
