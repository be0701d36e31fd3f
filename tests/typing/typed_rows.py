"""`match.as_` gives objects of the class that it was given: a field that it does not have is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import ceql


@dataclass
class Theft:
    user: str
    failures: int


class Pair(NamedTuple):
    user: str
    failures: int


class Entry(TypedDict):
    user: str
    failures: int


def rows(query: ceql.Query) -> list[Theft]:
    thefts: list[Theft] = [match.as_(Theft) for match in query.run([])]
    pairs: list[Pair] = [match.as_(Pair) for match in query.open().push({"type": "A"})]
    entries: list[Entry] = [match.as_(Entry) for match in query.run([])]
    found = ceql.Network({"first": query}).run([])
    others: list[Theft] = [match.as_(Theft) for match in found.of("first")] + [match.as_(Theft) for _, match in found]
    words: list[str] = [pairs[0].user, entries[0]["user"], thefts[0].user]
    total: int = others[0].failures + entries[0]["failures"]
    print(words, total, pairs[0].usr)  # type: ignore[attr-defined]
    print(entries[0]["usr"])  # type: ignore[typeddict-item]
    wrong: int = thefts[0].user  # type: ignore[assignment]
    print(wrong, found.count(), len(found.collect()), found.of("first").head(2)[0].row, found[0][1].row)
    return thefts
