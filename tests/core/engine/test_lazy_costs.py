"""The cost model: selectivities of conditions together, orders followed through a sample, partitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from spaseq.core.engine import Choice, Program, Settings, Window, compile_program
from spaseq.core.engine.choice import auto as choosing
from spaseq.core.engine.choice.auto import AutoEvaluator
from spaseq.core.engine.choice.cost import Costs, estimate
from spaseq.core.engine.choice.reach import KEYS, Reach
from spaseq.core.engine.choice.samples import Join, Pool
from spaseq.core.engine.choice.shape import SUBSETS, Shape
from spaseq.core.engine.choice.statistics import Statistics
from spaseq.core.engine.lazy import LazyEvaluator, plan_of
from spaseq.core.engine.program.lazy_plan import LazyPlan
from spaseq.core.pattern import Atom, Pattern, Skip
from spaseq.core.pattern import Sequence as Then
from tests.core.engine.test_lazy_choice import CONJUNCTION, SEQUENCE, CloseRegisters, close
from tests.support import oracle as o
from tests.support.engine_patterns import Rows, lower

TRIANGLE = close("A", "C", SEQUENCE)
"""Three conditions of which two nearly imply the third."""


def planned(pattern: Pattern) -> LazyPlan:
    return plan_of(pattern, strict=False, choice=Choice(), registers=CloseRegisters())


def program_of(window: int) -> Program:
    settings = Settings(evaluator="auto")
    return compile_program(TRIANGLE, Window("span", window), registers=CloseRegisters(), settings=settings)


def rows(values: np.ndarray, kinds: str) -> Rows:
    places = np.arange(len(kinds))
    return Rows(np.array(list(kinds)), values, places, places)


def mixed(count: int, rng: np.random.Generator) -> Rows:
    kinds = "".join(rng.permutation(list("ABC" * count)))
    return rows(rng.integers(0, 60, 3 * count), kinds)


def joins(pattern: Pattern, batch: Rows, order: tuple[int, ...], near: float) -> list[Join]:
    (branch,) = planned(pattern).branches
    kind_of = {leaf.number: leaf.predicates for leaf in branch.leaves}
    kinds = tuple(kind_of.values())
    pool = Pool(CloseRegisters(), kinds)
    holds = {p: p.evaluate(batch) for kind in kinds for p in kind}
    truth = np.stack([np.logical_and.reduce([holds[p] for p in kind]) for kind in kinds])
    pool.add(batch, truth, [(0, len(batch))])
    return list(pool.join(order, kind_of, branch.before, dict.fromkeys(branch.tests, 0.05), near))


def passing(batch: Rows, near: int, leaves: tuple[int, ...]) -> float:
    """By definition: the part of the tuples in order and in a window whose pairs are all close."""
    own = [np.flatnonzero(batch.types == "ABC"[leaf]) for leaf in leaves]
    found = [t for t in itertools.product(*own) if sorted(t) == list(t) and t[-1] - t[0] <= near]
    held = [
        t for t in found if all(abs(batch.values[a] - batch.values[b]) <= 1 for a, b in itertools.combinations(t, 2))
    ]
    return len(held) / len(found)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_order_followed_through_a_sample_finds_what_passes(order: tuple[int, ...]) -> None:
    """Here nothing is left out of the sample, so all that differs from the definition is the prior."""
    batch = mixed(40, np.random.default_rng(2))
    pairs, triples = joins(TRIANGLE, batch, order, 60.0)
    first = tuple(sorted(order[:2]))
    assert pairs.leaves == frozenset(first) and triples.leaves == frozenset(range(3))
    assert math.isclose(pairs.part, passing(batch, 60, first), rel_tol=0.1)
    product = math.prod(passing(batch, 60, pair) for pair in itertools.combinations(range(3), 2))
    whole = passing(batch, 60, (0, 1, 2))
    assert whole > 8 * product  # as if independent they are far off
    assert 0.4 < triples.part / whole < 2.5


def test_a_join_stops_where_nothing_passes_or_nothing_is_there() -> None:
    far = rows(np.arange(60) * 10, "ABC" * 20)
    (pairs,) = joins(TRIANGLE, far, (0, 1, 2), 60.0)
    assert 0.0 < pairs.part < 0.01  # what independent conditions say, weighing little
    assert joins(TRIANGLE, rows(np.zeros(40, np.int64), "AB" * 20), (2, 0, 1), 60.0) == []


def test_those_that_pass_may_have_more_in_reach() -> None:
    """As and Bs that are close are followed by all the Cs, the others by none."""
    values = np.concatenate([np.zeros(20), np.full(40, 9), np.repeat([50, 200], 10)]).astype(np.int64)
    batch = rows(values, "A" * 10 + "B" * 10 + "C" * 40 + "A" * 10 + "B" * 10)
    pairs = joins(TRIANGLE, batch, (0, 1, 2), 60.0)[0]
    assert 1.8 < pairs.dense < 2.0
    assert joins(TRIANGLE, batch, (0, 1), 60.0)[0].dense == 1.0  # no leaf is to come


def statistics_of(plan: LazyPlan, batch: Rows, window: float) -> Statistics:
    found = Statistics(plan.branches, CloseRegisters())
    found.observe(batch, window, sample=True)
    return found


def test_what_was_found_of_a_set_replaces_the_product() -> None:
    plan = planned(TRIANGLE)
    statistics = statistics_of(plan, mixed(40, np.random.default_rng(3)), 60.0)
    before = estimate(plan, statistics, chains=((2, 1, 0),))
    statistics._joint[frozenset({1, 2})] = (0.5, 1000.0)
    assert estimate(plan, statistics, chains=((2, 1, 0),)).steps > 2 * before.steps
    assert estimate(plan, statistics, chains=((2, 0, 1),)).orders == ((2, 0, 1),)


def test_counts_of_chosen_tuples_are_not_taken_for_those_of_all() -> None:
    """Of tuples that passed two conditions nearly all pass the third: that says nothing of it alone."""
    rng = np.random.default_rng(5)
    batch = mixed(400, rng)
    program = compile_program(
        TRIANGLE, Window("span", 60), registers=CloseRegisters(), settings=Settings(evaluator="auto")
    )
    plan = program.lazy
    assert isinstance(plan, LazyPlan)
    evaluator = LazyEvaluator(program, plan, orders=((2, 1, 0),))
    evaluator.count(batch)
    tried, steps = evaluator.tried()
    assert [sorted(t.leaves) for t in tried] == [[1, 2]]
    assert set(steps) == {(frozenset(), 2), (frozenset({2}), 1), (frozenset({1, 2}), 0)}
    statistics = Statistics(plan.branches, CloseRegisters())
    statistics.observed(tried, steps)
    made, held = steps[frozenset({1, 2}), 0]
    whole = statistics.joint()[frozenset({1, 2})] * (held + 0.5) / (made + 1.0)
    assert math.isclose(statistics.joint()[frozenset({0, 1, 2})], whole)
    assert evaluator.tried() == ({}, {})


def test_auto_finds_the_better_order_of_dependent_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A is close to hardly any C, B to all: single rates would say that A and B are alike."""
    monkeypatch.setattr(choosing, "MATTERS", 0.0)
    rng = np.random.default_rng(6)
    count = 6000
    kinds = rng.choice(list("ABC"), count, p=[0.45, 0.45, 0.1])
    values = np.where(kinds == "A", rng.integers(0, 400, count), rng.integers(0, 3, count))
    batch = rows(values, "".join(kinds))
    program = compile_program(
        TRIANGLE, Window("span", 80), registers=CloseRegisters(), settings=Settings(evaluator="auto")
    )
    evaluator = AutoEvaluator(program)
    evaluator.count(batch)
    assert evaluator.evaluator == "chain"
    assert evaluator._orders[0][:2] in ((2, 0), (0, 2))
    assert not evaluator._statistics.has_followed((1, 2, 0))


