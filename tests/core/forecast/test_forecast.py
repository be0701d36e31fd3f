"""Chains, waiting times and intervals against what is worked out by hand or by trying everything; forecasts judged."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ceql
from spaseq.core.automata import rma
from spaseq.core.automata.rma import Then, Where, event, relate
from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.core.forecast import (
    ChainLimits,
    Forecaster,
    Forecasts,
    evaluate,
    learn,
    shortest_interval,
    traces,
    unconditional,
    waiting_times,
)


def word(text: str) -> list[dict[str, Any]]:
    return [{"type": kind} for kind in text]


def contiguous(*kinds: str) -> rma.RMA:
    expression: rma.Expression = event(kinds[0], "x0")
    for i, kind in enumerate(kinds[1:], 1):
        expression = Then(expression, event(kind, f"x{i}"), adjacent=True)
    return rma.determinise(rma.build(expression), output_agnostic=True, complete=True)


def test_two_heads_in_a_row() -> None:
    """A fair coin: the number of words that end in the first HH are the Fibonacci numbers."""
    coin = "".join(itertools.chain.from_iterable(itertools.product("HT", repeat=8)))  # as many H as T
    model = learn(rma.SingleRun(contiguous("H", "H")), [word(coin)], order=0)
    forecaster = Forecaster(model, threshold=0.5, horizon=12)
    start = forecaster.distribution[model.index[model.run.start, ()]]
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert np.allclose(start, [f / 2 ** (k + 1) for k, f in enumerate(fibonacci)])
    assert forecaster.interval(model.run.start) == (2, 4, 0.5)
    with pytest.raises(OptionError, match="the chain has no state 9"):
        forecaster.interval(9)


def test_a_cycle_is_foretold_to_the_event() -> None:
    training, rest = word("ABCD" * 20), word("ABCD" * 5)
    model = learn(rma.SingleRun(contiguous("C", "D")), [training[:33], training[33:]], order=2)
    forecaster = Forecaster(model, threshold=1.0, horizon=10)
    (found,) = forecaster.run([rest])
    assert (found.first[0], found.last[0]) == (2, 3), "A and B are one letter to this automaton"
    assert found.first[1:].tolist() == found.last[1:].tolist() == ([3, 2, 1, 4] * 5)[1:]
    judged = evaluate([found])
    assert (judged.precision, judged.spread, judged.recall) == (1.0, 1 / 19, 1.0)
    assert judged.forecasts == 19, "the one behind the last event is not decided"
    assert "precision 1.00" in str(judged)


SEEDS = st.integers(0, 2**32)


@settings(max_examples=40)
@given(SEEDS, st.integers(0, 2))
def test_waiting_times_are_those_of_all_words(seed: int, order: int) -> None:
    """Probabilities of words by counts of contexts; a word's waiting time by running the automaton over it."""
    rng = random.Random(seed)
    automaton = rng.choice((contiguous("A", "B"), contiguous("A", "A", "B"), contiguous("B")))
    training = "".join(rng.choice("AAB") if rng.random() < 0.7 else "C" for _ in range(30)) + "ABC"
    types = tuple(rma.compare("~.type", "=", kind) for kind in "ABC")
    model = learn(rma.SingleRun(automaton, types), [word(training)], order=order)
    (trace,) = traces(model.run, [word(training)])
    names = dict(zip(trace.letters.tolist(), training, strict=True))
    following: dict[str, Counter[str]] = {}
    for i, letter in enumerate(training):
        for length in range(order + 1):
            if length <= i:
                following.setdefault(training[i - length : i], Counter())[letter] += 1
    horizon = 4
    distribution = waiting_times(model.chain, horizon)
    for (state, context), row in zip(model.chain.nodes, distribution, strict=True):
        begun = "".join(names[letter] for letter in context)
        expected = np.zeros(horizon)
        for tried in itertools.product("ABC", repeat=horizon):
            p, now = 1.0, state
            for k, letter in enumerate(tried):
                text = begun + "".join(tried[:k])
                suffixes = (text[i:] for i in range(max(0, len(text) - order), len(text) + 1))
                seen = next(following[suffix] for suffix in suffixes if suffix in following)
                p *= seen[letter] / seen.total()
                if p == 0:
                    break
                now = model.run.next_state(now, next(n for n, name in names.items() if name == letter))
                if now in automaton.finals:
                    expected[k] += p / 3 ** (horizon - 1 - k)  # all words that go on from here count together
                    break
        assert np.allclose(row, expected), (state, context)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=12), st.integers(1, 20))
def test_shortest_interval(weights: list[int], parts: int) -> None:
    total = max(20, sum(weights))
    distribution, threshold = np.array(weights) / total, parts / 20
    fitting = [
        (last - first, -sum(weights[first - 1 : last]), first, last)
        for first in range(1, len(weights) + 1)
        for last in range(first, len(weights) + 1)
        if 20 * sum(weights[first - 1 : last]) >= parts * total
    ]
    found = shortest_interval(distribution, threshold)
    if not fitting:
        assert found is None
    else:
        _, mass, first, last = min(fitting)
        assert found is not None and found[:2] == (first, last)
        assert found[2] == pytest.approx(-mass / total)


