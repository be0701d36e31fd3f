"""The rules of SPARQL 1.1 that its grammar does not express, checked on rdflib's parse tree.

rdflib accepts queries that break these rules, and their results would depend on the evaluator. `breaches` finds the
broken rules; each names its section of https://www.w3.org/TR/sparql11-query/.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from pyparsing import ParseResults
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Variable

from spaseq.core.errors import QuerySemanticsError, Span

LABELS: Final = "§19.6"
SCOPE: Final = "§18.2.1"
UNGROUPED: Final = "§11.4"
_MAPPING: Final = "§18.1.8"
_ROWS: Final = "§19.8, note 10"
_AGGREGATES: Final = "§19.8, note 13"
_DISTINCT: Final = "§19.8, note 14"
PLACED: Final = frozenset({
    "TriplesBlock", "Filter", "Bind", "InlineData", "SubSelect", "SelectQuery", "vars", "GroupClause", "GroupAs",
    "ValuesClause", "Function", "pname", "Aggregate_Count", "Aggregate_Sum", "Aggregate_Min", "Aggregate_Max",
    "Aggregate_Avg", "Aggregate_Sample", "Aggregate_GroupConcat", "literal",
})  # fmt: skip
"""The nodes of the parse tree whose position is needed: they have it in their attribute `start`."""
_EXISTS: Final = ("Builtin_EXISTS", "Builtin_NOTEXISTS")
_LABEL: Final = re.compile(r"(?<![\w.:-])_:(\w(?:[\w.-]*[\w-])?)")

Found = Generator["Breach", None, set[Variable]]
"""A generator that yields breaches and returns the variables in scope (SPARQL 1.1 §18.2.1)."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken rule: the problem, the section of the specification, and the place. The place is the first match of the
    pattern `word`, or of the group in it, from `node` on."""

    problem: str
    rule: str
    node: CompValue
    word: str
    hint: str = ""


def breaches(query: CompValue) -> Iterator[Breach]:
    """The broken rules of a query's parse tree, in the order of its text; nested groups come before outer ones."""
    walk = _Walk()
    if query.where is not None:
        yield from walk.select(query) if query.name == "SelectQuery" else walk.group(query.where)


def check_labels(places: Iterable[tuple[str, int, int]], masked: str, text: str, source: str) -> None:
    """Raises `QuerySemanticsError` if two graph patterns share a blank node label. `places` has the name, start and end
    of each pattern in `masked`.

    Labels within one pattern are checked by `breaches`.
    """
    first: dict[str, str] = {}
    for name, start, end in places:
        for label in _LABEL.finditer(masked, start, end):
            other = first.setdefault(label[1], name)
            if other != name:
                raise QuerySemanticsError(
                    f"the blank node label _:{label[1]} stands in GPM {other} and in GPM {name} (SPARQL 1.1 {LABELS})",
                    text=text,
                    span=Span.at(text, *label.span()),
                    source=source,
                    hint="a label names a node inside one graph pattern only: write a variable, or another label",
                )


