"""The relation of two queries, from what is known of the matches that one of them reports alone."""

from __future__ import annotations

from spaseq.core.containment.result import Relation
from spaseq.core.engine import Choice, Program, Selection

Known = bool | None
"""True if there is such a match on some stream, False if on none; None if that is not known."""


def relation_of(only_old: Known, only_new: Known, both: Known) -> Relation:
    """The relation, by the existence of a match of one query alone, and of a match of both.

    >>> relation_of(False, True, None)
    <Relation.OLD_IN_NEW: 'old contained in new'>
    """
    if only_old is None or only_new is None:
        return Relation.UNDECIDED
    if not (only_old and only_new):
        return {(False, False): Relation.EQUIVALENT, (False, True): Relation.OLD_IN_NEW,
                (True, False): Relation.NEW_IN_OLD}[only_old, only_new]  # fmt: skip
    if both is None:
        return Relation.UNDECIDED
    return Relation.OVERLAPPING if both else Relation.DISJOINT


def reports_all(program: Program) -> bool:
    """True if a program reports every match of its automaton that its window holds."""
    no_choice = program.choice == Choice() and program.chosen is None
    return no_choice and program.around.is_empty and program.against is None


def choose_alike(old: Program, new: Program, same_keys: bool) -> bool:
    """True if two programs report the same whenever their automata and windows have the same matches.

    What is reported is then one function of these matches. ANY and LIMIT may take any of several, so they are none.
    """
    if not same_keys or old.against is not None or new.against is not None or old.around != new.around:
        return False
    if old.around.quiets or old.around.marked:
        return False
    if old.around.decides and old.window != new.window:
        return False
    choices = old.whole_choice, new.whole_choice
    if choices[0].after is not None and choices[0].after.on_variable:
        return False  # it depends on the variables that took the events of matches
    return choices[0] == choices[1] and choices[0].limit is None and choices[0].selection is not Selection.ANY
