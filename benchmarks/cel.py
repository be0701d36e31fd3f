"""The queries of [CEL]'s Table 1 under its consumption policy (Table 2): one million events, types A to D uniform.

Claim: with all partial matches forgotten once an event completes one, an event costs the same for every pattern, nested
iteration included. Only the number of matches to write differs. [CEL] reports, on its machine and without the time to
write matches, 0.21 to 0.28 s for each of the six. It reports 0.88 to 177 s for SASE, if SASE can run them, and 1.84 s
to more than an hour for EsperTech. Seed of the stream: 42. Events preloaded, matches written, one thread.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.harness import Workload
from benchmarks.stock import enumerating
from spaseq.core.events import EventBatch, EventOptions, EventStream

SEED, EVENTS = 42, 1_000_000
TABLE_1 = {
    "Q1": ("A AS x ; B AS y ; C AS z", "CEL 0.27 s"),
    "Q2": ("A AS x ; B AS y ; C AS z ; D AS w", "CEL 0.28 s"),
    "Q3": ("((A AS x OR B AS y) OR C AS z) ; D AS w", "CEL 0.27 s"),
    "Q4": ("(A AS x)+ ; (B AS y)", "CEL 0.21 s"),
    "Q5": ("(A AS x)+ ; (B AS y)+ ; C AS z", "CEL 0.26 s"),
    "Q6": ("((A AS x)+ ; (B AS y))+ ; C AS z", "CEL 0.24 s"),
}


def preload() -> list[EventBatch]:
    """The stream in columns."""
    codes = np.random.default_rng(SEED).integers(0, 4, EVENTS).astype(np.int32)
    types = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list("ABCD")))
    table = pa.table({"type": types})
    return list(EventStream({"": table}, EventOptions(from_arrival=True)))


def workloads() -> list[Workload]:
    """The six queries."""
    batches = preload()
    return [
        Workload(f"{name}, consumed", "constant per event", EVENTS,
                 enumerating(f"SELECT * WHERE {formula} CONSUME BY ANY", batches), scale)
        for name, (formula, scale) in TABLE_1.items()
    ]  # fmt: skip
