"""What the project says about itself holds: commands exist, text files speak only of the project."""

from __future__ import annotations

import importlib
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.bounds import lowest

ROOT = Path(__file__).resolve().parent.parent


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def _tracked() -> list[Path]:
    """Files of the repository; without git (an unpacked archive) nothing is checked."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def test_commands_named_in_the_readme_exist() -> None:
    named = set(re.findall(r"^\$?\s*make ([a-z-]+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE))
    assert {"run", "test"} <= named
    assert named <= _targets()


def test_ci_runs_the_tests() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_tests_that_several_processes_begin_with_are_there() -> None:
    """A file that got another name would lose its turn unseen."""
    named = re.findall(r'"(tests/[\w/.]*)"', (ROOT / "tests" / "conftest.py").read_text("utf-8"))
    assert named and not [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize("name", sorted(_project()["project"]["scripts"]))
def test_installed_commands_can_be_called(name: str) -> None:
    module, _, function = _project()["project"]["scripts"][name].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_every_dependency_has_both_bounds() -> None:
    project = _project()["project"]
    needed = project["dependencies"] + [r for extra in project["optional-dependencies"].values() for r in extra]
    unbounded = [r for r in needed if not r.startswith("spaseq[") and not (">=" in r and "<" in r)]
    assert not unbounded


def test_the_lowest_dependencies_are_told_apart() -> None:
    """`make test-bounds` installs exactly these."""
    needed = _project()["project"]["dependencies"]
    assert len(lowest()) == len(needed) and all(re.fullmatch(r"[\w.-]+==[\d.]+", each) for each in lowest())


def test_no_machine_is_named_in_the_text() -> None:
    """A path or a host of one developer's machine in a file would work nowhere else."""
    private = re.compile(r"(?<![\w.])/(?:work|home/\w+|Users/\w+)/|\b127\.0\.0\.1:\d{4}\b|\.internal\b")
    found = []
    for path in _tracked():
        if path.suffix in {".gz", ".zst", ".png", ".parquet"} or path == Path(__file__) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if private.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)
