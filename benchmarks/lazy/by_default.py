"""The evaluator that is chosen by default if events are compared with all runs, beside the compact structure.

Claim: for sums, products and distances of three events the default costs at most a tenth more than the compact
structure. If few tuples match, or their last event is rare, it costs a fraction. Streams have events of four types,
A, B and D equally often, C at a rate of 1/4 or 1/400, and prices that all differ. They are pushed in batches of 4,000
events, within 100 and 1,000 events; matches are counted. The ways take turns, and the fastest of their runs counts.

`python -m benchmarks.lazy.by_default` writes results/DATE-lazy-by_default.csv. Seed of the streams: 41.
"""

from __future__ import annotations

import csv
import datetime
import time

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import RESULTS
from ceql import Settings

SEED = 41
BATCH = 4_000
SIZES = {100: 40_000, 1_000: 12_000}
"""Events by window."""
RATES = (1 / 4, 1 / 400)
RUNS = 2
CONDITIONS = {
    "a + b + c < 5": "a.price + b.price + c.price < 5",
    "a + b = c, whole numbers": "a.id + b.id = c.id",
    "a distance": "(a.price - b.price) * (a.price - b.price) + (b.price - c.price) * (b.price - c.price) < 4",
    "20 (a + b) < c": "20 * (a.price + b.price) < c.price",
    "a < b, c > a + b + 80": "a.price < b.price AND c.price > a.price + b.price + 80",
}
WAYS: dict[str, str | None] = {"compact": "compact", "default": None}


def events(count: int, rate: float) -> pa.Table:
    """A stream; `rate` is that of C."""
    random = np.random.default_rng(SEED)
    rest = (1 - rate) / 3
    return pa.table({
        "type": np.array(list("ABDC"))[random.choice(4, count, p=[rest, rest, rest, rate])],
        "price": random.random(count) * 100,
        "id": random.integers(0, 1000, count),
    })  # fmt: skip


def measure(text: str, evaluator: str | None, table: pa.Table) -> tuple[float, int, str]:
    """Microseconds of processor time an event, the number of matches, and the evaluator in charge at the end."""
    session = ceql.compile(text, settings=Settings(evaluator=evaluator)).open()
    start, found = time.process_time(), 0
    for at in range(0, len(table), BATCH):
        found += len(session.push(table.slice(at, BATCH)))
    spent = time.process_time() - start
    return spent / len(table) * 1e6, found, getattr(session._run.evaluator, "evaluator", "compact")


def main() -> None:
    """Print and keep the table."""
    path = RESULTS / f"{datetime.date.today().isoformat()}-lazy-by_default.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["condition", "window", "rate_of_c", "events", "matches", *WAYS, "in_charge"])
        for (name, condition), window, rate in (
            (pair, window, rate) for pair in CONDITIONS.items() for window in SIZES for rate in RATES
        ):
            text = f"SELECT * WHERE A AS a ; B AS b ; C AS c FILTER {condition} WITHIN {window} EVENTS"
            table = events(SIZES[window], rate)
            turns = [{way: measure(text, evaluator, table) for way, evaluator in WAYS.items()} for _ in range(RUNS)]
            best = {way: min(turn[way] for turn in turns) for way in WAYS}
            assert len({matches for _, matches, _ in best.values()}) == 1
            costs, (_, matches, chosen) = [f"{best[way][0]:.2f}" for way in WAYS], best["default"]
            out.writerow([name, window, f"{rate:.4f}", len(table), matches, *costs, chosen])
            file.flush()
            print(f"{name:25} within {window:5}, C {rate:.4f}: {' '.join(costs)} µs, {chosen}, {matches:,} matches",
                  flush=True)  # fmt: skip
    print(f"-> {path}")


if __name__ == "__main__":
    main()
