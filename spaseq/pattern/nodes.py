"""The pattern algebra: what both languages lower to.

A pattern is a CEL formula ([CEL] §3, [CORE] §2.2, Figure 2) over opaque predicates. A valuation of a pattern is
an interval of positions and, for each variable, the set of positions it took. Nodes are frozen and
hashable.

What a node leaves opaque is given by the front end:

* a *predicate* (`Predicate`) says of each event of a batch alone whether it holds;
* a *guard* (any hashable value) relates an event to the events a run already took; only the front end's `Registers`
  understands it (`spaseq.engine.program.settings`).
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Predicate(Protocol):
    """A condition on a single event. Must be hashable and compare by meaning: equal predicates are evaluated once."""

    def evaluate(self, batch: Any) -> np.ndarray:
        """Truth per event of `batch`: bool, shape (n,). NULL never holds."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The predicate that holds where no conjunction of `alternatives` does. What is not known to hold does not."""

    alternatives: frozenset[frozenset[Predicate]]

    def __str__(self) -> str:
        shown = sorted(" & ".join(sorted(map(str, a))) or "true" for a in self.alternatives)
        return f"none of ({'; '.join(shown)})"

    def evaluate(self, batch: Any) -> np.ndarray:
        """Truth per event of `batch`: bool, shape (n,)."""
        found = np.zeros(len(batch), bool)
        for conjunction in self.alternatives:
            holds = np.ones(len(batch), bool)
            for predicate in conjunction:
                holds &= predicate.evaluate(batch)
            found |= holds
        return ~found


class Skip(enum.Enum):
    """What a run may do while it waits for the next element of a sequence."""

    ANY = "any"
    """Skip any event, also one that it could take: CEQL `;`, SPAseq `:` (skip-till-any)."""
    NEXT = "next"
    """Skip only events that it cannot take: SPAseq `;` (skip-till-next, [SPAseq] Definition 11)."""
    NONE = "none"
    """Skip nothing, the very next event must fit: CEQL `:`, SPAseq `,` (strict contiguity)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Base of all nodes."""


@dataclass(frozen=True, slots=True)
class Atom(Pattern):
    """One event that satisfies every one of `predicates`; every variable of `variables` takes its position.

    `guard`, if given, must also let the event pass: it sees the run's register row (`Registers.take`).
    An atom with no variables marks nothing (a projected atom).
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

    `variables` are those the guard names. A valuation in which one of them is empty satisfies it.
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
    """`left`, then `right`; `skip` says what may lie between, and `absent` what may not.

    `absent` are atoms, as alternatives: no event strictly between the two parts satisfies one of them. An atom with a
    guard is asked with the run's registers as they are when the event passes. Nothing lies between with `Skip.NONE`.
    """

    left: Pattern
    right: Pattern
    skip: Skip
    absent: tuple[Atom, ...] = ()


@dataclass(frozen=True, slots=True)
class And(Pattern):
    """A valuation of `left` and one of `right`, in any order and however interleaved; they may share events.

    The interval is the smallest that holds both.
    """

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Iterate(Pattern):
    """`child` once or more; `skip` says what may lie between two rounds.

    `again`, if given, is a register action taken between rounds (SPAseq frees the variables of the round before).
    """

    child: Pattern
    skip: Skip
    again: Hashable | None = None


@dataclass(frozen=True, slots=True)
class Project(Pattern):
    """The valuations of `child`, with every variable that is not in `variables` emptied ([CEL], π_L)."""

    child: Pattern
    variables: frozenset[str]
