"""Lower a checked query to the core's pattern over instants.

Each conjunction of GPMs is an atom. Its predicate holds at an instant if the conjunction's mapping set is not empty.
Its guard joins that set with the Ω of the run (`spaseq.language.guards.registers`), and rejects if the join is empty.
So `;` (`Skip.NEXT`) waits exactly for the first instant at which the join is not empty, as Definition 11 requires.

The variants of a query (`spaseq.language.semantics.expand`) are alternatives. Absences between two steps are the
`absent` atoms of their `Sequence`. A sequence in parentheses is a part of its own, under `Or` and `Iterate`. A gap is
an atom that marks nothing, whose guard rejects if a join is not empty.
Absences before the first step are checked by that step's guard, for runs that have taken nothing; those for a time by
a predicate of its own (`lower_silence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spaseq.core.engine import Around, Quiet, Silent, Window
from spaseq.core.errors import InternalError
from spaseq.core.pattern import (
    Absent,
    Atom,
    Bordered,
    Lasting,
    NoneOf,
    Or,
    Pattern,
    Predicate,
    Skip,
    balance,
    repeat,
)
from spaseq.core.pattern import Sequence as Then
from spaseq.language.guards.guards import LAST, Free, Lasts, Meets, Pass, Take
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Conjunction, Step, Variant
from spaseq.language.semantics.filters import FilterNames, decided_filters
from spaseq.language.semantics.lookups import Lookups
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


@dataclass(frozen=True, slots=True)
class _Place:
    """The surroundings of a part of a sequence.

    `depth`: the number of repetitions around it. `inside`: of how many of them, from the outermost, a round goes on in
    front of it. `earlier`: the variables that elements in front of it may bind. `behind`: those that must be kept for
    what is behind it. `tracked`: those that repetitions, around it and behind, must know to be bound. `before` and
    `owed`: as of `Take`, if it opens the sequence, and if it ends it. `collect`: as of `Take`.
    """

    behind: frozenset[str]
    before: tuple[Conjunction, ...]
    owed: tuple[Conjunction, ...]
    depth: int = 0
    inside: int = 0
    earlier: frozenset[str] = frozenset()
    tracked: frozenset[str] = frozenset()
    collect: frozenset[str] = frozenset()


def lower(query: CheckedQuery, lookups: Lookups | None) -> Pattern:
    """The core pattern of a query's sequence expression. Runs do not keep the variables of `lookups`."""
    return balance(Or, [_Lowering(query, lookups).variant(variant) for variant in query.variants])


def lower_silence(query: CheckedQuery) -> Around:
    """The silence that a query wants in front of its matches, for a time: a condition on their first instants."""
    if query.lasting.silence is None:
        return Around()
    conjunctions = {conjunction for variant in query.variants for conjunction in variant.before}
    none = NoneOf(frozenset(frozenset({Holds(conjunction)}) for conjunction in conjunctions))
    return Around(silences=(Silent(Quiet(none, Window("span", query.lasting.silence))),))


