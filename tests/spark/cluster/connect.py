"""A Spark Connect server, a process of its own on this machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spark.cluster.standalone import java_environment, process, said


@contextmanager
def connect_server(folder: Path, package: str = "") -> Iterator[str]:
    """The address of a server in `folder`, while the body runs. `package`: a folder on its Python's path."""
    if not (shutil.which("java") or "JAVA_HOME" in os.environ):
        pytest.skip("no Java: install Java 17 or set JAVA_HOME")
    pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pyspark[connect]'")
    settings = {
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "INFO",
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    environment = java_environment() | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": package}
    command = [f"{environment['SPARK_HOME']}/bin/spark-submit", "--class", kind, *given, "spark-internal"]
    server = process(command, environment, folder / "server.log")
    try:
        where = said(folder / "server.log", r"Spark Connect server started at: (\S+)", server)
        port = re.findall(r":(\d+)", where)[-1]
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
