"""[Lazy]'s experiments (§8): sequences, conjunctions, negation, iteration and disjunction of correlated stocks.

Claim: taking the rare events first makes 5 to 100 times fewer instances and evaluates 10 to 200 times fewer predicates
than taking events as they come. The factor grows with the difference of the rates (§8.1, §8.2). If rates change, a tree
does as well as the chain that is right at the time (§8.3). `auto` is near the best of them. Stream, condition and the
eager automaton: `benchmarks/lazy/stream.py`. Sizes are a part of the paper's (its year has 80 million events, its
windows 5 to 30 minutes): SPASEQ_LAZY=2 doubles the windows and the stream.

`python -m benchmarks lazy` measures throughput; `benchmarks/lazy/counts.py` counts.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Workload
from benchmarks.lazy.stream import REGIONS, Correlations, Eager, Prices, correlated, event, stream
from spaseq.core.engine import Choice, Evaluator, Program, Settings, Window, compile_program
from spaseq.core.engine.choice.auto import AutoEvaluator
from spaseq.core.engine.lazy import LazyEvaluator, plan_of
from spaseq.core.pattern import And, Atom, Correlate, Iterate, Or, Pattern, Sequence, Skip

SCALE = float(os.environ.get("SPASEQ_LAZY", "1"))
THRESHOLD = 0.95
MINUTES = round(45 * SCALE)
WINDOWS = 5.0 * SCALE, 10.0 * SCALE
WAYS = ("eager", "chain", "tree", "compact", "auto")
PARTS = {"eager": 10, "compact": 50}
BATCH = 4096


def sequence(regions: str, prefix: str = "") -> tuple[Pattern, list[str]]:
    """`SEQ(…)` of regions, and its variables."""
    names = [f"{prefix}{i}" for i, _ in enumerate(regions.split())]
    atoms: list[Pattern] = [event(r, v) for r, v in zip(regions.split(), names, strict=True)]
    return functools.reduce(lambda a, b: Sequence(a, b, Skip.ANY), atoms[1:], atoms[0]), names


def seq(regions: str, prefix: str = "") -> Pattern:
    """A sequence, each pair of its events correlated."""
    return correlated(*sequence(regions, prefix), THRESHOLD)


def conj(regions: str) -> Pattern:
    """A conjunction, each pair correlated."""
    atoms: list[Pattern] = [event(r, f"{i}") for i, r in enumerate(regions.split())]
    return correlated(functools.reduce(And, atoms[1:], atoms[0]), [f"{i}" for i in range(len(atoms))], THRESHOLD)


def negated(regions: str) -> Pattern:
    """`SEQ(a, NOT b, c, …)`: no b between a and c that is correlated with a."""
    first, second, *rest = regions.split()
    pattern = _without(event(first, "0"), event(second, "n"), event(rest[0], "1"))
    names = ["0", "1"]
    for i, region in enumerate(rest[1:], 2):
        names.append(f"{i}")
        pattern = Sequence(pattern, event(region, f"{i}"), Skip.ANY)
    return correlated(pattern, names, THRESHOLD)


def conj_without(regions: str) -> Pattern:
    """`AND(a, NOT b, c)`: a and c in either order, and between them no b that is correlated with the earlier one.

    It is written as an OR of both orders, because the lazy evaluators take no NOT inside AND. CEQL's `AND(A, NOT B, C)`
    also forbids a b before and behind the two, inside the window, but without conditions on a or c.
    """
    first, second, third = regions.split()
    orders: list[Pattern] = []
    for prefix, earlier, later in (("ac", first, third), ("ca", third, first)):
        names = [f"{prefix}{i}" for i in range(2)]
        a, b, c = event(earlier, names[0]), event(second, f"{prefix}n"), event(later, names[1])
        orders.append(correlated(_without(a, b, c), names, THRESHOLD))
    return Or(*orders)


def _without(a: Atom, b: Atom, c: Atom) -> Pattern:
    """`a ; NOT b ; c`: no b between the two that is correlated with a."""
    (of_a,), (of_b,) = a.variables, b.variables
    guard = correlated(a, [of_a, of_b], THRESHOLD)
    assert isinstance(guard, Correlate)
    absent = Atom(b.predicates, b.variables, guard.guard)
    return Correlate(Sequence(a, c, Skip.ANY, (absent,)), guard.variables, guard.guard)


def iterated(regions: str) -> Pattern:
    """`SEQ(a, b+, c)`, every b correlated with a and with c."""
    a, b, c = (event(r, str(i)) for i, r in enumerate(regions.split()))
    return correlated(Sequence(Sequence(a, Iterate(b, Skip.ANY), Skip.ANY), c, Skip.ANY), ["0", "1", "2"], THRESHOLD)


def either(*parts: str) -> Pattern:
    """An OR of sequences."""
    return functools.reduce(Or, (seq(part, f"{i}_") for i, part in enumerate(parts)))


@dataclass(frozen=True, slots=True)
class Experiment:
    """A pattern over a window in minutes."""

    name: str
    pattern: Pattern
    minutes: float
    first_chance: bool = True

    def program(self, way: str) -> Program:
        """Compiled for one of `WAYS`."""
        return compile_program(self.pattern, Window("span", self.minutes * 60), registers=Correlations(),
                               settings=Settings(evaluator="auto" if way == "auto" else "compact"))  # fmt: skip

    def open(self, way: str, trace: bool = False) -> Evaluator | LazyEvaluator | AutoEvaluator:
        """An evaluation by one of `WAYS`, or by `chain 120`, the chain of that order."""
        program = self.program(way)
        if way == "compact":
            return Evaluator(program)
        if way == "auto":
            return AutoEvaluator(program)
        plan = plan_of(self.pattern, strict=False, choice=Choice(), registers=program.registers)
        kind = Eager if way == "eager" else LazyEvaluator
        leaves = [leaf.number for leaf in plan.branches[0].leaves]
        order = tuple(leaves[int(digit)] for digit in way.removeprefix("chain ") if digit.isdecimal())
        return kind(program, plan, tree=way == "tree", trace=trace, first_chance=self.first_chance,
                    orders=(order,) if order else None)  # fmt: skip


def experiments(window: float) -> list[Experiment]:
    """The patterns of §8, the rare region last, second or first; `window` in minutes."""
    return [
        Experiment("SEQ3", seq("EU AS AF"), window),
        Experiment("SEQ4", seq("EU AS SA AF"), window),
        Experiment("SEQ5", seq("EU AS SA ME AF"), window),
        Experiment("AND2", conj("EU AF"), window),
        Experiment("AND3", conj("AS SA AF"), window),
        Experiment("NSEQ3", negated("EU AS AF"), window),
        Experiment("NAND3", conj_without("EU AS AF"), window),
        Experiment("NSEQ5 first chance", negated("SA EU AF AS ME"), window),
        Experiment("NSEQ5 post", negated("SA EU AF AS ME"), window, False),
        Experiment("ITER3", iterated("SA ME AF"), window / 4),
        Experiment("OR2SEQ2", either("EU AF", "AS OC"), window),
        Experiment("OR4SEQ2", either("EU AF", "AS OC", "SA AF", "ME OC"), window),
        Experiment("OR2SEQ4", either("EU AS SA AF", "AS SA ME OC"), window),
    ]


def ratios(window: float) -> list[Experiment]:
    """SEQ3 with rates further and further apart (§8.2)."""
    found = []
    for regions in ("EU SA ME", "EU ME OC", "EU AS AF", "EU AS CA", "NA AS CA"):
        sizes = [REGIONS[r] for r in regions.split()]
        found.append(Experiment(f"SEQ3 1:{round(max(sizes) / min(sizes))}", seq(regions), window))
    return found


def batches(prices: Prices) -> Iterator[Prices]:
    """A stream in batches."""
    for at in range(0, len(prices), BATCH):
        yield prices[at : at + BATCH]


def drifting(minutes: int) -> tuple[list[Experiment], Prices]:
    """SEQ3; the rarest event is another one after each third of the stream (§8.3)."""
    rates = [dict(zip(("EU", "AS", "SA"), np.roll([2.0, 60.0, 200.0], i).tolist(), strict=True)) for i in range(3)]
    parts = [stream(minutes // 3, r) for r in rates]
    regions, histories = (np.concatenate([getattr(p, n) for p in parts]) for n in ("regions", "histories"))
    times = np.concatenate([p.times + i * 60 * (minutes // 3) for i, p in enumerate(parts)])
    return [Experiment("SEQ3 drifting", seq("EU AS SA"), WINDOWS[1])], Prices(
        regions, histories, np.arange(len(times)), times
    )


def running(experiment: Experiment, way: str, prices: Prices) -> Callable[[], int]:
    """Every match counted."""

    def run() -> int:
        evaluator = experiment.open(way)
        return sum(evaluator.count(batch) for batch in batches(prices))

    return run


def workloads() -> list[Workload]:
    """Throughput of each way on each pattern; eager and compact, slow here, on the beginning of the stream."""
    plain, (drift, moving) = stream(3 * MINUTES), drifting(9 * MINUTES)
    found = []
    for claim, some, prices in (
        ("§8.1", experiments(WINDOWS[0]), plain),
        ("§8.2", ratios(WINDOWS[0]), plain),
        ("§8.3", drift, moving),
    ):
        for e in some:
            for way in WAYS:
                part = prices[: len(prices) // PARTS.get(way, 1)]
                found.append(Workload(f"{e.name} {way}", claim, len(part), running(e, way, part), repeats=3))
    return found
