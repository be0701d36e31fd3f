"""The `ceql` command: run, check, explain and compare CEQL queries; alerts and forecasts (`ceql.cli.alerting`).

For exit codes, standard output and standard error see `spaseq.tools.command.frame`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ceql.cli.alerting import add_alerts
from ceql.cli.arguments import (
    EVALUATOR_HELP,
    add_events,
    add_growing,
    asked,
    compiled,
    growing,
    late_rows,
    outcome,
    reading,
)
from ceql.cli.formats import MATCHES
from ceql.cli.network import load_network, run_network
from ceql.cli.timed_out import HELP as TIMED_OUT_HELP
from ceql.cli.timed_out import check_options, timed_out_beside
from spaseq.core.errors import OptionError
from spaseq.tools.command import (
    Format,
    accounted,
    add_compare,
    add_demo,
    add_explain,
    add_memory,
    add_plot,
    add_query,
    add_results,
    bounded,
    chosen_format,
    command_parser,
    is_network,
    note,
    opened,
    report,
    run_command,
    run_main,
    warn,
)
from spaseq.tools.command.colours import say, tell
from spaseq.tools.command.frame import end_interrupted, held_back
from spaseq.tools.command.lines import write_whole_lines
from spaseq.tools.studio.options import add_studio

if TYPE_CHECKING:
    from ceql.cli.output import FoundMatches

_VALUATIONS_HELP: Final = (
    "report which variable took which events, and their attributes: columns v and v.attribute for each variable v "
    "(csv, tsv, parquet), or objects bindings and attributes (json, jsonl); v[attribute, …] in SELECT does so too"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code; errors that a user can cause are printed, not raised."""
    return run_main("ceql", _parser, arguments)


def entry() -> NoReturn:
    """The `ceql` command as a process."""
    write_whole_lines()
    run_command(main)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("ceql", "Recognise complex events in streams of typed tuples.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a query over events and print its matches")
    _add_run(run)
    add_results(run, MATCHES, "table", "matches")
    run.add_argument("--timed-out", metavar="FILE", help=TIMED_OUT_HELP)
    add_growing(run)
    add_memory(run)
    run.set_defaults(command=_run)
    check = commands.add_parser("check", help="check a query: exit 0 if it can be run, 2 if not")
    add_query(check, EVALUATOR_HELP)
    check.set_defaults(command=_check)
    explain = commands.add_parser("explain", help="show how a query is understood and run")
    add_query(explain, EVALUATOR_HELP)
    add_explain(explain)
    explain.set_defaults(command=_explain)
    plot = commands.add_parser("plot", help="run a query and draw its matches over the stream into --output PATH")
    _add_run(plot)
    add_plot(plot)
    plot.set_defaults(command=_plot)
    add_compare(commands, _load_compare, valuations=True)
    add_alerts(commands)
    add_demo(commands, "ceql", parser.parse_args)
    add_studio(commands, "ceql")
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    add_events(run, EVALUATOR_HELP)
    run.add_argument("--valuations", action="store_true", help=_VALUATIONS_HELP)
    run.add_argument("--explain", action="store_true", help="say afterwards, on standard error, how it was evaluated")


def _check(options: argparse.Namespace) -> int:
    queries = load_network(options).queries.values() if is_network(options.query) else (compiled(options),)
    note(line for query in queries for line in (*query.advice, *query.growth))
    return 0


def _load_compare() -> tuple[Any, Any]:
    from ceql.containment.compare import compare
    from ceql.query import compile_query

    return compile_query, compare


def _explain(options: argparse.Namespace) -> int:
    if is_network(options.query):
        raise OptionError("a network has no plan of its own", "explain its queries, each from a file of its own")
    say(compiled(options, warns=False).explain(options.format), data=options.format != "text")
    return 0


def _plot(options: argparse.Namespace) -> int:
    query = asked(options)
    with late_rows(options):
        matches = query.run(**reading(options), valuations=options.valuations)
        timeline = matches.timeline(options.limit)
    timeline.save(options.output)
    report(matches, outcome(query, len(timeline.spans)))
    return 0


def _run(options: argparse.Namespace) -> int:
    if is_network(options.query):
        return run_network(options)
    default = "jsonl" if options.follow else "table"
    form = chosen_format(MATCHES, options.format, options.output, default, live=options.follow)
    check_options(options)
    query = asked(options)
    with late_rows(options):
        return _run_query(options, query, MATCHES[form])


def _run_query(options: argparse.Namespace, query: Any, form: Format) -> int:
    from ceql.cli.rows import results_of

    begin = query.follow if options.follow else query.run
    matches = begin(**growing(options), valuations=options.valuations)
    results = results_of(matches, options.limit, options.time_unit or "s", live=options.follow)
    code, written = 0, 0
    try:
        written = _write(options, query, matches, results, form)
    except KeyboardInterrupt as error:
        if not options.follow:
            raise
        code, written = end_interrupted(error), results.written
        warn(held_back(matches.held_back()))
    finally:
        if options.memory:
            note(matches.counters.memory.told())
    if options.explain:
        tell(matches.explain())
    report(matches, outcome(query, None if options.limit == 0 else written))
    return code


def _write(options: argparse.Namespace, query: Any, matches: Any, results: FoundMatches, form: Format) -> int:
    """Writes what the options ask for; the number of matches."""
    with (
        bounded(query.settings),
        accounted(lambda: matches.counters.events, lambda: results.written, "matches"),
        timed_out_beside(options, query, matches),
        opened(options.output, form) as out,
    ):
        results.out = out
        return int(form.load()(results, out))


if __name__ == "__main__":
    sys.exit(main())
