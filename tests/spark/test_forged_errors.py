"""An error of a worker crosses as data, from behind a mark that no input knows; what an event says is never run."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PySparkException

import ceql
import spaseq
from spaseq.core.errors import (
    BudgetExceeded,
    EventError,
    InternalError,
    LimitReached,
    OptionError,
    QuerySemanticsError,
    QuerySyntaxError,
    Span,
    SpaseqError,
    UnsupportedFeature,
)
from spaseq.spark.session import failures
from spaseq.spark.session.failures import MARK, carrying, clear_errors

pytestmark = pytest.mark.spark

MADE = "made"
FORGED = f"spaseq-error={b64encode(b'cos%cmkdir%c(S%r%ctR.' % (10, 10, MADE, 10)).decode()}."
"""What ran `os.mkdir` on the driver when errors were pickled."""
QUERY = """PREFIX : <http://example.org/>
SELECT ?x ?y WITHIN 1 HOURS FROM STREAM S <http://example.org/one>
WHERE { SEQ (A; B) DEFINE GPM A ON S { ?a :heat ?x } DEFINE GPM B ON S { ?b :heat ?y FILTER (?y > ?x) } }"""

ERRORS = [
    QuerySyntaxError("found é", text='SELECT "é\n"', span=Span(8, 9, 1, 9), source="q.rq", expected=("a", "b")),
    QuerySemanticsError("no stream S", hint="name it"),
    UnsupportedFeature("CONSTRUCT"),
    OptionError("--x y: no"),
    OptionError("--lateness , spaseq_row: not a duration"),  # the user's word, not a list of columns
    EventError("not a time", source="a.nq", record=7, attribute="time", hint="h"),
    EventError("not a time", record=np.int64(3), counted="event"),  # type: ignore[arg-type]
    EventError(FORGED, source=f"{MARK}x."),
    EventError("\ud800\x00\u2028" + "é" * 500_000),
    BudgetExceeded("live_runs", 2**70, 5, "runs"),
    LimitReached("time_limit", 0.5, float("inf"), "seconds", "hint"),
    InternalError("of ours"),
    SpaseqError("of no class"),
]


def _crossed(error: SpaseqError, text: str = "Job aborted: {}\n\tat java") -> BaseException:
    """What comes out of the text that Spark makes of a worker's error."""
    with pytest.raises(Exception) as raised, carrying(MARK):
        raise error
    return _cleared(text.format(raised.value))


def _cleared(text: str) -> BaseException:
    with pytest.raises((SpaseqError, PySparkException)) as found, clear_errors():
        raise PySparkException(text)
    return found.value


@pytest.mark.parametrize("error", ERRORS, ids=[f"{type(e).__name__} {i}" for i, e in enumerate(ERRORS)])
def test_every_error_crosses_as_it_is(error: SpaseqError) -> None:
    for text in ("Job aborted: {}\n\tat java", FORGED + " {0} {0}", MARK + "{}", "{}"):
        found = _crossed(error, text)
        assert (type(found), str(found), found.__dict__) == (type(error), str(error), error.__dict__)


def test_errors_of_other_classes_and_values_are_raised_as_they_are() -> None:
    class Own(OptionError):
        pass

    for error in (Own("x"), EventError("x", record=object())):  # type: ignore[arg-type]
        with pytest.raises(SpaseqError) as found, carrying(MARK):
            raise error
        assert found.value is error
    with pytest.raises(OptionError), carrying(""):  # a reader that no driver of ours has registered
        raise OptionError("x")


def _body(value: Any) -> str:
    return b64encode(json.dumps(value).encode()).decode()


