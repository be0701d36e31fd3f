"""A network of queries over tables that a caller has put in order, as Spark does: rows in one table for all queries.

A row is a match. Its column `query` has the name of the match's query, and the column of that name its row, as a
struct; the columns of the other queries are NULL.

*Division by keys.* Events of different keys never meet if each query has the same keys, and each match has the key of
its events. A match that waited for a time is an event behind all others up to that time, whatever their keys. So the
order of the events of one key needs those of no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ceql.results.matches import MatchTable, OverTable
from ceql.results.named import NamedMatches
from ceql.runtime.network_evaluation import NetworkEvaluation, NetworkMember, is_timed, timed_clause
from ceql.semantics.schemas import Schema, arrow_kind
from ceql.semantics.selection import column_name
from ceql.semantics.types import check_types
from ceql.syntax import ast
from spaseq.core.engine import Consume, Program, Settings
from spaseq.core.errors import OptionError
from spaseq.core.events import EventOptions
from spaseq.core.events.streams import in_one_batch
from spaseq.core.events.timestamps import TIME_COLUMNS, Part
from spaseq.core.queries.own_functions import OwnFunctions
from spaseq.core.snapshot import Identity, expect

if TYPE_CHECKING:
    pass

QUERY: Final = "query"
"""The column of the names of queries."""
_TOGETHER: Final = "the matches of a network's queries are events of others"


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The common needs of all queries: the first clause that needs times, and the functions that users registered."""

    timed: str
    own: OwnFunctions
    functions: tuple[str, ...]


class NetworkOfTables:
    """A network as `spaseq.spark.tuples.plan.TupleQuery` has queries. `run`: that of the network."""

    together: Final = _TOGETHER
    window_attribute: Final = None

    def __init__(self, members: tuple[NetworkMember, ...], identity: Identity, run: Callable[..., Any]) -> None:
        """Raises `OptionError` for a query whose name is that of the column of names."""
        for member in members:
            if member.reported and member.name.casefold() == QUERY:
                problem = f"a query has the name {member.name}, which is that of the column of names"
                raise OptionError(problem, "give the query another name")
        self.members = members
        self.identity: Identity = {**identity, "reported": ", ".join(m.name for m in members if m.reported)}
        self._run = run
        names = dict.fromkeys(name for member in members for name in member.query.functions)
        self.compiled: _Clauses = _Clauses(timed_clause(members), members[0].query.own, tuple(names))

    @property
    def text(self) -> str:
        """The queries with their names."""
        return " ".join(f"{member.name}: {member.query.text}" for member in self.members)

    @property
    def settings(self) -> Settings:
        """The budgets of each query: those of the first."""
        return self.members[0].query.settings

    def program(self) -> Program:
        """That of the first query; the others have their own windows."""
        return self.members[0].query.program()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that conditions, keys and windows read."""
        found = {name: None for member in self.members for name in member.query.attributes}
        windows = (member.query.lowered.window_attribute for member in self.members)
        return tuple(found | {name: None for name in windows if name is not None})

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows."""
        return (QUERY, *(member.name for member in self.members if member.reported))

    @cached_property
    def partition(self) -> tuple[tuple[str, ...], ...]:
        """The keys that divide the network; none if events of two keys may meet."""
        first = self.members[0].query.lowered.partition
        for member in self.members:
            lowered = member.query.lowered
            if lowered.partition != first or lowered.choice.consume is Consume.ANY:
                return ()
            if member.read and not all(_has_key(member, bracket) for bracket in first):
                return ()
        waiting = [member for member in self.members if member.read and member.query.lowered.around.waits]
        return first if all(is_timed(member.query) for member in waiting) else ()

    def stream_names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The one stream. `OptionError` for names of streams."""
        if given not in ((), ("",)):
            raise OptionError("the events of a network are of one stream", "give one DataFrame")
        return ("",)

    def run(self, events: Any, **reading: Any) -> _Checked:
        """The check of the queries against the columns of `events`, a table without rows."""
        return _Checked(self, events, reading)

    def in_order(self, names: tuple[str, ...], options: EventOptions, *, iso: bool) -> OrderedNetwork:
        """The matches over events that the caller has put in order."""
        return OrderedNetwork(self.members, names, options, iso)


def _has_key(member: NetworkMember, bracket: tuple[str, ...]) -> bool:
    """True if the row of a match has the key of its events, under the name of the bracket's first attribute."""
    named = [c for c in member.query.tree.selection.columns if column_name(c).casefold() == bracket[0].casefold()]
    return all(c.expression == ast.Attribute(bracket[0]) and column_name(c) == bracket[0] for c in named)


