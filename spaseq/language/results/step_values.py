"""The values of variables at the instants that a match to come may hold, of steps whose values runs do not keep.

`spaseq.language.semantics.lookups` says which steps these are, and why the join of their mapping sets at the instants
of a match is the mapping set of its run. Terms are numbered here, as `spaseq.language.guards.terms` does it.

PERF: the solutions of a batch are read while it is the latest, for matches alone; behind it, those of instants that are
still in the window. A stream whose window is a fiftieth of a batch keeps a fiftieth.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from typing import Any, Final

import numpy as np

from spaseq.core.engine import CodedRows, MatchBatch
from spaseq.core.engine.program.register_ops import NOTHING
from spaseq.core.integers import apart, different, ranges
from spaseq.core.snapshot import array, expect
from spaseq.gpm import Condition, GraphPattern, Mapping, MappingSet, freeze, holds, join
from spaseq.language.guards.encoding import TermCodes
from spaseq.language.guards.terms import NumberedTerms
from spaseq.language.results.instant_values import Block, InstantValues, block_of, each_once
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import conditions
from spaseq.language.semantics.lookups import Lookups
from spaseq.language.solving.instants import InstantBatch, Rows

_MAPPINGS: Final = 1 << 12
"""So many mapping sets are remembered, of matches that are read one by one."""

_Picks = tuple[np.ndarray, np.ndarray, np.ndarray]
"""For each of some positions the first of its mappings and their number: int64 (m,) each; and the codes of all."""


class StepValues:
    """The values of one evaluation. They are added in order of the positions, and forgotten from the front."""

    def __init__(self, lookups: Lookups, patterns: MappingABC[str, GraphPattern]) -> None:
        self._lookups = lookups
        self._patterns = patterns
        self._names: dict[Conjunction, tuple[str, ...]] = {c: names for c, names in lookups.steps if names}
        self._filters: list[list[tuple[Condition, Any]]] = [
            list(conditions(patterns, c, inner=False)) if lookups.decides else [] for c, _ in lookups.steps
        ]
        every = [name for _, names in lookups.steps for name in names]
        self._shares = len(set(every)) < len(every)  # then two joined mappings may be equal
        self._read = InstantValues()
        self.terms: NumberedTerms = self._read.terms
        self._blocks: dict[Conjunction, list[Block]] = {c: [] for c in self._names}
        self._single: dict[Conjunction, dict[int, list[list[int]]]] = {c: {} for c in self._names}
        self._latest: InstantBatch | None = None
        self._mappings: dict[tuple[Conjunction, int], MappingSet] = {}

    # -- instants come and go

    def read(self, rows: Rows) -> None:
        """The next batch has these rows; until `forget`, the values at its positions are read from them."""
        self._renumber()
        for conjunction, single in self._single.items():
            if single:
                self._add(conjunction, *block_of(single, len(self._names[conjunction])))
        self._single = {c: {} for c in self._names}
        self._latest = InstantBatch(rows, self._patterns, None)

    def read_one(self, batch: InstantBatch) -> None:
        """Keeps the values at an instant, the only row of the batch."""
        self._renumber()
        position = int(batch.positions[0])
        for conjunction, names in self._names.items():
            if all(batch.rows.present(name)[0] for name in conjunction):
                codes = self._read.codes_of(batch.mappings(conjunction, 0), names)
                if codes:
                    self._single[conjunction][position] = codes

    def forget(self, first: int) -> None:
        """No match to come holds an instant before the position `first`. The latest rows are let go of."""
        if self._latest is not None:
            positions = self._latest.positions
            rows = np.arange(int(np.searchsorted(positions, first)), len(positions))
            for conjunction in self._names if len(rows) else ():
                found, codes = self._read.at(self._latest, conjunction, self._names[conjunction], rows)
                self._add(conjunction, positions[found], codes)
            self._latest = None
            self._read.forget()
        for blocks in self._blocks.values():
            while blocks and blocks[0][0][-1] < first:
                del blocks[0]
        for single in self._single.values():
            while single and (oldest := next(iter(single))) < first:
                del single[oldest]

    def _add(self, conjunction: Conjunction, positions: np.ndarray, codes: np.ndarray) -> None:
        """A block behind the others; of blocks that are not longer than it, it becomes a part. O(log n) amortised."""
        blocks = self._blocks[conjunction]
        if not len(positions):
            return
        parts = [(positions, codes)]
        size = len(positions)
        while blocks and len(blocks[-1][0]) <= size:
            parts.insert(0, blocks.pop())
            size += len(parts[0][0])
        together = [np.concatenate(column) for column in zip(*parts, strict=True)] if len(parts) > 1 else parts[0]
        blocks.append((together[0], together[1]))

    def _renumber(self) -> None:
        """Lets go of terms that no instant has, if there are many; matches before have been read."""
        if len(self._mappings) > _MAPPINGS:
            self._mappings.clear()
        if self.terms.full:
            self.terms.keep(self._numbers())
            self._read.forget()

    def _numbers(self) -> set[int]:
        """The numbers of terms in use, and the code for no term."""
        held = (codes for blocks in self._blocks.values() for _, codes in blocks)
        used = {code for codes in held for code in apart(codes).tolist()}
        rows = (row for single in self._single.values() for rows in single.values() for row in rows)
        return used.union(*rows)

    # -- the values at instants

    def _picks(self, conjunction: Conjunction, positions: np.ndarray) -> _Picks:
        """The mappings of a conjunction at some positions (int64 (m,)), at which it has one at least."""
        used, back = different(positions)
        tables: list[Block] = []
        latest = self._latest
        border = len(used)
        if latest is not None and len(latest):
            border = int(np.searchsorted(used, latest.positions[0]))
            if border < len(used):
                rows = np.searchsorted(latest.positions, used[border:])
                own, codes = self._read.at(latest, conjunction, self._names[conjunction], rows)
                tables.append((latest.positions[own], codes))
        blocks = self._blocks[conjunction]
        if border and blocks:
            first = bisect_right([block[0][0] for block in blocks], used[0]) - 1
            for there, codes in reversed(blocks[max(first, 0) :]):
                if there[0] <= used[border - 1]:
                    low, high = np.searchsorted(there, used[0]), np.searchsorted(there, used[border - 1], "right")
                    tables.insert(0, (there[low:high], codes[low:high]))
        expect(bool(tables), "the values of the instants of a match")
        whole = tables[0] if len(tables) == 1 else tuple(map(np.concatenate, zip(*tables, strict=True)))
        begins, ends = np.searchsorted(whole[0], used, "left"), np.searchsorted(whole[0], used, "right")
        expect(bool((ends > begins).all()), "the values of the instants of a match")
        return begins[back], (ends - begins)[back], whole[1]

    # -- the mappings of matches

    def columns(self, found: MatchBatch, selected: frozenset[str]) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
        """The different mappings of the engine's matches on `selected` variables: for each the match that has it, int64
        (k,), ascending, and by variable the codes of `terms`. None if that needs the terms themselves."""
        match = np.arange(len(found))
        columns: dict[str, np.ndarray] = {}
        rows = found.rows
        if rows is not None:
            if not isinstance(rows, CodedRows) or not isinstance(rows.owner, TermCodes):
                return None
            kept = rows.owner.columns(selected)
            if kept is None:
                return None
            match = np.repeat(match, rows.counts)
            places = ranges(rows.firsts, rows.counts)
            columns = {name: self._own(rows.owner.terms, rows.codes[places, at]) for name, at in kept.items()}
        taken = found.positions.reshape(len(found), len(self._lookups.steps))
        several = False
        for (conjunction, names), positions, filters in zip(self._lookups.steps, taken.T, self._filters, strict=True):
            if names:
                picks = self._picks(conjunction, positions)
                several |= len(found) > 0 and int(picks[1].max()) > 1
                match, columns = _join_step(match, columns, names, picks)
            if several and filters:  # of a single mapping the run has decided it
                passed = self._passes(columns, filters)
                match, columns = match[passed], {name: own[passed] for name, own in columns.items()}
        if self.terms.has_aliases:
            return None
        shown = {name: columns[name] for name in sorted(columns) if name in selected}
        if len(match) > len(found) and (self._shares or len(shown) < len(columns)):
            match, table = each_once(match, np.stack(list(shown.values()), axis=1))
            shown = dict(zip(shown, table.T, strict=True))
        return match, shown

    def _passes(self, columns: dict[str, np.ndarray], filters: Sequence[tuple[Condition, Any]]) -> np.ndarray:
        """True for each mapping that all FILTERs hold for: bool (n,). They are decided once for equal values."""
        named = frozenset().union(*(condition.variables for condition, _ in filters))
        names = [name for name in columns if name in named]
        size = len(next(iter(columns.values())))
        table = np.stack([columns[name] for name in names], axis=1) if names else np.zeros((size, 1), np.int64)
        used, places = np.unique(table, axis=0, return_inverse=True)
        found = [_all_hold(self._mapping(names, row), filters) for row in used.tolist()]
        return np.array(found, bool)[places.reshape(-1)]

    def _mapping(self, names: Sequence[str], codes: Sequence[int]) -> Mapping:
        return freeze((n, self.terms.term(code)) for n, code in zip(names, codes, strict=False) if code != NOTHING)

    def _own(self, terms: NumberedTerms, codes: np.ndarray) -> np.ndarray:
        """The codes here of codes of the engine's terms: int64."""
        used, places = different(codes)
        bound = used != NOTHING
        own = np.full(len(used), NOTHING, np.int64)
        own[bound] = self.terms.of_keys(terms.keys(used[bound].tolist()))
        return own[places]

    def mappings(self, kept: MappingSet, positions: Sequence[int]) -> MappingSet:
        """The mapping set of a match with these positions, of which the run kept `kept`."""
        for position, (conjunction, names), filters in zip(positions, self._lookups.steps, self._filters, strict=True):
            if names:
                kept = join(kept, self._mappings_at(conjunction, names, position))
            if filters and len(kept) > 1:  # of a single mapping the run has decided it
                kept = frozenset(mapping for mapping in kept if _all_hold(mapping, filters))
        return kept

    def _mappings_at(self, conjunction: Conjunction, names: Sequence[str], position: int) -> MappingSet:
        place = conjunction, position
        known = self._mappings.get(place)
        if known is None:
            codes = self._single[conjunction].get(position)
            if codes is None:
                (begin,), (count,), table = self._picks(conjunction, np.array([position], np.int64))
                codes = table[begin : begin + count].tolist()
            known = self._mappings[place] = frozenset(self._mapping(names, row) for row in codes)
        return known

    # -- snapshots

    def snapshot(self) -> Any:
        """The values by conjunction, in order of the steps, and the terms: plain values. Between two batches."""
        found = []
        for conjunction, names in self._names.items():
            blocks = [*self._blocks[conjunction], block_of(self._single[conjunction], len(names))]
            positions, codes = (np.concatenate(column) for column in zip(*blocks, strict=True))
            found.append((positions, tuple(column.copy() for column in codes.T)))
        return found, self.terms.snapshot()

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`, before the first instant."""
        every, terms = state
        known = {*self.terms.restore(terms), NOTHING}
        expect(len(every) == len(self._names), "values of each step")
        for (conjunction, names), (positions, columns) in zip(self._names.items(), every, strict=True):
            places = array(positions, "positions", low=0)
            expect(bool((np.diff(places) >= 0).all()) and len(columns) == len(names), "values in order")
            codes = [array(column, "terms", rows=len(places)) for column in columns]
            self._add(conjunction, places, np.stack(codes, axis=1))
        expect(self._numbers() <= known, "a term for each value")


def _all_hold(mapping: Mapping, filters: Iterable[tuple[Condition, Any]]) -> bool:
    return all(holds(condition, mapping, prologue) for condition, prologue in filters)


def _join_step(
    match: np.ndarray, columns: dict[str, np.ndarray], names: Sequence[str], picks: _Picks
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The mappings `columns` of matches, joined with those of one more step, which has the variables `names`: equal, or
    unbound on one side, in all that both have."""
    first, counts, codes = picks
    begins, lengths = first[match], counts[match]
    if len(lengths) and lengths.max() > 1:
        several = np.repeat(np.arange(len(match)), lengths)
        match, columns = match[several], {name: own[several] for name, own in columns.items()}
        begins = ranges(begins, lengths)
    fits = np.ones(len(match), bool)
    joined = dict(columns)
    for place, name in enumerate(names):
        own = codes[begins, place]
        if name in columns:
            before = columns[name]
            fits &= (before == own) | (before == NOTHING) | (own == NOTHING)
            own = np.where(before == NOTHING, own, before)
        joined[name] = own
    if fits.all():
        return match, joined
    return match[fits], {name: own[fits] for name, own in joined.items()}
