"""Where a query over tuples may be cut into parts for different tasks.

* **keys**: PARTITION BY, or an equality that every event of a match is under, makes substreams that never meet. Not
  with CONSUME BY ANY, which forgets runs in all partitions.
* **slices**: a match that ends at coordinate c began at c - ε or later, so a slice of the window's coordinate that
  reaches ε further back holds every match that ends in it; it reports those and no others. With a NOT at the end it
  reaches ε further on too, as an absence is known when the window is over. Not with CONSUME, whose effect reaches back
  beyond any window, nor without a window. The coordinate is the time, the position (a window in EVENTS), or an
  attribute, which then must be there in every event and never go back (else one part runs into the engine's own error).
* **both**, where one key has many of the tuples: slices divide a hot key among tasks, so it does not stop the rest.
* **one** part otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any, Final, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, NumericType, TimestampType

from spaseq.core.engine import Consume, Program, Settings, Window
from spaseq.core.errors import OptionError
from spaseq.spark.session.tables import plain_name

TIME: Final = "spaseq_time"
STREAM: Final = "spaseq_stream"
ORDER: Final = "spaseq_order"
POSITION: Final = "spaseq_position"
SOURCE: Final = "spaseq_row"
_DAY: Final = 86_400_000_000  # microseconds
_HOT: Final = 2.0
"""A group of keys is hot if it has so often the tuples of an average one."""
_WAYS: Final = ("auto", "keys", "slices", "one")


class TupleQuery(Protocol):
    """A query over tuples, as `ceql.compile` makes it. It pickles."""

    compiled: Any

    @property
    def text(self) -> str: ...

    @property
    def settings(self) -> Settings: ...

    def program(self) -> Program: ...

    @property
    def attributes(self) -> tuple[str, ...]: ...

    @property
    def selected(self) -> tuple[str, ...]: ...

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


@dataclass(frozen=True, slots=True)
class TupleCut:
    """`keys`: the brackets of PARTITION BY that parts are cut by, in `groups` parts. `slices`: the coordinate's first
    value of each slice; a slice also holds what the `window` reaches back to and, with `behind`, on to. `why`: what is
    amiss."""

    keys: tuple[tuple[str, ...], ...]
    may_slice: bool
    coordinate: str
    window: Window
    behind: bool
    why: str
    groups: int = 1
    slices: tuple[Any, ...] = ()

    @staticmethod
    def of(query: TupleQuery) -> TupleCut:
        """What the query allows."""
        program = query.program()
        window, forgets = program.window, program.choice.forgets
        keys = () if program.choice.consume is Consume.ANY else query.partition
        counted = window.per_partition and bool(query.partition)
        may_slice = window.slides and not forgets and not counted
        coordinate = POSITION if window.by_position else query.window_attribute or TIME
        if forgets:
            named = "CONSUME" if program.choice.after is None else "AFTER MATCH or SELECT FIRST"
            why = f"what {named} forgets reaches back beyond any window"
        elif counted:
            why = "a window in EVENTS counts inside each partition"
        else:
            why = "" if may_slice else "without WITHIN a match may begin anywhere"
        return TupleCut(keys, may_slice, coordinate, window, program.absent is not None, why)

    def key_columns(self, frame: DataFrame) -> list[Column]:
        """For each bracket a text that is the same for equal keys: that of the first attribute that is not NULL."""
        kinds = {field.name: field.dataType for field in frame.schema}
        return [F.coalesce(*(_key_text(name, kinds[plain_name(name)]) for name in bracket)) for bracket in self.keys]

    def explain(self) -> Iterator[str]:
        """A line on each decision."""
        if self.keys:
            names = ", ".join(" or ".join(bracket) for bracket in self.keys)
            yield f"partitioned by the key {names}" + (f" into {self.groups} groups" if self.groups > 1 else "")
        if self.slices:
            yield f"{len(self.slices)} slices of {self._name()}, each reaching {self.window.size:,} further back"
        elif self.may_slice:
            yield f"may be cut into slices of {self._name()} that overlap by {self.window.size:,}"
        if not self.keys and not self.may_slice:
            yield f"recognised in one partition: {self.why}"

    def _name(self) -> str:
        return {TIME: "time", POSITION: "positions"}.get(self.coordinate, self.coordinate)


def column_of(name: str) -> Column:
    """The column of an attribute, in a DataFrame with plain names (`spaseq.spark.session.tables`)."""
    return F.col(f"`{plain_name(name)}`")


def slices_of(coordinate: Column, lows: Sequence[Any], window: Window, *, behind: bool) -> Column:
    """The numbers of the slices that need a row, one after another; slice k begins at `lows[k]`. A row is needed by its
    own slice, by those that the window reaches back to it from, and with `behind` by those that it reaches on to, as
    matches wait for what must not come behind them."""
    inside = []
    for k, (low, high) in enumerate(pairwise([*lows, None])):
        needs = coordinate >= F.lit(window.open_from(low))
        if high is not None:
            needs &= coordinate <= F.lit(window.closes_at(high)) if behind else coordinate < F.lit(high)
        inside.append(F.when(needs, F.lit(k)))
    return F.explode(F.array_compact(F.array(*inside)))


def _key_text(name: str, kind: DataType) -> Column:
    """Numbers as doubles, so that equal ones of different types have one text; 0.0 and -0.0 are equal, and NaN is NULL,
    as for the local engine. Dates and timestamps in microseconds. Different keys may share a text: a part is
    partitioned again."""
    column = column_of(name)
    match kind:
        case NumericType():
            number = column.cast("double")
            zeroed = F.when(number == 0, F.lit(0.0)).otherwise(number)
            return F.when(~F.isnan(number), zeroed).cast("string")
        case DateType():
            return (F.unix_date(column).cast("long") * F.lit(_DAY)).cast("string")
        case TimestampType():
            return F.unix_micros(column).cast("string")
    return column.cast("string")


def choose_cut(query: TupleQuery, ordered: DataFrame, tasks: int, way: str) -> TupleCut:
    """How to cut these tuples (in order, in ranges) for `tasks` tasks. Looks at how they are spread.

    OptionError for a way that is not known, or would change an answer.
    """
    if way not in _WAYS:
        raise OptionError(f"cut={way!r}: no such way to cut", f"one of {', '.join(_WAYS)}")
    allowed = TupleCut.of(query)
    there = [tuple(name for name in b if plain_name(name) in ordered.columns) for b in allowed.keys]
    allowed = replace(allowed, keys=tuple(bracket for bracket in there if bracket))
    if len(allowed.keys) < len(query.partition):
        allowed = replace(allowed, keys=())  # some key is NULL everywhere, or may not be cut by
    if way == "keys" and not allowed.keys:
        raise OptionError("cut='keys': the query has no key that may be cut by", "cut='auto'")
    if way == "slices" and not allowed.may_slice:
        raise OptionError(f"cut='slices': {allowed.why}", "cut='auto'")
    attribute = query.window_attribute
    if tasks == 1 or way == "one" or (attribute is not None and not _is_in_order(ordered, attribute)):
        return replace(allowed, keys=(), may_slice=False, why=allowed.why or "as it was asked for")
    if way == "slices":
        allowed = replace(allowed, keys=())
    if not allowed.keys:
        return replace(allowed, slices=_bounds(ordered, allowed, tasks)) if allowed.may_slice else allowed
    cut = replace(allowed, groups=tasks)
    share = _hottest(ordered, cut) if allowed.may_slice and way == "auto" else 1.0
    return replace(cut, slices=_bounds(ordered, cut, ceil(share))) if share > _HOT else cut


def _is_in_order(ordered: DataFrame, attribute: str) -> bool:
    """Whether the attribute is a number in every tuple, and never goes back."""
    kinds = {field.name: field.dataType.simpleString() for field in ordered.schema}
    if kinds.get(plain_name(attribute), "") not in ("tinyint", "smallint", "int", "bigint", "float", "double"):
        return False
    task, value = F.shiftright(SOURCE, 33), column_of(attribute)
    before = F.lag(value).over(Rows.partitionBy("task").orderBy(SOURCE))
    back = F.col("value") < F.col("before")
    rows = (
        ordered.withColumn("task", task)
        .select("task", value.alias("value"), before.alias("before"))
        .groupBy("task")
        .agg(
            F.min("value").alias("low"),
            F.max("value").alias("high"),
            F.max(F.col("value").isNull() | F.isnan(F.col("value").cast("double")) | F.coalesce(back, F.lit(False))),
        )
        .orderBy("task")
        .collect()
    )
    ranges = [tuple(row)[1:] for row in rows]
    in_ranges = not any(bad for *_, bad in ranges)
    return in_ranges and all(left[1] <= right[0] for left, right in pairwise(ranges))


def _bounds(ordered: DataFrame, cut: TupleCut, count: int) -> tuple[Any, ...]:
    """Where slices begin: about `count` of equal numbers of tuples, none shorter than the overlap."""
    column = column_of(cut.coordinate)
    shares = [F.lit(k / count) for k in range(count)]
    row = ordered.agg(F.percentile_approx(column, F.array(*shares), 10_000), F.min(column)).first()
    if row is None or row[0] is None:
        return ()
    bounds, overlap = [row[1]], cut.window.size * (2 if cut.behind else 1)
    for bound in row[0][1:]:
        if bound - bounds[-1] >= max(overlap, 1):
            bounds.append(bound)
    return tuple(bounds) if len(bounds) > 1 else ()


def _hottest(ordered: DataFrame, cut: TupleCut) -> float:
    """How many times the tuples of an average group the largest one has."""
    group = F.pmod(F.hash(*cut.key_columns(ordered)), F.lit(cut.groups))
    counts = [row["count"] for row in ordered.groupBy(group.alias("group")).count().collect()]
    return max(counts) * cut.groups / sum(counts) if counts else 1.0
