"""Runs a command: every error becomes one message and an exit code.

Exit codes:

* 0: done;
* 1: a bug;
* 2: a wrong query or option;
* 3: wrong input, or an output that cannot be written;
* 4: a limit was reached;
* 5 and 6: `compare` says that two queries differ, or that this is undecided;
* 130: interrupted; 143 and 129: ended by SIGTERM and SIGHUP.

Results go to standard output or a file, everything else to standard error. If a command ends early, for any reason, the
results found before are written, each as a whole, and a message reports the progress.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from spaseq.core.errors import (
    BudgetExceeded,
    EventError,
    InternalError,
    OptionError,
    QuerySyntaxError,
    SpaseqError,
    in_command_words,
    naming_options,
)
from spaseq.core.watch import limited
from spaseq.core.words import language_of
from spaseq.tools.command.colours import tell
from spaseq.tools.command.options import settings_of
from spaseq.tools.command.outputs import Whole, discard
from spaseq.tools.command.process import (
    given_up,
    interrupt_code,
    interrupt_words,
    interrupted,
    limit_reached,
    look_at_limits,
    settle_interrupt,
)
from spaseq.tools.command.progress import watching

if TYPE_CHECKING:
    from spaseq.core.engine import Settings

_T = TypeVar("_T")

_A_QUERY: Final = re.compile(r"\b(?:SELECT|CONSTRUCT|ASK)\s*[\s*{(?$]", re.ASCII | re.IGNORECASE)
"""What every query has, and hardly a name of a file."""


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
            sys.stdout.flush()  # a failed write is an error here
        return code
    except SpaseqError as error:
        if isinstance(error, QuerySyntaxError) and language_of(error.source) not in (None, name):
            error.add_note(f"hint: by its name {error.source} is for the command {language_of(error.source)}")
        return _report(limit_reached() or error)
    except KeyboardInterrupt as error:
        return end_interrupted(error)
    except BrokenPipeError:
        discard(sys.stdout)  # the process that read our output has ended
        return 0
    except MemoryError as error:
        limit = limit_reached()
        return _out_of_memory(error) if limit is None else _report(limit)
    except Exception as error:
        if interrupted():  # and a library made another error of it
            return end_interrupted(error)
        if (limit := limit_reached()) is not None:
            return _report(limit)
        if isinstance(error, OSError) and not isinstance(error, (ConnectionError, TimeoutError)):
            discard(sys.stdout)
            where = "cannot write the results" if error.filename is None else error.filename
            tell(": ".join([f"{where}: {error.strerror or error}", *getattr(error, "__notes__", ())]))
            return EventError.exit_code
        if isinstance(error, UnicodeEncodeError):
            return _report(_not_encodable(error))
        if os.environ.get("SPASEQ_DEBUG"):
            raise
        tell(f"{name} failed: {type(error).__name__}: {error}")
        tell("hint: this is a bug, please report it; SPASEQ_DEBUG=1 shows where it happened")
        return InternalError.exit_code


def _report(error: SpaseqError) -> int:
    """Report the error that ended the command; returns the exit code."""
    settle_interrupt()
    _flush_output()
    problem, mark, hint = str(error).rpartition("\nhint: ")
    said = f"{problem}{mark}{in_command_words(hint)}" if mark else hint
    tell("\n".join([said, *getattr(error, "__notes__", ())]), style="error")
    return error.exit_code


def _not_encodable(error: UnicodeEncodeError) -> EventError:
    letter = error.object[error.start]
    problem = f"cannot write the results: standard output is {error.encoding}, which has no U+{ord(letter):04X}"
    return EventError(problem, hint="PYTHONIOENCODING=utf-8 changes that; --output FILE is always UTF-8")


def _out_of_memory(error: MemoryError) -> int:
    """Says that the system gave no more memory, and how far the command came; the exit code."""
    _flush_output()
    tell(": ".join(["the system gives no more memory", *getattr(error, "__notes__", ())]), style="error")
    tell("hint: narrow the window; --set memory_limit=2GB ends a query while there is some left")
    return BudgetExceeded.exit_code


def end_interrupted(error: BaseException) -> int:
    """Report that an interrupt ended the command, its progress, and if its output is whole; returns the exit code."""
    settle_interrupt()
    tell(": ".join([interrupt_words(), *getattr(error, "__notes__", ())]))
    if given_up():
        cut = ", and its last line is cut off" if Whole.cut else ""
        warn([f"the output was not read for a second, so the last results are missing from it{cut}"])
    return interrupt_code()


def held_back(count: int | None) -> list[str]:
    """The results that an interrupted command did not write, in words; None if unknown, because it was at work."""
    if count is None:
        return ["it was evaluating events: matches that these complete are not written"]
    if not count:
        return []
    many = "1 match is not written: what comes next decides about it"
    return [many if count == 1 else f"{count:,} matches are not written: what comes next decides about them"]


@contextlib.contextmanager
def accounted(
    events: Callable[[], int], results: Callable[[], int], noun: str, *, shown: bool = True
) -> Iterator[None]:
    """Add a note to an interrupt or a limit that ends the command inside: the numbers of events read and of results
    written. With `shown` both are shown on the terminal until then."""
    watched = watching(events, results, noun) if shown else contextlib.nullcontext()
    try:
        with watched:
            yield
    except (KeyboardInterrupt, BudgetExceeded, MemoryError) as error:
        error.add_note(f"{events():,} events read, {results():,} {noun} written")
        raise


@contextlib.contextmanager
def bounded(settings: Settings) -> Iterator[None]:
    """Apply the limits of time and memory of `settings` inside, even to code that never calls
    `spaseq.core.watch.check`."""
    with limited(settings):
        if settings.time_limit is not None or settings.memory_limit is not None:
            look_at_limits()
        yield


def is_network(query: str) -> bool:
    """True if a command's query is the file of a network."""
    return query.lower().endswith(".toml")


