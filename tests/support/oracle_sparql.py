"""The naive evaluator of graph patterns: SPARQL 1.1 §17 and §18, read off the syntax, over one small graph.

Terms are N-Triples text, as in `oracle_spaseq`. A mapping is a dict of variables to terms. A list of mappings has one
as often as the definition has it. A group is a tuple of elements:

    ("triple", s, path, o)   s, o: a term as text, ("?", name) or ("blank", label); a path is a term, ("?", name),
                             ("^", p), ("/", p, q), ("|", p, q), ("*", p), ("+", p), ("opt", p) or ("!", ahead, back)
    ("group", group)  ("optional", group)  ("minus", group)  ("union", (group, …))  ("graph", name, group)
    ("filter", expression)  ("bind", expression, name)  ("values", names, rows)  ("select", Select)

and an expression is ("?", name), ("term", t), ("exists", group), ("not exists", group), ("aggregate", kind, distinct,
expression or None, separator), ("in" | "not in", e, e, …), or (operator or function, e, …).

Points that SPARQL leaves open are decided as in `docs/semantics.md`. EXISTS puts the outer terms into the pattern.
LIMIT without ORDER BY, ties, SAMPLE and GROUP_CONCAT go by the order of terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

Term = str
Graph = frozenset[tuple[Term, Term, Term]]
Group = tuple[Any, ...]
Expression = tuple[Any, ...]
Row = dict[str, Term]
Members = tuple[list[Row], Row]
"""The rows of a group, and the bindings that an EXISTS around it substitutes."""

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGER, DECIMAL, DOUBLE, BOOLEAN = (f"{XSD}{name}" for name in ("integer", "decimal", "double", "boolean"))
_RANKS = (INTEGER, DECIMAL, DOUBLE)


@dataclass(frozen=True, slots=True)
class Select:
    """A subquery.

    `shown`: (name, its expression or None) each, None for `*`. `by`: (expression, name or None) each, None without
    GROUP BY. `order`: (expression, True if descending) each. `values`: names and rows behind it.
    """

    group: Group
    shown: tuple[tuple[str, Expression | None], ...] | None = None
    distinct: bool = False
    by: tuple[tuple[Expression, str | None], ...] | None = None
    having: tuple[Expression, ...] = ()
    order: tuple[tuple[Expression, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    values: tuple[tuple[str, ...], tuple[tuple[Term | None, ...], ...]] | None = None

    @property
    def grouped(self) -> bool:
        expressions = [e for _, e in self.shown or () if e is not None] + [*self.having, *(e for e, _ in self.order)]
        return self.by is not None or any(map(aggregates, expressions))


def aggregates(expression: Expression) -> bool:
    """True if an aggregate stands in an expression (not in an EXISTS of it)."""
    if expression[0] in ("?", "term", "exists", "not exists"):
        return False
    return expression[0] == "aggregate" or any(map(aggregates, expression[1:]))


class Error(Exception):
    """An expression has no value."""


class TooMany(Exception):
    """More mappings than a naive evaluator should hold."""


LIMIT = 3000


def solutions(group: Group, graph: Graph, graphs: Mapping[Term, Graph]) -> set[frozenset[tuple[str, Term]]]:
    """The value of a graph pattern as a set of mappings; `graphs` are those that GRAPH names."""
    return {frozenset(row.items()) for row in Evaluation(graph, graphs).group(group, {})}


@dataclass(frozen=True)
class Evaluation:
    """Evaluates over one graph. `outer`, wherever it stands: the bindings that an EXISTS substitutes."""

    graph: Graph
    graphs: Mapping[Term, Graph]

    # -- groups, §18.2.2

    def group(self, group: Group, outer: Row) -> list[Row]:
        rows, filters = self.unfiltered(group, outer)
        return [row for row in rows if self.holds(filters, row, outer)]

    def unfiltered(self, group: Group, outer: Row) -> tuple[list[Row], list[Expression]]:
        """The rows of a group before its FILTERs, which range over all of it, and these."""
        rows: list[Row] = [{}]
        filters: list[Expression] = []
        for kind, *parts in _basic(group):
            match kind, parts:
                case "basic", [triples]:
                    rows = _join(rows, list(self.basic(triples, {}, outer)))
                case "filter", [condition]:
                    filters.append(condition)
                case "group", [inner]:
                    rows = _join(rows, self.group(inner, outer))
                case "union", [branches]:
                    rows = _join(rows, [row for branch in branches for row in self.group(branch, outer)])
                case "optional", [inner]:
                    rows = self.optional(rows, *self.unfiltered(inner, outer), outer)
                case "minus", [inner]:
                    others = self.group(inner, outer)
                    rows = [row for row in rows if not any(_meet(row, o) and row.keys() & o.keys() for o in others)]
                case "bind", [expression, name]:
                    rows = list(self.extended(rows, expression, name, outer))
                case "values", [names, table]:
                    rows = _join(rows, _inline(names, table, outer))
                case "graph", [name, inner]:
                    rows = _join(rows, [row for iri in self.graphs for row in self.named(iri, name, inner, outer)])
                case "select", [select]:
                    rows = _join(rows, self.select(select, outer))
                case _:
                    raise AssertionError(kind)
            if len(rows) > LIMIT:
                raise TooMany
        return rows, filters

    def optional(self, left: list[Row], right: list[Row], filters: list[Expression], outer: Row) -> list[Row]:
        """LeftJoin(left, right, filters)."""
        found = []
        for row in left:
            joined = [{**row, **other} for other in right if _meet(row, other)]
            found += [one for one in joined if self.holds(filters, one, outer)] or [row]
        return found

    def extended(self, rows: list[Row], expression: Expression, name: str, outer: Row) -> Iterator[Row]:
        for row in rows:
            value = self.attempt(expression, {**outer, **row})
            if value is None:
                yield row
            elif outer.get(name, value) == value:
                yield _without({**row, name: value}, outer)

    def named(self, iri: Term, name: Any, inner: Group, outer: Row) -> list[Row]:
        bound = {name[1]: iri} if isinstance(name, tuple) else {}
        if (not bound and name != iri) or not _meet(bound, outer):
            return []
        rows = Evaluation(self.graphs[iri], self.graphs).group(inner, outer)
        return [_without({**row, **bound}, outer) for row in rows if _meet(row, bound)]

    # -- triples and paths, §18.3, §18.4

    def basic(self, triples: tuple[Any, ...], bound: Row, outer: Row) -> Iterator[Row]:
        if not triples:
            yield {name: term for name, term in bound.items() if name[0] != "_" and name not in outer}
            return
        (s, path, o), *rest = triples
        for found in self.triples(s, path, o):
            longer = dict(bound)
            if all(_bind(longer, outer, part, term) for part, term in zip((s, path, o), found, strict=True)):
                yield from self.basic(tuple(rest), longer, outer)

    def triples(self, s: Any, path: Any, o: Any) -> Iterable[tuple[Term, Any, Term]]:
        if isinstance(path, str) or path[0] == "?":
            return self.graph
        # No steps lead from the constants written here, not from terms that EXISTS puts in (`docs/semantics.md`).
        return [(a, path, b) for a, b in self.pairs(path, {end for end in (s, o) if isinstance(end, str)})]

    def pairs(self, path: Any, ends: set[Term]) -> list[tuple[Term, Term]]:
        """The pairs of nodes that a path joins, each for each way; a path of no steps joins the nodes and `ends`."""
        if isinstance(path, str):
            return [(s, o) for s, p, o in self.graph if p == path]
        match path:
            case ("^", inner):
                return [(b, a) for a, b in self.pairs(inner, ends)]
            case ("/", first, second):
                steps = self.pairs(second, ends)
                return [(a, d) for a, b in self.pairs(first, ends) for c, d in steps if b == c]
            case ("|", first, second):
                return self.pairs(first, ends) + self.pairs(second, ends)
            case ("!", ahead, back):
                found = [(s, o) for s, p, o in self.graph if p not in ahead] if ahead or not back else []
                return found + ([(o, s) for s, p, o in self.graph if p not in back] if back else [])
            case ("*" | "+" | "opt" as kind, inner):
                reached = set(self.pairs(inner, ends))
                steps = list(reached)
                while kind != "opt":
                    longer = reached | {(a, d) for a, b in reached for c, d in steps if b == c}
                    if longer == reached:
                        break
                    reached = longer
                nodes = ends.union(*((s, o) for s, _, o in self.graph))
                return list(reached if kind == "+" else reached | {(node, node) for node in nodes})
        raise AssertionError(path)

    # -- subqueries, §18.2.4, §18.5

    def select(self, select: Select, outer: Row) -> list[Row]:
        """The rows of a subquery; of the outer bindings it sees those that it selects."""
        shown = [name for name, _ in select.shown] if select.shown is not None else None
        seen = {n: t for n, t in outer.items() if shown is None or n in shown}
        rows = self.group(select.group, seen)
        if select.grouped:
            members: list[tuple[Row, Members | None]] = list(self.grouped(select, rows, seen))
        else:
            members = [(row, None) for row in rows]
        for condition in select.having:
            members = [(row, of) for row, of in members if self.truth(condition, {**seen, **row}, of) is True]
        if select.values is not None:
            given = _inline(*select.values, seen)
            members = [({**row, **other}, of) for row, of in members for other in given if _meet(row, other)]
        for name, expression in select.shown or ():
            if expression is not None:
                members = [(self.shown(row, name, expression, seen, of), of) for row, of in members]
        members.sort(key=_places_of([row for row, _ in members], lambda member: member[0]))
        for expression, down in reversed(select.order):
            # Equal values stay in the order of their terms, whichever way the values go.
            places = [_place(self.attempt(expression, {**seen, **row}, of)) for row, of in members]
            ranks = {place: rank for rank, place in enumerate(sorted(set(places), reverse=down))}
            ranked = sorted(zip((ranks[place] for place in places), range(len(members)), strict=True))
            members = [members[i] for _, i in ranked]
        found = [{n: t for n, t in row.items() if shown is None or n in shown} for row, _ in members]
        if not select.order:
            found.sort(key=_places_of(found, lambda row: row))
        if select.distinct:
            found = [dict(row) for row in dict.fromkeys(frozenset(row.items()) for row in found)]
        return found[select.offset :][: select.limit]

    def shown(self, row: Row, name: str, expression: Expression, outer: Row, members: Members | None) -> Row:
        value = self.attempt(expression, {**outer, **row}, members)
        return row if value is None else {**row, name: value}

    def grouped(self, select: Select, rows: list[Row], outer: Row) -> Iterator[tuple[Row, Members]]:
        """Each group: the bindings of GROUP BY, and its members. Without GROUP BY there is one, of all rows."""
        if select.by is None:
            yield {}, (rows, outer)
            return
        found: dict[tuple[Term | None, ...], list[Row]] = {}
        for row in rows:
            key = tuple(self.attempt(e, {**outer, **row}) for e, _ in select.by)
            own = {n: term for (_, n), term in zip(select.by, key, strict=True) if n is not None and term is not None}
            found.setdefault(key, []).append({**row, **own})  # else §18.2.4.1's Sample(?key) would have nothing
        for key, members in found.items():
            names = [name if name is not None else e[1] if e[0] == "?" else None for e, name in select.by]
            bound = zip(names, key, strict=True)
            yield {name: term for name, term in bound if name is not None and term is not None}, (members, outer)

    def aggregate(self, aggregate: Expression, rows: list[Row], outer: Row) -> Term:
        _, kind, distinct, argument, separator = aggregate
        if argument is None:
            return number(len({frozenset(row.items()) for row in rows} if distinct else rows))
        values = [self.attempt(argument, {**outer, **row}) for row in rows]
        values = list(dict.fromkeys(values)) if distinct else values
        known = sorted((value for value in values if value is not None), key=_whole_place)
        if kind == "COUNT":
            return number(len(known))
        if kind == "SAMPLE" and known:
            return known[0]
        if kind == "SAMPLE" or len(known) < len(values):
            raise Error
        match kind:
            case "MIN" | "MAX":
                if not known:
                    raise Error
                return known[0 if kind == "MIN" else -1]
            case "GROUP_CONCAT":
                return text(separator.join(text_of(value) for value in known))
            case "SUM" | "AVG":
                total = number(0)
                for value in known:
                    total = arithmetic("+", total, value)
                return total if kind == "SUM" or not known else arithmetic("/", total, number(len(known)))
        raise AssertionError(kind)

    # -- expressions, §17

    def holds(self, conditions: Iterable[Expression], row: Row, outer: Row) -> bool:
        return all(self.truth(condition, {**outer, **row}) is True for condition in conditions)

    def attempt(self, expression: Expression, row: Row, members: Members | None = None) -> Term | None:
        """The value of an expression, None for an error."""
        try:
            return self.value(expression, row, members)
        except Error:
            return None

    def truth(self, expression: Expression, row: Row, members: Members | None = None) -> bool | None:
        """The effective boolean value (§17.2.2), None for an error."""
        try:
            return truth_of(self.value(expression, row, members))
        except Error:
            return None

    def value(self, expression: Expression, row: Row, members: Members | None) -> Term:
        def inner(part: Expression) -> Term:
            return self.value(part, row, members)

        match expression:
            case ("?", name):
                if name not in row:
                    raise Error
                return row[name]
            case ("term", term):
                return str(term)
            case ("exists" | "not exists" as sign, group):
                return truth_term(bool(self.group(group, row)) is (sign == "exists"))
            case ("aggregate", *_):
                assert members is not None
                return self.aggregate(expression, *members)
            case ("bound", ("?", name)):
                return truth_term(name in row)
            case ("||" | "&&" as sign, left, right):
                both = [self.truth(part, row, members) for part in (left, right)]
                if (sign == "||") in both or None not in both:
                    return truth_term((sign == "||") in both if sign == "||" else False not in both)
                raise Error
            case ("!", part):
                return truth_term(not truth_of(inner(part)))
            case ("if", condition, yes, no):
                return inner(yes if truth_of(inner(condition)) else no)
            case ("coalesce", *parts):
                found = [value for part in parts if (value := self.attempt(part, row, members)) is not None]
                return found[0] if found else _fail()
            case ("in" | "not in" as sign, part, *others):
                return truth_term(self.among(inner(part), others, row, members) is (sign == "in"))
            case (name, *parts):
                return FUNCTIONS[name](*map(inner, parts))
        raise AssertionError(expression)

    def among(self, value: Term, others: list[Expression], row: Row, members: Members | None) -> bool:
        failed = False
        for other in others:
            try:
                if equal(value, self.value(other, row, members)):
                    return True
            except Error:
                failed = True
        if failed:
            raise Error
        return False


# -- mappings


def _basic(group: Group) -> Iterator[tuple[Any, ...]]:
    """The elements of a group, triples together that no other element but a FILTER stands between (§18.2.2.5)."""
    triples: list[Any] = []
    for element in group:
        if element[0] == "triple":
            triples.append(element[1:])
        elif element[0] == "filter":
            yield element
        else:
            if triples:
                yield "basic", tuple(triples)
            triples = []
            yield element
    if triples:
        yield "basic", tuple(triples)


def _join(left: list[Row], right: list[Row]) -> list[Row]:
    if len(left) * len(right) > LIMIT**2:
        raise TooMany
    return [{**a, **b} for a, b in product(left, right) if _meet(a, b)]


def _meet(a: Row, b: Row) -> bool:
    return all(b.get(name, term) == term for name, term in a.items())


def _without(row: Row, outer: Row) -> Row:
    """A mapping without the variables that are terms in the outer one."""
    return {name: term for name, term in row.items() if name not in outer}


def _inline(names: Iterable[str], table: Iterable[Iterable[Term | None]], outer: Row) -> list[Row]:
    rows = [{n: t for n, t in zip(names, row, strict=True) if t is not None} for row in table]
    return [_without(row, outer) for row in rows if _meet(row, outer)]


def _bind(bound: Row, outer: Row, part: Any, term: Any) -> bool:
    if isinstance(part, tuple) and part[0] in ("?", "blank"):
        name = part[1] if part[0] == "?" else f"_:{part[1]}"
        return outer.get(name, term) == term and bound.setdefault(name, term) == term
    return bool(part == term)


# -- terms

_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@([A-Za-z0-9-]+))?', re.DOTALL)


@cache
def parts_of(term: Term) -> tuple[str, str, str]:
    """The text, the datatype and the tag of a literal; raises Error for another term."""
    match = _LITERAL.fullmatch(term)
    if match is None:
        raise Error
    lexical, datatype, tag = match.groups()
    return lexical, datatype or "", tag or ""


def text(lexical: str, tag: str = "") -> Term:
    return f'"{lexical}"' + (f"@{tag}" if tag else "")


def truth_term(value: bool) -> Term:
    return f'"{"true" if value else "false"}"^^<{BOOLEAN}>'


def number(value: int | Decimal | float) -> Term:
    """A number as computed, in its canonical form."""
    match value:
        case int():
            return f'"{value}"^^<{INTEGER}>'
        case Decimal():
            digits = format(value, "f")
            digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
            return f'"{"0" if digits in ("-0", "") else digits}"^^<{DECIMAL}>'
    return f'"{value!r}"^^<{DOUBLE}>'


def value_of(term: Term) -> tuple[str, Any]:
    """(kind, value) of a literal that has an order; raises Error for other terms."""
    lexical, datatype, tag = parts_of(term)
    if tag:
        raise Error
    if not datatype:
        return "string", lexical
    if datatype == BOOLEAN:
        return "boolean", lexical in ("true", "1")
    if datatype in _RANKS:
        return "number", (int, Decimal, float)[_RANKS.index(datatype)](lexical)
    raise Error


def numeric(term: Term) -> Any:
    kind, value = value_of(term)
    if kind != "number":
        raise Error
    return value


def truth_of(term: Term) -> bool:
    """§17.2.2: of a plain literal, with a language or not, True if it is not empty; of a number, True if neither 0 nor
    NaN."""
    lexical, _, tag = parts_of(term)
    value = lexical if tag else value_of(term)[1]
    return bool(value) and value == value


def text_of(term: Term) -> str:
    """STR without its quotes, for IRIs and literals."""
    if term.startswith("<"):
        return term[1:-1]
    if term.startswith("_:"):
        raise Error
    return parts_of(term)[0]


def equal(a: Term, b: Term) -> bool:
    if not (a[0] == b[0] == '"') or parts_of(a)[2] or parts_of(b)[2]:
        return a == b
    (kind, x), (other, y) = value_of(a), value_of(b)
    return kind == other and bool(operands(x, y)[0] == operands(x, y)[1])


def operands(x: Any, y: Any) -> tuple[Any, Any]:
    """Two numbers as one type: double before decimal before integer."""
    for kind in (float, Decimal):
        if isinstance(x, kind) or isinstance(y, kind):
            return kind(x), kind(y)
    return x, y


def ordered(sign: str, a: Term, b: Term) -> Term:
    (kind, x), (other, y) = value_of(a), value_of(b)
    if kind != other:
        raise Error
    x, y = operands(x, y) if kind == "number" else (x, y)
    return truth_term({"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign])


def arithmetic(sign: str, a: Term, b: Term) -> Term:
    x, y = operands(numeric(a), numeric(b))
    if sign == "/" and isinstance(x, int):
        x, y = Decimal(x), Decimal(y)
    if sign != "/":
        return number({"+": x + y, "-": x - y, "*": x * y}[sign])
    if y == 0 and isinstance(y, Decimal):
        raise Error
    if y == 0:
        return f'"{"NaN" if x == 0 or x != x else "INF" if x > 0 else "-INF"}"^^<{DOUBLE}>'
    return number(x / y)


def _negative(a: Term) -> Term:
    return number(-numeric(a))


def _fail() -> Term:
    raise Error


def _string(term: Term) -> tuple[str, str]:
    lexical, datatype, tag = parts_of(term)
    if datatype:
        raise Error
    return lexical, tag


def _datatype(term: Term) -> Term:
    _, datatype, tag = parts_of(term)
    if tag:
        return "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"
    return f"<{datatype or XSD + 'string'}>"


def _concatenate(*terms: Term) -> Term:
    strings = [_string(term) for term in terms]
    tags = {tag for _, tag in strings}
    return text("".join(s for s, _ in strings), tags.pop() if len(tags) == 1 else "")


def _same_tags(a: Term, b: Term) -> tuple[str, str]:
    """Compatible arguments (§17.4.3.1.2)."""
    (x, tag), (y, other) = _string(a), _string(b)
    if other and tag != other:
        raise Error
    return x, y


def _is_numeric(term: Term) -> bool:
    try:
        numeric(term)
    except Error:
        return False
    return True


FUNCTIONS: Mapping[str, Any] = {
    **{sign: lambda a, b, s=sign: ordered(s, a, b) for sign in ("<", "<=", ">", ">=")},
    **{sign: lambda a, b, s=sign: arithmetic(s, a, b) for sign in "+-*/"},
    "=": lambda a, b: truth_term(equal(a, b)),
    "!=": lambda a, b: truth_term(not equal(a, b)),
    "negative": _negative,
    "str": lambda a: text(text_of(a)),
    "lang": lambda a: text(parts_of(a)[2]),
    "datatype": _datatype,
    "isIRI": lambda a: truth_term(a[0] == "<"),
    "isBlank": lambda a: truth_term(a[:2] == "_:"),
    "isLiteral": lambda a: truth_term(a[0] == '"'),
    "isNumeric": lambda a: truth_term(_is_numeric(a)),
    "sameTerm": lambda a, b: truth_term(a == b),
    "strlen": lambda a: number(len(_string(a)[0])),
    "ucase": lambda a: text(_string(a)[0].upper(), _string(a)[1]),
    "concat": _concatenate,
    "contains": lambda a, b: truth_term(_same_tags(a, b)[1] in _same_tags(a, b)[0]),
    "strstarts": lambda a, b: truth_term(_same_tags(a, b)[0].startswith(_same_tags(a, b)[1])),
    "abs": lambda a: number(abs(numeric(a))),
}


# -- the order of terms (`docs/semantics.md`, Inside a GPM)


def _place(term: Term | None) -> tuple[Any, ...]:
    """Unbound, blank nodes, IRIs, literals by kind and value."""
    if term is None:
        return (0,)
    if term.startswith("_:"):
        return (1, "", term)
    if term.startswith("<"):
        return (2, "", term[1:-1])  # as a string (SPARQL 1.1 §15.1): kb before kb2
    try:
        return (3, *value_of(term))
    except Error:
        lexical, datatype, tag = parts_of(term)
        return (3, "language" if tag else "unknown", datatype, lexical, tag)


def _whole_place(term: Term | None) -> tuple[Any, ...]:
    """As `_place`, and different terms are apart: by text, then by datatype and tag."""
    lexical, datatype, tag = parts_of(term) if term is not None and term[0] == '"' else (term or "", "", "")
    return (_place(term), lexical, datatype, tag)


def _places_of(rows: list[Row], row_of: Callable[[Any], Row]) -> Callable[[Any], Any]:
    """A key to sort by all terms of the rows, in order of the variables' names."""
    names = sorted({name for row in rows for name in row})
    return lambda item: [_whole_place(row_of(item).get(name)) for name in names]
