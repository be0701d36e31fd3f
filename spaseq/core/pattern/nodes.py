"""The nodes of the pattern algebra, to which both languages lower their queries.

A pattern is a CEL formula ([CEL] §3, [CORE] §2.2, Figure 2). A valuation of a pattern is an interval of positions and,
for each variable, the set of positions it took. Nodes are frozen and hashable.

Conditions are opaque here and given by the front end:

* a *predicate* (`Predicate`) is a condition on a single event, evaluated on batches;
* a *guard* (any hashable value) relates an event to the events that a run has taken; only the front end's `Registers`
  (`spaseq.core.engine.program.settings`) evaluate it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from spaseq.core.trees import walk


@runtime_checkable
class Batch(Protocol):
    """Consecutive events as a front end pushes them; predicates are evaluated on the same object.

    `positions`: int64 (n,), non-decreasing, in the whole stream. `times`: int64 or float64 (n,), non-decreasing, what
    the window is measured in. `keys`: int64 (n,), the partition of each row as a small number, -1 for none; or None.
    """

    @property
    def positions(self) -> np.ndarray: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def keys(self) -> np.ndarray | None: ...

    def __len__(self) -> int: ...


class Predicate(Protocol):
    """A condition on a single event. Hashable; equal predicates must have the same meaning, they are evaluated once.

    It may also say which others it excludes (`Excluding`).
    """

    def evaluate(self, batch: Any) -> np.ndarray:
        """The truth of the predicate for each event of `batch`: bool (n,), False for NULL."""

    def __hash__(self) -> int: ...


class Excluding(Protocol):
    """A predicate that knows some of those which no event satisfies together with it."""

    def excludes(self, other: Any) -> bool:
        """True if no event can satisfy both this predicate and `other`; False if that is unknown. Says the same of two
        predicates whichever is asked, or only one of them knows."""


def are_exclusive(first: Iterable[Predicate], second: Iterable[Predicate]) -> bool:
    """True if no event satisfies all of `first` and all of `second`, as far as one predicate of each says so
    (`Excluding`). O(len(first) len(second))."""
    others = tuple(second)
    return any(_excludes(one, other) or _excludes(other, one) for one in first for other in others)


def _excludes(one: Predicate, other: Predicate) -> bool:
    excludes: Callable[[Any], bool] | None = getattr(one, "excludes", None)  # isinstance of a protocol is slow
    return excludes is not None and excludes(other)


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The predicate that holds if none of `alternatives`, conjunctions of predicates, holds. A predicate that is
    unknown (NULL) counts as false.
    """

    alternatives: frozenset[frozenset[Predicate]]

    def __str__(self) -> str:
        shown = sorted(" & ".join(sorted(map(str, a))) or "true" for a in self.alternatives)
        return f"none of ({'; '.join(shown)})"

    def excludes(self, other: Any) -> bool:
        """True for a predicate that is one of the alternatives by itself (`Excluding`)."""
        return frozenset((other,)) in self.alternatives

    def evaluate(self, batch: Any) -> np.ndarray:
        """The truth of the predicate for each event of `batch`: bool (n,)."""
        found = np.zeros(len(batch), bool)
        for conjunction in self.alternatives:
            holds = np.ones(len(batch), bool)
            for predicate in conjunction:
                holds &= predicate.evaluate(batch)
            found |= holds
        return ~found


class Skip(enum.Enum):
    """The events that a run may skip while it waits for the next element of a sequence."""

    ANY = "any"
    """Skip any event, also one that it could take: CEQL `;`, SPAseq `:` (skip-till-any)."""
    NEXT = "next"
    """Skip only events that it cannot take: CEQL `->`, SPAseq `;` (skip-till-next, [SPAseq] Definition 11)."""
    NONE = "none"
    """Skip nothing, the very next event must fit: CEQL `:`, SPAseq `,` (strict contiguity)."""


def skips_till_next(tree: Any) -> bool:
    """True if some part of a pattern, or of a formula with the same `skip`, takes the next event that fits. Then a part
    has an effect on the events that other parts take. O(size)."""
    return any(getattr(part, "skip", None) is Skip.NEXT for part in walk(tree))


class Preference(enum.Enum):
    """The choice of a run that waits both for an optional part, or another round, and for what follows it.

    A run chooses only if both are joined by `Skip.NEXT`, and at an event that fits both. It never takes a choice back.
    """

    GREEDY = "greedy"
    """Prefer the part, or the round."""
    RELUCTANT = "reluctant"
    """Prefer what follows."""
    EACH = "each"
    """Prefer neither: the run goes on with the part and, as another run, without it. So it also passes over events that
    fit the part."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Base of all nodes."""


