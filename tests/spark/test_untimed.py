"""On Spark, too, a time that nobody gave is never used for what needs times: said before any job runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from spaseq.core.errors import OptionError
from tests.test_clocks import AT, DATED, GRAPHS, WITHIN

pytestmark = pytest.mark.spark


def test_tuples_without_times(spark: Any) -> None:
    frame = spark.createDataFrame([("A", 0), ("B", 5)], "type string, ts long").coalesce(1)
    with pytest.raises(OptionError, match="WITHIN 10 SECONDS needs the times") as told:
        spaseq.spark.match(ceql.compile(WITHIN), positions=True)(frame)
    assert told.value.hint.startswith('time="ts" takes them')
    two = "SELECT * FROM S, T WHERE S>A ; T>B"
    timed = spark.createDataFrame([("A", 0)], "type string, time long")
    with pytest.raises(OptionError, match="T has times and S has none"):
        spaseq.spark.match(ceql.compile(two), positions=True)({"S": frame, "T": timed})
    found = spaseq.spark.match(ceql.compile(WITHIN), positions=True, time_from="arrival", partitions=1)(frame)
    assert [(row["start"], row["end"]) for row in found.collect()] == [(0, 1)]


def test_graphs_without_times(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "s.nt").write_text(DATED)
    query, streams = spaseq.compile(GRAPHS.format("WITHIN 10 SECONDS")), {"S": str(tmp_path / "s.nt")}
    with pytest.raises(OptionError, match="WITHIN 10 SECONDS needs the times") as told:
        spaseq.spark.run(query, spark, streams)
    assert told.value.hint.startswith(f'time="{AT}" takes them')
    with pytest.raises(OptionError, match="WITHIN 10 SECONDS needs the times"):
        spaseq.spark.start(query, spark, streams, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"))
