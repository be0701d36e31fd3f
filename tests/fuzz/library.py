"""What a program does with the library besides what it should: sessions that are left in every way, whose matches must
all be delivered or told, and arguments of every wrong type, which must get an error of the project."""

from __future__ import annotations

import dataclasses
import gc
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa

import ceql
import spaseq
from spaseq.core.engine import Settings
from spaseq.core.errors import SpaseqError
from spaseq.rdf import Counters
from tests.support import harness
from tests.support.graph_events import open_streams
from tests.support.harness import Case

__all__ = ["Lost", "left_session", "odd_argument"]

_TOLD = re.compile(r"completed ([\d,]+) match")


class Lost(Exception):
    """What was neither delivered nor told."""


# -- sessions


def left_session(case: Case, seed: int, folder: Path) -> str:
    """Push the events of a case while sessions are left and opened again, and compare with one session that is closed.

    Raises `Lost` if matches are missing or too many.
    """
    rng = random.Random(seed)
    ceql_case = not case.is_spaseq
    events = _events(case, folder)
    opened = _opener(case, events, folder)
    with opened(None) as session:
        whole = Counter(_key(m) for event in events for m in _push(session, [event]))
        whole.update(map(_key, session.close()))
    if whole.total() > 5_000:
        return "many"
    found: Counter[Any] = Counter()
    state: bytes | None = None
    while True:
        last = rng.random() < 0.5 or not events
        cut = len(events) if last else rng.randrange(len(events))
        own, events = events[:cut], events[cut:]
        how = rng.choice(("rest", "close", "late close", "dropped")) if last else rng.choice(("snapshot", "exception"))
        found += _part(opened, state, own, how, rng)
        state = _STATE.pop("state", None)
        if last:
            break
    if found != whole and not (ceql_case and re.search(r"\bANY\b|\bLIMIT\b", case.query, re.IGNORECASE)):
        anonymous = Counter({"told": found.pop("told", 0)})
        if found - whole or (whole - found).total() != anonymous["told"]:
            raise Lost(f"{found.total()} delivered and {anonymous['told']} told of {whole.total()}")
    return "left"


_STATE: dict[str, bytes] = {}
"""The snapshot that the latest block was left with."""


def _part(opened: Any, state: bytes | None, events: list[Any], how: str, rng: random.Random) -> Counter[Any]:
    """The matches of some events, pushed within a block that is left in a way; those told by a warning as `told`."""
    found: Counter[Any] = Counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with opened(state) as session:
                at = 0
                while at < len(events):
                    size = rng.choice((1, 1, 2, 5))
                    some = events[at : at + size]
                    at += len(some)
                    if rng.random() < 0.2:
                        _refuse(session, some, rng)
                    found.update(map(_key, _push(session, iter(some) if rng.random() < 0.1 else some)))
                if how == "close":
                    found.update(map(_key, session.close()))
                if how in ("snapshot", "exception"):
                    _STATE["state"] = session.snapshot()
                if how == "exception":
                    raise KeyError
        except KeyError:
            pass
        if how == "rest":
            found.update(map(_key, session.rest))
        if how == "late close":
            found.update(map(_key, session.close()))
        del session
        gc.collect()
    said = [m for w in caught if w.category is RuntimeWarning and (m := _TOLD.search(str(w.message)))]
    if said and how != "dropped":
        raise Lost(f"a warning of what was taken, left by {how}: {said[0][0]}")
    if said:
        found["told"] += sum(int(m[1].replace(",", "")) for m in said)
    return found


def _refuse(session: Any, some: list[Any], rng: random.Random) -> None:
    """A push that has something wrong behind what is right. It takes nothing."""

    def failing() -> Iterator[Any]:
        yield from some
        raise ZeroDivisionError

    behind = rng.choice((5, "no such file.csv", None, b"", 1.5))
    wrong = rng.choice(([*some, behind], iter([*some, behind]), failing(), behind))
    try:
        session.push(wrong)
    except (SpaseqError, ZeroDivisionError):
        return
    raise Lost(f"{wrong!r:.80} was taken")


def _events(case: Case, folder: Path) -> list[Any]:
    if not case.is_spaseq:
        return list(case.events)
    query = spaseq.compile(case.query)
    from spaseq.language.runtime.opened import stream_sources

    sources = stream_sources(query.checked, harness.write_streams(case.graphs, folder))
    events, settled = open_streams(sources, spaseq.StreamOptions(), Counters())
    return list(events) if settled is not None else []


def _opener(case: Case, events: list[Any], folder: Path) -> Callable[[bytes | None], Any]:
    settings = Settings(forget_keys_after=case.forget)
    if not case.is_spaseq:
        query = ceql.compile(case.query, settings=settings)
        return lambda state: query.open(state)
    graphs = spaseq.compile(case.query, settings=settings)
    kb = harness.write_knowledge(case.kb, folder)
    return lambda state: graphs.open(state, kb=kb)


def _push(session: Any, events: Any) -> list[Any]:
    found: list[Any] = session.push(events)
    return found


def _key(match: Any) -> Any:
    terms = sorted((name, "_:b" if type(t).__name__ == "BNode" else repr(t)) for name, t in match.bindings.items())
    return match.start, match.end, match.positions, tuple(terms)


# -- arguments


class _Odd:
    """An object of a class of its own."""


