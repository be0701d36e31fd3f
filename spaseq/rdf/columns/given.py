"""Events that are given as quads of a table, of which the caller knows the times and where each event begins.

The quads are lines of N-Quads, which are read as those of files are. What makes an event, and when it happened, is not
taken from them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import numpy as np

from spaseq.rdf.columns.dictionary import Dictionary, wanted_keys
from spaseq.rdf.columns.drafts import no_drafts
from spaseq.rdf.columns.kernels import layout
from spaseq.rdf.columns.model import GraphBatch
from spaseq.rdf.columns.ordering import gathered_batch, wanted_range
from spaseq.rdf.columns.scanner import Scanner
from spaseq.rdf.files import format_of
from spaseq.rdf.model import Counters

_QUADS = format_of("quads.nq")


class GivenQuads:
    """The quads of lines of N-Quads.

    `lines`: int64 (n,), the number of the line of each quad that was read, from 0. `named`: bool (n,), True if it is in
    a named graph. With `malformed` "drop", lines that cannot be read are left out and counted, else they are an
    EventError about `source`, with the line as `record`. Of `wanted` predicates alone batches have triples; None: all.
    """

    def __init__(
        self,
        text: bytes,
        source: str,
        counters: Counters,
        wanted: Collection[str] | None = None,
        malformed: Literal["error", "drop"] = "error",
    ) -> None:
        keys = wanted_keys(wanted)
        self._needed = wanted_range(None if keys is None else len(keys))
        self._scanner = Scanner(Dictionary(keys), counters, malformed)
        self._source = source
        for _ in self._scanner.read([text], _QUADS, source):
            pass
        count = self._scanner.count
        self._rows = self._scanner.rows[:count]
        self.lines: np.ndarray = self._scanner.lines[:count] - 1
        self.named: np.ndarray = self._rows[:, 3] != layout.NIL

    def keep(self, quads: np.ndarray) -> None:
        """Leave out all quads but these, int64, ascending."""
        self._rows, self.lines, self.named = self._rows[quads], self.lines[quads], self.named[quads]

    def batch(
        self, stream: str, scope: str, first: np.ndarray, size: np.ndarray, times: np.ndarray, numbers: np.ndarray,
        records: np.ndarray,
    ) -> GraphBatch:  # fmt: skip
        """The batch of some events: event i has the `size[i]` quads from `first[i]` on (int64), and happened at
        `times[i]` (int64, ns). It is named by that of its first quad. Its blank nodes are its own, their labels made of
        `scope` and `numbers[i]` (int64). O(quads)."""
        names = self._rows[first, 3]
        drafts = no_drafts()._replace(first=first, size=size, time=times, number=numbers, record=records, name=names)
        order = np.arange(len(first))
        dictionary = self._scanner.dictionary
        return gathered_batch(stream, self._source, scope, dictionary, self._rows, drafts, order, self._needed)
