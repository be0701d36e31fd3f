"""The order of terms and of solution rows (SPARQL 1.1 §15.1).

Unbound comes first, then blank nodes, IRIs, literals. Literals of one kind are ordered by value. Other cases, which
SPARQL leaves open, are ordered by kind and text. So the choice of LIMIT depends neither on the cuts of a stream into
batches nor on the order of triples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spaseq.core.integers import different
from spaseq.gpm.columnar.table import Space, Table
from spaseq.gpm.comparison import order_place, term_place
from spaseq.rdf.columns import Kinds


def ranks(numbers: np.ndarray, space: Space, *, apart: bool) -> np.ndarray:
    """The rank of each row's term among the terms of `numbers` (int32, -1 for unbound), from 0: int64 (rows,). `apart`:
    different terms differ in rank. O(t log t) for t different terms; numbers as columns, others a Python step each."""
    used, codes = different(numbers)
    literals = space.literals()
    bound = used[1:] if len(used) and used[0] < 0 else used
    if len(bound) and (literals.numeric(bound) & literals.exact[bound]).all():
        values = literals.number[bound]
        if not np.isnan(values).any():
            values_apart, below = np.unique(values, return_inverse=True)
            if not apart or len(values_apart) == len(values):
                own = below.astype(np.int64)
                return (np.append(0, own + 1) if len(bound) < len(used) else own)[codes]
    places = list(map(_write if apart else _place, _key(used, space)))
    order = {place: i for i, place in enumerate(sorted(set(places)))}
    return np.array([order[place] for place in places], np.int64)[codes]


def first_rows(keys: Sequence[np.ndarray], descending: Sequence[bool], space: Space, most: int | None) -> np.ndarray:
    """The indices of the rows in order of the terms `keys` (int32, -1 for unbound), equal ones as they stand; no more
    than `most`. O(rows) for numbers and a small `most`, beside sorting as many and those equal to the last."""
    rows = np.arange(len(keys[0]))
    if most is not None and most < len(rows):
        if not most:
            return rows[:0]
        own = _values(keys[0], space)
        place = ranks(keys[0], space, apart=False) if own is None else own
        place = -place if descending[0] else place
        rows = np.flatnonzero(place <= np.partition(place, most - 1)[most - 1])
    places = [ranks(key[rows], space, apart=False) * (-1 if d else 1) for key, d in zip(keys, descending, strict=True)]
    return rows[np.lexsort(places[::-1])][:most]


def _values(numbers: np.ndarray, space: Space) -> np.ndarray | None:
    """The doubles by which terms are ordered, if all are numbers of which that is true."""
    literals = space.literals()
    if not ((numbers >= 0) & literals.numeric(numbers) & literals.exact[numbers]).all():
        return None
    values = literals.number[numbers]
    return None if np.isnan(values).any() else values


_Known = tuple[int, str | None, Space]
"""The number of a term, its key if that decides its place, and its space."""


def _key(used: np.ndarray, space: Space) -> list[_Known]:
    known = np.isin(space.literals().kind[used], (Kinds.NO_LITERAL, Kinds.STRING)) & (used >= 0)
    pairs = zip(used.tolist(), known.tolist(), strict=True)
    return [(number, space.cased_key(number) if keyed else None, space) for number, keyed in pairs]


def _place(term: _Known) -> tuple[Any, ...]:
    """`comparison.order_place`; without rdflib's term for IRIs, blank nodes and strings."""
    number, key, space = term
    if key is None:
        return () if number < 0 else order_place(space.term(number))
    if key[0] == '"':
        return (3, "string", key[1:-1])
    return (2, "", key[1:-1]) if key[0] == "<" else (1, "", key[2:])


def _write(term: _Known) -> tuple[Any, ...]:
    """`comparison.term_place`."""
    number, key, space = term
    if key is None:
        return () if number < 0 else term_place(space.term(number))
    place = _place(term)
    return (place, place[-1], "", "") if key[0] == '"' else (place, place[-1])


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
