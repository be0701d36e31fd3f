"""Guards evaluated on tables of events, one column a variable, for the lazy evaluators
(`spaseq.core.engine.program.guard_conditions`).

A `GuardMemory` keeps the attributes that guards read, in columns over all events it was given. A condition without
aggregates is evaluated by `ceql.expressions.vectorized` on columns gathered for the table. If batches had values of
different kinds for one attribute, `ceql.expressions.scalar` evaluates it row by row, with the same result. A condition
with aggregates is decided by `ceql.guards.aggregates`, event by event.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ceql.expressions.scalar import compile_condition
from ceql.expressions.vectorized import evaluate
from ceql.guards.aggregates import AggregateGuard
from ceql.guards.guard import Guard
from ceql.guards.rounds import RoundGuard
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, attributes_of, is_plain, parts, reads_earlier, replace
from spaseq.core.errors import EventError, InternalError
from spaseq.core.events import (
    Column,
    Instant,
    ListColumn,
    MixedColumn,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
    text_array,
)
from spaseq.core.events.columns import getter_of
from spaseq.core.snapshot import expect

_DTYPES: Final = {
    "": np.int64, "int": np.int64, "float": np.float64, "truth": bool, "time": np.int64, "text": np.int64,
    "mixed": object,
}  # fmt: skip
"""The dtype of the array for values of each kind; "" is the kind before the first value."""
_KINDS: Final = {NumberColumn: "number", TextColumn: "text", TruthColumn: "truth", TimeColumn: "time"}


class GuardConditions:
    """The guards of a query as conditions."""

    def __init__(self, guards: tuple[Guard, ...]) -> None:
        self._guards = guards

    def kind(self, guard: Hashable) -> str | None:
        """ "tuples"; "whole" for a guard with aggregates or on earlier events; None for guards that are not CEQL's
        (`Conditions.kind`)."""
        if not isinstance(guard, Guard):
            return None
        return "tuples" if is_plain(guard.condition) else "whole"

    def memory(self) -> GuardMemory:
        """An empty memory."""
        return GuardMemory(self._guards)

    @functools.cached_property
    def _simple(self) -> tuple[frozenset[str], frozenset[str]] | None:
        """The attributes that the guards read and the kinds of their constants; None if they do more than compare,
        but for the arithmetic of numbers."""
        kinds, names = set(), set()
        for part in (part for guard in self._guards for part in parts(guard.condition)):
            if isinstance(part, ast.Attribute):
                names.add(part.name)
            elif isinstance(part, ast.Number | ast.Arithmetic | ast.Negate):
                kinds.add("number")
            elif isinstance(part, ast.Text | ast.Truth):
                kinds.add("text" if isinstance(part, ast.Text) else "truth")
            elif not isinstance(part, ast.Compare | ast.And | ast.Or | ast.Not):
                return None
        return frozenset(names), frozenset(kinds)

    def kind_of_values(self, batch: Any) -> str | None:
        """As of `Conditions`: "number", "text", "truth" or "time", if all values and constants are that."""
        if self._simple is None:
            return None
        names, kinds = self._simple
        columns = [batch.events.column(name) for name in names]
        found = {*kinds, *(_KINDS.get(type(column)) for column in columns if column is not None)}
        return None if None in found or len(found) > 1 else next(iter(found), "")


class _Attribute:
    """An attribute of all kept events: `kind`, `values` (n,), and `known` (n,), which is False for NULL.

    `values` has the dtype of `_DTYPES[kind]`; texts are codes into `texts`. "mixed", with Python objects, once values
    of two kinds have come. Whole numbers within 2^53 among decimals are decimals, unless something `computes` with the
    attribute, which would tell.
    """

    def __init__(self, computes: bool = True) -> None:
        self._computes = computes
        self.kind = ""
        self.texts: dict[str, int] = {}
        self._values = np.zeros(16, np.int64)
        self._known = np.zeros(16, bool)
        self._start = self._end = 0

    def snapshot(self) -> Any:
        """The values, as plain ones and `Instant`s."""
        values = self.values.tolist() if self.kind == "mixed" else self.values
        return self.kind, list(self.texts), values, self.known

    def restore(self, state: Any, count: int) -> None:
        """The opposite of `snapshot`; the attribute has `count` values."""
        self.kind, texts, values, known = state
        self.texts = {text: number for number, text in enumerate(texts)}
        expect(self.kind in _DTYPES and len(self.texts) == len(texts), "a kind of values")
        expect(all(type(text) is str for text in texts), "texts")
        if self.kind == "mixed":
            self._values = np.empty(len(values), object)
            self._values[:] = values
        else:
            self._values = np.array(values, values.dtype)
        fits = self._values.dtype == _DTYPES[self.kind] and known.dtype == bool
        expect(fits and self._values.shape == known.shape == (count,), "a value for each event")
        codes = self._values[known] if self.kind == "text" else np.zeros(0, np.int64)
        expect(((codes >= 0) & (codes < len(texts))).all(), "a text for each number of one")
        self._known = known
        self._start, self._end = 0, count

    @property
    def values(self) -> np.ndarray:
        return self._values[self._start : self._end]

    @property
    def known(self) -> np.ndarray:
        return self._known[self._start : self._end]

    @property
    def nbytes(self) -> int:
        return int(self._values.nbytes + self._known.nbytes)

    def append(self, column: Column | None, rows: np.ndarray) -> None:
        values, known, kind = self._read(column, rows)
        if kind and self.kind not in ("", kind):
            self._mix()
        if kind and not self.kind:
            self.kind = kind
            self._values = np.zeros(len(self._values), values.dtype)
        if self.kind == "mixed":
            values = self._objects(kind, values, known)
        elif not kind:
            values = np.zeros(len(rows), self._values.dtype)
        self._room(len(rows))
        self._values[self._end : self._end + len(rows)] = values
        self._known[self._end : self._end + len(rows)] = known
        self._end += len(rows)

    def keep(self, index: np.ndarray) -> None:
        self._values, self._known = self.values[index], self.known[index]
        self._start, self._end = 0, len(self._values)

    def drop(self, count: int) -> None:
        self._start += count

    def gathered(self, index: np.ndarray) -> Column | None:
        """The column of the events at `index`, int64 (n,); None if all are NULL. `kind` must not be "mixed"."""
        known: np.ndarray | None = self.known[index]
        assert known is not None
        if known.all():
            known = None
        elif not known.any():
            return None
        values = self.values[index]
        match self.kind:
            case "int" | "float":
                return NumberColumn(values, known)
            case "truth":
                return TruthColumn(values, known)
            case "time":
                return TimeColumn(values, known)
            case "text":
                codes = values if known is None else np.where(known, values, -1)
                return TextColumn(codes.astype(np.int32), text_array(list(self.texts)))
        raise InternalError(f"a column of {self.kind or 'no'} values")

    def value(self, event: int) -> Any:
        """The value of one event as a Python value or `Instant`; None for NULL."""
        at = self._start + event
        if not self._known[at]:
            return None
        return _value(self.kind, self._values[at], self.texts)

    def _read(self, column: Column | None, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        if column is None:
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), bool), ""
        if isinstance(column, TextColumn):
            numbers = [self.texts.setdefault(t, len(self.texts)) for t in column.texts.to_pylist()]
            codes = column.codes[rows]
            return np.append(np.array(numbers, np.int64), 0)[codes], codes >= 0, "text"
        known = np.ones(len(rows), bool) if column.known is None else column.known[rows]
        told = isinstance(column, NumberColumn) and column.whole is not None and self._computes
        if isinstance(column, ListColumn | MixedColumn) or told:  # one by one; lists are for CORR
            found, get = np.empty(len(rows), object), getter_of(column)
            for i, row in enumerate(rows.tolist()):
                found[i] = get(row)
            return found, known, "mixed"
        kind = _KINDS[type(column)]
        if kind == "number":
            kind = "int" if column.values.dtype.kind == "i" else "float"
        return column.values[rows], known, kind

    def _mix(self) -> None:
        if self.kind != "mixed":
            values = self._objects(self.kind, self._values, self._known)
            self.kind, self._values = "mixed", values

    def _objects(self, kind: str, values: np.ndarray, known: np.ndarray) -> np.ndarray:
        found = np.empty(len(values), object)
        texts = list(self.texts) if kind == "text" else []
        for i in np.flatnonzero(known).tolist():
            found[i] = _value(kind, values[i], texts)
        return found

    def _room(self, count: int) -> None:
        if self._end + count > len(self._values):
            room = 2 * (self._end - self._start + count)
            for name in ("_values", "_known"):
                old = getattr(self, name)[self._start : self._end]
                grown = np.zeros(room, old.dtype)
                grown[: len(old)] = old
                setattr(self, name, grown)
            self._start, self._end = 0, self._end - self._start


def _value(kind: str, value: Any, texts: Any) -> Any:
    match kind:
        case "mixed":
            return value
        case "text":
            return list(texts)[int(value)]
        case "time":
            return Instant(value)
    return value.item()


class GuardMemory:
    """The `Memory` of CEQL's guards."""

    def __init__(self, guards: tuple[Guard, ...]) -> None:
        self._guards = guards
        self._source = ""
        names = dict.fromkeys(a.name for guard in guards for a in attributes_of(guard.condition))
        computed = {a.name for guard in guards for a in attributes_of(guard.condition) if _computes(guard.condition)}
        self._attributes = {name: _Attribute(name in computed) for name in names}
        self._prepare()

    def _prepare(self) -> None:
        self._tuples: dict[Guard, _Tuples] = {}
        self._whole: dict[Guard, AggregateGuard | RoundGuard] = {}
        for guard in self._guards:
            if reads_earlier(guard.condition):
                self._whole[guard] = RoundGuard(guard, self._reader)
            elif any(True for _ in aggregates_of(guard.condition)):
                self._whole[guard] = AggregateGuard(guard.condition, guard.variables, self._reader)
            else:
                self._tuples[guard] = _Tuples(guard)

    def snapshot(self) -> Any:
        """The attributes, as plain values and `Instant`s."""
        return self._source, [attribute.snapshot() for attribute in self._attributes.values()]

    def restore(self, state: Any, count: int) -> None:
        """The opposite of `snapshot`, for a memory of the same guards; it has `count` events."""
        self._source, kept = state
        for attribute, of in zip(self._attributes.values(), kept, strict=True):
            attribute.restore(of, count)
        self._renumber()

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(a.nbytes for a in self._attributes.values())

    def append(self, batch: Any, rows: np.ndarray) -> None:
        """Keep the attributes of these rows."""
        self._source = batch.events.source
        for name, attribute in self._attributes.items():
            attribute.append(batch.events.column(name), rows)

    def drop(self, count: int) -> None:
        """Drops the first `count` events; the others are numbered anew from 0."""
        for attribute in self._attributes.values():
            attribute.drop(count)
        self._renumber()

    def keep(self, index: np.ndarray) -> None:
        """Drops all events but those at `index`, int64 ascending; they are numbered anew from 0."""
        for attribute in self._attributes.values():
            attribute.keep(index)
        self._renumber()

    def _renumber(self) -> None:
        """Events have other numbers than those by which guards remember the last one's values."""
        for guard in self._whole.values():
            guard.forget()

    def test(self, guard: Hashable, events: Mapping[str, np.ndarray]) -> np.ndarray:
        """The rows at which the guard is true, and not unknown: bool (n,). `events[variable]`, int64 (n,), are numbers
        of events. Raises `EventError` if kinds of values do not go together."""
        assert isinstance(guard, Guard)
        condition = self._tuples[guard]
        try:
            if any(self._attributes[name].kind == "mixed" for _, name in condition.reads.values()):
                return condition.one_by_one(self._attributes, events)
            return evaluate(condition.node, _Gathered(condition.reads, self._attributes, events))  # type: ignore[arg-type]
        except EventError as error:
            raise EventError(f"{guard.query_text}: {error.problem}", source=self._source, hint=error.hint) from None

    def test_whole(self, guard: Hashable, events: Sequence[tuple[int, frozenset[str]]]) -> bool:
        """True if a guard with aggregates holds of a match: its events in order, each with the variables it takes."""
        assert isinstance(guard, Guard)
        aggregate = self._whole[guard]
        state: Any = aggregate.empty
        try:
            for event, variables in events:
                state = aggregate.take(state, variables, event)
                if state is None:
                    return False
            return aggregate.leave(state)
        except EventError as error:
            raise EventError(f"{guard.query_text}: {error.problem}", source=self._source, hint=error.hint) from None

    def _reader(self, attribute: ast.Attribute) -> Callable[[int], Any]:
        column = self._attributes[attribute.name]
        return column.value


