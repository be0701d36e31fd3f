"""The meaning of expressions with registers, from the definitions of [RMA] §3 and §6, naively; nothing of the engine.

An expression is a nested tuple:

    ("as", type, variable)            R AS x
    ("filter", e, condition)          e FILTER condition, over variables
    ("or", a, b)  (";", a, b)  ("+", e)
    ("window", e, w)                  only outermost: max(M) - min(M) < w
    (":", a, b)  (":+", e)            nothing may lie between the two, or between two rounds
    ("?", e)                          e or nothing
    ("read", condition, registers, marks)   an event under a condition on registers and "~", written to registers

and a condition is ("=" | "!=" | "<" | "<=" | ">" | ">=", (name, attribute), (name, attribute) or a value), or ("not",
c), ("and", c, d), ("or", c, d). A missing value makes a comparison false.

An *outcome* of an expression over the stream from index i is (M, v, next, γ). These are the marked indices, the
valuation of the variables it binds, the index behind the events it has read, and the contents of the registers.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Match = tuple[int, ...]
Outcome = tuple[Match, frozenset[tuple[str, int]], int, frozenset[tuple[str, int]]]
Stream = Sequence[Mapping[str, Any]]

OPERATORS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
             ">=": operator.ge}  # fmt: skip


def matches(expression: Any, stream: Stream) -> set[Match]:
    """⟦φ⟧ over the stream: matches may begin anywhere ([RMA] §3)."""
    size = None
    if expression[0] == "window":
        _, expression, size = expression
    found = {m for m, _, behind, _ in outcomes(expression, stream, 0, True, frozenset()) if m and m[-1] == behind - 1}
    return {m for m in found if size is None or m[-1] - m[0] < size}


def outcomes(e: Any, stream: Stream, i: int, waits: bool, registers: frozenset[tuple[str, int]]) -> set[Outcome]:
    """All outcomes of `e` from index i on; with `waits` the first event need not be the one at i."""
    places = range(i, len(stream)) if waits else range(i, min(i + 1, len(stream)))
    match e:
        case ("as", kind, variable):
            return {((j,), frozenset({(variable, j)}), j + 1, registers) for j in places if stream[j]["type"] == kind}
        case ("read", condition, written, marks):
            return {
                ((j,) if marks else (), frozenset(), j + 1, _write(registers, written, j))
                for j in places
                if true(condition, {**{r: stream[p] for r, p in registers}, "~": stream[j]})
            }
        case ("filter", child, condition):
            return {
                o for o in outcomes(child, stream, i, waits, registers)
                if true(condition, {x: stream[p] for x, p in o[1]})
            }  # fmt: skip
        case ("or", a, b):
            return outcomes(a, stream, i, waits, registers) | outcomes(b, stream, i, waits, registers)
        case (";" | ":" as how, a, b):
            return set(_then(outcomes(a, stream, i, waits, registers), b, stream, how == ";", True))
        case ("+" | ":+" as how, child):
            inner = outcomes(child, stream, i, waits, registers)
            found: set[Outcome] = {(m, frozenset(), k, g) for m, _, k, g in inner}
            while True:
                more = found | set(_then(found, child, stream, how == "+", False))
                if more == found:
                    return found
                found = more
        case ("?", child):
            ends = range(i, len(stream) + 1) if waits else (i,)
            nothing: set[Outcome] = {((), frozenset(), k, registers) for k in ends}
            return nothing | {(m, frozenset(), k, g) for m, _, k, g in outcomes(child, stream, i, waits, registers)}
    raise AssertionError(e)


def _then(first: set[Outcome], e: Any, stream: Stream, waits: bool, keep: bool) -> Iterator[Outcome]:
    for m1, v1, k1, g1 in first:
        for m2, v2, k2, g2 in outcomes(e, stream, k1, waits, g1):
            yield m1 + m2, (v1 | v2 if keep else frozenset()), k2, g2


def _write(registers: frozenset[tuple[str, int]], names: tuple[str, ...], j: int) -> frozenset[tuple[str, int]]:
    return frozenset({**dict(registers), **dict.fromkeys(names, j)}.items())


def true(condition: Any, events: Mapping[str, Mapping[str, Any]]) -> bool:
    """True if a condition holds of the events by name."""
    match condition:
        case ("true",):
            return True
        case ("not", c):
            return not true(c, events)
        case ("and", c, d):
            return true(c, events) and true(d, events)
        case ("or", c, d):
            return true(c, events) or true(d, events)
        case (symbol, left, right):
            a, b = _value(left, events), _value(right, events)
            return a is not None and b is not None and bool(OPERATORS[symbol](a, b))
    raise AssertionError(condition)


def _value(operand: Any, events: Mapping[str, Mapping[str, Any]]) -> Any:
    return events[operand[0]].get(operand[1]) if isinstance(operand, tuple) else operand


def ends(found: set[Match]) -> set[int]:
    """The indices at which some match is complete."""
    return {m[-1] for m in found}


# Laws of Definition 5.4, on sets of matches


def concatenated(first: set[Match], second: set[Match]) -> set[Match]:
    """{M₁·M₂}, min(M₂) > max(M₁)."""
    return {a + b for a in first for b in second if b[0] > a[-1]}


def iterated(found: set[Match]) -> set[Match]:
    """{M₁·…·Mₙ}, n ≥ 1."""
    every = set(found)
    while True:
        more = every | concatenated(every, found)
        if more == every:
            return every
        every = more


# Automata as plain tuples, run by guessing the whole walk first


def walk_matches(
    starts: set[int], finals: set[int], transitions: list[tuple[int, Any, int, tuple[str, ...], bool]], stream: Stream
) -> set[Match]:
    """Definitions 4.3 to 4.5 for transitions (source, condition, target, writes, marks): every walk of every length."""
    found: set[Match] = set()
    walks: list[tuple[tuple[int, Any, int, tuple[str, ...], bool], ...]] = [()]
    for length in range(1, len(stream) + 1):
        walks = [(*w, t) for w in walks for t in transitions if (t[0] in starts if not w else t[0] == w[-1][2])]
        walks = [w for w in walks if _is_run(w, stream)]
        found |= {
            tuple(i for i, t in enumerate(w) if t[4])
            for w in walks
            if len(w) == length and w[-1][2] in finals and w[-1][4]
        }
    return found


def _is_run(walk: tuple[tuple[int, Any, int, tuple[str, ...], bool], ...], stream: Stream) -> bool:
    registers: dict[str, int] = {}
    for i, (_, condition, _, writes, _) in enumerate(walk):
        if not true(condition, {**{r: stream[p] for r, p in registers.items()}, "~": stream[i]}):
            return False
        registers |= dict.fromkeys(writes, i)
    return True
