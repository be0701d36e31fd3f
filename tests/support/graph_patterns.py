"""Random graph patterns as the naive evaluator's data (`oracle_sparql`), with a printer and smaller ones of each.

Everything is drawn from a `random.Random`, so a seed names a case. Patterns are legal SPARQL: labels of blank nodes
stay in one basic graph pattern, BIND and AS name new variables, and groups show their keys and aggregates alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.support.harness import NAMESPACE, Case
from tests.support.oracle_sparql import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    Expression,
    Group,
    Select,
    TooMany,
    number,
    solutions,
    text,
)

KNOWN = (f"<{NAMESPACE}kb>", f"<{NAMESPACE}kb2>")
_NODES = tuple(f"<{NAMESPACE}{name}>" for name in "abc")
_P, _Q, _NONE = (f"<{NAMESPACE}{name}>" for name in ("p", "q", "none"))
_ONE_POINT = f'"1.0"^^<{DECIMAL}>'
_OBJECTS = (
    *_NODES, *_NODES, number(1), number(1), number(2), number(-1), text("x"), text("1"), text("x", "en"),
    _ONE_POINT, f'"2.50"^^<{DECIMAL}>', f'"1e0"^^<{DOUBLE}>', f'"true"^^<{BOOLEAN}>',
)  # fmt: skip
_VARIABLES = ("u", "v", "w", "x")


@dataclass(frozen=True, slots=True)
class PatternCase:
    """A graph pattern, a graph for each event, at times 0, 1, …, and background knowledge."""

    group: Group
    events: tuple[frozenset[Any], ...]
    knowledge: tuple[frozenset[Any], ...]

    @property
    def graphs(self) -> dict[str, frozenset[Any]]:
        """The graphs that GRAPH names."""
        return dict(zip(KNOWN, self.knowledge, strict=True))

    @property
    def query(self) -> str:
        prefixes = f"PREFIX : <{NAMESPACE}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
        return (
            f"{prefixes}SELECT * FROM STREAM S <{NAMESPACE}S>\n"
            f"WHERE {{ SEQ (A) DEFINE GPM A ON S {print_group(self.group)} }}\n"
        )

    def case(self) -> Case:
        """As the roads take it."""
        events = [(float(i), _triples(graph)) for i, graph in enumerate(self.events)]
        kb = {iri[1:-1]: _triples(graph) for iri, graph in self.graphs.items()}
        return Case("a random pattern", self.query, graphs={"S": events}, kb=kb)

    def answers(self) -> set[Any]:
        """By definition: (time, time, (time,), mapping) of every solution. Raises TooMany."""
        found = set()
        for i, graph in enumerate(self.events):
            at = i * 10**9
            found |= {(at, at, (at,), row) for row in solutions(self.group, graph, self.graphs)}
        return found


def _triples(graph: frozenset[Any]) -> str:
    return " . ".join(" ".join(triple) for triple in sorted(graph))


# -- drawn


def pattern_case(rng: random.Random) -> PatternCase:
    """A pattern of at most three levels over six small graphs, with solutions in some, 19 times of 20."""
    while True:
        drawing = _Drawing(rng, rng.choice((0.0, 0.0, 0.5)))
        case = PatternCase(
            drawing.top(), tuple(_draw_graph(rng) for _ in range(6)), (_draw_graph(rng, "_:k"), _draw_graph(rng, "_:l"))
        )
        try:
            if case.answers() or rng.random() < 1 / 20:
                return case
        except TooMany:
            continue


def _draw_graph(rng: random.Random, blank: str = "_:b") -> frozenset[Any]:
    """Few triples; `blank` is its blank node, one of its own for each file, as files share none."""
    subjects = (*_NODES, *_NODES, *_NODES, blank)
    count = rng.choice((0, 1, 2, 3, 4, 5, 7))
    return frozenset(
        (rng.choice(subjects), rng.choice((_P, _P, _Q)), rng.choice((*_OBJECTS, blank))) for _ in range(count)
    )


class _Drawing:
    """Draws one pattern; `knowledge`: how often a part of it is about the background knowledge."""

    def __init__(self, rng: random.Random, knowledge: float) -> None:
        self.rng = rng
        self.knowledge = knowledge
        self.fresh = 0

    def name(self, start: str) -> str:
        self.fresh += 1
        return f"{start}{self.fresh}"

    def top(self) -> Group:
        """A group that may bind something, and that names no variables of other GPMs."""
        while True:
            group = self.group(self.rng.choice((1, 2, 2, 3)), ())
            if visible(group):
                return known_alone(group)

    def group(self, depth: int, outer: tuple[str, ...]) -> Group:
        """A group of `depth` levels; `outer` are variables that its FILTERs may name beside its own."""
        rng = self.rng
        elements = self.triples(rng.choice((1, 1, 2, 3)) if depth > 1 or rng.random() < 0.95 else 0)
        for _ in range(rng.choice((0, 1, 1, 2)) if depth else 0):
            elements.append(self.element(depth - 1, outer))
        if rng.random() < 0.12:
            elements.insert(rng.randrange(len(elements) + 1), self.values())
        if rng.random() < 0.1:  # an element that begins with no mapping of its own
            elements = elements[::-1] if not any(e[0] == "triple" for e in elements[1:]) else elements
        if rng.random() < 0.15:
            elements.append(("bind", self.expression(2, outer), self.name("new")))
        for _ in range(rng.choice((0, 1, 1, 2)) if rng.random() < 0.6 else 0):
            elements.insert(rng.randrange(len(elements) + 1), ("filter", self.condition(depth, outer)))
        return _legal(tuple(elements))

    def triples(self, count: int) -> list[Any]:
        blank = self.name("n")
        return [self.triple(blank) for _ in range(count)]

    def triple(self, blank: str) -> Any:
        rng = self.rng

        def end() -> Any:
            return ("?", rng.choice(_VARIABLES)) if rng.random() < 0.72 else rng.choice((*_NODES, ("blank", blank)))

        kind = rng.random()
        path: Any = rng.choice((_P, _Q))
        if kind < 0.12:
            path = self.path(2)
        elif kind < 0.2:
            path = ("?", rng.choice(_VARIABLES))
        elif kind < 0.22:
            path = _NONE
        last = end() if rng.random() < 0.9 else rng.choice((number(1), text("x"), _ONE_POINT))
        return ("triple", end(), path, last)

    def path(self, depth: int) -> Any:
        rng = self.rng
        kind = rng.randrange(7) if depth else 0
        if kind == 0:
            return rng.choice((_P, _Q))
        if kind == 1:
            return ("^", self.path(depth - 1))
        if kind in (2, 3):
            return (rng.choice("/|"), self.path(depth - 1), self.path(depth - 1))
        if kind in (4, 5):
            return (rng.choice(("*", "+", "opt")), self.path(depth - 1))
        return rng.choice((("!", (_P,), ()), ("!", (_P,), (_Q,)), ("!", (), (_P,)), ("!", (_P, _Q), ())))

    def element(self, depth: int, outer: tuple[str, ...]) -> Any:
        rng = self.rng
        if rng.random() < self.knowledge:
            return self.graph(depth, outer)
        inner = self.group(depth, outer)
        kind = rng.choices(("optional", "minus", "union", "group", "select", "filter"), (5, 3, 3, 2, 5, 1))[0]
        if kind == "union":
            return ("union", (inner, self.group(depth, outer), *[self.group(0, outer)][: rng.random() < 0.2]))
        if kind == "select":
            return ("select", self.select(inner, outer))
        if kind == "filter":
            return ("filter", (rng.choice(("exists", "not exists")), inner))
        return (kind, inner)

    def graph(self, depth: int, outer: tuple[str, ...]) -> Any:
        rng = self.rng
        name: Any = rng.choice((KNOWN[0], KNOWN[0], KNOWN[1], ("?", "g"), ("?", "g"), ("?", "u")))
        found: Any = ("graph", name, self.group(depth, outer))
        kind = rng.randrange(7)
        if kind == 0:
            return ("optional", (found, *self.triples(rng.randrange(2))))
        if kind == 1:
            return ("minus", (found,))
        if kind == 2:
            return ("union", ((found,), self.group(0, outer)))
        if kind == 3:
            return ("filter", (rng.choice(("exists", "not exists")), (found,)))
        if kind == 4:
            return ("select", self.select((found,), outer))
        return found

    def values(self) -> Any:
        rng = self.rng
        names = tuple(rng.sample(_VARIABLES, rng.choice((1, 1, 2))))

        def row() -> tuple[Any, ...]:
            return tuple(None if rng.random() < 0.15 else rng.choice(_OBJECTS) for _ in names)

        return ("values", names, tuple(row() for _ in range(rng.randint(1, 3))))

    def select(self, inner: Group, outer: tuple[str, ...]) -> Select:
        """A subquery: of groups, or with DISTINCT, ORDER BY, LIMIT and OFFSET."""
        rng = self.rng
        grouped = rng.random() < 0.6
        shown: list[tuple[str, Expression | None]] = []
        by = None
        having: tuple[Expression, ...] = ()
        order: tuple[tuple[Expression, bool], ...] = ()
        if grouped:
            by = None if rng.random() < 0.35 else tuple(self.key() for _ in range(rng.choice((1, 1, 2))))
            keys = [name if name is not None else e[1] for e, name in by or () if name is not None or e[0] == "?"]
            shown = [(name, None) for name in dict.fromkeys(keys) if rng.random() < 0.8]
            for _ in range(rng.choice((1, 1, 2))):
                shown.append((self.name("n"), self.total(outer)))
            if rng.random() < 0.2:
                having = ((rng.choice((">", "<", "=")), self.aggregate(outer), ("term", number(rng.randint(0, 2)))),)
            if rng.random() < 0.15:
                order = ((rng.choice([e for _, e in shown if e is not None]), rng.random() < 0.5),)
        else:
            shown = [(name, None) for name in rng.sample(_VARIABLES, rng.choice((1, 2, 2, 3)))]
            if rng.random() < 0.2:
                shown.append((self.name("new"), self.expression(1, outer)))
            if rng.random() < 0.6:
                order = tuple((self.expression(rng.randrange(2), outer), rng.random() < 0.5) for _ in range(2))
                order = order[: rng.randint(1, 2)]
        limit, offset = None, 0
        if rng.random() < (0.2 if grouped else 0.6):
            limit, offset = rng.choice(((1, 0), (1, 0), (2, 1), (None, 1), (0, 0), (2, 0)))
        values = None
        if rng.random() < 0.06:
            values = (("w",), tuple((rng.choice((None, *_OBJECTS)),) for _ in range(2)))
        star = not grouped and rng.random() < 0.2
        return Select(
            inner, None if star else tuple(shown), rng.random() < 0.3, by, having, order, limit, offset,
            None if grouped else values,
        )  # fmt: skip

    def key(self) -> tuple[Expression, str | None]:
        if self.rng.random() < 0.8:
            return ("?", self.rng.choice(_VARIABLES)), None
        named = self.name("k") if self.rng.random() < 0.7 else None
        return self.rng.choice((("str", ("?", "u")), ("+", ("?", "w"), ("term", number(1))))), named

    def total(self, outer: tuple[str, ...]) -> Expression:
        total = self.aggregate(outer)
        if self.rng.random() < 0.2:
            one, none = ("term", number(1)), ("term", text("none"))
            return self.rng.choice((("+", total, one), ("coalesce", total, none), ("*", total, total)))
        return total

    def aggregate(self, outer: tuple[str, ...]) -> Expression:
        rng = self.rng
        kind = rng.choice(("COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"))
        argument: Expression | None = ("?", rng.choice(_VARIABLES))
        if rng.random() < 0.2:
            argument = self.expression(1, outer)
        if kind == "COUNT" and rng.random() < 0.4:
            argument = None
        return ("aggregate", kind, rng.random() < 0.25, argument, rng.choice((" ", ",")))

    # -- expressions

    def condition(self, depth: int, outer: tuple[str, ...], size: int = 2) -> Expression:
        """A truth value; `depth`: of patterns in an EXISTS, `size`: of `&&`, `||`, `!` and IF in one another."""
        rng = self.rng
        kind = rng.random() if size else rng.uniform(0.5, 1)
        if depth and kind < 0.25:
            inner = self.group(depth - 1, (*outer, *_VARIABLES))
            found: Expression = (rng.choice(("exists", "not exists")), inner)
            return found if rng.random() < 0.7 else ("||", found, self.condition(0, outer, size - 1))
        if kind < 0.4:
            parts = (self.condition(0, outer, size - 1) for _ in range(2))
            return (rng.choice(("&&", "||")), *parts)
        if kind < 0.5:
            return ("!", self.condition(0, outer, size - 1))
        if kind < 0.6:
            return ("bound", ("?", self.variable(outer)))
        if kind < 0.9:
            sign = rng.choice(("=", "=", "!=", "<", "<=", ">", ">="))
            return (sign, self.expression(1, outer), self.expression(1, outer))
        return self.expression(1, outer)

    def variable(self, outer: tuple[str, ...]) -> str:
        return self.rng.choice((*_VARIABLES, *outer))

    def expression(self, depth: int, outer: tuple[str, ...]) -> Expression:
        rng = self.rng
        kind = rng.random()
        if not depth or kind < 0.45:
            return ("?", self.variable(outer)) if rng.random() < 0.65 else ("term", rng.choice(_OBJECTS))

        def part() -> Expression:
            return self.expression(depth - 1, outer)

        if kind < 0.6:
            return (rng.choice("+-*/"), part(), part())
        if kind < 0.7:
            return (rng.choice(("isIRI", "isBlank", "isLiteral", "isNumeric", "str", "lang", "datatype", "negative",
                                "strlen", "ucase", "abs")), part())  # fmt: skip
        if kind < 0.78:
            return (rng.choice(("sameTerm", "=", "<", "concat", "contains", "strstarts")), part(), part())
        if kind < 0.84:
            return (rng.choice(("in", "not in")), part(), part(), part())
        if kind < 0.9:
            return ("if", self.condition(0, outer, 0), part(), part())
        return ("coalesce", part(), part())


def _legal(group: Group) -> Group:
    """The group without blank nodes whose label stands in two basic graph patterns: if another element comes between,
    they are different nodes."""
    found, block = [], 0
    for element in group:
        if element[0] not in ("triple", "filter"):
            block += 1
        if element[0] == "triple":
            element = tuple(
                ("blank", f"{part[1]}x{block}") if isinstance(part, tuple) and part[0] == "blank" else part
                for part in element
            )
        found.append(element)
    return tuple(found)


# -- variables


def visible(group: Group) -> set[str]:
    """The variables that a group may bind."""
    found: set[str] = set()
    for element in group:
        match element:
            case ("triple", *parts):
                found |= {part[1] for part in parts if isinstance(part, tuple) and part[0] == "?"}
            case ("group" | "optional", inner):
                found |= visible(inner)
            case ("graph", name, inner):
                found |= visible(inner) | ({name[1]} if isinstance(name, tuple) else set())
            case ("union", branches):
                found |= set().union(*map(visible, branches))
            case ("bind", _, name):
                found.add(name)
            case ("values", names, _):
                found |= set(names)
            case ("select", select):
                if select.shown is None:
                    found |= visible(select.group) | set(select.values[0] if select.values else ())
                found |= {name for name, _ in select.shown or ()}
    return found


def known_alone(group: Group) -> Group:
    """A GPM whose expressions name only variables that their group or the whole may bind; others would be a run's."""
    return _restrict(group, frozenset(visible(group)))


