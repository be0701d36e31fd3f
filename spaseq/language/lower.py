"""Lower a checked query to the core's pattern over instants, and give its guards their meaning.

Each conjunction of GPMs is an atom. Its predicate holds at an instant where the conjunction's mapping set is not empty;
its guard joins that set with the Ω of the run (`MappingRegisters.take`) and rejects where the join is empty. So `;`
(`Skip.NEXT`) waits exactly for the first instant at which the join is not empty, as Definition 11 says.

A register row is `(bound, pending, Ω, owed)`. Ω keeps only the variables that are selected or can still matter, so runs
that agree on those are one. `bound` are the variables bound by elements already left behind, `pending` those bound by
the round now taken; both only as far as a Kleene+ still needs to know. Between two rounds of a Kleene+ the variables
that its GPMs bind and no earlier element of *this run* bound are freed (semantics: each iteration binds them afresh).
`owed` are the conjunctions that must not match until the window closes, for the match to hold
(`spaseq.language.absence`); None in the row of a run that has taken nothing.

The variants of a query (`spaseq.language.expand`) are alternatives. What must not occur between two steps are the
`absent` atoms of their `Sequence`; a gap is an atom that marks nothing, whose guard rejects where a join is not empty;
what must not have occurred before the first step is asked by the guard of that, of runs that have taken nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.automata import CEA
from spaseq.errors import InternalError
from spaseq.gpm import IDENTITY, ROUNDS, Condition, GraphPattern, Mapping, MappingSet, freeze, holds, join, project
from spaseq.language.ast import Operator
from spaseq.language.check import CheckedQuery
from spaseq.language.codes import TermCodes, term_codes
from spaseq.language.expand import Conjunction, Step, Variant
from spaseq.pattern import Atom, Iterate, Or, Pattern, Predicate, Sequence, Skip

if TYPE_CHECKING:
    from spaseq.language.solve import InstantBatch

__all__ = ["Free", "Holds", "MappingRegisters", "Meets", "Pass", "Row", "Take", "Vectors", "lower"]

_SKIP = {Operator.STRICT: Skip.NONE, Operator.NEXT: Skip.NEXT, Operator.ANY: Skip.ANY}

Row = tuple[frozenset[str], frozenset[str], MappingSet, tuple[Conjunction, ...] | None]


@dataclass(frozen=True, slots=True)
class Holds:
    """The predicate of a conjunction: its mapping set at the instant is not empty."""

    conjunction: Conjunction

    def __str__(self) -> str:
        return " & ".join(self.conjunction)

    def evaluate(self, batch: InstantBatch | _Held) -> np.ndarray:
        """Truth per row of the batch: bool, shape (n,)."""
        return batch.holds(self.conjunction)


class Vectors(dict[int, int]):
    """The bits of predicates by those of the `conjunctions` that hold at an instant; worked out when first asked."""

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        self._predicates = tuple(predicates)
        asked = _Held()
        for predicate in self._predicates:
            predicate.evaluate(asked)
        self.conjunctions = tuple(asked.asked)

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
class Take:
    """The guard of a conjunction at one place in the sequence.

    `keep`: the variables that matter after it. `track`: those of which a later Kleene+ must know whether they are
    bound. `before`: what must not have matched since the window opened, if it is the first. `owed`: what must not match
    behind it until the window closes, if it is the last. `collect`: the variables whose values in this round mappings
    keep, under the name `ROUNDS`.
    """

    conjunction: Conjunction
    keep: frozenset[str]
    track: frozenset[str]
    before: tuple[Conjunction, ...] = ()
    owed: tuple[Conjunction, ...] = ()
    collect: frozenset[str] = frozenset()

    def __str__(self) -> str:
        first = f", and no {_either(self.before)} since the window opened" if self.before else ""
        return "a join with the run" + first


@dataclass(frozen=True, slots=True)
class Meets:
    """The guard of what must not occur: it accepts, and changes nothing, where the conjunction joins with the run."""

    conjunction: Conjunction

    def __str__(self) -> str:
        return f"a join of {_either((self.conjunction,))} with the run"


@dataclass(frozen=True, slots=True)
class Pass:
    """The guard of a gap: it accepts, and changes nothing, where none of `conjunctions` joins with the run."""

    conjunctions: tuple[Conjunction, ...]

    def __str__(self) -> str:
        return f"no join of {_either(self.conjunctions)} with the run"


@dataclass(frozen=True, slots=True)
class Free:
    """The action between two rounds of a Kleene+: unbind those of `variables` that no earlier element bound."""

    variables: frozenset[str]

    def __str__(self) -> str:
        return f"freeing {_listed(self.variables)} where no earlier element bound them"


def _listed(names: frozenset[str]) -> str:
    return " ".join("?" + name for name in sorted(names)) or "nothing"


def _either(conjunctions: Iterable[Conjunction]) -> str:
    return " | ".join(" & ".join(names) for names in conjunctions)


def lower(query: CheckedQuery) -> Pattern:
    """The core pattern of a query's sequence expression."""
    return reduce(Or, [_sequence(query, variant) for variant in query.variants])


