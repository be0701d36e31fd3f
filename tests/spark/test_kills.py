"""A streaming query that is killed at random moments: see `kill_streams.py`, which `-m kill` runs at length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.kafka.broker import artifacts

ROOT = Path(__file__).parents[2]


@pytest.mark.kill
@pytest.mark.parametrize(("on", "kills"), [("files", 30), ("kafka", 40), ("cluster", 30)])
def test_not_a_match_is_lost_or_doubled(on: str, kills: int, tmp_path: Path) -> None:
    """Of files; of messages, the broker among those killed; and on a cluster, executors among them."""
    if on == "kafka":
        artifacts("broker"), artifacts("connector")
    command = [sys.executable, "-m", "tests.spark.kill_streams", "--on", on, "--kills", str(kills),
               "--log", str(tmp_path / "kills.csv")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 matches lost or doubled" in done.stdout
