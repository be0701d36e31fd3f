"""Slices of time, each run by one task without a shuffle: the matches, positions and counters of the local engine."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.core.files.places import open_file
from spaseq.language.results.solutions import match_table
from spaseq.language.runtime.opened import stream_options
from spaseq.rdf import Counters, StreamOptions, StreamSource
from spaseq.spark.batch import slices
from spaseq.spark.batch.form import Form
from spaseq.spark.ingest import seeking
from spaseq.spark.ingest.seeking import TimedFile, first_times
from spaseq.spark.session.layout import lay_out
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving.table import Job
from tests.spark.conftest import NS, TIME, write_stream
from tests.spark.test_results import CASES, FLOOR, LIMIT, Case, _rows

KB = f"{NS}kb"
_UNFIT = {"nested knowledge", "knowledge", "knowledge in keys", "two graphs", "partly bound", "arrival", "lateness",
          "counted windows of keys"}  # fmt: skip
_MORE = [
    Case("keys that slide", "A; B", clauses="WITHIN 6 SECONDS SLIDING PARTITION BY (?r)"),
    Case("absent before", "A; C!; B", clauses="WITHIN 8 SECONDS SLIDING", more={"C": "FILTER (?hC > 15)"}),
    Case("strict, sliding", "A; B+, C", clauses="WITHIN 5 SECONDS SLIDING", more={"A": "FILTER (?hA > 20)"}),
]
_FIT = [case for case in CASES if case.name not in _UNFIT and "WITHIN" in case.clauses] + _MORE
_AGAIN = {"keys not selected", "counted windows", "conjunction or", "strict and iteration", "next", "sliding"}
"""Slow, as the others have keys, windows that slide, counts (`test_clauses_over_windows`) and each operator."""
_MARKED = [pytest.param(c, id=c.name, marks=[pytest.mark.slow] if c.name in _AGAIN else []) for c in _FIT]


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Streams without blank nodes, one of them in two files, of which the second goes back behind the first."""
    path = tmp_path_factory.mktemp("ordered")
    for name, seed, events in (("one-a", 1, 60), ("one-b", 2, 50), ("two", 3, 90)):
        write_stream(path / f"{name}.nq", seed, events, start=30 * (name == "one-b"))
        text = (path / f"{name}.nq").read_text("utf-8")
        (path / f"{name}.nq").write_text(re.sub(r"_:(s\d)", rf"<{NS}\1>", text), "utf-8")
    (path / "kb.ttl").write_text(f'@prefix : <{NS}> . :room0 :floor :f0 ; :limit "15" . :room1 :floor :f1 .', "utf-8")
    return path


def _streams(folder: Path) -> dict[str, Any]:
    return {"S1": [str(folder / "one-a.nq"), str(folder / "one-b.nq")], "S2": str(folder / "two.nq")}


def _job(query: Any, tasks: int, **words: Any) -> Any:
    return Job(None, QueryText.of(query), lay_out(query.compiled), {}, {}, stream_options(None, words), tasks)


def _in_slices(job: Any, plan: Any) -> tuple[list[dict[str, Any]], Counters, list[str]]:
    """What the tasks give, put together as on Spark."""
    form = Form(job.query, "s", match_table, match_table([], job.compiled.variables).schema, job.layout.ordered)
    work = slices._Work(form, plan, job.compiled.window())
    rows, counters, whys, first = [], Counters(), [], 0
    for number in range(len(plan)):
        batch = pa.record_batch([pa.array([number])], names=["id"])
        shared = SimpleNamespace(value=({}, {}))
        found = [row for b in slices._of_slices(work, shared, [batch]) for row in b.to_pylist()]
        *own, last = found
        for row in own:
            row["start"], row["end"] = row["start"] + first, row["end"] + first
            row["positions"] = [position + first for position in row["positions"]]
            assert row["?slice"] == number
            rows.append({name: value for name, value in row.items() if name in form.schema.names})
        if last["?why"] is not None:
            whys.append(last["?why"])
            continue
        first += last["?told"][0]
        counters.add(Counters(*last["?told"][1:]))
    return rows, counters, whys


@pytest.mark.parametrize("case", _MARKED)
def test_slices_have_the_matches_of_the_whole(case: Case, ordered: Path) -> None:
    query = spaseq.compile(case.query())
    local = query.run(_streams(ordered), **case.words)
    expected = local.to_arrow()
    most = 0
    for tasks in (1, 3, 8):
        plan = slices.planned_slices(_job(query, tasks, **case.words), _streams(ordered), "", forced=True)
        assert isinstance(plan, slices.Slices)
        most = max(most, len(plan))
        found, counters, whys = _in_slices(_job(query, tasks, **case.words), plan)
        assert whys == []
        assert _rows(pa.Table.from_pylist(found, expected.schema)) == _rows(expected) != []
        assert counters == local.counters
    assert most > 2


