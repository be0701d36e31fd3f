"""The `ceql` command: run, check and explain CEQL queries; alerts and forecasts (`ceql.alerting`).

Exit codes: 0 done, 1 a bug, 2 a wrong query or option, 3 wrong input, 4 a limit was hit, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from ceql.alerting import add_alerts
from ceql.arguments import add_events, asked, compiled, output, reading, report, warn
from spaseq.errors import InternalError, OptionError, SpaseqError
from spaseq.process import run_command, settle_interrupt
from spaseq.version import VERSION

__all__ = ["entry", "main"]

_VALUATIONS_HELP: Final = (
    "report which variable took which events, and their attributes: columns v and v.attribute for each variable v "
    "(csv, tsv, parquet), or objects bindings and attributes (json, jsonl); v[attribute, …] in SELECT does so too"
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
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
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


def _check(options: argparse.Namespace) -> int:
    warn(compiled(options.query))
    return 0


def _explain(options: argparse.Namespace) -> int:

    query = compiled(options.query, options.evaluator)
    sys.stdout.write(query.explain(options.format))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from ceql.pictures import plot_matches

    if options.output is None:
        raise OptionError("plot draws into a file", "add --output matches.svg (or .png, .pdf)")
    query, matches = _found(options)
    plot_matches(matches, query.source, options.output, 200 if options.limit is None else options.limit)
    report(query, matches.counters)
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
    report(query, matches.counters)
    return 0


def _found(options: argparse.Namespace) -> tuple[Any, Any]:
    """The query and its matches, found as they are asked for."""
    query = asked(options, options.evaluator)
    return query, query.run(**reading(options), valuations=options.valuations)


if __name__ == "__main__":
    sys.exit(main())
