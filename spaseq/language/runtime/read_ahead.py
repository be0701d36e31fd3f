"""Streams are read, and their GPMs evaluated: in one thread, or, once it is worth it, in some that work ahead."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from spaseq.core.events import Seen
from spaseq.core.events.ahead import Ahead, Crew
from spaseq.rdf import Counters, GraphBatch

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions, Unsolved

ALONE: Final = 2
"""Batches that one thread reads and solves before others are begun: about 130,000 triples, less than 0.1 s."""
_DEPTH: Final = 4
"""Batches of a stream that may be ahead."""
_MOST: Final = 2
"""Threads by default, at most."""

_T = TypeVar("_T")
_R = TypeVar("_R")
Solve = Callable[[GraphBatch], "MappingABC[str, Solutions | Unsolved]"]


class Opens(Protocol):
    """Gives the batches of a stream; pieces of its files may be read `ahead`."""

    def __call__(self, *, ahead: Ahead | None) -> Iterator[GraphBatch]: ...


@dataclass(frozen=True, slots=True)
class Part:
    """A stream, or a part of one, that is to be read: the function that opens its batches, and the counts so far.
    `ahead`: True if a thread may read it ahead."""

    open: Opens
    counters: Counters
    ahead: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """A batch, or None at the end of the part, with an error or not; and the counters of the input by then."""

    batch: GraphBatch | None
    counters: Counters
    error: Exception | None


def thread_count(given: int | None) -> int:
    """The number of threads to use: as many as given, else one for each processor of this process, up to two."""
    if given is not None:
        return max(1, given)
    try:
        processors = len(os.sched_getaffinity(0))
    except AttributeError:  # this system does not report it
        processors = os.cpu_count() or 1
    return min(processors, _MOST)


class ReadAhead:
    """The batches of some parts, with the values of the GPMs at their events, and their counts.

    `solve` gives the values; `helper` makes a function that does the same, for another thread. With one thread, or as
    long as there is little, a batch is read and solved when it is asked for. `counters` and `seen` count only the
    batches that have been taken, not those read ahead.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        solve: Solve,
        helper: Callable[[], Solve],
        counters: Counters,
        seen: Seen,
        threads: int,
    ) -> None:
        self._helpers = threads - 1 if all(part.ahead for part in parts) else 0
        self._steps = [_steps(part.open(ahead=self._map if part.ahead else None), part.counters) for part in parts]
        self._told = [Counters() for _ in parts]
        self._solve = solve
        self._helper = helper
        self._counters = counters
        self._seen = seen
        self._alone = ALONE
        self._crew: Crew[_Step, MappingABC[str, Solutions | Unsolved]] | None = None

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, *error: object) -> None:
        if self._crew is not None:
            self._crew.__exit__(*error)

    def streams(self) -> list[Iterator[tuple[GraphBatch, MappingABC[str, Solutions | Unsolved]]]]:
        """The solved batches of each part, in order. Errors are raised after the batches before them."""
        return [self._stream(place) for place in range(len(self._steps))]

    def _stream(self, place: int) -> Iterator[tuple[GraphBatch, MappingABC[str, Solutions | Unsolved]]]:
        while True:
            step, solved = self._next(place)
            self._count(place, step.counters)
            if step.error is not None:
                raise step.error
            if step.batch is None:
                return
            self._seen.add(step.batch.stream, len(step.batch))
            yield step.batch, _of_step(self._solve)(step) if solved is None else solved

    def _next(self, place: int) -> tuple[_Step, MappingABC[str, Solutions | Unsolved] | None]:
        """The next step of a part, and the values if they are known already."""
        if self._crew is None and self._helpers and not self._alone:
            self._crew = Crew(self._steps, _of_step(self._solve), lambda: _of_step(self._helper()),
                              threads=self._helpers, depth=_DEPTH)  # fmt: skip
        if self._crew is None:
            self._alone = max(0, self._alone - 1)
            return next(self._steps[place]), None
        taken = self._crew.take(place)
        assert taken is not None  # a step says that it is the last one
        return taken

    def _map(self, work: Callable[[_T], _R], source: Iterator[_T]) -> Iterator[_R]:
        """`map`; ahead as soon as there are threads."""
        while self._crew is None:
            try:
                item = next(source)
            except StopIteration:
                return
            yield work(item)
        yield from self._crew.mapped(work, source)

    def _count(self, place: int, counters: Counters) -> None:
        """Add the news in the counts of a part."""
        before, self._told[place] = self._told[place], counters
        for field in fields(Counters):
            more = getattr(counters, field.name) - getattr(before, field.name)
            setattr(self._counters, field.name, getattr(self._counters, field.name) + more)


def _steps(batches: Iterator[GraphBatch], counters: Counters) -> Iterator[_Step]:
    while True:
        batch, error = None, None
        try:
            batch = next(batches, None)
        except Exception as raised:
            error = raised
        yield _Step(batch, replace(counters), error)
        if batch is None:
            return


def _of_step(solve: Solve) -> Callable[[_Step], MappingABC[str, Solutions | Unsolved]]:
    return lambda step: solve(step.batch) if step.batch is not None and len(step.batch) else {}
