"""The documentation as a site: blocks with options are converted to the generator's form, and the site is checked.

The generator ignores a fenced block with an option that it does not know, and loses the headings behind it.
`zensical.toml` names this module as an extension of Markdown: `file="NAME"` becomes the block's title, the other
options of `tests.support.fences` are for the tests alone.

`python -m tests.support.site` checks a site that was built. Each heading must be there, and each task's words must be
in the section that answers it. No page may fetch anything from another host.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Section", "Task", "makeExtension", "sections", "tasks", "titled"]

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
_FENCE: Final = re.compile(r"^( *)(`{3,}|~{3,}) *(\w*) *(.*)$")
_LEXERS: Final = {".ceql": "ceql", ".rq": "spaseq"}
"""By the file of a block, whose colours it has on the site; on GitHub it is SQL or SPARQL."""
_FILE: Final = re.compile(r'\bfile="([^"]*)"')
_FOREIGN: Final = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*\bsrc="(https?:[^"]*)|<link\b[^>]*\brel="(?:stylesheet|preload)"[^>]*\bhref="(https?:[^"]*)"""
)
"""Something that a page fetches from another host."""
_TASK: Final = re.compile(r"^\| ([^|]+) \| \[[^\]]*\]\(([^)#]+)#([^)]+)\) \| ([^|]+) \|$", re.MULTILINE)


def titled(lines: list[str]) -> list[str]:
    """The lines of a page with the options of its blocks as the generator knows them."""
    found: list[str] = []
    closes = ""
    for line in lines:
        fence = _FENCE.match(line)
        if fence is not None and closes and line.strip() == closes:
            closes = ""
        elif fence is not None and not closes:
            closes = fence[2]
            file = _FILE.search(fence[4])
            language = _LEXERS.get(Path(file[1]).suffix, fence[3]) if file else fence[3]
            line = f"{fence[1]}{fence[2]}{language}" + (f' title="{file[1]}"' if file else "")
        found.append(line)
    return found


def makeExtension(**options: Any) -> Any:
    """The extension of Python-Markdown, which only an environment with the group `docs` has."""
    base = importlib.import_module("markdown.extensions").Extension
    step = importlib.import_module("markdown.preprocessors").Preprocessor
    made = type("Titles", (step,), {"run": lambda self, lines: titled(lines)})

    def extend(self: Any, md: Any) -> None:
        md.preprocessors.register(made(md), "titles", 28)  # in front of fenced blocks, 25

    return type("TitlesExtension", (base,), {"extendMarkdown": extend})(**options)


@dataclass(frozen=True)
class Section:
    """A heading of a page and the text below it, up to the next one."""

    page: str
    heading: str
    text: str

    @property
    def anchor(self) -> str:
        """The name that the generator gives it; GitHub gives the same, unless signs stand alone."""
        return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", self.heading.lower()).strip())


def sections(page: str) -> list[Section]:
    """The sections of a page of `docs`, the first one being that of its title."""
    found: list[tuple[str, list[str]]] = []
    closes = ""
    for line in (DOCS / page).read_text("utf-8").splitlines():
        fence = _FENCE.match(line)
        if fence is not None:
            closes = fence[2] if not closes else "" if line.strip() == closes else closes
        if not closes and (heading := re.match(r"#{1,4} (.*)", line)):
            found.append((heading[1], []))
        elif found:
            found[-1][1].append(line)
    return [Section(page, heading, "\n".join(text)) for heading, text in found]


@dataclass(frozen=True)
class Task:
    """A row of the table of tasks: the section that answers it, and the words searched for."""

    name: str
    page: str
    anchor: str
    words: tuple[str, ...]

    def found_in(self, text: str) -> bool:
        """True if all words are in the text, in any case."""
        return all(word.lower() in text.lower() for word in self.words)


def tasks() -> list[Task]:
    """The tasks of docs/tasks.md."""
    text = (DOCS / "tasks.md").read_text("utf-8")
    return [Task(name, page, anchor, tuple(words.split())) for name, page, anchor, words in _TASK.findall(text)]


def _problems(site: Path) -> Iterator[str]:
    """The faults of a site that was built."""
    items = json.loads((site / "search.json").read_text("utf-8"))["items"]
    texts = {item["location"]: f"{item['title']} {re.sub('<[^>]+>', '', item['text'])}" for item in items}
    for path in sorted(DOCS.rglob("*.md")):
        page = path.relative_to(DOCS).as_posix()
        html = (site / page).with_suffix(".html").read_text("utf-8")
        for found in _FOREIGN.finditer(html):
            yield f"{page}: the site fetches {found[1] or found[2]}"
        for section in sections(page)[1:]:
            if f'id="{section.anchor}"' not in html:
                yield f"{page}: the site has no heading {section.heading!r}"
    for task in tasks():
        place = f"{task.page.removesuffix('.md')}.html#{task.anchor}"
        text = texts.get(place) or texts.get(place.partition("#")[0], "")
        if not task.found_in(text):
            yield f"the search does not find {place} by {' '.join(task.words)}"


if __name__ == "__main__":
    problems = list(_problems(ROOT / "build" / "site"))
    print("\n".join(problems) or "the site has all headings, answers all tasks, and is complete by itself")
    sys.exit(bool(problems))
