"""Another number of tasks for a checkpoint. Spark divides the state anew, and the buckets, its keys, stay.

Spark writes a batch of its own into the checkpoint, which reads nothing. A folder of files lacks it: Spark reads such a
folder by its log, in which no batch may be missing. So an empty entry is added there.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spaseq.core.errors import OptionError
from spaseq.spark.session.connecting import hadoop_of, is_connect
from spaseq.spark.session.versions import GRAPHS, pyspark_version
from spaseq.spark.streaming.checkpoint import java_errors

_LOG_OF_FILES: Final = "_spark_metadata"
_DONE: Final = ("SHUFFLE_PARTITIONS_ALREADY_MATCH", "NO_BATCH_FOUND", "NO_COMMITTED_BATCH")
"""Spark refuses because there is nothing to do, or no state yet."""


def divide_anew(spark: SparkSession, checkpoint: str, folder: str | None, before: Any, tasks: int) -> None:
    """The state of a checkpoint that was begun with BEFORE tasks for `tasks`. `folder`: that of its output, if it is
    files. The query must not run. Raises `OptionError` if Spark cannot do it."""
    if is_connect(spark) or pyspark_version() < GRAPHS:
        problem = f"checkpoint {checkpoint} has tasks {before}, not {tasks}"
        hint = (
            f"go on with tasks={before}; PySpark 4.2 or later can change it, in a session with Java of its own; or "
            "begin with a folder of its own, and read again what open windows reach back to"
        )
        raise OptionError(problem, hint)
    try:
        spark._streamingCheckpointManager.repartition(checkpoint, tasks)
    except (PySparkException, java_errors()) as error:
        said = str(getattr(error, "java_exception", error))
        if "LAST_BATCH_FAILED" in said:
            problem = f"checkpoint {checkpoint} has a batch that was begun and is not done, so tasks cannot change yet"
            hint = f"start once with tasks={before} and available_now=True, which does it; then with tasks={tasks}"
            raise OptionError(problem, hint) from None
        if not any(name in said for name in _DONE):
            problem = (
                f"the state of checkpoint {checkpoint} cannot be divided among {tasks} tasks: {said.splitlines()[0]}"
            )
            raise OptionError(problem, f"go on with tasks={before}, or begin with a folder of its own") from None
    if folder is not None:
        _fill_log(spark, checkpoint, folder)


def _fill_log(spark: SparkSession, checkpoint: str, folder: str) -> None:
    """An empty entry in the log of a folder of files for the last batch of a checkpoint, if it has none."""
    jvm, settings = hadoop_of(spark)
    commits = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/commits")
    log = jvm.org.apache.hadoop.fs.Path(f"{folder}/{_LOG_OF_FILES}")
    if not log.getFileSystem(settings).exists(log):
        return
    streaming = jvm.org.apache.spark.sql.execution.streaming
    names = [status.getPath().getName() for status in commits.getFileSystem(settings).listStatus(commits)]
    last = max(int(name) for name in names if name.isdigit())
    sinks = streaming.sinks
    version, none = sinks.FileStreamSinkLog.VERSION(), jvm.scala.Option.empty()
    entries = spark._sc._gateway.new_array(sinks.SinkFileStatus, 0)
    sinks.FileStreamSinkLog(version, spark._jsparkSession, log.toString(), none).add(last, entries)
