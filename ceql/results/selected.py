"""The columns that SELECT computes: a row for each match.

The parts of an expression that read events are computed first, a column each: attributes, aggregates, times. The
expression is then evaluated on them, as conditions are on the columns of events (`ceql.expressions.vectorized`). A
variable that took no event gives NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ceql.expressions.scalar import compile_value
from ceql.expressions.vectorized import operand, truths
from ceql.operators.columns import arrow_from, arrow_of
from ceql.results.bindings import Bindings, plain
from ceql.results.column_types import INSTANTS, ColumnTypes, Types
from ceql.results.history import History
from ceql.results.segments import aggregate, extreme, one_by_one
from ceql.results.sums import Summing
from ceql.semantics.selection import column_name
from ceql.syntax import ast
from ceql.syntax.ast import GROUP_START, MATCH_TIMES, SILENCE
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import attributes_of, is_aggregate, replace, variables_of
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch, TruthColumn
from spaseq.core.events.batch import encode_texts
from spaseq.core.events.mixed import array_of
from spaseq.core.events.time import unit_nanoseconds

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch


@dataclass(frozen=True, slots=True)
class _Computed:
    """A column: its name, its expression, and the same with `#k` in place of each part that is read of a match."""

    name: str
    expression: ast.Expression
    over: ast.Expression


class Selected:
    """The columns of a query. `attributes` are those that it reads, `names` the names of the columns. `clause` names
    them in errors."""

    def __init__(self, query: ast.Query, clause: str = "SELECT") -> None:
        self._clause = clause
        self._leaves: dict[ast.Expression, str] = {}
        self._summing = None if query.grouping is None else Summing(query)
        self._length = None if query.grouping is None else query.grouping.length
        self._brackets = {name.text: [n.text for n in bracket] for bracket in query.partition for name in bracket}
        self._columns = [
            _Computed(column_name(c), c.expression, replace(c.expression, self._leaf)) for c in query.selection.columns
        ]
        self._combined = {a.name for c in self._columns for a in attributes_of(c.over) if a is not c.over}
        self.names: tuple[str, ...] = tuple(column.name for column in self._columns)
        read = (a.name for leaf in self._leaves for a in attributes_of(leaf) if a.variable is not None)
        keys = (n for leaf in self._leaves for n in self._brackets.get(getattr(leaf, "name", ""), ()))
        self.attributes: tuple[str, ...] = tuple(dict.fromkeys((*read, *keys)))

    @property
    def match_time(self) -> str:
        """The time of a match that a column reads; empty if none does."""
        bare = (leaf.name for leaf in self._leaves if isinstance(leaf, ast.Attribute) and leaf.variable is None)
        return next((name for name in bare if name not in self._brackets and name != SILENCE), "")

    def _leaf(self, part: ast.Expression) -> ast.Expression | None:
        if not isinstance(part, ast.Attribute | ast.Earlier) and not is_aggregate(part):
            return None
        return ast.Attribute(self._leaves.setdefault(part, f"#{len(self._leaves)}"), span=part.span)

    def types(self, attributes: Types, times: pa.DataType | None, unit: int = 1) -> pa.Schema:
        """The columns' types, if those of attributes and of the times of matches are these; null for one that is not
        known. `unit`: that of times which are whole numbers (ns); stretches of time may begin between two of them."""
        between = times == pa.int64() and self._length is not None and self._length % unit != 0
        types = ColumnTypes(attributes, times, pa.float64() if between else times, self._brackets)
        return pa.schema([(c.name, types.of(c.expression) or pa.null()) for c in self._columns])

    def table(
        self, matches: MatchBatch, history: History, bindings: Bindings | None, times: Times, declared: Types,
        natural: bool = False,
    ) -> pa.Table:  # fmt: skip
        """A row for each match. `declared`: the types of attributes that a schema gives. With `natural` each value
        keeps its kind: a column of several kinds is a union, else texts.

        Raises `EventError` if kinds of values do not go together. Cost: O(events taken by the variables that it reads).
        """
        history = history.about(matches)
        events = history.columns(self.attributes)
        read = _Read(matches, history, events, bindings, self._brackets, times, self._summing, self._length)
        try:
            columns = self._arrays(matches, read)
        except EventError as error:
            problem = error.problem
            for part, name in self._leaves.items():
                problem = problem.replace(f"`{name}`", print_expression(part))
            raise EventError(problem, source=self._clause, hint=error.hint) from None
        if not natural:
            known = {**declared, **{field.name: value_type(field.type) for field in events.schema}}
            types = self.types({name: kind for name, kind in known.items() if kind != pa.null()}, times.type)
            columns = [_cast(plain(array), kind) for array, kind in zip(columns, types.types, strict=True)]
        return pa.table(dict(zip(self.names, columns, strict=True)))

    def _arrays(self, matches: MatchBatch, read: _Read) -> list[pa.Array]:
        """The values of the columns, those of several kinds as unions."""
        found = {name: read.leaf(part) for part, name in self._leaves.items()}
        batch = as_events(pa.table({name: found[name] for name in self._combined}), len(matches))
        return [
            found[column.over.name] if isinstance(column.over, ast.Attribute) else _evaluate(column.over, batch)
            for column in self._columns
        ]


@dataclass(frozen=True, slots=True)
class Times:
    """The form of the times of events. `are_dates` says if they are dates, once some have been read; else they are
    numbers in `unit`."""

    are_dates: Callable[[], bool]
    unit: str

    @property
    def type(self) -> pa.DataType | None:
        """The type of the times; None for numbers, which may be whole or not."""
        return INSTANTS if self.are_dates() else None

    def column(self, stamps: np.ndarray) -> pa.Array:
        """Times in nanoseconds as the events have them."""
        if self.are_dates():
            return pa.array(stamps, pa.int64()).cast(INSTANTS)
        scale = unit_nanoseconds(self.unit)
        return pa.array(stamps // scale if not (stamps % scale).any() else stamps / scale)


class _Read:
    """The values that expressions read of some matches. `events` is a table of all events of `history`."""

    def __init__(
        self, matches: MatchBatch, history: History, events: pa.Table, bindings: Bindings | None,
        brackets: Mapping[str, list[str]], times: Times, summing: Summing | None = None,
        length: int | None = None,
    ) -> None:  # fmt: skip
        self._summing = summing
        self._length = length
        self._matches = matches
        self._history = history
        self._events = events
        self._bindings = bindings
        self._brackets = brackets
        self._times = times
        self._rows: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._batches: dict[str, EventBatch] = {}

    def leaf(self, part: ast.Expression) -> pa.Array:
        """The values of a part, one for each match."""
        match part:
            case ast.Attribute(name, None):
                return self._bare(name)
            case ast.Attribute(name, str() as variable):
                return self._at(name, variable, self._of(variable)[0][1:] - 1)
            case ast.Earlier(ast.Attribute(name, str() as variable), 0):
                return self._at(name, variable, self._of(variable)[0][:-1])
            case ast.Earlier(ast.Attribute(name, str() as variable), back):
                offsets = self._of(variable)[0]
                places = offsets[1:] - 1 - back
                return self._at(name, variable, np.where(places < offsets[:-1], -1, places))
            case ast.Call() if self._summing is not None:
                assert self._matches.sums is not None
                return self._summing.values(part, self._matches.sums)
            case ast.Call(function, (argument,)):
                return self._aggregate(function, argument)
        raise AssertionError(f"{part} is read of no match")

    def _of(self, variable: str) -> tuple[np.ndarray, np.ndarray]:
        """Offsets (m + 1,) and the rows of `events` that a variable took."""
        if variable not in self._rows:
            assert self._bindings is not None
            offsets, positions = self._bindings.of(self._matches, variable)
            rows = self._history.rows(positions) if len(positions) else positions
            self._rows[variable] = offsets, rows
        return self._rows[variable]

    def _at(self, name: str, variable: str, places: np.ndarray) -> pa.Array:
        """The attribute of the event at a place among all that the variable took; NULL for matches with none."""
        offsets, rows = self._of(variable)
        return self._values_at(name, rows, np.where(offsets[1:] > offsets[:-1], places, -1))

    def _values_at(self, name: str, rows: np.ndarray, places: np.ndarray) -> pa.Array:
        """The attribute of the events at `rows[places]`, NULL where the place is -1."""
        if name not in self._events.column_names or not len(rows):
            return pa.nulls(len(places))
        none, chosen = places < 0, rows[places]
        column = self._events.column(name)
        if not none.any():
            return _without_nan(_one(column.take(pa.array(chosen))))
        if pa.types.is_union(column.type):
            values = _one(column.take(pa.array(chosen))).to_pylist()
            return array_of([None if missing else value for value, missing in zip(values, none.tolist(), strict=True)])
        return _without_nan(_one(column.take(pa.array(chosen, mask=none))))

    def _bare(self, name: str) -> pa.Array:
        """An attribute of PARTITION BY, the first of its bracket that is not NULL; or a time of the match, or its
        silence."""
        matches = self._matches
        if name == SILENCE and name not in self._brackets:
            return pa.array(matches.silences, pa.int64())
        if name not in self._brackets:
            places = matches.start if name == MATCH_TIMES[0] else matches.end
            stamps = self._history.times(places)
            if name == GROUP_START and self._length is not None:
                stamps = stamps // self._length * self._length
            return self._times.column(stamps)
        last, some = matches.end.copy(), matches.offsets[1:] > matches.offsets[:-1]  # a match may show no event
        last[some] = matches.positions[matches.offsets[1:][some] - 1]
        rows = self._history.rows(last)
        every = np.arange(len(rows))
        found = [self._values_at(each, rows, every) for each in self._brackets[name]]
        try:
            return found[0] if len(found) == 1 else pc.coalesce(*found)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
        pieces = zip(*(array.to_pylist() for array in found), strict=True)
        return array_of([next((v for v in piece if v is not None), None) for piece in pieces])

    def _aggregate(self, function: str, argument: ast.Expression) -> pa.Array:
        if isinstance(argument, ast.Variable):
            return pa.array(np.diff(self._of(argument.name)[0]), pa.int64())
        (variable,) = set(variables_of(argument))
        offsets, rows = self._of(variable)
        name = argument.name if isinstance(argument, ast.Attribute) else None
        ends = {"FIRST": offsets[:-1], "LAST": offsets[1:] - 1}.get(function)
        if name is not None and ends is not None:
            return self._at(name, variable, ends)
        if name is not None and function == "COLLECT":
            return _lists(offsets, self._values_at(name, rows, np.arange(len(rows))))
        values = operand(argument, self._batch(variable))
        if function == "COLLECT":
            return _lists(offsets, arrow_of(values, len(rows)))
        if function in ("MIN", "MAX"):
            ends = extreme(function, values, offsets)
            if ends is not None and name is not None:
                return self._values_at(name, rows, ends)
        elif ends is not None:
            ends = np.where(offsets[1:] > offsets[:-1], ends, -1)
        if ends is not None:
            return arrow_of(values, len(rows)).take(pa.array(ends, mask=ends < 0))
        found = aggregate(function, values, offsets)
        return arrow_from(one_by_one(function, values, offsets)) if found is None else found

    def _batch(self, variable: str) -> EventBatch:
        """The events that a variable took, those of all matches."""
        if variable not in self._batches:
            rows = self._of(variable)[1]
            self._batches[variable] = as_events(self._events.take(pa.array(rows, pa.int64())), len(rows))
        return self._batches[variable]


def events_at(history: History, positions: np.ndarray, attributes: tuple[str, ...]) -> EventBatch:
    """These attributes of the events at some positions, in their order, for expressions to be evaluated on."""
    rows = pa.array(history.rows(positions), pa.int64())
    return as_events(history.columns(attributes).take(rows), len(positions))


def as_events(table: pa.Table, count: int) -> EventBatch:
    """A table of values as events, for expressions to be evaluated on."""
    return EventBatch(encode_texts(table), "", np.zeros(count, np.int64), np.arange(count))


def _one(column: pa.ChunkedArray) -> pa.Array:
    """The column in one array, not encoded."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _without_nan(array: pa.Array) -> pa.Array:
    """The array with NULL for NaN."""
    if not pa.types.is_floating(array.type):
        return array
    nan = pc.is_nan(array)
    return pc.if_else(nan, pa.scalar(None, array.type), array) if pc.any(nan).as_py() else array


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _evaluate(node: ast.Expression, batch: EventBatch) -> pa.Array:
    """The values of an expression over columns of matches."""
    if isinstance(node, ast.Condition):
        return arrow_of(TruthColumn(*truths(node, batch)), len(batch))
    if any(True for _ in attributes_of(node)):
        return arrow_of(operand(node, batch), len(batch))
    of_nothing: Callable[[None], Any] = compile_value(node, lambda attribute: lambda none: None)
    return arrow_from([of_nothing(None)] * len(batch))


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column that may be dictionary-encoded."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array as one of `kind`, if that is known and holds its values."""
    if array.type == kind or pa.types.is_null(kind) or pa.types.is_union(kind):
        return array
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array
