"""The meaning of a `Choice` for the kernels."""

from __future__ import annotations

from spaseq.core.automata.cea import INITIAL
from spaseq.core.automata.preference import has_places
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.settings import Choice, Consume, Selection
from spaseq.core.tecs.kernels import layout as k

CONSUME = {Consume.NONE: k.CONSUME_NONE, Consume.ANY: k.CONSUME_ANY, Consume.PARTITION: k.CONSUME_PARTITION}


def kernel_order(program: Program) -> int:
    """The runs that a cell keeps: all in the compact structure, the frontiers of NEXT or LAST, or the latest start. All
    of them if matches wait as roots."""
    if program.keeps_roots:
        return k.KEEP_OPEN
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
    return program.choice.selection in (Selection.NEXT, Selection.LAST) and has_places(program.cea)


def kernel_limit(choice: Choice) -> int:
    """At most so many matches per event; 0 for no limit. ANY reports one: the one with the most recent start."""
    if choice.selection is Selection.LARGEST:  # there is only one
        return 0
    limits = [n for n in (choice.limit, 1 if choice.selection is Selection.ANY else None) if n is not None]
    return min(limits, default=0)
