"""Every block of every page does what the page says (`tests/support/fences.py` says how blocks are written)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fences import ROOT, Folder, WrongFence, fences, run

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = {
    "docs/rma.md": "sessions of Python, run by tests/core/automata/test_rma_docs.py",
    "docs/spark.md": "a program that needs Spark, run by tests/spark/test_guide.py",
}
"""Pages whose Python is not run here, and why."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    wrong = []
    for fence in fences(page):
        if fence.language in ("python", "output") and str(page.relative_to(ROOT)) in ELSEWHERE:
            continue
        try:
            run(fence, folder)
        except WrongFence as error:
            wrong.append(str(error))
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize(
    "block, problem",
    [
        ("```ceql\nSELECT * WHERE A ; B\n-- over\nA 1\nB 2\n-- gives\n0 2\n```", "this gives\n  0 1\n"),
        ("```ceql\nSELECT * WHERE A ; B\n-- error\nno\n```", "no error"),
        ("```ceql\nSELECT * WHERE A ;\n-- error\nno\n```", "the query ends too early"),
        ("```ceql\nSELECT * WHERE A\n```", "does not end with"),
        ("```console\n$ ceql check stock/query.ceql\nno\n```", "this prints"),
        ("```python\nprint(1)\n```\n\n```output\n2\n```", "this prints\n1"),
        ("```python\n1 / 0\n```", "ZeroDivisionError"),
        ('```python norun=""\n1 / 0\n```', "says why"),
        ("```spaseq\nASK FROM STREAM S <http://s> WHERE { SEQ (A) DEFINE GPM A ON S { ?a ?b 1 } }\n"
         "-- stream S\n<http://g> { <http://a> <http://b> 2 } <http://g> prov:generatedAtTime 1 .\n"
         "-- gives\ntrue\n```", "false"),
    ],
)  # fmt: skip
def test_a_wrong_block_is_named(block: str, problem: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("A page.\n\n" + block + "\n", encoding="utf-8")
    folder = Folder(tmp_path / "folder")
    with pytest.raises(WrongFence) as error:
        for fence in fences(page):
            run(fence, folder)
    assert str(error.value).startswith(f"{page}:"), error.value
    assert problem in str(error.value)
