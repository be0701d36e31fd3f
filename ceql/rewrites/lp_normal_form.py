"""[CEL] Theorem 2: LP normal form, in which every condition on one variable stands at its events.

First such conditions are moved out to a scope that defines their variable (`pop_filters`, the proof's step 1). Then
they are moved down to the event types that the variable takes (step 2), and become one condition there: `R AS x FILTER
P1(x) AND … AND Pk(x)`.

In [CORE], AS names whole formulas and variables hold sets. So a condition on x goes to every event type under `… AS x`,
as a condition on that type's own variable. Conditions on several variables, and those with aggregates, stay in their
places.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

from ceql.rewrites.pop_filters import borrow, is_defined_here, pop_filters
from ceql.semantics.filters import All, Any, Leaf, Test, as_test, as_written, conjuncts, leaves, owned, write
from ceql.semantics.scopes import absences, defined_names, fresh, is_between, size, without_border
from ceql.syntax import ast
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from spaseq.core.pattern import skips_till_next
from spaseq.core.trees import children, with_children


def lp_normal_form(formula: ast.Formula, limit: int) -> ast.Formula:
    """An equivalent formula in LP normal form, at most exponentially larger (Theorem 2).

    Raises `BudgetExceeded` (`rewrite_size`) if it would have more than `limit` nodes.
    """
    bordered = without_border(formula)
    rest = bordered.formula
    if skips_till_next(rest):
        raise UnsupportedFeature(
            "LP normal form of a formula with ->: it writes an OR of conditions as an OR of formulas, each of which "
            "would take its own next event",
            span=formula.span,
        )
    popped = pop_filters(rest, limit)
    for _, leaf, scope in borrow(popped):
        (variable,) = leaf.variables
        where = f"line {leaf.span.line}, column {leaf.span.column}"
        why = f"the condition on {variable} at {where}, which doubles the formula that defines {variable}"
        raise _too_large(limit, size(popped) + size(scope), why)
    found = _push(popped, _Above(), limit)
    return bordered.around(found)


def _too_large(limit: int, used: int, why: str) -> BudgetExceeded:
    return BudgetExceeded("rewrite_size", limit, used, "nodes", f"this comes of {why}; raise rewrite_size")


@dataclass(frozen=True, slots=True)
class _Above:
    """The conditions that are on their way down. `on`: those on the events of a variable. `every`: those on every event
    of the part, if the variable `name` takes all of them."""

    on: tuple[tuple[str, ast.Condition], ...] = ()
    every: tuple[ast.Condition, ...] = ()
    name: str = ""

    def of(self, names: frozenset[str]) -> tuple[ast.Condition, ...]:
        return tuple(dict.fromkeys(self.every + tuple(c for name, c in self.on if name in names)))

    def under(self, variable: str) -> _Above:
        found = self.of(frozenset((variable,)))
        return dataclasses.replace(self, every=found, name=variable if found else self.name)


def _push(node: ast.Formula, above: _Above, limit: int) -> ast.Formula:
    down = functools.partial(_push, above=above, limit=limit)
    match node:
        case ast.EventType(name, _):
            return _filter(node, name, above.of(defined_names(node)))
        case ast.Without():
            conditions = above.every
            return _filter(ast.As(node, ast.Name(above.name)), above.name, conditions) if conditions else node
        case ast.As(ast.EventType() | ast.Without() as atom, variable):
            names = defined_names(atom) | {variable.text}
            return _filter(node, variable.text, above.under(variable.text).of(names))
        case ast.As(child, variable):
            return dataclasses.replace(node, child=_push(child, above.under(variable.text), limit))
        case ast.Filter(child, condition):
            return _pushed(node, child, as_test(condition), above, limit)
        case ast.Sequence(ast.Sequence(left, ast.Without()) as both, right) if is_between(node):
            return dataclasses.replace(node, left=dataclasses.replace(both, left=down(left)), right=down(right))
    absent = {id(part) for part in absences(node)}
    return with_children(node, [part if id(part) in absent else down(part) for part in children(node)])


def _pushed(node: ast.Filter, child: ast.Formula, test: Test, above: _Above, limit: int) -> ast.Formula:
    """`child FILTER test`, with the conditions that can move down moved into `child`."""
    split = _first_or(test, child)
    if split is not None:
        alternatives, rest = split
        halves = [test if rest is None else All(rest, test) for test in (alternatives.left, alternatives.right)]
        if 2 * size(child) > limit:
            raise _too_large(limit, 2 * size(child), f"an OR of conditions at line {node.span.line}")
        left = _pushed(node, child, halves[0], above, limit)
        return ast.Either(left, _pushed(node, fresh(child), halves[1], above, limit))
    staying: Test | None = None
    for part in conjuncts(test):
        if isinstance(part, Leaf) and is_defined_here(part, child):
            (variable,) = part.variables
            above = dataclasses.replace(above, on=(*above.on, (variable, owned(part.condition, None))))
        else:
            staying = part if staying is None else All(staying, part)
    inner = _push(child, above, limit)
    if size(inner) > limit:
        raise _too_large(limit, size(inner), f"the conditions at line {node.span.line}")
    return inner if staying is None else ast.Filter(inner, write(staying), span=node.span)


def _first_or(test: Test, child: ast.Formula) -> tuple[Any, Test | None] | None:
    """The first conjunct that is an OR with a condition on one variable in it, which has to move down; and the other
    conjuncts. None if there is no such OR."""
    parts = conjuncts(test)
    for at, part in enumerate(parts):
        if isinstance(part, Any) and any(is_defined_here(leaf, child) for leaf in leaves(part)):
            rest = parts[:at] + parts[at + 1 :]
            return part, functools.reduce(All, rest) if rest else None
    return None


def _filter(node: ast.Formula, variable: str, conditions: tuple[ast.Condition, ...]) -> ast.Formula:
    """`node FILTER` the conditions, as conditions on `variable`."""
    if not conditions:
        return node
    named = [as_written(Leaf(owned(c, variable), frozenset((variable,)), c.span)) for c in conditions]
    return ast.Filter(node, functools.reduce(ast.And, named), span=node.span)
