"""The automata of conjunctions: no transition for events that cannot be, the same matches, a budget."""

from __future__ import annotations

import functools
import itertools
import random
from dataclasses import dataclass

import numpy as np
import pytest

from spaseq.core.automata import CEA, compile_pattern
from spaseq.core.engine import Evaluator, Settings, Window, compile_program
from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.core.pattern import And, Atom, NoneOf, Optional, Pattern, Predicate, Sequence, Skip, are_exclusive, repeat
from tests.core.engine.test_against_oracle import as_list
from tests.support.engine_patterns import HasType, Less, Rows, random_rows


@dataclass(frozen=True)
class Typed:
    """A type that does not know what it excludes."""

    name: str

    def evaluate(self, batch: Rows) -> np.ndarray:
        return batch.types == self.name


def one(predicate: Predicate, variable: str) -> Atom:
    return Atom(frozenset((predicate,)), frozenset((variable,)))


def conjunction(parts: list[Pattern]) -> Pattern:
    return functools.reduce(And, parts[1:], parts[0])


def size(cea: CEA) -> tuple[int, int]:
    return cea.states, sum(map(len, cea.transitions))


def test_parts_of_different_types_have_no_transitions_in_common() -> None:
    for n in range(2, 9):
        cea = compile_pattern(conjunction([one(HasType(f"T{i}"), f"t{i}") for i in range(n)]))
        assert size(cea) == (2**n - 1, n * 2 ** (n - 1) + 2**n - 2)
        for t in itertools.chain(*cea.transitions):
            used = [cea.predicates[p] for p in t.predicates]
            assert not any(are_exclusive((a,), (b,)) for a, b in itertools.combinations(used, 2))


def test_parts_that_may_share_events_have_all_transitions() -> None:
    """One event may be taken by any set of the parts that are left: 3ⁿ pairs of sets."""
    for n in range(2, 6):
        cea = compile_pattern(conjunction([one(Less("v", i), f"t{i}") for i in range(n)]))
        assert size(cea) == (2**n - 1, 3**n - 2)


def test_matches_are_those_without_the_knowledge() -> None:
    def pattern(kind: type[HasType] | type[Typed], shape: int) -> Pattern:
        a, b, c = (one(kind(name), name.lower()) for name in "ABC")
        other = Atom(frozenset((NoneOf(frozenset((frozenset((kind("A"),)),))),)), frozenset("n"))
        both = Atom(frozenset((kind("A"), Less("v", 3))), frozenset("x"))
        parts: list[Pattern] = [
            conjunction([a, b, c]),
            conjunction([Sequence(a, b, Skip.ANY), Sequence(both, c, Skip.NONE)]),
            conjunction([a, both, c]),
            conjunction([a, other, Sequence(b, other, Skip.ANY)]),
            conjunction([Sequence(a, b, Skip.NEXT), c, both]),
            conjunction([Optional(a), b, Sequence(c, Optional(both), Skip.ANY)]),
            # One A may begin both parts, and then no event can be next.
            conjunction([Sequence(a, b, Skip.NONE), Sequence(both, c, Skip.NONE), other]),
        ]
        return parts[shape]

    for shape in range(7):
        known, unknown = pattern(HasType, shape), pattern(Typed, shape)
        assert size(compile_pattern(known))[1] < size(compile_pattern(unknown))[1]
        for seed in range(6):
            rows = random_rows(random.Random(seed), 30)
            found = [
                sorted(as_list(Evaluator(compile_program(p, Window("events", 6))).push(rows))) for p in (known, unknown)
            ]
            assert found[0] == found[1] and (found[0] or seed)


def test_what_excludes_what() -> None:
    a, b, less = HasType("A"), HasType("B"), Less("v", 3)
    assert are_exclusive((a, less), (less, b)) and are_exclusive((b,), (a,))
    assert not are_exclusive((a,), (a, less)) and not are_exclusive((), (a,)) and not are_exclusive((less,), (b,))
    not_a = NoneOf(frozenset((frozenset((a,)),)))
    not_small_a = NoneOf(frozenset((frozenset((a, less)),)))
    assert are_exclusive((not_a,), (a,)) and are_exclusive((a,), (not_a,)) and not are_exclusive((not_a,), (b,))
    assert not are_exclusive((not_small_a,), (a, less))  # which is so, and no single predicate says it


def test_the_budget_counts_what_is_made() -> None:
    def parts(n: int) -> Pattern:
        return conjunction([one(HasType(f"T{i}"), f"t{i}") for i in range(n)])

    made = sum(size(compile_pattern(parts(n)))[1] for n in range(2, 5))
    compile_pattern(parts(4), products=made)
    with pytest.raises(BudgetExceeded, match=f"conjunction_transitions is {made - 1} transitions of AND") as caught:
        compile_pattern(parts(4), products=made - 1)
    assert caught.value.used == made and "evaluators 'auto' and 'chain'" in caught.value.hint
    # Before anything is built: this would take longer than the world.
    for n in (30, 400):
        with pytest.raises(BudgetExceeded, match="conjunction_transitions"):
            compile_program(parts(n), settings=Settings(conjunction_transitions=1_000_000))
    long = repeat(one(HasType("A"), "a"), 100, 100)
    with pytest.raises(BudgetExceeded, match="conjunction_transitions"):
        compile_pattern(And(long, long))
    with pytest.raises(OptionError):
        Settings(conjunction_transitions=-1)
