"""Drafts in order of time within the lateness, as batches, for one stream."""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
from rdflib import BNode

from spaseq.core.errors import EventError
from spaseq.core.events.reorder import Released, Reorderer
from spaseq.core.integers import ranges
from spaseq.core.jit import attempt_rows
from spaseq.rdf.columns.dictionary import Dictionary
from spaseq.rdf.columns.drafts import Drafting
from spaseq.rdf.columns.kernels import gathering, layout
from spaseq.rdf.columns.kernels import scanning as k
from spaseq.rdf.columns.kernels.assembly import Drafts
from spaseq.rdf.columns.model import BatchLimits, GraphBatch, TermTable
from spaseq.rdf.columns.scanner import Scanner
from spaseq.rdf.model import Counters, late_event
from spaseq.rdf.options import StreamOptions
from spaseq.rdf.terms import term_bytes
from spaseq.rdf.triple_terms import TripleTerm, with_nodes

_EVERYTHING: Final = (0, 1 << 31)


class Ordering:
    """Puts the ready drafts of `drafting` in order of time and makes batches of them.

    `needed`: how many of the dictionary's wanted predicates a batch has the triples of; None: all triples. Without
    `ordered`, events come in the order of the source, whatever their times, and none waits.
    """

    __slots__ = ("_counters", "_drafting", "_needed", "_reorder", "_scanner", "_stream")

    def __init__(
        self,
        stream: str,
        options: StreamOptions,
        scanner: Scanner,
        drafting: Drafting,
        counters: Counters,
        needed: int | None,
        *,
        ordered: bool = True,
    ) -> None:
        self._stream = stream
        self._scanner = scanner
        self._drafting = drafting
        self._counters = counters
        self._needed = wanted_range(needed)
        self._reorder = Reorderer(options, f"stream {stream}") if ordered else None

    def batches(self, limits: BatchLimits, *, at_end: bool) -> tuple[list[GraphBatch], EventError | None]:
        """The events that nothing can come before any more, all of them if the stream is `at_end`; and the error of the
        first event that goes back in time."""
        drafting, counters = self._drafting, self._counters
        repeated = drafting.drafts.repeated
        found, held, seen = self._release(at_end)
        counters.events += seen
        counters.reopened += int(np.count_nonzero(repeated[held : held + seen]))
        rows = np.arange(drafting.front)
        made = [self._batch(part) for part in self._by_file(rows[found.ready])]
        drafting.keep(rows[found.waiting], restart=self._dictionary.is_full(limits.triples, limits.text))
        return made, found.error

    @property
    def _dictionary(self) -> Dictionary:
        return self._scanner.dictionary

    def _release(self, at_end: bool) -> tuple[Released, int, int]:
        """The ready events and the waiting ones; the number of drafts that waited before, and of those examined."""
        front, reorder = self._drafting.front, self._reorder
        if reorder is None:
            return Released(slice(0, front), slice(front, front), None), 0, front
        held, seen = reorder.held, reorder.seen
        times = self._drafting.drafts.time[:front]
        found = reorder.push(times, lambda row: self._place(held + row), last=at_end)
        self._counters.late += reorder.take_dropped()
        if reorder.on_late is not None:
            for row, behind in reorder.take_late():
                reorder.on_late(late_event(self._batch(np.array([held + row])).event(0), behind))
        return found, held, reorder.seen - seen

    def _place(self, draft: int) -> tuple[str, int]:
        drafts = self._drafting.drafts
        return self._drafting.files[drafts.file[draft]], int(drafts.record[draft])

    def _by_file(self, order: np.ndarray) -> list[np.ndarray]:
        """`order` cut at the beginning of each file."""
        if not len(order):
            return []
        files = self._drafting.drafts.file[order]
        if (files == files[0]).all():
            return [order]
        return np.split(order, np.flatnonzero(np.diff(files)) + 1)

    def _batch(self, order: np.ndarray) -> GraphBatch:
        """The batch of the drafts `order`, all of one file."""
        drafts = self._drafting.drafts
        source = self._drafting.files[drafts.file[order[0]]]
        scope = f"e{zlib.crc32(f'{self._stream} {source}'.encode()):08x}n"
        rows = self._scanner.rows
        return gathered_batch(self._stream, source, scope, self._dictionary, rows, drafts, order, self._needed)


def wanted_range(count: int | None) -> tuple[int, int]:
    """The numbers that a dictionary gives its first `count` wanted predicates: the first, and that behind the last.
    None: of all terms."""
    return _EVERYTHING if count is None else (k.WANTED, k.WANTED + count)


