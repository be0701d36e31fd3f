"""A counter of unclear prose in docstrings, comments, names and documents (`tests/test_words.py` holds the limits).

`python -m tests.support.prose` prints the count of each kind, as the limits are written. With names of kinds, it prints
their places instead.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = ("spaseq", "ceql", "tests/support", "benchmarks")
DOCUMENTS = ("README.md", "CHANGELOG.md", "docs")
THIS = Path(__file__).resolve()

KINDS = {
    "long sentence": "A sentence of more than 30 words in a docstring: say one idea in each sentence.",
    "question": "A docstring that begins with a question word (What, Whether, How): use a noun, or `True if`.",
    "where": "A condition that begins with *where*: write *if*. *Where* is for places.",
    "whoever": "*whoever* or *somebody*: name the caller, the reader, the report.",
    "who": "*who* for a part of the program: name the part, or write *that*.",
    "told": "*told*: a part of the program is given a value, reports it, or is notified.",
    "participle": "A function named by a bare participle: use an imperative verb, or the noun of what it gives.",
}
"""Kind -> its description, and the remedy."""

MOST_WORDS = 30
_OPENING = re.compile(r"(What|Whether|How|Which|Where|Who)\b")
_WHERE = re.compile(r"(?:^|[.:;!?]\s+)Where\b(?=[^.;]*,)|[,;]\s+where\b")
"""A heuristic: *Where* that begins a sentence with a comma in it, and *where* behind a comma or a semicolon."""
_WHOEVER = re.compile(r"\b([Ww]hoever|[Ss]omebody)\b")
_TOLD = re.compile(r"\b[Tt]old\b")
_WHO = re.compile(r"\b[Ww]ho\b")
_PEOPLE = re.compile(r"\b(?:people|person|users?|readers?|authors?|those|anyone|developers?|operators?|one)\s+$")
"""*who* behind these is said of people."""
_ITEM = re.compile(r"\s*([-*]|\d+\.) | {4}[\w`, ]+: ")
"""The beginning of an item of a list, or of a row below `Attributes:`."""
_PARTICIPLE = re.compile(r"[a-z]+ed")
_IRREGULAR = re.compile(
    r"begun|bound|brought|built|chosen|done|drawn|fed|found|given|gone|gotten|grown|held|kept|known|laid|led|left|lent|lost"
    r"|made|meant|met|paid|said|seen|sent|shown|spent|sunk|taken|told|understood|won|worn|written"
)
_IMPERATIVES = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
"""Verbs in -ed. Forms that are both, such as *read* and *cut*, count as imperatives and are in neither list."""


class Place(NamedTuple):
    """One finding: its kind, the file and line, and the words."""

    kind: str
    path: Path
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.words}"


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """(line from 0, text on one line) of each paragraph and item of a list; code, doctests and tables are left out."""
    at, lines, fenced, indented, table = 0, list[str](), False, False, False
    for number, line in enumerate([*text.expandtabs().splitlines(), ""]):
        bare = line.strip()
        indented = bool(bare) and line.startswith("    ") and (indented or not lines)
        if re.fullmatch("-{3,}", bare):  # below a heading
            lines = []
            continue
        table = bool(bare) and (bare.startswith("====") or (table and not lines))
        code = fenced or indented or table or bare.startswith(("```", ">>>", "...", "|", "$ "))
        fenced ^= bare.startswith("```")
        if lines and (not bare or code or _ITEM.match(line)):
            yield at, " ".join(lines)
            lines = []
        if bare and not code:
            at = at if lines else number
            lines.append(bare)


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph. A list of names in code counts as one word; a colon ends no sentence."""
    plain = re.sub(r"`+[^`]*`+(?:, `+[^`]*`+)*", "`code`", paragraph)
    plain = re.sub(r"\b(e\.g|i\.e|cf|vs|etc)\.", r"\1", plain)
    yield from re.split(r"""(?:(?<=[.!?])|(?<=[.!?][)"']))\s+(?=[A-Z`\[("'Α-Ωσ⟨{\d*])""", plain)


