"""The end of an evaluation that events are pushed to: by `close`, or at the end of its `with` block.

Both complete the same matches. `close` returns them; the end of the block keeps them as `rest`. They are never lost
silently: if a session is deleted before they were taken, a warning gives their number.
"""

from __future__ import annotations

import warnings
import weakref
from types import TracebackType
from typing import Generic, Self, TypeVar

__all__ = ["Session"]

_T = TypeVar("_T")


class _Rest(Generic[_T]):
    """The matches that the end of the block completed, with a flag: true if the caller has taken them."""

    __slots__ = ("matches", "taken")

    def __init__(self, matches: list[_T]) -> None:
        self.matches = matches
        self.taken = not matches


class Session(Generic[_T]):
    """The common part of the sessions of both languages, and of alerts in progress: their end. `_T` is the type that a
    push returns."""

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
            if stopped == GeneratorExit.__name__:  # no error has reached the caller
                _warn("the matches of a push were not read to their end, so none of the end of the stream is known")
        else:
            self._rest = _Rest(self._complete())
            if self._rest.matches:
                weakref.finalize(self, _report, self._rest)

    @property
    def rest(self) -> list[_T]:
        """The matches that the end of the `with` block completed; none before, and none of those that `close`
        returned."""
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

    def _complete(self) -> list[_T]:
        """The matches that the end of the stream completes. Calls `_leave`."""
        raise NotImplementedError

    def _goes_on(self) -> bool:
        """True if a snapshot was taken and nothing has come since: the stream goes on in the evaluation opened from
        it."""
        raise NotImplementedError

    def _stopped(self) -> str:
        """The exception that stopped a call in the middle of its work; empty if none did."""
        raise NotImplementedError

    def _leave(self) -> None:
        """Take no more events."""
        self._closed = True


def _report(rest: _Rest[_T]) -> None:
    if not rest.taken:
        count = len(rest.matches)
        _warn(
            f"the end of the stream completed {'1 match that was' if count == 1 else f'{count:,} matches that were'} "
            "not taken: read session.rest behind the with block, or call session.close() at its end"
        )


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)
