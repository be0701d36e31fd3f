"""The folders of a stream, looked at before it starts: whether they can be used, and whose they are.

Spark takes any query with any checkpoint that has the same shape, and would hand one query's state to another. So a
checkpoint holds a note, `spaseq`, of what must be the same at every start. That is the query with what it was compiled
with, the streams with their files or columns, and the number of buckets. It also has the number of tasks, which may
change (`spaseq.spark.streaming.retasking`). And a checkpoint is one driver's at a time: `locked`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.core.errors import OptionError
from spaseq.spark.session.connecting import hadoop_of, is_connect

_NAME: Final = "spaseq"
_LOCK: Final = "spaseq.lock"
_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_BY_RENAMING: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_DAMAGED: Final = re.compile(
    r"MALFORMED_LOG_FILE|CANNOT_LOAD_STATE_STORE|STATE_STORE_|STATE_DATA_SOURCE|MISSING_STATE_DIRECTORY|STDS_|log file|"
    # Of a file of the checkpoint that is no JSON, or no UTF-8, Spark says what the reader of JSON or of texts says.
    r"terminated with exception: (?:Unexpected |Unrecognized |Illegal |Invalid |Input length = )"
)
_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_TWO_DRIVERS: Final = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|Concurrent update to the log")
_ANEW: Final = "is it damaged? a new folder begins anew"


def check_folder(what: str, path: str) -> None:
    """OptionError where a folder on this machine cannot be made or written; others are for Spark to find out."""
    local = _local(path)
    if local is None:
        return
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
    if is_connect(spark) or spark.conf.get(_MANAGER, None) is not None:
        return {}
    jvm, settings = hadoop_of(spark)
    for folder in folders:
        path = jvm.org.apache.hadoop.fs.Path(folder)
        if path.getFileSystem(settings).getUri().getScheme() != "file":
            return {}
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    known = loader.getResource(_BY_RENAMING.replace(".", "/") + ".class") is not None
    return {_MANAGER: _BY_RENAMING} if known else {}


def read_note(spark: SparkSession, checkpoint: str) -> dict[str, Any]:
    """The note of a checkpoint; an empty one if it is new. OptionError for one that is damaged.

    The note is read and written by Spark, which knows the checkpoint's file system also where we do not. It is in place
    as a whole or not at all: one that was begun by a process that died is written anew.
    """
    lines = _lines(spark, _place(checkpoint))
    try:
        found = json.loads(*lines) if lines else {}
        counts = [found.get("buckets", 1), found.get("tasks") or 1] if isinstance(found, dict) else []
        if not counts or not all(type(count) is int and count > 0 for count in counts):
            raise ValueError(found)
    except (TypeError, ValueError, RecursionError):
        raise OptionError(
            f"checkpoint {checkpoint} cannot be read: its {_NAME} is not what was written", _ANEW
        ) from None
    return found


def write_note(spark: SparkSession, checkpoint: str, contents: Mapping[str, Any]) -> None:
    """Writes the note of a checkpoint."""
    line = spark.createDataFrame([(json.dumps(contents),)], "value string").coalesce(1)
    line.write.mode("overwrite").text(_place(checkpoint))


def check_note(checkpoint: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """OptionError where the note BEFORE is of something else than NOW, naming what differs. `tasks` may differ; an
    empty note is of anything."""
    if not before:
        return
    if before.get("query") != now["query"]:
        raise OptionError(f"checkpoint {checkpoint} is of another query", "a query begins with a folder of its own")
    for name in (*now, *before):
        if name != "tasks" and before.get(name) != now.get(name):
            problem = f"checkpoint {checkpoint} was begun with {name} {_shown(before, name)}, not {_shown(now, name)}"
            raise OptionError(problem, f"go on with the same {name}, or begin with a folder of its own")


def _place(checkpoint: str) -> str:
    return f"{checkpoint.rstrip('/')}/{_NAME}"


def _lines(spark: SparkSession, place: str) -> list[str]:
    """The lines of a text that Spark wrote; none where there is no such file."""
    try:
        return [row[0] for row in spark.read.text(place).collect()]
    except PySparkException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []


def _shown(note: Mapping[str, Any], name: str) -> str:
    value = note.get(name)
    return value if isinstance(value, str) else json.dumps(value)


# -- one driver


@dataclass(slots=True)
class _Held:
    """A lock that this process's Java holds on a checkpoint, and the query it is held for."""

    channel: Any
    query: Any = None


