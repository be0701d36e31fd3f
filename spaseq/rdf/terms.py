"""RDF terms: from the parser's to rdflib's, each distinct one built once.

Graph patterns are evaluated on rdflib's terms. Three of rdflib's habits would change a user's data, and are avoided
here. It normalises lexical forms (`"010"^^xsd:integer` would become `10`). It logs a traceback for a literal whose text
does not fit its datatype (`"10"^^xsd:date` is common in streams). Pickling does both again.

RDF 1.1 says that `"a"` and `"a"^^xsd:string` are one literal; rdflib holds them apart. `plain_literal` gives the one
form used everywhere in spaseq: without a datatype. Terms from elsewhere (a query) must pass through it.

RDF 1.2 adds terms that rdflib does not have: see `triple_terms`.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import warnings
from contextlib import AbstractContextManager
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, TypeVar

import pyoxigraph
from rdflib import XSD, BNode, Literal, URIRef

from spaseq.core.snapshot import Kind
from spaseq.rdf.triple_terms import (
    DirectionalString,
    TripleTerm,
    is_triple_key,
    parts_of_key,
    split_tag,
    triple_key,
)

Term: TypeAlias = URIRef | BNode | Literal | TripleTerm
Triple: TypeAlias = tuple[Term, Term, Term]
_K = TypeVar("_K")
_T = TypeVar("_T")

_XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"
_BOOLEAN: Final = "http://www.w3.org/2001/XMLSchema#boolean"
_LOG: Final = logging.getLogger("rdflib.term")
_END_OF_DAY: Final = re.compile(r"(.*T)24(:00:00(?:\.0+)?(?:Z|[+-][0-9:]+)?)")
_EXACT_WHOLE: Final = 1 << 53
_EXACT_DIGITS: Final = sys.float_info.dig
_EXACT_EXPONENT: Final = -sys.float_info.min_10_exp  # beyond it doubles have fewer digits, and then none
_WARNINGS: Final = threading.Lock()
"""Held while the filters of warnings, which all threads share, are others for a moment."""


class _Quiet:
    """The number of calls, of any thread, that want rdflib's log silent, and its state before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._before = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._calls:
                self._before, _LOG.disabled = _LOG.disabled, True
            self._calls += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls:
                _LOG.disabled = self._before


_QUIET: Final = _Quiet()


def quiet_literals() -> AbstractContextManager[None]:
    """While it is open, rdflib logs nothing about literals whose text does not fit their datatype.

    PERF: the same object each time: 0.6 µs, as a generator 1.7.
    """
    return _QUIET


def _literal(lexical: str, datatype: str | None, language: str | None) -> Literal:
    if language is not None:
        return DirectionalString(lexical, language) if split_tag(language)[1] else Literal(lexical, lang=language)
    if datatype is None or datatype == _XSD_STRING:
        return Literal(lexical)
    with quiet_literals():
        if datatype != _BOOLEAN or lexical.lower() in ("true", "false", "1", "0"):
            return Literal(lexical, datatype=datatype, normalize=False)
        with _WARNINGS, warnings.catch_warnings():  # of this datatype alone, rdflib speaks by a warning
            warnings.simplefilter("ignore")
            return Literal(lexical, datatype=datatype, normalize=False)


def plain_literal(term: Term) -> Term:
    """`term`, or the same text without a datatype if it is a literal of type xsd:string."""
    if type(term) is URIRef:  # PERF: rdflib's classes are abstract: `isinstance` takes 0.3 µs to say no, this 0.03
        return term
    if isinstance(term, Literal) and str(term.datatype) == _XSD_STRING:
        return Literal(str(term))
    return term


def value_of_literal(literal: Literal) -> Any:
    """`Literal.value`, with 24:00:00 of a dateTime as the beginning of the next day (XML Schema 1.1 §3.3.7.2), which
    rdflib does not read. None for a literal without a value."""
    if literal.value is None and literal.datatype == XSD.dateTime and (end := _END_OF_DAY.fullmatch(literal)):
        midnight = _literal(f"{end[1]}00{end[2]}", str(XSD.dateTime), None).value
        try:
            return None if midnight is None else midnight + timedelta(days=1)
        except OverflowError:  # the last day that Python has
            return None
    return literal.value


def is_held(number: int | float | Decimal) -> bool:
    """True if comparing the doubles of two such numbers compares the numbers. This holds for every double, for integers
    within 2**53, and for decimals of no more than 15 digits that are neither too large nor too small."""
    match number:
        case int():
            return abs(number) <= _EXACT_WHOLE
        case Decimal():
            if not number.is_finite() or len(number.as_tuple().digits) > _EXACT_DIGITS:
                return False
            return not number or abs(number.adjusted()) < _EXACT_EXPONENT
        case _:
            return True


