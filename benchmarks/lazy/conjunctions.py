"""AND of 4 to 20 parts: the automaton's size, the time to compile it, and the processor time of an event.

Claim: the automaton of AND of n events of different types has 2^n states, so the compact structure ends at eleven. A
chain takes one leaf after another, so its states are linear in n ([Lazy] §4.2). An event costs a chain about the same
for each n, as long as matches are few. A window has 1.5 n events and about one match. One query has the parts alone,
one gives them the same id, which is a key, and one has an order of prices.

`python -m benchmarks.lazy.conjunctions` writes results/DATE-lazy-conjunctions.csv. Seed of the streams: 7.
"""

from __future__ import annotations

import csv
import datetime
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import RESULTS
from ceql import Settings
from spaseq.core.errors import BudgetExceeded

T = TypeVar("T")
SEED = 7
EVENTS = 60_000
SLOW = 300
"""Events for the compact structure if it decides conditions run by run."""
PARTS = (4, 8, 10, 12, 16, 20)
EVALUATORS = ("compact", "chain", "tree", "auto")
RUNS = 3


def alone(n: int) -> str:
    """Any events in a window."""
    return f"{_formula(n)} WITHIN {n + n // 2} EVENTS"


def of_one_id(n: int) -> str:
    """All events have one id, which the engine makes a key; each id has 1.5 n events, apart by events of others."""
    equal = " AND ".join(f"t{i}.id = t{i + 1}.id" for i in range(n - 1))
    return f"{_formula(n)} FILTER {equal} WITHIN 1000000 [time]"


def price_order(n: int) -> str:
    """The first price of each pair of parts is below the second."""
    below = " AND ".join(f"t{i}.price < t{i + 1}.price" for i in range(0, n - 1, 2))
    return f"{_formula(n)} FILTER {below} WITHIN {n + n // 2} EVENTS"


def _formula(n: int) -> str:
    return f"SELECT * WHERE AND({', '.join(f'T{i} AS t{i}' for i in range(n))})"


QUERIES: dict[str, Callable[[int], str]] = {"alone": alone, "of one id": of_one_id, "ordered prices": price_order}


def events(n: int, count: int) -> pa.Table:
    """Types and prices are uniform. Four ids at a time have 1.5 n events each."""
    random = np.random.default_rng(SEED)
    number = np.arange(count)
    codes = pa.array(random.integers(0, n, count).astype(np.int32))
    return pa.table({
        "type": pa.DictionaryArray.from_arrays(codes, pa.array([f"T{i}" for i in range(n)])),
        "time": number,
        "id": number // (6 * n) * 4 + number % 4,
        "price": random.integers(0, 1000, count),
    })  # fmt: skip


def measure(name: str, n: int, evaluator: str) -> list[object] | None:
    """A row of the table; None if the query needs an automaton that is too large."""
    text = QUERIES[name](n)
    try:
        seconds, query = min(
            (_time(lambda: ceql.compile(text, settings=Settings(evaluator=evaluator))) for _ in range(RUNS)),
            key=lambda found: found[0],
        )
    except BudgetExceeded as error:
        print(f"AND of {n:2} {name:15} {evaluator:8} {str(error).splitlines()[0]}", flush=True)
        return None
    guarded = name == "ordered prices" and evaluator == "compact" and n > 5
    count = SLOW if guarded else EVENTS
    table = events(n, count)
    found = [_time(lambda: sum(1 for _ in query.run(table))) for _ in range(RUNS)]
    assert len({matches for _, matches in found}) == 1
    each, matches = min(found)[0] / count * 1e6, found[0][1]
    size = _size(query)
    print(f"AND of {n:2} {name:15} {evaluator:8} {size[0]:>5} states {size[1]:>6} transitions, compiled in"
          f" {seconds * 1e3:7.1f} ms, {each:8.2f} µs an event, {matches:,} matches", flush=True)  # fmt: skip
    return [n, name, evaluator, *size, f"{seconds:.4f}", count, matches, f"{each:.3f}"]


def _size(query: ceql.Query) -> tuple[object, object]:
    """The states and transitions of the automaton, if there is one."""
    try:
        return query.automaton.states, sum(map(len, query.automaton.transitions))
    except BudgetExceeded:
        return "", ""


def _time(work: Callable[[], T]) -> tuple[float, T]:
    """Processor time and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main() -> None:
    """Print and keep the table."""
    path = RESULTS / f"{datetime.date.today().isoformat()}-lazy-conjunctions.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["parts", "query", "evaluator", "states", "transitions", "compile_s", "events", "matches",
                      "us_per_event"])  # fmt: skip
        for name in QUERIES:
            for n in PARTS:
                rows = [row for row in (measure(name, n, evaluator) for evaluator in EVALUATORS) if row is not None]
                agree = {row[7] for row in rows if row[6] == EVENTS}
                assert len(agree) == 1, (name, n, agree)
                out.writerows(rows)
                file.flush()
    print(f"-> {path}")


if __name__ == "__main__":
    main()
