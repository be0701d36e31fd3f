"""Conditions over columns, with SPARQL's three truth values (SPARQL 1.1 §17.2).

Truth is int8 (rows,): 1, 0, or -1 for an error. `&&`, `||`, `!` and EXISTS are computed on columns. Comparisons of
numbers, with arithmetic, are computed by a kernel in float64 with a bound on the error, which decides all but near
ties. Everything else is evaluated by rdflib, once for each distinct choice of terms (`spaseq.gpm.evaluate.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, Final

import numpy as np
from rdflib.namespace import XSD
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.plugins.sparql.sparql import Prologue, QueryContext, SPARQLError
from rdflib.term import Identifier, Literal, Variable

from spaseq.gpm import algebra
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.comparison import SIGNS
from spaseq.gpm.evaluate import evaluated, verdict
from spaseq.gpm.reference import Context, evaluating
from spaseq.rdf import plain_literal

__all__ = [
    "ERROR",
    "FALSE",
    "TRUE",
    "Numbers",
    "Ready",
    "Scope",
    "compared",
    "computed",
    "error_of",
    "is_arithmetic",
    "relation",
    "term_numbers",
    "truth",
]

TRUE: Final = 1
FALSE: Final = 0
ERROR: Final = -1
_RELATION: Final = "RelationalExpression "
_ULP: Final = 2.0**-52

Ready = dict[int, tuple[object, Any]]
"""A cache of compiled parts of a pattern, by the part's id. The part itself is kept alive, so that its id is not used
for another object."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What a condition is evaluated on: solution rows, their terms, and the evaluation of patterns inside EXISTS.

    `exists(pattern, table)`: bool (rows,), whether EXISTS of the pattern is true for the row. `ready` caches compiled
    expressions.
    """

    table: Table
    space: Space
    prologue: Prologue
    exists: Callable[[algebra.Node, Table], np.ndarray]
    ready: Ready


def truth(expression: algebra.Expression, scope: Scope) -> np.ndarray:
    """The truth of a condition for each row of the scope's table: int8 (r,)."""
    count = len(scope.table)
    match expression:
        case algebra.Call("TrueFilter"):
            return np.full(count, TRUE, np.int8)
        case algebra.Call("ConditionalAndExpression", arguments):
            return _folded([truth(a, scope) for a in arguments], FALSE)
        case algebra.Call("ConditionalOrExpression", arguments):
            return _folded([truth(a, scope) for a in arguments], TRUE)
        case algebra.Call("UnaryNot", (argument,)):
            inner = truth(argument, scope)
            return np.where(inner == ERROR, inner, 1 - inner).astype(np.int8)
        case algebra.Exists(pattern, negated):
            return (scope.exists(pattern, scope.table) != negated).astype(np.int8)
        case algebra.Call(name, (left, right)) if (sign := relation(name)) is not None:
            return _comparison(sign, left, right, expression, scope)
        case _:
            return _each(expression, scope, np.arange(count))


def _folded(parts: Sequence[np.ndarray], settled: int) -> np.ndarray:
    """`||` (`settled` TRUE) or `&&` (`settled` FALSE): `settled` if one part is, whatever errors others have."""
    stacked = np.stack(parts)
    return np.where(
        (stacked == settled).any(axis=0), settled, np.where((stacked == ERROR).any(axis=0), ERROR, 1 - settled)
    ).astype(np.int8)


# -- comparisons


def relation(name: str) -> str | None:
    """The sign of a comparison, given rdflib's name of the expression; None if it is something else."""
    sign = name.removeprefix(_RELATION)
    return sign if sign in SIGNS else None


def is_arithmetic(expression: algebra.Expression) -> bool:
    """Whether `truth` computes sums or products of numbers, for a comparison in a condition."""
    match expression:
        case algebra.Call("ConditionalAndExpression" | "ConditionalOrExpression" | "UnaryNot", arguments):
            return any(map(is_arithmetic, arguments))
        case algebra.Call(name, (left, right)) if (sign := relation(name)) is not None:
            program = _compiled(sign, left, right)
            return program is not None and program.computes
        case _:
            return False


def error_of(value: float, exact: bool) -> float:
    """How far the true value of a number may be from the nearest double."""
    return 0.0 if exact else abs(value) * _ULP


