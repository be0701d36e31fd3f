"""Matches as the rows of the frame that a batch job gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final, TypeVar

import pyarrow as pa

from spaseq.language.results.match import Match
from spaseq.rdf import term_key
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.tables import RANK, TERM_MATCHES, batch_of

_INDEX_BITS: Final = 32  # of a rank: the window's number above, the row's in the part below
_MATCHES: Final = 10_000  # matches in a record batch
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form:
    """How the matches of a query become rows. `shape`: of matches and the names of their variables, a record batch with
    the columns `table`, to which an ORDER BY (`ordered`) adds RANK."""

    query: QueryText
    time_unit: str
    shape: Callable[[Sequence[Match], Sequence[str]], pa.RecordBatch]
    table: pa.Schema
    ordered: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self.table.append(RANK) if self.ordered else self.table

    def rows(self, matches: Iterable[Match]) -> Iterator[pa.RecordBatch]:
        """The rows of the matches of one part, in their order."""
        compiled = self.query.compiled()
        variables, window = compiled.variables, compiled.window(self.time_unit)
        ranks = count()
        for found in chunks(matches, _MATCHES):
            batch = self.shape(found, variables)
            if self.ordered:
                numbers = [(window.number(match.times[-1]) << _INDEX_BITS) + next(ranks) for match in found]
                batch = batch.append_column(RANK, pa.array(numbers, RANK.type))
            yield batch


def as_terms(matches: Sequence[Match], variables: Sequence[str]) -> pa.RecordBatch:
    """TERM_MATCHES (`spaseq.spark.session.tables`): the times of positions, and terms as keys, from which objects can
    be made again."""
    rows = ((m.start, m.end, m.positions, m.times, [_key(m.bindings.get(v)) for v in variables]) for m in matches)
    return batch_of(TERM_MATCHES, rows)


def _key(term: Any) -> str | None:
    return None if term is None else term_key(term)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """`items`, so many at a time."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
