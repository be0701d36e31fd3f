"""The gallery shows every example as it is; pictures of automata depend on the version of Graphviz, and are looked at
in `tests/core/automata/test_pictures.py`."""

from __future__ import annotations

import pytest

from spaseq.tools.command.demos import DEMOS
from tests.support.gallery import PAGE, page, timeline


def test_the_page_is_that_of_the_demos() -> None:
    again = "python -m tests.support.gallery makes it"
    assert PAGE.read_text("utf-8") == page(), again
    there = {path.name for path in (PAGE.parent / "gallery").iterdir()}
    assert there == {f"{name}{what}.svg" for name in DEMOS for what in ("", "-automaton")}, again


@pytest.mark.parametrize("name", DEMOS)
def test_timelines_are_those_of_the_matches(name: str) -> None:
    drawn = timeline(DEMOS[name])
    assert 0 < len(drawn.spans) <= 12 and all(len(span.marks) > 1 for span in drawn.spans)
    assert (PAGE.parent / "gallery" / f"{name}.svg").read_text("utf-8") == drawn.svg(), "make docs makes it anew"
