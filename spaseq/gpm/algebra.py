"""The SPARQL algebra as our own frozen, typed nodes (SPARQL 1.1 §18.2).

rdflib parses a group graph pattern and translates it to an algebra of `CompValue`s. These are dictionaries with a name:
a misspelt attribute reads as None, and they hold mutable state during evaluation. `convert` reads that tree once, at
compile time, into the nodes below; nothing of it is kept. A node or expression with an unknown name raises
`InternalError` with that name; SERVICE raises `UnsupportedFeature`. The functions below analyse these nodes: the
variables a pattern binds, the graphs it reads, the predicates an event must have. The plan over columns evaluates them,
and `spaseq.gpm.reference` by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import Any, Final

from rdflib.namespace import RDF
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import Identifier, URIRef, Variable

from spaseq.core.errors import InternalError, UnsupportedFeature
from spaseq.core.pattern import balance
from spaseq.gpm.functions import FUNCTIONS
from spaseq.gpm.inline import InlineTerms


@dataclass(frozen=True, slots=True)
class Node:
    """Base of the algebra's nodes."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Base of expressions."""


@dataclass(frozen=True, slots=True)
class Term(Expression):
    """An IRI, a literal or a variable."""

    value: Identifier


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """An operator or function on its arguments in order.

    `name`: one of `FUNCTIONS` (`spaseq.gpm.functions.table`); a sign (`=`, `<`, `IN`, `&&`, `!`); or `Function`, whose
    first argument is the IRI of a cast or a registered function.
    """

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic(Call):
    """Sums (`+`) or products (`*`) from left to right; `signs` stand between the arguments."""

    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Aggregate(Call):
    """An aggregate, of its argument, or of `*` without one. `once`: DISTINCT. `separator` is that of GROUP_CONCAT."""

    once: bool
    separator: str

    @property
    def over(self) -> Expression | None:
        """The argument; None for `*`."""
        return self.arguments[0] if self.arguments else None


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """EXISTS or NOT EXISTS."""

    pattern: Node
    negated: bool


@dataclass(frozen=True, slots=True)
class BGP(Node):
    """Triple patterns; the predicate may be a property path."""

    triples: tuple[tuple[Any, Any, Any], ...]


@dataclass(frozen=True, slots=True)
class Join(Node):
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class LeftJoin(Node):
    """OPTIONAL, with the filter of the optional group."""

    left: Node
    right: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Filter(Node):
    child: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Union(Node):
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Minus(Node):
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class GraphNode(Node):
    """GRAPH name { child }; `name` is an IRI or a variable."""

    name: Identifier
    child: Node


@dataclass(frozen=True, slots=True)
class Extend(Node):
    """BIND, or a SELECT expression of a subquery."""

    child: Node
    variable: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Bound(Extend):
    """BIND of a value that is never an error, as SUBJECT of a triple term is."""


@dataclass(frozen=True, slots=True)
class Values(Node):
    """Inline data: rows of (variable, term) pairs, without the unbound variables, or these as columns. `undefined`: the
    variables of VALUES that no row binds (UNDEF); they are in scope nevertheless (SPARQL 1.1 §18.2.1)."""

    rows: tuple[tuple[tuple[str, Identifier], ...], ...] | InlineTerms
    undefined: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Projected(Node):
    """The SELECT of a subquery."""

    child: Node
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Distinct(Node):
    """DISTINCT or REDUCED of a subquery."""

    child: Node


@dataclass(frozen=True, slots=True)
class Ordered(Node):
    """ORDER BY of a subquery; `descending` by key."""

    child: Node
    keys: tuple[Expression, ...]
    descending: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Sliced(Node):
    child: Node
    start: int
    length: int | None


@dataclass(frozen=True, slots=True)
class Grouped(Node):
    child: Node
    keys: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregated(Node):
    """The aggregates over the groups of its child; each binds a variable."""

    child: Node
    results: tuple[tuple[str, Aggregate], ...]


