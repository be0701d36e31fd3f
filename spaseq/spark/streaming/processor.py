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
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from spaseq.core.errors import OptionError
from spaseq.spark.session.failures import MARK, carry
from spaseq.spark.session.tables import STATE, spark_schema
from spaseq.spark.streaming.bucket_messages import Parcel
from spaseq.spark.streaming.evaluation import Evaluation

COUNTERS: Final = ("events", "late", "malformed", "matches", "live_runs", "state_bytes")
_MATCH: Final = 0
_COUNT: Final = 1
_MARK: Final = 16
_ROWS: Final = 10_000
_KEPT: Final = 64
_kept: dict[tuple[str, int], tuple[bytes, Evaluation]] = {}


def evaluated(parcels: DataFrame, make: Callable[[], Evaluation], matches: pa.Schema, first: int) -> DataFrame:
    """The matches (`matches`) of PARCELS (`spaseq.spark.session.tables`), and their totals as the observation `spaseq`.

    `make` gives an empty evaluation. `first`: the bucket that reports what all know alike (events, late, malformed).
    """
    # The time of the batch (microseconds), which a batch that is done again has again. As text: Spark writes a number
    # into the code that it makes of the plan, which then is compiled anew for each batch; a text is a reference there.
    timed = parcels.withColumn("now", F.unix_micros(F.current_timestamp()).cast("string"))
    rows = pa.schema([("kind", pa.int32()), *matches, *((f"total_{name}", pa.int64()) for name in COUNTERS)])
    found = timed.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=Processor(make, uuid4().hex, matches, first),
        outputStructType=spark_schema(rows),
        outputMode="Append",
        timeMode="None",
    )
    observed = found.observe("spaseq", *(F.sum(f"total_{name}").alias(name) for name in COUNTERS))
    return observed.where(F.col("kind") == _MATCH).select(*matches.names)


class Processor(StatefulProcessor):
    """See `evaluated`. Made on the driver, run by workers. `run` names the query's run, `columns` are those of a match:
    texts, longs or lists of longs."""

    def __init__(self, make: Callable[[], Evaluation], run: str, columns: pa.Schema, first: int) -> None:
        self._make = make
        self._run = run
        self._columns = columns
        self._first = first
        self._mark = MARK

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("evaluation", spark_schema(STATE))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        return carry(self._mark, self._handle, int(key[0]), rows)

    def close(self) -> None:
        pass

    def _handle(self, bucket: int, rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        parcels: list[tuple[tuple[int, ...], Parcel]] = []
        now = 0
        for frame in rows:
            values = (frame[name] for name in ("feed", "file_number", "start", "part", "body"))
            for *place, body in zip(*values, strict=True):
                parcel = Parcel.unpack(body)
                parcels.append(((*place, parcel.attached), parcel))
            now = int(frame["now"].iloc[0]) * 1000
        parcels.sort(key=itemgetter(0))
        evaluation = self._load(bucket)
        evaluation.begin(now)
        for (feed, *_), parcel in parcels:
            evaluation.take(int(feed), parcel)
        found: list[tuple[Any, ...]] = []
        for match in evaluation.release():
            found.append(match)
            if len(found) == _ROWS:
                yield self._frame(found)
                found.clear()
        if found:
            yield self._frame(found)
        yield self._counters(bucket, evaluation, self._save(bucket, evaluation))

    def _load(self, bucket: int) -> Evaluation:
        held = self._state.get() if self._state.exists() else None
        state = None if held is None else bytes(held[0])
        mark, evaluation = _kept.pop((self._run, bucket), (b"", None))
        if state is not None and evaluation is not None and mark == state[:_MARK]:
            return evaluation
        evaluation = self._make()
        if state is not None:
            try:
                evaluation.restore(state[_MARK:])
            except OptionError as error:
                problem = f"the checkpoint is not of this query and this version: {error.problem}"
                raise OptionError(problem, "begin with a new checkpoint, or go on with what wrote this one") from error
        return evaluation

    def _save(self, bucket: int, evaluation: Evaluation) -> int:
        """Hands the state to Spark; its size in bytes."""
        mark = os.urandom(_MARK)
        state = mark + evaluation.snapshot()
        self._state.update((state,))
        while len(_kept) >= _KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[self._run, bucket] = (mark, evaluation)
        return len(state)

    def _frame(self, matches: list[tuple[Any, ...]]) -> pd.DataFrame:
        columns: dict[str, Any] = {"kind": pd.Series([_MATCH] * len(matches), dtype="int32")}
        for field, values in zip(self._columns, zip(*matches, strict=True), strict=True):
            columns[field.name] = pd.Series(list(values), dtype="int64" if _is_long(field) else object)
        for name in COUNTERS:
            columns[f"total_{name}"] = pd.Series([0] * len(matches), dtype="int64")
        return pd.DataFrame(columns)

    def _counters(self, bucket: int, evaluation: Evaluation, size: int) -> pd.DataFrame:
        events, late, malformed, matches, live = evaluation.counts()
        known = (events, late) if bucket == self._first else (0, 0)
        columns: dict[str, Any] = {"kind": pd.Series([_COUNT], dtype="int32")}
        for field in self._columns:
            columns[field.name] = pd.Series([_empty(field)], dtype="int64" if _is_long(field) else object)
        for name, value in zip(COUNTERS, (*known, malformed, matches, live, size), strict=True):
            columns[f"total_{name}"] = pd.Series([value], dtype="int64")
        return pd.DataFrame(columns)


def _is_long(field: pa.Field) -> bool:
    return bool(pa.types.is_int64(field.type))


def _empty(field: pa.Field) -> Any:
    return 0 if _is_long(field) else [] if pa.types.is_list(field.type) else None
