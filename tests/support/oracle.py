"""The naive evaluator of CEQL: the papers' definitions, written down as they stand.

It uses nothing of the engine and is meant to be read next to the papers. It is exponential on purpose. Sources: [CORE]
§2.2 and Figure 2 (valuations, WITHIN, PARTITION BY), [CEL] §3 (filters on several variables) and §4 (selection
strategies); if the two differ, `docs/semantics.md`. The evaluator of SPAseq is `oracle_spaseq`, the readers of query
text are `oracle_ceql_text` and `oracle_spaseq_text`.

A formula is a tree of the dataclasses below. A condition is a nested tuple:

    ("all", a, …)  ("any", a, …) the AND and OR between conditions of one FILTER
    ("on", variable, expression) variable[expression]: holds for each position of the variable
    ("for all", expression)      an expression over `x.attribute`: every choice of positions satisfies it

and an expression is one of

    ("value", v)  ("attribute", a)  ("of", variable, a)
    ("+" | "-" | "*" | "/" | "%", e, f)  ("negative", e)
    ("corr", e, f)  Pearson's correlation of two lists
    ("call", name, e, …)  another function    ("case", c, e, …, otherwise)    ("null?", e)
    ("=" | "!=" | "<" | "<=" | ">" | ">=", e, f)  ("and", e, f)  ("or", e, f)  ("not", e)
    ("in", e, (v, …))  ("between", e, low or None, high or None)  ("like", e, regular expression)
    ("total", function, variable, e)  an aggregate of e, an expression over `attribute`s, over the events of a variable
    ("earlier", variable, a, k)  a of the k-th last event that the variable took before this one; of the first if k is 0
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.support import oracle_functions

Event = Mapping[str, Any]
Match = tuple[int, int, tuple[int, ...]]
"""A complex event ([start, end], D): start, end, and the positions of D in order."""


class TooBig(Exception):
    """The case has more valuations than a naive evaluator should hold; the random tests draw another one."""


LIMIT = 30_000
"""The number of valuations that a formula may have, and a tenth of the pairs that a sequence may try."""


# ---------------------------------------------------------------------------------------------------------- formulas


@dataclass(frozen=True, slots=True)
class Type:
    """An event of type `name`, or with `every` of whatever type; with `stream`, of that stream alone."""

    name: str
    stream: str | None = None
    every: bool = False


@dataclass(frozen=True, slots=True)
class As:
    child: Formula
    variable: str


@dataclass(frozen=True, slots=True)
class Filter:
    child: Formula
    condition: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Or:
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Then:
    """`left ; right`, or with `adjacent` `left : right`."""

    left: Formula
    right: Formula
    adjacent: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """`left` and `right`, in any order; the interval is the smallest that holds both."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Without:
    """`left ; NOT absent ; right`: no valuation of `absent` lies strictly between the two. `join`: `;` or `->`.

    A condition in `absent` on variables of `left`, or of `right`, is about the positions they took there. With `span`
    (ns, `NOT absent FOR span`), none lies so long behind `left`, and `right` begins later than that.
    """

    left: Formula
    absent: Formula
    right: Formula
    join: str = ";"
    span: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """`NOT absent ; child`: in the gap before `child`, no valuation of `absent` lies. `join`: `;` or `->`. With `span`
    (ns, `NOT absent FOR span`), none lies so long behind what precedes it, and `child` begins later than that."""

    absent: Formula
    child: Formula
    join: str = ";"
    span: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Behind:
    """`child ; NOT absent`: in the gap behind `child`, no valuation of `absent` lies. `span`: as of `Before`."""

    child: Formula
    absent: Formula
    join: str = ";"
    span: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Apart:
    """`AND(…, NOT absent)`: no event of `absent` lies inside `child` but those that `child` takes, nor in the gaps
    before and behind it. With `span` (ns), no such event comes so long behind what precedes `child`, and what follows
    comes later than that."""

    child: Formula
    absent: Formula
    span: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """`NOT child`, as one event: a position that is no valuation of `child`."""

    child: Formula


@dataclass(frozen=True, slots=True)
class Repeat:
    """`child{low,high}`: `child ; child ; …`, as often as that; `high` None is no bound."""

    child: Formula
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Plus:
    """`child+`, or with `adjacent` `child:+`."""

    child: Formula
    adjacent: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    child: Formula
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Step:
    """`left -> right`; see `oracle_steps`."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Rounds:
    """`child{low,high}` joined by `;`, `->` or `:`, of which the first may be 0. `preference` is greedy, reluctant or
    each; no round is taken from an event of `until` on. `entered`: a run is in it."""

    child: Formula
    low: int
    high: int | None
    join: str = ";"
    preference: str = "greedy"
    until: Formula | None = None
    entered: bool = False


Bordered = Before | Behind | Apart
Formula = Type | As | Filter | Or | Then | And | Without | Bordered | Other | Repeat | Plus | Project | Step | Rounds


def has_steps(formula: Formula) -> bool:
    """True if the valuations of a formula are those of `oracle_steps`."""
    match formula:
        case Step() | Rounds() | Without(join="->"):
            return True
        case Before(join="->") | Behind(join="->"):
            return True
        case As(child) | Filter(child) | Repeat(child) | Plus(child) | Project(child):
            return has_steps(child)
        case Before(child=child) | Behind(child=child) | Apart(child=child):
            return has_steps(child)
        case Or(left, right) | Then(left, right) | And(left, right) | Without(left, _, right):
            return has_steps(left) or has_steps(right)
    return False


@dataclass(frozen=True, slots=True)
class Within:
    """A closed window. `unit` is "events" (a difference of positions), "time" (nanoseconds) or "attribute"."""

    size: Fraction
    unit: str
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A CEQL query. `select` None is `*`; `partition` has one entry per bracket.

    `consume` is NONE, ANY or PARTITION. `ending` is the ψ of `φ ; NOT ψ` at the end of the query. `pause`: nanoseconds
    without an event after which the next one of a key is the first of another substream. `after`: a rule of AFTER MATCH
    (PAST LAST, TO NEXT, TO FIRST, TO LAST) and its variable, or "". `strategy` FIRST is one match a substream.
    `patience`: the d (ns) of `φ ; NOT ψ FOR d`. `beginning`: the ψ of `NOT ψ ; φ`, `silence`: its d.
    """

    formula: Formula
    select: frozenset[str] | None = None
    strategy: str = "ALL"
    partition: tuple[tuple[str, ...], ...] = ()
    within: Within | None = None
    streams: tuple[str, ...] = ()
    consume: str = "NONE"
    limit: int | None = None
    ending: Formula | None = None
    pause: Fraction | None = None
    after: tuple[str, str] | None = None
    patience: Fraction | None = None
    beginning: Formula | None = None
    silence: Fraction | None = None


