"""The choice of an evaluator: changes lose and double nothing, costs order the evaluators as they should."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from spaseq.core.engine import (
    Around,
    Choice,
    Evaluator,
    MatchBatch,
    Settings,
    Window,
    compile_program,
    open_evaluator,
)
from spaseq.core.engine.choice import auto as choosing
from spaseq.core.engine.choice.auto import AutoEvaluator
from spaseq.core.engine.choice.reach import Reach
from spaseq.core.engine.choice.statistics import Statistics
from spaseq.core.engine.lazy import plan_of
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.core.pattern import And, Atom, Correlate, NoneOf, Pattern, Skip
from spaseq.core.pattern import Sequence as Then
from spaseq.core.snapshot import Kind
from tests.core.engine.test_against_oracle import as_list
from tests.support import oracle as o
from tests.support.engine_patterns import Rows, lower
from tests.support.snapshots import rewritten


@dataclass(frozen=True)
class Close:
    """Values of two variables that differ by at most `distance`."""

    variables: frozenset[str]
    distance: int = 1


@dataclass
class Values:
    """Memory of the values of events."""

    kept: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def nbytes(self) -> int:
        return int(self.kept.nbytes)

    def append(self, batch: Rows, rows: np.ndarray) -> None:
        self.kept = np.concatenate([self.kept, batch.values[rows]])

    def drop(self, count: int) -> None:
        self.kept = self.kept[count:]

    def keep(self, index: np.ndarray) -> None:
        self.kept = self.kept[index]

    def test(self, guard: Close, events: Mapping[str, np.ndarray]) -> np.ndarray:
        a, b = (self.kept[events[v]] for v in sorted(guard.variables))
        return np.abs(a - b) <= guard.distance

    def test_whole(self, guard: Hashable, events: Sequence[tuple[int, frozenset[str]]]) -> bool:
        raise AssertionError("no such guard")

    def snapshot(self) -> np.ndarray:
        return self.kept

    def restore(self, state: np.ndarray, count: int) -> None:
        self.kept = state


CLOSE = Kind(
    "close", (Close,), lambda g: " ".join([str(g.distance), *sorted(g.variables)]),
    lambda text: Close(frozenset(text.split()[1:]), int(text.split()[0])),
)  # fmt: skip


class CloseRegisters:
    """Registers and conditions; a row is what each guard's variables took: (guard, variable, value)."""

    empty: Hashable = frozenset()

    def load(self, batch: Rows) -> None:
        self.values = batch.values.tolist()

    def take(self, row: Any, guard: Close, variables: frozenset[str], event: int) -> Any:
        value = self.values[event]
        for other, name, taken in row:
            if other == guard and {name} | variables == guard.variables and abs(taken - value) > guard.distance:
                return None
        return row | {(guard, v, value) for v in variables & guard.variables}

    def leave(self, row: Any, guard: Close) -> Any:
        return frozenset(entry for entry in row if entry[0] != guard)

    def again(self, row: Any, action: Hashable) -> Any:
        return row

    def conditions(self) -> CloseRegisters:
        return self

    def kind(self, guard: Hashable) -> str:
        return "tuples"

    def kind_of_values(self, batch: Any) -> str:
        return "number"

    def memory(self) -> Values:
        return Values()


def close(left: str, right: str, child: Pattern) -> Pattern:
    both = frozenset((left, right))
    return Correlate(child, both, Close(both))


A, B, C = (Atom(lower(o.Type(name)).predicates, frozenset({name})) for name in "ABC")  # type: ignore[attr-defined]
SEQUENCE = close("A", "B", close("B", "C", Then(Then(A, B, Skip.ANY), C, Skip.ANY)))
CONJUNCTION = close("A", "B", close("B", "C", And(And(A, B), C)))


