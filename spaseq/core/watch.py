"""The limits of time and memory that an evaluation checks while it works.

Work that can last calls `check` now and then: between two slices of a kernel's events, between two batches, in loops of
Python. It raises `LimitReached` once the evaluation that the thread is in has reached its `time_limit` or
`memory_limit`. An evaluation sets them by `limited` for one call, or by `limited_steps` if it gives its results bit by
bit. Of nested evaluations, the limits of the outermost one count.

Kernels cannot be interrupted, nor can they read a clock. So one call gets as many events as take a fraction of a second
(`spaseq.core.jit.attempt_events`). Python handles Ctrl-C between two calls, too.

Expressions that make long texts of shorter ones call `made_text` first. Code that makes large arrays calls `to_hold`.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, NoReturn, TypeVar

from spaseq.core.errors import BudgetExceeded, EventError, LimitReached, OptionError, QueryError

_T = TypeVar("_T")
_EVERY: Final = 0.05
"""Seconds between two looks at the memory."""
_END: Final = object()
TEXT_LENGTH: Final = 1_000_000
"""`Settings.text_length` by default."""
_LARGE: Final = 10_000_000
"""Bytes of an array from which on it is a reason to look at the memory before it is made."""
_LONG: Final = 10_000
"""Characters of a text from which on its making is a reason to look at the limits."""


class _Current(threading.local):
    watch: _Watch | _Helping | None = None


_CURRENT: Final = _Current()


class _Watch:
    """Limits, and when to look next: a time of `monotonic`. `text`: the characters that a text may have."""

    def __init__(self, settings: Any) -> None:
        self.seconds: float | None = settings.time_limit
        self.memory: int | None = settings.memory_limit
        self.text: int = settings.text_length
        self.began = monotonic()
        self.next = self.began

    def look(self) -> None:
        now = monotonic()
        if now < self.next:
            return
        self.next = now + _EVERY
        if self.seconds is not None:
            if now - self.began >= self.seconds:
                raise LimitReached("time_limit", self.seconds, now - self.began, "seconds")
            self.next = min(self.next, self.began + self.seconds)
        self.hold(0)

    def hold(self, more: int) -> None:
        if self.memory is not None and (held := resident_bytes() + more) > self.memory:
            raise LimitReached("memory_limit", self.memory, held, "bytes")


class Stopped(BaseException):
    """The results of a thread's work for another thread are no longer needed."""


class _Helping:
    """The limits of another thread, and a flag: true while it still waits."""

    def __init__(self, watch: _Watch | _Helping | None, stopped: Callable[[], bool]) -> None:
        self._watch = watch
        self._stopped = stopped
        self.text: int = TEXT_LENGTH if watch is None else watch.text

    def look(self) -> None:
        if self._stopped():
            raise Stopped
        if self._watch is not None:
            self._watch.look()

    def hold(self, more: int) -> None:
        if self._watch is not None:
            self._watch.hold(more)


def handed_on(stopped: Callable[[], bool]) -> Callable[[], None]:
    """The function that a thread that helps this one must call first. Then `check` in that thread also checks the
    limits of this thread's evaluation, and raises `Stopped` once `stopped()`."""
    watch = _Helping(_CURRENT.watch, stopped)

    def begin() -> None:
        _CURRENT.watch = watch

    return begin


def check() -> None:
    """Raises `LimitReached` if this thread's evaluation is beyond a limit. 0.1 µs without limits."""
    watch = _CURRENT.watch
    if watch is not None:
        watch.look()


def made_text(length: int) -> None:
    """Raises `BudgetExceeded` if an expression would make a text of more characters than `text_length` of this thread's
    evaluation. Checks the limits before a long one."""
    watch = _CURRENT.watch
    most = TEXT_LENGTH if watch is None else watch.text
    if length > most:
        hint = "raise text_length, or make shorter texts: CONCAT, REPLACE and GROUP_CONCAT lengthen them"
        raise BudgetExceeded("text_length", most, length, "characters", hint)
    if length > _LONG:
        check()


def to_hold(more: int) -> None:
    """`reserve` for `more` bytes, if they are many: a look at the memory costs some 50 µs."""
    if more > _LARGE:
        reserve(more)


def reserve(more: int) -> None:
    """Raises `LimitReached` if `more` bytes would be beyond the `memory_limit` of this thread's evaluation. Raises
    `MemoryError` if the system does not have them: libraries end the process if memory is refused to them."""
    watch = _CURRENT.watch
    if watch is not None:
        watch.hold(more)
    if more > available_bytes():
        raise MemoryError


def _has_limits(settings: Any) -> bool:
    own = settings.time_limit is not None or settings.memory_limit is not None
    return own or settings.text_length != TEXT_LENGTH


