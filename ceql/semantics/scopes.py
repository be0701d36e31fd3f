"""The variables that a formula defines, the scope in which a condition finds its variables, and copies of a formula
with parts changed.

A condition of a FILTER may name variables that its own formula does not define. They are then those of the smallest
surrounding formula that defines all of them, its *scope* ([CEL] §5.1). The scope of a condition inside a NOT between
two parts is the part before it. `rebuild` visits conditions with their scopes, and replaces or removes parts of a
formula.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from ceql.semantics.filters import All, Any, Leaf, Test, as_test, as_written
from ceql.syntax import ast
from ceql.syntax.walk import reads_earlier
from spaseq.core.pattern import Skip
from spaseq.core.trees import children, fold, mapped, walk, with_children

Scopes = tuple[ast.Formula, ...]
"""The formulas around a condition, from the innermost outwards, whose variables it may name."""

Change = Callable[[Leaf, ast.Formula, Scopes], ast.Condition | None]
"""A function that replaces conditions: from a single condition, the formula that it filters and the formulas around, to
the new condition; None removes it."""


def keep(leaf: Leaf, child: ast.Formula, scopes: Scopes) -> ast.Condition | None:
    """The condition unchanged: a `Change`."""
    return leaf.condition


def defined_names(node: ast.Formula) -> frozenset[str]:
    """The variables that a formula defines: those of AS, and event types; none of those under a NOT."""
    return fold(node, _defined_names)


def takers(node: ast.Formula) -> Counter[str]:
    """For each variable that a formula defines, the number of places where it does."""

    def count(part: ast.Formula, below: list[Counter[str]]) -> Counter[str]:
        found = Counter[str]() if isinstance(part, ast.Without) else sum(below, Counter[str]())
        if isinstance(part, ast.EventType | ast.As):
            found.update(_defined_names(part, [frozenset()]))
        return found

    return fold(node, count)


def _defined_names(node: ast.Formula, below: list[frozenset[str]]) -> frozenset[str]:
    match node:
        case ast.EventType(name, stream):
            return frozenset((name,) if stream is None else (name, f"{stream.text}>{name}"))
        case ast.As(_, variable):
            return below[0] | {variable.text}
        case ast.Without():
            return frozenset()
    return frozenset[str]().union(*below)


def size(node: ast.Formula) -> int:
    """The number of nodes of a formula, without its conditions."""
    return sum(1 for _ in walk(node))


def taking(node: ast.Formula) -> tuple[ast.Formula, ...]:
    """The children of a formula that take events: all but a NOT that says what must not come, and what ends a
    repetition."""
    match node:
        case ast.Sequence(ast.Sequence(left, ast.Without()), right) if is_between(node):
            return left, right
        case ast.Sequence(_, _, Skip.ANY | Skip.NEXT) | ast.Conjunction():
            return tuple(part for part in children(node) if not isinstance(part, ast.Without))
        case ast.Repeat(child):
            return (child,)
    return children(node)


def absences(node: ast.Formula) -> tuple[ast.Without, ...]:
    """The NOTs among the children of a formula that say what must not come; any other is one event."""
    if isinstance(node, ast.Conjunction) or (isinstance(node, ast.Sequence) and node.skip is not Skip.NONE):
        return tuple(part for part in children(cast(ast.Formula, node)) if isinstance(part, ast.Without))
    return ()


def is_between(node: ast.Sequence) -> bool:
    """True for `left ; NOT … ; right` and `left -> NOT … -> right`, with parts that take events on both sides."""
    match node:
        case ast.Sequence(ast.Sequence(left, ast.Without(), before), right, after):
            alone = isinstance(left, ast.Without) or isinstance(right, ast.Without)
            return before is after is not Skip.NONE and not alone
    return False


def as_one_event(node: ast.Formula) -> ast.Formula:
    """A formula that takes the place of one around it: a NOT, which is one event there, as `(NOT φ){1}`. Beside a `;`
    it would say what must not come."""
    return ast.Repeat(node, 1, 1, span=node.span) if isinstance(node, ast.Without) else node


def is_deeper(node: ast.Formula, limit: int) -> bool:
    """True if a formula is nested more than `limit` deep. Not recursive, so that any depth can be tested."""
    level = [node]
    for _ in range(limit):
        level = [part for parent in level for part in children(parent)]
        if not level:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Bordered:
    """A query's formula between the NOTs in front of it and behind it."""

    formula: ast.Formula
    before: tuple[ast.Without, ...] = ()
    behind: ast.Without | None = None

    def around(self, formula: ast.Formula) -> ast.Formula:
        """`formula` between the same NOTs."""
        formula = as_one_event(formula)
        for absent in reversed(self.before):
            formula = ast.Sequence(absent, formula, Skip.ANY, span=absent.span.to(formula.span))
        if self.behind is None:
            return formula
        return ast.Sequence(formula, self.behind, Skip.ANY, span=formula.span.to(self.behind.span))


