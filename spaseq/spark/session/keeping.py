"""Results of a job that later jobs read again, kept by the cluster: made again where they are lost.

They are persisted and not checkpointed locally: blocks of a local checkpoint die with their executor, and a job that
reads them fails. What is persisted is computed again, so it must be the same each time: no ranges that Spark draws by
sampling, no order that is left open.
"""

from __future__ import annotations

from collections import deque
from typing import Final
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

__all__ = ["keep"]

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
