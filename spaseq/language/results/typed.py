"""Results as a table of Arrow's types, or of RDF terms as they are.

The type of a column is known only once all results are: so this is for a table as a whole. Tables that are written as
results come, and Spark's, have each term as text (`solutions.match_table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from spaseq.core.events.time import CALENDAR
from spaseq.core.integers import different
from spaseq.gpm.serialise import key_parts, nquads_of_key
from spaseq.language.results.gathered import Gathered, Rows
from spaseq.rdf.columns import Kinds

if TYPE_CHECKING:
    from spaseq.gpm.columnar.table import Space

TERM: Final = pa.struct([
    ("kind", pa.string()), ("value", pa.string()), ("datatype", pa.string()), ("language", pa.string())
])  # fmt: skip
"""An RDF term: `kind` is iri, bnode or literal; `datatype`, an IRI, and `language` are null if it has none."""
_KINDS: Final = {"uri": "iri", "bnode": "bnode", "literal": "literal", "triple": "triple"}
_DATE: Final = '"^^<http://www.w3.org/2001/XMLSchema#date>'
_TIME: Final = pa.timestamp("ns", "UTC")


def typed_table(gathered: Gathered, variables: Sequence[str], *, terms: bool) -> pa.Table:
    """The results of a whole evaluation: start, end (int64), positions (list of int64), time, and the variables.

    `time` is timestamp[ns, UTC] if times are such (from 1973 on), else int64, nanoseconds. With `terms` a variable is a
    `TERM`. Else it has the type that all of its values have:

    * int64 for integers of 64 bits, float64 for numbers, bool;
    * timestamp[ns, UTC] for xsd:dateTime (UTC if it names no zone), date32 for xsd:date without a zone;
    * string for the texts of strings and for IRIs;
    * for values of several kinds, or of others, string with each term in N-Triples syntax.

    Null if it is not bound. A variable named as one of the first four is written `?name`.
    """
    rows = gathered.rows() if len(gathered) else _no_rows(variables)
    last = rows.times[rows.offsets[1:] - 1]
    is_time = len(last) > 0 and bool((np.abs(last) >= CALENDAR).all())
    columns: dict[str, pa.Array] = {
        "start": pa.array(rows.start, pa.int64()),
        "end": pa.array(rows.end, pa.int64()),
        "positions": pa.ListArray.from_arrays(
            pa.array(rows.offsets.astype(np.int32)), pa.array(rows.positions, pa.int64())
        ),
        "time": pa.array(last, pa.int64()).cast(_TIME) if is_time else pa.array(last, pa.int64()),
    }
    for name in variables:
        numbers = rows.columns[name]
        columns[f"?{name}" if name in columns else name] = _column(numbers, gathered.space, terms)
    return pa.table(columns)


def _no_rows(variables: Sequence[str]) -> Rows:
    none = np.zeros(0, np.int64)
    columns = {name: np.zeros(0, np.int32) for name in variables}
    return Rows(none, none, np.zeros(1, np.int64), none, none, columns, lambda row: ())


def _column(numbers: np.ndarray, space: Space, terms: bool) -> pa.Array:
    used, places = different(numbers)
    bound = used[used >= 0]
    values = _as_terms(bound, space) if terms else _values(bound, space)
    index = places - (len(used) - len(bound))
    return values.take(pa.array(index, pa.int64(), mask=index < 0))


def _as_terms(bound: np.ndarray, space: Space) -> pa.Array:
    found = []
    for number in bound.tolist():
        kind, value, language, datatype = key_parts(space.cased_key(number))
        found.append({"kind": _KINDS[kind], "value": value, "datatype": datatype or None, "language": language or None})
    return pa.array(found, TERM)


def _values(bound: np.ndarray, space: Space) -> pa.Array:
    """The values of different terms, in one type."""
    literals = space.literals()
    kind = literals.kind[bound]
    has_whole = literals.has_whole[bound].all()
    if not len(bound):
        return pa.array([], pa.string())
    if (kind == Kinds.INTEGER).all() and has_whole:
        return pa.array(literals.whole[bound], pa.int64())
    if literals.numeric(bound).all():
        return pa.array(literals.number[bound], pa.float64())
    if (kind == Kinds.BOOLEAN).all():
        return pa.array((literals.whole[bound] != 0).tolist(), pa.bool_())
    if (kind == Kinds.DATE_TIME).all() and has_whole:
        return pa.array(literals.whole[bound], pa.int64()).cast(_TIME)
    keys = [space.cased_key(number) for number in bound.tolist()]
    dates = _dates(keys)
    if dates is not None:
        return pa.array(dates, pa.date32())
    if np.isin(kind, (Kinds.STRING, Kinds.TAGGED)).all() or all(key[0] == "<" for key in keys):
        return pa.array([key_parts(key)[1] for key in keys], pa.string())
    return pa.array([nquads_of_key(key) for key in keys], pa.string())


def _dates(keys: Sequence[str]) -> list[date] | None:
    """The days, if all are dates without a zone."""
    found: list[Any] = []
    for key in keys:
        if not key.endswith(_DATE) or len(key) != len(_DATE) + 11:
            return None
        try:
            found.append(date.fromisoformat(key[1:11]))
        except ValueError:
            return None
    return found
