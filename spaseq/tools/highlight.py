"""Colours for queries in editors and documents: lexers for Pygments, grammars for editors.

The words are `spaseq.core.words`. Pygments finds the lexers by their names, `ceql` and `spaseq`; TextMate
grammars (VS Code, JetBrains, Sublime Text) are in `docs/editors/vscode`, which `python -m spaseq.tools.highlight
FOLDER` writes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, ClassVar, Final

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from spaseq.core.words import LANGUAGES, TYPE_OF, keywords, patterns

_SETTINGS: Final = {
    "title": "CEQL and SPAseq",
    "properties": {
        "spaseq.command": {
            "type": "array",
            "items": {"type": "string"},
            "default": ["spaseq", "lsp"],
            "description": "The command of the language server, from pip install 'spaseq[lsp]'",
        }
    },
}


class CeqlLexer(RegexLexer):
    """CEQL."""

    name = "CEQL"
    aliases: ClassVar = ["ceql"]
    filenames: ClassVar = ["*.ceql"]
    flags = re.IGNORECASE | re.MULTILINE | re.DOTALL
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Text),
            (r"--[^\n]*", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            (r"'(?:[^'\n]|'')*'|\"(?:[^\"\n]|\"\")*\"|[‘’][^‘’\n]*’|[“”][^“”\n]*”", String),
            (r"<<.+?>>", String.Regex),
            (r"`[^`\n]+`", Name),
            (r"(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?", Number),
            (patterns("ceql")["keyword.control"], Keyword),
            (patterns("ceql")["entity.name.function"], Name.Function),
            (r"[^\W\d]\w*", Name),
            (r"(?:->|:)[+*]?|==|!=|<>|<=|>=|\.\.|[=<>+\-*/%;:|?]", Operator),
            (r"[\[\](){},.]", Punctuation),
        ]
    }


class SpaseqLexer(RegexLexer):
    """SPAseq, with the SPARQL inside."""

    name = "SPAseq"
    aliases: ClassVar = ["spaseq"]
    filenames: ClassVar = ["*.spaseq"]
    flags = re.IGNORECASE | re.MULTILINE
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Text),
            (r"<[^<>\"{}|^`\\\s]*>", Name.Label),
            (r"#[^\n]*", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', String),
            (r"[?$]\w+", Name.Variable),
            (r"@[a-z]+(?:-[a-z0-9]+)*", Name.Decorator),
            (r"\d{4,}-\d{2}-\d{2}T[0-9:.]+(?:Z|[+-]\d{2}:\d{2})?", Number),
            (r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", Number),
            (r"(?:[^\W\d_][\w.-]*)?:(?:[\w%\\.-]*[\w%\\-])", Name.Tag),
            (r"[^\W\d_][\w.-]*:(?!\S)|_:\w+", Name.Tag),
            (TYPE_OF, Keyword),
            (words([word for word in keywords("spaseq") if word != "a"], prefix=r"\b", suffix=r"(?![\w-])"), Keyword),
            (r"[^\W\d][\w-]*", Name),
            (r"\^\^|&&|\|\||!=|<=|>=|[=<>+\-*/;:,&|!?^]", Operator),
            (r"[\[\](){}.]", Punctuation),
        ]
    }


def _textmate(language: str, name: str) -> str:
    parts = [
        {"name": f"{scope}.{language}", "match": "(?i)" * (scope == "keyword.control") + match}
        for scope, match in patterns(language).items()
    ]
    grammar = {"name": name, "scopeName": f"source.{language}", "patterns": parts}
    return json.dumps(grammar, indent=2, ensure_ascii=False) + "\n"


def editor_files() -> dict[str, str]:
    """The files of the VS Code folder that follow from the words, beside its `extension.js`: texts by their paths."""
    languages = [
        {"id": "ceql", "aliases": ["CEQL"], "extensions": [".ceql"], "configuration": "./ceql.json"},
        {"id": "spaseq", "aliases": ["SPAseq"], "extensions": [".spaseq"], "configuration": "./spaseq.json"},
    ]
    grammars = [
        {"language": name, "scopeName": f"source.{name}", "path": f"./{name}.tmLanguage.json"} for name in LANGUAGES
    ]
    package = {
        "name": "spaseq-languages",
        "displayName": "CEQL and SPAseq",
        "description": "Colours, errors, hover and completion for queries of complex events",
        "version": "0.2.0",
        "publisher": "spaseq",
        "license": "Apache-2.0",
        "engines": {"vscode": "^1.82.0"},
        "main": "./extension.js",
        "dependencies": {"vscode-languageclient": "^9.0.1"},
        "contributes": {"languages": languages, "grammars": grammars, "configuration": _SETTINGS},
    }
    pairs = [["{", "}"], ["[", "]"], ["(", ")"]]
    comments = {"ceql": {"lineComment": "--", "blockComment": ["/*", "*/"]}, "spaseq": {"lineComment": "#"}}
    found = {"package.json": json.dumps(package, indent=2) + "\n"}
    for language in LANGUAGES:
        own = {"comments": comments[language], "brackets": pairs, "autoClosingPairs": [*pairs, ['"', '"'], ["'", "'"]]}
        found[f"{language}.json"] = json.dumps(own, indent=2) + "\n"
        found[f"{language}.tmLanguage.json"] = _textmate(language, "CEQL" if language == "ceql" else "SPAseq")
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in editor_files().items():
        (folder / path).write_text(text, encoding="utf-8")
