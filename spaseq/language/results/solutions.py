"""Solutions, the pairs of a time and a mapping (Definition 16 of [SPAseq]), of matches; and matches as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from spaseq.gpm import Mapping, freeze
from spaseq.gpm.serialise import nquads_term
from spaseq.language.results.match import Match

_SORTED: Final = 10_000
"""So many solutions of one time are sorted before a limit cuts them."""


def distinct_solutions(
    matches: Iterable[Match], variables: Sequence[str], *, ordered: bool = False, limit: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The distinct (time, bindings) of matches that come in order of their ends, or of an ORDER BY (`ordered`); the
    first `limit` of them.

    Those of one time come in order of their terms, `variables` giving the columns, so the order is the same for every
    evaluator. They are held together; with a limit, of one time only the first 10,000 that are found, or the first
    `limit` if that is more. An ORDER BY is left as it is: its matches are solutions already.
    """
    if ordered:
        yield from ((match.time, match.bindings) for match in islice(matches, limit))
        return
    left = limit
    for time, group in groupby(matches, key=attrgetter("time")) if left != 0 else ():
        distinct: dict[Mapping, dict[str, Any]] = {}
        for match in group:
            distinct.setdefault(freeze(match.bindings), match.bindings)
            if left is not None and len(distinct) >= max(left, _SORTED):
                break
        found = sorted(distinct.values(), key=partial(_columns, variables))
        yield from ((time, bindings) for bindings in found[:left])
        if left is not None:
            left -= len(found)
            if left <= 0:  # the next match is not asked for
                return


def _columns(variables: Sequence[str], bindings: MappingABC[str, Any]) -> list[tuple[str, str]]:
    """A sort key: the terms' lexical forms, column by column, then their kinds; unbound first."""
    terms = [bindings.get(name) for name in variables]
    return [("" if t is None else str(t), "" if t is None else nquads_term(t)) for t in terms]


def match_table(matches: Sequence[Match], variables: Sequence[str]) -> pa.RecordBatch:
    """Matches as columns: start, end (int64), positions (list of int64), time (int64, ns), and per variable its term in
    N-Triples syntax (string, null if unbound). A variable named as one of the first four is written `?name`."""
    columns: dict[str, pa.Array] = {
        "start": pa.array([m.start for m in matches], pa.int64()),
        "end": pa.array([m.end for m in matches], pa.int64()),
        "positions": pa.array([list(m.positions) for m in matches], pa.list_(pa.int64())),
        "time": pa.array([m.time for m in matches], pa.int64()),
    }
    for name in variables:
        terms = [nquads_term(m.bindings[name]) if name in m.bindings else None for m in matches]
        columns[f"?{name}" if name in columns else name] = pa.array(terms, pa.string())
    return pa.RecordBatch.from_pydict(columns)
