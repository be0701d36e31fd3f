"""The division of tuples among tasks, which changes no answer. The query alone decides; nothing runs.

* **keys**: PARTITION BY, or an equality that every event of a match is under, makes substreams that never meet. Not
  with CONSUME BY ANY, which forgets runs in all partitions.
* **slices**: a match that ends at time t began at t - ε or later. So a slice of time that reaches ε further back holds
  every match that ends in it; it reports those and no others. With a NOT at the end it reaches ε further on too, as an
  absence is known when the window is over. Not with CONSUME, whose effect reaches back beyond any window. Not without a
  window, nor if it is measured in events or in an attribute.
* **keys and slices**, if the caller asks for it: by keys, and groups of keys that have more than twice their share of
  the tuples are cut into slices.
* **one** task otherwise.

A row of GROUP BY EVENT is of the matches that end at one event, so the work is cut as without it. GROUP BY KEY adds up
all matches of a key, so it is cut by keys alone. GROUP BY 1 HOUR adds up those of all keys, so it is not cut by keys,
unless it is GROUP BY KEY, 1 HOUR. Its slices begin where hours begin, so that each hour is in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from spaseq.core.engine import Consume, Program, Settings, Window
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.core.events import EventOptions

WAYS: Final = ("auto", "keys", "slices", "keys and slices", "one")


class TupleQuery(Protocol):
    """A query over tuples, as `ceql.compile` makes it, or what `tuple_query` makes of others. It pickles.

    `compiled` tells the clause that needs times (`timed`), and the functions that users registered (`own`), of which it
    calls `functions`. If the program computes aggregates over matches, it has the GROUP BY, too (`lowered`)."""

    compiled: Any

    @property
    def text(self) -> str: ...

    @property
    def settings(self) -> Settings: ...

    def program(self) -> Program: ...

    @property
    def attributes(self) -> tuple[str, ...]: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def partition(self) -> tuple[tuple[str, ...], ...]: ...

    @property
    def window_attribute(self) -> str | None: ...

    def stream_names(self, given: tuple[str, ...]) -> tuple[str, ...]: ...

    def open(self, *arguments: Any, **words: Any) -> Any:
        """A session; `streams` and the options of the language by their names."""

    @property
    def identity(self) -> Mapping[str, str]: ...

    def reopened(self, contents: dict[str, Any]) -> Any: ...

    def run(self, *arguments: Any, **words: Any) -> Any:
        """Matches; `streams` and the options of the language by their names."""

    def in_order(self, names: tuple[str, ...], options: EventOptions, *, iso: bool) -> Any:
        """The matches over events that come in order, as rows that stand for themselves."""


class Tabular(Protocol):
    """It stands for a query over tuples: a network of queries, or the partial matches of a query that time out."""

    def in_tables(self) -> Any:
        """The `TupleQuery`."""


def tuple_query(query: Any) -> Any:
    """The query over tuples that a `Tabular` stands for. Others are given back."""
    return query.in_tables() if hasattr(query, "in_tables") else query


def grouping_of(query: TupleQuery) -> Any:
    """GROUP BY, as `ceql.syntax.ast.Grouping`: a row then stands for several matches. None without."""
    return None if query.program().summed is None else query.compiled.lowered.grouping


def together(query: TupleQuery) -> str:
    """The reason why several queries are evaluated together; empty for one query."""
    return str(getattr(query, "together", ""))


@dataclass(frozen=True, slots=True)
class Plan:
    """`keys`: the brackets of PARTITION BY that tuples are sent by. `slices`: true if they are cut by time. `window` is
    that of the query; with `behind`, a slice also holds what the window reaches on to. `why`: what hinders slices.
    `stretch`: the ns from a time at which a slice may begin to the next one, counted from 0."""

    keys: tuple[tuple[str, ...], ...]
    slices: bool
    window: Window
    behind: bool
    why: str
    stretch: int = 1

    @staticmethod
    def of(query: TupleQuery, way: str = "auto") -> Plan:
        """The plan of a query. Raises `OptionError` for a way that is not known, or would change an answer."""
        if way not in WAYS:
            raise OptionError(f"cut={way!r}: no such way to cut", f"one of {', '.join(WAYS)}")
        program = query.program()
        if program.around.repeated is not None:
            hint = "FOR 10 SECONDS, without EVERY, reports each match once; a stream of ticks has a match at each tick"
            raise UnsupportedFeature("NOT … FOR EVERY on Spark", hint=hint)
        grouping = grouping_of(query)
        why, (keys, no_keys) = _hindrance(query, program, grouping), _keys(query, program, grouping)
        stretch = 1 if grouping is None or grouping.length is None else grouping.length
        both = " and ".join(filter(None, (no_keys, why))) if why else ""
        found = Plan(keys, not why, program.reach, program.around.waits, both, stretch)
        if way in ("keys", "keys and slices") and not keys:
            problem = no_keys or "the query has no key that may be cut by"
            raise OptionError(f"cut={way!r}: {problem}", "cut='auto'")
        if way in ("slices", "keys and slices") and why:
            raise OptionError(f"cut={way!r}: {why}", "cut='auto'")
        if way == "keys and slices":
            return found
        if way == "one":
            return replace(found, keys=(), slices=False, why="as it was asked for")
        return replace(found, keys=()) if way == "slices" else replace(found, slices=not keys and not why)

    @property
    def overlap(self) -> int:
        """The time (ns) that a slice reaches beyond its own times, over both ends."""
        return int(self.window.size) * (2 if self.behind else 1)

    def explain(self) -> Iterator[str]:
        """A line on each decision."""
        if self.keys:
            names = ", ".join(" or ".join(bracket) for bracket in self.keys)
            cut = ", groups with more than twice their share cut into slices of time" if self.slices else ""
            again = "; keys and times alone are read once before, to find these groups" if self.slices else ""
            yield f"partitioned by the key {names}{cut}: one shuffle{again}"
        elif self.slices:
            begin = "" if self.stretch == 1 else ", and beginning with a stretch of time of GROUP BY"
            yield (
                f"cut into slices of time, each reaching {self.window.size:,} ns further back{begin}: one shuffle; the "
                "times alone are read once before, to see where slices begin"
            )
        else:
            yield f"recognised in one task: {self.why}"


def _keys(query: TupleQuery, program: Program, grouping: Any) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The keys to cut by. If the query has some, and they are none, the reason that GROUP BY is for it."""
    if program.whole_choice.consume is Consume.ANY:
        return (), ""
    if grouping is None or grouping.event:
        return query.partition, ""
    if grouping.key:
        return query.compiled.lowered.written, ""
    return (), "GROUP BY adds up the matches of all keys" if query.partition else ""


def _hindrance(query: TupleQuery, program: Program, grouping: Any) -> str:
    """The hindrance to slices of time; empty for nothing."""
    if grouping is not None and grouping.key and grouping.length is None:
        return "GROUP BY KEY adds up the matches of all times"
    if said := together(query):
        return f"{said}, and a slice of time does not have all of them"
    window = program.window
    if program.whole_choice.forgets:
        named = "CONSUME" if program.whole_choice.after is None else "AFTER MATCH or SELECT FIRST"
        return f"what {named} forgets reaches back beyond any window"
    if window.by_position:
        return "a window in EVENTS counts all events in front" + (" of its partition" if query.partition else "")
    if query.window_attribute is not None:
        return "the window is measured in an attribute, which may not grow as time does"
    return "" if window.slides else "without WITHIN a match may begin anywhere"
