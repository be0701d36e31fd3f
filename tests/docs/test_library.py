"""The page of the library: what it names is there, and every public name is on it."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
from pathlib import Path

import ceql
import spaseq
import spaseq.core.errors
import spaseq.core.protocols

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "library.md").read_text("utf-8")
NAMED = re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE)


def test_what_the_page_names_is_there() -> None:
    assert len(NAMED) == len(set(NAMED)) > 30
    for path in NAMED:
        if not path.startswith("spaseq.spark"):  # which needs PySpark; tests/spark has these names
            pkgutil.resolve_name(path)


def test_every_public_name_is_on_the_page() -> None:
    """Beside the objects themselves, the modules of errors and of protocols have names of both languages."""
    inside = {
        *spaseq.core.errors.__all__,
        *spaseq.core.protocols.__all__,
        "Match",
        "Matches",
        "Session",
        "Stream",
        "compile",
    }
    shown = {path.rpartition(".")[2] for path in NAMED}
    for face in (spaseq, ceql):
        public = {name for name in face.__all__ if not name.startswith("_")}
        assert public <= shown | inside, public - shown - inside
    source = importlib.util.find_spec("spaseq.spark")
    assert source is not None and source.origin is not None
    names = re.findall(r"import (\w+) as \1$", Path(source.origin).read_text("utf-8"), re.MULTILINE)
    assert len(names) >= 20 and set(names) <= {path.rpartition(".")[2] for path in NAMED if "spark" in path}
