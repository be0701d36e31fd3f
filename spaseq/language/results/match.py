"""A match, as a query's user sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spaseq.core.automata.cea import Transition
from spaseq.core.drawing import match_html
from spaseq.core.errors import OptionError
from spaseq.core.snapshot import expect
from spaseq.core.steps import Step
from spaseq.gpm import Template
from spaseq.language.results.history import Events, Made, Pool
from spaseq.rdf import GraphEvent, Term, hash_of_terms


@dataclass(frozen=True, slots=True)
class Match:
    """A match: one per interval, set of positions and projected mapping.

    `start`, `end` and `positions` count instants of the streamset from 0; `positions` are those that were taken.
    `bindings` maps the selected variables that are bound to RDF terms. `times` are the positions' times, nanoseconds.
    `events` are the graph events at the positions (all streams), empty if the run was set not to keep events. They are
    made on first use, from their batches, which a match keeps until then.
    """

    start: int
    end: int
    positions: tuple[int, ...]
    bindings: dict[str, Any]
    times: tuple[int, ...]
    events: Sequence[GraphEvent]

    def _repr_html_(self) -> str:
        return match_html(self)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The GPM that took each event, by position, computed anew at each access.

        Raises `OptionError` if the events are not known: the run was set not to keep them, or the match was pickled or
        is one of Spark's.
        """
        events = self._known_events()
        if events is None:
            hint = "matches of run(…) and open(…) know their events, unless keep_events=False"
            raise OptionError("this match does not know its events", hint)
        steps: tuple[Step, ...] = events.teller.steps(self, events.instants)
        return steps

    @property
    def way(self) -> tuple[Transition, ...]:
        """Its way through the automaton of the query, worked out anew; an empty one where its events are not known."""
        events = self._known_events()
        way: tuple[Transition, ...] = () if events is None else events.teller.way(self, events.instants)
        return way

    def _known_events(self) -> Events | None:
        """The events, if its steps can be found in them."""
        events = self.events
        return events if isinstance(events, Events) and events and events.teller is not None else None

    def snapshot(self, pool: Pool) -> tuple[Any, ...]:
        """The match as plain values and terms; its events are put into `pool`."""
        return self.start, self.end, self.positions, self.bindings, self.times, pool.put(self.events)

    @staticmethod
    def restore(state: tuple[Any, ...], events: Made) -> Match:
        """The opposite of `snapshot`; `events` gives those of the pool."""
        start, end, positions, bindings, times, numbers = state
        expect(all(type(x) is int for x in (start, end, *positions, *times)), "positions and times of a match")
        expect(type(bindings) is dict and len(positions) == len(times) > 0, "a time for each position")
        expect(all(map(_is_bound, bindings.values())), "terms of the variables")
        return Match(start, end, positions, bindings, times, events(numbers))

    @property
    def time(self) -> int:
        """The time of the solution: that of the last matched instant, in nanoseconds (Definition 16)."""
        return self.times[-1]


def expect_template(template: Template | None) -> Template:
    """The template of a CONSTRUCT. Raises `OptionError` if the query has none."""
    if template is None:
        raise OptionError("the query constructs no graph", "write CONSTRUCT { … } in place of SELECT")
    return template


def graph_of(match: Match, template: Template) -> tuple[Any, ...]:
    """The triples that CONSTRUCT makes of a match. Blank nodes of the template are those of this match."""
    return template.graph(match.bindings, hash_of_terms(match.bindings, match.times + match.positions))


def _is_bound(value: Any) -> bool:
    """True for a term, and for the mappings of rounds: of each its variables with their terms."""
    if isinstance(value, Term):
        return True
    return type(value) is tuple and all(type(taken) is tuple and all(map(_is_pair, taken)) for taken in value)


def _is_pair(pair: Any) -> bool:
    return type(pair) is tuple and len(pair) == 2 and type(pair[0]) is str and isinstance(pair[1], Term)
