"""The real stock trace of [CORE], appendices D and G: one day, 224,473 events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import ceql
from tests.support.data import DATA, needs

TRACE = DATA / "stock" / "stock_data.csv.gz"
pytestmark = needs(TRACE)

S3 = """SELECT * FROM S
WHERE (SELL as T1; BUY as T2; BUY as T3)
FILTER T1[name = ’INTC’] AND T2[name = ’RIMM’] AND T3[name = ’QQQ’]
WITHIN 10000 [stock_time]"""


def brute_force(table: pa.Table, window: int) -> int:
    """How many triples of S3 there are, counted end by end."""
    kinds, names = (np.array(table[c].to_pylist()) for c in ("event_type", "name"))
    times = table["stock_time"].to_numpy()
    first = np.flatnonzero((kinds == "SELL") & (names == "INTC"))
    second = np.flatnonzero((kinds == "BUY") & (names == "RIMM"))
    count = 0
    for end in np.flatnonzero((kinds == "BUY") & (names == "QQQ")):
        low = np.searchsorted(times, times[end] - window, "left")
        starts = first[(first >= low) & (first < end)]
        middles = second[(second >= low) & (second < end)]
        count += int((len(middles) - np.searchsorted(middles, starts, "right")).sum())
    return count


def test_s3_gives_346052_matches() -> None:
    matches = ceql.compile(S3).run(TRACE, type_column="event_type")
    assert matches.count() == 346_052


def test_s3_agrees_with_brute_force() -> None:
    table = pyarrow.csv.read_csv(TRACE)
    assert brute_force(table, 10_000) == 346_052


@pytest.mark.parametrize(
    ("query", "same"),
    [
        (  # G's Q4: a disjunction
            "SELECT * WHERE (SELL as msft; (BUY OR SELL) as oracle)"
            " FILTER msft[name = 'MSFT'] AND oracle[name = 'ORCL'] WITHIN 30000 [stock_time]",
            "SELECT * WHERE (SELL as msft; BUY as oracle) OR (SELL as msft; SELL as oracle)"
            " FILTER msft[name = 'MSFT'] AND oracle[name = 'ORCL'] WITHIN 30000 [stock_time]",
        ),
        (  # a partition, and the same as a correlation
            "SELECT * WHERE SELL AS x ; BUY AS y FILTER x[volume > 2000] AND y.price > x.price PARTITION BY [name]"
            " WITHIN 5000 [stock_time]",
            "SELECT * WHERE SELL AS x ; BUY AS y FILTER x[volume > 2000] AND y.price > x.price AND x.name = y.name"
            " WITHIN 5000 [stock_time]",
        ),
    ],
    ids=["disjunction", "correlation"],
)
def test_two_ways_to_say_it(query: str, same: str) -> None:
    table = pyarrow.csv.read_csv(TRACE).slice(0, 30_000)
    order = [("end", "ascending"), ("start", "ascending")]
    one, two = (ceql.compile(q).run(table, type_column="event_type").to_arrow().sort_by(order) for q in (query, same))
    assert len(one) > 0 and one.equals(two)