@contextmanager
def limited(settings: Any) -> Iterator[None]:
    """For the calls inside, the limits of `settings`, whose time runs from here."""
    if _CURRENT.watch is not None or not _has_limits(settings):
        yield
        return
    _CURRENT.watch = _Watch(settings)
    try:
        yield
    finally:
        _CURRENT.watch = None


def limited_steps(items: Iterator[_T], settings: Any) -> Iterator[_T]:
    """`items`, found within the limits of `settings`; the time runs from the first step, between two steps as well."""
    return _steps(items, settings) if _has_limits(settings) else items


def _steps(items: Iterator[_T], settings: Any) -> Iterator[_T]:
    watch = _Watch(settings)
    while True:
        outer = _CURRENT.watch
        _CURRENT.watch = outer or watch
        try:
            check()
            item: Any = next(items, _END)
        finally:
            _CURRENT.watch = outer
        if item is _END:
            return
        yield item


class InUse:
    """`with` it around each call of a session, whose limits of time and memory are those of `settings`.

    A second call while one is running is an `OptionError`: it would find the state half changed. So is, for the same
    reason, a call behind one that an interrupt, a limit or an exception of the user's code ended in the middle. Errors
    about events and options leave a session as it was, unless the call says otherwise (`spoil`).

    PERF: `with` costs 0.3 µs. A call that takes only two avoids it if `free` is true (no limits). It begins with
    `acquire(False)`, else `refuse()`, and ends with `release()`, or with `stopped(error)` if an exception ends it: 0.15
    µs.
    """

    __slots__ = ("_broken", "_limits", "_settings", "acquire", "release")

    def __init__(self, settings: Any) -> None:
        lock = threading.Lock()  # a session that is broken keeps it
        self.acquire: Callable[[bool], bool] = lock.acquire
        self.release: Callable[[], None] = lock.release
        self._broken = ""
        self._settings: Any = settings if _has_limits(settings) else None
        self._limits: Any = None

    @property
    def free(self) -> bool:
        """True if a call has no limits."""
        return self._settings is None

    @property
    def broken(self) -> str:
        """The exception that stopped a call in the middle; empty if none did."""
        return self._broken

    def refuse(self) -> NoReturn:
        """The error of a call that cannot be."""
        if self._broken:
            hint = "open(state) goes on from a snapshot that was taken before, open() begins anew"
            raise OptionError(f"this session was stopped in the middle of its work, by {self._broken}", hint)
        hint = "one thread at a time: use a lock, or a session for each; one compiled query serves many"
        raise OptionError("this session is in use, by another thread or by what it calls", hint)

    def spoil(self, kind: type[BaseException]) -> None:
        """The call that runs changed a part of the state, and an error ends it, so no other call can be."""
        self._broken = kind.__name__

    def stopped(self, kind: type[BaseException]) -> None:
        """An exception ends the call."""
        if issubclass(kind, (EventError, OptionError, QueryError)) and not self._broken:
            self.release()
        else:
            self._broken = kind.__name__

    def __enter__(self) -> None:
        if not self.acquire(False):
            self.refuse()
        if self._settings is not None:
            self._limits = limited(self._settings)
            self._limits.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._limits is not None:
            self._limits.__exit__(None, None, None)
        if kind is None:
            self.release()
        else:
            self.stopped(kind)


@cache
def memory_of_machine() -> int:
    """The bytes of memory that this process may come to hold: those of the machine, or fewer if its container or its
    address space has a limit. 8 GiB if the system does not tell."""
    limits = [_physical(), *_of_containers(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")), _address_space()]
    return min((limit for limit in limits if limit is not None and limit > 0), default=8 << 30)


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_containers(root: Path, own: Path) -> Iterator[int | None]:
    """The limits of the process's control groups and of those around them, of both versions of Linux's interface."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        base, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        inner = Path(path.lstrip("/"))
        for part in (inner, *inner.parents):
            yield _number(base / part / name)


def _number(path: Path) -> int | None:
    """The number in a file; None if there is none, as in a file with `max`."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _address_space() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def resident_bytes() -> int:
    """The memory of this process that is in use: resident now, or, if the system does not report that, the maximum so
    far."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def available_bytes() -> float:
    """The memory that this process may still get: of its address space, and of the memory that the system has
    available. Infinite if neither is known."""
    left = math.inf
    most = _address_space()
    try:
        if most is not None:
            with open("/proc/self/statm", "rb") as file:
                left = most - int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        with open("/proc/meminfo", "rb") as file:
            told = dict(line.split(b":") for line in file)
        free = sum(int(told[name].split()[0]) << 10 for name in (b"MemAvailable", b"SwapFree"))
    except (KeyError, OSError, ValueError):
        return left
    return min(left, free)
