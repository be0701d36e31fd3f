"""Work ahead of the consumer: threads read and process items before the consumer asks for them."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from spaseq.core.watch import Stopped, check, handed_on

T = TypeVar("T")
R = TypeVar("R")
_DEPTH: Final = 2
THREAD: Final = "spaseq ahead"
"""The name of a thread of a crew."""
_PATIENCE: Final = 0.05
"""Seconds between two looks at limits while there is nothing to do but wait."""


class Ahead(Protocol):
    """A function with the results of `map` over one iterator; it may work ahead of its caller, in several threads."""

    def __call__(self, work: Callable[[T], R], source: Iterator[T], /) -> Iterator[R]: ...


def ahead(make: Callable[[], Iterator[T]], depth: int = _DEPTH) -> Iterator[T]:
    """The items of `make()`, in order; a thread keeps up to `depth` items waiting.

    An error of `make()` is raised here, behind the items before it. If the caller stops early, the thread ends with the
    item it is at, and the iterator is closed.
    """

    def items() -> Iterator[T]:
        yield from make()

    with Crew[T, None]([items()], None, None, threads=1, depth=depth) as crew:
        while (item := crew.take(0)) is not None:
            yield item[0]


def ahead_or_none(make: Callable[[], Iterator[T]], seconds: float, waits: Callable[[], bool]) -> Iterator[T | None]:
    """The items of `make()` as `ahead` gives them, and None for every `seconds` in which it `waits` and none comes.

    `make()` calls `spaseq.core.watch.check` where it waits, which ends its thread.
    """

    def items() -> Iterator[T]:
        yield from make()

    with Crew[T, None]([items()], None, None, threads=1) as crew:
        while True:
            while not crew.is_ready(0, seconds):
                if waits() and not crew.is_ready(0, 0.0):  # in this order: what is read now comes behind
                    yield None
            item = crew.take(0)
            if item is None:
                return
            yield item[0]


class _Item:
    """An item of a source, and the `work` of its line. `claimed`: a thread is working on it, or has done so. `done`:
    the result is there, or an error."""

    __slots__ = ("claimed", "done", "ended", "error", "result", "value", "work")

    def __init__(self, work: Callable[[Any], Any] | None) -> None:
        self.work = work
        self.value: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = False
        self.claimed = False
        self.done = False


class _Line:
    """A source, and its items that no thread has taken yet. One thread at a time is `reading`. `work` is the work on
    each item, if it is the same for every thread."""

    __slots__ = ("ended", "items", "reading", "source", "work")

    def __init__(self, source: Iterator[Any], work: Callable[[Any], Any] | None = None) -> None:
        self.source = source
        self.work = work
        self.items: deque[_Item] = deque()
        self.reading = False
        self.ended = False


class Crew(Generic[T, R]):
    """Threads that read `sources` and process each item ahead of the thread that takes the results.

    One thread at a time reads a source, in order, up to `depth` items ahead. Any thread may process an item with
    `work`. The crew starts `threads` threads, each with a `work` of its own from `helper`. A thread that waits in
    `take` reads and processes items too. Without `work` items are not processed, and `take` only waits. The items of a
    source and their order do not depend on which thread does what. The limits of the thread that makes a crew hold for
    all of it (`spaseq.core.watch`).

    If a source, or the work on an item, raises an error, `take` raises it when it comes to that item. This also ends
    the source. At the end of `with` each thread stops after its current item or at its next `check`, and the sources
    are closed.
    """

    def __init__(
        self,
        sources: Sequence[Iterator[T]],
        work: Callable[[T], R] | None,
        helper: Callable[[], Callable[[T], R]] | None,
        *,
        threads: int,
        depth: int = _DEPTH,
    ) -> None:
        self._lines: list[_Line] = [_Line(source) for source in sources]
        self._work = work
        self._helper = helper
        self._depth = depth
        self._changed = threading.Condition()
        self._stopped = False
        begin = handed_on(lambda: self._stopped)
        self._threads = [
            threading.Thread(target=self._help, args=(begin,), name=THREAD, daemon=True) for _ in range(threads)
        ]
        _at_work.add(self)
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Crew[T, R]:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        for line in list(self._lines):  # a source that is closed may close another
            close = getattr(line.source, "close", None)
            if close is not None:
                close()

    def stop(self) -> None:
        """End the threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        _at_work.discard(self)

    def take(self, place: int) -> tuple[T, R] | None:
        """The next item of a source and the result of the work on it; None at the end."""
        return self._take(self._lines[place])

    def is_ready(self, place: int, seconds: float) -> bool:
        """True once `take` need not wait; False if it must after so many seconds."""
        line = self._lines[place]
        with self._changed:
            return self._changed.wait_for(lambda: bool(line.items and line.items[0].done), seconds)

    def wait(self, seconds: float) -> None:
        """Wait until something has changed, at most so many seconds."""
        with self._changed:
            self._changed.wait(seconds)

    def mapped(self, work: Callable[[Any], Any], source: Iterator[Any]) -> Iterator[Any]:
        """`map` over another `source`, for a source of this crew to read from.

        The items of `source` are read and processed by any thread, ahead as well. The thread that waits here does
        nothing else meanwhile.

        An error of `source` or of `work` is raised here, behind the items before it.
        """
        line = _Line(source, work)
        with self._changed:
            self._lines.append(line)
            self._changed.notify_all()
        try:
            while (found := self._take(line)) is not None:
                yield found[1]
        finally:
            with self._changed:
                self._lines.remove(line)

    def _take(self, line: _Line) -> tuple[Any, Any] | None:
        while True:
            with self._changed:
                while not (line.items and line.items[0].done):
                    if line.ended and not line.items:
                        return None
                    job = None if self._work is None else self._job(line, alone=line.work is not None)
                    if job is not None:
                        break
                    self._changed.wait(_PATIENCE)
                    check()
                else:
                    item = line.items.popleft()
                    self._changed.notify_all()
                    if item.error is not None:
                        line.items.clear()
                        raise item.error
                    if item.ended:
                        return None
                    return item.value, item.result
            assert self._work is not None
            self._do(job, self._work)

    def _help(self, begin: Callable[[], None]) -> None:
        own: list[Callable[[T], R]] = []

        def work(value: T) -> R:
            if not own:
                assert self._helper is not None
                own.append(self._helper())
            return own[0](value)

        begin()
        with contextlib.suppress(Stopped):
            while True:
                with self._changed:
                    job = self._job(None)
                    while job is None and not self._stopped:
                        self._changed.wait()
                        job = self._job(None)
                    if job is None or self._stopped:
                        return
                self._do(job, work)

    def _job(self, wanted: _Line | None, *, alone: bool = False) -> _Line | _Item | None:
        """A job, claimed. The caller holds `_changed`. First comes the first item of `wanted`, if a thread that takes
        waits for it. Then comes reading, as only one thread can read a source, and then the other items. `alone`: only
        jobs of `wanted`."""
        if wanted is not None and wanted.items and not wanted.items[0].claimed:
            wanted.items[0].claimed = True
            return wanted.items[0]
        lines = [wanted] if alone and wanted is not None else self._lines
        free = [line for line in lines if not (line.reading or line.ended) and len(line.items) < self._depth]
        if wanted in free and not wanted.items:
            free = [wanted]
        if free:
            line = min(free, key=lambda line: len(line.items))
            line.reading = True
            return line
        for number in range(self._depth):
            for line in lines:
                if number < len(line.items) and not line.items[number].claimed:
                    line.items[number].claimed = True
                    return line.items[number]
        return None

    def _do(self, job: _Line | _Item, work: Callable[[T], R]) -> None:
        if isinstance(job, _Line):
            self._read(job)
            return
        try:
            job.result = (job.work or work)(job.value)
        except (Stopped, KeyboardInterrupt):
            raise
        except BaseException as error:
            job.error = error
        with self._changed:
            job.done = True
            self._changed.notify_all()

    def _read(self, line: _Line) -> None:
        item = _Item(line.work)
        try:
            item.value = next(line.source)
        except StopIteration:
            item.ended = True
        except (Stopped, KeyboardInterrupt):
            raise
        except BaseException as error:
            item.error = error
        over = item.ended or item.error is not None
        item.claimed = item.done = over or self._work is None
        with self._changed:
            line.reading = False
            line.ended = over
            line.items.append(item)
            self._changed.notify_all()


_at_work: Final[set[Crew[Any, Any]]] = set()


@atexit.register
def _stop_all() -> None:
    """A thread that is in a library's code when the interpreter ends would abort the process: none is left then.

    An error may keep an iterator from being closed before.
    """
    for crew in list(_at_work):
        crew.stop()
