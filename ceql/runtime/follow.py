"""The matches of a query over a stream that goes on: `ceql run --follow`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from ceql.results.matches import MatchTable, count_rows
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.evaluation import Matches, asked_of
from ceql.runtime.run import Run
from spaseq.core.errors import OptionError
from spaseq.core.events import EventBatch, GrowingFile, TupleWords
from spaseq.core.events.growing import clock_length
from spaseq.core.events.options import Duration
from spaseq.core.watch import check


class FollowedMatches(Matches):
    """Matches as their stream goes on: iterating blocks until there is one. Can be iterated once.

    Each match comes with the event that completes it; one that waits for its window comes with an event behind that, or
    by the clock. A stream has an end only if it is standard input.
    """

    _left: int | None = 0

    def held_back(self) -> int | None:
        """For an interrupted evaluation: the number of matches that the end of the stream would have completed then.

        None if that is not known, because it did not wait for events.
        """
        return self._left

    def __bool__(self) -> bool:
        problem = "a stream that goes on is read once, so its matches are neither true nor false"
        raise OptionError(problem, "iterate over the matches; count(1) waits for one")

    def _repr_html_(self) -> str:
        return "<p>matches over a stream that goes on: none is shown here</p>"

    def count(self, limit: int | None = None) -> int:
        """The number of matches once there are `limit`, or once the stream has ended."""
        return count_rows(self.tables(), limit)

    def _tables(self) -> Iterator[MatchTable]:
        if self._used:
            raise OptionError("a stream that goes on is read once", "call follow again, which reads it from its start")
        run, stream = self.begin_as_it_comes()
        bindings = self._query.bindings(self._valuations, self._schema)
        computing = self._query.computing(self.form_of_times(), self._schema)
        for events in self._read(stream, run):
            check()
            found = run.wait_until(events) if isinstance(events, int) else run.advance(events)
            for matches, history in found:
                yield MatchTable.of(matches, history, bindings, computing)
        for rest, history in run.close():
            yield MatchTable.of(rest, history, bindings, computing)

    def _read(self, stream: Iterator[EventBatch | int], run: Run) -> Iterator[EventBatch | int]:
        """The batches and times. If an interrupt comes while one is waited for, the matches that wait are counted."""
        try:
            while (events := next(stream, None)) is not None:
                self._left = None
                yield events
        except KeyboardInterrupt:
            self._left = run.count(None)
            raise
        self._left = 0


def follow(
    query: CompiledQuery,
    events: Any = None,
    *,
    streams: Mapping[str, Any] | None = None,
    types: Mapping[str, Any] | None = None,
    clock: Duration | None = None,
    valuations: bool = False,
    schema: Any = None,
    **reading: Unpack[TupleWords],
) -> FollowedMatches:
    """The matches over a stream that goes on. Arguments and errors: those of `ceql.query.Query.follow`."""
    sources, options, shows, declared = asked_of(
        query, events, streams=streams, types=types, valuations=valuations, schema=schema, **reading
    )
    behind = None if clock is None else clock_length(clock)
    growing = {name: growing_source(source, behind) for name, source in sources.items()}
    return FollowedMatches(query, growing, options, shows, declared)


def growing_source(source: Any, clock: int | None) -> GrowingFile:
    """A path that is read as it grows, `clock` ns behind. `OptionError` if it is something else."""
    if isinstance(source, GrowingFile):
        return source
    if isinstance(source, list | tuple) and all(isinstance(path, str | os.PathLike) for path in source):
        hint = "a folder may get several, in the order of their names; streams, and types, are read side by side"
        raise OptionError("one file is followed, or one for each stream", hint)
    if not isinstance(source, str | os.PathLike):
        problem = f"a {type(source).__name__} is no file that grows"
        raise OptionError(problem, "give a path, a folder or -; open() takes events that are pushed")
    return GrowingFile(os.fspath(source), clock=clock)