# -------------------------------------------------------------------------------------------------------- valuations

Positions = frozenset[int]


@dataclass(frozen=True, slots=True)
class Valuation:
    """([start, end], μ): `mapping` holds the variables with a non-empty set of positions.

    `owed` are conditions of a FILTER that names a variable its own formula does not define ([CEL] §2, φ4). They are
    kept, with the positions known so far, until the smallest enclosing formula that defines all their variables.
    `before` and `behind` are formulas of which nothing may come in the gap before and behind the valuation. Each has
    its time, if it has one, and those behind it the positions that their conditions may name. `since` are formulas of
    conjunctions, of which nothing may come for a time that begins with what precedes the valuation. Each is with its
    time, the positions that its conjunction takes, those of the events before and behind the conjunction; -1 for one
    that is not known yet.
    """

    start: int
    end: int
    mapping: frozenset[tuple[str, Positions]]
    owed: frozenset[tuple[Any, frozenset[tuple[str, Positions]]]] = frozenset()
    before: frozenset[tuple[Any, Fraction | None]] = frozenset()
    behind: frozenset[tuple[Any, frozenset[tuple[str, Positions]], Fraction | None]] = frozenset()
    since: frozenset[tuple[Any, Fraction, Positions, int, int]] = frozenset()

    def of(self, variable: str) -> Positions:
        """V(X)."""
        return dict(self.mapping).get(variable, frozenset())

    @property
    def data(self) -> Positions:
        """C_V(data): the union over all variables."""
        return frozenset().union(*(positions for _, positions in self.mapping))


def _merge(left: Valuation, right: Valuation) -> Valuation:
    mapping = dict(left.mapping)
    for variable, positions in right.mapping:
        mapping[variable] = mapping.get(variable, frozenset()) | positions
    owed = left.owed | right.owed
    since = {(*rest, p, right.start if upto < 0 else upto) for *rest, p, upto in left.since}
    since |= {(*rest, left.end if p < 0 else p, upto) for *rest, p, upto in right.since}
    return Valuation(
        left.start, right.end, frozenset(mapping.items()), owed, left.before, right.behind, frozenset(since)
    )


def _hull(left: Valuation, right: Valuation) -> Valuation:
    merged = _merge(left, right)
    return Valuation(min(left.start, right.start), max(left.end, right.end), merged.mapping, merged.owed)


def valuations(formula: Formula, stream: Sequence[Event]) -> set[Valuation]:
    """⌈φ⌋(S): of a formula with steps by `oracle_steps`, of any other by [CORE] Figure 2."""
    if not has_steps(formula):
        return _by_parts(formula, stream)
    if isinstance(formula, And | Project | Apart):
        return _by_parts(formula, stream, valuations)
    return oracle_steps.valuations(formula, stream)


