"""Random CEQL queries over random tables on Spark, beside the local engine on the same rows in order.

    python -m tests.support.tables --count 300 --on cluster

Each query has a random SELECT list. The tables have NULLs, equal times, rows twice, and rows in an order that is not
that of time; of equal times the order is kept. The first way is `spaseq.spark.match` with two partitions; --wide of the
queries have 200, with AQE on or off, in a way of cutting that the query allows. The second is `ceql(TABLE(…))` in SQL,
from PySpark 4.1 on. On a cluster, Spark starts slow tasks a second time (speculation), and the program tells how many.

Prints the number of rows compared by way, and each difference with its seed. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import ceql
from spaseq.core.errors import OptionError, SpaseqError
from tests.support import oracle_select

SCHEMA = (
    "type string, time bigint, seq bigint, u string, n bigint, x double, s string, at timestamp, to timestamp, "
    "d interval day to second, h array<bigint>, w array<string>"
)
_KINDS = [pa.string(), pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.string(),
          pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC"), pa.duration("us"), pa.list_(pa.int64()),
          pa.list_(pa.string())]  # fmt: skip
_ARROW = pa.schema(list(zip((part.split()[0] for part in SCHEMA.split(", ")), _KINDS, strict=True)))
_PARTS = {
    "A AS a ; B AS b": ("a", "b"),
    "A AS a+ ; B AS b": ("a", "b"),
    "A AS a? ; B AS b": ("a", "b"),
    "(A OR B) AS c+ ; B AS b": ("b", "c"),
    "A AS a : B AS b": ("a", "b"),
    "A AS a -> B AS b": ("a", "b"),
    "A AS a ; B AS b FILTER a.u = b.u": ("a", "b"),
    "A AS a ; B AS b FILTER b.n > a.n": ("a", "b"),
    "A AS a ; B AS b ; NOT C": ("a", "b"),
}
_WINDOWS = ("", "WITHIN 6 EVENTS", "WITHIN 5 SECONDS", "WITHIN 5 SECONDS", "WITHIN 0 SECONDS", "WITHIN 12 [seq]")
_KEYS = ("", "PARTITION BY [u]", "PARTITION BY [u]", "PARTITION BY [n]", "PARTITION BY [s, u]", "PARTITION BY [u], [s]")
_START = datetime.datetime(2026, 3, 28, 22, 59, 59, 999_999, datetime.UTC)


@dataclass(frozen=True)
class Table:
    """A query and its rows, in order."""

    text: str
    rows: list[dict[str, Any]]


_MOST: Final = 2_000
"""Matches of a query."""


def draw(seed: int) -> Table:
    """The first query of a seed that has matches, and not too many."""
    rng = random.Random(seed)
    while True:
        found = Table(_query(rng), _rows(rng, rng.choice((12, 25, 40))))
        with suppress(SpaseqError):  # a key that the query has not, for one
            matches = ceql.compile(found.text).run(pa.Table.from_pylist(found.rows, _ARROW))
            if 0 < matches.count(_MOST) < _MOST:
                return found


def _query(rng: random.Random) -> str:
    where, variables = rng.choice(list(_PARTS.items()))
    columns = [oracle_select.column(rng, variables).text for _ in range(rng.randint(1, 4))]
    shown = ", ".join(f"{text} AS c{number}" for number, text in enumerate(columns))
    window = rng.choice(_WINDOWS[1:] if "NOT" in where else _WINDOWS)
    head = rng.choice(("", "", "", "MAX ", "NEXT ", "LAST "))
    after = rng.choice(("", "", "", "", "", "CONSUME BY ANY", "CONSUME BY PARTITION"))
    after = "" if head or "NOT" in where else after
    return " ".join(filter(None, (f"SELECT {head}{shown} WHERE {where}", rng.choice(_KEYS), window, after)))


def _rows(rng: random.Random, count: int) -> list[dict[str, Any]]:
    now, found = 0, list[dict[str, Any]]()
    while len(found) < count:
        now += rng.choice((0, 0, 1, 1, 3))
        event = {
            "type": rng.choice("AABC"), "time": now, "u": rng.choice(("k", "l", "m", None)),
            "n": rng.choice((None, 0, 1, 2, -3, 10**17)), "x": rng.choice((None, 0.0, -0.0, 1.5, -2.25, 1e100)),
            "s": rng.choice((None, "", "a", "B", "ä", "aa")),
            "at": rng.choice((None, _START, _START + datetime.timedelta(microseconds=rng.randrange(10**10)))),
            "to": rng.choice((None, _START + datetime.timedelta(days=rng.randrange(-70_000, 80_000)))),
            "d": rng.choice((None, datetime.timedelta(0), datetime.timedelta(microseconds=rng.randrange(-9, 10**12)))),
            "h": rng.choice((None, [], [None], [1, 2], [0, None, -3])),
            "w": rng.choice((None, [], ["a"], ["", "B", None], ["ä", "aa"])),
        }  # fmt: skip
        for _ in range(rng.choice((1, 1, 1, 1, 2))):  # some are there twice
            found.append({name: {"seq": len(found), **event}[name] for name in _ARROW.names})
    return found


def local_rows(table: Table) -> list[str] | str:
    """The rows of the local engine, with the times of their matches; the class of its error."""
    try:
        found = ceql.compile(table.text).run(pa.Table.from_pylist(table.rows, _ARROW))
        times = [(table.rows[match.start]["time"], table.rows[match.end]["time"]) for match in found]
        rows = _plain(ceql.compile(table.text).run(pa.Table.from_pylist(table.rows, _ARROW)).to_arrow())
    except SpaseqError as error:
        return type(error).__name__
    return sorted(map(repr, zip(rows, times, strict=True)))


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows whose times and durations are of microseconds, as Spark's are."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(number, field.name, rows[field.name].cast(pa.timestamp("us", "UTC"), safe=False))
        elif pa.types.is_duration(field.type):
            rows = rows.set_column(number, field.name, rows[field.name].cast(pa.duration("us"), safe=False))
    return rows.to_pylist()


def spark_rows(frame: Any, query: Any) -> list[str]:
    """The same of a DataFrame of matches."""
    import spaseq.spark

    table = spaseq.spark.collect(frame)
    times = zip(table["match_start"].to_pylist(), table["match_end"].to_pylist(), strict=True)
    return sorted(map(repr, zip(_plain(table.select(query.columns)), times, strict=True)))


def ways(spark: Any, table: Table, seed: int, wide: bool) -> Iterator[tuple[str, Any, Any]]:
    """The DataFrames of matches: the name of a way, its settings, and the function that makes one."""
    import spaseq.spark
    from spaseq.spark.session.versions import pyspark_version

    rng = random.Random(seed)
    mixed = _mix(rng, table.rows)
    frame = spark.createDataFrame([tuple(row.values()) for row in mixed], SCHEMA)
    cuts = ["auto"]
    for cut in ("keys", "slices", "keys and slices", "one"):
        try:
            spaseq.spark.explain_match(table.text, cut=cut)
            cuts.append(cut)
        except OptionError:
            pass
    cut, adaptive, count = rng.choice(cuts), rng.choice(("true", "false")), 200 if wide else rng.choice((2, None))
    settings = {"spark.sql.adaptive.enabled": adaptive, "spark.sql.shuffle.partitions": "200" if wide else "2"}
    name = f"match, {200 if wide else 2} partitions, AQE {adaptive}, {cut}"
    yield name, settings, lambda: frame.transform(spaseq.spark.match(table.text, cut=cut, partitions=count))
    if pyspark_version() >= (4, 1):
        text = table.text.replace("'", "\\'")
        frame.createOrReplaceTempView("drawn")
        call = f"SELECT * FROM ceql(TABLE(drawn), '{text}', order_by => 'seq', partitions => {rng.choice((1, 3, 200))})"
        yield f"ceql in SQL, {settings['spark.sql.shuffle.partitions']} partitions", settings, lambda: spark.sql(call)


def _mix(rng: random.Random, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in another order, but for that of those with one time."""
    mixed = rng.sample(rows, len(rows))
    at: dict[int, Iterator[dict[str, Any]]] = {
        time: iter([row for row in rows if row["time"] == time]) for time in {row["time"] for row in rows}
    }
    return [next(at[row["time"]]) for row in mixed]