def without_border(node: ast.Formula) -> Bordered:
    """A query's formula without the NOTs at its start and its end. A FILTER or AS around the whole applies to the
    formula without them."""
    match node:
        case ast.Sequence(left, ast.Without() as ending, Skip.ANY | Skip.NEXT) if not isinstance(left, ast.Without):
            formula, before = _without_beginning(left)
            return Bordered(formula, before, ending)
        case ast.Filter(child, _) | ast.As(child, _):
            found = without_border(child)
            if found.before or found.behind is not None:
                return dataclasses.replace(found, formula=dataclasses.replace(node, child=found.formula))
            return Bordered(node)
    return Bordered(*_without_beginning(node))


def _without_beginning(node: ast.Formula) -> tuple[ast.Formula, tuple[ast.Without, ...]]:
    match node:
        case ast.Sequence(ast.Without() as absent, right, Skip.ANY | Skip.NEXT) if not isinstance(right, ast.Without):
            rest, more = _without_beginning(right)
            return rest, (absent, *more)
        case ast.Sequence(left):
            rest, found = _without_beginning(left)
            return (dataclasses.replace(node, left=rest), found) if found else (node, ())
        case ast.Filter(child, _) | ast.As(child, _):
            rest, found = _without_beginning(child)
            return (dataclasses.replace(node, child=rest), found) if found else (node, ())
    return node, ()


def scope_of(leaf: Leaf, child: ast.Formula, scopes: Scopes) -> ast.Formula | None:
    """The scope of a condition that filters `child`: the innermost of `child` and `scopes` that defines the variables
    which `child` does not; None if there is none."""
    outside = leaf.variables - defined_names(child)
    return next((scope for scope in (child, *scopes) if outside <= defined_names(scope)), None)


def rebuild(
    node: ast.Formula,
    change: Change = keep,
    scopes: Scopes = (),
    instead: Mapping[int, ast.Formula | None] = MappingProxyType({}),
    tests: Mapping[int, Test] = MappingProxyType({}),
    names: Mapping[int, str] = MappingProxyType({}),
) -> ast.Formula | None:
    """The formula with parts changed; None if nothing is left of it. Unchanged parts stay the same objects.

    `change` replaces or removes each single condition. The mappings are by `id` of the formula's nodes. `instead` has
    the nodes that replace them, None to remove a node and every part that cannot be without it (a sequence without one
    of its sides). `tests` has the new conditions of FILTERs, `names` the new variables of AS.
    """
    if id(node) in instead:
        return instead[id(node)]
    down = functools.partial(rebuild, change=change, instead=instead, tests=tests, names=names)
    around = (node, *scopes)
    match node:
        case ast.As(child, variable):
            inner, name = down(child, scopes=around), names.get(id(node), variable.text)
            new = variable if name == variable.text else dataclasses.replace(variable, text=name)
            return None if inner is None else _with(node, child=inner, variable=new)
        case ast.Filter(child, condition):
            inner = down(child, scopes=around)
            changed = _change(condition, tests.get(id(node)), lambda leaf: change(leaf, child, around))
            if inner is None or changed is None:
                return None if inner is None else as_one_event(inner)
            return _with(node, child=inner, condition=changed)
        case ast.Either(left, right):
            one, two = down(left, scopes=around), down(right, scopes=around)
            if one is not None and two is not None:
                return _with(node, left=one, right=two)
            left_over = two if one is None else one
            return None if left_over is None else as_one_event(left_over)
        case ast.Sequence(ast.Sequence(left, ast.Without(absent)) as both, right) if is_between(node):
            one, two, none = down(left, scopes=around), down(right, scopes=around), down(absent, scopes=(left,))
            if one is None or two is None or none is None:
                return None
            return _with(node, left=_with(both, left=one, right=_with(both.right, child=none)), right=two)
        case ast.Sequence(left, ast.Without(absent) as behind, Skip.ANY | Skip.NEXT):
            one, none = down(left, scopes=around), down(absent, scopes=(left,))
            return None if one is None or none is None else _with(node, left=one, right=_with(behind, child=none))
        case ast.Without():
            return node
    found: list[ast.Formula] = []
    own = {id(part) for part in absences(node)}
    for part in children(node):
        if isinstance(part, ast.Without) and id(part) in own:
            none = down(part.child, scopes=())
            inner = None if none is None else _with(part, child=none)
        else:
            inner = down(part, scopes=around)
        if inner is None:
            return None
        found.append(inner)
    return with_children(node, found)


