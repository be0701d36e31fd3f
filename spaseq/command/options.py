"""The words that both commands understand."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from spaseq.errors import OptionError
from spaseq.version import VERSION

__all__ = ["EVALUATORS", "add_query", "add_results", "command_parser", "count", "settings_of"]

EVALUATORS: Final = ("auto", "compact", "chain", "tree")
_DIGITS: Final = 18
"""Of a setting: it is counted in 64 bits."""


def command_parser(name: str, description: str) -> argparse.ArgumentParser:
    """The parser of a command, without its subcommands."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return parser


def add_query(parser: argparse.ArgumentParser, evaluators: str | None = None) -> None:
    """The query, and by what budgets it is run; `evaluators` says what --evaluator is for, where there is a choice."""
    parser.add_argument("query", metavar="QUERY", help="file of the query, or - for standard input")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="raise or lower a budget that an error names")  # fmt: skip
    parser.set_defaults(evaluator="compact")
    if evaluators is not None:
        parser.add_argument("--evaluator", choices=EVALUATORS, default="compact", help=evaluators)


def add_results(parser: argparse.ArgumentParser, formats: Iterable[str], default: str, what: str) -> None:
    """How `what` is written; `default` says which format is taken where neither --format nor a suffix names one."""
    results = parser.add_argument_group("results")
    results.add_argument("--format", choices=tuple(formats),
                         help=f"how to write {what} (that of the output's suffix, else {default})")  # fmt: skip
    results.add_argument("--output", metavar="PATH", help="where to write them (standard output)")
    results.add_argument("--limit", type=count, metavar="N", help=f"stop after N {what}")


def count(text: str) -> int:
    """A number of things, of the command line."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)


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
