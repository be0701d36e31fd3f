"""Conditions over several events, on the stock trace, against an enumeration of all partial matches.

Claim: the cost of an event is the number of different register contents that its conditions let pass, not the number of
partial matches. An equality is looked up, an order found in order. The enumeration (`_plain`) is the work that the
structure saves: every pair that may still become a match is kept by itself and tried against every event, compiled as
well. Both count the matches of `SELL AS a ; BUY AS b ; SELL AS c` of one stock under two conditions, over windows of
the trace. One thread; the input of the enumeration is computed before, which is not measured.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from benchmarks.harness import Workload
from benchmarks.stock import TRACE, counting, preload
from spaseq.core.events import EventBatch, NumberColumn, TextColumn

WINDOWS = (10_000, 100_000, 400_000)
CONDITIONS = {
    "order": ("b.price > a.price", "c.price < a.price - 0.1"),
    "equality": ("b.volume = a.volume", "c.price < a.price - 0.1"),
}


def query(conditions: tuple[str, str], window: int) -> str:
    """Three trades of one stock, under two conditions."""
    names = "a[name = 'MSFT'] AND b[name = 'MSFT'] AND c[name = 'MSFT']"
    return (
        f"SELECT * FROM S WHERE (SELL AS a; BUY AS b; SELL AS c) FILTER {names} AND {' AND '.join(conditions)} "
        f"WITHIN {window} [stock_time]"
    )


@njit(cache=True)
def _plain(  # type: ignore[no-untyped-def]
    role, time, price, volume, window, equality, firsts, pairs, most
):
    """Matches, and the most partial matches held at one time.

    `role`: 0 SELL, 1 BUY, of the stock, -1 another event. `firsts` (int64 (f,)) and `pairs` (int64 (p, 2)) are room for
    partial matches of one event and of two; -1 if they do not fit.
    """
    n_firsts = n_pairs = matches = 0
    for i in range(role.shape[0]):
        if role[i] < 0:
            continue
        low = time[i] - window
        if role[i] == 0:
            kept = 0
            for p in range(n_pairs):
                a = pairs[p, 0]
                if time[a] < low:
                    continue
                pairs[kept, 0] = a
                pairs[kept, 1] = pairs[p, 1]
                kept += 1
                if price[i] < price[a] - 0.1:
                    matches += 1
            n_pairs = kept
            if n_firsts == firsts.shape[0]:
                return -1
            firsts[n_firsts] = i
            n_firsts += 1
        else:
            kept = 0
            for f in range(n_firsts):
                a = firsts[f]
                if time[a] < low:
                    continue
                firsts[kept] = a
                kept += 1
                if volume[i] == volume[a] if equality else price[i] > price[a]:
                    if n_pairs == pairs.shape[0]:
                        return -1
                    pairs[n_pairs, 0] = a
                    pairs[n_pairs, 1] = i
                    n_pairs += 1
            n_firsts = kept
        most[0] = max(most[0], n_firsts + n_pairs)
    return matches


def _columns(batches: list[EventBatch]) -> tuple[np.ndarray, ...]:
    """role, time, price and volume of all events, each (n,)."""
    found = []
    for batch in batches:
        kinds, names = (batch.column(name) for name in ("event_type", "name"))
        time, price, volume = (batch.column(name) for name in ("stock_time", "price", "volume"))
        assert isinstance(kinds, TextColumn) and isinstance(names, TextColumn)
        assert all(isinstance(column, NumberColumn) for column in (time, price, volume))
        stock = _is(names, "MSFT")
        role = np.where(stock & _is(kinds, "SELL"), 0, np.where(stock & _is(kinds, "BUY"), 1, -1))
        found.append((role, time.values, price.values, volume.values))  # type: ignore[union-attr]
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _is(column: TextColumn, text: str) -> np.ndarray:
    texts = column.texts.to_pylist()
    return np.asarray(column.codes == texts.index(text)) if text in texts else np.zeros(len(column.codes), bool)


def enumerating(columns: tuple[np.ndarray, ...], kind: str, window: int) -> Callable[[], int]:
    """All partial matches, one by one."""

    def run() -> int:
        room = 1 << 16
        while True:
            firsts, pairs = np.empty(room, np.int64), np.empty((room, 2), np.int64)
            found = int(_plain(*columns, window, kind == "equality", firsts, pairs, np.zeros(1, np.int64)))
            if found >= 0:
                return found
            room *= 4

    return run


def workloads() -> list[Workload]:
    """The workloads of this file; none if the trace is missing."""
    if not TRACE.exists():
        print(f"guards: skipped, {TRACE} is not there (set SPASEQ_DATA)")
        return []
    batches = preload()
    columns, events = _columns(batches), sum(map(len, batches))
    found = []
    for kind, conditions in CONDITIONS.items():
        for window in WINDOWS:
            name = f"{kind}, window {window:,}"
            text = query(conditions, window)
            found.append(Workload(name, "cost by live registers", events, counting(text, batches)))
            plain = enumerating(columns, kind, window)
            found.append(Workload(f"{name}, partial matches", "one by one, compiled", events, plain))
    return found
