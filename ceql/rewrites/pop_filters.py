"""[CEL] Theorem 2, step 1: a condition on a variable of a wider scope alone moves out to that scope.

In `T AS x ; ((T AS y FILTER x.v >= 40) OR H AS z)` the first branch may be taken only if x.v >= 40, and x is defined
outside of it. In the paper, φ_x with P(x) inside becomes `(φ_x^t FILTER P(x)) OR (φ_x^f FILTER NOT P(x))`: P(x) is
replaced by TRUE in the first and by FALSE in the second. Here the second is φ_x without the part under P(x), and has no
NOT P(x). The reason is that in our semantics P(x) may be neither true nor false (NULL, or several positions of x). A
match of φ_x^f for which P(x) holds is a match of `φ_x^t FILTER P(x)` as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from ceql.semantics.filters import All, Any, Leaf, Test, as_test, as_written, leaves, write
from ceql.semantics.scopes import (
    Scopes,
    as_one_event,
    defined_names,
    fresh,
    rebuild,
    scope_of,
    size,
    taking,
    without,
    without_border,
)
from ceql.syntax import ast
from ceql.syntax.walk import is_plain
from spaseq.core.errors import InternalError
from spaseq.core.pattern import skips_till_next


def pop_filters(formula: ast.Formula, limit: int) -> ast.Formula:
    """The formula with conditions moved out to the scope of their variable, until it would exceed `limit` nodes.

    Each condition may double the part that it moves out of.
    """
    bordered = without_border(formula)
    rest = bordered.formula
    found = rest
    while (place := next(borrow(found), None)) is not None:
        popped = _pop(found, *place)
        if size(popped) > limit:
            break
        found = popped
    if found is rest:
        return formula
    return bordered.around(found)


Place = tuple[ast.Filter, Leaf, ast.Formula]


def borrow(node: ast.Formula, scopes: Scopes = ()) -> Iterator[Place]:
    """(FILTER, condition, scope) for each condition on one variable that only a wider scope defines."""
    around = (node, *scopes)
    match node:
        case ast.Filter(child, condition):
            for leaf in leaves(as_test(condition)):
                scope = scope_of(leaf, child, around)
                if scope is not None and scope is not child and _is_single(leaf) and not skips_till_next(scope):
                    yield node, leaf, scope
            yield from borrow(child, around)
        case ast.Without():
            return
        case _:
            for part in taking(node):
                yield from borrow(part, around)


def _is_single(leaf: Leaf) -> bool:
    return len(leaf.variables) == 1 and is_plain(leaf.condition)


def _pop(root: ast.Formula, node: ast.Filter, leaf: Leaf, scope: ast.Formula) -> ast.Formula:
    """`root` with one condition moved out to `scope`. If the condition is in an OR of its FILTER, that OR is first
    written as an OR of formulas, and nothing is moved yet."""
    together, rest = _split(as_test(node.condition), leaf)
    if together is not None:
        left, right = write(together.left), write(together.right)
        both: ast.Formula = ast.Either(
            ast.Filter(node.child, left), ast.Filter(fresh(node.child), right), span=node.span
        )
        new = both if rest is None else ast.Filter(both, write(rest), span=node.span)
        return _same(rebuild(root, instead={id(node): new}))
    bare: ast.Formula = (
        as_one_event(node.child) if rest is None else ast.Filter(node.child, write(rest), span=node.span)
    )
    under = _same(rebuild(scope, instead={id(node): bare}))
    under = ast.Filter(under, as_written(leaf), span=scope.span)
    other = without(scope, {id(node)})
    new = under if other is None else ast.Either(under, fresh(other), span=scope.span)
    return _same(rebuild(root, instead={id(scope): new}))


def _split(test: Test, leaf: Leaf) -> tuple[Any | None, Test | None]:
    """The conjunct that `leaf` is in, if that is an OR (else None), and the other conjuncts (None if there are
    none)."""
    if isinstance(test, All):
        left = leaf in leaves(test.left)
        found, rest = _split(test.left if left else test.right, leaf)
        other = test.right if left else test.left
        return found, other if rest is None else All(rest, other) if left else All(other, rest)
    return (test if isinstance(test, Any) else None), None


def _same(found: ast.Formula | None) -> ast.Formula:
    if found is None:
        raise InternalError("moving a condition left nothing of a formula")
    return found


def is_defined_here(leaf: Leaf, child: ast.Formula) -> bool:
    """True if a condition on single events is on one variable that its own formula defines, so that it can move down
    to that variable's events."""
    return _is_single(leaf) and leaf.variables <= defined_names(child)