@dataclass(slots=True)
class _Walk:
    """A walk over the parse tree. `labels`: for each blank node the basic graph pattern that it is in."""

    labels: dict[BNode, CompValue] = field(default_factory=dict)

    # -- patterns

    def group(self, node: CompValue) -> Found:
        """A group graph pattern."""
        if node.name in ("SubSelect", "SelectQuery"):
            return (yield from self.select(node))
        scope: set[Variable] = set()
        block: CompValue | None = None
        for part in node.part or ():
            if part.name == "TriplesBlock":
                block = part if block is None else block  # a FILTER between triples does not end the basic pattern
                scope |= yield from self.triples(part, block)
            elif part.name == "Filter":
                yield from self.expression(part.expr, part, "FILTER")
            else:
                block = None
                scope |= yield from self.part(part, scope)
        return scope

    def triples(self, part: CompValue, block: CompValue) -> Found:
        terms = list(_terms(part.triples))
        for term in dict.fromkeys(term for term in terms if isinstance(term, BNode)):
            if self.labels.setdefault(term, block) is not block:
                yield Breach(
                    f"the blank node label _:{term} stands in two basic graph patterns",
                    LABELS,
                    part,
                    rf"(?<![\w.:-])_:{re.escape(term)}(?![\w-])",
                    "FILTER alone does not end a basic graph pattern; write a variable, or another label",
                )
        return {term for term in terms if isinstance(term, Variable)}

    def part(self, part: CompValue, scope: set[Variable]) -> Found:
        """An element of a group that ends the basic graph pattern before it."""
        match part.name:
            case "Bind":
                yield from self.expression(part.expr, part, "BIND")
                if part.var in scope:
                    yield Breach(
                        f"BIND gives ?{part.var} a value, and it is in scope before it",
                        SCOPE,
                        part,
                        _alias(part.var),
                        "give it another name, or compare: FILTER (?a = ?b)",
                    )
                return {part.var}
            case "InlineData":
                yield from _rows(part)
                return set(part.var or ())
            case "MinusGraphPattern":
                yield from self.group(part.graph)
                return set()
            case "GroupOrUnionGraphPattern":
                found: set[Variable] = set()
                for graph in part.graph:
                    found |= yield from self.group(graph)
                return found
            case _:  # OPTIONAL, GRAPH, SERVICE
                found = yield from self.group(part.graph)
                return found | ({part.term} if isinstance(part.term, Variable) else set())

    # -- SELECT

    def select(self, node: CompValue) -> Found:
        scope = yield from self.group(node.where)
        values = node.valuesClause
        if values is not None:
            yield from _rows(values)
        given = set(values.var or ()) if values is not None else set()
        keys = yield from self.keys(node, scope)
        for clause, conditions in (("HAVING", node.having), ("ORDER BY", node.orderby)):
            for condition in (conditions.condition or ()) if conditions is not None else ():
                yield from self.expression(condition, node, clause)
        grouped = node.groupby is not None or any(
            map(_aggregates, (node.having, node.orderby, *(item.expr for item in node.projection or ())))
        )
        if grouped and not node.projection:
            hint = "name what is selected: variables of GROUP BY and aggregates"
            yield Breach("SELECT * of a query with groups", UNGROUPED, node, r"\*", hint)
        return (yield from self.items(node, scope | keys | given, keys | given if grouped else None))

    def keys(self, node: CompValue, scope: set[Variable]) -> Found:
        """The variables of GROUP BY."""
        keys: set[Variable] = set()
        for condition in (node.groupby.condition or ()) if node.groupby is not None else ():
            if isinstance(condition, Variable):
                keys.add(condition)
                continue
            inner = condition.expr if condition.name == "GroupAs" else condition
            yield from self.expression(inner, node.groupby, "GROUP BY")
            if condition.name == "GroupAs" and condition.var is not None:  # for (?x + 1) rdflib has one without a name
                if condition.var in scope | keys:
                    problem = f"GROUP BY gives ?{condition.var} a value, and it is in scope already"
                    yield Breach(problem, SCOPE, condition, _alias(condition.var), "give it another name")
                keys.add(condition.var)
        return keys

    def items(self, node: CompValue, scope: set[Variable], keys: set[Variable] | None) -> Found:
        """The items of SELECT. `keys`: the variables that have one value in each group; None without groups."""
        chosen: set[Variable] = set()
        computed: set[Variable] = set()
        for item in node.projection or ():
            if item.var is None:
                yield from self.expression(item.expr, item, "SELECT")
            if keys is not None:
                named = {item.var} if item.var is not None else _loose(item.expr)
                for name in sorted(named - keys - computed):
                    yield Breach(
                        f"SELECT names ?{name}, which is neither aggregated nor in GROUP BY",
                        UNGROUPED,
                        item,
                        _name(name),
                        f"add it to GROUP BY, or take one of its values: (SAMPLE(?{name}) AS ?one)",
                    )
            if item.evar is not None:
                visible = scope if keys is None or node.groupby is None else keys  # SPARQL 1.2: GROUP BY hides others
                if item.evar in visible | computed:
                    problem = f"SELECT computes ?{item.evar}, which is bound already"
                    yield Breach(problem, SCOPE, item, _alias(item.evar), "give it another name")
                computed.add(item.evar)
            chosen.add(item.var if item.var is not None else item.evar)
        return chosen if node.projection else scope

    # -- expressions

    def expression(self, tree: Any, place: CompValue, clause: str, inside: str = "") -> Iterator[Breach]:
        """An expression in `clause`. `inside`: its aggregate, or "". `place`: the innermost node with a position."""
        if isinstance(tree, (list, tuple, ParseResults)):
            for child in tree:
                yield from self.expression(child, place, clause, inside)
        if not isinstance(tree, CompValue):
            return
        if tree.name in _EXISTS:
            yield from self.group(tree.graph)
            return
        place = tree if tree.name in PLACED else place
        if tree.name.startswith("Aggregate_"):
            name = tree.name.removeprefix("Aggregate_").upper().replace("GROUPCONCAT", "GROUP_CONCAT")
            if inside:
                yield Breach(f"{name} stands inside {inside}: an aggregate is of values", _AGGREGATES, tree, name)
            elif clause not in ("SELECT", "HAVING", "ORDER BY"):
                hint = "aggregates stand in SELECT, HAVING and ORDER BY: compute it in a subquery"
                yield Breach(f"the aggregate {name} stands in {clause}", _AGGREGATES, tree, name, hint)
            inside = name
        if tree.name == "Function" and tree.distinct:
            yield Breach("DISTINCT stands in a call that is no aggregate", _DISTINCT, tree, r"\bDISTINCT\b")
        for child in tree.values():
            yield from self.expression(child, place, clause, inside)


