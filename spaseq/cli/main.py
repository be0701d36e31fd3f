"""The `spaseq` command: run, check, explain, plot.

Its exit codes and its output are described in `spaseq.tools.command.frame`.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

from spaseq.cli.formats import FORMATS
from spaseq.cli.options import parser
from spaseq.core.errors import OptionError, SpaseqError
from spaseq.tools.command import (
    accounted,
    bounded,
    chosen_format,
    clock_of,
    compiled_query,
    is_network,
    late_beside,
    late_file,
    note,
    opened,
    query_file,
    report,
    run_command,
    run_main,
    warn,
)
from spaseq.tools.command.colours import say
from spaseq.tools.command.frame import end_interrupted, held_back
from spaseq.tools.command.lines import write_whole_lines

if TYPE_CHECKING:
    from spaseq.cli.output import FoundResults
    from spaseq.language.query import Query
    from spaseq.language.results.match import Match
    from spaseq.rdf import Counters, GraphEvent, StreamOptions, StreamSource


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. Errors that a user can cause never raise."""
    return run_main("spaseq", lambda: parser(_run, _check, _explain, _plot), arguments)


def entry() -> NoReturn:
    """The `spaseq` command as a process."""
    write_whole_lines()
    run_command(main)


# -- the commands


def _run(options: argparse.Namespace) -> int:
    _refuse(options)
    if is_network(options.query):
        from spaseq.cli.network import run_network

        with late_beside(options, _written_graph):
            return run_network(options)
    query = _compile(options)
    _settle_format(options, query)
    _check_output(options, query)
    with late_beside(options, _written_graph):
        return _run_query(options, query)


def _run_query(options: argparse.Namespace, query: Query) -> int:
    from spaseq.cli.output import FoundResults

    with bounded(query.settings):
        matches, source = _matches(options, query)
        found = FoundResults(matches, query, options.limit, options.follow, typed=options.typed)
        try:
            written = _write(options, found, source)
        except KeyboardInterrupt as error:
            if not options.follow:
                raise
            code = end_interrupted(error)
            warn(_held_back(source))
            report(source, found.written, found.left_out())
            return code
        finally:
            if options.memory:
                note(source.counters.memory.told())
    report(source, None if options.limit == 0 else written, found.left_out())
    return 0


def _check(options: argparse.Namespace) -> int:
    if is_network(options.query):
        from spaseq.cli.network import check_network

        return check_network(options)
    query = _compile(options)
    with bounded(query.settings):
        told = query.compiled.closing(_knowledge(options, query), options.entailment)
    note((*query.advice, *query.growth, *told))
    say(f"{query.source}: ok\n")
    return 0


def _explain(options: argparse.Namespace) -> int:
    _refuse_network(options, "explain its queries")
    query = _compile(options, warns=False)
    if options.engine != "spark":
        if options.spark or (not options.entailment and (options.kb or options.groups)):
            hint = "the plan of the local engine is the same for any knowledge that is not closed"
            raise OptionError("--kb, --groups and --spark of explain need --engine spark or --entailment", hint)
        with bounded(query.settings):
            words = {"kb": _knowledge(options, query), "entailment": options.entailment}
            say(query.explain(options.format, **words), data=options.format != "text")
        return 0
    if options.format != "text":
        raise OptionError(f"--format {options.format} with --engine spark", "what Spark does is told as text")
    from spaseq.cli.distributed import explain
    from spaseq.cli.inputs import spark_settings

    begun = spark_settings(options.spark)
    plan = explain(query, _knowledge(options, query), begun, options.entailment)
    say(f"{query.explain()}on Spark:\n{plan}\n")
    return 0


def _plot(options: argparse.Namespace) -> int:
    from spaseq.language.results.timelines import drawn_matches

    _refuse_network(options, "draw the matches of its queries")
    query = _compile(options)
    _check_output(options, query)
    with late_beside(options, _written_graph):
        matches, source = _matches(options, query, keep_events=True)
        timeline = drawn_matches(matches, query.checked, options.limit, query.source)
    timeline.save(options.output)
    report(source, len(timeline.spans))
    return 0


# -- their pieces


def _compile(options: argparse.Namespace, *, warns: bool = True) -> Query:
    from spaseq.language.query import compile_query

    query: Query = compiled_query(options, compile_query, warns=warns)
    return query


def _matches(options: argparse.Namespace, query: Query, *, keep_events: bool = False) -> tuple[Iterable[Match], Any]:
    """The matches as they are asked for, and what tells what was read by then."""
    from spaseq.cli.inputs import spark_settings, stream_files, stream_options_of

    streams = stream_files(query, options.stream, options.streams)
    knowledge = _knowledge(options, query)
    words: dict[str, Any] = {"options": stream_options_of(options), "entailment": options.entailment}
    words["reference"] = options.gpm == "rdflib"
    if options.engine == "spark":
        from spaseq.cli.distributed import followed_matches, local_spark, spark_matches, without_time_limit
        from spaseq.rdf import Counters

        if options.knowledge_rows is not None:
            words["knowledge_rows"] = options.knowledge_rows
        if options.plan is not None:
            words["plan"] = options.plan
        counted = Counters()
        found = followed_matches if options.follow else spark_matches  # they show their own progress
        session = partial(local_spark, spark_settings(options.spark))
        query = without_time_limit(query)  # which the command itself looks at
        matches = found(session, query, streams, knowledge, counted, options.quarantine or "", **words)
        return matches, _OnSpark(counted, query, list(streams.values()), words["options"])
    words["keep_events"] = keep_events
    if options.follow:
        followed = query.follow(streams, knowledge, clock=clock_of(options), **words)
        return followed, followed
    local = query.run(streams, knowledge, **words)
    return local, local


