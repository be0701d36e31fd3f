"""Functions in conditions, over a million events in columns, and the gap between two events.

Claim: a function that Arrow or numpy computes costs at most 50 ns an event. Of texts it is computed once for each
distinct one: `name` has 1,000, `many` a million. A gap, `b.time - a.time > 30 MINUTES`, costs what an order costs. The
columns are decoded before. One thread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import Workload
from ceql.expressions.vectorized import evaluate
from ceql.syntax import ast
from ceql.syntax.parse import parse
from spaseq.core.events import EventBatch, EventOptions, EventStream

EVENTS = 1_000_000
CONDITIONS = (
    "v > 3", "ABS(v) > 3", "ROUND(v, 1) > 3", "EXP(v) > 20", "COALESCE(v, 0) > 3",
    "CASE WHEN v > 3 THEN 1 ELSE 0 END = 1",
    "CAST(v AS INTEGER) = 3", "name = 'abc'", "LOWER(name) = 'abc'", "LOWER(many) = 'name7'", "CONTAINS(many, '99')",
    "REGEXP_EXTRACT(name, '[0-9]+') = '77'", "CONCAT(many, name) = 'x'", "HOUR(time) >= 22", "MONTH(time) = 12",
    "HOUR(time, 'Europe/Berlin') >= 22", "DATE_TRUNC('day', time, 'Europe/Berlin') = time",
    "time + 1 HOUR > '2023-11-20'",
)  # fmt: skip
PAIRS = ("b.time > a.time", "b.time - a.time > 30 MINUTES", "b.v > a.v", "LOWER(b.name) = LOWER(a.name)")


def _table() -> pa.Table:
    draw = np.random.default_rng(37)
    names = pa.array(["ABC"] + [f"Abc{i}" for i in range(999)])
    return pa.table({
        "type": pa.array(np.array(["A", "B"])[draw.integers(0, 2, EVENTS)]),
        "name": names.take(pa.array(draw.integers(0, 1000, EVENTS))),
        "many": pa.array([f"Name{i}" for i in range(EVENTS)]),
        "v": draw.normal(0, 2, EVENTS),
        "time": pa.array(np.arange(EVENTS) * 10**9 + 1_700_000_000 * 10**9, pa.timestamp("ns")),
    })  # fmt: skip


def _condition(text: str, batches: list[EventBatch]) -> Callable[[], int]:
    formula = parse(f"SELECT * WHERE A FILTER A[{text}]").where
    assert isinstance(formula, ast.Filter) and isinstance(formula.condition, ast.Holds)
    node = formula.condition.condition
    return lambda: sum(int(evaluate(node, batch).sum()) for batch in batches)


def _pair(text: str, table: pa.Table) -> Callable[[], int]:
    query = ceql.compile(f"SELECT * WHERE A AS a ; B AS b FILTER a[v > 6] AND b[v > 6] AND {text} WITHIN 2 HOURS")
    return lambda: query.run(table).count()


def workloads() -> list[Workload]:
    table = _table()
    batches = list(EventStream({"": table}, EventOptions()))
    claim = "50 ns an event at most"
    return [
        *(Workload(text, claim, EVENTS, _condition(text, batches), repeats=5) for text in CONDITIONS),
        *(Workload(text, "as an order", EVENTS, _pair(text, table), repeats=3) for text in PAIRS),
    ]
