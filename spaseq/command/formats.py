"""How results may be written: a table of formats for each command, one row and one writer for a format."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from spaseq.errors import OptionError

__all__ = ["Format", "chosen_format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of results.

    `writer` is `module:function`, loaded when it is used: the table is read to parse a command line. `suffixes` are
    those of files that are written so. `whole`: what is written can be read only once it is complete. `binary`: it is
    no text and goes to a file.
    """

    writer: str
    suffixes: tuple[str, ...] = ()
    whole: bool = False
    binary: bool = False

    def load(self) -> Callable[..., Any]:
        """The writer."""
        module, _, name = self.writer.partition(":")
        writer: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return writer


def chosen_format(
    formats: Mapping[str, Format], asked: str | None, output: str | None, default: str, *, live: bool = False
) -> str:
    """The format that is asked for, else that of the output's suffix, else the default.

    Raises `OptionError` for a format that standard output cannot take, or one that is whole only at its end where
    results are to be read as they come (`live`).
    """
    name = asked or _by_suffix(formats, output) or default
    if live and formats[name].whole:
        *others, last = (other for other, form in formats.items() if not form.whole)
        hint = f"it is whole only at its end: use {', '.join(others)} or {last}"
        raise OptionError(f"--format {name} with --follow", hint)
    if formats[name].binary and output in (None, "-"):
        suffix = formats[name].suffixes[0]
        raise OptionError(f"--format {name} is written to a file", f"add --output FILE.{suffix}")
    return name


def _by_suffix(formats: Mapping[str, Format], output: str | None) -> str | None:
    suffix = PurePath(output or "").suffix.lower().removeprefix(".")
    return next((name for name, form in formats.items() if suffix in form.suffixes), None)
