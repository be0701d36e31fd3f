"""COUNT against a number decides how often a loop is repeated: `F+ FILTER COUNT(F) >= 3` is `F{3,}`.

**The rule.** Let every match of φ take exactly c >= 1 events for the variable v. Then n rounds of φ take c·n events for
v, since rounds have no event in common. `φ+` is the union of n rounds over all n >= 1, and COUNT(v) tells n. So `φ+`
under `COUNT(v) >= k` is the union over n >= ⌈k / c⌉, which is `φ{⌈k / c⌉,}`. The other comparisons select other n in
the same way; `<>` leaves two ranges, which become an OR. Matches and valuations stay the same. If φ is repeated l to m
times already, the ranges are intersected.

**Where it applies.** The loop must take all events of v that the FILTER's formula takes. Between the FILTER and the
loop there may be other FILTERs, an AS with another name, parts of a sequence or conjunction that do not define v, and
ORs. In an alternative of an OR that does not define v, the variable is empty and satisfies the condition. Elsewhere
COUNT keeps a register (`ceql.guards.totals`). That is so for a loop inside a loop and for two loops with events of
v. It is so, too, for rounds with different numbers of events, and for more rounds than may be written out.

For rounds joined by `->` the events that fit must stay the same as well. An event that is one too many is passed over
in both forms. So rounds must be single events if their number has a new upper bound, and `<>` keeps its register. An
aggregate such as `AVG(v.a) < 3` is decided as its part ends, and an event fits the last round only if it holds. A new
upper bound would make another round the last one. So there is none beside such aggregates.

**Why.** The number of rounds is then a state of the automaton. Without other conditions it is deterministic, and an
event costs the same in every window.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction

from ceql.semantics.filters import All, Any, Test, as_test, conjuncts, leaves, write
from ceql.semantics.scopes import as_one_event, defined_names, fresh, taking, without_border
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.pattern import Skip
from spaseq.core.trees import children, fold, mapped, walk, with_children

_Rounds = tuple[int, float]
"""The least number of rounds and the greatest."""
_CHOICES = 100
"""The rounds that a run of `->` may leave out: each is a choice of its own."""
_Range = tuple[float, float]
"""The least number of events that a variable takes, and the greatest."""


def count_rounds(formula: ast.Formula, limit: int) -> ast.Formula:
    """The formula with conditions on COUNT as numbers of rounds. It stays as it is if it would take more than `limit`
    events when repetitions are written out. O(size of the formula * conditions)."""
    bordered = without_border(formula)
    rest = bordered.formula
    bounded = not any(_decides_at_the_end(test) for test in _tests(rest))
    found = mapped(rest, lambda node: _count_rounds(node, bounded))
    if found is rest or written_out(found) > limit:
        return formula
    return bordered.around(found)


def _tests(formula: ast.Formula) -> Iterator[Test]:
    """The conditions under AND of all FILTERs."""
    for node in walk(formula):
        if isinstance(node, ast.Filter):
            yield from conjuncts(as_test(node.condition))


def _decides_at_the_end(test: Test) -> bool:
    """True for a condition with an aggregate, but for COUNT against a number."""
    return _counts(test) is None and any(True for leaf in leaves(test) for _ in aggregates_of(leaf.condition))


def _count_rounds(node: ast.Formula, bounded: bool) -> ast.Formula:
    """A FILTER without the conditions that its formula can express by rounds; any other formula as it is.
    `bounded`: rounds joined by `->` may have a new upper bound."""
    if not isinstance(node, ast.Filter):
        return node
    child, kept = node.child, list[Test]()
    tests = conjuncts(as_test(node.condition))
    for test in tests:
        counts = _counts(test)
        if counts is not None and counts[0] not in defined_names(child):
            counts = None  # it is decided by a part around this one
        found = None if counts is None else _with_rounds(child, *counts, bounded)
        if found is None:
            kept.append(test)
        else:
            child = found
    if len(kept) == len(tests):
        return node
    if not kept:
        return as_one_event(child)
    together = kept[0]
    for test in kept[1:]:
        together = All(together, test)
    return dataclasses.replace(node, child=child, condition=write(together))


def _counts(test: Test) -> tuple[str, str, Fraction] | None:
    """The variable, the symbol and the number of `COUNT(v) symbol number`; None for other conditions."""
    if isinstance(test, All | Any):
        return None
    condition, negated = test.condition, False
    if isinstance(condition, ast.Not):
        condition, negated = condition.child, True  # COUNT is never NULL
    match condition:
        case ast.Compare(symbol, ast.Call("COUNT", (ast.Variable(name),)), ast.Number(bound)):
            pass
        case ast.Compare(symbol, ast.Number(bound), ast.Call("COUNT", (ast.Variable(name),))):
            symbol = COMPARISONS[symbol].mirror
        case _:
            return None
    if test.variables != {name} or not math.isfinite(bound):
        return None
    return name, COMPARISONS[symbol].negation if negated else symbol, Fraction(bound)


def _with_rounds(
    node: ast.Formula, variable: str | None, symbol: str, bound: Fraction, bounded: bool
) -> ast.Formula | None:
    """`node` with as many rounds as `COUNT(variable) symbol bound` asks for; None if no loop decides it. Without a
    variable all events of `node` are counted."""
    if variable is not None and variable not in defined_names(node):
        return node
    inside: tuple[ast.Formula, ...]
    match node:
        case ast.Filter() | ast.Either():
            inside = children(node)
        case ast.As(child, name):
            inside, variable = (child,), None if name.text == variable else variable
        case ast.Sequence() | ast.Conjunction():
            parts: tuple[ast.Formula, ...] = children(node)
            inside = tuple(part for part in parts if variable is None or variable in defined_names(part))
            if len(inside) != 1:
                return None
        case ast.Repeat():
            return _rounds(node, variable, symbol, bound, bounded)
        case _:
            return None
    changed = {id(part): _with_rounds(part, variable, symbol, bound, bounded) for part in inside}
    new = [changed.get(id(part), part) for part in children(node)]
    return None if any(part is None for part in new) else with_children(node, [part for part in new if part])


def _rounds(node: ast.Repeat, variable: str | None, symbol: str, bound: Fraction, bounded: bool) -> ast.Formula | None:
    """A loop with those of its rounds that COUNT selects; None if there are none, or if rounds may take different
    numbers of events."""
    least, most = _events_of(node.child, variable)
    if least != most or not 1 <= least < math.inf or node.low < 1 or node.until is not None:
        return None
    rounds = (node.low, math.inf if node.high is None else node.high)
    ranges = [_common(rounds, part) for part in _ranges_of(symbol, bound / int(least))]
    found = [_loop(node, part) for part in ranges if part[0] <= part[1]]
    if node.skip is Skip.NEXT and not _is_chosen_alike(node, found, bounded):
        return None
    if len(found) == 2:
        return ast.Either(found[0], fresh(found[1]), span=node.span)
    return found[0] if found else None


def _is_chosen_alike(node: ast.Repeat, found: list[ast.Repeat], bounded: bool) -> bool:
    """True if a run of `->` prefers the same with the new bounds: at an event that COUNT rejects it goes on waiting."""
    if len(found) != 1:
        return False
    low, high = found[0].low, found[0].high
    if high == node.high:
        return True
    return bounded and high is not None and high - low <= _CHOICES and _events_of(node.child, None) == (1, 1)


def _ranges_of(symbol: str, number: Fraction) -> tuple[_Rounds, ...]:
    """The n with `n symbol number`, in ranges."""
    floor, ceiling = math.floor(number), math.ceil(number)
    match symbol:
        case ">=":
            return ((ceiling, math.inf),)
        case ">":
            return ((floor + 1, math.inf),)
        case "<=":
            return ((1, floor),)
        case "<":
            return ((1, ceiling - 1),)
        case "=":
            return ((ceiling, floor),)
    return ((1, ceiling - 1), (floor + 1, math.inf)) if floor == ceiling else ((1, math.inf),)


def _common(one: _Rounds, two: _Rounds) -> _Rounds:
    return max(one[0], two[0]), min(one[1], two[1])


def _loop(node: ast.Repeat, rounds: _Rounds) -> ast.Repeat:
    low, high = rounds
    most = None if high == math.inf else int(high)
    return node if (low, most) == (node.low, node.high) else dataclasses.replace(node, low=low, high=most)


def _events_of(node: ast.Formula, variable: str | None) -> _Range:
    """The numbers of events that `variable` takes in a formula, or all its variables; without a bound if unsure."""

    def count(part: ast.Formula, below: list[tuple[_Range, _Range]]) -> tuple[_Range, _Range]:
        """Of the variable, and of all events."""
        match part:
            case ast.EventType() | ast.Without():
                own = int(variable in defined_names(part))
                return (own, own), (1, 1)
            case ast.As(_, name) if name.text == variable:
                return below[0][1], below[0][1]
        own_ranges, all_ranges = zip(*below, strict=True)
        return _together(part, own_ranges), _together(part, all_ranges)

    own, every = fold(node, count, lambda part: () if isinstance(part, ast.Without) else taking(part))
    return every if variable is None else own


def _together(part: ast.Formula, ranges: tuple[_Range, ...]) -> _Range:
    """The numbers for a formula, of those for its children."""
    lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
    match part:
        case ast.Either():
            return min(lows), max(highs)
        case ast.Repeat(_, low, high):
            return low * lows[0], highs[0] * (math.inf if high is None else high) if highs[0] else 0
        case ast.Conjunction() if sum(high > 0 for high in highs) > 1:
            return max(lows), math.inf  # parts may share events
    return sum(lows), sum(highs)


def written_out(formula: ast.Formula) -> float:
    """An upper bound of the events of a formula with its repetitions, and the ORs of its FILTERs, written out; for a
    conjunction, of its pairs of states."""

    def size(part: ast.Formula, below: list[float]) -> float:
        match part:
            case ast.EventType() | ast.Without():
                return 1
            case ast.Repeat(_, low, high):
                return below[0] * max(1, low if high is None else high)
            case ast.Conjunction():
                return math.prod(events + 2 for events in below)
            case ast.Filter(_, condition):
                return below[0] * fold(as_test(condition), _alternatives)
        return sum(below)

    return fold(formula, size, lambda part: () if isinstance(part, ast.Without) else taking(part))


def _alternatives(test: Test, below: list[int]) -> int:
    match test:
        case All():
            return below[0] * below[1]
        case Any():
            return below[0] + below[1]
    return 1
