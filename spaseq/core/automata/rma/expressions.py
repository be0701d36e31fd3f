"""Expressions: core CEPL with n-ary formulas ([RMA] §3), and regular expressions with explicit registers.

======================================  =====================================================================
node                                    in the paper
======================================  =====================================================================
`RelationAs` (made by `event`)          `R AS x`
`Where`                                 `φ FILTER f(x, y, …)`
`Either`                                `φ OR φ`
`Then`                                  `φ ; φ`; with `adjacent` nothing may lie between the two
`Plus`                                  `φ⁺`; with `adjacent` nothing may lie between two rounds
`Within`                                `φ WINDOW w` (Definition 6.4), only around a whole expression
`Read`                                  an event under a condition on registers, written to `writes`: `θ ↓ r`
`Maybe`                                 `φ` or nothing, so that `Maybe(Plus(φ))` is the Kleene star
======================================  =====================================================================

The last two and `adjacent` go beyond core CEPL. With them, `Then`, `Either` and `Plus` are the regular operators, and
an automaton with given registers can be written as an expression. `check_bounded` tests that finitely many registers
are enough for the variables (Definition 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.formulas import Formula
from spaseq.core.errors import OptionError, QuerySemanticsError


@dataclass(frozen=True, slots=True)
class Expression:
    """Base of all nodes."""


@dataclass(frozen=True, slots=True)
class RelationAs(Expression):
    """An event that satisfies `condition` (a formula over `CURRENT`); all of `variables` take it."""

    condition: Formula
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Where(Expression):
    """`child FILTER condition`; the arguments of the condition are variables."""

    child: Expression
    condition: Formula


@dataclass(frozen=True, slots=True)
class Either(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Then(Expression):
    left: Expression
    right: Expression
    adjacent: bool = False


@dataclass(frozen=True, slots=True)
class Plus(Expression):
    child: Expression
    adjacent: bool = False


@dataclass(frozen=True, slots=True)
class Within(Expression):
    """Matches M of `child` with max(M) - min(M) < `size`."""

    child: Expression
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise OptionError(f"a window of {self.size} events", "WINDOW w needs w > 0")


@dataclass(frozen=True, slots=True)
class Read(Expression):
    """One event under `condition`, a formula of `CURRENT` and registers; it is written to the registers `writes`."""

    condition: Formula
    writes: frozenset[str] = frozenset()
    marks: bool = True


@dataclass(frozen=True, slots=True)
class Maybe(Expression):
    """`child` or nothing. If events may lie before `child`, they may also lie before nothing."""

    child: Expression


def event(relation: str, variable: str, *, attribute: str = "type") -> RelationAs:
    """`relation AS variable`: an event whose `attribute` is `relation`."""
    return RelationAs(f.Test(f.Is(attribute, "=", relation), (f.CURRENT,)), frozenset({variable}))


def read(relation: str | None = None, *, writes: str = "", where: Formula = f.TRUE, marks: bool = True) -> Read:
    """An event of type `relation` (of any type, if None) that satisfies `where`, written to the register `writes` (to
    none, if "")."""
    kind = f.TRUE if relation is None else f.Test(f.Is("type", "=", relation), (f.CURRENT,))
    return Read(f.conjunction(kind, where), frozenset({writes} if writes else ()), marks)


def variables(expression: Expression) -> frozenset[str]:
    """All variables defined in an expression: var(φ)."""
    match expression:
        case RelationAs(_, names):
            return names
        case Read():
            return frozenset()
        case Where(child, _) | Plus(child, _) | Within(child, _) | Maybe(child):
            return variables(child)
        case Either(left, right) | Then(left, right, _):
            return variables(left) | variables(right)
        case _:
            assert_never(expression)  # type: ignore[arg-type]


def bound_names(expression: Expression) -> frozenset[str]:
    """The variables that take exactly one event in every match of an expression: bound(φ)."""
    match expression:
        case RelationAs(_, names):
            return names
        case Read() | Plus() | Maybe():
            return frozenset()
        case Where(child, _) | Within(child, _):
            return bound_names(child)
        case Either(left, right):
            return bound_names(left) & bound_names(right)
        case Then(left, right, _):
            return bound_names(left) | bound_names(right)
        case _:
            assert_never(expression)  # type: ignore[arg-type]


def why_unbounded(expression: Expression) -> str | None:
    """Why an expression is not bounded (Definition 3.2), as a sentence; None if it is."""
    match expression:
        case RelationAs() | Read():
            return None
        case Where(child, condition):
            return why_unbounded(child) or _why_open(child, condition)
        case Plus(child, _) | Maybe(child):
            return why_unbounded(child)
        case Within(child, _):
            return why_unbounded(child)
        case Either(left, right):
            return why_unbounded(left) or why_unbounded(right)
        case Then(left, right, _):
            shared = sorted(variables(left) & variables(right))
            if shared:
                return f"{_list(shared)} defined on both sides of ; in {show_expression(expression)}"
            return why_unbounded(left) or why_unbounded(right)
        case _:
            assert_never(expression)  # type: ignore[arg-type]


def _why_open(child: Expression, condition: Formula) -> str | None:
    open_names = sorted(set(f.arguments(condition)) - bound_names(child))
    if not open_names:
        return None
    inside = [v for v in open_names if v in variables(child)]
    where = f"{f.show(condition)}, a condition on {show_expression(child)}"
    if inside:
        return (f"{_list(inside)} may have no event or several there, under an iteration or in one alternative only: "
                f"{where}")  # fmt: skip
    return f"{_list(open_names)} used but not defined in what the condition stands on: {where}"


def _list(names: list[str]) -> str:
    return ("variable " if len(names) == 1 else "variables ") + ", ".join(names)


def check_bounded(expression: Expression) -> None:
    """Raises `QuerySemanticsError`, with the part and the reason, unless the expression is bounded."""
    why = why_unbounded(expression)
    if why is not None:
        raise QuerySemanticsError(
            f"not a bounded expression: {why}",
            source=show_expression(expression),
            hint="finitely many registers are enough only where a condition stands on the part that defines all of its "
            "variables, outside the iterations in it, and parts of a sequence share none ([RMA] Definition 3.2)",
        )


def without_window(expression: Expression) -> tuple[Expression, int | None]:
    """The expression inside the window around it, and the size of the window, or None. `QuerySemanticsError` for a
    window anywhere else."""
    inner, size = (expression.child, expression.size) if isinstance(expression, Within) else (expression, None)
    if _has_window(inner):
        raise QuerySemanticsError("WINDOW inside an expression", source=show_expression(expression),
                                  hint="put it around the whole expression")  # fmt: skip
    return inner, size


def _has_window(expression: Expression) -> bool:
    match expression:
        case Within():
            return True
        case RelationAs() | Read():
            return False
        case Where(child, _) | Plus(child, _) | Maybe(child):
            return _has_window(child)
        case Either(left, right) | Then(left, right, _):
            return _has_window(left) or _has_window(right)
        case _:
            assert_never(expression)  # type: ignore[arg-type]


def keep_variables(expression: Expression, kept: frozenset[str]) -> Expression:
    """The expression without the variables that are not in `kept`; its conditions are not changed."""
    match expression:
        case RelationAs(_, names):
            return replace(expression, variables=names & kept)
        case Read():
            return expression
        case Where(child, _) | Plus(child, _) | Within(child, _) | Maybe(child):
            return replace(expression, child=keep_variables(child, kept))
        case Either(left, right) | Then(left, right, _):
            return replace(expression, left=keep_variables(left, kept), right=keep_variables(right, kept))
        case _:
            assert_never(expression)  # type: ignore[arg-type]


def show_expression(expression: Expression) -> str:
    """The expression as the paper writes it."""
    match expression:
        case RelationAs(condition, names):
            return f"({_condition(condition)}{''.join(f' AS {name}' for name in sorted(names))})"
        case Read(condition, writes, marks):
            arrow = "".join(f" ↓ {r}" for r in sorted(writes))
            return f"({f.show(condition)}{arrow}{'' if marks else ' unmarked'})"
        case Where(child, condition):
            return f"({show_expression(child)} FILTER {f.show(condition)})"
        case Either(left, right):
            return f"({show_expression(left)} OR {show_expression(right)})"
        case Then(left, right, adjacent):
            return f"({show_expression(left)} {':' if adjacent else ';'} {show_expression(right)})"
        case Plus(child, adjacent):
            return f"{show_expression(child)}{':' if adjacent else ''}+"
        case Within(child, size):
            return f"{show_expression(child)} WINDOW {size}"
        case Maybe(child):
            return f"{show_expression(child)}?"
        case _:
            assert_never(expression)  # type: ignore[arg-type]


def _condition(condition: Formula) -> str:
    match condition:
        case f.Test(f.Is("type", "=", value), _):
            return str(value)
    return f.show(condition)
