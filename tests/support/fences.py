"""The blocks of the documentation that are executed: found in Markdown, run, and compared with their promises.

A block's language, and its lines of the form `-- word …`, determine the test:

* `ceql`: a query. Then `-- over a b`, events `TYPE value-of-a value-of-b`; `-- over` alone: one attribute, v. A stream
  is written as `S>TYPE`, no value as `NULL`; the attributes named `time` and `timestamp` are the events' times. Then
  `-- gives`, a match a line: its positions (`0 3`), an interval (`[0,3]`), an interval and positions (`[0,3] 0`), or
  the positions of each variable (`x=0 y=1,3`). If SELECT computes columns: their names, then the rows, cells two blanks
  apart. `-- error` in place of both: the message.
* `spaseq`: a query. Then `-- stream NAME` with TriG and `-- kb IRI` with Turtle; both have the prefixes of the query,
  and prov:. A line `3 { … }` of a stream is a named graph of time 3. Then `-- gives`: a line of columns (`?x`, `time`;
  `positions` as the first one), and a line for each solution, cells two blanks apart. `-- error` as above.
* `console`: `$ command` and the text that it prints on both of its outputs, in order. The folder is a copy of
  `examples/` and stays the same for a page; `cd` stays, too. Commands are `ceql`, `spaseq`, `head` and `cat`.
* `python`: it prints the text of a block `output` below it, if there is one. A page is one program, in that folder.
  `in="smart-grid"` begins in that folder.
* `csv`, `jsonl`, `sql`, `sparql`, `turtle`, `trig`, `python` with `file="NAME"`: written to NAME in that folder.

Matches and solutions are compared as sets, since their order is not promised. Texts are compared as they are; a line
`…` stands for any lines. A block of these languages that is not to be run gives the reason: `norun="needs a cluster"`.
Blocks of other languages, and without one, are for reading.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import ceql
import ceql.cli.main
import spaseq
import spaseq.cli.main
from spaseq.cli.output import FoundResults
from spaseq.core.errors import SpaseqError

__all__ = ["Fence", "Folder", "WrongFence", "fences", "run"]

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r'(\w+)="([^"]*)"')
_MARK = re.compile(r"^-- (over|gives|error|stream|kb)\b *(.*)$")
_GRAPH = re.compile(r"^(\d+(?:\.\d+)?|\d+-\S+) *(\{.*\}) *$")
_PROV = "@prefix prov: <http://www.w3.org/ns/prov#> .\n"
_FILES = ("csv", "jsonl", "sql", "sparql", "turtle", "trig", "python")


class WrongFence(AssertionError):
    """A block does not do as its page says."""


@dataclass(frozen=True)
class Fence:
    """A fenced block: the line of its first line of text, its language, options and text."""

    page: Path
    line: int
    language: str
    options: dict[str, str]
    text: str

    @property
    def place(self) -> str:
        """file:line"""
        name = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{name}:{self.line}"

    def parts(self) -> tuple[str, list[tuple[str, str, list[str]]]]:
        """The query, and the marked parts: (word, the rest of its line, lines)."""
        query: list[str] = []
        marked: list[tuple[str, str, list[str]]] = []
        for line in self.text.splitlines():
            if mark := _MARK.match(line):
                marked.append((mark[1], mark[2].strip(), []))
            else:
                (marked[-1][2] if marked else query).append(line)
        return "\n".join(query).strip("\n"), marked


@dataclass
class Folder:
    """The folder in which the blocks of a page are run: a copy of the examples, and the variables of its Python."""

    path: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str | None = None
    """The output of the last block of Python, until it is compared."""

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "examples", self.path, dirs_exist_ok=True)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The folder as the current one; the next block begins in the folder that a block changes to."""
        before = os.getcwd()
        os.chdir(self.path)
        try:
            yield
            self.path = Path.cwd()
        finally:
            os.chdir(before)


def fences(page: Path) -> list[Fence]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in _FENCE.finditer(text):
        indent, info, body = block[1], block[3].strip(), block[4]
        language, _, rest = info.partition(" ")
        lines = [line.removeprefix(indent) for line in body.splitlines(keepends=True)]
        line = text.count("\n", 0, block.start()) + 2
        found.append(Fence(page, line, language, dict(_OPTION.findall(rest)), "".join(lines)))
    return found


