"""[CEL]'s stress test and selection strategies (Figures 4 and 5), and Table 2 as the paper counts it.

* Figure 4: Q1 and Q2 over 200 to 2,000 uniform events, the last of which completes all matches at once. `update` reads
  all events and gives one match; `enumerated` writes all, about 20 million for Q2 on 2,000 events.
* Table 2 counts processing, not the writing of matches. Every event updates the structure, and every completing event
  gives one match (LIMIT 1); then all is forgotten. `benchmarks/cel.py` writes all of them.
* Figure 5: throughput under NEXT, LAST and MAX, Q1 to Q6, within the last 100 events. Streams are S1 (uniform over A to
  D) and S2 (A to E by 4 : 3 : 2 : 1 : 2, which the paper gives as tenths that sum to twelve). The paper's streams run
  for a minute without a window; the time of an event then depends on the age of the stream.

Claims: the work before the last event does not depend on the matches it will complete; enumeration is linear in them;
selection costs no more than ALL. Events preloaded; seeds 42 and 43; one thread.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.cel import EVENTS, TABLE_1
from benchmarks.cel import preload as uniform
from benchmarks.harness import Workload
from benchmarks.stock import counting, enumerating
from spaseq.core.events import EventBatch, EventOptions, EventStream

_STRATEGIES = ("NEXT", "LAST", "MAX")
_SELECTED = 20_000  # events of Figure 5
_MAX = 1_000  # of them under MAX, which takes milliseconds an event


def stream_of(letters: np.ndarray) -> list[EventBatch]:
    """Events of the types A, B, … by number, in columns."""
    types = pa.DictionaryArray.from_arrays(pa.array(letters.astype(np.int32)), pa.array(list("ABCDE")))
    return list(EventStream({"": pa.table({"type": types})}, EventOptions(from_arrival=True)))


def stress(length: int, last: int) -> list[EventBatch]:
    """Before the last event, which is of type number `last`, uniform: the types below `last`, and E, which is idle."""
    letters = np.random.default_rng(42).integers(0, last + 1, length)
    letters[letters == last] = 4
    letters[-1] = last
    return stream_of(letters)


def workloads() -> list[Workload]:
    """Figure 4, Table 2, Figure 5."""
    found = []
    for name, last in (("Q1", 2), ("Q2", 3)):
        formula = TABLE_1[name][0]
        for length in (200, 400, 800, 1200, 1600, 2000):
            batches = stress(length, last)
            label = f"fig4 {name} {length}"
            update = counting(f"SELECT * WHERE {formula} LIMIT 1", batches)
            found.append(Workload(f"{label} update", "linear in the events", length, update))
            written = enumerating(f"SELECT * WHERE {formula}", batches)
            found.append(Workload(f"{label} enumerated", "linear in the matches", length, written))
    one = uniform()
    for name, (formula, scale) in TABLE_1.items():
        text = f"SELECT * WHERE {formula} CONSUME BY ANY LIMIT 1"
        found.append(Workload(f"table2 {name}", "0.05 s or less", EVENTS, counting(text, one), scale))
    weights = np.array([4, 3, 2, 1, 2]) / 12
    rng = np.random.default_rng(43)
    letters = {"S1": rng.integers(0, 4, _SELECTED), "S2": rng.choice(5, _SELECTED, p=weights)}
    for stream, chosen in letters.items():
        whole, beginning = stream_of(chosen), stream_of(chosen[:_MAX])
        for name, (formula, _) in TABLE_1.items():
            for strategy in _STRATEGIES:
                batches, count = (beginning, _MAX) if strategy == "MAX" else (whole, _SELECTED)
                run = counting(f"SELECT {strategy} * WHERE {formula} WITHIN 100 EVENTS", batches)
                found.append(Workload(f"fig5 {stream} {name} {strategy}", "as others", count, run, repeats=3))
    return found
