"""Can one event satisfy all of some conditions? Found out from the conditions alone, and only where it is certain.

Conditions are taken apart into comparisons of a term (any expression over the event) with constants. What is certain
must hold whatever the term is once there are events: NULL satisfies nothing, so it never helps; a whole number set
against a decimal is compared as a double, so nothing is said about numbers that doubles do not hold exactly; a text may
be compared as a text or, if the attribute is a time, as a time, so both must contradict. Kinds that do not go together
are for the check of types (`ceql.semantics.types`) to report, and no contradiction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ceql.expressions import values
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, calls_of
from spaseq.errors import EventError
from spaseq.events import parse_time

__all__ = ["contradictory", "culprits"]

_MIRROR: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INVERSE: Final = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_EXACT: Final = 1 << 53
_BRANCHES: Final = 256
"""Ways to satisfy ORs that are tried; beyond that nothing is claimed."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """`term symbol value`; `in` and `like` take a tuple of values and a pattern, and `not like` is another one."""

    term: ast.Expression
    symbol: str
    value: Any


_Way = tuple[_Limit, ...]


def contradictory(conditions: Iterable[ast.Condition]) -> bool:
    """Whether no event satisfies all of `conditions`, which name no variables. False where that is not certain."""
    ways = [()]  # type: list[_Way]
    for condition in conditions:
        ways = [tuple(first + second) for first, second in itertools.product(ways, _ways(condition, False))]
        if len(ways) > _BRANCHES:
            return False
    return all(_impossible(way) for way in ways)


def culprits(conditions: Sequence[ast.Condition]) -> Sequence[ast.Condition]:
    """One or two of contradictory conditions that contradict by themselves, if there are; else all."""
    for few in itertools.chain(itertools.combinations(conditions, 1), itertools.combinations(conditions, 2)):
        if contradictory(few):
            return few
    return conditions


_NEVER: Final[_Way] = (_Limit(ast.Number(0), "=", 1),)


def _ways(node: ast.Condition, negated: bool) -> list[_Way]:
    """A condition, or its negation, as alternatives of conjunctions; parts that cannot be read are left out."""
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
            return _compared(_INVERSE[symbol] if negated else symbol, left, right)
        case ast.In(term, items):
            found = tuple(_constant(i) for i in items)
            if None in found:
                return [()]
            return [tuple(_Limit(term, "!=", v) for v in found) if negated else (_Limit(term, "in", found),)]
        case ast.InRange(term, low, high):
            bounds = [(s, b) for s, b in ((">=", low), ("<=", high)) if b is not None]
            parts = [_compared(_INVERSE[s] if negated else s, term, b) for s, b in bounds]
            if negated:
                return [way for part in parts for way in part]
            return [tuple(itertools.chain(*choice)) for choice in itertools.product(*parts)]
        case ast.Like(term, pattern):
            return [(_Limit(term, "not like" if negated else "like", pattern),)]
    return [()]


def _compared(symbol: str, left: ast.Expression, right: ast.Expression) -> list[_Way]:
    if _varies(left) and _varies(right):
        return [_NEVER] if left == right and symbol in ("<", ">", "!=") else [()]
    if not _varies(left):
        left, right, symbol = right, left, _MIRROR[symbol]
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
    """Whether nothing is within all of the limits of a term."""
    constants = list(_values(limits))
    kinds = {values.kind_of(v) for v in constants} | {"text" for x in limits if x.symbol.endswith("like")}
    if len(kinds) > 1:
        return False
    if not _varies(term):
        value = _constant(term)
        kind = set() if value is None else {values.kind_of(value)}
        return kind == kinds and not all(_fits(value, limit) for limit in limits)
    if kinds == {"truth"} and all(x.symbol in ("=", "!=", "in") for x in limits):
        return not any(all(_fits(v, limit) for limit in limits) for v in (True, False))
    if kinds == {"number"} and all(abs(v) < _EXACT for v in constants):
        return _nothing_between(limits)
    return kinds == {"text"} and _nothing_between(limits) and _no_time_between(limits, constants)


def _values(limits: Iterable[_Limit]) -> Iterator[Any]:
    for limit in limits:
        if limit.symbol == "in":
            yield from limit.value
        elif not limit.symbol.endswith("like"):
            yield limit.value


def _no_time_between(limits: list[_Limit], constants: list[Any]) -> bool:
    """The same if the attribute is a time; True if one of the constants is none, for then it is not."""
    if any(x.symbol.endswith("like") for x in limits):
        return True
    try:
        times = {text: parse_time(text) for text in constants}
    except EventError:
        return True
    as_times = [
        _Limit(x.term, x.symbol, tuple(times[v] for v in x.value) if x.symbol == "in" else times[x.value])
        for x in limits
    ]
    return _nothing_between(as_times)


def _nothing_between(limits: list[_Limit]) -> bool:
    """Whether no value of an ordered domain, of which nothing else is known, is within all limits."""
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
        case "in":
            return value in limit.value
        case "like" | "not like":
            return values.like(value, limit.value) is (limit.symbol == "like")
    return bool(values.OPERATORS[limit.symbol](value, limit.value))
