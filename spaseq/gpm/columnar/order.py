"""The order of terms and of solution rows (SPARQL 1.1 §15.1).

Unbound comes first, then blank nodes, IRIs, literals. Literals of one kind are ordered by value. Other cases, which
SPARQL leaves open, are ordered by kind and text, so that what LIMIT keeps depends neither on how a stream is cut into
batches nor on the order of triples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.gpm.columnar.table import Space, Table
from spaseq.gpm.comparison import order_place, term_place

__all__ = ["by_all_terms", "by_keys", "ranks"]


def ranks(numbers: np.ndarray, space: Space, *, apart: bool) -> np.ndarray:
    """The rank of each row's term among the terms of `numbers` (int32, -1 for unbound), from 0: int64 (rows,). `apart`:
    different terms have different ranks. O(t log t) for t different terms, a Python step each."""
    used, codes = np.unique(numbers, return_inverse=True)
    places = [
        () if number < 0 else (term_place if apart else order_place)(space.term(number)) for number in used.tolist()
    ]
    order = {place: i for i, place in enumerate(sorted(set(places)))}
    return np.array([order[place] for place in places], np.int64)[codes]


def by_all_terms(table: Table, space: Space) -> np.ndarray:
    """The indices that sort the rows by event, then by all their terms."""
    return by_keys(table, (), (), space)


def by_keys(table: Table, keys: Sequence[np.ndarray], descending: Sequence[bool], space: Space) -> np.ndarray:
    """The indices that sort the rows by event, then by the terms `keys`, then by all their terms."""
    columns = [table.events.astype(np.int64)]
    for key, turned in zip(keys, descending, strict=True):
        place = ranks(key, space, apart=False)
        columns.append(-place if turned else place)
    columns += [ranks(table.columns[name], space, apart=True) for name in sorted(table.columns)]
    return np.lexsort(columns[::-1])