ALWAYS: Final = Call("true", ())
"""The condition of an OPTIONAL that has no FILTER."""
SIGNS: Final = frozenset({"<", "<=", ">", ">=", "=", "!="})
"""The names of comparisons."""

# -- reading rdflib's tree


def convert(value: CompValue) -> Node:
    """Our node for an algebra node of rdflib.

    Raises `UnsupportedFeature` for SERVICE, and `InternalError`, with the name, for an unknown node.
    """
    if not isinstance(value, CompValue):
        raise InternalError(f"rdflib gave {type(value).__name__} where an algebra node was expected")
    match value.name:
        case "BGP":
            return BGP(tuple((s, p, o) for s, p, o in value.triples))
        case "Join":
            return Join(convert(value.p1), convert(value.p2))
        case "LeftJoin":
            return LeftJoin(convert(value.p1), convert(value.p2), convert_expression(value.expr))
        case "Filter":
            return Filter(convert(value.p), convert_expression(value.expr))
        case "Union":
            return balance(Union, [convert(part) for part in _alternatives(value)])
        case "Minus":
            return Minus(convert(value.p1), convert(value.p2))
        case "Graph":
            return GraphNode(value.term, convert(value.p))
        case "Extend":
            return Extend(convert(value.p), str(value.var), convert_expression(value.expr))
        case "ToMultiSet":
            return _multiset(value.p)
        case _:
            return _convert_subquery(value)


def _alternatives(value: CompValue) -> list[CompValue]:
    """The parts of a chain of UNIONs, which rdflib nests to the left."""
    parts: list[CompValue] = []
    while value.name == "Union":
        parts.append(value.p2)
        value = value.p1
    return [value, *reversed(parts)]


def _convert_subquery(value: CompValue) -> Node:
    match value.name:
        case "Project":
            return Projected(_without_samples(convert(value.p)), tuple(str(v) for v in value.PV))
        case "Distinct" | "Reduced":
            return Distinct(convert(value.p))
        case "OrderBy":
            keys, descending = (convert_expression(c.expr) for c in value.expr), (c.order == "DESC" for c in value.expr)
            return Ordered(convert(value.p), tuple(keys), tuple(descending))
        case "Slice":
            return Sliced(convert(value.p), int(value.start), None if value.length is None else int(value.length))
        case "Group":
            return Grouped(convert(value.p), tuple(convert_expression(e) for e in value.expr or ()))
        case "AggregateJoin":
            return Aggregated(convert(value.p), tuple((str(a.res), _aggregate(a)) for a in value.A))
        case "ServiceGraphPattern":
            raise UnsupportedFeature("SERVICE is refused: a query never opens a connection")
        case name:
            raise InternalError(f"the SPARQL algebra has a node {name!r} that this version does not know")


def _without_samples(node: Node) -> Node:
    """A SELECT with groups, in which a variable that it computes is the same in later expressions. rdflib takes it
    there for a variable of the group and samples it."""
    computed: set[str] = set()
    inner = node
    while isinstance(inner, Extend | Ordered | Filter):
        computed |= {inner.variable} if isinstance(inner, Extend) else set()
        inner = inner.child
    if not isinstance(inner, Aggregated):
        return node
    names = {
        name: str(sampled.over.value)
        for name, sampled in inner.results
        if sampled.name == "Sample" and isinstance(sampled.over, Term) and str(sampled.over.value) in computed
    }
    found: Node = rename(node, {name: own for name, own in names.items() if name not in computed})
    return found


def rename(value: Any, names: Mapping[str, str]) -> Any:
    """A node or an expression with variables renamed in its expressions, patterns of EXISTS, and aggregates."""
    match value:
        case Term(Variable() as name):
            return Term(Variable(names.get(str(name), str(name))))
        case Variable():  # of a triple, in EXISTS
            return Variable(names.get(str(value), str(value)))
        case Aggregated(child, results):
            own = tuple((names.get(name, name), rename(aggregate, names)) for name, aggregate in results)
            return Aggregated(rename(child, names), own)
        case Node() | Call() | Exists() if names:
            return replace(value, **{part.name: rename(getattr(value, part.name), names) for part in fields(value)})
        case tuple():
            return tuple(rename(item, names) for item in value)
        case _:
            return value


