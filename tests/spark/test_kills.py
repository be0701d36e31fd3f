"""A streaming query that is killed at random moments: see `kill_streams.py`, which `-m kill` runs at length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "kill_streams.py"


@pytest.mark.kill
def test_not_a_match_is_lost_or_doubled(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "100", "--log", str(tmp_path / "kills.csv")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 matches lost or doubled" in done.stdout