def test_a_kind_that_never_came_is_as_rare_as_the_stream_is_long() -> None:
    statistics = statistics_of(planned(TRIANGLE), rows(np.zeros(40, np.int64), "AB" * 20), 60.0)
    assert statistics.rate(0) == 0.5 and statistics.rate(2) == 0.5 / 40
    statistics.seen = 4000
    assert statistics.rate(0) == 0.5 and statistics.rate(2) == 0.5 / 4000


def test_partitions_cost_both() -> None:
    plan = planned(CONJUNCTION)
    statistics = statistics_of(plan, mixed(40, np.random.default_rng(7)), 20.0)
    one = estimate(plan, statistics, kernel=True)
    statistics.partitions = 500
    many = estimate(plan, statistics, kernel=True)
    assert many.compact > 1.3 * one.compact and many.chain > one.chain
    assert estimate(plan, statistics).compact > many.compact  # guards one by one


def test_partitions_are_counted() -> None:
    batch = rows(np.zeros(3000, np.int64), "A" * 3000)
    for keys, expected in ((np.arange(3000) % 7, 7), (np.arange(3000) << 30, 3000), (np.full(3000, -1), 1)):
        batch.keys = keys
        reach = Reach(Window("span", 100))
        reach.in_window(batch)
        assert reach.partitions == min(expected, KEYS)


