"""One query in many threads and processes, evaluations left in the middle, and what callers raise."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from spaseq import GraphEvent
from spaseq.rdf import term_from_key

_CEQL = "SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v WITHIN 20 EVENTS"
_SPASEQ = """PREFIX : <urn:e#> SELECT ?s ?x ?y FROM STREAM S <urn:s>
WHERE { SEQ (A; B) DEFINE GPM A ON S { ?s :p ?x } DEFINE GPM B ON S { ?s :q ?y FILTER (?y > ?x) } }"""
_EVENTS = [{"type": "AB"[i % 2], "v": i * 7 % 11} for i in range(200)]
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def _graphs(count: int) -> list[GraphEvent]:
    def triple(i: int) -> Any:
        keys = (f"<urn:n{i % 3}>", f"<urn:e#{'pq'[i % 2]}>", f'"{i * 7 % 11}"^^<{_INTEGER}>')
        return tuple(map(term_from_key, keys))

    return [GraphEvent("urn:s", i * 10**9, (triple(i),)) for i in range(count)]


def _found(matches: Any) -> list[tuple[Any, ...]]:
    return [(m.start, m.end, tuple(m.positions)) for m in matches]


def _pushed(query: Any, events: Any) -> list[tuple[Any, ...]]:
    with query.open() as session:
        return [found for event in events for found in _found(session.push(event))] + _found(session.close())


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_one_query_in_many_threads(language: str) -> None:
    """Each has an evaluation of its own; what a query works out at its first use all of them work out at once."""
    query: Any = (ceql if language == "ceql" else spaseq).compile(_CEQL if language == "ceql" else _SPASEQ)
    events = _EVENTS if language == "ceql" else _graphs(60)
    begin = threading.Barrier(8)

    def use(number: int) -> list[tuple[Any, ...]]:
        begin.wait()
        return _pushed(query, events if number % 2 else iter(events))

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(use, range(8))
    assert first and all(found == first for found in others)
    anew: Any = (ceql if language == "ceql" else spaseq).compile(query.text)
    assert first == _pushed(anew, events)


_FORKED = """
import json, os, sys
import ceql, spaseq
from tests.test_concurrency import _CEQL, _EVENTS, _SPASEQ, _found, _graphs, _pushed

open("e.csv", "w").write("type,v\\n" + "".join(f"{e['type']},{e['v']}\\n" for e in _EVENTS))
queries = ceql.compile(_CEQL), spaseq.compile(_SPASEQ)
before = _found(queries[0].run("e.csv")), _pushed(queries[1], _graphs(40))
sessions = queries[0].open(), queries[1].open()
given = _EVENTS[:100], _graphs(40)
halves = [[_found(s.push(e)) for e in events[: len(events) // 2]] for s, events in zip(sessions, given)]

def rest():
    found = [[_found(s.push(e)) for e in events[len(events) // 2 :]] for s, events in zip(sessions, given)]
    again = _found(queries[0].run("e.csv")), _pushed(queries[1], _graphs(40))
    return [found, again == before and ceql.compile(_CEQL).run("e.csv").count() == len(before[0])]

reader, writer = os.pipe()
child = os.fork()
if not child:
    os.write(writer, json.dumps(rest()).encode())
    os._exit(0)
os.close(writer)
ours, theirs = json.loads(json.dumps(rest())), json.loads(open(reader).read())
assert os.waitpid(child, 0)[1] == 0
assert ours == theirs and ours[1] is True and ours[0][0] and any(ours[0][1]), (ours, theirs)
print("both")
"""


def test_a_process_that_is_forked_after_use_goes_on(tmp_path: Path) -> None:
    """Compiled queries, sessions, kernels, and files that threads read, in a child of a process that has used them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKED], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout == "both\n", done.stderr


_COLD = """
import ceql, json, sys
query = ceql.compile(sys.argv[1])
print(json.dumps([[m.start, m.end, list(m.positions)] for m in query.run("e.csv")]))
"""


@pytest.mark.slow
def test_processes_that_begin_at_once_with_an_empty_cache_of_kernels(tmp_path: Path) -> None:
    """Each compiles what it needs and writes it to the one folder; all find the same, and so does who only reads it."""
    (tmp_path / "e.csv").write_text("type,v\n" + "".join(f"{e['type']},{e['v']}\n" for e in _EVENTS))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPASEQ_INTERPRET": "0",
                   "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}  # fmt: skip

    def begun() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", _COLD, _CEQL], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    answers = [process.communicate(timeout=900) for process in [begun() for _ in range(4)]]
    answers.append(begun().communicate(timeout=900))
    expected = json.loads(json.dumps(_found(ceql.compile(_CEQL).run(str(tmp_path / "e.csv")))))
    assert expected and [(json.loads(out), err) for out, err in answers] == [(expected, "")] * 5


def test_evaluations_that_are_left_in_the_middle_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("type,v\n" + "".join(f"{e['type']},{e['v']}\n" for e in _EVENTS * 50))
    query, graphs = ceql.compile(_CEQL), spaseq.compile(_SPASEQ)
    lines = "".join(f'<urn:n{i % 3}> <urn:e#{"pq"[i % 2]}> "{i * 7 % 11}"^^<{_INTEGER}> .\n' for i in range(400))
    (tmp_path / "s.nt").write_text(lines)
    before = threading.active_count()
    left: list[Iterator[Any]] = [iter(query.run(str(path))) for _ in range(20)]
    left += [iter(graphs.run({"S": str(tmp_path / "s.nt")}, event_by="size:1")) for _ in range(20)]
    assert all(len(list(islice(found, 3))) == 3 for found in left)
    del left
    gc.collect()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(10)
    assert threading.active_count() <= before
    assert len(_found(query.run(_EVENTS))) == len(_pushed(query, _EVENTS))


class _Own(Exception):
    """Of somebody's code."""


def _breaking(events: Any, at: int) -> Iterator[Any]:
    yield from events[:at]
    raise _Own("from here")


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_what_the_callers_events_raise_comes_out_as_it_is(language: str) -> None:
    module: Any = ceql if language == "ceql" else spaseq
    query = module.compile(_CEQL if language == "ceql" else _SPASEQ)
    events: Any = _EVENTS if language == "ceql" else _graphs(60)
    whole = _pushed(query, events)
    session = query.open()
    with pytest.raises(_Own, match="from here"):
        session.push(_breaking(events, 40))
    taken = [match for part in (events[:40], events[40:]) for match in session.push(part)]  # it had taken nothing
    assert len([*taken, *session.close()]) == len(whole)
    if language == "ceql":
        with pytest.raises(_Own, match="from here"):
            list(query.run(_breaking(events, 40)))
    assert _pushed(query, events) == whole  # the query is as it was