class _Tuples:
    """A condition without aggregates. In `node`, attribute `a` of variable `v` is the attribute `v.a` of a row."""

    def __init__(self, guard: Guard) -> None:
        self.reads: dict[str, tuple[str, str]] = {}

        def rename(node: ast.Expression) -> ast.Expression | None:
            if not isinstance(node, ast.Attribute):
                return None
            assert node.variable is not None
            name = f"{node.variable}.{node.name}"
            self.reads[name] = node.variable, node.name
            return ast.Attribute(name)

        self.node = replace(guard.condition, rename)
        self.truth: Callable[[dict[str, Any]], bool | None] = compile_condition(self.node, _choose)

    def one_by_one(self, attributes: Mapping[str, _Attribute], events: Mapping[str, np.ndarray]) -> np.ndarray:
        """The truth of the condition, bool (n,), evaluated row by row."""
        count = len(next(iter(events.values())))
        found = np.zeros(count, bool)
        for i in range(count):
            choice = {own: attributes[name].value(int(events[v][i])) for own, (v, name) in self.reads.items()}
            found[i] = self.truth(choice) is True
        return found


def _computes(condition: ast.Condition) -> bool:
    """True if a part of a condition may give different results for whole numbers and for equal decimals."""
    return any(isinstance(node, ast.Arithmetic | ast.Call) for node in parts(condition))


def _choose(attribute: ast.Attribute) -> Callable[[dict[str, Any]], Any]:
    return lambda choice: choice[attribute.name]


class _Gathered:
    """A table of events with the interface of `EventBatch` that `ceql.expressions.vectorized` reads."""

    def __init__(
        self,
        reads: Mapping[str, tuple[str, str]],
        attributes: Mapping[str, _Attribute],
        events: Mapping[str, np.ndarray],
    ) -> None:
        self._reads = reads
        self._attributes = attributes
        self._events = events

    def __len__(self) -> int:
        return len(next(iter(self._events.values())))

    def getter(self, name: str) -> Callable[[int], Any]:
        """A function from a row to the value of the attribute `name`."""
        return getter_of(self.column(name))

    def column(self, name: str) -> Column | None:
        """The values of the attribute `name`, as `v.a`, of the events in the column of variable `v`."""
        variable, attribute = self._reads[name]
        return self._attributes[attribute].gathered(self._events[variable])
