"""Files of any number and size are divided among tasks; the matches, counters and errors are the local engine's."""

from __future__ import annotations

import gzip
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.core.errors import EventError
from spaseq.language.runtime.opened import stream_options, stream_sources
from spaseq.rdf import Counters, settle
from spaseq.spark.ingest import inputs
from tests.spark.conftest import NS, write_stream

SLOW = pytest.mark.slow
QUERY = f"""PREFIX : <{NS}>
SELECT * WITHIN 9 SECONDS FROM STREAM S <{NS}one>
WHERE {{ SEQ (A; B) DEFINE GPM A ON S {{ ?a :heat ?x FILTER (?x > 24) }}
DEFINE GPM B ON S {{ ?a :heat ?y FILTER (?y < ?x) }} }}"""


def _without_blank_nodes(path: Path) -> None:
    path.write_text(re.sub(r"_:(s\d)", rf"<{NS}\1>", path.read_text("utf-8")), "utf-8")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream in 70 files, one after another in time."""
    folder, last = tmp_path_factory.mktemp("many"), 0
    for number in range(70):
        path = folder / f"{number:03}.nq"
        last = write_stream(path, number, 5, start=last)
        _without_blank_nodes(path)
    return folder


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    write_stream(folder / "late.nq", 3, 400, late=2)
    write_stream(folder / "blank.nq", 4, 400)
    (folder / "plain.nq").write_text((folder / "blank.nq").read_text("utf-8"), "utf-8")
    for name in ("late", "plain"):
        _without_blank_nodes(folder / f"{name}.nq")
    return folder


def _planned(path: str, tasks: int = 2, **words: Any) -> list[inputs.Input]:
    sources = stream_sources(spaseq.compile(QUERY).checked, {"S": path})
    return inputs.inputs_of(sources, settle(stream_options(None, words), sources), tasks, whole=False)


def _told(query: Any, path: str, **words: Any) -> tuple[Any, Any]:
    """The matches and counters of the local engine, or its error."""
    found = query.run({"S": path}, **words)
    try:
        return _texts(found.to_arrow()), found.counters
    except EventError as error:
        return type(error), str(error)


def _texts(table: Any) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def _on_spark(spark: Any, query: Any, path: str, **words: Any) -> tuple[Any, Any]:
    counters = Counters()
    try:
        frame = spaseq.spark.run(query, spark, {"S": path}, counters=counters, plan="table", partitions=3, **words)
        return _texts(spaseq.spark.collect(frame)), counters
    except EventError as error:
        return type(error), str(error)


def test_seventy_files_are_as_many_inputs_of_a_few_tasks(many: Path) -> None:
    found = _planned(str(many / "*.nq"))
    assert len(found) == 70 and len({each.chain for each in found}) == 1
    chosen, tasks = inputs.dealt(found, 2)
    assert tasks == 8
    load = [sum(each.weight for each, task in zip(found, chosen, strict=True) if task == n) for n in range(8)]
    assert max(load) < 1.5 * min(load)
    assert len({each.chain for each in _planned(str(many / "0[0-5]?.nq"))}) == 60  # the local engine merges so many
    assert len(_planned(str(many / "*.nq"), time_from="arrival")) == 1


@pytest.mark.spark
@pytest.mark.slow  # how they are dealt is tried above
def test_seventy_files_have_the_matches_of_one_after_another(
    many: Path, spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    query = spaseq.compile(QUERY)
    with caplog.at_level(logging.INFO, "spaseq.spark"):
        expected = _told(query, str(many / "*.nq"))
        assert _on_spark(spark, query, str(many / "*.nq")) == expected
    assert expected[0] and "read again" not in caplog.text


@pytest.mark.spark
@pytest.mark.parametrize(
    "words", [pytest.param({}, marks=SLOW), {"late": "drop"}, pytest.param({"lateness": "500s"}, marks=SLOW)]
)
def test_a_file_that_goes_back_is_late_as_it_is_locally(
    many: Path, tmp_path: Path, spark: Any, words: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for file in many.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "031.nq").rename(tmp_path / "x031.nq")
    query, path = spaseq.compile(QUERY), str(tmp_path / "*.nq")
    with caplog.at_level(logging.INFO, "spaseq.spark"):
        expected = _told(query, path, **words)
        assert _on_spark(spark, query, path, **words) == expected
    assert ("x031.nq begins before what is in front of it ends" in caplog.text) == ("lateness" not in words)
    assert bool(words.get("late")) == (isinstance(expected[1], Counters) and expected[1].late > 0)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "words", "again"),
    [("plain", {}, ""), pytest.param("late", {"lateness": "2s"}, "", marks=SLOW),
     pytest.param("late", {"late": "drop"}, "begins before", marks=SLOW), ("blank", {}, "blank nodes"),
     pytest.param("broken", {}, "broken.nq:", marks=SLOW),
     pytest.param("broken", {"malformed": "drop"}, "", marks=SLOW)],
)  # fmt: skip
def test_a_large_file_is_divided(
    name: str, words: dict[str, Any], again: str, large: Path, spark: Any, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(inputs, "_SMALLEST", 3_000)
    if name == "broken":
        lines = (large / "plain.nq").read_text("utf-8").splitlines(keepends=True)
        (large / "broken.nq").write_text("".join([*lines[:-40], "what?\n", *lines[-40:]]), "utf-8")
    query, path = spaseq.compile(QUERY), str(large / f"{name}.nq")
    planned = _planned(path)
    assert len(planned) > 3 and planned[-1].span is not None
    with caplog.at_level(logging.INFO, "spaseq.spark"):
        expected = _told(query, path, **words)
        assert _on_spark(spark, query, path, **words) == expected
    assert expected[0]
    assert (again in caplog.text) if again else ("read again" not in caplog.text)


def test_a_packed_file_is_not_divided(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_SMALLEST", 3_000)
    with gzip.open(large / "packed.nq.gz", "wb") as file:
        file.write((large / "plain.nq").read_bytes())
    (found,) = _planned(str(large / "packed.nq.gz"))
    assert found.span is None and found.weight > (large / "packed.nq.gz").stat().st_size
