"""The arguments that name a query and its events, for all commands of `ceql`."""

from __future__ import annotations

import argparse
import contextlib
import os
from glob import glob
from itertools import chain
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.tools.command import (
    add_follow,
    add_query,
    add_text_form,
    add_times,
    clock_of,
    compiled_query,
    late_beside,
    late_file,
    query_file,
    text_form_of,
    times_of,
)
from spaseq.tools.studio.language import one_or_all

EVALUATOR_HELP: Final = (
    "who evaluates: the compact structure, a lazy chain or tree (rare events first), or auto, whichever is the "
    "cheapest as the stream goes on (default: auto if each event would be compared with all runs, else compact)"
)
_SCHEMA_HELP: Final = (
    "check the query against these attributes: lines NAME: KIND or TYPE.NAME: KIND, or JSON; kinds are number, text, "
    "truth, time, duration, list and texts (default: the columns of CSV and Parquet files)"
)


def add_events(run: argparse.ArgumentParser, evaluators: str | None = None) -> None:
    """Adds the arguments for the query and for reading its events; `evaluators` as in `add_query`."""
    add_query(run, evaluators)
    inputs = run.add_argument_group("input")
    inputs.add_argument(
        "--events",
        metavar="[TYPE=]FILE",
        action="append",
        help="events: .csv, .tsv, .jsonl or .parquet, also .gz and .zst, a glob, or - for standard input; "
        "may be given several times, one after the other, or each with the type of its events, merged by time",
    )
    inputs.add_argument(
        "--stream", metavar="NAME=FILE[,FILE…]", action="append", help="events of a stream that the query names"
    )
    inputs.add_argument("--schema", metavar="FILE", help=_SCHEMA_HELP)
    events = run.add_argument_group("events and time")
    events.add_argument("--type-column", metavar="COLUMN", help="column of the event type (default: type)")
    events.add_argument("--type", metavar="NAME", help="type of all events, if no column holds it")
    add_times(events, "column", "time or timestamp; date,clock are two")
    add_text_form(run.add_argument_group("text files, if they are not as guessed"))


def compiled(options: argparse.Namespace, *, warns: bool = True) -> Any:
    """The query that `options` name, compiled; its warnings are printed on stderr. Raises `OptionError` if its file
    cannot be read."""
    from ceql.query import compile_query

    return compiled_query(options, compile_query, warns=warns)


def asked(options: argparse.Namespace) -> Any:
    """The query, compiled, to be run over events; `OptionError` if both are to be read from standard input."""
    typed = _types(options)
    named = [options.query, *((options.events or ()) if typed is None else chain(*typed.values()))]
    named += [file for given in options.stream or () for file in given.partition("=")[2].split(",")]
    if named.count("-") > 1:
        raise OptionError("standard input is asked for twice", "only one of the query and the files of events can be -")
    from spaseq.core.files.beside import check_output

    named[0] = query_file(options.query)
    more = [options.schema, *getattr(options, "train", ())]
    beside = [name for name in (getattr(options, "timed_out", None), late_file(options)) if name is not None]
    for output in (options.output, *beside):
        check_output(output, [name for name in (*named, *more) if name])
    return compiled(options)


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `Query.run` that say how to read events."""
    typed = _types(options)
    return {
        "events": None if typed is not None and not options.stream else _events(options),
        "types": None if typed is None else {name: one_or_all(files) for name, files in typed.items()},
        "streams": _streams(options),
        "type_column": options.type_column,
        "type": options.type,
        **text_form_of(options),
        "schema": options.schema,
        **times_of(options),
    }


def add_growing(run: argparse.ArgumentParser) -> None:
    """Adds the options for events that go on."""
    add_follow(run, "a .csv, .tsv or .jsonl file, a folder that gets files, or - for standard input, for each stream")


def growing(options: argparse.Namespace) -> dict[str, Any]:
    """As `reading`; with `--follow` the file is read as it grows."""
    found = reading(options)
    clock = clock_of(options)
    if options.follow:
        from ceql.runtime.follow import growing_source

        for word in ("streams", "types"):
            if found[word] is not None:
                found[word] = {name: growing_source(file, clock) for name, file in found[word].items()}
        if found["events"] is not None:
            found["events"] = growing_source(found["events"], clock)
    return found


def _events(options: argparse.Namespace) -> Any:
    if options.events is None:
        if not options.stream:
            raise OptionError("no events to run over", "add --events FILE, or --stream NAME=FILE for each stream")
        return None
    if options.stream:
        raise OptionError(
            "--events and --stream are given together", "--stream NAME=FILE for each stream, or one --events"
        )
    return one_or_all(options.events)


def _types(options: argparse.Namespace) -> dict[str, list[str]] | None:
    """The files of `--events TYPE=FILE[,FILE…]` by type; None if no type is given. A path that exists is a path.

    Raises `OptionError` if some have a type and others none.
    """
    typed: dict[str, list[str]] = {}
    plain = []
    for given in options.events or ():
        name, separator, files = given.partition("=")
        if not (separator and name and files.strip(",")) or "/" in name or os.path.exists(given) or glob(given):
            plain.append(given)
        else:
            typed.setdefault(name, []).extend(file for file in files.split(",") if file)
    if typed and plain:
        raise OptionError(
            f"--events {plain[0]} has no type, and other events have", "--events TYPE=FILE for each, or none"
        )
    return typed or None


def _streams(options: argparse.Namespace) -> dict[str, Any] | None:
    if not options.stream:
        return None
    streams: dict[str, list[str]] = {}
    for given in options.stream:
        name, separator, files = given.partition("=")
        if not (name and separator and files):
            raise OptionError(f"--stream {given}: this is not NAME=FILE", "for example --stream S=events.csv")
        streams.setdefault(name, []).extend(f for f in files.split(",") if f)
    return {name: one_or_all(files) for name, files in streams.items()}


def late_rows(options: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """As `late_beside`, of events with attributes."""
    from ceql.cli.output import as_json

    return late_beside(options, as_json)


def outcome(query: Any, written: int | None) -> int | None:
    """The number `written`, as `remarks` and `report` ask for it. None if it has been said why there is none."""
    return None if query.compiled.rewritten.unsatisfiable else written
