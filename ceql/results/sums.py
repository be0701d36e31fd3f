"""Aggregates over all matches that end at an event: what events add to them, and their values.

The engine adds and multiplies rows of numbers (`spaseq.core.engine.kernels.sums`); here is what the numbers mean. Each
argument of an aggregate has a `_Term`: how many values there are, and as far as an aggregate asks for it their sum, the
least and the greatest. Whole numbers are kept apart from doubles, and positive ones from negative ones, so that whole
numbers stay exact. Doubles are added in another order than match by match, so a sum may differ in its last digits.

`ceql.results.folding` makes such rows of nodes that matches share (`Program.adds_nodes`). If matches must be listed
after all (`Program.listed`), `fold_matches` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ceql.expressions.vectorized import operand
from ceql.operators.columns import arrow_from
from ceql.operators.functions import FUNCTIONS, plural
from ceql.operators.times import nearest
from ceql.operators.values import KIND_WORDS, kind_of, mismatch
from ceql.semantics.grouping import EXTREMES_HINT, EXTREMES_OF
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import aggregates_of, attributes_of, variables_of
from spaseq.core.engine import MatchBatch
from spaseq.core.engine.kernels.sums.layout import MOST, NO_LEAST, Rows, Takes
from spaseq.core.engine.program.sums import Labels, Sums
from spaseq.core.errors import EventError
from spaseq.core.events import Column, Duration, EventBatch, Instant, NumberColumn
from spaseq.core.events.columns import DurationColumn, TimeColumn, getter_of
from spaseq.core.snapshot import expect

_SAFE: Final = 1 << 62
_SPANS: Final[dict[str, Callable[[int], Any]]] = {"duration": Duration, "time": Instant}
_EXTREMES: Final = ("MIN", "MAX")
NONE: Final = -1
"""The place of a number that a term does not have."""


@dataclass(frozen=True, slots=True)
class _Term:
    """The numbers of one argument: their places in a row, NONE for one that no aggregate asks for.

    `known`: how many values. `real`: how many of them are doubles. `plus`, `minus`: the sums of the positive and of the
    negative whole numbers. `least`, `least_real`: the least whole number, and the least double as an int64 of the same
    order; `greatest` and `greatest_real`: the same of the complements. `total`: the sum of the doubles, in `floats`.
    """

    variable: str
    argument: ast.Expression | None
    functions: frozenset[str]
    known: int
    real: int = NONE
    plus: int = NONE
    minus: int = NONE
    least: int = NONE
    least_real: int = NONE
    greatest: int = NONE
    greatest_real: int = NONE
    total: int = NONE

    @property
    def places(self) -> list[int]:
        """The places in `ints`."""
        every = (self.known, self.real, self.plus, self.minus, self.least, self.least_real, self.greatest)
        return [place for place in (*every, self.greatest_real) if place != NONE]


class Summing:
    """The aggregates over matches in the columns of a query with GROUP BY, as `Summed` of the engine."""

    def __init__(self, query: ast.Query) -> None:
        calls = [call for column in query.selection.columns for call in aggregates_of(column.expression)]
        asked: dict[tuple[str, ast.Expression | None], set[str]] = {}
        for call in calls:
            (argument,) = call.arguments
            if not isinstance(argument, ast.EveryMatch):
                asked.setdefault(_key(argument), set()).add(call.function)
        self.totals: int = 1
        self.least: int = 0
        self.doubles: int = 0
        self.terms: dict[tuple[str, ast.Expression | None], _Term] = {}
        for key, functions in asked.items():
            self.terms[key] = self._term(key, frozenset(functions))
        self.terms = {key: self._shift(term) for key, term in self.terms.items()}

    def _term(self, key: tuple[str, ast.Expression | None], functions: frozenset[str]) -> _Term:
        """A term with the next free places; those of extremes are counted from 0 yet."""

        def next_of(name: str, wanted: bool) -> int:
            place: int = getattr(self, name)
            if wanted:
                setattr(self, name, place + 1)
            return place if wanted else NONE

        summed, low, high = bool(functions & {"SUM", "AVG"}), "MIN" in functions, "MAX" in functions
        known = next_of("totals", True)
        real, plus, minus = (next_of("totals", wanted) for wanted in (summed or low or high, summed, summed))
        least, least_real, greatest, greatest_real = (next_of("least", wanted) for wanted in (low, low, high, high))
        return _Term(key[0], key[1], functions, known, real, plus, minus, least, least_real, greatest, greatest_real,
                     next_of("doubles", summed))  # fmt: skip

    def _shift(self, term: _Term) -> _Term:
        """The term with the places of extremes behind those of sums."""
        names = ("least", "least_real", "greatest", "greatest_real")
        places = {name: getattr(term, name) for name in names}
        return replace(term, **{n: p if p == NONE else p + self.totals for n, p in places.items()})

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that aggregates read."""
        return tuple(dict.fromkeys(term.variable for term in self.terms.values()))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that aggregates read."""
        arguments = (term.argument for term in self.terms.values() if term.argument is not None)
        return tuple(dict.fromkeys(a.name for argument in arguments for a in attributes_of(argument)))

    def takes(self, labels: Labels) -> Takes:
        """As of `Summed`."""
        every = labels or (frozenset[str](),)
        ints = np.zeros((len(every), self.totals + self.least), bool)
        floats = np.zeros((len(every), self.doubles), bool)
        for number, label in enumerate(every):
            for term in self.terms.values():
                if term.variable in label:
                    ints[number, term.places] = True
                    floats[number, [term.total] if term.total != NONE else []] = True
        return Takes(ints, floats)

    def kinds(self) -> list[list[Any]]:
        """The kind of the values of each term so far, None for none, and the number that sums count from."""
        return [[None, 0] for _ in self.terms]

    def read_kinds(self, kinds: Any) -> list[list[Any]]:
        """As of `Summed`."""
        expect(isinstance(kinds, list | tuple) and len(kinds) == len(self.terms), "a kind for each aggregate")
        for kind in kinds:
            expect(isinstance(kind, list | tuple) and len(kind) == 2, "a kind and a number for each aggregate")
            expect(kind[0] in (None, "number", *_SPANS) and type(kind[1]) in (int, type(None)), "a kind of values")
            expect(kind[1] is not None or kind[0] == "time", "a number that sums count from")
        return [list(kind) for kind in kinds]

    def no_sums(self) -> Sums:
        """No rows."""
        return Sums(*self.no_weights(0), kinds=frozen(self.kinds()))

    def weights(self, batch: Any, rows: np.ndarray, may: np.ndarray, labels: Labels, kinds: list[list[Any]]) -> Rows:
        """As of `Summed`."""
        return self.weigh(lambda own: batch.events.take(rows[own]), may, labels, kinds)

    def weigh(
        self, events: Callable[[np.ndarray], EventBatch], may: np.ndarray, labels: Labels, kinds: list[list[Any]]
    ) -> Rows:
        """`weights` of as many events as `may` has rows; `events` gives some of them by their numbers."""
        found = self.no_weights(len(may))
        every = labels or (frozenset[str](),)
        for term, kind in zip(self.terms.values(), kinds, strict=True):
            takes = may[:, [term.variable in label for label in every]].any(axis=1)
            own = np.flatnonzero(takes)
            if not len(own):
                continue
            if term.argument is None:
                found.ints[own, term.known] = 1
            else:
                self._weigh(term, operand(term.argument, events(own)), own, kind, found)
        return found

    def no_weights(self, count: int) -> Rows:
        """Numbers of so many events that add nothing."""
        found = Rows(np.zeros((count, self.totals + self.least), np.int64), np.zeros((count, self.doubles)))
        found.ints[:, self.totals :] = NO_LEAST
        return found

    def _weigh(self, term: _Term, column: Column | None, own: np.ndarray, kind: list[Any], found: Rows) -> None:
        """Put the values of a column, of the events `own`, into `found`."""
        if column is None:
            return
        known, whole, ints, reals = _numbers(term, column, kind)
        found.ints[own, term.known] = known
        if term.real != NONE:
            found.ints[own, term.real] = known & ~whole
        if term.plus != NONE:
            if kind[0] == "time":
                if whole.any() and kind[1] is None:
                    kind[1] = int(ints[whole][0])
                ints_from = ints - (kind[1] or 0)
            else:
                ints_from = ints
            found.ints[own, term.plus] = np.where(whole & (ints_from > 0), ints_from, 0)
            below = np.where(whole & (ints_from < 0), ints_from, 0)
            found.ints[own, term.minus] = np.where(below == -MOST - 1, MOST, -np.maximum(below, -MOST))
            found.floats[own, term.total] = np.where(known & ~whole, reals, 0.0)
        codes = _codes(reals)
        for place, place_real, sign in ((term.least, term.least_real, 0), (term.greatest, term.greatest_real, -1)):
            if place != NONE:
                found.ints[own, place] = np.where(whole, ints ^ sign, NO_LEAST)
                found.ints[own, place_real] = np.where(known & ~whole, codes ^ sign, NO_LEAST)

    # Values

    def values(self, call: ast.Call, sums: Sums) -> pa.Array:
        """The values of an aggregate, one for each row. NULL if there is no value, and if a whole number is beyond 64
        bits."""
        (argument,) = call.arguments
        counts = sums.ints[:, 0]
        if isinstance(argument, ast.EveryMatch):
            return pa.array(counts, mask=counts == MOST)
        number = list(self.terms).index(_key(argument))
        term, kind = self.terms[_key(argument)], sums.kinds[number]
        known = sums.ints[:, term.known]
        if call.function == "COUNT":
            return pa.array(known, mask=known == MOST)
        if call.function in _EXTREMES:
            return self._extremes(call.function == "MAX", term, kind[0], sums)
        return self._totals(call.function, term, kind, sums)

    def _totals(self, function: str, term: _Term, kind: Sequence[Any], sums: Sums) -> pa.Array:
        known, real, plus, minus = (sums.ints[:, place] for place in (term.known, term.real, term.plus, term.minus))
        beyond = (sums.ints[:, 0] == MOST) | (known == MOST) | (plus == MOST) | (minus == MOST)
        none = (known == 0) | beyond
        if function == "SUM" and kind[0] in (None, "number") and not real.any():
            return pa.array(plus - minus, mask=none)
        floats, found = sums.floats[:, term.total], list[Any]()
        columns = (column.tolist() for column in (none, known, real, plus, minus, floats))
        for missing, count, doubles, above, below, total in zip(*columns, strict=True):
            whole = above - below
            value = whole + total if doubles else whole
            if missing:
                found.append(None)
            elif kind[0] in _SPANS:
                start = (kind[1] or 0) if kind[0] == "time" else 0
                value = value if function == "SUM" else nearest(whole, count, start)
                found.append(_SPANS[kind[0]](value))
            else:
                value = value if function == "SUM" else value / count
                found.append(None if value != value else value)
        return arrow_from(found)

    def _extremes(self, greatest: bool, term: _Term, kind: str | None, sums: Sums) -> pa.Array:
        places = (term.greatest, term.greatest_real) if greatest else (term.least, term.least_real)
        sign = -1 if greatest else 0
        known, real = sums.ints[:, term.known], sums.ints[:, term.real]
        wholes, codes = (sums.ints[:, place] for place in places)
        has_whole, has_real = (known > real) | (wholes != NO_LEAST), real > 0
        wholes, reals = wholes ^ sign, _codes(codes ^ sign, back=True)
        if kind in (None, "number") and not has_real.any():
            return pa.array(wholes, mask=~has_whole)
        found, choose = list[Any](), max if greatest else min
        for whole, one, double, other in zip(*(a.tolist() for a in (has_whole, wholes, has_real, reals)), strict=True):
            values = [one] * whole + [other] * double
            value = choose(values) if values else None
            found.append(value if value is None or kind not in _SPANS else _SPANS[kind](value))
        return arrow_from(found)


def _key(argument: ast.Expression) -> tuple[str, ast.Expression | None]:
    (variable,) = set(variables_of(argument))
    return variable, None if isinstance(argument, ast.Variable) else argument


def _codes(reals: np.ndarray, back: bool = False) -> np.ndarray:
    """Doubles as int64 of the same order, or `back`."""
    bits = reals if back else np.ascontiguousarray(reals, np.float64).view(np.int64)
    codes = bits ^ ((bits >> 63) & MOST)
    return codes.view(np.float64) if back else codes


def _numbers(term: _Term, column: Column, kind: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """True for each value, true for each whole number, the whole numbers, and the doubles. Notes the kind in `kind`.
    Raises `EventError` for kinds that do not go together, or of which there is no such aggregate."""
    if not isinstance(column, NumberColumn | TimeColumn | DurationColumn):
        return _numbers_of_each(term, column, kind)
    count = len(column.values)
    known = np.ones(count, bool) if column.known is None else column.known
    if not known.any():
        return known, known, np.zeros(count, np.int64), np.zeros(count)
    _note(term, column.kind, kind)
    if not isinstance(column, NumberColumn) or column.values.dtype.kind != "f":
        return known, known, column.values.astype(np.int64), np.zeros(count)
    known = known & ~np.isnan(column.values)
    whole = np.zeros(count, bool) if column.whole is None else known & column.whole
    return known, whole, np.where(whole, column.values, 0.0).astype(np.int64), column.values


def _numbers_of_each(
    term: _Term, column: Column, kind: list[Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`_numbers`, value by value."""
    count = len(column.codes if hasattr(column, "codes") else column.values)
    known, whole, ints, reals = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, np.int64), np.zeros(count)
    get = getter_of(column)
    for row in range(count):
        value = get(row)
        if value is None or value != value:
            continue
        if term.functions <= {"COUNT"}:
            known[row] = True
            continue
        _note(term, kind_of(value), kind)
        known[row] = True
        if isinstance(value, int):
            if not -MOST - 1 <= value <= MOST:
                raise EventError(f"{value} is beyond 64 bits, and is aggregated over all matches")
            whole[row], ints[row] = True, value
        else:
            reals[row] = value
    return known, whole, ints, reals


