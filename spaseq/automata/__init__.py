"""Automata: patterns compiled to complex event automata, symbol classes, lazy determinisation.

`compile_pattern` gives a frozen `CEA`; what a run of it remembers (`Alphabet`, `Cache`) is kept apart. The modules that
need numba (`alphabet`) are imported by the engine, not here, so that compiling a query stays cheap.
"""

from __future__ import annotations

from spaseq.automata.cea import ACCEPT, CEA, INITIAL, Action, Again, Avoid, Leave, Take, Transition
from spaseq.automata.compile import compile_pattern

__all__ = ["ACCEPT", "CEA", "INITIAL", "Action", "Again", "Avoid", "Leave", "Take", "Transition", "compile_pattern"]
