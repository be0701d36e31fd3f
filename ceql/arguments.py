"""What the commands of `ceql` share: the arguments that name a query and its events, and what is said about a run."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import sys
from collections.abc import Iterator
from typing import IO, Any, Final

from spaseq.errors import OptionError

__all__ = ["add_events", "asked", "compiled", "output", "reading", "report", "warn"]

_TIME_HELP: Final = "column of the time (default: time or timestamp, else arrival)"
_SCHEMA_HELP: Final = (
    "check the query against these attributes: lines NAME: KIND or TYPE.NAME: KIND, or JSON; kinds are number, text, "
    "truth, time and list (default: the columns of CSV and Parquet files)"
)


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


def compiled(path: str, evaluator: str = "compact") -> Any:
    """The query in a file, or on standard input. `OptionError` where it cannot be read."""
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


def warn(query: Any) -> None:
    """What is probably not meant, on stderr."""
    for warning in query.warnings:
        print(f"warning: {warning}", file=sys.stderr)


def asked(options: argparse.Namespace, evaluator: str = "compact") -> Any:
    """The query that is to be run over events."""
    if options.limit is not None and options.limit < 0:
        raise OptionError("--limit cannot be negative")
    named = [options.query, *(options.events or ())]
    named += [file for given in options.stream or () for file in given.partition("=")[2].split(",")]
    if named.count("-") > 1:
        raise OptionError("standard input is asked for twice", "only one of the query and the files of events can be -")
    query = compiled(options.query, evaluator)
    warn(query)
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


def report(query: Any, counters: Any) -> None:
    """What a user should know about the run, on stderr."""
    for line in counters.warnings():
        print(line, file=sys.stderr)
    if not counters.events:
        return
    for name in query.attributes:
        if name not in counters.attributes:
            close = difflib.get_close_matches(name, counters.attributes, 1, 0.6)
            hint = f"; did you mean {close[0]}?" if close else ""
            print(f"note: no event has an attribute {name}, so no condition on it holds{hint}", file=sys.stderr)
