"""SELECT expressions, aggregates, GROUP BY, HAVING and ORDER BY over solutions, and CONSTRUCT templates.

They are parsed and translated as one SPARQL query over inline data; `SolutionPlan` evaluates that query's algebra with
the solutions in place of the data. The caller decides which solutions a clause ranges over
(`spaseq.language.results.results`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.core.errors import InternalError
from spaseq.gpm import algebra
from spaseq.gpm.comparison import order_place
from spaseq.gpm.expressions import Row, value_or_none
from spaseq.gpm.legal import UNGROUPED
from spaseq.gpm.reference import Context, evaluating
from spaseq.gpm.reference import solutions as solved
from spaseq.gpm.sparql import Piece, Source, settle, translate
from spaseq.gpm.triple_patterns import fill, is_object, nest, nodes_of, with_triple_terms
from spaseq.rdf import plain_literal

__all__ = ["ROUNDS", "Piece", "SolutionPlan", "Template", "compile_solutions", "compile_template",
           "in_columns"]  # fmt: skip

Bindings = dict[str, Any]
Triple = tuple[Any, Any, Any]
_NO_VARIABLE: Final = "__none"
_LAST: Final = "__last_"
_OF_NUMBERS: Final = (algebra.Extend, algebra.Filter, algebra.Join, algebra.Grouped, algebra.Aggregated)
ROUNDS: Final = "+"
"""The key under which a solution has the mappings of its iterations' rounds, as a tuple, in order."""


@dataclass(frozen=True, slots=True)
class _Each:
    """A row computed of each solution. `values`: variables and their expressions, in order; `keys`: those of ORDER BY.

    PERF: the reference over one solution takes 100 µs, this some 2 and the time of the expressions.
    """

    values: tuple[tuple[str, algebra.Expression], ...]
    keys: tuple[algebra.Expression, ...]

    def row(self, solution: Bindings, context: Context) -> tuple[Bindings, tuple[Any, ...]]:
        """As of `SolutionPlan.rows`."""
        terms = {name: plain_literal(term) for name, term in solution.items() if name != ROUNDS}
        row = Row(terms, context)
        for name, expression in self.values:
            term = value_or_none(expression, row)
            if term is not None:
                terms[name] = term
        return terms, tuple(order_place(value_or_none(key, row)) for key in self.keys)


def _each_of(
    node: algebra.Node, leaf: algebra.Values, order: Sequence[tuple[algebra.Expression, bool]]
) -> _Each | None:
    """The values and keys, if rows are computed of each solution by itself: no HAVING, no VALUES, no pattern."""
    values = []
    while isinstance(node, algebra.Extend):
        values.append((node.variable, node.value))
        node = node.child
    if isinstance(node, algebra.Join) and node.left == algebra.BGP(()):
        node = node.right
    if node is not leaf:
        return None
    keys = tuple(key for key, _ in order)
    return _Each(tuple(reversed(values)), keys) if all(map(_is_alone, [*(v for _, v in values), *keys])) else None


def _is_alone(expression: algebra.Expression) -> bool:
    """True if an expression needs nothing but the terms of its variables. BNODE makes a node for each solution."""
    match expression:
        case algebra.Call(name, arguments):
            return name != "BNODE" and all(map(_is_alone, arguments))
        case algebra.Term():
            return True
        case _:
            return False