def _comparison(
    sign: str, left: algebra.Expression, right: algebra.Expression, whole: algebra.Expression, scope: Scope
) -> np.ndarray:
    """The truth of a comparison. A kernel decides the rows in which both sides are numbers and no near tie, or terms
    for which equality is clear; the other rows are evaluated by rdflib for each distinct choice of terms."""
    made = scope.ready.get(id(whole))
    if made is None:
        made = scope.ready[id(whole)] = whole, _compiled(sign, left, right)
    count, program, space = len(scope.table), made[1], scope.space
    if program is None or (program.computes and space.has_floats):
        return _each(whole, scope, np.arange(count))
    columns = [scope.table.column(name) for name in program.names]
    stacked = np.stack(columns) if len(columns) > 1 else columns[0].reshape(1, -1) if columns else _no_columns(count)
    constants = space.constants(program.terms)
    literals = space.literals()
    found = np.empty(count, np.int8)
    left_open = k.compare_rows(
        program.steps, stacked, constants, literals.kind, literals.number, literals.exact, program.sign, found
    )
    if left_open:
        rows = np.flatnonzero(found == k.OPEN)
        found[rows] = _each(whole, scope, rows)
    return found


def _no_columns(count: int) -> np.ndarray:
    return np.zeros((0, count), np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """A comparison of numeric expressions for `kernels.compare_rows`: `steps` in postfix notation, int32 (n, 2), over
    the variables `names` and the constants `terms`. `computes`: whether there is arithmetic in it."""

    steps: np.ndarray
    sign: int
    names: tuple[str, ...]
    terms: tuple[Identifier, ...]
    computes: bool


def _compiled(sign: str, left: algebra.Expression, right: algebra.Expression) -> _Program | None:
    """The comparison as a program; None if a side is not a variable, a constant, or arithmetic on these."""
    names: dict[str, int] = {}
    terms: dict[Identifier, int] = {}
    steps = [_postfix(side, names, terms) for side in (left, right)]
    if steps[0] is None or steps[1] is None:
        return None
    whole = [*steps[0], *steps[1]]
    return _Program(np.array(whole, np.int32), _SIGNS.index(sign), tuple(names), tuple(terms), len(whole) > 2)


def _postfix(
    expression: algebra.Expression, names: dict[str, int], terms: dict[Identifier, int]
) -> list[tuple[int, int]] | None:
    match expression:
        case algebra.Term(value) if isinstance(value, Variable):
            return [(k.VARIABLE, names.setdefault(str(value), len(names)))]
        case algebra.Term(value):
            return [(k.TERM, terms.setdefault(value, len(terms)))]
        case algebra.Call(name, (first, *others)) if name in ("AdditiveExpression", "MultiplicativeExpression"):
            signs = list(dict.get(expression.handle, "op") or ())  # from left to right, as they are written
            steps = _postfix(first, names, terms)
            if len(signs) != len(others):
                return None
            for sign, other in zip(signs, others, strict=True):
                more = _postfix(other, names, terms)
                if steps is None or more is None:
                    return None
                steps = [*steps, *more, (k.OPERATIONS.index(str(sign)), 0)]
            return steps
        case algebra.Call("UnaryMinus", (argument,)):
            steps = _postfix(argument, names, terms)
            return None if steps is None else [*steps, (k.OPERATIONS.index("neg"), 0)]
        case _:
            return None


_SIGNS: Final = ("<", "<=", ">", ">=", "=", "!=")
"""The signs, in the order of their numbers in `kernels.compare_rows`."""


# -- numbers of terms, for joins of several GPMs


def compared(sign: str, a: Numbers, b: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """(whether the numbers decide the comparison, its truth if so): bool (rows,) each. A near tie is not decided."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = (np.abs(a.value - b.value) > a.error + b.error) | (a.exact & b.exact)
        return a.known & b.known & apart, _SIGN[sign](a.value, b.value)


_SIGN: Final[dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Numbers, one for each row: `known`, whether there is one; `value`, float64, and `error`, how far the true value
    may be from it; `exact`: the true value is `value`, and SPARQL's own arithmetic would not round it."""

    value: np.ndarray
    error: np.ndarray
    known: np.ndarray
    exact: np.ndarray


def term_numbers(terms: np.ndarray, space: Space) -> Numbers:
    """The values of terms, given by number; not known for terms that are not numbers and for unbound ones."""
    literals = space.literals()
    value = literals.number[terms]
    known = (terms >= 0) & literals.numeric(terms)
    exact = literals.exact[terms]
    with np.errstate(invalid="ignore"):
        error = np.where(exact, 0.0, np.abs(value) * _ULP)
    return Numbers(value, error, known, exact)


# -- everything else


def _each(expression: algebra.Expression, scope: Scope, rows: np.ndarray) -> np.ndarray:
    """The truth of `expression` at `rows`, evaluated once for each distinct choice of terms."""
    expression, scope = _without_exists(expression, scope)

    def ask(mapping: dict[str, Any], context: QueryContext) -> int:
        try:
            return int(verdict(expression, mapping, context))
        except SPARQLError:
            return ERROR

    return _asked(expression, scope, rows, ask, np.int8)


def computed(expression: algebra.Expression, scope: Scope) -> np.ndarray:
    """The value of an expression for each row, as numbers of terms in the scope's space: int32 (r,), -1 for an
    error."""

    if isinstance(expression, algebra.Term) and isinstance(expression.value, Variable):
        return scope.table.column(str(expression.value))
    if isinstance(expression, algebra.Exists):
        return _truth_terms(truth(expression, scope), scope.space)
    expression, scope = _without_exists(expression, scope)

    def ask(mapping: dict[str, Any], context: QueryContext) -> int:
        try:
            found = evaluated(expression, mapping, context)
        except SPARQLError:
            return UNBOUND
        return UNBOUND if found is None else scope.space.number(plain_literal(_as_term(found)))

    return _asked(expression, scope, np.arange(len(scope.table)), ask, np.int32)


def _as_term(value: Any) -> Any:
    return value if isinstance(value, Identifier) else Literal(value)


def _asked(
    expression: algebra.Expression,
    scope: Scope,
    rows: np.ndarray,
    ask: Callable[[dict[str, Any], QueryContext], int],
    dtype: Any,
) -> np.ndarray:
    """The result of `ask` for each of `rows`; called once for each distinct choice of terms for the expression's
    variables."""
    names = sorted(algebra.expression_variables(expression) & scope.table.columns.keys())
    columns = [scope.table.columns[name][rows] for name in names]
    first, codes = distinct(columns, len(rows))
    context = Context(prologue=scope.prologue)
    answers = []
    with evaluating():
        for place in first.tolist():
            terms = ((name, int(column[place])) for name, column in zip(names, columns, strict=True))
            mapping = {name: scope.space.term(number) for name, number in terms if number >= 0}
            answers.append(ask(mapping, context))
    return np.array(answers, dtype)[codes]


# -- EXISTS as an operand


def _without_exists(expression: algebra.Expression, scope: Scope) -> tuple[algebra.Expression, Scope]:
    """`expression` with each EXISTS replaced by a new variable, and the scope with a column for its truth.

    For expressions that rdflib evaluates, which cannot evaluate a pattern on a batch.
    """
    found = _exists_inside(expression)
    if not found or not isinstance(expression, algebra.Call):
        return expression, scope
    table, names = scope.table, []
    for i, inner in enumerate(found):
        names.append(Variable(f"{_EXISTS}{i}"))
        table = table.with_column(str(names[-1]), _truth_terms(truth(inner, scope), scope.space))
    handle = _with_variables(expression.handle, iter(names))
    return algebra.convert_expression(handle), replace(scope, table=table)


_EXISTS: Final = "__exists_"


def _exists_inside(expression: algebra.Expression) -> list[algebra.Exists]:
    """The EXISTS of an expression in order, without those nested in another EXISTS."""
    match expression:
        case algebra.Exists():
            return [expression]
        case algebra.Call(_, arguments):
            return [found for argument in arguments for found in _exists_inside(argument)]
        case _:
            return []


def _with_variables(value: Any, names: Iterator[Variable]) -> Any:
    """A copy of rdflib's expression with the next of `names` for each EXISTS, in the order of `algebra.Call`."""
    if isinstance(value, list):
        return [_with_variables(item, names) for item in value]
    if not isinstance(value, CompValue):
        return value
    if value.name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
        return next(names)
    children = {name: _with_variables(child, names) for name, child in value.items()}
    if not isinstance(value, Expr):
        return CompValue(value.name, **children)
    copy = Expr(value.name, None, **children)
    function: Any = value._evalfn
    copy._evalfn = MethodType(getattr(function, "__func__", function), copy)
    return copy


def _truth_terms(found: np.ndarray, space: Space) -> np.ndarray:
    """Truth values as numbers of the terms "true" and "false": int32, -1 for an error."""
    terms = [space.number(Literal(text, datatype=XSD.boolean)) for text in ("false", "true")]
    return np.array([*terms, UNBOUND], np.int32)[found]
