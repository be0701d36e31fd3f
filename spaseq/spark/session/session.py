"""A quiet Spark session on this machine, for the command line, the examples and the tests.

A session someone already has (a cluster's, a notebook's) serves `spaseq.spark.run` as well: nothing here is required of
it, except that its workers can import spaseq and open the files.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spaseq.core.errors import OptionError

_LAST_LINES = 12
_UNRESOLVED = re.compile(r"unresolved dependency: ([^\s:\]]+)|(Provided Maven Coordinates must be .+)")
_AT_LAUNCH = ("spark.jars", "spark.driver.", "spark.files", "spark.submit.")
"""How settings begin that Spark reads when its Java process starts."""
_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"


def local_session(
    parallelism: int | None = None,
    *,
    quiet: bool = True,
    memory: str | None = None,
    progress: bool | None = None,
    attempts: int = 1,
    configuration: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running session of this process, or else a new one in local mode, reachable only from this machine.

    `parallelism` is the number of tasks at a time (default: one per core), `memory` the JVM's heap (`"2g"`; default
    Spark's). Quiet, Java and its log are not heard, unless Java cannot start; its last words are then in the error.
    `progress`: say on stderr that Spark is starting, while it is: True, False, or None for only on a terminal.
    `attempts`: how often a task is tried; more than once helps where workers may be killed, not where input is wrong.
    `configuration`: any settings of Spark's, as `{"spark.jars.packages": "io.graphframes:…"}`; they go before ours.

    Raises OptionError where there is no usable Java, and for a `configuration` that what runs already does not have.
    """
    wanted = dict(configuration or {})
    existing = SparkSession.getActiveSession()
    if existing is not None:
        given = [name for name, value in wanted.items() if existing.conf.get(name, None) != value]
        _refuse(given, "a session runs already, and without", "stop that session first: spark.stop()")
        return existing
    started = SparkContext._gateway is not None  # a stopped session leaves its JVM to the next one
    if started:
        given = [name for name in wanted if name.startswith(_AT_LAUNCH)]
        _refuse(given, "Spark's Java process runs already, and only a new one reads", "begin a new Python process")
    conf = _configuration(f"{parallelism or os.cpu_count() or 1},{attempts}", memory)
    conf.setAll(list(wanted.items()))
    if not quiet:
        return SparkSession.builder.config(conf=conf).getOrCreate()
    with _said("starting Spark", progress), tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        gateway = None if started else _silent_gateway(conf, log)
        return SparkSession(SparkContext(conf=conf, gateway=gateway))


def broadcast_bytes(spark: SparkSession) -> int:
    """The most bytes of a table that Spark broadcasts for a join by its own choice; -1 for none."""
    number, unit = re.fullmatch(r"(-?\d+)\s*([kmgtp]?)b?", spark.conf.get(_THRESHOLD).strip().lower()).groups()  # type: ignore[union-attr]
    return int(number) << 10 * " kmgtp".index(unit or " ")


def _refuse(names: list[str], problem: str, hint: str) -> None:
    if names:
        raise OptionError(f"{problem} {', '.join(names)}", hint)


@contextmanager
def _said(text: str, enabled: bool | None) -> Iterator[None]:
    """While the body runs, `text` stands on stderr."""
    shown = sys.stderr.isatty() if enabled is None else enabled
    if shown:
        print(text, end=" … ", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\r" + " " * (len(text) + 3), end="\r", file=sys.stderr, flush=True)


def _configuration(tasks: str, memory: str | None) -> SparkConf:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python: this one, which has our libraries
    settings = {
        "spark.app.name": "spaseq",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.master": f"local[{tasks}]",
        "spark.sql.adaptive.enabled": "false",  # every stage is told its number of tasks
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": tasks.partition(",")[0],
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if memory is not None:
        settings["spark.driver.memory"] = memory
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _silent_gateway(conf: SparkConf, log: IO[str]) -> Any:
    """A JVM whose messages go to `log`; OptionError with the last of them if it does not start."""
    try:
        return launch_gateway(conf, popen_kwargs={"stderr": log})
    except (PySparkRuntimeError, OSError) as error:
        with suppress(OSError):
            log.seek(0)
        raise _not_started([line.rstrip() for line in log.readlines()]) from error


def _not_started(said: Sequence[str]) -> OptionError:
    """The error for a Java process that did not start and `said` these lines."""
    unresolved = list(dict.fromkeys(found[1] or found[2] for line in said if (found := _UNRESOLVED.search(line))))
    if unresolved:
        return OptionError(
            f"the packages of spark.jars.packages could not be resolved: {'; '.join(unresolved)}",
            "look at group:artifact:version of each, and whether Maven Central can be reached from here; "
            "spark.jars.repositories names other repositories, spark.jars takes files",
        )
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    problem = "Spark's Java process did not start" + "".join(f"\n  {line}" for line in said[-_LAST_LINES:])
    place = f"it was looked for in {java}" if java else "no java was found"
    return OptionError(problem, f"{place}; Spark needs Java 17 or later, named by JAVA_HOME or on the path")
