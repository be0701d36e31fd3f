"""The variables that results look up in the instants of a match, so that runs need not keep their values.

If every match takes one instant for each step of a fixed sequence, its positions tell which step took which. The
mapping set of a run is the join of the steps' mapping sets at these instants (Definitions 10 to 12), under the FILTERs
that are decided in these joins. So a variable that no later step, absence or FILTER reads can be left out of the run,
and the join made again of the instants of the match. A projection that keeps the variables that are still read does not
change whether a join is empty, nor what its FILTERs say.

Runs that differ in such values alone are one configuration: `A : B : C` with `SELECT *` costs the same in any window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spaseq.gpm.columnar import unsteady
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import conditions, conjunction_binds

if TYPE_CHECKING:
    from spaseq.language.semantics.check import CheckedQuery


@dataclass(frozen=True, slots=True)
class Lookups:
    """`variables`: those that results look up. `steps`: for each position of a match the conjunction that took it, and
    the variables that are read of its mappings there. These are sorted, and none if the run keeps the step's values.
    `decides`: True if the FILTERs in the joins of steps are decided again; then every step has its variables."""

    variables: frozenset[str]
    steps: tuple[tuple[Conjunction, tuple[str, ...]], ...]
    decides: bool


def lookups_of(query: CheckedQuery) -> Lookups | None:
    """The lookups of a query; None if it has none.

    It has none with alternatives, repetitions, an absence at the end, which a waiting match is joined with, or
    PARTITION BY, as a match does not tell its key. A FILTER may have another answer when it is decided again, as with
    RAND. Then the steps that it ties to others keep their values, and so do those that share variables with such steps.
    """
    variant = query.variants[0]
    steps = [step for step in variant.steps if not step.gap]
    plain = all(len(s.alternatives) == 1 and not s.inner and s.rounds is None and s.among is None for s in steps)
    if len(query.variants) > 1 or variant.after or query.partition or not plain:
        return None
    taken = [step.alternatives[0] for step in steps]
    binds = [conjunction_binds(query.patterns, conjunction) for conjunction in taken]
    filters = [list(conditions(query.patterns, conjunction, inner=False)) for conjunction in taken]
    decides = not any(unsteady(condition.expression) for found in filters for condition, _ in found)
    filtered = frozenset().union(*(condition.variables for found in filters for condition, _ in found))
    tied = frozenset() if decides else filtered.union(*(b for b, found in zip(binds, filters, strict=True) if found))
    loose = set(range(len(taken)))
    while fresh := {i for i in loose if binds[i] & tied}:
        loose -= fresh
        tied = tied.union(*(binds[i] for i in fresh))
    looked_up = frozenset(query.clauses.needed).intersection(frozenset().union(*(binds[i] for i in loose)))
    # The last step's values are in no run that waits, so they alone are not worth a lookup.
    if not looked_up & frozenset().union(*binds[:-1]):
        return None
    shown = looked_up | filtered if decides else looked_up
    read = [shown | frozenset().union(*(b for j, b in enumerate(binds) if j != i)) for i in range(len(taken))]
    return Lookups(
        looked_up,
        tuple((c, tuple(sorted(binds[i] & read[i])) if i in loose else ()) for i, c in enumerate(taken)),
        decides and any(filters),
    )
