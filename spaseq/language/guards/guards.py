"""The guards of a pattern: conditions on a run at an instant. `spaseq.language.guards.registers` decides them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from spaseq.gpm import ROUNDS
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import FilterNames, Join

Levels = tuple[frozenset[str], ...]
"""The variables that a run has bound: outside of all repetitions, then in the round now taken of each repetition around
it, from the outermost. Variables count once, for the first of these. The last set is not empty, except the first."""


@dataclass(frozen=True, slots=True)
class Take:
    """The guard of a conjunction at one place in the sequence.

    * `keep`: the variables that matter after it.
    * `track`: the variables for which a later Kleene+ must know if they are bound.
    * `before`: if it is the first, the conjunctions that must not have matched since the window opened.
    * `owed`: if it is the last, the conjunctions that must not match behind it until the window closes.
    * `collect`: the variables whose values in this round mappings keep, under the name `ROUNDS`. Those that an element
      in front of the repetition has bound are left out: no round binds them anew.
    * `depth`: the number of repetitions around it. `inside`: of how many of them, from the outermost, a round goes on;
      a round of the others begins with it.
    * `decided`: the FILTERs decided in the join, as of `Join`.
    """

    conjunction: Conjunction
    keep: frozenset[str]
    track: frozenset[str]
    before: tuple[Conjunction, ...] = ()
    owed: tuple[Conjunction, ...] = ()
    collect: frozenset[str] = frozenset()
    depth: int = 0
    inside: int = 0
    decided: FilterNames | None = None

    @property
    def begins_round(self) -> bool:
        """True if a round of the outermost repetition begins with it."""
        return self.inside == 0

    def collects(self, levels: Levels) -> frozenset[str]:
        """Those of `collect` that the rounds bind anew, of a run with these levels in front of it."""
        return self.collect.difference(*(levels if self.begins_round else levels[:1]))

    def __str__(self) -> str:
        first = f", and no {_either(self.before)} since the window opened" if self.before else ""
        names = sorted(self.keep - {ROUNDS})
        kept = f" that keeps {' '.join(f'?{name}' for name in names)}" if names else ""
        return f"a join with the run{kept}{first}"

    @property
    def said(self) -> str:
        """For people."""
        first = f"; no {_either(self.before)} since the window opened" if self.before else ""
        return f"joins what came before{first}"


@dataclass(frozen=True, slots=True)
class Meets:
    """The guard of an absence: it accepts, and changes nothing, if the conjunction joins with the run. With `lasting`
    (ns) only for so long behind the run's last instant; for the variable `LAST` it keeps that, as `Lasts` does."""

    conjunction: Conjunction
    lasting: int | None = None

    def __str__(self) -> str:
        time = "" if self.lasting is None else f" within {self.lasting / 1e9:,.12g} s"
        return f"a join of {_either((self.conjunction,))} with the run{time}"

    @property
    def said(self) -> str:
        """For people."""
        return f"{_either((self.conjunction,))} joins what came before"


LAST = "last"
"""The variable for which a guard keeps the time of an instant."""


@dataclass(frozen=True, slots=True)
class Lasts:
    """The guard of an absence's time (ns). For the variable `LAST` it keeps the time of an instant. For any other it
    accepts, and changes nothing, if an instant is no later than so long behind that one."""

    time: int

    def __str__(self) -> str:
        return f"{self.time / 1e9:,.12g} s behind the instant before"


@dataclass(frozen=True, slots=True)
class Pass:
    """The guard of a gap: it accepts, and changes nothing, if none of `conjunctions` joins with the run."""

    conjunctions: tuple[Conjunction, ...]

    def __str__(self) -> str:
        return f"no join of {_either(self.conjunctions)} with the run"

    @property
    def said(self) -> str:
        """For people."""
        return f"no {_either(self.conjunctions)} joins what came before"


@dataclass(frozen=True, slots=True)
class Free:
    """The action between two rounds of a repetition: unbind those of `variables` that no earlier element bound.

    `depth`: the number of repetitions around its elements, itself included.
    """

    variables: frozenset[str]
    depth: int = 1

    def __str__(self) -> str:
        return f"freeing {_list(self.variables)} where no earlier element bound them"

    @property
    def said(self) -> str:
        """For people."""
        return f" may have other {_list(self.variables)}" if self.variables else ""


def levels_after(levels: Levels, take: Take, taken: frozenset[str]) -> Levels:
    """The levels behind a step that may bind the variables `taken`; only those that `take` tracks.

    Rounds that are over belong to the round around them, or to none.
    """
    outer = [*levels[: take.inside], *[frozenset[str]()] * (take.inside - len(levels))]
    found = [*outer, frozenset().union(*levels[take.inside :]), *[frozenset[str]()] * (take.depth - take.inside)]
    found[take.depth] |= taken - frozenset().union(*found)
    return trim_levels(level & take.track for level in found)


def trim_levels(levels: Iterable[frozenset[str]]) -> Levels:
    """The levels without empty sets at the end."""
    found = list(levels)
    while len(found) > 1 and not found[-1]:
        found.pop()
    return tuple(found)


def joins_of(guard: Any) -> tuple[Join, ...]:
    """The joins with the run that a guard asks about."""
    match guard:
        case Take():
            return ((guard.conjunction, guard.decided),)
        case Pass(conjunctions):
            return tuple((conjunction, None) for conjunction in conjunctions)
        case Lasts():
            return ()
    return ((guard.conjunction, None),)


def _list(names: frozenset[str]) -> str:
    return " ".join("?" + name for name in sorted(names)) or "nothing"


def _either(conjunctions: Iterable[Conjunction]) -> str:
    return " | ".join(" & ".join(names) for names in conjunctions)
