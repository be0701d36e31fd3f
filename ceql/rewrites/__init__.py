"""Rewrites of formulas: functions from syntax tree to syntax tree, one a file, that change no answer.

======================  ====================================================================  ==================
`fold_constants`        `x.v > 1 + 2` is `x.v > 3`                                            compiled with
`count_rounds`          `F+ FILTER COUNT(F) >= 3` is `F{3,}`                                  compiled with
`pop_filters`           a condition on one variable of a wider scope moves out to it          compiled with
`remove_unsatisfiable`  branches that no stream matches are left out                          compiled with
`silent_choices`        `A ; (NOT B FOR 5 SECONDS OR C)`: each side has an A of its own       compiled with
`lp_normal_form`        [CEL] Theorem 2: conditions on one variable at their events       offered
`safe_form`             [CEL] Theorem 1: no variable on both sides of a sequence          offered
======================  ====================================================================  ==================

"Compiled with" rewrites are applied to every query; "offered" ones are functions for the user. The automaton needs
neither normal form. A condition on one variable becomes a predicate of the transitions that mark the variable, which is
LP normal form by construction. A variable that is bound on both sides of a sequence holds the events of both.
`pop_filters` may copy parts of the formula. This pays, because the conditions it moves would otherwise need registers.

Other modules:

* `timed_out`: The steps at which a partial match times out, each as a query of its own.
* `never`: The condition that no event satisfies, which CEQL has no literal for.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from ceql.rewrites.count_rounds import count_rounds
from ceql.rewrites.fold_constants import fold_constants
from ceql.rewrites.lp_normal_form import lp_normal_form
from ceql.rewrites.never import NEVER
from ceql.rewrites.pop_filters import pop_filters
from ceql.rewrites.remove_unsatisfiable import Removed, remove_unsatisfiable
from ceql.rewrites.safe_form import safe_form, unsafe_variables
from ceql.rewrites.silent_choices import with_silent_choices
from ceql.semantics.check import event_types
from ceql.semantics.scopes import defined_names, is_deeper
from ceql.syntax import ast
from spaseq.core.errors import Span

__all__ = [
    "DEPTH",
    "Removed",
    "Rewritten",
    "count_rounds",
    "fold_constants",
    "lp_normal_form",
    "pop_filters",
    "remove_unsatisfiable",
    "rewrite",
    "safe_form",
    "unsafe_variables",
]


DEPTH: Final = 200
"""The depth to which a formula may be nested for the rewrites, which are recursive; a deeper one is compiled as
written."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A query after the rewrites that it is compiled with.

    It has the parts that were removed because no event matches them, and a flag: true if they are the whole formula.
    `unsafe` has the variables that a sequence binds on both sides, with the place of the second binding.
    """

    query: ast.Query
    removed: tuple[Removed, ...] = ()
    unsatisfiable: bool = False
    unsafe: tuple[tuple[str, Span], ...] = ()


def rewrite(query: ast.Query, limit: int, events: int = 0) -> Rewritten:
    """Applies the rewrites that a query is compiled with. `limit`: how many nodes its formula may grow to. `events`:
    how many events it may take, repetitions written out, for conditions on COUNT to become repetitions.

    Constants are folded first, because contradictions are found between constants. Conditions are moved out before
    branches are removed, because only in its own scope does a condition meet the others on its variable. If nothing is
    left of a query it is compiled as written: it runs and reports nothing. LIMIT 0 becomes a condition that no event
    satisfies, so it means the same to every evaluator.
    """
    where = with_silent_choices(query.where, limit)
    query = query if where is query.where else dataclasses.replace(query, where=where)
    if query.limit is not None and query.limit.count == 0:
        return Rewritten(_without_matches(query), unsatisfiable=True)
    if is_deeper(query.where, DEPTH):
        return Rewritten(query)
    unsafe = unsafe_variables(query.where)
    folded = count_rounds(fold_constants(query.where), events)
    left, removed = remove_unsatisfiable(pop_filters(folded, limit))
    if removed and left is not None:
        removed = _missing(removed, folded, left)
    if left is None:
        return Rewritten(query, removed, True, unsafe)
    if left is query.where:
        return Rewritten(query, unsafe=unsafe)
    selection = query.selection
    if selection.items is not None:
        kept = defined_names(left)
        selection = dataclasses.replace(selection, items=tuple(i for i in selection.items if i.variable in kept))
    return Rewritten(dataclasses.replace(query, where=left, selection=selection), removed, False, unsafe)


def _missing(removed: tuple[Removed, ...], folded: ast.Formula, left: ast.Formula) -> tuple[Removed, ...]:
    """The removed parts that the query as written has. `pop_filters` makes copies of a part for alternatives: if every
    event type has a copy left, only those count that contradict themselves before."""
    if not {atom.span for atom in event_types(folded)} <= {atom.span for atom in event_types(left)}:
        return removed
    written = {part.span for part in remove_unsatisfiable(folded)[1]}
    return tuple(part for part in removed if part.span in written)


def _without_matches(query: ast.Query) -> ast.Query:
    """The query with a condition on all events of a match that none satisfies, in place of its LIMIT."""
    every = ast.Name("#every")
    where = ast.Filter(ast.As(query.where, every), ast.Holds(every, NEVER))
    return dataclasses.replace(query, where=where, limit=None)
