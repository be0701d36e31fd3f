"""The `spaseq` command: run, check, explain, plot.

Exit codes: 0 done, 1 a bug, 2 a wrong query or option, 3 wrong input, 4 a limit was hit, 130 interrupted. Results go
to stdout (or --output), everything else to stderr; progress only to a terminal.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from spaseq.cli.options import parser, settings_of
from spaseq.errors import EventError, InternalError, OptionError, SpaseqError
from spaseq.process import run_command, settle_interrupt

if TYPE_CHECKING:
    from spaseq.language.query import Query
    from spaseq.language.run import Match
    from spaseq.rdf import Counters, StreamOptions

__all__ = ["main"]

_WHOLE = ("json", "xml", "parquet")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code; never raises what a user can cause."""
    try:
        options = parser(_run, _check, _explain, _plot).parse_args(arguments)
        return int(options.command(options))
    except SpaseqError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        settle_interrupt()
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _discard_output()  # the reader of our output went away: nothing is left to say
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            _discard_output()
            print(f"cannot write the results: {error.strerror}", file=sys.stderr)
            return EventError.exit_code
        if os.environ.get("SPASEQ_DEBUG"):
            raise
        print(f"spaseq failed: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: this is a bug, please report it; SPASEQ_DEBUG=1 shows where it happened", file=sys.stderr)
        return InternalError.exit_code


def _discard_output() -> None:
    """What stdout still holds cannot be written: it must not be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> NoReturn:
    """The `spaseq` command as a process."""
    run_command(main)


# -- the commands


def _run(options: argparse.Namespace) -> int:
    _refuse(options)
    query = _compiled(options)
    _settle_format(options, query)
    matches, counters = _matches(options, query)
    try:
        _write(options, matches, query)
    except KeyboardInterrupt:
        if not options.follow:
            raise
        settle_interrupt()
        read = counters()
        print(f"interrupted: {read.events:,} events read", file=sys.stderr)
        _warn(read.warnings())
        return 130
    _warn(counters().warnings())
    return 0


def _check(options: argparse.Namespace) -> int:
    query = _compiled(options)
    print(f"{query.source}: ok")
    return 0


def _explain(options: argparse.Namespace) -> int:
    sys.stdout.write(_compiled(options, warn=False).explain(options.format))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from spaseq.cli.plot import plot_matches

    query = _compiled(options)
    matches, counters = _matches(options, query)
    plot_matches(matches, query, _prefixes(query), options.output, options.limit)
    _warn(counters().warnings())
    return 0


# -- their pieces


def _compiled(options: argparse.Namespace, *, warn: bool = True) -> Query:
    from spaseq.language.query import compile_query

    query = compile_query(*_query_text(options.query), settings_of(options.set, options.evaluator))
    _warn(query.warnings if warn else ())
    return query


def _matches(options: argparse.Namespace, query: Query) -> tuple[Iterable[Match], Callable[[], Counters]]:
    """The matches as they are asked for, and what was read by then."""
    from spaseq.cli.inputs import knowledge_files, stream_files

    streams = stream_files(query, options.stream, options.streams)
    knowledge = knowledge_files(query, options.kb)
    settings = _stream_options(options)
    if options.engine == "spark":
        from spaseq.cli.distributed import followed_matches, spark_matches
        from spaseq.rdf import Counters

        counted = Counters()
        found = followed_matches if options.follow else spark_matches  # they show their own progress
        more = {"entailment": options.entailment, "quarantine": options.quarantine or ""}
        more["reference"] = options.gpm == "rdflib"
        return found(query, streams, knowledge, settings, counted, **more), lambda: counted
    matches = (query.follow if options.follow else query.run)(
        streams,
        knowledge,
        options=settings,
        keep_events=False,
        entailment=options.entailment,
        reference=options.gpm == "rdflib",
    )
    return _progress(matches), lambda: matches.counters


@dataclass(frozen=True, slots=True)
class _Sink:
    out: TextIO
    query: Query
    prefixes: tuple[tuple[str, str], ...]
    live: bool

    @property
    def variables(self) -> tuple[str, ...]:
        return self.query.variables

    @property
    def ordered(self) -> bool:
        return self.query.checked.clauses.ordered

    @property
    def asks(self) -> bool:
        return self.query.checked.clauses.ask

    def construct(self, bindings: Mapping[str, Any], number: int) -> tuple[tuple[Any, Any, Any], ...]:
        return self.query.construct(bindings, number)


def _query_text(path: str) -> tuple[str, str]:
    """The text of a query file and the name errors show."""
    try:
        if path == "-":
            return sys.stdin.read(), "<stdin>"
        return Path(path).read_text(encoding="utf-8-sig"), path
    except OSError as error:
        raise OptionError(f"cannot read the query {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise OptionError(f"cannot read the query {path}: it is not UTF-8 text") from None


def _refuse(options: argparse.Namespace) -> None:
    """What cannot be asked for together."""
    if options.quarantine and options.engine != "spark":
        raise OptionError("--quarantine needs --engine spark", "--malformed drop leaves such lines out and counts them")
    if options.follow and options.format in _WHOLE:
        raise OptionError(
            f"--format {options.format} with --follow",
            "it is whole only at its end: use jsonl, csv, tsv, table or nquads",
        )
    if options.format == "parquet" and not options.output:
        raise OptionError("--format parquet needs --output PATH", "Parquet files are not text")


def _settle_format(options: argparse.Namespace, query: Query) -> None:
    """A table by default, JSON lines for streams that go on, N-Quads for CONSTRUCT.

    Raises `OptionError` for N-Quads of any other query.
    """
    constructs = query.checked.clauses.template is not None
    options.format = options.format or ("nquads" if constructs else "jsonl" if options.follow else "table")
    if options.format == "nquads" and not constructs:
        raise OptionError("--format nquads needs a query that constructs graphs", "CONSTRUCT { … } in place of SELECT")


def _stream_options(options: argparse.Namespace) -> StreamOptions:
    from spaseq.rdf import StreamOptions

    return StreamOptions.parse(
        event_by=options.event_by,
        time=options.time,
        time_from=options.time_from,
        time_unit=options.time_unit,
        interval=options.interval,
        ties=options.ties,
        lateness=options.lateness,
        late=options.late,
        malformed=options.malformed,
    )


def _prefixes(query: Query) -> tuple[tuple[str, str], ...]:
    """The query's own prefixes, the longest IRI first."""
    declared = [(p.label, p.iri) for p in query.checked.tree.prologue if p.label is not None]
    return tuple(sorted(declared, key=lambda pair: -len(pair[1])))


def _write(options: argparse.Namespace, matches: Iterable[Match], query: Query) -> None:
    """Writes the matches as asked."""
    from spaseq.cli.output import write_matches, write_parquet

    if options.format == "parquet":
        write_parquet(matches, query.variables, options.output, options.limit)
        return
    with _opened(options.output) as out:
        sink = _Sink(out, query, _prefixes(query), options.follow)
        write_matches(options.format, matches, sink, options.limit)
        out.flush()


@contextmanager
def _opened(path: str | None) -> Iterator[TextIO]:
    if path is None or path == "-":
        yield sys.stdout
        return
    try:
        out = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115 - closed below, also on errors
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None
    with out:
        yield out


def _progress(matches: Iterable[Match]) -> Iterable[Match]:
    """`matches`, with a running count on stderr if that is a terminal and stdout is not."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        return matches
    from tqdm import tqdm

    return tqdm(matches, desc="matches", unit="", leave=False, dynamic_ncols=True, file=sys.stderr)


def _warn(messages: Iterable[str]) -> None:
    for message in messages:
        print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    entry()
