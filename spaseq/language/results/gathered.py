"""Matches gathered as columns, over terms of their own: the input of result clauses.

They come as columns of the engine's codes or as matches, and stay valid while the engine goes on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from spaseq.core.engine.program.register_ops import NOTHING
from spaseq.core.integers import different, in_order, ranges
from spaseq.gpm import ROUNDS, Mapping, list_literal
from spaseq.gpm.columnar.table import Space
from spaseq.gpm.serialise import items_of_keys, list_key
from spaseq.language.results.columns import CodedLists, CodedTerms, FoundColumns, Kept, list_ranks, taken, text_ranks
from spaseq.language.results.history import events_in_order
from spaseq.language.results.match import Match
from spaseq.rdf import GraphEvent
from spaseq.rdf.columns import TermTable

_Events = Callable[[int], Sequence[GraphEvent]]
_NO_TERMS = TermTable.of(())
_NONE = -1


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

        PERF: terms of one owner are distinguished by its codes, not by their bytes: 0.3 µs a term less. New ones are
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
    """Matches, or groups of them. `start`, `end`, `offsets`, `positions` as in `FoundColumns`; `times`, int64, those of
    the positions. `columns`: for each variable the numbers of its terms, int32 (m,), -1 if it is not bound, and under
    `ROUNDS` the number of the list of its iterations' rounds. `events(i)`: those of row i."""

    start: np.ndarray
    end: np.ndarray
    offsets: np.ndarray
    positions: np.ndarray
    times: np.ndarray
    columns: dict[str, np.ndarray]
    events: _Events

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: np.ndarray) -> Rows:
        """The rows at `rows`, int64, in that order."""
        offsets, places = taken(self.offsets, rows)
        columns = {name: column[rows] for name, column in self.columns.items()}
        numbers, events = rows.tolist(), self.events
        return Rows(self.start[rows], self.end[rows], offsets, self.positions[places], self.times[places], columns,
                    lambda row: events(numbers[row]))  # fmt: skip

    def numbered(self) -> Rows:
        """The same columns, `start` being the number of the row."""
        return Rows(np.arange(len(self)), self.end, self.offsets, self.positions, self.times, self.columns, self.events)

    def held(self) -> Rows:
        """The same rows, which hold no more events than their own."""
        events = [self.events(row) for row in range(len(self))]
        return Rows(self.start, self.end, self.offsets, self.positions, self.times, self.columns, events.__getitem__)

    def standing(self, space: Space, lists: GatheredLists) -> Rows:
        """The matches that stand for the solutions, the pairs of an end and a mapping: the least by (start, positions).
        In order of (end, start, positions, terms)."""
        order = np.lexsort((self.start, self.end))
        same = (np.diff(self.end[order]) == 0) & (np.diff(self.start[order]) == 0)
        if same.any():
            places = self._by_positions()
            order = np.lexsort((places, self.start, self.end))
            if (same & (np.diff(places[order]) == 0)).any():
                order = np.lexsort((*self._by_terms(space, lists)[::-1], places, self.start, self.end))
        kinds = [self.end[order], *(column[order] for column in self.columns.values())]
        return self.take(order[_firsts(kinds, len(order))])

    def _by_positions(self) -> np.ndarray:
        bounds = self.offsets.tolist()
        places = self.positions.astype(">i8")
        texts = [places[first:last].tobytes() for first, last in pairwise(bounds)]
        ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
        return np.array([ranks[text] for text in texts], np.int64)

    def _by_terms(self, space: Space, lists: GatheredLists) -> list[np.ndarray]:
        """Keys that order rows as `results.term_order` does: a row without a variable comes behind those that have it,
        before them if it has no later one either."""
        later = np.zeros(len(self), bool)
        keys = []
        for name in sorted(self.columns, reverse=True):
            column = self.columns[name]
            ranks = list_ranks(column, lists, -1) if name == ROUNDS else text_ranks(column, SpaceTerms(space), -1)
            ranks += 1
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
        members = in_order(groups)
        bounds = np.searchsorted(groups[members], np.arange(count + 1)).tolist()

        def of_group(group: int) -> Sequence[GraphEvent]:
            return events_in_order(map(self._taken_by, members[bounds[group] : bounds[group + 1]].tolist()))

        return Rows(start, end, np.searchsorted(owner, np.arange(count + 1)), positions, times, {}, of_group)

    def _taken_by(self, row: int) -> tuple[list[int], list[int], Sequence[GraphEvent]]:
        """The positions of a row, their times, and its events."""
        own = slice(self.offsets[row], self.offsets[row + 1])
        return self.positions[own].tolist(), self.times[own].tolist(), self.events(row)

    def found(self, terms: SpaceTerms, lists: GatheredLists | None = None) -> FoundColumns:
        """As results, or as matches, with their lists of rounds."""
        codes = {name: np.where(c < 0, NOTHING, c.astype(np.int64)) for name, c in sorted(self.columns.items())}
        last = self.times[self.offsets[1:] - 1] if len(self) else np.zeros(0, np.int64)
        kept = Kept(self.times, self.events)
        return FoundColumns(self.start, self.end, self.offsets, self.positions, last, codes, terms, kept, lists)


