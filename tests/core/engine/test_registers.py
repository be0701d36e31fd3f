"""Guards over several events, on the smallest front end there is: events are integers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pytest

from spaseq.core.engine import Evaluator, MatchBatch, Settings, Window, compile_program
from spaseq.core.errors import BudgetExceeded
from spaseq.core.pattern import Atom, Correlate, Iterate, Pattern, Sequence, Skip
from tests.support.snapshots import rewritten


@dataclass
class Numbers:
    values: np.ndarray
    positions: np.ndarray
    keys: np.ndarray | None = None

    @property
    def times(self) -> np.ndarray:
        return self.positions

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class AtLeast:
    bound: int

    def evaluate(self, batch: Numbers) -> np.ndarray:
        return batch.values >= self.bound


class Rising:
    """Registers whose row is the last value taken, -1 for none; "rising" lets greater ones pass, "falling" smaller."""

    empty: Hashable = -1

    def load(self, batch: Numbers) -> None:
        self.values = batch.values.tolist()

    def take(self, row: int, guard: str, variables: frozenset[str], event: int) -> int | None:
        value = self.values[event]
        return value if (value < row if guard == "falling" else value > row) else None

    def leave(self, row: int, guard: str) -> int:
        return -1

    def again(self, row: int, action: str) -> int:
        return -1


def rising(variable: str) -> Atom:
    return Atom(frozenset({AtLeast(0)}), frozenset({variable}), "rising")


def found(batch: MatchBatch) -> set[tuple[int, ...]]:
    bounds = zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
    listed = [tuple(batch.positions[a:b].tolist()) for a, b in bounds]
    assert len(listed) == len(set(listed)), "a match was found twice"
    return set(listed)


def three(skip: Skip) -> Pattern:
    return Sequence(Sequence(rising("x"), rising("y"), skip), rising("z"), skip)


def run(pattern: Pattern, values: list[int], window: Window, cuts: random.Random | None = None) -> set[tuple[int, ...]]:
    evaluator = Evaluator(compile_program(pattern, window, registers=Rising()))
    parts, at = [], 0
    while at < len(values):
        size = cuts.randrange(1, 4) if cuts else len(values)
        chunk = np.array(values[at : at + size])
        parts.append(evaluator.push(Numbers(chunk, np.arange(at, at + len(chunk)))))
        at += size
    return found(MatchBatch.concat(parts)) if parts else set()


def test_skip_till_any_finds_every_rising_triple_in_the_window() -> None:
    rng = random.Random(3)
    for _ in range(50):
        values = [rng.randrange(6) for _ in range(12)]
        size = rng.randrange(2, 12)
        expected = {
            (i, j, k)
            for i, j, k in itertools.combinations(range(12), 3)
            if values[i] < values[j] < values[k] and k - i <= size
        }
        assert run(three(Skip.ANY), values, Window("span", size), rng) == expected


def test_skip_till_next_takes_the_first_event_it_can() -> None:
    rng = random.Random(4)
    for _ in range(50):
        values = [rng.randrange(6) for _ in range(12)]
        expected = set()
        for i in range(12):
            j = next((j for j in range(i + 1, 12) if values[j] > values[i]), None)
            k = None if j is None else next((k for k in range(j + 1, 12) if values[k] > values[j]), None)
            if k is not None:
                expected.add((i, j, k))
        assert run(three(Skip.NEXT), values, Window("none"), rng) == expected


def test_what_must_be_absent_ends_the_wait_for_the_next_event() -> None:
    """x ; NOT 5 ; y, skipping till the next: a 5 that is not a greater y itself ends the run."""
    five = Atom(frozenset({AtLeast(5)}), frozenset({"n"}))
    pattern = Sequence(rising("x"), rising("y"), Skip.NEXT, (five,))
    assert run(pattern, [6, 5, 7], Window("none")) == {(1, 2)}
    assert run(pattern, [6, 1, 7], Window("none")) == {(0, 2), (1, 2)}
    falling = Atom(frozenset({AtLeast(0)}), frozenset({"n"}), "falling")
    pattern = Sequence(rising("x"), rising("y"), Skip.NEXT, (falling,))
    assert run(pattern, [6, 6, 7, 8, 3, 9], Window("none")) == {(0, 2), (1, 2), (2, 3), (4, 5)}


def test_an_iteration_compares_neighbours() -> None:
    values = [3, 1, 2, 5, 4, 6]
    runs = {tuple(range(i, j)) for i in range(6) for j in range(i + 1, 7) if values[i:j] == sorted(set(values[i:j]))}
    assert run(Iterate(rising("x"), Skip.NONE), values, Window("none")) == runs


def test_runs_that_agree_on_their_registers_are_one() -> None:
    """Registers are forgotten where a condition's scope ends: the live runs do not grow with the partial matches."""
    first = Atom(frozenset({AtLeast(0)}), frozenset({"x"}))
    second = Atom(frozenset({AtLeast(0)}), frozenset({"y"}))
    pair = Correlate(Sequence(first, second, Skip.ANY), frozenset({"x", "y"}), "rising")
    never = Atom(frozenset({AtLeast(1000)}), frozenset({"z"}))
    evaluator = Evaluator(compile_program(Sequence(pair, never, Skip.ANY), registers=Rising()))
    values = np.arange(200) % 10
    evaluator.push(Numbers(values, np.arange(200)))
    assert evaluator.statistics["live_runs"] == 11  # one for each value of x, and one for all pairs


