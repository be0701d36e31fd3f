"""A stream that falls silent: a clock's tuples let time pass, so absences are known without another event."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path
from typing import Any

import pytest

from spaseq.spark import match

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_clock_ends_an_absence(spark: Any, tmp_path: Path) -> None:
    text = "SELECT user WHERE alarm AS a ; NOT ack PARTITION BY [user] WITHIN 3 SECONDS"
    (tmp_path / "in").mkdir()
    now = datetime.datetime.now(datetime.UTC).isoformat()
    rows = [
        {"user": user, "type": kind, "time": now} for user, kind in (("ann", "alarm"), ("bob", "alarm"), ("bob", "ack"))
    ]
    (tmp_path / "in" / "0.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    live = spark.readStream.schema("user string, type string, time timestamp").json(str(tmp_path / "in"))
    clock = spark.readStream.format("rate").load().selectExpr("'tick' AS type", "timestamp AS time")
    found = live.unionByName(clock, allowMissingColumns=True).transform(match(text, lateness="5s", late="drop"))
    name = f"silent_{time.monotonic_ns()}"
    running = found.writeStream.format("memory").queryName(name).start()
    try:
        until = time.monotonic() + 180
        while not (given := spark.table(name).collect()):
            assert time.monotonic() < until and running.exception() is None
            time.sleep(0.5)
        assert [row.user for row in given] == ["ann"]
    finally:
        running.stop()
        spark.conf.unset("spark.sql.shuffle.partitions")
