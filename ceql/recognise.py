"""Does the query match now? ASK and alerts: answered event by event, in one pass, without enumerating matches.

A query whose pattern is in the bounded fragment (seed RMA, Definition 3.2) is turned into a register match automaton;
`spaseq.automata.rma.bridge` says what is outside, and so does the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ceql.lower import Lowered
from ceql.predicates import TypeIs
from ceql.query import Query
from ceql.run import EngineBatch
from spaseq.automata.rma import RMA, Limits, Recogniser, count_events, determinise, from_pattern
from spaseq.engine import Choice, Selection
from spaseq.errors import UnsupportedFeature
from spaseq.events import Summary
from spaseq.pattern import Predicate

if TYPE_CHECKING:
    from spaseq.events import EventBatch

__all__ = ["Alerts", "QueryRows", "alerts"]


@dataclass(frozen=True, slots=True)
class QueryRows(EngineBatch):
    """What the recogniser reads; predicates read the same."""

    def getter(self, name: str) -> Callable[[int], Any]:
        return self.events.getter(name)

    def event(self, row: int) -> Mapping[str, Any]:
        return self.events.event(row)


class Alerts:
    """The events at which a query matches. `automaton` is what recognises them."""

    def __init__(self, query: Query, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        _check(query._lowered)
        self._query = query
        self._limits = limits
        self.automaton: RMA = from_pattern(query.pattern, _group)
        self.summary = Summary()
        """Counts of the events that were read last."""

    def run(self, events: Any = None, **options: Any) -> Iterator[int]:
        """The positions at which some match ends, in order. Arguments are those of `Query.run`."""
        for batch, found in self.answers(events, **options):
            yield from batch.positions[found].tolist()

    def ask(self, events: Any = None, **options: Any) -> bool:
        """Whether there is a match at all; reads no further than the batch that completes the first."""
        return any(found.any() for _, found in self.answers(events, **options))

    def count(self, events: Any = None, **options: Any) -> int:
        """At how many events some match ends."""
        return sum(int(found.sum()) for _, found in self.answers(events, **options))

    def answers(self, events: Any = None, **options: Any) -> Iterator[tuple[EventBatch, np.ndarray]]:
        """Each batch of events with the answers: bool (n,), whether a match ends at the event."""
        recogniser = Recogniser(self.automaton, self._query._lowered.window, limits=self._limits)
        for rows in self.rows(events, **options):
            yield rows.events, recogniser.push(rows)

    def rows(self, events: Any = None, **options: Any) -> Iterator[QueryRows]:
        """The batches as a recogniser takes them, and a `SingleRun` and `spaseq.forecast`."""
        matches = self._query.run(events, **options)
        run, stream = matches._begin()
        self.summary = matches.summary
        for batch in stream:
            rows = run._batch(batch)
            yield QueryRows(rows.events, rows.positions, rows.times, rows.keys)

    def deterministic(self) -> RMA:
        """The complete output-agnostic deterministic automaton of the query in its window (seed RMA §6).

        The window must be of events, or none. Raises `UnsupportedFeature`, and `BudgetExceeded` as `determinise`."""
        window, automaton = self._query._lowered.window, self.automaton
        if window.kind not in ("none", "events"):
            raise UnsupportedFeature("a window of time has no deterministic automaton", hint="WITHIN n EVENTS has one")
        if window.kind == "events":
            automaton = count_events(automaton, int(window.size) + 1, limits=self._limits)
        return determinise(automaton, output_agnostic=True, complete=True, limits=self._limits)


def _group(predicate: Predicate) -> str | None:
    """An event has one type."""
    return "type" if isinstance(predicate, TypeIs) else None


def alerts(query: Query, *, limits: Limits = Limits()) -> Alerts:  # noqa: B008 - frozen
    """The recogniser of a query. Raises `UnsupportedFeature` for what has no register match automaton."""
    return Alerts(query, limits)


def _check(lowered: Lowered) -> None:
    """Which events complete a match must not depend on which matches are chosen."""
    if lowered.strict:
        raise _outside("SELECT STRICT")
    if lowered.absent is not None:
        raise _outside("NOT at the end")
    choice = Choice(Selection.ALL, limit=lowered.choice.limit)
    if lowered.choice not in (choice, Choice(Selection.ANY, limit=lowered.choice.limit)):
        raise _outside("a selection that leaves matches out, or consumption,")


def _outside(what: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{what} has no register match automaton", hint="leave it out, or use Query.run")
