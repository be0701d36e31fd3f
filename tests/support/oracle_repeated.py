"""`φ ; NOT ψ FOR EVERY d`, by its definition (docs/semantics.md): a row for each silence behind a match.

Let m be one of the matches that the query without its last NOT reports. It has a row with the number k = 1, 2, … if the
time from its end up to k·d behind it

* ends no later than the last event of the stream comes;
* ends inside the window that the start of m opened;
* has no ψ of its partition in it, behind the end of m.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.support import oracle
from tests.support.oracle import Event, Query


class Again(Fraction):
    """The d of `NOT ψ FOR EVERY d`, in place of that of `NOT ψ FOR d` (`Query.patience`)."""


def evaluate(query: Query, stream: Sequence[Event]) -> list[Any]:
    """The matches of a query as `oracle.evaluate` has them; with EVERY, each of its rows, and as the fourth its
    number."""
    if not isinstance(query.patience, Again):
        return list(oracle.evaluate(query, stream))
    assert query.ending is not None
    times = [oracle.nanoseconds(event, place) for place, event in enumerate(stream)]
    found = []
    for start, end, taken in oracle.evaluate(replace(query, ending=None, patience=None), stream):
        positions = next(own for own in oracle.substreams(query, stream) if end in own)
        events = [stream[p] for p in positions]
        spoilers = [positions[w.start] for w in oracle.valuations(query.ending, events)]
        ended = min((times[p] for p in spoilers if p > end), default=None)
        for k in itertools.count(1):
            moment = times[end] + k * query.patience
            beyond = query.within is not None and moment - times[start] > query.within.size
            if moment > times[-1] or beyond or (ended is not None and ended <= moment):
                break
            found.append((start, end, taken, k))
    return sorted(found)