_NAME: Final = itemgetter(0)


def _multiset(value: Any) -> Node:
    """The node for a subquery or for inline data, which is `values` in rdflib."""
    if value.name != "values":
        return convert(value)
    rows = tuple(
        tuple(sorted(((str(k), v) for k, v in row.items() if type(v) is not str or v != "UNDEF"), key=_NAME))
        for row in value.res
    )
    names = {str(name) for row in value.res[:1] for name in row}
    return Values(rows, frozenset(names) - {name for row in rows for name, _ in row})


def convert_expression(value: Any) -> Expression:
    """Our node for an expression of rdflib's."""
    if isinstance(value, Identifier):
        return Term(value)
    if not isinstance(value, CompValue):
        raise InternalError(f"rdflib gave {type(value).__name__} where an expression was expected")
    match value.name:
        case "Builtin_EXISTS" | "Builtin_NOTEXISTS":
            return Exists(convert(value.graph), value.name == "Builtin_NOTEXISTS")
        case "AdditiveExpression" | "MultiplicativeExpression":
            name = "+" if value.name == "AdditiveExpression" else "*"
            return Arithmetic(name, tuple(_arguments(value)), tuple(map(str, value.op)))
        case "RelationalExpression":
            return Call(value.op, tuple(_arguments(value)))
        case "TrueFilter":
            return ALWAYS
        case name if name in _OPERATORS:
            return Call(_OPERATORS[name], tuple(_arguments(value)))
    name, arguments = value.name.removeprefix("Builtin_"), tuple(_arguments(value))
    row = FUNCTIONS.get(name)
    if row is None or not row.least <= len(arguments) <= row.most:
        raise InternalError(f"a SPARQL expression {value.name!r} that this version does not know")
    return Call(name, arguments)


_OPERATORS: Final = {
    "ConditionalAndExpression": "&&",
    "ConditionalOrExpression": "||",
    "UnaryNot": "!",
    "UnaryMinus": "minus",
    "UnaryPlus": "plus",
    "Function": "Function",
}


def _aggregate(value: CompValue) -> Aggregate:
    # rdflib's own `get` gives the key if there is no value
    over, separator = dict.get(value, "vars"), dict.get(value, "separator")
    return Aggregate(
        str(value.name).removeprefix("Aggregate_"),
        () if over == "*" else (convert_expression(over),),
        bool(dict.get(value, "distinct")),
        " " if separator is None else str(separator),
    )


def _arguments(value: CompValue) -> Iterator[Expression]:
    """The arguments in order. An empty list of them, which rdflib has as rdf:nil, has none."""
    listed = value.name in ("Builtin_CONCAT", "Builtin_COALESCE") or dict.get(value, "op") in ("IN", "NOT IN")
    for name, argument in value.items():
        if name in ("op", "distinct") or argument is None or (listed and name != "expr" and argument == RDF.nil):
            continue
        for item in argument if isinstance(argument, list) else [argument]:
            if isinstance(item, (Identifier, CompValue)):
                yield convert_expression(item)


# -- other nodes in their place


def rebuild(value: Any, change: Callable[[Node], Node]) -> Any:
    """`value`, a node or an expression, with `change` applied to the nodes directly below it, also inside EXISTS."""
    match value:
        case Node() | Exists() | Call():
            changed = {part.name: _rebuilt_child(getattr(value, part.name), change) for part in fields(value)}
            return replace(value, **changed)
        case _:
            return value


def _rebuilt_child(value: Any, change: Callable[[Node], Node]) -> Any:
    match value:
        case Node():
            return change(value)
        case tuple():
            return tuple(_rebuilt_child(item, change) for item in value)
        case _:
            return rebuild(value, change)


# -- questions


def walk(node: Node, *, into_graphs: bool = True) -> Iterator[Node]:
    """`node` and every node below it, also those inside EXISTS and, with `into_graphs`, those inside GRAPH."""
    yield node
    if isinstance(node, GraphNode) and not into_graphs:
        return
    for part in fields(node):
        yield from _walk_value(getattr(node, part.name), into_graphs)