def words(sentence: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def statements(tree: ast.Module) -> list[ast.AST]:
    """All statements, with the handlers and cases of `try` and `match`: a fifth of the nodes that `ast.walk` gives."""
    found: list[ast.AST] = [tree]
    for node in found:  # which grows meanwhile
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            found += getattr(node, block, ())
    return found


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.Expr, str]]:
    """(statement, text without indentation) of all docstrings, those of attributes and constants too."""
    for node in statements(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            first, newline, rest = node.value.value.partition("\n")
            yield node, first + newline + textwrap.dedent(rest)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """(line from 1, text) of each comment; lines of comments that follow each other are one."""
    at, last, lines = 0, 0, list[str]()
    if "#" not in text:
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            whole = not token.line[: token.start[1]].strip()
            if lines and not (whole and token.start[0] == last + 1):
                yield at, " ".join(lines)
                lines = []
            at = at if lines else token.start[0]
            last = token.start[0] if whole else 0
            lines.append(token.string.lstrip("#: "))
    if lines:
        yield at, " ".join(lines)


def _excerpt(text: str, start: int, end: int) -> str:
    return "… " * (start > 40) + text[max(0, start - 40) : end + 40].replace("\n", " ").strip()


def _in_text(path: Path, line: int, text: str) -> Iterator[Place]:
    """Findings of the kinds that any text can have."""
    for kind, pattern in (("where", _WHERE), ("who", _WHO)):
        for found in pattern.finditer(text):
            if kind == "where" or not _PEOPLE.search(text[: found.start()]):
                yield Place(kind, path, line, _excerpt(text, *found.span()))
    for kind, pattern in (("whoever", _WHOEVER), ("told", _TOLD)):
        for found in pattern.finditer(text):
            yield Place(kind, path, line, _excerpt(text, *found.span()))


def _in_code(path: Path) -> Iterator[Place]:
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    for statement, docstring in docstrings(tree):
        if opening := _OPENING.match(docstring.lstrip()):
            yield Place("question", path, statement.lineno, _excerpt(docstring.lstrip(), *opening.span()))
        for line, paragraph in paragraphs(docstring):
            for sentence in sentences(paragraph):
                if (count := words(sentence)) > MOST_WORDS:
                    yield Place("long sentence", path, statement.lineno + line, f"{count} words: {sentence[:60]} …")
            yield from _in_text(path, statement.lineno + line, re.sub(r"`[^`]*`", "`code`", paragraph))
    for line, comment in comments(text):
        yield from _in_text(path, line, comment)
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name.strip("_")
            participle = _PARTICIPLE.fullmatch(name) or _IRREGULAR.fullmatch(name)
            if participle and name not in _IMPERATIVES:
                yield Place("participle", path, node.lineno, node.name)


def _in_document(path: Path) -> Iterator[Place]:
    for line, paragraph in paragraphs(path.read_text("utf-8")):
        yield from _in_text(path, line + 1, re.sub(r"`[^`]*`", "`code`", paragraph))


def places() -> dict[str, list[Place]]:
    """The findings of each kind in the whole repository."""
    found: dict[str, list[Place]] = {kind: [] for kind in KINDS}
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path != THIS:
                for place in _in_code(path):
                    found[place.kind].append(place)
    for name in DOCUMENTS:
        whole = ROOT / name
        for path in sorted(whole.rglob("*.md")) if whole.is_dir() else [whole]:
            for place in _in_document(path):
                found[place.kind].append(place)
    return found


if __name__ == "__main__":
    for kind, all_places in places().items():
        if not sys.argv[1:]:
            print(f'    "{kind}": {len(all_places)},')
        elif kind in sys.argv[1:]:
            print("\n".join(map(str, all_places)))
