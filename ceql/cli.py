"""The `ceql` command: run, check and explain CEQL queries; alerts and forecasts (`ceql.alerting`).

Exit codes: 0 done, 1 a bug, 2 a wrong query or option, 3 wrong input, 4 a limit was hit, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final, NoReturn

from spaseq.errors import InternalError, OptionError, SpaseqError
from spaseq.process import run_command, settle_interrupt

__all__ = ["add_events", "asked", "main", "output", "reading", "report"]

_TIME_HELP: Final = "column of the time (default: time or timestamp, else arrival)"
_VALUATIONS_HELP: Final = (
    "report which variable took which events, and their attributes: columns v and v.attribute for each variable v "
    "(csv, tsv, parquet), or objects bindings and attributes (json, jsonl); v[attribute, …] in SELECT does so too"
)
_SCHEMA_HELP: Final = (
    "check the query against these attributes: lines NAME: KIND or TYPE.NAME: KIND, or JSON; kinds are number, text, "
    "truth, time and list (default: the columns of CSV and Parquet files)"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    try:
        options = _parser().parse_args(arguments)
        return int(options.command(options))
    except SpaseqError as error:
        _flush_output()
        print(error, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"cannot write the matches: {error.strerror or error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        settle_interrupt()
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if os.environ.get("SPASEQ_DEBUG"):
            raise
        print(f"ceql failed: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: this is a bug, please report it; SPASEQ_DEBUG=1 shows where it happened", file=sys.stderr)
        return InternalError.exit_code


def entry() -> NoReturn:
    """The `ceql` command as a process."""
    run_command(main)


def _flush_output() -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


_EVALUATORS = ("auto", "compact", "chain", "tree")
_EVALUATOR_HELP = (
    "who evaluates: the compact structure, a lazy chain or tree (rare events first), or auto, whichever is the "
    "cheapest as the stream goes on (default: compact)"
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ceql", description="Recognise complex events in streams of typed tuples.")
    from ceql.alerting import add_alerts

    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="run a query over events and print its matches"))
    check = commands.add_parser("check", help="check a query: exit 0 if it can be run, 2 if not")
    check.add_argument("query", metavar="QUERY", help="file of the query, or - for standard input")
    check.set_defaults(command=_check)
    explain = commands.add_parser("explain", help="show how a query is understood and run")
    explain.add_argument("query", metavar="QUERY", help="file of the query, or - for standard input")
    explain.add_argument("--format", choices=("text", "dot", "svg", "json"), default="text")
    explain.add_argument("--evaluator", choices=_EVALUATORS, default="compact", help=_EVALUATOR_HELP)
    explain.set_defaults(command=_explain)
    plot = commands.add_parser("plot", help="run a query and draw its matches over the stream into --output PATH")
    _add_run(plot)
    plot.set_defaults(command=_plot)
    add_alerts(commands)
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    add_events(run)
    run.add_argument("--format", choices=("table", "json", "csv", "tsv", "jsonl", "parquet", "count"), default="table")
    run.add_argument("--output", metavar="PATH", help="write matches to a file")
    run.add_argument("--limit", metavar="N", type=int, help="stop after N matches")
    run.add_argument("--valuations", action="store_true", help=_VALUATIONS_HELP)
    run.add_argument("--evaluator", choices=_EVALUATORS, default="compact", help=_EVALUATOR_HELP)
    run.add_argument("--explain", action="store_true", help="say afterwards, on standard error, how it was evaluated")
    run.set_defaults(command=_run)


def add_events(run: argparse.ArgumentParser) -> None:
    """The query and how its events are read."""
    run.add_argument("query", metavar="QUERY", help="file of the query, or - for standard input")
    run.add_argument(
        "--events",
        metavar="FILE",
        action="append",
        help="events: .csv, .tsv, .jsonl or .parquet, also .gz and .zst, a glob, or - for standard input; "
        "may be given several times, one after the other",
    )
    run.add_argument(
        "--stream", metavar="NAME=FILE[,FILE…]", action="append", help="events of a stream that the query names"
    )
    run.add_argument("--type-column", metavar="COLUMN", help="column of the event type (default: type)")
    run.add_argument("--time", metavar="COLUMN", help=_TIME_HELP)
    run.add_argument("--time-from", choices=("arrival",), help="take times from arrival, whatever columns there are")
    run.add_argument(
        "--time-unit", choices=("s", "ms", "us", "ns"), default="s", help="of times that are numbers (default: s)"
    )
    run.add_argument(
        "--interval", metavar="DURATION", default="1ms", help="between events timed by arrival (default: 1ms)"
    )
    run.add_argument("--lateness", metavar="DURATION", default="0", help="how far time may go back (default: 0)")
    run.add_argument(
        "--late", choices=("drop", "error"), default="error", help="what to do with later events (default: error)"
    )
    run.add_argument("--schema", metavar="FILE", help=_SCHEMA_HELP)


def _compiled(path: str, evaluator: str = "compact") -> Any:
    from ceql.query import compile_query
    from spaseq.engine import Settings

    name = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read()
    except UnicodeDecodeError:
        raise OptionError(f"{name}: a query is UTF-8 text, and this is not") from None
    except OSError as error:
        hint = "the query is given as a file; - reads it from standard input"
        raise OptionError(f"{name}: {(error.strerror or str(error)).lower()}", hint) from None
    return compile_query(text, source=name, settings=Settings(evaluator=evaluator))


def _warn(query: Any) -> None:
    for warning in query.warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _check(options: argparse.Namespace) -> int:
    _warn(_compiled(options.query))
    return 0


def _explain(options: argparse.Namespace) -> int:
    from ceql.pictures import explain_as

    query = _compiled(options.query, options.evaluator)
    sys.stdout.write(query.explain() + "\n" if options.format == "text" else explain_as(query, options.format))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from ceql.pictures import plot_matches

    if options.output is None:
        raise OptionError("plot draws into a file", "add --output matches.svg (or .png, .pdf)")
    query, matches = _found(options)
    plot_matches(matches, query.source, options.output, 200 if options.limit is None else options.limit)
    report(query, matches.summary)
    return 0


def _run(options: argparse.Namespace) -> int:
    from ceql.output import write

    if options.format == "parquet" and options.output is None:
        raise OptionError("parquet is written to a file", "add --output FILE.parquet")
    query, matches = _found(options)
    with output(options) as out:
        terminal = sys.stderr if sys.stderr.isatty() and not out.isatty() else None
        write(matches, options.format, out, options.output, options.limit, options.time_unit, terminal)
        out.flush()
    if options.explain:
        print(matches.explain(), file=sys.stderr)
    report(query, matches.summary)
    return 0


def _found(options: argparse.Namespace) -> tuple[Any, Any]:
    """The query and its matches, found as they are asked for."""
    query = asked(options, options.evaluator)
    return query, query.run(**reading(options), valuations=options.valuations)


def asked(options: argparse.Namespace, evaluator: str = "compact") -> Any:
    """The query that is to be run over events."""
    if options.limit is not None and options.limit < 0:
        raise OptionError("--limit cannot be negative")
    named = [options.query, *(options.events or ())]
    named += [file for given in options.stream or () for file in given.partition("=")[2].split(",")]
    if named.count("-") > 1:
        raise OptionError("standard input is asked for twice", "only one of the query and the files of events can be -")
    query = _compiled(options.query, evaluator)
    _warn(query)
    return query


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """What `Query.run` is told of how to read events."""
    return {
        "events": _events(options),
        "streams": _streams(options),
        "type_column": options.type_column,
        "time_column": options.time,
        "time_from": options.time_from,
        "time_unit": options.time_unit,
        "interval": options.interval,
        "lateness": options.lateness,
        "late": options.late,
        "schema": options.schema,
    }


def _events(options: argparse.Namespace) -> Any:
    if options.events is None:
        if not options.stream:
            raise OptionError("no events to run over", "add --events FILE, or --stream NAME=FILE for each stream")
        return None
    if options.stream:
        raise OptionError(
            "--events and --stream are given together", "--stream NAME=FILE for each stream, or one --events"
        )
    return options.events[0] if len(options.events) == 1 else options.events


def _streams(options: argparse.Namespace) -> dict[str, Any] | None:
    if not options.stream:
        return None
    streams: dict[str, list[str]] = {}
    for given in options.stream:
        name, separator, files = given.partition("=")
        if not (name and separator and files):
            raise OptionError(f"--stream {given}: this is not NAME=FILE", "for example --stream S=events.csv")
        streams.setdefault(name, []).extend(f for f in files.split(",") if f)
    return {name: files[0] if len(files) == 1 else files for name, files in streams.items()}


@contextlib.contextmanager
def output(options: argparse.Namespace) -> Iterator[IO[str]]:
    """Where matches are written as text."""
    if options.output is None or options.format == "parquet":
        yield sys.stdout
        return
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open(options.output, "w", encoding="utf-8", newline=""))
        except OSError as error:
            raise OptionError(f"--output {options.output}: {(error.strerror or str(error)).lower()}") from None
        yield file


def report(query: Any, summary: Any) -> None:
    """What a user should know about the run, on stderr."""
    for source, dropped in summary.dropped.items():
        what = "1 event came too late and was" if dropped == 1 else f"{dropped:,} events came too late and were"
        print(f"{source}: {what} dropped", file=sys.stderr)
    if not summary.events:
        return
    for name in query.attributes:
        if name not in summary.attributes:
            close = difflib.get_close_matches(name, summary.attributes, 1, 0.6)
            hint = f"; did you mean {close[0]}?" if close else ""
            print(f"note: no event has an attribute {name}, so no condition on it holds{hint}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
