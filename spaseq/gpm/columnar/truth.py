"""Conditions over columns, with SPARQL's three truth values (SPARQL 1.1 §17.2).

Truth is int8 (rows,): 1, 0, or -1 for an error. `&&`, `||`, `!`, IN and EXISTS are computed on columns. A kernel
computes comparisons of numbers, with arithmetic, in float64 with a bound on the error, which decides all but near ties.

Values of expressions are numbers of terms, made from the inside outwards (`compute`). Arithmetic works on columns of
numbers (`amounts`), IF and COALESCE choose rows. Functions of keys (`spaseq.gpm.functions.table`) are called once for
each distinct choice of arguments. `spaseq.gpm.expressions` evaluates everything else, and the rows left open, once for
each distinct choice of terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from rdflib.namespace import XSD
from rdflib.plugins.sparql.sparql import Prologue, SPARQLError
from rdflib.term import Identifier, Literal, URIRef, Variable

from spaseq.core.integers import different
from spaseq.core.jit import attempt_rows
from spaseq.gpm import algebra
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.amounts import Amounts, amounts_of, by_kind, combine, rounded, signed
from spaseq.gpm.columnar.coverage import unsteady
from spaseq.gpm.columnar.rewrites import with_variables
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.columnar.texts import fresh_values, keys_of, nodes_of, numbers_of
from spaseq.gpm.expressions import Row, value_or_none, verdict
from spaseq.gpm.functions import CASTS, FRESH, FUNCTIONS
from spaseq.gpm.functions.numbers import effective_truth
from spaseq.gpm.reference import Context, evaluating
from spaseq.rdf.columns import Kinds, number_of_term

TRUE: Final = 1
FALSE: Final = 0
ERROR: Final = -1
ROW: Final = "__row"
"""The column in which a table may have a node for each solution, from which BNODE makes those of texts."""

Ready = dict[int, tuple[object, Any]]
"""A cache of compiled parts of a pattern, by the part's id. The part is kept, so that its id is not reused."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The input of a condition: solution rows, their terms, and the evaluation of patterns inside EXISTS.

    `exists(pattern, table)`: bool (rows,), EXISTS is true for the row. `ready` caches compiled expressions.
    """

    table: Table
    space: Space
    prologue: Prologue
    exists: Callable[[algebra.Node, Table], np.ndarray]
    ready: Ready


def _is_small(count: int, expression: algebra.Expression) -> bool:
    """True if an expression is evaluated row by row."""
    return count <= FEW and not unsteady(expression)


def truth(expression: algebra.Expression, scope: Scope) -> np.ndarray:
    """The truth of a condition for each row of the scope's table: int8 (r,)."""
    count = len(scope.table)
    match expression:
        case algebra.Call("true"):
            return np.full(count, TRUE, np.int8)
        case algebra.Call("&&", arguments):
            return _fold(arguments, scope, FALSE)
        case algebra.Call("||", arguments):
            return _fold(arguments, scope, TRUE)
        case algebra.Call("!", (argument,)):
            inner = truth(argument, scope)
            return np.where(inner == ERROR, inner, 1 - inner).astype(np.int8)
        case algebra.Exists(pattern, negated):
            return (scope.exists(pattern, scope.table) != negated).astype(np.int8)
        case algebra.Call(sign, (left, right)) if sign in algebra.SIGNS:
            return _comparison(sign, left, right, expression, scope)
        case algebra.Call("IN" | "NOT IN" as name, (wanted, *items)):
            return _membership(expression, wanted, items, name == "NOT IN", scope)
        case algebra.Call("BOUND", (algebra.Term(value),)) if isinstance(value, Variable):
            return (scope.table.column(str(value)) >= 0).astype(np.int8)
        case algebra.Call(name, arguments) if not _is_small(count, expression):
            if name == "sameTerm":
                return _same(*(compute(argument, scope) for argument in arguments))
            if name == "isNUMERIC":
                return _numeric(expression, compute(arguments[0], scope), scope)
            if name in ("IF", "COALESCE"):
                return _effective(compute(expression, scope), scope)
            if (called := _of_keys(expression, scope)) is not None:
                places, values = _values(*called, scope)
                return _verdicts(values, scope)[places]
    return _each(expression, scope, np.arange(count))


