"""Columns that users have, and that no query names: of any name, of any type."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
from spaseq.spark import match
from spaseq.spark.ingest.messages import parse_rdf
from spaseq.spark.session.tables import plain_name, with_own_names
from tests.spark.test_tuples import _rows

COLUMNS = (
    "type string, time timestamp, `a.b` int, `tick``s` long, seen timestamp, local timestamp_ntz, `50%` int, "
    "parts struct<`a b`: int, `c-d`: string>, Seen int"
)
START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def frame(spark: Any) -> Any:
    times = [START + datetime.timedelta(seconds=second) for second in range(30)]
    rows = [
        ("AB"[i % 2], time, i % 3, i, time, datetime.datetime(2020, 1, 1), i, (i, "x"), i % 5)
        for i, time in enumerate(times)
    ]
    return spark.createDataFrame(rows, COLUMNS)


def test_plain_names_are_undone() -> None:
    names = ["a.b", "`", "%2E", "100%", "a b-c", "ä.ö", "Price", "price", "PRICE", "ÄSS", "äß"]
    plain = [plain_name(name) for name in names]
    assert not any("." in name or "`" in name for name in plain)
    assert len({name.casefold() for name in plain}) == len(names)
    assert with_own_names(pa.record_batch([[1]] * len(names), names=plain)).column_names == names


@pytest.mark.spark
@pytest.mark.parametrize(
    "clauses", ["PARTITION BY [`a.b`] WITHIN 9 SECONDS", "WITHIN 9 [`a.b`]", "PARTITION BY [Seen] WITHIN 9 SECONDS"]
)
def test_in_a_batch(frame: Any, clauses: str) -> None:
    """Timestamps, names with a dot, a backtick or a percent sign, fields of a struct with a blank or a dash, and names
    that differ in case alone."""
    query = ceql.compile(f"SELECT * WHERE A AS x ; B AS y {clauses}")
    frame = frame if clauses.startswith("PARTITION") else frame.withColumn("a.b", frame["`tick``s`"])
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(frame.toArrow()))
    assert _rows(match(query, positions=True, partitions=3)(frame)) == expected != []


@pytest.mark.spark
def test_in_a_stream(tmp_path: Path, spark: Any, frame: Any) -> None:
    stream = spark.readStream.schema(frame.drop("Seen").schema).json(str(tmp_path))
    found = match("SELECT * WHERE A AS x ; B AS y PARTITION BY [`a.b`]", events=True)(stream)
    assert found.columns == ["a.b", "match_start", "match_end", "events"]


@pytest.mark.spark
def test_beside_messages(spark: Any) -> None:
    messages = spark.createDataFrame([("<a:a> <b:b> <c:c> .", START)], "`va.lue` string, `sent.at` timestamp")
    (row,) = parse_rdf(messages, "va.lue").toArrow().to_pylist()
    assert row.pop("sent.at") == START
    assert row == {"graph": None, "subject": "<a:a>", "predicate": "<b:b>", "object": "<c:c>"}
