"""The file of a network: a TOML table `queries`, and perhaps `report`, a list of names."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spaseq.core.errors import OptionError

_HINT: Final = "[queries], and below it name = 'SELECT …'"


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """The contents of the file of a network. `texts`: of each query by name its text, and the name of its source in
    errors. `report` is None if the file has none."""

    texts: dict[str, tuple[str, str]]
    report: list[str] | None


def read_network(path: Path) -> NetworkFile:
    """The contents of the file. No file outside of its folder is read. Raises `OptionError` for a file that is none."""
    try:
        contents = tomllib.loads(_text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path} is no TOML: {error}", _HINT) from None
    if unknown := sorted(contents.keys() - {"queries", "report"}):
        raise OptionError(f"{path} has {', '.join(unknown)}", "a network has [queries] and report = ['…']")
    queries = contents.get("queries")
    if not isinstance(queries, dict) or not queries:
        raise OptionError(f"{path} names no queries", _HINT)
    texts = {name: _query_of(said, name, path) for name, said in queries.items()}
    report = contents.get("report")
    if report is not None and not (isinstance(report, list) and all(isinstance(name, str) for name in report)):
        raise OptionError(f"{path}: report is no list of names", "report = ['theft']")
    return NetworkFile(texts, report)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None


def _query_of(said: Any, name: str, network: Path) -> tuple[str, str]:
    """The text of a query of a TOML file, and the name of its source in errors."""
    if isinstance(said, str):
        return said, name
    if isinstance(said, dict) and set(said) == {"file"} and isinstance(said["file"], str):
        path = network.parent / said["file"]
        if not path.resolve().is_relative_to(network.parent.resolve()):
            raise OptionError(f"{network}: {said['file']} lies outside of the folder of the network", "copy it there")
        return _text_of(path), str(path)
    raise OptionError(f"{network}: {name} is no query", f"{name} = 'SELECT …', or {name} = {{ file = '{name}.ceql' }}")
