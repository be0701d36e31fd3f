"""rdflib's grammar of SPARQL, changed to record positions, to keep literals as written, for triples in any number, and
to try fewer alternatives.

pyparsing tries the alternatives of a rule one after another, and each that fails costs an exception: for a name, each
of some 80 functions. `_ByFirst` tries only the alternatives that can begin with the next character, in the same order,
so trees and error positions stay the same. PERF: random graph patterns of some 1,000 characters are parsed in 19 ms in
place of 34.
"""

from __future__ import annotations

import string
from copy import copy
from typing import Any, Final

from pyparsing import (
    And,
    CaselessKeyword,
    Forward,
    Literal,
    MatchFirst,
    OneOrMore,
    Optional,
    ParserElement,
    ParseResults,
    Suppress,
    TokenConverter,
    ZeroOrMore,
)
from rdflib import term
from rdflib.plugins.sparql.parser import (
    DECIMAL_NEGATIVE,
    DOUBLE_NEGATIVE,
    INTEGER_NEGATIVE,
    ConstructTriples,
    Query,
    TriplesBlock,
    TriplesSameSubject,
    TriplesSameSubjectPath,
)
from rdflib.plugins.sparql.parserutils import Comp, ParamList

from spaseq.gpm.legal import PLACED

__all__ = ["Query"]

# rdflib negates the value of such a literal, which it cannot do for a decimal, and rewrites its text ("-01" to "-1").
for _negative in (DECIMAL_NEGATIVE, DOUBLE_NEGATIVE, INTEGER_NEGATIVE):
    _negative.set_parse_action(lambda tokens: term.Literal(f"-{tokens[0]}", datatype=tokens[0].datatype))

# rdflib's rules of triples call themselves for each that follows a dot: 82 of them took Python's recursion limit.
for _rule, _list, _triples in (
    (TriplesBlock, "triples", TriplesSameSubjectPath),
    (ConstructTriples, "template", TriplesSameSubject),
):
    _one = ParamList(_list, _triples)
    _rule <<= _one + ZeroOrMore(Suppress(".") + _one) + Optional(Suppress("."))

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


def _place(text: str, start: int, tokens: ParseResults) -> None:
    tokens[0].start = start


def _prepare(grammar: ParserElement) -> None:
    grammar.streamline()  # as the first use of it does; alternatives are moved there
    elements = _elements(grammar)
    choices = [element for element in elements if type(element) is MatchFirst]
    firsts = {id(alternative): _first(alternative) for choice in choices for alternative in choice.exprs}
    for choice in choices:
        _ByFirst.become(choice, firsts)
    for element in elements:
        # The nodes of the parse tree to which errors may refer get their position.
        if isinstance(element, Comp) and element.name in PLACED:
            element.add_parse_action(_place)


_prepare(Query)
