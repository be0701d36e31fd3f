"""Conditions that read events before the one at hand: `b.price < PREV(b.price)`, `c.price > b[0].price`.

Such a condition is tested at the events of one variable, those of the FILTER's formula. These get a fresh name. The
condition is placed around the whole formula of the query, because a variable may have taken the event before in any
part of it. `spaseq.core.pattern.push_filters` then moves it to the smallest part with all events that it reads.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ceql.guards.guard import Guard
from ceql.semantics.rounds import as_earlier
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, attributes_of, parts, replace
from spaseq.core.pattern import As, Correlate, Filter, Optional, Or, Pattern, Project, Sequence, variables


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a condition is not run, and a hint."""

    problem: str
    hint: str = ""


def tested_at(condition: ast.Condition) -> str | Refusal:
    """The variable at whose events a condition that reads earlier events is tested: the one that it names otherwise; if
    there is none, the one whose earlier events it reads."""
    if any(True for _ in aggregates_of(condition)):
        hint = "conditions of their own, joined with AND, may have one each"
        return Refusal("a condition with PREV and an aggregate", hint)
    earlier = _earlier(condition)
    named = sorted({a.variable or "" for a in attributes_of(replace(condition, _without_earlier))})
    if len(named) == 1 or (not named and len(earlier) == 1):
        return (named or sorted(earlier))[0]
    if not named:
        return Refusal(
            f"a condition on earlier events of {' and '.join(sorted(earlier))}, and on no event at hand",
            "name the event: c.price > PREV(b.price) is tested at each c",
        )
    anchor = next((name for name in named if name in earlier), named[-1])
    others = " and ".join(f"PREV({name}.price)" for name in named if name != anchor)
    return Refusal(
        f"one condition on events of {' and '.join(named)}, with PREV",
        f"it is tested at the events of one variable: name {anchor}, and by {others} the last event before",
    )


def at_events(condition: ast.Condition, anchor: str, mark: str) -> Guard:
    """The guard that tests the condition at the events that `mark` takes, which are of the variable `anchor`."""

    def change(node: ast.Expression) -> ast.Expression | None:
        match node:
            case ast.Earlier():
                return node
            case ast.Attribute(_, variable) if variable == anchor:
                return dataclasses.replace(node, variable=mark)
        return None

    return Guard(replace(condition, change), frozenset((mark, *_earlier(condition))))


def decided_in_order(condition: ast.Condition, pattern: Pattern) -> ast.Condition:
    """The condition on events of one variable, with FIRST and LAST of others as earlier events. The same object if that
    does not mean the same in a formula of this pattern, because events of the others may come later."""
    found = as_earlier(condition)
    if found is condition:
        return condition
    named = {a.variable or "" for a in attributes_of(replace(found, _without_earlier))}
    return found if len(named) == 1 and all(_precedes(pattern, v, *named) for v in _earlier(found)) else condition


def _earlier(condition: ast.Condition) -> frozenset[str]:
    """The variables whose earlier events a condition reads."""
    return frozenset(part.attribute.variable or "" for part in parts(condition) if isinstance(part, ast.Earlier))


def _without_earlier(node: ast.Expression) -> ast.Expression | None:
    return ast.Number(0) if isinstance(node, ast.Earlier) else None


def _precedes(node: Pattern, first: str, then: str) -> bool:
    """True if in every match of a pattern each event of variable `first` lies before each of `then`."""
    bound = variables(node)
    if first not in bound or then not in bound:
        return True
    match node:
        case Sequence(left, right):
            across = then in variables(left) and first in variables(right)
            return not across and _precedes(left, first, then) and _precedes(right, first, then)
        case Or(left, right):
            return _precedes(left, first, then) and _precedes(right, first, then)
        case As(child, name):
            return name not in (first, then) and _precedes(child, first, then)
        case Filter(child) | Correlate(child) | Project(child) | Optional(child):
            return _precedes(child, first, then)
    return False
