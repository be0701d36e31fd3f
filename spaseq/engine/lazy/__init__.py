"""Lazy evaluation ([Lazy]): chain and tree automata over an input buffer, as other evaluators of the same programs.

`plan_of` decides whether a pattern can be evaluated lazily; a `LazyEvaluator` is one evaluation. Worth it where some
event of a pattern is much rarer than others, or where conditions over several events keep the compact structure from
sharing runs; else the compact structure is better: its work does not grow with the number of partial matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spaseq.engine.lazy.conditions import Conditions, HasConditions, Memory
from spaseq.engine.lazy.planning import LazyPlan, plan_of

if TYPE_CHECKING:
    from spaseq.engine.lazy.evaluator import LazyEvaluator

__all__ = ["Conditions", "HasConditions", "LazyEvaluator", "LazyPlan", "Memory", "plan_of"]


def __getattr__(name: str) -> Any:
    if name == "LazyEvaluator":
        from spaseq.engine.lazy.evaluator import LazyEvaluator

        return LazyEvaluator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
