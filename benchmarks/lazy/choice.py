"""Is `auto` near the best evaluator? Each workload with every evaluator, in processor time per event.

Claim: on every workload `auto` costs at most a fifth more than the cheapest of the compact structure, chain and tree.
Workloads:

* the experiments of `benchmarks.lazy.experiments` on the generated stream and on real bars;
* queries over the stock trace, with guards that the kernel takes and with guards that it does not;
* queries over bars;
* made-up trades in many partitions (`benchmarks/lazy/fit.py`, those that the cost model was not fitted to).

The ways take turns, and the fastest of their runs counts, so that the ratios hold on a busy machine too. If the compact
structure is slow on a stream, it sees only its beginning. Matches are counted, not written, and must agree.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

import ceql
from benchmarks import guards, rma, stock
from benchmarks.lazy import bars as lazy_bars
from benchmarks.lazy import experiments as lazy
from benchmarks.lazy import fit as lazy_fit
from benchmarks.lazy.stream import Prices, stream
from ceql.runtime.run import Run
from spaseq.core.engine import Settings
from spaseq.core.events import EventBatch, EventOptions, EventStream

WAYS = ("compact", "chain", "tree", "auto")
ROUNDS = 3
SLOW = 3.0
"""A way this many times slower than the fastest has only one turn."""
LONG = 5e-6
"""Seconds per event from which on the compact structure gets only the beginning of the stream."""
PROBE = 2500
"""Events of that beginning."""
MINUTES, MORNINGS, DAYS = 9 * lazy.MINUTES, 40, 4
LONGER = 250_000
"""Long enough that the single cost of `auto`, some milliseconds, does not decide."""

_TRADES = "SELECT * FROM S WHERE (SELL AS a; BUY AS b; SELL AS c) FILTER {} WITHIN {} [stock_time]"
_NAMES = "a[name = '{}'] AND b[name = '{}'] AND c[name = '{}'] AND "
STOCK = {
    "stock rise": rma.RISE,
    "stock fall, rise": rma.FALL_AND_RISE,
    "stock order 10 s": guards.query(guards.CONDITIONS["order"], 10_000),
    "stock order 100 s": guards.query(guards.CONDITIONS["order"], 100_000),
    "stock equality 100 s": guards.query(guards.CONDITIONS["equality"], 100_000),
    "stock rare end": _TRADES.format(
        _NAMES.format("MSFT", "INTC", "IPIX") + "c[volume > 5000] AND b.price > a.price AND c.volume > a.volume", 30_000
    ),
    "stock two registers": _TRADES.format(
        _NAMES.format("MSFT", "INTC", "ORCL") + "c.price < a.price AND c.volume > b.volume", 30_000
    ),
    "stock same stock": _TRADES.format(
        "a.name = b.name AND b.name = c.name AND a.price < b.price AND b.price < c.price", 5_000
    ),
    "stock sum": _TRADES.format(_NAMES.format("INTC", "QQQ", "IPIX") + "a.price + b.price > c.price + 30", 30_000),
    "stock sum, none": _TRADES.format(_NAMES.format("INTC", "IPIX", "MSFT") + "a.price + b.price < c.price", 10_000),
}


@dataclass(frozen=True, slots=True)
class Contest:
    """A workload: `open(way)` gives a function that counts the matches of a batch, and the evaluator behind it."""

    name: str
    batches: Sequence[Any]
    cut: Callable[[Any, int], Any]
    open: Callable[[str], tuple[Callable[[Any], int], Any]]


def contests() -> Iterator[Contest]:
    """All of them; those over data that is not there are left out, by name."""
    plain, (drift, moving) = stream(MINUTES), lazy.drifting(2 * MINUTES)
    window = lazy.WINDOWS[0]
    for some, prices in ((lazy.experiments(window), plain), (lazy.ratios(window), plain), (drift, moving)):
        yield from (_experiment(e.name, e, prices) for e in some if e.first_chance)
    if lazy_bars.BARS.exists():
        bars = lazy_bars.bars(MORNINGS // 2)
        yield from (_experiment(f"bars {e.name}", e, bars) for e in lazy.experiments(5.0) if e.first_chance)
        tuples = list(EventStream({"": lazy_bars.events(MORNINGS)}, EventOptions()))
        yield from (_query(name, text, tuples) for name, text in lazy_bars.QUERIES.items())
    else:
        print(f"bars: skipped, {lazy_bars.BARS} is not there (set SPASEQ_DATA)")
    for made in itertools.islice(lazy_fit.made(held_out=True), 0, None, 4):
        yield _query(made.name, made.query, made.batches(LONGER))
    if stock.TRACE.exists():
        trades = _days(stock.preload())
        yield from (_query(name, text, trades) for name, text in STOCK.items())
    else:
        print(f"stock: skipped, {stock.TRACE} is not there (set SPASEQ_DATA)")


def _days(batches: list[EventBatch]) -> list[EventBatch]:
    """The day of the trace again and again."""
    found, position, time, stock_time = [], 0, 0, 0
    for _ in range(DAYS):
        for batch in batches:
            column = batch.table["stock_time"]
            at = batch.table.column_names.index("stock_time")
            table = batch.table.set_column(at, "stock_time", pc.add(column, stock_time))
            found.append(EventBatch(table, batch.typed_by, batch.times + time, batch.positions + position,
                                    batch.streams, batch.stream_codes))  # fmt: skip
        position = int(found[-1].positions[-1]) + 1
        time = int(found[-1].times[-1]) + 1
        stock_time = found[-1].table["stock_time"][-1].as_py() + 1_000_000
    return found


def _experiment(name: str, e: lazy.Experiment, prices: Prices) -> Contest:
    def begin(way: str) -> tuple[Callable[[Any], int], Any]:
        evaluator = e.open(way)
        return evaluator.count, evaluator

    return Contest(name, list(lazy.batches(prices)), lambda batch, size: batch[:size], begin)


def _query(name: str, text: str, batches: list[EventBatch]) -> Contest:
    queries = {way: ceql.compile(text, settings=Settings(evaluator=way)) for way in WAYS}

    def begin(way: str) -> tuple[Callable[[Any], int], Any]:
        run = Run(queries[way].compiled.lowered, queries[way].program())
        return run.count, run.evaluator

    return Contest(name, batches, lambda batch, size: batch.part(0, size), begin)


@dataclass(slots=True)
class Result:
    """Microseconds of processor time per event by way, matches, and the last evaluator of `auto`."""

    cost: dict[str, float]
    matches: int
    chosen: str
    changes: int

    @property
    def best(self) -> str:
        """The cheapest of those that one can choose."""
        return min(WAYS[:-1], key=self.cost.__getitem__)

    @property
    def ratio(self) -> float:
        """`auto` to the best."""
        return self.cost["auto"] / self.cost[self.best]


def hold(contest: Contest) -> Result:
    """All ways in turn."""
    first = contest.cut(contest.batches[0], PROBE)
    _seconds(contest, "compact", [first])  # kernels are loaded
    short = [first] if _seconds(contest, "compact", [first])[0] / len(first) > LONG else None
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    matches: set[int] = set()
    evaluator: Any = None
    for _ in range(ROUNDS):
        for way in WAYS:
            if found[way] and found[way][0] > SLOW * min(times[0] for times in found.values()):
                continue
            batches = short if way == "compact" and short is not None else contest.batches
            seconds, count, last = _seconds(contest, way, batches)
            found[way].append(seconds / sum(map(len, batches)))
            if batches is not short:
                matches.add(count)
            evaluator = last if way == "auto" else evaluator
    if len(matches) != 1:
        raise AssertionError(f"{contest.name}: {sorted(matches)} matches")
    cost = {way: 1e6 * min(times) for way, times in found.items()}
    return Result(cost, matches.pop(), evaluator.evaluator, evaluator.statistics["evaluator_changes"])


def _seconds(contest: Contest, way: str, batches: Sequence[Any]) -> tuple[float, int, Any]:
    start = time.process_time()
    count, evaluator = contest.open(way)
    matches = sum(count(batch) for batch in batches)
    return time.process_time() - start, matches, evaluator


def table(out: Any = None) -> None:
    """Hold and print all contests; `out`: a csv writer."""
    if out is not None:
        out.writerow(["workload", "events", "matches", *(f"{way}_us_per_event" for way in WAYS), "auto_to_best", "best",
                      "auto_ended_with", "changes"])  # fmt: skip
    for contest in contests():
        r = hold(contest)
        costs = " ".join(f"{way} {r.cost[way]:8.3f}" for way in WAYS)
        said = f"auto/best {r.ratio:4.2f}, best {r.best}; {r.chosen} after {r.changes} changes"
        print(f"{contest.name:24} {costs}  {said}", flush=True)
        if out is not None:
            events = sum(map(len, contest.batches))
            out.writerow([contest.name, events, r.matches, *(f"{r.cost[way]:.4f}" for way in WAYS), f"{r.ratio:.3f}",
                          r.best, r.chosen, r.changes])  # fmt: skip


if __name__ == "__main__":
    table()
