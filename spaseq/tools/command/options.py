"""The arguments that both commands have."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import fields
from decimal import Decimal
from typing import Any, Final, NoReturn

from spaseq.core.errors import OptionError
from spaseq.core.measure import visible
from spaseq.core.slips import did_you_mean
from spaseq.core.words import TEXT_FORM
from spaseq.version import VERSION

EVALUATORS: Final = ("auto", "compact", "chain", "tree")
_EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 a bug, 2 a wrong query or option, 3 wrong input or an output that cannot be written, 4 a "
    "budget was reached (the error names it; --set NAME=VALUE changes it), 5 and 6 of compare: the queries differ, or "
    "that is undecided, 130 interrupted, 143 and 129 ended by "
    "SIGTERM and SIGHUP."
)
_DIGITS: Final = 18
"""The most digits of a setting's value, which must fit into 64 bits."""
_UNITS: Final = {"": 1, "B": 1, **{f"{letter}B": 1000 ** (i + 1) for i, letter in enumerate("KMGT")},
                 **{f"{letter}IB": 1024 ** (i + 1) for i, letter in enumerate("KMGT")}}  # fmt: skip
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?((?:[kmgt]i?)?b|)", re.ASCII | re.IGNORECASE)


_QUERY: Final = re.compile(r"\.(ceql|spaseq|rq|sparql)$|\s", re.IGNORECASE)
"""The file of a query, or a query."""


class _Parser(argparse.ArgumentParser):
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """A subcommand reports its unknown words itself, as it knows the possible ones."""
        found, left = super().parse_known_args(args, namespace)
        if left and " " in self.prog:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        left = message.removeprefix("unrecognized arguments: ")
        if left == message:
            wrong, *choices = re.findall(r"'([^']*)'", message.partition("invalid choice: ")[2]) or [""]
            hint = did_you_mean(wrong, choices)
            if not hint and "run" in choices and _QUERY.search(wrong):
                hint = f"what is to be done with the query comes first: {self.prog} run …"
        elif left.startswith("-"):
            hint = did_you_mean(
                left.split()[0].partition("=")[0], re.findall(r"(?<![\w-])--[\w-]+", self.format_help())
            )
        else:
            option = "--stream NAME=FILE" if self.prog.startswith("spaseq") else "--events FILE"
            hint = f"events are named by {option}, and a query with blanks needs quotes"
        usage = self.format_usage()
        if usage.count("\n") > 2:  # the error would stand below a wall of options
            needed = usage.removeprefix(f"usage: {self.prog}")
            while (less := re.sub(r"\[[^][]*\]", "", needed)) != needed:  # they lie in each other
                needed = less
            needed = " ".join(needed.split())
            usage = f"usage: {self.prog} [OPTION …] {needed}\n       {self.prog} --help lists the options\n"
        self.exit(2, visible(f"{usage}{self.prog}: error: {message}\n" + (f"hint: {hint}\n" if hint else "")))


def command_parser(name: str, description: str) -> argparse.ArgumentParser:
    """The parser of a command, without its subcommands."""
    parser = _Parser(prog=name, description=description, epilog=_EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return parser


def add_query(parser: argparse.ArgumentParser, evaluators: str | None = None, name: str = "QUERY") -> None:
    """Adds the arguments for the query, which is called `name`, and its settings. `evaluators` is the help text of
    --evaluator; with None the command does not have it."""
    parser.add_argument("query", metavar=name, help="file of the query, its text, or - for standard input")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="change a budget that an error names; time_limit=30s, memory_limit=2GB")  # fmt: skip
    parser.add_argument("--functions", action="append", default=[], metavar="FILE.py",
                        help="Python file to run first, which registers functions of your own")  # fmt: skip
    parser.add_argument("--forget-keys-after", metavar="DURATION",
                        help="forget keys, and their runs, that no event had for so long (never)")  # fmt: skip
    parser.set_defaults(evaluator=None)
    if evaluators is not None:
        parser.add_argument("--evaluator", choices=EVALUATORS, help=evaluators)


def add_times(events: Any, holder: str, default: str) -> None:
    """Add the options for the times and the order of events: the words of `spaseq.core.events.TimeOptions`.

    `holder` is the noun for the part of an event that holds a time, `default` the part used if none is named.
    """
    events.add_argument("--time", metavar=holder.upper(), help=f"{holder} that gives an event's time ({default})")
    events.add_argument("--time-from", metavar="arrival", help="the k-th event of a stream is at k times --interval")
    events.add_argument("--time-unit", metavar="s|ms|us|ns", help="unit of times that are numbers (s)")
    events.add_argument("--interval", metavar="DURATION", help="time between two events that are counted (1ms)")
    events.add_argument("--lateness", default="0s", metavar="DURATION", help="how late an event may come (0s)")
    events.add_argument(
        "--late", default="error", metavar="drop|error|FILE",
        help="what to do with later ones; or drop them and write them to this file (.jsonl, .csv, .tsv), with "
             "how late each was (error)",
    )  # fmt: skip


def times_of(options: argparse.Namespace) -> dict[str, Any]:
    """The values given for the words of `add_times`; within `late.late_beside`, of a file of late events."""
    found = {
        word: getattr(options, word) for word in ("time", "time_from", "time_unit", "interval", "lateness", "late")
    }
    on_late = getattr(options, "on_late", None)
    return found if on_late is None else {**found, "late": "drop", "on_late": on_late}


