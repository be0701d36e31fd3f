"""Makes trades.csv: ten minutes of trades in six invented stocks, always the same bytes.

    python examples/stock/generate.py [PATH]

Prices walk in whole cents, times are milliseconds of the day, about five trades a second. Now and then a stock is
pumped: a large purchase, then sales at a price that jumps, which is what query.ceql looks for. Only `Random.random()`
is drawn from, whose sequence Python keeps for ever.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

SEED = 20100416
TRADES = 3000
OPENING_MS = 34_200_000  # 9:30
MEAN_GAP_MS = 200
OPENING_CENTS = {"AQUA": 4120, "BIRK": 2785, "CORN": 1540, "DUNE": 6310, "EWER": 905, "FLAX": 3275}
HEADER = ("event_type", "id", "name", "volume", "price", "stock_time")
HERE = Path(__file__).resolve().parent

Trade = tuple[str, int, str, int, str, int]


def trades(seed: int = SEED, count: int = TRADES) -> Iterator[Trade]:
    """`count` trades in order of time, in the columns of HEADER."""
    rng = Random(seed)
    cents = dict(OPENING_CENTS)
    names = sorted(cents)
    clock = OPENING_MS
    pumped: dict[str, int] = {}  # stock -> sales still to come at a jumped price
    for number in range(count):
        clock += 1 + int(rng.random() * 2 * MEAN_GAP_MS)
        name = names[int(rng.random() * len(names))]
        kind, volume = _next(rng, cents, pumped, name)
        yield kind, number, name, volume, f"{cents[name] // 100}.{cents[name] % 100:02d}", clock


def _next(rng: Random, cents: dict[str, int], pumped: dict[str, int], name: str) -> tuple[str, int]:
    """The kind and volume of the next trade in `name`, whose price moves in `cents`."""
    if pumped.get(name):
        pumped[name] -= 1
        cents[name] += cents[name] * (1 + int(rng.random() * 3)) // 100
        return "SELL", 100 + int(rng.random() * 400)
    cents[name] = max(100, cents[name] + int(rng.random() * 7) - 3)
    kind = "BUY" if rng.random() < 0.5 else "SELL"
    volume = 10 + int(rng.random() * rng.random() * 700)
    if kind == "BUY" and rng.random() < 0.012:
        pumped[name] = 3
        volume += 600
    return kind, volume


def write(path: Path) -> None:
    """The trades as CSV at `path`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(trades())


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "trades.csv")
