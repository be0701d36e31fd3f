"""Compile the group graph pattern of a GPM (seed SPAseq §4.2, Definitions 7 and 15).

rdflib parses the group; `compile_pattern` takes it apart, once:

* the *event part*, evaluated on every event graph;
* the *knowledge parts*: `GRAPH <iri> { … }` joined at the top level of the group, evaluated over the registered graph
  once and then joined. A GRAPH elsewhere (inside OPTIONAL, UNION, EXISTS, or with a variable) is left where it is and
  evaluated with the event part, over the same registered graphs;
* the *conditions*: the top-level FILTERs, each conjunct its own (a FILTER keeps a solution if its condition is true,
  and `a && b` is true exactly if both are). A condition all of whose variables the group binds is *local*; any other is
  *correlated* and becomes part of the join with what a run already holds.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import rdflib
from pyparsing import ParseBaseException, ParseResults
from rdflib.plugins.sparql.algebra import translateGroupGraphPattern, translatePath, translateQuery, traverse
from rdflib.plugins.sparql.parser import DECIMAL_NEGATIVE, DOUBLE_NEGATIVE, INTEGER_NEGATIVE, parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Prologue
from rdflib.term import Literal, URIRef, Variable

from spaseq.errors import QuerySemanticsError, QuerySyntaxError, Span, SpaseqError, UnsupportedFeature
from spaseq.gpm import algebra, comparison
from spaseq.gpm.functions import is_function
from spaseq.rdf import plain_literal, quiet_literals

__all__ = [
    "Condition",
    "GraphPattern",
    "Part",
    "Source",
    "check_prefixes",
    "check_values",
    "compile_pattern",
    "literals_as_written",
    "name_keys",
    "prepared",
    "settled",
]

_LITERALS: Final = threading.Lock()

# rdflib negates the value of such a literal, which it cannot do for a decimal, and rewrites its text ("-01" to "-1").
for _negative in (DECIMAL_NEGATIVE, DOUBLE_NEGATIVE, INTEGER_NEGATIVE):
    _negative.set_parse_action(lambda tokens: Literal(f"-{tokens[0]}", datatype=tokens[0].datatype))


@dataclass(frozen=True, slots=True)
class Source:
    """Where a group graph pattern stands: `query[start:end]` is the group, braces included.

    `prefixes` are (label, IRI) pairs, `masked` is the query with strings, IRIs and comments blanked, `name` is the
    GPM's.
    """

    query: str
    masked: str
    start: int
    end: int
    name: str
    prefixes: tuple[tuple[str, str], ...]
    base: str
    file: str

    @property
    def lead(self) -> str:
        """The prologue as SPARQL has it."""
        base = f"BASE <{self.base}>\n" if self.base else ""
        return base + "".join(f"PREFIX {label}: <{iri}>\n" for label, iri in self.prefixes)

    def span(self, start: int, end: int) -> Span:
        """The span of an offset pair of the query, kept within the group."""
        start = min(max(start, self.start), self.end - 1)
        return Span.at(self.query, start, min(max(end, start + 1), self.end))

    def find(self, pattern: str) -> Span | None:
        """Where `pattern` first matches in the group, outside strings, IRIs and comments."""
        match = re.compile(pattern, re.IGNORECASE).search(self.masked, self.start, self.end)
        return Span.at(self.query, *match.span()) if match else None

    def variable(self, name: str) -> Span | None:
        """Where the group first names a variable."""
        return self.find(rf"[?$]{re.escape(name)}(?!\w)")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a pattern: our node for it, and rdflib's, which its evaluator needs."""

    node: algebra.Node
    handle: Any = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunct of a top-level FILTER: its expression, the variables it names, and rdflib's expression."""

    expression: algebra.Expression
    variables: frozenset[str]
    handle: Any = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """A compiled GPM.

    `streams`: IRIs of the streams it reads. `event`, `knowledge`: see the module. `local`, `correlated`: the
    conditions. `binds`: the variables a solution may bind; `certain`: those every solution binds. `required`:
    predicates that an event must have. `graphs`: IRIs of all graphs named by GRAPH; `any_graph`: whether there is a
    `GRAPH ?g`.
    """

    name: str
    streams: tuple[str, ...]
    event: Part
    knowledge: tuple[tuple[str, Part], ...]
    local: tuple[Condition, ...]
    correlated: tuple[Condition, ...]
    binds: frozenset[str]
    certain: frozenset[str]
    required: frozenset[URIRef]
    graphs: tuple[str, ...]
    any_graph: bool
    prologue: Prologue = field(compare=False, repr=False)

    @property
    def needs(self) -> frozenset[str]:
        """The variables that the correlated conditions take from other GPMs."""
        return frozenset().union(*(c.variables for c in self.correlated)) - self.binds

    @property
    def unknown_functions(self) -> frozenset[str]:
        """The IRIs of functions that its expressions call and nobody has defined: they are errors wherever asked."""
        nodes = [self.event.node, *(part.node for _, part in self.knowledge)]
        conditions = [condition.expression for condition in (*self.local, *self.correlated)]
        called = frozenset(algebra.functions_called((*nodes, *conditions)))
        return frozenset(iri for iri in called if not is_function(iri))

    @property
    def mentions(self) -> frozenset[str]:
        """All variables of the GPM that others can share."""
        return self.binds | self.needs


