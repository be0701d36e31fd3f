"""Lower a checked query to the core's pattern over instants, and give its guards their meaning.

Each conjunction of GPMs is an atom. Its predicate holds at an instant where the conjunction's mapping set is not empty;
its guard joins that set with the Ω of the run (`MappingRegisters.take`) and rejects where the join is empty. So `;`
(`Skip.NEXT`) waits exactly for the first instant at which the join is not empty, as Definition 11 says.

A register row is `(bound, pending, Ω)`. Ω keeps only the variables that are selected or can still matter, so runs
that agree on those are one. `bound` are the variables bound by elements already left behind, `pending` those bound by
the round now taken; both only as far as a Kleene+ still needs to know. Between two rounds of a Kleene+ the variables
that its GPMs bind and no earlier element of *this run* bound are freed (semantics: each iteration binds them afresh).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.errors import InternalError
from spaseq.gpm import IDENTITY, GraphPattern, MappingSet, holds, join, project
from spaseq.language.ast import Operator
from spaseq.language.check import CheckedQuery, Conjunction, Element
from spaseq.pattern import Atom, Iterate, Or, Pattern, Sequence, Skip

if TYPE_CHECKING:
    from spaseq.language.solve import InstantBatch

__all__ = ["Free", "Holds", "MappingRegisters", "Take", "lower"]

_SKIP = {Operator.STRICT: Skip.NONE, Operator.NEXT: Skip.NEXT, Operator.ANY: Skip.ANY}

Row = tuple[frozenset[str], frozenset[str], MappingSet]


@dataclass(frozen=True, slots=True)
class Holds:
    """The predicate of a conjunction: its mapping set at the instant is not empty."""

    conjunction: Conjunction

    def __str__(self) -> str:
        return " & ".join(self.conjunction)

    def evaluate(self, batch: InstantBatch) -> np.ndarray:
        """Truth per row of the batch: bool, shape (n,)."""
        return batch.holds(self.conjunction)


@dataclass(frozen=True, slots=True)
class Take:
    """The guard of a conjunction at one place in the sequence.

    `keep`: the variables that matter after it. `track`: those of which a later Kleene+ must know whether they are
    bound.
    """

    conjunction: Conjunction
    keep: frozenset[str]
    track: frozenset[str]

    def __str__(self) -> str:
        return "a join with the run"


@dataclass(frozen=True, slots=True)
class Free:
    """The action between two rounds of a Kleene+: unbind those of `variables` that no earlier element bound."""

    variables: frozenset[str]

    def __str__(self) -> str:
        return f"freeing {_listed(self.variables)} where no earlier element bound them"


def _listed(names: frozenset[str]) -> str:
    return " ".join("?" + name for name in sorted(names)) or "nothing"


def lower(query: CheckedQuery) -> Pattern:
    """The core pattern of a query's sequence expression."""
    pattern: Pattern | None = None
    for index, element in enumerate(query.elements):
        step = _element(query, index)
        if element.repeated:
            # Definition 13 (alone, or opening the sequence) skips till next; Definition 14 (inside) is contiguous.
            skip = Skip.NEXT if index == 0 else Skip.NONE
            step = Iterate(step, skip, Free(_binds(query.patterns, element)))
        pattern = step if pattern is None else Sequence(pattern, step, _skip(element))
    if pattern is None:
        raise InternalError("a sequence expression without elements")
    return pattern


def _skip(element: Element) -> Skip:
    if element.operator is None:
        raise InternalError("an element inside a sequence has no operator")
    return _SKIP[element.operator]


def _element(query: CheckedQuery, index: int) -> Pattern:
    keep, track = _live(query, index)
    atoms: list[Pattern] = [
        Atom(frozenset({Holds(conjunction)}), frozenset({"+".join(conjunction)}), Take(conjunction, keep, track))
        for conjunction in query.elements[index].alternatives
    ]
    return reduce(Or, atoms)


def _live(query: CheckedQuery, index: int) -> tuple[frozenset[str], frozenset[str]]:
    """What to keep of Ω after element `index`, and what to track as bound."""
    element, later = query.elements[index], query.elements[index + 1 :]
    earlier = frozenset().union(*(_binds(query.patterns, e) for e in query.elements[:index]))
    own = _mentions(query.patterns, element) if element.repeated else frozenset()
    keep = frozenset(query.select).union(own & earlier, *(_mentions(query.patterns, e) for e in later))
    track = own.union(*(_mentions(query.patterns, e) for e in later if e.repeated))
    return keep, track


def _binds(patterns: MappingABC[str, GraphPattern], element: Element) -> frozenset[str]:
    return frozenset().union(*(patterns[name].binds for c in element.alternatives for name in c))


def _mentions(patterns: MappingABC[str, GraphPattern], element: Element) -> frozenset[str]:
    return frozenset().union(*(patterns[name].mentions for c in element.alternatives for name in c))


class MappingRegisters:
    """Registers whose rows hold the mapping set of a run (see the module)."""

    empty: Row = (frozenset(), frozenset(), IDENTITY)

    def __init__(self, patterns: MappingABC[str, GraphPattern]) -> None:
        self._patterns = patterns
        self._batch: InstantBatch | None = None
        self._outer: dict[Conjunction, tuple[tuple[Any, Any], ...]] = {}

    def load(self, batch: InstantBatch) -> None:
        """Events are rows of `batch` from now on."""
        self._batch = batch

    def take(self, row: Row, guard: Take, variables: frozenset[str], event: int) -> Row | None:
        """Joins Ω with the conjunction's set at the instant, under the FILTERs that span several GPMs."""
        if self._batch is None:
            raise InternalError("registers were asked before a batch was loaded")
        bound, pending, omega = row
        joined = join(omega, self._batch.value(guard.conjunction, event))
        conditions = self._conditions(guard.conjunction)
        if conditions:
            joined = frozenset(m for m in joined if all(holds(c, m, prologue) for c, prologue in conditions))
        if not joined:
            return None
        taken = frozenset().union(*(self._patterns[name].binds for name in guard.conjunction))
        return (bound | pending) & guard.track, taken & guard.track, project(joined, guard.keep)

    def _conditions(self, conjunction: Conjunction) -> tuple[tuple[Any, Any], ...]:
        """The conditions of the conjunction that name variables from outside it, each with its prologue."""
        found = self._outer.get(conjunction)
        if found is None:
            inside, patterns = conjunction_binds(self._patterns, conjunction), self._patterns
            found = tuple(
                (c, patterns[name].prologue)
                for name in conjunction
                for c in patterns[name].correlated
                if not c.variables <= inside
            )
            self._outer[conjunction] = found
        return found

    def leave(self, row: Row, guard: Any) -> Row:
        """No pattern of SPAseq has a scope to leave."""
        return row

    def again(self, row: Row, action: Free) -> Row:
        """Frees the variables of the round that is over."""
        bound, _, omega = row
        kept = frozenset(name for m in omega for name, _ in m) - (action.variables - bound)
        return bound, frozenset(), project(omega, kept)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InternalError("the registers of a query are pickled with the query, as its text")


def conjunction_binds(patterns: MappingABC[str, GraphPattern], names: Iterable[str]) -> frozenset[str]:
    """The variables that a conjunction of GPMs binds."""
    return frozenset().union(*(patterns[name].binds for name in names))
