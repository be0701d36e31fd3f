"""Evaluates rdflib's algebra as SPARQL 1.1 §18 defines it: the reference for the plan over columns, and the evaluator
for patterns that the plan does not cover.

Basic graph patterns, expressions and the compatibility of solutions are rdflib's. These rules are not:

* *Scopes.* rdflib passes the solutions of one operand to the other, so that nested groups, subqueries, OPTIONAL and
  MINUS see bindings that they must not see. Here each operand is evaluated by itself, and the solutions are joined.
* *EXISTS* substitutes the outer solution's terms for variables of the pattern (§18.6). A substituted variable
  (`Context.outer`) has its term in expressions and triple patterns, and is not part of the inner solutions. A variable
  that a subquery does not select is a different one of the same name. A value from BIND or VALUES must be equal to the
  outer term.
* *Aggregates* follow `spaseq.gpm.aggregates`; GROUP BY of no solutions has no groups.
* *GRAPH* with the name of a graph that does not exist has no solutions.
* *Paths* follow `spaseq.gpm.ways`.
* *Order.* If SPARQL leaves it open (LIMIT without ORDER BY, ties), solutions are in the order of their terms.
* *BNODE* with a text gives the same node in all expressions of one solution, and another one in the next solution.

Solutions are lists in which a solution occurs as often as in SPARQL's multisets.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from typing import Any, Final

from rdflib import Graph
from rdflib.paths import Path
from rdflib.plugins.sparql.evaluate import evalBGP
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Bindings, FrozenBindings, Prologue, QueryContext, SPARQLError
from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

from spaseq.core.errors import BudgetExceeded, InternalError, SpaseqError
from spaseq.gpm.aggregates import aggregated
from spaseq.gpm.comparison import order_place, term_place
from spaseq.gpm.functions import effective_truth
from spaseq.gpm.ways import ways
from spaseq.rdf import plain_literal, quiet_literals

__all__ = ["Context", "NamedGraphs", "Row", "evaluating", "is_true", "solutions", "value_in"]

_LOCK: Final = threading.Lock()
"""Held during every evaluation: rdflib's expressions have state meanwhile, which threads must not share."""
_NO_GRAPH: Final = Graph(bind_namespaces="none")
_Terms = MappingABC[Any, Identifier]


class NamedGraphs:
    """The graphs that GRAPH reads, by IRI, with a cache of the solutions of patterns on them."""

    def __init__(self, graphs: MappingABC[str, Graph]) -> None:
        self.graphs = graphs
        self._found: dict[tuple[str, int], tuple[Any, list[Row]]] = {}

    def once(self, iri: str, node: Any, solve: Callable[[], list[Row]]) -> list[Row]:
        """The solutions of `node` on a graph, computed once. The node is kept alive, since it is identified by `id`."""
        key = (iri, id(node))
        if key not in self._found:
            self._found[key] = node, solve()
        return self._found[key][1]


class Context(QueryContext):
    """The context of an evaluation: the graph, the named graphs, and inside EXISTS the `outer` terms. It never loads a
    graph.

    `inline`: a node of inline data, and the rows to use in its place. `behind_where`: see `spaseq.gpm.aggregates`.
    `budget`: how many solutions a step may have.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        named: NamedGraphs | None = None,
        prologue: Prologue | None = None,
        *,
        inline: tuple[Any, Sequence[_Terms]] = (None, ()),
        behind_where: bool = False,
        budget: int | None = None,
    ) -> None:
        super().__init__(None, [], initBindings={})
        self.graph: Graph = _NO_GRAPH if graph is None else graph
        self.prologue = prologue
        self.named: NamedGraphs = NamedGraphs({}) if named is None else named
        self.outer: dict[Variable, Identifier] = {}
        self.inline = inline
        self.behind_where = behind_where
        self.budget = budget
        self._moment = datetime.now(UTC)

    @property
    def now(self) -> datetime:
        """The value of NOW, the same in the whole evaluation (SPARQL 1.1 §17.4.5.1)."""
        return self._moment

    def clone(self, bindings: Any = None) -> Context:
        """The context with other bindings, which only rdflib's basic graph patterns use."""
        other = copy(self)
        other.bindings = Bindings(d=self.bindings if bindings is None else bindings)
        return other

    def on(self, graph: Graph) -> Context:
        """The context with another active graph."""
        other = copy(self)
        other.graph = graph
        return other

    def inside(self, outer: dict[Variable, Identifier]) -> Context:
        """The context with other outer terms."""
        other = copy(self)
        other.outer = outer
        return other

    def load(self, source: URIRef, default: bool = False, into: Identifier | None = None, **kwargs: Any) -> None:
        raise InternalError(f"a query tried to load {source}: nothing is ever loaded")

    def exists(self, node: CompValue, row: FrozenBindings) -> bool:
        """Whether a pattern has a solution when the terms of `row` are substituted for its variables."""
        return bool(solutions(node, self.inside(dict(row.items()))))


