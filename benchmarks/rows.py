"""Rows of matches: what SELECT computes, beside the matches without it.

Claim: the columns of a million matches of two events, five of them, come at 2 million rows a second or more. A query
that computes finds its matches at the cost of `SELECT *`. `rows` computes the columns of tables of matches that are
there. The others run the whole query to Arrow. Seed 5. One thread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import Workload

EVENTS = 2_000_000
FIVE = "id, a.price AS low, b.price - a.price AS gain, COUNT(a) AS n, MATCH_END AS ended"
QUERY = "SELECT NEXT {} WHERE A AS a : B AS b PARTITION BY [id] WITHIN 1 HOUR"
LOOP = "SELECT MAX {} WHERE fail AS f{{3,}} ; login AS ok PARTITION BY [id] WITHIN 10 MINUTES"
FAILURES = (
    "id, COUNT(f) AS failures, COUNT(DISTINCT f.price) AS prices, ok.price - FIRST(f.price) AS change, MATCH_END AS at"
)


def _table(types: np.ndarray) -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table({
        "type": pa.array(types), "id": draw.integers(0, 1000, len(types)), "price": draw.random(len(types)),
        "time": pa.array(np.arange(len(types)) * 10**8, pa.timestamp("ns")),
    })  # fmt: skip


def _runs(text: str, columns: str, table: pa.Table) -> Callable[[], int]:
    query = ceql.compile(text.format(columns))
    return lambda: query.run(table).to_arrow().num_rows


def workloads() -> list[Workload]:
    keys = np.arange(EVENTS) % 2000
    pairs = _table(np.where(keys < 1000, "A", "B")).set_column(1, "id", pa.array(keys % 1000))
    logins = _table(np.where(np.random.default_rng(5).random(EVENTS // 2) < 0.3, "login", "fail"))
    parts = list(ceql.compile(QUERY.format(FIVE)).run(pairs).tables())
    found = sum(map(len, parts))
    return [
        Workload(f"rows: five columns of {found:,} matches", "2,000,000 a second", found,
                 lambda: sum(part.rows().num_rows for part in parts), repeats=5),
        Workload("pairs: *", "", EVENTS, _runs(QUERY, "*", pairs), repeats=3),
        Workload("pairs: five columns", "", EVENTS, _runs(QUERY, FIVE, pairs), repeats=3),
        Workload("loops: *", "", EVENTS // 2, _runs(LOOP, "*", logins), repeats=3),
        Workload("loops: five columns", "", EVENTS // 2, _runs(LOOP, FAILURES, logins), repeats=3),
    ]  # fmt: skip
