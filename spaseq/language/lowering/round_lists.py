"""Numbers for the lists of rounds that runs hold.

A round of a Kleene+ is a mapping: the codes of the terms that it binds the collected variables to. A list of rounds is
the list before it and one round more, so that what runs have in common is held once, and equal lists have one number.
The kernel makes them (`spaseq.engine.kernels.registers.operations.append`); rounds are numbered here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from spaseq.engine.kernels.registers import layout as k
from spaseq.engine.program.register_ops import NOTHING
from spaseq.gpm import Mapping
from spaseq.language.lowering.terms import NumberedTerms
from spaseq.snapshot import array, expect

__all__ = ["RoundLists"]

_LISTS: Final = 1 << 16
_ROOM: Final = 1 << 10
_Round = tuple[tuple[str, int], ...]
"""The variables that a round binds, in order, each with the code of its term."""


class RoundLists:
    """`spaseq.engine.program.register_ops.Chains` over numbered rounds, of terms numbered by `terms`.

    `array`: see there. Numbers ascend, and stand for nothing else once they are forgotten (`keep`).
    """

    def __init__(self, terms: NumberedTerms) -> None:
        self._terms = terms
        self.array: np.ndarray = np.zeros((_ROOM, 4), np.int64)
        self._rounds: dict[_Round, int] = {}
        self._taken: dict[int, _Round] = {}
        self._next = 0
        self._mappings: dict[int, Mapping] = {}
        self._lists: dict[int, tuple[int, int]] = {}
        self._listed = 0
        self._full = _LISTS

    @property
    def _count(self) -> int:
        return int(self.array[0, k.CHAINS_COUNT])

    # -- rounds

    def round_of(self, names: Sequence[str], codes: Sequence[int]) -> int:
        """The number of the round that binds `names`, in order, to the terms of `codes`, NOTHING for none."""
        taken = tuple((name, code) for name, code in zip(names, codes, strict=True) if code != NOTHING)
        number = self._rounds.get(taken)
        if number is None:
            number = self._rounds[taken] = self._next
            self._taken[number] = taken
            self._next += 1
        return number

    def rounds_of(self, names: Sequence[str], codes: np.ndarray) -> np.ndarray:
        """`round_of` each row of `codes`, int64 (n, names): int64 (n,)."""
        if codes.shape[1] == 1:
            used, places = np.unique(codes[:, 0], return_inverse=True)
            numbers = [self.round_of(names, (code,)) for code in used.tolist()]
        else:
            used, places = np.unique(codes, axis=0, return_inverse=True)
            numbers = [self.round_of(names, row) for row in used.tolist()]
        return np.array(numbers, np.int64)[places.reshape(-1)]

    def mapping(self, number: int) -> Mapping:
        """The mapping of a round; made once."""
        found = self._mappings.get(number)
        if found is None:
            term = self._terms.term
            found = self._mappings[number] = tuple((name, term(code)) for name, code in self._taken[number])
        return found

    # -- lists

    def mappings(self, number: int) -> tuple[Mapping, ...]:
        """The rounds of a list, from the first to the last. O(length)."""
        if self._listed < self._count:
            fresh = self.array[self._listed + 1 : self._count + 1].tolist()
            self._lists.update((row[k.CHAIN_NUMBER], (row[k.CHAIN_PARENT], row[k.CHAIN_LAST])) for row in fresh)
            self._listed = self._count
        found = []
        while number != NOTHING:
            number, last = self._lists[number]
            found.append(self.mapping(last))
        return tuple(found[::-1])

    def grow(self) -> None:
        """Make room for as many again."""
        self._make_room(self.array[1 : self._count + 1, : k.CHAIN_SLOT], 2 * len(self.array))

    def _make_room(self, rows: np.ndarray, size: int) -> None:
        """An array of `size` rows, a power of two, with these lists: int64 (n, CHAIN_SLOT)."""
        from spaseq.engine.kernels.registers.operations import index_chains
        from spaseq.jit import attempt_rows

        fresh = np.zeros((size, 4), np.int64)
        fresh[0, k.CHAINS_COUNT] = len(rows)
        fresh[0, k.CHAINS_NEXT] = self.array[0, k.CHAINS_NEXT]
        fresh[1 : len(rows) + 1, : k.CHAIN_SLOT] = rows
        attempt_rows(index_chains, len(rows), fresh)
        self.array = fresh

    @property
    def full(self) -> bool:
        """Whether it is time to `keep` only what is in use."""
        return self._count > self._full or len(self._taken) > self._full

    def keep(self, numbers: np.ndarray) -> None:
        """Forget all lists but those of these `numbers`, int64 and NOTHING for none, and what they are made of."""
        rows = self.array[1 : self._count + 1, : k.CHAIN_SLOT]
        alive = np.zeros(len(rows), bool)
        todo = self._places(rows, np.unique(numbers))
        while len(todo):
            alive[todo] = True
            todo = self._places(rows, np.unique(rows[todo, k.CHAIN_PARENT]))
            todo = todo[~alive[todo]]
        rows = rows[alive]
        used = set(np.unique(rows[:, k.CHAIN_LAST]).tolist())
        self._set_rounds({number: taken for number, taken in self._taken.items() if number in used})
        self._make_room(rows, _size(len(rows)))

    @staticmethod
    def _places(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Where in `rows` the lists of these numbers are; of those that are forgotten already, nothing."""
        known = rows[:, k.CHAIN_NUMBER]
        places = np.searchsorted(known, numbers)
        places = places[places < len(known)]
        return places[np.isin(known[places], numbers)]

    def _set_rounds(self, taken: dict[int, _Round]) -> None:
        self._taken = taken
        self._rounds = {one: number for number, one in taken.items()}
        self._mappings, self._lists, self._listed = {}, {}, 0
        self._full = 2 * max(len(taken), self._count) + _LISTS

    def terms_used(self) -> set[int]:
        """The numbers of the terms that rounds bind."""
        return {code for taken in self._taken.values() for _, code in taken}

    # -- snapshots

    def snapshot(self) -> Any:
        """The lists and rounds, as plain values."""
        columns = self.array[1 : self._count + 1, : k.CHAIN_SLOT].T
        rounds = [(number, [list(pair) for pair in taken]) for number, taken in self._taken.items()]
        return int(self.array[0, k.CHAINS_NEXT]), tuple(c.copy() for c in columns), self._next, rounds

    def restore(self, state: Any, terms: Collection[int], held: np.ndarray) -> None:
        """The opposite of `snapshot`. `terms`: the numbers that stand for a term; `held`: those of lists in use, int64.
        `OptionError` for what is no snapshot."""
        following, columns, self._next, rounds = state
        expect(len(columns) == k.CHAIN_SLOT, "the columns of lists of rounds")
        count = len(columns[0])
        rows = np.stack([array(column, "lists of rounds", rows=count) for column in columns], axis=1)
        taken = {number: tuple((name, code) for name, code in own) for number, own in rounds}
        pairs = [pair for own in taken.values() for pair in own]
        expect(all(type(name) is str and type(code) is int for name, code in pairs), "rounds")
        expect({code for _, code in pairs} <= {*terms}, "terms of rounds")
        expect(all(type(n) is int and 0 <= n < self._next < 1 << 60 for n in taken), "a number for each round")
        expect(len(set(taken.values())) == len(taken) == len(rounds), "each round once")
        numbers = rows[:, k.CHAIN_NUMBER]
        ascending = bool((np.diff(numbers) > 0).all()) and (not count or numbers[0] >= 0)
        expect(type(following) is int and ascending and following < 1 << 60, "lists of rounds in order")
        expect(not count or int(numbers[-1]) < following, "lists of rounds in order")
        parents = rows[:, k.CHAIN_PARENT]
        expect(bool((parents < numbers).all()) and _are_of(parents, numbers), "lists of rounds that go on others")
        expect(set(rows[:, k.CHAIN_LAST].tolist()) <= taken.keys(), "a round at the end of each list")
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
    """Whether all but NOTHING are of those known."""
    return bool(np.isin(numbers[numbers != NOTHING], known).all())