def test_long_branches_are_ordered_step_by_step() -> None:
    """Beyond `SUBSETS` leaves no table of subsets is made."""
    names = [f"V{i}" for i in range(SUBSETS + 4)]
    atoms = [Atom(lower(o.Type("ABC"[i % 3])).predicates, frozenset({n})) for i, n in enumerate(names)]  # type: ignore[attr-defined]
    pattern: Pattern = atoms[0]
    for atom in atoms[1:]:
        pattern = Then(pattern, atom, Skip.ANY)
    for a, b in itertools.pairwise(names):
        pattern = close(a, b, pattern)
    plan = planned(pattern)
    statistics = statistics_of(plan, mixed(40, np.random.default_rng(8)), 30.0)
    costs = Costs(plan)
    (order,) = costs.estimate(statistics).orders
    assert sorted(order) == list(range(len(names)))
    shape = Shape(plan.branches[0])
    assert shape.mask(frozenset(order)) == shape.all and shape.mask(frozenset({99})) is None
    assert len(shape.moving()) == len(names) - 1


def test_a_chain_gives_way_only_to_one_that_was_followed() -> None:
    """What is known of its own conditions together is more than their product says, and so of no other order."""
    evaluator = AutoEvaluator(program_of(80))
    evaluator.count(mixed(400, np.random.default_rng(9)))
    evaluator._orders = ((2, 1, 0),)
    evaluator._sampled = None
    assert not evaluator._is_better_known(((2, 0, 1),))
    evaluator._sampled = mixed(40, np.random.default_rng(10))
    evaluator._statistics.sample(evaluator._sampled, 60.0)
    assert not evaluator._is_better_known(((2, 0, 1),))
    evaluator._statistics.follow(evaluator._plan.branches[0], (2, 0, 1), evaluator._sampled, 60.0)
    assert evaluator._is_better_known(((2, 0, 1),)) and not evaluator._is_better_known(((2, 1, 0),))
    assert evaluator._is_better_known(((0, 1),))  # of two leaves there is nothing to follow


def test_a_change_must_pay_for_reading_the_window_again() -> None:
    evaluator = AutoEvaluator(program_of(100))
    evaluator.count(mixed(400, np.random.default_rng(11)))
    assert evaluator._reach.open_events == 101
    evaluator._stale = 2
    least = 101 / (2 * choosing.EVERY)
    assert evaluator._pays(1.01 * least, 1.0) and not evaluator._pays(0.99 * least, 1.0)
