"""Stable names of matches: the same match, found again, has the same name."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def match_id(query: Any, match: Any) -> str:
    """A text of 32 hexadecimal digits that names a match of a query, for sinks that drop what they have.

    It is made of the text of the query and of the match's positions, their times and its bindings. An evaluation that
    goes on from a snapshot gives a match that it finds again the same name, if the source delivers the same events in
    the same order. Of a network, `match` is the pair of a query's name and a match. A name with blank nodes in its
    bindings is as stable as their labels.
    """
    name = ""
    if isinstance(match, tuple):
        name, match = match
        query = query.queries[name]
    bound = sorted((variable, repr(value)) for variable, value in match.bindings.items())
    parts = [name, query.text, match.start, match.end, match.positions, match.times, bound]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