@dataclass(frozen=True, slots=True)
class SolutionPlan:
    """Computes result rows from solutions.

    `each`: how a row is computed of each solution by itself, None if the whole algebra is needed.
    `grouped`: True if a row is computed from a group of solutions (there is an aggregate or a GROUP BY). `keys`: the
    variables of GROUP BY. `aggregated`: the variables in aggregates. `over_rounds`: True if aggregates range over the
    rounds of one solution's iterations (its `ROUNDS`), each of which binds the variables `iterated`. `node`, `leaf`,
    `group`, `order`, `prologue`: parts of the algebra; the solutions replace the inline data `leaf`.
    """

    grouped: bool
    keys: frozenset[str]
    aggregated: frozenset[str]
    over_rounds: bool
    iterated: frozenset[str]
    node: algebra.Node = field(repr=False)
    leaf: algebra.Values = field(repr=False)
    group: algebra.Grouped | None = field(repr=False)
    order: tuple[tuple[algebra.Expression, bool], ...] = field(repr=False)
    prologue: Any = field(repr=False)
    each: _Each | None = field(repr=False)

    @property
    def parts(self) -> tuple[algebra.Node | algebra.Expression, ...]:
        """Its pattern and the keys of ORDER BY."""
        return (self.node, *(key for key, _ in self.order))

    @property
    def calls(self) -> tuple[tuple[str, int], ...]:
        """As of `GraphPattern`."""
        return tuple(sorted({*algebra.functions_called(self.parts)}))

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
            own = {name: term for name, term in solutions[0].items() if name != ROUNDS}
            solutions = [row for solution in solutions for row in self._rounds(solution)]
        context = self._context(solutions)
        with evaluating():
            rows = [Row({**own, **row.terms}, context, row.nodes) for row in solved(self.node, context)]
            return [
                (_bindings(row), tuple(order_place(value_or_none(key, row)) for key, _ in self.order)) for row in rows
            ]

    def counts(self, certain: frozenset[str]) -> bool:
        """True if the row of a group is computed from the number of its solutions alone. `certain`: the variables that
        all solutions bind. An EXISTS and VALUES are left to the solutions themselves."""
        for node in algebra.walk(self.node):
            if not isinstance(node, _OF_NUMBERS) and node != self.leaf and node != algebra.BGP(()):
                return False
        return not self.over_rounds and all(
            one.name == "Count" and not one.once and (one.over is None or (
                _is_variable(one.over) and str(one.over.value) in certain))
            for _, one in _aggregates(self.node)
        )  # fmt: skip

    def rows_of_number(self, number: int) -> list[Bindings]:
        """The row of one group of so many solutions, if it `counts` them; none if HAVING is not true. By variable."""

        def fill_in(node: algebra.Node) -> algebra.Node:
            if not isinstance(node, algebra.Aggregated):
                return algebra.rebuild(node, fill_in)
            return algebra.Values((tuple((name, Literal(number)) for name, _ in node.results),))

        with evaluating():
            return [_bindings(row) for row in solved(fill_in(self.node), self._context(()))]

    def _rounds(self, solution: Bindings) -> list[Bindings]:
        """A row for each round: the bindings of the round, those of variables that rounds do not bind, and the
        solution's own bindings under other names."""
        own = {name: term for name, term in solution.items() if name != ROUNDS}
        fixed = {name: term for name, term in own.items() if name not in self.iterated}
        fixed |= {_LAST + name: term for name, term in own.items()}
        return [fixed | dict(taken) for taken in solution.get(ROUNDS, ())] or [fixed]

    @staticmethod
    def is_leaf(node: algebra.Values) -> bool:
        """True if the solutions replace this inline data, not a VALUES of the query."""
        return _NO_VARIABLE in node.undefined

    @staticmethod
    def last_name(name: str) -> str:
        """The name under which a round has its solution's own binding of a variable."""
        return _LAST + name

    def groups(self, solutions: Sequence[Bindings]) -> list[list[int]]:
        """The indices of the solutions of each group, in order of first appearance; one group without GROUP BY."""
        if self.group is None or not self.group.keys:
            return [list(range(len(solutions)))] if solutions else []
        found: dict[Any, list[int]] = {}
        with evaluating():
            for index, solution in enumerate(solutions):
                context = self._context([solution])
                for row in solved(self.group.child, context):
                    key = tuple(value_or_none(expression, row) for expression in self.group.keys)
                    found.setdefault(key, []).append(index)
        return list(found.values())

    def sort(self, rows: list[Any], keys: Callable[[Any], tuple[Any, ...]]) -> list[Any]:
        """`rows` in the order of ORDER BY; the sort is stable. `keys` gives the keys of a row."""
        for place, (_, descending) in reversed(list(enumerate(self.order))):
            rows = sorted(rows, key=lambda row, place=place: keys(row)[place], reverse=descending)  # type: ignore[misc]
        return rows

    def _context(self, solutions: Sequence[Bindings]) -> Context:
        """A context in which the solutions replace the inline data."""
        rows = [{n: term for n, term in solution.items() if n != ROUNDS} for solution in solutions]
        return Context(prologue=self.prologue, inline=(self.leaf, rows), behind_where=True)


def _bindings(row: Any) -> Bindings:
    return {name: plain_literal(term) for name, term in row.terms.items() if not name.startswith("__agg_")}


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
    prologue, query, ungrouped = translate(source, parts, allowed=frozenset({UNGROUPED}))
    root = with_triple_terms(algebra.convert(settle(query.p)))
    order: tuple[tuple[algebra.Expression, bool], ...] = ()
    while isinstance(root, (algebra.Projected, algebra.Ordered)):
        if isinstance(root, algebra.Ordered):
            order = tuple(zip(root.keys, root.descending, strict=True))
        root = root.child
    # If a later expression names a computed variable, rdflib takes it for a variable of the group and samples it.
    renamed = {name: sampled for name, a in _aggregates(root) if (sampled := _sampled(a)) and sampled in computed}
    if renamed:
        root, order = algebra.rename(root, renamed), algebra.rename(order, renamed)
    aggregates = [a for _, a in _aggregates(root)]
    groups = [node for node in algebra.walk(root) if isinstance(node, algebra.Grouped)]
    joins = [node for node in algebra.walk(root) if isinstance(node, algebra.Aggregated)]
    if len(groups) > 1 or len(joins) != len(groups):
        raise InternalError("the algebra of the result clauses is not as expected")
    group = groups[0] if groups else None
    ranged = frozenset().union(
        *(_variables(a) for a in aggregates if a.name != "Sample" or group is None or a.over not in group.keys)
    )
    keys = frozenset(str(key.value) for key in (group.keys if group else ()) if _is_variable(key))
    over_rounds = not (group and group.keys) and _over_rounds(aggregates, iterated)
    if ungrouped and not over_rounds:
        raise ungrouped[0]
    if over_rounds:
        root = _of_last(root)
        ranged = frozenset().union(*(_variables(a) for _, a in _aggregates(root)))
        ranged = frozenset(name for name in ranged if not name.startswith(_LAST))
    leaves = [node for node in algebra.walk(root) if isinstance(node, algebra.Values) and SolutionPlan.is_leaf(node)]
    if len(leaves) != 1:
        raise InternalError("the algebra of the result clauses is not as expected")
    return SolutionPlan(
        grouped=bool(groups),
        keys=keys,
        aggregated=ranged,
        over_rounds=over_rounds,
        iterated=iterated,
        node=root,
        leaf=leaves[0],
        group=group,
        order=order,
        prologue=prologue,
        each=None if groups or over_rounds else _each_of(root, leaves[0], order),
    )


