"""A choice among matches that costs less than the one asked for and gives the same matches."""

from __future__ import annotations

from dataclasses import replace

from spaseq.core.automata import CEA
from spaseq.core.automata.inclusion import find_largest, has_nested_matches
from spaseq.core.engine.program.settings import Choice, Consume, Selection

_ONE_RUN = (Selection.NEXT, Selection.LAST, Selection.MAX)


def cheaper_choice(cea: CEA, choice: Choice) -> tuple[Choice, str]:
    """The choice by which `cea` is evaluated, and a line for `explain` if it is not the one asked for, else nothing.

    MAX is ALL if no match lies within another one. NEXT, LAST and MAX are all the one match that holds all others, if
    there is always one (`spaseq.core.automata.inclusion`). The proofs take time within their budgets: none is tried for
    other selections.
    """
    if choice.after is not None and choice.consume is Consume.NONE:
        return choice, ""  # the kernels apply a rule to the matches of each event
    if choice.selection is Selection.MAX and not has_nested_matches(cea):
        reason = "no match has the positions of another one and more"
        return replace(choice, selection=Selection.ALL), f"MAX, evaluated as ALL: {reason}"
    if choice.selection not in _ONE_RUN:
        return choice, ""
    largest = find_largest(cea)
    if largest is None or (choice.selection is not Selection.MAX and not largest.single):
        return choice, ""
    name = choice.selection.name
    if largest.single:
        reason = "a run that takes every event that fits loses no match, and the earliest start has the most"
        return replace(choice, selection=Selection.LARGEST), f"{name}, evaluated as one run for each start: {reason}"
    reason = "a run that takes every event that fits loses no match"
    return replace(choice, selection=Selection.NEXT), f"MAX, evaluated as NEXT: {reason}"