def compile_pattern(source: Source, streams: tuple[str, ...]) -> GraphPattern:
    """The compiled GPM.

    Raises `QuerySyntaxError` where the group is not SPARQL, `QuerySemanticsError` for an undeclared prefix, and
    `UnsupportedFeature` for SERVICE; each with its place in the query.
    """
    prologue, root = _translate(source)
    conditions, body = _conditions(root)
    leaves = tuple(_leaves(body))
    knowledge = [leaf for leaf in leaves if _is_knowledge(leaf)]
    event = _joined([leaf for leaf in leaves if not _is_knowledge(leaf)])
    whole = _node(root, source)
    names = algebra.graph_names(whole)
    binds = algebra.visible(whole)
    sorted_conditions = [_condition(c) for c in conditions]
    event_node = algebra.convert(event)
    return GraphPattern(
        name=source.name,
        streams=streams,
        event=Part(event_node, event),
        knowledge=tuple((str(leaf.term), Part(algebra.convert(leaf.p), leaf.p)) for leaf in knowledge),
        local=tuple(c for c in sorted_conditions if c.variables <= binds),
        correlated=tuple(c for c in sorted_conditions if not c.variables <= binds),
        binds=binds,
        certain=algebra.certain(whole),
        required=algebra.required_predicates(event_node),
        graphs=tuple(str(name) for name in names if not isinstance(name, Variable)),
        any_graph=any(isinstance(name, Variable) for name in names),
        prologue=prologue,
    )


# -- text to rdflib's algebra


def _translate(source: Source) -> tuple[Prologue, CompValue]:
    """rdflib's prologue and the algebra of the group."""
    lead = source.lead + "SELECT * WHERE "
    body, offsets = prepared(source.query[source.start : source.end])
    try:
        with literals_as_written():
            tree = parseQuery(lead + body)
    except ParseBaseException as error:
        raise _syntax_error(source, source.start + offsets[min(max(error.loc - len(lead), 0), len(body))]) from None
    except RecursionError:
        raise _wrong(source, f"the graph pattern of GPM {source.name} is nested too deeply", None) from None
    except (ValueError, OverflowError) as error:
        raise _wrong(source, f"the graph pattern of GPM {source.name} cannot be read: {error}", None) from None
    check_prefixes(tree, source)
    check_values(tree, source)
    name_keys(tree)
    try:
        with literals_as_written():
            query = translateQuery(tree)
    except SpaseqError:
        raise
    except RecursionError:
        raise _wrong(source, f"the graph pattern of GPM {source.name} is nested too deeply", None) from None
    except Exception as error:  # rdflib raises bare Exceptions here
        raise _wrong(source, f"the graph pattern of GPM {source.name} is not valid SPARQL: {error}", None) from error
    return query.prologue, settled(query.algebra.p.p)


