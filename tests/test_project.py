"""What the project says about itself holds: commands exist, text files speak only of the project."""

from __future__ import annotations

import importlib
import re
import shutil
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


UNCAPPED = {"numba", "numpy", "pyarrow"}
"""What has no upper bound: no version is known to fail."""


def test_every_dependency_has_bounds() -> None:
    """An upper one, too, except for the three that a user's other packages must agree on."""
    project = _project()["project"]
    extras = [r for extra in project["optional-dependencies"].values() for r in extra]
    groups = [r for group in _project()["dependency-groups"].values() for r in group if isinstance(r, str)]
    needed = [r for r in project["dependencies"] + extras + groups if not r.startswith("spaseq[")]
    assert not [r for r in needed if ">=" not in r]
    assert {r.partition(">=")[0] for r in needed if "<" not in r} == UNCAPPED


def test_make_installs_every_extra_and_group() -> None:
    project = _project()
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (named,) = re.findall(r"--editable '\.\[([\w,]+)\]'", makefile)
    extras = project["project"]["optional-dependencies"]
    reached = set(named.split(","))
    reached |= {name for extra in reached for r in extras[extra] for name in re.findall(r"^spaseq\[(\w+)\]", r)}
    assert reached == set(extras)
    assert set(re.findall(r"--group (\w+)", makefile)) == {"dev", "docs"}
    assert {"include-group": "plot"} in project["dependency-groups"]["dev"]


def test_the_lowest_dependencies_are_told_apart() -> None:
    """`make test-bounds` installs exactly these."""
    needed = _project()["project"]["dependencies"]
    assert len(lowest()) == len(needed) and all(re.fullmatch(r"[\w.-]+==[\d.]+", each) for each in lowest())


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_little_and_names_versions(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r"^permissions:\n  contents: read\n(?! )", text, re.MULTILINE), "the whole may only read"
    assert set(re.findall(r"^ {6}([\w-]+): write", text, re.MULTILINE)) <= {"id-token", "pages"}
    used = re.findall(r"uses: (?!\./)(\S+)", text)
    assert all(re.fullmatch(r"[\w./-]+@(release/)?v\d+", action) for action in used), used
    checkouts = text.count("uses: actions/checkout@")
    assert text.count("uses: actions/checkout@v5\n        with:\n          persist-credentials: false\n") == checkouts
    assert set(re.findall(r"run: make ([a-z-]+)", text)) <= _targets()
    assert all((ROOT / local).is_file() for local in re.findall(r"uses: \./(\S+)", text))


def test_the_workflows_test_every_supported_python() -> None:
    (listed,) = re.findall(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    tested = re.findall(r'"(\d\.\d+)"', listed)
    classifiers = "\n".join(_project()["project"]["classifiers"])
    assert set(re.findall(r"Python :: (\d\.\d+)", classifiers)) <= set(tested)
    assert _project()["project"]["requires-python"] == f">={tested[0]}"


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
def test_actionlint_finds_nothing() -> None:
    done = subprocess.run(["actionlint", *map(str, WORKFLOWS)], capture_output=True, text=True)
    assert not done.returncode, done.stdout


def test_the_hooks_run_the_tools_of_the_environment() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert re.findall(r"entry: (\S+ \w+)", text) == [".venv/bin/ruff check", ".venv/bin/ruff format"]
    assert any(isinstance(r, str) and r.startswith("ruff>=") for r in _project()["dependency-groups"]["dev"])


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