def _by_parts(
    formula: Formula, stream: Sequence[Event], of_part: Callable[..., set[Valuation]] | None = None
) -> set[Valuation]:
    """⌈φ⌋(S) of [CORE] Figure 2, one clause per case; positions are indices of `stream`. `of_part` gives the valuations
    of its parts, this function if None."""
    find = _by_parts if of_part is None else of_part
    match formula:
        case Type(name, source, every):
            return {
                Valuation(i, i, frozenset((x, frozenset({i})) for x in variables_of(formula)))
                for i, event in enumerate(stream)
                if (every or event["type"] == name) and source in (None, event.get("stream"))
            }
        case As(child, variable):
            return {_name(v, variable) for v in find(child, stream)}
        case Filter(child, condition) if reads_earlier(condition):
            match condition:
                case ("any", *parts):
                    return set().union(*(find(Filter(child, part), stream) for part in parts))
                case ("all", *parts):
                    return find(functools.reduce(Filter, parts, child), stream)
            return {_owe(v, condition) for v in find(child, stream)}
        case Filter(child, condition):
            defined = variables_of(child)
            kept = (_filter(v, condition, defined, stream) for v in find(child, stream))
            return {v for v in kept if v is not None}
        case Or(left, right):
            return find(left, stream) | find(right, stream)
        case Then(left, right, adjacent):
            pairs = _pairs(find(left, stream), find(right, stream), adjacent, stream, variables_of(left))
            return _settle(pairs, variables_of(formula), stream)
        case And(left, right):
            first, second = find(left, stream), find(right, stream)
            both = {_hull(v, w) for v in first for w in second}
            _check(len(both))
            both |= first if oracle_steps.may_be_empty(right) else set()
            both |= second if oracle_steps.may_be_empty(left) else set()
            return _settle(both, variables_of(formula), stream)
        case Without(left, absent, right, _, span):
            spoilers, own = find(absent, stream), variables_of(left)

            pairs = {
                _merge(v, w)
                for v in find(left, stream)
                for w in find(right, stream)
                if v.end < w.start
                and (span is None or not is_near(v.end, w.start, span, stream))
                and _is_free(v, w, stream, own)
                and not any(
                    v.end < u.start
                    and u.end < w.start
                    and (span is None or is_near(v.end, u.start, span, stream))
                    and meets(u, _around(v, w, own), stream)
                    for u in spoilers
                )
            }
            return _settle(pairs, variables_of(formula), stream)
        case Before(absent, child, _, span):
            return {replace(v, before=v.before | {(absent, span)}) for v in find(child, stream)}
        case Behind(child, absent, _, span):
            return {replace(v, behind=v.behind | {(absent, v.mapping, span)}) for v in find(child, stream)}
        case Apart(child, absent, span) if span is not None:
            return {replace(v, since=v.since | {(absent, span, v.data, -1, -1)}) for v in find(child, stream)}
        case Apart(child, absent):
            such = {v.start for v in find(absent, stream)}
            return {
                replace(v, before=v.before | {(absent, None)}, behind=v.behind | {(absent, v.mapping, None)})
                for v in find(child, stream)
                if not any(i in such and i not in v.data for i in range(v.start, v.end))
            }
        case Other(child):
            such = {v.start for v in find(child, stream)}
            return {
                Valuation(i, i, frozenset({("an event that is no …", frozenset({i}))}))
                for i in range(len(stream))
                if i not in such
            }
        case Repeat(child, low, high):
            once = find(child, stream)
            result, latest, rounds = set[Valuation](), once, 1
            while latest and (high is None or rounds <= high):
                result |= latest if rounds >= low else set()
                latest, rounds = _settle(_pairs(once, latest, False, stream), frozenset(), stream), rounds + 1
            return result
        case Plus(child, adjacent):
            once = find(child, stream)
            result, latest = set(once), once
            while latest:
                latest = _settle(_pairs(once, latest, adjacent, stream), frozenset(), stream) - result
                result |= latest
                _check(len(result))
            return result
        case Project(child, kept_variables):
            return {
                replace(v, mapping=frozenset(p for p in v.mapping if p[0] in kept_variables))
                for v in find(child, stream)
            }
    raise AssertionError(formula)


def _around(left: Valuation, right: Valuation, own: frozenset[str]) -> Valuation:
    """What a condition between two parts may name: the variables of the first, `own`, and those of the second alone."""
    others = frozenset(pair for pair in right.mapping if pair[0] not in own)
    return Valuation(left.start, right.end, left.mapping | others)


def meets(absent: Valuation, left: Valuation, stream: Sequence[Event]) -> bool:
    """True if an absent event satisfies its conditions on the variables of `left`."""
    return all(holds(condition, _knowing(left, own), stream) for condition, own in absent.owed)


def _check(size: int, limit: int = LIMIT) -> None:
    if size > limit:
        raise TooBig(f"{size} valuations")


def _pairs(
    left: set[Valuation], right: set[Valuation], adjacent: bool, stream: Sequence[Event],
    own: frozenset[str] = frozenset(),
) -> set[Valuation]:  # fmt: skip
    """φ1 ; φ2: V1(end) < V2(start); φ1 : φ2: V1(end) + 1 = V2(start). `own`: the variables of φ1."""
    _check(len(left) * len(right), LIMIT * 30)
    result = {
        _merge(v, w)
        for v in left
        for w in right
        if (v.end + 1 == w.start if adjacent else v.end < w.start) and _is_free(v, w, stream, own)
    }
    _check(len(result))
    return result


def _is_free(v: Valuation, w: Valuation, stream: Sequence[Event], own: frozenset[str]) -> bool:
    """True if nothing lies between two valuations that may not come behind the first, or before the second."""
    around = _around(v, w, own)
    forbidden = [(absent, around, span) for absent, span in w.before]
    forbidden += [(absent, replace(v, mapping=known), span) for absent, known, span in v.behind]
    return not any(comes(absent, v.end, w.start, known, stream, span) for absent, known, span in forbidden)


def comes(
    absent: Formula, after: int, before: int, known: Valuation, stream: Sequence[Event], span: Fraction | None = None
) -> bool:
    """True if a valuation of `absent` lies strictly between two positions, and meets its conditions on `known`. With
    `span`, if it lies so long behind the first position, or the second is no later than that."""
    if span is not None and is_near(after, before, span, stream):
        return True
    shift = after + 1
    between = [_shift(u, shift) for u in valuations(absent, stream[after + 1 : before])]
    near = (u for u in between if span is None or is_near(after, u.start, span, stream))
    return any(meets(u, known, stream) for u in near)


def is_near(first: int, last: int, span: Fraction, stream: Sequence[Event]) -> bool:
    """True if an event comes at most `span` (ns) after another."""
    return nanoseconds(stream[last], last) - nanoseconds(stream[first], first) <= span


def _shift(u: Valuation, by: int) -> Valuation:
    """A valuation over the rest of a stream from position `by` as one over the whole stream."""

    def move(mapping: frozenset[tuple[str, Positions]]) -> frozenset[tuple[str, Positions]]:
        return frozenset((x, frozenset(i + by for i in at)) for x, at in mapping)

    owed = frozenset((condition, move(own)) for condition, own in u.owed)
    return Valuation(u.start + by, u.end + by, move(u.mapping), owed)


def _name(v: Valuation, variable: str) -> Valuation:
    """φ AS X: V(X) becomes the union over all Y of V'(Y)."""
    return replace(v, mapping=frozenset({**dict(v.mapping), variable: v.data}.items()))


