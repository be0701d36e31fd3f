"""Numbers for the lists of rounds that runs hold.

A round of a Kleene+ is a mapping: the codes of the terms that it binds the collected variables to. A list of rounds is
the list before it and one round more, so that runs share common beginnings, and equal lists have one number. The kernel
makes them (`spaseq.core.engine.kernels.registers.operations.append`); rounds are numbered here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from spaseq.core.engine.kernels.registers import layout as k
from spaseq.core.engine.program.register_ops import NOTHING
from spaseq.core.integers import apart, different
from spaseq.core.snapshot import array, expect
from spaseq.gpm import Mapping
from spaseq.language.guards.terms import NumberedTerms

_LISTS: Final = 1 << 16
_ROOM: Final = 1 << 10
_STEPS: Final = 8  # of a search in a table of lists
_Round = tuple[int, ...]
"""The codes of the terms that a round binds the variables to, NOTHING if it binds none."""


class RoundLists:
    """`spaseq.core.engine.program.register_ops.Chains` over numbered rounds, of terms numbered by `terms`.

    `names`: the variables that rounds may bind, in order. `array`: see there. Numbers of rounds and of lists ascend,
    and stand for nothing else once they are forgotten (`keep`).
    """

    def __init__(self, terms: NumberedTerms, names: Sequence[str]) -> None:
        self._terms = terms
        self.names: tuple[str, ...] = tuple(names)
        self.array: np.ndarray = np.zeros((_ROOM, 4), np.int64)
        self._rounds: dict[_Round, int] = {}
        self._columns = np.zeros((_ROOM, 1 + len(self.names)), np.int64)  # numbers and codes of the first rounds
        self._entered = 0  # how many these are
        self._fresh: list[_Round] = []  # the others, whose numbers are the last ones
        self._next = 0
        self._mappings: dict[int, Mapping] = {}
        self._full = _LISTS

    @property
    def _count(self) -> int:
        return int(self.array[0, k.CHAINS_COUNT])

    # -- rounds

    def round_of(self, names: Sequence[str], codes: Sequence[int]) -> int:
        """The number of the round that binds `names`, in order, to the terms of `codes`, NOTHING for none."""
        own = dict(zip(names, codes, strict=True))
        return self._number(tuple([own.get(name, NOTHING) for name in self.names]))

    def _number(self, taken: _Round) -> int:
        number = self._rounds.get(taken)
        if number is None:
            number = self._rounds[taken] = self._next
            self._fresh.append(taken)
            self._next += 1
        return number

    def rounds_of(self, names: Sequence[str], codes: np.ndarray) -> np.ndarray:
        """`round_of` each row of `codes`, int64 (n, names): int64 (n,)."""
        whole = np.full((len(codes), len(self.names)), NOTHING, np.int64)
        whole[:, [self.names.index(name) for name in names]] = codes
        if whole.shape[1] == 1:
            used, places = different(whole[:, 0])
        else:
            used, places = np.unique(whole, axis=0, return_inverse=True)
        rows = zip(*np.atleast_2d(used.T).tolist(), strict=True)
        return np.array([*map(self._number, rows)], np.int64)[places.reshape(-1)]

    def mapping(self, number: int) -> Mapping:
        """The mapping of a round; made once."""
        found = self._mappings.get(number)
        if found is None:
            term, codes = self._terms.term, self._codes(np.array([number]))[0].tolist()
            own = zip(self.names, codes, strict=True)
            found = self._mappings[number] = tuple((name, term(code)) for name, code in own if code != NOTHING)
        return found

    def _codes(self, rounds: np.ndarray) -> np.ndarray:
        """The codes of the terms that some rounds bind: int64 (n, names)."""
        count, fresh = len(self._rounds), self._fresh
        if fresh:
            if count > len(self._columns):
                more = np.zeros((2 * count - len(self._columns), self._columns.shape[1]), np.int64)
                self._columns = np.concatenate([self._columns, more])
            own = self._columns[self._entered : count]
            own[:, 0] = np.arange(self._next - len(fresh), self._next)
            own[:, 1:] = np.array(fresh, np.int64).reshape(len(fresh), len(self.names))
            self._entered, self._fresh = count, []
        return self._columns[np.searchsorted(self._columns[:count, 0], rounds), 1:]

    # -- lists

    def cells(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of rounds of some lists, int64 (n,), and the codes of the terms that they bind: int64 (rounds,
        names). The rounds come from the first of the first list on; NOTHING for none."""
        lengths, rounds = self._unroll(numbers)
        return lengths, self._codes(rounds)

    def _unroll(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lengths of lists, and the numbers of their rounds: int64."""
        from spaseq.core.engine.kernels.registers.operations import chain_elements, chain_lengths
        from spaseq.core.jit import attempt_rows

        lengths = np.zeros(len(numbers), np.int64)
        attempt_rows(chain_lengths, _STEPS * len(numbers), self.array, numbers, lengths)
        ends = np.cumsum(lengths)
        rounds = np.zeros(int(lengths.sum()), np.int64)
        attempt_rows(chain_elements, _STEPS * len(rounds), self.array, numbers, ends, rounds)
        return lengths, rounds

    def mappings(self, number: int) -> tuple[Mapping, ...]:
        """The rounds of a list, from the first to the last. O(length)."""
        return tuple(map(self.mapping, self._unroll(np.array([number]))[1].tolist()))

    def grow(self) -> None:
        """Make room for as many again."""
        self._make_room(self.array[1 : self._count + 1, : k.CHAIN_SLOT], 2 * len(self.array))

    def _make_room(self, rows: np.ndarray, size: int) -> None:
        """An array of `size` rows, a power of two, with these lists: int64 (n, CHAIN_SLOT)."""
        from spaseq.core.engine.kernels.registers.operations import index_chains
        from spaseq.core.jit import attempt_rows

        fresh = np.zeros((size, 4), np.int64)
        fresh[0, k.CHAINS_COUNT] = len(rows)
        fresh[0, k.CHAINS_NEXT] = self.array[0, k.CHAINS_NEXT]
        fresh[1 : len(rows) + 1, : k.CHAIN_SLOT] = rows
        attempt_rows(index_chains, len(rows), fresh)
        self.array = fresh

    @property
    def full(self) -> bool:
        """True if it is time to `keep` only the lists in use."""
        return self._count > self._full or len(self._rounds) > self._full

    def keep(self, numbers: np.ndarray) -> None:
        """Forget all lists but those of these `numbers`, int64 and NOTHING for none, and their parts."""
        rows = self.array[1 : self._count + 1, : k.CHAIN_SLOT]
        alive = np.zeros(len(rows), bool)
        todo = self._places(rows, apart(numbers))
        while len(todo):
            alive[todo] = True
            todo = self._places(rows, apart(rows[todo, k.CHAIN_PARENT]))
            todo = todo[~alive[todo]]
        rows = rows[alive]
        used = set(apart(rows[:, k.CHAIN_LAST]).tolist())
        self._set_rounds({taken: number for taken, number in self._rounds.items() if number in used})
        self._make_room(rows, _size(len(rows)))

    @staticmethod
    def _places(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The places in `rows` of the lists of these numbers, without those that are forgotten already."""
        known = rows[:, k.CHAIN_NUMBER]
        places = np.searchsorted(known, numbers)
        places = places[places < len(known)]
        return places[np.isin(known[places], numbers)]

    def _set_rounds(self, rounds: dict[_Round, int]) -> None:
        self._rounds, self._mappings = rounds, {}
        self._columns = np.array([(number, *taken) for taken, number in rounds.items()], np.int64)
        self._columns = self._columns.reshape(len(rounds), 1 + len(self.names))
        self._entered, self._fresh = len(rounds), []
        self._full = 2 * max(len(rounds), self._count) + _LISTS

    def terms_used(self) -> set[int]:
        """The numbers of the terms that rounds bind."""
        return {code for taken in self._rounds for code in taken} - {NOTHING}

    # -- snapshots

    def snapshot(self) -> Any:
        """The lists and rounds, as plain values."""
        columns = self.array[1 : self._count + 1, : k.CHAIN_SLOT].T
        rounds = [
            (number, [[name, code] for name, code in zip(self.names, taken, strict=True) if code != NOTHING])
            for taken, number in self._rounds.items()
        ]
        return int(self.array[0, k.CHAINS_NEXT]), tuple(c.copy() for c in columns), self._next, rounds

    def restore(self, state: Any, terms: Collection[int], held: np.ndarray) -> None:
        """The opposite of `snapshot`. `terms`: the numbers that stand for a term; `held`: those of lists in use, int64.
        `OptionError` if it is no snapshot."""
        following, columns, self._next, rounds = state
        expect(len(columns) == k.CHAIN_SLOT, "the columns of lists of rounds")
        count = len(columns[0])
        rows = np.stack([array(column, "lists of rounds", rows=count) for column in columns], axis=1)
        pairs = [pair for _, own in rounds for pair in own]
        expect(all(name in self.names and type(code) is int for name, code in pairs), "rounds")
        expect({code for _, code in pairs} <= {*terms}, "terms of rounds")
        known = [number for number, _ in rounds]
        expect(all(type(n) is int and 0 <= n < self._next < 1 << 60 for n in known), "a number for each round")
        expect(all(a < b for a, b in pairwise(known)), "rounds in order")
        taken = {tuple([dict(own).get(name, NOTHING) for name in self.names]): number for number, own in rounds}
        expect(len(taken) == len(rounds), "each round once")
        numbers = rows[:, k.CHAIN_NUMBER]
        ascending = bool((np.diff(numbers) > 0).all()) and (not count or numbers[0] >= 0)
        expect(type(following) is int and ascending and following < 1 << 60, "lists of rounds in order")
        expect(not count or int(numbers[-1]) < following, "lists of rounds in order")
        parents = rows[:, k.CHAIN_PARENT]
        expect(bool((parents < numbers).all()) and _are_of(parents, numbers), "lists of rounds that go on others")
        expect(set(rows[:, k.CHAIN_LAST].tolist()) <= {*known}, "a round at the end of each list")
        expect(len(np.unique(rows[:, : k.CHAIN_NUMBER], axis=0)) == count, "each list of rounds once")
        expect(_are_of(held, numbers), "a list of rounds for each number of one")
        self.array[0, k.CHAINS_NEXT] = following
        self.array[0, k.CHAINS_COUNT] = 0
        self._set_rounds(taken)
        self._make_room(rows, _size(count))
        self._full = max(self._full, 2 * count + _LISTS)


def _size(count: int) -> int:
    """Rows of an array with room for `count` lists and as many again: a power of two."""
    return max(_ROOM, 1 << (4 * count + 4).bit_length())


def _are_of(numbers: np.ndarray, known: np.ndarray) -> bool:
    """True if all but NOTHING are among those known."""
    return bool(np.isin(numbers[numbers != NOTHING], known).all())