def drifting(rng: np.random.Generator, size: int, period: int) -> Rows:
    """Events whose rarest type is another after each `period`."""
    weights = np.array([0.02, 0.28, 0.7])
    types = [rng.choice(list("ABC"), period, p=np.roll(weights, i)) for i in range(size // period)]
    return Rows(np.concatenate(types), rng.integers(0, 12, size), np.arange(size), np.arange(size))


@pytest.mark.parametrize(
    ("pattern", "window"),
    [
        (SEQUENCE, Window("span", 40)),
        (CONJUNCTION, Window("events", 40)),
        (SEQUENCE, Window("tumbling", 60)),
        pytest.param(CONJUNCTION, Window("span", 40), marks=pytest.mark.slow),
        pytest.param(SEQUENCE, Window("events", 40), marks=pytest.mark.slow),
        pytest.param(CONJUNCTION, Window("tumbling", 60), marks=pytest.mark.slow),
    ],
)
def test_changes_lose_and_double_nothing(pattern: Pattern, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "FIRST", 32)
    monkeypatch.setattr(choosing, "EVERY", 250)
    monkeypatch.setattr(choosing, "GAIN", 1.0)
    monkeypatch.setattr(choosing, "PATIENCE", 1)
    rows = drifting(np.random.default_rng(3), 4000, 1000)
    registers = CloseRegisters()
    absent = NoneOf(frozenset({frozenset(A.predicates)})) if pattern is SEQUENCE and window.kind == "span" else None
    program = compile_program(
        pattern, window, registers=registers, settings=Settings(evaluator="auto"), around=Around(absent)
    )
    plain = Evaluator(program)
    expected = as_list(MatchBatch.concat([plain.push(rows), *plain.close()]))
    rng, seen = random.Random(5), set()
    evaluator = open_evaluator(program)
    found, at = [], 0
    while at < len(rows):
        size = rng.randrange(1, 200)
        found.append(evaluator.push(rows[at : at + size]))
        at += size
        assert isinstance(evaluator, AutoEvaluator)
        seen.add(evaluator.evaluator)
        if rng.random() < 0.03:
            evaluator = open_evaluator(program, rewritten(evaluator.snapshot(), CLOSE))
    assert as_list(MatchBatch.concat([*found, *evaluator.close()])) == expected
    assert evaluator.statistics["evaluator_changes"] >= 2 and len(expected) > 100


def test_the_choice_follows_the_rates() -> None:
    """Rare events make a chain worth it; without conditions on several events nothing is."""
    rng = np.random.default_rng(4)
    rows = Rows(rng.choice(list("ABC"), 20_000, p=[0.01, 0.49, 0.5]), rng.integers(0, 100, 20_000), np.arange(20_000),
                np.arange(20_000))  # fmt: skip
    window, settings = Window("span", 400), Settings(evaluator="auto")
    program = compile_program(SEQUENCE, window, registers=CloseRegisters(), settings=settings)
    evaluator = open_evaluator(program)
    evaluator.count(rows)
    assert isinstance(evaluator, AutoEvaluator) and evaluator.evaluator in ("chain", "tree")
    assert "estimated: compact" in evaluator.explain()
    plain = compile_program(Then(A, B, Skip.ANY), window, settings=settings)
    assert isinstance(open_evaluator(plain), Evaluator) and "nothing beats" in str(plain.lazy)
    assert "evaluator" in plain.explain()


def test_what_lazy_evaluators_refuse_is_an_error_only_where_they_are_asked_for() -> None:
    pattern = Then(A, B, Skip.NEXT)
    assert "skip-till-next" in str(compile_program(pattern, settings=Settings(evaluator="auto")).lazy)
    for name in ("chain", "tree"):
        with pytest.raises(UnsupportedFeature, match="skip-till-next"):
            compile_program(pattern, settings=Settings(evaluator=name))
    with pytest.raises(OptionError, match="no evaluator 'quick'"):
        compile_program(pattern, settings=Settings(evaluator="quick"))


def test_a_tree_takes_over_where_rates_change_at_once() -> None:
    """Before the batch with the new rates is evaluated; the matches stay what they are."""
    rows = drifting(np.random.default_rng(6), 3 * 16_384, 16_384)
    program = compile_program(SEQUENCE, Window("span", 300), registers=CloseRegisters(),
                              settings=Settings(evaluator="auto"))  # fmt: skip
    evaluator, plain = AutoEvaluator(program), open_evaluator(dataclasses.replace(program, lazy=None))
    in_charge = []
    for at in range(0, len(rows), 4096):
        part = rows[at : at + 4096]
        assert evaluator.count(part) == plain.count(part)
        in_charge.append(evaluator.evaluator)
    assert in_charge[0] == "chain" and "tree" in (in_charge[4], in_charge[8])
    assert evaluator._statistics.changes == 2


class Cut(Rows):
    """A batch that can be cut."""

    def part(self, start: int, stop: int) -> Rows:
        return self[start:stop]


def test_long_batches_are_looked_at_in_parts_and_read_again_as_far_as_windows_reach() -> None:
    rows = drifting(np.random.default_rng(7), 20_000, 20_000)
    long = Cut(rows.types, rows.values, rows.positions, rows.times)
    statistics = Statistics(plan_of(SEQUENCE, strict=False, choice=Choice(), registers=CloseRegisters()).branches,
                            CloseRegisters())  # fmt: skip
    statistics.observe(long, 41.0, sample=True)
    assert statistics.events == 20_000 and statistics.events_in_window == 41.0
    statistics.observe(long, 41.0, sample=False)
    assert 20_000 / 2 < statistics.events < 20_000 + 2 * 512
    assert abs(statistics.rate(0) - 0.02) < 0.01 and abs(statistics.rate(2) - 0.7) < 0.05
    reach = Reach(Window("span", 40))
    assert reach.is_whole and reach.in_window(long) == 41.0
    reach.append(long)
    (part,) = reach.open_batches()
    assert part.positions.tolist() == list(range(19_959, 20_000))
    restored = Reach(Window("span", 40))
    restored.restore(rewritten(reach.snapshot()))
    assert not restored.is_whole
    restored.append(rows[19_000:])  # as if it came behind
    assert not restored.is_whole


def test_the_window_of_a_reach_is_that_of_the_engine() -> None:
    rows = drifting(np.random.default_rng(8), 3000, 3000)
    for window, first in (
        (Window("none"), 0),
        (Window("span", 40), 2959),
        (Window("events", 40), 2959),
        (Window("tumbling", 64, 8), 2952),
    ):
        reach = Reach(window)
        for at in range(0, 3000, 500):
            reach.evict()
            reach.append(rows[at : at + 500])
        assert reach.is_whole
        assert min(b.positions[0] for b in reach.batches) <= first
        assert reach._still_open() == (first if window.kind != "none" else -(1 << 63))
