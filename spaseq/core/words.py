"""The words of both languages, and patterns that find the parts of a query: for colours and completion everywhere.

The words are those of the lark grammars. Lexers for Pygments (`spaseq.tools.highlight`), grammars for editors, the
studio and the language server use them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

LANGUAGES: Final = {"ceql": "ceql.syntax", "spaseq": "spaseq.language.syntax"}
"""By name the package with the grammar."""
TEXT_FORM: Final = ("delimiter", "decimal", "quote", "encoding", "time_format", "column_types")
"""The options for the form of text files of tuples (`spaseq.core.events.options.TextForm`)."""
_SUFFIXES: Final = {".ceql": "ceql", ".rq": "spaseq", ".spaseq": "spaseq", ".sparql": "spaseq"}
_SPARQL: Final = (
    "a", "as", "asc", "bind", "desc", "distinct", "exists", "false", "filter", "graph", "in", "minus", "not",
    "optional", "separator", "true", "undef", "union", "values",
)  # fmt: skip
"""Words inside of graph patterns and clauses."""
TYPE_OF: Final = r"\ba(?=\s+(?:[<?$]|[\w-]*:\w))"
"""The word `a` of SPARQL, before a term: case is ignored, and the first GPM of most queries is named A."""
_UNITS: Final = re.compile(r"/\(([\w|?]+)\)(s\?)?")
_QUOTED: Final = re.compile(r'"([A-Za-z]+)"i')


@cache
def keywords(language: str) -> tuple[str, ...]:
    """The words of a language, in lower case, in order of the alphabet; of SPAseq those of SPARQL too."""
    found = {word.lower() for word in _QUOTED.findall(_grammar(language))}
    for alternatives, plural in _UNITS.findall(_grammar(language)):
        found |= {form for word in alternatives.split("|") for form in _forms(word, plural)}
    return tuple(sorted(found | set(_SPARQL if language == "spaseq" else ())))


def _units(language: str) -> list[str]:
    """The words that have a plural: of time, which stand behind a number and are names elsewhere."""
    given = [(word, plural) for words, plural in _UNITS.findall(_grammar(language)) for word in words.split("|")]
    return sorted({form for word, plural in given if plural or "?" in word for form in _forms(word, plural)})


def _forms(word: str, plural: str) -> set[str]:
    return {word.removesuffix("s?"), word.replace("?", "")} | ({word + "s"} if plural else set())


def _grammar(language: str) -> str:
    """Without comments. The package of the grammar is not imported: it would load rdflib."""
    package, *rooms = LANGUAGES[language].split(".")
    grammar = files(package).joinpath(*rooms, "grammar.lark").read_text("utf-8")
    return "\n".join(line for line in grammar.splitlines() if not line.lstrip().startswith("//"))


def language_of(path: str) -> str | None:
    """The language given by the end of a file's name; None if it gives none."""
    return next((language for suffix, language in _SUFFIXES.items() if path.lower().endswith(suffix)), None)


def patterns(language: str) -> dict[str, str]:
    """By scope, as TextMate names them, the pattern of a part of the text; the first that matches at a place counts.

    Python, JavaScript and Oniguruma read them alike: case is ignored, `$` is the end of a line.
    """
    words = rf"\b(?:{'|'.join(word for word in keywords(language) if word != 'a')})\b(?!-)"
    if language == "ceql":
        units = _units(language)
        others = (word for word in keywords(language) if word not in units)
        words = rf"\b(?:{'|'.join(others)})\b(?!-)|(?<=[\d.] )(?:{'|'.join(units)})\b"
        return {
            "comment.line": r"--.*$",
            "comment.block": r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/",
            "string.quoted": r"'(?:[^'\n]|'')*'|\"(?:[^\"\n]|\"\")*\"",
            "variable.other": r"`[^`\n]+`",
            "keyword.control": words,
            "entity.name.function": r"\b[A-Za-z_]\w*(?=\()",
            "constant.numeric": r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b",
            "keyword.operator": r":\+|[=<>!+\-*/%;:]+",
        }
    return {
        "entity.name.type.iri": r"<[^<>\"{}|^`\\\s]*>",
        "comment.line": r"(?:^|\s)#.*$",
        "string.quoted": r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'",
        "variable.other": r"[?$]\w+",
        "entity.name.tag": r"(?:[A-Za-z][\w.-]*)?:[\w%.-]*[\w%-]|[A-Za-z][\w.-]*:(?!\S)",
        "keyword.control": f"{words}|{TYPE_OF}",
        "constant.numeric": r"\b\d+(?:\.\d+)?\b",
        "keyword.operator": r"[=<>!+\-*/;:,&|?]+",
    }
