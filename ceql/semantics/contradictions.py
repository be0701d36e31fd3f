"""Contradictions between conditions, which no event satisfies together.

Conditions are split into comparisons of a term (any expression over the event) with constants. A contradiction is
reported only if it holds for every kind of value that the term may have. NULL satisfies no comparison and needs no
rule. Numbers that doubles do not hold exactly are ignored. A text constant is compared as a text or, with an attribute
that is a time, as a time, so both must contradict. Constants of different kinds are no contradiction here:
`ceql.semantics.types` reports them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ceql.operators import values
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, calls_of
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import EventError
from spaseq.core.events import parse_time

_EXACT: Final = 1 << 53
_SETS: Final = ("in", "not in")
_BRANCHES: Final = 256
"""The number of combinations of the alternatives of ORs that are tried; with more, no contradiction is reported."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """`term symbol value`. Of the symbols `in` and `not in` have a tuple of values, `like` and `not like` a pattern."""

    term: ast.Expression
    symbol: str
    value: Any


_Way = tuple[_Limit, ...]


def contradictory(conditions: Iterable[ast.Condition]) -> bool:
    """True if certainly no event satisfies all of `conditions`, whose attributes name no variables."""
    ways = [()]  # type: list[_Way]
    for condition in conditions:
        ways = [tuple(first + second) for first, second in itertools.product(ways, _ways(condition, False))]
        if len(ways) > _BRANCHES:
            return False
    return all(_impossible(way) for way in ways)


def culprits(conditions: Sequence[ast.Condition]) -> Sequence[ast.Condition]:
    """The first one or two of contradictory `conditions` that suffice for a contradiction; all if more are needed."""
    for few in itertools.chain(itertools.combinations(conditions, 1), itertools.combinations(conditions, 2)):
        if contradictory(few):
            return few
    return conditions


_NEVER: Final[_Way] = (_Limit(ast.Number(0), "=", 1),)


def _ways(node: ast.Condition, negated: bool) -> list[_Way]:
    """A condition, or its negation, in disjunctive normal form; parts that are not comparisons with constants are left
    out, as if they held."""
    match node:
        case ast.Not(child):
            return _ways(child, not negated)
        case ast.And(left, right) | ast.Or(left, right):
            first, second = _ways(left, negated), _ways(right, negated)
            if isinstance(node, ast.And) == negated:
                return first + second
            both = [a + b for a, b in itertools.islice(itertools.product(first, second), _BRANCHES + 1)]
            return both if len(both) <= _BRANCHES else [()]
        case ast.Compare(symbol, left, right):
            return _compare(COMPARISONS[symbol].negation if negated else symbol, left, right)
        case ast.In(term, items):
            found = tuple(_constant(i) for i in items)
            if None in found:
                return [()]
            return [(_Limit(term, "not in" if negated else "in", found),)]
        case ast.InRange(term):
            parts = [_compare(COMPARISONS[s].negation if negated else s, term, b) for s, b in node.bounds]
            if negated:
                return [way for part in parts for way in part]
            return [tuple(itertools.chain(*choice)) for choice in itertools.product(*parts)]
        case ast.Like(term, pattern):
            return [(_Limit(term, "not like" if negated else "like", pattern),)]
    return [()]


def _compare(symbol: str, left: ast.Expression, right: ast.Expression) -> list[_Way]:
    if _varies(left) and _varies(right):
        return [_NEVER] if left == right and symbol in ("<", ">", "!=") else [()]
    if not _varies(left):
        left, right, symbol = right, left, COMPARISONS[symbol].mirror
    value = _constant(right)
    return [()] if value is None else [(_Limit(left, symbol, value),)]


def _varies(node: ast.Expression) -> bool:
    return any(True for _ in attributes_of(node)) or any(True for _ in calls_of(node))


def _constant(node: ast.Expression) -> Any:
    return node.value if isinstance(node, ast.Number | ast.Text | ast.Truth) else None


def _impossible(way: _Way) -> bool:
    by_term: dict[ast.Expression, list[_Limit]] = {}
    for limit in way:
        by_term.setdefault(limit.term, []).append(limit)
    return any(_empty(term, limits) for term, limits in by_term.items())


def _empty(term: ast.Expression, limits: list[_Limit]) -> bool:
    """True if no value of the term satisfies all its limits."""
    constants = list(_values(limits))
    kinds = {values.kind_of(v) for v in constants} | {"text" for x in limits if x.symbol.endswith("like")}
    if len(kinds) > 1:
        return False
    if not _varies(term):
        value = _constant(term)
        kind = set() if value is None else {values.kind_of(value)}
        return kind == kinds and not all(_fits(value, limit) for limit in limits)
    if kinds == {"truth"} and all(x.symbol in ("=", "!=", *_SETS) for x in limits):
        return not any(all(_fits(v, limit) for limit in limits) for v in (True, False))
    if kinds == {"number"} and all(abs(v) < _EXACT for v in constants):
        return _nothing_between(limits)
    return kinds == {"text"} and _nothing_between(limits) and _no_time_between(limits, constants)


def _values(limits: Iterable[_Limit]) -> Iterator[Any]:
    for limit in limits:
        if limit.symbol in _SETS:
            yield from limit.value
        elif not limit.symbol.endswith("like"):
            yield limit.value


def _no_time_between(limits: list[_Limit], constants: list[Any]) -> bool:
    """True if no time satisfies all limits, or if a constant is not a time: then the attribute cannot be one."""
    if any(x.symbol.endswith("like") for x in limits):
        return True
    try:
        times = {text: parse_time(text) for text in constants}
    except EventError:
        return True
    as_times = [
        _Limit(x.term, x.symbol, tuple(times[v] for v in x.value) if x.symbol in _SETS else times[x.value])
        for x in limits
    ]
    return _nothing_between(as_times)


def _nothing_between(limits: list[_Limit]) -> bool:
    """True if no value satisfies all limits, in any ordered domain. Between two bounds that differ there may always be
    a value."""
    limits = [_Limit(x.term, x.symbol, frozenset(x.value)) if x.symbol in _SETS else x for x in limits]
    single = [tuple(x.value) if x.symbol == "in" else (x.value,) for x in limits if x.symbol in ("=", "in")]
    if single:
        return not any(all(_fits(v, limit) for limit in limits) for v in min(single, key=len))
    lows = [x for x in limits if x.symbol in (">", ">=")]
    highs = [x for x in limits if x.symbol in ("<", "<=")]
    if not lows or not highs:
        return False
    low, high = max(x.value for x in lows), min(x.value for x in highs)
    return bool(low > high or (low == high and not all(_fits(low, limit) for limit in limits)))


def _fits(value: Any, limit: _Limit) -> bool:
    match limit.symbol:
        case "in" | "not in":
            return (value in limit.value) is (limit.symbol == "in")
        case "like" | "not like":
            return values.like(value, limit.value) is (limit.symbol == "like")
    return bool(COMPARISONS[limit.symbol].holds(value, limit.value))
