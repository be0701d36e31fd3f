"""The matches of a query over streams that go on: `spaseq run --follow`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from spaseq.core.errors import OptionError
from spaseq.core.held import Memory
from spaseq.core.watch import check, limited_steps
from spaseq.language.runtime.session import GraphSession
from spaseq.language.runtime.unmatched import Input
from spaseq.rdf import ARRIVAL, Counters, Followed, StreamOptions, guessed_events

_T = TypeVar("_T")


class FollowedMatches(Generic[_T]):
    """Matches as their streams go on: iterating blocks until there is one. Can be iterated once.

    With time from arrival the clock runs on while nothing comes, so windows close and absences are reported by it. With
    stated times it does so if `followed` has a clock; else an instant is complete when an event of a later time comes.
    Ends as `spaseq.rdf.Followed` ends, or behind the first match if the query is an ASK.
    """

    def __init__(
        self,
        followed: Followed,
        open_session: Callable[[StreamOptions], GraphSession[_T]],
        read: Input,
        *,
        ask: bool = False,
    ) -> None:
        self._followed = followed
        self._read = read
        self._session = open_session(replace(followed.options, lateness=0))  # `followed` puts them in order
        self._ask = ask
        self._pushing = False

    @property
    def counters(self) -> Counters:
        """The counts of the input so far."""
        counters = self._followed.counters
        counters.about(self)
        return counters

    def held(self) -> Memory:
        """The memory of the evaluation: `counters.memory`."""
        return self._session.held()

    def held_back(self) -> int | None:
        """For an interrupted evaluation, which this ends: the number of matches that its end would complete now.

        None if that is not known, because it did not wait for events.
        """
        if self._pushing:
            return None
        return len([*self._session.push_batches(self._followed.rest()), *self._session.close()])

    def why_none(self) -> list[str]:
        """As `Matches.why_none`."""
        read = replace(self._read, chosen=self._followed.options, seen=self._followed.seen)  # whose clock counts
        return self._session.why_none(read)

    @property
    def notes(self) -> tuple[str, ...]:
        """As of `Matches.notes`, but for times: with those from arrival, the clock counts."""
        return (*self._session.notes, *guessed_events(self._followed.there, self._read.chosen))

    def __iter__(self) -> Iterator[_T]:
        try:
            for match in self._matches():
                yield match
                if self._ask:
                    return
        finally:
            self._followed.stop()

    def __bool__(self) -> bool:
        """The answer of an ASK, once it is known. Raises `OptionError` for other queries: a match would be lost."""
        if not self._ask:
            problem = "streams that go on are read once, so their matches are neither true nor false"
            raise OptionError(problem, "iterate over the matches, or ask by a query of the form ASK")
        return next(iter(self), None) is not None

    def _matches(self) -> Iterator[_T]:
        return limited_steps(self._find(), self._session.evaluation.settings)

    def _find(self) -> Iterator[_T]:
        by_clock = self._followed.options.time == ARRIVAL or self._followed.clock is not None
        whole = self._followed.options.on_late is not None
        for batches in self._followed.batches(None if whole else self._session.evaluation.wanted):
            check()
            self._pushing = True
            if batches is not None:
                yield from self._session.push_batches(batches)
            elif by_clock:
                yield from self._session.advance(self._followed.now)
            self._pushing = False
        yield from self._session.close()
