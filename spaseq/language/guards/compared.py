"""The FILTERs between GPMs, as the codes of runs are asked about them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from typing import Any

from spaseq.core.comparisons import COMPARISONS
from spaseq.gpm import Condition, GraphPattern, Program, Side, compared_sides, number_program
from spaseq.gpm.columnar import unsteady
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import Join, conjunction_binds, join_conditions


@dataclass(frozen=True, slots=True)
class Compared:
    """A FILTER in a join as `inner symbol outer`: about a variable of the conjunction, and one of the run."""

    symbol: str
    inner: Side
    outer: Side

    @property
    def turned(self) -> str:
        """The symbol of `outer … inner`."""
        return COMPARISONS[self.symbol].mirror


@dataclass(frozen=True, slots=True)
class Asked:
    """Any other FILTER in a join: question `number`. `program` decides it from numbers, if it can."""

    number: int
    condition: Condition
    prologue: Any
    names: tuple[str, ...]
    program: Program

    @property
    def numbers(self) -> frozenset[str]:
        """The variables that the program takes for numbers."""
        return frozenset(step[1:] for step in self.program if isinstance(step, str) and step.startswith("?"))


@dataclass(frozen=True, slots=True)
class Filters:
    """The FILTERs between a conjunction and the run: comparisons, and questions for all others."""

    compared: tuple[Compared, ...]
    asked: tuple[Asked, ...]


def outer_filters(patterns: MappingABC[str, GraphPattern], joins: Iterable[Join]) -> dict[Join, Filters] | None:
    """The FILTERs that are decided in each join with the run; None if one has RAND or the like."""
    found: dict[Join, Filters] = {}
    numbers = itertools.count()
    for join in joins:
        compared: list[Compared] = []
        asked: list[Asked] = []
        for condition, prologue in join_conditions(patterns, join):
            if unsteady(condition.expression):
                return None
            comparison = _comparison_of(patterns, join[0], condition)
            if comparison is not None:
                compared.append(comparison)
            else:
                names, program = tuple(sorted(condition.variables)), number_program(condition.expression) or ()
                asked.append(Asked(next(numbers), condition, prologue, names, program))
        found[join] = Filters(tuple(compared), tuple(asked))
    return found


def _comparison_of(
    patterns: MappingABC[str, GraphPattern], conjunction: Conjunction, condition: Condition
) -> Compared | None:
    """A FILTER as a comparison of a variable that the conjunction always binds with one that it never does."""
    found = compared_sides(condition.expression)
    if found is None:
        return None
    left, symbol, right = found
    certain = frozenset().union(*(patterns[name].certain for name in conjunction))
    inside = conjunction_binds(patterns, conjunction)
    if left.name in certain and right.name not in inside:
        return Compared(symbol, left, right)
    if right.name in certain and left.name not in inside:
        return Compared(COMPARISONS[symbol].mirror, right, left)
    return None
