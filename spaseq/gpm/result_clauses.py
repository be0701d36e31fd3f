"""SELECT expressions, aggregates, GROUP BY, HAVING and ORDER BY over solutions, and CONSTRUCT templates.

rdflib parses and translates them as one SPARQL query over inline data; `SolutionPlan` evaluates that query's algebra
with the solutions in place of the data. The caller decides which solutions a clause ranges over
(`spaseq.language.results.results`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from typing import Any, Final

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.core.errors import InternalError
from spaseq.gpm import algebra
from spaseq.gpm.comparison import order_place
from spaseq.gpm.evaluate import evaluated
from spaseq.gpm.legal import UNGROUPED
from spaseq.gpm.reference import Context, Row, evaluating, value_in
from spaseq.gpm.reference import solutions as solved
from spaseq.gpm.sparql import Piece, Source, settled, translated
from spaseq.rdf import plain_literal

__all__ = ["ROUNDS", "Piece", "SolutionPlan", "Template", "compile_solutions", "compile_template",
           "in_columns"]  # fmt: skip

Bindings = dict[str, Any]
Triple = tuple[Any, Any, Any]
_NO_VARIABLE: Final = "__none"
_LAST: Final = "__last_"
ROUNDS: Final = "+"
"""The key under which a solution has the mappings of its iterations' rounds, as a tuple, in order."""


@dataclass(frozen=True, slots=True)
class _Each:
    """A row computed of each solution by itself. `values`: variables and their expressions, in order; `keys`: those of
    ORDER BY.

    PERF: rdflib's algebra over one solution takes 100 µs, this some 2 and what the expressions take.
    """

    values: tuple[tuple[str, algebra.Expression], ...]
    keys: tuple[algebra.Expression, ...]

    def row(self, solution: Bindings, context: Context) -> tuple[Bindings, tuple[Any, ...]]:
        """As of `SolutionPlan.rows`."""
        terms = {name: plain_literal(term) for name, term in solution.items() if name != ROUNDS}
        for name, expression in self.values:
            term = _value(expression, terms, context)
            if term is not None:
                terms[name] = term
        return terms, tuple(order_place(_value(key, terms, context)) for key in self.keys)


def _value(expression: algebra.Expression, terms: Bindings, context: Context) -> Any:
    """The value of an expression as a term; None if it is an error."""
    try:
        found = evaluated(expression, terms, context)
    except SPARQLError:
        return None
    if found is None:
        return None
    return plain_literal(found if isinstance(found, (URIRef, BNode, Literal)) else Literal(found))


def _each_of(node: CompValue, leaf: CompValue, order: Sequence[tuple[Any, bool]]) -> _Each | None:
    """The values and keys, if rows are computed of each solution by itself: no HAVING, no VALUES, no pattern."""
    values = []
    while node.name == "Extend":
        values.append((str(node.var), node.expr))
        node = node.p
    if node.name == "Join" and node.p1.name == "BGP" and not node.p1.triples:
        node = node.p2
    if node.name != "ToMultiSet" or node.p is not leaf:
        return None
    each = tuple((name, algebra.convert_expression(value)) for name, value in reversed(values))
    keys = tuple(algebra.convert_expression(key) for key, _ in order)
    return _Each(each, keys) if all(map(_is_alone, [*(value for _, value in each), *keys])) else None


def _is_alone(expression: algebra.Expression) -> bool:
    """Whether an expression needs nothing but the terms of its variables. BNODE makes a node for each solution."""
    match expression:
        case algebra.Call(name, arguments):
            return name != "Builtin_BNODE" and all(map(_is_alone, arguments))
        case algebra.Term():
            return True
        case _:
            return False


