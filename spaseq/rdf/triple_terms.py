"""Terms of RDF 1.2 that rdflib does not have: triple terms, and strings with a base direction.

Both are terms that rdflib's graphs hold. A triple term equals itself only, as any term; a string with a direction
differs from the same string without one. `n3` writes them in the syntax of RDF 1.2, so that rdflib's serialisers do.

The key of a triple term (`spaseq.rdf.terms.term_key`) has the form of a literal whose datatype is `TRIPLE`, which no
document can name. So columns, snapshots and files hold it like any literal without a value. The text of the key is the
lengths of the keys of subject and predicate, then the three keys, as none of these is escaped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeGuard

from rdflib.term import BNode, IdentifiedNode, Identifier, Literal, URIRef

from spaseq.core.errors import OptionError

TRIPLE: Final = URIRef("triple\x1fterm")
"""The datatype in the key of a triple term. It is no IRI, so nothing that is read has it."""
REIFIES: Final = URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies")
TRIPLE_END: Final = f'"^^<{TRIPLE}>'
"""The end of the key of a triple term."""
DIRECTIONS: Final = ("ltr", "rtl")
_APART: Final = "--"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"


class TripleTerm(Identifier):
    """A triple as a term (RDF 1.2 §3.5), for the object of a triple: `<<( subject predicate object )>>`.

    It is also the text that N-Triples has for it, and cannot be changed. Raises `OptionError` for parts that cannot
    stand there: the subject is an IRI or a blank node, the predicate an IRI, the object any term.
    """

    __slots__ = ("_parts",)
    _parts: tuple[URIRef | BNode, URIRef, Any]

    def __new__(cls, subject: Any, predicate: Any, object: Any) -> TripleTerm:
        if not isinstance(subject, (URIRef, BNode)) or not isinstance(predicate, URIRef) or not _is_term(object):
            problem = f"no triple term has the subject {subject!r}, the predicate {predicate!r}, the object {object!r}"
            raise OptionError(problem, "the subject is an IRI or a blank node, the predicate an IRI, the object a term")
        if isinstance(object, Literal) and str(object.datatype) == _STRING:
            object = Literal(str(object))
        self = str.__new__(cls, f"<<( {_text(subject)} {_text(predicate)} {_text(object)} )>>")
        self._parts = subject, predicate, object
        return self

    @property
    def parts(self) -> tuple[URIRef | BNode, URIRef, Any]:
        """Subject, predicate and object."""
        return self._parts

    @property
    def subject(self) -> URIRef | BNode:
        return self._parts[0]

    @property
    def predicate(self) -> URIRef:
        return self._parts[1]

    @property
    def object(self) -> Any:
        return self._parts[2]

    def n3(self, namespace_manager: Any = None) -> str:
        """The term in N-Triples 1.2; in Turtle 1.2 with the prefixes of a manager."""
        if namespace_manager is None:
            return f"<<( {' '.join(_text(part, str) for part in self._parts)} )>>"
        return f"<<( {' '.join(part.n3(namespace_manager) for part in self._parts)} )>>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TripleTerm, self._parts

    def __repr__(self) -> str:
        return f"TripleTerm({', '.join(map(repr, self._parts))})"


class DirectionalString(Literal):
    """A string with a language tag and a base direction (RDF 1.2 §3.4): `"text"@en--ltr`.

    `language` is `en--ltr`, as documents write it, so that rdflib compares and writes it right; `tag` and `direction`
    are its parts. Raises `OptionError` for a direction other than `ltr` and `rtl`, or a tag that is none.
    """

    __slots__ = ()

    def __new__(cls, text: str, language: str, direction: str | None = None) -> DirectionalString:
        tag, _, named = language.partition(_APART)
        direction = named if direction is None else direction
        if direction not in DIRECTIONS:
            raise OptionError(f"{direction!r} is no base direction", f"one of {', '.join(DIRECTIONS)}")
        try:
            self = super().__new__(cls, text, lang=tag)
        except ValueError as error:
            raise OptionError(str(error)) from None
        self._language = f"{self.language}{_APART}{direction}"
        return self

    @property
    def tag(self) -> str:
        """The language tag without the direction."""
        return str(self.language).partition(_APART)[0]

    @property
    def direction(self) -> str:
        """`ltr` or `rtl`."""
        return str(self.language).partition(_APART)[2]

    def __reduce__(self) -> tuple[Any, ...]:
        return DirectionalString, (str(self), self.language)


def split_tag(language: str) -> tuple[str, str]:
    """The language tag and the direction of `en--ltr`; the direction is empty if there is none."""
    tag, _, direction = language.partition(_APART)
    return tag, direction


def triple_key(subject: str, predicate: str, object: str) -> str:
    """The key of the triple term whose parts have these keys."""
    return f'"{len(subject)} {len(predicate)} {subject}{predicate}{object}{TRIPLE_END}'


def is_triple_key(key: str) -> bool:
    """True if this is the key of a triple term."""
    return key.endswith(TRIPLE_END)


def parts_of_key(key: str) -> tuple[str, str, str]:
    """The keys of the parts of the triple term with this key (`triple_key`). ValueError if it is damaged."""
    first, second, rest = key[1 : -len(TRIPLE_END)].split(" ", 2)
    size, end = int(first), int(first) + int(second)
    return rest[:size], rest[size:end], rest[end:]


def has_blanks(term: Any) -> bool:
    """True if a triple term has a blank node in it, also inside its object."""
    return isinstance(term, TripleTerm) and any(isinstance(part, BNode) or has_blanks(part) for part in term.parts)


def with_nodes(term: Any, node: Callable[[BNode], Any]) -> Any:
    """A triple term with other blank nodes, `node(b)` for b, also inside its object; any other term as it is."""
    if not isinstance(term, TripleTerm):
        return node(term) if isinstance(term, BNode) else term
    return TripleTerm(*(with_nodes(part, node) for part in term.parts))


def _is_term(value: object) -> TypeGuard[Any]:
    return isinstance(value, (IdentifiedNode, Literal, TripleTerm))


def _text(term: Any, case: Callable[[str], str] = str.lower) -> str:
    """The term in N-Triples, tags in lower case, so that equal terms have equal texts, or in another `case`."""
    match term:
        case URIRef():
            return f"<{term}>"
        case BNode():
            return f"_:{term}"
        case TripleTerm():
            return f"<<( {' '.join(_text(part, case) for part in term.parts)} )>>"
    escaped = f'"{str(term).translate(_ESCAPES)}"'
    if term.language:
        return f"{escaped}@{case(term.language)}"
    return f"{escaped}^^<{term.datatype}>" if term.datatype else escaped
