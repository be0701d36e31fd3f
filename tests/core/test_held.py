"""What evaluations say that they hold: by parts that mean something, near what was allocated, and no more than once."""

from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rdflib import URIRef as IRI

import ceql
import spaseq
from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main
from spaseq.core.held import PARTS, Memory, measure

_STREAM = "http://example.org/S"
_GPMS = f""" FROM STREAM S <{_STREAM}>
WHERE {{ SEQ (A ; B) DEFINE GPM A ON S {{ ?k <urn:a> ?x }} DEFINE GPM B ON S {{ ?k <urn:b> ?y }} }}"""


def _graph(number: int, kind: str = "a") -> spaseq.GraphEvent:
    triple = (IRI(f"http://example.org/k{number}"), IRI(f"urn:{kind}"), IRI(f"http://example.org/x{number}"))
    return spaseq.GraphEvent(_STREAM, number * 1_000_000, (triple,))


def _tuple(number: int, kind: str = "A") -> dict[str, Any]:
    return {"type": kind, "k": number, "s": f"name {number}", "v": -number}


Push = Callable[[int, int], None]


def _tuples(text: str, *, at_once: bool = False) -> tuple[Any, Push]:
    session = ceql.compile(text).open(time_from="arrival")

    def push(first: int, last: int) -> None:
        events = [_tuple(number) for number in range(first, last)]
        for part in [pa.Table.from_pylist(events)] if at_once else events:
            session.push(part)

    return session, push


def _graphs(text: str) -> tuple[Any, Push]:
    session = spaseq.compile(text + _GPMS).open()

    def push(first: int, last: int) -> None:
        for number in range(first, last):
            session.push(_graph(number))

    return session, push


_SHAPES: dict[str, tuple[Callable[[], tuple[Any, Push]], str]] = {
    "keys": (lambda: _tuples("SELECT * WHERE A ; B PARTITION BY [k]"), "keys"),
    "keys, batches": (lambda: _tuples("SELECT * WHERE A ; B PARTITION BY [s]", at_once=True), "keys"),
    "an order": (lambda: _tuples("SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v"), "runs"),
    "texts": (lambda: _tuples("SELECT * WHERE A AS a ; B AS b FILTER a.s != b.s"), "values"),
    "graphs, keys": (lambda: _graphs("SELECT ?k WITHIN 1 HOURS PARTITION BY (?k)"), "keys"),
    "graphs, a join": (lambda: _graphs("SELECT ?k WITHIN 1 HOURS"), "values"),
}


_QUICK = ("keys", "an order", "graphs, a join")


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=[] if shape in _QUICK else [pytest.mark.slow]) for shape in _SHAPES]
)
def test_what_grows_is_near_what_was_allocated(shape: str) -> None:
    """All of it, and that the part grows which the shape is about."""
    session, push = _SHAPES[shape][0]()
    push(0, 500)
    gc.collect()
    tracemalloc.start()
    try:
        before, allocated = session.counters.memory, tracemalloc.get_traced_memory()[0]
        push(500, 2_500)
        gc.collect()
        allocated = tracemalloc.get_traced_memory()[0] - allocated
        after = session.counters.memory
    finally:
        tracemalloc.stop()
    grown = after.total - before.total
    if "batches" in shape:  # tracemalloc does not see what Arrow allocates
        allocated += after.events - before.events
    assert 0.75 * allocated < grown < 1.25 * allocated
    assert getattr(after, _SHAPES[shape][1]) > getattr(before, _SHAPES[shape][1])
    if "keys" in shape:
        assert after.keys_held >= 2_499
        assert after.bytes_per_key is not None and 100 < after.bytes_per_key < 700


def test_what_is_forgotten_is_not_held_any_more() -> None:
    session, push = _tuples("SELECT * WHERE A AS a ; B AS b FILTER a.s = b.s WITHIN 100 MILLISECONDS")
    push(0, 2_000)
    held = session.counters.memory
    push(2_000, 30_000)
    later = session.counters.memory
    assert later.total < 2 * held.total and later.keys_held < 5_000 and later.events_held < 3_000


def test_many_items_are_estimated() -> None:
    """Of 40,000 texts in a dict and in a list one in 64 is looked at; each counts once."""
    texts = {f"a text of some length, {number}": number + 1_000 for number in range(40_000)}
    whole = sum(map(len, texts)) + 40_000 * (49 + 32)
    found = measure({"keys": [texts, list(texts)]}, ()).keys - texts.__sizeof__() - 8 * 40_000
    assert 0.8 * whole < found < 1.2 * whole


def test_arrays_count_once() -> None:
    array, table = np.zeros(100_000), pa.table({"a": np.zeros(100_000), "b": ["x"] * 100_000})
    found = measure({"runs": [array, array[5:], [array]], "events": [table, table.slice(7)], "rest": [array]}, ())
    assert 800_000 <= found.runs < 801_000 and found.rest == 0
    assert 1_300_000 <= found.events < 1_310_000
    assert measure({"runs": [[array]]}, [array]).total < 200


def test_memory_of_runs_and_of_what_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    path.write_text("".join(f"<urn:k{n}> <urn:a> <urn:x> .\n" for n in range(50)))
    local: Any = spaseq.compile("SELECT ?k" + _GPMS).run({"S": str(path)}, event_by="size:1")
    assert local.counters.memory == Memory()  # nothing was read yet
    assert list(local) == [] and local.counters.memory.runs > 0
    matches = ceql.compile("SELECT * WHERE A ; B PARTITION BY [k]").run([_tuple(n) for n in range(50)])
    assert matches.count() == 0 and matches.counters.memory.keys_held == 50
    session, push = _tuples("SELECT * WHERE A ; B")
    push(0, 10)
    counters = session.counters
    assert counters.memory.events_held == 10
    assert counters.memory.total == sum(getattr(counters.memory, part) for part in PARTS)
    for other in (pickle.loads(pickle.dumps(counters)), copy.deepcopy(counters)):
        assert other == counters and other.memory == Memory()
    del session, push
    gc.collect()
    assert counters.memory == Memory()


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_the_commands_say_it(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("type,k\n" + "".join(f"A,{n}\n" for n in range(9)))
    (tmp_path / "s.nt").write_text("".join(f"<urn:k{n}> <urn:a> <urn:x> .\n" for n in range(9)))
    given = {
        "ceql": ["run", "SELECT * WHERE A ; B PARTITION BY [k]", "--events", str(tmp_path / "e.csv")],
        "spaseq": ["run", "SELECT ?k WITHIN 1 HOURS PARTITION BY (?k)" + _GPMS, "--stream", f"S={tmp_path / 's.nt'}",
                   "--event-by", "size:1", "--time-from", "arrival"],
    }[language]  # fmt: skip
    main = {"ceql": ceql_main, "spaseq": spaseq_main}[language]
    assert main([*given, "--memory"]) == 0
    said = capsys.readouterr().err
    assert "note: the evaluation holds " in said and "9 keys of " in said and "  keys: " in said
    assert main(given) == 0 and "evaluation holds" not in capsys.readouterr().err
    if language == "spaseq":
        assert main([*given, "--memory", "--engine", "spark"]) == 2
        assert "--memory is of the local engine" in capsys.readouterr().err
