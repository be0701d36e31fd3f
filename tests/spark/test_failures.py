"""Wrong input is the same error as from the local engine, not a worker's stack trace; progress and session."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import spaseq
from spaseq.core.engine import Settings
from spaseq.core.errors import BudgetExceeded, EventError, OptionError, QuerySyntaxError, Span
from spaseq.rdf import Counters
from spaseq.spark.session import garbage
from spaseq.spark.session.failures import carried, clear_errors
from spaseq.spark.session.session import _not_started
from spaseq.spark.session.versions import SUPPORTED, check_pyspark

pytestmark = pytest.mark.spark

QUERY = """PREFIX : <http://example.org/>
SELECT ?x ?y WITHIN 1 HOURS FROM STREAM S <http://example.org/one>
WHERE { SEQ (A; B) DEFINE GPM A ON S { ?a :heat ?x } DEFINE GPM B ON S { ?b :heat ?y FILTER (?y > ?x) } }"""


def _error(streams: dict[str, Any], spark: Any, **words: Any) -> EventError:
    """The error that Spark gives, which must be that of the local engine."""
    query = spaseq.compile(QUERY)
    with pytest.raises(EventError) as local:
        query.run(streams, **words).count()
    with pytest.raises(EventError) as found:
        spaseq.spark.collect(spaseq.spark.run(query, spark, streams, partitions=7, **words))
    assert str(found.value) == str(local.value)
    assert found.value.record == local.value.record
    return found.value


def test_a_malformed_line_has_its_file_and_number(folder: Path, tmp_path: Path, spark: Any) -> None:
    lines = (folder / "one-a.nq").read_text("utf-8").splitlines(keepends=True)
    lines[77] = "<http://example.org/sensor1> nonsense .\n"
    (tmp_path / "bad.nq").write_text("".join(lines), encoding="utf-8")
    assert _error({"S": str(tmp_path / "bad.nq")}, spark).record == 78


@pytest.mark.parametrize("aside", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_malformed_lines_are_dropped_or_put_aside(aside: bool, folder: Path, tmp_path: Path, spark: Any) -> None:
    """One bad file among many: the others' matches, the bad lines counted, and written with their numbers. What is
    dropped is quick in `test_frames` and `test_lines`."""
    lines = (folder / "one-b.nq").read_text("utf-8").splitlines(keepends=True)
    heat = [i for i, line in enumerate(lines) if "heat" in line]
    for number in (heat[3], heat[4], heat[-1]):
        lines[number] = "nonsense é\n"
    (tmp_path / "one-b.nq").write_text("".join(lines), encoding="utf-8")
    query = spaseq.compile(QUERY)
    streams = {"S": [str(folder / "one-a.nq"), str(tmp_path / "one-b.nq")]}
    local = query.run(streams, malformed="drop")
    expected = sorted(map(str, local.to_arrow().to_pylist()))
    words = {"quarantine": str(tmp_path / "aside")} if aside else {"malformed": "drop"}
    counters = Counters()
    frame = spaseq.spark.run(query, spark, streams, partitions=5, counters=counters, **words)
    assert sorted(map(str, spaseq.spark.collect(frame).to_pylist())) == expected != []
    assert counters == local.counters and counters.malformed == 3
    if not aside:
        return
    found = sorted(line for p in (tmp_path / "aside").iterdir() for line in p.read_text("utf-8").splitlines())
    assert found == sorted(f"{number + 1}\tnonsense é" for number in (heat[3], heat[4], heat[-1]))
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"quarantine .* cannot be used"):
        spaseq.spark.run(query, spark, streams, quarantine=str(tmp_path / "file" / "aside"))


def test_a_truncated_file(folder: Path, tmp_path: Path, spark: Any) -> None:
    data = (folder / "one-a.nq").read_bytes()
    (tmp_path / "cut.nq").write_bytes(data[: len(data) - 30])
    assert "cut off" in str(_error({"S": str(tmp_path / "cut.nq")}, spark))


def test_a_stream_that_goes_back_in_time(folder: Path, spark: Any) -> None:
    assert "goes back in time" in str(_error({"S": str(folder / "late.nq")}, spark, lateness="1s"))


@pytest.mark.slow
def test_files_in_the_wrong_order_are_merged_by_time(folder: Path, spark: Any) -> None:
    """Slow, as of the files of `test_slices.test_on_spark` the second begins before the first ends."""
    streams = {"S": [str(folder / "one-b.nq"), str(folder / "one-a.nq")]}
    query = spaseq.compile(QUERY)
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, streams, partitions=7))
    expected = query.run(streams).to_arrow()
    assert found.num_rows == expected.num_rows > 0
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.select(found.column_names).to_pylist()))


def test_a_graph_without_a_time(tmp_path: Path, spark: Any) -> None:
    line = '<http://example.org/a> <http://example.org/heat> "1" <http://example.org/g> .\n'
    (tmp_path / "timeless.nq").write_text(line, encoding="utf-8")
    assert "has no time" in str(_error({"S": str(tmp_path / "timeless.nq")}, spark))


def test_options_are_checked_before_anything_runs(folder: Path, spark: Any) -> None:
    stream = {"S": str(folder / "one-a.nq")}
    for streams, more, message in (
        ({}, {}, "no file is given for stream S"),
        ({"S": "-"}, {}, "standard input"),
        (stream, {"partitions": 0}, "at least one task"),
        (stream, {"latenes": "1s"}, "there is no option latenes"),
    ):
        with pytest.raises(OptionError, match=message):
            spaseq.spark.run(QUERY, spark, streams, **more)
    for plan in ("slices", "table"):
        with pytest.raises(OptionError, match="standard input"):
            spaseq.spark.run(QUERY, spark, {"S": "-"}, plan=plan)
    with pytest.raises(OptionError, match="asks GRAPH"):
        spaseq.spark.run(QUERY.replace("?a :heat ?x", "GRAPH :kb { ?a :heat ?x }"), spark, stream)


def test_a_limit_of_the_engine_reached_in_a_worker(folder: Path, spark: Any) -> None:
    query = spaseq.compile(QUERY, settings=Settings(output_bytes=1))
    frame = spaseq.spark.run(query, spark, {"S": str(folder / "one-a.nq")})
    with pytest.raises(BudgetExceeded, match="output_bytes is 1 bytes"):
        spaseq.spark.collect(frame)


def test_errors_cross_from_a_worker_whole(spark: Any) -> None:
    sent = QuerySyntaxError("found é", text='SELECT "é"', span=Span(8, 9, 1, 9), source="q.rq", hint="no")

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        raise sent

    with pytest.raises(QuerySyntaxError) as found, clear_errors():
        spark.range(3).mapInArrow(carried(fail), "id long").collect()
    assert str(found.value) == str(sent)
    assert found.value.span == sent.span


def test_errors_that_are_not_ours_stay_as_they_are(spark: Any) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="no_such_column"), clear_errors():
        spark.range(3).select("no_such_column").collect()


def test_a_worker_that_does_not_answer_is_one_clear_error() -> None:
    from pyspark.errors import PySparkException

    said = "Job aborted due to stage failure: org.apache.spark.SparkException: Python worker failed to connect back."
    with (
        pytest.raises(OptionError, match="did not answer it in time\\nhint: where the machine is busy"),
        clear_errors(),
    ):
        raise PySparkException(said)


def test_a_session_that_runs_has_the_configuration_asked_for_or_is_refused(spark: Any) -> None:
    assert spaseq.spark.local_session(configuration={"spark.sql.session.timeZone": "UTC"}) is spark
    with pytest.raises(OptionError, match=r"a session runs already, and without spark\.jars"):
        spaseq.spark.local_session(configuration={"spark.jars": "more.jar"})


@pytest.mark.slow
def test_a_session_takes_any_configuration(tmp_path: Path) -> None:
    """Of Spark's own settings ours stand behind; jars are there; a stopped session leaves a Java that reads no more."""
    with zipfile.ZipFile(tmp_path / "more.jar", "w") as jar:
        jar.writestr("of_a_user.txt", "here")
    script = (
        "import sys, spaseq.spark\nfrom spaseq.core.errors import OptionError\n"
        "wanted = {'spark.jars': sys.argv[1], 'spark.sql.shuffle.partitions': '7'}\n"
        "spark = spaseq.spark.local_session(1, configuration=wanted)\n"
        "loader = spark._jvm.Thread.currentThread().getContextClassLoader()\n"
        "print(spark.conf.get('spark.sql.shuffle.partitions'), loader.getResource('of_a_user.txt') is not None)\n"
        "spark.stop()\n"
        "try: spaseq.spark.local_session(1, configuration=wanted)\nexcept OptionError as error: print(error.problem)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "more.jar")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    refused = "Spark's Java process runs already, and only a new one reads spark.jars"
    assert result.stdout.splitlines() == ["7 True", refused], result.stderr


def test_progress_is_shown_where_asked_for(spark: Any) -> None:
    shown, hidden = io.StringIO(), io.StringIO()
    with spaseq.spark.progress_bar(spark, "counting", enabled=True, stream=shown):
        spark.range(0, 100, 1, 5).count()
    with spaseq.spark.progress_bar(spark, "counting", stream=hidden):
        spark.range(0, 100, 1, 5).count()
    assert "counting" in shown.getvalue()
    assert hidden.getvalue() == ""


@pytest.mark.parametrize(
    ("version", "name", "needed"),
    [("3.4.4", "match", "3.5"), ("3.5.5", "start_tuples", "4.0"), ("4.1.0.dev1", "run", "4.2")],
)
def test_an_older_pyspark_is_one_clear_error(
    version: str, name: str, needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names what was asked for: batches of tuples need less than streams of them, and these less than graphs."""
    monkeypatch.setattr("pyspark.__version__", version)
    said = rf"PySpark {version[:3]} is installed, and spaseq\.spark\.{name} needs {needed} or later\nhint: pip"
    with pytest.raises(OptionError, match=said):
        getattr(spaseq.spark, name)


def test_the_versions_of_pyspark_are_those_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"pyspark{SUPPORTED}" in project["optional-dependencies"]["spark"]
    monkeypatch.setattr("pyspark.__version__", "5.0.0")
    check_pyspark("run")


def test_packages_that_cannot_be_resolved_are_one_clear_error() -> None:
    """Spark's launcher says it in many lines, several times, before its Java process ends."""
    said = [
        "\t\t:: org.nope#nope_2.13;1.0: not found",
        "Exception: [unresolved dependency: org.nope#nope_2.13;1.0: not found]",
    ]
    error = _not_started([*said, *said, "\tat org.apache.spark.deploy.SparkSubmit$.main(SparkSubmit.scala)"])
    assert error.problem == "the packages of spark.jars.packages could not be resolved: org.nope#nope_2.13;1.0"
    wrong = "Provided Maven Coordinates must be in the form 'groupId:artifactId:version'. The coordinate provided is: x"
    assert wrong in _not_started([f"java.lang.IllegalArgumentException: requirement failed: {wrong}"]).problem


def test_a_missing_java_is_one_clear_error() -> None:
    script = (
        "from spaseq.core.errors import OptionError\nimport spaseq.spark\n"
        "try: spaseq.spark.local_session()\nexcept OptionError as error: print(error)"
    )
    environment = os.environ | {"JAVA_HOME": "/nonexistent"}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=100
    )
    assert result.stdout.startswith("Spark's Java process did not start"), result.stderr
    assert "hint: it was looked for in /nonexistent; Spark needs Java 17" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(("process", "after"), [("pyspark.daemon", [1, 2, 4, 8]), ("pytest", [])])
def test_a_worker_leaves_what_lasts_out_of_collections(
    process: str, after: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first, second, fourth … task, also one that fails; in no other process."""
    frozen: list[int] = []
    task = 0
    monkeypatch.setattr(garbage, "_tasks", count(1))
    monkeypatch.setattr(garbage.gc, "freeze", lambda: frozen.append(task))
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=process))
    for task in range(1, 12):
        with pytest.raises(ZeroDivisionError):
            list(carried(lambda number: iter([number / 0]), task)())
    assert frozen == after
