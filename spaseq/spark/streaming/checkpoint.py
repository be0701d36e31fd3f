"""The folders of a stream, looked at before it starts: whether they can be used, and whose they are.

Spark takes any query with any checkpoint that has the same shape, and would hand one query's state to another. So a
checkpoint holds a note, `spaseq.txt`, of the query and of its number of tasks, which must be the same at every start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spaseq.errors import OptionError

__all__ = ["check_folder", "check_note", "file_manager", "started", "unusable"]

_NAME: Final = "spaseq.txt"
_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_BY_RENAMING: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_DAMAGED: Final = re.compile(
    r"MALFORMED_LOG_FILE|CANNOT_LOAD_STATE_STORE|STATE_STORE_|STATE_DATA_SOURCE|MISSING_STATE_DIRECTORY|STDS_|log file|"
    # Of a file of the checkpoint that is no JSON, or no UTF-8, Spark says what the reader of JSON or of texts says.
    r"terminated with exception: (?:Unexpected |Unrecognized |Illegal |Invalid |Input length = )"
)
_ANEW: Final = "is it damaged? a new folder begins anew"


def check_folder(what: str, path: str) -> None:
    """OptionError where a folder on this machine cannot be made or written; others are for Spark to find out."""
    if urlsplit(path).scheme not in ("", "file"):
        return
    local = urlsplit(path).path if path.startswith("file:") else path
    try:
        os.makedirs(local, exist_ok=True)
    except OSError as error:
        problem = f"{what} {path} cannot be used: {error.strerror or error}"
        raise OptionError(problem, "name a folder to write to") from None
    if not os.access(local, os.W_OK | os.X_OK):
        raise OptionError(f"{what} {path} cannot be used: no permission to write", "name a folder to write to")


def file_manager(spark: SparkSession, folders: Iterable[str]) -> dict[str, str]:
    """The setting by which Spark writes the files of a checkpoint, where all `folders` are this machine's.

    The one it would take by itself starts ten processes for each file here (`chmod`, and `readlink` eight times), some
    fifty in a batch, one after the other. This one renames as well, in one step: a batch of 13,000 triples takes 0.54
    to 0.67 s instead of 0.81 to 0.83 (`grid`, local[2], nothing else running). It takes no lock, so a checkpoint is
    one driver's. Empty where a folder is elsewhere (there it is right as it is), or where the session says which.
    """
    jvm: Any = spark._jvm
    if spark.conf.get(_MANAGER, None) is not None:
        return {}
    for folder in folders:
        path = jvm.org.apache.hadoop.fs.Path(folder)
        if path.getFileSystem(spark._jsc.hadoopConfiguration()).getUri().getScheme() != "file":
            return {}
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    known = loader.getResource(_BY_RENAMING.replace(".", "/") + ".class") is not None
    return {_MANAGER: _BY_RENAMING} if known else {}


def check_note(spark: SparkSession, checkpoint: str, query: str, tasks: int) -> None:
    """OptionError where the checkpoint is of another query or number of tasks; a new one is given its note.

    Blanks between words do not count. The note is put in place whole, so that nobody reads half of it.
    """
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(checkpoint, _NAME)
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    note = f"tasks {tasks}\n{' '.join(query.split())}\n"
    if not files.exists(path):
        draft = jvm.org.apache.hadoop.fs.Path(checkpoint, f".{uuid4().hex}")
        out = files.create(draft)
        out.write(bytearray(note, "utf-8"))
        out.close()
        files.rename(draft, path)
        return
    stream = files.open(path)
    before = bytes(stream.readAllBytes()).decode("utf-8", "replace")
    stream.close()
    if before == note:
        return
    count, _, text = before.partition("\n")
    if not count.startswith("tasks "):
        raise OptionError(f"checkpoint {checkpoint} cannot be read: its {_NAME} is not what was written", _ANEW)
    if text != note.partition("\n")[2]:
        raise OptionError(f"checkpoint {checkpoint} is of another query", "a query begins with a folder of its own")
    raise OptionError(f"checkpoint {checkpoint} was begun with {count}, not {tasks}", f"go on with as many: {count}")


@contextmanager
def started(checkpoint: str, output: str | None) -> Iterator[None]:
    """What Spark says of a stream that it cannot start, in one line."""
    where = f"checkpoint {checkpoint}" + (f" and output {output}" if output else "")
    try:
        yield
    except Py4JJavaError as error:
        first = str(error.java_exception).splitlines()[0]
        raise OptionError(f"the query cannot start: {first}", f"look at its format and at {where}") from None
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise OptionError(f"the query cannot start: {first}", f"look at its format, every and {where}") from None


def unusable(error: Exception) -> OptionError | None:
    """What to say of a stream that stopped as its checkpoint cannot be read; None if that is not why."""
    told = next((line for line in str(error).splitlines() if _DAMAGED.search(line)), None)
    return None if told is None else OptionError(f"the checkpoint cannot be read: {told}", _ANEW)