_held: dict[str, _Held] = {}
_guard: Final = Lock()
_PATIENCE: Final = 30.0
"""Seconds to wait for another driver: one that was killed leaves a Java that ends a moment later."""


def locked(spark: SparkSession, checkpoint: str, begin: Callable[[], StreamingQuery]) -> StreamingQuery:
    """The query that `begin` starts, the checkpoint being its driver's alone until it has ended.

    A checkpoint on this machine is locked by Spark's Java process, with which the lock ends. OptionError where another
    driver has it. Elsewhere, and through Spark Connect, there is no lock: there Spark itself stops a query that finds a
    batch written by another one (`unusable`).
    """
    local = None if is_connect(spark) else _local(checkpoint)
    if local is None:
        return begin()
    place = os.path.realpath(local)
    with _guard:
        held = _held.get(place)
        if held is None:
            held = _held[place] = _Held(_lock(spark, checkpoint, os.path.join(place, _LOCK)))
        held.query = None
    try:
        query = begin()
    except BaseException:
        _release(place, held, None)
        raise
    held.query = query
    Thread(target=_release_at_end, args=(place, held, query), daemon=True).start()
    return query


def _lock(spark: SparkSession, checkpoint: str, file: str) -> Any:
    """The channel of a locked file."""
    channel = spark._jvm.java.io.RandomAccessFile(file, "rw").getChannel()
    until = monotonic() + _PATIENCE
    while channel.tryLock() is None:
        if monotonic() > until:
            channel.close()
            problem = f"checkpoint {checkpoint} is in use by another driver"
            raise OptionError(problem, "a checkpoint is one driver's at a time: stop that one, then start again")
        sleep(0.2)
    return channel


def _release_at_end(place: str, held: _Held, query: Any) -> None:
    with suppress(PySparkException, java_errors(), OSError):  # `wait` says how it ended
        query.awaitTermination()
    with suppress(java_errors(), OSError):  # where Java has ended, so has the lock
        _release(place, held, query)


def _release(place: str, held: _Held, query: Any) -> None:
    """The lock is given up, where no other query of this process was started on it since."""
    with _guard:
        if _held.get(place) is held and held.query is query:
            del _held[place]
            held.channel.close()


def _local(path: str) -> str | None:
    """The path on this machine; None for one elsewhere."""
    parts = urlsplit(path)
    return None if parts.scheme not in ("", "file") else parts.path if path.startswith("file:") else path


def java_errors() -> type[Exception]:
    """What py4j raises; where it is not installed, as with Spark Connect alone, nothing does."""
    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return PySparkException
    return Py4JError


@contextmanager
def started(checkpoint: str, output: str | None) -> Iterator[None]:
    """What Spark says of a stream that it cannot start, in one line."""
    where = f"checkpoint {checkpoint}" + (f" and output {output}" if output else "")
    try:
        yield
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise OptionError(f"the query cannot start: {first}", f"look at its format, every and {where}") from None
    except java_errors() as error:
        first = str(getattr(error, "java_exception", error)).splitlines()[0]
        raise OptionError(f"the query cannot start: {first}", f"look at its format and at {where}") from None


def unusable(error: Exception) -> OptionError | None:
    """What to say of a stream that stopped as its checkpoint cannot be read or written; None if that is not why."""
    full = next((line for line in str(error).splitlines() if _FULL.search(line)), None)
    if full is not None:
        hint = "make room and start again with the same checkpoint: what was not committed is done again"
        return OptionError(f"the checkpoint or the output cannot be written: {full.strip()}", hint)
    if any(_TWO_DRIVERS.search(line) for line in str(error).splitlines()):
        return OptionError(
            "another driver writes to the same checkpoint or output", "a checkpoint is one driver's at a time"
        )
    told = next((line for line in str(error).splitlines() if _DAMAGED.search(line)), None)
    return None if told is None else OptionError(f"the checkpoint cannot be read: {told}", _ANEW)
