"""docs/spark.md is a program: its blocks are run, in one session, and print what the page says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.fences import ROOT, Folder, fences, run

PAGE = ROOT / "docs" / "spark.md"
SERVERS = ("needs a Spark Connect server; ", "needs a broker; ", "takes as long as the clock; ")


def test_blocks_that_are_not_run_say_what_they_need() -> None:
    for fence in fences(PAGE):
        if fence.language == "python":
            compile(fence.text, fence.place, "exec")
            assert fence.options.get("norun", SERVERS[0]).startswith(SERVERS), fence.place


@pytest.mark.spark
@pytest.mark.slow
def test_the_page_does_what_it_says(spark: Any, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    try:
        for fence in fences(PAGE):
            run(fence, folder)
        heard, until = folder.names["heard"], time.monotonic() + 60
        while not heard and time.monotonic() < until:
            time.sleep(0.1)
        assert heard[-1][1] > 0 and heard[-1][3] > 0
    finally:
        if "watch" in folder.names:
            spark.streams.removeListener(folder.names["watch"])
    assert not Path("state").exists()  # names are those of the process that starts a query
