"""Matches as columns: the form of many results, until one of them is read as a `Match`.

The engine's matches hold codes of terms. Here they stay arrays through the projection and up to the writer. An rdflib
term is made for a `Match` alone, and a text once for each different term.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from spaseq.core.engine import CodedRows, MatchBatch
from spaseq.core.engine.program.register_ops import NOTHING
from spaseq.core.integers import apart, different, ranges
from spaseq.gpm import ROUNDS, Mapping
from spaseq.gpm.serialise import key_parts, nquads_of_key, nquads_of_keys, nquads_term
from spaseq.language.guards.encoding import TermCodes
from spaseq.language.results.history import History
from spaseq.language.results.match import Match
from spaseq.language.results.step_values import StepValues
from spaseq.rdf import GraphEvent, is_triple_key

_TEXTS: Final = 1 << 17


class CodedTerms(Protocol):
    """The terms that codes stand for. `forgotten`: how often some were let go of; a term may have another code then."""

    forgotten: int

    def key(self, number: int, /) -> str:
        """The `term_key` of a code's term."""

    def keys(self, numbers: Iterable[int], /) -> list[bytes]:
        """The bytes of the terms of codes (`term_bytes`)."""

    def texts(self, numbers: Iterable[int], /) -> list[str]:
        """`key` of each code."""

    def term(self, number: int, /) -> Any:
        """The term of a code."""


class CodedLists(Protocol):
    """The lists of rounds that codes stand for. `names`: the variables that rounds may bind."""

    @property
    def names(self) -> Sequence[str]: ...

    def cells(self, numbers: np.ndarray, /) -> tuple[np.ndarray, np.ndarray]:
        """The number of rounds of each list, int64 (n,), and the codes of their terms: int64 (rounds, names). The
        rounds stand one behind the other; NOTHING for a variable that a round does not bind."""

    def mappings(self, number: int, /) -> tuple[Mapping, ...]:
        """The rounds of a list."""


class Texts:
    """Texts of terms by their codes, made once for the same terms. `make` gives the texts of `term_key`s."""

    def __init__(self, make: Callable[[Sequence[str]], Sequence[str]]) -> None:
        self._make = make
        self._known: dict[int, str] = {}
        self._terms: CodedTerms | None = None

    def of(self, codes: np.ndarray, terms: CodedTerms) -> tuple[list[str | None], np.ndarray]:
        """The different texts, None if nothing is bound, and for each code the index of its text."""
        used, places = different(codes)
        if terms is not self._terms or len(self._known) > _TEXTS:
            self._known.clear()
            self._terms = terms
        known, asked = self._known, used.tolist()
        fresh = [code for code in asked if code not in known and code != NOTHING]
        if fresh:
            known.update(zip(fresh, self._make(terms.texts(fresh)), strict=True))
        return list(map(known.get, asked)), places


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The times of all positions of some matches, int64, in order, and a function that gives the events of the i-th
    match."""

    times: np.ndarray
    events: Callable[[int], Sequence[GraphEvent]]


@dataclass(frozen=True, slots=True, eq=False)
class FoundColumns:
    """Matches in order, to be read before the next ones are computed.

    `start`, `end`: int64 (m,); `offsets`, `positions` as in `MatchBatch`; `times`: int64 (m,), of the last positions.
    `codes`: for each selected variable the codes of its terms in `terms`, int64 (m,), NOTHING if it is not bound; those
    of `ROUNDS` are in `lists`. `instants` has the times and the events of the positions.
    """

    start: np.ndarray
    end: np.ndarray
    offsets: np.ndarray
    positions: np.ndarray
    times: np.ndarray
    codes: dict[str, np.ndarray]
    terms: CodedTerms
    instants: History | Kept
    lists: CodedLists | None = None

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[Match]:
        starts, ends, offsets = self.start.tolist(), self.end.tolist(), self.offsets.tolist()
        places, term = self.positions.tolist(), self.terms.term
        columns = [
            (name, term if name != ROUNDS or self.lists is None else self.lists.mappings, codes.tolist())
            for name, codes in self.codes.items()
        ]
        for i in range(len(starts)):
            positions = tuple(places[offsets[i] : offsets[i + 1]])
            bindings: dict[str, Any] = {name: of(codes[i]) for name, of, codes in columns if codes[i] != NOTHING}
            kept = self.instants
            if isinstance(kept, History):
                yield Match(starts[i], ends[i], positions, bindings, *kept.held(positions))
            else:
                times = tuple(kept.times[offsets[i] : offsets[i + 1]].tolist())
                yield Match(starts[i], ends[i], positions, bindings, times, kept.events(i))

    def first_times(self) -> np.ndarray:
        """The times of the first positions: int64 (m,)."""
        if isinstance(self.instants, History):
            return self.instants.times(self.positions[self.offsets[:-1]])
        return self.instants.times[self.offsets[:-1]]

    def kept_events(self) -> tuple[np.ndarray, Callable[[int], Sequence[GraphEvent]]]:
        """`Kept`, which stays valid while the evaluation goes on."""
        if not isinstance(self.instants, History):
            return self.instants.times, self.instants.events
        times, between = self.instants.capture(self.positions)
        offsets = self.offsets
        return times, lambda row: between(int(offsets[row]), int(offsets[row + 1]))

    def cut(self, first: int, last: int) -> FoundColumns:
        """The matches `first` up to `last`."""
        begin, end = self.offsets[first], self.offsets[last]
        codes = {name: own[first:last] for name, own in self.codes.items()}
        instants = self.instants
        if isinstance(instants, Kept):
            events = instants.events
            instants = Kept(instants.times[begin:end], lambda row: events(first + row))
        return FoundColumns(self.start[first:last], self.end[first:last], self.offsets[first : last + 1] - begin,
                            self.positions[begin:end], self.times[first:last], codes, self.terms, instants,
                            self.lists)  # fmt: skip

    def take(self, rows: np.ndarray) -> FoundColumns:
        """The matches at `rows`, int64, in that order."""
        offsets, places = taken(self.offsets, rows)
        codes = {name: own[rows] for name, own in self.codes.items()}
        instants = self.instants
        if isinstance(instants, Kept):
            events, numbers = instants.events, rows.tolist()
            instants = Kept(instants.times[places], lambda row: events(numbers[row]))
        return FoundColumns(self.start[rows], self.end[rows], offsets, self.positions[places], self.times[rows], codes,
                            self.terms, instants, self.lists)  # fmt: skip

    def solutions(self, variables: Sequence[str]) -> FoundColumns:
        """One match for each solution, in the order of `distinct_solutions`. All matches of a time are to be here."""
        alike = np.flatnonzero(self.times[1:] == self.times[:-1])
        if not len(alike):
            return self
        inside = np.zeros(len(self), bool)
        inside[alike] = inside[alike + 1] = True
        rows = np.flatnonzero(inside)
        group = np.cumsum(np.diff(self.times[rows], prepend=self.times[rows[0]]) != 0)
        codes = {name: own[rows] for name, own in self.codes.items()}
        order = np.lexsort([*codes.values(), group])  # stable: the first of equal ones stays
        same = np.ones(len(rows) - 1, bool)
        for column in (group, *codes.values()):
            same &= column[order[1:]] == column[order[:-1]]
        kept = np.ones(len(rows), bool)
        kept[order[1:][same]] = False
        ranks = [_solution_ranks(codes[name][kept], self.terms) for name in variables if name in codes]
        places = np.arange(len(self))
        places[rows[kept]] = rows[kept][np.lexsort([*ranks[::-1], group[kept]])]
        return self.take(np.delete(places, rows[~kept]))

    def texts(self, name: str, texts: Texts) -> list[str | None]:
        """The text of a variable's term in each match, None if it is not bound."""
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
                found, places = texts.setdefault("", Texts(nquads_of_keys)).of(codes, self.terms)
                cells = pa.array(found, pa.string()).take(pa.array(places))
            columns[f"?{name}" if name in columns else name] = cells
        return pa.RecordBatch.from_pydict(columns)