def add_text_form(texts: Any) -> None:
    """Add the options for the form of text files of events: the words of `spaseq.core.events.options.TextForm`."""
    texts.add_argument(
        "--delimiter", metavar="SIGN", help="sign between fields of CSV, or tab (, ; tab or |, as it is)"
    )
    texts.add_argument(
        "--decimal", metavar="SIGN", help="sign before decimals in CSV, . or , (as the first values are)"
    )
    texts.add_argument("--quote", metavar="SIGN", help='sign around fields of CSV, or none (")')
    texts.add_argument("--encoding", metavar="NAME", help="latin-1, windows-1252, utf-16, … (utf-8)")
    texts.add_argument("--time-format", metavar="FORMAT",
                       help="form of texts that are times, as '%%d.%%m.%%Y %%H:%%M' (ISO 8601)")  # fmt: skip
    texts.add_argument("--column-types", metavar="NAME=KIND,…",
                       help="kinds of columns of CSV, as CAST has them: id=TEXT, n=FLOAT (guessed)")  # fmt: skip


def text_form_of(options: argparse.Namespace) -> dict[str, Any]:
    """The values given for the words of `add_text_form`."""
    return {word: getattr(options, word) for word in TEXT_FORM}


def add_results(parser: argparse.ArgumentParser, formats: Iterable[str], default: str, what: str) -> None:
    """Adds --format, --output and --limit. `what` is the noun for the results in the help texts, `default` the format
    if neither --format nor the suffix of --output gives one."""
    results = parser.add_argument_group("results")
    results.add_argument("--format", choices=tuple(formats),
                         help=f"how to write {what} (that of the output's suffix, else {default})")  # fmt: skip
    results.add_argument("--output", metavar="PATH", help="where to write them (standard output)")
    results.add_argument("--limit", type=count, metavar="N", help=f"stop after N {what}")


def add_follow(parser: Any, what: str) -> None:
    """Adds --follow and --clock, which `clock_of` reads. `what` is the noun for the input that goes on."""
    parser.add_argument("--follow", action="store_true", help=f"go on as the input grows, until Ctrl-C: {what}")
    parser.add_argument(
        "--clock", metavar="DURATION",
        help="with --follow: while nothing comes, time goes on by this machine's clock, so much behind it. An absence "
             "is known as its window closes; an event that takes longer from its time to here is late",
    )  # fmt: skip


def clock_of(options: argparse.Namespace) -> int | None:
    """The nanoseconds of --clock; None if it is not given. `OptionError` without --follow."""
    given = options.clock
    if given is None:
        return None
    if not options.follow:
        raise OptionError("--clock without --follow: the events of files have times of their own", "add --follow")
    from spaseq.core.events.growing import clock_length

    return clock_length(given)


def add_memory(parser: argparse.ArgumentParser) -> None:
    """Adds --memory, for which `counters.memory.told()` is noted behind the run."""
    parser.add_argument("--memory", action="store_true",
                        help="say afterwards, on standard error, what is held in memory, and for what")  # fmt: skip


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Adds --format, for how a query is explained."""
    parser.add_argument("--format", choices=("text", "dot", "svg", "json"), default="text",
                        help="text, its automaton as DOT or SVG, or all as JSON (text)")  # fmt: skip


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Adds --output and --limit, for a picture of matches."""
    parser.add_argument("--output", required=True, metavar="PATH", help="the picture: .svg or .html")
    parser.add_argument("--limit", type=count, default=200, metavar="N", help="draw the first N matches (200)")


def count(text: str) -> int:
    """The type of an argument that is a count: digits only. One that nobody will reach is `sys.maxsize`."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text) if len(text) <= _DIGITS else sys.maxsize


def settings_of(options: argparse.Namespace) -> Any:
    """The settings with the values of `--set NAME=VALUE` and of the options of `add_query`, the others by default.

    `memory_limit` is three quarters of the machine's memory by default, since this process is the command's alone.
    Raises `OptionError` for unknown names and for values that are not counts.
    """
    from spaseq.core.engine import Settings
    from spaseq.core.watch import memory_of_machine

    known = {field.name: str(field.type) for field in fields(Settings) if field.name != "evaluator"}
    values: dict[str, Any] = {}
    for text in options.set:
        name, _, value = text.partition("=")
        if name not in known:
            raise OptionError(f"--set {text}: there is no such setting", "there is " + ", ".join(sorted(known)))
        if "float" in known[name]:
            values[name] = _seconds(text, value)
        elif name.endswith("_bytes") or name == "memory_limit":
            values[name] = _bytes(text, name, value)
        elif not value.isascii() or not value.isdecimal() or len(value) > _DIGITS:
            raise OptionError(f"--set {text}: not a count", f"write --set {name}=1000")
        else:
            values[name] = int(value)
    if options.forget_keys_after is not None:
        after = options.forget_keys_after
        values["forget_keys_after"] = _seconds(after, after, "--forget-keys-after ")
    if getattr(options, "engine", "local") == "local":  # on Spark the evaluation is in other processes
        values.setdefault("memory_limit", memory_of_machine() * 3 // 4)
    return Settings(**values, evaluator=options.evaluator)


def _seconds(text: str, value: str, option: str = "--set ") -> float:
    """The value of a setting that is a duration."""
    from spaseq.core.events.time import parse_duration

    try:
        return parse_duration(value) / 1e9
    except OptionError as error:
        raise OptionError(f"{option}{text}: {error.problem}", error.hint) from None


def _bytes(text: str, name: str, value: str) -> int:
    """The value of a setting that is a number of bytes."""
    found = _SIZE.fullmatch(value.strip())
    if found is None or len(found[1]) > _DIGITS:
        raise OptionError(f"--set {text}: not a number of bytes", f"write --set {name}=2GB, or 500MB, or 65536")
    size = Decimal(found[1]) * _UNITS[found[2].upper()]
    if size >= 10**_DIGITS:
        raise OptionError(f"--set {text}: more bytes than there are", f"write --set {name}=2GB")
    return int(size)
