"""Functions of the user by IRI: SPARQL's extension functions (SPARQL 1.1 §17.6), of terms.

A function gets rdflib's terms, one for each argument, and gives a term or a value of Python. It is not called if an
argument is an error. If it gives None or raises an exception, that is SPARQL's error (§17.3): FILTER removes the
solution, BIND and SELECT leave the variable unbound. `Matches.notes` has exceptions other than `SPARQLError`.
It is taken to give the same result for the same terms: evaluations call it once for equal ones.
"""

from __future__ import annotations

import datetime
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
from rdflib.namespace import XSD
from rdflib.plugins.sparql.operators import _CUSTOM_FUNCTIONS
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import BNode, Identifier, Literal, URIRef

from spaseq.core.errors import OptionError, SpaseqError
from spaseq.core.measure import shorten
from spaseq.core.queries.own_functions import OwnFunctions
from spaseq.gpm.functions.numbers import decimal_text, double_text, number_text
from spaseq.gpm.functions.table import CASTS
from spaseq.rdf import plain_literal, term_key

_failed: Final[dict[str, tuple[int, str, tuple[Any, ...]]]] = {}
"""For each IRI how many exceptions its function has raised in this process; the latest in words, and its arguments."""


def _leave(iri: str) -> None:
    _failed.pop(iri, None)


OWN: Final = OwnFunctions(leave=_leave)
"""For each IRI the function."""
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_LABEL: Final = re.compile(r"\w(?:[\w.-]*[\w-])?")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CALLED: Final = threading.local()
"""`by`: in each thread the IRI of the function that runs."""
_SHOWN: Final = 200
"""Characters that a note has of an exception, and of the arguments."""


def register_function(iri: str, function: Callable[..., Any], *, replace: bool = False) -> None:
    """Makes a function of Python one that an IRI names in FILTER, BIND and the clauses of the result.

    Args:
        iri: its name in queries, absolute: `ex:distance(?a, ?b)` with the prefix `ex:`.
        function: takes terms of rdflib, as many as it has arguments in queries. It gives a term, or a bool, number,
            text, time or timedelta, of which a literal is made. None is SPARQL's error: no value.
        replace: another function of this IRI is replaced. Evaluations in progress may keep results of the former one.

    An exception in it is SPARQL's error, too, and a line of `Matches.notes`. It must give the same result for the same
    terms, and run no query itself. Queries on Spark take it with them; a snapshot names it.

    Raises `OptionError` for what is no absolute IRI, the IRI of a cast, and one that is registered already.

    >>> import spaseq
    >>> spaseq.register_function("urn:fn#twice", lambda term: 2 * term.toPython(), replace=True)
    """
    if not isinstance(iri, str) or not _ABSOLUTE.fullmatch(iri):
        raise OptionError(f"{iri!r} is no absolute IRI", 'for example "http://example.org/fn#distance"')
    if not callable(function):
        raise OptionError(f"{function!r} is no function", "register_function(iri, function)")
    name = str(iri)
    if URIRef(name) in CASTS:
        raise OptionError(f"<{name}> is a cast of SPARQL", "choose another IRI")
    if URIRef(name) in _CUSTOM_FUNCTIONS and not replace:
        raise OptionError(f"<{name}> is registered with rdflib already", "replace=True takes this function instead")
    OWN.register(name, (function,), replace=replace)


def call_own(iri: str, terms: Sequence[Any]) -> Any:
    """The value of a function of the user: a term. SPARQLError if it is an error."""
    (function,) = OWN[iri]
    return term_of_call(iri, terms, lambda: function(*terms))


def term_of_call(iri: str, terms: Sequence[Any], call: Callable[[], Any]) -> Any:
    """The term that a call of a user's function gives. SPARQLError for None, for another value and for an exception;
    `Failures` reports these two."""
    _CALLED.by = iri
    try:
        found = call()
    except (SPARQLError, SpaseqError, MemoryError):
        raise
    except Exception as error:
        raise _fail(iri, terms, f"raised {type(error).__name__}: {error}") from None
    finally:
        _CALLED.by = ""
    if any(found is term for term in terms):
        return found
    if found is None:
        raise SPARQLError(f"<{iri}> gives no value")
    term = _term(found.item() if isinstance(found, np.generic) else found)
    if term is None or not _is_written(term):
        raise _fail(iri, terms, f"gave a {type(found).__name__} that is no term of RDF")
    return term


def _term(found: Any) -> Any:
    """The term of a result; None if there is none. Doubles without a value are INF and NaN, as SPARQL writes them."""
    match found:
        case URIRef() | BNode() | Literal():
            return plain_literal(found)
        case bool():
            return Literal(found)
        case int():
            return Literal(number_text(0, found), datatype=XSD.integer, normalize=False)
        case float():
            return Literal(double_text(found), datatype=XSD.double, normalize=False)
        case Decimal():
            if not found.is_finite():
                return None
            return Literal(decimal_text(found), datatype=XSD.decimal, normalize=False)
        case str() | datetime.date() | datetime.time() | datetime.timedelta():  # a datetime is a date
            return None if isinstance(found, Identifier) else Literal(found)
        case _:
            return None


def _is_written(term: Any) -> bool:
    """True if N-Triples can hold a term: its IRIs are absolute, its label is one, its text is Unicode."""
    match term:
        case URIRef():
            return _ABSOLUTE.fullmatch(term) is not None
        case BNode():
            return _LABEL.fullmatch(term) is not None
    if term.datatype is not None and not _ABSOLUTE.fullmatch(term.datatype):
        return False
    return _SURROGATE.search(term) is None


def refuse_inside() -> None:
    """Raises `OptionError` inside a function of the user. One thread at a time evaluates expressions, so a SPAseq query
    that runs there would wait for itself.
    """
    if iri := getattr(_CALLED, "by", ""):
        raise OptionError(
            f"the function <{iri}> runs a SPAseq query", "run it before, and have the function look it up"
        )


def _fail(iri: str, terms: Sequence[Any], what: str) -> SPARQLError:
    count = _failed[iri][0] if iri in _failed else 0
    _failed[iri] = count + 1, what, tuple(terms)
    return SPARQLError(what)


def misfit_of(iri: str, given: int) -> str:
    """The reason for which a function of the user does not take so many arguments, in words; "" if it may."""
    if iri not in OWN:
        return ""
    try:
        signature = inspect.signature(OWN[iri][0])
    except (TypeError, ValueError):  # some functions written in C do not say
        return ""
    try:
        signature.bind(*range(given))
    except TypeError as error:
        return f"does not take {given} argument{'s' * (given != 1)} ({error})"
    return ""


class Failures:
    """The exceptions of users' functions since this was made, of those that a query calls.

    Evaluations of one process that run at the same time share the count, so each reports those of another one, too.
    """

    def __init__(self, iris: Iterable[str]) -> None:
        self._before = {iri: _failed[iri][0] if iri in _failed else 0 for iri in iris}

    def lines(self) -> list[str]:
        """A line for each function that failed, with the latest arguments and their exception."""
        lines = []
        for iri, before in self._before.items():
            count, what, terms = _failed.get(iri, (0, "", ()))
            if count > before:
                given = shorten(", ".join(map(term_key, terms)), _SHOWN)
                lines.append(f"<{iri}> {shorten(what, _SHOWN)}, for ({given}): the call has no value, as in SPARQL")
        return lines
