"""Columns of every type in every role: as a key, in a condition, as the time; the matches, or the error, are those of
the local engine on the same rows. Unused are all the others, of which two have names that differ in case alone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

import ceql
from spaseq.core.errors import SpaseqError
from spaseq.spark import collect, match

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = (
    "t long, type string, ts timestamp, ntz timestamp_ntz, day date, dec decimal(10,2), bin binary, flag boolean, "
    "dbl double, flt float, sml short, txt string, st struct<`in ner-x.y`: int>, arr array<int>, mp map<string, int>, "
    "`a.b` int, `c``d` int, `e f` int, `g-h` int, Case int, case string, iv interval day to second, nul void"
)
START = dt.datetime(2024, 3, 10, 1, tzinfo=dt.UTC)


def _row(i: int) -> tuple[Any, ...]:
    """Every fifth row is NULL where that can be."""
    k, time = i % 3, START + dt.timedelta(minutes=17 * (i % 3))
    real = float("nan") if k == 2 else (0.0, -0.0)[i % 2]
    values = (
        time, time.replace(tzinfo=None), dt.date(2024, 3, 1 + k), Decimal(k) / 4, bytes([k]), k == 1, real, 0.1 * k, k,
        f"k{k}", (k,), [k], {"a": k},
    )  # fmt: skip
    missing = i % 5 == 4
    last = (None, None) if missing else (f"c{k}", dt.timedelta(seconds=k))
    return (i * 10**9, "AB"[i % 2], *((None,) * len(values) if missing else values), k, k, k, k, k, *last, None)


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame([_row(i) for i in range(14)], COLUMNS)


def _found(run: Any) -> Any:
    try:
        return sorted(str(row) for row in run().select(["start", "end", "positions"]).to_pylist())
    except SpaseqError as error:
        return str(error)


def _compare(text: str, frame: Any, time: str = "t") -> Any:
    query = ceql.compile(text)
    words: dict[str, Any] = {"type_column": "type", "time_column": time, "time_unit": "ns"}
    expected = _found(lambda: query.run(frame.toArrow(), **words).to_arrow())
    found = _found(lambda: collect(match(query, positions=True, partitions=2, **words)(frame)))
    assert found == expected
    return found


KEYS = ["dbl", "ts", "ntz", "day", "dec", "bin", "flag", "flt", "txt", "`a.b`", "`e f`", "`g-h`", "case", "Case", "nul"]
CONDITIONS = ["dec > 0.1", "bin = 'a'", "flag = true", "dbl >= 0", "flt < 1", "Case > 0", "case = 'c1'", "ts = ntz"]


@pytest.mark.parametrize("column", [*KEYS, "iv", "st", "arr", "mp"])
def test_as_a_key(column: str, frame: Any) -> None:
    text = f"SELECT * FROM S WHERE (A; B) WITHIN 6 EVENTS PARTITION BY [{column}]"
    found = _compare(text, frame)
    assert isinstance(found, list) == (column in (*KEYS, "iv"))
    assert bool(found) == (column != "nul")


@pytest.mark.parametrize("condition", [*CONDITIONS, "st = 1", "arr = 1", "iv > 1", "day > 0"])
def test_in_a_condition(condition: str, frame: Any) -> None:
    found = _compare(f"SELECT * FROM S WHERE (A; B) FILTER A[{condition}] WITHIN 4 EVENTS", frame)
    assert isinstance(found, list) == (condition in CONDITIONS)


@pytest.mark.parametrize("column", ["ts", "ntz", "day", "sml", "dec", "iv"])
def test_as_the_time(column: str, frame: Any) -> None:
    ordered = frame.where(f"{column} is not null").orderBy(column, "t")
    found = _compare("SELECT * FROM S WHERE (A; B) WITHIN 3 EVENTS", ordered, column)
    assert isinstance(found, list) == (column != "iv")
