"""Interrupts, limits, and the end of the process, for both commands.

Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt, and a limit of time or memory `LimitReached`, at any place in the
command. The exception is output (`unbroken`), as a line may be half written: they are raised once it is written. An
interrupt waits at most one second for the reader of the output.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from spaseq.core.errors import LimitReached
from spaseq.core.watch import check
from spaseq.tools.start import leave

_AGAIN: Final = 1.0
"""Seconds until an interrupt that has had no effect is repeated."""
_LEFT_ALONE: Final = 10
"""Repetitions that wait for an interrupt that is being handled."""
_ENDING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_LOOK: Final = 0.2
"""Seconds between two looks at the limits."""


class _Interrupt(KeyboardInterrupt):
    """An interrupt that knows if it is still handled, or was swallowed."""

    def __init__(self) -> None:
        super().__init__()
        _Signals.raised, _Signals.repeated = weakref.ref(self), 0


class _Signals:
    """The signals and limits that came, and if they have to wait.

    * `asked`: the number of an interrupt, or 0.
    * `raised`: the exception that was raised last for one, while it is handled; `repeated`: how often it was not raised
      again since then.
    * `waits`: how often one has come in vain while output was written; `moves` shows if that goes on.
    * `limits`: True if the limits are to be checked; `reached`: a limit that was reached.
    * `gave_up`: an interrupt has cut off the writing of output.
    """

    asked = 0
    raised: Callable[[], object] = staticmethod(lambda: None)
    repeated = 0
    writing = False
    waits = 0
    limits = False
    reached: LimitReached | None = None
    gave_up = False
    moves: Callable[[], bool] = bool


def run_command(main: Callable[[], int]) -> NoReturn:
    """Runs `main` and ends the process with its exit code, by `os._exit`. Functions registered with `atexit` are run.

    The regular end of the interpreter is avoided for two reasons. If it overlaps with threads that pyarrow has just
    started, pyarrow aborts the process, about once in forty times on a busy machine. A thread that reads a stream may
    then wait for an object that no longer exists.

    An interrupt raises KeyboardInterrupt repeatedly until `main` calls `settle_interrupt`, because libraries that catch
    all exceptions, as rdflib does in some places, would swallow a single one. While one is handled, no other follows
    for ten seconds. A second SIGTERM or SIGHUP ends the process at once.
    """
    if hasattr(signal, "setitimer"):
        if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:  # limits are looked at in the background, too,
            signal.signal(signal.SIGALRM, _interrupt)
        if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, leave):  # not if a shell ignores Ctrl-C
            signal.signal(signal.SIGINT, _interrupt)
        for number in _ENDING:
            if signal.getsignal(number) in (signal.SIG_DFL, leave):  # nohup ignores SIGHUP
                signal.signal(number, _interrupt)
    code = main()
    settle_interrupt()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # already reported, or the reader has gone
            stream.flush()
    os._exit(code)


def settle_interrupt() -> None:
    """Stops repeating the interrupt, and looking at the limits: the command ends."""
    _Signals.limits = False
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def interrupt_once() -> None:
    """Let interrupts raise KeyboardInterrupt once, for work with a process that would not survive another."""
    for number in (signal.SIGINT, *_ENDING):
        if signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(number, _interrupt_once)


def interrupted() -> bool:
    """True if Ctrl-C was pressed, whatever a library made of it."""
    return _Signals.asked != 0


def interrupt_words() -> str:
    """The cause of the command's end, for a message."""
    number = _Signals.asked or signal.SIGINT
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def interrupt_code() -> int:
    """The exit code of a command that an interrupt ended: 130 for Ctrl-C, 128 + n for other signals."""
    return 128 + (_Signals.asked or signal.SIGINT)


def limit_reached() -> LimitReached | None:
    """The limit that ends the command, whatever a library made of it."""
    return _Signals.reached


def given_up() -> bool:
    """True if the interrupt cut off the writing of output, for which its reader took too long."""
    return _Signals.gave_up


def look_at_limits() -> None:
    """From here on `spaseq.core.watch.check` is called now and then, wherever the command is."""
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _interrupt and not _Signals.asked:
        _Signals.limits = True
        signal.setitimer(signal.ITIMER_REAL, _LOOK)


@contextlib.contextmanager
def unbroken(moves: Callable[[], bool] = bool) -> Iterator[None]:
    """Write output inside: limits wait for it, and an interrupt waits at most one second, since the reader may have
    stopped. Each second an interrupt calls `moves()`, and waits on while that is true: a line is half written, and its
    reader still reads. A second Ctrl-C does not wait."""
    _Signals.writing, _Signals.moves = True, moves
    try:
        yield
    finally:
        _Signals.writing = False
    if _Signals.waits:
        _Signals.waits = 0
        raise _Interrupt


def _interrupt_once(number: int, frame: Any) -> NoReturn:
    _note(number)
    raise KeyboardInterrupt


def _note(number: int) -> None:
    _Signals.asked = _Signals.asked or number
    if number in _ENDING:
        signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: Any) -> None:
    if number != signal.SIGALRM:
        _note(number)
    if not _Signals.asked:
        if _Signals.limits:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN if _Signals.writing else _LOOK)
            if not _Signals.writing:
                try:
                    check()
                except LimitReached as limit:
                    _Signals.reached = limit
                    signal.setitimer(signal.ITIMER_REAL, _AGAIN)
                    raise
        return
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    if _Signals.writing:
        _Signals.waits += 1
        moving = _Signals.moves()  # also the first time: since then
        if _Signals.waits == 1 or (moving and number == signal.SIGALRM):
            return
        _Signals.waits, _Signals.gave_up = 0, True
    elif number == signal.SIGALRM and _Signals.raised() is not None and _Signals.repeated < _LEFT_ALONE:
        _Signals.repeated += 1
        return
    raise _Interrupt
