"""The operator with state: an evaluation for each bucket, kept as one value by Spark between batches.

Spark's own event time is not used. Its watermark would move a batch late, drop late rows without a word before we saw
them, and could not tell the streams of a streamset apart. Every bucket works the watermark out of the parcels
(`spaseq.spark.streaming.watermark`), and as each batch reaches every bucket, what waits for time to pass is given as
soon as it has.

What a process evaluated last is kept in it, so that the next batch need not unpack the state; a mark in the state,
fresh each time, says whether what is kept is what Spark committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from spaseq.core.errors import OptionError
from spaseq.core.snapshot import decode, encode
from spaseq.spark.session.failures import MARK, carry
from spaseq.spark.session.tables import STATE, STATE_PLACE, spark_schema

if TYPE_CHECKING:
    import pandas as pd

COUNTERS: Final = ("events", "late", "malformed", "matches", "live_runs", "state_bytes")
_MATCH: Final = 0
_COUNT: Final = 1
_LATE: Final = 2
_MARK: Final = 16
_ROWS: Final = 10_000
_Body = tuple[tuple[int, ...], bytes]
"""The place of a parcel, and its packed contents."""
_KEPT: Final = 128


class Evaluation(Protocol):
    """An evaluation for a bucket: `begin` a batch at a time (ns), `take` each packed parcel in order, then `release`
    what is complete. A batch that brings nothing calls `pass_silence` in place of `take`.

    `words` are the options that decide what is late and what is complete; to go on from a log they are set again
    (`use`)."""

    def begin(self, now: int) -> None: ...

    def is_attached(self, body: bytes) -> bool:
        """True if a parcel only has more rows of the events of the one in front of it."""

    def take(self, feed: int, body: bytes) -> None: ...

    def pass_silence(self) -> None: ...

    def late_rows(self) -> Iterator[pa.Table]:
        """The late events of the batch, if they are rows of their own."""

    @property
    def awaits(self) -> bool:
        """True if time alone may complete something, so that a batch which brings nothing is of use."""

    def release(self) -> Iterator[pa.Table]: ...

    def words(self) -> tuple[Any, ...]: ...

    def use(self, words: tuple[Any, ...]) -> None: ...

    def snapshot(self) -> bytes: ...

    def restore(self, state: bytes) -> None: ...

    def counts(self, first: bool) -> list[int]:
        """Events of all streams and late ones among them, malformed lines and matches so far, runs that are live. What
        all buckets know alike is counted by the `first`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows that come out of a stream: the columns of matches, and of late events if these are rows of their own."""

    matches: pa.Schema
    late: pa.Schema | None = None

    @property
    def columns(self) -> list[pa.Field]:
        """All columns, under numbers: any names may be in both, and some have dots."""
        late = () if self.late is None else self.late
        fields = [pa.field(f"m{place}", field.type) for place, field in enumerate(self.matches)]
        return [*fields, *(pa.field(f"l{place}", field.type) for place, field in enumerate(late))]

    def divide(self, rows: DataFrame) -> list[tuple[DataFrame, int]]:
        """The matches, and the late events, of rows that have both, and how many they are. Runs a job that computes all
        rows."""
        assert self.late is not None
        counts = [F.count_if(F.col("kind") == kind) for kind in (_MATCH, _LATE)]
        (found,) = rows.agg(*counts).collect()
        return list(
            zip(
                (_rows_of_kind(rows, _MATCH, "m", self.matches), _rows_of_kind(rows, _LATE, "l", self.late)),
                found,
                strict=True,
            )
        )


def _rows_of_kind(rows: DataFrame, kind: int, letter: str, schema: pa.Schema) -> DataFrame:
    names = (F.col(f"{letter}{place}").alias(name) for place, name in enumerate(schema.names))
    return rows.where(F.col("kind") == kind).select(*names)


def evaluated(
    parcels: DataFrame, make: Callable[[], Evaluation], outcome: Outcome, first: int, *, timed: bool = False
) -> DataFrame:
    """The matches of PARCELS (`spaseq.spark.session.tables`), and their totals as the observation `spaseq`. If late
    events are rows too, both in one DataFrame, which `Outcome.divide` divides.

    `make` gives an empty evaluation. `first`: the bucket that reports what all know alike (events, late, malformed).
    `timed`: batches that bring nothing let time go on, by timers of Spark's.
    """
    # The time of the batch (microseconds), which a batch that is done again has again. As text: Spark writes a number
    # into the code that it makes of the plan, which then is compiled anew for each batch; a text is a reference there.
    dated = parcels.withColumn("now", F.unix_micros(F.current_timestamp()).cast("string"))
    totals = ((f"total_{name}", pa.int64()) for name in COUNTERS)
    rows = pa.schema([("kind", pa.int32()), *outcome.columns, *totals])
    found = dated.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=Processor(make, uuid4().hex, outcome, first, timed),
        outputStructType=spark_schema(rows),
        outputMode="Append",
        timeMode="ProcessingTime" if timed else "None",
    )
    observed = found.observe("spaseq", *(F.sum(f"total_{name}").alias(name) for name in COUNTERS))
    if outcome.late is not None:
        return observed.where(F.col("kind") != _COUNT).select("kind", *(field.name for field in outcome.columns))
    return _rows_of_kind(observed, _MATCH, "m", outcome.matches)


class Processor(StatefulProcessor):
    """See `evaluated`. Made on the driver, run by workers. `run` names the query's run, `outcome` has the columns of
    rows.

    The state is a snapshot, and a log of what was taken since: a batch writes what it brought, not all that is held.
    Once the log is as long as the snapshot, a new one takes the place of both. So a batch writes at most twice what it
    brings, in the long run. To go on from a checkpoint, no more is read of the log than of the snapshot.

    *Timers* (`timed`). Spark then begins a batch at each trigger, also if no event came. A bucket whose evaluation
    awaits time sets a timer for the next batch. If that has rows, as it has for all buckets or none, these take the
    timer away. If not, the timer lets time go on. So all buckets do so in the same batches, and judge late events
    alike. The time is that of the batch, which a batch that is done again has again.
    """

    def __init__(
        self, make: Callable[[], Evaluation], run: str, outcome: Outcome, first: int, timed: bool = False
    ) -> None:
        self._timed = timed
        self._make = make
        self._run = run
        self._outcome = outcome
        self._first = first
        self._mark = MARK

    def __getstate__(self) -> dict[str, Any]:
        """The function that makes evaluations is packed for itself. A process of Spark's that begins each stream calls
        `init` alone, and needs no module of either language.

        PERF: it takes 0.2 s of a processor to unpack this one, before 1.2 (2026-11-28, a busy machine).
        """
        return {**vars(self), "_make": _Packed(cloudpickle.dumps(self._make))}

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("evaluation", spark_schema(STATE))
        self._log = handle.getListState("log", spark_schema(STATE))
        self._place = handle.getValueState("place", spark_schema(STATE_PLACE))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        return carry(self._mark, self._take, int(key[0]), rows)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        now = int(timerValues.getCurrentProcessingTimeInMs())
        return carry(self._mark, self._evaluate, int(key[0]), now * 1_000_000, None)

    def close(self) -> None:
        pass

    def _take(self, bucket: int, rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        bodies: list[_Body] = []
        now = 0
        for frame in rows:
            values = (frame[name] for name in ("feed", "file_number", "start", "part", "body"))
            for *place, body in zip(*values, strict=True):
                bodies.append((tuple(map(int, place)), bytes(body)))
            now = int(frame["now"].iloc[0]) * 1000
        if self._timed:
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
        yield from self._evaluate(bucket, now, bodies)

    def _evaluate(self, bucket: int, now: int, bodies: list[_Body] | None) -> Iterator[pd.DataFrame]:
        """A batch at `now` (ns), of packed parcels with their places; None if it brings nothing."""
        held = self._load(bucket)
        parcels = None
        if bodies is not None:
            bodies.sort(key=lambda sent: (sent[0], held.evaluation.is_attached(sent[1])))
            parcels = [(place[0], body) for place, body in bodies]
        for table in _take_batch(held.evaluation, now, parcels):
            for batch in table.to_batches(max_chunksize=_ROWS):
                yield self._frame(_MATCH, "m", batch)
        for table in held.evaluation.late_rows():
            for batch in table.to_batches(max_chunksize=_ROWS):
                yield self._frame(_LATE, "l", batch)
        if self._timed and held.evaluation.awaits:
            self._handle.registerTimer(now // 1_000_000 + 1)
        entry = encode((held.evaluation.words(), now, parcels))
        yield self._counters(bucket, held.evaluation, self._save(bucket, held, entry))

    def _load(self, bucket: int) -> _Held:
        mark, logged, size = self._place.get() if self._place.exists() else (b"", 0, 0)
        held = _kept.pop((self._run, bucket), None)
        if held is not None and held.mark == bytes(mark):
            return held
        evaluation = self._make()
        try:
            if self._state.exists():
                evaluation.restore(bytes(self._state.get()[0]))
            if logged:
                _again(evaluation, [bytes(entry) for (entry,) in self._log.get()])
        except OptionError as error:
            problem = f"the checkpoint is not of this query and this version: {error.problem}"
            raise OptionError(problem, "begin with a new checkpoint, or go on with what wrote this one") from error
        return _Held(evaluation, bytes(mark), int(logged), int(size))

    def _save(self, bucket: int, held: _Held, entry: bytes) -> int:
        """Hands the state to Spark; its size in bytes."""
        held.mark = os.urandom(_MARK)
        if held.logged + len(entry) <= held.size:
            self._log.appendValue((entry,))
            held.logged += len(entry)
        else:
            state = held.evaluation.snapshot()
            self._state.update((state,))
            if held.logged:
                self._log.clear()
            held.logged, held.size = 0, len(state)
        self._place.update((held.mark, held.logged, held.size))
        while len(_kept) >= _KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[self._run, bucket] = held
        return held.logged + held.size

    def _frame(self, kind: int, letter: str, rows: pa.RecordBatch) -> pd.DataFrame:
        """Rows of a kind, whose columns have this letter. Those of other kinds are NULL."""
        found = rows.to_pandas(integer_object_nulls=True).items()
        own = {f"{letter}{place}": column for place, (_, column) in enumerate(found)}
        return self._rows(kind, own, rows.num_rows, [0] * len(COUNTERS))

    def _counters(self, bucket: int, evaluation: Evaluation, size: int) -> pd.DataFrame:
        return self._rows(_COUNT, {}, 1, [*evaluation.counts(bucket == self._first), size])

    def _rows(self, kind: int, own: dict[str, Any], count: int, totals: list[int]) -> pd.DataFrame:
        import pandas as pd  # not needed to begin a stream

        columns: dict[str, Any] = {"kind": pd.Series([kind] * count, dtype="int32")}
        missing = [field for field in self._outcome.columns if field.name not in own]
        names = [field.name for field in missing]
        nothing = pa.table([pa.nulls(count, field.type) for field in missing], names).to_pandas()
        for field in self._outcome.columns:
            columns[field.name] = own[field.name] if field.name in own else nothing[field.name]
        for name, value in zip(COUNTERS, totals, strict=True):
            columns[f"total_{name}"] = pd.Series([value] * count, dtype="int64")
        return pd.DataFrame(columns)


class _Packed:
    """A function without arguments that is unpacked when it is first called."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    @cached_property
    def _function(self) -> Callable[[], Evaluation]:
        found: Callable[[], Evaluation] = cloudpickle.loads(self._body)
        return found

    def __call__(self) -> Evaluation:
        return self._function()

    def __reduce__(self) -> tuple[type[_Packed], tuple[bytes]]:
        return _Packed, (self._body,)


@dataclass(slots=True)
class _Held:
    """An evaluation, the mark of its state in Spark, and the bytes there of the log and of the snapshot."""

    evaluation: Evaluation
    mark: bytes
    logged: int
    size: int


_kept: dict[tuple[str, int], _Held] = {}


def _take_batch(evaluation: Evaluation, now: int, parcels: Iterable[tuple[int, bytes]] | None) -> Iterator[pa.Table]:
    """The rows of a batch at `now` (ns), of packed parcels by the number of their feed; None if it brings nothing."""
    evaluation.begin(now)
    if parcels is None:
        evaluation.pass_silence()
    for feed, body in parcels or ():
        evaluation.take(feed, body)
    yield from evaluation.release()


def _again(evaluation: Evaluation, log: list[bytes]) -> None:
    """Takes again what was taken since the snapshot, under the words it was taken under; its rows were given."""
    words = evaluation.words()
    try:
        for entry in log:
            under, now, parcels = decode(entry)
            evaluation.use(under)
            for _ in _take_batch(evaluation, now, parcels):
                pass
    except (KeyError, TypeError, ValueError) as error:  # an Arrow table that is none is a ValueError, too
        raise OptionError(f"the log behind the snapshot is damaged ({error})") from error
    evaluation.use(words)
