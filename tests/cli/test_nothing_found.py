"""A query that matches nothing says what was read; what was guessed is said, too: on standard error, by all roads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main
from spaseq.core.errors import OptionError
from spaseq.core.events.seen import MOST, Seen

LOGINS = """time,type,user
2026-06-15T08:00:00Z,fail,ann
2026-06-15T08:00:10Z,fail,ann
2026-06-15T08:00:40Z,login,ann
"""
READ = "note: 3 events were read: 2 fail, 1 login; from 2026-06-15T08:00:00Z to 2026-06-15T08:00:40Z\n"
OBSERVED = """@prefix sosa: <http://www.w3.org/ns/sosa/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://e/1> sosa:hasSimpleResult 3 ; sosa:resultTime "2026-06-15T08:00:00Z"^^xsd:dateTime .
<http://e/2> sosa:hasSimpleResult 4 ; sosa:resultTime "2026-06-15T08:00:10Z"^^xsd:dateTime .
"""
RISING = """PREFIX sosa: <http://www.w3.org/ns/sosa/>
SELECT ?v ?w WITHIN 1 MINUTE FROM STREAM S <http://e/s> WHERE { SEQ(A ; B)
  DEFINE GPM A ON S { ?o sosa:hasSimpleResult ?v }
  DEFINE GPM B ON S { ?p sosa:hasSimpleResult ?w FILTER(?w > ?v) } }"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logins.csv").write_text(LOGINS)
    (tmp_path / "untimed.csv").write_text("type,user\nfail,ann\nlogin,ann\n")
    (tmp_path / "observed.ttl").write_text(OBSERVED)
    return tmp_path


def _ceql(folder: Path, query: str, *words: str, events: str = "logins.csv") -> list[str]:
    (folder / "q.ceql").write_text(query)
    return [*(words or ("run",)), "q.ceql", "--events", events]


@pytest.mark.parametrize(
    ("query", "last"),
    [
        ("SELECT * WHERE failed AS f ; login AS l", "no event has the type failed; did you mean fail?"),
        ("SELECT * WHERE Login AS l ; fail AS f", "no event has the type Login; did you mean login?"),
        (
            "SELECT * WHERE fail AS f ; login AS l FILTER l[user LIKE '%nn']",
            "no event is login with user LIKE '%nn'; LIKE is a regular expression of the whole text: LIKE '.*nn'",
        ),
        (
            "SELECT * WHERE fail AS f ; login AS l WITHIN 5 SECONDS",
            "there are events for every part of the query, but none that completes it: the furthest that it came is "
            "waiting for login. What limits it: its window",
        ),
        (
            "SELECT * WHERE fail AS f ; login AS l FILTER l.user <> f.user",
            "there are events for every part of the query, but none that completes it: the furthest that it came is "
            "waiting for login. What limits it: its conditions between events",
        ),
        (
            "SELECT * WHERE login AS l ; fail AS f",
            "there are events for every part of the query, but none that completes it: the furthest that it came is "
            "waiting for fail",
        ),
    ],
)
@pytest.mark.parametrize("command", ["run", "alert"])
def test_what_is_said_where_nothing_matched(
    folder: Path, capsys: pytest.CaptureFixture[str], query: str, last: str, command: str
) -> None:
    assert ceql_main(_ceql(folder, query, command)) == 0
    out, err = capsys.readouterr()
    assert out == ("0 matches\n" if command == "run" else "")
    assert err == f"{READ}note: {last}\n"


def test_matches_are_silent_and_so_is_who_asks_for_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ceql_main(_ceql(folder, "SELECT * WHERE fail AS f ; login AS l")) == 0
    assert capsys.readouterr().err == ""
    assert ceql_main([*_ceql(folder, "SELECT * WHERE failed"), "--limit", "0"]) == 0
    assert capsys.readouterr().err == ""
    assert ceql_main([*_ceql(folder, "SELECT * WHERE failed"), "--format", "count"]) == 0
    assert capsys.readouterr().err == f"{READ}note: no event has the type failed; did you mean fail?\n"
    assert ceql_main([*_ceql(folder, "SELECT * WHERE failed"), "--evaluator", "chain"]) == 0
    assert capsys.readouterr().err == READ, "lazy evaluators keep nothing else"


def test_times_are_not_guessed_where_they_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    within = "SELECT * WHERE fail ; login WITHIN 1 MINUTE"
    assert ceql_main(_ceql(folder, within, events="untimed.csv")) == 2
    assert capsys.readouterr().err.startswith("WITHIN 1 MINUTES needs the times of the events")
    assert ceql_main([*_ceql(folder, within, events="untimed.csv"), "--time-from", "arrival"]) == 0
    assert capsys.readouterr().err == ""
    assert ceql_main(_ceql(folder, "SELECT * WHERE fail ; login WITHIN 9 EVENTS", events="untimed.csv")) == 0
    assert capsys.readouterr().err == ""
    assert ceql_main(_ceql(folder, "SELECT * WHERE login ; fail", events="untimed.csv")) == 0
    assert "note: no column time or timestamp: events count as 1 ms apart" in capsys.readouterr().err


def _spaseq(folder: Path, query: str, *words: str) -> list[str]:
    (folder / "q.rq").write_text(query)
    return ["run", "q.rq", "--stream", "S=observed.ttl", *words]


