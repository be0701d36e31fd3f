"""Matches as the rows of the frame that a batch job gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final, TypeVar

import pyarrow as pa

from spaseq.core.events.options import one_of
from spaseq.core.events.time import unit_nanoseconds
from spaseq.gpm.serialise import key_parts, nquads_term
from spaseq.language.results.match import Match
from spaseq.rdf import term_key
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.tables import GRAPH_MATCHES, RANK, TERM_MATCHES, batch_of, one_name_each

_INDEX_BITS: Final = 32  # of a rank: the window's number above, the row's in the part below
_MATCHES: Final = 10_000  # matches in a record batch
T = TypeVar("T")
Shape = Callable[[Sequence[Match], Sequence[str]], pa.RecordBatch]
"""Of matches and the names of their variables, a record batch of rows."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the matches of a query become rows. `shape` gives the columns `table`, to
    which an ORDER BY (`ordered`) adds RANK."""

    query: QueryText
    time_unit: str
    shape: Shape
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


@dataclass(frozen=True, slots=True)
class TermForm:
    """A form of terms in rows: the type of a column, and what becomes of a term."""

    kind: pa.DataType
    of: Callable[[Any], Any]


def term_form(name: str) -> TermForm:
    """The form of this name. `text` is N-Triples, `value` an IRI, a label or the characters of a literal, `struct` its
    parts as in SPARQL's JSON results, and `key` what `spaseq.rdf.term_from_key` reads. Raises `OptionError` for another
    name."""
    one_of("terms", name, *_FORMS)
    return _FORMS[name]


def _parts(term: Any) -> dict[str, str | None]:
    kind, text, language, datatype = key_parts(term_key(term))
    return {"type": kind, "value": text, "datatype": datatype or None, "language": language or None}


_PARTS: Final = ("type", "value", "datatype", "language")
"""The fields of a term's struct. The type is as SPARQL's JSON results name it, `triple` with its text in N-Triples."""
_FORMS: Final = {
    "text": TermForm(pa.string(), nquads_term),
    "value": TermForm(pa.string(), str),
    "struct": TermForm(pa.struct([(name, pa.string()) for name in _PARTS]), _parts),
    "key": TermForm(pa.string(), term_key),
}


@dataclass(frozen=True, slots=True)
class MatchRows:
    """The shape of the rows that `match` gives: the variables, then `match_start` and `match_end`. With `positions`
    also `start`, `end` and `positions`. Times are of type `clock`; those that are numbers in `unit`."""

    terms: str
    clock: pa.DataType
    unit: str
    positions: bool

    def table(self, variables: Sequence[str]) -> pa.Schema:
        """The columns. Raises `OptionError` for two of one name."""
        fields = [pa.field(name, term_form(self.terms).kind) for name in variables]
        fields += [pa.field(name, self.clock) for name in ("match_start", "match_end")]
        if self.positions:
            fields += list(GRAPH_MATCHES)[:3]
        return one_name_each(pa.schema(fields))

    def __call__(self, matches: Sequence[Match], variables: Sequence[str]) -> pa.RecordBatch:
        columns = _columns(matches, variables, self.terms)
        columns += [[self._time(m.times[place]) for m in matches] for place in (0, -1)]
        if self.positions:
            columns += [[m.start for m in matches], [m.end for m in matches], [list(m.positions) for m in matches]]
        return _batch(columns, self.table(variables))

    def _time(self, time: int) -> Any:
        if pa.types.is_timestamp(self.clock):
            return time // 1000
        scale = unit_nanoseconds(self.unit)
        return time // scale if pa.types.is_integer(self.clock) else time / scale


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """The shape of the rows of a stream: those of GRAPH_MATCHES (`spaseq.spark.session.tables`), with the `time` of the
    last event in front of all `times`, and the variables. One with such a name is written `?name`."""

    terms: str

    def table(self, variables: Sequence[str]) -> pa.Schema:
        """The columns."""
        kind = term_form(self.terms).kind
        *place, times = GRAPH_MATCHES
        own = pa.schema([*place, ("time", pa.int64()), times])
        return pa.schema([*own, *((f"?{name}" if name in own.names else name, kind) for name in variables)])

    def __call__(self, matches: Sequence[Match], variables: Sequence[str]) -> pa.RecordBatch:
        bound = _columns(matches, variables, self.terms)
        times = ([m.times[-1] for m in matches], [list(m.times) for m in matches])
        own = ([m.start for m in matches], [m.end for m in matches], [list(m.positions) for m in matches], *times)
        return _batch([*own, *bound], self.table(variables))


def _columns(matches: Sequence[Match], variables: Sequence[str], terms: str) -> list[list[Any]]:
    """For each variable its terms in a form, None for none."""
    form = term_form(terms)
    return [[None if (t := m.bindings.get(name)) is None else form.of(t) for m in matches] for name in variables]


def _batch(columns: Iterable[Sequence[Any]], table: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, table, strict=True)]
    return pa.record_batch(arrays, schema=table)


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
