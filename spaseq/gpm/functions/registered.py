"""Functions that a user has registered with rdflib, and sums of times: these are computed by rdflib.

These take rdflib's expressions; they are made here, of terms, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rdflib.plugins.sparql import operators
from rdflib.plugins.sparql.parserutils import Expr
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError
from rdflib.term import BNode, Literal, URIRef, Variable


def is_registered(iri: str) -> bool:
    """True if `iri` names a cast or a function: one of SPARQL's, or one that was registered with rdflib."""
    return URIRef(iri) in operators._CUSTOM_FUNCTIONS


def call_registered(iri: URIRef, terms: Sequence[Any], mapping: Mapping[str, Any], context: QueryContext) -> Any:
    """The value of a registered function (`register_custom_function`): a term. SPARQLError if it is an error.

    `mapping`: the solution, which a function that is registered as raw may read.
    """
    expression = Expr("Function", operators.Function, iri=iri, **({"expr": list(terms)} if terms else {}))
    found = expression.eval(FrozenBindings(context, {Variable(name): term for name, term in mapping.items()}))
    if found is None or isinstance(found, SPARQLError):
        raise found or SPARQLError(f"{iri} gives nothing")
    return found if isinstance(found, (URIRef, BNode, Literal)) else Literal(found)


def sum_times(signs: Sequence[str], terms: Sequence[Any]) -> Any:
    """Sums and differences of times and durations. SPARQLError for other terms: rdflib raises any exception."""
    if any(isinstance(term, Literal) and term.value is None for term in terms):
        raise SPARQLError("a literal without a value has no sum or difference")
    first, *others = terms
    expression = Expr("AdditiveExpression", operators.AdditiveExpression, expr=first, op=list(signs), other=others)
    try:
        found = expression.eval({})
    except (AttributeError, TypeError, ValueError, ArithmeticError, KeyError) as error:
        raise SPARQLError(f"no sum or difference of these: {error}") from None
    if isinstance(found, SPARQLError):
        raise found
    return found
