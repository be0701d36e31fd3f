"""What a session is asked beyond DataFrames: by its own context in the driver's process, else by public means alone.

Through Spark Connect, and on platforms that hide it, a session has no context: what runs Spark is elsewhere.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

T = TypeVar("T")
_ROWS: Final = 1 << 16
_VALUES: Final = 4
_values: OrderedDict[str, Any] = OrderedDict()


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect: its Java is elsewhere, and with it the files that Spark sees."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def task_count(spark: SparkSession) -> int:
    """How many tasks the session runs at a time. Of Spark Connect: into how many Spark divides a range; runs a job."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    row = spark.range(_ROWS).select(F.spark_partition_id().alias("task")).agg(F.max("task")).first()
    return int(row[0]) + 1 if row is not None else 1


def hadoop_of(spark: SparkSession) -> tuple[Any, Any]:
    """The Java process of a session that is no client of Spark Connect, and Hadoop's settings, with the session's."""
    return spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()


class Shared(Generic[T]):
    """A value that travels with the functions that read it, and is unpacked once by each process: `value`."""

    def __init__(self, name: str, body: bytes) -> None:
        self._name = name
        self._body = body

    @property
    def value(self) -> T:
        if self._name not in _values:
            _values[self._name] = pickle.loads(self._body)
            while len(_values) > _VALUES:
                _values.popitem(last=False)
        found: T = _values[self._name]
        return found


def share(spark: SparkSession, value: T) -> Any:
    """A value for all tasks, as `value` of what is returned: a broadcast, or, through Spark Connect, `Shared`."""
    if is_connect(spark):
        return Shared[T](uuid4().hex, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    return spark.sparkContext.broadcast(value)
