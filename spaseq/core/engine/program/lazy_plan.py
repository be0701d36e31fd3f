"""The parts of a program that lazy evaluation needs, decided once, when the program is compiled."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from spaseq.core.engine.program.guard_conditions import HasConditions
from spaseq.core.engine.program.normal_form import Branch, normal_form
from spaseq.core.engine.program.settings import After, Choice
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.core.pattern import Pattern


@dataclass(frozen=True, slots=True)
class LazyPlan:
    """The branches of a pattern. `strict`: selection STRICT; `guarded`: conditions over several events occur."""

    branches: tuple[Branch, ...]
    strict: bool
    guarded: bool

    def describe(self) -> str:
        """The leaves of each branch, a line each, as text that is the same in every process."""
        leaves = ((n, leaf) for n, branch in enumerate(self.branches, 1) for leaf in branch.all_leaves())
        return "\n".join(f"branch {n}, event {leaf.number}: {' & '.join(sorted(map(str, leaf.predicates))) or 'any'}"
                         for n, leaf in leaves)  # fmt: skip


def plan_of(pattern: Pattern, *, strict: bool, choice: Choice, registers: Any) -> LazyPlan:
    """The plan of a pattern. Raises `UnsupportedFeature`, with its name, if lazy evaluation cannot give its matches."""
    if choice != Choice():
        named = choice.selection.name if choice.selection is not Choice().selection else "consumption or LIMIT"
        if choice.after is not None:
            named = "SELECT FIRST" if choice.after.rule is After.ONCE else "AFTER MATCH"
        raise UnsupportedFeature(
            f"the lazy evaluators report all matches: not {named}",
            hint="evaluator 'compact' runs every query, and 'auto' chooses it here",
        )
    conditions = registers.conditions() if isinstance(registers, HasConditions) else None

    def kind(guard: Hashable) -> str | None:
        return None if conditions is None else conditions.kind(guard)

    branches = normal_form(pattern, kind)
    return LazyPlan(branches, strict, any(_is_guarded(b) for b in branches))


def planned(
    evaluator: str | None, pattern: Pattern, *, strict: bool, choice: Choice, registers: Any, valuations: bool,
    timed: bool = False, several: bool = False, alone: bool = False,
) -> LazyPlan | str | None:  # fmt: skip
    """The plan for `Settings.evaluator`: None for the compact structure; a plan; or, for "auto", the reason why there
    is none. `timed`: `Around.is_timed`; `several`: alternatives differ in what must not come around them. `alone`: True
    if only a lazy evaluator can run the pattern.

    Raises `UnsupportedFeature` if "chain" or "tree" is required and impossible.
    """
    if evaluator not in (None, "auto", "compact", "chain", "tree"):
        raise OptionError(f"no evaluator {evaluator!r}", "auto, compact, chain or tree")
    if evaluator == "compact" or (evaluator is None and not alone):
        return None
    evaluator = evaluator or "auto"
    try:
        if valuations:
            raise UnsupportedFeature(
                "the lazy evaluators report complex events, not valuations",
                hint="evaluator 'compact' does, and 'auto' chooses it here",
            )
        if several:
            raise UnsupportedFeature(
                "the lazy evaluators do not take alternatives that differ in what must not come around them",
                hint="evaluator 'compact' does, and 'auto' chooses it here",
            )
        plan = plan_of(pattern, strict=strict, choice=choice, registers=registers)
        if timed:  # silence since the stream began comes with a choice, which is refused already
            raise UnsupportedFeature(
                "the lazy evaluators do not take NOT … FOR",
                hint="evaluator 'compact' does, and 'auto' chooses it here",
            )
    except UnsupportedFeature as error:
        if evaluator == "auto":
            return error.problem
        raise
    if evaluator == "auto" and not plan.guarded and not alone:
        return "without conditions over several events, runs share the compact structure, which nothing beats"
    return plan


def spare_plan(pattern: Pattern, *, strict: bool, choice: Choice, registers: Any) -> LazyPlan | None:
    """The plan with which an evaluator may be chosen although the settings name none; None if there is none."""
    if not isinstance(registers, HasConditions):
        return None
    try:
        plan = plan_of(pattern, strict=strict, choice=choice, registers=registers)
    except UnsupportedFeature:
        return None
    return plan if plan.guarded else None


def _is_guarded(branch: Branch) -> bool:
    absent = any(a.test is not None for absence in branch.absences for a in absence.alternatives)
    return bool(branch.tests) or absent or any(_is_guarded(b) for r in branch.rounds for b in r.branches)
