"""The requests of the browser: each field is checked before it is used.

No path comes from the browser. A file is text that it sends, or a file of a setup, by the name that the page has for
it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.core.words import LANGUAGES
from spaseq.tools.studio.language import READING
from spaseq.tools.studio.replies import VERSION
from spaseq.tools.studio.setups import ENDINGS, TEXT, Setup, is_name
from spaseq.tools.studio.workers import MEMORY, QUERY

BODY: Final = 8_000_000
"""Bytes of a request."""
ROWS: Final = 500
"""Matches of a run, at the most."""
SECONDS: Final = 600.0
_INPUTS: Final = 64
_CHARACTERS: Final = "a name has none of / \\ : , * ? [ ], and no . - ~ = or space at its beginning"


@dataclass(frozen=True, slots=True)
class Job:
    """A request that was understood. `request` is for the worker, but for the folder of `texts`, which are written
    there by their names."""

    request: dict[str, Any]
    texts: Mapping[str, str]

    def written(self, folder: str) -> dict[str, Any]:
        """The request, once the texts are in the folder."""
        for name, text in self.texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8", newline="")
        return {**self.request, "folder": folder}


def job(body: Any, do: str, setups: Mapping[str, Setup]) -> Job:
    """The job of a request to `check` or `run`. Raises `OptionError` for a request that cannot be served."""
    if not isinstance(body, dict):
        raise OptionError("a request is a JSON object")
    if body.get("version", VERSION) != VERSION:
        raise OptionError(f"version {body.get('version')!r} of this interface is not known", f"this is {VERSION}")
    language = _text(body, "language", 20)
    if language not in LANGUAGES:
        raise OptionError(f"there is no language {language!r}", " or ".join(LANGUAGES))
    source = _text(body, "source", 200, "query")
    if not is_name(source):
        raise OptionError(f"{source!r} is no name for a file of a query", _CHARACTERS)
    setup = setups.get(_text(body, "setup", 100, ""))
    request = {
        "do": do, "language": language, "text": _text(body, "text", QUERY), "source": source,
        "reading": _reading(body, language), "valuations": body.get("valuations") is True,
        "groups": {} if setup is None else {iri: list(by) for iri, by in setup.inputs.groups.items()},
        "limit": int(_number(body, "limit", ROWS, ROWS)), "seconds": _number(body, "seconds", 60.0, SECONDS),
        "memory": MEMORY,
    }  # fmt: skip
    files, shown, texts = _files(body, setup)
    return Job({**request, "files": files, "shown": shown}, texts)


def _files(body: Mapping[str, Any], setup: Setup | None) -> tuple[list[Any], list[Any], dict[str, str]]:
    """(role, name, path) of the inputs, the same as people see them, and the texts by the names of their files."""
    given = body.get("files", [])
    if not isinstance(given, list) or len(given) > _INPUTS or not all(isinstance(item, dict) for item in given):
        raise OptionError(f"files is a list of at most {_INPUTS} objects")
    known = {} if setup is None else setup.paths
    files, shown, texts = [], [], dict[str, str]()
    lower: dict[str, tuple[str, str]] = {}  # the name and the text by the name as systems without case have it
    for item in given:
        role, name, file = _text(item, "role", 10), _text(item, "name", 2_000, ""), _text(item, "file", 300)
        if role not in ("events", "stream", "kb") or any(c in name for c in "=,\n"):
            raise OptionError(f"an input {role!r} with the name {name!r} cannot be")
        if item.get("text") is None:
            own = known.get((role, name, file))
            if own is None:
                raise OptionError(f"no file {file!r} was named when the studio was started", "send its text")
            files.append((role, name, os.path.abspath(own)))
            shown.append((role, name, own))
            continue
        if not is_name(file) or not file.lower().endswith(ENDINGS):
            hint = f"it ends with {', '.join(ENDINGS)}; {_CHARACTERS}"
            raise OptionError(f"{file!r} is no name for a file of events", hint)
        texts[file] = text = _text(item, "text", TEXT, "")
        if lower.setdefault(file.lower(), (file, text)) != (file, text):
            raise OptionError(f"two files are called {file}", "give each a name of its own")
        files.append((role, name, file))
        shown.append((role, name, file))
    return files, shown, texts


def _reading(body: Mapping[str, Any], language: str) -> dict[str, str]:
    given = body.get("reading", {})
    if not isinstance(given, dict):
        raise OptionError("reading is an object")
    unknown = [name for name in given if name not in READING[language]]
    if unknown:
        raise OptionError(f"reading has no {unknown[0]!r}", "it has " + ", ".join(READING[language]))
    return {name: _text(given, name, 1_000) for name in given if given[name]}


def _text(body: Mapping[str, Any], name: str, most: int, default: str | None = None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str):
        raise OptionError(f"{name} is a text", "see docs/studio.md")
    if len(value) > most:
        raise OptionError(f"{name} has {len(value):,} characters, and {most:,} are the most")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise OptionError(f"{name} has half a character (U+{ord(value[error.start]):04X})") from None
    return value


def _number(body: Mapping[str, Any], name: str, default: float, most: float) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise OptionError(f"{name} is a number from 0 to {most:g}")
    return float(value)