def variables_of(formula: Formula) -> frozenset[str]:
    """The variables a formula defines, type names among them (T ⊆ X)."""
    match formula:
        case Type(name, source, _):
            return frozenset({name} if source is None else {name, f"{source}>{name}"})
        case As(child, variable):
            return variables_of(child) | {variable}
        case Filter(child) | Plus(child) | Repeat(child) | Rounds(child):
            return variables_of(child)
        case Before(child=child) | Behind(child=child) | Apart(child=child):
            return variables_of(child)
        case Other():
            return frozenset()
        case Or(left, right) | Then(left, right) | And(left, right) | Without(left, _, right) | Step(left, right):
            return variables_of(left) | variables_of(right)
        case Project(child, variables):
            return variables_of(child) & variables
    raise AssertionError(formula)


# ----------------------------------------------------------------------------------------------- conditions, filters


def named(condition: Any) -> frozenset[str]:
    """The variables a condition or an expression names."""
    if not isinstance(condition, tuple) or not condition:
        return frozenset()
    match condition:
        case ("on" | "of" | "earlier", variable, *_):
            return frozenset({variable})
        case ("total", _, variable, _):
            return frozenset({variable})
        case ("value", _) | ("attribute", _):
            return frozenset()
    return frozenset().union(*(named(part) for part in condition[1:]))


def holds(condition: tuple[Any, ...], v: Valuation, stream: Sequence[Event]) -> bool:
    """True if `v` satisfies the condition of a FILTER. A variable without positions satisfies every condition."""
    match condition:
        case ("all", *parts):
            return all(holds(part, v, stream) for part in parts)
        case ("any", *parts):
            return any(holds(part, v, stream) for part in parts)
        case ("on", variable, expression):
            if not v.of(variable):
                return True
            body = _total(expression, v, stream)
            return all(value_of(body, stream[i], {}) is True for i in v.of(variable))
        case ("for all", expression):
            if not all(v.of(name) for name in named(expression)):
                return True
            body = _total(expression, v, stream)
            names = sorted(named(body))
            choices = itertools.product(*(sorted(v.of(name)) for name in names))
            return all(
                value_of(body, None, {n: stream[i] for n, i in zip(names, choice, strict=True)}) is True
                for choice in choices
            )
    raise AssertionError(condition)


def _total(expression: Any, v: Valuation, stream: Sequence[Event]) -> Any:
    """The expression with each aggregate as the value it has over the positions of its variable, in order."""
    match expression:
        case ("total", function, variable, inner):
            return ("value", total(function, [value_of(inner, stream[i], {}) for i in sorted(v.of(variable))]))
        case ("value" | "of" | "attribute", *_):
            return expression
        case (sign, *parts):
            return (sign, *(_total(part, v, stream) for part in parts))
    return expression


def total(function: str, found: list[Any]) -> Any:
    """An aggregate, as in SQL: NULL does not count, nothing has no sum. FIRST and LAST are of events, NULL or not."""
    if function in ("FIRST", "LAST"):
        return found[0 if function == "FIRST" else -1]
    known = [value for value in found if value is not None]
    if function == "COUNT":
        return len(known)
    if len(known) < (2 if function == "STDDEV" else 1):
        return None
    match function:
        case "SUM":
            return functools.reduce(operator.add, known)
        case "MIN":
            return min(known)
        case "MAX":
            return max(known)
        case "AVG" if isinstance(known[0], datetime.datetime | datetime.timedelta):
            return known[0] + functools.reduce(operator.add, [value - known[0] for value in known]) / len(known)
        case "AVG":
            return float(sum(map(exact, known)) / len(known))
    assert function == "STDDEV", function
    mean = sum(map(exact, known)) / len(known)
    return math.sqrt(sum((exact(x) - mean) ** 2 for x in known) / (len(known) - 1))


def _filter(v: Valuation, condition: Any, defined: frozenset[str], stream: Sequence[Event]) -> Valuation | None:
    """φ FILTER θ1 AND θ2 is (φ FILTER θ1) FILTER θ2; a condition that names a variable from outside is owed."""
    parts = condition[1:] if condition[0] == "all" else (condition,)
    owed = set(v.owed)
    for part in parts:
        if part[0] == "all":
            inner = _filter(replace(v, owed=frozenset(owed)), part, defined, stream)
            if inner is None:
                return None
            owed = set(inner.owed)
        elif named(part) <= defined:
            if not holds(part, v, stream):
                return None
        else:
            owed.add((part, frozenset((x, v.of(x)) for x in named(part) & defined)))
    return replace(v, owed=frozenset(owed))


def _settle(found: set[Valuation], defined: frozenset[str], stream: Sequence[Event]) -> set[Valuation]:
    """Check the owed conditions that can be decided now: each whose variables are all in `defined`. The same for times
    of conjunctions, once the events before and behind are known."""
    result = set()
    for v in found:
        known = {one for one in v.since if min(one[3:]) >= 0}
        if any(_is_broken(*one, stream) for one in known):
            continue
        v = replace(v, since=v.since - known)
        due = {(c, own) for c, own in v.owed if named(c) <= defined and not reads_earlier(c)}
        if all(holds(condition, _knowing(v, own), stream) for condition, own in due):
            result.add(replace(v, owed=v.owed - due))
    return result


def _is_broken(
    absent: Formula, span: Fraction, taken: Positions, before: int, behind: int, stream: Sequence[Event]
) -> bool:
    """True if the event behind a conjunction comes within its time, or one of `absent` does that it does not take."""
    if is_near(before, behind, span, stream):
        return True
    such = (v.start for v in valuations(absent, stream) if v.start not in taken)
    return any(before < i < behind and is_near(before, i, span, stream) for i in such)


