"""The gallery shows every example as it is; pictures of automata depend on the version of Graphviz, and are looked at
in `tests/core/automata/test_pictures.py`."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from benchmarks.charts import MEASURES, Panel, draw, newest, panels
from spaseq.tools.command.demos import DEMOS
from tests.support.gallery import PAGE, page, timeline
from tests.support.papers import EXPERIMENTS, Experiment


def test_the_page_is_that_of_the_demos() -> None:
    again = "python -m tests.support.gallery makes it"
    assert PAGE.read_text("utf-8") == page(), again
    there = {path.name for path in (PAGE.parent / "gallery").iterdir()}
    automata_and_timelines = {f"{name}{what}.svg" for name in DEMOS for what in ("", "-automaton")}
    assert there == automata_and_timelines | {f"{experiment.name}.svg" for experiment in EXPERIMENTS}, again


@pytest.mark.parametrize("name", DEMOS)
def test_timelines_are_those_of_the_matches(name: str) -> None:
    drawn = timeline(DEMOS[name])
    assert 0 < len(drawn.spans) <= 12 and all(len(span.marks) > 1 for span in drawn.spans)
    assert (PAGE.parent / "gallery" / f"{name}.svg").read_text("utf-8") == drawn.svg(), "make docs makes it anew"


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_charts_are_those_of_the_newest_results(experiment: Experiment) -> None:
    assert (PAGE.parent / "gallery" / f"{experiment.name}.svg").read_text("utf-8") == experiment.svg(), "make docs"


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_a_chart_has_a_dot_for_each_measured_point(experiment: Experiment) -> None:
    shown = [p for m in experiment.measures for p in panels(newest(experiment.group), experiment.figure, m)]
    names = {name for panel in shown for name in panel.series}
    dots = sum(len(values) for panel in shown for values in panel.series.values())
    drawn = ET.fromstring(experiment.svg())
    circles = drawn.findall("{http://www.w3.org/2000/svg}circle")
    assert dots > 3 and len(circles) == dots + (len(names) if len(names) > 1 else 0)


def test_a_chart_puts_values_on_one_logarithmic_scale() -> None:
    axis = MEASURES["bytes"]
    low = Panel("low", axis, ("1", "2"), {"a & b": {"1": 10.0, "2": 100.0}})
    high = Panel("high", axis, ("1",), {"a & b": {"1": 1000.0}})
    circles = ET.fromstring(draw("<title>", [low, high])).findall("{http://www.w3.org/2000/svg}circle")
    first, second, third = (float(circle.get("cy", "")) for circle in circles)
    assert first - second == pytest.approx(second - third) and first > second > third
