"""The naive evaluator of CEQL's steps: `->`, loops and optional parts between which a run chooses.

A run is a valuation so far and the ways on that it waits for, the best first. At each event it tries its ways in this
order. It takes the first on which the event fits, in each manner that it fits. If there is none, it passes over the
event; ways that want the very next event are lost. A way joined by `;`, or by `:`, is a run of its own, as nothing is
preferred there. With `;` a run that takes an event also passes over it.

An event fits if it is of the type, and the valuation with it satisfies every FILTER around. Variables that have no
event yet satisfy all. A condition with an aggregate is decided when the run leaves the formula of its FILTER: if it
does not hold then, no event fits what follows. Only COUNT against a number also rejects an event too many.

`NEXT` stands for `->`. Definitions: docs/semantics.md, CEQL, *Steps*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tests.support import oracle
from tests.support.oracle import Event, Formula, TooBig, Valuation

ANY, NEXT, ADJACENT = ";", "->", ":"


@dataclass(frozen=True, slots=True)
class _Scope:
    """A FILTER, an AS or a sequence around what a run is in; FILTER and sequence with the positions taken in it.

    `around`: of a FILTER whose condition names variables from outside, the number of the smallest sequence around it
    that defines them."""

    formula: Formula
    taken: tuple[tuple[str, int], ...] = ()
    around: int = -1


@dataclass(frozen=True, slots=True)
class _Taken:
    """The positions that a run has taken, with their variables. `scopes`: those it is in, the innermost last. `left`:
    FILTERs it has left whose conditions name variables from outside."""

    all: tuple[tuple[str, int], ...] = ()
    scopes: tuple[_Scope, ...] = ()
    left: tuple[_Scope, ...] = ()
    behind: tuple[tuple[Formula, Fraction | None], ...] = ()
    """Formulas of which nothing may come before the next event, each with its time."""


@dataclass(frozen=True, slots=True)
class _Way:
    formula: Formula
    join: str
    taken: _Taken
    then: Callable[[_Taken], list[_Next]]
    ends: Formula | None = None
    """The run that passes over an event that satisfies this gives up the way. One of UNTIL is no round, either."""
    span: Fraction | None = None
    """With it `ends` is for so long (ns) behind the run's last event, and nothing is taken before."""


@dataclass(frozen=True, slots=True)
class _Next:
    """The ways a run waits for, the best first. `complete`: it is a match already, and nothing of `behind` may come
    behind it."""

    ways: tuple[_Way, ...] = ()
    complete: bool = False
    behind: tuple[tuple[Formula, Fraction | None], ...] = ()


def valuations(formula: Formula, stream: Sequence[Event]) -> set[Valuation]:
    """The valuations of a formula with steps."""
    found: set[Valuation] = set()
    for start in range(len(stream)):
        for taken, following in _begin(formula, start, _Taken(), _complete, stream):
            for v in _run(start, start, taken, following, stream):
                found.add(v)
                if len(found) > oracle.LIMIT:
                    raise TooBig(f"{len(found)} valuations")
    return found


def _complete(taken: _Taken) -> list[_Next]:
    return [_Next(complete=True, behind=taken.behind)]


def _run(start: int, at: int, taken: _Taken, following: list[_Next], stream: Sequence[Event]) -> Iterator[Valuation]:
    """The matches of runs that took the event `at` and go on in each of the ways `following`."""
    for waiting in following:
        if waiting.complete:
            behind = frozenset((absent, frozenset[Any](), span) for absent, span in waiting.behind)
            yield Valuation(start, at, frozenset(_mapping(taken.all).items()), behind=behind)
        ways = list(waiting.ways)
        for position in range(at + 1, len(stream)):
            able: list[tuple[_Taken, list[_Next]]] = []
            for way in ways:
                able = _take(way, position, stream)
                if able:
                    break
            for now, more in able:
                yield from _run(start, position, now, more, stream)
            if able and ways[0].join != ANY:
                break
            ways = [w for w in ways if w.join != ADJACENT and not _ends(w, position, stream)]
            if not ways:
                break


