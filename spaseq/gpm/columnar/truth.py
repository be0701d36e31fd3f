"""Conditions over columns, with SPARQL's three truth values (SPARQL 1.1 §17.2).

Truth is int8 (rows,): 1, 0, or -1 for an error. `&&`, `||`, `!`, IN and EXISTS are computed on columns. Comparisons of
numbers, with arithmetic, are computed by a kernel in float64 with a bound on the error, which decides all but near
ties.

Values of expressions are numbers of terms, made from the inside outwards (`computed`): arithmetic on columns of numbers
(`amounts`), IF and COALESCE by choosing rows, functions of texts and times once for each distinct choice of arguments
(`texts`). Everything else, and the rows that those leave open, is evaluated by rdflib, once for each distinct choice of
terms (`spaseq.gpm.evaluate.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from rdflib.namespace import RDF, XSD
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Prologue, QueryContext, SPARQLError
from rdflib.term import Identifier, Literal, URIRef, Variable

from spaseq.core.integers import different
from spaseq.core.jit import attempt_rows
from spaseq.gpm import algebra
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.amounts import Amounts, amounts_of, by_kind, combined, rounded, signed
from spaseq.gpm.columnar.coverage import UNSTEADY, unsteady
from spaseq.gpm.columnar.named import exists_inside, with_variables
from spaseq.gpm.columnar.table import UNBOUND, Space, Table, distinct
from spaseq.gpm.columnar.texts import ASK, NO_VALUE, Given, cast_terms, fresh_values, nodes_of, values_of
from spaseq.gpm.comparison import SIGNS
from spaseq.gpm.evaluate import evaluated, verdict
from spaseq.gpm.functions import cast_to, effective_truth
from spaseq.gpm.reference import Context, evaluating
from spaseq.rdf import plain_literal
from spaseq.rdf.columns import Kinds, number_of_term

__all__ = [
    "ERROR",
    "FALSE",
    "ROW",
    "TRUE",
    "Ready",
    "Scope",
    "computed",
    "is_arithmetic",
    "relation",
    "truth",
]

TRUE: Final = 1
FALSE: Final = 0
ERROR: Final = -1
_RELATION: Final = "RelationalExpression "
ROW: Final = "__row"
"""The column in which a table may have a node for each solution, from which BNODE makes those of texts."""

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


def _is_small(count: int, expression: algebra.Expression) -> bool:
    """Whether an expression is evaluated row by row."""
    return count <= FEW and not unsteady(expression)


def truth(expression: algebra.Expression, scope: Scope) -> np.ndarray:
    """The truth of a condition for each row of the scope's table: int8 (r,)."""
    count = len(scope.table)
    match expression:
        case algebra.Call("TrueFilter"):
            return np.full(count, TRUE, np.int8)
        case algebra.Call("ConditionalAndExpression", arguments):
            return _folded(arguments, scope, FALSE)
        case algebra.Call("ConditionalOrExpression", arguments):
            return _folded(arguments, scope, TRUE)
        case algebra.Call("UnaryNot", (argument,)):
            inner = truth(argument, scope)
            return np.where(inner == ERROR, inner, 1 - inner).astype(np.int8)
        case algebra.Exists(pattern, negated):
            return (scope.exists(pattern, scope.table) != negated).astype(np.int8)
        case algebra.Call(name, (left, right)) if (sign := relation(name)) is not None:
            return _comparison(sign, left, right, expression, scope)
        case algebra.Call("RelationalExpression IN" | "RelationalExpression NOT IN", (wanted, *items)):
            return _membership(expression, wanted, items, scope)
        case algebra.Call("Builtin_BOUND", (algebra.Term(value),)) if isinstance(value, Variable):
            return (scope.table.column(str(value)) >= 0).astype(np.int8)
        case algebra.Call(name, arguments, handle) if not _is_small(count, expression):
            if name == "Builtin_sameTerm" and len(arguments) == 2:
                return _same(*(computed(argument, scope) for argument in arguments))
            if name in ("Builtin_IF", "Builtin_COALESCE"):
                return _effective(computed(expression, scope), scope)
            if name == "Builtin_isNUMERIC" and len(arguments) == 1:
                return _numeric(expression, computed(arguments[0], scope), scope)
            function = values_of(name, handle)
            if function is not None and name in _TRUTHS:
                return _by_texts(function, expression, arguments, scope)[1]
            return _each(expression, scope, np.arange(count))
        case _:
            return _each(expression, scope, np.arange(count))


_TRUTHS: Final = frozenset({"Builtin_CONTAINS", "Builtin_STRSTARTS", "Builtin_STRENDS", "Builtin_REGEX",
                            "Builtin_isIRI", "Builtin_isURI", "Builtin_isBLANK", "Builtin_isLITERAL",
                            "Builtin_LANGMATCHES"})  # fmt: skip