def _restrict(group: Group, top: frozenset[str]) -> Group:
    found: list[Any] = []
    for element in group:
        match element:
            case ("filter", condition):
                element = ("filter", _rename(condition, top | visible(group), top))
            case ("bind", expression, name):
                element = ("bind", _rename(expression, top | visible(tuple(found)), top), name)
            case ("group" | "optional" | "minus" as kind, inner):
                element = (kind, _restrict(inner, top))
            case ("graph", name, inner):
                element = ("graph", name, _restrict(inner, top))
            case ("union", branches):
                element = ("union", tuple(_restrict(branch, top) for branch in branches))
            case ("select", select):
                element = ("select", _known_select(select, top))
        found.append(element)
    return tuple(found)


def _known_select(select: Select, top: frozenset[str]) -> Select:
    own = top | visible(select.group)

    def known(expression: Expression | None) -> Any:
        return expression and _rename(expression, own, top)

    return replace(
        select,
        group=_restrict(select.group, top),
        shown=None if select.shown is None else tuple((name, known(e)) for name, e in select.shown),
        by=None if select.by is None else tuple((e if e[0] == "?" else known(e), name) for e, name in select.by),
        having=tuple(map(known, select.having)),
        order=tuple((known(e), down) for e, down in select.order),
    )


def _rename(expression: Expression, names: set[str] | frozenset[str], top: frozenset[str]) -> Expression:
    """An expression whose variables are of `names`: another variable becomes one of them."""
    match expression:
        case ("?", name):
            some = sorted(names)
            return ("?", name if name in names else some[ord(name[0]) % len(some)]) if some else ("term", number(1))
        case ("term", _):
            return expression
        case ("exists" | "not exists" as sign, inner):
            return (sign, _restrict(inner, top))
        case ("aggregate", kind, distinct, argument, separator):
            return ("aggregate", kind, distinct, argument and _rename(argument, names, top), separator)
        case ("bound", variable):
            found = _rename(variable, names, top)
            return ("bound", found) if found[0] == "?" else found
    return (expression[0], *(_rename(part, names, top) for part in expression[1:]))


