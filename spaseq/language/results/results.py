"""From matches to results: SELECT expressions, DISTINCT, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET.

A SELECT expression is computed of each match alone, as it is found. The other clauses range over the solutions of one
tumbling window (of the whole stream without WITHIN): the pairs of a time and a mapping (Definition 16), each once. They
wait until the window is over. Without GROUP BY, aggregates have a group in each window that has an instant, if no match
is in it, too.

`finish` is a pure function of the matches of one window, and can be used wherever those are together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import numpy as np

from spaseq.core.engine import Window
from spaseq.core.snapshot import expect
from spaseq.gpm import Mapping, freeze
from spaseq.gpm.columnar.table import Space
from spaseq.gpm.serialise import nquads_term
from spaseq.language.results.columns import FoundColumns, rounds_text
from spaseq.language.results.computing import Computation
from spaseq.language.results.counted import Counting
from spaseq.language.results.gathered import Gathered, Rows, SpaceTerms, with_lists
from spaseq.language.results.history import Made, Pool, events_in_order
from spaseq.language.results.match import Match
from spaseq.language.semantics.clauses import Clauses
from spaseq.language.solving.instants import InstantBatch
from spaseq.rdf import DirectionalString
from spaseq.rdf.columns import TermTable


def finish(clauses: Clauses, matches: Sequence[Match]) -> list[Match]:
    """The results of one window, given all its matches in any order.

    Of the matches of a solution the least by (start, positions) stands for it. Solutions are in order of (end, start,
    positions, terms), and results in that of ORDER BY; equal ones stay as they are. So the choice of DISTINCT, LIMIT
    and OFFSET depends on the matches alone, not on the way they were found. A result of a group shows the interval, the
    positions and the events of the matches that stand for its solutions.
    """
    computation = Computation.of(clauses)
    if computation is None or not matches:
        return _finish_by_row(clauses, matches)
    gathered = Gathered(clauses.needed, clauses.rounds)
    gathered.add_matches(matches)
    return list(computation.results(gathered).found(gathered.terms))


def finish_empty(clauses: Clauses, position: int, time: int) -> list[Match]:
    """The result of a window without a match, of which this is the last instant: the group of no solutions."""
    assert clauses.plan is not None
    match = Match(position, position, (position,), {}, (time,), ())
    found = [_show(match, bindings, clauses.select) for bindings, _ in clauses.plan.rows([])]
    return found[clauses.offset : clauses.last]


def _finish_by_row(clauses: Clauses, matches: Sequence[Match]) -> list[Match]:
    """`finish` for clauses that are not computed as columns."""
    solutions = _standing(matches)
    if clauses.groups and clauses.plan is not None:
        groups = clauses.plan.groups([match.bindings for match in solutions])
        rows = [row for group in groups for row in _rows(clauses, [solutions[i] for i in group])]
        rows.sort(key=lambda row: (row[0].end, row[0].start))
    else:
        rows = [row for match in solutions for row in _rows(clauses, [match])]
    found = [(_show(match, bindings, clauses.select), keys) for match, bindings, keys in rows]
    if clauses.distinct:
        first: dict[Mapping, tuple[Match, tuple[Any, ...]]] = {}
        for match, keys in found:
            first.setdefault(freeze(match.bindings), (match, keys))
        found = list(first.values())
    if clauses.plan is not None and clauses.ordered:
        found = clauses.plan.sort(found, lambda row: tuple(row[1]))
    return [match for match, _ in found[clauses.offset : clauses.last]]


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
    return tuple((name, _kind(term), _text(term)) for name, term in mapping)


def _kind(term: Any) -> str:
    return "Literal" if isinstance(term, DirectionalString) else type(term).__name__


def _text(value: Any) -> str:
    """A term in N-Triples syntax, or the mappings of rounds."""
    return rounds_text(value) if isinstance(value, tuple) else nquads_term(value)


def _rows(clauses: Clauses, matches: Sequence[Match]) -> Iterator[tuple[Match, dict[str, Any], tuple[Any, ...]]]:
    """The rows computed of one match, or of a group: with the match, all variables, and the keys of ORDER BY."""
    if clauses.plan is None:
        for match in matches:
            yield match, with_lists(clauses.lists, match.bindings), ()
        return
    solutions = [with_lists(clauses.lists, match.bindings) for match in matches]
    for bindings, keys in clauses.plan.rows(solutions):
        yield _together(matches), bindings, keys


def _together(matches: Sequence[Match]) -> Match:
    """One match for a group."""
    if len(matches) == 1:
        return matches[0]
    at = sorted({pair for match in matches for pair in zip(match.positions, match.times, strict=True)})
    events = events_in_order((match.positions, match.times, match.events) for match in matches)
    return Match(
        min(match.start for match in matches),
        max(match.end for match in matches),
        tuple(position for position, _ in at),
        {},
        tuple(time for _, time in at),
        events,
    )


def _show(match: Match, bindings: dict[str, Any], select: tuple[str, ...]) -> Match:
    return replace(match, bindings={name: bindings[name] for name in sorted(select) if name in bindings})


def _some(found: FoundColumns) -> Iterator[FoundColumns]:
    """`found` if it has rows: HAVING, OFFSET or LIMIT may leave none of a window."""
    if len(found):
        yield found


_NO_TERMS: Final = TermTable.of(())
_TERMS: Final = 1 << 16
"""Matches that are computed alone share terms until there are so many."""
_MANY: Final = 1 << 16
"""So many matches of a window are held before those are looked for that are no results."""
_FEW: Final = 3
"""So many matches are computed one by one, in some 45 µs each; columns begin at some 400 µs."""


class Results:
    """The results of one evaluation: `push` takes matches in order of their ends, as they are found.

    `counting`, if solutions are counted and not listed: then `count` takes instants, and there are no matches.
    """

    def __init__(self, clauses: Clauses, window: Window, counting: Counting | None = None) -> None:
        self._clauses = clauses
        self._window = window
        self._counting = counting
        self._computation = Computation.of(clauses)
        self._pending = Gathered(clauses.needed, clauses.rounds)
        self._held: list[Match] = []  # of a window, if clauses are not computed as columns
        self._terms: SpaceTerms | None = None  # of the matches computed last, since values come again
        self._reduced = 0  # twice the matches that were left last time
        self._answered = False
        self._windows: deque[tuple[int, int]] = deque()  # the last instant of each that is not over
        self.counts_windows: bool = clauses.one_group
        """True if a window without a match has a result; then `see` needs all instants."""
        self.matched = False
        """True if there was a match since the beginning or the snapshot, result or not."""

    @property
    def passes(self) -> bool:
        """True if matches are the results, as they are."""
        clauses = self._clauses
        return not (clauses.by_window or clauses.ask or clauses.lists or clauses.plan is not None)

    @property
    def waits(self) -> bool:
        """True if time alone may complete results: those of a window that is over."""
        return bool(self._held or self._windows or len(self._pending))

    @property
    def holds(self) -> bool:
        """True if matches are held for the end of their window."""
        counted = self._counting is not None and self._counting.number > 0
        return counted or bool(self._held) or len(self._pending) > 0

    def see(self, positions: np.ndarray, times: np.ndarray) -> None:
        """Takes note of the next instants, before their matches: int64 (n,) each, ascending."""
        if not self.counts_windows or not len(times):
            return
        opens = self._window.bounds(times)
        for last in np.append(np.flatnonzero(np.diff(opens)), len(times) - 1).tolist():
            if self._windows and self._number(self._windows[-1][1]) == self._number(int(times[last])):
                self._windows.pop()
            self._windows.append((int(positions[last]), int(times[last])))

    def push(self, matches: FoundColumns | Iterable[Match], now: int) -> Iterator[FoundColumns | Iterable[Match]]:
        """The results that these matches complete, in parts; `now` is the latest time (ns) that has come. All matches
        of one end come in one call. Columns have a row at least."""
        if self._clauses.by_window:
            if isinstance(matches, FoundColumns) and self._computation is not None:
                yield from self._gather(matches)
            else:
                for _, own in groupby(matches, lambda match: self._number(match.time)):
                    together = list(own)
                    yield from self._over(together[0].time)
                    self._hold(together)
            yield from self._over(now)
        elif self._clauses.ask:
            yield list(self._first(matches))
        elif self._clauses.plan is None and not self._clauses.lists:
            yield matches
        elif self._computation is None:
            yield self._each(matches)
        else:
            yield from self._compute(matches)

    def count(self, batch: InstantBatch) -> Iterator[FoundColumns | Iterable[Match]]:
        """The results that these instants complete, one at least, if solutions are counted."""
        assert self._counting is not None
        times = batch.times
        begins = np.append(0, np.flatnonzero(np.diff(self._window.bounds(times))) + 1)
        firsts = times[begins].tolist()
        numbers = list(map(self._number, firsts))
        parts = self._counting.read(batch, numbers, begins)
        for time, number, taken in zip(firsts, numbers, parts, strict=True):
            yield from self._over(time)
            self._counting.add(number, batch, taken)
            self.matched = self.matched or self.holds

    def count_one(self, batch: InstantBatch, time: int) -> Iterator[FoundColumns | Iterable[Match]]:
        """`count` of one instant, the only row of the batch, without arrays."""
        assert self._counting is not None
        yield from self._over(time)
        self._counting.add(self._number(time), batch, self._counting.read_one(batch))
        self.matched = self.matched or self.holds

    def _gather(self, found: FoundColumns) -> Iterator[FoundColumns | Iterable[Match]]:
        """Adds matches to the window; the results of those that are over."""
        first, count = 0, len(found)
        self.matched = self.matched or count > 0
        while first < count:
            begin, end = int(found.times[first]), count
            if self._number(int(found.times[-1])) != self._number(begin):
                end = first + int(np.searchsorted(found.times[first:], self._window.closes(begin)))
            yield from self._over(begin)
            self._pending.add_columns(found.cut(first, end))
            self._reduce()
            first = end

    def _hold(self, matches: list[Match]) -> None:
        self.matched = True
        if self._computation is None:
            self._held += matches
        else:
            self._pending.add_matches(matches)
            self._reduce()

    def _reduce(self) -> None:
        """Lets go of matches of the window that are no results, once there are many."""
        if self._computation is not None and self._computation.few and len(self._pending) > max(_MANY, self._reduced):
            self._pending = self._computation.reduced(self._pending)
            self._reduced = 2 * len(self._pending)

    def _compute(self, matches: FoundColumns | Iterable[Match]) -> Iterator[FoundColumns | Iterable[Match]]:
        """The rows computed of each match alone."""
        assert self._computation is not None
        if self._terms is not None and len(self._terms.space) > _TERMS:
            self._terms = None
        gathered = Gathered(self._clauses.needed, self._clauses.rounds, self._terms)
        self._terms = gathered.terms
        if isinstance(matches, FoundColumns):
            if len(matches):
                gathered.add_columns(matches)
        else:
            found = list(matches)
            if len(found) <= _FEW:
                yield self._each(found)
                return
            gathered.add_matches(found)
        if len(gathered):
            self.matched = True
            yield from _some(self._computation.each(gathered).found(gathered.terms))

    def close(self, matches: Iterable[Match]) -> Iterator[FoundColumns | Iterable[Match]]:
        """The rest, given the last matches."""
        last = list(matches)
        yield from self.push(last, last[-1].time if last else 0) if last else ()
        while self._windows:
            yield from self._next_window()
        yield from self._finish()

    def _over(self, now: int) -> Iterator[FoundColumns | Iterable[Match]]:
        """The results of the pending window, and of windows without a match, that are over at `now`."""
        while self._windows and self._number(self._windows[0][1]) < self._number(now):
            yield from self._next_window()
        if self.holds and self._number(self._latest()) != self._number(now):
            yield from self._finish()

    def _next_window(self) -> Iterator[FoundColumns | Iterable[Match]]:
        """The results of the first of the windows that are not over."""
        position, time = self._windows.popleft()
        if self.holds and self._number(self._latest()) == self._number(time):
            yield from self._finish()
        elif found := finish_empty(self._clauses, position, time):
            yield found

    def _latest(self) -> int:
        """The time of the last match that is held."""
        if self._counting is not None:
            return self._counting.time
        return self._held[-1].time if self._held else self._pending.last

    def _finish(self) -> Iterator[FoundColumns | Iterable[Match]]:
        """The results of the pending window."""
        if self._held:
            held, self._held = self._held, []
            yield _finish_by_row(self._clauses, held)
        if len(self._pending) and self._computation is not None:
            gathered, self._pending = self._pending, Gathered(self._clauses.needed, self._clauses.rounds)
            yield from _some(self._computation.results(gathered).found(gathered.terms))
        if self._counting is not None and self.holds:
            counting = self._counting
            yield from self._of_number(counting)
            counting.start_window(counting.window)

    def _of_number(self, counting: Counting) -> Iterator[FoundColumns]:
        """The result of a window with solutions that were counted."""
        assert self._clauses.plan is not None
        number, positions = counting.number, counting.positions()
        times, events = counting.history.capture(positions)
        for bindings in self._clauses.plan.rows_of_number(number)[self._clauses.offset : self._clauses.last]:
            terms = SpaceTerms(Space(_NO_TERMS))
            shown = {n: np.array([terms.space.number(bindings[n])]) for n in self._clauses.select if n in bindings}
            ends, bounds = positions[[0, -1]], np.array([0, len(positions)])
            of_events = lambda row: tuple(events(0, len(positions)))  # noqa: E731
            yield Rows(ends[:1], ends[1:], bounds, positions, times, shown, of_events).found(terms)

    def _number(self, time: int) -> int:
        return self._window.number(time)

    def _each(self, matches: Iterable[Match]) -> Iterator[Match]:
        seen: set[tuple[int, tuple[int, ...], Mapping]] = set()
        end = -1
        for match in matches:
            self.matched = True
            if match.end != end:
                seen.clear()
                end = match.end
            for row, bindings, _ in _rows(self._clauses, [match]):
                shown = _show(row, bindings, self._clauses.select)
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
        """The state that waits for the end of its window, as plain values and terms; events are put into `pool`."""
        held = [match.snapshot(pool) for match in self._held or self._pending.matches()]
        counted = None if self._counting is None else self._counting.snapshot()
        return held, self._answered, list(self._windows), counted

    def restore(self, state: Any, events: Made) -> None:
        """The opposite of `snapshot`; `events` gives those of the pool."""
        pending, self._answered, windows, counted = state
        expect(all(type(number) is int for last in windows for number in last), "the last instants of windows")
        self._windows = deque((position, time) for position, time in windows)
        self._held, self._pending = [], Gathered(self._clauses.needed, self._clauses.rounds)
        if pending:
            self._hold([Match.restore(match, events) for match in pending])
        expect((counted is None) == (self._counting is None), "solutions that are counted or listed")
        if self._counting is not None:
            self._counting.restore(counted)