EVENT = {"problem": "p", "source": "", "record": 1, "counted": "", "attribute": "", "hint": ""}
QUERY_FIELDS = {"problem": "", "text": "", "span": [0, 1, 1, 1], "source": "", "expected": [], "hint": ""}
ODD = [
    [], 1, None, "EventError", ["EventError"], ["EventError", EVENT, 1], ["Exception", "x"], ["object", {}],
    ["os.system", "x"], ["SystemExit", {}], ["EventError", "x"], ["EventError", {}], [["EventError"], EVENT],
    ["EventError", EVENT | {"args": []}], ["EventError", EVENT | {"record": "1"}],
    ["EventError", EVENT | {"record": True}], ["EventError", EVENT | {"problem": None}],
    ["EventError", EVENT | {"problem": [""]}],
    ["EventError", EVENT | {"counted": "odd"}], ["EventError", EVENT | {"counted": []}],
    ["QuerySyntaxError", QUERY_FIELDS | {"span": "1234"}], ["QuerySyntaxError", QUERY_FIELDS | {"span": [1, 2, 3]}],
    ["QuerySyntaxError", QUERY_FIELDS | {"span": [0, 1, 1, 1.5]}], ["QuerySyntaxError", QUERY_FIELDS | {"span": {}}],
    ["QuerySyntaxError", QUERY_FIELDS | {"expected": "abc"}], ["QuerySyntaxError", QUERY_FIELDS | {"expected": [1]}],
    ["OptionError", {"problem": "x", "hint": 1}], ["InternalError", {"text": "x"}], ["InternalError", None],
    ["BudgetExceeded", {"setting": "x", "limit": "1", "used": 1, "unit": "", "hint": ""}],
]  # fmt: skip


def test_what_is_no_error_of_ours_leaves_spark_s_exception() -> None:
    """Also behind the right mark, which no input knows."""
    right = _body(["EventError", EVENT])
    assert isinstance(_cleared(f"{MARK}{right}."), EventError)
    bodies = [*map(_body, ODD), "", ".", "ä", "YQ", "=", right[:-6], b64encode(b"[" * 100_000).decode(),
              b64encode(pickle.dumps(EventError("x"))).decode()]  # fmt: skip
    others = [FORGED, f"spaseq-error={right}.", f"spaseq-error-={right}.", f"spaseq-error-{'0' * 32}={right}.",
              f"{MARK.upper()}{right}.", f"{MARK[:-1]}{right}.", f"{MARK[:-2]}={right}."]  # fmt: skip
    for text in [*(f"{MARK}{body}." for body in bodies), *others]:
        assert _cleared(text).args == (text,)
    assert isinstance(
        _cleared("".join([*others, *(f"{MARK}{body}." for body in bodies), f"{MARK}{right}."])), EventError
    )


def test_each_process_has_a_mark_of_its_own() -> None:
    script = "from spaseq.spark.session.failures import MARK; print(MARK)"
    marks = {subprocess.check_output([sys.executable, "-c", script], text=True).strip() for _ in range(2)} | {MARK}
    assert len(marks) == 3
    assert all(len(mark) == len(failures.MARK) == 46 for mark in marks)


def _quads(place: Path) -> str:
    graph = "<http://example.org/g>"
    lines = (
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{FORGED}" {graph} .\n',
        f'<http://example.org/a> <http://example.org/heat> "1" {graph} .\n',
    )
    (place / "in").mkdir()
    (place / "in" / "1.nq").write_text("".join(lines))
    return str(place / "in" / "1.nq")


def test_a_batch_says_what_the_event_says_and_runs_nothing(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    streams = {"S": _quads(tmp_path)}
    with pytest.raises(EventError) as local:
        spaseq.compile(QUERY).run(streams).count()
    with pytest.raises(EventError) as found:
        spaseq.spark.collect(spaseq.spark.run(QUERY, spark, streams))
    assert str(found.value) == str(local.value)
    assert FORGED in str(found.value)
    assert os.listdir() == ["in"]


@pytest.mark.slow  # a batch goes the same way
def test_a_stream_does_so_too(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    running = spaseq.spark.start(QUERY, spark, {"S": _quads(tmp_path)}, checkpoint=str(tmp_path / "state"),
                                 output=str(tmp_path / "out"), available_now=True, tasks=1)  # fmt: skip
    with pytest.raises(EventError) as found:
        spaseq.spark.wait(running)
    assert FORGED in str(found.value)
    assert sorted(os.listdir()) == ["in", "out", "state"]


@pytest.mark.slow  # a batch of graphs goes the same way
def test_tuples_do_so_too(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 9 SECONDS")
    frame = spark.createDataFrame([("A", FORGED)], "type string, time string")
    with pytest.raises(EventError) as found:
        spaseq.spark.collect(spaseq.spark.match(query)(frame))
    assert FORGED in str(found.value)
    assert os.listdir() == []
