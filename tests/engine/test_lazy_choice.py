"""The choice of an evaluator: changes lose and double nothing, costs order the evaluators as they should."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import oracle as o
import pytest
from engine.patterns import Rows, lower
from engine.test_against_oracle import as_list

from spaseq.engine import Evaluator, MatchBatch, Settings, Window, compile_program, open_evaluator, restore_evaluator
from spaseq.engine.lazy import auto as choosing
from spaseq.engine.lazy.auto import AutoEvaluator
from spaseq.errors import OptionError, UnsupportedFeature
from spaseq.pattern import And, Atom, Correlate, NoneOf, Pattern, Skip
from spaseq.pattern import Sequence as Then


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


@pytest.mark.parametrize("pattern", [SEQUENCE, CONJUNCTION])
@pytest.mark.parametrize("window", [Window("span", 40), Window("events", 40), Window("tumbling", 60)])
def test_changes_lose_and_double_nothing(pattern: Pattern, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "FIRST", 32)
    monkeypatch.setattr(choosing, "EVERY", 250)
    monkeypatch.setattr(choosing, "GAIN", 1.0)
    monkeypatch.setattr(choosing, "PATIENCE", 1)
    rows = drifting(np.random.default_rng(3), 4000, 1000)
    registers = CloseRegisters()
    absent = NoneOf(frozenset({frozenset(A.predicates)})) if pattern is SEQUENCE and window.kind == "span" else None
    program = compile_program(pattern, window, registers=registers, settings=Settings(evaluator="auto"), absent=absent)
    plain = Evaluator(program)
    expected = as_list(MatchBatch.concat([plain.push(rows), plain.close()]))
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
            evaluator = restore_evaluator(program, evaluator.snapshot())
    assert as_list(MatchBatch.concat([*found, evaluator.close()])) == expected
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
