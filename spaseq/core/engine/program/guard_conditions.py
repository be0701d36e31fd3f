"""The guards that lazy evaluators accept: conditions on tuples of events, in any order, checked column by column.

To the rest of the engine a guard is opaque: `Registers.take` sees events one after the other. Here events come in order
of frequency. So registers whose guards can be decided that way also have `conditions()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np


class Memory(Protocol):
    """The events that one evaluation keeps, as far as guards read them; numbered from 0, in order of arrival.

    Guards, batches and snapshots are those of one front end, which may give their types.
    """

    def append(self, batch: Any, rows: np.ndarray) -> None:
        """Keep these rows of `batch` too."""

    def drop(self, count: int) -> None:
        """Forget the first `count` events; the others are numbered anew from 0."""

    def keep(self, index: np.ndarray) -> None:
        """Forget all events but these, ascending; they are numbered anew from 0."""

    def test(self, guard: Any, events: Mapping[str, np.ndarray]) -> np.ndarray:
        """The truth of `guard` for each tuple: bool (n,), False if unknown. `events[variable]`: int64 (n,), the event
        that it takes."""

    def test_whole(self, guard: Any, events: Sequence[tuple[int, frozenset[str]]]) -> bool:
        """True if a guard holds of all events of a match, in order of position, each with the variables it takes."""

    @property
    def nbytes(self) -> int: ...

    def snapshot(self) -> Any:
        """The contents, as plain values and those of the front end."""

    def restore(self, state: Any, count: int) -> None:
        """The opposite of `snapshot`, of so many events."""


class Conditions(Protocol):
    """The guards of a pattern, as conditions."""

    def kind(self, guard: Any) -> str | None:
        """ "tuples": it holds for all choices of one event for each of its `variables`; "whole": it is about all
        events at once; None: neither."""

    def memory(self) -> Memory:
        """An empty memory."""

    def kind_of_values(self, batch: Any) -> str | None:
        """The kind of the values that guards read of a batch: on events of batches of one kind they refuse no pair. ""
        if they read nothing; None if a guard might refuse some."""


@runtime_checkable
class HasConditions(Protocol):
    """Registers whose guards are conditions as well."""

    def conditions(self) -> Conditions: ...
