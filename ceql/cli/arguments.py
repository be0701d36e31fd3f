"""What the commands of `ceql` share: the arguments that name a query and its events, and what is said about a run."""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import Any, Final

from spaseq.command import add_query, query_text, settings_of, warn
from spaseq.errors import OptionError

__all__ = ["EVALUATOR_HELP", "add_events", "asked", "compiled", "reading", "report"]

EVALUATOR_HELP: Final = (
    "who evaluates: the compact structure, a lazy chain or tree (rare events first), or auto, whichever is the "
    "cheapest as the stream goes on (default: compact)"
)
_TIME_HELP: Final = "column of the time (default: time or timestamp, else arrival)"
_SCHEMA_HELP: Final = (
    "check the query against these attributes: lines NAME: KIND or TYPE.NAME: KIND, or JSON; kinds are number, text, "
    "truth, time and list (default: the columns of CSV and Parquet files)"
)


def add_events(run: argparse.ArgumentParser, evaluators: str | None = None) -> None:
    """The query and how its events are read; `evaluators` as of `add_query`."""
    add_query(run, evaluators)
    inputs = run.add_argument_group("input")
    inputs.add_argument(
        "--events",
        metavar="FILE",
        action="append",
        help="events: .csv, .tsv, .jsonl or .parquet, also .gz and .zst, a glob, or - for standard input; "
        "may be given several times, one after the other",
    )
    inputs.add_argument(
        "--stream", metavar="NAME=FILE[,FILE…]", action="append", help="events of a stream that the query names"
    )
    inputs.add_argument("--schema", metavar="FILE", help=_SCHEMA_HELP)
    events = run.add_argument_group("events and time")
    events.add_argument("--type-column", metavar="COLUMN", help="column of the event type (default: type)")
    events.add_argument("--time", metavar="COLUMN", help=_TIME_HELP)
    events.add_argument("--time-from", choices=("arrival",), help="take times from arrival, whatever columns there are")
    events.add_argument(
        "--time-unit", choices=("s", "ms", "us", "ns"), default="s", help="of times that are numbers (default: s)"
    )
    events.add_argument(
        "--interval", metavar="DURATION", default="1ms", help="between events timed by arrival (default: 1ms)"
    )
    events.add_argument("--lateness", metavar="DURATION", default="0", help="how far time may go back (default: 0)")
    events.add_argument(
        "--late", choices=("drop", "error"), default="error", help="what to do with later events (default: error)"
    )


def compiled(options: argparse.Namespace, *, warns: bool = True) -> Any:
    """The query that is named; what is probably not meant is said on stderr. `OptionError` where it cannot be read."""
    from ceql.query import compile_query

    text, source = query_text(options.query)
    query = compile_query(text, source=source, settings=settings_of(options.set, options.evaluator))
    warn(query.warnings if warns else ())
    return query


def asked(options: argparse.Namespace) -> Any:
    """The query that is to be run over events."""
    named = [options.query, *(options.events or ())]
    named += [file for given in options.stream or () for file in given.partition("=")[2].split(",")]
    if named.count("-") > 1:
        raise OptionError("standard input is asked for twice", "only one of the query and the files of events can be -")
    return compiled(options)


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


def report(query: Any, counters: Any) -> None:
    """What a user should know about the run, on stderr."""
    warn(counters.warnings())
    if not counters.events:
        return
    for name in query.attributes:
        if name not in counters.attributes:
            close = difflib.get_close_matches(name, counters.attributes, 1, 0.6)
            hint = f"; did you mean {close[0]}?" if close else ""
            print(f"note: no event has an attribute {name}, so no condition on it holds{hint}", file=sys.stderr)