def _sequence(query: CheckedQuery, variant: Variant) -> Pattern:
    pattern: Pattern | None = None
    for index, step in enumerate(variant.steps):
        part = _step(query, variant, index)
        if step.repeated:
            # Definition 13 (alone, or opening the sequence) skips till next; Definition 14 (inside) is contiguous.
            skip = Skip.NEXT if index == 0 else Skip.NONE
            part = Iterate(part, skip, Free(_binds(query.patterns, step)))
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
    if step.repeated:
        earlier = frozenset().union(*(_binds(query.patterns, s) for s in variant.steps[:index] if not s.gap))
        collect = (query.clauses.rounds & _binds(query.patterns, step)) - earlier
    atoms: list[Pattern] = [
        Atom(
            frozenset({Holds(conjunction)}),
            frozenset({"+".join(conjunction)}),
            Take(conjunction, keep, track, before, owed, collect),
        )
        for conjunction in step.alternatives
    ]
    return reduce(Or, atoms)


def _live(query: CheckedQuery, variant: Variant, index: int) -> tuple[frozenset[str], frozenset[str]]:
    """What to keep of Ω after step `index`, and what to track as bound."""
    step, later = variant.steps[index], variant.steps[index + 1 :]
    patterns = query.patterns
    earlier = frozenset().union(*(_binds(patterns, s) for s in variant.steps[:index] if not s.gap))
    own = _mentions(patterns, step.alternatives) if step.repeated else frozenset()
    keep = frozenset(query.clauses.needed) | (own & earlier) | _mentions(patterns, variant.after)
    keep = keep.union(*(_mentions(patterns, (*s.alternatives, *s.absent)) for s in later))
    if variant.after:
        keep |= frozenset(query.partition)  # tells the instants of a run's own partition from those of others
    track = own.union(*(_mentions(patterns, s.alternatives) for s in later if s.repeated))
    return keep, track


def _binds(patterns: MappingABC[str, GraphPattern], step: Step) -> frozenset[str]:
    return frozenset().union(*(patterns[name].binds for c in step.alternatives for name in c))


def _mentions(patterns: MappingABC[str, GraphPattern], conjunctions: Iterable[Conjunction]) -> frozenset[str]:
    return frozenset().union(*(patterns[name].mentions for c in conjunctions for name in c))


