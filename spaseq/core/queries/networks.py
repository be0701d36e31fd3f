"""Networks of queries, of either language: the order in which they are evaluated, and the file that names them."""

from __future__ import annotations

import graphlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from spaseq.core.errors import OptionError, expect_type

_Q = TypeVar("_Q")


@dataclass(frozen=True, slots=True)
class Member(Generic[_Q]):
    """A query of a network. `feeds`: the numbers of those that it reads, in the order of the network; `read`: True if
    another one reads it; `reported`: True if its matches are wanted."""

    name: str
    query: _Q
    feeds: tuple[int, ...]
    read: bool
    reported: bool


def check_queries(queries: Any, name_of_one: str) -> None:
    """`OptionError` for what is no mapping of names, or has none. `name_of_one` says what the name of a query means."""
    expect_type("queries", queries, Mapping, "give texts by name: {'rise': 'SELECT …'}")
    if not queries:
        raise OptionError("a network of no queries", "give texts by name: {'rise': 'SELECT …'}")
    for name in queries:
        expect_type("the name of a query", name, str, name_of_one)


def members_of(
    queries: Mapping[str, _Q], reads: Mapping[str, list[str]], report: Iterable[str] | None
) -> tuple[Member[_Q], ...]:
    """The queries, each behind those that it `reads`, of one depth as they are given.

    Raises `OptionError` for queries that read each other, and if `report` names no query.
    """
    reported = set(queries) if report is None else set(_check_names(report, queries))
    try:
        depths: dict[str, int] = {}
        for name in graphlib.TopologicalSorter(reads).static_order():
            depths[name] = max((1 + depths[other] for other in reads[name]), default=0)
    except graphlib.CycleError as error:
        raise OptionError(
            f"these queries read each other: {' ← '.join(error.args[1])}",
            "a query may read those that do not read it, directly or through others",
        ) from None
    order = sorted(queries, key=depths.__getitem__)
    read = {other for others in reads.values() for other in others}
    return tuple(
        Member(name, queries[name], tuple(sorted(map(order.index, reads[name]))), name in read, name in reported)
        for name in order
    )


def _check_names(report: Iterable[str], queries: Mapping[str, Any]) -> list[str]:
    expect_type("report", report, Iterable, "give a list of names: ['rise']")
    names = [report] if isinstance(report, str) else list(report)
    for name in names:
        if name not in queries:
            raise OptionError(f"report names {name!r}, which is no query", f"one of {', '.join(queries)}")
    return names


def read_network(path: Path, compile_query: Callable[[str, str], _Q]) -> tuple[dict[str, _Q], list[str] | None]:
    """The compiled queries of a TOML file, and the names that it reports; None if it says nothing of that.

    The file has a table `queries` of texts, or of files (`{ file = "theft.ceql" }`, found beside it), by name; and
    perhaps `report`, a list of names. No file outside of its folder is read. `compile_query` takes a text and the name
    of its source. Raises `OptionError` for a file that is none.
    """
    try:
        contents = tomllib.loads(_text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path} is no TOML: {error}", "[queries], and below it name = 'SELECT …'") from None
    if unknown := sorted(contents.keys() - {"queries", "report"}):
        raise OptionError(f"{path} has {', '.join(unknown)}", "a network has [queries] and report = ['…']")
    queries = contents.get("queries")
    if not isinstance(queries, dict) or not queries:
        raise OptionError(f"{path} names no queries", "[queries], and below it name = 'SELECT …'")
    texts = {name: _query_of(said, name, path) for name, said in queries.items()}
    compiled = {name: compile_query(text, source) for name, (text, source) in texts.items()}
    report = contents.get("report")
    if report is not None and not (isinstance(report, list) and all(isinstance(name, str) for name in report)):
        raise OptionError(f"{path}: report is no list of names", "report = ['theft']")
    return compiled, report


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
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
    raise OptionError(f"{network}: {name} is no query", f"{name} = 'SELECT …', or {name} = {{ file = 'FILE' }}")
