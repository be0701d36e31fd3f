"""An evaluation of a program, by the evaluator that its settings name (`Settings.evaluator`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from spaseq.core.engine.program.lazy_plan import LazyPlan
from spaseq.core.engine.program.program import Program

if TYPE_CHECKING:
    from spaseq.core.engine.choice.auto import AutoEvaluator
    from spaseq.core.engine.lazy.evaluator import LazyEvaluator
    from spaseq.core.engine.repeating import Repeating
    from spaseq.core.engine.runs.evaluator import Evaluator

    AnyEvaluator: TypeAlias = Evaluator | LazyEvaluator | AutoEvaluator | Repeating


def open_evaluator(program: Program, state: dict[str, Any] | None = None) -> AnyEvaluator:
    """An evaluation of `program` from its first event on, or with the `state` of a snapshot, of the same program and
    evaluator, from there."""
    if program.around.repeated is None:
        return _open(program, state)
    from spaseq.core.engine.repeating import Repeating

    repeating = Repeating(program, _open(program, None if state is None else state["inner"]))
    if state is not None:
        repeating.restore(state)
    return repeating


def _open(program: Program, state: dict[str, Any] | None) -> AnyEvaluator:
    """The evaluation of the matches, before those are reported again."""
    plan: Any = program.lazy
    if program.choosable is not None:
        return _open_chosen(program, state)
    if not isinstance(plan, LazyPlan):
        from spaseq.core.engine.runs.evaluator import Evaluator

        return Evaluator(program) if state is None else Evaluator.restore(program, state)
    from spaseq.core.engine.lazy.evaluator import LazyEvaluator

    if state is not None:
        return LazyEvaluator.restore(program, plan, state)
    return LazyEvaluator(program, plan, tree=program.evaluator == "tree")


def _open_chosen(program: Program, state: dict[str, Any] | None) -> AnyEvaluator:
    """The choice of an evaluator while the stream runs. If the settings name none, it is for events that are compared
    with all runs, or for a snapshot of such a choice."""
    from spaseq.core.engine.choice.auto import AutoEvaluator
    from spaseq.core.engine.runs.evaluator import Evaluator

    if state is not None:
        return (AutoEvaluator if "current" in state else Evaluator).restore(program, state)
    evaluator = Evaluator(program)
    asked = program.settings.evaluator is not None
    return AutoEvaluator(program, evaluator) if asked or evaluator.compares_all() else evaluator


def explain_evaluator(evaluator: AnyEvaluator) -> str:
    """The evaluator, the reason for its choice, and the counters so far."""
    if evaluator.program.around.repeated is not None:
        return explain_evaluator(evaluator.inner)  # type: ignore[union-attr]
    explain = getattr(evaluator, "explain", None)
    if explain is not None:
        return str(explain())
    program = evaluator.program
    why = f" ({program.why})" if program.why else ""
    counts = [f"  {key}: {value:,}" for key, value in evaluator.statistics.items()]
    return "\n".join([f"evaluator: {program.evaluator}{why}", *counts])
