"""From SPARQL in a query's text to rdflib's algebra; only here rdflib parses and translates.

`translate` puts a SPARQL query together from pieces of the user's text and has rdflib parse it. Then it resolves names
by the query's BASE and PREFIX, checks the rules of SPARQL (`legal`), and translates. Every error has its place in the
user's text. To correct deviations of rdflib from SPARQL, the text or the tree is changed on the way.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import InvalidOperation
from decimal import localcontext as decimal_context
from typing import Any, Final

import rdflib
from pyparsing import ParseBaseException, ParseResults
from rdflib.plugins.sparql.algebra import translateGroupGraphPattern, translatePath, translateQuery, traverse
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Prologue
from rdflib.term import Literal, URIRef, Variable

from spaseq.core.errors import OptionError, QueryError, QuerySemanticsError, QuerySyntaxError, Span, SpaseqError
from spaseq.core.text import ESCAPE, check_escapes, unescape
from spaseq.gpm.grammar import Query
from spaseq.gpm.legal import Breach, breaches
from spaseq.gpm.triple_patterns import PARTS
from spaseq.rdf import DirectionalString, TripleTerm, plain_literal, quiet_literals
from spaseq.rdf.iri import local_name, resolve_iri

_LITERALS: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Source:
    """The place of a group graph pattern in the query's text: `query[start:end]`, braces included.

    `prefixes` are (label, IRI) pairs, `masked` is the query with strings, IRIs and comments blanked, `name` the GPM's.
    """

    query: str
    masked: str
    start: int
    end: int
    name: str
    prefixes: tuple[tuple[str, str], ...]
    base: str
    file: str

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets in the query, cut to the group."""
        start = min(max(start, self.start), self.end - 1)
        return Span.at(self.query, start, min(max(end, start + 1), self.end))

    def find(self, pattern: str, start: int = 0) -> Span | None:
        """The span of the first match of `pattern` in the group from `start` on, outside strings, IRIs and comments."""
        match = re.compile(pattern, re.IGNORECASE).search(self.masked, max(start, self.start), self.end)
        return Span.at(self.query, *match.span(match.lastindex or 0)) if match else None

    def variable(self, name: str) -> Span | None:
        """The span at which the group first names a variable."""
        return self.find(rf"[?$]{re.escape(name)}(?!\w)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the query's text, `query[start:end]`; `what` names it in errors, `hint` its allowed contents."""

    start: int
    end: int
    what: str
    hint: str = ""


def translate(
    source: Source, parts: Sequence[Piece | str], *, allowed: frozenset[str] = frozenset()
) -> tuple[Prologue, CompValue, list[QueryError]]:
    """rdflib's prologue and algebra of a query made of `parts`: our text (str), and pieces of the user's.

    Raises `QuerySyntaxError` if a piece is not SPARQL, and `QuerySemanticsError` for an undeclared prefix and for a
    broken rule of SPARQL; each with its place in the query. Errors of the rules in `allowed` are returned, not raised.
    """
    text, offsets = _put_together(source, parts)
    pieces = [part for part in parts if isinstance(part, Piece)]
    for piece in pieces:
        check_escapes(source.query, source.file, piece.start, piece.end)
    try:
        with literals_as_written():
            tree = Query.parse_string(text, parse_all=True)  # not parseQuery, which expands escapes again
            names = _Names(source, offsets)
            tree[1] = traverse(tree[1], visitPost=names.resolved)
            names.check_tokens(pieces)
            broken = [(breach.rule, _broken_error(source, offsets, breach)) for breach in breaches(tree[1])]
            for rule, error in broken:
                if rule not in allowed:
                    raise error
            _name_keys(tree[1])
            _values_inside(tree[1])
            _values_of_nothing(tree[1])
            with decimal_context() as order:  # of triples by their terms, which a decimal and NaN do not have
                order.traps[InvalidOperation] = False
                query = translateQuery(tree, base=source.base)
    except ParseBaseException as error:
        raise _syntax_error(source, pieces, offsets[min(max(error.loc, 0), len(text))]) from None
    except SpaseqError:
        raise
    except RecursionError:
        raise _wrong(source, pieces[0], f"{pieces[0].what} is nested too deeply") from None
    except Exception as error:  # rdflib raises bare Exceptions here
        raise _wrong(source, pieces[0], f"{pieces[0].what} is not valid SPARQL: {error}") from error
    return query.prologue, query.algebra, [error for _, error in broken]


def _put_together(source: Source, parts: Sequence[Piece | str]) -> tuple[str, list[int]]:
    """The text of the SPARQL query, and for each of its characters, and its end, the offset in the user's query."""
    text, offsets = "", []
    at = next(part.start for part in parts if isinstance(part, Piece))
    for part in parts:
        if isinstance(part, str):
            offsets += [at] * len(part)
            text += part
        else:
            body, places = prepare(source.query[part.start : part.end])
            text += body + "\n"
            offsets += [part.start + place for place in places]
            at = part.end
    return text, [*offsets, at]


class _Names:
    """Resolves the IRIs of a parse tree: relative to BASE, and prefixed names by PREFIX."""

    def __init__(self, source: Source, offsets: list[int]) -> None:
        self._source = source
        self._offsets = offsets
        self._prefixes = dict(source.prefixes)
        self._written: set[str] = set()

    def resolved(self, node: Any) -> Any:
        """The term that replaces a node of the tree; None if the node stays."""
        if isinstance(node, CompValue) and node.name == "pname":
            label = node.prefix or ""
            if label not in self._prefixes:
                raise self._undeclared_error(label, node)
            return URIRef(self._prefixes[label] + local_name(node.localname or ""))
        if isinstance(node, CompValue) and node.name == "literal" and "--" in (node.lang or ""):
            return self._directional(node)
        if isinstance(node, CompValue) and node.name == "TripleTermData":
            subject, predicate, object = (_constant(node[name]) for name in ("subject", "predicate", "object"))
            return TripleTerm(subject, predicate, object)
        if isinstance(node, URIRef) and node not in PARTS:
            self._written.add(str(node))
            return URIRef(resolve_iri(self._source.base, node))
        return None

    def check_tokens(self, pieces: Sequence[Piece]) -> None:
        """Raises `QuerySyntaxError` for text that is an IRI by SPARQL's rules and two comparisons for rdflib, as in
        `?x<?a&&?b>?y`: the longest possible token counts (SPARQL 1.1 §19.8, note 3).
        """
        for piece in pieces:
            for token in _IRI_TOKEN.finditer(self._source.masked, piece.start, piece.end):
                written = ESCAPE.sub(unescape, self._source.query[token.start() + 1 : token.end() - 1])
                if written not in self._written:
                    span = Span.at(self._source.query, *token.span())
                    problem = f"<{written}> is an IRI (SPARQL 1.1 §19.8, note 3), and none can stand here"
                    hint = "put blanks around < and > where values are compared"
                    raise QuerySyntaxError(
                        problem, text=self._source.query, span=span, source=self._source.file, hint=hint
                    )

    def _directional(self, node: CompValue) -> DirectionalString:
        try:
            return DirectionalString(node.string, node.lang)
        except OptionError as error:
            source = self._source
            start = self._offsets[vars(node).get("start", 0)]
            raise QuerySyntaxError(
                f"{error.problem}: @{node.lang}",
                text=source.query,
                span=source.find(rf"@{re.escape(node.lang)}", start) or source.span(start, start + 1),
                source=source.file,
                hint=error.hint,
            ) from None

    def _undeclared_error(self, label: str, node: CompValue) -> QuerySemanticsError:
        source = self._source
        start = self._offsets[vars(node).get("start", 0)]
        place = source.find(rf"(?<![\w?$:]){re.escape(label)}:", start)
        return QuerySemanticsError(
            f"the prefix {label}: is not declared",
            text=source.query,
            span=place or source.span(source.start, source.start + 1),
            source=source.file,
            hint=f"declare it: PREFIX {label}: <…>",
        )


def _constant(node: Any) -> Any:
    """A term of inline data, whose names are resolved."""
    if isinstance(node, CompValue) and node.name == "literal":
        return plain_literal(Literal(node.string, lang=node.lang, datatype=node.datatype))
    return node


_BEYOND: Final = 1 << 60
"""For LIMIT and OFFSET, more than all rows."""
_IRI_TOKEN: Final = re.compile(r"< *>")
"""An IRI in masked text, whose inside is blank."""


def _broken_error(source: Source, offsets: list[int], breach: Breach) -> QuerySemanticsError:
    start = offsets[vars(breach.node).get("start", 0)]
    return QuerySemanticsError(
        f"{breach.problem} (SPARQL 1.1 {breach.rule})",
        text=source.query,
        span=source.find(breach.word, start) or source.span(start, start + 1),
        source=source.file,
        hint=breach.hint,
    )


_WORD: Final = re.compile(r"\s*([?$]?\w+|\S|$)")


def _syntax_error(source: Source, pieces: Sequence[Piece], offset: int) -> QuerySyntaxError:
    piece = next((p for p in pieces if p.start <= offset <= p.end), pieces[-1])
    rest = _WORD.match(source.query, offset, piece.end)
    start = rest.start(1) if rest else offset
    word = rest[1] if rest else ""
    found = f"at {word!r}" if word else "at its end"
    return QuerySyntaxError(
        f"{piece.what} is not SPARQL {found}",
        text=source.query,
        span=source.span(start, start + len(word) if word else start + 1),
        source=source.file,
        hint=piece.hint,
    )


def _wrong(source: Source, piece: Piece, problem: str) -> QuerySyntaxError:
    span = source.span(piece.start, piece.start + 1)
    return QuerySyntaxError(problem, text=source.query, span=span, source=source.file)


@contextmanager
def literals_as_written() -> Iterator[None]:
    """A context in which rdflib neither rewrites the text of literals ("01" to "1") nor warns about them.

    A term of a pattern matches only the same term (SPARQL 1.1 §18.3), and streams keep literals as they were written.
    """
    with _LITERALS, quiet_literals():
        before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            yield
        finally:
            rdflib.NORMALIZE_LITERALS = before


def prepare(group: str) -> tuple[str, list[int]]:
    r"""`group` prepared for rdflib, and for each of its characters, and its end, the offset in `group`.

    rdflib expands \u escapes before it parses, and pyparsing expands tabs, in strings too. Both would shift later
    positions. So escapes are expanded here, and tabs become a blank, or `\t` inside a string. An escaped character of a
    string is one of its characters, also a quote or a backslash (SPARQL 1.2 §19.2). In a negated property
    set, rdflib loses the IRIs of inverses, so `!(:p|^:q)` becomes the equivalent `(!(:p)|^!(:q))`.
    """
    ends = [match.span() for match in _TOKEN.finditer(group) if match["string"]]
    starts = [start for start, _ in ends]

    def character(escape: re.Match[str]) -> str:
        found = unescape(escape)
        place = bisect_right(starts, escape.start()) - 1
        if place < 0 or escape.start() >= ends[place][1] or not escape.lastindex:
            return found
        return f"\\{found}" if found == group[starts[place]] else _IN_STRINGS.get(found, found)

    expanded, first = _replace(group, ESCAPE, character)
    without, second = _replace(expanded, _TOKEN, _without_tabs)
    turned, third = _replace(without, _NEGATED, _turn)
    return turned, [first[second[offset]] for offset in third]


_IN_STRINGS: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


_TOKEN = re.compile(
    r"""(?P<string>'{3}(?:\\.|[^\\])*?'{3} | \"{3}(?:\\.|[^\\])*?\"{3}
                 | '(?:\\.|[^'\\\n])*'  | \"(?:\\.|[^\"\\\n])*\")
      | <[^<>"{}|^`\s]*>
      | \#[^\n]*
      | \t""",
    re.VERBOSE | re.DOTALL,
)


_NEGATED = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} | \"(?:\\.|[^\"\\\n])*\" | '(?:\\.|[^'\\\n])*'
      | <[^<>"{}|^`\s]*> | \#[^\n]*
      | !\s*(?:\^\s*(?P<one>IRI) | \(\s*(?P<set>\^?\s*IRI(?:\s*\|\s*\^?\s*IRI)*)\s*\))
    """.replace("IRI", r"""(?:<[^<>"{}|^`\s]*>|[^\s()|^!<>"'{}?$,;]*:[^\s()|^!<>"'{}?$,;]*|a)"""),
    re.VERBOSE | re.DOTALL,
)


def _turn(match: re.Match[str]) -> str:
    """A negated property set as an alternative of its forward part and its inverse part."""
    if match["one"]:
        return f"^!({match['one']})"
    names = [name.strip() for name in (match["set"] or "").split("|")] if match["set"] else []
    ahead = "|".join(name for name in names if not name.startswith("^"))
    back = "|".join(name[1:].strip() for name in names if name.startswith("^"))
    if not back:
        return match[0]
    return f"(!({ahead})|^!({back}))" if ahead else f"^!({back})"


def _replace(text: str, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> tuple[str, list[int]]:
    """`text` with each match of `pattern` replaced, and for each character of the result, and its end, the offset in
    `text` that it came from."""
    parts: list[str] = []
    offsets: list[int] = []
    done = 0
    for match in pattern.finditer(text):
        piece = new(match)
        parts += [text[done : match.start()], piece]
        offsets += range(done, match.start())
        last = match.end() - 1
        offsets += [min(match.start() + i, last) for i in range(len(piece))]
        done = match.end()
    parts.append(text[done:])
    return "".join(parts), [*offsets, *range(done, len(text) + 1)]


def _without_tabs(match: re.Match[str]) -> str:
    return match[0].replace("\t", "\\t" if match["string"] else " ")


def settle(value: Any) -> Any:
    """An algebra tree with `"x"^^xsd:string` as `"x"` (one term in RDF 1.1, two in rdflib). EXISTS outside FILTER and
    BIND is translated, and VALUES without rows becomes inline data; rdflib does neither."""
    if isinstance(value, CompValue):
        if value.name in ("Builtin_EXISTS", "Builtin_NOTEXISTS") and "graph" not in vars(value):
            value.graph = translateGroupGraphPattern(traverse(dict.get(value, "graph"), visitPost=translatePath))
        for name, child in list(value.items()):
            value[name] = settle(child)
        if (inner := vars(value).get("graph")) is not None:  # of EXISTS: rdflib puts its translation beside the items
            value.graph = settle(inner)
        if value.name == "ToMultiSet" and value.p == []:  # VALUES without rows, which rdflib cannot evaluate
            value["p"] = CompValue("values", res=[])
        if value.name == "Slice":
            for name in ("start", "length"):
                if isinstance(dict.get(value, name), Literal):  # of more digits than rdflib reads
                    value[name] = _BEYOND
        return value
    if isinstance(value, (list, ParseResults)):
        return [settle(item) for item in value]
    if isinstance(value, tuple):
        return tuple(settle(item) for item in value)
    return plain_literal(value) if isinstance(value, Literal) else value


def _name_keys(tree: Any) -> None:
    """Changes `GROUP BY (?x + 1)` to `GROUP BY (?x + 1 AS ?__key_0)`: rdflib loses an expression without a name."""
    for number, node in enumerate(_unnamed_keys(tree)):
        node["var"] = Variable(f"__key_{number}")


def _unnamed_keys(tree: Any) -> Iterator[CompValue]:
    return (node for node in _nodes(tree) if node.name == "GroupAs" and node.var is None)


def _values_inside(tree: Any) -> None:
    """Changes `SELECT * { P } VALUES D` to the equivalent `SELECT * { { P } VALUES D }`. SPARQL 1.1 joins P with D
    (§18.2.4.3) before it determines the visible variables (§18.2.4.4). In rdflib, `*` lacks variables that only D
    has."""
    for node in _nodes(tree):
        if node.name == "SubSelect" and not node.projection and node.valuesClause:
            data = CompValue("InlineData", **node.valuesClause)
            group = CompValue("GroupOrUnionGraphPattern", graph=[node.where])
            node["where"] = CompValue("GroupGraphPatternSub", part=[group, data])
            node["valuesClause"] = None


def _values_of_nothing(tree: Any) -> None:
    """Changes `VALUES () { () () }` to `{ } UNION { }`: rdflib loses rows without variables."""
    for node in _nodes(tree):
        for i, part in enumerate(node.part or () if node.name == "GroupGraphPatternSub" else ()):
            if part.name == "InlineData" and not part.var and part.value:
                empty = [CompValue("GroupGraphPatternSub", part=[]) for _ in part.value]
                node.part[i] = CompValue("GroupOrUnionGraphPattern", graph=empty)


def _nodes(tree: Any) -> Iterator[CompValue]:
    """The nodes of a parse tree, each before those inside it."""
    if isinstance(tree, CompValue):
        yield tree
        tree = list(tree.values())
    for child in tree if isinstance(tree, (list, tuple, ParseResults)) else ():
        yield from _nodes(child)
