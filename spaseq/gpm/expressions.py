"""Expressions on one solution (SPARQL 1.1 §17): their values, and the truth of conditions.

`spaseq.gpm.functions.table` has the functions. This module evaluates the special forms: logic with errors, comparisons,
IN, IF, COALESCE, BOUND, arithmetic, and functions whose values differ from one solution to the next.

PERF: on a graph that is pushed, FILTERs and BINDs are evaluated here: rdflib's evaluator takes some 40 µs for a product
of two variables, this 10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rdflib.namespace import XSD
from rdflib.plugins.sparql.sparql import QueryContext, SPARQLError
from rdflib.term import Literal, Variable

from spaseq.gpm.algebra import SIGNS, Arithmetic, Call, Exists, Expression, Term
from spaseq.gpm.comparison import compares
from spaseq.gpm.functions import CASTS, FRESH, FUNCTIONS, Function
from spaseq.gpm.functions.numbers import arithmetic, effective_truth
from spaseq.gpm.functions.registered import call_registered, sum_times
from spaseq.rdf import plain_literal, term_from_key, term_key


class Row:
    """A solution on which expressions are evaluated: `terms` by variable.

    `context`: their other input (the prologue, NOW, EXISTS). `nodes`: the solution's blank nodes of BNODE, by text.
    """

    __slots__ = ("context", "nodes", "terms")

    def __init__(self, terms: Mapping[str, Any], context: QueryContext, nodes: Any = None) -> None:
        self.terms = terms
        self.context = context
        self.nodes: Any = context.bnodes if nodes is None else nodes


def value(expression: Expression, row: Row) -> Any:
    """The value of an expression: a term. SPARQLError if it is an error, or an unbound variable."""
    match expression:
        case Term(term):
            return _bind(term, row)
        case Call(name, arguments):
            if (function := FUNCTIONS.get(name)) is not None and (function.of_keys or function.of_number) is not None:
                return _apply(function, arguments, row)
            if (form := _FORMS.get(name)) is not None:
                return form(expression, row)
    return _TRUTHS[verdict(expression, row)]


def value_or_none(expression: Expression, row: Row) -> Any:
    """`value` in the form that terms have everywhere; None for an error."""
    try:
        return plain_literal(value(expression, row))
    except SPARQLError:
        return None


def verdict(expression: Expression, row: Row) -> bool:
    """The truth of a condition (SPARQL 1.1 §17.2). SPARQLError if it is an error."""
    match expression:
        case Call("&&" | "||" as name, arguments):
            return _is_folded(arguments, name == "||", row)
        case Call("!", (argument,)):
            return not verdict(argument, row)
        case Call(name, (left, right)) if name in SIGNS:
            return compares(name, value(left, row), value(right, row))
        case Call("IN" | "NOT IN" as name, (wanted, *items)):
            return _is_one_of(wanted, items, row) is (name == "IN")
        case Call("BOUND", (Term(variable),)):
            return not isinstance(variable, Variable) or row.terms.get(str(variable)) is not None
        case Call("sameTerm", (left, right)):
            return bool(value(left, row) == value(right, row))
        case Call("true"):
            return True
        case Exists(pattern, negated):
            found: bool = row.context.exists(pattern, row.terms)  # type: ignore[attr-defined]
            return found is not negated
        case _:
            return effective_truth(value(expression, row))


def is_true(condition: Expression, row: Row) -> bool:
    """True if a condition is true for a solution; False if it is an error."""
    try:
        return verdict(condition, row)
    except SPARQLError:
        return False


_TRUTHS: Final = tuple(Literal(text, datatype=XSD.boolean) for text in ("false", "true"))


def _bind(term: Any, row: Row) -> Any:
    if not isinstance(term, Variable):
        return term
    found = row.terms.get(str(term))
    if found is None:
        raise SPARQLError(f"?{term} is not bound")
    return found


def _apply(function: Function, arguments: tuple[Expression, ...], row: Row) -> Any:
    terms = [value(argument, row) for argument in arguments]
    if function.of_number is not None:
        return function.of_number(*terms)
    assert function.of_keys is not None
    keys = map(term_key, terms)
    found = function.of_keys(row.context.prologue, *keys) if function.resolves else function.of_keys(*keys)
    return _TRUTHS[found] if isinstance(found, bool) else term_from_key(found)


def _is_folded(arguments: tuple[Expression, ...], settled: bool, row: Row) -> bool:
    """`||` (`settled` True) or `&&` (`settled` False): if an argument has the truth value `settled`, that is the
    result, whatever errors others have (SPARQL 1.1 §17.2)."""
    error: SPARQLError | None = None
    for argument in arguments:
        try:
            if verdict(argument, row) is settled:
                return settled
        except SPARQLError as caught:
            error = caught
    if error is not None:
        raise error
    return not settled


def _is_one_of(wanted: Expression, items: list[Expression], row: Row) -> bool:
    """`x IN (a, b)` is `x = a || x = b`: true if one is equal, else an error if one comparison is an error."""
    if not items and not isinstance(wanted, Term):
        return False  # nothing is compared, so no error counts
    term = value(wanted, row)
    error: SPARQLError | None = None
    for item in items:
        try:
            if compares("=", term, value(item, row)):
                return True
        except SPARQLError as caught:
            error = caught
    if error is not None:
        raise error
    return False


# -- forms


def _compute(expression: Call, row: Row) -> Any:
    """Sums and products."""
    assert isinstance(expression, Arithmetic)
    terms = [value(argument, row) for argument in expression.arguments]
    found = arithmetic(expression.signs, terms)
    if found is not None:
        return found
    if expression.name == "*":
        raise SPARQLError("only numbers have products")
    return sum_times(expression.signs, terms)


def _choose(expression: Call, row: Row) -> Any:
    condition, *alternatives = expression.arguments
    return value(alternatives[not verdict(condition, row)], row)


def _first_value(expression: Call, row: Row) -> Any:
    """COALESCE."""
    for argument in expression.arguments:
        if (found := value_or_none(argument, row)) is not None:
            return found
    raise SPARQLError("COALESCE of nothing")


def _call(expression: Call, row: Row) -> Any:
    """A cast or a registered function."""
    iri, *arguments = expression.arguments
    assert isinstance(iri, Term)
    if (cast := CASTS.get(iri.value)) is not None:  # type: ignore[call-overload]
        if len(arguments) != 1:
            raise SPARQLError("a cast has one argument")
        return _apply(cast, tuple(arguments), row)
    terms = [value(argument, row) for argument in arguments]
    return call_registered(iri.value, terms, row.terms, row.context)  # type: ignore[arg-type]


def _node(expression: Call, row: Row) -> Any:
    """BNODE: with a text, the same node each time in a solution."""
    if not expression.arguments:
        return _fresh(expression, row)
    text = value(expression.arguments[0], row)
    if not isinstance(text, Literal):
        raise SPARQLError("BNODE takes a text")
    return row.nodes[text]


def _fresh(expression: Call, row: Row) -> Any:
    (key,) = FRESH[expression.name](1)
    return term_from_key(key)


def _now(expression: Call, row: Row) -> Any:
    return Literal(row.context.now)


_FORMS: Final[dict[str, Callable[[Call, Row], Any]]] = {
    "+": _compute,
    "*": _compute,
    "IF": _choose,
    "COALESCE": _first_value,
    "Function": _call,
    "BNODE": _node,
    "RAND": _fresh,
    "UUID": _fresh,
    "STRUUID": _fresh,
    "NOW": _now,
}
