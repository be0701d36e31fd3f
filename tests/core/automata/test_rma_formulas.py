"""Formulas of conditions: which can hold, against all truth values of their tests."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.core.automata.rma import formulas as f
from tests.support.sizes import some


@dataclass(frozen=True)
class _Named:
    """A relation of which at most one holds among those of a group."""

    name: str
    excludes: str | None

    def __call__(self, *events: Any, **_: Any) -> bool:
        raise AssertionError("no event is looked at")

    def show(self, *names: str) -> str:
        return f"{self.name}({', '.join(names)})"

    def reads(self, place: int) -> tuple[str, ...] | None:
        return None


_TESTS = [f.Test(_Named(name, group), (of,)) for name, group, of in
          [("a", None, "x"), ("b", None, "x"), ("c", "", "x"), ("d", "", "x"), ("d", "", "y"), ("e", "g", "x"),
           ("h", "g", "x")]]  # fmt: skip


def _drawn(rng: random.Random, depth: int) -> f.Formula:
    kind = rng.randrange(4) if depth else 0
    if kind == 0:
        return rng.choice(_TESTS)
    if kind == 1:
        return f.negation(_drawn(rng, depth - 1))
    join = f.conjunction if kind == 2 else f.disjunction
    return join(*(_drawn(rng, depth - 1) for _ in range(rng.randrange(4))))


def _allowed(truth: dict[f.Test, bool]) -> bool:
    held = [(t.relation.excludes, t.arguments) for t, true in truth.items() if true and t.relation.excludes is not None]
    return len(set(held)) == len(held)


@settings(max_examples=some(300))
@given(st.integers(0, 2**32))
def test_a_formula_is_satisfiable_where_some_truth_values_make_it_hold(seed: int) -> None:
    formula = _drawn(random.Random(seed), 4)
    worlds: list[dict[Any, bool]] = [dict(zip(_TESTS, each, strict=True))
                                     for each in itertools.product((False, True), repeat=len(_TESTS))]  # fmt: skip
    expected = any(f.holds(formula, world.__getitem__) for world in worlds if _allowed(world))
    assert f.satisfiable(formula) == expected


def test_many_tests_that_are_each_wanted_in_one_way_need_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formula of runs that wait with different events is rewritten once or twice, not for each of its tests: a small
    query's forecast took a minute to say that it needs too many registers."""
    one, other = ([f.Test(_Named(f"{name}{i}", None), ("x",)) for i in range(60)]
                  for name in "pq")  # fmt: skip
    either = [f.disjunction(a, b) for a, b in zip(one, other, strict=True)]
    neighbours = f.negation(f.disjunction(*(f.conjunction(a, b) for a, b in itertools.pairwise(one))))
    rewritten = []
    restricted = f.restrict

    def counted(*given: Any) -> f.Formula:
        rewritten.append(given)
        return restricted(*given)

    monkeypatch.setattr(f, "restrict", counted)
    assert f.satisfiable(f.conjunction(*either, neighbours))
    assert not f.satisfiable(f.conjunction(*either, neighbours, one[3], one[4]))
    assert len(rewritten) <= 6
