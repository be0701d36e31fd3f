"""A base install of the oldest dependencies that pyproject.toml allows, tried: `python -m tests.bounds`.

Claim: with the lower bound of each dependency and no extra, both languages run their examples, read and write Parquet
and say what is missing where pandas is asked for; in a process without a home, from a package that nobody can write
to, and from a zip file. `make test-bounds` installs into an environment of its own, so it needs a package index;
`PYTHONS="python3.12 python3.13"` tries other interpreters. Needs nothing but Python's own library.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TRIED: Final = """
import sys
from pathlib import Path
import ceql, spaseq
from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main

def written(main, *command):
    assert main([*command, "--output", "found"]) == 0, command
    return Path("found").read_text("utf-8")

rows = [f"{'SELL' if n % 2 else 'BUY'},n{n % 3},{n}" for n in range(40)]
Path("e.csv").write_text(chr(10).join(["type,name,price", *rows]))
query = "SELECT * WHERE SELL AS a ; BUY AS b FILTER a.name = b.name AND b.price > a.price WITHIN 10 EVENTS"
matches = ceql.compile(query).run("e.csv")
assert matches.count() == matches.to_arrow().num_rows == 33
assert ceql_main(["run", query, "--events", "e.csv", "--output", "found.parquet"]) == 0
more = ["--type-column", "kind", "--format", "count"]
import pyarrow.parquet as pq
assert pq.read_table("found.parquet").num_rows == 33
table = pq.read_table("found.parquet").append_column("kind", [["A"] * 33])
pq.write_table(table, "again.parquet")
assert written(ceql_main, "run", "SELECT * WHERE A", "--events", "again.parquet", *more) == "33\\n"
graphs = [f'<urn:s{n}> <urn:{"ab"[n % 2]}> "{n}" .' for n in range(20)]
Path("s.nt").write_text(chr(10).join([*graphs, ""]))
text = (
    "SELECT ?x ?y FROM STREAM S <urn:s> WHERE { SEQ (A, B) DEFINE GPM A ON S { ?s <urn:a> ?x } "
    "DEFINE GPM B ON S { ?t <urn:b> ?y . FILTER (?y > ?x) } }"
)
found = spaseq.compile(text).run({"S": "s.nt"}, event_by="size:1")
assert found.count() == found.to_arrow().num_rows == 10
for some in (matches, found):
    try:
        some.to_pandas()
    except spaseq.OptionError as error:
        assert "to_pandas needs pandas" in str(error), error
    else:
        assert "pandas" in sys.modules
demos = [main(["demo", name]) for main, name in ((ceql_main, "stock"), (spaseq_main, "smart-grid"))]
assert demos == [0, 0]
"""
COMPILED: Final = """
import ceql
assert ceql.compile("SELECT * WHERE A ; B WITHIN 9 EVENTS").run([{"type": "AB"[n % 2]} for n in range(999)]).count()
"""


def lowest() -> list[str]:
    """Each dependency of a base install at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [re.sub(r">=([^,]+).*", r"==\1", dependency) for dependency in project["dependencies"]]


def _said(command: list[str], **more: str) -> str:
    """Runs a command in an empty folder, with no home and no settings; its output. Ends the whole with its own."""
    with tempfile.TemporaryDirectory() as folder:
        own = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": "/dev/null/home",
            "XDG_CACHE_HOME": "/dev/null/cache",
            **more,
        }
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} {command[1][:40]} …: exit code {done.returncode}\n{done.stdout[-500:]}{done.stderr}")
    return done.stdout + done.stderr


def main() -> None:
    """Makes the environment, or takes the one in --into, and tries it."""
    parser = argparse.ArgumentParser(prog="tests.bounds", description="Try the lowest dependencies.")
    parser.add_argument("--into", metavar="FOLDER", help="keep the environment there, and take it where it is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.into or Path(scratch) / "lowest")
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *lowest()], check=True)
        copy = Path(scratch) / "package"
        _copied(copy)
        _tried(python, copy, Path(scratch))
        listing = _said([str(python), "-m", "pip", "list", "--format=freeze"])
        version = _said([str(python), "--version"]).strip()
    versions = ", ".join(sorted(word for word in listing.split() if "==" in word))
    print(f"{version}, {versions}: tried, and right")


def _copied(copy: Path) -> None:
    """Both packages and the examples, where no compiled code can be kept: as root may write anything, files stand
    where folders are wanted."""
    for name in ("spaseq", "ceql", "examples"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in (copy / "spaseq").rglob("*.py")}:
        (folder / "__pycache__").touch()


def _tried(python: Path, copy: Path, scratch: Path) -> None:
    words = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    _said([str(python), "-c", TRIED], **words, SPASEQ_INTERPRET="1000")
    said = _said([str(python), "-c", COMPILED], **words, SPASEQ_INTERPRET="0")
    if said.count("compiled kernels cannot be kept") != 1:
        sys.exit(f"without a place for compiled kernels: {said}")
    archive = shutil.make_archive(str(scratch / "packages"), "zip", copy)
    kept = {"NUMBA_CACHE_DIR": str(scratch / "kernels"), "PYTHONPATH": archive}
    said = _said([str(python), "-c", COMPILED], **{**words, **kept}, SPASEQ_INTERPRET="0")
    if said:
        sys.exit(f"from a zip file: {said}")


if __name__ == "__main__":
    main()
