"""The engine: runs a compiled pattern over batches of events and gives the matches they complete.

`compile_program` makes a frozen `Program` of a pattern, a `Window` and, for guards over several events, `Registers`; an
`Evaluator` is one evaluation of it. Kernels are loaded when the first evaluator is made, not on import.

Rooms, each of which imports only from those before it:

* `kernels`: Kernels that run an automaton over events; those of its runs are in `spaseq.core.tecs.kernels`.
* `program`: Programs: their parts, their input and their output.
* `runs`: The compact structure's evaluation of a program.
* `lazy`: Lazy evaluation ([Lazy]): chain and tree automata over an input buffer.
* `choice`: Which evaluator suits a stream, and changing it while the stream runs.
* `recognition`: An evaluation in progress, as both languages have it.

`opening` opens the evaluator that a program requires. `repeating` reports matches again, after each silence behind
them, around any evaluator. `progress` has the progress of an evaluation, and `light` shows
it in a picture of the automaton. `node_sums` has aggregates over matches as nodes that these share, `node_best` the
best ones of these matches. `ways` has the way of a match through its automaton, computed when it is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.core.engine.opening import open_evaluator
from spaseq.core.engine.program.around import Around, Marked, Quiet, Repeated, Silent
from spaseq.core.engine.program.matches import CodedRows, MatchBatch
from spaseq.core.engine.program.partitions import Partitions
from spaseq.core.engine.program.program import Program, compile_program, ends_only
from spaseq.core.engine.program.register_ops import Codes
from spaseq.core.engine.program.settings import After, AfterMatch, Choice, Consume, Registers, Selection, Settings
from spaseq.core.engine.program.window import Window
from spaseq.core.engine.progress import Progress, stuck
from spaseq.core.lazy_names import loader
from spaseq.core.pattern import Batch

if TYPE_CHECKING:
    from spaseq.core.engine.runs.coded_automaton import explain_growth
    from spaseq.core.engine.runs.evaluator import Evaluator

__all__ = [
    "After",
    "AfterMatch",
    "Around",
    "Batch",
    "Choice",
    "CodedRows",
    "Codes",
    "Consume",
    "Evaluator",
    "Marked",
    "MatchBatch",
    "Partitions",
    "Program",
    "Progress",
    "Quiet",
    "Registers",
    "Repeated",
    "Selection",
    "Settings",
    "Silent",
    "Window",
    "compile_program",
    "ends_only",
    "explain_growth",
    "open_evaluator",
    "stuck",
]


__getattr__, __dir__ = loader(
    __name__,
    {
        "spaseq.core.engine.runs.coded_automaton": ("explain_growth",),
        "spaseq.core.engine.runs.evaluator": ("Evaluator",),
    },
)
