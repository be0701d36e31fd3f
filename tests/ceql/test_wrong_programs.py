"""Wrong uses of frames, networks, sessions and the builder, as strangers make them: one error each, and a clear one.

No error of a library (pyarrow, Polars, pandas, DuckDB) and no traceback of ours reaches the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ceql
from ceql import EventError, Network, OptionError, QuerySemanticsError, event, seq

PAIRS: Any = ceql.compile("SELECT a.v AS x, b.v AS y WHERE A AS a : B AS b")
ROWS: list[dict[str, Any]] = [{"type": "A", "v": 1}, {"type": "B", "v": 2}]
ONE = "SELECT a.v AS v WHERE A AS a"
TWO = "SELECT x.v AS w WHERE p AS x"
BIG = 2**60 + 1


def broken_relation() -> Any:
    return duckdb.sql("SELECT CASE WHEN i < 5 THEN 'A' ELSE error('boom') END AS type, i AS v FROM range(9) t(i)")


def closed_relation() -> Any:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 'A' AS type, 1 AS v")
    connection.close()
    return relation


def reader() -> pa.RecordBatchReader:
    table = pa.Table.from_pylist(ROWS)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())


def twice(matches: Any) -> Any:
    return list(matches), list(matches)


def nested() -> pl.LazyFrame:
    return pl.LazyFrame({"type": ["A", "B"], "v": ["1", "x"]})


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # Sources that can be read once
    "a reader, twice": (lambda: twice(PAIRS.run(reader())), OptionError, "read only once"),
    "a generator, twice": (lambda: twice(PAIRS.run(row for row in ROWS)), OptionError, "read only once"),
    "a generator in a network, twice": (
        lambda: twice(Network({"p": ONE}).run(row for row in ROWS)), OptionError, "read only once"),
    # Frames
    "a relation that fails": (lambda: ceql.match(broken_relation(), PAIRS), EventError, "cannot be read: .*boom"),
    "a relation that is closed": (lambda: ceql.match(closed_relation(), PAIRS), EventError, "Relation cannot be read"),
    "a lazy frame without the column": (
        lambda: ceql.match(nested().select("nope"), PAIRS), EventError, "LazyFrame cannot be read: .*nope"),
    "a lazy frame with a cast": (
        lambda: ceql.match(nested().with_columns(pl.col("v").cast(pl.Int64)), PAIRS), EventError,
        "LazyFrame cannot be read: conversion"),
    "a lazy frame of no file": (
        lambda: ceql.match(pl.scan_parquet("none.parquet"), PAIRS), EventError, "LazyFrame cannot be read"),
    "objects in Polars": (
        lambda: ceql.match(pl.DataFrame({"type": ["A"], "v": [object()]}), PAIRS), EventError, "objects of Python"),
    "a huge number in pandas": (
        lambda: ceql.match(pd.DataFrame({"type": ["A", "B"], "v": [2**70, 3]}), PAIRS), EventError, "cannot be read"),
    "a huge number in a dict": (
        lambda: ceql.match([{"type": "A", "v": 2**70}], PAIRS), EventError, "more than 64 bits"),
    "two columns of one name": (
        lambda: ceql.match(pa.table([["A"], [1], [2]], names=["type", "v", "v"]), PAIRS), EventError, "two columns"),
    "two columns of one name in pandas": (
        lambda: ceql.match(pd.DataFrame([["A", 1, 2]], columns=["type", "v", "v"]), PAIRS), EventError, "Duplicate"),
    "a frame of nothing": (lambda: ceql.match(pl.DataFrame(), PAIRS), EventError, "no column 'type'"),
    "no time in an event": (
        lambda: ceql.match(pl.DataFrame({"type": ["A", "B"], "time": [1, None]}), PAIRS), EventError, "has no time"),
    "a query first": (lambda: ceql.match(PAIRS, cast(Any, ROWS)), OptionError, "a query is text"),
    "a series": (lambda: ceql.match(pl.Series(["A"]), PAIRS), OptionError, "holds no events"),
    "a misspelt attribute": (
        lambda: ceql.match(pl.DataFrame(ROWS), "SELECT a.w WHERE A AS a"), QuerySemanticsError, "no event has"),
    # Matches
    "the seventh of one match": (lambda: PAIRS.run(ROWS)[7], IndexError, "no match has the number"),
    "the seventh of one that is in hand": (lambda: PAIRS.run(ROWS).collect()[7], IndexError, "there is 1 match"),
    "a match by a name": (lambda: PAIRS.run(ROWS)["x"], OptionError, "number of a match cannot be a str"),
    # Networks
    "no query": (lambda: Network({}), OptionError, "no queries"),
    "a number as a name": (lambda: Network(cast(Any, {3: ONE})), OptionError, "name of a query cannot be a int"),
    "a cycle": (lambda: Network({"p": TWO, "q": TWO, "A": "SELECT * WHERE A"}), OptionError, "read each other"),
    "one name for a query and a type": (
        lambda: list(Network({"p": ONE, "q": TWO}).run([{"type": "p", "v": 1}])), EventError, "p is a query, and"),
    "the same, pushed": (
        lambda: Network({"p": ONE, "q": TWO}).open().push({"type": "p", "v": 1}), EventError, "event 1: p is a query"),
    "the same, by types": (
        lambda: Network({"p": ONE, "q": TWO}).run(types={"p": pl.DataFrame({"v": [1]})}), OptionError, "p is a query"),
    "the same, opened": (lambda: Network({"p": ONE, "q": TWO}).open(types=["p"]), OptionError, "p is a query, and"),
    "a column called type": (
        lambda: list(Network({"p": "SELECT a.v AS type WHERE A AS a", "q": TWO}).run(ROWS)), OptionError,
        "p has a column type"),
    # Sessions
    "a path that is pushed": (lambda: PAIRS.open().push("x.csv"), OptionError, "text or a path"),
    "a time as a text": (lambda: PAIRS.open().advance("2027-01-01"), OptionError, "a time is a datetime"),
    "a file for late events": (lambda: PAIRS.run(ROWS, on_late="late.csv"), OptionError, "on_late cannot be a str"),
    "a frame that is followed": (lambda: PAIRS.follow(pl.DataFrame(ROWS)), OptionError, "no file that grows"),
    # The builder
    "a query as a part": (
        lambda: seq(cast(Any, event("A").within("1m")), event("B")), OptionError, "takes parts of a pattern"),
    "a number of bits": (lambda: event("A").where(event("A").v > 2**80), OptionError, "too large"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_has_one_clear_error(name: str) -> None:
    call, kind, words = WRONG[name]
    with pytest.raises(kind, match=words) as raised:
        call()
    assert raised.type is kind
    assert len(str(raised.value)) < 700


def test_names_of_queries_that_no_other_reads_may_be_types() -> None:
    found = Network({"A": "SELECT b.v AS v WHERE B AS b"}).run(ROWS)
    assert [(name, match.row["v"]) for name, match in found] == [("A", 2)]


@pytest.mark.parametrize("other", [1.5, "text"])
def test_rows_of_a_network_keep_their_kinds_beside_values_of_other_kinds(other: Any) -> None:
    """A column with a huge number, and other kinds in other events, was made texts for the queries behind."""
    network = Network({"p": ONE, "q": f"SELECT x.v AS w, x.v = {BIG} AS same, y.v AS z WHERE p AS x ; B AS y"})
    events = [{"type": "A", "v": BIG}, {"type": "B", "v": other}]
    expected = [{"w": BIG, "same": True, "z": other}]
    batch = [match.row for name, match in network.run(events) if name == "q"]
    session = network.open()
    pushed = [match.row for one in events for name, match in session.push(one) if name == "q"]
    for rows in (batch, pushed):
        assert [{name: row[name] for name in ("w", "same", "z")} for row in rows] == expected