"""The functions of `texts` that give truth values."""
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
    whole: algebra.Expression, wanted: algebra.Expression, items: Sequence[algebra.Expression], scope: Scope
) -> np.ndarray:
    """IN and NOT IN. Against a list of IRIs, strings and exact numbers, by look-up; else as `_each`."""
    count, space = len(scope.table), scope.space
    made = scope.ready.get(id(whole))
    if made is None:
        made = scope.ready[id(whole)] = whole, (_listed(items), _equalities(wanted, items))
    terms, parts = made[1]
    rows = np.arange(count)
    if terms is None and parts and count > FEW:
        held = _folded(parts, scope, TRUE)
        is_negated = isinstance(whole, algebra.Call) and whole.name.endswith("NOT IN")
        return np.where(held == ERROR, held, 1 - held).astype(np.int8) if is_negated else held
    if terms is None or count <= FEW:
        return _each(whole, scope, rows)
    negated = isinstance(whole, algebra.Call) and whole.name.endswith("NOT IN")
    numbers, constants, literals = computed(wanted, scope), space.constants(terms), space.literals()
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
    """IN as the `=` that it stands for, where it is short and of variables and constants; else none."""
    if len(items) > _SHORT or not all(isinstance(part, algebra.Term) for part in (wanted, *items)):
        return ()
    return tuple(algebra.Call(f"{_RELATION}=", (wanted, item)) for item in items)


_SHORT: Final = 8


def _listed(items: Sequence[algebra.Expression]) -> tuple[Identifier, ...] | None:
    """The terms of a list for `_membership`; None if one of them is something else."""
    found = tuple(item.value for item in items if isinstance(item, algebra.Term))
    if len(found) < len(items) or not all(map(_is_simple, found)) or found == (RDF.nil,):
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


def _folded(parts: Sequence[algebra.Expression], scope: Scope, settled: int) -> np.ndarray:
    """`||` (`settled` TRUE) or `&&` (`settled` FALSE): `settled` if one part is, whatever errors others have. A part is
    evaluated where those before it leave that open."""
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


