"""Ctrl-C while a command waits for the reader of a full pipe: no line is torn, and what is missing is said."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.killed import killed
from tests.support.slow_readers import Outcome, Trial, interrupted

_LONG = "é" * 5_000
_WHERE = "FROM STREAM S <urn:s> WHERE { SEQ (A: B) DEFINE GPM A ON S { ?s :p ?x } DEFINE GPM B ON S { ?t :p ?y } }"
_DROPPED = "warning: the output was not read for a second, so the last results are missing from it"
_CUT = ", and its last line is cut off"


def _files(folder: Path) -> None:
    (folder / "q.ceql").write_text("SELECT * WHERE A AS x ; A+ AS y ; A AS z")
    (folder / "one.ceql").write_text("SELECT * WHERE A")
    (folder / "long.ceql").write_text("SELECT x[note] WHERE A AS x")
    (folder / "e.csv").write_text("type\n" + "A\n" * 200)
    (folder / "many.csv").write_text("type\n" + "A\n" * 20_000)
    (folder / "long.csv").write_text("type,note\n" + f"A,{_LONG}\n" * 50)
    (folder / "q.rq").write_text(f"PREFIX : <urn:e#> SELECT ?s ?t {_WHERE}")
    (folder / "c.rq").write_text(f"PREFIX : <urn:e#> CONSTRUCT {{ ?s :q ?t . ?t :q ?s }} {_WHERE}")
    (folder / "long.rq").write_text(f"PREFIX : <urn:e#> SELECT ?x {_WHERE}")
    (folder / "s.nt").write_text("".join(f'<urn:g{i}> <urn:e#p> "{i}" .\n' for i in range(3_000)))
    (folder / "long.nt").write_text("".join(f'<urn:g{i}> <urn:e#p> "{_LONG}" .\n' for i in range(50)))


def _ceql(query: str, events: str, form: str) -> tuple[str, ...]:
    return ("ceql", "run", query, "--events", events, "--format", form)


def _spaseq(query: str, events: str, form: str, *more: str) -> tuple[str, ...]:
    return ("spaseq", "run", query, "--stream", f"S={events}", "--event-by", "size:1", "--format", form, *more)


def _whole(form: str, outcome: Outcome) -> None:
    """Every line is one that the format has."""
    lines = outcome.out.splitlines()
    assert outcome.out.endswith("\n") and len(lines) > 20
    match form:
        case "jsonl":
            assert all(map(json.loads, lines))
        case "csv":
            assert {len(row) for row in csv.reader(lines)} in ({3}, {5})
        case "tsv":
            assert {line.count("\t") for line in lines} in ({2}, {4})
        case "nquads":
            assert all(line.endswith(" .") for line in lines)
        case "table" | "text":
            lengths = [len(line.split()) for line in lines[5:]]
            assert all(abs(one - other) < 8 for one, other in pairwise(lengths))


_FORMS = [*((form, _ceql("q.ceql", "e.csv", form)) for form in ("jsonl", "csv", "tsv", "table")),
          *((form, _spaseq("q.rq", "s.nt", form)) for form in ("jsonl", "csv", "tsv", "table")),
          ("nquads", _spaseq("c.rq", "s.nt", "nquads")),
          ("jsonl", _spaseq("q.rq", "s.nt", "jsonl", "--set", "threads=1")),
          ("csv", _spaseq("q.rq", "s.nt", "csv", "--follow")),
          ("text", ("ceql", "alert", "one.ceql", "--events", "many.csv")),
          ("jsonl", ("ceql", "alert", "one.ceql", "--events", "many.csv", "--follow", "--format", "jsonl")),
         ]  # fmt: skip


_SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("reads", "step"),
    [pytest.param(True, 1, marks=_SLOW), pytest.param(False, 1, marks=_SLOW), (False, 6)],
    ids=["read slowly", "not read", "some that are not read"],
)
def test_an_interrupt_in_a_blocked_write_tears_no_line(tmp_path: Path, reads: bool, step: int) -> None:
    _files(tmp_path)
    trials = [Trial(words, reads, fifo=number % 4 == 0) for number, (_, words) in enumerate(_FORMS)][::step]
    forms = [form for form, _ in _FORMS][::step]
    for trial, form, outcome in zip(trials, forms, interrupted(trials, tmp_path), strict=True):
        told = f"{trial}: {outcome.err}"
        assert outcome.waited and outcome.code == 130, told
        assert outcome.err.startswith("interrupted: ") and _CUT not in outcome.err, told
        assert reads or _DROPPED in outcome.err, told
        _whole(form, outcome)


@pytest.mark.parametrize(
    ("reads", "step"),
    [pytest.param(True, 1, marks=_SLOW), pytest.param(False, 1, marks=_SLOW), (False, 3)],
    ids=["read slowly", "not read", "some that are not read"],
)
def test_a_line_that_no_pipe_takes_at_once_is_whole_where_it_is_read(tmp_path: Path, reads: bool, step: int) -> None:
    _files(tmp_path)
    words = [("jsonl", _ceql("long.ceql", "long.csv", "jsonl")), ("csv", _ceql("long.ceql", "long.csv", "csv")),
             ("jsonl", _spaseq("long.rq", "long.nt", "jsonl")), ("tsv", _spaseq("long.rq", "long.nt", "tsv")),
             ("jsonl", _spaseq("long.rq", "long.nt", "jsonl", "--follow"))]  # fmt: skip
    trials = [Trial(given, reads) for _, given in words[::step]]
    outcomes = interrupted(trials, tmp_path)
    for trial, outcome in zip(trials, outcomes, strict=True):
        told = f"{trial}: {outcome.err} {outcome.out[-100:]!r}"
        assert outcome.waited and outcome.code == 130, told
        assert outcome.out.endswith("\n") == (_CUT not in outcome.err) and (reads or _DROPPED in outcome.err), told
        assert outcome.out.endswith("\n") or not reads, told
    assert reads or any(_CUT in outcome.err for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "xml"])
def test_a_document_that_could_not_be_closed_is_reported(tmp_path: Path, form: str) -> None:
    _files(tmp_path)
    (outcome,) = interrupted([Trial(_spaseq("q.rq", "s.nt", form), False)], tmp_path)
    assert outcome.waited and outcome.code == 130 and _DROPPED in outcome.err
    assert outcome.out.endswith("\n") or form == "json"


@pytest.mark.kill
def test_kills_at_random_moments_tear_no_line(tmp_path: Path) -> None:
    """500 kills of both commands, into files, pipes, and pipes that are read slowly."""
    counted, torn = killed(500, 7, tmp_path)
    assert not torn and counted["killed while it wrote"] > 250, (counted, torn)
    assert counted.get("file that ends with a page", 0) < 10