def _knowing(v: Valuation, own: frozenset[tuple[str, Positions]]) -> Valuation:
    """`v` with the variables of `own` as they were at the condition."""
    return replace(v, mapping=frozenset({**dict(v.mapping), **dict(own)}.items()))


# ----------------------------------------------------------------------------------- conditions on each round of a loop


def of_rounds(formula: Formula, in_loop: bool = False) -> Formula:
    """The formula with FIRST(v.a) and LAST(v.a) in conditions inside a loop as the earlier events that they mean there:
    if a condition names an event, and aggregates nothing else."""
    match formula:
        case Filter(child, condition):
            inner = of_rounds(child, in_loop)
            return Filter(inner, _condition_of_rounds(condition) if in_loop else condition)
        case Plus(child):
            return replace(formula, child=of_rounds(child, True))
        case Repeat(child, _, high) | Rounds(child, _, high):
            return replace(formula, child=of_rounds(child, in_loop or high != 1))
        case As(child) | Project(child) | Before(child=child) | Behind(child=child) | Apart(child=child):
            return replace(formula, child=of_rounds(child, in_loop))
        case Or(left, right) | Then(left, right) | And(left, right) | Without(left, _, right) | Step(left, right):
            return replace(formula, left=of_rounds(left, in_loop), right=of_rounds(right, in_loop))
    return formula


def _condition_of_rounds(condition: tuple[Any, ...]) -> tuple[Any, ...]:
    match condition:
        case ("all" | "any" as word, *parts):
            return (word, *map(_condition_of_rounds, parts))
        case ("on", variable, ("and", left, right)):
            return ("on", variable, ("and", *(_condition_of_rounds(("on", variable, e))[2] for e in (left, right))))
    aggregates = {part[1] for part in _parts(condition) if part[0] == "total"}
    if aggregates and aggregates <= {"FIRST", "LAST"} and (_plain(condition[-1]) or reads_earlier(condition)):
        return (*condition[:-1], _as_earlier(condition[-1]))
    return condition


def _as_earlier(expression: Any) -> Any:
    match expression:
        case ("total", function, variable, inner):
            return _of_earlier(inner, variable, 0 if function == "FIRST" else 1)
        case (sign, *parts) if sign not in ("value", "of", "attribute", "earlier"):
            return (sign, *map(_as_earlier, parts))
    return expression


def _of_earlier(inner: Any, variable: str, back: int) -> Any:
    match inner:
        case ("attribute", name):
            return ("earlier", variable, name, back)
        case ("value", _):
            return inner
        case (sign, *parts):
            return (sign, *(_of_earlier(part, variable, back) for part in parts))
    raise AssertionError(inner)


def _parts(expression: Any) -> Iterator[tuple[Any, ...]]:
    """A condition or an expression, and all in it but the arguments of aggregates."""
    if isinstance(expression, tuple) and expression and isinstance(expression[0], str):
        yield expression
        for part in expression[1:] if expression[0] != "total" else ():
            yield from _parts(part)


def reads_earlier(condition: Any) -> bool:
    """True if a condition reads events before the one at hand."""
    return any(part[0] == "earlier" for part in _parts(condition))


def _plain(expression: Any) -> frozenset[str]:
    """The variables of the events at hand, "" for that of the brackets."""
    named_here = (part for part in _parts(expression) if part[0] in ("of", "attribute"))
    return frozenset(part[1] if part[0] == "of" else "" for part in named_here)


def _owe(v: Valuation, condition: tuple[Any, ...]) -> Valuation:
    """A condition on each round is decided once the whole match is known, at the events that its variable has now."""
    anchor = anchor_of(condition)
    return replace(v, owed=v.owed | {(condition, frozenset({(anchor, v.of(anchor))}))})


def anchor_of(condition: tuple[Any, ...]) -> str:
    """The variable at whose events a condition on each round is tested."""
    if condition[0] == "on":
        return str(condition[1])
    earlier = {part[1] for part in _parts(condition) if part[0] == "earlier"}
    (anchor,) = _plain(condition[-1]) or earlier
    return str(anchor)


def holds_so_far(condition: tuple[Any, ...], v: Valuation, whole: Valuation, stream: Sequence[Event]) -> bool:
    """`holds` for the positions `v` of a FILTER's formula, of a match that is `whole` so far: conditions on each round
    read events before of any part of it."""
    match condition:
        case ("all", *parts):
            return all(holds_so_far(part, v, whole, stream) for part in parts)
        case ("any", *parts):
            return any(holds_so_far(part, v, whole, stream) for part in parts)
    if not reads_earlier(condition):
        return holds(condition, v, stream)
    return all(_holds_at(condition, p, whole, stream) for p in v.of(anchor_of(condition)))


def with_rounds(found: Iterable[Valuation], stream: Sequence[Event]) -> Iterator[Valuation]:
    """The valuations of a whole formula that satisfy their conditions on each round."""
    for v in found:
        rounds = {(condition, own) for condition, own in v.owed if reads_earlier(condition)}
        if all(_holds_at(condition, p, v, stream) for condition, own in rounds for _, at in own for p in at):
            yield replace(v, owed=v.owed - rounds)


def _holds_at(condition: tuple[Any, ...], position: int, v: Valuation, stream: Sequence[Event]) -> bool:
    """True if the condition holds at an event, or one of the earlier events that it reads is not there."""
    body = condition[-1]
    for part in [part for part in _parts(body) if part[0] == "earlier"]:
        _, variable, name, back = part
        before = sorted(p for p in v.of(variable) if p < position)
        if not before or len(before) < back:
            return True
        body = _put(body, part, ("value", stream[before[-back if back else 0]].get(name)))
    at_hand = {variable: stream[position] for variable in _plain(body)}
    return value_of(body, stream[position], at_hand) is True


