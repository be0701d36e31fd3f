"""Small inputs of RDF need no compiler: kernels that read and match graphs are interpreted, with the same answers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spaseq.core import jit
from tests.support import proof
from tests.support.sizes import some

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "smart-grid"


@pytest.mark.parametrize("kind", ["spaseq", "patterns"])
@pytest.mark.parametrize("way", ["interpreted", "now this, now that"])
def test_interpreted_graphs_have_the_oracles_answers(kind: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(way)
    always: Callable[[jit.Kernel], bool] = lambda kernel: True  # noqa: E731
    monkeypatch.setattr(jit, "interprets", always if way == "interpreted" else lambda kernel: rng.random() < 0.5)
    report = proof.check(kind, range(300, 300 + some(12)), ("batch", "run -"))
    assert report.compared and not report.different, "\n\n".join(report.different.values())


def test_a_small_example_needs_no_compiler(tmp_path: Path) -> None:
    """With time enough: no kernel of its road is compiled past `attempt`."""
    streams = [word for name in ("S1=power", "S2=weather", "S3=storage") for word in ("--stream", f"{name}.nq")]
    knowledge = ["--kb", "http://smartgrid.org/db=kb.ttl"]
    result = subprocess.run(
        [sys.executable, "-m", "spaseq", "run", "query.rq", *streams, *knowledge, "--format", "csv"],
        cwd=EXAMPLE, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path), "SPASEQ_INTERPRET": "1000"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout == (EXAMPLE / "expected.csv").read_text("utf-8")
    assert not list(tmp_path.rglob("*.nbi"))
