"""Output formats. Each command has a table of them, a row with its writer for each format; rows of several commands are
here, and their writers in `spaseq.tools.command.writers`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from spaseq.core.errors import OptionError


@dataclass(frozen=True, slots=True)
class Format:
    """An output format.

    `writer` is `module:function`, imported only when used, because the table is read for every command line. It is a
    function of (`spaseq.tools.command.writers.Results`, file, of bytes if binary) that returns the number of results it
    wrote. `suffixes` are those of output files with this format. `whole`: the output can be read only once it is
    complete, as JSON. `binary`: the output is not text and must go to a file. `people`: it is for people; control
    characters are made visible. `letters`: the error handler of `str.encode` for letters that standard output does not
    have, if it is not UTF-8; formats with escapes of their own are ASCII then.
    """

    writer: str
    suffixes: tuple[str, ...] = ()
    whole: bool = False
    binary: bool = False
    people: bool = False
    letters: str = "strict"

    def load(self) -> Callable[..., Any]:
        """Imports the writer."""
        module, _, name = self.writer.partition(":")
        writer: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return writer


TABLE: Final = Format("spaseq.tools.command.writers:write_table", people=True, letters="backslashreplace")
CSV: Final = Format("spaseq.tools.command.writers:write_csv", ("csv",))
TSV: Final = Format("spaseq.tools.command.writers:write_tsv", ("tsv",))
JSON: Final = Format("spaseq.tools.command.writers:write_json", ("json",), whole=True, letters="spaseq-json")
JSONL: Final = Format("spaseq.tools.command.writers:write_jsonl", ("jsonl", "ndjson"), letters="spaseq-json")
PARQUET: Final = Format("spaseq.tools.command.writers:write_parquet", ("parquet", "pq"), whole=True, binary=True)
COUNT: Final = Format("spaseq.tools.command.writers:write_count", whole=True)


def chosen_format(
    formats: Mapping[str, Format], asked: str | None, output: str | None, default: str, *, live: bool = False
) -> str:
    """The format that `--format` names (`asked`), else that of the output's suffix, else the default.

    Raises `OptionError` for a suffix of another format, unless `--format` is given; and for a binary format without an
    output file. With `live`, results are read as they come, and a format that is `whole` raises it too.
    """
    name = asked or _by_suffix(formats, output) or default
    if live and formats[name].whole:
        *others, last = (other for other, form in formats.items() if not form.whole)
        hint = f"{name} can be read only once it is complete: use {', '.join(others)} or {last}"
        raise OptionError(f"--format {name} with --follow", hint)
    if formats[name].binary and output in (None, "-"):
        suffix = formats[name].suffixes[0]
        raise OptionError(f"--format {name} is written to a file", f"add --output FILE.{suffix}")
    return name


def _by_suffix(formats: Mapping[str, Format], output: str | None) -> str | None:
    path = PurePath(output or "")
    suffix = path.suffix.lower().removeprefix(".")
    found = next((name for name, form in formats.items() if suffix in form.suffixes), None)
    if found is None and suffix in _OTHERS:
        known = ", ".join(f".{s}" for form in formats.values() for s in form.suffixes)
        packed = "results are not compressed: " if suffix in _PACKED else ""
        hint = f"{packed}end it with one of {known}, or say by --format what to write there"
        raise OptionError(f"cannot write {path.name}: no format is called .{suffix}", hint)
    return found


_PACKED: Final = ("gz", "zst", "bz2", "xz", "zip")
_OTHERS: Final = frozenset((
    *_PACKED, "arrow", "avro", "db", "feather", "html", "ipc", "json", "n3", "nq", "nt", "ods", "orc",
    "parquet", "pdf", "pickle", "pkl", "png", "rdf", "sqlite", "svg", "trig", "ttl", "xls", "xlsx", "xml", "yml",
))  # fmt: skip
"""Suffixes of other formats: a file with one of them that is a table of text cannot be read as that format."""
