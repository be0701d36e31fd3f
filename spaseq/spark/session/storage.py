"""Files on any file system that Spark reads, read by Python: by Hadoop's own classes, with the session's settings.

The driver asks the Java process of its session. A task is a Python process that Spark gives no way to Java: it starts
one of its own for this (`_Reader`), when it first opens such a file, with the jars of Spark and of the session, and the
settings of Hadoop that the driver has. It ends with the task's process. Files can be read from any place, so they are
cut for tasks and searched by time as local ones are.

Rejected: Spark's data source `binaryFile`, which brings whole files through a shuffle and none of more than 2 GB, has
no place to go on from, and of a file that was replaced or cut off between two batches says nothing.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from glob import glob
from threading import Thread
from typing import Any, BinaryIO, Final, cast

from pyspark.sql import SparkSession

from spaseq.core.errors import OptionError
from spaseq.core.files.places import is_elsewhere, use_storage
from spaseq.spark.session.connecting import hadoop_of, is_connect

_BLOCK: Final = 1 << 20
"""Bytes that are fetched at a time."""
_HERE: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Access:
    """What a process needs to read files elsewhere: Hadoop's `settings` that are not its own defaults, and the `jars`
    beside Spark's."""

    settings: tuple[tuple[str, str], ...] = ()
    jars: tuple[str, ...] = ()

    def use(self) -> None:
        """From now on this process can read them."""
        use_storage(_of_process(self))


@cache
def _of_process(access: Access) -> _Hadoop:
    return _Hadoop(lambda: _own_java(access))


def access_to(spark: SparkSession, files: Iterable[str]) -> Access | None:
    """For the tasks, where one of the files is elsewhere; and this process can read them, too."""
    if not any(map(is_elsewhere, files)):
        return None
    if is_connect(spark):
        given = spark.conf.getAll
        found = {name.removeprefix(_HADOOP): value for name, value in given.items() if name.startswith(_HADOOP)}
        access = Access(tuple(sorted(found.items())))
        access.use()
        return access
    java, settings = hadoop_of(spark)
    use_storage(_Hadoop(lambda: (java, settings)))
    return Access(_changed(java, settings), _jars(spark))


_HADOOP: Final = "spark.hadoop."


def _changed(java: Any, settings: Any) -> tuple[tuple[str, str], ...]:
    """Settings that are not of Hadoop's own files of defaults, in one call."""
    writer = java.java.io.StringWriter()
    settings.writeXml(writer)
    found: dict[str, str] = {}
    for each in ElementTree.fromstring(writer.toString()).iter("property"):
        name, sources = each.findtext("name") or "", [source.text or "" for source in each.findall("source")]
        if not name.startswith("spark.") and not any(source.endswith("-default.xml") for source in sources[-1:]):
            found[name] = each.findtext("value") or ""
    return tuple(sorted(found.items()))


def _jars(spark: SparkSession) -> tuple[str, ...]:
    conf = spark.sparkContext.getConf()
    given = [conf.get("spark.jars") or "", conf.get("spark.executor.extraClassPath") or ""]
    local = [jar.removeprefix("file://").removeprefix("file:") for jar in given[0].split(",") if jar]
    return (*local, *filter(None, given[1].split(os.pathsep)))


def _own_java(access: Access) -> tuple[Any, Any]:
    """A Java process of this one's own, and its settings of Hadoop. OptionError where it does not start."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from pyspark.find_spark_home import _find_spark_home

    home = _find_spark_home()
    jars = [os.path.join(home, "jars", "*"), *access.jars, *_sent_jars()]
    extra = [os.environ.get(name, "") for name in ("HADOOP_CONF_DIR", "SPARK_DIST_CLASSPATH")]
    base = os.environ.get("JAVA_HOME")
    java = os.path.join(base, "bin", "java") if base else shutil.which("java") or "java"
    (py4j,) = glob(os.path.join(home, "jars", "py4j-*.jar")) or [""]
    try:
        port, token = launch_gateway(
            jarpath=py4j, classpath=os.pathsep.join(filter(None, (*extra, *jars))), java_path=java, die_on_exit=True,
            javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"], enable_auth=True,
            redirect_stderr=subprocess.DEVNULL, create_new_process_group=True,
        )  # fmt: skip
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        settings = gateway.jvm.org.apache.hadoop.conf.Configuration()
        for name, value in access.settings:
            settings.set(name, value)
    except Exception as error:
        problem = f"a Java process that reads files for Python did not start: {error or type(error).__name__}"
        raise OptionError(problem, f"it was looked for in {java}, its jars in {home}; JAVA_HOME, SPARK_HOME") from None
    return gateway.jvm, settings


def _sent_jars() -> list[str]:
    """What Spark has sent to this executor."""
    from pyspark import SparkFiles

    try:
        return [os.path.join(SparkFiles.getRootDirectory(), "*")]
    except Exception:  # a process that is no task has none
        return []


class _Hadoop:
    """`Storage` by Hadoop's classes. `java`: gives a Java process and the settings, when they are first needed."""

    def __init__(self, java: Any) -> None:
        self._open = java
        self._java: tuple[Any, Any] | None = None

    def _files(self, path: str) -> tuple[Any, Any]:
        """The file system of a path, and the path as it has it."""
        if self._java is None:
            self._java = self._open()
        java, settings = self._java
        place = java.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(settings), place

    def matching(self, pattern: str) -> dict[str, int | None]:
        with _os_errors(pattern):
            system, place = self._files(pattern)
            found = system.globStatus(place)
            rows = [(each.getPath().toString(), None if each.isDirectory() else each.getLen()) for each in found or ()]
        return dict([(pattern, rows[0][1])] if len(rows) == 1 and not _has_magic(pattern) else rows)

    def open(self, path: str) -> BinaryIO:
        with _os_errors(path):
            system, place = self._files(path)
            status = system.getFileStatus(place)
            assert self._java is not None

            def begin() -> Any:
                # Told what is known of the file, a store that is asked by requests is not asked once more.
                return system.openFile(place).withFileStatus(status).build().get()

            file = _File(self._java[0], begin, path, status.getLen())
            return cast(BinaryIO, io.BufferedReader(file, _BLOCK))


