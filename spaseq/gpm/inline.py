"""Rows of inline data that are kept as columns, for VALUES of many IRIs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rdflib.term import URIRef


class InlineTerms:
    """The rows of a VALUES, each of which binds all `names` to IRIs.

    `columns`: int32 (rows,) by name, places in `keys`, the bytes of the terms (`spaseq.rdf.term_bytes`), all different.
    Iterating makes the terms, one row at a time, as `spaseq.gpm.algebra.Values` has them.
    """

    def __init__(self, keys: Sequence[bytes], columns: Mapping[str, np.ndarray]) -> None:
        self.keys: Sequence[bytes] = keys
        self.columns: Mapping[str, np.ndarray] = {name: columns[name] for name in sorted(columns)}

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, sorted."""
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[tuple[tuple[str, URIRef], ...]]:
        columns = [[(name, place) for place in column.tolist()] for name, column in self.columns.items()]
        for row in zip(*columns, strict=True):
            yield tuple((name, URIRef(self.keys[place][1:-1].decode())) for name, place in row)