def columns_of(
    found: MatchBatch, selected: frozenset[str], history: History, values: StepValues | None = None
) -> FoundColumns | None:
    """The matches of the engine, one for each different projected mapping, with the identity and order of `Match`es.
    None if that needs the terms. `values`: those that runs do not keep, if there are any."""
    terms: CodedTerms
    lists: CodedLists | None = None
    if values is None:
        rows = found.rows
        if not isinstance(rows, CodedRows) or not isinstance(rows.owner, TermCodes):
            return None
        registers, terms, lists = rows.owner.columns(selected), rows.owner.terms, rows.owner.chains
        if registers is None:
            return None
        match = np.arange(len(found))
        places = rows.firsts
        if len(rows) and rows.counts.max() > 1:
            match = np.repeat(match, rows.counts)
            places = ranges(rows.firsts, rows.counts)
        codes = {name: rows.codes[places, registers[name]] for name in sorted(registers)}
    else:
        looked_up = values.columns(found, selected)
        if looked_up is None:
            return None
        (match, codes), terms = looked_up, values.terms
    if len(match) > len(found):
        if any((column == NOTHING).any() for column in codes.values()):
            return None
        ranks = [
            list_ranks(column, lists, NOTHING) if name == ROUNDS and lists else text_ranks(column, terms, NOTHING)
            for name, column in codes.items()
        ]
        order = np.lexsort([*reversed(ranks), match])
        match, codes = match[order], {name: column[order] for name, column in codes.items()}

    def positions_of(row: int) -> np.ndarray:
        return found.positions[found.offsets[match[row]] : found.offsets[match[row] + 1]]

    repeated = np.zeros(0, np.int64)
    if values is None:  # else there are no partitions, and one way to take the positions
        repeated = again(found.start[match], found.end[match], positions_of, codes.values())
    if len(repeated):
        match, codes = np.delete(match, repeated), {name: np.delete(c, repeated) for name, c in codes.items()}
    offsets, positions = found.offsets, found.positions
    if len(match) != len(found) or len(repeated):
        offsets, places = taken(offsets, match)
        positions = positions[places]
    times = history.times(positions[offsets[1:] - 1]) if len(match) else np.zeros(0, np.int64)
    return FoundColumns(found.start[match], found.end[match], offsets, positions, times, codes, terms, history, lists)


