"""Results of a job that later jobs read again, kept by the cluster.

`keep` persists: what is lost is made again. Blocks of a plain local checkpoint die with their executor, and a job that
reads them fails. What is persisted is computed again, so it must be the same each time: no ranges that Spark draws by
sampling, no order that is left open.

Rounds that each begin with the result of the one before need its plan forgotten, as it would grow from round to round:
`cut_off`. Their results lie where Spark's own checkpoints do (`spark.checkpoint.dir`), if it was told a place that
outlives executors, else on two executors each.
"""

from __future__ import annotations

from collections import deque
from typing import Final
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from spaseq.spark.session.connecting import is_connect

_MOST: Final = 8
"""Frames that a session holds in memory and on disk; a job needs one or two, and one for each stream without times."""
_kept: WeakKeyDictionary[SparkSession, deque[DataFrame]] = WeakKeyDictionary()


def keep(frame: DataFrame) -> DataFrame:
    """`frame`, kept in memory, else on disk, once it is computed. Of a session the last eight are kept; whoever still
    reads one from before has it computed again."""
    held = _kept.setdefault(frame.sparkSession, deque())
    held.append(frame.persist())
    while len(held) > _MOST:
        held.popleft().unpersist()
    return frame


def cut_off(frame: DataFrame) -> DataFrame:
    """`frame`, computed now, and how it came about forgotten: as a checkpoint in Spark's folder for them, else as a
    local one of which two executors have each block, so that one of them may die. A process that is all there is, in
    local mode, has each block once."""
    spark = frame.sparkSession
    if checkpoint_folder(spark) is not None:
        return frame.checkpoint()
    alone = spark.conf.get("spark.master", "").startswith("local")
    return frame.localCheckpoint(True, StorageLevel.MEMORY_AND_DISK if alone else StorageLevel.MEMORY_AND_DISK_2)


def checkpoint_folder(spark: SparkSession) -> str | None:
    """Where Spark puts its checkpoints, if it was told."""
    if is_connect(spark):
        return spark.conf.get("spark.checkpoint.dir", None)
    return spark.sparkContext.getCheckpointDir()