@dataclass(frozen=True, slots=True)
class SolutionPlan:
    """Computes result rows from solutions.

    `each`: how a row is computed of each solution by itself, None where rdflib's algebra is needed.
    `grouped`: whether a row is computed from a group of solutions (there is an aggregate or a GROUP BY). `keys`: the
    variables of GROUP BY. `aggregated`: the variables in aggregates. `over_rounds`: whether aggregates range over the
    rounds of one solution's iterations (its `ROUNDS`), each of which binds the variables `iterated`. `node`, `leaf`,
    `group`, `order`, `prologue`: parts of rdflib's algebra; the solutions replace the inline data of `leaf`.
    """

    grouped: bool
    keys: frozenset[str]
    aggregated: frozenset[str]
    over_rounds: bool
    iterated: frozenset[str]
    node: Any = field(repr=False)
    leaf: Any = field(repr=False)
    group: Any = field(repr=False)
    order: tuple[tuple[Any, bool], ...] = field(repr=False)
    prologue: Any = field(repr=False)
    each: _Each | None = field(repr=False)

    def rows(self, solutions: Sequence[Bindings]) -> list[tuple[Bindings, tuple[Any, ...]]]:
        """The rows of one solution or, if `grouped`, of one group: all variables by name, and the ORDER BY keys.

        An expression with an error leaves its variable unbound. There is no row if HAVING is not true.
        """
        if self.each is not None:
            context = self._context(())
            with evaluating():
                return [self.each.row(solution, context) for solution in solutions]
        own: Bindings = {}
        if self.over_rounds:  # the one solution's own bindings can be named outside of aggregates
            own = {Variable(name): term for name, term in solutions[0].items() if name != ROUNDS}
            solutions = [row for solution in solutions for row in self._rounds(solution)]
        context = self._context(solutions)
        with evaluating():
            rows = [Row(context, {**own, **row.terms}, row.nodes) for row in solved(self.node, context)]
            return [
                (_bindings(row), tuple(order_place(value_in(key, row, context)) for key, _ in self.order))
                for row in rows
            ]

    def _rounds(self, solution: Bindings) -> list[Bindings]:
        """A row for each round: the bindings of the round, those of variables that rounds do not bind, and the
        solution's own bindings under other names."""
        own = {name: term for name, term in solution.items() if name != ROUNDS}
        fixed = {name: term for name, term in own.items() if name not in self.iterated}
        fixed |= {_LAST + name: term for name, term in own.items()}
        return [fixed | dict(taken) for taken in solution.get(ROUNDS, ())] or [fixed]

    @staticmethod
    def is_leaf(node: algebra.Values) -> bool:
        """Whether the solutions replace this inline data, not a VALUES of the query."""
        return _NO_VARIABLE in node.undefined

    @staticmethod
    def last_name(name: str) -> str:
        """The name under which a round has its solution's own binding of a variable."""
        return _LAST + name

    def groups(self, solutions: Sequence[Bindings]) -> list[list[int]]:
        """The indices of the solutions of each group, in order of first appearance; one group without GROUP BY."""
        if self.group is None or self.group.expr is None:
            return [list(range(len(solutions)))] if solutions else []
        found: dict[Any, list[int]] = {}
        with evaluating():
            for index, solution in enumerate(solutions):
                context = self._context([solution])
                for row in solved(self.group.p, context):
                    key = tuple(value_in(expression, row, context) for expression in self.group.expr)
                    found.setdefault(key, []).append(index)
        return list(found.values())

    def sort(self, rows: list[Any], keys: Callable[[Any], tuple[Any, ...]]) -> list[Any]:
        """`rows` in the order of ORDER BY; the sort is stable. `keys` gives the keys of a row."""
        for place, (_, descending) in reversed(list(enumerate(self.order))):
            rows = sorted(rows, key=lambda row, place=place: keys(row)[place], reverse=descending)  # type: ignore[misc]
        return rows

    def _context(self, solutions: Sequence[Bindings]) -> Context:
        """A context in which the solutions replace the inline data."""
        rows = [{Variable(n): term for n, term in solution.items() if n != ROUNDS} for solution in solutions]
        return Context(prologue=self.prologue, inline=(self.leaf, rows), behind_where=True)


def _bindings(row: Any) -> Bindings:
    return {str(name): plain_literal(term) for name, term in row.terms.items() if not name.startswith("__agg_")}


def compile_solutions(
    source: Source,
    select: Sequence[Piece],
    modifiers: Sequence[Piece],
    computed: frozenset[str],
    iterated: frozenset[str],
) -> SolutionPlan:
    """The plan for SELECT items and the clauses GROUP BY, HAVING, ORDER BY and VALUES, in that order.

    `computed` are the variables that SELECT expressions bind, `iterated` those that each round of an iteration binds.

    Raises `QuerySyntaxError` and `QuerySemanticsError` that point into the query.
    """
    data = f" WHERE {{ VALUES (?{_NO_VARIABLE}) {{ (UNDEF) }} }} "
    parts = ["SELECT ", *(select or ("*",)), data, *modifiers]
    prologue, query, ungrouped = translated(source, parts, allowed=frozenset({UNGROUPED}))
    root = settled(query.p)
    order: tuple[tuple[Any, bool], ...] = ()
    while root.name in ("Project", "OrderBy"):
        if root.name == "OrderBy":
            order = tuple((c.expr, c.order == "DESC") for c in root.expr)
        root = root.p
    aggregates = [a for node in _nodes(root) if node.name == "AggregateJoin" for a in node.A]
    # If a later expression names a computed variable, rdflib takes it for a variable of the group and samples it.
    renamed = {a.res: a.vars for a in aggregates if a.name == "Aggregate_Sample" and str(a.vars) in computed}
    node = _renamed(root, renamed)
    order = tuple((_renamed(expression, renamed), descending) for expression, descending in order)
    leaves = [n for n in _nodes(node) if n.name == "values" and any(Variable(_NO_VARIABLE) in row for row in n.res)]
    groups = [n for n in _nodes(node) if n.name == "Group"]
    joins = [n for n in _nodes(node) if n.name == "AggregateJoin"]
    if len(leaves) != 1 or len(groups) > 1 or len(joins) != len(groups):
        raise InternalError("the algebra of the result clauses is not as expected")
    ranged = frozenset(
        str(name)
        for a in aggregates
        if a.res not in renamed
        for name in _variables(a.vars)
        if a.name != "Aggregate_Sample" or not groups or a.vars not in (groups[0].expr or ())
    )
    group = groups[0] if groups else None
    keys = frozenset(str(key) for key in (group.expr if group else None) or () if isinstance(key, Variable))
    over_rounds = not (group and group.expr) and _over_rounds(aggregates, iterated)
    if ungrouped and not over_rounds:
        raise ungrouped[0]
    if over_rounds:
        for aggregate in aggregates:
            if aggregate.name == "Aggregate_Sample" and isinstance(aggregate.vars, Variable):
                aggregate["vars"] = Variable(_LAST + aggregate.vars)  # outside aggregates, a variable is its last value
        ranged = frozenset(str(name) for a in aggregates for name in _variables(a.vars) if not name.startswith(_LAST))
    return SolutionPlan(
        grouped=bool(groups),
        keys=keys,
        aggregated=ranged,
        over_rounds=over_rounds,
        iterated=iterated,
        node=node,
        leaf=leaves[0],
        group=group,
        order=order,
        prologue=prologue,
        each=None if groups or over_rounds else _each_of(node, leaves[0], order),
    )


