"""What the GPMs find on a batch of events, as rows for buckets: Python objects for solutions only, none for events.

A row is (event, PARTITION BY key, mappings): `Row`. The columns of the solutions are read a distinct term at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.language.solving.solve import Solver
from spaseq.rdf import term_key
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.query_text import QueryText

if TYPE_CHECKING:
    from spaseq.spark.ingest.columns import Placed

Mapped = tuple[int, tuple[str | None, ...]]
"""The place of a GPM in the layout, and the terms (keys, or None) of its variables."""
Row = tuple[int, tuple[str, ...] | None, list[Mapped]]
"""Which event; the PARTITION BY key, as term keys by name; what GPMs found there."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a batch holds: `found`, by event, the number in the order of the source; `loose`: what is to be joined with
    knowledge first, (GPM, event, terms), by event."""

    found: list[Row]
    loose: list[tuple[int, int, tuple[str | None, ...]]]

    def rows(self, low: int, high: int) -> list[Row]:
        """The rows of the events [`low`, `high`)."""
        first, last = (bisect_left(self.found, bound, key=lambda row: row[0]) for bound in (low, high))
        return self.found[first:last]

    def unjoined(self, low: int, high: int) -> list[tuple[int, int, tuple[str | None, ...]]]:
        """Of `loose`, that of the events [`low`, `high`)."""
        first, last = (bisect_left(self.loose, bound, key=lambda row: row[1]) for bound in (low, high))
        return self.loose[first:last]


def found_in(placed: Placed, solver: Solver, query: QueryText, layout: Layout) -> Found:
    """What the GPMs find on a batch.

    As `Solver.solve` on each event. O(solutions) steps in Python, and with the layout's `blanks` O(events).
    """
    partition = sorted(query.compiled().checked.partition)
    solved = solver.solve_batch(placed.batch)
    rows: dict[tuple[int, tuple[str, ...] | None], dict[Mapped, None]] = {}
    loose: dict[tuple[int, int, tuple[str | None, ...]], None] = {}
    if layout.windows or (layout.blanks and not partition):
        rows = {(number, None): {} for number in range(len(placed.batch))}
    for gpm, name in enumerate(layout.gpms):
        if (solutions := solved.get(name)) is None:
            continue
        every = layout.blanks and bool(partition)  # an instant is of a partition also by what FILTERs leave out
        which = np.arange(len(solutions.kept)) if every else np.flatnonzero(solutions.kept)
        events = placed.numbers[solutions.events[which]].tolist()
        kept = solutions.kept[which].tolist()
        for number, terms, good in zip(events, _terms(solutions, which, layout.variables[gpm]), kept, strict=True):
            if name in layout.joined:
                loose[gpm, number, terms] = None
                continue
            key = key_of(layout, partition, gpm, terms) if partition else None
            if partition and key is None:
                continue
            own = rows.setdefault((number, key), {})
            if good:
                own[gpm, terms] = None
    found = [(number, key, list(mappings)) for (number, key), mappings in rows.items()]
    return Found(sorted(found, key=lambda row: row[0]), sorted(loose, key=lambda row: row[1]))


def key_of(layout: Layout, partition: Sequence[str], gpm: int, terms: Sequence[str | None]) -> tuple[str, ...] | None:
    """The PARTITION BY key of a mapping of GPM number `gpm`; None where it does not bind all of it."""
    key = [terms[layout.variables[gpm].index(name)] for name in sorted(partition)]
    whole = tuple(term for term in key if term is not None)
    return whole if len(whole) == len(key) else None


def _terms(solutions: Any, which: np.ndarray, variables: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
    """For each of the solutions `which` the keys of its terms, or None, in order of `variables`."""
    columns = [solutions.column(name) for name in variables]
    if any(column is None for column in columns):
        for row in which.tolist():
            terms = dict(solutions.mapping(row, None))
            yield tuple(term_key(terms[name]) if name in terms else None for name in variables)
        return
    if not columns:
        yield from [()] * len(which)
        return
    yield from zip(*(_keys(numbers[which], space) for numbers, space in columns), strict=True)


def _keys(numbers: np.ndarray, space: Any) -> list[str | None]:
    """The keys of terms, each made once."""
    distinct, places = np.unique(numbers, return_inverse=True)
    keys = [None if number < 0 else term_key(space.term(number)) for number in distinct.tolist()]
    return [keys[place] for place in places.tolist()]
