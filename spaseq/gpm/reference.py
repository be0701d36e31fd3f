"""Evaluates graph patterns as SPARQL 1.1 §18 defines it: the reference for the plan over columns, and the evaluator for
patterns that the plan does not cover.

The triples of basic graph patterns are matched by rdflib, or by `spaseq.gpm.columnar.alone` for a pushed graph of a few
triples; the rest is here:

* *Scopes.* Each operand is evaluated by itself, and the solutions are joined: nested groups, subqueries, OPTIONAL and
  MINUS see no other bindings.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from typing import Any, Final

from rdflib import Graph
from rdflib.paths import Path
from rdflib.plugins.sparql.evaluate import evalBGP
from rdflib.plugins.sparql.sparql import Bindings, Prologue, QueryContext
from rdflib.term import BNode, Identifier, URIRef, Variable

from spaseq.core.errors import BudgetExceeded, InternalError, SpaseqError
from spaseq.gpm import algebra
from spaseq.gpm.aggregates import aggregated
from spaseq.gpm.comparison import order_place, term_place
from spaseq.gpm.expressions import Row, is_true, value_or_none
from spaseq.gpm.functions.own import refuse_inside
from spaseq.gpm.ways import ways
from spaseq.rdf import quiet_literals

_LOCK: Final = threading.Lock()
"""Held during every evaluation: registered functions need not be made for threads."""
_NO_GRAPH: Final = Graph(bind_namespaces="none")
_NEAR: Final = 8
"""So many pairs of rows are compared without an index. PERF: one pair takes 1.3 µs, with the index 4.2."""
_Terms = Mapping[str, Identifier]
_Given = dict[Any, Identifier]
"""Terms by variable and blank node of a basic graph pattern."""


class NamedGraphs:
    """The graphs that GRAPH reads, by IRI, with a cache of the solutions of patterns on them."""

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self.graphs = graphs
        self._found: dict[tuple[str, int], tuple[Any, list[Row]]] = {}

    def once(self, iri: str, node: Any, solve: Callable[[], list[Row]]) -> list[Row]:
        """The solutions of `node` on a graph, computed once. The node is kept alive, since it is identified by `id`."""
        key = (iri, id(node))
        if key not in self._found:
            self._found[key] = node, solve()
        return self._found[key][1]


class Context(QueryContext):
    """An evaluation's context: the graph, the named graphs, and inside EXISTS the `outer` terms. It loads no graph.

    `inline`: a node of inline data, and the rows to use in its place. `behind_where`: see `spaseq.gpm.aggregates`.
    `budget`: how many solutions a step may have. `match`: matches the triples of basic graph patterns in place of
    rdflib, with the outer terms given; its rows have the terms of variables and blank nodes. The graph is then read by
    property paths alone, and any object that `ways` can read.
    """

    def __init__(
        self,
        graph: Any = None,
        named: NamedGraphs | None = None,
        prologue: Prologue | None = None,
        *,
        inline: tuple[Any, Sequence[_Terms]] = (None, ()),
        behind_where: bool = False,
        budget: int | None = None,
        match: Callable[[algebra.BGP, _Given], Iterable[_Given]] | None = None,
    ) -> None:
        super().__init__(None, [], initBindings={})
        self.graph: Graph = _NO_GRAPH if graph is None else graph
        self.prologue = prologue
        self.named: NamedGraphs = NamedGraphs({}) if named is None else named
        self.outer: _Terms = {}
        self.inline = inline
        self.behind_where = behind_where
        self.budget = budget
        self.match = match
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

    def inside(self, outer: _Terms) -> Context:
        """The context with other outer terms."""
        if not outer and not self.outer:
            return self
        other = copy(self)
        other.outer = outer
        return other

    def load(self, source: URIRef, default: bool = False, into: Identifier | None = None, **kwargs: Any) -> None:
        raise InternalError(f"a query tried to load {source}: nothing is ever loaded")

    def exists(self, node: algebra.Node, terms: _Terms) -> bool:
        """True if a pattern has a solution when `terms` are substituted for its variables."""
        return bool(solutions(node, self.inside(dict(terms))))


def solution(context: Context, terms: _Terms, nodes: Any = None) -> Row:
    """A solution; it has blank nodes of its own, or `nodes`."""
    return Row(terms, context, defaultdict(BNode) if nodes is None else nodes)


@contextmanager
def evaluating() -> Iterator[None]:
    """A context in which expressions and patterns are evaluated: one thread at a time, without warnings about literals,
    and with exceptions of rdflib turned into `InternalError`. `OptionError` inside a function of the user."""
    refuse_inside()
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


def solutions(node: algebra.Node, context: Context) -> list[Row]:
    """The solutions of a pattern, without the outer terms. Call it inside `evaluating()`.

    Raises `BudgetExceeded` (`solution_rows`) if a step has more solutions than the context's budget.
    """
    return _RULES[type(node)](node, context)


def with_outer(row: Row, context: Context) -> Row:
    """The row that expressions are evaluated on: the solution and the outer terms."""
    if not context.outer and row.context is context:
        return row
    return Row({**context.outer, **row.terms}, context, row.nodes)


# -- patterns


def _basic(node: algebra.BGP, context: Context) -> list[Row]:
    """A basic graph pattern: triples, then paths, which begin with the terms that triples bind. The blank nodes of the
    pattern are removed from the solutions."""
    outer: _Given = {}
    if context.outer:
        mentioned = (term for triple in node.triples for term in triple if isinstance(term, Variable))
        outer = {name: context.outer[str(name)] for name in mentioned if str(name) in context.outer}
    rows = _triples(node, outer, context)
    for start, path, end in node.triples:
        if isinstance(path, Path):
            ends = frozenset(term for term in (start, end) if not isinstance(term, (Variable, BNode)))
            rows = _within((longer for row in rows for longer in _along(row, start, path, end, ends, context)), context)
    return [
        solution(context, {str(n): t for n, t in row.items() if isinstance(n, Variable) and n not in outer})
        for row in rows
    ]


def _triples(node: algebra.BGP, outer: _Given, context: Context) -> Iterable[_Given]:
    """The solutions of a pattern's triples without its paths, by rdflib or by the context's `match`."""
    if context.match is not None:
        return context.match(node, outer)
    plain = [triple for triple in node.triples if not isinstance(triple[1], Path)]
    plain.sort(key=lambda triple: sum(_is_open(term, context.outer) for term in triple))
    return [dict(row.items()) for row in _within(evalBGP(context.clone(outer), plain), context)]


def _is_open(term: Any, outer: _Terms) -> bool:
    """True if a term of a pattern is open: a variable without an outer term, or a blank node, which acts as one."""
    return isinstance(term, BNode) or (isinstance(term, Variable) and str(term) not in outer)


def _along(row: _Given, start: Any, path: Path, end: Any, ends: frozenset[Any], context: Context) -> Iterator[_Given]:
    """`row` extended by the bindings of each match of `path` from `start` to `end`."""
    given = [row.get(term) if isinstance(term, (Variable, BNode)) else term for term in (start, end)]
    for a, b in ways(path, given[0], given[1], ends, context.graph):
        if start != end or a == b:
            longer = dict(row)
            longer.update((n, t) for n, t in ((start, a), (end, b)) if isinstance(n, (Variable, BNode)))
            yield longer


def _graph(node: algebra.GraphNode, context: Context) -> list[Row]:
    """GRAPH: the solutions on each graph that its name may be. Without outer terms they are computed once per graph, as
    the named graphs never change."""
    is_open = isinstance(node.name, Variable) and str(node.name) not in context.outer
    name = context.outer.get(str(node.name), node.name) if isinstance(node.name, Variable) else node.name
    graphs = context.named.graphs
    found = []
    for iri in [iri for iri in graphs if is_open or name == URIRef(iri)]:
        inner = context.on(graphs[iri])
        if context.outer:
            rows = solutions(node.child, inner)
        else:
            rows = context.named.once(iri, node.child, lambda inner=inner: solutions(node.child, inner))  # type: ignore[misc]
        bound = {str(name): URIRef(iri)} if is_open else {}
        found += [solution(context, {**row.terms, **bound}) for row in rows if _meet(row.terms, bound)]
    return found


def _inline(node: algebra.Values, context: Context) -> list[Row]:
    """VALUES."""
    leaf, given = context.inline
    rows = given if node is leaf else map(dict, node.rows)
    return [_free(row, context) for row in rows if _meet(row, context.outer)]


def _free(terms: _Terms, context: Context) -> Row:
    """A solution without the variables that have outer terms."""
    return solution(context, {n: t for n, t in terms.items() if n not in context.outer})


def _meet(left: _Terms, right: _Terms) -> bool:
    """True if two solutions are compatible: they have the same terms for the variables that both bind."""
    return all(right.get(name, term) == term for name, term in left.items())


# -- operators


def _join(node: algebra.Join, context: Context) -> list[Row]:
    pairs = _pairs(solutions(node.left, context), solutions(node.right, context))
    return _within((solution(context, {**a.terms, **b.terms}) for a, others in pairs for b in others), context)


def _pairs(left: list[Row], right: list[Row]) -> Iterator[tuple[Row, list[Row]]]:
    """Each row of `left` with the compatible rows of `right`, by an index over the variables that all rows bind."""
    if len(left) * len(right) <= _NEAR:
        for row in left:
            yield row, [other for other in right if _meet(row.terms, other.terms)]
        return
    certain = [frozenset.intersection(*(frozenset(row.terms) for row in rows)) for rows in (left, right) if rows]
    shared = sorted(frozenset.intersection(*certain)) if len(certain) == 2 else []
    index: dict[Any, list[Row]] = {}
    for row in right:
        index.setdefault(tuple(row.terms[name] for name in shared), []).append(row)
    for row in left:
        near = index.get(tuple(row.terms[name] for name in shared), ())
        yield row, [other for other in near if _meet(row.terms, other.terms)]


def _left_join(node: algebra.LeftJoin, context: Context) -> list[Row]:
    return _within(_optional(node, context), context)


def _optional(node: algebra.LeftJoin, context: Context) -> Iterator[Row]:
    for row, others in _pairs(solutions(node.left, context), solutions(node.right, context)):
        joined = (solution(context, {**row.terms, **other.terms}) for other in others)
        kept = [longer for longer in joined if is_true(node.condition, with_outer(longer, context))]
        yield from kept or [row]


def _minus(node: algebra.Minus, context: Context) -> list[Row]:
    pairs = _pairs(solutions(node.left, context), solutions(node.right, context))
    return [row for row, others in pairs if all(row.terms.keys().isdisjoint(other.terms) for other in others)]


def _union(node: algebra.Union, context: Context) -> list[Row]:
    return solutions(node.left, context) + solutions(node.right, context)


def _filter(node: algebra.Filter, context: Context) -> list[Row]:
    return [row for row in solutions(node.child, context) if is_true(node.condition, with_outer(row, context))]


def _extend(node: algebra.Extend, context: Context) -> list[Row]:
    found, name = [], node.variable
    for row in solutions(node.child, context):
        term = value_or_none(node.value, with_outer(row, context))
        if term is None or (name in context.outer and context.outer[name] == term):
            found.append(row)
        elif name not in context.outer:
            found.append(solution(context, {**row.terms, name: term}, row.nodes))
    return found


def _project(node: algebra.Projected, context: Context) -> list[Row]:
    names = frozenset(node.names)
    inner = context.inside({n: t for n, t in context.outer.items() if n in names})
    rows = solutions(node.child, inner)
    return [solution(context, {n: t for n, t in row.terms.items() if n in names}, row.nodes) for row in rows]


def _distinct(node: algebra.Distinct, context: Context) -> list[Row]:
    found: dict[Any, Row] = {}
    for row in solutions(node.child, context):
        found.setdefault(frozenset(row.terms.items()), row)
    return list(found.values())


def _order(node: algebra.Ordered, context: Context) -> list[Row]:
    """ORDER BY: by the keys, then by all terms."""
    rows = _by_terms(solutions(node.child, context))
    for key, descending in reversed(list(zip(node.keys, node.descending, strict=True))):
        places = {id(row): order_place(value_or_none(key, with_outer(row, context))) for row in rows}
        rows.sort(key=lambda row, places=places: places[id(row)], reverse=descending)  # type: ignore[misc]
    return rows


def _by_terms(rows: list[Row]) -> list[Row]:
    names = sorted({name for row in rows for name in row.terms})

    def places(row: Row) -> list[Any]:
        return [term_place(row.terms[name]) if name in row.terms else () for name in names]

    return sorted(rows, key=places)


def _slice(node: algebra.Sliced, context: Context) -> list[Row]:
    rows = solutions(node.child, context)
    rows = rows if algebra.is_ordered(node.child) else _by_terms(rows)
    return rows[node.start :] if node.length is None else rows[node.start : node.start + node.length]


def _groups(node: algebra.Aggregated, context: Context) -> list[Row]:
    """The aggregates of each group. Solutions for which a key is an error are grouped together."""
    grouping = node.child
    if not isinstance(grouping, algebra.Grouped):
        raise InternalError(f"aggregates over {type(grouping).__name__}")
    found: dict[Any, list[Row]] = {} if grouping.keys else {(): []}
    for row in solutions(grouping.child, context):
        seen = with_outer(row, context)
        found.setdefault(tuple(value_or_none(key, seen) for key in grouping.keys), []).append(seen)
    ordered, behind = algebra.is_ordered(grouping.child), context.behind_where
    made = (aggregated(node.results, rows, ordered=ordered, behind_where=behind) for rows in found.values())
    return [solution(context, terms) for terms in made]


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


_RULES: Final[dict[type[algebra.Node], Callable[[Any, Context], list[Row]]]] = {
    algebra.BGP: _basic,
    algebra.GraphNode: _graph,
    algebra.Values: _inline,
    algebra.Join: _join,
    algebra.LeftJoin: _left_join,
    algebra.Minus: _minus,
    algebra.Union: _union,
    algebra.Filter: _filter,
    algebra.Extend: _extend,
    algebra.Bound: _extend,
    algebra.Projected: _project,
    algebra.Distinct: _distinct,
    algebra.Ordered: _order,
    algebra.Sliced: _slice,
    algebra.Aggregated: _groups,
}
