"""One-minute bars of NASDAQ stocks as the stream of `benchmarks.lazy.experiments`: real prices at real rates.

9,999 bars of one morning, 40 minutes. The kinds of events are groups of tickers by their first letter; the rarest takes
the place of the smallest region. An event's history is its ticker's last five closing prices, so its first four bars
are left out. The file is not the project's: without it there is no such workload.
"""

from __future__ import annotations

import collections
import csv
import datetime
import gzip
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import DATA
from benchmarks.lazy.stream import HISTORY, REGIONS, Prices

BARS = DATA / "nasdaq" / "short_NASDAQ_LONG.txt.gz"
LENGTH = 5
DAY = 86_400
LETTERS = {"NA": "ABCDEFGHI", "EU": "JKLMN", "AS": "PQRST", "SA": "UVW", "ME": "O", "OC": "X", "AF": "Z", "CA": "Y"}
"""For the name of each region the first letters of its tickers."""

HIERARCHY = (
    "SELECT * WHERE AND(AMZN AS x, AAPL AS y, GOOG AS z) FILTER x.high < y.high AND y.high < z.high WITHIN 3 MINUTES"
)
RACE = (
    "SELECT * WHERE MSFT AS a ; DRIV AS b ; MSFT AS c ; DRIV AS d ; MSFT AS e FILTER a.high < c.high AND "
    "c.high < e.high AND b.high > d.high WITHIN 10 MINUTES"
)
SPREAD = (
    "SELECT * WHERE GOOG AS x ; YHOO AS y ; ETFC AS z FILTER x.high - x.low > y.high + z.low - 30 WITHIN 10 MINUTES"
)
QUERIES = {"bars hierarchy": HIERARCHY, "bars race": RACE, "bars spread": SPREAD}


def rows() -> Iterator[tuple[str, int, list[float]]]:
    """(ticker, time in seconds, open, high, low, close, volume), in the order of the file, which is that of time."""
    with gzip.open(BARS, "rt") as file:
        for ticker, minute, *numbers in csv.reader(file):
            time = datetime.datetime.strptime(minute, "%Y%m%d%H%M").replace(tzinfo=datetime.UTC)
            yield ticker, int(time.timestamp()), [float(n) for n in numbers]


def events(mornings: int = 1) -> list[dict[str, object]]:
    """The bars as tuples, their type the ticker; the same morning, a day later each time."""
    names = ("open", "high", "low", "close", "volume")
    return [
        {"type": ticker, "time": time + DAY * day, **dict(zip(names, numbers, strict=True))}
        for day in range(mornings) for ticker, time, numbers in rows()
    ]  # fmt: skip


def bars(mornings: int = 1) -> Prices:
    """The bars as a batch of normalised histories, as often."""
    region_of = {letter: i for i, name in enumerate(REGIONS) for letter in LETTERS[name]}
    closes: dict[str, collections.deque[float]] = {}
    regions, histories, times = [], [], []
    for ticker, time, numbers in rows():
        last = closes.setdefault(ticker, collections.deque(maxlen=LENGTH))
        last.append(numbers[3])
        centred = np.array(last) - np.mean(last)
        if len(last) == LENGTH and np.any(centred):
            regions.append(region_of[ticker[0]])
            histories.append(np.pad(centred / np.linalg.norm(centred), (0, HISTORY - LENGTH)))
            times.append(time)
    count = mornings * len(times)
    later = np.concatenate([np.array(times) + DAY * day for day in range(mornings)])
    several = np.tile(np.array(histories, np.float32), (mornings, 1))
    return Prices(np.tile(np.array(regions), mornings), several, np.arange(count), later)