def test_clauses_over_windows(ordered: Path) -> None:
    text = Case("", "A; B").query().replace("SELECT *", "SELECT ?r (COUNT(?hA) AS ?n)") + "GROUP BY ?r ORDER BY ?n ?r"
    query = spaseq.compile(text)
    plan = slices.planned_slices(_job(query, 5), _streams(ordered), "", forced=True)
    found, _, whys = _in_slices(_job(query, 5), plan)
    assert (whys, len(plan)) == ([], 5)
    in_order = sorted(found, key=lambda row: row.pop("?rank"))
    assert in_order == query.run(_streams(ordered)).to_arrow().to_pylist()


def _timed(path: Path) -> TimedFile:
    options = StreamOptions(time="http://www.w3.org/ns/prov#generatedAtTime")
    return TimedFile(StreamSource("s", (str(path),)), options, path.stat().st_size, 0)


def test_a_time_is_found_by_seeking(tmp_path: Path) -> None:
    times = [0, 0, 3, 3, 3, 7, 8, 20, 20]
    lines, begins = b"", []
    for number, time in enumerate(times):
        begins.append(len(lines))
        graph = f"<{NS}g{number}>"
        lines += f'{graph} <{TIME}> "{time}" {graph} .\n'.encode() * 1
        lines += f'<{NS}a> <{NS}p> "{"x" * number}" {graph} .\n'.encode() * (number % 3)
    (tmp_path / "s.nq").write_bytes(lines)
    file = _timed(tmp_path / "s.nq")
    for time in range(-1, 23):
        expected = next((at for at, own in zip(begins, times, strict=True) if own >= time), len(lines))
        assert file.place_of(time * 1_000_000_000) == expected
    assert [file.time_at(at) // 1_000_000_000 for at in begins] == times
    assert first_times([file], 3, 1000)[0] == 0
    (tmp_path / "none.nq").write_bytes(b"")
    assert _timed(tmp_path / "none.nq").place_of(5) == 0


def test_a_search_opens_the_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opening of a file at `s3a://` is a request or two: a slice's search took some 400 of them."""
    opened: list[str] = []

    def counting(path: str) -> BinaryIO:
        opened.append(path)
        return open_file(path)

    lines = [f'<{NS}g{n}> <{TIME}> "{n}" <{NS}g{n}> .\n' for n in range(200)]
    (tmp_path / "s.nq").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setattr("spaseq.spark.ingest.seeking.open_file", counting)
    file = _timed(tmp_path / "s.nq")
    for search in (
        lambda: file.place_of(77 * 10**9),
        lambda: file.place_of(77 * 10**9, early=True),
        file.with_turn,
        lambda: list(file.samples(50)),
    ):
        opened.clear()
        assert search()
        assert opened == [file.path]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "s.nq").write_text("", encoding="utf-8")
    file = replace(_timed(tmp_path / "s.nq"), size=10)
    (tmp_path / "s.nq").unlink()
    with pytest.raises(EventError, match="cannot read: No such file"):
        file.place_of(5)


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n\n\t# nor here"])
def test_files_without_events_are_slices(text: str, tmp_path: Path) -> None:
    case = Case("", "A; B")
    (tmp_path / "none.nq").write_text(text, "utf-8")
    streams = {"S1": str(tmp_path / "none.nq"), "S2": str(tmp_path / "none.nq")}
    plan = slices.planned_slices(_job(spaseq.compile(case.query()), 3), streams, "", forced=True)
    assert isinstance(plan, slices.Slices) and len(plan) == 1
    assert _in_slices(_job(spaseq.compile(case.query()), 3), plan) == ([], Counters(), [])


@pytest.mark.parametrize("ahead", [False, True])
def test_subjects_with_blank_nodes_are_found_by_seeking(ahead: bool, tmp_path: Path) -> None:
    """Wherever it is looked from, all events from a time on lie behind the early place, none is cut in two."""
    lines: list[str] = []
    begins: list[int] = []
    for number in range(12):
        begins.append(len("".join(lines)))
        subject, node = f"<{NS}o{number}>", f"_:b{number}"
        pointing, told = f"{subject} <{NS}result> {node} .\n", f'{node} <{NS}v> "{number}" .\n'
        behind = [f'{subject} <{TIME}> "{number}" .\n'] * (number % 3 > 0)
        before = [f'{subject} <{TIME}> "{number}" .\n'] * (number % 3 == 0)
        lines += [*before, *([told, pointing] if ahead else [pointing, told]), *behind]
    (tmp_path / "s.nt").write_text("".join(lines), "utf-8")
    file = _timed(tmp_path / "s.nt")
    for time in range(1, 12):
        early, place = file.place_of(time * 10**9, early=True), file.place_of(time * 10**9)
        assert early <= begins[time] and early in begins and {place} <= {*begins, file.size} and place >= early
    assert file.with_turn().turn == (0, 11 * 10**9)


