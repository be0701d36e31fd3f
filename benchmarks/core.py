"""The experiments of [CORE]: Figures 7, 8, 9 and 11, over its three kinds of streams.

* Stocks: the trace itself (appendix D). Homes and taxis: made here with the shape that appendices E and F describe, as
  the data of the two challenges is not ours to ship. `homes`: a million loads, 85 plugs of 17 households once a second,
  lognormal about the average of 76 W that the queries ask for (seed 28). `taxis`: a million trips between 263 zones by
  Zipf's law, the zones of the queries among the frequent ones, 5.5 a second in order of arrival (seed 2015).
* As in the paper, an event that completes a match makes all forgotten (CONSUME BY ANY) and gives at most a thousand.
* Figure 7: sequences of 3 to 24 with output (P3 … P24) and the same with an event that never comes (P3' … P24').
  Memory is the mean of the bytes held after each 10,000 events, without the preloaded stream.
* Figure 8: P3' with 1 to 4 times the window. Figure 9: Q1 to Q7 on stocks. Figure 11: P3' by window under LAST, as the
  paper has it, and under NEXT and MAX.

Claims: an event costs the transitions that fire, not the length of the sequence nor the events in the window, whatever
the selection. Preloaded columns; predicates measured; one thread. `SPASEQ_CORE=2` doubles the streams of homes and
taxis. `python -m benchmarks.figures core` measures processor time, `python -m benchmarks core` elapsed time.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.figures import Figure, Point
from benchmarks.harness import Workload
from benchmarks.stock import Q1, Q7, TRACE, counting, enumerating, sequence
from benchmarks.stock import preload as stocks
from ceql.runtime.run import Run
from spaseq.core.events import EventBatch, EventOptions, EventStream

EVENTS = round(1_000_000 * float(os.environ.get("SPASEQ_CORE", "1")))
PART = 10_000
"""Events between two measurements of memory, as in the paper."""
LENGTHS = (3, 6, 9, 12, 24)
STRATEGIES = ("LAST", "NEXT", "MAX")
_CONSUMED = " CONSUME BY ANY LIMIT 1000"
_SIX = (0, 2, 4, 6, 9, 10)
_TWELVE = (*_SIX, 12, 14, 15, 4, 9, 10)
HOUSEHOLDS = (*_TWELVE, *_SIX, 12, 14, 15, 4, 9, 10)
_WEST, _CONCOURSE = ("Lincoln Square West", "Sutton Place/Turtle Bay North"), "East Concourse/Concourse Village"
_ROUND = ("East Harlem North", "Midwood", "Gravesend", "West Brighton", *_WEST, _CONCOURSE)
_AGAIN = ("East Harlem North", "East Harlem North", "Gravesend", "Midwood", "Midwood", "Gravesend")
STOPS = (*_ROUND, *_AGAIN, *_ROUND[1:], *_AGAIN)
_FILTERED = "msft[price > 26.0] AND oracle[price > 11.14] AND amat[price >= 18.92]"
_FOUR = Q1.split(" FROM S WHERE ")[1]
_OR_FOUR = _FOUR.replace("BUY AS", "(BUY OR SELL) AS")
FIGURE_9 = {
    "Q1": _FOUR,
    "Q2": _FOUR.replace(" WITHIN", f" AND {_FILTERED} WITHIN"),
    "Q3": _FOUR.replace(" WITHIN", " PARTITION BY [volume] WITHIN"),
    "Q4": _OR_FOUR,
    "Q5": _OR_FOUR.replace(" WITHIN", f" AND {_FILTERED} WITHIN"),
    "Q6": _OR_FOUR.replace(" WITHIN", " PARTITION BY [volume] WITHIN"),
    "Q7": Q7.split(" FROM S WHERE ")[1],
}


@functools.cache
def homes() -> list[EventBatch]:
    """A million LOAD events in columns."""
    rng = np.random.default_rng(28)
    plug = np.tile(np.arange(85), -(-EVENTS // 85))[:EVENTS]
    table = pa.table({
        "type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(EVENTS, np.int32)), pa.array(["LOAD"])),
        "plug_timestamp": np.arange(EVENTS) // 85,
        "value": np.round(rng.lognormal(np.log(76) - 0.5, 1.0, EVENTS), 3),
        "household_id": plug % 17,
    })  # fmt: skip
    return list(EventStream({"S": table}, EventOptions(from_arrival=True)))


@functools.cache
def taxis() -> list[EventBatch]:
    """A million TRIP events in columns."""
    rng = np.random.default_rng(2015)
    named = list(dict.fromkeys(STOPS))
    zones = [*(f"zone {k}" for k in range(20)), *named, *(f"zone {k}" for k in range(20, 263 - len(named)))]
    weights = 1 / np.arange(1, len(zones) + 1)
    places = [rng.choice(len(zones), EVENTS, p=weights / weights.sum()).astype(np.int32) for _ in range(2)]
    pickup, dropoff = (pa.DictionaryArray.from_arrays(pa.array(p), pa.array(zones)) for p in places)
    table = pa.table({
        "type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(EVENTS, np.int32)), pa.array(["TRIP"])),
        "dropoff_datetime": np.cumsum(rng.random(EVENTS) < 1 / 5.5),
        "pickup_loc": pickup,
        "dropoff_loc": dropoff,
    })  # fmt: skip
    return list(EventStream({"S": table}, EventOptions(from_arrival=True)))


def home_query(length: int, *, impossible: bool = False, times: int = 1) -> str:
    """H<length> of appendix E, or H<length>' with `impossible`."""
    atoms = [f"LOAD AS L{i + 1}" for i in range(length)] + ["LOAD AS NE"] * impossible
    filters = ["L[value > 76]", *(f"L{i + 1}[household_id = {HOUSEHOLDS[i]}]" for i in range(length))]
    filters += ["NE[household_id = -1]"] * impossible
    return _query(f"({'; '.join(atoms)}) AS L", filters, f"{10 * times} [plug_timestamp]")


