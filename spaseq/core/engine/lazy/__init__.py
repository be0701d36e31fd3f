"""Lazy evaluation ([Lazy]): chain and tree automata over an input buffer, as other evaluators of the same programs.

`plan_of` decides if a pattern can be evaluated lazily; a `LazyEvaluator` is one evaluation. It pays if some event of a
pattern is much rarer than others, or if conditions over several events keep the compact structure from sharing runs.
Otherwise the compact structure is better: its work does not grow with the number of partial matches.

The steps: `plan` has the tables for the evaluation of a branch. An `automaton` makes `partial` matches of the events in
`buffers`, whose bookkeeping is in `space`. `rounds` of iterations come last, and `output` makes complex events.
`evaluator` does this for all branches.

Modules:

* `buffers`: The input buffer ([Lazy] §3), in columns, with a list of events for each kind of leaf.
* `partial`: Partial matches in columns: the instances of one state ([Lazy] §2.2), a row each.
* `plan`: A branch with the tables for its evaluation.
* `space`: The input buffer that the instances of all states share, and the selection of its events for partial matches.
* `rounds`: The rounds of iterations, generated once the rest of a match is known ([Lazy] §4.5).
* `automaton`: The automaton of one branch: a chain ([Lazy] §4) or a tree (§7), whose states are sets of taken leaves.
* `output`: Complete partial matches as complex events: intervals and marked positions, each once.
* `evaluator`: Lazy evaluation of a program ([Lazy]): the rare events first, the frequent ones from a buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.core.engine.program.guard_conditions import Conditions, HasConditions, Memory
from spaseq.core.engine.program.lazy_plan import plan_of
from spaseq.core.lazy_names import loader

if TYPE_CHECKING:
    from spaseq.core.engine.lazy.evaluator import LazyEvaluator

__all__ = ["Conditions", "HasConditions", "LazyEvaluator", "Memory", "plan_of"]


__getattr__, __dir__ = loader(__name__, {"spaseq.core.engine.lazy.evaluator": ("LazyEvaluator",)})
