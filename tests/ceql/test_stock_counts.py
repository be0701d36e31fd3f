"""How many matches the queries of [CORE]'s appendices D and G have on the stock trace, without and with consumption.

No system's counts are published but those of S3 and Q1 (0.35 and 15.5 million); the others are as measured, and
`test_counts_by_hand` finds those of the sequences again without an automaton.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import ceql
from tests.support.data import DATA, needs

TRACE = DATA / "stock" / "stock_data.csv.gz"
pytestmark = [
    pytest.mark.slow,
    needs(TRACE),
]

TWELVE = ("INTC", "RIMM", "QQQ", "IPIX", "AMAT", "CSCO", "YHOO", "DELL", "ORCL", "MSFT", "INTC", "RIMM")
FOUR = ("MSFT", "ORCL", "CSCO", "AMAT")
PRICES = " AND x1[price > 26.0] AND x2[price > 11.14] AND x4[price >= 18.92]"
EITHER = "(BUY OR SELL)"
Atoms = tuple[tuple[str, str], ...]


def atoms(length: int) -> Atoms:
    """Type and name of each event of S3, S6, S9, S12, S24."""
    return tuple(("SELL" if i % 3 == 0 else "BUY", TWELVE[i % 12]) for i in range(length))


def sequence(parts: Atoms, window: int, more: str = "", partition: str = "") -> str:
    formula = "; ".join(f"{kind} AS x{i}" for i, (kind, _) in enumerate(parts, 1))
    names = " AND ".join(f"x{i}[name = '{name}']" for i, (_, name) in enumerate(parts, 1))
    return f"SELECT * FROM S WHERE ({formula}) FILTER {names}{more} {partition} WITHIN {window} [stock_time]"


def four(*kinds: str) -> Atoms:
    return tuple(zip(kinds, FOUR, strict=True))


Q1 = four("SELL", "BUY", "BUY", "SELL")
Q4 = four("SELL", EITHER, EITHER, "SELL")
NOT_THERE = (("BUY", "NotExists"),)
QUERIES = {
    **{f"S{n}": sequence(atoms(n), 10_000) for n in (3, 6, 9, 12, 24)},
    **{f"S{n}'": sequence(atoms(n) + NOT_THERE, 10_000) for n in (3, 6, 9, 12, 24)},
    **{f"S3'x{k}": sequence(atoms(3) + NOT_THERE, k * 10_000) for k in (2, 3, 4)},
    "Q1": sequence(Q1, 30_000),
    "Q2": sequence(Q1, 30_000, PRICES),
    "Q3": sequence(Q1, 30_000, partition="PARTITION BY [volume]"),
    "Q4": sequence(Q4, 30_000),
    "Q5": sequence(Q4, 30_000, PRICES),
    "Q6": sequence(Q4, 30_000, partition="PARTITION BY [volume]"),
    "Q7": "SELECT * FROM S WHERE (SELL AS msft; (BUY OR SELL)+ AS qqq; SELL AS amat) FILTER msft[name = 'MSFT']"
    " AND qqq[name = 'QQQ'] AND qqq[volume = 4000] AND amat[name = 'AMAT'] WITHIN 30000 [stock_time]",
}
COUNTS = {
    "S3": (346_052, 21_541),
    "S6": (1_827_724, 458_919),
    "S9": (337_040, 77_152),
    "S12": (0, 0),
    "S24": (0, 0),
    **{f"S{n}'": (0, 0) for n in (3, 6, 9, 12, 24)},
    **{f"S3'x{k}": (0, 0) for k in (2, 3, 4)},
    "Q1": (15_539_613, 382_302),
    "Q2": (1_076_972, 7_358),
    "Q3": (8_530, 617),
    "Q4": (93_829_688, 1_067_540),
    "Q5": (7_878_780, 14_681),
    "Q6": (85_274, 4_491),
    "Q7": (30_300_897, 174_586),
}


@pytest.fixture(scope="module")
def trace() -> pa.Table:
    return pyarrow.csv.read_csv(TRACE)


@pytest.mark.parametrize("name", QUERIES)
def test_counts(trace: pa.Table, name: str) -> None:
    for consume, count in zip(("NONE", "ANY"), COUNTS[name], strict=True):
        query = ceql.compile(f"{QUERIES[name]} CONSUME BY {consume}")
        assert query.run(trace, type_column="event_type").count() == count, consume


def by_hand(table: pa.Table, parts: Atoms, window: int, consume: bool) -> int:
    """How many sequences end at each event, by dynamic programming over the events of each window: O(n · window)."""
    kinds, names = (np.array(table[c].to_pylist()) for c in ("event_type", "name"))
    times = table["stock_time"].to_numpy()
    fits = np.array([(names == name) & ((kinds == kind) | (kind == EITHER)) for kind, name in parts])
    relevant = np.flatnonzero(fits.any(axis=0))
    rows, times = fits[:, relevant].T.tolist(), times[relevant].tolist()
    total = forgotten = 0
    for end in range(len(rows)):
        if not rows[end][-1]:
            continue
        first = end
        while first > forgotten and times[end] - times[first - 1] <= window:
            first -= 1
        ways = [0] * (len(parts) - 1)
        for row in rows[first:end]:
            for i in range(len(ways) - 1, -1, -1):
                if row[i]:
                    ways[i] += ways[i - 1] if i else 1
        if ways[-1]:
            total += ways[-1]
            forgotten = end + 1 if consume else forgotten
    return total


@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize(
    ("name", "parts", "window"),
    [("S3", atoms(3), 10_000), ("S6", atoms(6), 10_000), ("S9", atoms(9), 10_000), ("Q1", Q1, 30_000),
     ("Q4", Q4, 30_000)],
)  # fmt: skip
def test_counts_by_hand(trace: pa.Table, name: str, parts: Atoms, window: int, consume: bool) -> None:
    assert by_hand(trace, parts, window, consume) == COUNTS[name][consume]
