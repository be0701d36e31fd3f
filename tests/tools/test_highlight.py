"""Colours for queries: the words are those of the grammars, no text of a query is an error, the editor's files are
current."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ceql.syntax.parse import parse as parse_ceql
from spaseq.core.words import keywords
from spaseq.language.syntax.parse import parse as parse_spaseq
from tests.docs.test_references import CEQL, SPASEQ
from tests.support.fences import fences

highlight = pytest.importorskip("spaseq.tools.highlight", reason="Pygments is not installed")
pygments_token = pytest.importorskip("pygments.token", reason="Pygments is not installed")
ROOT = Path(__file__).resolve().parents[2]
VSCODE = ROOT / "docs" / "editors" / "vscode"


def _queries(language: str) -> list[str]:
    end = {"ceql": "ceql", "spaseq": "rq"}[language]
    found = [path.read_text("utf-8") for path in sorted((ROOT / "examples").glob(f"*/*.{end}"))]
    page = {"ceql": CEQL, "spaseq": SPASEQ}[language][1]
    blocks = [fence.parts() for fence in fences(page) if fence.language == language]
    return found + [query for query, marked in blocks if marked and marked[-1][0] == "gives"]


@pytest.mark.parametrize(("language", "lexer"), [("ceql", "CeqlLexer"), ("spaseq", "SpaseqLexer")])
def test_every_query_has_colours_throughout(language: str, lexer: str) -> None:
    queries = _queries(language)
    assert len(queries) > 20
    for query in queries:
        tokens = list(getattr(highlight, lexer)().get_tokens(query))
        wrong = [text for kind, text in tokens if kind is pygments_token.Error]
        assert not wrong, (wrong, query)
        marked = {text.upper() for kind, text in tokens if kind in pygments_token.Keyword}
        assert "WHERE" in marked or "SEQ" in marked, query


def test_the_words_are_those_of_the_grammars() -> None:
    assert {"select", "partition", "within", "seconds", "second", "like", "strict"} <= set(keywords("ceql"))
    assert {"define", "gpm", "seq", "stream", "sliding", "minutes", "optional"} <= set(keywords("spaseq"))
    for language, (grammar, _) in (("ceql", CEQL), ("spaseq", SPASEQ)):
        quoted = {word.lower() for word in re.findall(r'"([A-Za-z]+)"i', grammar.read_text("utf-8"))}
        assert len(quoted) > 15 and quoted <= set(keywords(language))


def test_a_gpm_called_a_is_no_keyword_and_the_predicate_a_is_one() -> None:
    query = "SELECT ?x WHERE { SEQ (A ; B) DEFINE GPM A ON S { ?x a :C ; :p ?y . ?y a <urn:D> } }"
    kinds = [(text, kind in pygments_token.Keyword) for kind, text in highlight.SpaseqLexer().get_tokens(query)]
    assert [keyword for text, keyword in kinds if text == "A"] == [False, False]
    assert [keyword for text, keyword in kinds if text == "a"] == [True, True]
    grammar = json.loads(highlight.editor_files()["spaseq.tmLanguage.json"])
    pattern = next(part["match"] for part in grammar["patterns"] if part["name"] == "keyword.control.spaseq")
    assert [word for word in re.findall(pattern, query) if word in "aA"] == ["a", "a"]


def test_a_variable_called_second_is_no_keyword_and_the_unit_is_one() -> None:
    query = "SELECT * WHERE A AS second ; B FILTER second.v > 1 WITHIN 10 second"
    kinds = [
        kind in pygments_token.Keyword for kind, text in highlight.CeqlLexer().get_tokens(query) if text == "second"
    ]
    assert kinds == [False, False, True]


def test_the_files_for_editors_are_current() -> None:
    files = highlight.editor_files()
    assert {path.name for path in VSCODE.iterdir()} == files.keys() | {"extension.js"}
    for name, text in files.items():
        again = f"python -m spaseq.tools.highlight {VSCODE.relative_to(ROOT)}"
        assert (VSCODE / name).read_text("utf-8") == text, f"{again} makes it"
        assert json.loads(text)


def test_the_patterns_for_editors_find_what_they_are_for() -> None:
    for language, query, parse in (
        ("ceql", _queries("ceql")[0], parse_ceql),
        ("spaseq", _queries("spaseq")[0], parse_spaseq),
    ):
        parse(query, "q")
        grammar = json.loads(highlight.editor_files()[f"{language}.tmLanguage.json"])
        patterns = {part["name"]: re.compile(part["match"], re.MULTILINE) for part in grammar["patterns"]}
        found = {text.upper() for text in patterns[f"keyword.control.{language}"].findall(query)}
        assert {"SELECT", "WHERE"} <= found and all(pattern.search("") is None for pattern in patterns.values())