def without(
    root: ast.Formula, dead: Collection[int], tests: Mapping[int, Test] = MappingProxyType({})
) -> ast.Formula | None:
    """The formula without the parts in `dead` (by `id`), and without conditions on variables that only these define.

    An empty variable satisfies every condition, so what is left keeps its meaning. `tests` as in `rebuild`.
    """
    instead = dict.fromkeys(dead)
    left: dict[int, frozenset[str]] = {}

    def defines(node: ast.Formula) -> frozenset[str]:
        if id(node) not in left:
            new = rebuild(node, instead=instead)
            left[id(node)] = frozenset() if new is None else defined_names(new)
        return left[id(node)]

    def change(leaf: Leaf, child: ast.Formula, scopes: Scopes) -> ast.Condition | None:
        own, scope = defined_names(child), scope_of(leaf, child, scopes)
        if reads_earlier(leaf.condition):  # of events of any part: it goes only if the events that it is about do
            return leaf.condition if leaf.variables & own & defines(child) else None
        if not leaf.variables & own <= defines(child):
            return None
        return leaf.condition if scope is None or leaf.variables - own <= defines(scope) else None

    return rebuild(root, change, instead=instead, tests=tests)


def fresh(node: ast.Formula) -> ast.Formula:
    """An equal formula of new objects, for functions that tell parts apart by `id`."""
    return mapped(node, dataclasses.replace)


def _with(node: ast.Formula, **changes: object) -> ast.Formula:
    """`node` with these fields; the same object if it has them already."""
    if all(getattr(node, name) is value for name, value in changes.items()):
        return node
    return dataclasses.replace(node, **changes)  # type: ignore[arg-type]


def _change(
    condition: ast.Condition, test: Test | None, change: Callable[[Leaf], ast.Condition | None]
) -> ast.Condition | None:
    """The condition of a FILTER, or `test` in its place, with `change` applied to its single conditions; the same
    object if that changes none, None if none is left."""
    found = as_test(condition) if test is None else test
    same = test is None

    def walk(part: Test) -> ast.Condition | None:
        nonlocal same
        match part:
            case All(left, right):
                return joined_by(ast.And, walk(left), walk(right))
            case Any(left, right):
                one, two = walk(left), walk(right)
                return None if one is None or two is None else ast.Or(one, two)
            case Leaf():
                new = change(part)
                same = same and new is part.condition
                return as_written(part) if new is part.condition else new

    changed = walk(found)
    return condition if same else changed


def joined_by(kind: type[ast.And], left: ast.Condition | None, right: ast.Condition | None) -> ast.Condition | None:
    """`left AND right`; if one is None, the other."""
    return right if left is None else left if right is None else kind(left, right)
