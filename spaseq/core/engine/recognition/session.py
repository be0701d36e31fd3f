"""An evaluation that events are pushed to, one call at a time, until `close` or the end of its `with` block.

Both ways to end complete the same matches. `close` returns them; a block that is left keeps them as `rest`. They are
never lost silently: if a session goes while they were not taken, a warning gives their number.
"""

from __future__ import annotations

import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.growing import time_by_clock
from spaseq.core.events.time import nanoseconds_of
from spaseq.core.snapshot import Kind, seal
from spaseq.core.watch import InUse

_T = TypeVar("_T")
_B = TypeVar("_B")


class _Rest(Generic[_T]):
    """The matches that leaving the block completed, and True once the caller has taken them."""

    __slots__ = ("matches", "taken")

    def __init__(self, matches: list[_T]) -> None:
        self.matches = matches
        self.taken = not matches


class Ending(ABC, Generic[_T]):
    """The end of pushing, for sessions of both languages and alerts. A push returns a list of `_T`."""

    def __init__(self) -> None:
        self._closed = False
        self._rest: _Rest[_T] = _Rest([])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the stream, unless an exception leaves the block or a snapshot was the last call: then it goes on."""
        if self._closed:
            return
        if kind is not None or self._goes_on():
            self._leave()
        elif stopped := self._stopped():
            self._leave()
            if stopped == GeneratorExit.__name__:  # no error has notified the caller
                _warn("the matches of a push were not read to their end, so none of the end of the stream is known")
        else:
            self._rest = _Rest(self._complete())
            if self._rest.matches:
                weakref.finalize(self, _report, self._rest)

    @property
    def rest(self) -> list[_T]:
        """The matches that the end of the `with` block completed; none before, and none that `close` returned."""
        self._rest.taken = True
        return self._rest.matches

    def close(self) -> list[_T]:
        """End the stream, and return the matches that its end completes. Behind a `with` block these are its `rest`,
        unless that was read; closing again returns none."""
        if not self._closed:
            return self._complete()
        if self._rest.taken:
            return []
        return self.rest

    @abstractmethod
    def _complete(self) -> list[_T]:
        """The matches that the end of the stream completes. Calls `_leave`."""

    @abstractmethod
    def _goes_on(self) -> bool:
        """True if a snapshot was taken and nothing has come since: the stream goes on where that is opened."""

    @abstractmethod
    def _stopped(self) -> str:
        """The exception that stopped a call in the middle of its work; empty if none did."""

    def _leave(self) -> None:
        """Take no more events."""
        self._closed = True


class Session(Ending[_T]):
    """The common part of both languages' sessions: one call at a time, the refusals of a closed session, and snapshots.

    `settings` has the limits of time and memory of each call.
    """

    _KINDS: ClassVar[tuple[Kind, ...]]
    """Of the values that a snapshot has beside plain ones."""
    _OVER: ClassVar[tuple[str, ...]]
    """The error of a call behind the end: problem and hint."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self._use = InUse(settings)
        self._saved: int | None = None

    def advance(self, now: int | datetime) -> list[_T]:
        """The matches that complete because no event before `now` (a datetime, or ns) will come any more. Absences at
        the end of a query are known as their windows close; events held back for their order are evaluated. An event
        before `now` that comes all the same is late."""
        now = nanoseconds_of(now)
        with self._use:
            self._check_open()
            self._saved = None
            return self._wait_until(now)

    def advance_by_clock(self, behind: int) -> list[_T]:
        """The matches that complete because the machine's clock goes on while nothing comes: `advance` to its time,
        `behind` ns earlier. None before the first event. `OptionError` if the events have no times of a clock."""
        with self._use:
            self._check_open()
            last, column = self._latest_time()
        if last is None:
            return []
        return self.advance(time_by_clock(behind, last, column))

    def snapshot(self) -> bytes:
        """The state of the evaluation, for `Query.open`. `OptionError` for values that no snapshot holds."""
        blob = seal(self._identity(), self.contents(), self._KINDS)
        self._saved = self._taken
        return blob

    def contents(self) -> dict[str, Any]:
        """The state as plain values and those of a front end, as a snapshot has them."""
        with self._use:
            self._check_open()
            return self._contents()

    def _join(self, batches: Iterable[_B], evaluate: Callable[[_B], Iterable[_T]]) -> list[_T]:
        """The results of `evaluate` for all batches. If it refuses an event, no other call can be: of several runs some
        have taken the batch. A batch that cannot be made leaves the session as it was."""
        found: list[_T] = []
        for batch in batches:
            try:
                found += evaluate(batch)
            except EventError as error:
                self._use.spoil(type(error))
                raise
        return found

    def _complete(self) -> list[_T]:
        with self._use:
            return self._finish()

    def _goes_on(self) -> bool:
        return self._saved is not None and self._saved == self._taken

    def _stopped(self) -> str:
        return self._use.broken

    def _check_open(self) -> None:
        if self._closed:
            raise OptionError(*self._OVER)

    @property
    @abstractmethod
    def _taken(self) -> int:
        """The number of events pushed."""

    @abstractmethod
    def _wait_until(self, now: int) -> list[_T]:
        """The matches that complete because no event before `now` (ns) will come any more."""

    @abstractmethod
    def _latest_time(self) -> tuple[int | None, str | None]:
        """The greatest time of the events, None before the first, and the column or predicate that times are in."""

    @abstractmethod
    def _finish(self) -> list[_T]:
        """The matches that the end of the stream completes. Calls `_leave`."""

    @abstractmethod
    def _identity(self) -> Mapping[str, str]:
        """The query that a snapshot belongs to."""

    @abstractmethod
    def _contents(self) -> dict[str, Any]:
        """The state of the evaluation, its session included."""


def _report(rest: _Rest[_T]) -> None:
    if not rest.taken:
        count = len(rest.matches)
        _warn(
            f"the end of the stream completed {'1 match that was' if count == 1 else f'{count:,} matches that were'} "
            "not taken: read session.rest behind the with block, or call session.close() at its end"
        )


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)
