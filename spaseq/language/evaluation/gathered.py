"""Matches gathered as columns, over terms of their own: what result clauses are computed from.

They come as columns of the engine's codes or as matches, and stay valid while the engine goes on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spaseq.engine.program.register_ops import NOTHING
from spaseq.gpm import ROUNDS, list_literal
from spaseq.gpm.columnar.table import Space
from spaseq.language.evaluation.columns import CodedTerms, FoundColumns, Kept, text_ranks
from spaseq.language.evaluation.match import Match
from spaseq.rdf import GraphEvent
from spaseq.rdf.columns import TermTable

__all__ = ["Gathered", "Rows", "SpaceTerms", "with_lists"]

_Events = Callable[[int], Sequence[GraphEvent]]
_NO_TERMS = TermTable.of(())


class SpaceTerms:
    """The terms of a space, as `FoundColumns` asks for them."""

    __slots__ = ("_codes", "_forgotten", "_is_alone", "_numbers", "_owner", "forgotten", "space")

    def __init__(self, space: Space) -> None:
        self.space = space
        self._owner: CodedTerms | None = None
        self._forgotten = 0  # by the owner, before its first terms
        self._is_alone = True  # whether all terms are the owner's, each under one code
        self.forgotten: int = 0
        self._codes = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.int32)

    def numbers_of(self, owner: CodedTerms, codes: np.ndarray) -> np.ndarray:
        """The numbers of the terms of `codes` (int64, ascending), new ones for those without: int32.

        PERF: terms of one owner are told apart by its codes, not by their bytes: 0.3 µs a term less. New ones are
        compared by their bytes only once the space has terms from elsewhere, too, or the owner has let go of some.
        """
        space = self.space
        if self._owner is None and not len(space):
            self._owner, self._forgotten = owner, owner.forgotten
        if self._owner is not owner:
            return space.numbers_of_keys(owner.keys(codes.tolist()))
        places = np.searchsorted(self._codes, codes)
        known = places < len(self._codes)
        known[known] = self._codes[places[known]] == codes[known]
        fresh = codes[~known]
        if len(fresh):
            keys = owner.keys(fresh.tolist())
            self._is_alone = self._is_alone and len(space) == len(self._codes) and self._forgotten == owner.forgotten
            added = space.add_keys(keys) if self._is_alone else space.numbers_of_keys(keys)
            self._codes = np.insert(self._codes, places[~known], fresh)
            self._numbers = np.insert(self._numbers, places[~known], added)
            places = np.searchsorted(self._codes, codes)
        return self._numbers[places]

    def key(self, number: int) -> str:
        """The `term_key` of a number's term."""
        return self.space.cased_key(number)

    def keys(self, numbers: Iterable[int]) -> list[bytes]:
        """The bytes of terms (`term_bytes`)."""
        return list(map(self.space.key, numbers))

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """`key` of each number."""
        return self.space.cased_keys(numbers)

    def term(self, number: int) -> Any:
        """The term of a number."""
        return self.space.term(number)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Matches, or groups of them: `start`, `end`, `offsets`, `positions` as in `FoundColumns`; `times`, int64, those of
    the positions; `columns`: for each variable the numbers of its terms, int32 (m,), -1 where it is not bound;
    `events(i)`: those of row i. `rounds`: for each row the mappings of its iterations' rounds, or nothing at all.
    """

    start: np.ndarray
    end: np.ndarray
    offsets: np.ndarray
    positions: np.ndarray
    times: np.ndarray
    columns: dict[str, np.ndarray]
    events: _Events
    rounds: Sequence[Any] = ()

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: np.ndarray) -> Rows:
        """The rows at `rows`, int64, in that order."""
        lengths = (self.offsets[1:] - self.offsets[:-1])[rows]
        begins = np.cumsum(lengths) - lengths
        taken = np.arange(int(lengths.sum())) - np.repeat(begins - self.offsets[:-1][rows], lengths)
        columns = {name: column[rows] for name, column in self.columns.items()}
        numbers, events = rows.tolist(), self.events
        rounds = [self.rounds[row] for row in numbers] if self.rounds else ()
        return Rows(self.start[rows], self.end[rows], np.append(begins, len(taken)), self.positions[taken],
                    self.times[taken], columns, lambda row: events(numbers[row]), rounds)  # fmt: skip

    def numbered(self) -> Rows:
        """The same columns, `start` being the number of the row."""
        return Rows(np.arange(len(self)), self.end, self.offsets, self.positions, self.times, self.columns, self.events,
                    self.rounds)  # fmt: skip

    def held(self) -> Rows:
        """The same rows, which hold no more events than their own."""
        events = [self.events(row) for row in range(len(self))]
        return Rows(self.start, self.end, self.offsets, self.positions, self.times, self.columns, events.__getitem__,
                    self.rounds)  # fmt: skip

    def standing(self, space: Space) -> Rows:
        """The matches that stand for the solutions, the pairs of an end and a mapping: the least by (start, positions).
        In order of (end, start, positions, terms)."""
        order = np.lexsort((self.start, self.end))
        same = (np.diff(self.end[order]) == 0) & (np.diff(self.start[order]) == 0)
        if same.any():
            order = np.lexsort((*self._by_terms(space)[::-1], self._by_positions(), self.start, self.end))
        kinds = [self.end[order], *(column[order] for column in self.columns.values())]
        return self.take(order[_firsts(kinds, len(order))])

    def _by_positions(self) -> np.ndarray:
        bounds = self.offsets.tolist()
        places = self.positions.astype(">i8")
        texts = [places[first:last].tobytes() for first, last in pairwise(bounds)]
        ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
        return np.array([ranks[text] for text in texts], np.int64)

    def _by_terms(self, space: Space) -> list[np.ndarray]:
        """Keys that order rows as `results.term_order` does: a row without a variable comes behind those that have it,
        before them if it has no later one either."""
        later = np.zeros(len(self), bool)
        keys = []
        for name in sorted(self.columns, reverse=True):
            column = self.columns[name]
            ranks = text_ranks(column, SpaceTerms(space), -1) + 1
            keys.append(np.where(column >= 0, ranks, np.where(later, len(ranks) + 1, 0)))
            later |= column >= 0
        return keys[::-1]

    def firsts(self, names: Sequence[str]) -> np.ndarray:
        """The indices of the first rows of each kind, by their terms of the variables `names`: int64, ascending."""
        return _firsts([self.columns[name] for name in names if name in self.columns], len(self))

    def together(self, groups: np.ndarray, count: int) -> Rows:
        """One row for each group: from its first start to its last end, with all positions. `groups`: int64 (m,), that
        of each row; none is empty. Without columns."""
        lengths = np.diff(self.offsets)
        owner = np.repeat(groups, lengths)
        order = np.lexsort((self.positions, owner))
        owner, positions, times = owner[order], self.positions[order], self.times[order]
        fresh = np.ones(len(order), bool)
        fresh[1:] = (owner[1:] != owner[:-1]) | (positions[1:] != positions[:-1])
        owner, positions, times = owner[fresh], positions[fresh], times[fresh]
        start, end = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
        np.minimum.at(start, groups, self.start)
        np.maximum.at(end, groups, self.end)
        members = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[members], np.arange(count + 1)).tolist()
        events = self.events

        def of_group(group: int) -> Sequence[GraphEvent]:
            rows = members[bounds[group] : bounds[group + 1]].tolist()
            return tuple({id(event): event for row in rows for event in events(row)}.values())

        return Rows(start, end, np.searchsorted(owner, np.arange(count + 1)), positions, times, {}, of_group)

    def found(self, terms: SpaceTerms) -> FoundColumns:
        """As results."""
        codes = {name: np.where(c < 0, NOTHING, c.astype(np.int64)) for name, c in sorted(self.columns.items())}
        last = self.times[self.offsets[1:] - 1] if len(self) else np.zeros(0, np.int64)
        kept = Kept(self.times, self.events)
        return FoundColumns(self.start, self.end, self.offsets, self.positions, last, codes, terms, kept)


def _firsts(columns: Sequence[np.ndarray], count: int) -> np.ndarray:
    """The indices of the first rows of each kind, ascending."""
    from spaseq.gpm.columnar.table import distinct

    return np.sort(distinct(columns, count)[0])


class Gathered:
    """Matches of a window, or of a block. `names`: the variables of a mapping; `lists`: as in `Clauses`. `terms`: those
    of matches gathered before, to go on with."""

    def __init__(self, names: Iterable[str], lists: Sequence[tuple[str, str]], terms: SpaceTerms | None = None) -> None:
        self.terms: SpaceTerms = SpaceTerms(Space(_NO_TERMS)) if terms is None else terms
        self.space: Space = self.terms.space
        self._lists = lists
        self._names = sorted({*names, *(name for name, _ in lists)} - {ROUNDS})
        self._parts: list[Rows] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def last(self) -> int:
        """The time of the match that came last."""
        return int(self._parts[-1].times[-1])

    def add(self, found: FoundColumns | Iterable[Match]) -> None:
        """Matches as an evaluation gives them."""
        if not isinstance(found, FoundColumns):
            matches = list(found)
            if matches:
                self.add_matches(matches)
        elif len(found):
            self.add_columns(found)

    def add_columns(self, found: FoundColumns) -> None:
        """Matches as columns, at least one."""
        times, events = found.kept_events()
        columns = {}
        for name in self._names:
            codes = found.codes.get(name)
            if codes is None:
                columns[name] = np.full(len(found), -1, np.int32)
                continue
            used, places = np.unique(codes, return_inverse=True)
            bound = used != NOTHING
            numbers = np.full(len(used), -1, np.int32)
            numbers[bound] = self.terms.numbers_of(found.terms, used[bound])
            columns[name] = numbers[places]
        self._parts.append(Rows(found.start, found.end, found.offsets, found.positions, times, columns, events))

    def add_matches(self, matches: Sequence[Match]) -> None:
        """Matches, at least one."""
        number = self.space.number
        rows = [with_lists(self._lists, match.bindings) for match in matches]
        columns = {
            name: np.array([number(row[name]) if name in row else -1 for row in rows], np.int32) for name in self._names
        }
        lengths = [len(match.positions) for match in matches]
        self._parts.append(
            Rows(
                np.array([match.start for match in matches], np.int64),
                np.array([match.end for match in matches], np.int64),
                np.cumsum([0, *lengths], dtype=np.int64),
                np.array([place for match in matches for place in match.positions], np.int64),
                np.array([time for match in matches for time in match.times], np.int64),
                columns,
                lambda row: matches[row].events,
                [match.bindings.get(ROUNDS, ()) for match in matches],
            )
        )

    def rows(self) -> Rows:
        """All of them, in the order in which they came."""
        parts = self._parts
        if len(parts) == 1:
            return parts[0]
        begins = np.cumsum([0, *map(len, parts)]).tolist()

        def events(row: int) -> Sequence[GraphEvent]:
            part = bisect_right(begins, row) - 1
            return parts[part].events(row - begins[part])

        ends = np.cumsum([0, *(len(part.positions) for part in parts)])
        offsets = [part.offsets[:-1] - part.offsets[0] + end for part, end in zip(parts, ends[:-1], strict=True)]
        rounds: list[Any] = []
        for part in parts if any(part.rounds for part in parts) else ():
            rounds += part.rounds or [()] * len(part)
        return Rows(
            np.concatenate([part.start for part in parts]),
            np.concatenate([part.end for part in parts]),
            np.append(np.concatenate(offsets), ends[-1]),
            np.concatenate([part.positions for part in parts]),
            np.concatenate([part.times for part in parts]),
            {name: np.concatenate([part.columns[name] for part in parts]) for name in self._names},
            events,
            rounds,
        )

    def of(self, rows: Rows) -> Gathered:
        """These rows of it, gathered anew, with no other terms."""
        fresh = Gathered((), ())
        fresh._lists, fresh._names = self._lists, self._names
        if len(rows):
            fresh.add_columns(rows.found(self.terms))
        return fresh

    def matches(self) -> list[Match]:
        """All of them as matches."""
        return [match for part in self._parts for match in part.found(self.terms)]


def with_lists(lists: Sequence[tuple[str, str]], bindings: dict[str, Any]) -> dict[str, Any]:
    """The bindings with the lists of `(?x+ AS ?xs)`: the values of the rounds that bind ?x, in order."""
    if not lists:
        return bindings
    rounds = [dict(taken) for taken in bindings.get(ROUNDS, ())]
    made = {name: list_literal([taken[x] for taken in rounds if x in taken]) for name, x in lists}
    return bindings | made