def run(fence: Fence, folder: Folder) -> None:
    """Runs a block. Raises `WrongFence`, with its file and line, if it does not do as it says."""
    if "norun" in fence.options:
        _check(fence, len(fence.options["norun"]) > 5, 'norun="…" says why the block is not run')
        return
    runners = {"ceql": _ceql, "spaseq": _spaseq, "console": _console, "output": _output, "python": _python}
    with folder.entered():
        os.chdir(fence.options.get("in", "."))
        if "file" in fence.options:
            _check(fence, fence.language in _FILES, f"a block of {fence.language} is not written to a file")
            Path(fence.options["file"]).write_text(fence.text, encoding="utf-8")
        elif fence.language in runners:
            try:
                runners[fence.language](fence, folder)
            except WrongFence:
                raise
            except Exception as error:
                raise WrongFence(f"{fence.place}: {type(error).__name__}: {error}") from error


def _check(fence: Fence, right: bool, problem: str) -> None:
    if not right:
        raise WrongFence(f"{fence.place}: {problem}")


def _promise(fence: Fence, marked: list[tuple[str, str, list[str]]]) -> tuple[str, str, list[str]]:
    _check(
        fence, bool(marked) and marked[-1][0] in ("gives", "error"), "the block does not end with -- gives or -- error"
    )
    word, rest, lines = marked[-1]
    return word, rest, [line.rstrip() for line in lines if line.strip()]


def _compared_as_sets(fence: Fence, got: list[str], expected: list[str]) -> None:
    def listed(rows: list[str]) -> str:
        return "\n".join("  " + row for row in rows) or "  nothing"

    same = sorted(got) == sorted(expected)
    _check(fence, same, f"this gives\n{listed(got)}\nand the page says\n{listed(expected)}")


def _compared_as_texts(fence: Fence, got: str, expected: list[str]) -> None:
    """A line `…` stands for any lines."""
    special = {"[": "[[]", "*": "[*]", "?": "[?]"}
    wanted = "\n".join(line.rstrip() for line in expected).strip("\n")
    pattern = "".join(special.get(c, c) for c in wanted)
    pattern = re.sub(r"^ *… *$\n?", "*", pattern, flags=re.MULTILINE)
    plain = "\n".join(line.rstrip() for line in got.splitlines()).strip("\n")
    right = fnmatchcase(plain, pattern) or (pattern.endswith("*") and fnmatchcase(plain + "\n", pattern))
    _check(fence, right, f"this prints\n{plain}\nand the page says\n{wanted}")


def _value(word: str) -> Any:
    if word in ("NULL", "true", "false"):
        return {"NULL": None, "true": True, "false": False}[word]
    if word.startswith("["):
        return json.loads(word)
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(word)
    return word


def _ceql(fence: Fence, folder: Folder) -> None:
    text, marked = fence.parts()
    word, _, expected = _promise(fence, marked)
    streams: dict[str, list[dict[str, Any]]] = {}
    for mark, rest, lines in marked[:-1]:
        _check(fence, mark == "over", f"-- {mark} is not for CEQL")
        names = rest.split() or ["v"]
        for line in filter(str.strip, lines):
            kind, *values = shlex.split(line)
            stream, _, kind = kind.rpartition(">")
            event = {"type": kind, **dict(zip(names, map(_value, values), strict=False))}
            streams.setdefault(stream, []).append({k: v for k, v in event.items() if v is not None})
    valuations = any("=" in line for line in expected)
    try:
        query = ceql.compile(text)
        events = streams.pop("", [])
        matches = list(query.run(**({"streams": streams} if streams else {"events": events}), valuations=valuations))
    except SpaseqError as error:
        _check(fence, word == "error", f"{error}")
        return _compared_as_texts(fence, str(error), expected)
    _check(fence, word == "gives", f"there is no error, but {len(matches)} matches")
    if query.columns:
        rows = ["  ".join(map(str, match.row.values())) for match in matches]
        told = ["  ".join(re.split(r"  +", line.strip())) for line in expected]
        return _compared_as_sets(
            fence, ["  ".join(query.columns), *(row.replace("None", "NULL") for row in rows)], told
        )
    intervals = any(line.startswith("[") for line in expected)

    def shown(match: ceql.Match) -> str:
        if valuations:
            return " ".join(f"{name}={','.join(map(str, taken))}" for name, taken in match.bindings.items())
        positions = " ".join(map(str, match.positions))
        return f"[{match.start},{match.end}] {positions}".rstrip() if intervals else positions

    _compared_as_sets(fence, [shown(match) for match in matches], expected)


