"""ORDER BY with LIMIT without a list of all matches: what the events of a match add to its keys.

A key that is a sum of terms, each of one variable, is a sum over the events that a match takes. The engine then finds
the matches whose sums are the greatest (`spaseq.core.engine.node_best`), over the nodes that matches share. They are a
few more than LIMIT says: all that may tie with the last one. `ceql.results.ordering` sorts these as any others. What an
event adds is not known if it is NULL, or no number that is safe to add: then its matches are all found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ceql.expressions.vectorized import operand
from ceql.operators.functions import FUNCTIONS
from ceql.results.bindings import Bindings
from ceql.results.history import History
from ceql.results.segments import comparable
from ceql.results.selected import events_at
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import attributes_of, calls_of, is_plain, parts, variables_of
from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL
from spaseq.core.engine import MatchBatch, Program
from spaseq.core.errors import EventError
from spaseq.core.events.columns import Column, DurationColumn, NumberColumn, TimeColumn
from spaseq.core.integers import different

if TYPE_CHECKING:
    from spaseq.core.engine.kernels.sums.layout import Nodes
    from spaseq.core.engine.node_best import NodeBest

_PLACED: Final = 4
"""The most positions that decide between ties over nodes; `Ordering` compares the others."""
MOST: Final = 1 << 12
"""A greater LIMIT is not ranked: each match is compared with those that are kept."""
_EXACT: Final = float(1 << 53)
"""Doubles add up whole numbers exactly below it."""
_WHOLE: Final = 1 << 60
"""Whole numbers from here on may leave 64 bits."""
_FEW: Final = 6
"""Sums of more terms are taken to be rounded."""
_DIGITS: Final = 9
"""Decimal digits behind the point of numbers that are known to be apart."""
_REAL: Final = 1e300
"""Doubles from here on may leave their range."""


@dataclass(frozen=True, slots=True)
class Term:
    """`factor` times an expression of the events of one variable."""

    factor: int | float
    variable: str
    expression: ast.Expression

    @property
    def is_bare(self) -> bool:
        """True for an attribute or minus one: nothing is computed."""
        return isinstance(self.expression, ast.Attribute) and abs(self.factor) == 1


@dataclass(frozen=True, slots=True)
class Sum:
    """A key as a sum of terms. `constant` is how much its constants may be. `whole` is true if these and all factors
    are whole numbers, and no term calls a function. `size` is the number of its parts, `reach` the greatest factor that
    some step of it may have. `free` are the terms of which the matches of one event may have different ones: all but
    those of the last event."""

    terms: tuple[Term, ...]
    constant: float
    whole: bool
    size: int
    reach: float
    free: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ranks:
    """The first keys of ORDER BY, as sums, with -1 for each of which the least comes first, else 1. If these are all
    keys, `placed` of the positions of a match decide next."""

    sums: tuple[Sum, ...]
    signs: tuple[int, ...]
    placed: int
    limit: int


def find_ranks(order: ast.Order, limit: int | None, program: Program, labelled: CEA) -> Ranks | str:
    """The keys that the best matches of an event are found by, or the reason for which all are listed. `program`: that
    whose matches are ordered, `labelled` the automaton of its valuations."""
    if limit is None:
        return "without LIMIT all are reported"
    if not 0 < limit <= MOST:
        return f"LIMIT is 0 or above {MOST:,}"
    if program.why_listed:
        return program.why_listed
    if not all(t.marks for t in program.cea.transitions[INITIAL]):
        return "a match may begin with an event that is not in it"
    sums = list[Sum]()
    for key in order.keys:
        found = _sum_of(key, labelled)
        if isinstance(found, str):
            if not sums:
                return found
            break
        sums.append(found)
    signs = tuple(1 if key.descending else -1 for key in order.keys[: len(sums)])
    placed = _places(program.cea) if len(sums) == len(order.keys) else 0
    return Ranks(tuple(sums), signs, placed, limit)


def _sum_of(key: ast.Key, cea: CEA) -> Sum | str:
    """The key as a sum, or why it is none."""
    terms, constants = list[Term](), list[float]()
    text = print_expression(key.expression)
    if not _split(key.expression, 1, terms, constants):
        return f"{text} is no sum of terms of one variable each"
    if not terms:
        return f"{text} reads no variable"
    for variable in dict.fromkeys(term.variable for term in terms):
        if not _takes_one(cea, variable):
            return f"{variable} may have no event or several"
    every, reach = list(parts(key.expression)), 1.0
    for part in every:
        reach *= max(1.0, abs(part.value)) if isinstance(part, ast.Number) else 1.0
    whole = all(type(number) is int for number in (*constants, *(term.factor for term in terms)))
    whole = whole and not any(True for _ in calls_of(key.expression))
    free = tuple(number for number, term in enumerate(terms) if not _takes_last(cea, term.variable))
    return Sum(tuple(terms), float(sum(constants)), whole, len(every), reach, free)


def _split(node: ast.Expression, factor: int | float, terms: list[Term], constants: list[float]) -> bool:
    """Add the terms of `factor` times an expression; False if it has others."""
    variables = set(variables_of(node))
    number = _number(node)
    if number is not None:
        constants.append(abs(factor * number))
        return True
    match node:
        case ast.Negate(child):
            return _split(child, -factor, terms, constants)
        case ast.Arithmetic("+" | "-" as sign, left, right):
            both = _split(left, factor, terms, constants)
            return both and _split(right, factor if sign == "+" else -factor, terms, constants)
        case ast.Arithmetic("*", left, right) if (by := _number(right)) is not None:
            return _split(left, factor * by, terms, constants)
        case ast.Arithmetic("*", left, right) if (by := _number(left)) is not None:
            return _split(right, factor * by, terms, constants)
    (variable,) = variables if len(variables) == 1 else ("",)
    own = all(a.variable is not None for a in attributes_of(node)) and is_plain(node)
    if (
        not variable
        or isinstance(node, ast.Condition)
        or not own
        or not all(call.function in FUNCTIONS for call in calls_of(node))
    ):
        return False
    terms.append(Term(factor, variable, node))
    return True


def _number(node: ast.Expression) -> int | float | None:
    match node:
        case ast.Number(value):
            return value
        case ast.Negate(child):
            inner = _number(child)
            return None if inner is None else -inner
    return None


def _takes_one(cea: CEA, variable: str) -> bool:
    """True if the variable takes one event in each match. O(transitions)."""
    labels = cea.labels or (frozenset[str](),)
    todo = [(INITIAL, 0)]
    seen = set(todo)
    while todo:
        state, taken = todo.pop()
        for t in cea.transitions[state]:
            after = taken + (t.marks and variable in labels[t.label])
            if after > 1 or (t.target == ACCEPT and after != 1):
                return False
            if t.target != ACCEPT and (t.target, after) not in seen:
                seen.add((t.target, after))
                todo.append((t.target, after))
    return True


def _takes_last(cea: CEA, variable: str) -> bool:
    """True if the variable takes the last event of each match."""
    labels = cea.labels or (frozenset[str](),)
    last = [t for out in cea.transitions for t in out if t.target == ACCEPT]
    return all(t.marks and variable in labels[t.label] for t in last)


def _places(cea: CEA) -> int:
    """The number of positions of a match that decide between ties, the start first. The next ones do if all runs in a
    state have taken as many events. The last one is the same for all. O(transitions)."""
    taken = {INITIAL: 0}
    todo = [INITIAL]
    while todo:
        state = todo.pop()
        for t in cea.transitions[state]:
            after = taken[state] + t.marks
            if taken.setdefault(t.target, after) != after:
                return 1
            if t.target != ACCEPT and after == taken[t.target] and t.target not in todo and t.target != state:
                todo.append(t.target)
    return min(max(taken.get(ACCEPT, 1) - 1, 1), _PLACED)


class Ranking:
    """Finds the first matches of each event of one evaluation. `bindings` and `labels` as of `Ordering`."""

    def __init__(
        self, ranks: Ranks, program: Program, bindings: Bindings | None, labels: tuple[frozenset[str], ...]
    ) -> None:
        self._program = program
        self._ranks = ranks
        self._bindings = bindings
        self._terms = [(number, term) for number, sum_ in enumerate(ranks.sums) for term in sum_.terms]
        self._takes = [np.array([term.variable in label for label in labels], bool) for _, term in self._terms]
        self._attributes = tuple(dict.fromkeys(a.name for _, t in self._terms for a in attributes_of(t.expression)))
        self._kinds: dict[int, tuple[str, int]] = {}  # by sum: the kind of its terms, and what times count from
        self._least = np.full(len(self._terms), np.inf)
        self._greatest = np.full(len(self._terms), -np.inf)
        self._unit = np.full(len(self._terms), np.inf)
        self._digits = np.zeros(len(self._terms), np.int64)
        self._wide = np.zeros(len(self._terms), bool)
        self._best: NodeBest | None = None

    @property
    def arrays(self) -> list[np.ndarray]:
        """Those in memory."""
        return [] if self._best is None else self._best.arrays

    def rank(self, found: Iterable[MatchBatch], history_of: Callable[[MatchBatch], History]) -> Iterator[MatchBatch]:
        """Matches in place of nodes: of each event the first ones, all that may tie with the last one, and maybe
        others, in no order."""
        from spaseq.core.engine.node_best import NodeBest  # loads the kernels

        ranks = self._ranks
        for part in found:
            if part.nodes is None:
                yield part
                continue
            if self._best is None:
                values = len(ranks.sums) + ranks.placed
                self._best = NodeBest(self._program, values, ranks.limit, ranks.placed)
            which, weights = self._weigh(part.nodes, history_of(part).about(part))
            used, slack = self._precision()
            labelled = self._program.labels is not None
            yield from self._best.find(part.nodes, which, weights, used, slack, labelled=labelled)

    def _weigh(self, nodes: Nodes, history: History) -> tuple[np.ndarray, np.ndarray]:
        """The row of weights that each node adds, and these weights: int64 (nodes,), float64 (rows, values)."""
        marks = np.flatnonzero(nodes.pairs[:, 1] < 0)
        places, own = different(-1 - nodes.pairs[marks, 1])
        positions, labels = places >> nodes.bits, places & ((1 << nodes.bits) - 1)
        if self._bindings is not None and self._program.labels is None:
            labelled = MatchBatch(positions, positions, np.arange(len(positions) + 1), positions)
            by_type = self._bindings.label(labelled, history).labels
            labels = labels if by_type is None else by_type
        which = np.zeros(len(nodes.pairs), np.int64)
        which[marks] = own
        weights = np.zeros((len(places), len(self._ranks.sums) + self._ranks.placed))
        with np.errstate(all="ignore"):
            for number, (place, _) in enumerate(self._terms):
                rows = np.flatnonzero(self._takes[number][labels])
                if len(rows):
                    events = events_at(history, positions[rows], self._attributes)
                    weights[rows, place] += self._values(number, events)
        return which, weights

    def _values(self, number: int, events: Any) -> np.ndarray:
        """The numbers that these events add by a term: float64 (n,), infinity if one is not known. Notes how far sums
        are exact."""
        place, term = self._terms[number]
        sum_, sign = self._ranks.sums[place], self._ranks.signs[place]
        unknown = np.full(len(events), np.inf)
        try:
            column = operand(term.expression, events)
        except EventError:  # it is the error of a match
            return unknown
        if not isinstance(column, NumberColumn | TimeColumn | DurationColumn):
            return unknown
        values, known = comparable(column) or (unknown, unknown)
        base = self._base(number, column, values, known)
        if base is None:
            return unknown
        if values.dtype.kind == "f":
            found = term.factor * values
            safe = known & (np.abs(values) < _REAL / sum_.reach)
            self._digits[number] = _digits_of(values[safe], int(self._digits[number]))
            most = np.abs(found[safe]).max(initial=0)
            self._wide[number] |= abs(term.factor) != 1 and bool(most > _EXACT * _unit_of(values[safe]))
        else:
            most = _WHOLE / len(sum_.terms) / sum_.reach
            safe = known & (np.abs(values.astype(np.float64)) < (4 * _WHOLE if column.kind == "time" else most))
            found = term.factor * np.where(safe, values.astype(np.int64) - base, 0).astype(np.float64)
            safe &= np.abs(found) < 8 * _WHOLE / len(sum_.terms)
            self._wide[number] |= bool((np.abs(found[safe]) >= _EXACT).any())
        safe_ones = found[safe]
        self._least[number] = min(self._least[number], safe_ones.min(initial=np.inf))
        self._greatest[number] = max(self._greatest[number], safe_ones.max(initial=-np.inf))
        self._unit[number] = min(self._unit[number], _unit_of(safe_ones))
        return np.where(safe, sign * found, np.inf)

    def _base(self, number: int, column: Column, values: np.ndarray, known: np.ndarray) -> int | None:
        """The number that the values of a term count from; None if they do not go with what the sum has had, and are
        not known to be a sum."""
        place, _ = self._terms[number]
        sum_ = self._ranks.sums[place]
        if not known.any():
            return 0
        if place not in self._kinds:
            self._kinds[place] = column.kind, int(values[known][0]) if column.kind == "time" else 0
        kind, base = self._kinds[place]
        if kind != column.kind:
            return None
        if kind != "number":
            factors = [term.factor for term in sum_.terms]
            plain = all(term.is_bare for term in sum_.terms) and sum_.size == 2 * len(factors) - 1
            if not plain or (kind == "time" and factors not in ([1], [1, -1])):
                return None
        return base

    def _precision(self) -> tuple[int, float]:
        """The number of numbers that decide, and twice the error of the last one: 0 if all are exact."""
        at = 0
        for used, sum_ in enumerate(self._ranks.sums, 1):
            own = slice(at, at + len(sum_.terms))
            at = own.stop
            some = self._least[own] <= self._greatest[own]
            least, greatest = np.where(some, self._least[own], 0.0), np.where(some, self._greatest[own], 0.0)
            if len(sum_.terms) == 1 and sum_.terms[0].is_bare and sum_.size <= 2:
                exact = True
            else:
                exact = sum_.whole and _adds_exactly(least, greatest, float(self._unit[own].min()), sum_.constant)
            if not exact or self._wide[own].any():
                scale = float(np.maximum(-least, greatest).sum()) + sum_.constant
                wrong = (8 + 4 * (sum_.size + len(sum_.terms))) * scale / _EXACT + 1e-320
                if not self._is_apart(own.start, sum_, 4 * wrong):
                    return used, 2 * wrong
        return len(self._ranks.sums) + self._ranks.placed, 0.0

    def _is_apart(self, first: int, sum_: Sum, most: float) -> bool:
        """True if different sums of one event are so by more than `most`, and equal sums are of the same numbers. Then
        only one term is free, and its values are decimal numbers of few digits."""
        if len(sum_.free) > 1 or self._wide[first : first + len(sum_.terms)].any():
            return False
        return all(
            self._digits[first + i] <= _DIGITS and abs(sum_.terms[i].factor) * 10.0 ** -self._digits[first + i] > most
            for i in sum_.free
        )


def _digits_of(values: np.ndarray, least: int) -> int:
    """The number of decimal digits behind the point, `least` or more, with which all of these doubles are written; one
    above _DIGITS if they need more. Two different ones of these are about a unit of the last digit apart, or more."""
    for digits in range(least, _DIGITS + 1):
        scaled = np.rint(values * 10.0**digits)
        if (np.abs(scaled) < _EXACT).all() and (scaled / 10.0**digits == values).all():
            return digits
    return _DIGITS + 1


def _unit_of(values: np.ndarray) -> float:
    """The greatest power of 2 that all values are multiples of; infinity for zeros."""
    fractions, exponents = np.frexp(values[values != 0])
    digits = (fractions * _EXACT).astype(np.int64)
    return float(np.ldexp((digits & -digits).astype(np.float64), exponents - 53).min(initial=np.inf))


def _adds_exactly(least: np.ndarray, greatest: np.ndarray, unit: float, constant: float) -> bool:
    """True if doubles hold all sums of some of these terms, multiples of `unit` each: no step of any order rounds. The
    sum of one term is the term."""
    if constant:
        unit = min(unit, 1.0)
    count = len(least)
    if count > _FEW:
        return False
    for chosen in range(1, 1 << count):
        own = [i for i in range(count) if chosen >> i & 1]
        if len(own) > 1 or constant:
            most = max(-float(least[own].sum()), float(greatest[own].sum())) + constant
            if most > _EXACT * unit:
                return False
    return True