def _over_rounds(aggregates: Sequence[Any], iterated: frozenset[str]) -> bool:
    """Whether every aggregate names a variable of an iteration; if there are only samples, whether all of them do."""
    proper = [a for a in aggregates if a.name != "Aggregate_Sample"] or list(aggregates)
    return bool(proper) and all(iterated & {str(name) for name in _variables(a.vars)} for a in proper)


@dataclass(frozen=True, slots=True)
class Template:
    """A CONSTRUCT template: its triples, of rdflib's terms."""

    triples: tuple[Triple, ...]

    def graph(self, bindings: MappingABC[str, Any], number: int) -> tuple[Triple, ...]:
        """The triples of one solution, each once; without those that have an unbound variable or are not RDF triples.

        The blank nodes of the template are different in each solution; `number` is the solution's number.
        """
        terms: dict[Any, Any] = {Variable(name): term for name, term in bindings.items()}
        nodes = {term for triple in self.triples for term in triple if isinstance(term, BNode)}
        places = {node: i for i, node in enumerate(sorted(nodes))}
        terms |= {node: BNode(f"spaseq{number}x{place}") for node, place in places.items()}
        filled = (tuple(terms.get(term, term) for term in triple) for triple in self.triples)
        return tuple(dict.fromkeys((s, p, o) for s, p, o in filled if _is_triple(s, p, o)))


def _is_triple(s: Any, p: Any, o: Any) -> bool:
    return isinstance(s, (URIRef, BNode)) and isinstance(p, URIRef) and isinstance(o, (URIRef, BNode, Literal))


def in_columns(node: algebra.Values) -> bool:
    """Whether a VALUES behind WHERE is joined as columns in the order, and with the terms, that rdflib's algebra gives:
    not with UNDEF, nor with tags of texts, of which the case is that of VALUES there."""
    width = len(algebra.visible(node))
    terms = (term for row in node.rows for _, term in row)
    return all(len(row) == width for row in node.rows) and not any(getattr(term, "language", None) for term in terms)


def compile_template(source: Source, template: Piece) -> Template:
    """The template of CONSTRUCT. Raises `QuerySyntaxError` and `QuerySemanticsError` that point into the query."""
    _, made, _ = translated(source, ["CONSTRUCT ", template, " WHERE { }"])
    return Template(tuple((s, p, o) for s, p, o in made.template or ()))


def _nodes(root: Any) -> Iterator[CompValue]:
    if isinstance(root, CompValue):
        yield root
        for child in root.values():
            yield from _nodes(child)
    elif isinstance(root, (list, tuple)):
        for child in root:
            yield from _nodes(child)


def _variables(root: Any) -> Iterator[Any]:
    if isinstance(root, Variable):
        yield root
    for child in root.values() if isinstance(root, CompValue) else root if isinstance(root, (list, tuple)) else ():
        yield from _variables(child)


def _renamed(root: Any, names: MappingABC[Any, Any]) -> Any:
    """The algebra with variables renamed in its expressions."""
    if isinstance(root, CompValue):
        for name, child in list(root.items()):
            root[name] = _renamed(child, names)
        return root
    if isinstance(root, list):
        return [_renamed(child, names) for child in root]
    return names.get(root, root) if isinstance(root, Variable) else root
