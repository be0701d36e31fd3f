"""Calls of functions that users registered, with us (`own`) or with rdflib; and sums of times, computed by rdflib.

Those of rdflib take its expressions; they are made here, of terms, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rdflib.plugins.sparql import operators
from rdflib.plugins.sparql.parserutils import Expr
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError
from rdflib.term import Literal, URIRef, Variable

from spaseq.gpm.functions.own import OWN, call_own, term_of_call


def is_registered(iri: str) -> bool:
    """True if `iri` names a cast of SPARQL, or a function that a user registered."""
    return iri in OWN or URIRef(iri) in operators._CUSTOM_FUNCTIONS


def call_registered(iri: URIRef, terms: Sequence[Any], mapping: Mapping[str, Any], context: QueryContext) -> Any:
    """The value of a function that a user registered: a term. SPARQLError if it is an error (`own`).

    `mapping`: the solution, which a function that is registered with rdflib as raw may read.
    """
    name = str(iri)  # which is another key than the IRI
    if name in OWN:
        return call_own(name, terms)
    expression = Expr("Function", operators.Function, iri=iri, **({"expr": list(terms)} if terms else {}))
    bindings = FrozenBindings(context, {Variable(other): term for other, term in mapping.items()})

    def call() -> Any:
        found = expression.eval(bindings)
        if isinstance(found, SPARQLError):
            raise found
        return found

    return term_of_call(name, terms, call)


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