def check(spark: Any, seeds: range, wide: float) -> tuple[Counter[str], list[str]]:
    """The numbers of rows compared, and of queries, by way; and the differences."""
    import spaseq.spark

    compared, different = Counter[str](), []
    for seed in seeds:
        table = draw(seed)
        expected = local_rows(table)
        for name, settings, make in ways(spark, table, seed, random.Random(seed).random() < wide):
            for word, value in settings.items():
                spark.conf.set(word, value)
            try:
                with spaseq.spark.clear_errors():
                    found: list[str] | str = spark_rows(make(), ceql.compile(table.text))
            except SpaseqError as error:
                found = type(error).__name__
            except Exception as error:
                found = f"{type(error).__name__}: {str(error)[:300]}"
            compared[f"queries: {name}"] += 1
            compared[f"rows: {name.partition(',')[0]}"] += len(expected) if isinstance(expected, list) else 0
            if found != expected:
                different.append(f"seed {seed}, {name}: {table.text}\n  expected {expected}\n  found    {found}")
                print(different[-1], flush=True)
        if seed % 20 == 19:
            print(f"{seed + 1 - seeds.start} queries", flush=True)
    return compared, different


def main() -> int:
    """Draws and compares; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="tests.support.tables", description="Random tables on Spark.")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--wide", type=float, default=0.05, help="the share of queries with 200 partitions")
    parser.add_argument("--on", choices=("local", "cluster"), default="local")
    options = parser.parse_args()
    with ExitStack() as stack:
        spark, log = _session(options.on, stack)
        compared, different = check(spark, range(options.first, options.first + options.count), options.wide)
        spark.stop()
        for name, number in sorted(compared.items()):
            print(f"{number:7} {name}")
        print(f"{len(different)} different")
        if log is not None:
            print(f"{sum(map(_speculative, log.iterdir()))} tasks were started a second time")
    return bool(different)


def _session(where: str, stack: ExitStack) -> tuple[Any, Path | None]:
    """A session in a zone with summer time, and on a cluster the folder of its log of events."""
    import spaseq.spark
    from spaseq.spark.session.versions import pyspark_version

    settings = {"spark.sql.session.timeZone": "Europe/Berlin"}
    log = None
    if where == "cluster":
        from tests.spark.cluster.standalone import ROOT, standalone

        log = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(standalone(Path(stack.enter_context(tempfile.TemporaryDirectory())), apart=True))
        settings |= {
            "spark.master": cluster.url, "spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": str(ROOT),
            "spark.speculation": "true", "spark.speculation.interval": "20ms", "spark.speculation.quantile": "0.1",
            "spark.speculation.multiplier": "1.01", "spark.speculation.minTaskRuntime": "0ms",
            "spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri(),
            "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false",
        }  # fmt: skip
    spark = spaseq.spark.local_session(2, configuration=settings)
    if pyspark_version() >= (4, 1):
        spaseq.spark.register(spark)
    return spark, log


def _speculative(log: Path) -> int:
    started = (json.loads(line) for line in log.open(encoding="utf-8") if '"SparkListenerTaskStart"' in line)
    return sum(event["Task Info"]["Speculative"] for event in started)


if __name__ == "__main__":
    sys.exit(main())