class Row(FrozenBindings):
    """A solution: `terms` by variable. `nodes`: the blank nodes that BNODE has made for it, by text."""

    def __init__(self, context: QueryContext, terms: dict[Any, Identifier], nodes: Any = None) -> None:
        super().__init__(context, terms)
        self.terms = terms
        self.nodes: Any = defaultdict(BNode) if nodes is None else nodes

    @property
    def bnodes(self) -> Any:
        return self.nodes


@contextmanager
def evaluating() -> Iterator[None]:
    """A context in which rdflib evaluates: one thread at a time, without warnings about literals, and with rdflib's
    exceptions turned into `InternalError`."""
    with _LOCK, quiet_literals():
        try:
            yield
        except SpaseqError:
            raise
        except RecursionError:
            raise InternalError("rdflib could not evaluate a graph pattern: it is nested too deeply") from None
        except Exception as error:
            raise InternalError(
                f"rdflib failed to evaluate a graph pattern: {type(error).__name__}: {error}"
            ) from error


def solutions(node: CompValue, context: Context) -> list[Row]:
    """The solutions of a node of rdflib's algebra, without the outer terms. Call it inside `evaluating()`.

    Raises `BudgetExceeded` (`solution_rows`) if a step has more solutions than the context's budget.
    """
    rule = _RULES.get(node.name)
    if rule is None:
        raise InternalError(f"the SPARQL algebra has a node {node.name!r} that this version does not know")
    return rule(node, context)


# -- expressions


def _seen(row: Row, context: Context) -> Row:
    """The row that expressions are evaluated on: the solution and the outer terms."""
    return Row(context, {**context.outer, **row.terms}, row.nodes)


def is_true(expression: Any, row: Row, context: Context) -> bool:
    """Whether a condition is true for a row; False if it is an error."""
    try:
        return effective_truth(_eval(expression, _seen(row, context)))
    except SPARQLError:
        return False


def value_in(expression: Any, row: Row, context: Context) -> Any:
    """The value of an expression as a term; None if it is an error."""
    try:
        found = _eval(expression, _seen(row, context))
    except SPARQLError:
        return None
    if found is None or isinstance(found, SPARQLError):
        return None
    return plain_literal(found if isinstance(found, (URIRef, BNode, Literal)) else Literal(found))


# -- patterns


def _basic(node: CompValue, context: Context) -> list[Row]:
    """A basic graph pattern: triples by rdflib, then paths, which begin with the terms that triples bind. The blank
    nodes of the pattern are removed from the solutions."""
    plain = [triple for triple in node.triples if not isinstance(triple[1], Path)]
    plain.sort(key=lambda triple: sum(_is_open(term, context.outer) for term in triple))
    found = _within(evalBGP(context.clone(context.outer), plain), context)
    rows: Iterable[dict[Any, Identifier]] = [dict(row.items()) for row in found]
    for start, path, end in node.triples:
        if isinstance(path, Path):
            ends = frozenset(term for term in (start, end) if not isinstance(term, (Variable, BNode)))
            rows = _within((longer for row in rows for longer in _along(row, start, path, end, ends, context)), context)
    return [
        Row(context, {n: t for n, t in row.items() if isinstance(n, Variable) and n not in context.outer})
        for row in rows
    ]