def test_too_many_live_runs_name_the_setting() -> None:
    program = compile_program(three(Skip.ANY), registers=Rising(), settings=Settings(live_runs=64))
    with pytest.raises(BudgetExceeded, match="live_runs is 64 runs"):
        Evaluator(program).push(Numbers(np.arange(1000), np.arange(1000)))


def test_live_runs_are_one_windows_worth_also_over_partitions() -> None:
    size = 3000
    keys = np.arange(size) // 3  # partitions come and go
    evaluator = Evaluator(compile_program(three(Skip.ANY), Window("span", 20), registers=Rising()))
    evaluator.push(Numbers(np.arange(size) % 7, np.arange(size), keys))
    assert evaluator.statistics["live_runs"] < 700


def test_a_snapshot_holds_the_registers() -> None:
    values = [1, 5, 2, 7, 3, 9]
    program = compile_program(three(Skip.ANY), registers=Rising())
    first = Evaluator(program)
    seen = found(first.push(Numbers(np.array(values[:3]), np.arange(3))))
    second = Evaluator.restore(program, rewritten(first.snapshot()))
    seen |= found(second.push(Numbers(np.array(values[3:]), np.arange(3, 6))))
    assert seen == run(three(Skip.ANY), values, Window("none"))


class Apart:
    """Registers whose row is the value of x, -1 for none; the guard "same" is about n having it too."""

    empty: Hashable = -1

    def load(self, batch: Numbers) -> None:
        self.values = batch.values.tolist()

    def take(self, row: int, guard: str, variables: frozenset[str], event: int) -> int | None:
        value = self.values[event]
        if "x" in variables:
            return value
        return row if value == row else None

    def leave(self, row: int, guard: str) -> int:
        return -1

    def again(self, row: int, action: str) -> int:
        return row


def test_what_must_be_absent_is_asked_with_the_registers_of_the_run() -> None:
    """x, no n of the value of x, then z: also where nothing else would touch an n, and the guard stays outside."""
    x = Atom(frozenset({AtLeast(10)}), frozenset({"x"}))
    n = Atom(frozenset({AtLeast(10)}), frozenset({"n"}), "same")
    z = Atom(frozenset({AtLeast(100)}), frozenset({"z"}))
    pattern = Correlate(Sequence(x, z, Skip.ANY, (n,)), frozenset({"x", "n"}), "same")
    rng = random.Random(5)
    for _ in range(50):
        values = [rng.choice((10, 11, 100)) for _ in range(10)]
        expected = {
            (i, k)
            for i, k in itertools.combinations(range(10), 2)
            if values[k] == 100 and values[i] not in values[i + 1 : k]
        }
        evaluator = Evaluator(compile_program(pattern, registers=Apart()))
        assert found(evaluator.push(Numbers(np.array(values), np.arange(10)))) == expected


def test_too_many_conditions_under_one_negation_are_refused_by_name() -> None:
    absent = tuple(Atom(frozenset({AtLeast(i)}), frozenset({"n"}), "falling") for i in range(9))
    with pytest.raises(BudgetExceeded, match="negated_conditions is 8 alternatives under one negation and 9"):
        compile_program(Sequence(rising("x"), rising("y"), Skip.ANY, absent), registers=Rising())
