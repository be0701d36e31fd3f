"""Numbers for keys that are integers, in arrays."""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq.core.jit import interprets

_FIRST: Final = 1_024
_MOST: Final = (1 << 31) - 2
_ALL: Final = np.zeros(0, np.bool_)


class KeyTable:
    """A number from 0 for each key, an int64, and a mark for each number that was seen since marks were removed.

    PERF: a hash table of a kernel. Its slots have the numbers alone, and the keys lie by their numbers: 16 to 25 bytes
    a key, where a dict has 110 with the ints that it refers to.
    """

    def __init__(self, room: int = _FIRST) -> None:
        from spaseq.core.engine.kernels import keys as kernels

        self._keys = np.zeros(room, np.int64)
        self._slots = np.zeros(_slots_for(room), np.int32)
        self._free = np.zeros(0, np.int32)
        self._seen = np.zeros(room, np.bool_)
        self._st = np.zeros(kernels.STATES, np.int64)

    @staticmethod
    def applies() -> bool:
        """True once kernels are compiled: Python's dict is faster than an interpreted table."""
        from spaseq.core.engine.kernels import keys as kernels

        return not interprets(kernels.number_keys)

    @staticmethod
    def holding(keys: np.ndarray, numbers: np.ndarray, seen: np.ndarray) -> KeyTable | None:
        """A table of different `keys`, int64 (n,), that have these different `numbers`, int64 (n,), of which `seen`,
        bool (n,), are marked. None if too many keys meet in one slot."""
        from spaseq.core.engine.kernels import keys as kernels

        given = 1 + int(numbers.max(initial=-1))
        table = KeyTable(max(_FIRST, given))
        table._keys[numbers] = keys
        table._seen[numbers] = seen
        table._st[kernels.GIVEN] = given
        return table if given < _MOST and table._hold(numbers.astype(np.int32)) else None

    def __len__(self) -> int:
        from spaseq.core.engine.kernels import keys as kernels

        return int(self._st[kernels.GIVEN] - self._st[kernels.FREE])

    @property
    def numbers(self) -> np.ndarray:
        """The numbers that keys have: int32 (n,), in no order."""
        found: np.ndarray = self._slots[self._slots > 0] - np.int32(1)
        return found

    def keys(self, numbers: np.ndarray) -> np.ndarray:
        """The keys of these numbers: int64 (n,)."""
        found: np.ndarray = self._keys[numbers]
        return found

    def seen(self, numbers: np.ndarray) -> np.ndarray:
        """Which of these numbers are marked: bool (n,)."""
        found: np.ndarray = self._seen[numbers]
        return found

    def see(self, numbers: np.ndarray | int) -> None:
        """Mark these numbers."""
        self._seen[numbers] = True

    def number(self, values: np.ndarray, known: np.ndarray, numbers: np.ndarray) -> int:
        """Write the number of each key to `numbers`, int64 (n,), and mark it; -1 where `known` (bool (n,), or empty if
        all are) is false. Keys that have none get one, the smallest that are free. O(n) expected.

        Returns how many rows it has done: fewer than all if keys meet in one slot, or if there are too many.
        """
        from spaseq.core.engine.kernels import keys as kernels

        st = self._st
        st[kernels.ROW] = st[kernels.PROBES] = 0
        # Copies, as kernels are compiled anew for arrays that are read-only.
        values, known = np.array(values, np.int64), np.array(known, np.bool_)
        while True:
            kernels.number_keys(values, known, numbers, self._keys, self._slots, self._free, self._seen, st)
            row = int(st[kernels.ROW])
            if row == len(values) or st[kernels.PROBES] > kernels.PATIENCE * (row + 64) or not self._grow():
                return row

    def forget(self) -> bool:
        """Forget the keys without a mark. False, and nothing is forgotten, if the others meet in one slot."""
        numbers = self.numbers
        return self._hold(numbers[self._seen[numbers]])

    def remove_marks(self) -> None:
        """No number is marked."""
        self._seen[:] = False

    def _grow(self) -> bool:
        """Room for more keys, by a quarter, or for more slots; False if there are too many for int32."""
        from spaseq.core.engine.kernels import keys as kernels

        st, old = self._st, len(self._keys)
        if st[kernels.FREE] or st[kernels.GIVEN] < old:
            return self._place(self.numbers, 2 * len(self._slots))
        size = min(old + old // 4 + _FIRST, _MOST)
        keys, seen = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        keys[:old], seen[:old] = self._keys, self._seen
        self._keys, self._seen = keys, seen
        return size > old

    def _hold(self, numbers: np.ndarray) -> bool:
        """These numbers have keys, and the others that were given are free. False if keys meet in one slot."""
        from spaseq.core.engine.kernels import keys as kernels

        if not self._place(numbers, _slots_for(len(numbers))):
            return False
        unused = np.ones(int(self._st[kernels.GIVEN]), np.bool_)
        unused[numbers] = False
        self._free = np.flatnonzero(unused)[::-1].astype(np.int32)
        self._st[kernels.FREE] = len(self._free)
        return True

    def _place(self, numbers: np.ndarray, size: int) -> bool:
        """Have a table of `size` slots with these numbers. False, and nothing has changed, if keys meet in one slot."""
        from spaseq.core.engine.kernels import keys as kernels

        slots = np.zeros(size, np.int32)
        if not kernels.place_keys(numbers, self._keys, slots):
            return False
        self._slots = slots
        return True


def _slots_for(keys: int) -> int:
    """The slots of a table for some keys, and some more: a power of two, at least 3/2 of them."""
    return 1 << (3 * keys // 2 + 15).bit_length()


def code(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A code for each value of a column: int64; and the different values, of which a code is the place. `values`: of 8
    bytes or truths, 0.0 and -0.0 being equal, NaN having any codes. Codes are in order of the values. O(n) expected,
    and sorts different ones.

    PERF: a hash table of a kernel, unless kernels are interpreted: then numpy sorts. Measured in batches of 262,144
    integers beside `np.unique` (2026-11-27, a busy machine). Of 20 values one took 3 ns and 50, of 3,000 8 and 75. Of
    100,000 it took 41 and 88, without the sorting of the different ones. Rejected: codes in the order in which values
    come. With 100,000 keys the dict of their numbers then took 200 ns an event more, as its entries lay apart.
    """
    if KeyTable.applies():
        bits = (values + 0.0).view(np.int64) if values.dtype.kind == "f" else values.astype(np.int64)
        table, codes = KeyTable(min(_FIRST, len(bits))), np.empty(len(bits), np.int64)
        if table.number(bits, _ALL, codes) == len(bits):
            bits = table.keys(np.arange(len(table)))
            found = bits.view(np.float64) if values.dtype.kind == "f" else bits.astype(values.dtype)
            order = np.argsort(found)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            return rank[codes], found[order]
    found, codes = np.unique(values, return_inverse=True)
    return codes, found
