"""What comes in and what goes out: the first bytes of files on all readers, and disks that take no more."""

from __future__ import annotations

import contextlib
import io
import json
import random
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import ceql
from ceql.cli.formats import MATCHES
from ceql.cli.main import main
from spaseq.core.errors import EventError, SpaseqError
from spaseq.core.events import GrowingFile

if TYPE_CHECKING:
    from tests.fuzz.kinds import Input

__all__ = ["check_full_disk", "check_readers", "draw_first_bytes", "draw_full_disk"]

_QUERY = "SELECT * WHERE A ; B WITHIN 5 EVENTS"
_FIRST = ("~", "~~", "\ufeff", " ~", "\t~", "  ", "#~", "# a, b~", '""~', "\0", "~\0", ",~", "\r", "\n", "[]~")
_NAMES = (
    "type,v",
    "v,type",
    '"type",v',
    " type , v",
    "type",
    "type,",
    "type,v,v",
    ",type",
    "typ,v",
    'type,"v',
    "type,v\0",
)
_ROWS = ("A,1", "B,2", "C,3", "", " ", "A", '"A",1', "\0,1", "é,1", "A,1,2")  # of one kind, as block by block they are


def draw_first_bytes(rng: random.Random) -> Input:
    """A CSV, TSV or JSON Lines file with something before its events, in some encoding and with some end of lines."""
    from tests.fuzz.kinds import Input

    suffix, end = rng.choice((".csv", ".csv", ".tsv", ".jsonl")), rng.choice(("\n", "\n", "\r\n", "\r"))
    first = "".join(rng.choices(_FIRST, (9, 5, 5, 3, 3, *[1] * 10), k=rng.choice((0, 1, 1, 2, 3))))
    rows = rng.choices(_ROWS, (90, 90, 50, 30, 2, 2, 30, 1, 9, 2), k=rng.randrange(8))
    if suffix == ".jsonl":
        lines = [json.dumps({"type": rng.choice("ABC"), "v": 1}) if row else "" for row in rows]
    else:
        lines = [rng.choices(_NAMES, (30, 4, 4, 4, 2, *[1] * 6))[0], *rows]
    text = first + "~".join(lines) + rng.choice(("~", "", "~~"))
    text = text.replace("~", end).replace(",", "\t" if suffix == ".tsv" else ",")
    data = text.encode(rng.choice(("utf-8",) * 8 + ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig")))
    return Input("readers", (suffix,), {f"e{suffix}": data})


def check_readers(given: Input) -> str:
    """All readers read the same events, or refuse them; standard input may be of no known format."""
    (file,) = given.files
    data = given.files[file]
    query = ceql.compile(_QUERY)

    def found(source: Any, *, count: bool = False) -> tuple[int, int]:
        matches = query.run(source)
        number = matches.count() if count else sum(1 for _ in matches)
        return matches.counters.events, number

    def piped() -> tuple[int, int]:
        with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))):
            return found("-")

    def followed() -> tuple[int, int]:
        with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))):
            return found(GrowingFile("-"))

    def line_by_line() -> tuple[int, int]:
        class Lines(io.BytesIO):
            def read1(self, size: int | None = -1, /) -> bytes:
                return self.readline()

        with mock.patch.object(sys, "stdin", io.TextIOWrapper(Lines(data))):
            return found(GrowingFile("-"))

    answers = {
        "run": _answer(lambda: found(file)),
        "count": _answer(lambda: found(file, count=True)),
        "piped": _answer(piped),
        "followed": _answer(followed),
        "line by line": _answer(line_by_line),
    }
    if file.endswith(".jsonl") and isinstance(answers["run"], str):  # without the name it is something else
        return "refused"
    refused = {name for name, answer in answers.items() if isinstance(answer, str)}
    unknown = {name for name in refused if "format of these events is not known" in str(answers[name])}
    known = {answer for name, answer in answers.items() if name not in refused}
    if len(known) > 1 or (refused - unknown and known):
        from tests.fuzz.checks import Wrong

        raise Wrong(f"readers do not agree: {answers}")
    return "refused" if refused - unknown else "read"


def _answer(ask: Callable[[], tuple[int, int]]) -> tuple[int, int] | str:
    try:
        return ask()
    except SpaseqError as error:
        if isinstance(error, EventError) and error.record is not None and error.record < 1:
            raise
        return str(error)


def draw_full_disk(rng: random.Random) -> Input:
    """Events, a format, and the size of the largest file."""
    from tests.fuzz.kinds import Input

    rows = "".join(f"{rng.choice('ABC')},{rng.random()}\n" for _ in range(rng.choice((10, 200, 3_000))))
    form = rng.choice([form for form in MATCHES if form != "count"])
    how = rng.choice(("--output", ">"))
    return Input("full disk", (form, how, str(rng.randrange(1, 200_000))), {"e.csv": f"type,v\n{rows}".encode()})


def check_full_disk(given: Input) -> str:
    """A file that takes no more holds whole results, the first; one that must be whole is as it was."""
    from tests.fuzz.checks import Wrong

    form, how, size = given.arguments
    how = "--output" if form == "parquet" else how
    whole, _, _ = _written("whole", form, "--output", None)
    cut, code, said = _written("cut", form, how, int(size))
    if len(whole) <= int(size):
        if code or cut != whole:
            raise Wrong(f"exit {code} though all has room: {said}")
        return "all"
    if code != 3 or "File too large" not in said:
        raise Wrong(f"exit {code}: {said}")
    if MATCHES[form].whole and how == "--output":
        if cut != b"before":
            raise Wrong("a part of a document is in its place")
    elif not whole.startswith(cut) or len(cut) > int(size) or (cut and not cut.endswith(b"\n") and form != "json"):
        raise Wrong(f"the file ends with {cut[-100:]!r}")
    return "cut"


def _written(name: str, form: str, how: str, size: int | None) -> tuple[bytes, int, str]:
    path, said = Path(name), io.StringIO()
    path.write_bytes(b"before")
    words = ["run", "SELECT x[v] WHERE A AS x ; B WITHIN 9 EVENTS", "--events", "e.csv", "--format", form]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stderr(said))
            if how == ">":
                out = stack.enter_context(open(path, "w", encoding="utf-8", newline=""))
                stack.enter_context(contextlib.redirect_stdout(out))
            else:
                words += ["--output", name]
            if size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
            code = main(words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return path.read_bytes(), code, said.getvalue()
