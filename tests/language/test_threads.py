"""Streams that several threads read and match: the same answers, counts and errors as with one, in the same order."""

from __future__ import annotations

import ast
import io
import itertools
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq import GraphEvent, Settings
from spaseq.cli.main import main
from spaseq.cli.output import FoundResults, write_results
from spaseq.core.errors import BudgetExceeded, EventError, LimitReached
from spaseq.core.events.ahead import THREAD, Crew
from spaseq.core.watch import check
from spaseq.language.runtime.read_ahead import thread_count
from spaseq.rdf import quiet_literals
from spaseq.rdf.columns.dictionary import Dictionary
from tests.support import harness
from tests.support.ahead import in_small_batches
from tests.support.sizes import some

_EX = "http://example.org/"
_TWO = f"""PREFIX : <{_EX}>
SELECT ?k ?x ?y ?c WITHIN 20 SECONDS SLIDING FROM STREAM S <{_EX}S> FROM STREAM T <{_EX}T> WHERE {{
  SEQ (A ; B) DEFINE GPM A ON S {{ ?k :a ?x . GRAPH <{_EX}kb> {{ ?k :in ?c }} }}
  DEFINE GPM B ON S, T {{ ?k :b ?y . FILTER (?y > ?x) }} }}"""
_KEYS = _TWO.replace("20 SECONDS SLIDING", "20 SECONDS SLIDING PARTITION BY (?k)")
_TEXTS = f"""PREFIX : <{_EX}>
SELECT ?k (CONCAT(STR(?x), "!") AS ?z) WITHIN 9 SECONDS FROM STREAM S <{_EX}S> FROM STREAM T <{_EX}T> WHERE {{
  SEQ (A ; C! ; B) DEFINE GPM A ON S {{ ?k :a ?x OPTIONAL {{ ?k :c ?o }} }} DEFINE GPM C ON T {{ ?k :c ?y }}
  DEFINE GPM B ON T {{ ?n :b ?y BIND (?y * 2 AS ?w) FILTER (?w > 6) }} }} ORDER BY ?z"""


def _stream(seed: int, name: str, events: int = 150) -> list[str]:
    rng = random.Random(f"{seed} {name}")
    lines, at = [], 0
    for number in range(events):
        at += rng.choice((0, 0, 1, 1, 2))
        graph = f"<{_EX}{name}/{number}>"
        lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at}" .')
        for _ in range(rng.randrange(1, 4)):
            subject = rng.choice((f"<{_EX}k{rng.randrange(4)}>", "_:n"))
            value = rng.choice((f'"{rng.randrange(9)}"^^<http://www.w3.org/2001/XMLSchema#integer>', f'"t{number}"'))
            lines.append(f"{subject} <{_EX}{rng.choice('abc')}> {value} {graph} .")
    return lines


def _written(folder: Path, seed: int, spoilt: dict[str, int] | None = None) -> dict[str, str]:
    """Two streams as files; `spoilt`: at which line a stream has one that cannot be read."""
    paths = {}
    for name in "ST":
        lines = _stream(seed, name)
        if spoilt and name in spoilt:
            lines.insert(spoilt[name], "<http://example.org/not> a triple .")
        path = folder / f"{name}.nq"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        paths[name] = str(path)
    return paths


def _knowledge(folder: Path) -> dict[str, str]:
    path = folder / "kb.nt"
    path.write_text("".join(f"<{_EX}k{i}> <{_EX}in> <{_EX}c{i % 2}> .\n" for i in range(4)))
    return {f"{_EX}kb": str(path)}


def _matches(text: str, threads: int, files: dict[str, str], folder: Path, **words: Any) -> spaseq.Matches:
    return spaseq.compile(text, settings=Settings(threads=threads)).run(files, _knowledge(folder), **words)


def _all(matches: spaseq.Matches) -> tuple[list[str], Any, str]:
    """The matches up to the end or an error, what was counted, and the error."""
    found, problem = [], ""
    try:
        for match in matches:
            events = [(event.source, event.record, len(event.triples)) for event in match.events]
            found.append(f"{match.start} {match.positions} {match.bindings} {match.times} {events}")
    except EventError as error:
        problem = f"{error} {error.source} {error.record}"
    return found, matches.counters, problem


def _begun() -> int:
    """How many threads of crews there are. Others may be Spark's, whose tests ran in this process."""
    return sum(thread.name == THREAD for thread in threading.enumerate())


@pytest.mark.parametrize("text", [_TWO, _KEYS, _TEXTS], ids=["join", "keys", "clauses"])
def test_any_number_of_threads_gives_the_same_in_the_same_order(text: str, tmp_path: Path) -> None:
    several = 0
    seeds = (1, 0, 2)[: some(3)]
    for seed in seeds:
        files = _written(tmp_path, seed)
        with in_small_batches((8, 25, 60)[seed], alone=seed):
            one, *others = (_all(_matches(text, threads, files, tmp_path)) for threads in (1, 2, 4))
        assert others == [one, one]
        several += len(one[0])
    assert several > 10 * len(seeds)
    assert not _begun()