def _check_output(options: argparse.Namespace, query: Query) -> None:
    from spaseq.cli.inputs import graphs_of, knowledge_files, stream_files
    from spaseq.core.files.beside import check_output

    streams = stream_files(query, options.stream, options.streams)
    known = chain.from_iterable(knowledge_files(graphs_of(query), options.kb).values())
    read = chain.from_iterable(source.files for source in streams.values())
    inputs = list(filter(None, [query_file(options.query), options.streams, *read, *known]))
    for output in (options.output, late_file(options)):
        check_output(output, inputs)


def _written_graph(event: GraphEvent) -> dict[str, Any]:
    from spaseq.gpm.serialise import graph_object

    return graph_object(event)


def _knowledge(options: argparse.Namespace, query: Query) -> dict[str, Any]:
    """The files of background knowledge by IRI, with their groups."""
    from spaseq.cli.inputs import graphs_of, grouped_files, knowledge_files

    return grouped_files(knowledge_files(graphs_of(query), options.kb), options.groups)


def _refuse(options: argparse.Namespace) -> None:
    """Refuse options that exclude each other."""
    if options.quarantine and options.engine != "spark":
        raise OptionError("--quarantine needs --engine spark", "--malformed drop leaves such lines out and counts them")
    if options.memory and options.engine == "spark":
        raise OptionError("--memory is of the local engine", "Spark's own pages tell what its tasks hold")
    if options.knowledge_rows is not None and options.engine != "spark":
        raise OptionError("--knowledge-rows needs --engine spark", "the local engine has all knowledge in memory")
    if late_file(options) is not None and options.engine == "spark":
        raise OptionError("--late FILE is of the local engine", "--late drop counts late events on Spark")
    if options.spark and options.engine != "spark":
        raise OptionError("--spark needs --engine spark", "leave out --spark")
    if clock_of(options) is not None and options.engine == "spark":
        raise OptionError("--clock is of the local engine", "on Spark a silent stream goes on by idle")
    if options.plan is not None and (options.engine != "spark" or options.follow):
        raise OptionError("--plan is of a batch with --engine spark", "leave out --plan")


def _refuse_network(options: argparse.Namespace, instead: str) -> None:
    if is_network(options.query):
        raise OptionError(f"{options.query} is a network, and this is for one query", f"{instead}, each from a file")


def _settle_format(options: argparse.Namespace, query: Query) -> None:
    """A table by default, JSON lines for streams that go on, N-Quads for CONSTRUCT.

    Raises `OptionError` for N-Quads of any other query.
    """
    constructs = query.checked.clauses.template is not None
    default = "nquads" if constructs else "jsonl" if options.follow else "table"
    options.format = chosen_format(FORMATS, options.format, options.output, default, live=options.follow)
    if options.typed and options.format != "parquet":
        raise OptionError(f"--typed with --format {options.format}", "it is of Parquet: --output FILE.parquet")
    if options.format == "nquads" and not constructs:
        raise OptionError("--format nquads needs a query that constructs graphs", "CONSTRUCT { … } in place of SELECT")


@dataclass(frozen=True, slots=True)
class _OnSpark:
    """Reports the input that Spark read."""

    counters: Counters
    query: Query
    streams: Sequence[StreamSource]
    options: StreamOptions

    @property
    def notes(self) -> Sequence[str]:
        """As of `Matches.notes`, of files that are there."""
        with contextlib.suppress(SpaseqError):  # a folder, which may get files
            return self.query.compiled.settled(self.options, self.streams).notes
        return ()

    def why_none(self) -> list[str]:
        """The amount of input read; the local engine reports more."""
        return [f"{self.counters.events:,} events were read" if self.counters.events else "no event was read"]


def _held_back(source: Any) -> list[str]:
    """What an interrupted run over streams that go on did not write, in words."""
    from spaseq.language.runtime.follow import FollowedMatches

    return held_back(source.held_back()) if isinstance(source, FollowedMatches) else []


def _write(options: argparse.Namespace, found: FoundResults, source: Any) -> int:
    """Writes the matches as asked; how many."""
    from spaseq.cli.output import write_results

    with (
        accounted(
            lambda: source.counters.events, lambda: found.written, "results", shown=not isinstance(source, _OnSpark)
        ),
        opened(options.output, FORMATS[options.format]) as out,
    ):
        found.out = out
        return write_results(options.format, found, out)


if __name__ == "__main__":
    entry()
