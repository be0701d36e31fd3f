"""The `spaseq` command: run, check, explain, plot.

How it ends, and what goes where, is as `spaseq.command.frame` says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from spaseq.cli.formats import FORMATS
from spaseq.cli.options import parser
from spaseq.command import (
    accounted,
    bounded,
    chosen_format,
    opened,
    query_text,
    run_command,
    run_main,
    settings_of,
    settle_interrupt,
    times_of,
    warn,
    watched,
)
from spaseq.command.frame import INTERRUPTED
from spaseq.command.lines import write_whole_lines
from spaseq.errors import OptionError

if TYPE_CHECKING:
    from spaseq.language.evaluation.run import Match
    from spaseq.language.query import Query
    from spaseq.rdf import Counters, StreamOptions

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code; never raises what a user can cause."""
    return run_main("spaseq", lambda: parser(_run, _check, _explain, _plot), arguments)


def entry() -> NoReturn:
    """The `spaseq` command as a process."""
    write_whole_lines()
    run_command(main)


# -- the commands


def _run(options: argparse.Namespace) -> int:
    _refuse(options)
    query = _compiled(options)
    _settle_format(options, query)
    with bounded(query.settings):
        matches, counters = _matches(options, query)
        try:
            _write(options, matches, query, counters)
        except KeyboardInterrupt as error:
            if not options.follow:
                raise
            settle_interrupt()
            print(": ".join(["interrupted", *error.__notes__]), file=sys.stderr)
            warn(counters().warnings())
            return INTERRUPTED
    warn(counters().warnings())
    return 0


def _check(options: argparse.Namespace) -> int:
    query = _compiled(options)
    print(f"{query.source}: ok")
    return 0


def _explain(options: argparse.Namespace) -> int:
    query = _compiled(options, warns=False)
    if options.engine != "spark":
        if options.kb or options.groups or options.spark:
            hint = "the plan of the local engine is the same for any knowledge"
            raise OptionError("--kb, --groups and --spark of explain need --engine spark", hint)
        sys.stdout.write(query.explain(options.format))
        return 0
    if options.format != "text":
        raise OptionError(f"--format {options.format} with --engine spark", "what Spark does is told as text")
    from spaseq.cli.distributed import explained
    from spaseq.cli.inputs import grouped_files, knowledge_files, spark_settings

    knowledge = grouped_files(knowledge_files(query, options.kb), options.groups)
    print(query.explain() + "on Spark:\n" + explained(query, knowledge, spark_settings(options.spark)))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from spaseq.cli.plot import plot_matches

    query = _compiled(options)
    matches, counters = _matches(options, query)
    plot_matches(matches, query, options.output, options.limit)
    warn(counters().warnings())
    return 0


# -- their pieces


def _compiled(options: argparse.Namespace, *, warns: bool = True) -> Query:
    from spaseq.language.query import compile_query

    query = compile_query(*query_text(options.query), settings_of(options.set, options.evaluator))
    warn(query.warnings if warns else ())
    return query


def _matches(options: argparse.Namespace, query: Query) -> tuple[Iterable[Match], Callable[[], Counters]]:
    """The matches as they are asked for, and what was read by then."""
    from spaseq.cli.inputs import grouped_files, knowledge_files, spark_settings, stream_files

    streams = stream_files(query, options.stream, options.streams)
    knowledge = grouped_files(knowledge_files(query, options.kb), options.groups)
    words: dict[str, Any] = {"options": _stream_options(options), "entailment": options.entailment}
    words["reference"] = options.gpm == "rdflib"
    if options.engine == "spark":
        from spaseq.cli.distributed import followed_matches, local_spark, spark_matches
        from spaseq.rdf import Counters

        if options.knowledge_rows is not None:
            words["knowledge_rows"] = options.knowledge_rows
        if options.plan is not None:
            words["plan"] = options.plan
        counted = Counters()
        found = followed_matches if options.follow else spark_matches  # they show their own progress
        session = partial(local_spark, spark_settings(options.spark))
        return found(session, query, streams, knowledge, counted, options.quarantine or "", **words), lambda: counted
    matches = (query.follow if options.follow else query.run)(streams, knowledge, keep_events=False, **words)
    return watched(matches, lambda: matches.counters.events), lambda: matches.counters


def _refuse(options: argparse.Namespace) -> None:
    """What cannot be asked for together."""
    if options.quarantine and options.engine != "spark":
        raise OptionError("--quarantine needs --engine spark", "--malformed drop leaves such lines out and counts them")
    if options.knowledge_rows is not None and options.engine != "spark":
        raise OptionError("--knowledge-rows needs --engine spark", "the local engine has all knowledge in memory")
    if options.spark and options.engine != "spark":
        raise OptionError("--spark needs --engine spark", "leave out --spark")
    if options.plan is not None and (options.engine != "spark" or options.follow):
        raise OptionError("--plan is of a batch with --engine spark", "leave out --plan")


def _settle_format(options: argparse.Namespace, query: Query) -> None:
    """A table by default, JSON lines for streams that go on, N-Quads for CONSTRUCT.

    Raises `OptionError` for N-Quads of any other query.
    """
    constructs = query.checked.clauses.template is not None
    default = "nquads" if constructs else "jsonl" if options.follow else "table"
    options.format = chosen_format(FORMATS, options.format, options.output, default, live=options.follow)
    if options.format == "nquads" and not constructs:
        raise OptionError("--format nquads needs a query that constructs graphs", "CONSTRUCT { … } in place of SELECT")


def _stream_options(options: argparse.Namespace) -> StreamOptions:
    from spaseq.rdf import StreamOptions

    own = {"event_by": options.event_by, "ties": options.ties, "malformed": options.malformed}
    return StreamOptions.parse(**own, **times_of(options))


def _write(
    options: argparse.Namespace, matches: Iterable[Match], query: Query, counters: Callable[[], Counters]
) -> None:
    """Writes the matches as asked."""
    from spaseq.cli.output import FoundResults, write_results

    found = FoundResults(matches, query, options.limit, options.follow)
    with (
        accounted(lambda: counters().events, lambda: found.written, "results"),
        opened(options.output, FORMATS[options.format]) as out,
    ):
        found.out = out
        write_results(options.format, found, out)


if __name__ == "__main__":
    entry()
