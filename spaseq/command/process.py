"""Interrupts, limits, and the end of the process, for both commands.

Ctrl-C raises KeyboardInterrupt, and a limit of time or memory `LimitReached`, wherever the command happens to be. But
not while output is written (`unbroken`): there a line may be half out. They come when it has been written; an
interrupt, whether or not, once the reader has had a second.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from spaseq.errors import LimitReached
from spaseq.start import leave
from spaseq.watch import check

__all__ = ["given_up", "interrupted", "limit_reached", "look_at_limits", "run_command", "settle_interrupt", "unbroken"]

_AGAIN: Final = 1.0
"""Seconds until an interrupt that has had no effect is repeated."""
_LOOK: Final = 0.2
"""Seconds between two looks at the limits."""


class _Signals:
    """What has come, and whether it has to wait. `asked`: an interrupt; `waits`: how often one has come in vain while
    output was written, which `moves` tells of; `limits`: whether somebody asked for looks at the limits, `reached`: one
    that was; `gave_up`: an interrupt has cut off the writing of output."""

    asked = False
    writing = False
    waits = 0
    limits = False
    reached: LimitReached | None = None
    gave_up = False
    moves: Callable[[], bool] = bool


def run_command(main: Callable[[], int]) -> NoReturn:
    """Runs `main` and ends the process with its exit code, by `os._exit`. Functions registered with `atexit` are run.

    The regular end of the interpreter is avoided: if it overlaps with threads that pyarrow has just started, pyarrow
    aborts the process, about once in forty times on a busy machine; and a thread that reads a stream may then wait for
    an object that no longer exists.

    Ctrl-C raises KeyboardInterrupt repeatedly until `main` calls `settle_interrupt`, because libraries that catch all
    exceptions, as rdflib does in some places, would swallow a single one.
    """
    if hasattr(signal, "setitimer"):
        if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:  # limits are looked at in the background, too,
            signal.signal(signal.SIGALRM, _interrupt)
        if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, leave):  # where a shell ignores Ctrl-C
            signal.signal(signal.SIGINT, _interrupt)
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


def interrupted() -> bool:
    """Whether Ctrl-C was pressed, whatever a library made of it."""
    return _Signals.asked


def limit_reached() -> LimitReached | None:
    """The limit that ends the command, whatever a library made of it."""
    return _Signals.reached


def given_up() -> bool:
    """Whether the interrupt cut off the writing of output, for which its reader took too long."""
    return _Signals.gave_up


def look_at_limits() -> None:
    """From here on `spaseq.watch.check` is called now and then, wherever the command is."""
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _interrupt and not _Signals.asked:
        _Signals.limits = True
        signal.setitimer(signal.ITIMER_REAL, _LOOK)


@contextlib.contextmanager
def unbroken(moves: Callable[[], bool] = bool) -> Iterator[None]:
    """Output is written inside: what interrupts waits for it, but an interrupt no longer than a second, since whoever
    reads may have stopped reading. It waits on while `moves()`, which is asked each second: a line is half out, and
    somebody reads. A second Ctrl-C does not wait."""
    _Signals.writing, _Signals.moves = True, moves
    try:
        yield
    finally:
        _Signals.writing = False
    if _Signals.waits:
        _Signals.waits = 0
        raise KeyboardInterrupt


def _interrupt(number: int, frame: Any) -> None:
    if number == signal.SIGINT:
        _Signals.asked = True
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
        if _Signals.waits == 1 or (moving and number != signal.SIGINT):
            return
        _Signals.waits, _Signals.gave_up = 0, True
    raise KeyboardInterrupt
