"""The meaning of guards on sets of mappings: the contents of a run, and its changes at an instant.

A register row is `(levels, Ω, owed)`. Ω keeps only the variables that are selected or can still matter, so runs
that agree on those are one. `levels` are the variables that the run has bound, by the rounds that they belong to
(`guards.Levels`), only as far as a repetition still needs to know. Between two rounds of a repetition the variables
that its GPMs bind and no earlier element of *this run* bound are freed (semantics: each round binds them afresh).
`owed` are the conjunctions that must not match until the window closes, for the match to hold
(`spaseq.language.runtime.absence`); None in the row of a run that has taken nothing. In a gap that something must not
come in for a time, a fourth part is the time of the run's last instant.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from typing import TYPE_CHECKING, Any

from spaseq.core.automata import CEA
from spaseq.core.errors import InternalError
from spaseq.gpm import IDENTITY, ROUNDS, GraphPattern, Mapping, MappingSet, freeze, holds, join, project
from spaseq.language.guards.encoding import TermCodes
from spaseq.language.guards.guards import LAST, Free, Lasts, Levels, Meets, Pass, Take, levels_after, trim_levels
from spaseq.language.guards.operations import CompiledGuards, compile_guards
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import FilterNames, Join, conjunction_binds, join_conditions

if TYPE_CHECKING:
    from spaseq.language.solving.instants import InstantBatch

Row = (
    tuple[Levels, MappingSet, tuple[Conjunction, ...] | None]
    | tuple[Levels, MappingSet, tuple[Conjunction, ...] | None, int]
)


class MappingRegisters:
    """Registers whose rows hold the mapping set of a run (see the module)."""

    empty: Row = ((frozenset(),), IDENTITY, None)

    def __init__(self, patterns: MappingABC[str, GraphPattern]) -> None:
        self._patterns = patterns
        self._batch: InstantBatch | None = None
        self._binds: dict[Conjunction, frozenset[str]] = {}
        self._compiled: tuple[CEA, CompiledGuards | None] | None = None
        self._outer: dict[Join, tuple[tuple[Any, Any], ...]] = {}

    def codes(self, cea: CEA) -> TermCodes | None:
        """The guards of `cea` on codes of terms, for one evaluation; None if some guard needs the terms themselves."""
        if self._compiled is None or self._compiled[0] is not cea:
            self._compiled = cea, compile_guards(self._patterns, cea)
        guards = self._compiled[1]
        return None if guards is None else TermCodes(guards)

    def load(self, batch: InstantBatch) -> None:
        """Events are rows of `batch` from now on."""
        self._batch = batch

    def take(self, row: Row, guard: Take | Meets | Lasts | Pass, variables: frozenset[str], event: int) -> Row | None:
        """Joins Ω with the conjunction's set at the instant, under the FILTERs that span several GPMs."""
        if self._batch is None:
            raise InternalError("registers were asked before a batch was loaded")
        levels, omega, begun = row[:3]
        match guard:
            case Lasts() | Meets() if LAST in variables:
                return levels, omega, begun, int(self._batch.times[event])
            case Lasts(time):
                return row if self._is_near(row, time, event) else None
            case Meets(_, time) if time is not None and not self._is_near(row, time, event):
                return None
            case Meets(conjunction):
                return row if self.joined(omega, conjunction, self._batch, event) else None
            case Pass(conjunctions):
                met = any(self.joined(omega, conjunction, self._batch, event) for conjunction in conjunctions)
                return None if met else row
            case Take(conjunction, keep, _, before, owed):
                if begun is None and not all(self._batch.unseen(c)[event] for c in before):
                    return None
                joined = self.joined(omega, conjunction, self._batch, event, guard.decided)
                if not joined:
                    return None
                if collect := guard.collects(levels):
                    joined = frozenset(_with_round(mapping, collect, guard.begins_round) for mapping in joined)
                taken = self._binds.get(conjunction)
                if taken is None:
                    taken = self._binds[conjunction] = conjunction_binds(self._patterns, conjunction)
                return levels_after(levels, guard, taken), project(joined, keep), owed

    def joined(
        self,
        omega: MappingSet,
        conjunction: Conjunction,
        batch: InstantBatch,
        row: int,
        decided: FilterNames | None = None,
    ) -> MappingSet:
        """Ω ⋈ the conjunction's mapping set at a row of `batch`, under the FILTERs that name variables of Ω; `decided`:
        as of `Take`."""
        found = join(omega, batch.value(conjunction, row))
        conditions = self._conditions((conjunction, decided))
        if conditions:
            found = frozenset(m for m in found if all(holds(c, m, prologue) for c, prologue in conditions))
        return found

    def _conditions(self, asked: Join) -> tuple[tuple[Any, Any], ...]:
        """The FILTERs decided in a join with the run, each with its prologue."""
        found = self._outer.get(asked)
        if found is None:
            found = self._outer[asked] = tuple(join_conditions(self._patterns, asked))
        return found

    def _is_near(self, row: Row, time: int, event: int) -> bool:
        """True if an instant is no later than `time` behind the one that the row keeps."""
        return self._batch is not None and int(self._batch.times[event]) - row[-1] <= time  # type: ignore[operator]

    def leave(self, row: Row, guard: Any) -> Row:
        """The row behind a gap, without the time that it began at: no pattern of SPAseq has another scope to leave."""
        return row[:3]

    def again(self, row: Row, action: Free) -> Row:
        """Frees the variables of the round that is over."""
        levels, omega, owed = row[:3]
        outer = levels[: action.depth]
        kept = frozenset(name for m in omega for name, _ in m) - (action.variables - frozenset().union(*outer))
        return trim_levels(outer), project(omega, kept), owed

    def __reduce__(self) -> tuple[Any, ...]:
        raise InternalError("the registers of a query are pickled with the query, as its text")


def _with_round(mapping: Mapping, names: frozenset[str], begins: bool) -> Mapping:
    """The mapping with its values of `names` in a round of their own, if that `begins`, else in the last one."""
    terms = dict(mapping)
    taken = {name: term for name, term in mapping if name in names}
    before: tuple[Mapping, ...] = terms.get(ROUNDS, ())
    if not begins:
        before, taken = before[:-1], dict(before[-1]) | taken
    return freeze(terms | {ROUNDS: (*before, freeze(taken.items()))})