# -- printed


def print_group(group: Group) -> str:
    return "{ " + " ".join(map(_element, group)) + " }"


def _element(element: Any) -> str:
    match element:
        case ("triple", s, path, o):
            return f"{_node(s)} {_path(path)} {_node(o)} ."
        case ("group", inner):
            return print_group(inner)
        case ("optional" | "minus" as word, inner):
            return f"{word.upper()} {print_group(inner)}"
        case ("union", branches):
            return " UNION ".join(map(print_group, branches))
        case ("graph", name, inner):
            return f"GRAPH {_node(name)} {print_group(inner)}"
        case ("filter", ("exists" | "not exists" as word, inner)):
            return f"FILTER {word.upper()} {print_group(inner)}"
        case ("filter", condition):
            return f"FILTER ({print_expression(condition)})"
        case ("bind", expression, name):
            return f"BIND ({print_expression(expression)} AS ?{name})"
        case ("values", names, rows):
            return f"VALUES {_table(names, rows)}"
        case ("select", select):
            return f"{{ {print_select(select)} }}"
    raise AssertionError(element)


def _table(names: Any, rows: Any) -> str:
    listed = " ".join(f"({' '.join('UNDEF' if term is None else term for term in row)})" for row in rows)
    return f"({' '.join('?' + name for name in names)}) {{ {listed} }}"


