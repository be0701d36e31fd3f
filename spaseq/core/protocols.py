"""The face that both languages show: what a query, its matches and an evaluation in progress are.

`ceql.Query` and `spaseq.Query`, and what they give, are classes of their own that have these members with these
meanings, and some more. Code that takes either language is written against the protocols; one test holds both to them
(`tests/test_face.py`). Events differ: CEQL takes tuples (dicts, tables, files), SPAseq graphs (`spaseq.GraphEvent`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa

from spaseq.core.automata import CEA
from spaseq.core.drawing import Picture
from spaseq.core.engine import Settings
from spaseq.core.held import Memory
from spaseq.core.pattern import Pattern
from spaseq.core.steps import Step

__all__ = ["Counters", "Match", "Matches", "Query", "Session"]


class Match(Protocol):
    """A match: an interval of the stream, the positions that were taken there, and what they were taken as.

    Positions count the stream from 0: events in CEQL, instants (all graphs of one time) in SPAseq. Times are
    nanoseconds since the epoch, or since the first event where they come from arrival.
    """

    @property
    def start(self) -> int:
        """The position that the match begins at."""
        ...

    @property
    def end(self) -> int:
        """The position that it ends at."""
        ...

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions that were taken, ascending."""
        ...

    @property
    def times(self) -> tuple[int, ...]:
        """The times of `positions`."""
        ...

    @property
    def time(self) -> int:
        """The time that it ends at."""
        ...

    @property
    def bindings(self) -> dict[str, Any]:
        """By variable what it stands for: in CEQL the positions that it took (of valuations), in SPAseq an RDF term."""
        ...

    @property
    def events(self) -> Sequence[Any]:
        """The events that were taken, in order."""
        ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """Which part of the query took which event: a variable in CEQL (of valuations), a GPM in SPAseq."""
        ...


class Counters(Protocol):
    """What became of the input."""

    @property
    def events(self) -> int:
        """Events that were looked at."""
        ...

    @property
    def late(self) -> int:
        """Events that were dropped because they came too late."""
        ...

    @property
    def memory(self) -> Memory:
        """What the evaluation holds in memory, in bytes, by what it is for; how many keys and events these are."""
        ...

    def warnings(self) -> list[str]:
        """A line for each kind of input that was lost; none if all was looked at."""
        ...


class Matches(Protocol):
    """The matches of a query over events, found as they are asked for. Iterating again reads the events again."""

    @property
    def counters(self) -> Counters:
        """What was read in the latest use."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What was guessed in the latest use, as nobody said it: a line each, with the options that say it."""
        ...

    def __iter__(self) -> Iterator[Match]: ...

    def __bool__(self) -> bool:
        """True if there is a match; reads no further than the first. This is the answer of an ASK."""
        ...

    def count(self) -> int:
        """How many matches there are."""
        ...

    def to_arrow(self) -> pa.Table:
        """One row per match."""
        ...

    def to_pandas(self) -> Any:
        """`to_arrow` as a `pandas.DataFrame`."""
        ...


class Session(Protocol):
    """An evaluation in progress: events are pushed to it in order of time, in a `with` or until `close`.

    The end of the block is the end of the stream: the matches that it completes are `rest`, or what `close` returns.
    """

    @property
    def counters(self) -> Counters:
        """What was pushed so far."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """As of `Matches`, of what was pushed so far."""
        ...

    def push(self, events: Any) -> Sequence[Match]:
        """The matches that these events complete. Raises an error for what is no event; then none is taken."""
        ...

    def advance(self, now: int) -> Sequence[Match]:
        """The matches that complete because no event before `now` (ns) will come any more."""
        ...

    def close(self) -> Sequence[Match]:
        """The matches that the end of the stream completes; closing again gives none."""
        ...

    @property
    def rest(self) -> Sequence[Match]:
        """The matches that the end of the `with` block completed."""
        ...

    def snapshot(self) -> bytes:
        """The state, for `Query.open` of the same query. As the last call in a `with`, it says that the stream goes on:
        then the end of the block completes nothing."""
        ...

    def __enter__(self) -> Session: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Query(Protocol):
    """A query that has been parsed, checked and compiled. It never changes, and pickles as its text."""

    @property
    def text(self) -> str:
        """As it was written."""
        ...

    @property
    def source(self) -> str:
        """What errors call it."""
        ...

    @property
    def settings(self) -> Settings:
        """The budgets of the engine."""
        ...

    @property
    def pattern(self) -> Pattern:
        """What it means to the engine."""
        ...

    @property
    def automaton(self) -> CEA:
        """What the engine makes of `pattern`."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its author may have overlooked."""
        ...

    @property
    def advice(self) -> tuple[str, ...]:
        """What is probably not meant, though it can be run; `check` of both commands says it."""
        ...

    @property
    def growth(self) -> tuple[str, ...]:
        """What makes the memory of a run grow for ever, in words."""
        ...

    def explain(self, format: str = "text") -> str:
        """How it is run, for people (`text`), its automaton as a picture (`dot`, `svg`), or both as `json`."""
        ...

    def picture(self, run: Any = None) -> Picture:
        """The automaton as a drawing: `svg()`, `dot`, `save(path)`; a notebook shows it. Lit by `run`: what `run(…)`
        gives, a match, or a list of matches."""
        ...

    @property
    def run(self) -> Any:
        """`run(events, …)` gives the lazy `Matches` over events or, in SPAseq, over the files of streams."""
        ...

    def open(self, state: bytes | None = None) -> Session:
        """An evaluation that events are pushed to; with a snapshot, it goes on where that was taken."""
        ...
