"""The site's navigation names pages that are there, and the extra `docs` names one version of its generator."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from tests.support.fences import ROOT, fences

SITE = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]


def _pages(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages(part)


def test_the_navigation_has_every_page() -> None:
    pages = list(_pages(SITE["nav"]))
    assert len(pages) > 10
    docs = ROOT / SITE["docs_dir"]
    assert sorted(pages) == sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))


def test_nothing_is_fetched_from_other_hosts() -> None:
    assert SITE["theme"]["font"] is False
    assert not {"extra_javascript", "extra_css", "analytics"} & SITE.keys()
    diagrams = [f.place for p in (ROOT / "docs").rglob("*.md") for f in fences(p) if f.language == "mermaid"]
    assert not diagrams, "the generator's script loads what draws mermaid from elsewhere"


def test_the_generator_is_of_one_version() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (bounds,) = [name for name in extras["docs"] if name.startswith("zensical")]
    least, beyond = (version.rpartition(".") for version in bounds.removeprefix("zensical>=").split(",<"))
    assert least[0] == beyond[0] and int(beyond[2]) == int(least[2]) + 1, bounds