def query_file(query: str) -> str:
    """The file that the option for a query names; empty if it is the query itself."""
    return "" if _A_QUERY.search(query) and not os.path.exists(query) else query


def query_text(path: str) -> tuple[str, str]:
    """(the text of a query, the name that errors show for it). Raises `OptionError`. `path` is a file, or `-` for
    standard input. If it is no file and has a word that every query has, it is the text itself."""
    name = "<stdin>" if path == "-" else path
    if not query_file(path):
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


def compiled_query(options: argparse.Namespace, compile_text: Callable[..., Any], *, warns: bool = True) -> Any:
    """The query that `options` name, made by `compile_text`; its warnings are printed on standard error. The files of
    `--functions` are run before. Raises `OptionError` if a file cannot be read."""
    query = compiled_by(options, lambda settings: compile_text(*query_text(options.query), settings))
    warn(query.warnings if warns else ())
    return query


def compiled_by(options: argparse.Namespace, compile_it: Callable[[Settings], _T]) -> _T:
    """The result of `compile_it` with the settings that `options` name, within their limits. Files of `--functions` are
    run before."""
    settings = settings_of(options)
    if options.functions:
        from spaseq.tools.command.functions import run_files

        run_files(options.functions)
    with bounded(settings):
        return compile_it(settings)


def remarks(found: Any, written: int | None = None, left_out: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Warnings and notes about a run. `found` is its matches or alerts; notes say what it assumed and `left_out` or, if
    nothing was `written`, what it read."""
    return found.counters.warnings(), [*found.notes, *(left_out or (found.why_none() if written == 0 else ()))]


def report(found: Any, written: int | None = None, left_out: Sequence[str] = ()) -> None:
    """Prints `remarks` on standard error."""
    warnings, notes = remarks(found, written, left_out)
    warn(warnings)
    note(notes)


def warn(messages: Iterable[str]) -> None:
    """Prints each message on a line of standard error."""
    for message in messages:
        tell(message, head="warning")


def note(messages: Iterable[str]) -> None:
    """Prints each message on a line of standard error, as something that may help."""
    for message in messages:
        tell(in_command_words(message), head="note")


def _flush_output() -> None:
    """Flushes standard output, so that results found before an error come before its message."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