def print_select(select: Select) -> str:
    shown = "*"
    if select.shown is not None:
        shown = " ".join(f"?{n}" if e is None else f"({print_expression(e)} AS ?{n})" for n, e in select.shown)
    parts = [f"SELECT {'DISTINCT ' * select.distinct}{shown} WHERE {print_group(select.group)}"]
    if select.by is not None:
        parts.append("GROUP BY " + " ".join(_key(*key) for key in select.by))
    parts += [f"HAVING ({print_expression(condition)})" for condition in select.having]
    if select.order:
        keys = (f"{'DESC' if down else 'ASC'}({print_expression(e)})" for e, down in select.order)
        parts.append("ORDER BY " + " ".join(keys))
    if select.limit is not None:
        parts.append(f"LIMIT {select.limit}")
    if select.offset:
        parts.append(f"OFFSET {select.offset}")
    if select.values is not None:
        parts.append(f"VALUES {_table(*select.values)}")
    return " ".join(parts)


def _key(expression: Expression, name: str | None) -> str:
    if name is not None:
        return f"({print_expression(expression)} AS ?{name})"
    return print_expression(expression) if expression[0] == "?" else f"({print_expression(expression)})"


def _node(node: Any) -> str:
    return node if isinstance(node, str) else f"?{node[1]}" if node[0] == "?" else f"_:{node[1]}"