_FORMS = ("json", "csv", "tsv", "xml", "jsonl", "nquads", "table")


@pytest.mark.parametrize(
    "form", [pytest.param(f, marks=[] if f in ("csv", "nquads", "table") else [pytest.mark.slow]) for f in _FORMS]
)
def test_every_format_is_the_same(form: str, tmp_path: Path) -> None:
    query = _TWO.replace("SELECT ?k ?x ?y ?c", "CONSTRUCT { ?k :saw ?x }") if form == "nquads" else _TWO
    files, texts = _written(tmp_path, 7), []
    for threads in (1, 3):
        compiled = spaseq.compile(query, settings=Settings(threads=threads))
        with in_small_batches(25):
            out = io.StringIO()
            found = compiled.run(files, _knowledge(tmp_path), keep_events=False)
            write_results(form, FoundResults(found, compiled, None, False), out)
            texts.append((out.getvalue(), found.count(), found.to_arrow(), found.why_none()))
    assert texts[0] == texts[1] and texts[0][0].strip()


@pytest.mark.parametrize("spoilt", [{"S": 250}, {"T": 3}, {"S": 250, "T": 250}])
def test_errors_come_behind_what_is_before_them(spoilt: dict[str, int], tmp_path: Path) -> None:
    files = _written(tmp_path, 3, spoilt)
    for triples in (20, 60):
        with in_small_batches(triples):
            one, two = (_all(_matches(_TWO, threads, files, tmp_path)) for threads in (1, 3))
        assert one == two and one[2]
        name, line = min(spoilt.items(), key=lambda item: item[1])
        assert f"{line + 1}" in one[2] and (len(spoilt) > 1 or f"{name}.nq" in one[2])


def test_who_stops_early_has_counted_what_was_used_and_leaves_no_thread(tmp_path: Path) -> None:
    files = _written(tmp_path, 1)
    told = []
    for threads in (1, 2, 4):
        with in_small_batches(10):
            matches = _matches(_TWO, threads, files, tmp_path)
            first = list(itertools.islice(matches, 5))
            told.append(([str(match) for match in first], str(matches.counters), matches.why_none()[0]))
            assert matches.ask()
    assert told[0] == told[1] == told[2] and not _begun()


def test_budgets_and_limits_are_those_of_the_caller(tmp_path: Path) -> None:
    lines = [f"<{_EX}s{i}> <{_EX}p> <{_EX}o{i}> .\n" for i in range(4_000)]
    (tmp_path / "s.nt").write_text("".join(lines))
    text = (f"PREFIX : <{_EX}> SELECT ?s FROM STREAM S <{_EX}S> WHERE "
            "{ SEQ (A) DEFINE GPM A ON S { ?s :p ?x . ?t :p ?y } }")  # fmt: skip
    for settings, error in ((Settings(threads=3, solution_rows=1000), BudgetExceeded),
                            (Settings(threads=3, time_limit=0.0), LimitReached)):  # fmt: skip
        with in_small_batches(200), pytest.raises(error):
            spaseq.compile(text, settings=settings).run({"S": str(tmp_path / "s.nt")}, event_by="size:100").count()
    assert not _begun()


def test_other_ways_in_have_one_thread(tmp_path: Path) -> None:
    """Sessions, documents, pipes, and streams that end before it would be worth it."""
    files = _written(tmp_path, 2)
    query = spaseq.compile(_TWO, settings=Settings(threads=4))
    with query.open(kb=_knowledge(tmp_path)) as session:
        session.push([GraphEvent(f"{_EX}S", 5, ()), GraphEvent(f"{_EX}T", 7, ())])
        assert not _begun()
    for _ in query.run(files, _knowledge(tmp_path)):
        assert not _begun()
    (tmp_path / "T.ttl").write_text(f"<{_EX}k1> <{_EX}b> 8 .")
    with in_small_batches(5):
        for _ in query.run({**files, "T": str(tmp_path / "T.ttl")}, _knowledge(tmp_path), time_from="arrival"):
            assert not _begun()
        most = 0
        for _ in query.run(files, _knowledge(tmp_path)):
            most = max(most, 1 + _begun())
        assert most == 4


def test_tasks_of_spark_have_one_thread() -> None:
    """A task has one core: nothing there makes the iterator that works ahead."""
    for path in (Path(spaseq.__file__).parent / "spark").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not {"Crew", "ReadAhead"} & {each.name for each in node.names}, path


def test_the_command_takes_the_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = _written(tmp_path, 4)
    (tmp_path / "q.rq").write_text(_TWO)
    given = ["run", str(tmp_path / "q.rq"), "--kb", f"{_EX}kb={_knowledge(tmp_path)[f'{_EX}kb']}", "--format", "jsonl"]
    given += [word for name, path in files.items() for word in ("--stream", f"{name}={path}")]
    printed = []
    for threads in ("1", "2"):
        with in_small_batches(20):
            assert main([*given, "--limit", "7", "--set", f"threads={threads}"]) == 0
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1] and len(printed[0].out.splitlines()) == 7


