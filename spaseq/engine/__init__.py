"""The engine: runs a compiled pattern over batches of events and gives the matches they complete.

`compile_program` makes a frozen `Program` of a pattern, a `Window` and, for guards over several events, `Registers`;
an `Evaluator` is one evaluation of it. Kernels are loaded when the first evaluator is made, not on import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spaseq.engine.matches import MatchBatch
from spaseq.engine.opening import open_evaluator, restore_evaluator
from spaseq.engine.ops import Codes
from spaseq.engine.program import Program, compile_program, ends_only
from spaseq.engine.settings import (
    Batch,
    Choice,
    Consume,
    Registers,
    Selection,
    Settings,
)
from spaseq.engine.window import Window

if TYPE_CHECKING:
    from spaseq.engine.evaluator import Evaluator

__all__ = [
    "Batch",
    "Choice",
    "Codes",
    "Consume",
    "Evaluator",
    "MatchBatch",
    "Program",
    "Registers",
    "Selection",
    "Settings",
    "Window",
    "compile_program",
    "ends_only",
    "open_evaluator",
    "restore_evaluator",
]


def __getattr__(name: str) -> Any:
    if name == "Evaluator":
        from spaseq.engine.evaluator import Evaluator

        return Evaluator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