def _note(term: _Term, found: str, kind: list[Any]) -> None:
    """Note the kind of a term's values."""
    for name in sorted(term.functions - {"COUNT"}):
        if name in _EXTREMES:
            fits, hint = found in EXTREMES_OF, EXTREMES_HINT
        else:
            fits, hint = FUNCTIONS[name].accepts(0, found), f"{name} is of {plural(FUNCTIONS[name].kind_at(0))}"
        if not fits:
            assert term.argument is not None
            problem = f"{name} of {print_expression(term.argument)} over all matches, which is {KIND_WORDS[found]}"
            raise EventError(problem, hint=hint)
    if term.functions <= {"COUNT"}:
        return
    if kind[0] is None:
        kind[0], kind[1] = found, None if found == "time" else 0
    elif kind[0] != found:
        raise mismatch(kind[0], found, "an aggregate over all matches")


# Matches that are listed


def fold_matches(
    summing: Summing, matches: MatchBatch, of: Callable[[str], tuple[np.ndarray, np.ndarray]],
    events: Callable[[np.ndarray], EventBatch], kinds: list[list[Any]],
) -> MatchBatch:  # fmt: skip
    """The rows of the matches in a list, one for each event at which some end. `of`: offsets and positions of the
    events that a variable took in each match; `events` gives events by their positions. O(events in matches)."""
    ends, own = np.unique(matches.end, return_inverse=True)
    rows = summing.no_weights(len(ends))
    _add_at(rows.ints[:, 0], own, np.ones(len(own), np.int64))
    for term, kind in zip(summing.terms.values(), kinds, strict=True):
        offsets, positions = of(term.variable)
        groups = np.repeat(own, np.diff(offsets))
        weights = summing.no_weights(len(positions))
        if term.argument is None:
            weights.ints[:, term.known] = 1
        elif len(positions):
            every = np.arange(len(positions))
            summing._weigh(term, operand(term.argument, events(positions)), every, kind, weights)
        _add_rows(summing, rows, groups, weights, term)
    return _of_rows(ends, Sums(*rows, kinds=frozen(kinds)))


