"""Runs a command: every error becomes one message and an exit code.

Exit codes: 0 done, 1 a bug, 2 a wrong query or option, 3 wrong input or an output that cannot be written, 4 a limit was
hit, 130 interrupted. Results go to standard output or a file, everything else to standard error. Whatever ends a
command early, the results found before are written, each as a whole, and how far it came is said.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from spaseq.command.colours import styled
from spaseq.command.formats import Format
from spaseq.command.lines import is_cut, moves, whole_lines
from spaseq.command.process import given_up, interrupted, limit_reached, look_at_limits, settle_interrupt, unbroken
from spaseq.command.progress import watching
from spaseq.errors import (
    BudgetExceeded,
    EventError,
    InternalError,
    OptionError,
    QuerySyntaxError,
    SpaseqError,
    naming_options,
)
from spaseq.watch import limited
from spaseq.words import language_of

if TYPE_CHECKING:
    from spaseq.engine import Settings

__all__ = ["accounted", "bounded", "end_interrupted", "note", "opened", "query_text", "run_main", "warn"]

INTERRUPTED: Final = 130
"""The exit code of a command that Ctrl-C ended."""
_A_QUERY: Final = re.compile(r"\b(?:SELECT|CONSTRUCT|ASK)\s*[\s*{(?$]", re.ASCII | re.IGNORECASE)
"""What every query has, and hardly a name of a file."""
_BLOCK: Final = 1 << 16
"""Characters that are written at once."""


def run_main(name: str, parser: Callable[[], argparse.ArgumentParser], arguments: Sequence[str] | None) -> int:
    """Parses the arguments, runs the command that they name (`options.command`) and returns its exit code.

    Errors that a user can cause are printed, not raised; so are bugs, unless SPASEQ_DEBUG is in the environment.
    """
    with naming_options():
        return _run_main(name, parser, arguments)


def _run_main(name: str, parser: Callable[[], argparse.ArgumentParser], arguments: Sequence[str] | None) -> int:
    try:
        options = parser().parse_args(arguments)
        code = int(options.command(options))
        if not sys.stdout.closed:  # the language server has closed it
            sys.stdout.flush()  # what cannot be written is an error here
        return code
    except SpaseqError as error:
        if isinstance(error, QuerySyntaxError) and language_of(error.source) not in (None, name):
            error.add_note(f"hint: by its name {error.source} is for the command {language_of(error.source)}")
        return _told(limit_reached() or error)
    except KeyboardInterrupt as error:
        return end_interrupted(error)
    except BrokenPipeError:
        _discard_output()  # the process that read our output has ended
        return 0
    except MemoryError as error:
        limit = limit_reached()
        return _out_of_memory(error) if limit is None else _told(limit)
    except Exception as error:
        if interrupted():  # and a library made another error of it
            return end_interrupted(error)
        if (limit := limit_reached()) is not None:
            return _told(limit)
        if isinstance(error, OSError) and not isinstance(error, (ConnectionError, TimeoutError)):
            _discard_output()
            where = "cannot write the results" if error.filename is None else error.filename
            print(f"{where}: {error.strerror or error}", file=sys.stderr)
            return EventError.exit_code
        if os.environ.get("SPASEQ_DEBUG"):
            raise
        print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: this is a bug, please report it; SPASEQ_DEBUG=1 shows where it happened", file=sys.stderr)
        return InternalError.exit_code


def _told(error: SpaseqError) -> int:
    """Says what it was that ended the command; the exit code."""
    settle_interrupt()
    _flush_output()
    first, *others = "\n".join([str(error), *getattr(error, "__notes__", ())]).split("\n")
    print("\n".join([styled(first, "error", sys.stderr), *others]), file=sys.stderr)
    return error.exit_code


def _out_of_memory(error: MemoryError) -> int:
    """Says that the system gave no more memory, and how far the command came; the exit code."""
    _flush_output()
    said = [": ".join(["the system gives no more memory", *getattr(error, "__notes__", ())])]
    said.append("hint: narrow the window; --set memory_limit=2GB ends a query while there is some left")
    print("\n".join([styled(said[0], "error", sys.stderr), *said[1:]]), file=sys.stderr)
    return BudgetExceeded.exit_code


def end_interrupted(error: BaseException) -> int:
    """Says that Ctrl-C ended the command, how far it came, and whether its output is whole; the exit code."""
    settle_interrupt()
    print(": ".join(["interrupted", *getattr(error, "__notes__", ())]), file=sys.stderr)
    if given_up():
        cut = ", and its last line is cut off" if _Whole.cut else ""
        warn([f"the output was not read for a second, so the last results are missing from it{cut}"])
    return INTERRUPTED


@contextlib.contextmanager
def accounted(
    events: Callable[[], int], results: Callable[[], int], noun: str, *, shown: bool = True
) -> Iterator[None]:
    """What ends the command inside, an interrupt or a limit, gets a note of how many events were read and how many
    results written. With `shown` both are shown on the terminal until then."""
    watched = watching(events, results, noun) if shown else contextlib.nullcontext()
    try:
        with watched:
            yield
    except (KeyboardInterrupt, BudgetExceeded, MemoryError) as error:
        error.add_note(f"{events():,} events read, {results():,} {noun} written")
        raise


@contextlib.contextmanager
def bounded(settings: Settings) -> Iterator[None]:
    """What is inside has the limits of time and memory of `settings`, wherever it is: also where nothing calls
    `spaseq.watch.check`."""
    with limited(settings):
        if settings.time_limit is not None or settings.memory_limit is not None:
            look_at_limits()
        yield


def query_text(path: str) -> tuple[str, str]:
    """(the text of a query, the name that errors show for it): of a file, of standard input for `-`, or `path` itself
    where it is no file and has the word that a query has. Raises `OptionError`."""
    name = "<stdin>" if path == "-" else path
    if _A_QUERY.search(path) and not os.path.exists(path):
        return path, "<query>"
    try:
        if path == "-":
            return sys.stdin.read(), name
        with open(path, encoding="utf-8-sig") as file:
            return file.read(), name
    except UnicodeDecodeError:
        raise OptionError(f"cannot read the query {name}: it is not UTF-8 text", "save it as UTF-8") from None
    except OSError as error:
        hint = "the query is given as a file or as its text; - reads it from standard input"
        raise OptionError(f"cannot read the query {name}: {error.strerror or error}", hint) from None


@contextlib.contextmanager
def opened(path: str | None, form: Format) -> Iterator[Any]:
    """What the writer of a format writes to: a path if it is binary, else a file, or standard output for None and `-`.
    What was written is flushed. Raises `OptionError` if the file cannot be written."""
    if form.binary:
        yield path
        return
    if path is None or path == "-":
        with _whole(sys.stdout) as out:
            yield out
        return
    try:
        file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115 - closed below, also on errors
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None
    with file, _whole(whole_lines(file)) as out:
        yield out


class _Whole:
    """A file that gets texts in blocks. A text that was given to `write` comes out whole, whatever ends the command,
    unless an interrupt has to wait too long for the reader: then the others are dropped. `cut`: in the middle of a
    line."""

    cut = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._waiting: list[str] = []
        self._size = 0

    @property
    def columns(self) -> int | None:
        """The width of the terminal that is written to; None where it is none."""
        return shutil.get_terminal_size().columns if self._file.isatty() else None

    def isatty(self) -> bool:
        return bool(self._file.isatty())

    def write(self, text: str) -> None:
        self._waiting.append(text)
        self._size += len(text)
        if self._size >= _BLOCK:
            self._pass_on()

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def _pass_on(self) -> None:
        with self._unbroken():
            waiting, self._waiting, self._size = self._waiting, [], 0
            self._file.write("".join(waiting))

    def flush(self) -> None:
        self._pass_on()
        with self._unbroken():
            self._file.flush()

    @contextlib.contextmanager
    def _unbroken(self) -> Iterator[None]:
        try:
            with unbroken(lambda: moves(self._file)):
                yield
        except KeyboardInterrupt:
            if given_up():  # whatever comes would stand behind a line that may be cut off
                _Whole.cut = is_cut(self._file)
                _discard(self._file)
            raise


@contextlib.contextmanager
def _whole(file: Any) -> Iterator[_Whole]:
    out = _Whole(file)
    try:
        yield out
    finally:
        out.flush()


def warn(messages: Iterable[str]) -> None:
    """Prints each message on a line of standard error."""
    for message in messages:
        print(f"{styled('warning:', 'warning', sys.stderr)} {message}", file=sys.stderr)


def note(messages: Iterable[str]) -> None:
    """Prints each message on a line of standard error, as something that may help."""
    for message in messages:
        print(f"{styled('note:', 'note', sys.stderr)} {message}", file=sys.stderr)


def _flush_output() -> None:
    """Flushes standard output, so that results found before an error come before its message."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


def _discard_output() -> None:
    """Redirects standard output to nowhere, so that Python does not try to flush it again at exit."""
    _discard(sys.stdout)


def _discard(file: Any) -> None:
    """Redirects a file to nowhere, with what it holds back."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