def test_turtle_is_one_event_and_its_dates_are_seen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untimed = RISING.replace("WITHIN 1 MINUTE", "")
    assert spaseq_main(_spaseq(folder, untimed)) == 0
    out, err = capsys.readouterr()
    assert out == "no match\n"
    assert "note: observed.ttl is one event, as Turtle has no named graphs (--event-by subject makes one of each" in err
    assert "--time http://www.w3.org/ns/sosa/resultTime takes them from that predicate" in err
    assert spaseq_main(_spaseq(folder, RISING, "--event-by", "subject")) == 2
    out, err = capsys.readouterr()
    assert out == "" and "hint: --time http://www.w3.org/ns/sosa/resultTime takes them" in err


@pytest.mark.parametrize("time", ["sosa:resultTime", "<http://www.w3.org/ns/sosa/resultTime>"])
def test_the_predicate_of_times_may_have_a_prefix(folder: Path, capsys: pytest.CaptureFixture[str], time: str) -> None:
    assert spaseq_main(_spaseq(folder, RISING, "--event-by", "subject", "--time", time)) == 0
    out, err = capsys.readouterr()
    assert "2026-06-15T08:00:10Z" in out and err == ""
    found = spaseq.compile(RISING).run({"S": "observed.ttl"}, event_by="subject", time=time)
    assert [match.time for match in found] == [1781510410 * 10**9]


def test_a_gpm_that_no_event_matches_and_a_slip_in_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = RISING.replace("?p sosa:hasSimpleResult", "?p sosa:hasSimplResult")
    assert spaseq_main(_spaseq(folder, query, "--event-by", "subject", "--time", "sosa:resultTime")) == 0
    assert capsys.readouterr().err == (
        "note: 2 events were read: 2 of S; from 2026-06-15T08:00:00Z to 2026-06-15T08:00:10Z\n"
        "note: no event matches GPM B; it needs <http://www.w3.org/ns/sosa/hasSimplResult>, did you mean "
        "<http://www.w3.org/ns/sosa/hasSimpleResult>?\n"
    )


def test_a_predicate_that_nothing_has_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = RISING.replace("?p sosa:hasSimpleResult", "?p sosa:madeBySensor")
    assert spaseq_main(_spaseq(folder, query, "--event-by", "subject", "--time", "sosa:resultTime")) == 0
    assert capsys.readouterr().err.endswith(
        "note: no event matches GPM B; it needs <http://www.w3.org/ns/sosa/madeBySensor>, which no statement has at "
        "the beginning of its files\n"
    )


def test_the_library_says_the_same(folder: Path) -> None:
    matches = ceql.compile("SELECT * WHERE failed").run("logins.csv")
    assert matches.why_none() == ["no events were read"]
    assert list(matches) == []
    assert matches.why_none()[-1] == "no event has the type failed; did you mean fail?"
    found = spaseq.compile(RISING).run({"S": "observed.ttl"}, time_from="arrival")
    assert list(found) == [] and found.why_none()[0].startswith("1 event was read: 1 of S")


def test_types_without_number_are_counted_together() -> None:
    seen = Seen()
    for i in range(MOST + 5):
        seen.add(f"t{i}", 1)
    assert len(seen.kinds) == MOST and seen.others == 5
    assert seen.told().startswith("1,005 events were read: 1 t0,") and "997 others" in seen.told()


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
@pytest.mark.parametrize("now", ["soon", None, 1.5, True])
def test_a_time_that_is_none_is_told_and_the_session_goes_on(language: str, now: Any) -> None:
    query: Any = ceql.compile("SELECT * WHERE a ; b") if language == "ceql" else spaseq.compile(RISING)
    with query.open() as session:
        with pytest.raises(OptionError, match="a time is a datetime, or nanoseconds as an int, and this is"):
            session.advance(now)
        assert session.advance(10) == []


@pytest.mark.parametrize("what", ["run", "answers", "rows", "ask", "count"])
def test_alerts_say_at_once_that_a_word_is_no_option(what: str) -> None:
    alerts = ceql.compile("SELECT * WHERE a ; b").alerts()
    with pytest.raises(OptionError, match="there is no option typo"):
        getattr(alerts, what)([], typo=3)


LEFT = """SELECT ?o (COUNT(*) AS ?n) WITHIN 1 MINUTE FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?o <http://www.w3.org/ns/sosa/hasSimpleResult> ?v } } GROUP BY ?o """


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("HAVING (COUNT(*) > 5)", "there are matches, and HAVING leaves none of them"),
        ("OFFSET 5 LIMIT 2", "there are matches, and OFFSET and LIMIT leave none of them"),
        ("VALUES ?o { <http://e/7> }", "there are matches, and VALUES leaves none of them"),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "table", "xml", "parquet"])
def test_clauses_that_leave_nothing_of_the_matches_are_named(
    clauses: str, said: str, form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every format is written where a window has matches and no result: columns without a row ended jsonl."""
    words = ["--stream", "S=observed.ttl", "--event-by", "subject", "--time", "http://www.w3.org/ns/sosa/resultTime"]
    assert spaseq_main(["run", LEFT + clauses, *words, "--format", form, "--output", f"out.{form}"]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"note: {said}"