def _put(expression: Any, part: Any, value: Any) -> Any:
    if expression == part:
        return value
    return tuple(_put(e, part, value) for e in expression) if isinstance(expression, tuple) else expression


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_of(expression: tuple[Any, ...], event: Event | None, choice: Mapping[str, Event]) -> Any:
    """The value of an expression, None for NULL and for an unknown truth (three-valued logic)."""
    match expression:
        case ("value", value):
            return value
        case ("attribute", name):
            assert event is not None
            return event.get(name)
        case ("of", variable, name):
            return choice[variable].get(name)
        case ("and", left, right):
            return _both(value_of(left, event, choice), value_of(right, event, choice))
        case ("or", left, right):
            both = _both(_negate(value_of(left, event, choice)), _negate(value_of(right, event, choice)))
            return _negate(both)
        case ("not", inner):
            return _negate(value_of(inner, event, choice))
        case ("negative", inner):
            value = value_of(inner, event, choice)
            return None if value is None else -value
        case ("in", inner, values):
            value = value_of(inner, event, choice)
            return None if value is None else value in values
        case ("between", inner, low, high):
            value = value_of(inner, event, choice)
            return None if value is None else (low is None or low <= value) and (high is None or value <= high)
        case ("like", inner, pattern):
            value = value_of(inner, event, choice)
            return None if value is None else re.fullmatch(pattern, value) is not None
        case ("null?", inner):
            return value_of(inner, event, choice) is None
        case ("case", condition, result, *rest):
            if value_of(condition, event, choice) is True:
                return value_of(result, event, choice)
            return value_of(("case", *rest) if len(rest) > 1 else rest[0], event, choice)
        case ("call", name, *arguments):
            return oracle_functions.call(name, [value_of(argument, event, choice) for argument in arguments])
        case ("corr", left, right):
            return correlation(value_of(left, event, choice), value_of(right, event, choice))
        case (sign, left, right):
            a, b = value_of(left, event, choice), value_of(right, event, choice)
            if a is None or b is None:
                return None
            if sign in ("/", "%") and b == 0:
                return None
            return (ARITHMETIC.get(sign) or COMPARISONS[sign])(a, b)
    raise AssertionError(expression)


def correlation(left: Any, right: Any) -> float | None:
    """Pearson's, of two lists; None if it is not defined."""
    if left is None or right is None or len(left) != len(right) or None in left or None in right:
        return None
    pairs = [(exact(a), exact(b)) for a, b in zip(left, right, strict=True)]
    n = len(pairs)
    covariance = n * sum(a * b for a, b in pairs) - sum(a for a, _ in pairs) * sum(b for _, b in pairs)
    first = n * sum(a * a for a, _ in pairs) - sum(a for a, _ in pairs) ** 2
    second = n * sum(b * b for _, b in pairs) - sum(b for _, b in pairs) ** 2
    return float(covariance) / math.sqrt(first * second) if n > 1 and first and second else None


