"""The meaning of a `Choice` for the kernels."""

from __future__ import annotations

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL
from spaseq.core.automata.preference import has_places
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.settings import After, AfterMatch, Choice, Consume, Selection
from spaseq.core.tecs.kernels import layout as k

CONSUME = {
    Consume.NONE: k.CONSUME_NONE,
    Consume.ANY: k.CONSUME_ANY,
    Consume.PARTITION: k.CONSUME_PARTITION,
    Consume.ONCE: k.CONSUME_ONCE,
}
AFTER = {
    After.PAST_LAST: k.AFTER_PAST_LAST,
    After.TO_NEXT: k.AFTER_TO_NEXT,
    After.TO_FIRST: k.AFTER_TO_FIRST,
    After.TO_LAST: k.AFTER_TO_LAST,
    After.ONCE: k.AFTER_ONCE,
}


def after_rule(program: Program) -> AfterMatch | None:
    """The rule that the kernels apply to the matches of each event; None if there is none, or if selection and
    consumption say all of it (`program.simplify`)."""
    choice = program.choice
    return choice.after if choice.consume is Consume.NONE else None


def kernel_order(program: Program) -> int:
    """The runs that a cell keeps: all in the compact structure, the frontiers of NEXT or LAST, or the latest start. All
    of them if matches wait as roots, or if nodes are written in their place. Under a rule for what a match discards,
    the best run of each start if that is enough."""
    if program.writes_nodes:
        return k.AS_NODES
    if program.keeps_roots:
        return k.KEEP_OPEN
    rule = after_rule(program)
    if rule is not None:
        return k.BEST_OF_START if discards_own_start(program.cea, rule) else k.KEEP_ALL
    match program.choice.selection:
        case Selection.ALL | Selection.ANY | Selection.MAX:
            return k.KEEP_ALL
        case Selection.NEXT:
            return k.BEST_EARLIEST if all(t.marks for t in program.cea.transitions[INITIAL]) else k.BEST_NEXT
        case Selection.LAST:
            return k.BEST_LAST
        case Selection.LARGEST:
            return k.EARLIEST
        case Selection.ENDS:
            return k.ENDS


def prefers_places(program: Program) -> bool:
    """True if the runs of NEXT or LAST are kept by places, in lists (`spaseq.core.automata.preference`), instead of in
    frontiers."""
    chooses = program.choice.selection in (Selection.NEXT, Selection.LAST) and after_rule(program) is None
    return chooses and has_places(program.cea)


def discards_own_start(cea: CEA, rule: AfterMatch) -> bool:
    """True if every match discards all others that began where it did. TO FIRST x and TO LAST x do so if x takes an
    event in every match, and not the first one. O(transitions)."""
    if not rule.on_variable:
        return True
    labels = cea.labels or ((),)
    taking = [[t.marks and rule.variable in labels[t.label] for t in out] for out in cea.transitions]
    if any(taking[INITIAL]):
        return False
    reached, todo = {INITIAL}, [INITIAL]
    while todo:  # the states of runs in which the variable has taken nothing
        state = todo.pop()
        for t, takes in zip(cea.transitions[state], taking[state], strict=True):
            if takes or t.target in reached:
                continue
            if t.target == ACCEPT:
                return False
            reached.add(t.target)
            todo.append(t.target)
    return True


def kernel_limit(choice: Choice) -> int:
    """At most so many matches per event; 0 for no limit. ANY reports one: the one with the most recent start."""
    if choice.selection is Selection.LARGEST:  # there is only one
        return 0
    limits = [n for n in (choice.limit, 1 if choice.selection is Selection.ANY else None) if n is not None]
    return min(limits, default=0)