def _walk_value(value: object, into_graphs: bool) -> Iterator[Node]:
    if isinstance(value, Node):
        yield from walk(value, into_graphs=into_graphs)
    elif isinstance(value, Exists):
        yield from walk(value.pattern, into_graphs=into_graphs)
    elif isinstance(value, Call):
        for argument in value.arguments:
            yield from _walk_value(argument, into_graphs)
    elif isinstance(value, tuple):
        for item in value:
            yield from _walk_value(item, into_graphs)


def depth(node: Node) -> int:
    """The most operators that stand inside each other, EXISTS and conditions left out. Not recursive."""
    deepest, level = 0, [node]
    while level:
        deepest += 1
        below = (getattr(n, part.name) for n in level for part in fields(n))
        level = [child for child in below if isinstance(child, Node)]
    return deepest


def visible(node: Node) -> frozenset[str]:
    """The variables that a solution of `node` may bind (SPARQL 1.1 §18.2.1)."""
    match node:
        case BGP(triples):
            return frozenset(str(t) for triple in triples for t in triple if isinstance(t, Variable))
        case Join(left, right) | LeftJoin(left, right) | Union(left, right):
            return visible(left) | visible(right)
        case Minus(left, _):
            return visible(left)
        case GraphNode(name, child):
            return visible(child) | ({str(name)} if isinstance(name, Variable) else frozenset())
        case Extend(child, variable, _):
            return visible(child) | {variable}
        case Values(InlineTerms() as rows):
            return frozenset(rows.names)
        case Values(rows, undefined):
            return undefined.union(name for row in rows for name, _ in row)
        case Projected(_, names):
            return frozenset(names)
        case Filter(child) | Distinct(child) | Ordered(child) | Sliced(child) | Grouped(child):
            return visible(child)
        case Aggregated(_, results):
            return frozenset(name for name, _ in results)
        case _:
            raise InternalError(f"no rule for the variables of {type(node).__name__}")


def certain(node: Node) -> frozenset[str]:
    """Variables that every solution of `node` binds (a lower bound)."""
    match node:
        case BGP():
            return visible(node)
        case Join(left, right):
            return certain(left) | certain(right)
        case LeftJoin(left, _) | Minus(left, _):
            return certain(left)
        case Union(left, right):
            return certain(left) & certain(right)
        case GraphNode(name, child):
            return certain(child) | ({str(name)} if isinstance(name, Variable) else frozenset())
        case Bound(child, variable, _):
            return certain(child) | {variable}
        case Extend(child, _, _):
            return certain(child)
        case Values(InlineTerms() as rows):
            return frozenset(rows.names) if len(rows) else frozenset()
        case Values(rows):
            return frozenset.intersection(*(frozenset(n for n, _ in row) for row in rows)) if rows else frozenset()
        case Projected(child, names):
            return certain(child) & frozenset(names)
        case Filter(child) | Distinct(child) | Ordered(child) | Sliced(child):
            return certain(child)
        case _:
            return frozenset()


def is_ordered(node: Node) -> bool:
    """True if an ORDER BY has ordered the solutions of a node."""
    while isinstance(node, Projected | Distinct | Sliced | Extend | Filter):
        node = node.child
    return isinstance(node, Ordered)


def required_predicates(node: Node) -> frozenset[URIRef]:
    """Predicates without which a default graph has no solution for `node` (a lower bound)."""
    match node:
        case BGP(triples):
            return frozenset(p for _, p, _ in triples if isinstance(p, URIRef))
        case Join(left, right):
            return required_predicates(left) | required_predicates(right)
        case LeftJoin(left, _) | Minus(left, _):
            return required_predicates(left)
        case Union(left, right):
            return required_predicates(left) & required_predicates(right)
        case Filter(child) | Extend(child) | Distinct(child) | Ordered(child) | Projected(child):
            return required_predicates(child)
        case _:
            return frozenset()