def _take(way: _Way, position: int, stream: Sequence[Event]) -> list[tuple[_Taken, list[_Next]]]:
    formula = way.formula
    if isinstance(formula, oracle.Rounds) and formula.entered:
        if _ends(way, position, stream):
            return []
        formula = formula.child
    if _is_early(way, position, stream):
        return []
    return _begin(formula, position, way.taken, way.then, stream, chooses=way.join == NEXT)


def _is_early(way: _Way, position: int, stream: Sequence[Event]) -> bool:
    """True if the time of the way's `ends` is not over."""
    if way.span is None:
        return False
    last = max(at for _, at in way.taken.all)
    return oracle.nanoseconds(stream[position], position) - oracle.nanoseconds(stream[last], last) <= way.span


def _ends(way: _Way, position: int, stream: Sequence[Event]) -> bool:
    if way.ends is None or (way.span is not None and not _is_early(way, position, stream)):
        return False
    before = Valuation(0, 0, frozenset(_mapping(way.taken.all).items()))
    ended = (v for v in oracle.valuations(way.ends, stream) if v.start == v.end == position)
    return any(oracle.meets(v, before, stream) for v in ended)


def _begin(
    formula: Formula, position: int, taken: _Taken, then: Callable[[_Taken], list[_Next]], stream: Sequence[Event],
    *, chooses: bool = False,
) -> list[tuple[_Taken, list[_Next]]]:  # fmt: skip
    """Each manner in which the event at `position` is the first of `formula`, and what may come after it. `chooses`:
    a run is waiting, and prefers the first event of an optional part to the first of what follows, or the reverse."""
    match formula:
        case oracle.Type() | oracle.Other():
            fits = any(v.start == 0 for v in oracle.valuations(formula, [stream[position]]))
            now = _with(taken, position, oracle.variables_of(formula) or {"an event that is no …"}, stream)
            following = then(now) if fits and now is not None else []
            return [(now, following)] if now is not None and following else []
        case oracle.Filter(child) | oracle.As(child):
            inner = _enter(taken, formula)
            decide: Callable[[_Taken], list[_Next]] = lambda now: then(_leave(now)) if _ends_well(now, stream) else []  # noqa: E731
            return _begin(child, position, inner, decide, stream, chooses=chooses)
        case oracle.Or(left, right):
            return [*_begin(left, position, taken, then, stream), *_begin(right, position, taken, then, stream)]
        case oracle.Then(left, right) | oracle.Step(left, right) | oracle.Without(left, _, right):
            absent = formula.absent if isinstance(formula, oracle.Without) else None
            inner = _enter(taken, formula)
            leave: Callable[[_Taken], list[_Next]] = lambda now: then(_leave(now)) if _ends_well(now, stream) else []  # noqa: E731
            span = formula.span if isinstance(formula, oracle.Without) else None
            return _begin_two(left, right, _join(formula), (absent, span), position, inner, leave, stream, chooses)
        case oracle.Before(absent, child, _, span):
            if not taken.all:
                raise TooBig("a NOT at the start")
            if _comes(absent, span, taken, position, stream):
                return []
            return _begin(child, position, taken, then, stream, chooses=chooses)
        case oracle.Behind(child, absent, _, span):
            more = (absent, span)
            behind: Callable[[_Taken], list[_Next]] = lambda now: then(replace(now, behind=(*now.behind, more)))  # noqa: E731
            return _begin(child, position, taken, behind, stream, chooses=chooses)
        case oracle.Plus(child, adjacent):
            once = oracle.Rounds(child, 1, None, ADJACENT if adjacent else ANY)
            return _begin(once, position, taken, then, stream, chooses=chooses)
        case oracle.Repeat(child, low, high):
            return _begin(oracle.Rounds(child, low, high), position, taken, then, stream, chooses=chooses)
        case oracle.Rounds():
            after = _after_round(formula, then, 1)
            first = _Way(formula, formula.join, taken, after, formula.until)
            if _ends(first, position, stream):
                return []
            return _begin(formula.child, position, taken, after, stream, chooses=chooses)
    raise TooBig(f"no steps in {type(formula).__name__}")


def _join(formula: oracle.Then | oracle.Step | oracle.Without) -> str:
    if isinstance(formula, oracle.Without):
        return formula.join
    return NEXT if isinstance(formula, oracle.Step) else ADJACENT if formula.adjacent else ANY