def markov_word(rng: random.Random, size: int) -> Iterator[str]:
    """An order-1 source over A, B and C."""
    rows, letter = {"A": (0.1, 0.6, 0.3), "B": (0.2, 0.2, 0.6), "C": (0.7, 0.2, 0.1)}, "A"
    for _ in range(size):
        letter = rng.choices("ABC", rows[letter])[0]
        yield letter


def test_forecasts_of_a_markov_source_keep_their_promise() -> None:
    """On held-out events precision is at least the threshold, up to chance, and the spread less than without states."""
    rng = random.Random(1)
    training, rest = word("".join(markov_word(rng, 8000))), word("".join(markov_word(rng, 4000)))
    run = rma.SingleRun(contiguous("A", "B", "C"))
    model = learn(run, [training], order=1)
    for threshold in (0.3, 0.5, 0.8):
        judged = evaluate(Forecaster(model, threshold=threshold, horizon=60).run([rest]))
        assert judged.forecasts > 3900 and judged.matches > 300
        assert judged.precision > threshold - 0.03
        alone = unconditional(traces(run, [training]), threshold, 60)
        assert alone is not None and judged.spread < alone[1] - alone[0]


def test_registers_states_decide() -> None:
    """A rise within three events: the chain is over the automaton's states, which know the registers."""
    rise = Where(Then(event("T", "x"), event("T", "y")), relate("x.value", "<", "y.value"))
    automaton = rma.determinise(rma.count_events(rma.build(rise), 3), output_agnostic=True, complete=True)
    run = rma.SingleRun(automaton)
    assert run.has_registers
    rng = random.Random(2)
    stream = [{"type": rng.choice("TTH"), "value": rng.randrange(4)} for _ in range(3000)]
    model = learn(run, [stream[:2000]], order=1)
    sums = np.bincount(model.chain.source, model.chain.probability, len(model.chain.nodes))
    assert np.allclose(sums[np.unique(model.chain.source)], 1)
    judged = evaluate(Forecaster(model, threshold=0.6, horizon=20).run([stream[2000:]]))
    assert judged.precision > 0.6 and judged.forecasts > 900


def test_a_state_that_training_never_left_gets_no_forecast() -> None:
    rise = Where(Then(event("T", "x"), event("H", "y")), relate("x.value", "<", "y.value"))
    automaton = rma.determinise(rma.count_events(rma.build(rise), 2), output_agnostic=True, complete=True)
    model = learn(rma.SingleRun(automaton), [[{"type": "H", "value": 1}] * 10], order=1)
    (found,) = Forecaster(model, threshold=0.5, horizon=5).run([[{"type": "T", "value": 1}, {"type": "H", "value": 2}]])
    assert found.first.tolist() == [0, 0] and found.accepted.tolist() == [False, True]


def test_queries_and_partitions() -> None:
    """A CEQL query, its events in partitions: each is a run of its own."""
    asked = ceql.compile("SELECT * WHERE A : B PARTITION BY [k]").alerts()
    stream = [{"type": kind, "k": k} for kind in "ABC" * 30 for k in (1, 2)]
    run = rma.SingleRun(asked.deterministic())
    model = learn(run, asked.rows(stream))
    found = Forecaster(model, threshold=0.9, horizon=9).run(asked.rows(stream))
    assert len(found) == 2
    assert all(f.first.tolist() == [1, 3, 2] * 30 for f in found)
    assert evaluate(found).precision == 1


def test_features_tell_letters_apart() -> None:
    """Whether B follows A depends on the event before, which the automaton does not look at."""
    rng = random.Random(3)
    stream: list[dict[str, Any]] = []
    while len(stream) < 3000:
        hot = rng.random() < 0.5
        stream += [{"type": "C", "hot": hot}, {"type": "A"}, {"type": "B" if hot else "C"}]
    plain = rma.SingleRun(contiguous("A", "B"))
    seeing = rma.SingleRun(contiguous("A", "B"), (rma.compare("~.hot", "=", True),))
    results = [
        evaluate(Forecaster(learn(run, [stream[:2000]], order=2), threshold=0.7, horizon=20).run([stream[2000:]]))
        for run in (plain, seeing)
    ]
    assert results[1].spread < results[0].spread and results[1].precision > 0.7


def test_nothing_to_divide_by() -> None:
    nothing = Forecasts(*(np.zeros(0, np.int64),) * 2, np.zeros(0), np.zeros(0, bool))
    judged = evaluate([nothing])
    assert judged.forecasts == 0 and np.isnan(judged.precision)
    assert unconditional([], 0.5, 10) is None


def test_errors_and_limits() -> None:
    run = rma.SingleRun(contiguous("A", "B"))
    with pytest.raises(OptionError, match="no events to learn from"):
        learn(run, [])
    with pytest.raises(OptionError, match="order is -1"):
        learn(run, [word("AB")], order=-1)
    with pytest.raises(BudgetExceeded, match="max_nodes is 5"):
        learn(run, [word("ABCBCACBABCCAB")], order=3, limits=ChainLimits(max_nodes=5))
    model = learn(run, [word("ABC")])
    with pytest.raises(BudgetExceeded, match="max_cells is 10"):
        Forecaster(model, limits=ChainLimits(max_cells=10))
    with pytest.raises(OptionError, match="the threshold is 0"):
        shortest_interval(np.ones(1), 0)
    with pytest.raises(OptionError, match="the horizon is 0"):
        waiting_times(model.chain, 0)