def taxi_query(length: int, *, impossible: bool = False, times: int = 1) -> str:
    """T<length> of appendix F, or T<length>' with `impossible`."""
    atoms = [f"TRIP AS loc{i + 1}" for i in range(length)] + ["TRIP AS NE"] * impossible
    filters = [
        f"loc{i + 1}[pickup_loc = '{STOPS[i]}' AND dropoff_loc = '{STOPS[i + 1]}']" for i in range(length)
    ] + ["NE[pickup_loc = 'NotExists']"] * impossible  # fmt: skip
    return _query(f"({'; '.join(atoms)})", filters, f"{10_000 * times} [dropoff_datetime]")


def stock_query(length: int, *, impossible: bool = False, times: int = 1) -> str:
    """S<length> of appendix D, or S<length>' with `impossible`."""
    return sequence(length, impossible=impossible, window=10_000 * times)


def _query(formula: str, filters: list[str], window: str) -> str:
    return f"SELECT * FROM S WHERE {formula} FILTER {' AND '.join(filters)} WITHIN {window}"


Source = tuple[Callable[[], list[EventBatch]], Callable[..., str]]
"""The function that reads the events, and the one that gives the query of so many events."""
Loaded = dict[str, tuple[list[EventBatch], Callable[..., str]]]
"""The events of each stream in columns, and the function of its queries."""


def mean_bytes(text: str, batches: list[EventBatch]) -> Callable[[], int]:
    """The mean of the bytes that an evaluation holds after each `PART` events, without the preloaded stream."""
    query = ceql.compile(text)

    def run() -> int:
        evaluation, found = Run(query.compiled.lowered, query.program()), []
        for batch in batches:
            for start in range(0, len(batch), PART):
                for _ in evaluation.advance(batch.part(start, min(start + PART, len(batch)))):
                    pass
                found.append(evaluation.held(ignored=batches).total)
        return round(sum(found) / len(found))

    return run


def _sources() -> dict[str, Source]:
    """The streams by name, and stocks only if the trace is there."""
    found: dict[str, Source] = {"homes": (homes, home_query), "taxis": (taxis, taxi_query)}
    if TRACE.exists():
        return {"stocks": (stocks, stock_query), **found}
    print(f"core: the experiments on stocks are skipped, {TRACE} is not there (set SPASEQ_DATA)")
    return found


def figures() -> list[Figure]:
    """Figures 7, 8, 9 and 11; those on stocks only if the trace is there."""
    sources = {name: (load(), query) for name, (load, query) in _sources().items()}
    found = [
        Figure("core 7", "level in the length, but for matches", list(_figure_7(sources))),
        Figure("core 8", "level in the window", list(_windows(sources, {"ALL": ""}))),
        Figure("core 9", "as a sequence", list(_figure_9(sources))),
        Figure("core 11", "level in the window", list(_windows(sources, {s: f"{s} " for s in STRATEGIES}))),
    ]
    return [figure for figure in found if figure.points]


def _figure_7(sources: Loaded) -> Iterator[Point]:
    for name, (batches, query) in sources.items():
        count = sum(map(len, batches))
        for n in LENGTHS:
            text = query(n) + _CONSUMED
            yield Point(name, "with output", str(n), count, enumerating(text, batches), mean_bytes(text, batches))
        for n in LENGTHS:
            text = query(n, impossible=True) + _CONSUMED
            yield Point(name, "without output", str(n), count, counting(text, batches), mean_bytes(text, batches))


def _windows(sources: Loaded, strategies: dict[str, str]) -> Iterator[Point]:
    for name, (batches, query) in sources.items():
        count = sum(map(len, batches))
        for series, selection in strategies.items():
            for times in (1, 2, 3, 4):
                text = query(3, impossible=True, times=times).replace("SELECT *", f"SELECT {selection}*")
                text += "" if selection else _CONSUMED
                yield Point(name, series, f"{times}T", count, counting(text, batches))


def _figure_9(sources: Loaded) -> Iterator[Point]:
    if "stocks" in sources:
        batches, _ = sources["stocks"]
        count = sum(map(len, batches))
        for label, formula in FIGURE_9.items():
            text = f"SELECT * FROM S WHERE {formula}{_CONSUMED}"
            yield Point("stocks", "with output", label, count, enumerating(text, batches))


def workloads() -> list[Workload]:
    """The points of all figures."""
    return [workload for figure in figures() for workload in figure.workloads()]
