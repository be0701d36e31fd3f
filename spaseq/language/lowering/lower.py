"""Lower a checked query to the core's pattern over instants.

Each conjunction of GPMs is an atom. Its predicate holds at an instant if the conjunction's mapping set is not empty.
Its guard joins that set with the Ω of the run (`spaseq.language.guards.registers`), and rejects if the join is empty.
So `;` (`Skip.NEXT`) waits exactly for the first instant at which the join is not empty, as Definition 11 requires.

The variants of a query (`spaseq.language.semantics.expand`) are alternatives. Absences between two steps are the
`absent` atoms of their `Sequence`. A gap is an atom that marks nothing, whose guard rejects if a join is not empty.
Absences before the first step are checked by that step's guard, for runs that have taken nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaseq.core.errors import InternalError
from spaseq.core.pattern import Atom, Or, Pattern, Predicate, Sequence, Skip, balance, repeat
from spaseq.gpm import GraphPattern
from spaseq.language.guards.guards import Free, Meets, Pass, Take
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Conjunction, Step, Variant
from spaseq.language.syntax.ast import Operator

if TYPE_CHECKING:
    from spaseq.language.solving.instants import InstantBatch, Narrowed

_SKIP = {Operator.STRICT: Skip.NONE, Operator.NEXT: Skip.NEXT, Operator.ANY: Skip.ANY}


@dataclass(frozen=True, slots=True)
class Holds:
    """The predicate of a conjunction: its mapping set at the instant is not empty."""

    conjunction: Conjunction

    def __str__(self) -> str:
        return " & ".join(self.conjunction)

    def evaluate(self, batch: InstantBatch | Narrowed | _Held) -> np.ndarray:
        """Truth per row of the batch: bool, shape (n,)."""
        return batch.holds(self.conjunction)


class Vectors(dict[int, int]):
    """The bits of predicates by those of the `conjunctions` that hold at an instant; worked out when first asked."""

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        self._predicates = tuple(predicates)
        asked = _Held()
        for predicate in self._predicates:
            predicate.evaluate(asked)
        self.conjunctions: tuple[Conjunction, ...] = tuple(asked.asked)

    def __missing__(self, held: int) -> int:
        instant = _Held(*(c for i, c in enumerate(self.conjunctions) if held >> i & 1))
        vector = self[held] = sum(1 << i for i, p in enumerate(self._predicates) if p.evaluate(instant)[0])
        return vector


class _Held:
    """As much of a batch of one instant as predicates ask; `asked`: the conjunctions they did, in order."""

    def __init__(self, *held: Conjunction) -> None:
        self._held = held
        self.asked: dict[Conjunction, None] = {}

    def __len__(self) -> int:
        return 1

    def holds(self, conjunction: Conjunction) -> np.ndarray:
        self.asked[conjunction] = None
        return np.array([conjunction in self._held], bool)


def lower(query: CheckedQuery) -> Pattern:
    """The core pattern of a query's sequence expression."""
    return balance(Or, [_sequence(query, variant) for variant in query.variants])


def _sequence(query: CheckedQuery, variant: Variant) -> Pattern:
    pattern: Pattern | None = None
    for index, step in enumerate(variant.steps):
        part = _step(query, variant, index)
        if step.rounds is not None:
            # Definition 13 (alone, or opening the sequence) skips till next; Definition 14 (inside) is contiguous.
            joined = step.rounds.operator or (Operator.NEXT if index == 0 else Operator.STRICT)
            freed = Free(_binds(query.patterns, step))
            part = repeat(part, step.rounds.low, step.rounds.high, _SKIP[joined], again=freed)
        pattern = part if pattern is None else Sequence(pattern, part, _skip(step), tuple(map(_absent, step.absent)))
    if pattern is None:
        raise InternalError("a sequence without steps")
    return pattern


def _skip(step: Step) -> Skip:
    if step.operator is None:
        raise InternalError("a step inside a sequence has no operator")
    return _SKIP[step.operator]


def _absent(conjunction: Conjunction) -> Atom:
    return Atom(frozenset({Holds(conjunction)}), frozenset(), Meets(conjunction))


def _step(query: CheckedQuery, variant: Variant, index: int) -> Pattern:
    step = variant.steps[index]
    if step.gap:
        return Atom(frozenset(), frozenset(), Pass(step.alternatives))
    keep, track = _live(query, variant, index)
    owed = variant.after if index == len(variant.steps) - 1 else ()
    before = variant.before if index == 0 else ()
    collect: frozenset[str] = frozenset()
    if step.rounds is not None:
        earlier = frozenset().union(*(_binds(query.patterns, s) for s in variant.steps[:index] if not s.gap))
        collect = (query.clauses.rounds & _binds(query.patterns, step)) - earlier
    goal = set() if query.after is None else {query.after.variable}
    atoms: list[Pattern] = [
        Atom(
            frozenset({Holds(conjunction)}),
            frozenset({"+".join(conjunction), *(goal & set(conjunction))}),
            Take(conjunction, keep, track, before, owed, collect),
        )
        for conjunction in step.alternatives
    ]
    return balance(Or, atoms)


def _live(query: CheckedQuery, variant: Variant, index: int) -> tuple[frozenset[str], frozenset[str]]:
    """The variables of Ω to keep after step `index`, and those to track as bound."""
    step, later = variant.steps[index], variant.steps[index + 1 :]
    patterns = query.patterns
    earlier = frozenset().union(*(_binds(patterns, s) for s in variant.steps[:index] if not s.gap))
    own = _mentions(patterns, step.alternatives) if step.rounds is not None else frozenset()
    keep = frozenset(query.clauses.needed) | (own & earlier) | _mentions(patterns, variant.after)
    keep = keep.union(*(_mentions(patterns, (*s.alternatives, *s.absent)) for s in later))
    if variant.after:
        keep |= frozenset(query.partition)  # tells the instants of a run's own partition from those of others
    track = own.union(*(_mentions(patterns, s.alternatives) for s in later if s.rounds is not None))
    return keep, track


def _binds(patterns: MappingABC[str, GraphPattern], step: Step) -> frozenset[str]:
    return frozenset().union(*(patterns[name].binds for c in step.alternatives for name in c))


def _mentions(patterns: MappingABC[str, GraphPattern], conjunctions: Iterable[Conjunction]) -> frozenset[str]:
    return frozenset().union(*(patterns[name].mentions for c in conjunctions for name in c))