def solution_blocks(
    parts: Iterable[FoundColumns | Iterable[Match]], variables: Sequence[str]
) -> Iterator[FoundColumns | list[Match]]:
    """The solutions of matches, one match for each, with the identity and order of `distinct_solutions`; and lists of
    all matches of one time that it has still to decide.

    PERF: of lists of rounds, in which most times have several matches, CSV became 2.5 times as fast.
    """
    held: list[Match] = []
    for found in parts:
        if isinstance(found, FoundColumns) and len(found):
            fresh = np.flatnonzero(np.diff(found.times)) + 1  # the beginnings of times, except the first
            first = 0
            if held and held[0].time == found.times[0]:
                first = int(fresh[0]) if len(fresh) else len(found)
                held += found.cut(0, first)
            if first < len(found):
                if held:
                    yield held
                last = int(fresh[-1]) if len(fresh) else 0  # the next part may begin with matches of the same time
                if first < last:
                    yield found.cut(first, last).solutions(variables)
                held = list(found.cut(last, len(found)))
            continue
        for match in found:
            if held and match.time != held[0].time:
                yield held
                held = []
            held.append(match)
    if held:
        yield held


def taken(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of lists that lie behind one another, those at `rows`: their own offsets, and the places of their items;
    int64."""
    lengths = (offsets[1:] - offsets[:-1])[rows]
    return np.append(0, np.cumsum(lengths)), ranges(offsets[:-1][rows], lengths)


def _solution_ranks(codes: np.ndarray, terms: CodedTerms) -> np.ndarray:
    """The rank of each solution in the order of one time's solutions, as of `distinct_solutions`: int64, -1 if not
    bound."""
    used, places = different(codes)
    bound = np.flatnonzero(used != NOTHING)
    keys = terms.texts(used[bound].tolist())
    texts: list[Any] = [key_parts(key)[1] for key in keys]
    if len(set(texts)) < len(texts):
        texts = list(zip(texts, map(nquads_of_key, keys), strict=True))
    ranks = np.full(len(used), -1, np.int64)
    ranks[bound[sorted(range(len(texts)), key=texts.__getitem__)]] = np.arange(len(texts))
    return ranks[places]


def text_ranks(codes: np.ndarray, terms: CodedTerms, nothing: int) -> np.ndarray:
    """By this the mappings of one match are ordered: the kinds and texts of terms, as `results.term_order` has them.
    int64 from 0; -1 of the code `nothing`."""
    used, places = different(codes)
    keys = [terms.key(code) for code in used.tolist() if code != nothing]
    kinds = {"<": "URIRef", "_": "BNode"}

    def place(i: int) -> tuple[str, str]:
        other = "TripleTerm" if is_triple_key(keys[i]) else "Literal"
        return kinds.get(keys[i][:1], other), nquads_of_key(keys[i])

    order = sorted(range(len(keys)), key=place)
    ranks = np.full(len(used), -1, np.int64)
    ranks[np.flatnonzero(used != nothing)[order]] = np.arange(len(keys))
    return ranks[places]


def list_ranks(codes: np.ndarray, lists: CodedLists, nothing: int) -> np.ndarray:
    """`text_ranks` of lists of rounds."""
    used, places = different(codes)
    texts = [rounds_text(lists.mappings(code)) for code in used.tolist() if code != nothing]
    ranks = np.full(len(used), -1, np.int64)
    ranks[np.flatnonzero(used != nothing)[sorted(range(len(texts)), key=texts.__getitem__)]] = np.arange(len(texts))
    return ranks[places]


def rounds_text(rounds: Iterable[Mapping]) -> str:
    """The mappings of rounds as a text that they are ordered by."""
    return " ".join(f"{name} {nquads_term(term)}" for taken in rounds for name, term in taken)


def again(
    starts: np.ndarray,
    ends: np.ndarray,
    positions_of: Callable[[int], np.ndarray],
    codes: Collection[np.ndarray],
) -> np.ndarray:
    """The indices of results that equal one before, in all that is given: partitions may give equal ones."""
    if len(ends) < 2 or not (ends[1:] == ends[:-1]).any():
        return np.zeros(0, np.int64)
    order = np.lexsort([*codes, starts, ends])
    same = np.ones(len(order) - 1, bool)
    for column in (ends, starts, *codes):
        same &= column[order[1:]] == column[order[:-1]]
    alike = apart(np.concatenate([order[1:][same], order[:-1][same]]))
    seen: set[tuple[int, int, bytes, tuple[int, ...]]] = set()
    found = []
    for i in alike.tolist():
        key = int(ends[i]), int(starts[i]), positions_of(i).tobytes(), tuple(int(column[i]) for column in codes)
        if key in seen:
            found.append(i)
        seen.add(key)
    return np.array(found, np.int64)
