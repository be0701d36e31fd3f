"""Automata: patterns compiled to complex event automata, symbol classes, lazy determinisation.

`compile_pattern` gives a frozen `CEA`; what a run of it remembers (`Alphabet`, `Cache`) is kept apart. The modules that
need numba (`alphabet`) are imported by the engine, not here, so that compiling a query stays cheap. Register match
automata as objects to build, combine and run are in `rma`, loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from spaseq.automata.cea import ACCEPT, CEA, INITIAL, Action, Again, Avoid, Leave, Take, Transition
from spaseq.automata.compile import compile_pattern

__all__ = ["ACCEPT", "CEA", "INITIAL", "Action", "Again", "Avoid", "Leave", "Take", "Transition", "compile_pattern"]


def __getattr__(name: str) -> Any:
    if name == "rma":
        return importlib.import_module("spaseq.automata.rma")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
