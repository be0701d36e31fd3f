"""One bucket's evaluation of a SPAseq query: parcels in, matches out, a snapshot between batches.

Rows wait until their instants are complete (`spaseq.spark.streaming.watermark`); the recogniser is that of the local
engine. What was only waiting for a window to close, an absence or a clause over a window, is given when the watermark
passes its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spaseq.core.snapshot import expect, seal, unseal
from spaseq.language.results.match import Match
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.rdf import ARRIVAL, TERMS, StreamOptions
from spaseq.spark.batch.form import Shape, chunks
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.tables import LATE_GRAPHS, batch_of
from spaseq.spark.solving.solutions import at_instant
from spaseq.spark.streaming.bucket_messages import Parcel
from spaseq.spark.streaming.watermark import AWAKE, Clock, Silence

_ROWS: Final = 10_000


class GraphEvaluation:
    """See the module. `shape`: of matches and the names of their variables, the rows. `loose`, `silence`: see `Clock`.
    `buckets`: how many there are."""

    def __init__(
        self,
        query: QueryText,
        layout: Layout,
        options: StreamOptions,
        feeds: int,
        shape: Shape,
        *,
        loose: bool = False,
        silence: Silence = AWAKE,
        buckets: int = 1,
    ) -> None:
        compiled = query.compiled()
        self._shape = shape
        self._layout = layout
        self._buckets = buckets
        self._partition = sorted(compiled.checked.partition)
        self._variables = compiled.variables
        self._recogniser = Recogniser(compiled.checked, compiled.program(options.unit), None, keep_events=False)
        self._clock = Clock(feeds, options, loose, silence)
        self._rows: list[tuple[int, int, int, Any, Any]] = []
        self._malformed = 0
        self._matches = 0
        self._ended = False
        self._latest: tuple[list[Any], Any] = ([], ())
        self._iris = [iri for _, iri in compiled.streams]
        self._late: list[tuple[Any, ...]] = []

    def begin(self, now: int) -> None:
        """The next batch begins, at `now` (ns) by the clock."""
        self._late = []
        self._clock.begin_batch(now)

    def is_attached(self, body: bytes) -> bool:
        return Parcel.unpack(body).attached

    def take(self, feed: int, body: bytes) -> None:
        """The next parcel of a stream, or more rows of the one before. EventError for a late event."""
        parcel = Parcel.unpack(body)
        if not parcel.attached:
            places, late_by = self._clock.take(feed, parcel.times, parcel.lines, parcel.file)
            self._latest = (places.tolist(), late_by)
            if parcel.graphs:
                self._tell_late(feed, parcel, late_by)
        at, late_by = self._latest
        self._rows += [(*at[number], key, mappings) for number, key, mappings in parcel.rows if not late_by[number]]
        if parcel.told is not None:
            self._malformed += parcel.told.counters.malformed
            if parcel.told.last:
                self._clock.close(feed)

    def _tell_late(self, feed: int, parcel: Parcel, late_by: np.ndarray) -> None:
        """Note the late ones of the events of a parcel. Those of a DataFrame have no place in a file."""
        for number in np.flatnonzero(late_by).tolist():
            place = (None, None) if self._clock.loose else (parcel.file, int(parcel.lines[number]))
            event = (self._iris[feed], int(parcel.times[number]), *parcel.graphs[number], *place)
            self._late.append((*event, int(late_by[number])))

    def late_rows(self) -> Iterator[pa.Table]:
        """LATE_GRAPHS of this batch, in the bucket that is sent the graphs."""
        for found in chunks(self._late, _ROWS):
            yield pa.Table.from_batches([batch_of(LATE_GRAPHS, found)])

    def pass_silence(self) -> None:
        """Nothing came in this batch: time goes on. `OptionError` if times are not of a clock."""
        options = self._clock.options
        self._clock.pass_silence(None if options.time == ARRIVAL else options.time or "their time")

    @property
    def awaits(self) -> bool:
        """True if time alone may complete something."""
        return self._clock.awaits(self._recogniser.waits)

    def release(self) -> Iterator[pa.Table]:
        """The rows of the matches that are now complete."""
        self._clock.end_batch()
        mark = self._clock.watermark
        positions = self._clock.complete()
        if mark is None:
            return
        for found in chunks(self._found(positions, mark), _ROWS):
            self._matches += len(found)
            yield pa.Table.from_batches([self._shape(found, self._variables)])

    def words(self) -> tuple[Any, ...]:
        return self._clock.words()

    def use(self, words: tuple[Any, ...]) -> None:
        self._clock.use(words)

    def _found(self, positions: dict[Any, int], mark: int) -> Iterator[Match]:
        ready = sorted((row for row in self._rows if row[0] < mark), key=itemgetter(0, 1, 2))
        self._rows = [row for row in self._rows if row[0] >= mark]
        which = itemgetter(0, 1, 2) if self._clock.options.apart else itemgetter(0)
        solved = []
        for key, rows in groupby(ready, key=which):
            (time, *_), *_ = held = list(rows)
            found = ((by, mappings) for *_, by, mappings in held)
            solved += at_instant(positions[key], time, found, self._layout, self._partition)
        yield from self._recogniser.push_rows(solved)
        if self._clock.over:
            if not self._ended:
                self._ended = True
                yield from self._recogniser.close()
        else:
            yield from self._recogniser.advance(mark)

    def _identity(self) -> dict[str, str]:
        return {"language": "SPAseq on Spark", **self._recogniser.identity(), "streams": self._clock.identity(),
                "buckets": str(self._buckets)}  # fmt: skip

    def snapshot(self) -> bytes:
        """The state between two batches."""
        state = {
            "clock": self._clock.snapshot(),
            "rows": self._rows,
            "counts": (self._malformed, self._matches, self._ended),
            "recogniser": self._recogniser.snapshot(),
        }
        return seal(self._identity(), state, (TERMS,))

    def restore(self, state: bytes) -> None:
        """Goes on from a snapshot of an evaluation of the same query. `OptionError` for anything else."""
        unseal(state, self._identity(), (TERMS,), self._restored)

    def _restored(self, state: dict[str, Any]) -> None:
        self._clock.restore(state["clock"])
        self._rows = state["rows"]
        expect(all(len(row) == 5 and all(type(at) is int for at in row[:3]) for row in self._rows), "rows of instants")
        self._malformed, self._matches, self._ended = state["counts"]
        self._recogniser.restore(state["recogniser"], self._clock.position)

    def counts(self, first: bool) -> list[int]:
        live = self._recogniser.statistics.get("live_runs", 0)
        known = [self._clock.events, self._clock.late] if first else [0, 0]
        return [*known, self._malformed, self._matches, live]
