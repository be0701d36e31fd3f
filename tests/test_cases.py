"""Every case of `cases/` by the naive evaluators and on every road of `roads.py`."""

from __future__ import annotations

import ast
import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spaseq.core import errors
from tests.support import harness, oracle_spaseq, roads
from tests.support.harness import Case
from tests.support.roads import LEFT_OUT, Ride, Road

CASES = harness.load_all()
ANSWERED = [case for case in CASES if case.error is None]
ASKED = [*ANSWERED, *(replace(c, place=f"{c.place} [valuations]", valuations=True) for c in ANSWERED if c.bindings)]
"""What is asked on each road: the matches of every case, and the valuations of those that list them."""

SPARK_SHARE = 97
"""Jobs of Spark take seconds."""


MAIN_ROADS = {"batch", "one by one", "snapshot"}
"""On these all cases are in every run; those of the seeds are on all roads."""
ROAD_SHARE = 3
"""On another road one case of so many is in every run, on each road others. None of those of peers' suites: they repeat
forms that other cases have."""


def _each(wanted: Callable[[Case], bool]) -> pytest.MarkDecorator:
    cases = [case for case in CASES if wanted(case)]
    return pytest.mark.parametrize("case", cases, ids=[case.place for case in cases])


def test_names_are_unique() -> None:
    places = [case.place for case in CASES]
    assert len(set(places)) == len(places)


def test_the_naive_evaluators_know_nothing_of_the_engine() -> None:
    """They import only the standard library and one another."""
    for path in (Path(__file__).parent / "support").glob("oracle*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names += [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                known = name.split(".")[0] in sys.stdlib_module_names
                assert known or name.startswith("tests.support.oracle"), f"{path.name} imports {name}"


# -- the definitions


@_each(lambda case: case.error is None and not case.is_spaseq)
def test_ceql_by_definition(case: Case) -> None:
    assert harness.ceql_oracle(case.query, case.events) == case.matches


@_each(lambda case: case.bindings is not None)
def test_ceql_valuations_by_definition(case: Case) -> None:
    assert harness.ceql_bindings_by_definition(case.query, case.events) == case.bindings


@_each(lambda case: case.error is None and case.is_spaseq)
def test_spaseq_by_definition(case: Case) -> None:
    """The expected solutions and instants."""
    answers = harness.spaseq_oracle(case.query, case.graphs, case.kb)
    assert oracle_spaseq.solutions(answers) == harness.expected_solutions(case)
    if case.instants is not None:
        expected = {tuple(round(t * 10**9) for t in times) for times in case.instants}
        assert {times for _, _, times, _ in answers} == expected


# -- the roads


def _slow(case: Case, road: Road, number: int) -> bool:
    """On Spark's roads one case of `SPARK_SHARE` is in every run, and no stream, of which `tests/spark` has its own."""
    if road.spark:
        return bool(number % SPARK_SHARE) or road.name == "spark stream"
    if road.name in MAIN_ROADS or case.place.startswith("seed_"):
        return False
    return case.place.startswith("peers_") or (number + zlib.crc32(road.name.encode())) % ROAD_SHARE != 0


def _journeys() -> pytest.MarkDecorator:
    """Every case with the roads of its language but Spark's; those that are slow for it are a test of their own.

    PERF: 38 cases take 5.4 s of a processor, and 7.4 with a test for each of their roads, 394 in all (2026-11-26).
    """
    params: list[Any] = []
    for number, case in enumerate(ASKED):
        ways = [road for road in roads.roads(case) if not road.spark]
        slow = [road for road in ways if _slow(case, road, number)]
        params.append(pytest.param(case, [road for road in ways if road not in slow], id=case.place))
        if slow:
            params.append(pytest.param(case, slow, id=f"{case.place} [slow]", marks=pytest.mark.slow))
    return pytest.mark.parametrize(("case", "ways"), params)


def _rides() -> pytest.MarkDecorator:
    """Every case on each of Spark's roads."""
    params: list[Any] = []
    for number, case in enumerate(ASKED):
        for road in (road for road in roads.roads(case) if road.spark):
            marks = [pytest.mark.slow] if _slow(case, road, number) else []
            params.append(pytest.param(case, road, id=f"{road.name}: {case.place}", marks=marks))
    return pytest.mark.parametrize(("case", "road"), params)


@_journeys()
def test_on_every_road(case: Case, ways: list[Road], tmp_path: Path) -> None:
    """All roads are tried; the error has what went wrong on each, and names the road."""
    wrong = []
    for road in ways:
        folder = tmp_path / road.name
        folder.mkdir()
        try:
            _check(case, road, folder)
        except Exception as error:
            error.add_note(f"on the road {road.name!r}")
            wrong.append(error)
    if wrong:
        raise ExceptionGroup(case.place, wrong)


@pytest.mark.spark
@_rides()
def test_on_every_road_of_spark(case: Case, road: Road, tmp_path: Path, spark_session: Any) -> None:
    _check(case, road, tmp_path, spark_session)


def _check(case: Case, road: Road, folder: Path, spark: Any = None) -> None:
    """The same answers on every road, each once, or a refusal that `LEFT_OUT` lists."""
    refused = road.leaves(case)
    if refused:
        assert _reason(road, refused) is not None, f"{road.name} does not take it, without a listed reason: {refused}"
        return
    anew = zlib.crc32(case.place.encode()) % 4 == 0  # most cases restart with the query that all roads share
    found = roads.given(case, road, Ride(random.Random(case.place), folder, spark, anew))
    assert found == roads.expected(case, road)


def _reason(road: Road, refused: str) -> str | None:
    """The pattern of `LEFT_OUT` that a refusal is."""
    listed = LEFT_OUT.get((road.language, road.name), {})
    return next((pattern for pattern in listed if re.fullmatch(pattern, refused)), None)


@pytest.mark.parametrize("road", roads.ROADS, ids=[f"{road.language}: {road.name}" for road in roads.ROADS])
def test_what_a_road_leaves_out_is_counted(road: Road) -> None:
    """So that it cannot grow unseen."""
    refusals = [road.leaves(case) for case in ASKED if road in roads.roads(case)]
    counts = Counter(_reason(road, refused) or refused for refused in refusals if refused)
    assert counts == LEFT_OUT.get((road.language, road.name), {})


# -- wrong queries


@_each(lambda case: case.error is not None)
def test_wrong_queries(case: Case) -> None:
    """One clear error: the class of the exception and a part of its text."""
    import ceql
    import spaseq

    module = spaseq if case.is_spaseq else ceql
    with pytest.raises(getattr(errors, str(case.error))) as caught:
        module.compile(case.query)
    assert case.message in str(caught.value)
