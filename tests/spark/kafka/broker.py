"""A Kafka broker of one process, without ZooKeeper (KRaft), and Spark's connector, both from Maven."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.spark.cluster.standalone import java_environment

_POM: Final = Path(__file__).with_name("pom.xml")
_PATIENCE: Final = 180.0


@cache
def artifacts(profile: str) -> tuple[str, ...]:
    """The jars of a profile of `pom.xml`. The test is skipped where Maven is not there or does not get them."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("no Maven (mvn), which fetches Kafka")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "classpath")
        command = [maven, "--quiet", "--batch-mode", "-f", str(_POM), "-P", profile, "-DincludeScope=runtime",
                   "dependency:build-classpath", f"-Dmdep.outputFile={out}"]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.skip(f"Maven did not get the {profile} for Kafka within {_PATIENCE:.0f} s")
        if done.returncode or not out.exists():
            first = next((line for line in done.stdout.splitlines() if "ERROR" in line), "")
            pytest.skip(f"Maven does not get the {profile} for Kafka: {first}")
        return tuple(out.read_text().strip().split(os.pathsep))


def connected(spark: Any) -> None:
    """Makes the connector known to a session."""
    for jar in artifacts("connector"):
        spark.sql(f"ADD JAR '{jar}'")


class Broker:
    """A broker that keeps what it has in `folder`; `kill` and `start` it as often as you like. Its topics have so many
    `partitions` and are made when they are first written to."""

    def __init__(self, folder: Path, partitions: int = 2) -> None:
        self._java = str(Path(os.environ["JAVA_HOME"], "bin", "java")) if "JAVA_HOME" in os.environ else "java"
        self._classes = os.pathsep.join(artifacts("broker"))
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port, control = _free_port(), _free_port()
        self.servers = f"127.0.0.1:{self._port}"
        self._settings = folder / "server.properties"
        self._settings.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{control}\n"
            f"controller.quorum.voters=1@127.0.0.1:{control}\nlog.dirs={folder}/log\nnum.partitions={partitions}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            "broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n"  # how soon a killed one may come again
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\ngroup.initial.rebalance.delay.ms=0\n"
        )
        self._run("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(self._settings)).wait()

    def _run(self, *words: str) -> subprocess.Popen[bytes]:
        command = [self._java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", self._classes, *words]
        with (self._folder / "broker.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=java_environment(), start_new_session=True)

    def start(self) -> None:
        """The broker answers when this returns."""
        self._process = self._run("kafka.Kafka", str(self._settings))
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                return
            except OSError:
                log = (self._folder / "broker.log").read_text()
                assert self._process.poll() is None and time.monotonic() < until, log[-3000:]
                time.sleep(0.1)

    def kill(self) -> None:
        """The broker has no time to put anything in order."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])