def _spaseq(fence: Fence, folder: Folder) -> None:
    text, marked = fence.parts()
    word, _, expected = _promise(fence, marked)
    declared = "".join(
        f"@prefix {name} {iri} .\n" for name, iri in re.findall(r"(?i)\bprefix\s+(\S*:)\s*(<[^>]*>)", text)
    )
    given: dict[str, dict[str, str]] = {"stream": {}, "kb": {}}
    for number, (mark, name, lines) in enumerate(marked[:-1]):
        _check(fence, mark in given, f"-- {mark} is not for SPAseq")
        file = Path(f".fence-{number}.{'trig' if mark == 'stream' else 'ttl'}")
        file.write_text(declared + _PROV + "\n".join(_time_lines(lines)) + "\n", encoding="utf-8")
        given[mark][name.strip("<>")] = str(file)
    try:
        query = spaseq.compile(text)
        if not given["stream"] and word == "error":
            raise WrongFence(f"{fence.place}: there is no error")
        matches = list(query.run(given["stream"], given["kb"]))
    except SpaseqError as error:
        _check(fence, word == "error", f"{error}")
        return _compared_as_texts(fence, str(error), expected)
    _check(fence, word == "gives", f"there is no error, but {len(matches)} matches")
    head = re.split(r"  +", expected[0].strip()) if expected else []
    rows = {"  ".join(re.split(r"  +", line.strip())) for line in expected[1:]}
    if "positions" in head:
        _check(fence, head[0] == "positions", "the column positions is the first one")
        got = ["  ".join([" ".join(map(str, m.positions)), *_cells(query, [m], head[1:])[0]]) for m in matches]
        return _compared_as_sets(fence, sorted(set(got)), sorted(rows))
    if query.checked.clauses.ask:
        return _compared_as_sets(fence, ["true" if matches else "false"], head)
    got = ["  ".join(row) for row in _cells(query, matches, head)]
    _compared_as_sets(fence, sorted(set(got)), sorted(rows))


def _time_lines(lines: list[str]) -> Iterator[str]:
    """The lines of a stream, those of the form `3 { … }` as TriG."""
    for number, line in enumerate(lines):
        if graph := _GRAPH.match(line):
            time = f'"{graph[1]}"^^<http://www.w3.org/2001/XMLSchema#dateTime>' if "T" in graph[1] else graph[1]
            line = f"<graph:{number}> {graph[2]} <graph:{number}> prov:generatedAtTime {time} ."
        yield line


def _cells(query: Any, matches: list[Any], columns: list[str]) -> list[list[str]]:
    """The cells of the command's table, of some columns."""
    names, *rows = FoundResults(matches, query, None, False).texts()
    places = [list(names).index(column) for column in columns]
    return [[row[place] or "-" for place in places] for row in rows]


def _console(fence: Fence, folder: Folder) -> None:
    for command in re.split(r"^\$ ", fence.text, flags=re.MULTILINE)[1:]:
        while command.partition("\n")[0].endswith("\\"):
            command = re.sub(r"\\\n *", "", command, count=1)
        line, _, expected = command.partition("\n")
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            _command(fence, shlex.split(line))
        _compared_as_texts(fence, out.getvalue(), expected.splitlines())


def _command(fence: Fence, words: list[str]) -> None:
    name, *arguments = words
    if ">" in arguments:
        place = arguments.index(">")
        with open(arguments[place + 1], "w", encoding="utf-8") as into, contextlib.redirect_stdout(into):
            return _command(fence, [name, *arguments[:place]])
    files = [word for word in arguments if not word.startswith("-")]
    if name == "cd":
        os.chdir(arguments[0])
    elif name == "cat":
        for file in files:
            print(Path(file).read_text(encoding="utf-8"), end="")
    elif name == "head":
        count = next((int(word[1:]) for word in arguments if word[0] == "-"), 10)
        for file in files:
            print(*Path(file).read_text(encoding="utf-8").splitlines()[:count], sep="\n")
    else:
        _check(fence, name in ("ceql", "spaseq"), f"there is no command {name} here")
        with contextlib.suppress(SystemExit):
            (ceql.cli.main.main if name == "ceql" else spaseq.cli.main.main)(arguments)
    return None


def _python(fence: Fence, folder: Folder) -> None:
    out = io.StringIO()
    code = compile("\n" * (fence.line - 1) + fence.text, str(fence.page), "exec")
    with contextlib.redirect_stdout(out):
        exec(code, folder.names)
    folder.printed = out.getvalue()


def _output(fence: Fence, folder: Folder) -> None:
    _check(fence, folder.printed is not None, "there is no block of Python before this one")
    _compared_as_texts(fence, folder.printed or "", fence.text.splitlines())
    folder.printed = None
