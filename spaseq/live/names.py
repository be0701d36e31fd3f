"""Stable names of matches: the same match, found again, has the same name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def match_id(query: Any, match: Any) -> str:
    """A text of 32 hexadecimal digits that names a match of a query, for sinks that drop what they have.

    It is made of the text of the query and of the match: its positions, their times, its bindings, the number of its
    silence (`NOT … FOR EVERY`), and what its events hold. An evaluation that goes on from a state gives a match that it
    finds again the same name, if the source delivers the same events in the same order. In another order the positions
    differ: then a match found again has another name, and is doubled. It never has the name of another match whose
    events hold something else, so none is dropped for it. A name is as stable as the labels of the blank nodes in its
    bindings; those in events count as one.

    Of a network, `match` is the pair of a query's name and a match. Costs about what reading `match.events` costs.
    """
    name = ""
    if isinstance(match, tuple):
        name, match = match
        query = query.queries[name]
    bound = sorted((variable, repr(value)) for variable, value in match.bindings.items())
    bound += [("SILENCE", str(match.silence))] if getattr(match, "silence", 0) else []
    events = [_tuple(event) if isinstance(event, Mapping) else _graph(event) for event in match.events]
    parts = [name, query.text, match.start, match.end, match.positions, match.times, bound, events]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _tuple(event: Mapping[str, Any]) -> list[list[Any]]:
    """The attributes of an event, those that are NULL left out: they are there or not, by the batch it came in."""
    return sorted([name, _plain(value)] for name, value in event.items() if value is not None)


def _plain(value: Any) -> Any:
    """A value that does not depend on the batch either: 1 becomes 1.0 in a column with 1.5."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) else repr(value)


def _graph(event: Any) -> list[Any]:
    triples = sorted([_term(term) for term in triple] for triple in event.triples)
    return [event.stream, event.time, triples]


def _term(term: Any) -> str:
    label = term.n3()
    return "_:" if label.startswith("_:") else label
