"""The site's navigation names pages that are there, and the group `docs` names one version of its generator."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fences import ROOT, fences
from tests.support.site import Task, sections, tasks, titled

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
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    (bounds,) = [name for name in groups["docs"] if name.startswith("zensical")]
    least, beyond = (version.rpartition(".") for version in bounds.removeprefix("zensical>=").split(",<"))
    assert least[0] == beyond[0] and int(beyond[2]) == int(least[2]) + 1, bounds


def test_blocks_have_only_options_that_the_generator_knows() -> None:
    page = ['```csv file="a.csv"', "x", "```", '```python norun="why"', "```", "````md", '```csv file="b"', "````"]
    assert titled(['```sql file="a.ceql"', "```"])[0] == '```ceql title="a.ceql"', "its own colours"
    assert titled(page) == ['```csv title="a.csv"', "x", "```", "```python", "```", "````md", *page[6:]]


@pytest.mark.parametrize("task", tasks(), ids=lambda task: task.name)
def test_a_task_is_answered_by_the_section_that_its_words_find(task: Task) -> None:
    found = {section.anchor: f"{section.heading} {section.text}" for section in sections(task.page)}
    assert task.anchor in found
    assert task.found_in(found[task.anchor]), found[task.anchor]


def test_there_are_thirty_tasks() -> None:
    assert len({task.name for task in tasks()}) == 33
