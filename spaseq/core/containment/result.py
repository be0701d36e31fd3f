"""The answer of a comparison of two queries: a relation, and streams that show it."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any, Final


class Relation(enum.StrEnum):
    """The relation between the matches of two queries, over all streams."""

    EQUIVALENT = "equivalent"
    """On every stream both report the same matches."""
    OLD_IN_NEW = "old contained in new"
    """The new query reports all matches of the old one, and on some stream more."""
    NEW_IN_OLD = "new contained in old"
    """The old query reports all matches of the new one, and on some stream more."""
    OVERLAPPING = "overlapping"
    """Some match is reported by both, and each reports one that the other does not."""
    DISJOINT = "disjoint"
    """Each reports matches, and no match is ever reported by both."""
    UNDECIDED = "undecided"
    """Not known; `Comparison.reason` says why."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A stream that the engine has run both queries over, and a match in it.

    `reported_by`: "old", "new" or "both". `rows`: the events, each a dict of its attributes; `stream` is the name of
    its stream, if the queries read several. `match`: start, end and positions of the match, and with valuations the
    positions of each variable.
    """

    reported_by: str
    rows: tuple[dict[str, Any], ...]
    match: dict[str, Any]

    def __str__(self) -> str:
        only = "both queries" if self.reported_by == "both" else f"the {self.reported_by} query alone"
        found = ", ".join(f"{name} {_short(value)}" for name, value in self.match.items())
        rows = (f"  {n}: {json.dumps(row, ensure_ascii=False, default=str)}" for n, row in enumerate(self.rows))
        return "\n".join([f"a match of {only}: {found}", *rows])


@dataclass(frozen=True, slots=True)
class Comparison:
    """The relation of two queries over all streams, with streams that show it.

    `only_old`: a stream with a match that only the old query reports; `only_new`, `both`: likewise. Each is None if
    there is none, or if none was found. `reason`: how the relation is known, or why it is not.
    """

    relation: Relation
    reason: str
    only_old: Witness | None = None
    only_new: Witness | None = None
    both: Witness | None = None

    @property
    def witness(self) -> Witness | None:
        """A stream on which the two differ, if one is known: with a match that is lost before one that is gained."""
        return self.only_old or self.only_new

    @property
    def differ(self) -> bool | None:
        """True if a stream is known on which the two differ, False if there is none; None if that is not known."""
        if self.witness is not None:
            return True
        return False if self.relation is Relation.EQUIVALENT else None

    def __str__(self) -> str:
        because = ", because " if self.relation is Relation.UNDECIDED else ": "
        return "\n".join([f"{self.relation}{because}{self.reason}", *map(str, filter(None, self._differences))])

    @property
    def _differences(self) -> tuple[Witness | None, ...]:
        return self.only_old, self.only_new


_MOST: Final = 60
"""Characters of a value in a line about a match."""


def _short(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
