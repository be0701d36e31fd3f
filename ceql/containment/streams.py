"""Streams of events that the engine runs both queries over: those that the product found, and random ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ceql.containment.domains import Domains
from ceql.query import Query
from spaseq.core.containment.result import Witness
from spaseq.core.engine import Window
from spaseq.core.events import EVENT_TIME

Row = dict[str, Any]
Found = dict[tuple[Any, ...], dict[str, Any]]
_SECOND: Final = 1_000_000_000
_LONGEST: Final = 9
"""Events of a random stream."""
_APART: Final = 2**-20
"""Seconds between the events of several streams, so that their order is that of the rows. A microsecond or so, as a
power of two: sums are exact."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Both queries, to be run over rows. `valuations`: matches have the positions of each variable."""

    old: Query
    new: Query
    valuations: bool

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the old query reads; () if it names none."""
        return self.old.compiled.named_streams

    @property
    def same_streams(self) -> bool:
        """True if the queries read the same streams, so that both can be run over one input."""
        return set(self.streams) == set(self.new.compiled.named_streams)

    @property
    def needs_times(self) -> bool:
        """True if events need times."""
        every = self.old.compiled, self.new.compiled
        return len(self.streams) > 1 or any(query.timed or EVENT_TIME in query.attributes for query in every)

    @property
    def measures(self) -> tuple[str, ...]:
        """The attributes that the windows of the queries measure."""
        found = (query.window_attribute for query in (self.old, self.new))
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def matches(self, query: Query, rows: Sequence[Row]) -> Found:
        """The matches of a query over rows: by what tells them apart, start, end, positions and bindings."""
        words: dict[str, Any] = {"valuations": self.valuations}
        if self.needs_times:
            words |= {"time": "time", "time_unit": "s"}
        if self.streams:
            words["streams"] = {
                name: [_without_stream(row) for row in rows if row["stream"] == name] for name in self.streams
            }
        else:
            words["events"] = list(rows)
        found: Found = {}
        for match in query.run(**words):
            told = {"start": match.start, "end": match.end, "positions": tuple(match.positions)}
            bound = {name: tuple(where) for name, where in match.bindings.items() if len(where)}
            if self.valuations:
                told["bindings"] = bound
            found[match.start, match.end, told["positions"], tuple(sorted(bound.items()))] = told
        return found

    def witnesses(self, rows: Sequence[Row]) -> Iterator[Witness]:
        """The differences that a stream shows: a match of the old query alone, of the new one alone, and of both."""
        old, new = self.matches(self.old, rows), self.matches(self.new, rows)
        sides = (("old", old, old.keys() - new.keys()), ("new", new, new.keys() - old.keys()))
        for who, of, keys in (*sides, ("both", old, old.keys() & new.keys())):
            if keys:
                yield Witness(who, tuple(rows), of[max(keys, key=lambda key: (key[1], -key[0], key[2]))])

    def rows_of(self, word: Iterable[Row], lasts: tuple[int | float, int | float]) -> tuple[Row, ...]:
        """The events of a word with times and measured attributes, so that it lasts as long as is asked for."""
        found = []
        rows = list(word)
        measured = dict(zip((self.old.window_attribute, self.new.window_attribute), lasts, strict=True))
        timed = [last for last, query in zip(lasts, (self.old, self.new), strict=True) if _measures_time(query)]
        end = _seconds(max(timed, default=0))
        apart = _APART if len(self.streams) > 1 else 0
        for n, row in enumerate(rows):
            row = dict(row)
            for name in self.measures:
                row[name] = measured[name] if n else 0
            if self.needs_times:  # the last of a word that lasts is at its end
                row["time"] = end - apart * (len(rows) - 1 - n) if n and end else apart * n
            found.append(row)
        return tuple(found)


def _measures_time(query: Query) -> bool:
    return query.compiled.lowered.window.kind == "span" and query.window_attribute is None


def _seconds(nanoseconds: int | float) -> int | float:
    whole = int(nanoseconds)
    return whole // _SECOND if whole % _SECOND == 0 else whole / _SECOND


def _without_stream(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "stream"}


def random_streams(
    engine: Engine, domains: Domains, types: Sequence[str], names: Sequence[str], keys: Sequence[str], count: int
) -> Iterator[tuple[Row, ...]]:
    """Streams of events whose values the conditions can tell apart, with times at the bounds of windows. The same ones
    for the same queries."""
    rng = random.Random(len(types) * 1_000 + len(names))
    tries = {name: domains.sort(name).tries((), 3) for name in names}
    tries |= {name: [one for one in domains.sort(name).tries((), 2) if one is not None] for name in keys}
    spans = [w.size for w in _windows(engine) if w.kind == "span" and w.size]
    gaps = [0, 1 if engine.measures else _SECOND] + [f for size in spans for f in (size / 2, size, size + 1)]
    for _ in range(count):
        now = 0.0
        rows: list[Row] = []
        for _ in range(rng.randint(1, _LONGEST)):
            row: Row = {"type": rng.choice(types)}
            if engine.streams:
                row["stream"] = rng.choice(engine.streams)
            row |= {name: rng.choice(some) for name, some in tries.items() if rng.random() < 0.95 or name in keys}
            now += int(rng.choice(gaps))
            row |= dict.fromkeys(engine.measures, int(now))
            if engine.needs_times:
                row["time"] = round(now / _SECOND, 9) + (_APART * len(rows) if len(engine.streams) > 1 else 0)
            rows.append(row)
        yield tuple(rows)


def _windows(engine: Engine) -> Iterator[Window]:
    for query in (engine.old, engine.new):
        lowered = query.compiled.lowered
        yield lowered.window
        if lowered.around.patience is not None:
            yield lowered.around.patience
        yield from (quiet.duration for quiet in lowered.around.quiets)
