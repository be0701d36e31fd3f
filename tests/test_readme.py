"""What the pages point to is there; `tests/docs/test_pages.py` runs their blocks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAPERS = ("CORE", "CEL", "Lazy", "SPAseq", "RMA")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing, f"{page.relative_to(ROOT)} links to {missing}, which are not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_are_there(page: Path) -> None:
    folders = "ceql|spaseq|tests|benchmarks|examples|ontologies|docs"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text("utf-8"))
    missing = sorted({name for name in named if not (ROOT / name).exists()})
    assert not missing, f"{page.relative_to(ROOT)} names {missing}, which are not there"


def test_papers_are_cited_by_their_names() -> None:
    references = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    assert all(f"**[{paper}]**" in references for paper in PAPERS)
    named = re.compile(rf"\bseeds? ({'|'.join(PAPERS)})\b", re.IGNORECASE)
    for path in [*PAGES, *(ROOT / "spaseq").rglob("*.py"), *(ROOT / "ceql").rglob("*.py")]:
        found = named.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.relative_to(ROOT)}: write [{found[1]}], which docs/references.md explains"
