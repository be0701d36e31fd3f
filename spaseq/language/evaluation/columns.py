"""Matches as columns: what many results are, until somebody looks at one.

The engine's matches hold codes of terms. Here they stay arrays through the projection and up to whoever writes them;
an rdflib term is made for a `Match` alone, and a text once for each different term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from spaseq.engine import CodedRows, MatchBatch
from spaseq.engine.program.register_ops import NOTHING
from spaseq.gpm.serialise import nquads_of_key
from spaseq.language.evaluation.history import History
from spaseq.language.evaluation.match import Match
from spaseq.language.lowering.encoding import TermCodes

if TYPE_CHECKING:
    from spaseq.language.lowering.terms import NumberedTerms

__all__ = ["FoundColumns", "Texts", "by_time", "columns_of"]

_TEXTS: Final = 1 << 17


class Texts:
    """Texts of terms by their codes, made once. `make` gives the text of a `term_key`."""

    def __init__(self, make: Callable[[str], str]) -> None:
        self._make = make
        self._known: dict[int, str] = {}

    def of(self, codes: np.ndarray, terms: NumberedTerms) -> tuple[list[str | None], np.ndarray]:
        """The different texts, None where nothing is bound, and for each code the index of its own."""
        used, places = np.unique(codes, return_inverse=True)
        if len(self._known) > _TEXTS:
            self._known.clear()
        known, make, found = self._known, self._make, list[str | None]()
        for code in used.tolist():
            text = known.get(code)
            if text is None and code != NOTHING:
                text = known[code] = make(terms.key(code))
            found.append(text)
        return found, places


@dataclass(frozen=True, slots=True, eq=False)
class FoundColumns:
    """Matches in order, to be read before the next are asked for.

    `start`, `end`: int64 (m,); `offsets`, `positions` as in `MatchBatch`; `times`: int64 (m,), of the last positions;
    `codes`: for each selected variable the codes of its terms, int64 (m,), NOTHING where it is not bound, in `terms`.
    """

    start: np.ndarray
    end: np.ndarray
    offsets: np.ndarray
    positions: np.ndarray
    times: np.ndarray
    codes: dict[str, np.ndarray]
    terms: NumberedTerms
    history: History

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[Match]:
        starts, ends, offsets = self.start.tolist(), self.end.tolist(), self.offsets.tolist()
        places, term = self.positions.tolist(), self.terms.term
        columns = [(name, codes.tolist()) for name, codes in self.codes.items()]
        for i in range(len(starts)):
            positions = tuple(places[offsets[i] : offsets[i + 1]])
            bindings: dict[str, Any] = {name: term(codes[i]) for name, codes in columns if codes[i] != NOTHING}
            yield Match(starts[i], ends[i], positions, bindings, *self.history.held(positions))

    def cut(self, first: int, last: int) -> FoundColumns:
        """The matches `first` up to `last`."""
        begin, end = self.offsets[first], self.offsets[last]
        codes = {name: own[first:last] for name, own in self.codes.items()}
        return FoundColumns(self.start[first:last], self.end[first:last], self.offsets[first : last + 1] - begin,
                            self.positions[begin:end], self.times[first:last], codes, self.terms,
                            self.history)  # fmt: skip

    def texts(self, name: str, texts: Texts) -> list[str | None]:
        """The text of a variable's term in each match, None where it is not bound."""
        codes = self.codes.get(name)
        if codes is None:
            return [None] * len(self)
        found, places = texts.of(codes, self.terms)
        return np.array(found, object)[places].tolist() if found else []

    def table(self, variables: tuple[str, ...], texts: dict[str, Texts]) -> pa.RecordBatch:
        """The columns of `match_table`. `texts` is the caller's, empty at first."""
        columns: dict[str, pa.Array] = {
            "start": pa.array(self.start, pa.int64()),
            "end": pa.array(self.end, pa.int64()),
            "positions": pa.ListArray.from_arrays(
                pa.array(self.offsets.astype(np.int32)), pa.array(self.positions, pa.int64())
            ),
            "time": pa.array(self.times, pa.int64()),
        }
        for name in variables:
            codes = self.codes.get(name)
            if codes is None:
                cells = pa.nulls(len(self), pa.string())
            else:
                found, places = texts.setdefault("", Texts(nquads_of_key)).of(codes, self.terms)
                cells = pa.array(found, pa.string()).take(pa.array(places))
            columns[f"?{name}" if name in columns else name] = cells
        return pa.RecordBatch.from_pydict(columns)