def _is_open(term: Any, outer: _Terms) -> bool:
    """Whether a term of a pattern is open: a variable without an outer term, or a blank node, which acts as one."""
    return isinstance(term, (Variable, BNode)) and term not in outer


def _along(
    row: dict[Any, Identifier], start: Any, path: Path, end: Any, ends: frozenset[Any], context: Context
) -> Iterator[dict[Any, Identifier]]:
    """`row` extended by the bindings of each match of `path` from `start` to `end`."""
    given = [None if _is_open(term, row) else row.get(term, term) for term in (start, end)]
    for a, b in ways(path, given[0], given[1], ends, context.graph):
        if start != end or a == b:
            longer = dict(row)
            longer.update((n, t) for n, t in ((start, a), (end, b)) if isinstance(n, (Variable, BNode)))
            yield longer


def _graph(node: CompValue, context: Context) -> list[Row]:
    """GRAPH: the solutions on each graph that its name may be. Without outer terms they are computed once per graph, as
    the named graphs never change."""
    name = context.outer.get(node.term, node.term)
    graphs = context.named.graphs
    found = []
    for iri in [iri for iri in graphs if isinstance(name, Variable) or name == URIRef(iri)]:
        inner = context.on(graphs[iri])
        if context.outer:
            rows = solutions(node.p, inner)
        else:
            rows = context.named.once(iri, node.p, lambda inner=inner: solutions(node.p, inner))  # type: ignore[misc]
        bound: dict[Identifier, Identifier] = {name: URIRef(iri)} if isinstance(name, Variable) else {}
        found += [Row(context, {**row.terms, **bound}) for row in rows if row.compatible(bound)]
    return found


def _inline(node: CompValue, context: Context) -> list[Row]:
    """VALUES, or a subquery."""
    if node.p.name != "values":
        return solutions(node.p, context)
    leaf, rows = context.inline
    if node.p is not leaf:
        rows = [{name: term for name, term in row.items() if term != "UNDEF"} for row in node.p.res]
    return [_free(row, context) for row in rows if all(context.outer.get(n, t) == t for n, t in row.items())]


def _free(terms: _Terms, context: Context) -> Row:
    """A solution without the variables that have outer terms."""
    return Row(context, {n: t for n, t in terms.items() if n not in context.outer})


# -- operators


def _join(node: CompValue, context: Context) -> list[Row]:
    pairs = _pairs(solutions(node.p1, context), solutions(node.p2, context))
    return _within((Row(context, {**a.terms, **b.terms}) for a, others in pairs for b in others), context)


def _pairs(left: list[Row], right: list[Row]) -> Iterator[tuple[Row, list[Row]]]:
    """Each row of `left` with the compatible rows of `right`, found by an index over the variables that all rows
    bind."""
    certain = [frozenset.intersection(*(frozenset(row.terms) for row in rows)) for rows in (left, right) if rows]
    shared = sorted(frozenset.intersection(*certain)) if len(certain) == 2 else []
    index: dict[Any, list[Row]] = {}
    for row in right:
        index.setdefault(tuple(row.terms[name] for name in shared), []).append(row)
    for row in left:
        near = index.get(tuple(row.terms[name] for name in shared), ())
        yield row, [other for other in near if row.compatible(other)]


def _left_join(node: CompValue, context: Context) -> list[Row]:
    return _within(_optional(node, context), context)


def _optional(node: CompValue, context: Context) -> Iterator[Row]:
    for row, others in _pairs(solutions(node.p1, context), solutions(node.p2, context)):
        joined = (Row(context, {**row.terms, **other.terms}) for other in others)
        kept = [longer for longer in joined if is_true(node.expr, longer, context)]
        yield from kept or [row]


def _minus(node: CompValue, context: Context) -> list[Row]:
    pairs = _pairs(solutions(node.p1, context), solutions(node.p2, context))
    return [row for row, others in pairs if all(row.disjointDomain(other) for other in others)]


