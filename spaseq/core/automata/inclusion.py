"""Inclusion between matches with one end, decided on the automaton: proofs that make a selection strategy cheaper.

Both answers hold for every stream, every window, every partition and every CONSUME BY. These only take starts away:
those before a bound, which is the same for all matches with one end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from spaseq.core.automata.cea import CEA, INITIAL
from spaseq.core.automata.determinise import Stepper

PAIRS: Final = 100_000
"""Steps of pairs of runs that `has_nested_matches` takes before it gives up."""
SETS: Final = 128
"""Deterministic states that `find_largest` takes before it gives up; it holds the square of it."""
SYMBOLS: Final = 4_096
"""Steps of deterministic states that `find_largest` takes before it gives up: each predicate doubles them."""

_NOT_BEGUN: Final = -2


def has_nested_matches(cea: CEA) -> bool:
    """False if the positions of no match are a proper subset of those of another with the same end; then MAX is ALL.

    Follows two runs at once, of which the second marks every event that the first one marks, and which may begin at
    different events. There is such a pair of matches only if both may accept at one event after the second has marked
    an event that the first one has not. Conditions of events and guards are left out, so True is no proof.
    O(states² * transitions²), at most PAIRS steps; True beyond.
    """
    moves = [{(t.marks, t.target) for t in out} for out in cea.transitions]

    def ways(state: int) -> Iterator[tuple[bool, int]]:
        if state == _NOT_BEGUN:
            yield False, _NOT_BEGUN
            state = INITIAL
        if state >= 0:
            yield from moves[state]

    start = (_NOT_BEGUN, _NOT_BEGUN, False)
    seen, todo, steps = {start}, [start], 0
    while todo:
        less, more, proper = todo.pop()
        for marks_less, to_less in ways(less):
            for marks_more, to_more in ways(more):
                steps += 1
                if marks_less > marks_more:
                    continue
                if to_less == to_more == -1 and (proper or marks_less < marks_more):
                    return True
                following = (to_less, to_more, proper or marks_less < marks_more)
                if -1 not in following[:2] and following not in seen:
                    seen.add(following)
                    todo.append(following)
        if steps > PAIRS:
            return True
    return False


class Largest:
    """The result of `find_largest`. `single`: the run that began first is the only one with the largest match, and of
    the runs of a deterministic state none began between two of another one."""

    def __init__(self, single: bool) -> None:
        self.single: bool = single


def find_largest(cea: CEA) -> Largest | None:
    """A proof that of the matches with one end there is always one that holds the positions of all others; or None.

    *Claim.* States are deterministic ones, sets of states of the automaton. Let ⊑ be the greatest relation between them
    such that each move of x is met by a move of y if x ⊑ y. That move marks the event if the move of x does, accepts if
    that does, and leads to a state in relation again. So a run in y can do what a run in x does, and mark more. Call a
    run *greedy* if it marks every event that leads it on by marking. Let these hold for each state x that a greedy run
    may be in:

    1. if an event can be marked or skipped, the target of skipping is ⊑ the target of marking;
    2. the initial state is ⊑ x.

    Then the match of the greedy run that began first, of those alive, holds all matches with its end.

    *Proof.* By induction over the events behind that start. Let the greedy run have marked G and be in state g. A run
    that has marked D and is in state p has D ⊆ G and p ⊑ g. A run that begins now is in the initial state: 2. A move of
    p is met by some move of g. That is the move of the greedy run, or its target is ⊑ the target of that: 1. The
    relation is transitive. If p accepts, so does g, with as much. If g has no move, neither p nor the initial state has
    one, and the next greedy run takes over.

    Every other match with that end is a proper subset of this one, so MAX reports its positions alone. What it differs
    in from another match are positions of its own, so NEXT and LAST report it, too.

    Let besides each run mark the event it begins at, no event be marked under two labels, and no two states of greedy
    runs be ⊑ each other (`Largest.single`). Then only the start tells greedy runs apart. Of two starts the earlier has
    the greater state, since greedy steps keep ⊑. So of three starts, if the first and the last are in one state, the
    middle one is, too.

    Guards are not looked at: with them None. All symbols count, whether they occur or not. O(SETS² * symbols) a round
    of the greatest fixpoint, of at most SETS² rounds.
    """
    symbols = 1 << len(cea.predicates)
    if cea.has_registers or symbols > SYMBOLS:
        return None
    table = _tabulate(cea, symbols)
    if table is None:
        return None
    meets = _meet(table)
    mark, skip = table[:, :, 0], table[:, :, 1]
    greedy = np.where(mark >= 0, mark, skip)
    reached, todo = {0}, [0]
    while todo:
        state = todo.pop()
        choice = (mark[:, state] >= 0) & (skip[:, state] >= 0)
        if not meets[skip[choice, state], mark[choice, state]].all():
            return None
        fresh = {int(s) for s in greedy[:, state] if s >= 0} - reached
        reached |= fresh
        todo += fresh
    live = sorted(reached - {0})
    if not meets[0, live].all():
        return None
    both = meets[np.ix_(live, live)] & meets[np.ix_(live, live)].T
    return Largest(all(t.marks for t in cea.transitions[INITIAL]) and int(both.sum()) == len(live))


def _tabulate(cea: CEA, symbols: int) -> np.ndarray | None:
    """The deterministic automaton, int64 (symbols, states, 4): target of marking and of skipping, or -1, and 1 for each
    of them that accepts. State 0 is the initial one. None if it is too large, or marks an event under two labels."""
    stepper = Stepper(cea)
    numbers = {frozenset({INITIAL}): 0}
    rows: list[list[tuple[int, int, int, int]]] = []
    for states in iter(known := list(numbers)):
        if len(known) > SETS or len(known) * symbols > SYMBOLS:
            return None
        row = []
        for symbol in range(symbols):
            step = stepper.step(states, symbol)
            if len(step.marks) > 1:
                return None
            _, marked, accepts = step.marks[0] if step.marks else (0, frozenset(), False)
            targets = []
            for target in (marked, step.skip):
                if target and target not in numbers:
                    numbers[target] = len(known)
                    known.append(target)
                targets.append(numbers[target] if target else -1)
            row.append((targets[0], targets[1], int(accepts), int(step.skip_accepts)))
        rows.append(row)
    return np.array(rows, np.int64).transpose(1, 0, 2)


def _meet(table: np.ndarray) -> np.ndarray:
    """The relation ⊑ of `find_largest`: bool (states, states + 1), the last column for no state at all."""
    symbols, states, _ = table.shape
    meets = np.ones((states + 1, states + 1), bool)  # row -1: what has no future is met by everything
    meets[:-1, -1] = False
    for symbol in range(symbols):
        mark, skip, accepts, passes = table[symbol].T.astype(bool)
        meets[:-1, :-1] &= ~accepts[:, None] | accepts
        meets[:-1, :-1] &= ~passes[:, None] | passes | accepts
    while True:
        before = meets.copy()
        for symbol in range(symbols):
            mark, skip = table[symbol, :, 0], table[symbol, :, 1]
            meets[:-1, :-1] &= meets[np.ix_(mark, mark)]
            meets[:-1, :-1] &= meets[np.ix_(skip, skip)] | meets[np.ix_(skip, mark)]
        if (meets == before).all():
            return meets[:-1]