@contextmanager
def literals_as_written() -> Iterator[None]:
    """While it is open, rdflib neither rewrites the text of literals ("01" to "1") nor complains about them.

    A term of a pattern matches the very same term (SPARQL 1.1 §18.3), and streams keep what their source wrote.
    """
    with _LITERALS, quiet_literals():
        before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            yield
        finally:
            rdflib.NORMALIZE_LITERALS = before


def settled(value: Any) -> Any:
    """An algebra tree with comparisons as SPARQL has them, and with `"x"^^xsd:string` as `"x"`: RDF 1.1 has them as one
    term, rdflib as two. EXISTS outside FILTER and BIND, which rdflib leaves as it was written, is translated too."""
    if isinstance(value, CompValue):
        if value.name in ("Builtin_EXISTS", "Builtin_NOTEXISTS") and "graph" not in vars(value):
            value.graph = translateGroupGraphPattern(traverse(dict.get(value, "graph"), visitPost=translatePath))
        for name, child in list(value.items()):
            value[name] = settled(child)
        if (inner := vars(value).get("graph")) is not None:  # of EXISTS: rdflib puts its translation beside the items
            value.graph = settled(inner)
        comparison.settle(value)
        return value
    if isinstance(value, (list, ParseResults)):
        return [settled(item) for item in value]
    if isinstance(value, tuple):
        return tuple(settled(item) for item in value)
    return plain_literal(value) if isinstance(value, Literal) else value


def prepared(group: str) -> tuple[str, list[int]]:
    r"""`group` as rdflib may read it, and for each of its characters (and the end) the offset in `group` it came from.

    rdflib expands \u escapes before it parses, and pyparsing expands tabs to the next tab stop, in strings too: both
    would move what follows. So escapes are expanded here, and tabs become a blank, or `\t` inside a string. Of inverses
    in a negated property set it forgets the IRIs, so `!(:p|^:q)` is given to it as `(!(:p)|^!(:q))`, which is the same.
    """
    expanded, first = _replaced(group, _ESCAPE, lambda match: _unescaped(match[0]))
    without, second = _replaced(expanded, _TOKEN, _without_tabs)
    turned, third = _replaced(without, _NEGATED, _turned)
    return turned, [first[second[offset]] for offset in third]


_ESCAPE = re.compile(r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}")
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


def _turned(match: re.Match[str]) -> str:
    """A negated property set with its inverse part outside."""
    if match["one"]:
        return f"^!({match['one']})"
    names = [name.strip() for name in (match["set"] or "").split("|")] if match["set"] else []
    ahead = "|".join(name for name in names if not name.startswith("^"))
    back = "|".join(name[1:].strip() for name in names if name.startswith("^"))
    if not back:
        return match[0]
    return f"(!({ahead})|^!({back}))" if ahead else f"^!({back})"