FEW: Final = 3
"""So many rows are evaluated one by one. PERF: a sum over three rows takes 100 µs as columns, 30 one by one."""


def _same(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """sameTerm of terms given by number: equal terms have equal numbers."""
    return np.where((left < 0) | (right < 0), ERROR, left == right).astype(np.int8)


def _numeric(expression: algebra.Expression, numbers: np.ndarray, scope: Scope) -> np.ndarray:
    """isNUMERIC of terms given by number; values of other types than the columns hold are asked."""
    literals = scope.space.literals()
    found = literals.numeric(numbers).astype(np.int8)
    rows = np.flatnonzero(np.isin(literals.kind[numbers], (Kinds.OTHER, Kinds.ILL_TYPED)) & (numbers >= 0))
    if len(rows):
        found[rows] = _each(expression, scope, rows)
    found[numbers < 0] = ERROR
    return found


def _effective(numbers: np.ndarray, scope: Scope) -> np.ndarray:
    """The effective boolean values of terms given by number (SPARQL 1.1 §17.2.2): int8, once for each term."""
    used, places = different(numbers)
    found = np.full(len(used), ERROR, np.int8)
    for place, number in enumerate(used.tolist()):
        if number >= 0:
            with suppress(SPARQLError):
                found[place] = effective_truth(scope.space.term(number))
    return found[places]


def _membership(
    whole: algebra.Expression,
    wanted: algebra.Expression,
    items: Sequence[algebra.Expression],
    negated: bool,
    scope: Scope,
) -> np.ndarray:
    """IN and NOT IN (`negated`). Against a list of IRIs, strings and exact numbers, by look-up; else as `_each`."""
    count, space = len(scope.table), scope.space
    made = scope.ready.get(id(whole))
    if made is None:
        made = scope.ready[id(whole)] = whole, (_list(items), _equalities(wanted, items))
    terms, parts = made[1]
    rows = np.arange(count)
    if terms is None and parts and count > FEW:
        held = _fold(parts, scope, TRUE)
        return np.where(held == ERROR, held, 1 - held).astype(np.int8) if negated else held
    if terms is None or count <= FEW:
        return _each(whole, scope, rows)
    numbers, constants, literals = compute(wanted, scope), space.constants(terms), space.literals()
    kind = literals.kind[numbers]
    numeric = literals.numeric(constants)
    if not literals.exact[constants[numeric]].all():
        return _each(whole, scope, rows)
    found = np.isin(numbers, constants[~numeric])
    is_number = literals.numeric(numbers)
    if numeric.any() and is_number.any():
        found |= is_number & np.isin(literals.number[numbers], literals.number[constants[numeric]])
    only_iris = all(isinstance(term, URIRef) for term in terms)
    sure = np.isin(kind, (Kinds.NO_LITERAL, Kinds.STRING, Kinds.TAGGED, Kinds.BOOLEAN, Kinds.DATE_TIME)) | only_iris
    sure |= is_number & literals.exact[numbers]
    result = np.where(numbers < 0, ERROR, found != negated).astype(np.int8)
    rows = np.flatnonzero(~sure & (numbers >= 0))
    if len(rows):
        result[rows] = _each(whole, scope, rows)
    return result


def _equalities(wanted: algebra.Expression, items: Sequence[algebra.Expression]) -> tuple[algebra.Expression, ...]:
    """IN as the `=` that it stands for, if it is short and of variables and constants; else none."""
    if len(items) > _SHORT or not all(isinstance(part, algebra.Term) for part in (wanted, *items)):
        return ()
    return tuple(algebra.Call("=", (wanted, item)) for item in items)


_SHORT: Final = 8


def _list(items: Sequence[algebra.Expression]) -> tuple[Identifier, ...] | None:
    """The terms of a list for `_membership`; None if one of them is something else."""
    found = tuple(item.value for item in items if isinstance(item, algebra.Term))
    if len(found) < len(items) or not all(map(_is_simple, found)):
        return None
    return found


def _is_simple(term: Identifier) -> bool:
    """An IRI, a string without a tag, or a number that is no NaN."""
    if not isinstance(term, Literal):
        return isinstance(term, URIRef)
    if term.datatype is None or term.datatype == XSD.string:
        return not term.language
    number = number_of_term(term)
    return number is not None and number[0] == number[0]


def _fold(parts: Sequence[algebra.Expression], scope: Scope, settled: int) -> np.ndarray:
    """`||` (`settled` TRUE) or `&&` (`settled` FALSE): `settled` if one part is, whatever errors others have. A part is
    evaluated only on rows that those before it leave open."""
    first, *others = parts
    found = truth(first, scope)
    for part in others:
        rows = np.flatnonzero(found != settled)
        if not len(rows):
            break
        own = truth(part, scope if len(rows) == len(found) else replace(scope, table=scope.table.take(rows)))
        wrong = (own == ERROR) | (found[rows] == ERROR)
        found[rows] = np.where(own == settled, settled, np.where(wrong, ERROR, 1 - settled))
    return found


# -- comparisons


def is_arithmetic(expression: algebra.Expression) -> bool:
    """True if `truth` computes sums or products of numbers, for a comparison in a condition."""
    match expression:
        case algebra.Call("&&" | "||" | "!", arguments):
            return any(map(is_arithmetic, arguments))
        case algebra.Call(sign, (left, right)) if sign in algebra.SIGNS:
            program = _compile(sign, left, right)
            return program is not None and program.computes
        case _:
            return False


def _comparison(
    sign: str, left: algebra.Expression, right: algebra.Expression, whole: algebra.Expression, scope: Scope
) -> np.ndarray:
    """The truth of a comparison. A kernel decides rows of two numbers without a near tie, and rows of terms whose
    equality is clear. The others are evaluated once for each distinct choice of terms."""
    made = scope.ready.get(id(whole))
    if made is None:
        made = scope.ready[id(whole)] = whole, _compare(sign, left, right)
    count, space = len(scope.table), scope.space
    program, sides, asked = made[1].program, made[1].sides, made[1].asked
    if program is None or (program.computes and space.has_floats) or (sides and count <= FEW):
        return _each(whole, scope, np.arange(count))
    table = scope.table
    for name, side in sides:
        table = table.with_column(name, compute(side, scope))
    columns = [table.column(name) for name in program.names]
    stacked = np.stack(columns) if len(columns) > 1 else columns[0].reshape(1, -1) if columns else _no_columns(count)
    constants = space.constants(program.terms)
    literals = space.literals()
    found = np.empty(count, np.int8)
    left_open = attempt_rows(k.compare_rows, 8 * count * len(program.steps), program.steps, stacked, constants,
                             literals.kind, literals.number, literals.exact, program.sign, found)  # fmt: skip
    if left_open:
        rows = np.flatnonzero(found == k.OPEN)
        if not program.computes:
            left_numbers, right_numbers = (
                _side_numbers(step, columns, constants, rows) for step in program.steps.tolist()
            )
            found[rows] = by_kind(sign, left_numbers, right_numbers, literals)
            rows = rows[found[rows] == k.OPEN]
        if len(rows):
            found[rows] = _each(asked or whole, replace(scope, table=table), rows)
    return found


def _side_numbers(
    step: list[int], columns: Sequence[np.ndarray], constants: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """The terms of a side of a comparison without arithmetic, at some rows: int32."""
    what, place = step
    return columns[place][rows] if what == k.VARIABLE else np.full(len(rows), constants[place], np.int32)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A comparison over columns. `sides`: the sides of it that are computed before, with names for their columns; then
    `asked` is the comparison of these. `program` is None if a column gains nothing."""

    program: _Program | None
    sides: tuple[tuple[str, algebra.Expression], ...] = ()
    asked: algebra.Expression | None = None


def _compare(sign: str, left: algebra.Expression, right: algebra.Expression) -> _Compared:
    program = _compile(sign, left, right)
    if program is not None:
        return _Compared(program)
    sides, terms = [], []
    for place, side in enumerate((left, right)):
        if isinstance(side, algebra.Term):
            terms.append(side)
            continue
        sides.append((f"{_SIDE}{place}", side))
        terms.append(algebra.Term(Variable(sides[-1][0])))
    return _Compared(_compile(sign, *terms), tuple(sides), algebra.Call(sign, tuple(terms)))


_SIDE: Final = "__side_"


def _no_columns(count: int) -> np.ndarray:
    return np.zeros((0, count), np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """A comparison of numeric expressions for `kernels.compare_rows`: `steps` in postfix notation, int32 (n, 2), over
    the variables `names` and the constants `terms`. `computes`: True if there is arithmetic in it."""

    steps: np.ndarray
    sign: int
    names: tuple[str, ...]
    terms: tuple[Identifier, ...]
    computes: bool


def _compile(sign: str, left: algebra.Expression, right: algebra.Expression) -> _Program | None:
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
        case algebra.Arithmetic(_, (first, *others), signs):
            steps = _postfix(first, names, terms)
            for sign, other in zip(signs, others, strict=True):
                more = _postfix(other, names, terms)
                if steps is None or more is None:
                    return None
                steps = [*steps, *more, (k.OPERATIONS.index(sign), 0)]
            return steps
        case algebra.Call("minus", (argument,)):
            steps = _postfix(argument, names, terms)
            return None if steps is None else [*steps, (k.OPERATIONS.index("neg"), 0)]
        case _:
            return None


_SIGNS: Final = ("<", "<=", ">", ">=", "=", "!=")
"""The signs, in the order of their numbers in `kernels.compare_rows`."""


# -- everything else


def _each(expression: algebra.Expression, scope: Scope, rows: np.ndarray) -> np.ndarray:
    """The truth of `expression` at `rows`, evaluated once for each distinct choice of terms."""
    expression, scope = _without_exists(expression, scope)

    def ask(row: Row) -> int:
        try:
            return int(verdict(expression, row))
        except SPARQLError:
            return ERROR

    return _ask(expression, scope, rows, ask, np.int8)


def compute(expression: algebra.Expression, scope: Scope) -> np.ndarray:
    """The value of an expression for each row, as numbers of the scope's terms: int32 (r,), -1 for an error."""
    count = len(scope.table)
    match expression:
        case algebra.Term(value) if isinstance(value, Variable):
            return scope.table.column(str(value))
        case algebra.Term(value):
            return np.full(count, scope.space.number(value), np.int32)
        case algebra.Exists():
            return _truth_terms(truth(expression, scope), scope.space)
        case algebra.Call(name, ()) if name in FRESH:
            return fresh_values(name, count, scope.space)
        case algebra.Call("BNODE", (argument,)):
            return nodes_of(compute(argument, scope), scope.table.columns.get(ROW), scope.space)
        case algebra.Call(name, arguments) if not _is_small(count, expression):
            if name in _CONDITIONS:
                return _truth_terms(truth(expression, scope), scope.space)
            if name == "IF":
                return _choose(arguments, scope)
            if name == "COALESCE":
                return _first_of(arguments, scope)
            if name in _NUMERIC:
                amounts = _amounts(expression, scope)
                return _completed(amounts.terms(scope.space), amounts.open, expression, scope)
            if (called := _of_keys(expression, scope)) is not None:
                places, values = _values(*called, scope)
                return _numbers(values, scope)[places]
    return _evaluate(expression, scope, np.arange(count))


_CONDITIONS: Final = algebra.SIGNS | {"&&", "||", "!", "IN", "NOT IN", "BOUND", "sameTerm", "isNUMERIC"}
"""The names of expressions whose value is the literal of their truth."""


def _completed(numbers: np.ndarray, is_open: np.ndarray, expression: algebra.Expression, scope: Scope) -> np.ndarray:
    """`numbers`, with the values of an expression in the open rows."""
    rows = np.flatnonzero(is_open)
    if len(rows):
        numbers[rows] = _evaluate(expression, scope, rows)
    return numbers


def _choose(arguments: Sequence[algebra.Expression], scope: Scope) -> np.ndarray:
    """IF. Each alternative is computed for its own rows."""
    condition, *alternatives = arguments
    held = truth(condition, scope)
    found = np.full(len(held), UNBOUND, np.int32)
    for side, alternative in zip((TRUE, FALSE), alternatives, strict=True):
        rows = np.flatnonzero(held == side)
        if len(rows):
            found[rows] = compute(alternative, replace(scope, table=scope.table.take(rows)))
    return found


def _first_of(arguments: Sequence[algebra.Expression], scope: Scope) -> np.ndarray:
    """COALESCE. Each argument is computed for the rows that those before it leave."""
    found = np.full(len(scope.table), UNBOUND, np.int32)
    for argument in arguments:
        rows = np.flatnonzero(found < 0)
        if len(rows):
            found[rows] = compute(argument, replace(scope, table=scope.table.take(rows)))
    return found


_ROUNDED: Final = frozenset({"CEIL", "FLOOR", "ROUND"})
_SIGNED: Final = {"minus": "neg", "plus": "plus", "ABS": "abs"}
_NUMERIC: Final = _ROUNDED | _SIGNED.keys() | {"+", "*"}


def _amounts(expression: algebra.Expression, scope: Scope) -> Amounts:
    """The value of an expression for each row, as numbers."""
    match expression:
        case algebra.Arithmetic(_, (first, *others), signs):
            found = _amounts(first, scope)
            for sign, other in zip(signs, others, strict=True):
                found = combine(sign, found, _amounts(other, scope))
            return found
        case algebra.Call(name, (argument,)) if name in _SIGNED:
            return signed(_SIGNED[name], _amounts(argument, scope))
        case algebra.Call(name, (argument,)) if name in _ROUNDED:
            plain = isinstance(argument, algebra.Call) and argument.name in _NUMERIC - _ROUNDED
            return rounded(name, _amounts(argument, scope), plain=plain)
    return amounts_of(compute(expression, scope), scope.space)


# -- functions of keys


_OfKeys = Callable[[Sequence[Sequence[str]]], list[Any]]


def _of_keys(expression: algebra.Expression, scope: Scope) -> tuple[_OfKeys, Sequence[algebra.Expression]] | None:
    """The function of columns of keys that an expression calls, or the cast, and its arguments; else None."""
    match expression:
        case algebra.Call("Function", (algebra.Term(URIRef() as iri), argument)) if iri in CASTS:
            row, arguments = CASTS[iri], (argument,)
        case algebra.Call(name, arguments) if name in FUNCTIONS and arguments:
            row = FUNCTIONS[name]
        case _:
            return None
    function = row.on_columns(scope.prologue)
    return None if function is None else (function, arguments)


def _numbers(values: Sequence[Any], scope: Scope) -> np.ndarray:
    """Values of a function of keys, as numbers of terms: int32, -1 for an error."""
    keys = [_BOOLEAN_KEYS[value] if isinstance(value, bool) else value for value in values]
    known = [place for place, key in enumerate(keys) if isinstance(key, str)]
    terms = np.full(len(values), UNBOUND, np.int32)
    if known:
        terms[known] = numbers_of([keys[place] for place in known], scope.space)
    return terms


_BOOLEAN_KEYS: Final = tuple(f'"{text}"^^<{XSD.boolean}>' for text in ("false", "true"))


def _verdicts(values: Sequence[Any], scope: Scope) -> np.ndarray:
    """The effective boolean values of values of a function of keys: int8."""
    if all(isinstance(value, (bool, SPARQLError)) for value in values):
        return np.array([value if isinstance(value, bool) else ERROR for value in values], np.int8)
    return _effective(_numbers(values, scope), scope)


def _values(function: _OfKeys, arguments: Sequence[algebra.Expression], scope: Scope) -> tuple[np.ndarray, list[Any]]:
    """The place of each row's value among the values of a function of keys, and these values. There is one for each
    distinct choice of arguments, a SPARQLError if an argument is an error."""
    given = [_give(argument, scope) for argument in arguments]
    if len(given) == 1:
        places, count = given[0][0], len(given[0][1]) + 1
        chosen = [np.arange(-1, count - 1)]
        places = places + 1
    else:
        first, places = distinct([codes for codes, _ in given], len(scope.table))
        chosen, count = [codes[first] for codes, _ in given], len(first)
    bound = np.ones(count, bool)
    for codes in chosen:
        bound &= codes >= 0
    some = np.flatnonzero(bound)
    values: list[Any] = [_NO_VALUE] * count
    if len(some):
        columns = [
            [keys[code] for code in codes[some].tolist()] for codes, (_, keys) in zip(chosen, given, strict=True)
        ]
        for place, value in zip(some.tolist(), function(columns), strict=True):
            values[place] = value
    return places, values


_NO_VALUE: Final = SPARQLError("an argument is an error")


def _give(argument: algebra.Expression, scope: Scope) -> tuple[np.ndarray, list[str]]:
    """For each row the index of an argument's value, -1 for an error, int64; and the keys of the values.

    PERF: a value passed from one function of keys to another is no term in between: SUBSTR(STR(?t), 3) of 25,000 IRIs
    takes two thirds of the time.
    """
    if not _is_small(len(scope.table), argument) and (called := _of_keys(argument, scope)) is not None:
        places, values = _values(*called, scope)
        keys = [_BOOLEAN_KEYS[value] if isinstance(value, bool) else value for value in values]
        keyed = np.array([isinstance(key, str) for key in keys], bool)
        codes = np.where(keyed, np.cumsum(keyed) - 1, -1)
        return codes[places], [key for key in keys if isinstance(key, str)]
    used, places = different(compute(argument, scope))
    unbound = int(len(used) > 0 and used[0] < 0)
    return places - unbound, keys_of(used[unbound:], scope.space)


def _evaluate(expression: algebra.Expression, scope: Scope, rows: np.ndarray) -> np.ndarray:
    """As `compute` at `rows`, one solution at a time."""
    expression, scope = _without_exists(expression, scope)

    def ask(row: Row) -> int:
        found = value_or_none(expression, row)
        return UNBOUND if found is None else scope.space.number(found)

    return _ask(expression, scope, rows, ask, np.int32)


def _ask(
    expression: algebra.Expression, scope: Scope, rows: np.ndarray, ask: Callable[[Row], int], dtype: Any
) -> np.ndarray:
    """The result of `ask` for each of `rows`, called once for each distinct choice of terms for the expression's
    variables. If the expression has another value each time, it is called for each row."""
    names = sorted(algebra.expression_variables(expression) & scope.table.columns.keys())
    columns = [scope.table.columns[name][rows] for name in names]
    first = codes = np.arange(len(rows))
    if not unsteady(expression):
        first, codes = distinct(columns, len(rows))
    context = Context(prologue=scope.prologue)
    answers = []
    with evaluating():
        for place in first.tolist():
            terms = ((name, int(column[place])) for name, column in zip(names, columns, strict=True))
            mapping = {name: scope.space.term(number) for name, number in terms if number >= 0}
            answers.append(ask(Row(mapping, context)))
    return np.array(answers, dtype)[codes]


# -- EXISTS as an operand


def _without_exists(expression: algebra.Expression, scope: Scope) -> tuple[algebra.Expression, Scope]:
    """`expression` with each EXISTS replaced by a new variable, and the scope with a column for its truth.

    For expressions evaluated on one solution, which cannot evaluate the batch's patterns.
    """
    found = algebra.exists_inside(expression)
    if not found or not isinstance(expression, algebra.Call):
        return expression, scope
    table, names = scope.table, []
    for i, inner in enumerate(found):
        names.append(Variable(f"{_EXISTS}{i}"))
        table = table.with_column(str(names[-1]), _truth_terms(truth(inner, scope), scope.space))
    return with_variables(expression, iter(names)), replace(scope, table=table)


_EXISTS: Final = "__exists_"


def _truth_terms(found: np.ndarray, space: Space) -> np.ndarray:
    """Truth values as numbers of the terms "true" and "false": int32, -1 for an error."""
    terms = space.numbers([Literal(text, datatype=XSD.boolean) for text in ("false", "true")])
    return np.array([*terms, UNBOUND], np.int32)[found]
