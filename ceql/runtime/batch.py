"""Event batches as the engine takes them: events with partition keys and the window's coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import numpy as np

from ceql.operators.values import INT64, kind_of
from spaseq.core.engine import Partitions
from spaseq.core.engine.program.batch_order import first_backward
from spaseq.core.engine.program.partitions import code
from spaseq.core.errors import EventError
from spaseq.core.events import (
    DurationColumn,
    EventBatch,
    ListColumn,
    MixedColumn,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
)
from spaseq.core.integers import different
from spaseq.core.slips import did_you_mean

_ROWS: Final = 1 << 16
"""Of a batch, that are numbered before keys are forgotten."""
_ALL: Final = np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class EngineBatch:
    """A batch for the engine, its predicates and registers."""

    events: EventBatch
    positions: np.ndarray
    times: np.ndarray
    keys: np.ndarray | None

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, start: int, stop: int) -> EngineBatch:
        """These rows, for samples."""
        keys = None if self.keys is None else self.keys[start:stop]
        return EngineBatch(self.events.part(start, stop), self.positions[start:stop], self.times[start:stop], keys)


class Partition:
    """PARTITION BY: a number for each key, the same in every batch while runs of that partition can be alive.

    Each bracket gives one value: that of the first of its attributes that the event has. An event without a value for
    some bracket belongs to no partition, -1. The key is the value, or the tuple of the values of several brackets.
    """

    def __init__(self, brackets: tuple[tuple[str, ...], ...], numbers: Partitions) -> None:
        self.brackets = brackets
        self._numbers = numbers
        self.kinds: dict[tuple[str, ...], set[str]] = {names: set() for names in brackets}
        """The kinds of values that each bracket has had."""

    def keys(self, batch: EventBatch, places: np.ndarray) -> np.ndarray:
        """Numbers for the keys of the events: int64 (n,). `places`: those of the events, in the window's measure,
        ascending.

        PERF: numbers go to other keys within a batch, too. 2 million events of ever-new keys in a window that holds
        6,000 of them, 40 MB of CSV: 1.2 s without, 0.7 s so (2026-11-22).
        """
        numbers = np.empty(len(batch), np.int64)
        whole = self._integers(batch)
        if whole is not None:
            for start in range(0, len(batch), _ROWS):
                self._numbers.reach(places[start].item(), int(batch.times[start]))
                part = slice(start, start + _ROWS)
                self._numbers.of_integers(whole[0][part], whole[1][part], numbers[part])
            return numbers
        codes, found = self._codes(batch)
        table = np.full(len(found) + 1, -1, np.int64)
        for start in range(0, len(codes), _ROWS):
            if self._numbers.reach(places[start].item(), int(batch.times[start])) or self._numbers.pauses:
                table[:] = -1
            part = slice(start, start + _ROWS)
            some, own = codes[part], numbers[part]
            np.take(table, some, out=own, mode="wrap")
            missing = some[own < 0]
            self._numbers.see(own[own >= 0] if len(missing) else own)
            if len(missing):
                used = np.zeros(len(found) + 1, bool)
                used[missing] = True
                there = np.flatnonzero(used[:-1])
                table[there] = self._numbers.of(
                    [found[c] for c in there.tolist()] if len(there) < len(found) else found
                )
                own[:] = table[some]
            if self._numbers.pauses:
                own[:] = self._numbers.lives(own, batch.positions[part], batch.times[part])
        return numbers

    def codes(self, batch: EventBatch) -> np.ndarray:
        """A number for each key in this batch alone: int64 (n,), -1 for no key."""
        codes, found = self._codes(batch)
        same = {key: number for number, key in enumerate(found)}
        return np.array([*(same[key] for key in found), -1], np.int64)[codes]

    def _integers(self, batch: EventBatch) -> tuple[np.ndarray, np.ndarray] | None:
        """The keys of a batch if they are integers, int64 (n,), for numbers that take such; and which rows have one:
        bool (n,), or (0,) if all have. Else None."""
        if len(self.brackets) > 1 or not self._numbers.takes_integers:
            return None
        values: np.ndarray | None = None
        known: np.ndarray | None = None
        for name in self.brackets[0]:
            column = batch.column(name)
            if column is None:
                continue
            if not isinstance(column, NumberColumn) or (own := _whole(column.values)) is None:
                return None
            if values is None:
                values, known = own, column.known
            elif known is not None:
                values = np.where(known, values, own)
                known = None if column.known is None else known | column.known
        if values is None:
            return None
        self.kinds[self.brackets[0]].add(NumberColumn.kind)
        return values, _ALL if known is None else known

    def _codes(self, batch: EventBatch) -> tuple[np.ndarray, list[Any]]:
        """Codes of the keys, -1 for no key, and the keys that they stand for, perhaps one several times."""
        (codes, found), *others = [self._bracket(batch, names) for names in self.brackets]
        if others:
            found = [(value,) for value in found]
        for more, values in others:
            width = max(1, len(values))
            both = (codes >= 0) & (more >= 0)
            pairs, which = different((codes * width + more)[both])
            codes = np.full(len(codes), -1, np.int64)
            codes[both] = which
            found = [(*found[pair // width], values[pair % width]) for pair in pairs.tolist()]
        return codes, found

    def _bracket(self, batch: EventBatch, names: tuple[str, ...]) -> tuple[np.ndarray, list[Any]]:
        codes: np.ndarray | None = None
        values: list[Any] = []
        for name in names:
            column = batch.column(name)
            if isinstance(column, ListColumn | MixedColumn):
                lists = (row for row, value in enumerate(column.values) if isinstance(value, tuple))
                first = next((row for row in lists if codes is None or codes[row] < 0), None)
                if first is not None:
                    raise EventError(
                        f"attribute {name} is a list, and PARTITION BY goes by numbers, texts, truths and times",
                        source=batch.source,
                        record=int(batch.positions[first]) + 1,
                        counted="event",
                        attribute=name,
                    )
            if column is not None and not isinstance(column, ListColumn):
                more, found = _encode(column)
                self.kinds[names] |= set(map(kind_of_key, found)) if isinstance(column, MixedColumn) else {column.kind}
                codes = more if codes is None else np.where((codes < 0) & (more >= 0), more + len(values), codes)
                values += found
        return np.full(len(batch), -1, np.int64) if codes is None else codes, values


def key_of(value: Any) -> Any:
    """A value that is not NULL as (a part of) a key. 1, true and a time of 1 ns are different, 1 and 1.0 are not."""
    return kind_and_key(value)[1]


def kind_and_key(value: Any) -> tuple[str, Any]:
    """The kind of a value, and the value as a key."""
    kind = kind_of(value)
    return kind, value if kind in ("text", "number") else (kind, value)


def kind_of_key(key: Any) -> str:
    """The kind of the value of a key, as `key_of` gives it."""
    return key[0] if isinstance(key, tuple) else kind_of(key)


def _encode(
    column: NumberColumn | TextColumn | TruthColumn | TimeColumn | DurationColumn | MixedColumn,
) -> tuple[np.ndarray, list[Any]]:
    """Codes (-1 NULL) and the values they stand for, as `key_of` has them."""
    if isinstance(column, TextColumn):
        return column.codes.astype(np.int64), column.texts.to_pylist()
    if isinstance(column, MixedColumn):
        numbers: dict[Any, int] = {}
        keys = [None if value is None else key_of(value) for value in column.values]
        places = [-1 if key is None else numbers.setdefault(key, len(numbers)) for key in keys]
        return np.array(places, np.int64), list(numbers)
    codes, different_values = code(column.values)
    if column.known is not None:
        codes = np.where(column.known, codes, -1)
    values = different_values.tolist()
    if isinstance(column, NumberColumn):
        return codes, values
    return codes, [(column.kind, value) for value in values]


def _whole(numbers: np.ndarray) -> np.ndarray | None:
    """The numbers of a column as int64 (n,), if all are whole; else None."""
    if numbers.dtype.kind == "f" and (not len(numbers) or numbers[0] == np.trunc(numbers[0])):
        numbers = _as_whole(numbers)
    return numbers if numbers.dtype == np.int64 else None


def _as_whole(numbers: np.ndarray) -> np.ndarray:
    """Doubles as whole numbers, if all are such."""
    whole = (np.abs(numbers) < 2.0**63) & (numbers == np.trunc(numbers))
    return numbers.astype(np.int64) if whole.all() else numbers


class Coordinate:
    """The numbers a window is measured in: the events' times, or those of a named attribute."""

    def __init__(self, attribute: str | None) -> None:
        self._attribute = attribute
        self.last: int | float | None = None
        self.kind: str | None = None

    def of(self, batch: EventBatch) -> np.ndarray:
        """int64 or, from the first decimal on, float64 (n,); never decreasing. `EventError` if it would."""
        name = self._attribute
        if name is None:
            return batch.times
        if name not in batch.table.column_names:
            names = batch.table.column_names
            hint = did_you_mean(name, names) or f"there are: {', '.join(names[:20])}"
            raise EventError(
                f"no attribute {name}, which the window is measured in",
                source=batch.source,
                attribute=name,
                hint=hint,
            )
        column = batch.column(name)
        known = None if not isinstance(column, NumberColumn | TimeColumn | MixedColumn) else column.known
        if column is None or (known is not None and not known.all()):
            row = 0 if known is None else int(np.argmin(known))
            raise self._error(batch, row, f"this event has no {name}, which the window is measured in")
        if isinstance(column, TimeColumn):
            numbers = column.values // 10**9 + column.values % 10**9 / 1e9  # each rounded once
        elif isinstance(column, NumberColumn):
            numbers = column.values
            if column.whole is not None and column.whole[0] and self.kind is None:
                numbers = _as_whole(numbers)
        elif isinstance(column, MixedColumn):
            numbers = self._each(batch, column)
        else:
            raise self._error(batch, 0, f"{name} holds no numbers, and the window is measured in it")
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise self._error(batch, row, f"{name} is {numbers[row]}, and the window is measured in it")
        numbers = self._settle(numbers)
        self._check_order(batch, numbers)
        self.last, self.kind = numbers[-1].item(), numbers.dtype.kind
        return numbers

    def _each(self, batch: EventBatch, column: MixedColumn) -> np.ndarray:
        """The numbers of a column that does not hold them as doubles: whole, if all are and the first is."""
        for row, value in enumerate(column.values):
            if kind_of(value) != "number":
                raise self._error(batch, row, f"{self._attribute} is no number here, and the window is measured in it")
        numbers = list(column.values)
        whole = all(isinstance(v, int) or (isfinite(v) and v == int(v)) for v in numbers)
        exact = (
            whole and all(v in INT64 for v in map(int, numbers)) and (self.last is not None or type(numbers[0]) is int)
        )
        return np.array([int(v) for v in numbers], np.int64) if exact else np.array(numbers, np.float64)

    def _settle(self, numbers: np.ndarray) -> np.ndarray:
        """Whole numbers until there are decimals, decimals from then on."""
        if self.kind != "f" and numbers.dtype.kind == "f" and self.last is not None:
            numbers = _as_whole(numbers)
        return numbers.astype(np.float64) if self.kind == "f" else numbers

    def _check_order(self, batch: EventBatch, numbers: np.ndarray) -> None:
        row = first_backward(numbers, self.last)
        if row is not None:
            before = numbers[row - 1].item() if row else self.last
            raise self._error(
                batch,
                row,
                f"{self._attribute} goes back from {before} to {numbers[row].item()}, and the window is measured in it",
            )

    def _error(self, batch: EventBatch, row: int, problem: str) -> EventError:
        return EventError(
            problem,
            source=batch.source,
            record=int(batch.positions[row]) + 1,
            counted="event",
            attribute=self._attribute or "",
            hint="a window over an attribute needs its number in every event, in order; else use WITHIN n SECONDS",
        )