@dataclass(frozen=True, slots=True)
class Atom(Pattern):
    """One event that satisfies every one of `predicates`; every variable of `variables` takes its position.

    `guard`, if given, must accept the event too, given the run's register row (`Registers.take`).
    An atom without variables marks nothing (a projected atom).
    """

    predicates: frozenset[Predicate]
    variables: frozenset[str]
    guard: Hashable | None = None


@dataclass(frozen=True, slots=True)
class As(Pattern):
    """`child AS variable`: `variable` takes all positions that any variable of `child` takes."""

    child: Pattern
    variable: str


@dataclass(frozen=True, slots=True)
class Filter(Pattern):
    """`child FILTER variable[predicate]`: every position of `variable` satisfies `predicate`."""

    child: Pattern
    variable: str
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Correlate(Pattern):
    """`child FILTER guard`: a condition on several variables, for all choices of one position for each.

    `variables` are those of the guard. A valuation in which one of them is empty satisfies it.
    """

    child: Pattern
    variables: frozenset[str]
    guard: Hashable


@dataclass(frozen=True, slots=True)
class Or(Pattern):
    """A valuation of `left` or one of `right`."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    """`left`, then `right`. `skip` gives the events that may lie between, `absent` those that may not.

    `absent` are alternatives: no event strictly between the two parts may satisfy one of these atoms. The guard of such
    an atom is evaluated with the run's registers at that event. No match of the pattern `never` may lie strictly
    between them; it has no guards, does not skip till the next event, and goes with `Skip.ANY`. With `Skip.NONE`
    nothing lies between the parts.

    `watched` are atoms with guards. Each event strictly between that satisfies one of them is noted for its guard, as
    an event of its variable, and not taken. A guard around the sequence decides later, with the events behind.

    `again`, if given, is a register action taken between the parts: two rounds of one repetition, as of `Iterate`.
    """

    left: Pattern
    right: Pattern
    skip: Skip
    absent: tuple[Atom, ...] = ()
    again: Hashable | None = None
    never: Pattern | None = None
    watched: tuple[Atom, ...] = ()


@dataclass(frozen=True, slots=True)
class And(Pattern):
    """A valuation of `left` and one of `right`, in any order and however interleaved; they may share events.

    The interval is the smallest that holds both.
    """

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Lasting:
    """The time of an absence, from the last event before a gap on. `guard` accepts an event for the variable `event` if
    it is not later than that; for the variable `last` it keeps the event before the gap, until the gap ends.

    Of a conjunction, the time runs from the gap before it to the one behind it. It does not close with the first of
    these gaps, and does not open with the second.
    """

    guard: Hashable
    last: str
    event: str
    opens: bool = True
    closes: bool = True


@dataclass(frozen=True, slots=True)
class Absent:
    """An absence at the border of a part: of one event, an atom, or of a match of another pattern, as in
    `Sequence.never`.

    `skip` is the sign beside it, so that of the gap that it is for; None: any gap, of a conjunction. The guard of an
    atom is decided in the sequence around. `lasting`: the time for which nothing of it may come; what follows comes
    later. The guard of the atom then tests the time, too, and keeps the same event before the gap.
    """

    pattern: Pattern
    skip: Skip | None = None
    lasting: Lasting | None = None


@dataclass(frozen=True, slots=True)
class Bordered(Pattern):
    """`child`, of which the sequences and loops around have to know what must not come before and behind it.

    Nothing of `before` lies strictly between what precedes it and its first event, nothing of `behind` strictly
    between its last event and what follows. A sequence applies to its gap what both of its sides say, and an iteration
    what two of its rounds say. No event between the first and the last of `child`, and not taken by it, satisfies an
    atom of `within`. Its guard is that of a time, if it has one. An event that only a projected atom takes counts as
    passed over.
    """

    child: Pattern
    before: tuple[Absent, ...] = ()
    behind: tuple[Absent, ...] = ()
    within: tuple[Atom, ...] = ()


@dataclass(frozen=True, slots=True)
class Iterate(Pattern):
    """`child` once or more; `skip` gives the events that may lie between two rounds.

    `again`, if given, is a register action taken between rounds (SPAseq frees the variables of the round before). An
    event that satisfies one of `stops`, conjunctions of predicates, begins no round, nor does an event behind it.
    """

    child: Pattern
    skip: Skip
    again: Hashable | None = None
    preference: Preference = Preference.EACH
    stops: frozenset[frozenset[Predicate]] = frozenset()


@dataclass(frozen=True, slots=True)
class Optional(Pattern):
    """`child` or no event at all. A sequence with it is its other side alone, or both; a match takes an event."""

    child: Pattern
    preference: Preference = Preference.EACH


@dataclass(frozen=True, slots=True)
class Project(Pattern):
    """The valuations of `child`, with every variable that is not in `variables` emptied ([CEL], π_L)."""

    child: Pattern
    variables: frozenset[str]
