"""What of a program lazy evaluation needs: decided once, when the program is compiled."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from spaseq.engine.lazy.conditions import HasConditions
from spaseq.engine.lazy.normal import Branch, normal_form
from spaseq.engine.settings import Choice
from spaseq.errors import UnsupportedFeature
from spaseq.pattern import Pattern

__all__ = ["LazyPlan", "plan_of"]


@dataclass(frozen=True, slots=True)
class LazyPlan:
    """The branches of a pattern. `strict`: selection STRICT; `guarded`: conditions over several events occur."""

    branches: tuple[Branch, ...]
    strict: bool
    guarded: bool


def plan_of(pattern: Pattern, *, strict: bool, choice: Choice, registers: Any) -> LazyPlan:
    """The plan of a pattern. Raises `UnsupportedFeature`, by name, where lazy evaluation cannot give its matches."""
    if choice != Choice():
        named = choice.selection.name if choice.selection is not Choice().selection else "consumption or LIMIT"
        raise UnsupportedFeature(
            f"the lazy evaluators report all matches: not {named}",
            hint="evaluator 'compact' runs every query, and 'auto' chooses it here",
        )
    conditions = registers.conditions() if isinstance(registers, HasConditions) else None

    def kind(guard: Hashable) -> str | None:
        return None if conditions is None else conditions.kind(guard)

    branches = normal_form(pattern, kind)
    return LazyPlan(branches, strict, any(_guarded(b) for b in branches))


def _guarded(branch: Branch) -> bool:
    absent = any(a.test is not None for absence in branch.absences for a in absence.alternatives)
    return bool(branch.tests) or absent or any(_guarded(b) for r in branch.rounds for b in r.branches)