def _comparison(
    sign: str, left: algebra.Expression, right: algebra.Expression, whole: algebra.Expression, scope: Scope
) -> np.ndarray:
    """The truth of a comparison. A kernel decides the rows in which both sides are numbers and no near tie, or terms
    for which equality is clear; the other rows are evaluated by rdflib for each distinct choice of terms."""
    made = scope.ready.get(id(whole))
    if made is None:
        made = scope.ready[id(whole)] = whole, _compared(sign, left, right)
    count, space = len(scope.table), scope.space
    program, sides, asked = made[1].program, made[1].sides, made[1].asked
    if program is None or (program.computes and space.has_floats) or (sides and count <= FEW):
        return _each(whole, scope, np.arange(count))
    table = scope.table
    for name, side in sides:
        table = table.with_column(name, computed(side, scope))
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
    `asked` is the comparison of these. `program` is None where a column gains nothing."""

    program: _Program | None
    sides: tuple[tuple[str, algebra.Expression], ...] = ()
    asked: algebra.Expression | None = None


def _compared(sign: str, left: algebra.Expression, right: algebra.Expression) -> _Compared:
    program = _compiled(sign, left, right)
    if program is not None:
        return _Compared(program)
    sides, terms = [], []
    for place, side in enumerate((left, right)):
        if isinstance(side, algebra.Term):
            terms.append(side)
            continue
        sides.append((f"{_SIDE}{place}", side))
        terms.append(algebra.Term(Variable(sides[-1][0])))
    return _Compared(_compiled(sign, *terms), tuple(sides), algebra.Call(_RELATION + sign, tuple(terms)))


_SIDE: Final = "__side_"


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
    count = len(scope.table)
    match expression:
        case algebra.Term(value) if isinstance(value, Variable):
            return scope.table.column(str(value))
        case algebra.Term(value):
            return np.full(count, scope.space.number(value), np.int32)
        case algebra.Exists():
            return _truth_terms(truth(expression, scope), scope.space)
        case algebra.Call(name, ()) if name in UNSTEADY:
            return fresh_values(name, count, scope.space)
        case algebra.Call("Builtin_BNODE", (argument,)):
            return nodes_of(computed(argument, scope), scope.table.columns.get(ROW), scope.space)
        case algebra.Call() if _is_small(count, expression):
            return _evaluated(expression, scope, np.arange(count))
        case algebra.Call(name, arguments, handle):
            if _is_truth(name):
                return _truth_terms(truth(expression, scope), scope.space)
            if name == "Builtin_IF" and len(arguments) == 3:
                return _chosen(arguments, scope)
            if name == "Builtin_COALESCE" and isinstance(dict.get(handle, "arg"), list):
                return _first_of(arguments, scope)
            if name in _NUMERIC and isinstance(handle, CompValue):
                amounts = _amounts(expression, scope)
                numbers = amounts.terms(scope.space)
                return _completed(numbers, amounts.open, expression, scope)
            function = values_of(name, handle) if isinstance(handle, CompValue) else None
            if function is not None:
                return _by_texts(function, expression, arguments, scope)[0]
            if name == "Function" and len(arguments) == 2 and isinstance(arguments[0], algebra.Term):
                cast = cast_to(arguments[0].value)
                if cast is not None:
                    return cast_terms(arguments[0].value, cast, computed(arguments[1], scope), scope.space)
    return _evaluated(expression, scope, np.arange(count))


def _is_truth(name: str) -> bool:
    """Whether the value of such an expression is the literal of its truth."""
    named = ("ConditionalAndExpression", "ConditionalOrExpression", "UnaryNot", "Builtin_isNUMERIC", "Builtin_BOUND",
             "Builtin_sameTerm")  # fmt: skip
    return name in named or name.startswith(_RELATION)


def _completed(numbers: np.ndarray, is_open: np.ndarray, expression: algebra.Expression, scope: Scope) -> np.ndarray:
    """`numbers`, with the values of an expression where it is open."""
    rows = np.flatnonzero(is_open)
    if len(rows):
        numbers[rows] = _evaluated(expression, scope, rows)
    return numbers


def _chosen(arguments: Sequence[algebra.Expression], scope: Scope) -> np.ndarray:
    """IF. Each alternative is computed for its own rows."""
    condition, *alternatives = arguments
    held = truth(condition, scope)
    found = np.full(len(held), UNBOUND, np.int32)
    for side, alternative in zip((TRUE, FALSE), alternatives, strict=True):
        rows = np.flatnonzero(held == side)
        if len(rows):
            found[rows] = computed(alternative, replace(scope, table=scope.table.take(rows)))
    return found


def _first_of(arguments: Sequence[algebra.Expression], scope: Scope) -> np.ndarray:
    """COALESCE. Each argument is computed for the rows that those before it leave."""
    found = np.full(len(scope.table), UNBOUND, np.int32)
    for argument in arguments:
        rows = np.flatnonzero(found < 0)
        if len(rows):
            found[rows] = computed(argument, replace(scope, table=scope.table.take(rows)))
    return found


_ROUNDED: Final = frozenset({"Builtin_CEIL", "Builtin_FLOOR", "Builtin_ROUND"})
_SIGNED: Final = {"UnaryMinus": "neg", "UnaryPlus": "plus", "Builtin_ABS": "abs"}
_COMBINED: Final = frozenset({"AdditiveExpression", "MultiplicativeExpression"})
_NUMERIC: Final = _ROUNDED | _SIGNED.keys() | _COMBINED


def _amounts(expression: algebra.Expression, scope: Scope) -> Amounts:
    """The value of an expression for each row, as numbers."""
    match expression:
        case algebra.Call(name, (first, *others), handle) if name in _COMBINED:
            signs = list(dict.get(handle, "op") or ())  # from left to right, as they are written
            found = _amounts(first, scope)
            if len(signs) == len(others):
                for sign, other in zip(signs, others, strict=True):
                    found = combined(str(sign), found, _amounts(other, scope))
                return found
        case algebra.Call(name, (argument,)) if name in _SIGNED:
            return signed(_SIGNED[name], _amounts(argument, scope))
        case algebra.Call(name, (argument,)) if name in _ROUNDED:
            plain = isinstance(argument, algebra.Call) and argument.name in _COMBINED | _SIGNED.keys()
            return rounded(name.removeprefix("Builtin_"), _amounts(argument, scope), plain=plain)
    return amounts_of(computed(expression, scope), scope.space)


_Texts = Callable[[list[Given]], list[Any]]


def _by_texts(
    function: _Texts, expression: algebra.Expression, arguments: Sequence[algebra.Expression], scope: Scope
) -> tuple[np.ndarray, np.ndarray]:
    """The values of a function of `texts`: (numbers of terms, or -1; where it gives truth values, these)."""
    places, values = _values(function, arguments, scope)
    terms, truths = np.full(len(values), UNBOUND, np.int32), np.full(len(values), ERROR, np.int8)
    keyed = [place for place, value in enumerate(values) if isinstance(value, str)]
    if keyed:
        terms[keyed] = scope.space.numbers_of_keys([values[place].encode() for place in keyed])
    known = [place for place, value in enumerate(values) if isinstance(value, bool)]
    if known:
        truths[known] = [values[place] for place in known]
        terms[known] = _truth_terms(truths[known], scope.space)
    rows = _asked_for(places, values)
    terms, truths = terms[places], truths[places]
    if len(rows):
        terms[rows] = _evaluated(expression, scope, rows)
        truths[rows] = _effective(terms[rows], scope)
    return terms, truths


def _values(function: _Texts, arguments: Sequence[algebra.Expression], scope: Scope) -> tuple[np.ndarray, list[Any]]:
    """The values of a function of `texts` for the distinct choices of its arguments, and the place of each row's."""
    given = [_given(argument, scope) for argument in arguments]
    if len(given) == 1:
        places, count = given[0][0], len(given[0][1].keys) + 1
        chosen = [np.arange(-1, count - 1)]
        places = places + 1
    else:
        first, places = distinct([codes for codes, _ in given], len(scope.table))
        chosen, count = [codes[first] for codes, _ in given], len(first)
    bound = np.ones(count, bool)
    for codes in chosen:
        bound &= codes >= 0
    some = np.flatnonzero(bound)
    values: list[Any] = [NO_VALUE] * count
    if len(some):
        own = function([texts.take(codes[some]) for codes, (_, texts) in zip(chosen, given, strict=True)])
        for place, value in zip(some.tolist(), own, strict=True):
            values[place] = value
    return places, values