def _rows(node: CompValue) -> Iterator[Breach]:
    """VALUES with rows of another length than its list of variables, or with a variable twice in that list."""
    variables = node.var or []
    for name in sorted({name for name in variables if variables.count(name) > 1}):
        hint = "a solution has one value for a variable"
        yield Breach(f"VALUES names ?{name} twice", _MAPPING, node, _name(name), hint)
    for row in node.value or ():
        if isinstance(row, (list, ParseResults)) and len(row) != len(variables):
            yield Breach(
                f"a row of VALUES has {len(row)} terms for {len(variables)} variables",
                _ROWS,
                node,
                r"\bVALUES\b",
                "write UNDEF for a variable that a row leaves open",
            )


def _children(tree: Any) -> Iterable[Any]:
    if isinstance(tree, CompValue):
        return () if tree.name in _EXISTS else tree.values()
    return tree if isinstance(tree, (list, tuple, ParseResults)) else ()


def _terms(tree: Any) -> Iterator[Any]:
    """The leaves of an expression's tree, without those of graph patterns in it (EXISTS)."""
    for child in _children(tree):
        yield child
        yield from _terms(child)


def _aggregates(tree: Any) -> bool:
    """True if an expression contains an aggregate."""
    return any(isinstance(n, CompValue) and n.name.startswith("Aggregate_") for n in chain((tree,), _terms(tree)))


def _loose(tree: Any) -> set[Variable]:
    """The variables of an expression outside aggregates."""
    if isinstance(tree, Variable):
        return {tree}
    if isinstance(tree, CompValue) and tree.name.startswith("Aggregate_"):
        return set()
    return set().union(*map(_loose, _children(tree)))


def _name(name: str) -> str:
    """A regular expression for a variable."""
    return rf"[?$]{re.escape(name)}(?!\w)"


def _alias(name: str) -> str:
    """A regular expression for a variable after AS."""
    return rf"\bAS\s*({_name(name)})"
