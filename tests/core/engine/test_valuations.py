"""Valuations against the oracle: which variables take which positions, under every selection."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from spaseq.core.engine import Choice, Evaluator, MatchBatch, Program, Selection, Window, compile_program
from spaseq.core.pattern import Atom, Correlate, Or, Sequence, Skip, variables
from tests.core.engine.test_against_oracle import SIZE, draw, in_batches
from tests.core.engine.test_registers import AtLeast, Numbers, Rising
from tests.support import oracle as o
from tests.support.engine_patterns import lower, random_rows
from tests.support.sizes import some

STRATEGIES = {"ALL": Selection.ALL, "NEXT": Selection.NEXT, "LAST": Selection.LAST, "MAX": Selection.MAX}


def as_valuations(program: Program, batch: MatchBatch) -> list[tuple[object, ...]]:
    """Start, end and the positions of each variable; sorted, with repetitions."""
    if not len(batch):
        return []
    assert batch.labels is not None and program.labels is not None
    found = []
    for i in range(len(batch)):
        taken: dict[str, set[int]] = {}
        places = slice(batch.offsets[i], batch.offsets[i + 1])
        for position, label in zip(batch.positions[places].tolist(), batch.labels[places].tolist(), strict=True):
            for variable in program.labels[label]:
                taken.setdefault(variable, set()).add(position)
        mapping = tuple(sorted((x, frozenset(at)) for x, at in taken.items()))
        found.append((int(batch.start[i]), int(batch.end[i]), mapping))
    return sorted(found, key=repr)


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_valuations_are_the_oracles_in_any_cut(strategy: str, block: int) -> None:
    for seed in range(block * SIZE // 20, block * SIZE // 20 + some(SIZE // 20)):
        rng, rows, window, strict, query, _ = draw(1_000_000 + seed)
        query = query if strict else replace(query, strategy=strategy)
        choice = Choice() if strict else Choice(STRATEGIES[strategy])
        program = compile_program(lower(query.formula), window, strict=strict, choice=choice, valuations=True)
        expected = o.evaluate_valuations(query, rows.events())
        assert as_valuations(program, Evaluator(program).push(rows)) == expected, (seed, query, rows)
        cut = in_batches(Evaluator(program), rows, rng, window, laws=strategy == "ALL")
        assert as_valuations(program, cut) == expected, (seed, query, rows)
        assert Evaluator(program).count(rows) == len(expected)


def test_one_complex_event_may_have_several_valuations() -> None:
    """(A AS x OR A AS y) ; A+: two variables may take the first event."""
    first = o.Or(o.As(o.Type("A"), "x"), o.As(o.Type("A"), "y"))
    pattern = lower(o.Then(first, o.Type("A"), False))
    rows = random_rows(random.Random(0), 3)
    rows.types = np.array(["A", "B", "A"])
    assert variables(pattern) >= {"x", "y"}
    with_labels = compile_program(pattern, Window("none"), valuations=True)
    assert len(Evaluator(with_labels).push(rows)) == 2
    without = Evaluator(compile_program(pattern, Window("none"))).push(rows)
    assert len(without) == 1 and without.labels is None


def test_guards_tell_valuations_apart() -> None:
    """(x OR w) ; y, rising: each pair once with x and once with w, also where one row is shared."""
    first = Or(Atom(frozenset({AtLeast(0)}), frozenset({"x"})), Atom(frozenset({AtLeast(0)}), frozenset({"w"})))
    pattern = Correlate(
        Sequence(first, Atom(frozenset({AtLeast(0)}), frozenset({"y"})), Skip.ANY), frozenset({"x", "w", "y"}), "rising"
    )
    program = compile_program(pattern, registers=Rising(), valuations=True)
    values = np.array([3, 1, 4, 1, 5])
    rising = [(i, j) for i in range(5) for j in range(i + 1, 5) if values[i] < values[j]]
    expected = [(i, j, tuple(sorted(((v, frozenset({i})), ("y", frozenset({j})))))) for i, j in rising for v in "xw"]
    found = as_valuations(program, Evaluator(program).push(Numbers(values, np.arange(5))))
    assert found == sorted(expected, key=repr)