def predicates_named(node: Node) -> frozenset[URIRef]:
    """All predicates that a pattern's triples name, inside property paths and EXISTS too, but not inside GRAPH."""
    predicates = (p for inner in walk(node, into_graphs=False) if isinstance(inner, BGP) for _, p, _ in inner.triples)
    return frozenset().union(*map(_path_names, predicates))


def _path_names(path: Any) -> frozenset[URIRef]:
    match path:
        case URIRef():
            return frozenset({path})
        case InvPath(arg=inner) | MulPath(path=inner):
            return _path_names(inner)
        case SequencePath(args=args) | AlternativePath(args=args) | NegatedPath(args=args):
            return frozenset().union(*map(_path_names, args))
        case _:
            return frozenset()


def graph_names(node: Node) -> tuple[Identifier, ...]:
    """The names of all GRAPH clauses in `node`, each once, in order."""
    return tuple(dict.fromkeys(n.name for n in walk(node) if isinstance(n, GraphNode)))


def expression_variables(expression: Expression) -> frozenset[str]:
    """The variables an expression names, those inside EXISTS left out."""
    match expression:
        case Term(value):
            return frozenset({str(value)}) if isinstance(value, Variable) else frozenset()
        case Call(_, arguments):
            return frozenset().union(*(expression_variables(a) for a in arguments))
        case _:
            return frozenset()


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a condition of which all have to be true, in order."""
    if isinstance(condition, Call) and condition.name == "&&":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


def has_exists(expression: Expression) -> bool:
    """True if the expression holds an EXISTS."""
    return bool(exists_inside(expression))


def exists_inside(expression: Expression) -> list[Exists]:
    """The EXISTS of an expression in order, without those nested in another EXISTS."""
    match expression:
        case Exists():
            return [expression]
        case Call(_, arguments):
            return [found for argument in arguments for found in exists_inside(argument)]
        case _:
            return []


def functions_called(value: object) -> Iterator[tuple[str, int]]:
    """The calls of functions that IRIs name, in nodes and expressions: the IRI and the number of arguments."""
    for call in calls_inside(value):
        if call.name == "Function":
            given = len(call.arguments) - 1
            yield from ((str(iri.value), given) for iri in call.arguments[:1] if isinstance(iri, Term))


def calls_inside(value: object) -> Iterator[Call]:
    """All calls in a node or an expression, or in a tuple of these."""
    if isinstance(value, Call):
        yield value
        yield from calls_inside(value.arguments)
    elif isinstance(value, Node | Exists):
        for part in fields(value):
            yield from calls_inside(getattr(value, part.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from calls_inside(item)


def patterns_inside(expression: Expression) -> list[Node]:
    """The patterns of the EXISTS in an expression, those inside them left out."""
    return [found.pattern for found in exists_inside(expression)]


def mentioned_names(node: Node) -> frozenset[str]:
    """All variables that occur anywhere in a pattern."""
    found: set[str] = set()
    for inner in walk(node):
        match inner:
            case BGP() | Values():
                found |= visible(inner)
            case GraphNode(Variable() as name, _):
                found.add(str(name))
            case Extend(_, variable, value):
                found |= {variable} | expression_variables(value)
            case Filter(_, condition) | LeftJoin(_, _, condition):
                found |= expression_variables(condition)
            case Ordered(_, keys) | Grouped(_, keys):
                found |= frozenset().union(*map(expression_variables, keys))
            case Aggregated(_, results):
                found |= frozenset().union(*(expression_variables(value) for _, value in results))
            case _:
                pass
    return frozenset(found)


def condition_scopes(node: Node) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    """For each FILTER and BIND inside `node`: its description, the variables it names, and those its group can bind."""
    for inner in walk(node):
        match inner:
            case Filter(child, condition):
                yield "a FILTER inside a nested group", expression_variables(condition), visible(child)
            case LeftJoin(left, right, condition):
                yield "a FILTER inside OPTIONAL", expression_variables(condition), visible(left) | visible(right)
            case Extend(child, _, value):
                yield "a BIND", expression_variables(value), visible(child)