def join_rows(summing: Summing, parts: Sequence[MatchBatch]) -> MatchBatch:
    """The rows of `fold_matches` for matches that came in several parts; events may have a row in each."""
    if len(parts) == 1:
        return parts[0]
    whole = MatchBatch.concat(parts)
    assert whole.sums is not None
    ends, own = np.unique(whole.end, return_inverse=True)
    if len(ends) == len(whole):
        return whole
    return _of_rows(ends, add_by_group(summing, whole.sums, own, len(ends)))


def add_by_group(summing: Summing, sums: Sums, own: np.ndarray, count: int) -> Sums:
    """The sums of the rows of each of `count` groups; `own`: the group of each row. O(rows)."""
    rows, weights = summing.no_weights(count), Rows(sums.ints, sums.floats)
    _add_at(rows.ints[:, 0], own, weights.ints[:, 0])
    for term in summing.terms.values():
        _add_rows(summing, rows, own, weights, term)
    return Sums(*rows, kinds=sums.kinds)


def frozen(kinds: list[list[Any]]) -> tuple[tuple[Any, ...], ...]:
    """The kinds as they are now."""
    return tuple(tuple(kind) for kind in kinds)


def _of_rows(ends: np.ndarray, sums: Sums) -> MatchBatch:
    return MatchBatch(ends, ends, np.arange(len(ends) + 1), ends, sums=sums)


def _add_rows(summing: Summing, rows: Rows, groups: np.ndarray, weights: Rows, term: _Term) -> None:
    """Add the numbers of a term to those of the groups."""
    for place in term.places:
        if place < summing.totals:
            _add_at(rows.ints[:, place], groups, weights.ints[:, place])
        else:
            np.minimum.at(rows.ints[:, place], groups, weights.ints[:, place])
    if term.total != NONE:
        with np.errstate(all="ignore"):
            np.add.at(rows.floats[:, term.total], groups, weights.floats[:, term.total])


def _add_at(totals: np.ndarray, groups: np.ndarray, values: np.ndarray) -> None:
    """Add values to their groups, up to MOST."""
    if float(values.sum(dtype=np.float64)) + float(totals.sum(dtype=np.float64)) < _SAFE:
        np.add.at(totals, groups, values)
        return
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        totals[group] = min(int(totals[group]) + value, MOST)