def _given(argument: algebra.Expression, scope: Scope) -> tuple[np.ndarray, Given]:
    """The values of an argument, and for each row the index of its own, -1 for an error: int64.

    PERF: what a function of texts gives another one is no term in between: SUBSTR(STR(?t), 3) of 25,000 IRIs takes two
    thirds of the time.
    """
    match argument:
        case algebra.Call(name, arguments, handle) if isinstance(handle, CompValue) and name not in _TRUTHS:
            small = _is_small(len(scope.table), argument)
            function = None if small or not arguments else values_of(name, handle)
            if function is not None:
                places, values = _values(function, arguments, scope)
                if not len(_asked_for(places, values)):
                    keyed = np.array([isinstance(value, str) for value in values], bool)
                    codes = np.where(keyed, np.cumsum(keyed) - 1, -1)
                    return codes[places], Given([v for v in values if isinstance(v, str)], None, scope.space)
    used, places = different(computed(argument, scope))
    unbound = int(len(used) > 0 and used[0] < 0)
    return places - unbound, Given.of(used[unbound:], scope.space)


def _asked_for(places: np.ndarray, values: list[Any]) -> np.ndarray:
    """The rows whose value is not said."""
    asked = [place for place, value in enumerate(values) if value is ASK]
    return np.flatnonzero(np.isin(places, asked)) if asked else np.zeros(0, np.int64)


def _evaluated(expression: algebra.Expression, scope: Scope, rows: np.ndarray) -> np.ndarray:
    """As `computed` at `rows`, by rdflib."""
    expression, scope = _without_exists(expression, scope)

    def ask(mapping: dict[str, Any], context: QueryContext) -> int:
        try:
            found = evaluated(expression, mapping, context)
        except SPARQLError:
            return UNBOUND
        return UNBOUND if found is None else scope.space.number(plain_literal(_as_term(found)))

    return _asked(expression, scope, rows, ask, np.int32)


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
    variables, or for each row, where it is another one each time."""
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
            answers.append(ask(mapping, context))
    return np.array(answers, dtype)[codes]


# -- EXISTS as an operand


def _without_exists(expression: algebra.Expression, scope: Scope) -> tuple[algebra.Expression, Scope]:
    """`expression` with each EXISTS replaced by a new variable, and the scope with a column for its truth.

    For expressions that rdflib evaluates, which cannot evaluate a pattern on a batch.
    """
    found = exists_inside(expression)
    if not found or not isinstance(expression, algebra.Call):
        return expression, scope
    table, names = scope.table, []
    for i, inner in enumerate(found):
        names.append(Variable(f"{_EXISTS}{i}"))
        table = table.with_column(str(names[-1]), _truth_terms(truth(inner, scope), scope.space))
    handle = with_variables(expression.handle, iter(names))
    return algebra.convert_expression(handle), replace(scope, table=table)


_EXISTS: Final = "__exists_"


def _truth_terms(found: np.ndarray, space: Space) -> np.ndarray:
    """Truth values as numbers of the terms "true" and "false": int32, -1 for an error."""
    terms = space.numbers([Literal(text, datatype=XSD.boolean) for text in ("false", "true")])
    return np.array([*terms, UNBOUND], np.int32)[found]