def _path(path: Any) -> str:
    match path:
        case str() | ("?", _):
            return _node(path)
        case ("^", inner):
            return f"^({_path(inner)})"
        case ("/" | "|" as sign, first, second):
            return f"({_path(first)}){sign}({_path(second)})"
        case ("*" | "+" | "opt" as sign, inner):
            return f"({_path(inner)}){'?' if sign == 'opt' else sign}"
        case ("!", ahead, back):
            return f"!({'|'.join((*ahead, *('^' + iri for iri in back)))})"
    raise AssertionError(path)


def print_expression(expression: Expression) -> str:
    match expression:
        case ("?", name):
            return f"?{name}"
        case ("term", term):
            return str(term)
        case ("exists" | "not exists" as word, group):
            return f"{word.upper()} {print_group(group)}"
        case ("aggregate", kind, distinct, argument, separator):
            inner = "*" if argument is None else print_expression(argument)
            end = f"; SEPARATOR='{separator}'" if kind == "GROUP_CONCAT" else ""
            return f"{kind}({'DISTINCT ' * distinct}{inner}{end})"
        case ("in" | "not in" as word, part, *others):
            return f"({print_expression(part)} {word.upper()} ({', '.join(map(print_expression, others))}))"
        case ("!", part):
            return f"!({print_expression(part)})"
        case ("negative", part):
            return f"-({print_expression(part)})"
        case (sign, left, right) if not sign[0].isalpha():
            return f"({print_expression(left)} {sign} {print_expression(right)})"
        case (name, *parts):
            return f"{name.upper() if name != 'isIRI' else name}({', '.join(map(print_expression, parts))})"
    raise AssertionError(expression)


