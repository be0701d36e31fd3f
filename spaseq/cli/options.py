"""The words of the `spaseq` command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from spaseq.cli.formats import FORMATS
from spaseq.cli.knowledge import add_knowledge
from spaseq.tools.command import (
    add_compare,
    add_demo,
    add_explain,
    add_follow,
    add_memory,
    add_plot,
    add_query,
    add_results,
    add_times,
    command_parser,
)
from spaseq.tools.command.options import count
from spaseq.tools.lsp import add_lsp
from spaseq.tools.studio.options import add_studio

Command = Callable[[argparse.Namespace], int]


def parser(run: Command, check: Command, explain: Command, plot: Command) -> argparse.ArgumentParser:
    """The parser of the command line; each command is kept under `command`."""
    top = command_parser("spaseq", "Recognise complex events in streams of RDF graphs, with SPAseq queries.")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    running = commands.add_parser("run", help="run a query over streams", description="Run a query over streams.")
    _add_inputs(running)
    add_results(running, FORMATS, "table, or nquads for CONSTRUCT", "results")
    add_memory(running)
    running.add_argument("--typed", action="store_true",
                         help="Parquet with numbers, times and texts in place of terms (held to the end)")  # fmt: skip
    running.set_defaults(command=run)
    checking = commands.add_parser(
        "check", help="check syntax and meaning of a query", description="Check syntax and meaning of a query."
    )
    _add_query(checking)
    _add_knowledge(checking)
    checking.set_defaults(command=check)
    explaining = commands.add_parser(
        "explain", help="say how a query is run", description="Say how a query is understood and run."
    )
    _add_query(explaining)
    add_explain(explaining)
    _add_knowledge(explaining)
    _add_spark(explaining)
    explaining.set_defaults(command=explain)
    plotting = commands.add_parser(
        "plot", help="draw a timeline of matches", description="Run a query and draw its matches on a time axis."
    )
    _add_inputs(plotting)
    add_plot(plotting)
    plotting.set_defaults(command=plot)
    add_compare(commands, _load_compare, valuations=False)
    add_knowledge(commands)
    add_studio(commands, "spaseq")
    add_lsp(commands)
    add_demo(commands, "spaseq", top.parse_args)
    return top


def _load_compare() -> tuple[Any, Any]:
    from spaseq.language.containment import compare
    from spaseq.language.query import compile_query

    return compile_query, compare


def _add_query(parser: argparse.ArgumentParser) -> None:
    add_query(parser, "who evaluates; GPMs need compact, which auto chooses (compact)")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    _add_query(parser)
    inputs = parser.add_argument_group("input")
    inputs.add_argument("--stream", action="append", default=[], metavar="NAME=FILE[,FILE…]",
                        help="files of a stream, by name or IRI; globs, -, .gz and .zst too")  # fmt: skip
    inputs.add_argument("--streams", metavar="STREAMS.txt",
                        help="lines '<iri> <path> N': streams whose events are N triples each")  # fmt: skip
    _add_knowledge(inputs)
    add_follow(inputs, "files that get lines, folders that get files, and - for standard input")
    events = parser.add_argument_group("events and time")
    events.add_argument("--event-by", metavar="graph|subject|size:N", help="what makes an event")
    add_times(events, "predicate", "prov:generatedAtTime of named graphs")
    events.add_argument("--ties", default="instant", metavar="instant|arrival",
                        help="whether graphs of equal time are one instant (instant)")  # fmt: skip
    events.add_argument("--malformed", default="error", metavar="drop|error",
                        help="what to do with lines of N-Triples and N-Quads that cannot be read (error)")  # fmt: skip
    events.add_argument("--quarantine", metavar="FOLDER", help="write such lines there and go on (engine spark)")
    where = parser.add_argument_group("evaluation")
    _add_spark(where)
    where.add_argument("--knowledge-rows", type=count, metavar="N",
                       help="the most rows of knowledge that come to the driver (engine spark; 100000)")  # fmt: skip
    where.add_argument("--plan", choices=("auto", "slices", "table"),
                       help="slices: each task runs the query on a slice of time; table: solutions are shuffled "
                            "(engine spark; auto)")  # fmt: skip
    where.add_argument("--gpm", choices=("columnar", "rdflib"), default="columnar",
                       help="rdflib: its evaluator does every graph pattern, for comparison (columnar)")  # fmt: skip


def _add_knowledge(inputs: Any) -> None:
    inputs.add_argument("--kb", action="append", default=[], metavar="IRI=FILE[,FILE…]",
                        help="background knowledge for GRAPH <IRI>: RDF of any format, or built; globs")  # fmt: skip
    inputs.add_argument("--groups", action="append", default=[], metavar="IRI=PROPERTY[,PROPERTY…]",
                        help="groups of what these connect: in GRAPH <IRI> ?x <urn:spaseq:group> ?g")  # fmt: skip
    inputs.add_argument("--entailment", choices=("rdfs", "owl-rl"),
                        help="reason over the background knowledge (owl-rl needs the extra owl)")  # fmt: skip


def _add_spark(where: Any) -> None:
    where.add_argument("--engine", choices=("local", "spark"), default="local", help="where it is run (local)")
    where.add_argument("--spark", action="append", default=[], metavar="NAME=VALUE",
                       help="a setting of Spark's, as spark.jars.packages=… (engine spark)")  # fmt: skip
