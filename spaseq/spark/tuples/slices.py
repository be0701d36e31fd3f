"""Slices of time: where they begin is a row that Spark computes of the times, so nothing runs before an action."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spaseq.spark.tuples.plan import Plan

_ACCURACY: Final = 10_000
_COARSE: Final = 16
"""A slice is looked for among every 16th first, then among the 16 behind it."""
_HOT: Final = 2
"""A group of keys is cut if it has more than so often the tuples of an average one."""
_FIRST: Final = -(1 << 63)


def cut_into_slices(
    frame: DataFrame, plan: Plan, count: int, group: Column | None = None, *, times: DataFrame | None = None
) -> DataFrame:
    """Each tuple in the slices that need it, with columns `part`, `low` and `high`. A tuple is in its own slice, and in
    the next one if the window of that reaches back to it. It is in the one before if matches there wait for what must
    not come behind them.

    There are about `count` slices of equal numbers of tuples. None is shorter than the overlap, so no other slice needs
    a tuple. Each begins at a multiple of `plan.stretch`. `times` is another DataFrame with the same times, quicker to
    read. `group` is a number below `count` for the keys of a tuple. With it, groups with more than twice their share of
    the tuples are cut, into so many slices as they have shares, and no others.
    """
    names = frame.columns
    grouped = frame.withColumn("group", F.lit(0) if group is None else group)
    timed = grouped if times is None else times.withColumn("group", F.lit(0))
    placed = grouped.crossJoin(F.broadcast(_first_times(timed, plan, count, every=group is None)))
    found = F.try_element_at("cuts", F.col("group"))
    lows = F.coalesce(found.getField("lows"), F.array(F.lit(_FIRST)))
    coarse = F.coalesce(found.getField("coarse"), F.array(F.lit(_FIRST)))
    placed = placed.select(*names, "group", lows.alias("lows"), coarse.alias("coarse"))
    rough = F.greatest(F.size(F.filter("coarse", lambda low: low <= F.col("time"))) - 1, F.lit(0)) * _COARSE
    own = rough + F.size(F.filter(F.slice("lows", rough + 1, _COARSE), lambda low: low <= F.col("time"))) - 1
    placed = placed.withColumn("own", F.greatest(own, F.lit(0)))
    low, high = (F.get("lows", F.col("own") + place) for place in (0, 1))
    size = F.lit(int(plan.window.size))
    needs = [F.col("own"), F.when(F.col("time") >= high - size, F.col("own") + 1)]
    if plan.behind:
        needs.append(F.when((F.col("own") > 0) & (F.col("time") <= low + size), F.col("own") - 1))
    each = placed.select(*names, "group", "lows", F.explode(F.array_compact(F.array(*needs))).alias("slice"))
    low, high = (F.get("lows", F.col("slice") + place) for place in (0, 1))
    part = F.col("slice") if group is None else F.col("slice") * F.lit(count) + F.col("group")
    return each.select(*names, part.alias("part"), low.alias("low"), high.alias("high"))


def _first_times(grouped: DataFrame, plan: Plan, count: int, *, every: bool) -> DataFrame:
    """One row, `cuts`: by group the first times of its slices, and every 16th of them; without groups that are not cut.
    With `every` each group is."""
    shares = F.array(*(F.lit(k / count) for k in range(count)))
    times = F.percentile_approx("time", shares, _ACCURACY)
    found = grouped.groupBy("group").agg(F.count("*").alias("size"), times.alias("times"), F.min("time").alias("first"))
    whole = found.agg(
        F.collect_list(F.struct("group", "size", "times", "first")).alias("groups"), F.sum("size").alias("all")
    )
    apart = F.lit(max(plan.overlap, 1))

    def beginning(time: Column) -> Column:
        """The last time up to this one at which a slice may begin."""
        return time if plan.stretch == 1 else time - F.pmod(time, F.lit(plan.stretch))

    def beginnings(one: Column) -> Column:
        """Of the quantiles of a group those at which a slice may begin: one for each share of all tuples."""
        if every:
            return one.getField("times")
        wanted = F.ceil(one.getField("size") * F.lit(count) / F.col("all"))
        return F.filter(
            one.getField("times"),
            lambda _, place: F.floor(place * wanted / count) != F.floor((place - 1) * wanted / count),
        )

    def lows(one: Column) -> Column:
        return F.aggregate(
            F.transform(beginnings(one), beginning),
            F.array(beginning(one.getField("first"))),
            lambda held, time: F.when(time - F.element_at(held, -1) >= apart, F.concat(held, F.array(time))).otherwise(
                held
            ),
        )

    cut = F.col("groups")
    if not every:
        cut = F.filter("groups", lambda one: one.getField("size") * F.lit(count) > F.col("all") * F.lit(_HOT))
    pairs = whole.select(
        F.transform(cut, lambda one: F.struct(one.getField("group").alias("group"), lows(one).alias("lows"))).alias(
            "pairs"
        )
    )
    entry = F.transform(
        "pairs",
        lambda one: F.struct(
            one.getField("group"),
            F.struct(
                one.getField("lows").alias("lows"),
                F.filter(one.getField("lows"), lambda _, place: place % _COARSE == 0).alias("coarse"),
            ),
        ),
    )
    return pairs.select(F.map_from_entries(entry).alias("cuts"))
