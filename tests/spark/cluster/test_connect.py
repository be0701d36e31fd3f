"""Queries through Spark Connect: the client has no Java, and asks a server by the public DataFrame API alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.cluster.connect import connect_server
from tests.spark.cluster.standalone import ROOT, java_environment
from tests.spark.cluster.test_standalone import write_streams

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect"), str(ROOT)) as url:
        yield url


def _answers(url: str, ways: str, folder: Path) -> list[Any]:
    """What `job.py` finds as a client in a process of its own, which finds no Java."""
    write_streams(folder)
    environment = java_environment() | {"PYTHONPATH": str(ROOT), "SPASEQ_INTERPRET": "1000", "JAVA_HOME": os.devnull}
    command = [sys.executable, str(ROOT / "tests/spark/cluster/job.py"), url, ways, str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow  # a server of its own and its clients take more than a minute
def test_batches_through_a_server(server: str, tmp_path: Path) -> None:
    for found, expected in _answers(server, "tuples,sql,batch", tmp_path):
        assert found == expected != []


@pytest.mark.slow
def test_paths_through_a_server(server: str, tmp_path: Path) -> None:
    ((found, expected),) = _answers(server, "paths", tmp_path)
    assert found == [expected, expected]
    assert expected


@pytest.mark.slow
def test_streams_through_a_server(server: str, tmp_path: Path) -> None:
    """Of files and of tuples, into files and to a function; and what the guide shows."""
    for found, expected in _answers(server, "stream,tuple_stream,guide", tmp_path):
        assert found == expected != []


@pytest.mark.slow
def test_errors_through_a_server(server: str, tmp_path: Path) -> None:
    ((batch, stream, function), _) = _answers(server, "wrong", tmp_path)[0]
    assert batch.startswith("EventError: ") and "bad.nq:121: " in batch
    assert stream.startswith("EventError: ") and "bad.nq:121: " in stream
    assert function.startswith("OptionError: the function foreach_batch failed in batch 0")
    assert "ValueError: of the user" in function


@pytest.mark.slow
def test_a_server_that_lacks_the_package_is_sent_it(tmp_path: Path) -> None:
    with connect_server(tmp_path) as url:
        sent, *found_there = _answers(url, "ship,tuples,sql,batch", tmp_path)
    assert sent is True
    for found, expected in found_there:
        assert found == expected != []
