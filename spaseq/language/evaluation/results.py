"""From matches to results: SELECT expressions, DISTINCT, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET.

A SELECT expression is computed of each match alone, as it is found. The other clauses range over the solutions of one
tumbling window (of the whole stream without WITHIN): the pairs of a time and a mapping (Definition 16), each once. They
wait until the window is over.

`finish` is a pure function of the matches of one window, and can be used wherever those are together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from spaseq.engine import Window
from spaseq.gpm import ROUNDS, Mapping, freeze, list_literal
from spaseq.gpm.serialise import nquads_term
from spaseq.language.evaluation.history import Made, Pool
from spaseq.language.evaluation.match import Match
from spaseq.language.semantics.clauses import Clauses

__all__ = ["Results", "finish", "term_order"]


def finish(clauses: Clauses, matches: Sequence[Match]) -> list[Match]:
    """The results of one window, given all its matches in any order.

    Of the matches of a solution the least by (start, positions) stands for it. Solutions are in order of (end, start,
    positions, terms), and results in that of ORDER BY, where equal ones stay as they are: so what DISTINCT, LIMIT and
    OFFSET take depends on the matches alone, and not on how they were found. A result of a group shows the interval,
    the positions and the events of the matches that stand for its solutions.
    """
    solutions = _standing(matches)
    if clauses.groups and clauses.plan is not None:
        groups = clauses.plan.groups([match.bindings for match in solutions])
        rows = [row for group in groups for row in _rows(clauses, [solutions[i] for i in group])]
        rows.sort(key=lambda row: (row[0].end, row[0].start))
    else:
        rows = [row for match in solutions for row in _rows(clauses, [match])]
    found = [(_shown(match, bindings, clauses.select), keys) for match, bindings, keys in rows]
    if clauses.distinct:
        first: dict[Mapping, tuple[Match, tuple[Any, ...]]] = {}
        for match, keys in found:
            first.setdefault(freeze(match.bindings), (match, keys))
        found = list(first.values())
    if clauses.plan is not None and clauses.ordered:
        found = clauses.plan.sort(found, lambda row: tuple(row[1]))
    last = None if clauses.limit is None else clauses.offset + clauses.limit
    return [match for match, _ in found[clauses.offset : last]]


def _standing(matches: Iterable[Match]) -> list[Match]:
    """The match that stands for each solution, in order."""
    found: dict[tuple[int, Mapping], Match] = {}
    for _, equal in groupby(sorted(matches, key=_place), _place):
        pairs = [(freeze(match.bindings), match) for match in equal]
        for mapping, match in sorted(pairs, key=lambda pair: term_order(pair[0])) if len(pairs) > 1 else pairs:
            found.setdefault((match.end, mapping), match)
    return list(found.values())


def _place(match: Match) -> tuple[int, int, tuple[int, ...]]:
    return match.end, match.start, match.positions


def term_order(mapping: Mapping) -> tuple[tuple[str, str, str], ...]:
    """By this the mappings of one place are ordered: the names, kinds and texts of their terms."""
    return tuple((name, type(term).__name__, _text(term)) for name, term in mapping)


def _text(value: Any) -> str:
    """A term in N-Triples syntax, or the mappings of rounds."""
    if isinstance(value, tuple):
        return " ".join(f"{name} {nquads_term(term)}" for taken in value for name, term in taken)
    return nquads_term(value)


def _rows(clauses: Clauses, matches: Sequence[Match]) -> Iterator[tuple[Match, dict[str, Any], tuple[Any, ...]]]:
    """The rows computed of one match, or of a group: with the match, all variables, and the keys of ORDER BY."""
    if clauses.plan is None:
        for match in matches:
            yield match, _with_lists(clauses, match.bindings), ()
        return
    solutions = [_with_lists(clauses, match.bindings) for match in matches]
    for bindings, keys in clauses.plan.rows(solutions):
        yield _together(matches), bindings, keys


def _with_lists(clauses: Clauses, bindings: dict[str, Any]) -> dict[str, Any]:
    """The bindings with the lists of `(?x+ AS ?xs)`: the values of the rounds that bind ?x, in order."""
    if not clauses.lists:
        return bindings
    rounds = [dict(taken) for taken in bindings.get(ROUNDS, ())]
    lists = {name: list_literal([taken[x] for taken in rounds if x in taken]) for name, x in clauses.lists}
    return bindings | lists


def _together(matches: Sequence[Match]) -> Match:
    """One match for a group."""
    if len(matches) == 1:
        return matches[0]
    at = sorted({pair for match in matches for pair in zip(match.positions, match.times, strict=True)})
    events = tuple({id(event): event for match in matches for event in match.events}.values())
    return Match(
        min(match.start for match in matches),
        max(match.end for match in matches),
        tuple(position for position, _ in at),
        {},
        tuple(time for _, time in at),
        events,
    )


def _shown(match: Match, bindings: dict[str, Any], select: tuple[str, ...]) -> Match:
    return replace(match, bindings={name: bindings[name] for name in sorted(select) if name in bindings})


class Results:
    """The results of one evaluation: `push` takes matches in order of their ends, as they are found."""

    def __init__(self, clauses: Clauses, window: Window) -> None:
        self._clauses = clauses
        self._window = window
        self._pending: list[Match] = []
        self._answered = False

    @property
    def passes(self) -> bool:
        """Whether matches are the results, as they are."""
        clauses = self._clauses
        return not (clauses.by_window or clauses.ask or clauses.lists or clauses.plan is not None)

    @property
    def waits(self) -> bool:
        """Whether time alone may make something known: a window that is over."""
        return bool(self._pending)

    def push(self, matches: Iterable[Match], now: int) -> Iterator[Match]:
        """What the matches make known, `now` being the latest time (ns) that has come. All of one end in one call."""
        if self._clauses.by_window:
            for match in matches:
                yield from self._over(match.time)
                self._pending.append(match)
            yield from self._over(now)
        elif self._clauses.ask:
            yield from self._first(matches)
        elif self._clauses.plan is None and not self._clauses.lists:
            yield from matches
        else:
            yield from self._each(matches)

    def close(self, matches: Iterable[Match]) -> Iterator[Match]:
        """The rest, given the last matches."""
        last = list(matches)
        yield from self.push(last, last[-1].time if last else 0) if last else ()
        pending, self._pending = self._pending, []
        if pending:
            yield from finish(self._clauses, pending)

    def _over(self, now: int) -> Iterator[Match]:
        """The results of the pending window, if it is over at `now`."""
        if not self._pending or self._number(self._pending[0].time) == self._number(now):
            return
        pending, self._pending = self._pending, []
        yield from finish(self._clauses, pending)

    def _number(self, time: int) -> int:
        return self._window.number(time)

    def _each(self, matches: Iterable[Match]) -> Iterator[Match]:
        seen: set[tuple[int, tuple[int, ...], Mapping]] = set()
        end = -1
        for match in matches:
            if match.end != end:
                seen.clear()
                end = match.end
            for row, bindings, _ in _rows(self._clauses, [match]):
                shown = _shown(row, bindings, self._clauses.select)
                key = (shown.start, shown.positions, freeze(shown.bindings))
                if key not in seen:
                    seen.add(key)
                    yield shown

    def _first(self, matches: Iterable[Match]) -> Iterator[Match]:
        """The match that answers ASK, once: the least of those with the first end."""
        if self._answered:
            return
        for _, found in groupby(matches, attrgetter("end")):
            self._answered = True
            yield min(found, key=_place)
            return

    def snapshot(self, pool: Pool) -> Any:
        """What waits for its window to be over, as plain values and terms; events are put into `pool`."""
        return [match.snapshot(pool) for match in self._pending], self._answered

    def restore(self, state: Any, events: Made) -> None:
        """The opposite of `snapshot`; `events` gives those of the pool."""
        pending, self._answered = state
        self._pending = [Match.restore(match, events) for match in pending]