def gathered_batch(
    stream: str, source: str, scope: str, dictionary: Dictionary, rows: np.ndarray, drafts: Drafts, order: np.ndarray,
    needed: tuple[int, int],
) -> GraphBatch:  # fmt: skip
    """The batch of the drafts `order`, all of one source, whose quads are in `rows`. Its own blank nodes have labels of
    `scope` and the numbers of their events. `needed`: the range of the predicates whose triples it has."""
    rows = with_own_nodes(scope, dictionary, rows, drafts, order)
    table, named = dictionary.table, len(dictionary)
    counts = drafts.size[order]
    triples = np.empty((int(counts.sum()), 3), dtype=np.int32)
    offsets = np.empty(len(order) + 1, dtype=np.int64)
    graphs = np.empty(len(order), dtype=np.int32)
    blank = bool((table.kind[:named] == layout.BLANK).any())
    own = np.empty((2 * len(triples) + len(order) if blank else 0, 2), dtype=np.int64)
    blank_of, blank_in = (np.full(named if blank else 0, layout.NIL, dtype=np.int32) for _ in range(2))
    slots = np.full(2 << int(counts.max()).bit_length(), layout.NIL, dtype=np.int64)
    blanks = attempt_rows(gathering.gather, 16 * (len(triples) + len(order)), order, rows, drafts, table.kind, needed,
                          blank_of, blank_in, named, slots, triples, offsets, graphs, own)  # fmt: skip
    terms = _terms(dictionary, scope, own[:blanks].copy())
    return GraphBatch(
        stream, source, triples[: offsets[-1]], offsets, drafts.time[order], graphs, drafts.record[order], terms
    )


def with_own_nodes(
    scope: str, dictionary: Dictionary, rows: np.ndarray, drafts: Drafts, order: np.ndarray
) -> np.ndarray:
    """`rows`, or a copy in which the triple terms of the drafts `order` have their events' own blank nodes.

    Nodes get the labels that `gather` gives them; those that stand only inside triple terms are numbered behind. A
    Python step for each row of an event with such a term, O(1) for a batch without triple terms.
    """
    places = ranges(drafts.first[order], drafts.size[order])
    nested = dictionary.nested_blanks(rows[places, 2]) if len(places) else {}
    if not nested:
        return rows
    rows, finder, blank = rows.copy(), dictionary.finder(), layout.BLANK
    made: list[tuple[int, TripleTerm]] = []
    for draft in order.tolist():
        first, size = int(drafts.first[draft]), int(drafts.size[draft])
        objects = rows[first : first + size, 2]
        inside = np.flatnonzero(np.isin(objects, list(nested)))
        if not len(inside):
            continue
        kind = dictionary.table.kind
        ends = [n for n in rows[first : first + size, [0, 2]].ravel().tolist() if n >= 0 and kind[n] == blank]
        name = int(drafts.name[draft])
        ends += [name] if name >= 0 and kind[name] == blank else []
        ranks: dict[object, int] = {}
        for number in ends:
            ranks.setdefault(number, len(ranks))
        prefix = f"{scope}{int(drafts.number[draft])}b"

        def own(node: BNode, ranks: dict[object, int] = ranks, prefix: str = prefix) -> BNode:
            number = finder(term_bytes(node))
            return BNode(f"{prefix}{ranks.setdefault(node if number < 0 else number, len(ranks))}")

        made += [(first + place, with_nodes(nested[int(objects[place])], own)) for place in inside.tolist()]
    rows[[place for place, _ in made], 2] = dictionary.intern_terms([term for _, term in made])
    return rows


def _terms(dictionary: Dictionary, scope: str, own: np.ndarray) -> TermTable:
    """The terms so far, with the events' own blank nodes behind them. Nothing is copied if there are none, as the
    dictionary only ever adds."""
    count, table = len(dictionary), dictionary.table

    def column(values: np.ndarray, more: int) -> np.ndarray:
        if not len(own):
            return values[:count]
        return np.concatenate((values[:count], np.full(len(own), more, dtype=values.dtype)))

    return TermTable(
        table.text.view(np.uint8),
        column(table.start, layout.NIL),
        column(table.length, 0),
        column(table.kind, layout.BLANK),
        column(table.lexical, layout.NIL),
        column(table.datatype, layout.NIL),
        own,
        scope,
        dictionary.finder(),
        dictionary.made,
    )