def _negate(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


# ----------------------------------------------------------------------------------------------------------- queries


def exact(number: Any) -> Fraction:
    """A number as it is written in decimal: 0.1 is one tenth."""
    return Fraction(Decimal(str(number)))


def nanoseconds(event: Event, position: int) -> Fraction:
    """The event's time: its `time` in seconds, else one millisecond after the event before."""
    return exact(event["time"]) * 10**9 if "time" in event else Fraction(position * 10**6)


def substreams(query: Query, stream: Sequence[Event]) -> Iterator[list[int]]:
    """The positions of each maximal subsequence that agrees on every PARTITION BY attribute, none of them NULL."""
    if not query.partition:
        yield list(range(len(stream)))
        return
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, event in enumerate(stream):
        key = tuple(_bracket(event, bracket) for bracket in query.partition)
        if None not in key:
            groups.setdefault(key, []).append(position)
    for positions in groups.values():
        yield from _between_pauses(query, positions, stream)


def _between_pauses(query: Query, positions: list[int], stream: Sequence[Event]) -> Iterator[list[int]]:
    times = [nanoseconds(stream[p], p) for p in positions]
    pauses = [i for i in range(1, len(times)) if query.pause is not None and times[i] - times[i - 1] > query.pause]
    for first, last in itertools.pairwise([0, *pauses, len(positions)]):
        yield positions[first:last]


def _bracket(event: Event, bracket: tuple[str, ...]) -> Any:
    """The value of a bracket: of its attributes, the one that events of this type carry."""
    return next((event[a] for a in bracket if event.get(a) is not None), None)


def inside(within: Within | None, start: int, end: int, positions: Sequence[int], stream: Sequence[Event]) -> bool:
    """The closed window over a substream: end − start ≤ ε."""
    if within is None:
        return True
    if within.unit == "events":
        return end - start <= within.size
    first, last = positions[start], positions[end]
    if within.unit == "time":
        return nanoseconds(stream[last], last) - nanoseconds(stream[first], first) <= within.size
    low, high = stream[first].get(within.attribute), stream[last].get(within.attribute)
    return low is not None and high is not None and exact(high) - exact(low) <= within.size


def evaluate(query: Query, stream: Sequence[Event]) -> list[Match]:
    """The complex events of a query, sorted: PARTITION BY splits, WHERE finds, WITHIN keeps, SELECT chooses."""
    return _evaluate(query, stream, _in_window)


def evaluate_long(query: Query, stream: Sequence[Event]) -> list[Match]:
    """As `evaluate`, for long streams and short windows.

    The events i to j alone decide if a valuation ([i, j], μ) is one of φ (by induction over Figure 2). So each window
    is evaluated by itself, and of each window those that start with it are kept.
    """
    return _evaluate(query, stream, _in_each_window)


def evaluate_valuations(query: Query, stream: Sequence[Event]) -> list[tuple[int, int, Any]]:
    """The valuations, restricted to SELECT, of the complex events that the query reports; without LIMIT, sorted.

    A strategy compares positions ([CEL] §4), so it keeps all valuations of a complex event or none. What must not come
    around one valuation leaves out that one.
    """
    chosen = set(evaluate(replace(query, limit=None), stream))
    found = set()
    for positions in substreams(query, stream):
        for v in _keep_free(query, _in_window(query, positions, stream), positions, stream):
            data = tuple(sorted(positions[i] for i in _data(v, query.select)))
            if (positions[v.start], positions[v.end], data) in chosen:
                taken = [(x, frozenset(positions[i] for i in at)) for x, at in v.mapping]
                kept = sorted(x for x in taken if query.select is None or x[0] in query.select)
                found.add((positions[v.start], positions[v.end], tuple(kept)))
    return sorted(found, key=repr)


def _evaluate(query: Query, stream: Sequence[Event], find: Callable[..., Iterator[Valuation]]) -> list[Match]:
    by_end: dict[int, tuple[int, Sequence[int], Found]] = {}
    taken: dict[tuple[Any, ...], Positions] = {}
    for number, positions in enumerate(substreams(query, stream)):
        matched = _keep_free(query, find(query, positions, stream), positions, stream)
        found = {(v.start, v.end, _data(v, query.select)) for v in matched}
        for c in found:
            by_end.setdefault(positions[c[1]], (number, positions, set()))[2].add(c)
        for v in matched:
            key = (number, v.start, v.end, _data(v, query.select))
            taken[key] = taken.get(key, frozenset()) | v.of("" if query.after is None else query.after[1])
    if query.after is not None or query.strategy == "FIRST":
        return sorted(_report_after(query, by_end, taken))
    return sorted(_report(query, by_end))


def _keep_free(
    query: Query, found: Iterable[Valuation], positions: Sequence[int], stream: Sequence[Event]
) -> list[Valuation]:
    """The valuations that owe no condition, and around which nothing comes that must not."""
    some = _not_followed(query, [v for v in found if not v.owed], positions, stream)
    return _not_since(_not_preceded(query, some, positions, stream), positions, stream)


def _not_followed(
    query: Query, found: list[Valuation], positions: Sequence[int], stream: Sequence[Event]
) -> list[Valuation]:
    """φ ; NOT ψ: the valuations of φ behind whose end, inside the window, no ψ begins that meets its conditions. The
    same for what may not come behind φ itself. With FOR, inside a span of time from the end on."""
    events = [stream[p] for p in positions]
    spoilers: dict[Any, set[Valuation]] = {}

    def is_followed(v: Valuation) -> bool:
        forbidden: list[tuple[Any, Valuation, Fraction | None]] = [
            (absent, replace(v, mapping=known), span) for absent, known, span in v.behind
        ]
        if query.ending is not None:
            forbidden.append((query.ending, v, query.patience))
        for absent, known, patience in forbidden:
            if absent not in spoilers:
                spoilers[absent] = valuations(absent, events)
            start, within = (v.start, query.within) if patience is None else (v.end, Within(patience, "time"))
            for w in spoilers[absent]:
                behind = v.end < w.start and inside(within, start, w.start, positions, stream)
                if behind and meets(w, known, events):
                    return True
        return False

    return [v for v in found if not is_followed(v)]


def _not_preceded(
    query: Query, found: list[Valuation], positions: Sequence[int], stream: Sequence[Event]
) -> list[Valuation]:
    """NOT ψ ; φ: the valuations of φ in front of whose start, inside the window that closes with their end, there is no
    ψ. The same for what may not come before φ itself. With FOR, inside a span of time up to the start."""
    events = [stream[p] for p in positions]
    spoilers: dict[Any, set[Valuation]] = {}

    def is_preceded(v: Valuation) -> bool:
        forbidden: list[tuple[Any, Fraction | None]] = list(v.before)
        if query.beginning is not None:
            forbidden.append((query.beginning, query.silence))
        for absent, silence in forbidden:
            if absent not in spoilers:
                spoilers[absent] = valuations(absent, events)
            end, within = (v.end, query.within) if silence is None else (v.start, Within(silence, "time"))
            if any(w.end < v.start and inside(within, w.start, end, positions, stream) for w in spoilers[absent]):
                return True
        return False

    return [v for v in found if not is_preceded(v)]


def _not_since(found: list[Valuation], positions: Sequence[int], stream: Sequence[Event]) -> list[Valuation]:
    """AND(…, NOT ψ FOR d) with nothing in front of it or behind it: the valuations in whose time no such ψ comes. With
    nothing in front, the time begins with the first event. With nothing behind, it is for what comes later, too."""
    events = [stream[p] for p in positions]

    def is_broken(v: Valuation) -> bool:
        for absent, span, taken, before, behind in v.since:
            before = v.start if before < 0 else before
            if behind >= 0:
                if _is_broken(absent, span, taken, before, behind, events):
                    return True
            elif any(
                w.start > before and w.start not in taken and is_near(before, w.start, span, events)
                for w in valuations(absent, events)
            ):
                return True
        return False

    return [v for v in found if not is_broken(v)]


def _report(query: Query, by_end: dict[int, tuple[int, Sequence[int], Found]]) -> Iterator[Match]:
    """Event by event: the matches that are not forgotten, SELECT, LIMIT, CONSUME BY.

    `by_end` has for each end its substream's number and positions, and complex events in positions of the substream.
    """
    consumed: dict[int, int] = {}
    for end, (number, positions, found) in sorted(by_end.items()):
        cell = 0 if query.consume == "ANY" else number
        chosen = select(query.strategy, {c for c in found if positions[c[0]] > consumed.get(cell, -1)})
        if chosen and query.consume != "NONE":
            consumed[cell] = end
        recent = sorted(chosen, key=lambda c: (-c[0], sorted(c[2])))
        for i, j, d in recent[: query.limit]:
            yield positions[i], positions[j], tuple(sorted(positions[k] for k in d))


def _report_after(
    query: Query, by_end: dict[int, tuple[int, Sequence[int], Found]], taken: Mapping[tuple[Any, ...], Positions]
) -> Iterator[Match]:
    """Event by event: of the matches that no other has discarded, the first in the order of NEXT; it discards, then the
    next one is taken. `taken`: the positions of the rule's variable in all valuations of a complex event."""
    rule = "FIRST" if query.after is None else query.after[0]
    reported: dict[int, list[tuple[int, int, Positions]]] = {}
    for _, (number, positions, found) in sorted(by_end.items()):
        before = reported.setdefault(number, [])
        whole = select(query.strategy, found)
        left = {c for c in whole if not any(_discards(rule, m, c, taken[number, *m]) for m in before)}
        while left:
            best = [c for c in left if not any(_beats("NEXT", d[2], c[2]) for d in left)]
            first = min(best, key=lambda c: c[0])
            before.append(first)
            left = {c for c in left - {first} if not _discards(rule, first, c, taken[number, *first])}
            i, j, d = first
            yield positions[i], positions[j], tuple(sorted(positions[k] for k in d))


def _discards(rule: str, match: Any, other: Any, taken: Positions) -> bool:
    """True if a reported match discards what begins where the other does (docs/semantics.md, after a match)."""
    match rule:
        case "FIRST":
            return True
        case "PAST LAST":
            return other[0] <= match[1]
        case "TO NEXT":
            return other[0] == match[0]
        case "TO FIRST":
            return bool(taken) and other[0] < min(taken)
    assert rule == "TO LAST", rule
    return bool(taken) and other[0] < max(taken)


def _in_window(query: Query, positions: Sequence[int], stream: Sequence[Event]) -> Iterator[Valuation]:
    """⌈φ WITHIN ε⌋ over a substream."""
    events = [stream[p] for p in positions]
    for v in with_rounds(valuations(of_rounds(query.formula), events), events):
        if inside(query.within, v.start, v.end, positions, stream):
            yield v


def _in_each_window(query: Query, positions: Sequence[int], stream: Sequence[Event]) -> Iterator[Valuation]:
    for start in range(len(positions)):
        end = start
        while end < len(positions) and inside(query.within, start, end, positions, stream):
            end += 1
        events = [stream[p] for p in positions[start:end]]
        for v in with_rounds(valuations(of_rounds(query.formula), events), events):
            if v.start == 0:
                mapping = ((x, frozenset(start + i for i in taken)) for x, taken in v.mapping)
                yield replace(v, start=start, end=start + v.end, mapping=frozenset(mapping))


def _data(v: Valuation, selected: frozenset[str] | None) -> Positions:
    if selected is None:
        return v.data
    return frozenset().union(*(positions for variable, positions in v.mapping if variable in selected))


Found = set[tuple[int, int, Positions]]


def select(strategy: str, found: Found) -> Found:
    """The strategies of [CEL] §4, per end position. ANY keeps all: which one is reported is not specified."""
    if strategy in ("ALL", "ANY", "FIRST"):
        return found
    if strategy == "STRICT":
        return {c for c in found if not c[2] or max(c[2]) - min(c[2]) + 1 == len(c[2])}
    return {c for c in found if not any(_beats(strategy, d[2], c[2]) for d in found if d[1] == c[1])}


def _beats(strategy: str, better: Positions, worse: Positions) -> bool:
    """True if `better` excludes `worse`: ≤next and ≤last of [CEL] §4, and proper inclusion for MAX."""
    difference = better ^ worse
    if strategy == "NEXT":
        return bool(difference) and min(difference) in better
    if strategy == "LAST":
        return bool(difference) and max(difference) in better
    assert strategy == "MAX", strategy
    return worse < better


@dataclass(frozen=True, slots=True)
class Checked:
    """The matches that a reported list lacks, and those that it has too much, against the oracle's."""

    missing: list[Match] = field(default_factory=list)
    surplus: list[Match] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus)


def compare(expected: Sequence[Match], reported: Sequence[Match]) -> Checked:
    """Difference as multisets: a match reported twice is surplus."""
    rest = list(expected)
    surplus = []
    for match in reported:
        if match in rest:
            rest.remove(match)
        else:
            surplus.append(match)
    return Checked(rest, surplus)


def compare_choice(query: Query, everything: Sequence[Match], reported: Sequence[Match]) -> Checked:
    """As `compare`, if LIMIT and ANY leave open which matches are reported; `everything` is without LIMIT.

    These must hold: all of them are matches, none twice, as many for each end as required, and no start that is less
    recent than one that was left out.
    """
    wrong = Checked([], compare(everything, reported).surplus)
    most = 1 if query.strategy == "ANY" else query.limit
    for end in {m[1] for m in everything}:
        starts = sorted((m[0] for m in everything if m[1] == end), reverse=True)[:most]
        found = sorted((m[0] for m in reported if m[1] == end), reverse=True)
        if len(found) != len(starts) or (query.strategy != "ANY" and found != starts):
            wrong.missing.extend(m for m in everything if m[1] == end and m not in reported)
    return wrong


from tests.support import oracle_steps  # noqa: E402 - it needs the formulas
