"""The forecast example prints what its README says, and works on real AIS positions where they are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.data import DATA, needs

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "forecast"
AIS = DATA / "maritime" / "ais-227592820.csv.gz"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    sys.modules.pop("generate", None)
    spec = importlib.util.spec_from_file_location("forecast_example", EXAMPLE / "forecast.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("generate", None)
    return module


def test_the_readme_shows_what_is_printed(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.main([])
    printed = capsys.readouterr().out
    assert f"```\n{printed}```" in (EXAMPLE / "README.md").read_text("utf-8")
    assert (EXAMPLE / "query.ceql").read_text("utf-8") in (EXAMPLE / "README.md").read_text("utf-8")


@pytest.mark.slow
@needs(AIS)
def test_a_real_vessel(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The promise of 0.7 is kept on held-out positions, at less than half the spread of the unconditional interval."""
    example.main(["--ais", str(AIS)])
    lines = capsys.readouterr().out.splitlines()
    assert "spread 64" in lines[1]
    best = lines[11].split()
    assert best[:3] == ["3", "distance,", "course"]
    forecasts, precision, spread, _, recall = best[4:]
    assert int(forecasts.replace(",", "")) > 4000
    assert float(precision) > 0.7 and float(spread) < 32 and float(recall) > 0.95