def _begin_two(
    left: Formula, right: Formula, join: str, absent: tuple[Formula | None, Fraction | None], position: int,
    taken: _Taken,
    then: Callable[[_Taken], list[_Next]], stream: Sequence[Event], chooses: bool,
) -> list[tuple[_Taken, list[_Next]]]:  # fmt: skip
    def after(now: _Taken) -> list[_Next]:
        return _optional(right, join, _Way(right, join, now, then, *absent), then(now))

    empty = may_be_empty(left)
    chooses = chooses and (empty is None or (join == NEXT and empty != "each"))
    first = _begin(left, position, taken, after, stream, chooses=chooses)
    if empty is None:
        return first
    second = _begin(right, position, taken, then, stream, chooses=chooses)
    if chooses:
        return (first or second) if empty == "greedy" else (second or first)
    return first + second


def _optional(formula: Formula, join: str, way: _Way, without: list[_Next]) -> list[_Next]:
    """The ways of a run that may take `way`, of a part that may be empty, or go on without."""
    empty = may_be_empty(formula)
    if empty is None:
        return [_Next((way,))]
    return _prefer(way, without, empty if join == NEXT else "each")


def _prefer(way: _Way, without: list[_Next], preference: str) -> list[_Next]:
    found: list[_Next] = [] if without else [_Next((way,))]
    for other in without:
        if preference == "each" or any(w.join != NEXT for w in other.ways):
            found += [_Next((way,)), other]
        elif preference == "greedy":
            found.append(replace(other, ways=(way, *other.ways)))
        else:
            found.append(replace(other, ways=(*other.ways, way)))
    return found


def _after_round(node: oracle.Rounds, then: Callable[[_Taken], list[_Next]], done: int) -> Callable[..., list[_Next]]:
    """The ways of a run behind the round number `done`."""

    def after(now: _Taken) -> list[_Next]:
        least, empty = max(node.low, 1), may_be_empty(node.child)
        if node.high is not None and done >= node.high:
            return then(now)
        more = min(done + 1, least + 1) if node.high is None else done + 1
        way = _Way(replace(node, entered=True), node.join, now, _after_round(node, then, more), node.until)
        if done < least and empty is None:
            return [_Next((way,))]
        return _prefer(way, then(now), node.preference if node.join == NEXT else "each")

    return after


def may_be_empty(formula: Formula) -> str | None:
    """The preference between a part and nothing, if it may take no event; else None."""
    match formula:
        case oracle.Rounds(_, 0):
            return formula.preference
        case oracle.Rounds(child) | oracle.Filter(child) | oracle.As(child) | oracle.Plus(child) | oracle.Repeat(child):
            return may_be_empty(child)
        case oracle.Before(child=child) | oracle.Behind(child=child) | oracle.Apart(child=child):
            return may_be_empty(child)
        case oracle.Or(left, right):
            return may_be_empty(left) or may_be_empty(right)
        case oracle.Then(left, right) | oracle.Step(left, right) | oracle.Without(left, _, right):
            return may_be_empty(left) if may_be_empty(right) else None
    return None


# ---------------------------------------------------------------------------------------------------- conditions


def _with(taken: _Taken, position: int, variables: Iterable[str], stream: Sequence[Event]) -> _Taken | None:
    """The run with one more event, or None if a FILTER around it rejects that, or what may not come before it came."""
    if any(_comes(absent, span, taken, position, stream) for absent, span in taken.behind):
        return None
    names = set(variables)
    scopes: list[_Scope] = []
    for scope in reversed(taken.scopes):
        if isinstance(scope.formula, oracle.As):
            names.add(scope.formula.variable)
            scopes.append(scope)
        else:
            scopes.append(replace(scope, taken=(*scope.taken, *((name, position) for name in sorted(names)))))
    now = _Taken((*taken.all, *((name, position) for name in sorted(names))), tuple(reversed(scopes)), taken.left)
    fine = all(_satisfies(scope, now, stream) for scope in (*now.scopes, *now.left))
    return now if fine else None