def columns_of(found: MatchBatch, selected: frozenset[str], history: History) -> FoundColumns | None:
    """The matches of the engine, one for each different projected mapping, as `Match`es are told apart and ordered;
    None where that needs the terms."""
    rows = found.rows
    if not isinstance(rows, CodedRows) or not isinstance(rows.owner, TermCodes):
        return None
    known = rows.owner.columns(selected)
    if known is None:
        return None
    registers, terms = known
    match = np.arange(len(found))
    places = rows.firsts
    if len(rows) and rows.counts.max() > 1:
        match = np.repeat(match, rows.counts)
        within = np.arange(len(match)) - np.repeat(np.cumsum(rows.counts) - rows.counts, rows.counts)
        places = rows.firsts[match] + within
    codes = {name: rows.codes[places, registers[name]] for name in sorted(registers)}
    if len(match) > len(found):
        if any((column == NOTHING).any() for column in codes.values()):
            return None
        order = np.lexsort([*(_ranks(column, terms) for column in reversed(codes.values())), match])
        match, codes = match[order], {name: column[order] for name, column in codes.items()}
    again = _again(found, match, codes)
    if len(again):
        match, codes = np.delete(match, again), {name: np.delete(column, again) for name, column in codes.items()}
    offsets, positions = found.offsets, found.positions
    if len(match) != len(found) or len(again):
        lengths = (offsets[1:] - offsets[:-1])[match]
        begins = np.cumsum(lengths) - lengths
        taken = np.arange(int(lengths.sum())) - np.repeat(begins - offsets[:-1][match], lengths)
        offsets, positions = np.append(begins, len(taken)), positions[taken]
    times = history.times(positions[offsets[1:] - 1]) if len(match) else np.zeros(0, np.int64)
    return FoundColumns(found.start[match], found.end[match], offsets, positions, times, codes, terms, history)


def by_time(parts: Iterable[FoundColumns | Iterable[Match]]) -> Iterator[FoundColumns | list[Match]]:
    """The same matches: columns in which each time occurs once, and lists of all matches of some time."""
    held: list[Match] = []
    for found in parts:
        if isinstance(found, FoundColumns) and len(found) > 1:
            apart = (found.times[1:] > found.times[:-1]).all()
            if apart and not (held and held[0].time == found.times[0]):
                if held:
                    yield held
                last = len(found) - 1  # the next part may begin with matches of the same time
                held = list(found.cut(last, last + 1))
                yield found.cut(0, last)
                continue
        for match in found:
            if held and match.time != held[0].time:
                yield held
                held = []
            held.append(match)
    if held:
        yield held


def _ranks(codes: np.ndarray, terms: NumberedTerms) -> np.ndarray:
    """By this the mappings of one match are ordered: the kinds and texts of terms, as `results.term_order` has them."""
    used, places = np.unique(codes, return_inverse=True)
    keys = [terms.key(code) for code in used.tolist()]
    kinds = {"<": "URIRef", "_": "BNode"}
    order = sorted(range(len(keys)), key=lambda i: (kinds.get(keys[i][:1], "Literal"), nquads_of_key(keys[i])))
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys))
    return ranks[places]


def _again(found: MatchBatch, match: np.ndarray, codes: dict[str, np.ndarray]) -> np.ndarray:
    """The indices of results that equal one before: partitions may give equal ones."""
    ends, starts = found.end[match], found.start[match]
    if len(ends) < 2 or not (ends[1:] == ends[:-1]).any():
        return np.zeros(0, np.int64)
    order = np.lexsort([*codes.values(), starts, ends])
    same = np.ones(len(order) - 1, bool)
    for column in (ends, starts, *codes.values()):
        same &= column[order[1:]] == column[order[:-1]]
    alike = np.unique(np.concatenate([order[1:][same], order[:-1][same]]))
    seen: set[tuple[int, int, bytes, tuple[int, ...]]] = set()
    again = []
    for i in alike.tolist():
        place = match[i]
        own = found.positions[found.offsets[place] : found.offsets[place + 1]].tobytes()
        key = int(ends[i]), int(starts[i]), own, tuple(int(column[i]) for column in codes.values())
        if key in seen:
            again.append(i)
        seen.add(key)
    return np.array(again, np.int64)
