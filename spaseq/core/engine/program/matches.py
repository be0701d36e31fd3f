"""Matches as columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from spaseq.core.engine.kernels.sums.layout import Nodes
from spaseq.core.engine.program.sums import Sums
from spaseq.core.errors import BudgetExceeded
from spaseq.core.snapshot import array, expect

if TYPE_CHECKING:
    from spaseq.core.tecs import Chunk

Emit = Callable[["Chunk"], None]
"""Takes the matches that a kernel has enumerated."""

Labels = tuple[frozenset[str], ...] | None
"""As in `CEA.labels`."""


def _empty() -> np.ndarray:
    return np.zeros(0, np.int64)


def nodes_of(chunk: Chunk, labels: Labels) -> MatchBatch:
    """The nodes that a kernel wrote, for an automaton with these labels. O(nodes)."""
    pairs = chunk.places.reshape(-1, 2)
    behind = chunk.offsets[1:] // 2 - 1
    inside = np.ones(len(pairs), bool)
    inside[behind] = False
    roots, last = pairs[behind].T.copy()
    own, bits = pairs[inside], label_bits(labels)
    offsets = chunk.offsets // 2 - np.arange(len(chunk.offsets))
    marked = own[:, 1] < 0
    positions = (-1 - own[marked, 1]) >> bits
    ends = chunk.end.copy()
    starts = np.full(len(ends), min(int(ends[0]), int(positions.min(initial=ends[0]))))
    places = np.concatenate([[0], np.cumsum(marked)])[offsets]
    return MatchBatch(starts, ends, places, positions, nodes=Nodes(own, offsets, last, roots, ends, bits))


class CodedRows(Sequence[frozenset[Hashable]]):
    """The register rows of matches as codes: a row is made on access.

    To be read before the next batch is pushed, when codes may be forgotten. `codes`: int64 (k, registers); those of
    match i are `firsts[i]` and the `counts[i] - 1` behind it. `make` turns them into a row; `owner` is the object that
    holds the values of codes.
    """

    __slots__ = ("_made", "codes", "counts", "firsts", "make", "owner")

    def __init__(
        self,
        codes: np.ndarray,
        firsts: np.ndarray,
        counts: np.ndarray,
        make: Callable[[list[list[int]]], Hashable],
        owner: object,
    ) -> None:
        self.codes: np.ndarray = codes
        self.firsts: np.ndarray = firsts
        self.counts: np.ndarray = counts
        self.make = make
        self.owner = owner
        self._made: dict[int, frozenset[Hashable]] = {}

    def __len__(self) -> int:
        return len(self.firsts)

    @overload
    def __getitem__(self, index: int) -> frozenset[Hashable]: ...
    @overload
    def __getitem__(self, index: slice) -> list[frozenset[Hashable]]: ...
    def __getitem__(self, index: int | slice) -> frozenset[Hashable] | list[frozenset[Hashable]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        first = int(self.firsts[index])
        made = self._made.get(first)
        if made is None:
            own = self.codes[first : first + int(self.counts[index])].tolist()
            made = self._made[first] = frozenset({self.make(own)})
        return made

    @staticmethod
    def concat(parts: Sequence[CodedRows]) -> CodedRows:
        """One after the other, of one owner."""
        shifts = np.cumsum([0, *(len(part.codes) for part in parts)])
        return CodedRows(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.firsts + shift for part, shift in zip(parts, shifts, strict=False)]),
            np.concatenate([part.counts for part in parts]),
            parts[0].make,
            parts[0].owner,
        )


def _together(parts: Sequence[Rows]) -> Rows:
    coded = [part for part in parts if isinstance(part, CodedRows)]
    if len(coded) == len(parts) and len({id(part.owner) for part in coded}) == 1:
        return CodedRows.concat(coded)
    return [row for part in parts for row in part]


Rows = Sequence[frozenset[Hashable]]
"""The register rows of matches."""


@dataclass(frozen=True, slots=True)
class MatchBatch:
    """Complex events ([start, end], D), in order of their ends.

    `start`, `end`: int64 (m,). `positions`: int64, D of match i ascending at `positions[offsets[i]:offsets[i + 1]]`.
    `rows`: for a program with registers, the register rows each match was accepted with; else None.
    `labels`: for a program of valuations, int64, the number in `Program.labels` of the variables that take each of
    `positions`; else None.
    `nodes`: for a program that writes nodes, these. Each row is then a part of the nodes of all matches that
    end at `end`. None of them began before `start`, and the nodes mark `positions`. Not to be taken apart.
    `sums`: for a program that aggregates, the numbers of all matches that end at `end`, for which this one stands.
    `silences`: for a program whose matches are reported again after each silence, int64 (m,): its number, from 1 on.
    """

    start: np.ndarray = field(default_factory=_empty)
    end: np.ndarray = field(default_factory=_empty)
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    positions: np.ndarray = field(default_factory=_empty)
    rows: Rows | None = None
    labels: np.ndarray | None = None
    sums: Sums | None = None
    silences: np.ndarray | None = None
    nodes: Nodes | None = None

    def __len__(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        labels = 0 if self.labels is None else self.labels.nbytes
        sums = 0 if self.sums is None else self.sums.ints.nbytes + self.sums.floats.nbytes
        nodes = 0 if self.nodes is None else self.nodes.pairs.nbytes
        more = labels + sums + nodes + (0 if self.silences is None else self.silences.nbytes)
        return int(self.start.nbytes + self.end.nbytes + self.offsets.nbytes + self.positions.nbytes + more)

    def take(self, index: np.ndarray) -> MatchBatch:
        """The matches at these rows, int64 (n,), in their order; a row may come several times. Without `sums`."""
        sizes = np.diff(self.offsets)[index]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(self.offsets[index] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return MatchBatch(
            self.start[index],
            self.end[index],
            offsets,
            self.positions[places],
            None if self.rows is None else [self.rows[i] for i in index.tolist()],
            None if self.labels is None else self.labels[places],
            silences=None if self.silences is None else self.silences[index],
        )

    def snapshot(self) -> tuple[Any, ...]:
        """The columns, as plain values."""
        rows = None if self.rows is None else list(self.rows)
        return self.start, self.end, self.offsets, self.positions, rows, self.labels

    @staticmethod
    def restore(state: tuple[Any, ...]) -> MatchBatch:
        """The opposite of `snapshot`."""
        start, end, offsets, positions = (array(column, "matches") for column in state[:4])
        rows, labels = state[4:]
        expect(len(start) == len(end) == len(offsets) - 1 and offsets[0] == 0, "columns of one length")
        expect((np.diff(offsets) >= 0).all() and offsets[-1] == len(positions), "positions for each match")
        expect(rows is None or len(rows) == len(start), "rows for each match")
        return MatchBatch(start, end, offsets, positions, rows,
                          None if labels is None else array(labels, "labels", rows=len(positions)))  # fmt: skip

    @staticmethod
    def concat(batches: Sequence[MatchBatch]) -> MatchBatch:
        """One after the other."""
        batches = [b for b in batches if len(b)] or list(batches[:1])
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return MatchBatch()
        shifts = np.cumsum([0] + [len(b.positions) for b in batches])
        told = [b.rows for b in batches if b.rows is not None]
        rows = _together(told) if len(told) == len(batches) else None
        numbers = [b.labels for b in batches if b.labels is not None]
        labels = np.concatenate(numbers) if numbers else None
        summed = [b.sums for b in batches if b.sums is not None]
        sums = Sums.concat(summed) if summed else None
        silences = [b.silences for b in batches if b.silences is not None]
        return MatchBatch(
            np.concatenate([b.start for b in batches]),
            np.concatenate([b.end for b in batches]),
            np.concatenate([[0], *(b.offsets[1:] + s for b, s in zip(batches, shifts, strict=False))]),
            np.concatenate([b.positions for b in batches]),
            rows,
            labels,
            sums,
            np.concatenate(silences) if silences else None,
        )


def within(parts: Iterable[MatchBatch], budget: int) -> Iterator[MatchBatch]:
    """`parts`, as long as they are no more than `budget` bytes together; then `BudgetExceeded` for `output_bytes`."""
    used = 0
    for part in parts:
        used += part.nbytes
        if used > budget:
            raise BudgetExceeded("output_bytes", budget, used)
        yield part


def label_bits(labels: Labels) -> int:
    """The bits that a label takes beside a position (`kernels.LABEL_BITS`)."""
    return 0 if not labels else (len(labels) - 1).bit_length()


def matches_of(chunk: Chunk, labels: Labels, rows: Rows | None = None) -> MatchBatch:
    """The matches that a kernel wrote, for an automaton with these labels."""
    if labels is None:
        return MatchBatch(chunk.start, chunk.end, chunk.offsets, chunk.places, rows)
    bits = label_bits(labels)
    positions, numbers = chunk.places >> bits, chunk.places & ((1 << bits) - 1)
    return MatchBatch(chunk.start, chunk.end, chunk.offsets, positions, rows, numbers)


def no_matches(labels: Labels, rows: list[frozenset[Hashable]] | None = None) -> MatchBatch:
    """No match, with the columns of `matches_of`."""
    return MatchBatch(rows=rows, labels=None if labels is None else _empty())
