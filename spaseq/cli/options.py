"""The words of the `spaseq` command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from spaseq.errors import OptionError
from spaseq.version import VERSION

__all__ = ["FORMATS", "parser", "settings_of"]

FORMATS = ("table", "json", "xml", "csv", "tsv", "jsonl", "parquet", "nquads")
Command = Callable[[argparse.Namespace], int]
_DIGITS: Final = 18
"""Of a setting: it is counted in 64 bits."""


def parser(run: Command, check: Command, explain: Command, plot: Command) -> argparse.ArgumentParser:
    """The parser of the command line; each command is kept under `command`."""
    top = argparse.ArgumentParser(
        prog="spaseq", description="Recognise complex events in streams of RDF graphs, with SPAseq queries."
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    running = commands.add_parser("run", help="run a query over streams", description="Run a query over streams.")
    _add_inputs(running)
    _add_results(running)
    running.set_defaults(command=run)
    checking = commands.add_parser(
        "check", help="check syntax and meaning of a query", description="Check syntax and meaning of a query."
    )
    _add_query(checking)
    checking.set_defaults(command=check)
    explaining = commands.add_parser(
        "explain", help="say how a query is run", description="Say how a query is understood and run."
    )
    _add_query(explaining)
    explaining.add_argument("--format", choices=("text", "dot", "svg", "json"), default="text",
                            help="text, its automaton as DOT or SVG, or all as JSON (text)")  # fmt: skip
    explaining.set_defaults(command=explain)
    plotting = commands.add_parser(
        "plot", help="draw a timeline of matches", description="Run a query and draw its matches on a time axis."
    )
    _add_inputs(plotting)
    plotting.add_argument("--output", required=True, metavar="PATH", help="the picture: .svg, .png or .pdf")
    plotting.add_argument("--limit", type=_count, default=200, metavar="N", help="draw the first N matches (200)")
    plotting.set_defaults(command=plot)
    return top


def settings_of(given: list[str], evaluator: str = "compact") -> Any:
    """The budgets that `--set NAME=VALUE` names, others as they are. Raises `OptionError` for what is not one."""
    from spaseq.engine import Settings

    known = {field.name for field in fields(Settings) if field.type == "int"}
    values: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        if name not in known:
            raise OptionError(f"--set {text}: there is no such setting", "there is " + ", ".join(sorted(known)))
        if not value.isascii() or not value.isdecimal() or len(value) > _DIGITS:
            raise OptionError(f"--set {text}: not a count", f"write --set {name}=1000")
        values[name] = int(value)
    return Settings(**values, evaluator=evaluator)


def _add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="file with the query, or -")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="raise or lower a budget that an error names")  # fmt: skip
    parser.add_argument("--evaluator", choices=("auto", "compact", "chain", "tree"), default="compact",
                        help="who evaluates; GPMs need compact, which auto chooses (compact)")  # fmt: skip


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    _add_query(parser)
    inputs = parser.add_argument_group("input")
    inputs.add_argument("--stream", action="append", default=[], metavar="NAME=FILE[,FILE…]",
                        help="files of a stream, by name or IRI; globs, -, .gz and .zst too")  # fmt: skip
    inputs.add_argument("--streams", metavar="STREAMS.txt",
                        help="lines '<iri> <path> N': streams whose events are N triples each")  # fmt: skip
    inputs.add_argument("--kb", action="append", default=[], metavar="IRI=FILE[,FILE…]",
                        help="background knowledge for GRAPH <IRI>: RDF in any format; globs too")  # fmt: skip
    inputs.add_argument("--entailment", choices=("rdfs", "owl-rl"),
                        help="reason over the background knowledge (owl-rl needs the extra owl)")  # fmt: skip
    inputs.add_argument("--follow", action="store_true", help="go on as files grow and folders get files, until Ctrl-C")
    events = parser.add_argument_group("events and time")
    events.add_argument("--event-by", metavar="graph|subject|size:N", help="what makes an event")
    events.add_argument("--time", metavar="PREDICATE", help="IRI of the predicate that gives an event's time")
    events.add_argument("--time-from", metavar="arrival", help="the k-th event of a stream is at k times --interval")
    events.add_argument("--time-unit", default="s", metavar="s|ms|us|ns", help="unit of times that are numbers (s)")
    events.add_argument("--interval", default="1ms", metavar="DURATION", help="time between two arrivals (1ms)")
    events.add_argument("--ties", default="instant", metavar="instant|arrival",
                        help="whether graphs of equal time are one instant (instant)")  # fmt: skip
    events.add_argument("--lateness", default="0s", metavar="DURATION", help="how late an event may come (0s)")
    events.add_argument("--late", default="error", metavar="drop|error", help="what to do with later ones (error)")
    events.add_argument("--malformed", default="error", metavar="drop|error",
                        help="what to do with lines of N-Triples and N-Quads that cannot be read (error)")  # fmt: skip
    events.add_argument("--quarantine", metavar="FOLDER", help="write such lines there and go on (engine spark)")
    where = parser.add_argument_group("evaluation")
    where.add_argument("--engine", choices=("local", "spark"), default="local", help="where to run (local)")
    where.add_argument("--gpm", choices=("columnar", "rdflib"), default="columnar",
                       help="rdflib: its evaluator does every graph pattern, for comparison (columnar)")  # fmt: skip


def _add_results(parser: argparse.ArgumentParser) -> None:
    results = parser.add_argument_group("results")
    results.add_argument("--format", choices=FORMATS, help="how to write results (table, or nquads for CONSTRUCT)")
    results.add_argument("--output", metavar="PATH", help="where to write them (stdout)")
    results.add_argument("--limit", type=_count, metavar="N", help="stop after N results")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)
