"""Automata: patterns compiled to complex event automata, symbol classes, lazy determinisation.

`compile_pattern` gives a frozen `CEA`. The state that an evaluation learns about it (`Alphabet`, `Cache`) is separate.
The modules that need numba (`alphabet`) are imported by the engine, not here, so that compiling a query stays cheap.
Register match automata, as objects to build, combine and run, are in `rma`, which is imported on first use.

Modules:

* `kernels`: Kernels that number the symbol classes of events; see `alphabet`.
* `alphabet`: Symbol classes: the alphabet that an automaton distinguishes (regex engines call it alphabet compression).
* `cea`: Complex event automata: a pattern compiled to states and transitions ([CORE] §3, [CEL] §6).
* `compile`: Compile a pattern to a complex event automaton ([CORE], proof of Theorem 2; [CEL] Theorem 3).
* `edges`: The valuation automaton of a pattern as it grows: edges, parts and ranks.
* `gaps`: The gap between two parts in which something must not come for a time.
* `tidy`: The last steps of compiling a pattern: selection STRICT, and fewer states and transitions.
* `determinise`: Lazy I/O-determinisation of an automaton without registers ([CORE] §4.4, "on the fly").
* `inclusion`: Inclusion between matches with one end, decided on the automaton: proofs that make a selection cheaper.
* `diagram`: A complex event automaton as DOT, SVG and JSON, perhaps lit by a run.
* `preference`: Lists of places: the deterministic states of NEXT and LAST ([CEL] Theorems 4 and 6, Appendix C.3.2).
* `states`: States of an automaton of any kind: the reachable ones, and those with the same future.
* `families`: Families of sets of states: runs go from one to another and keep the values that transitions compare.
* `rma/`: Register match automata ([RMA]): expressions, constructions, runs.
"""

from __future__ import annotations

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL, Action, Again, Avoid, Leave, Take, Transition, say_action
from spaseq.core.automata.compile import compile_pattern
from spaseq.core.automata.edges import UNSEEN
from spaseq.core.lazy_names import loader

__all__ = [
    "ACCEPT",
    "CEA",
    "INITIAL",
    "UNSEEN",
    "Action",
    "Again",
    "Avoid",
    "Leave",
    "Take",
    "Transition",
    "compile_pattern",
    "say_action",
]


__getattr__, __dir__ = loader(__name__, {"spaseq.core.automata.rma": (None,)})
