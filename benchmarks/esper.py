"""Esper on the stock trace, beside this engine in the same run: sequences with all of their matches, and an order
of prices.

Claim: here an event costs the same within any window, with the order about a logarithm of it; Esper asks each run.

Optional: `make bench-peers` fetches Esper with Maven and compiles the driver (`benchmarks/peers/`); without it the
suite says so and is skipped. Both have the trace in memory, one thread, and count matches: Esper's listener gets them
as objects, here they are written to arrays. The numbers of matches must agree.

Esper's pattern keeps the runs of `every`; its window is a timer on the trace's own time, one millisecond longer, as it
does not include its end.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import Measurement, Workload
from benchmarks.stock import NAMES, TRACE, enumerating, preload, sequence

PEERS = Path(__file__).parent / "peers"
CLASSES = PEERS / "target"
_RUNS = 3
_SECONDS = (1, 10, 100)


def statement(length: int, window: int = 10_000) -> str:
    """S<length> in EPL."""
    steps = [f"every e{i}={'Sell' if i % 3 == 0 else 'Buy'}(name='{NAMES[i]}')" for i in range(length)]
    first, rest = steps[0], " -> ".join(steps[1:])
    return f"select * from pattern [{first} -> (({rest}) where timer:within({window + 1} milliseconds))]"


def rise(window: int) -> tuple[str, str]:
    """A bought share and a higher price of it later, then a trade that never occurs: in CEQL and in EPL."""
    ours = (
        "SELECT * FROM S WHERE BUY AS a; SELL AS b; BUY AS c FILTER a[name = 'MSFT'] AND b[name = 'MSFT'] AND "
        f"b.price > a.price AND c[name = 'NotExists'] WITHIN {window} [stock_time]"
    )
    theirs = (
        "select * from pattern [every a=Buy(name='MSFT') -> ((every b=Sell(name='MSFT' and price > a.price) -> "
        f"every c=Buy(name='NotExists')) where timer:within({window + 1} milliseconds))]"
    )
    return ours, theirs


@functools.cache
def esper(text: str) -> Measurement:
    """Esper's runs of a statement, the first left out."""
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java"
    path = os.pathsep.join([str(CLASSES), (CLASSES / "classpath").read_text().strip()])
    done = subprocess.run(
        [java, "-Xmx4g", "-cp", path, "EsperTrades", str(TRACE), text, str(_RUNS + 1)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    runs = [(float(seconds), int(matches)) for seconds, matches in map(str.split, done.stdout.splitlines())]
    workload = Workload(text, "for scale", 0, lambda: runs[0][1])
    return Measurement(workload, runs[0][1], tuple(seconds for seconds, _ in runs[1:]))


def agreeing(theirs: Measurement, run: Callable[[], int]) -> Callable[[], int]:
    """`run`, whose matches must be as many as Esper's."""

    def check_matches() -> int:
        if (found := run()) != theirs.matches:
            raise AssertionError(f"{theirs.workload.name}: {found} matches here, {theirs.matches} by Esper")
        return found

    return check_matches


def workloads() -> list[Workload]:
    """Each statement by both; none if Esper or the trace is missing."""
    missing = "the trace (set SPASEQ_DATA)" if not TRACE.exists() else "Java" if not shutil.which("java") else ""
    if not missing and not (CLASSES / "EsperTrades.class").exists():
        missing = "Esper (make bench-peers fetches it)"
    if missing:
        print(f"esper: skipped, not installed: {missing}")
        return []
    batches = preload()
    events = sum(map(len, batches))
    cases = [("S3, beside Esper", "every match written", sequence(3), statement(3))]
    cases += [
        (f"order within {seconds} s, beside Esper", "update only", *rise(seconds * 1_000)) for seconds in _SECONDS
    ]
    found = []
    for name, claim, ours, theirs in cases:
        measured = esper(theirs)
        scale = f"Esper {events / measured.median / 1e6:.3f} M events/s ±{measured.spread:.0%}"
        run = agreeing(measured, enumerating(ours, batches))
        found.append(Workload(name, claim, events, run, scale))
    return found