class MappingRegisters:
    """Registers whose rows hold the mapping set of a run (see the module)."""

    empty: Row = (frozenset(), frozenset(), IDENTITY, None)

    def __init__(self, patterns: MappingABC[str, GraphPattern]) -> None:
        self._patterns = patterns
        self._batch: InstantBatch | None = None
        self._binds: dict[Conjunction, frozenset[str]] = {}
        self._outer: dict[Conjunction, tuple[tuple[Any, Any], ...]] = {}

    def codes(self, cea: CEA) -> TermCodes | None:
        """The guards of `cea` on codes of terms; None where some guard needs the terms themselves."""
        return term_codes(self._patterns, cea)

    def load(self, batch: InstantBatch) -> None:
        """Events are rows of `batch` from now on."""
        self._batch = batch

    def take(self, row: Row, guard: Take | Meets | Pass, variables: frozenset[str], event: int) -> Row | None:
        """Joins Ω with the conjunction's set at the instant, under the FILTERs that span several GPMs."""
        if self._batch is None:
            raise InternalError("registers were asked before a batch was loaded")
        bound, pending, omega, begun = row
        match guard:
            case Meets(conjunction):
                return row if self.joined(omega, conjunction, self._batch, event) else None
            case Pass(conjunctions):
                met = any(self.joined(omega, conjunction, self._batch, event) for conjunction in conjunctions)
                return None if met else row
            case Take(conjunction, keep, track, before, owed, collect):
                if begun is None and not all(self._batch.unseen(c)[event] for c in before):
                    return None
                joined = self.joined(omega, conjunction, self._batch, event)
                if not joined:
                    return None
                if collect:
                    joined = frozenset(_with_round(mapping, collect) for mapping in joined)
                taken = self._binds.get(conjunction)
                if taken is None:
                    taken = self._binds[conjunction] = conjunction_binds(self._patterns, conjunction)
                return (bound | pending) & track, taken & track, project(joined, keep), owed

    def joined(self, omega: MappingSet, conjunction: Conjunction, batch: InstantBatch, row: int) -> MappingSet:
        """Ω ⋈ the conjunction's mapping set at a row of `batch`, under the FILTERs that name variables of Ω."""
        found = join(omega, batch.value(conjunction, row))
        conditions = self._conditions(conjunction)
        if conditions:
            found = frozenset(m for m in found if all(holds(c, m, prologue) for c, prologue in conditions))
        return found

    def _conditions(self, conjunction: Conjunction) -> tuple[tuple[Any, Any], ...]:
        """The conditions of the conjunction that belong to the join with the run, each with its prologue."""
        found = self._outer.get(conjunction)
        if found is None:
            found = self._outer[conjunction] = tuple(conditions(self._patterns, conjunction, inner=False))
        return found

    def leave(self, row: Row, guard: Any) -> Row:
        """No pattern of SPAseq has a scope to leave."""
        return row

    def again(self, row: Row, action: Free) -> Row:
        """Frees the variables of the round that is over."""
        bound, _, omega, owed = row
        kept = frozenset(name for m in omega for name, _ in m) - (action.variables - bound)
        return bound, frozenset(), project(omega, kept), owed

    def __reduce__(self) -> tuple[Any, ...]:
        raise InternalError("the registers of a query are pickled with the query, as its text")


def _with_round(mapping: Mapping, names: frozenset[str]) -> Mapping:
    """The mapping with its values of `names` added to those of the rounds before."""
    terms = dict(mapping)
    taken = tuple(pair for pair in mapping if pair[0] in names)
    return freeze(terms | {ROUNDS: (*terms.get(ROUNDS, ()), taken)})


def conditions(
    patterns: MappingABC[str, GraphPattern], names: Conjunction, *, inner: bool
) -> Iterator[tuple[Condition, Any]]:
    """The FILTERs between GPMs of a conjunction that are decided inside it, or those that belong to the join with the
    run, each with its prologue: the latter are those over a variable that the conjunction does not always bind."""
    certain = frozenset().union(*(patterns[name].certain for name in names))
    for name in names:
        for condition in patterns[name].correlated:
            if (condition.variables <= certain) == inner:
                yield condition, patterns[name].prologue


def conjunction_binds(patterns: MappingABC[str, GraphPattern], names: Iterable[str]) -> frozenset[str]:
    """The variables that a conjunction of GPMs binds."""
    return frozenset().union(*(patterns[name].binds for name in names))