# -- smaller


def smaller(case: PatternCase) -> Iterator[PatternCase]:
    """Cases with one part less."""
    for i in range(len(case.events)):
        yield replace(case, events=case.events[:i] + case.events[i + 1 :])
    for name in ("knowledge", "events"):
        graphs = getattr(case, name)
        for i, graph in enumerate(graphs):
            for triple in sorted(graph):
                yield replace(case, **{name: (*graphs[:i], graph - {triple}, *graphs[i + 1 :])})
    for group in _smaller_groups(case.group):
        if visible(group) and known_alone(group) == group:
            yield replace(case, group=group)


def _smaller_groups(group: Group) -> Iterator[Group]:
    for i, element in enumerate(group):
        before, after = group[:i], group[i + 1 :]
        if before or after:
            yield _legal(before + after)
        for other in _smaller_elements(element):
            yield _legal((*before, *other, *after))


def _smaller_elements(element: Any) -> Iterator[tuple[Any, ...]]:
    """The elements that may stand in place of an element."""
    match element:
        case ("group", inner):
            yield inner
            yield from ((("group", g),) for g in _smaller_groups(inner))
        case ("optional" | "minus" as kind, inner):
            yield from (((kind, g),) for g in _smaller_groups(inner))
        case ("graph", name, inner):
            yield from ((("graph", name, g),) for g in _smaller_groups(inner))
        case ("union", branches):
            yield from ((("group", branch),) for branch in branches)
            for i, branch in enumerate(branches):
                yield from ((("union", (*branches[:i], g, *branches[i + 1 :])),) for g in _smaller_groups(branch))
        case ("filter", condition):
            yield from ((("filter", c),) for c in _smaller_expressions(condition))
        case ("bind", expression, name):
            yield from ((("bind", e, name),) for e in _smaller_expressions(expression))
        case ("values", names, rows) if len(rows) > 1:
            yield from ((("values", names, rows[:i] + rows[i + 1 :]),) for i in range(len(rows)))
        case ("select", select):
            yield from ((("select", s),) for s in _smaller_selects(select))


def _smaller_selects(select: Select) -> Iterator[Select]:
    for simpler in (
        replace(select, having=()), replace(select, order=()), replace(select, limit=None), replace(select, offset=0),
        replace(select, values=None), replace(select, distinct=False),
    ):  # fmt: skip
        if simpler != select:
            yield simpler
    if select.shown is not None and len(select.shown) > 1:
        for i in range(len(select.shown)):
            smaller_select = replace(select, shown=select.shown[:i] + select.shown[i + 1 :])
            if smaller_select.grouped == select.grouped:
                yield smaller_select
    for i, (name, expression) in enumerate(select.shown or ()):
        if expression is not None:
            for e in _smaller_expressions(expression):
                if not select.grouped or e[0] == "aggregate":
                    yield replace(select, shown=(*select.shown[:i], (name, e), *select.shown[i + 1 :]))  # type: ignore
    yield from (replace(select, group=group) for group in _smaller_groups(select.group))


def _smaller_expressions(expression: Expression) -> Iterator[Expression]:
    match expression:
        case ("?" | "term", _):
            return
        case ("exists" | "not exists" as sign, group):
            yield from ((sign, g) for g in _smaller_groups(group))
        case ("aggregate", kind, distinct, argument, separator):
            if distinct:
                yield ("aggregate", kind, False, argument, separator)
            if argument is not None:
                yield from (("aggregate", kind, distinct, e, separator) for e in _smaller_expressions(argument))
        case (sign, *parts):
            if sign not in ("bound",):
                yield from parts
            for i, part in enumerate(parts):
                if sign != "bound":
                    yield from ((sign, *parts[:i], e, *parts[i + 1 :]) for e in _smaller_expressions(part))
