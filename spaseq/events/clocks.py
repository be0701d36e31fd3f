"""Times that nobody gave: the error of a query that needs times, with the columns that may hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import pyarrow as pa

from spaseq.errors import EventError, OptionError
from spaseq.events.columns import MixedColumn, NumberColumn, TextColumn, TimeColumn, column_of
from spaseq.events.time import is_date

__all__ = ["TIME_COLUMNS", "counted_hint", "no_times", "time_candidates", "unlike_clocks"]

TIME_COLUMNS: Final = ("time", "timestamp")
"""The columns that times are read from if the caller names none, the first that is there."""
_LOOKED_AT: Final = 1000
"""Rows of a table that are looked at for dates."""
_SHOWN: Final = 6
_NAME: Final = re.compile(
    r"(?:.*[_\-. ])?(?:t|ts|times?|timestamp|date|datetime|epoch|at|when|created|occurred)(?:[_\-. ]?[mun]?s)?"
    r"|.*(?:time|timestamp|datetime)",
    re.IGNORECASE,
)
"""Names that columns of times have; of these also numbers count."""


def time_candidates(table: pa.Table) -> list[str]:
    """The columns that may hold times: those of dates, by type or by their texts, then numbers with the name of a time.
    Looks at the first rows. O(columns)."""
    dated, named = [], []
    for name in dict.fromkeys(table.column_names):
        kind = _kind(table.slice(0, _LOOKED_AT), name)
        if kind == "dates":
            dated.append(name)
        elif kind == "numbers" and _NAME.fullmatch(name):
            named.append(name)
    return [*sorted(dated, key=lambda name: _NAME.fullmatch(name) is None), *named]


def _kind(table: pa.Table, name: str) -> str:
    """`dates`, `numbers`, or nothing of both; a column without values may be either."""
    if table.column_names.count(name) > 1:
        return ""
    with suppress(EventError):
        match column_of(table[name], name):
            case TimeColumn():
                return "dates"
            case TextColumn(codes, texts):
                used = {texts[code].as_py() for code in set(codes.tolist()) if code >= 0}
                return "dates" if used and all(map(is_date, used)) else ""
            case MixedColumn(values, _):
                return "dates" if all(v is None or (isinstance(v, str) and is_date(v)) for v in values) else ""
            case NumberColumn():
                return "numbers"
            case None:
                kind = table.schema.field(name).type
                dates = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
                return "dates" if dates else "numbers"
    return ""


def counted_hint(word: str, candidates: Iterable[str], *, what: str, placeholder: str) -> str:
    """The options that take one of the candidates, or count events instead. `word`: the option that names a clock;
    `what`: the noun for a candidate."""
    first, *others = candidates = list(candidates)[:_SHOWN] or [placeholder]
    if first == placeholder:
        taken = f'{word}="{placeholder}" names the {what} that holds times'
    else:
        also = f" (or {', '.join(others)})" if others else ""
        taken = f'{word}="{first}" takes them from that {what}{also}'
    return f'{taken}; time_from="arrival" counts the events instead, 1 ms apart'


def no_times(timed: str, source: str, table: pa.Table) -> OptionError:
    """Times are needed by `timed`, a clause or an option, and the events of `source` have none that were named."""
    names = table.column_names
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return OptionError(
        f"{timed} needs the times of the events, and {source} has no column {' or '.join(TIME_COLUMNS)}; "
        f"there are: {listed}",
        counted_hint("time", time_candidates(table), what="column", placeholder="COLUMN"),
    )


def unlike_clocks(timed: str, timeless: str, table: pa.Table | None) -> OptionError:
    """One stream has times, the other has none; `table` is some of its events."""
    candidates = [] if table is None else time_candidates(table)
    return OptionError(
        f"{timed} has times and {timeless} has none: their order is unknown",
        counted_hint("time", candidates, what="column", placeholder="COLUMN"),
    )
