"""The experiments of [CEL]: the stress test (Figure 4), selection strategies (Figure 5), and Table 2 as the paper
counts it.

* Figure 4: Q1 and Q2 over 200 to 2,000 uniform events, the last of which completes all matches at once. *Processing*
  reads all events and gives one match; *writing* gives all, about 20 million for Q2 on 2,000 events, processing
  included. Memory is the bytes held before the last event.
* Table 2 counts processing, not the writing of matches. Every event updates the structure, and every completing event
  gives one match (LIMIT 1); then all is forgotten. `benchmarks/cel.py` writes all of them.
* Figure 5: throughput under LAST and MAX, as the paper has it, NEXT and ALL, Q1 to Q6, without a window. A strategy has
  at most one match for an end in the paper; here MAX and ALL have LIMIT 1 for that. Streams are S1 (uniform over A to
  D) and S2 (A to E by 4 : 3 : 2 : 1 : 2, which the paper gives as tenths that sum to twelve). The paper's streams run
  for a minute; these are 200,000 events. Under MAX for Q5 and Q6 they are 20,000: a match of these has a quarter or
  more of all events so far, and is walked to be counted.

Claims: the work before the last event does not depend on the matches it will complete, and enumeration is linear in
them. Selection costs no more than ALL, but for the length of the matches of MAX. Events preloaded; seeds 42 and 43; one
thread. `SPASEQ_CEL=2` doubles the streams of Figure 5. `python -m benchmarks.figures cel` measures processor time of
both figures, `python -m benchmarks cel_figures` elapsed time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.cel import EVENTS, TABLE_1
from benchmarks.cel import preload as uniform
from benchmarks.figures import Figure, Point
from benchmarks.harness import Workload
from benchmarks.stock import counting, enumerating
from ceql.runtime.run import Run
from spaseq.core.events import EventBatch, EventOptions, EventStream

_LENGTHS = (200, 400, 800, 1200, 1600, 2000)
_STRATEGIES = ("LAST", "MAX", "NEXT", "ALL")
_SELECTED = round(200_000 * float(os.environ.get("SPASEQ_CEL", "1")))
"""Events of Figure 5."""
_DEAR = {("Q5", "MAX"), ("Q6", "MAX")}
"""These have a tenth of the events."""


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


def bytes_before_last(text: str, batches: list[EventBatch]) -> Callable[[], int]:
    """The bytes that an evaluation holds before the last event, without the preloaded stream."""
    query = ceql.compile(text)

    def run() -> int:
        evaluation = Run(query.compiled.lowered, query.program())
        (batch,) = batches
        for _ in evaluation.advance(batch.part(0, len(batch) - 1)):
            pass
        return evaluation.held(ignored=batches).total

    return run


def figures() -> list[Figure]:
    """Figures 4 and 5."""
    return [
        Figure("cel 4", "linear in the events; writing linear in the matches", list(_figure_4())),
        Figure("cel 5", "as others", list(_figure_5())),
    ]


def _figure_4() -> Iterator[Point]:
    for name, last in (("Q1", 2), ("Q2", 3)):
        formula = TABLE_1[name][0]
        streams = [stress(length, last) for length in _LENGTHS]
        for length, batches in zip(_LENGTHS, streams, strict=True):
            text = f"SELECT * WHERE {formula}"
            one = counting(f"{text} LIMIT 1", batches)
            yield Point(f"{name}, processing", "spaseq", str(length), length, one, bytes_before_last(text, batches))
        for length, batches in zip(_LENGTHS, streams, strict=True):
            yield Point(f"{name}, writing", "spaseq", str(length), length, enumerating(text, batches))


def _figure_5() -> Iterator[Point]:
    weights = np.array([4, 3, 2, 1, 2]) / 12
    rng = np.random.default_rng(43)
    letters = {"S1": rng.integers(0, 4, _SELECTED), "S2": rng.choice(5, _SELECTED, p=weights)}
    for stream, chosen in letters.items():
        whole, beginning = stream_of(chosen), stream_of(chosen[: _SELECTED // 10])
        for strategy in _STRATEGIES:
            for name, (formula, _) in TABLE_1.items():
                batches = beginning if (name, strategy) in _DEAR else whole
                text = f"SELECT {strategy} * WHERE {formula} LIMIT 1"
                yield Point(stream, strategy, name, sum(map(len, batches)), counting(text, batches))


def workloads() -> list[Workload]:
    """The points of both figures, and Table 2."""
    one = uniform()
    table_2 = [
        Workload(f"table2 {name}", "0.05 s or less", EVENTS,
                 counting(f"SELECT * WHERE {formula} CONSUME BY ANY LIMIT 1", one), scale)
        for name, (formula, scale) in TABLE_1.items()
    ]  # fmt: skip
    return [*(workload for figure in figures() for workload in figure.workloads()), *table_2]
