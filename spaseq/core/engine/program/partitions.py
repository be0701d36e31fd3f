"""Numbers for the partitions of one evaluation. The number of a partition is reused once no run can be in it any more.

A key that is silent for longer than `Settings.forget_keys_after` begins anew. Its events behind the pause have another
number, so the engine takes it for a new key, and evaluators need no rule for pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final

import numpy as np

from spaseq.core.engine.program.window import Window
from spaseq.core.integers import in_order
from spaseq.core.jit import interprets
from spaseq.core.snapshot import array, expect

_NONE = object()
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_FIRST: Final = 1_024
_MOST_NUMBERS: Final = (1 << 31) - 2
_ALL: Final = np.zeros(0, np.bool_)
_ROWS: Final = 1 << 13
"""So many keys are copied at a time, as kernels are compiled anew for arrays that are read-only. PERF: a copy of 65,536
is on pages that are new to the process, and took twice as long as their numbers."""


class Partitions:
    """A number from 0 for each key of PARTITION BY, as small as can be.

    Runs of a partition whose last event has left the window are dead, and so is the start that CONSUME BY PARTITION
    holds against them. For the engine such a partition is like one that never was, so another key may have its number.

    Keys that were seen since the last turn are marked. A turn comes when the window no longer reaches back to the turn
    before. At a turn, keys without a mark are forgotten, and the marks are cleared. So a key is kept for one window
    behind its last event at least. A turn waits for enough new keys to pay: forgetting costs O(1) for each of them, and
    the keys held are some three times those of two windows at most.

    Windows in EVENTS are a partition's own, and a query may have no window. Then no key is ever forgotten, except after
    the pause `forget_after`, seconds of events' times. `lives` and `number_at` see pauses; `reach` looks for keys that
    may never come again. Their numbers wait until the runs of the partition are gone (`make_room`).

    `forgotten` counts keys; one that returns and pauses again counts once more. `lost` counts the runs that went with
    them. No event before the position `oldest` is of a key that is held.

    Keys that are integers are in a `KeyTable`, as long as batches alone bring them (`of_integers`). Other keys, those
    of single events, and those that pause are in a dict. Once a key was given that is not for the table, the keys of
    the table move to the dict, and stay there.
    """

    worth: ClassVar[int] = 1_000
    """So many new keys make a turn worth its while."""

    def __init__(self, window: Window, forget_after: float | None = None) -> None:
        self._window = window
        self._pause = None if forget_after is None else int(min(round(min(forget_after, 1e10) * 1e9), _MOST))
        self.oldest: int = 0
        self.forgotten: int = 0
        self.lost: int = 0
        self._forgets = window.is_bounded and not window.per_partition
        self._numbers: dict[Any, int] = {}
        self._keys: list[Any] = []
        self._free: list[int] = []
        self._seen = np.zeros(1_024, bool)
        self._table: KeyTable | None = None
        self._tables = self._pause is None  # keys may be in a table
        self._turned: int | float | None = None
        self._new = 0
        self._silent: list[int] = []
        self._aside: set[int] = set()
        self._last = np.zeros(0 if self._pause is None else len(self._seen), np.int64)
        self._born = self._last.copy()
        self._since = 0

    def __len__(self) -> int:
        """The number of keys held."""
        return len(self._numbers) if self._table is None else len(self._table)

    def number(self, key: Hashable) -> int:
        """The number of a key that an event has. O(1)."""
        number = self._numbers.get(key)
        if number is None:
            number = self._give_number(key)
        self._seen[number] = True
        return number

    def of(self, keys: list[Any]) -> list[int]:
        """The number of each key, as `number` gives it."""
        known = self._numbers.get
        numbers = [self._give_number(key) if (number := known(key)) is None else number for key in keys]
        self._seen[numbers] = True
        return numbers

    @property
    def takes_integers(self) -> bool:
        """True if `of_integers` has a table, or can have one: all keys so far were whole numbers, and none pauses."""
        if self._table is None and self._tables and KeyTable.applies():
            self._open_table()
        return self._table is not None

    def of_integers(self, keys: np.ndarray, known: np.ndarray, numbers: np.ndarray) -> None:
        """Write the number of each key, as `number` gives it, to `numbers`: int64 (n,) each; -1 where `known` (bool
        (n,), or empty if all are) is false. For keys that `takes_integers`."""
        done = 0
        if self._table is not None:
            held = len(self._table)
            done = self._table.number(keys, known, numbers)
            self._new += len(self._table) - held
            if done < len(keys):
                self._close_table()
        if done < len(keys):
            rows = np.arange(done, len(keys))
            rows = rows[known[rows]] if len(known) else rows
            numbers[done:] = -1
            numbers[rows] = self.of(keys[rows].tolist())

    @property
    def pauses(self) -> bool:
        """True if keys are forgotten after a pause."""
        return self._pause is not None

    def number_at(self, key: Hashable, position: int, time: int) -> int:
        """The number of the key of an event at this position and time (ns), if keys `pause`. O(1)."""
        number = self.number(key)
        assert self._pause is not None
        if self._born[number] < 0:
            self._born[number] = position
        elif self._last[number] < max(_LEAST, time - self._pause):
            number = self._again(number, position)
        self._last[number] = time
        return number

    def lives(self, numbers: np.ndarray, positions: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The numbers of consecutive events with regard to pauses: int64 (n,). `numbers`: those of their keys, -1 for
        no key. They stay the same if keys do not `pause`. O(n log n)."""
        if self._pause is None or not len(numbers):
            return numbers
        order = in_order(numbers)
        own, when = numbers[order], times[order]
        first = np.append(True, own[1:] != own[:-1])
        fresh = first & (own >= 0) & (self._born[own] < 0)
        self._born[own[fresh]] = positions[order[fresh]]
        before = np.append(_LEAST, when[:-1])
        before[first] = self._last[own[first]]
        before[fresh] = _MOST
        late = before < np.maximum(when, _LEAST + self._pause) - self._pause
        ends = np.flatnonzero(np.append(own[1:] != own[:-1], True))
        for row in np.flatnonzero(late & (own >= 0)).tolist():
            end = int(ends[np.searchsorted(ends, row)]) + 1
            own[row:end] = self._again(int(own[row]), int(positions[order[row]]))
        known = own[ends] >= 0
        self._last[own[ends[known]]] = when[ends[known]]
        found = np.empty_like(numbers)
        found[order] = own
        return found

    def born(self, numbers: np.ndarray) -> np.ndarray:
        """The position of the first event since the pause of the keys of these numbers, if keys `pause`: int64 (n,).
        Beyond all positions for numbers that are free."""
        return self._born[numbers]

    def since(self, key: Hashable) -> int:
        """The position of the first event of a key since its last pause; beyond all positions if it is forgotten."""
        number = self._numbers.get(key)
        return _MOST if number is None else int(self._born[number])

    def see(self, numbers: np.ndarray | int) -> None:
        """Events have the keys of these numbers, which were given since keys were last forgotten."""
        if self._table is None:
            self._seen[numbers] = True
        else:
            self._table.see(numbers)

    def reach(self, place: int | float, time: int) -> bool:
        """Note that no event will come before `place`, in the unit of the window, nor before `time` (ns). To be called
        between events.

        Returns True if keys may have been forgotten. Then a number that the caller keeps for a key must not be used
        again.
        """
        paused = self._since >= max(self.worth, len(self._numbers) // 4) and self.hush(time)
        return self._turn(place) or paused

    def hush(self, time: int) -> bool:
        """Forget the keys that are silent at `time` for too long; True if there are any. O(keys)."""
        if self._pause is None or not self._numbers:
            return False
        self._since = 0
        silent = self._last[: len(self._keys)] < max(_LEAST, time - self._pause)
        numbers = [n for n in np.flatnonzero(silent).tolist() if self._keys[n] is not _NONE]
        for number in numbers:
            self._forget(number)
        return bool(numbers)

    def make_room(self, empty: Callable[[np.ndarray], int | None]) -> None:
        """Have the partitions of forgotten keys emptied, so that their numbers can be reused. To be called between
        events.

        `empty` ends the runs of some partitions and returns their number, or None if it cannot: such numbers stay
        unused until the window has passed.
        """
        if not self._silent:
            return
        numbers, self._silent = np.array(self._silent, np.int64), []
        lost = empty(numbers)
        if lost is None:
            self._aside.update(numbers.tolist())
            return
        self.lost += lost
        self._born[numbers] = _MOST
        self._free += numbers.tolist()
        least = int(self._born[: len(self._keys)].min(initial=_MOST))
        self.oldest = self.oldest if least == _MOST else least

    def _turn(self, place: int | float) -> bool:
        """Forget the keys whose window has passed, when that is worth its while."""
        if not self._forgets or self._new < max(self.worth, len(self) // 4):
            return False
        if self._turned is not None and self._window.open_from(place) <= self._turned:
            return False
        if self._turned is not None:
            if self._table is not None and not self._table.forget():
                self._close_table()
            if self._table is None:
                self._forget_unseen()
        self._seen[:] = False
        if self._table is not None:
            self._table.remove_marks()
        self._turned, self._new = place, 0
        return True

    def _forget_unseen(self) -> None:
        """Forget the keys of the dict that have no mark."""
        for number in np.flatnonzero(~self._seen[: len(self._keys)]).tolist():
            if self._keys[number] is not _NONE:
                del self._numbers[self._keys[number]]
                self._keys[number] = _NONE
                self._free.append(number)
            elif number in self._aside:
                self._aside.remove(number)
                self._free.append(number)

    def _forget(self, number: int) -> None:
        """The key of a number is forgotten, but the engine has its runs yet."""
        del self._numbers[self._keys[number]]
        self._keys[number] = _NONE
        self._silent.append(number)
        self.forgotten += 1

    def _again(self, number: int, position: int) -> int:
        """The key of a number comes again at `position` after a pause that was too long; its new number."""
        key = self._keys[number]
        self._forget(number)
        number = self._give_number(key)
        self._seen[number] = True
        self._born[number] = position
        return number

    def _give_number(self, key: Hashable) -> int:
        """The number of a key that is not in the dict, and so has none, or is in the table."""
        if self._table is not None:
            self._close_table()
            if key in self._numbers:
                return self._numbers[key]
        self._new += 1
        self._since += 1
        if self._free:
            number = self._free.pop()
            self._keys[number] = key
        else:
            number = len(self._keys)
            self._keys.append(key)
            if number == len(self._seen):
                self._seen = np.concatenate([self._seen, np.zeros(number, bool)])
                if self._pause is not None:
                    self._last, self._born = (np.concatenate([a, np.zeros(number, np.int64)])
                                              for a in (self._last, self._born))  # fmt: skip
        if self._pause is not None:
            self._born[number], self._last[number] = -1, _MOST
        self._numbers[key] = number
        return number

    def _open_table(self) -> None:
        """Move the keys of the dict to a table, if they are integers or equal to some. O(keys)."""
        self._tables = all(
            type(key) in (int, float) and _LEAST <= key <= _MOST and key == int(key) for key in self._numbers
        )
        if self._tables:
            keys = np.fromiter(map(int, self._numbers), np.int64, len(self._numbers))
            numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
            self._table = KeyTable.holding(keys, numbers, self._seen[numbers])
            self._tables = self._table is not None
        if self._table is not None:
            self._numbers.clear()
            self._keys, self._free, self._seen = [], [], self._seen[:0]

    def _close_table(self) -> None:
        """Move the keys of the table to the dict. O(keys)."""
        table, self._table, self._tables = self._table, None, False
        assert table is not None
        numbers = np.sort(table.numbers)
        self._numbers.update(zip(table.keys(numbers).tolist(), numbers.tolist(), strict=True))
        self._place_keys(1 + int(numbers.max(initial=-1)))
        self._seen[numbers] = table.marks(numbers)

    def _place_keys(self, given: int) -> None:
        """The keys of the dict by their numbers, which are below `given`; the others are free, and none is seen."""
        self._keys = [_NONE] * given
        self._seen = np.zeros(given + 1_024, bool)
        for key, number in self._numbers.items():
            self._keys[number] = key
        self._free = [number for number in reversed(range(given)) if self._keys[number] is _NONE]

    def snapshot(self) -> tuple[Any, ...]:
        """Keys, their numbers, the marked ones, the place of the last turn, and the number of newer keys. If keys
        pause, also the time of each one's last event and the position of its first, the numbers that must not be used,
        and counts."""
        if self._table is not None:
            held = np.sort(self._table.numbers)
            keys, seen = self._table.keys(held).tolist(), self._table.marks(held).tolist()
            return keys, held.tolist(), seen, self._turned, self._new, None
        numbers = list(self._numbers.values())
        pauses = None
        if self._pause is not None:
            unused = sorted({*self._silent, *self._aside})
            pauses = self._last[numbers], self._born[numbers], unused, self._since, self.forgotten, self.lost
        return list(self._numbers), numbers, self._seen[numbers].tolist(), self._turned, self._new, pauses

    def restore(self, state: tuple[Any, ...], most: int) -> None:
        """The opposite of `snapshot`, before the first key; `most`: the budget for numbers. `OptionError` for numbers
        that are not each a key's own."""
        keys, numbers, seen, turned, new, pauses = state
        self._numbers = dict(zip(keys, numbers, strict=True))
        expect((pauses is None) == (self._pause is None), "keys that are forgotten as they were")
        unused = () if pauses is None else pauses[2]
        every = [*numbers, *unused]
        expect(all(type(number) is int and number >= 0 for number in every), "numbers of keys")
        expect(len(self._numbers) == len(numbers) and len(set(every)) == len(every), "each key and each number once")
        expect(max(every, default=-1) < most, "no more keys than the budget")
        expect(all(type(each) is bool for each in seen) and len(seen) == len(numbers), "a mark for each key")
        expect(turned is None or type(turned) in (int, float), "a place in the stream")
        expect(type(new) is int and new >= 0, "a number of new keys")
        self._turned, self._new = turned, new
        self._place_keys(1 + max(every, default=-1))
        self._seen[numbers] = seen
        self._aside = set(unused)
        self._seen[list(unused)] = True  # perhaps since the last turn
        self._free = [number for number in self._free if number not in self._aside]
        if pauses is not None:
            self._restore_pauses(numbers, pauses)

    def _restore_pauses(self, numbers: list[int], pauses: tuple[Any, ...]) -> None:
        last, born, _, *counts = pauses
        expect(all(type(each) is int and each >= 0 for each in counts), "counts of keys")
        self._since, self.forgotten, self.lost = counts
        self._last = np.zeros(len(self._seen), np.int64)
        self._born = np.full(len(self._seen), _MOST, np.int64)
        self._last[numbers] = array(last, "times", rows=len(numbers))
        self._born[numbers] = array(born, "positions", rows=len(numbers), low=-1)


class KeyTable:
    """A number from 0 for each key, an int64, and a mark for each number that was seen since marks were removed.

    PERF: a hash table of a kernel. Its slots have the numbers alone, and the keys lie by their numbers. So a key takes
    16 to 25 bytes. In a dict it takes 110, with the ints that the dict refers to.
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
        return table if given < _MOST_NUMBERS and table._hold(numbers.astype(np.int32)) else None

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

    def marks(self, numbers: np.ndarray) -> np.ndarray:
        """True for those of these numbers that are marked: bool (n,)."""
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

        st, count = self._st, len(values)
        scratch = np.empty(min(_ROWS, count), np.int64)
        for start in range(0, count, _ROWS):
            part = slice(start, start + _ROWS)
            some = scratch[: len(values[part])]
            some[:] = values[part]
            some_known = np.array(known[part], np.bool_)
            st[kernels.ROW] = st[kernels.PROBES] = 0
            row = 0
            while row < len(some):
                kernels.number_keys(
                    some, some_known, numbers[part], self._keys, self._slots, self._free, self._seen, st
                )  # fmt: skip
                row = int(st[kernels.ROW])
                meet = st[kernels.PROBES] > kernels.PATIENCE * (row + 64)
                if row < len(some) and (meet or not self._grow()):
                    return start + row
        return count

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
        size = min(old + old // 4 + _FIRST, _MOST_NUMBERS)
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
        table, codes = KeyTable(min(2 * _FIRST, len(bits))), np.empty(len(bits), np.int64)
        if table.number(bits, _ALL, codes) == len(bits):
            bits = table.keys(np.arange(len(table)))
            found = bits.view(np.float64) if values.dtype.kind == "f" else bits.astype(values.dtype)
            order = np.argsort(found)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            return rank[codes], found[order]
    found, codes = np.unique(values, return_inverse=True)
    return codes, found
