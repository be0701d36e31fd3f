"""rdflib's grammar of SPARQL, changed to record positions, to keep literals as written, for triples in any number, for
SPARQL 1.2, and to try fewer alternatives.

A triple term is written as a blank node that three triples describe (`spaseq.gpm.triple_patterns`), and a reifier as
the subject of a triple with `rdf:reifies`. The blank nodes are named by their places in the text.

pyparsing tries the alternatives of a rule one after another, and each that fails costs an exception: for a name, each
of some 80 functions. `_ByFirst` tries only the alternatives that can begin with the next character, in the same order,
so trees and error positions stay the same. PERF: random graph patterns of some 1,000 characters are parsed in 19 ms in
place of 34.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from copy import copy
from importlib.util import find_spec, module_from_spec
from typing import Any, Final, NamedTuple

from pyparsing import (
    And,
    CaselessKeyword,
    Forward,
    Literal,
    MatchFirst,
    OneOrMore,
    Optional,
    ParseFatalException,
    ParserElement,
    ParseResults,
    Regex,
    Suppress,
    TokenConverter,
    ZeroOrMore,
)
from rdflib import term
from rdflib.namespace import RDF
from rdflib.plugins.sparql.parserutils import Comp, CompValue, Param, ParamList
from rdflib.term import BNode

from spaseq.gpm.legal import PLACED
from spaseq.gpm.triple_patterns import OBJECT, PREDICATE, SUBJECT
from spaseq.rdf import REIFIES

__all__ = ["Query"]


def _own_rules() -> Any:
    """rdflib's module of the grammar, loaded once more: its rules are changed below, and those of rdflib are not.
    PERF: 12 ms."""
    spec = find_spec("rdflib.plugins.sparql.parser")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_RULES: Final = _own_rules()
Query: Final[ParserElement] = _RULES.Query

# rdflib negates the value of such a literal, which it cannot do for a decimal, and rewrites its text ("-01" to "-1").
for _negative in (_RULES.DECIMAL_NEGATIVE, _RULES.DOUBLE_NEGATIVE, _RULES.INTEGER_NEGATIVE):
    _negative.set_parse_action(lambda tokens: term.Literal(f"-{tokens[0]}", datatype=tokens[0].datatype))

# -- triples, with what SPARQL 1.2 adds (§19.8, rules 79 to 121): triple terms, reifiers, annotations


class _Made:
    """A node of a triple: its term, and the triples that describe it, one term behind another."""

    __slots__ = ("term", "triples")

    def __init__(self, name: Any, triples: list[Any]) -> None:
        self.term = name
        self.triples = triples


class _Reifier(NamedTuple):
    """`~ name`."""

    name: Any


class _Object:
    """An object, with its annotations: reifiers, and lists of what is said about them. `place`: where it begins."""

    __slots__ = ("annotations", "node", "place")

    def __init__(self, place: int, node: Any, annotations: list[Any]) -> None:
        self.place = place
        self.node = node
        self.annotations = annotations


class _Said:
    """A predicate and its objects."""

    __slots__ = ("objects", "place", "predicate")

    def __init__(self, place: int, predicate: Any, objects: list[_Object]) -> None:
        self.place = place
        self.predicate = predicate
        self.objects = objects


def _split(token: Any) -> tuple[Any, list[Any]]:
    """The term of a node, and the triples that describe it."""
    return (token.term, token.triples) if isinstance(token, _Made) else (token, [])


def _triple_term(text: str, place: int, tokens: ParseResults) -> _Made:
    return _describe(BNode(f"triple term {place}"), tokens)


def _describe(name: BNode, parts: Iterable[Any]) -> _Made:
    """A triple term as a blank node, which three triples describe."""
    triples: list[Any] = []
    for predicate, token in zip((SUBJECT, PREDICATE, OBJECT), parts, strict=True):
        own, described = _split(token)
        triples += [*described, name, predicate, own]
    return _Made(name, triples)


def _reified_triple(text: str, place: int, tokens: ParseResults) -> _Made:
    parts, reifiers = list(tokens[:3]), list(tokens[3:])
    name = reifiers[0].name if reifiers else BNode(f"reifier {place}")
    made = _describe(BNode(f"reified triple {place}"), parts)
    return _Made(name, [*made.triples, name, REIFIES, made.term])


def _reifier(text: str, place: int, tokens: ParseResults) -> _Reifier:
    return _Reifier(tokens[0] if len(tokens) else BNode(f"reifier {place}"))


def _statements(text: str, subject: Any, said: Iterable[_Said]) -> list[Any]:
    """The triples about a subject, one term behind another."""
    found: list[Any] = []
    for each in said:
        for one in each.objects:
            name, described = _split(one.node)
            found += [*described, subject, each.predicate, name]
            if one.annotations:
                found += _annotations(text, subject, each, one, name)
    return found


def _annotations(text: str, subject: Any, said: _Said, one: _Object, name: Any) -> list[Any]:
    """The triples about the reifiers of a triple: `~ name {| … |}`. An annotation belongs to the reifier before it, or
    else to a new one."""
    predicate = _single(said.predicate)
    if predicate is None:
        raise ParseFatalException(text, said.place, "a property path has no reifier")
    found: list[Any] = []
    reifier: Any = None
    for number, annotation in enumerate(one.annotations):
        if isinstance(annotation, _Reifier):
            reifier = annotation.name
        if isinstance(annotation, _Reifier) or reifier is None:
            reifier = BNode(f"reifier {one.place} {number}") if reifier is None else reifier
            made = _describe(BNode(f"annotated triple {one.place} {number}"), (subject, predicate, name))
            found += [*made.triples, reifier, REIFIES, made.term]
        if not isinstance(annotation, _Reifier):
            found += _statements(text, reifier, annotation)
            reifier = None
    return found


def _single(predicate: Any) -> Any:
    """The predicate that a property path of one step is; None for another path."""
    while isinstance(predicate, CompValue) and predicate.name.startswith("Path"):
        parts = predicate.part
        single = predicate.name in ("PathAlternative", "PathSequence") and len(parts) == 1
        if not single and not (predicate.name == "PathElt" and predicate.mod is None):
            return None
        predicate = parts[0] if single else parts
    return predicate


def _about(text: str, place: int, tokens: ParseResults) -> list[Any]:
    """The triples of a subject."""
    subject, described = _split(tokens[0])
    return [*described, *_statements(text, subject, tokens[1:])]


def _property_list(text: str, place: int, tokens: ParseResults) -> _Made:
    name = BNode(f"node {place}")
    return _Made(name, _statements(text, name, tokens))


def _collection(text: str, place: int, tokens: ParseResults) -> _Made:
    names = [BNode(f"list {place} {i}") for i in range(len(tokens))]
    triples: list[Any] = []
    for name, token, rest in zip(names, tokens, [*names[1:], RDF.nil], strict=True):
        own, described = _split(token)
        triples += [*described, name, RDF.first, own, name, RDF.rest, rest]
    return _Made(names[0], triples)


def _either(*alternatives: ParserElement) -> ParserElement:
    return MatchFirst(list(alternatives))


_PLAIN: Final = (_RULES.Var, _RULES.iri, _RULES.RDFLiteral, _RULES.NumericLiteral, _RULES.BooleanLiteral,
                 _RULES.BlankNode)  # fmt: skip


def _triples(verb: ParserElement) -> ParserElement:
    """The rule of the triples about one subject, with `verb` for predicates."""
    triple_term, reified, node, said = Forward(), Forward(), Forward(), Forward()
    inner = _either(triple_term, *_PLAIN)
    triple_term <<= Suppress("<<(") + inner + _RULES.Verb + inner + Suppress(")>>")
    triple_term.set_parse_action(_triple_term)
    reifier = Suppress("~") + Optional(_either(_RULES.Var, _RULES.iri, _RULES.BlankNode))
    reifier.set_parse_action(_reifier)
    outer = _either(triple_term, reified, *_PLAIN)
    reified <<= Suppress("<<") + outer + _RULES.Verb + outer + Optional(reifier) + Suppress(">>")
    reified.set_parse_action(_reified_triple)
    block = Suppress("{|") + said + Suppress("|}")
    block.set_parse_action(lambda tokens: [list(tokens)])
    annotated = node + ZeroOrMore(reifier | block)
    annotated.set_parse_action(lambda text, place, tokens: _Object(place, tokens[0], list(tokens[1:])))
    pair = verb + annotated + ZeroOrMore(Suppress(",") + annotated)
    pair.set_parse_action(lambda text, place, tokens: _Said(place, tokens[0], list(tokens[1:])))
    said <<= pair + ZeroOrMore(Suppress(";") + Optional(pair))
    collection = Suppress("(") + OneOrMore(node) + Suppress(")")
    collection.set_parse_action(_collection)
    properties = Suppress("[") + said + Suppress("]")
    properties.set_parse_action(_property_list)
    node <<= _either(triple_term, _RULES.VarOrTerm, reified, collection, properties)
    about = _either(
        _either(triple_term, _RULES.VarOrTerm) + said, _either(reified, collection, properties) + Optional(said)
    )
    about.set_parse_action(_about)
    return about


# rdflib's rules of triples call themselves for each that follows a dot: 82 of them took Python's recursion limit.
for _rule, _list, _verb in (
    (_RULES.TriplesBlock, "triples", _RULES.VerbPath | _RULES.VerbSimple),
    (_RULES.ConstructTriples, "template", _RULES.Verb),
):
    _one = ParamList(_list, _triples(_verb))
    _rule <<= _one + ZeroOrMore(Suppress(".") + _one) + Optional(Suppress("."))

# -- expressions and data of SPARQL 1.2

_PREDICATE: Final = _either(_RULES.iri, _RULES.A)
_DATA = Forward()
_DATA <<= Comp(
    "TripleTermData",
    Suppress("<<(")
    + Param("subject", _RULES.iri)
    + Param("predicate", _PREDICATE)
    + Param("object", _either(_DATA, *_PLAIN[1:5]))
    + Suppress(")>>"),
)
_RULES.DataBlockValue.exprs.append(_DATA)
_VALUE = Forward()
_VALUE <<= Comp(
    "Builtin_TRIPLE",
    Suppress("<<(")
    + Param("arg1", _either(_RULES.iri, _RULES.Var))
    + Param("arg2", _either(_RULES.iri, _RULES.Var, _RULES.A))
    + Param("arg3", _either(_VALUE, *_PLAIN[:5]))
    + Suppress(")>>"),
)
_RULES.PrimaryExpression.exprs.append(_VALUE)
_UNARY = Forward()  # in SPARQL 1.1, only a primary expression stands behind "!"
_UNARY <<= _RULES.UnaryExpression
_RULES.UnaryExpression.exprs.insert(0, Comp("UnaryNot", Suppress("!") + Param("expr", _UNARY)))
_NEW: Final = {
    "isTRIPLE": 1, "TRIPLE": 3, "SUBJECT": 1, "PREDICATE": 1, "OBJECT": 1, "LANGDIR": 1, "hasLANGDIR": 1, "hasLANG": 1,
    "STRLANGDIR": 3,
}  # fmt: skip
"""The functions that SPARQL 1.2 adds, and how many arguments they take."""
for _name, _count in _NEW.items():
    _arguments: ParserElement = Param("arg1", _RULES.Expression)
    for _place in range(2, _count + 1):
        _arguments = _arguments + Suppress(",") + Param(f"arg{_place}", _RULES.Expression)
    _RULES.BuiltInCall.exprs.append(
        Comp(f"Builtin_{_name}", CaselessKeyword(_name) + Suppress("(") + _arguments + Suppress(")"))
    )
_TAG: Final = "[a-zA-Z]+(?:-[a-zA-Z0-9]+)*"

_SKIPPED: Final = frozenset((*string.whitespace, "#", ""))
"""Characters that may be skipped before an alternative, and the end of the text: here all alternatives are tried."""


class _ByFirst(MatchFirst):
    """Alternatives of which only those are tried that can begin with the next character."""

    firsts: tuple[frozenset[str] | None, ...]
    tried: dict[str, MatchFirst]

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Any:
        tried = self.tried.get(instring[loc : loc + 1])
        return MatchFirst.parseImpl(tried if tried is not None else self.tried["other"], instring, loc, do_actions)

    @classmethod
    def become(cls, choice: Any, firsts: dict[int, frozenset[str] | None]) -> None:
        """Changes `choice`, a MatchFirst to which other rules refer, into a `_ByFirst`. `firsts` has the first
        characters of each alternative, by its id; None if they are not known."""
        choice.__class__ = cls
        choice._prepare(tuple(firsts[id(alternative)] for alternative in choice.exprs))

    def _prepare(self, firsts: tuple[frozenset[str] | None, ...]) -> None:
        """Builds the list of alternatives for each character; `other` is the list for all characters without one."""
        self.firsts = firsts
        named = frozenset().union(*(first for first in self.firsts if first is not None))
        self.tried = {character: self._beginning(character) for character in (*named, "other")}
        self.tried |= dict.fromkeys(_SKIPPED, self)

    def _beginning(self, character: str) -> MatchFirst:
        chosen = copy(self)
        pairs = zip(self.exprs, self.firsts, strict=True)
        chosen.exprs = [alternative for alternative, first in pairs if first is None or character in first]
        return chosen


def _elements(element: ParserElement) -> list[ParserElement]:
    """All elements of a grammar, each once."""
    found: dict[int, ParserElement] = {}
    waiting = [element]
    while waiting:
        element = waiting.pop()
        if id(element) not in found:
            found[id(element)] = element
            waiting += element.recurse()
    return list(found.values())


def _first(element: ParserElement, above: tuple[ParserElement, ...] = ()) -> frozenset[str] | None:
    """The characters that the element may begin with; None if they are not known or it may match the empty text."""
    if any(element is other for other in above):
        return None
    above = (*above, element)
    match element:
        case CaselessKeyword():
            return frozenset((element.match[0].upper(), element.match[0].lower()))
        case Literal():
            return frozenset(element.match[0])
        case MatchFirst():
            found = [_first(alternative, above) for alternative in element.exprs]
            known = [first for first in found if first is not None]
            return frozenset().union(*known) if len(known) == len(found) else None
        case And():
            return _first(element.exprs[0], above)
        case OneOrMore() | Forward() | TokenConverter() if element.expr is not None:
            return _first(element.expr, above)
        case _:
            return None


def _note_place(text: str, start: int, tokens: ParseResults) -> None:
    tokens[0].start = start


def _prepare(grammar: ParserElement) -> None:
    grammar.streamline()  # as the first use of it does; alternatives are moved there
    elements = _elements(grammar)
    for element in elements:
        if isinstance(element, Regex) and element.pattern == _TAG:
            element.__init__(f"{_TAG}(?:--[a-zA-Z]+)?")  # type: ignore[misc]  # the rules refer to this object
            element.leave_whitespace()
    choices = [element for element in elements if type(element) is MatchFirst]
    firsts = {id(alternative): _first(alternative) for choice in choices for alternative in choice.exprs}
    for choice in choices:
        _ByFirst.become(choice, firsts)
    for element in elements:
        # The nodes of the parse tree to which errors may refer get their position.
        if isinstance(element, Comp) and element.name in PLACED:
            element.add_parse_action(_note_place)


_prepare(Query)
