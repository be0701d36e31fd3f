"""The naive evaluator of result forms: SPARQL 1.1 §18.2.4, §18.2.5 and §16, and `docs/semantics.md`, on solutions.

A solution is (time, mapping); a mapping is a dict from variables to terms: an `int` or a `Fraction` for numbers, text
for IRIs. A `Form` is the result form as data; `text` writes it as in a query. Clauses range over one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Mapping = dict[str, Any]
Solution = tuple[int, Mapping]
Expression = tuple[Any, ...]
"""("?", name), ("number", n), or (operator, left, right) with one of + - * = > <."""


@dataclass(frozen=True)
class Aggregate:
    """`function` is COUNT, SUM, AVG, MIN or MAX; `argument` None is `*`."""

    function: str
    argument: Expression | None
    distinct: bool = False


@dataclass(frozen=True)
class Form:
    """`select`: pairs (name, its expression, None for a plain variable). `having`: (aggregate, sign, number).

    `order`: pairs (name, descending). `values`: (names, rows), None in a row being UNDEF. `group` None: no GROUP BY.
    """

    select: tuple[tuple[str, Expression | Aggregate | None], ...]
    distinct: bool = False
    group: tuple[str, ...] | None = None
    having: tuple[Aggregate, str, int] | None = None
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    values: tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]] | None = None

    @property
    def grouped(self) -> bool:
        return self.group is not None or any(isinstance(how, Aggregate) for _, how in self.select)


# ------------------------------------------------------------------------------------------------------------- meaning


def value(expression: Expression, mapping: Mapping) -> Any:
    """The value; None is an error."""
    match expression:
        case ("?", name):
            return mapping.get(name)
        case ("number", number):
            return number
        case (sign, left, right):
            a, b = value(left, mapping), value(right, mapping)
            if not isinstance(a, (int, Fraction)) or not isinstance(b, (int, Fraction)):
                return None
            return {"+": a + b, "-": a - b, "*": a * b}[sign]
    raise ValueError(expression)


def aggregate(what: Aggregate, group: Sequence[Mapping]) -> Any:
    """§18.5.1. Mappings without a value are left out (only COUNT is used with variables that may have none)."""
    if what.argument is None:
        found: list[Any] = [tuple(sorted(mapping.items())) for mapping in group]
    else:
        found = [v for v in (value(what.argument, mapping) for mapping in group) if v is not None]
    if what.distinct:
        found = list(dict.fromkeys(found))
    match what.function:
        case "COUNT":
            return len(found)
        case "SUM":
            return sum(found)
        case "AVG":
            return Fraction(sum(found), len(found)) if found else 0
        case "MIN":
            return min(found, default=None)
        case "MAX":
            return max(found, default=None)
    raise ValueError(what)


def _compatible(left: Mapping, right: Mapping) -> bool:
    return all(left[name] == term for name, term in right.items() if name in left)


def _join(form: Form, rows: list[Solution]) -> list[Solution]:
    if form.values is None:
        return rows
    names, data = form.values
    given = [{n: term for n, term in zip(names, row, strict=True) if term is not None} for row in data]
    return [(time, mapping | extra) for time, mapping in rows for extra in given if _compatible(mapping, extra)]


def _groups(form: Form, solutions: list[Solution]) -> list[list[Solution]]:
    found: dict[tuple[Any, ...], list[Solution]] = {}
    for time, mapping in solutions:
        found.setdefault(tuple(mapping.get(name) for name in form.group or ()), []).append((time, mapping))
    return list(found.values())


def _holds(form: Form, group: list[Mapping]) -> bool:
    if form.having is None:
        return True
    what, sign, number = form.having
    found = aggregate(what, group)
    return bool({">": found > number, "<": found < number, "=": found == number}[sign])


def order_key(term: Any) -> tuple[Any, ...]:
    """§15.1: no value, then IRIs, then literals; here all literals are numbers."""
    if term is None:
        return (0,)
    return (2, term) if isinstance(term, (int, Fraction)) else (1, term)


def results(form: Form, solutions: Sequence[Solution], last: int = 0) -> list[Solution]:
    """The results of one window. `solutions` are distinct, in order of time; ties of ORDER BY stay in that order.
    `last`: the time of the window's last instant, that of a group of no solutions."""
    rows: list[tuple[Solution, list[Mapping]]] = []
    if form.grouped:
        groups = _groups(form, list(solutions))
        for group in groups or [[]] * (form.group is None):
            mappings = [mapping for _, mapping in group]
            if _holds(form, mappings):
                key = {n: t for n in form.group or () if (t := mappings[0].get(n)) is not None}
                end = max((time for time, _ in group), default=last)
                rows += [(row, mappings) for row in _join(form, [(end, key)])]
        rows.sort(key=lambda row: row[0][0])
    else:
        rows = [(row, []) for row in _join(form, list(solutions))]
    extended = []
    for (time, mapping), group_ in rows:
        whole = dict(mapping)
        for name, how in form.select:
            if how is not None:
                whole[name] = aggregate(how, group_) if isinstance(how, Aggregate) else value(how, whole)
        extended.append((time, {name: term for name, term in whole.items() if term is not None}))
    names = {name for name, _ in form.select}
    if form.distinct:
        seen: set[tuple[Any, ...]] = set()
        kept = []
        for time, whole in extended:
            shown = tuple(sorted((n, t) for n, t in whole.items() if n in names))
            if shown not in seen:
                seen.add(shown)
                kept.append((time, whole))
        extended = kept
    for name, descending in reversed(form.order):
        extended.sort(key=lambda row, name=name: order_key(row[1].get(name)), reverse=descending)  # type: ignore[misc]
    shown_ = [(time, {n: t for n, t in whole.items() if n in names}) for time, whole in extended]
    return shown_[form.offset : None if form.limit is None else form.offset + form.limit]