def test_events_of_one_subject_are_found_by_seeking(tmp_path: Path) -> None:
    lines = [f'<{NS}{"ab"[time // 6]}> <{TIME}> "{time}" .\n' for time in range(12)]
    (tmp_path / "s.nt").write_text("".join(lines), "utf-8")
    file = _timed(tmp_path / "s.nt")
    assert (file.place_of(3 * 10**9, early=True), file.place_of(3 * 10**9)) == (0, len("".join(lines[:6])))
    assert file.with_turn().turn == (0, 11 * 10**9)


def _seventy(ordered: Path, folder: Path) -> dict[str, Any]:
    """The second stream in 70 files, one after another; two of them have no event."""
    events = re.split(r"(?m)^(?=.*generatedAtTime)", (ordered / "two.nq").read_text("utf-8"))[1:]
    for number in range(70):
        own = [] if number in (3, 69) else events[90 * number // 69 : 90 * (number + 1) // 69]
        (folder / f"{number:02}.nq").write_text("".join(own) or "\n  # none\n" * (number == 3), "utf-8")
    (folder / "02.nq").write_text("".join(events[90 * 2 // 69 : 90 * 4 // 69]), "utf-8")
    return _streams(ordered) | {"S2": str(folder / "*.nq")}


def test_files_one_after_another_are_slices(ordered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than the local engine merges; a slice opens those that it has something of."""
    query = spaseq.compile(Case("", "A; B; C!", clauses="WITHIN 6 SECONDS SLIDING").query())
    streams = _seventy(ordered, tmp_path)
    plan = slices.planned_slices(_job(query, 4), streams, "", forced=True)
    assert isinstance(plan, slices.Slices) and len(plan) == 4
    opened: list[str] = []

    def watched(path: str) -> BinaryIO:
        opened.append(path)
        return open_file(path)

    monkeypatch.setattr(seeking, "open_file", watched)
    local = query.run(streams)
    expected = _rows(local.to_arrow())
    assert expected == _rows(query.run(_streams(ordered)).to_arrow()) != []
    found, counters, whys = _in_slices(_job(query, 4), plan)
    assert (sorted(json.dumps(row, sort_keys=True) for row in found), counters, whys) == (expected, local.counters, [])
    assert len({path for path in opened if path.startswith(str(tmp_path))}) < 20
    (tmp_path / "20.nq").rename(tmp_path / "50b.nq")
    why = slices.planned_slices(_job(query, 4), streams, "", forced=True)
    assert isinstance(why, str) and why.endswith("50b.nq begins before what is in front of it ends")


_SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("at", "to"), [(2, 60), (45, 20), pytest.param(45, 50, marks=_SLOW), pytest.param(88, 3, marks=_SLOW)]
)
def test_a_stream_that_is_not_in_order_is_no_slices(at: int, to: int, ordered: Path, tmp_path: Path) -> None:
    query = spaseq.compile(Case("", "A; B", clauses="WITHIN 6 SECONDS SLIDING").query())
    lines = (ordered / "two.nq").read_text("utf-8").splitlines()
    moved = [line for line in lines if f"<{NS}two/{at}> ." in line]
    rest = [line for line in lines if line not in moved]
    place = next(i for i, line in enumerate(rest) if line.startswith(f"<{NS}two/{to}> "))
    (tmp_path / "two.nq").write_text("\n".join(rest[:place] + moved + rest[place:]) + "\n", "utf-8")
    streams = _streams(ordered) | {"S2": str(tmp_path / "two.nq")}
    with pytest.raises(EventError):
        query.run(streams).count()
    plan = slices.planned_slices(_job(query, 4), streams, "", forced=True)
    assert isinstance(plan, slices.Slices)
    assert _in_slices(_job(query, 4), plan)[2]


def test_what_cannot_be_slices_says_why(ordered: Path, folder: Path, tmp_path: Path) -> None:
    streams = _streams(ordered)

    def why(query: str, given: Any = streams, forced: bool = True, quarantine: str = "", **words: Any) -> str:
        found = slices.planned_slices(_job(spaseq.compile(query), 4, **words), given, quarantine, forced=forced)
        return found if isinstance(found, str) else ""

    fit = Case("", "A; B").query()
    assert "without WITHIN" in why(Case("", "A; B", clauses="").query())
    assert "an ASK" in why(fit.replace("SELECT *", "ASK"))
    assert "times come from arrival" in why(fit, time_from="arrival")
    assert "too few to be worth it" in why(fit, forced=False)
    assert "put aside" in why(fit, quarantine=str(tmp_path))
    assert "is not of lines" in why(fit, event_by="size:3", time=TIME)
    blank = {"S1": str(folder / "one-a.nq"), "S2": str(folder / "two.nq")}
    query = spaseq.compile(Case("", "A; B", clauses="WITHIN 60 SECONDS").query())
    plan = slices.planned_slices(_job(query, 2), blank, "", forced=True)
    assert "blank nodes of events" in _in_slices(_job(query, 2), plan)[2][0]


def test_blank_nodes_of_two_events_are_two_on_both_sides_of_a_border(tmp_path: Path) -> None:
    events = (f'<{NS}g{i}> <{TIME}> "{i}" <{NS}g{i}> .\n_:s <{NS}room> "{i}" <{NS}g{i}> .\n' for i in range(30))
    (tmp_path / "s.nq").write_text("".join(events), "utf-8")
    query = spaseq.compile(
        f"PREFIX : <{NS}> SELECT ?a ?b WITHIN 5 SECONDS SLIDING FROM STREAM S1 <{NS}one> WHERE {{ SEQ (A; B) "
        "DEFINE GPM A ON S1 { ?s :room ?a } DEFINE GPM B ON S1 { ?s :room ?b } }"
    )
    streams = {"S1": str(tmp_path / "s.nq")}
    assert query.run(streams).to_arrow().num_rows == 0
    plan = slices.planned_slices(_job(query, 4), streams, "", forced=True)
    assert len(plan) == 4
    assert _in_slices(_job(query, 4), plan)[::2] == ([], [])


@pytest.mark.slow
@pytest.mark.spark
def test_variables_that_differ_in_case(ordered: Path, spark: Any) -> None:
    """Slow, as the query of the next test has such variables, too."""
    query = spaseq.compile(Case("", "A; B", clauses="WITHIN 6 SECONDS SLIDING").query().replace("?hB", "?ha"))
    expected = query.run(_streams(ordered)).to_arrow()
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, _streams(ordered), partitions=2, plan="slices"))
    assert found.schema.names == expected.schema.names
    assert _rows(found) == _rows(expected) != []


@pytest.mark.spark
@pytest.mark.parametrize(
    "partitions", [pytest.param(1, marks=pytest.mark.slow), 3, pytest.param(8, marks=pytest.mark.slow)]
)
def test_on_spark(partitions: int, ordered: Path, spark: Any) -> None:
    more = {"A": f"{FLOOR} OPTIONAL {{ ?sA :door ?m . }} {LIMIT}", "B": FLOOR.replace("?f", "?g")}
    case = Case("", "A; B", clauses="WITHIN 6 SECONDS SLIDING", more=more)
    query = spaseq.compile(case.query().replace("?hB", "?ha"))
    streams, kb = _streams(ordered), {KB: str(ordered / "kb.ttl")}
    local = query.run(streams, kb)
    names, expected, counters = local.to_arrow().schema.names, _rows(local.to_arrow()), Counters()
    frame = spaseq.spark.run(query, spark, streams, kb, partitions=partitions, plan="slices", counters=counters)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in plan and "run on slices of time (S1: A, S2: B)" in plan
    sliced = spaseq.spark.collect(frame)
    assert sliced.schema.names == names and _rows(sliced) == expected != []
    assert counters == local.counters
    table = spaseq.spark.run(query, spark, streams, kb, partitions=partitions, plan="table")
    assert "find matches in " in table._jdf.queryExecution().executedPlan().toString()
    assert _rows(spaseq.spark.collect(table)) == expected
    found = list(spaseq.spark.matches(query, spark, streams, kb, partitions=partitions, plan="slices", reference=True))
    assert [m.positions for m in found] == sorted((m.positions for m in found), key=lambda p: p[-1])
    assert len(found) == len(expected)


@pytest.mark.spark
def test_the_other_plan_gives_what_slices_cannot(folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SMALL", 0)
    streams = {"S1": str(folder / "one-a.nq"), "S2": str(folder / "late.nq")}
    query = spaseq.compile(Case("", "A; B").query())
    words: dict[str, Any] = {"lateness": "3s", "late": "drop"}
    local = query.run(streams, **words)
    expected, counters = _rows(local.to_arrow()), Counters()
    found = spaseq.spark.run(query, spark, streams, partitions=2, counters=counters, **words)
    assert _rows(spaseq.spark.collect(found)) == expected != []
    assert counters == local.counters
    with pytest.raises(OptionError, match="plan='slices': "):
        spaseq.spark.run(query, spark, streams, partitions=2, plan="slices", **words)
    with pytest.raises(OptionError, match="plan='nothing': no such plan"):
        spaseq.spark.run(query, spark, streams, plan="nothing")
