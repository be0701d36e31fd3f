"""A cluster of one master and two workers, each a process of its own on this machine, with an interpreter of its own.

The workers' interpreters have what `pip install 'spaseq[spark]'` brings, by a path to where it is installed for the
tests, and not this package itself: that must reach them as the documentation says.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCAL = "127.0.0.1"


@dataclass(frozen=True)
class Cluster:
    """`url`: of the master. `folder`: where its files are. `workers`: process numbers."""

    url: str
    folder: Path
    workers: tuple[int, ...]

    def job(self, *arguments: str, python: str = "python3", **settings: str) -> subprocess.CompletedProcess[str]:
        """`job.py` run by a driver of its own, workers with `python`. `settings`: of Spark, `__` standing for a dot."""
        given = [f"{name.replace('__', '.')}={value}" for name, value in settings.items()]
        command = [sys.executable, str(Path(__file__).with_name("job.py")), self.url, *arguments, *given]
        numbers = ",".join(map(str, self.workers))
        environment = java_environment() | {
            "PYTHONPATH": os.environ.get("CLUSTER_PACKAGE", str(ROOT)),
            "CLUSTER_WORKERS": numbers,
            "PYSPARK_PYTHON": python,
            "NUMBA_CACHE_DIR": str(self.folder / "kernels"),
        }
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=600)


def java_environment() -> dict[str, str]:
    """The environment of Spark's processes: nothing of ours is on Python's path, `python3` is the one with packages."""
    import pyspark

    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "NUMBA"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    home = os.path.dirname(pyspark.__file__)
    ours = {"SPARK_HOME": home, "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": LOCAL, "SPARK_PUBLIC_DNS": LOCAL}
    return kept | ours | {"PATH": path, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}


def interpreter(folder: Path) -> Path:
    """A new interpreter that has what the tests' one has, but not this package; its folder."""
    venv.create(folder, with_pip=False, symlinks=True)
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages_of(folder) / "installed.pth").write_text("".join(f"{path}\n" for path in sorted(installed)))
    return folder


def packages_of(folder: Path) -> Path:
    """Where an interpreter made by `interpreter` has its packages."""
    return Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))


@contextmanager
def standalone(folder: Path, workers: int = 2, installed: Path | None = None, apart: bool = False) -> Iterator[Cluster]:
    """A cluster with one core a worker, in `folder`, while the body runs; then its processes are ended. `installed`: a
    wheel that the workers' interpreters have. With `apart` each worker has an address of its own: Spark starts a slow
    task a second time on another host only."""
    if not (shutil.which("java") or "JAVA_HOME" in os.environ):
        pytest.skip("no Java: install Java 17 or set JAVA_HOME")
    started: list[subprocess.Popen[Any]] = []
    try:
        url = ""
        for place, name in enumerate(("master", *(f"worker{number}" for number in range(workers)))):
            arguments = ["--host", f"127.0.0.{1 + place}" if apart else LOCAL, "--webui-port", "0"]
            environment = java_environment()
            if name == "master":
                kind = "master.Master"
                arguments += ["--port", "0"]
            else:
                kind = "worker.Worker"
                own = interpreter(folder / f"{name}-python")
                if installed is not None:
                    ZipFile(installed).extractall(packages_of(own))
                environment["PATH"] = f"{own / 'bin'}{os.pathsep}{environment['PATH']}"
                arguments += ["--cores", "1", "--memory", "2g", "--work-dir", str(folder / name), url]
            command = [f"{environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *arguments]
            started.append(process(command, environment, folder / f"{name}.log"))
            if name == "master":
                url = said(folder / "master.log", r"Starting Spark master at (spark://\S+)", started[-1])
        for number in range(workers):
            said(folder / f"worker{number}.log", r"(Successfully registered)", started[number + 1])
        yield Cluster(url, folder, tuple(each.pid for each in started[1:]))
    finally:
        for each in reversed(started):
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def process(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[Any]:
    """A process that goes on, in a group of its own; what it says goes to `log`."""
    with log.open("w") as file:
        return subprocess.Popen(
            command, env=environment, cwd=log.parent, stdout=file, stderr=file, start_new_session=True
        )


def said(log: Path, pattern: str, process: subprocess.Popen[Any], seconds: float = 90) -> str:
    """What a process said in its log that matches `pattern`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text("utf-8", "replace"))
        if found:
            return found[1]
        assert process.poll() is None, log.read_text("utf-8", "replace")
        time.sleep(0.1)
    raise AssertionError(f"nothing like {pattern} in {log.read_text('utf-8', 'replace')}")