def graph(template: Sequence[tuple[Any, Any, Any]], mapping: Mapping) -> frozenset[tuple[Any, Any, Any]]:
    """§16.2: the template with the mapping's terms; a triple that has none, or a number as its subject, is left out."""
    found = set()
    for triple in template:
        filled = tuple(mapping.get(part[1]) if isinstance(part, tuple) else part for part in triple)
        if None not in filled and not isinstance(filled[0], (int, Fraction)):
            found.add(filled)
    return frozenset(found)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------- text


def _expression(expression: Expression) -> str:
    match expression:
        case ("?", name):
            return f"?{name}"
        case ("number", number):
            return str(number)
        case (sign, left, right):
            return f"({_expression(left)} {sign} {_expression(right)})"
    raise ValueError(expression)


def _aggregate(what: Aggregate) -> str:
    inside = "*" if what.argument is None else _expression(what.argument)
    return f"{what.function}({'DISTINCT ' if what.distinct else ''}{inside})"


def _term(term: Any) -> str:
    return "UNDEF" if term is None else str(term)


def text(form: Form) -> tuple[str, str]:
    """The SELECT clause, and the clauses behind WHERE."""
    items = []
    for name, how in form.select:
        computed = _aggregate(how) if isinstance(how, Aggregate) else _expression(how) if how is not None else ""
        items.append(f"({computed} AS ?{name})" if computed else f"?{name}")
    head = f"SELECT {'DISTINCT ' if form.distinct else ''}{' '.join(items)}"
    tail = []
    if form.group is not None:
        tail.append("GROUP BY " + " ".join(f"?{name}" for name in form.group))
    if form.having is not None:
        what, sign, number = form.having
        tail.append(f"HAVING ({_aggregate(what)} {sign} {number})")
    if form.order:
        tail.append("ORDER BY " + " ".join(f"DESC(?{n})" if down else f"?{n}" for n, down in form.order))
    if form.limit is not None:
        tail.append(f"LIMIT {form.limit}")
    if form.offset:
        tail.append(f"OFFSET {form.offset}")
    if form.values is not None:
        names, rows = form.values
        data = " ".join("(" + " ".join(map(_term, row)) + ")" for row in rows)
        tail.append(f"VALUES ({' '.join('?' + name for name in names)}) {{ {data} }}")
    return head, " ".join(tail)