@dataclass(frozen=True, slots=True)
class _Checked:
    network: NetworkOfTables
    events: pa.Table
    reading: Mapping[str, Any]

    def to_arrow(self) -> pa.Table:
        """The table of no rows. Raises `QuerySemanticsError` for the first attribute, operation or clause that does not
        fit the columns, and `EventError` for columns that cannot be read."""
        list(self.network._run(self.events, **self.reading))
        options = EventOptions.parse(**self.reading)
        ordered = self.network.in_order(("",), options, iso=False)
        given = {field.name: field.type for field in self.events.schema}
        for member, (known, _) in zip(self.network.members, ordered.chain(given, pa.int64()), strict=True):
            kinds = {name: None if kind is None else arrow_kind(kind) for name, kind in known.items()}
            schema = Schema(kinds, source="the events")
            check_types(member.query.tree, schema, member.query.text, member.name)
        return self.events


class OrderedNetwork:
    """The matches of a network over events in order. Its methods are those of `ceql.runtime.ordered.OrderedMatches`."""

    def __init__(
        self, members: tuple[NetworkMember, ...], names: tuple[str, ...], options: EventOptions, iso: bool
    ) -> None:
        self._members = members
        self._names = names
        self._options = options
        self._evaluation = NetworkEvaluation(members, options, lambda: iso, [m.name for m in members if m.reported])
        self._type_column = options.type_column or "type"
        self._columns = tuple(member.name for member in members if member.reported)
        self._position = 0

    def types(self, attributes: Mapping[str, pa.DataType], times: pa.DataType) -> pa.Schema:
        """As of `OrderedMatches.types`; the column of a query is a struct of its rows."""
        rows = dict(
            zip((m.name for m in self._members), (rows for _, rows in self.chain(attributes, times)), strict=True)
        )
        return pa.schema([(QUERY, pa.string()), *((name, pa.struct(list(rows[name]))) for name in self._columns)])

    def chain(
        self, attributes: Mapping[str, pa.DataType], times: pa.DataType
    ) -> list[tuple[dict[str, pa.DataType | None], pa.Schema]]:
        """For each query the types of the attributes that its events have, None for one of several or unknown types,
        and the types of its rows."""
        made: list[tuple[dict[str, pa.DataType | None], pa.Schema]] = []
        for member, matches in zip(self._members, self._evaluation.matches, strict=True):
            known: dict[str, pa.DataType | None] = {self._type_column: pa.string(), **attributes}
            for number in member.feeds:
                for column in made[number][1]:
                    kind = None if pa.types.is_null(column.type) else column.type
                    known[column.name] = kind if known.get(column.name, kind) == kind else None
            made.append((known, matches.types({n: kind for n, kind in known.items() if kind is not None}, times)))
        return made

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that rows read."""
        return tuple(dict.fromkeys(name for one in self._evaluation.matches for name in one.attributes))

    @property
    def waits(self) -> int | None:
        """As of `OrderedMatches.waits`: the matches that one query waits for are events that others may wait behind."""
        lengths = [one.waits for one in self._evaluation.matches if one.waits is not None]
        return sum(lengths) if lengths else None

    def push(self, chunk: Sequence[Part]) -> Iterator[NetworkTable]:
        """The matches that the next events complete. `EventError` for events of a type that is a query."""
        events = in_one_batch(chunk, self._names, self._options, self._position)
        if len(events):
            self._position += len(events)
            clock = self._options.time or next((c for c in TIME_COLUMNS if c in events.table.column_names), None)
            yield from self._tables(self._evaluation.push(self._evaluation.check_types(events), clock))

    def close(self) -> Iterator[NetworkTable]:
        """The matches that the end of the stream completes."""
        yield from self._tables(self._evaluation.close())

    def wait_until(self, now: int) -> Iterator[NetworkTable]:
        """The matches that wait for nothing but the time `now` (ns), before which no event will come any more."""
        yield from self._tables(self._evaluation.wait_until(now))

    def _tables(self, found: NamedMatches) -> Iterator[NetworkTable]:
        for name, table in zip(found.names, found.tables, strict=True):
            yield NetworkTable(name, table, self._columns)

    def contents(self) -> dict[str, Any]:
        """The progress, as plain values."""
        return {"position": self._position, **self._evaluation.contents()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The opposite of `contents`, of the same network."""
        self._position = state["position"]
        expect(type(self._position) is int and 0 <= self._position < 1 << 61, "a place in the stream")
        self._evaluation.restore(state)


@dataclass(frozen=True, slots=True)
class NetworkTable(OverTable):
    """Matches of one query of a network. `columns`: the names of all queries that are reported."""

    name: str
    found: MatchTable
    columns: tuple[str, ...] = field(repr=False)

    def rows(self) -> pa.Table:
        """A row for each match."""
        rows = self.found.rows()
        count = len(rows)
        parts = [column.combine_chunks() for column in rows.columns]
        own = pa.StructArray.from_arrays(parts, names=rows.column_names) if parts else pa.array([{}] * count)
        named = {QUERY: pa.array([self.name] * count, pa.string())}
        return pa.table(named | {name: own if name == self.name else pa.nulls(count) for name in self.columns})