def _replaced(text: str, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> tuple[str, list[int]]:
    """`text` with each match of `pattern` replaced, and for each character of that (and its end) where it came from."""
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


def _unescaped(escape: str) -> str:
    code = int(escape[2:], 16)
    return chr(code) if code <= 0x10FFFF else escape


def _without_tabs(match: re.Match[str]) -> str:
    return match[0].replace("\t", "\\t" if match["string"] else " ")


def _syntax_error(source: Source, offset: int) -> QuerySyntaxError:
    rest = re.compile(r"\s*([?$]?\w+|\S|$)").match(source.query, offset)
    start = rest.start(1) if rest else offset
    word = rest[1] if rest else ""
    found = f"at {word!r}" if word else "at its end"
    return QuerySyntaxError(
        f"the graph pattern of GPM {source.name} is not SPARQL {found}",
        text=source.query,
        span=source.span(start, start + len(word)),
        source=source.file,
        hint="it holds triple patterns that end with '.', FILTER ( … ), OPTIONAL { … }, GRAPH <iri> { … }",
    )


def _wrong(source: Source, problem: str, span: Span | None) -> QuerySyntaxError:
    return QuerySyntaxError(
        problem, text=source.query, span=span or source.span(source.start, source.start + 1), source=source.file
    )


def check_prefixes(tree: ParseResults, source: Source) -> None:
    """rdflib knows a few dozen prefixes by itself; a query says which it uses."""
    declared = {label for label, _ in source.prefixes}
    for name in _prefixed_names(tree):
        label = name.prefix or ""
        if label not in declared:
            place = source.find(rf"(?<![\w?$:]){re.escape(label)}:")
            raise QuerySemanticsError(
                f"the prefix {label}: is not declared",
                text=source.query,
                span=place or source.span(source.start, source.start + 1),
                source=source.file,
                hint=f"declare it: PREFIX {label}: <…>",
            )


def check_values(tree: Any, source: Source) -> None:
    """rdflib lets rows of VALUES have more or fewer terms than there are variables."""
    if isinstance(tree, CompValue):
        if tree.var and tree.value and isinstance(tree.value[0], (list, ParseResults)):
            for row in tree.value:
                if len(row) != len(tree.var):
                    raise QuerySemanticsError(
                        f"a row of VALUES has {len(row)} terms for {len(tree.var)} variables",
                        text=source.query,
                        span=source.find(r"\bVALUES\b"),
                        source=source.file,
                        hint="write UNDEF for a variable that a row leaves open",
                    )
        tree = list(tree.values())
    for child in tree if isinstance(tree, (list, tuple, ParseResults)) else ():
        check_values(child, source)


def name_keys(tree: Any) -> None:
    """`GROUP BY (?x + 1)` as `GROUP BY (?x + 1 AS ?__key_0)`: rdflib loses an expression that has no name."""
    for number, node in enumerate(_unnamed_keys(tree)):
        node["var"] = Variable(f"__key_{number}")


def _unnamed_keys(tree: Any) -> Iterator[CompValue]:
    if isinstance(tree, CompValue):
        if tree.name == "GroupAs" and tree.var is None:
            yield tree
        tree = list(tree.values())
    for child in tree if isinstance(tree, (list, tuple, ParseResults)) else ():
        yield from _unnamed_keys(child)


def _prefixed_names(tree: Any) -> Iterator[CompValue]:
    if isinstance(tree, CompValue):
        if tree.name == "pname":
            yield tree
        for value in tree.values():
            yield from _prefixed_names(value)
    elif isinstance(tree, (list, tuple, ParseResults)):
        for value in tree:
            yield from _prefixed_names(value)


def _node(root: CompValue, source: Source) -> algebra.Node:
    """Our node for the whole group; what is refused by name gets its place."""
    try:
        return algebra.convert(root)
    except UnsupportedFeature as error:
        word = error.problem.split()[0]
        raise UnsupportedFeature(
            error.problem, text=source.query, span=source.find(rf"\b{word}\b"), source=source.file, hint=error.hint
        ) from None


# -- taking the group apart


def _conditions(root: CompValue) -> tuple[list[Any], CompValue]:
    """The conjuncts of the group's own FILTERs, and the pattern below them."""
    if root.name != "Filter":
        return [], root
    return list(_conjuncts(root.expr)), root.p


def _conjuncts(expression: Any) -> Iterator[Any]:
    if isinstance(expression, CompValue) and expression.name == "ConditionalAndExpression":
        yield from _conjuncts(expression.expr)
        for other in expression.other or ():
            yield from _conjuncts(other)
    else:
        yield expression


def _condition(handle: Any) -> Condition:
    expression = algebra.convert_expression(handle)
    return Condition(expression, algebra.expression_variables(expression), handle)


def _leaves(body: CompValue) -> Iterator[CompValue]:
    """The operands of the joins at the top of the group."""
    if body.name == "Join":
        yield from _leaves(body.p1)
        yield from _leaves(body.p2)
    else:
        yield body


def _is_knowledge(leaf: CompValue) -> bool:
    return leaf.name == "Graph" and isinstance(leaf.term, URIRef)


def _joined(leaves: list[CompValue]) -> CompValue:
    """The join of algebra nodes, in order; the empty pattern if there are none."""
    if not leaves:
        return CompValue("BGP", triples=[], _vars=set())
    first, *rest = leaves
    for leaf in rest:
        first = CompValue("Join", p1=first, p2=leaf, lazy=False, _vars=set(first._vars or ()) | set(leaf._vars or ()))
    return first
