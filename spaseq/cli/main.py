"""The `spaseq` command: run, check, explain, plot.

Exit codes: 0 done, 1 a bug, 2 a wrong query or option, 3 wrong input, 4 a limit was hit, 130 interrupted. Results go
to stdout (or --output), everything else to stderr; progress only to a terminal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from spaseq.errors import InternalError, OptionError, SpaseqError, UnsupportedFeature

if TYPE_CHECKING:
    from spaseq.language.query import Query
    from spaseq.language.run import Match
    from spaseq.rdf import StreamOptions

__all__ = ["main"]

_FORMATS = ("table", "json", "csv", "tsv", "jsonl", "parquet", "nquads")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code; never raises what a user can cause."""
    try:
        options = _parser().parse_args(arguments)
        return int(options.command(options))
    except SpaseqError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader of our output went away: nothing is left to say, and nothing may be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("SPASEQ_DEBUG"):
            raise
        print(f"spaseq failed: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: this is a bug, please report it; SPASEQ_DEBUG=1 shows where it happened", file=sys.stderr)
        return InternalError.exit_code


# -- the commands


def _run(options: argparse.Namespace) -> int:
    from spaseq.cli.inputs import knowledge_files, stream_files
    from spaseq.language.query import compile_query

    _refuse(options)
    query = compile_query(*_query_text(options.query))
    _settle_format(options, query)
    _warn(query.warnings)
    streams = stream_files(query, options.stream, options.streams)
    knowledge = knowledge_files(query, options.kb)
    settings = _stream_options(options)
    if options.engine == "spark":
        from spaseq.cli.distributed import spark_matches
        from spaseq.rdf import Counters

        counters = Counters()
        _write(options, spark_matches(query, streams, knowledge, settings, counters), query)  # shows its own progress
    else:
        matches = query.run(streams, knowledge, options=settings, keep_events=False)
        _write(options, _progress(matches), query)
        counters = matches.counters
    _warn(counters.warnings())
    return 0


def _check(options: argparse.Namespace) -> int:
    from spaseq.language.query import compile_query

    text, source = _query_text(options.query)
    query = compile_query(text, source)
    _warn(query.warnings)
    print(f"{source}: ok")
    return 0


def _explain(options: argparse.Namespace) -> int:
    from spaseq.language.query import compile_query

    query = compile_query(*_query_text(options.query))
    print(query.explain(options.format))
    return 0


def _plot(options: argparse.Namespace) -> int:
    raise UnsupportedFeature("spaseq plot is not supported by this version", source="spaseq")


# -- their pieces


@dataclass(frozen=True, slots=True)
class _Sink:
    out: TextIO
    query: Query
    prefixes: tuple[tuple[str, str], ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return self.query.variables

    @property
    def ordered(self) -> bool:
        return self.query.checked.clauses.ordered

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
    """What the command has and this version does not run yet."""
    for given, name in (
        (options.entailment, f"--entailment {options.entailment}"),
        (options.follow, "--follow"),
    ):
        if given:
            raise UnsupportedFeature(f"{name} is not supported by this version", source="spaseq run")
    if options.format == "parquet" and not options.output:
        raise OptionError("--format parquet needs --output PATH", "Parquet files are not text")


def _settle_format(options: argparse.Namespace, query: Query) -> None:
    """A table by default, N-Quads for CONSTRUCT. Raises `OptionError` for N-Quads of any other query."""
    constructs = query.checked.clauses.template is not None
    options.format = options.format or ("nquads" if constructs else "table")
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
        write_matches(options.format, matches, _Sink(out, query, _prefixes(query)), options.limit)
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


# -- the options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spaseq", description="Recognise complex events in streams of RDF graphs, with SPAseq queries."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a query over streams", description="Run a query over streams.")
    _add_run_options(run)
    run.set_defaults(command=_run)
    check = commands.add_parser("check", help="check syntax and meaning of a query")
    check.add_argument("query", metavar="QUERY", help="file with the query, or -")
    check.set_defaults(command=_check)
    explain = commands.add_parser("explain", help="say how a query is run")
    explain.add_argument("query", metavar="QUERY", help="file with the query, or -")
    explain.add_argument("--format", choices=("text", "dot", "svg", "json"), default="text")
    explain.set_defaults(command=_explain)
    plot = commands.add_parser("plot", help="draw a timeline of matches")
    plot.add_argument("arguments", nargs=argparse.REMAINDER)
    plot.set_defaults(command=_plot)
    return parser


def _add_run_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("query", metavar="QUERY", help="file with the query, or -")
    inputs = run.add_argument_group("input")
    inputs.add_argument("--stream", action="append", default=[], metavar="NAME=FILE[,FILE…]",
                        help="files of a stream, by name or IRI; globs, -, .gz and .zst too")  # fmt: skip
    inputs.add_argument("--streams", metavar="STREAMS.txt",
                        help="lines '<iri> <path> N': streams whose events are N triples each")  # fmt: skip
    inputs.add_argument(
        "--kb", action="append", default=[], metavar="IRI=FILE", help="background knowledge for GRAPH <IRI>"
    )
    inputs.add_argument("--entailment", choices=("rdfs",), help="reason over the background knowledge")
    events = run.add_argument_group("events and time")
    events.add_argument("--event-by", metavar="graph|subject|size:N", help="what makes an event")
    events.add_argument("--time", metavar="PREDICATE", help="IRI of the predicate that gives an event's time")
    events.add_argument("--time-from", metavar="arrival", help="the k-th event of a stream is at k times --interval")
    events.add_argument("--time-unit", default="s", metavar="s|ms|us|ns", help="unit of times that are numbers (s)")
    events.add_argument("--interval", default="1ms", metavar="DURATION", help="time between two arrivals (1ms)")
    events.add_argument("--ties", default="instant", metavar="instant|arrival",
                        help="whether graphs of equal time are one instant (instant)")  # fmt: skip
    events.add_argument("--lateness", default="0s", metavar="DURATION", help="how late an event may come (0s)")
    events.add_argument("--late", default="error", metavar="drop|error", help="what to do with later ones (error)")
    results = run.add_argument_group("results")
    results.add_argument("--engine", choices=("local", "spark"), default="local", help="where to run (local)")
    results.add_argument("--format", choices=_FORMATS,
                         help="how to write results (table, or nquads for CONSTRUCT)")  # fmt: skip
    results.add_argument("--output", metavar="PATH", help="where to write them (stdout)")
    results.add_argument("--limit", type=_count, metavar="N", help="stop after N results")
    results.add_argument("--follow", action="store_true", help="go on as files grow")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