VALUES: list[Callable[[], Any]] = [
    lambda: None, lambda: 5, lambda: -1, lambda: 1.5, lambda: float("nan"), lambda: True, lambda: "text", lambda: b"b",
    lambda: "", list, lambda: [5], lambda: [None], dict, lambda: {"a": 1}, lambda: {5: 6}, tuple, object, lambda: _Odd,
    _Odd, lambda: print, lambda: np.array([1, 2]), lambda: np.int64(3), lambda: pandas.Series([1]),
    lambda: pa.array([1]),
    lambda: iter([1]), lambda: {1}, lambda: range(3), lambda: 1 << 70, lambda: float("inf"), lambda: [[]],
    lambda: "\ud800",
]  # fmt: skip
"""Makers of odd values."""
_TUPLES, _GRAPHS = "SELECT * WHERE A ; B", "FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x <urn:p> ?v } }"


_FORMS = ("delimiter", "decimal", "quote", "encoding", "time_format", "column_types")


def _reads(query: ceql.Query, events: Any, word: str, value: Any) -> Any:
    given: dict[str, Any] = {word: value}
    return list(query.run(events, **given))


def _calls() -> dict[str, Callable[[Any], Any]]:
    """Every public function with one argument left open."""
    tuples, graphs = ceql.compile(_TUPLES), spaseq.compile(f"SELECT ?x {_GRAPHS}")
    construct = spaseq.compile(f"CONSTRUCT {{ ?x <urn:q> ?v }} {_GRAPHS}")
    Path("s.nq").write_text('<urn:x> <urn:p> "1" <urn:g> .\n<urn:g> <urn:at> "1" .\n')
    events, files = [{"type": "A"}, {"type": "B"}], {"S": "s.nq"}
    calls: dict[str, Callable[[Any], Any]] = {
        "run": lambda v: list(tuples.run(v)), "streams": lambda v: list(tuples.run(streams=v)),
        "stream": lambda v: list(tuples.run(streams={"S": v})), "schema": lambda v: list(tuples.run(events, schema=v)),
        "valuations": lambda v: list(tuples.run(events, valuations=v)), "names": lambda v: tuples.open(streams=v),
        "stream of a push": lambda v: tuples.open().push(events, v), "count": lambda v: tuples.run(events).count(v),
        "type_column": lambda v: list(tuples.run(events, type_column=v)),
        "types": lambda v: list(tuples.run(types=v)), "type": lambda v: list(tuples.run(events, type=v)),
        "types of pushes": lambda v: tuples.open(types=v),
        "type of a push": lambda v: tuples.open().push(events, type=v),
        **{word: partial(_reads, tuples, events, word) for word in _FORMS}, "limits": lambda v: tuples.alerts(limits=v),
        "timeline": lambda v: tuples.run(events).timeline(v), "alerts": lambda v: list(tuples.alerts().run(v)),
        "alerts push": lambda v: tuples.alerts().open().push(v), "ask": lambda v: tuples.alerts().ask(v),
        "graphs": lambda v: list(graphs.run(v)), "files": lambda v: list(graphs.run({"S": v}, time="urn:at")),
        "kb": lambda v: list(graphs.run(files, v, time="urn:at")), "follow": lambda v: graphs.follow(v),
        "graph of kb": lambda v: list(graphs.run(files, {"urn:k": v}, time="urn:at")),
        "options": lambda v: list(graphs.run(files, options=v)),
        "batches": lambda v: list(graphs.open().push_batches(v)),
        "entailment": lambda v: list(graphs.run(files, entailment=v, time="urn:at")),
        "construct": lambda v: construct.construct(v), "bound": lambda v: construct.construct({"x": v, "v": v}),
        "number": lambda v: construct.construct({}, v), "knowledge": lambda v: spaseq.Knowledge(v),
        "source": lambda v: list(graphs.run({"S": spaseq.StreamSource("urn:s", v)}, time="urn:at")),
        "event_by of a source": lambda v: list(graphs.run({"S": spaseq.StreamSource("urn:s", ("s.nq",), v)})),
        "grouped": lambda v: spaseq.Grouped("kb.ttl", v), "subject": lambda v: _graph(((v, v, v),)), "triples": _graph,
        "time of a graph": lambda v: spaseq.GraphEvent("urn:s", v, ()), "name": lambda v: spaseq.GraphEvent(v, 0, ()),
    }  # fmt: skip
    for word in ("event_by", "ties", "malformed", "format", "time", "time_from"):
        calls[word] = lambda v, word=word: list(graphs.run(files, **{"time": "urn:at", word: v}))  # type: ignore[misc]
    for module, query in ((ceql, tuples), (spaseq, graphs)):
        own: dict[str, Callable[[Any], Any]] = {
            "compile": module.compile, "explain": query.explain, "picture": query.picture, "open": query.open,
            "advance": partial(_advance, query), "push": partial(_pushed, query),
            "settings": partial(_compiled, module, query.text),
        }  # fmt: skip
        for word in ("time_unit", "interval", "lateness", "late"):
            own[word] = lambda v, query=query, word=word: query.open(**{word: v})  # type: ignore[misc]
        calls |= {f"{module.__name__} {name}": call for name, call in own.items()}
    for field in dataclasses.fields(Settings):
        calls[f"setting {field.name}"] = lambda v, name=field.name: Settings(**{name: v})  # type: ignore[misc]
    return calls


def _graph(triples: Any) -> Any:
    return spaseq.compile(f"SELECT ?x {_GRAPHS}").open().push(spaseq.GraphEvent("urn:s", 0, triples))


def _advance(query: Any, value: Any) -> Any:
    return query.open().advance(value)


def _pushed(query: Any, value: Any) -> Any:
    return query.open().push(value)


def _compiled(module: Any, text: str, value: Any) -> Any:
    return module.compile(text, settings=value)


def odd_argument(seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Some calls, by name, with an odd value each."""
    rng = random.Random(seed)
    calls = _calls()
    for _ in range(20):
        name = rng.choice(sorted(calls))
        value = rng.choice(VALUES)
        yield f"{name} of {value()!r:.60}", lambda name=name, value=value: calls[name](value())  # type: ignore[misc]
