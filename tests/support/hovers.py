"""The texts that editors show for words, made from the references: `python -m tests.support.hovers` writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ceql.operators.functions import FUNCTIONS
from spaseq.core.words import LANGUAGES, keywords

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "spaseq" / "tools" / "lsp" / "hovers.json"
_LONGEST = 700
_SIGNS = {
    "ceql": {";": "Then, skipping", "->": "Then, the next that fits", ":": "Then, directly"}
    | dict.fromkeys(("?", "+", "*", ":+", ":*", "->+", "->*"), "Repetition"),
    "spaseq": {";": "Then, first", ":": "Then, every", ",": "Then, directly", "+": "Repetition", "?": "Optional",
               "!": "Negation", "&": "AND and OR", "|": "AND and OR"},
}  # fmt: skip
_TITLES = {
    "ceql": {
        "Conditions and values": "true false in",
        "Selection strategies": "all any first last max",
        "PARTITION BY": "by",
        "SELECT": "none",
        "WITHIN": "event events microsecond microseconds nanosecond nanoseconds",
    },
    "spaseq": {
        "A query": "seq where",
        "In any order": "and",
        "Query forms": "as ask construct select",
        "DEFINE GPM": "a filter on",
        "WITHIN": "at starting event events",
        "AFTER MATCH": "last next no past row skip to",
        "One match: FIRST": "first",
        "Conditions between graph patterns": "in",
        "Clauses behind WHERE": "by group having order limit offset values asc separator undef",
        "Prologue, names and literals": "base prefix true false",
    },
}
"""By section, words that are in others too."""


def _sections(page: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _intro(section: str) -> str:
    """The text before the first example, without links."""
    text = re.split(r"^(?:```(?:ceql|spaseq|console|python)|\*\*Syntax)", section, maxsplit=1, flags=re.MULTILINE)[0]
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).strip()
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rsplit(" ", 1)[0] + " …"


def hovers() -> str:
    """The file's text: by language and word the title of a section, by title its beginning, by function its row."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for language in LANGUAGES:
        sections = _sections((ROOT / "docs" / language / "reference.md").read_text("utf-8"))
        sections.pop("The keywords", None)
        words = dict(_SIGNS[language])
        titles = {word: title for title, some in _TITLES[language].items() for word in some.split()}
        for word in keywords(language):
            words[word] = titles.get(word) or _of(word, sections)
        used = {title: _intro(sections[title]) for title in sections if title in words.values()}
        functions = _functions(sections) if language == "ceql" else {}
        found[language] = {"words": words, "sections": used, "functions": functions}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _functions(sections: dict[str, str]) -> dict[str, str]:
    """By function what its rows in the tables of the reference say; of an aggregate, the section."""
    found = {}
    for name in sorted([*(name for name in FUNCTIONS if name.isidentifier()), "PREV"]):
        called, rows = re.compile(rf"`{name}[(`]"), []
        titles = ("Times and durations", "Functions") if name != "PREV" else ("Conditions on each round",)
        for title in titles:
            lines = (line for line in sections[title].splitlines() if line.startswith("| `"))
            cells = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines)
            rows += [_row(row) for row in cells if called.search(row[0]) and "](#" not in row[1]]
        found[name.lower()] = "\n\n".join(rows) or _intro(sections["Aggregates"])
    return found


def _row(cells: list[str]) -> str:
    """A row of a table: what is called, what it gives, the case of NULL and an example, if there are these."""
    call, gives, *rest = cells
    null = f"; NULL {rest[0]}" if len(rest) == 2 and rest[0] else ""
    return f"{call}: {gives}{null}" + (f". Example: {rest[1]}" if len(rest) == 2 else "")


def _of(word: str, sections: dict[str, str]) -> str:
    """The section that is called so, else that whose beginning names the word, else the first that has it."""
    whole = re.compile(rf"(?<![\w-]){re.escape(word.upper())}S?(?![\w-])")
    places = [dict(zip(sections, sections, strict=True)), {t: _intro(s) for t, s in sections.items()}, sections]
    return next((title for texts in places for title, text in texts.items() if whole.search(text)), "A query")


if __name__ == "__main__":
    PLACE.write_text(hovers(), "utf-8")
