"""The common interface of both languages: a query, its matches and an evaluation in progress.

`ceql.Query` and `spaseq.Query` are a `Query`. What they give are classes of their own that have these members with
these meanings, and some more. Code that takes either language is written against this module; one test holds both to it
(`tests/test_face.py`). Events differ: CEQL takes tuples (dicts, tables, files), SPAseq graphs (`spaseq.GraphEvent`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from spaseq.core.automata import CEA, Transition
from spaseq.core.automata.diagram import automaton_diagram
from spaseq.core.drawing import Picture, query_html
from spaseq.core.engine import Program, Settings
from spaseq.core.engine.light import give, light_of
from spaseq.core.held import Memory
from spaseq.core.measure import shorten
from spaseq.core.pattern import Pattern
from spaseq.core.queries.compiled import CompiledQuery
from spaseq.core.queries.own_functions import Entry
from spaseq.core.steps import Step

__all__ = ["Counters", "Match", "Matches", "Query", "Session", "Ways", "Written"]

Ways = Callable[[Sequence[Any]], Sequence[tuple[Transition, ...]]]
"""The way of each of some matches through the automaton."""


@runtime_checkable
class Written(Protocol):
    """An object that stands for the text of a query of CEQL, as those of `ceql.builder` do."""

    def __ceql__(self) -> str:
        """The text."""


class Match(Protocol):
    """A match: an interval of the stream, the positions that were taken there, and the meaning of each.

    Positions count the stream from 0: events in CEQL, instants (all graphs of one time) in SPAseq. Times are
    nanoseconds since the epoch, or since the first event if they come from arrival.
    """

    @property
    def start(self) -> int:
        """The position that the match begins at."""

    @property
    def end(self) -> int:
        """The position that it ends at."""

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions that were taken, ascending."""

    @property
    def times(self) -> tuple[int, ...]:
        """The times of `positions`."""

    @property
    def time(self) -> int:
        """The time that it ends at."""

    @property
    def bindings(self) -> dict[str, Any]:
        """The value of each variable: in CEQL the positions that it took (of valuations), in SPAseq an RDF term."""

    @property
    def events(self) -> Sequence[Any]:
        """The events that were taken, in order."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The part of the query that took each event: a variable in CEQL (of valuations), a GPM in SPAseq."""


class Counters(Protocol):
    """Counters of the input."""

    @property
    def events(self) -> int:
        """Events that were looked at."""

    @property
    def late(self) -> int:
        """Events that were dropped because they came too late."""

    @property
    def memory(self) -> Memory:
        """The memory that the evaluation holds, in bytes, by its use; and the numbers of keys and events held."""

    def warnings(self) -> list[str]:
        """A line for each kind of input that was lost; none if all was looked at."""


class Matches(Protocol):
    """The matches of a query over events, found during iteration. Iterating again reads the events again."""

    @property
    def counters(self) -> Counters:
        """The counters of the latest use."""

    @property
    def notes(self) -> Sequence[str]:
        """The assumptions of the latest use that no option stated: a line each, with the options that would state
        it."""

    def __iter__(self) -> Iterator[Match]: ...

    def __bool__(self) -> bool:
        """True if there is a match; reads no further than the first. This is the answer of an ASK."""

    def count(self) -> int:
        """The number of matches."""

    def to_arrow(self) -> pa.Table:
        """One row per match."""

    def to_pandas(self) -> Any:
        """`to_arrow` as a `pandas.DataFrame`."""

    def to_polars(self) -> Any:
        """`to_arrow` as a `polars.DataFrame`."""


