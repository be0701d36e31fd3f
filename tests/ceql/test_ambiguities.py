"""Queries that can be read in two ways run, and a warning names both readings."""

from __future__ import annotations

from pathlib import Path

import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.engine import Settings
from spaseq.tools.studio.answers import check_form
from spaseq.tools.studio.language import Inputs

_ABSENT = (
    "NOT (S) says that no S comes here; NOT S says so without this warning. In CORE it is one event that is something "
    "else: (NOT S) AS n"
)
_FILTERED = (
    "NOT (S FILTER S[v > 1]) says that no such S comes here; NOT (S AS x FILTER x[…]) says so without this warning. In "
    "CORE it is one event that is something else: (NOT (S FILTER S[v > 1])) AS n"
)
_ITSELF = (
    "S.v is b.v, too, as b is one of the S events of the same part: it is compared with itself. If another S is meant, "
)
_ALIKE = "b is an attribute here, as every bare name in {0}[…] is, and a variable has the same name; for the variable "
_OUTSIDE = "outside of the brackets, for the attribute"
AMBIGUOUS = {
    "B ; NOT (S) ; B": f"20: {_ABSENT}",
    "B ; NOT ( S )": f"20: {_ABSENT}",
    "B ; NOT (S FILTER S[v > 1]) ; B": f"20: {_FILTERED}",
    "S AS a ; NOT (S AS b FILTER b.v > S.v) ; B": f"50: {_ITSELF}write a.v",
    "S ; NOT (S AS b FILTER b.v > S.v)": f"45: {_ITSELF}give it a name, S AS x, and write x.v",
    "S AS a ; S AS b FILTER b.v > S.v": f"45: {_ITSELF}write a.v",
    "A+ AS b FILTER b[COUNT(b) >= 2]": f"39: {_ALIKE.format('b')}write COUNT(b) {_OUTSIDE} b.b",
    "A AS a ; B AS b FILTER a[v > b]": f"45: {_ALIKE.format('a')}write b.price {_OUTSIDE} a.b",
}
CLEAR = [
    "B ; NOT S ; B",
    "B ; NOT (S AS x FILTER x[v > 1]) ; B",
    "B ; (NOT (S)) AS n ; B",
    "B : NOT (S) : B",
    "B ; NOT (S OR T) ; B",
    "S AS a ; NOT (S AS b FILTER b.v > a.v) ; B",
    "S AS a ; NOT (B AS b FILTER b.v > S.v) ; B",
    "S AS a FILTER a.v > S.low",
    "A+ AS b FILTER COUNT(b) >= 2 AND COUNT(b.b) >= 2",
]


@pytest.mark.parametrize("formula", AMBIGUOUS)
def test_both_readings_are_named(formula: str) -> None:
    assert ceql.compile(f"SELECT * WHERE {formula}").warnings == (f"<query>:1:{AMBIGUOUS[formula]}",)


@pytest.mark.parametrize("formula", CLEAR)
def test_nothing_is_said_of_what_can_be_read_in_one_way(formula: str) -> None:
    assert ceql.compile(f"SELECT * WHERE {formula}").warnings == ()


def test_check_run_and_the_studio_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, events = tmp_path / "q.ceql", tmp_path / "e.csv"
    query.write_text("SELECT * WHERE B ; NOT (S) ; B")
    events.write_text("type,v\nB,1\nB,2\n")
    said = f"1:20: {_ABSENT}"
    for command in (["check", str(query)], ["run", str(query), "--events", str(events)]):
        assert main(command) == 0
        assert said in capsys.readouterr().err
    text, inputs = query.read_text(), Inputs(events=(str(events),))
    assert check_form("ceql", text, "q", inputs, Settings(), draws=False)["warnings"] == [f"q:{said}"]


def test_limit_0_is_said_to_report_nothing() -> None:
    query = ceql.compile("SELECT * WHERE A LIMIT 0")
    assert query.warnings == ("<query>:1:18: LIMIT 0 reports nothing",)
    assert list(query.alerts().run([{"type": "A"}])) == []
    with query.open() as session:
        assert session.push([{"type": "A"}]) == []