def _comes(absent: Formula, span: Fraction | None, taken: _Taken, position: int, stream: Sequence[Event]) -> bool:
    """True if something of `absent` lies between the last event of a run and the one at `position`."""
    last = max(at for _, at in taken.all)
    known = Valuation(0, 0, frozenset(_mapping(taken.all).items()))
    return oracle.comes(absent, last, position, known, stream, span)


def _satisfies(scope: _Scope, now: _Taken, stream: Sequence[Event]) -> bool:
    if not isinstance(scope.formula, oracle.Filter):
        return True
    around = now.all if scope.around < 0 else now.scopes[scope.around].taken
    mapping = _mapping((*_outside(scope.formula, around), *scope.taken))
    own_events, whole = (Valuation(0, 0, frozenset(m.items())) for m in (mapping, _mapping(now.all)))
    for part in _parts(scope.formula.condition):
        if not _has_total(part):
            if not oracle.holds_so_far(part, own_events, whole, stream):
                return False
        elif _is_too_many(part, own_events, stream):
            return False
    return True


def _ends_well(now: _Taken, stream: Sequence[Event]) -> bool:
    """True if the conditions with aggregates hold of the FILTER that the run leaves. Those that name variables from
    outside are decided when it leaves the sequence that defines them."""
    last = now.scopes[-1]
    if isinstance(last.formula, oracle.As):
        return True
    if isinstance(last.formula, oracle.Filter):
        due = [(last.formula, last.taken)] if last.around < 0 else []
    else:
        due = [
            (scope.formula, (*_outside(scope.formula, last.taken), *scope.taken))
            for scope in now.left
            if scope.around == len(now.scopes) - 1 and isinstance(scope.formula, oracle.Filter)
        ]
    return all(
        oracle.holds(part, Valuation(0, 0, frozenset(_mapping(taken).items())), stream)
        for formula, taken in due
        for part in _parts(formula.condition)
        if _has_total(part)
    )


def _outside(formula: oracle.Filter, taken: tuple[tuple[str, int], ...]) -> Iterator[tuple[str, int]]:
    """The events of variables that the part of a FILTER does not define."""
    own = oracle.variables_of(formula.child)
    return (pair for pair in taken if pair[0] not in own)


def _parts(condition: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if condition[0] == "all":
        for part in condition[1:]:
            yield from _parts(part)
    else:
        yield condition


def _has_total(expression: Any) -> bool:
    return isinstance(expression, tuple) and (expression[:1] == ("total",) or any(map(_has_total, expression)))


def _is_too_many(condition: tuple[Any, ...], v: Valuation, stream: Sequence[Event]) -> bool:
    """True if a count exceeds the number that it may have at most: no event more makes the condition true."""
    match condition:
        case ("for all", ("<" | "<=" | "=" as sign, ("total", "COUNT", name, inner), ("value", most))):
            pass
        case ("for all", (">" | ">=" | "=" as sign, ("value", most), ("total", "COUNT", name, inner))):
            sign = {">": "<", ">=": "<="}.get(sign, sign)
        case _:
            return False
    count = oracle.total("COUNT", [oracle.value_of(inner, stream[i], {}) for i in sorted(v.of(name))])
    return bool(v.of(name)) and (count >= most if sign == "<" else count > most)


def _mapping(taken: Iterable[tuple[str, int]]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for name, position in taken:
        found[name] = found.get(name, frozenset()) | {position}
    return found


def _enter(taken: _Taken, formula: Formula) -> _Taken:
    around = -1
    if isinstance(formula, oracle.Filter):
        outside = oracle.named(formula.condition) - oracle.variables_of(formula.child)
        for number, scope in enumerate(taken.scopes):
            is_sequence = not isinstance(scope.formula, oracle.Filter | oracle.As)
            if outside and is_sequence and outside <= oracle.variables_of(scope.formula):
                around = number
    return replace(taken, scopes=(*taken.scopes, _Scope(formula, (), around)))


def _leave(taken: _Taken) -> _Taken:
    *rest, last = taken.scopes
    left = tuple(scope for scope in taken.left if scope.around < len(rest))
    if isinstance(last.formula, oracle.Filter) and last.around >= 0:
        left += (last,)
    return replace(taken, scopes=tuple(rest), left=left)