def _union(node: CompValue, context: Context) -> list[Row]:
    return solutions(node.p1, context) + solutions(node.p2, context)


def _filter(node: CompValue, context: Context) -> list[Row]:
    return [row for row in solutions(node.p, context) if is_true(node.expr, row, context)]


def _extend(node: CompValue, context: Context) -> list[Row]:
    found = []
    for row in solutions(node.p, context):
        term = value_in(node.expr, row, context)
        if term is None or (node.var in context.outer and context.outer[node.var] == term):
            found.append(row)
        elif node.var not in context.outer:
            found.append(Row(context, {**row.terms, node.var: term}, row.nodes))
    return found


def _project(node: CompValue, context: Context) -> list[Row]:
    names = frozenset(node.PV)
    inner = context.inside({n: t for n, t in context.outer.items() if n in names})
    rows = solutions(node.p, inner)
    return [Row(context, {n: t for n, t in row.terms.items() if n in names}, row.nodes) for row in rows]


def _distinct(node: CompValue, context: Context) -> list[Row]:
    found: dict[Any, Row] = {}
    for row in solutions(node.p, context):
        found.setdefault(frozenset(row.terms.items()), row)
    return list(found.values())


def _order(node: CompValue, context: Context) -> list[Row]:
    """ORDER BY: by the keys, then by all terms."""
    rows = _by_terms(solutions(node.p, context))
    for key in reversed(node.expr):
        places = {id(row): order_place(value_in(key.expr, row, context)) for row in rows}
        rows.sort(key=lambda row, places=places: places[id(row)], reverse=key.order == "DESC")  # type: ignore[misc]
    return rows


def _by_terms(rows: list[Row]) -> list[Row]:
    names = sorted({name for row in rows for name in row.terms})

    def places(row: Row) -> list[Any]:
        return [term_place(row.terms[name]) if name in row.terms else () for name in names]

    return sorted(rows, key=places)


def _slice(node: CompValue, context: Context) -> list[Row]:
    rows = solutions(node.p, context)
    rows = rows if _is_ordered(node.p) else _by_terms(rows)
    return rows[node.start :] if node.length is None else rows[node.start : node.start + node.length]


def _is_ordered(node: CompValue) -> bool:
    """Whether an ORDER BY has ordered the solutions of a node."""
    while node.name in ("Project", "Distinct", "Reduced", "Slice", "Extend", "Filter", "ToMultiSet"):
        node = node.p
    return bool(node.name == "OrderBy")


def _groups(node: CompValue, context: Context) -> list[Row]:
    """The aggregates of each group. Solutions for which a key is an error are grouped together."""
    grouping = node.p
    found: dict[Any, list[Row]] = {} if grouping.expr else {(): []}
    for row in solutions(grouping.p, context):
        key = tuple(value_in(expression, row, context) for expression in grouping.expr or ())
        found.setdefault(key, []).append(_seen(row, context))
    ordered, behind = _is_ordered(grouping.p), context.behind_where
    return [Row(context, aggregated(node.A, rows, ordered=ordered, behind_where=behind)) for rows in found.values()]


def _within(rows: Iterable[Any], context: Context) -> list[Any]:
    """The rows as a list; `BudgetExceeded` (`solution_rows`) if there are more than the budget."""
    if context.budget is None:
        return list(rows)
    found: list[Any] = []
    for row in rows:
        if len(found) >= context.budget:
            raise BudgetExceeded("solution_rows", context.budget, len(found) + 1, "rows")
        found.append(row)
    return found


_RULES: Final[dict[str, Callable[[CompValue, Context], list[Row]]]] = {
    "BGP": _basic,
    "Graph": _graph,
    "ToMultiSet": _inline,
    "Join": _join,
    "LeftJoin": _left_join,
    "Minus": _minus,
    "Union": _union,
    "Filter": _filter,
    "Extend": _extend,
    "Project": _project,
    "Distinct": _distinct,
    "Reduced": _distinct,
    "OrderBy": _order,
    "Slice": _slice,
    "AggregateJoin": _groups,
}