def _firsts(columns: Sequence[np.ndarray], count: int) -> np.ndarray:
    """The indices of the first rows of each kind, ascending."""
    from spaseq.gpm.columnar.table import distinct

    return np.sort(distinct(columns, count)[0])


class GatheredLists:
    """Lists of rounds, numbered from 0 as they come; equal ones have one number, and -1 is that without rounds.

    `names`: the variables that rounds may bind. The numbers of terms are those of a space. As `CodedLists`, too.
    """

    def __init__(self, space: Space, names: Iterable[str]) -> None:
        self.names: Sequence[str] = sorted(names)
        self._space = space
        self._ends = np.zeros(1, np.int64)  # the end of each list in _cells, beginning with that of no list
        self._cells = np.zeros((0, len(self.names)), np.int32)
        self._known: dict[bytes, int] | None = None
        self._items: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._ends) - 1

    # -- lists in

    def add(self, lists: CodedLists, codes: np.ndarray, number: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The numbers of the lists that `codes` stand for in `lists`, int32 (n,). `number` gives those of terms, int32,
        by their codes, int64 ascending."""
        used, places = different(codes)
        bound = used != NOTHING
        lengths, taken = lists.cells(used[bound])
        terms, at = different(taken)
        numbers = np.full(len(terms), _NONE, np.int32)
        numbers[terms != NOTHING] = number(terms[terms != NOTHING])
        taken = numbers[at].reshape(taken.shape)
        cells = np.full((len(taken), len(self.names)), _NONE, np.int32)
        cells[:, [self.names.index(name) for name in lists.names]] = taken
        found = np.full(len(used), _NONE, np.int32)
        found[bound] = self._add_lists(lengths, cells, apart=not len(self))
        return found[places]

    def add_mappings(self, rounds: Sequence[tuple[Mapping, ...]]) -> np.ndarray:
        """The numbers of lists given as the mappings of their rounds: int32 (n,)."""
        number, places = self._space.number, {name: place for place, name in enumerate(self.names)}
        found = np.full(len(rounds), _NONE, np.int32)
        some = [row for row, taken in enumerate(rounds) if taken]
        cells = np.full((sum(len(rounds[row]) for row in some), len(self.names)), _NONE, np.int32)
        for cell, mapping in zip(cells, (mapping for row in some for mapping in rounds[row]), strict=True):
            for name, term in mapping:
                cell[places[name]] = number(term)
        found[some] = self._add_lists(np.array([len(rounds[row]) for row in some], np.int64), cells)
        return found

    def _add_lists(self, lengths: np.ndarray, cells: np.ndarray, *, apart: bool = False) -> np.ndarray:
        """The numbers of lists of so many rounds: int32. `apart`: True if no two are equal, and there were none
        before."""
        ends = np.cumsum(lengths)
        if apart:
            self._ends, self._cells = np.append(0, ends), cells
            return np.arange(len(lengths), dtype=np.int32)
        known, first = self._index(), len(self)
        texts = [cells[begin:end].tobytes() for begin, end in pairwise([0, *ends.tolist()])]
        fresh: list[int] = []
        for place, text in enumerate(texts):
            if known.setdefault(text, first + len(fresh)) == first + len(fresh):
                fresh.append(place)
        if fresh:
            own = np.array(fresh)
            rows = ranges(ends[own] - lengths[own], lengths[own])
            self._ends = np.append(self._ends, self._ends[-1] + np.cumsum(lengths[own]))
            self._cells = np.concatenate([self._cells, cells[rows]])
        return np.array([known[text] for text in texts], np.int32)

    def _index(self) -> dict[bytes, int]:
        """The lists by their cells."""
        if self._known is None:
            bounds = self._ends.tolist()
            self._known = {self._cells[a:b].tobytes(): i for i, (a, b) in enumerate(pairwise(bounds))}
        return self._known

    # -- and out

    def _spans(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The beginnings of lists, and the numbers of their rounds; for -1 an empty one."""
        begins, ends = self._ends[numbers], self._ends[numbers + 1]
        return begins, np.where(numbers < 0, 0, ends - begins)

    def rounds(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rounds of some lists; for a list without rounds, one that binds nothing. Returns the index of the list of
        each round, int32 (r,), and the numbers of its terms, int32 (r, names), -1 for none."""
        begins, lengths = self._spans(numbers)
        counts = np.maximum(lengths, 1)
        owner = np.repeat(np.arange(len(numbers), dtype=np.int32), counts)
        cells = np.full((len(owner), len(self.names)), _NONE, np.int32)
        cells[(lengths > 0)[owner]] = self._cells[ranges(begins, lengths)]
        return owner, cells

    def literals(self, numbers: np.ndarray, name: str) -> np.ndarray:
        """The numbers of the literals that list the values of a variable in the rounds: int32, one for each of
        `numbers`."""
        used, places = different(numbers)
        begins, lengths = self._spans(used)
        taken = self._cells[ranges(begins, lengths), self.names.index(name)]
        ends = np.cumsum(np.append(0, taken >= 0))[np.append(0, np.cumsum(lengths))].tolist()
        items = self._items_of(taken[taken >= 0])
        keys = [list_key(items[first:last]).encode() for first, last in pairwise(ends)]
        return self._space.numbers_of_keys(keys)[places]

    def _items_of(self, numbers: np.ndarray) -> list[str]:
        """The terms as list literals have them."""
        used, places = different(numbers)
        texts = items_of_keys(self._space.cased_keys(used.tolist()))
        return np.array(texts, object)[places].tolist() if texts else []

    def cells(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of `CodedLists`."""
        begins, lengths = self._spans(numbers)
        taken = self._cells[ranges(begins, lengths)].astype(np.int64)
        return lengths, np.where(taken < 0, NOTHING, taken)

    def mappings(self, number: int) -> tuple[Mapping, ...]:
        """As of `CodedLists`."""
        term = self._space.term
        taken = self._cells[self._ends[number] : self._ends[number + 1]].tolist()
        return tuple(
            tuple((name, term(own)) for name, own in zip(self.names, row, strict=True) if own >= 0) for row in taken
        )


class Gathered:
    """Matches of a window, or of a block. `names`: the variables of a mapping; `rounds`: those of which matches have
    the values in each round. `terms`: those of matches gathered before, to go on with."""

    def __init__(self, names: Iterable[str], rounds: Iterable[str] = (), terms: SpaceTerms | None = None) -> None:
        self.terms: SpaceTerms = SpaceTerms(Space(_NO_TERMS)) if terms is None else terms
        self.space: Space = self.terms.space
        self.rounds: GatheredLists = GatheredLists(self.space, rounds)
        self._names = sorted({*names} - {ROUNDS})
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
        number = partial(self.terms.numbers_of, found.terms)
        columns = {}
        for name in self._names:
            codes = found.codes.get(name)
            if codes is None:
                columns[name] = np.full(len(found), -1, np.int32)
                continue
            used, places = different(codes)
            bound = used != NOTHING
            numbers = np.full(len(used), -1, np.int32)
            numbers[bound] = number(used[bound])
            columns[name] = numbers[places]
        if self.rounds.names:
            own, lists = found.codes.get(ROUNDS), found.lists
            if own is None or lists is None:
                columns[ROUNDS] = np.full(len(found), -1, np.int32)
            else:
                columns[ROUNDS] = self.rounds.add(lists, own, number)
        self._parts.append(Rows(found.start, found.end, found.offsets, found.positions, times, columns, events))

    def add_matches(self, matches: Sequence[Match]) -> None:
        """Matches, at least one."""
        number = self.space.number
        rows = [match.bindings for match in matches]
        columns = {
            name: np.array([number(row[name]) if name in row else -1 for row in rows], np.int32) for name in self._names
        }
        if self.rounds.names:
            columns[ROUNDS] = self.rounds.add_mappings([row.get(ROUNDS, ()) for row in rows])
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
        return Rows(
            np.concatenate([part.start for part in parts]),
            np.concatenate([part.end for part in parts]),
            np.append(np.concatenate(offsets), ends[-1]),
            np.concatenate([part.positions for part in parts]),
            np.concatenate([part.times for part in parts]),
            {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns},
            events,
        )

    def standing(self) -> Rows:
        """As of `Rows`."""
        return self.rows().standing(self.space, self.rounds)

    def rounds_of(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """As `GatheredLists.rounds`, those of matches."""
        lists = rows.columns.get(ROUNDS)
        return self.rounds.rounds(np.full(len(rows), _NONE) if lists is None else lists)

    def lists_of(self, rows: Rows, lists: Sequence[tuple[str, str]]) -> dict[str, np.ndarray]:
        """The columns of `(?x+ AS ?xs)`, of pairs of a name and a variable: as those of `Rows`."""
        return {name: self.rounds.literals(rows.columns[ROUNDS], x) for name, x in lists}

    def of(self, rows: Rows) -> Gathered:
        """These rows of it, gathered anew, with no other terms."""
        fresh = Gathered(self._names, self.rounds.names)
        if len(rows):
            fresh.add_columns(rows.found(self.terms, self.rounds))
        return fresh

    def matches(self) -> list[Match]:
        """All of them as matches."""
        return [match for part in self._parts for match in part.found(self.terms, self.rounds)]


def with_lists(lists: Sequence[tuple[str, str]], bindings: dict[str, Any]) -> dict[str, Any]:
    """The bindings with the lists of `(?x+ AS ?xs)`: the values of the rounds that bind ?x, in order."""
    if not lists:
        return bindings
    rounds = [dict(taken) for taken in bindings.get(ROUNDS, ())]
    made = {name: list_literal([taken[x] for taken in rounds if x in taken]) for name, x in lists}
    return bindings | made