def _has_magic(pattern: str) -> bool:
    return any(character in pattern for character in "*?[{")


class _File(io.RawIOBase):
    """A stream of Java's as a file. `begin` opens it.

    py4j brings bytes as text, at some 20 MB for a second of processor time here. So only the first block behind a place
    comes so, as a search by time wants no more; then Java is told to copy what follows to a socket.
    """

    def __init__(self, java: Any, begin: Callable[[], Any], path: str, size: int) -> None:
        self._java = java
        self._begin = begin
        self._stream = begin()
        self._path = path
        self._size = size
        self._at = 0
        self._asked = 0
        self._copy: _Copy | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        place += {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if place == self._at:
            return place
        with _os_errors(self._path):
            if self._copy is not None:
                self._copy.close()
                self._copy, self._stream = None, self._begin()
            self._stream.seek(min(place, self._size))
        self._at, self._asked = place, 0
        return place

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        with _os_errors(self._path):
            if self._asked < _BLOCK:
                block = self._stream.readNBytes(min(len(buffer), _BLOCK))
                self._asked += len(block)
            else:
                self._copy = self._copy or _Copy(self._java, self._stream)
                block = self._copy.read(len(buffer))
        buffer[: len(block)] = block
        self._at += len(block)
        return len(block)

    def close(self) -> None:
        if not self.closed:
            with _os_errors(self._path):
                if self._copy is not None:
                    self._copy.close()
                else:
                    self._stream.close()
        super().close()


class _Copy:
    """What is left of a stream of Java's, copied by Java to a socket of this machine."""

    def __init__(self, java: Any, stream: Any) -> None:
        with socket.create_server((_HERE, 0)) as server:
            there = java.java.net.Socket(_HERE, server.getsockname()[1])
            self._socket, (_, port) = server.accept()
        if port != there.getLocalPort():
            raise OSError(5, "another process of this machine came between Java and Python")
        self._error: Exception | None = None
        self._thread = Thread(target=self._run, args=(java, stream, there.getOutputStream()), daemon=True)
        self._thread.start()

    def _run(self, java: Any, stream: Any, out: Any) -> None:
        try:
            java.org.apache.hadoop.io.IOUtils.copyBytes(stream, out, _BLOCK >> 4, True)
        except Exception as error:
            self._error = error

    def read(self, count: int) -> bytes:
        """Some bytes; none at the end. What Java met is raised."""
        block = self._socket.recv(count)
        if not block:
            self._thread.join()
            if self._error is not None:
                raise self._error
        return block

    def close(self) -> None:
        """Java ends where it is, and closes its stream."""
        self._socket.close()
        self._thread.join()


class _os_errors:
    """What Java says of a file as an OSError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from py4j.protocol import Py4JError, Py4JJavaError

        if isinstance(error, Py4JJavaError):
            met = error.java_exception
            if met.getClass().getSimpleName() == "ExecutionException":  # of what opens a file
                met = met.getCause() or met
            name = met.getClass().getSimpleName()
            said = str(met.getMessage() or "").splitlines()[:1]
            if name == "FileNotFoundException":
                raise FileNotFoundError(2, "No such file or directory", self._path) from None
            raise OSError(5, f"{name}: {said[0] if said else ''}", self._path) from None
        if isinstance(error, Py4JError):
            raise OSError(5, f"the Java process that reads it: {error}", self._path) from None