class _Lowering:
    def __init__(self, query: CheckedQuery, lookups: Lookups | None) -> None:
        self._query = query
        self._shown = frozenset(query.clauses.needed) - (lookups.variables if lookups else frozenset())
        self._patterns = query.patterns
        self._goal = set() if query.after is None else {query.after.variable}

    def variant(self, variant: Variant) -> Pattern:
        """The pattern of a variant."""
        query = self._query
        behind = self._shown | self._mentions(variant.after)
        if variant.after:
            behind |= frozenset(query.partition)  # tells the instants of a run's own partition from those of others
        before = variant.before if query.lasting.silence is None else ()
        return self._chain(variant.steps, _Place(behind, before, variant.after), whole=True)

    def _chain(self, steps: Sequence[Step], place: _Place, *, whole: bool = False) -> Pattern:
        """The pattern of steps in a row; `whole`: they are all of the SEQ."""
        pattern: Pattern | None = None
        for index, step in enumerate(steps):
            later = [part for after in steps[index + 1 :] for part in after.parts()]
            own = replace(
                place,
                inside=place.depth if index else place.inside,
                earlier=place.earlier | self._binds(steps[:index]),
                behind=place.behind.union(
                    *(self._mentions((*s.alternatives, *s.absent)) | self._late_variables(s) for s in later)
                ),
                tracked=place.tracked.union(
                    *(self._all_mentions(s) for s in steps[index + 1 :] if any(p.rounds for p in s.parts()))
                ),
                before=() if index else place.before,
                owed=place.owed if index == len(steps) - 1 else (),
            )
            part = self._step(step, own, opens=whole and index == 0)
            pattern = part if pattern is None else _then(pattern, part, step)
        if pattern is None:
            raise InternalError("a sequence without steps")
        return pattern

    def _step(self, step: Step, place: _Place, *, opens: bool) -> Pattern:
        if step.rounds is None:
            return self._round(step, place)
        own, binds = self._all_mentions(step), self._binds([step])
        around = replace(
            place,
            depth=place.depth + 1,
            behind=place.behind | (own & place.earlier),
            tracked=place.tracked | own,
            collect=place.collect or (self._query.clauses.rounds & binds),
        )
        # Definition 13 (alone, or opening the sequence) skips till next; Definition 14 (inside) is contiguous.
        joined = step.rounds.operator or (Operator.NEXT if opens else Operator.STRICT)
        freed = Free(binds, around.depth)
        return repeat(self._round(step, around), step.rounds.low, step.rounds.high, _SKIP[joined], again=freed)

    def _round(self, step: Step, place: _Place) -> Pattern:
        """The pattern of a step, or of one of its rounds."""
        if step.inner:
            return balance(Or, [self._chain(steps, place) for steps in step.inner])
        if step.gap:
            return Atom(frozenset(), frozenset(), Pass(step.alternatives))
        atoms: list[Pattern] = [
            Atom(
                frozenset({Holds(conjunction)}),
                frozenset({"+".join(dict.fromkeys(conjunction)), *(self._goal & set(conjunction))}),
                Take(
                    conjunction, place.behind, place.tracked, place.before, place.owed, place.collect, place.depth,
                    place.inside, self._filters(step, conjunction),
                ),
            )
            for conjunction in step.alternatives
        ]  # fmt: skip
        return balance(Or, atoms)

    def _filters(self, step: Step, conjunction: Conjunction) -> FilterNames | None:
        return None if step.among is None else decided_filters(self._patterns, conjunction, step.among)

    def _late_variables(self, step: Step) -> frozenset[str]:
        """The variables of FILTERs that wait for a part of AND."""
        decided = (self._filters(step, conjunction) or () for conjunction in step.alternatives)
        return frozenset().union(*(self._patterns[n].correlated[i].variables for names in decided for n, i in names))

    def _binds(self, steps: Iterable[Step]) -> frozenset[str]:
        leaves = (part for step in steps for part in step.parts() if not part.gap)
        return frozenset().union(*(self._patterns[n].binds for s in leaves for c in s.alternatives for n in c))

    def _mentions(self, conjunctions: Iterable[Conjunction]) -> frozenset[str]:
        return frozenset().union(*(self._patterns[name].mentions for c in conjunctions for name in c))

    def _all_mentions(self, step: Step) -> frozenset[str]:
        """The variables that the step's parts mention, apart from absences in front of it."""
        inside = ((*s.alternatives, *(s.absent if s is not step else ())) for s in step.parts())
        return frozenset().union(*map(self._mentions, inside))


def _skip(step: Step) -> Skip:
    if step.operator is None:
        raise InternalError("a step inside a sequence has no operator")
    return _SKIP[step.operator]


def _then(pattern: Pattern, part: Pattern, step: Step) -> Pattern:
    """`pattern`, then the `part` of a step."""
    if step.lasting is None:
        return Then(pattern, part, _skip(step), tuple(map(_absent, step.absent)))
    time = Lasting(Lasts(step.lasting), LAST, "event")
    behind = tuple(
        Absent(
            Atom(frozenset({Holds(conjunction)}), frozenset({"event"}), Meets(conjunction, step.lasting)),
            _skip(step),
            time,
        )
        for conjunction in step.absent
    )
    return Then(Bordered(pattern, behind=behind), part, _skip(step))


def _absent(conjunction: Conjunction) -> Atom:
    return Atom(frozenset({Holds(conjunction)}), frozenset(), Meets(conjunction))
