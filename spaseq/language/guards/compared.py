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
from spaseq.language.semantics.filters import conditions, conjunction_binds


@dataclass(frozen=True, slots=True)
class Compared:
    """A FILTER of a conjunction as `inner symbol outer`: about a variable of the conjunction, and one of the run."""

    symbol: str
    inner: Side
    outer: Side

    @property
    def turned(self) -> str:
        """The symbol of `outer … inner`."""
        return COMPARISONS[self.symbol].mirror


@dataclass(frozen=True, slots=True)
class Asked:
    """Any other FILTER of a conjunction: question `number`. `program` decides it from numbers, if it can."""

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


def outer_filters(
    patterns: MappingABC[str, GraphPattern], conjunctions: Iterable[Conjunction]
) -> dict[Conjunction, Filters] | None:
    """The FILTERs of each conjunction that name variables of the run; None if one has RAND or the like."""
    found: dict[Conjunction, Filters] = {}
    numbers = itertools.count()
    for conjunction in conjunctions:
        compared: list[Compared] = []
        asked: list[Asked] = []
        for condition, prologue in conditions(patterns, conjunction, inner=False):
            if unsteady(condition.expression):
                return None
            comparison = _comparison_of(patterns, conjunction, condition)
            if comparison is not None:
                compared.append(comparison)
            else:
                names, program = tuple(sorted(condition.variables)), number_program(condition.expression) or ()
                asked.append(Asked(next(numbers), condition, prologue, names, program))
        found[conjunction] = Filters(tuple(compared), tuple(asked))
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