def _over_rounds(aggregates: Sequence[algebra.Aggregate], iterated: frozenset[str]) -> bool:
    """True if every aggregate names a variable of an iteration; if there are only samples, if all of them do."""
    proper = [a for a in aggregates if a.name != "Sample"] or list(aggregates)
    return bool(proper) and all(iterated & _variables(a) for a in proper)


@dataclass(frozen=True, slots=True)
class Template:
    """A CONSTRUCT template: its triples, of rdflib's terms and `TriplePattern`."""

    triples: tuple[tuple[Any, Any, Any], ...]

    def graph(self, bindings: MappingABC[str, Any], number: int | str) -> tuple[Triple, ...]:
        """The triples of one solution, each once; without those that have an unbound variable or are not RDF triples.

        The blank nodes of the template are different in each solution; `number` is the solution's number, or another
        name of it.
        """
        terms: dict[Any, Any] = {Variable(name): term for name, term in bindings.items()}
        nodes = set[BNode]().union(*(nodes_of(term) for triple in self.triples for term in triple))
        places = {node: i for i, node in enumerate(sorted(nodes))}
        terms |= {node: BNode(f"spaseq{number}x{place}") for node, place in places.items()}
        made = (tuple(fill(term, terms) for term in triple) for triple in self.triples)
        return tuple(dict.fromkeys((s, p, o) for s, p, o in made if _is_triple(s, p, o)))


def _is_triple(s: Any, p: Any, o: Any) -> bool:
    return isinstance(s, (URIRef, BNode)) and isinstance(p, URIRef) and is_object(o)


def in_columns(node: algebra.Values) -> bool:
    """True if a VALUES behind WHERE is joined as columns with the order and the terms of the reference. Not with UNDEF,
    nor with language tags, whose case the reference takes from VALUES."""
    width = len(algebra.visible(node))
    terms = (term for row in node.rows for _, term in row)
    return all(len(row) == width for row in node.rows) and not any(getattr(term, "language", None) for term in terms)


def compile_template(source: Source, template: Piece) -> Template:
    """The template of CONSTRUCT. Raises `QuerySyntaxError` and `QuerySemanticsError` that point into the query."""
    _, made, _ = translate(source, ["CONSTRUCT ", template, " WHERE { }"])
    return Template(tuple(nest((s, p, o) for s, p, o in made.template or ())))


def _aggregates(root: algebra.Node) -> list[tuple[str, algebra.Aggregate]]:
    return [one for node in algebra.walk(root) if isinstance(node, algebra.Aggregated) for one in node.results]


def _is_variable(expression: algebra.Expression | None) -> TypeGuard[algebra.Term]:
    return isinstance(expression, algebra.Term) and isinstance(expression.value, Variable)


def _sampled(aggregate: algebra.Aggregate) -> str | None:
    """The variable that an aggregate samples."""
    over = aggregate.over
    return str(over.value) if aggregate.name == "Sample" and _is_variable(over) else None


def _variables(aggregate: algebra.Aggregate) -> frozenset[str]:
    """The variables of an aggregate, those inside EXISTS too."""
    inside = (node for argument in aggregate.arguments for node in algebra.patterns_inside(argument))
    return algebra.expression_variables(aggregate).union(*map(algebra.mentioned_names, inside))


def _of_last(node: algebra.Node) -> algebra.Node:
    """The node with samples of a solution's own values: outside aggregates, a variable is its last value."""
    node = algebra.rebuild(node, _of_last)
    if not isinstance(node, algebra.Aggregated):
        return node
    results = []
    for name, aggregate in node.results:
        if (sampled := _sampled(aggregate)) is not None:
            aggregate = replace(aggregate, arguments=(algebra.Term(Variable(_LAST + sampled)),))
        results.append((name, aggregate))
    return replace(node, results=tuple(results))