def term_key(term: Term) -> str:
    """A text that says exactly which term it is, to store or send it; `term_from_key` is its inverse.

    `<iri>`, `_:label`, `"text"`, `"text"@tag`, `"text"@tag--ltr`, `"text"^^<iri>`. The text is not escaped (it ends at
    the last quote), so this is N-Triples only for texts that need no escapes. Of a triple term see `triple_terms`.
    """
    if isinstance(term, URIRef):
        return f"<{term}>"
    if isinstance(term, BNode):
        return f"_:{term}"
    if isinstance(term, TripleTerm):
        return triple_key(*map(term_key, term.parts))
    if term.language:
        return f'"{term}"@{term.language}'
    return f'"{term}"' if term.datatype is None else f'"{term}"^^<{term.datatype}>'


def term_bytes(term: Term) -> bytes:
    """`term_key` in UTF-8, of a term after `plain_literal` and with its tag in lower case: the same bytes for equal
    terms, and only for these."""
    # PERF: parts are joined, for an f-string asks a subclass of str for its format: 1.5 µs a literal became 0.5.
    if isinstance(term, Literal):
        if term.language:
            return f'"{term}"@{term.language.lower()}'.encode()
        datatype = term.datatype
        if datatype is None or str(datatype) == _XSD_STRING:
            return f'"{term}"'.encode()
        return "".join(('"', term, '"^^<', datatype, ">")).encode()
    if isinstance(term, TripleTerm):
        return triple_key(*(term_bytes(part).decode() for part in term.parts)).encode()
    return "".join(("<", term, ">") if isinstance(term, URIRef) else ("_:", term)).encode()


def term_from_key(key: str) -> Term:
    """The term that `term_key` turned into `key`."""
    if key.startswith("<"):
        return URIRef(key[1:-1])
    if key.startswith("_:"):
        return BNode(key[2:])
    end = key.rindex('"')
    text, suffix = key[1:end], key[end + 1 :]
    if suffix.startswith("@"):
        return _literal(text, None, suffix[1:])
    if is_triple_key(key):
        return TripleTerm(*map(term_from_key, parts_of_key(key)))
    return _literal(text, suffix[3:-1] if suffix else None, None)


_LITERAL_KEY: Final = re.compile(r'".*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?|\^\^<.*>)?', re.DOTALL)


def is_term_key(key: str) -> bool:
    """True if `term_from_key` makes a term of it."""
    return key.startswith(("<", "_:")) or _LITERAL_KEY.fullmatch(key) is not None


TERMS: Final = Kind("term", (URIRef, BNode, Literal, DirectionalString, TripleTerm), term_key, term_from_key)
"""The form of terms in snapshots."""


class Terms:
    """Turns pyoxigraph's terms into rdflib's, and remembers up to `limit` of each kind; a full memory is emptied.

    Blank nodes keep the label of the file; giving each event its own is the work of `spaseq.rdf.columns.ordering`.
    """

    __slots__ = ("_blanks", "_iris", "_literals", "limit")

    def __init__(self, limit: int = 200_000) -> None:
        self.limit: int = limit
        self._iris: dict[str, URIRef] = {}
        self._blanks: dict[str, BNode] = {}
        self._literals: dict[tuple[str, str, str | None], Literal] = {}

    def convert(self, term: object) -> Term:
        """The rdflib term for `term`. ValueError for what is no term of pyoxigraph."""
        known: Term | None
        if type(term) is pyoxigraph.NamedNode:
            known = self._iris.get(term.value)
            return known if known is not None else self._keep(self._iris, term.value, URIRef(term.value))
        if type(term) is pyoxigraph.Literal:
            language = term.language
            if language is not None and term.direction is not None:
                language = f"{language}--{term.direction.value}"
            key = (term.value, term.datatype.value, language)
            known = self._literals.get(key)
            return known if known is not None else self._keep(self._literals, key, _literal(*key))
        if type(term) is pyoxigraph.BlankNode:
            known = self._blanks.get(term.value)
            return known if known is not None else self._keep(self._blanks, term.value, BNode(term.value))
        if type(term) is pyoxigraph.Triple:
            return TripleTerm(*(self.convert(part) for part in (term.subject, term.predicate, term.object)))
        raise ValueError(f"no term of RDF: {type(term).__name__}")

    def _keep(self, memory: dict[_K, _T], key: _K, term: _T) -> _T:
        if len(memory) >= self.limit:
            memory.clear()
        memory[key] = term
        return term
