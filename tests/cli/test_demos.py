"""`demo` of both commands: every example is one, and gives what its folder says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main
from spaseq.tools.command.demos import DEMOS

ROOT = Path(__file__).resolve().parents[2]
MAIN = {"ceql": ceql_main, "spaseq": spaseq_main}
EXPECTED = {"head-and-shoulders": "expected-head-and-shoulders.csv", "v-shape": "expected-v.csv",
            "w-shape": "expected-w.csv", "traffic-spread": "expected-spread.csv", "stock": "expected.jsonl",
            "traffic-networks": "expected-networks.csv"}  # fmt: skip


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_gives_what_its_folder_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    demo = DEMOS[name]
    file = ROOT / "examples" / demo.folder / EXPECTED.get(name, "expected.csv")
    form = file.suffix.removeprefix(".")
    assert MAIN[demo.command](["demo", name, "--format", form]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(f"$ {demo.command} run {ROOT}/examples/{demo.folder}/")
    assert out.replace("\r\n", "\n") == file.read_text("utf-8")


def test_every_query_among_the_examples_has_a_demo(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {(demo.folder, demo.words.split()[0].removeprefix("{}/")) for demo in DEMOS.values()}
    there = {(path.parent.name, path.name) for end in ("rq", "ceql") for path in (ROOT / "examples").glob(f"*/*.{end}")}
    own = {
        ("forecast", "query.ceql"),
        ("live", "query.ceql"),
        ("vessels", "kinds.rq"),
        ("incidents", "overheated.rq"),
        ("incidents", "repeated.rq"),
    }
    assert there - shown == own, "which need a program, a second query or a file of the project beside them"
    assert ceql_main(["demo"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("stock  ")
    assert spaseq_main(["demo", "nothing"]) == 2
    assert "there is no example nothing\nhint: spaseq demo has smart-grid, " in capsys.readouterr().err


def test_the_examples_are_copied_for_who_has_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "some" / "examples"
    assert ceql_main(["demo", "--copy", str(folder)]) == 0
    names = dict.fromkeys(d.folder for d in DEMOS.values())
    assert capsys.readouterr().out == f"{folder} has {', '.join(names)}, notebooks\n"
    assert (folder / "notebooks" / "stock.ipynb").is_file()
    query, events = folder / "stock" / "query.ceql", folder / "stock" / "trades.csv"
    words = ["run", str(query), "--events", str(events), "--type-column", "event_type", "--format", "count"]
    assert ceql_main(words) == 0 and capsys.readouterr().out == "40\n"
    assert spaseq_main(["demo", "--copy", str(folder)]) == 2, "nothing is written over"
    assert f"{folder} is there already" in capsys.readouterr().err


def test_the_list_of_examples_fits_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for main in (ceql_main, spaseq_main):
        assert main(["demo"]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_what_demos_read_is_installed() -> None:
    files = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["data-files"]
    for demo in DEMOS.values():
        given = [path for pattern in files[f"share/spaseq/examples/{demo.folder}"] for path in ROOT.glob(pattern)]
        asked = [part for word in demo.words.split() for part in word.split("=") if part.startswith("{}/")]
        assert {part.removeprefix("{}/") for part in asked} <= {path.name for path in given}
