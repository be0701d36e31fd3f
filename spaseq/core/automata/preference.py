"""Lists of places: the deterministic states of NEXT and LAST ([CEL] Theorems 4 and 6, Appendix C.3.2).

Both compare the positions that two runs have marked and that complete at one event. With NEXT the run that holds the
smallest position of the symmetric difference is better, with LAST the run that holds the greatest. A *place* has the
runs that have marked the same positions, and the set of states they are in. A *list* has the places in order of
preference, the best first. It says all that matters about what was read: which run is the best at an event depends on
the list and on the events from there on.

Laws of the order. Let two runs have marked P and Q before an event, and P' and Q' with it.

* *NEXT.* If P is better than Q, P' is better than Q', as the smallest difference stays. If P = Q, the run that marks is
  better. So the places of a list follow each other as before, and from each come the run that marks, then the other.
* *LAST.* If only one of them marks the event, that is the greatest difference, so it is better. Else the order stays.
  So all runs that mark come first, in the order before, then all others, in the order before.
* *The runs that begin* at the event have marked nothing before, which is worse than anything, in both orders.
* A state that a better place has is left out of all others. What a run in it completes, the better one completes at the
  same event with the same further marks, and the laws say that it stays better. A place without states is left out.

If each run marks its start, two runs with the same positions have the same start, so a place has one run, and there are
no ties. Automata with labels, and those that begin at an event that is not marked, have ties and keep frontiers
(`has_places`).

*Window.* The machine begun at a start s has the places of all runs that begin at s or later. At an event whose first
live start is s, its best run is the answer. Machines in the same list move alike for ever, whatever their starts are.

*Places that never meet.* The order of two places matters only if one may have to be left out. For that, runs in them
lead to one state, or to acceptance, at one event. With LAST both must mark the event, or neither: `Relation` finds the
pairs of states for which that may be. Places of which no pair may meet are put in a fixed order, as letters of a trace
(Mazurkiewicz) that commute. So a sequence of n types has n lists with LAST, instead of the n! orders in which the types
came last.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL
from spaseq.core.automata.determinise import Step, Stepper
from spaseq.core.errors import BudgetExceeded
from spaseq.core.snapshot import expect

Places = tuple[frozenset[int], ...]
"""A list: the states of each place, the best first. No state is in two of them; INITIAL is in none."""

_UNKNOWN: Final = -1
_NOTHING: Final = 0
"""The step that changes nothing and accepts nothing."""
_EMPTY: Final[Places] = ()
_LEAST: Final = 64
"""Steps that are computed at least before lists are dropped."""
_PLACES: Final = 1 << 12
"""Sets of states that something is kept of."""
_STATES: Final = 128


def has_places(cea: CEA) -> bool:
    """True if the runs of an automaton can be kept by places: it has no registers and no labels, and every run marks
    its start."""
    return not cea.has_registers and cea.labels is None and all(t.marks for t in cea.transitions[INITIAL])


class Steps(NamedTuple):
    """The steps computed so far, as `spaseq.core.engine.kernels.preference.run_lists` reads them.

    `of`: int32 (lists, classes), the number of a step, `_UNKNOWN` if it is not computed. List 0 has no place: its steps
    are those of a machine that begins. `heads`: int32 (steps, 4), the list reached, -1 for none; its first way and the
    number of its ways; the way accepted, -1 for none. `ways`: int32 (n,), the origin of the run of a place. That is
    twice one more than the number of its place before, or 0 if the run begins at the event. It is 1 more if the run
    marks the event.
    """

    of: np.ndarray
    heads: np.ndarray
    ways: np.ndarray


class Relation:
    """The pairs of states whose order matters, by the transitions alone: any two of them may fire at one event.

    O(pairs of transitions); of an automaton with more than `_STATES` states, all pairs count.
    """

    def __init__(self, cea: CEA, latest: bool) -> None:
        self._masks: dict[frozenset[int], tuple[int, int]] = {}
        self._rivals = [(1 << cea.states) - 1] * cea.states
        if cea.states <= _STATES:
            self._find(cea, latest)

    def _find(self, cea: CEA, latest: bool) -> None:
        ways = [{(t.marks and latest, t.target) for t in out} for out in cea.transitions]
        before: dict[tuple[int, int], list[tuple[int, int]]] = {}
        meeting: list[tuple[int, int]] = []
        for p in range(1, cea.states):
            for q in range(1, p):
                pairs = {(a, b) for kind, a in ways[p] for other, b in ways[q] if kind == other}
                if any(a == b for a, b in pairs):
                    meeting.append((p, q))
                for a, b in pairs:
                    if ACCEPT not in (a, b) and a != b:
                        before.setdefault((max(a, b), min(a, b)), []).append((p, q))
        self._rivals = [0] * cea.states
        while meeting:
            p, q = meeting.pop()
            if not self._rivals[p] >> q & 1:
                self._rivals[p] |= 1 << q
                self._rivals[q] |= 1 << p
                meeting += before.get((p, q), ())

    def masks(self, place: frozenset[int]) -> tuple[int, int]:
        """The states of a place, and those whose order to one of these matters, a bit each."""
        found = self._masks.get(place)
        if found is None:
            if len(self._masks) >= _PLACES:
                self._masks.clear()
            own = rivals = 0
            for q in place:
                own |= 1 << q
                rivals |= self._rivals[q]
            found = self._masks[place] = own, rivals
        return found


class Preferences:
    """The lists of one evaluation and their steps. `latest`: the order of LAST, else that of NEXT.

    A step is computed when a group of machines first makes it. If they take more than `budget` bytes, `clear` drops all
    lists but the live ones, and all steps. If the live lists alone take more, the evaluation goes on. An event makes a
    step from each live list, so lists are dropped only after some more steps than that.
    """

    def __init__(self, cea: CEA, latest: bool, budget: int) -> None:
        self._stepper = Stepper(cea)
        self._relation = Relation(cea, latest)
        self._latest = latest
        self._budget = budget
        self._vectors: list[int] = []
        self.clears: int = 0
        self.outgrown: bool = False
        self._moves: dict[tuple[frozenset[int], int], Step] = {}
        self._learnt = self._least = 0
        self._evict([_EMPTY])

    def _evict(self, lists: list[Places]) -> None:
        self.lists: list[Places] = lists
        self._ids = {places: i for i, places in enumerate(lists)}
        self._bytes = sum(map(_list_bytes, lists))
        self._heads = np.zeros((16, 4), np.int32)
        self._ways = np.zeros(64, np.int32)
        self._used = 1, 0  # rows of these: number 0 is the step `_NOTHING`
        self._known: dict[tuple[tuple[int, ...], int, int], int] = {}
        self._of = np.full((max(16, len(lists)), max(4, len(self._vectors))), _UNKNOWN, np.int32)

    def memory_usage(self) -> int:
        """Bytes held, estimated from the lists and the steps."""
        return self._bytes + self._of.nbytes + self._heads.nbytes + self._ways.nbytes

    def add_classes(self, vectors: list[int]) -> None:
        """Adds new symbol classes. `vectors` has all of them, old ones first."""
        self._vectors = list(vectors)
        if len(vectors) > self._of.shape[1]:
            self._grow(self._of.shape[0], 2 * len(vectors))

    def _grow(self, lists: int, classes: int) -> None:
        of = np.full((lists, classes), _UNKNOWN, np.int32)
        of[: self._of.shape[0], : self._of.shape[1]] = self._of
        self._of = of

    def tables(self) -> Steps:
        """The steps as arrays, which later ones are added to while there is room."""
        return Steps(self._of, self._heads, self._ways)

    def learn(self, number: int, symbol: int) -> int:
        """Computes the step of a list on a class; returns the number of places that it leads to. O(transitions)."""
        self._learnt += 1
        target, ways, accepts = self._step(self.lists[number], self._vectors[symbol])
        step = self._number(self.lists[number], target, ways, accepts)
        self._of[number, symbol] = step
        return len(target)

    def _number(self, before: Places, target: Places, ways: tuple[int, ...], accepts: int) -> int:
        if target == before and accepts < 0 and all(way == 2 * i + 2 for i, way in enumerate(ways)):
            return _NOTHING
        reached = self._id(target) if target else -1
        steps, first = self._used
        step = self._known.setdefault((ways, reached, accepts), steps)
        if step == steps:
            self._heads, self._ways = _fit(self._heads, steps + 1), _fit(self._ways, first + len(ways))
            self._heads[step] = reached, first, len(ways), accepts
            self._ways[first : first + len(ways)] = ways
            self._used = steps + 1, first + len(ways)
            self._bytes += 200 + 12 * len(ways)
        return step

    def _id(self, places: Places) -> int:
        number = self._ids.setdefault(places, len(self.lists))
        if number == len(self.lists):
            self.lists.append(places)
            self._bytes += _list_bytes(places)
            if number >= self._of.shape[0]:
                self._grow(2 * self._of.shape[0], self._of.shape[1])
        return number

    def _step(self, places: Places, vector: int) -> tuple[Places, tuple[int, ...], int]:
        """The list behind an event, the way to each of its places, and the way that is accepted, -1 for none."""
        marked: list[tuple[int, frozenset[int], bool]] = []
        passed: list[tuple[int, frozenset[int], bool]] = []
        for place, states in enumerate((*places, frozenset({INITIAL}))):
            first = 2 * place + 2 if place < len(places) else 0
            step = self._move(states, vector)
            both = [(first + 1, states, accepts) for _, states, accepts in step.marks]
            (passed if self._latest else both).append((first, step.skip, step.skip_accepts))
            marked += both
        accepted = -1
        seen: set[int] = set()
        found: list[tuple[frozenset[int], int]] = []
        for way, states, accepts in marked + passed:
            if accepts and accepted < 0:
                accepted = way
            rest = states - seen
            if rest:
                found.append((rest, way))
                seen |= rest
        found = self._in_form(found)
        return tuple(states for states, _ in found), tuple(way for _, way in found), accepted

    def _move(self, states: frozenset[int], vector: int) -> Step:
        step = self._moves.get((states, vector))
        if step is None:
            if len(self._moves) >= _PLACES:
                self._moves.clear()
            step = self._moves[states, vector] = self._stepper.step(states, vector)
        return step

    def _in_form(self, found: list[tuple[frozenset[int], int]]) -> list[tuple[frozenset[int], int]]:
        """Foata's normal form of a list, as a trace: each place in the first level behind those whose order to it
        matters, and a level in a fixed order. O(places * levels)."""
        levels: list[int] = []
        rows: list[list[tuple[int, tuple[frozenset[int], int]]]] = []
        for each in found:
            own, rivals = self._relation.masks(each[0])
            level = len(levels)
            while level and not levels[level - 1] & rivals:
                level -= 1
            if level == len(levels):
                levels.append(0)
                rows.append([])
            levels[level] |= own
            rows[level].append((own, each))
        return [each for row in rows for _, each in sorted(row)]

    @property
    def over_budget(self) -> bool:
        """True if it is time to `clear`."""
        return self._learnt > self._least and self.memory_usage() > self._budget

    def clear(self, live: Iterable[int], most: int) -> dict[int, int]:
        """Drops all lists but the `live` ones; returns their new numbers by their old ones. Raises `BudgetExceeded`
        (`live_runs`) for more than `most` of them."""
        kept = sorted(set(live) - {0})
        if len(kept) > most:
            raise BudgetExceeded("live_runs", most, len(kept), "runs")
        self._evict([_EMPTY, *(self.lists[i] for i in kept)])
        self.clears += 1
        self._learnt, self._least = 0, 4 * len(self.lists) + _LEAST
        self.outgrown |= self.memory_usage() > self._budget
        return {old: new for new, old in enumerate([0, *kept])}

    def restore(self, lists: Sequence[Places]) -> None:
        """Take the lists of another evaluation of the same automaton, under their numbers there. Raises `OptionError`
        for a value that is no list, or that occurs twice."""
        ours = range(1, self._stepper.states)
        for places in lists:
            sets = isinstance(places, tuple) and all(type(some) is frozenset and some for some in places)
            expect(sets and all(type(q) is int and q in ours for some in places for q in some), "lists of states")
            expect(len(frozenset().union(*places)) == sum(map(len, places)), "each state of a list in one place")
        expect(len(set(lists)) == len(lists) and (not lists or lists[0] == _EMPTY), "each list once")
        self._evict(list(lists) or [_EMPTY])


def _fit(array: np.ndarray, rows: int) -> np.ndarray:
    """The array, if it has so many rows, else a longer one that begins with it, at least twice as long."""
    extra = max(rows - len(array), len(array))
    return array if rows <= len(array) else np.concatenate([array, np.zeros((extra, *array.shape[1:]), array.dtype)])


def _list_bytes(places: Places) -> int:
    return 200 + sum(sys.getsizeof(states) for states in places)
