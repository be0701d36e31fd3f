"""A standalone cluster: how the package reaches workers that lack it, batches and streams, and executors that die."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZipFile

import pytest

from tests.spark.cluster.standalone import ROOT, Cluster, interpreter, packages_of, standalone

pytestmark = pytest.mark.spark
NS = "http://example.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    write_streams(folder)
    with standalone(folder) as found:
        yield found


def write_streams(folder: Path, events: int = 60) -> None:
    """Readings of four sensors in three files of N-Quads, and knowledge on three of them."""
    rng, now = Random(7), 0
    for part in range(3):
        with (folder / f"one{part}.nq").open("w") as file:
            for number in range(events):
                now += rng.choice((0, 1, 2, 5))
                graph, sensor = f"<{NS}g{part}-{number}>", f"<{NS}sensor{rng.randrange(4)}>"
                file.write(f'{graph} <{TIME}> "{now}" {graph} .\n')
                file.write(f'{sensor} <{NS}heat> "{rng.randint(10, 30)}"^^<{INTEGER}> {graph} .\n')
    (folder / "kb.nt").write_text("".join(f"<{NS}sensor{n}> <{NS}floor> <{NS}f{n % 2}> .\n" for n in range(3)))


def _answers(done: subprocess.CompletedProcess[str]) -> list[Any]:
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "t", "f", "n", '"'))]


def _agree(*pairs: Any) -> None:
    for found, expected in pairs:
        assert found == expected
        assert found


def _wheel(folder: Path) -> Path:
    """The wheel, under the name that Spark takes for a package."""
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run(command, check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    return Path(shutil.copy(wheel, folder / "spaseq.zip"))


@pytest.mark.slow
def test_the_package_is_sent_to_workers_that_lack_it(cluster: Cluster) -> None:
    """Two interpreters, both without it; when it was sent the answers are the local ones."""
    sent, found, events = _answers(cluster.job("ship,places,tuples", str(cluster.folder)))
    assert sent is True
    assert [Path(python).parts[-3] for python, _ in found] == ["worker0-python", "worker1-python"]
    assert all("/spaseq-" in package and ".zip/" in package for _, package in found)
    _agree(events)


@pytest.mark.slow
def test_a_worker_without_the_package_is_one_clear_error(cluster: Cluster) -> None:
    done = cluster.job("batch", str(cluster.folder))
    assert done.returncode == 1
    assert (
        "OptionError: the Python that Spark starts has no module spaseq\nhint: spaseq.spark.ship(spark)" in done.stderr
    )


@pytest.mark.slow
def test_a_wheel_by_py_files(cluster: Cluster, tmp_path: Path) -> None:
    """As `--py-files` has it; a file of Spark's own, so its name must end in .zip."""
    found, graphs, streams = _answers(
        cluster.job("places,batch,stream", str(cluster.folder), spark__submit__pyFiles=str(_wheel(tmp_path)))
    )
    assert len(found) == 2 and all(package.endswith("spaseq.zip/spaseq/__init__.py") for _, package in found)
    _agree(graphs, streams)


@pytest.mark.slow
def test_an_environment_by_archives(cluster: Cluster, tmp_path: Path) -> None:
    """As `--archives environment.tar.gz#environment` has it, the driver having unpacked it as well."""
    own = interpreter(tmp_path / "own")
    with ZipFile(_wheel(tmp_path)) as wheel:
        wheel.extractall(packages_of(own))
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as archive:
        archive.add(own, ".")
    shutil.copytree(own, cluster.folder / "environment", symlinks=True)
    found, graphs, streams = _answers(
        cluster.job(
            "places,batch,stream",
            str(cluster.folder),
            python="./environment/bin/python",
            spark__archives=f"{tmp_path / 'environment.tar.gz'}#environment",
        )
    )
    assert len(found) == 2 and all("/environment/" in python and "/environment/" in at for python, at in found)
    _agree(graphs, streams)


@pytest.mark.slow
def test_the_package_is_installed_on_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    wheel = _wheel(tmp_path)
    with standalone_with(wheel, tmp_path / "cluster") as other:
        found, graphs, streams = _answers(other.job("places,batch,stream", str(other.folder)))
    assert len(found) == 2 and all("-python/" in package for _, package in found)
    _agree(graphs, streams)


def standalone_with(wheel: Path, folder: Path) -> Any:
    """A cluster on whose workers the package is installed."""
    folder.mkdir()
    write_streams(folder)
    return standalone(folder, installed=wheel)


@pytest.mark.slow
def test_executors_that_die_change_no_answer(cluster: Cluster) -> None:
    """One when the events were read, so what was kept of them is lost, and one while the matches are found."""
    _, graphs, events = _answers(cluster.job("ship,lost,lost_tuples", str(cluster.folder)))
    _agree(graphs, events)
