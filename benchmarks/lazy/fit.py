"""Made-up trades in partitions, and the fit of the cost model's constants for them.

Claim: the cost of the compact structure grows with the number of partitions, and the model of
`spaseq.core.engine.choice.cost` estimates by how much. Half of the workloads are fitted to, the others are held out;
some of these are among those of `benchmarks.lazy.choice`. `python -m benchmarks.lazy.fit` measures all of them and fits
the constants of guards as codes to the first half. For either half it prints the error of the estimates, and how often
the evaluator they choose costs a fifth more than the best. The constants in `cost.py` are rounded and were fitted
together with every other query over stock trades and bars. KERNEL_MOVE is the exception: here no two prices are alike,
and a move costs four times as much as in those workloads, in which runs that agree are one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

import ceql
from ceql.runtime.run import Run
from spaseq.core.engine import Settings
from spaseq.core.engine.choice import cost
from spaseq.core.engine.choice.auto import ROBUST, AutoEvaluator
from spaseq.core.events import EventBatch, EventOptions, EventStream

EVENTS: Final = 40_000
CONDITIONS: Final = {
    "order": "a.price < b.price AND b.price < c.price",
    "three": "a.price < b.price AND b.price < c.price AND a.volume < c.volume",
    "far": "a.price < b.price AND a.price + 20 < c.price",
}
FITTED: Final = ("KERNEL_EVENT", "KERNEL_START", "KERNEL_RUN", "KERNEL_MOVE", "CROWD", "CROWDED", "MATCH")
ROUNDS: Final = 3
STEPS: Final = 3000


@dataclass(frozen=True, slots=True)
class Made:
    """A then B then C: Cs are `rare`, `partitions` take turns, and a window has about `window` events of each."""

    name: str
    query: str
    rare: float
    partitions: int

    def batches(self, events: int = EVENTS) -> list[EventBatch]:
        """The trades, always the same."""
        rng = np.random.default_rng(self.partitions + round(1000 * self.rare))
        rest = (1 - self.rare) / 2
        table = pa.table({
            "type": rng.choice(["A", "B", "C"], events, p=[rest, rest, self.rare]),
            "time": np.arange(events) / 1000.0,
            "company": rng.integers(0, self.partitions, events),
            "price": np.round(rng.normal(100, 10, events), 2),
            "volume": rng.integers(1, 1000, events),
        })  # fmt: skip
        return list(EventStream({"": table}, EventOptions()))


def made(held_out: bool) -> Iterator[Made]:
    """Every other workload: the ones to fit to, or the ones held out."""
    cases = [
        (rare, partitions, window, name)
        for rare in (0.001, 0.02, 0.33) for partitions in (1, 20, 500, 4000) for window in (6, 25)
        for name in CONDITIONS if partitions * window < EVENTS
    ]  # fmt: skip
    for number, (rare, partitions, window, name) in enumerate(cases):
        if number % 2 == held_out:
            clause = "PARTITION BY [company] " if partitions > 1 else ""
            seconds = window * partitions / 1000
            text = f"SELECT * WHERE (A AS a; B AS b; C AS c) FILTER {CONDITIONS[name]} {clause}WITHIN {seconds} SECONDS"
            yield Made(f"{name}, {partitions} of {window}, {rare}", text, rare, partitions)


@dataclass(slots=True)
class Seen:
    """Microseconds per event by evaluator, and the statistics of `auto` at the end of the stream."""

    name: str
    costs: dict[str, float]
    known: AutoEvaluator

    def estimated(self) -> cost.Estimate:
        """By the constants as they are now."""
        return self.known._costs.estimate(self.known._statistics, kernel=True)

    def loss(self) -> float:
        """The cost of the evaluator that the estimate chooses, as a multiple of the best."""
        found = self.estimated()
        chosen = "chain" if found.chain * ROBUST < found.compact else "compact"
        return self.costs[chosen] / min(self.costs.values())


def measured(workload: Made) -> Seen:
    """The fastest of some runs of each evaluator, in turns."""
    batches, costs = workload.batches(), dict[str, float]()
    known: Any = None
    for _ in range(ROUNDS):
        for way in ("compact", "chain", "auto"):
            query = ceql.compile(workload.query, settings=Settings(evaluator=way))
            run = Run(query.compiled.lowered, query.program())
            start = time.process_time()
            for batch in batches:
                run.count(batch)
            spent = 1e6 * (time.process_time() - start) / EVENTS
            if way == "auto":
                known = run.evaluator
            else:
                costs[way] = min(costs.get(way, math.inf), spent)
    return Seen(workload.name, costs, known)


def off(seen: list[Seen]) -> float:
    """The average factor of error of the estimates of the compact structure, over workloads."""
    return math.exp(sum(abs(math.log(s.estimated().compact / s.costs["compact"])) for s in seen) / len(seen))


def fit(seen: list[Seen]) -> None:
    """Search for constants of `cost` by random steps, from those it has; the same each time."""
    rng = np.random.default_rng(1)
    best, size = off(seen), 0.3
    for _ in range(STEPS):
        before = {name: getattr(cost, name) for name in FITTED}
        for name, value in before.items():
            if rng.random() < 0.4:
                setattr(cost, name, value * math.exp(size * rng.normal()))
        found = off(seen)
        if found < best:
            best = found
        else:
            size = max(0.995 * size, 0.02)
            for name, value in before.items():
                setattr(cost, name, value)


def report(title: str, seen: list[Seen]) -> None:
    """Print the quality of the estimates."""
    losses = [s.loss() for s in seen]
    over = sum(x > 1.2 for x in losses)
    print(
        f"{title}: estimates off {off(seen):.2f} times, choices over 1.2 {over} of {len(seen)}, worst {max(losses):.2f}"
    )


def main() -> None:
    """Measure, report, fit, report."""
    own, others = ([measured(w) for w in made(held_out)] for held_out in (False, True))
    for title in ("as they are", "fitted"):
        report(f"{title}, fitted half", own)
        report(f"{title}, held out", others)
        print("  " + ", ".join(f"{name} {getattr(cost, name):.3g}" for name in FITTED))
        if title == "as they are":
            fit(own)


if __name__ == "__main__":
    main()
