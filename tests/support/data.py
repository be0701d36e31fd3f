"""The place of data that is not ours: outside the project, in SPASEQ_DATA or in `../shared/data` beside the checkout.

Tests that need it are skipped by name if it is missing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

DATA = Path(os.environ.get("SPASEQ_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")).resolve()


def missing(path: Path) -> str:
    """Why a test is skipped."""
    return f"{path} is not there (set SPASEQ_DATA)"


def needs(path: Path) -> pytest.MarkDecorator:
    """Skips a test, by name, without the file or folder `path`."""
    return pytest.mark.skipif(not path.exists(), reason=missing(path))


def cases_of(path: Path, cases: Sequence[Any]) -> Sequence[Any]:
    """The `cases` that a folder has; without it one that is skipped by name."""
    return cases or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=missing(path)))]
