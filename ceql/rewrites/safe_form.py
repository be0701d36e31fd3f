"""[CEL] Theorem 1: every formula has an equivalent safe one, in which no `φ ; ψ` binds a variable on both sides.

In the paper a variable holds one position, so a variable on both sides makes a sequence unsatisfiable, and the proof
removes such branches from a disjunctive normal form. In [CORE], and here, a variable holds a set: `T AS x ; T AS x`
matches, and x holds both events. So the second x gets a new name. A condition on x is repeated for both names, because
it ranges over all choices of a position, and each position of x has one of the two names. Only variables of AS outside
of iterations are renamed (vdef+ in the paper); event types may occur anywhere.

The automaton does not need safe formulas: it marks events with sets of variables. The rewrite is offered for handing
formulas to other engines, and tests compare it with the formula as written.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator

from ceql.semantics.filters import Leaf, as_written
from ceql.semantics.scopes import Scopes, defined_names, rebuild, scope_of, taking, without_border
from ceql.semantics.selection import read_variables
from ceql.syntax import ast
from ceql.syntax.walk import is_plain, reads_earlier, with_variables
from spaseq.core.errors import BudgetExceeded, InternalError, Span, UnsupportedFeature
from spaseq.core.trees import children, fold


def unsafe_variables(formula: ast.Formula) -> tuple[tuple[str, Span], ...]:
    """The variables that a sequence binds on both sides, with the place of the second binding."""
    found: list[tuple[str, Span]] = []

    def again(node: ast.As) -> str:
        found.append((node.variable.text, node.variable.span))
        return node.variable.text

    _bind(without_border(formula).formula, frozenset(), again)
    return tuple(found)


def safe_form(query: ast.Query, limit: int) -> ast.Query:
    """An equivalent query whose formula is safe: further bindings of a variable x are named x_2, x_3 and so on.

    Raises `BudgetExceeded` (`rewrite_size`) if one condition would become more than `limit` conditions: it is repeated
    for every combination of the new names. Raises `UnsupportedFeature` for an aggregate or PREV of a renamed one.
    """
    bordered = without_border(query.where)
    rest = bordered.formula
    taken = set(_names(query))
    renamed: dict[int, str] = {}

    def again(node: ast.As) -> str:
        base = node.variable.text
        name = next(n for n in (f"{base}_{k}" for k in itertools.count(2)) if n not in taken)
        taken.add(name)
        renamed[id(node)] = name
        return name

    _bind(rest, frozenset(), again)
    if not renamed:
        return query
    formula = rebuild(rest, functools.partial(_said_of_all, renamed, limit), names=renamed)
    if formula is None:
        raise InternalError("renaming left nothing of a formula")
    for name in read_variables(query):
        if _call(rest, name, renamed) != (name,):
            raise UnsupportedFeature(
                f"a column of SELECT, or a key of ORDER BY, that reads {name}, bound on both sides of a sequence, "
                "has no safe form"
            )
    items = query.selection.items
    if items is not None:
        items = tuple(
            dataclasses.replace(item, variable=name) for item in items for name in _call(rest, item.variable, renamed)
        )
    return dataclasses.replace(
        query,
        selection=dataclasses.replace(query.selection, items=items),
        where=bordered.around(formula),
    )


def _bind(node: ast.Formula, taken: frozenset[str], again: Callable[[ast.As], str]) -> frozenset[str]:
    """The variables of AS that a formula defines outside of iterations (vdef+), by their new names. `again(node)` gives
    the new name of an AS whose variable is in `taken`."""
    down = functools.partial(_bind, taken=taken, again=again)
    match node:
        case ast.As(child, variable):
            inner = down(child)
            return inner | {again(node) if variable.text in taken else variable.text}
        case ast.Repeat(child):
            _bind(child, frozenset(), again)
            return frozenset()
        case ast.Without():
            return frozenset()
        case ast.Sequence():
            bound = frozenset[str]()
            for part in taking(node):
                bound |= _bind(part, taken | bound, again)
            return bound
    found = frozenset[str]()
    for part in children(node):
        found |= down(part)
    return found


def _call(formula: ast.Formula, variable: str, renamed: dict[int, str]) -> tuple[str, ...]:
    """The names that a variable has in a formula after renaming."""

    def names(node: ast.Formula, below: list[list[str]]) -> list[str]:
        found = [] if isinstance(node, ast.Without) else list(itertools.chain(*below))
        if isinstance(node, ast.As) and node.variable.text == variable:
            found.append(renamed.get(id(node), variable))
        elif isinstance(node, ast.EventType) and variable in defined_names(node):
            found.append(variable)
        return found

    found: list[str] = fold(formula, names)
    return tuple(dict.fromkeys(found))


def _said_of_all(
    renamed: dict[int, str], limit: int, leaf: Leaf, child: ast.Formula, scopes: Scopes
) -> ast.Condition | None:
    """A condition, repeated for every combination of the names that its variables have now, joined by AND."""
    scope = scope_of(leaf, child, scopes) or child
    own = defined_names(child)
    names = {v: _call(child if v in own else scope, v, renamed) or (v,) for v in sorted(leaf.variables)}
    if all(found == (v,) for v, found in names.items()):
        return leaf.condition
    count = math.prod(map(len, names.values()))
    several = ", ".join(f"{v} ({len(found)} names)" for v, found in names.items() if found != (v,))
    if count > limit:
        hint = f"this comes of {several} in the condition at line {leaf.span.line}, column {leaf.span.column}"
        raise BudgetExceeded("rewrite_size", limit, count, "conditions", hint)
    if reads_earlier(leaf.condition) or (count > 1 and not is_plain(leaf.condition)):
        raise UnsupportedFeature(
            f"an aggregate or PREV together with {several}, bound on both sides of a sequence, has no safe form",
            span=leaf.span,
        )
    choices = [dict(zip(names, choice, strict=True)) for choice in itertools.product(*names.values())]
    return functools.reduce(ast.And, [as_written(_rename(leaf, choice)) for choice in choices])


def _rename(leaf: Leaf, names: dict[str, str]) -> Leaf:
    condition = with_variables(leaf.condition, lambda own: None if own is None else names[own])
    return Leaf(condition, frozenset(names.values()), leaf.span)


def _names(query: ast.Query) -> Iterator[str]:
    """Every name of a variable or a type."""
    from ceql.semantics.check import defined_variables

    yield from (name for name, _ in defined_variables(query.where))