def test_how_many_there_are_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [thread_count(given) for given in (0, 1, 3)] == [1, 1, 3]
    for processors, threads in ((1, 1), (2, 2), (64, 2)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=processors: range(n), raising=False)
        assert thread_count(None) == threads


def test_ctrl_c_ends_the_threads(tmp_path: Path) -> None:
    """A process that is interrupted in the middle of a large file ends at once, with what was found written."""
    path = tmp_path / "s.nt"
    with path.open("w") as file:
        for i in range(400_000):
            file.write(f"<{_EX}s{i}> <{_EX}p> <{_EX}o{i % 7}> .\n")
    (tmp_path / "q.rq").write_text(
        f"PREFIX : <{_EX}> SELECT ?s FROM STREAM S <{_EX}S> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?s :p :o1 }} }}"
    )
    command = [sys.executable, "-m", "spaseq", "run", "q.rq", "--stream", f"S={path}", "--event-by", "subject",
               "--format", "jsonl", "--set", "threads=3"]  # fmt: skip
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=harness.hear_interrupts)  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    lines = [process.stdout.readline() for _ in range(9_000)]  # more than one thread alone reads
    process.send_signal(signal.SIGINT)
    lines += process.stdout.readlines()  # communicate() would read past what readline() has buffered
    error = process.stderr.read()
    assert process.wait(60) == 130 and error.startswith("interrupted") and "Traceback" not in error
    assert 9_000 <= len(lines) < 400_000 // 7 and all(map(json.loads, lines))


# -- what threads share


def test_a_log_that_two_threads_silence_speaks_again_when_both_are_done() -> None:
    log = logging.getLogger("rdflib.term")
    first, second = quiet_literals(), quiet_literals()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert log.disabled
    second.__exit__(None, None, None)
    assert not log.disabled


def test_a_finder_finds_what_was_there_while_terms_are_added() -> None:
    words = [f'"{number}"'.encode() for number in range(40_000)]
    dictionary = Dictionary()
    dictionary.intern(words[:100])
    finder = dictionary.finder()
    for begin in range(100, len(words), 3_000):
        dictionary.intern(words[begin : begin + 3_000])
        found = [finder(word) for word in (*words[:100], *words[begin : begin + 50])]
        assert found == [*range(3, 103), *[-1] * 50]


# -- threads that work ahead


def _double(value: int) -> int:
    time.sleep(random.Random(value).random() / 2000)
    if value == 70:
        raise ValueError("seventy")
    return 2 * value


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_crew_keeps_the_order_of_each_source(threads: int) -> None:
    sources = [iter(range(60)), iter(range(60, 90)), iter(())]
    with Crew(sources, _double, lambda: _double, threads=threads, depth=3) as crew:
        assert [crew.take(0) for _ in range(61)] == [*((k, 2 * k) for k in range(60)), None]
        assert [crew.take(1) for _ in range(10)] == [(k, 2 * k) for k in range(60, 70)]
        with pytest.raises(ValueError, match="seventy"):
            crew.take(1)
        assert crew.take(2) is None
    assert not _begun()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_a_source_is_made_of_is_worked_on_ahead(threads: int) -> None:
    begun: list[Crew[int, int]] = []

    def source(first: int) -> Iterator[int]:
        while not begun:
            time.sleep(0.001)
        yield from begun[0].mapped(_double, iter(range(first, 90)))

    with Crew([source(0), source(60)], _slow, lambda: _slow, threads=threads, depth=3) as crew:
        begun.append(crew)
        assert [crew.take(0) for _ in range(70)] == [(2 * k, 2 * k) for k in range(70)]
        assert [crew.take(1) for _ in range(10)] == [(2 * k, 2 * k) for k in range(60, 70)]
        for place in (0, 1):
            with pytest.raises(ValueError, match="seventy"):
                crew.take(place)
            assert crew.take(place) is None
    assert not _begun()


def test_a_crew_raises_what_a_source_and_a_helper_raise() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise EventError("broken")

    def helper() -> Any:
        raise MemoryError

    with Crew([source()], _double, lambda: _double, threads=2) as crew:
        assert crew.take(0) == (1, 2)
        with pytest.raises(EventError, match="broken"):
            crew.take(0)
        assert crew.take(0) is None
    with Crew([iter(range(99))], _slow, helper, threads=1, depth=9) as crew, pytest.raises(MemoryError):
        while crew.take(0) is not None:
            pass


def _slow(value: int) -> int:
    time.sleep(0.002)
    return value


def test_a_crew_ends_in_the_middle_of_long_work() -> None:
    begun = threading.Event()

    def long(value: int) -> int:
        begun.set()
        while True:
            check()

    with Crew([iter(range(9))], _slow, lambda: long, threads=1):
        assert begun.wait(30)
    assert not _begun()