class Session(Protocol):
    """An evaluation in progress: events are pushed to it in order of time, in a `with` or until `close`.

    The end of the block is the end of the stream: the matches that it completes are `rest`, or what `close` returns.
    """

    @property
    def counters(self) -> Counters:
        """The counters of the events pushed so far."""

    @property
    def notes(self) -> Sequence[str]:
        """As of `Matches`, for the events pushed so far."""

    def push(self, events: Any) -> Sequence[Match]:
        """The matches that these events complete. Raises an error for an object that is no event; then none is
        taken."""

    def advance(self, now: int | datetime) -> Sequence[Match]:
        """The matches that complete because no event before `now` (a datetime, or ns) will come any more."""

    def close(self) -> Sequence[Match]:
        """The matches that the end of the stream completes; closing again gives none."""

    @property
    def rest(self) -> Sequence[Match]:
        """The matches that the end of the `with` block completed."""

    def snapshot(self) -> bytes:
        """The state, for `Query.open` of the same query. As the last call in a `with`, it says that the stream goes on:
        then the end of the block completes nothing."""

    def __enter__(self) -> Session: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Query:
    """A query that has been parsed, checked and compiled. It never changes, and pickles as its text, with the functions
    of the user that it calls.

    `compiled` holds what evaluations are made of.
    """

    compiled: CompiledQuery

    def __init__(self, compiled: CompiledQuery) -> None:
        self.compiled = compiled

    def __reduce__(self) -> tuple[Any, ...]:
        compiled = self.compiled
        own = compiled.own.among(compiled.functions)
        return _compiled_again, (type(self), type(compiled), self.text, self.source, self.settings, own)

    @property
    def text(self) -> str:
        """The query as written."""
        return self.compiled.text

    @property
    def source(self) -> str:
        """What errors call it."""
        return self.compiled.source

    @property
    def settings(self) -> Settings:
        """The budgets of the engine."""
        return self.compiled.settings

    @property
    def pattern(self) -> Pattern:
        """The query as a pattern of the core."""
        return self.compiled.pattern

    @property
    def automaton(self) -> CEA:
        """The automaton of `pattern`."""
        return self.compiled.automaton

    def program(self) -> Program:
        """The automaton with its window and budgets, as the engine runs it."""
        return self.compiled.program()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is probably not meant: parts that no event can match, a query that reports nothing, doubtful words."""
        return self.compiled.warnings

    @property
    def advice(self) -> tuple[str, ...]:
        """What is probably not meant, though it can be run: events that nothing relates, slips. `check` of the commands
        says it."""
        return tuple(f"{self.source}: {line}" for line in self.compiled.advice)

    @property
    def growth(self) -> tuple[str, ...]:
        """What makes the memory of a run grow for ever, in words: nothing, for most queries with WITHIN."""
        return self.compiled.growth

    @property
    def run(self) -> Any:
        """`run(events, …)` gives the lazy `Matches` over events or, in SPAseq, over the files of streams."""
        raise NotImplementedError

    def open(self, state: bytes | None = None) -> Session:
        """An evaluation that events are pushed to; with a snapshot, it goes on where that was taken."""
        raise NotImplementedError

    @property
    def alive(self) -> Any:
        """`async for match in alive(source)`: the matches over a source, as they are found (`spaseq.live.Alive`)."""
        raise NotImplementedError

    def explain(self, format: str = "text") -> str:
        """How it is run, for people (`text`), its automaton as a picture (`dot`, `svg`), or both as `json`."""
        raise NotImplementedError

    def picture(self, run: Any = None) -> Picture:
        """The automaton as a drawing: `svg()`, `dot`, `save(path)`; a notebook shows it.

        `run` lights it up: the ways of matches with their numbers, and what no run came to. It is what `run(…)` gives,
        the events of which are read anew; or a match, or a list of matches, which tell their own ways alone. Drawn are
        the ways of the first 200. Raises `OptionError` for anything else, and for events that can be read only once.
        """
        if run is None:
            return Picture(automaton_diagram(self.automaton))
        of = give(run)
        automaton, ways = self.ways(of)
        return Picture(automaton_diagram(automaton, light_of(of, ways)))

    def ways(self, run: Any) -> tuple[CEA, Ways]:
        """The automaton of a run, or of a list of matches, and the ways of matches through it."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return query_html(self.text, self.warnings, self.picture())

    def __repr__(self) -> str:
        return f"<{type(self).__module__.partition('.')[0]}.Query {shorten(self.text, 60)!r}>"


def _compiled_again(
    query: Any, compiled: Any, text: str, source: str, settings: Settings, own: tuple[tuple[str, Entry], ...]
) -> Any:
    compiled.own.take(own)
    return query(compiled(text, source, settings))
