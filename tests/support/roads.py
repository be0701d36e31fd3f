"""Every way into the engine, as one table: a road takes a case and gives the answers that the engine gives there.

A case runs on all roads of its language. If a road cannot take one, `LEFT_OUT` has the reason and the number of such
cases. A refused query must be refused with the words there. A new way in is a new row of `ROADS`.

Answers of CEQL are matches (start, end, positions), with NOT … FOR EVERY also the number of the silence. If a case
requires valuations, they are (start, end, the positions of each variable). Answers of SPAseq are those of
`oracle_spaseq`, with one name for all blank nodes, whose labels depend on the cuts of a stream.
"""

from __future__ import annotations

import ast
import contextlib
import gzip
import io
import json
import math
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import ceql
import spaseq
from spaseq.core.engine import Settings
from spaseq.core.errors import UnsupportedFeature
from spaseq.language.runtime.opened import stream_sources
from spaseq.rdf import Counters, StreamOptions, build_knowledge
from tests.support import harness, oracle_spaseq
from tests.support.ahead import in_small_batches
from tests.support.changing import changing
from tests.support.graph_events import open_streams
from tests.support.graph_kinds import push_graphs, run_graphs
from tests.support.harness import Case, Events

Answers = list[Any]


@dataclass(frozen=True, slots=True)
class Ride:
    """The input of a road other than the case: its own randomness, a folder for files, and perhaps a session of Spark.

    `anew`: a snapshot is handed to a query compiled anew, as another process would; else to the one that all roads of
    the case share, as one program would. Compiling takes most of the time of a small case.
    """

    rng: random.Random
    folder: Path
    spark: Any = None
    anew: bool = True


@dataclass(frozen=True, slots=True)
class Road:
    """`take` gives the answers of a case; `leaves` gives the reason against a case on this road, else nothing.

    `ends`: the answers are only the ends of matches. `valuations`: it can list them. `spark`: it needs a session.
    """

    language: str
    name: str
    take: Callable[[Case, Ride], Answers]
    leaves: Callable[[Case], str] = lambda case: ""
    ends: bool = False
    valuations: bool = True
    spark: bool = False


# ---------------------------------------------------------------------------------------------------------------- CEQL


def _compile(case: Case, evaluator: str | None = None) -> ceql.Query:
    query = _ceql_query(case.query, _settings(case, evaluator))
    if isinstance(query, UnsupportedFeature):
        raise query
    return query


def _settings(case: Case, evaluator: str | None = None) -> Settings:
    return Settings(evaluator=evaluator, forget_keys_after=case.forget)


@lru_cache(64)
def _ceql_query(text: str, settings: Settings) -> ceql.Query | UnsupportedFeature:
    try:
        return ceql.compile(text, settings=settings)
    except UnsupportedFeature as error:
        return error


def shown(case: Case, matches: Any) -> Answers:
    """Matches as answers."""
    if case.rows:
        return [tuple(m.row.values()) for m in matches]
    if case.valuations:
        return [(int(m.start), int(m.end), tuple(sorted((x, tuple(at)) for x, at in m.bindings.items())))
                for m in matches]  # fmt: skip
    return [
        (int(m.start), int(m.end), tuple(int(p) for p in m.positions), *([m.silence] if m.silence else []))
        for m in matches
    ]


def _events_of(case: Case) -> dict[str, Any]:
    """The events as `run` takes them."""
    streams = harness.streams_of(case.events)
    return {"events": case.events} if streams is None else {"streams": streams}


def _ceql_batch(case: Case, ride: Ride, evaluator: str | None = None) -> Answers:
    return shown(case, _compile(case, evaluator).run(**_events_of(case), valuations=case.valuations))


def _ceql_tables(case: Case, ride: Ride) -> Answers:
    """Arrow tables, whose columns have one type."""
    given = _events_of(case)
    if "streams" in given:
        given = {"streams": {name: _table(events) for name, events in given["streams"].items()}}
    else:
        given = {"events": _table(case.events)}
    return shown(case, _compile(case).run(**given, valuations=case.valuations))


def _table(events: Events) -> Any:
    import pyarrow as pa

    names = dict.fromkeys(name for event in events for name in event)
    columns = {name: [event.get(name) for event in events] for name in names}
    for values in columns.values():
        if {int, float} <= {type(v) for v in values}:
            values[:] = [v if v is None else float(v) for v in values]
    return pa.table(columns)


def _open(case: Case, query: ceql.Query, state: bytes | None = None) -> ceql.Session:
    return query.open(state, streams=harness.streams_of(case.events), valuations=case.valuations)


def _push(case: Case, stream: Any, events: Events) -> list[Any]:
    """One push; events of several streams, which a push is of one of, go one after another."""
    if harness.streams_of(case.events) is None:
        return stream.push(events)
    return [m for event in events for m in stream.push(*harness.named(event))]


def _ceql_one_by_one(case: Case, ride: Ride) -> Answers:
    stream = _open(case, _compile(case))
    found = []
    for event in case.events:
        found += stream.push(*harness.named(event)) if "stream" in event else stream.push(event)
    return shown(case, found + stream.close())


def _ceql_cuts(case: Case, ride: Ride) -> Answers:
    stream = _open(case, _compile(case))
    found: list[Any] = []
    for batch in harness.cut(case.events, ride.rng, 1 + len(case.events) // 20):
        found += _push(case, stream, batch)
    return shown(case, found + stream.close())


def _ceql_snapshot(case: Case, ride: Ride, evaluator: str | None = None, batches: float = 0.5) -> Answers:
    """Batches, so often, and single events; at some cuts another query goes on from the snapshot (`Ride.anew`)."""
    query = _compile(case, evaluator)
    stream = _open(case, query)
    cuts = list(harness.cut(case.events, ride.rng, 1 + len(case.events) // 20))
    sure = ride.rng.randrange(len(cuts)) if cuts else 0
    found: list[Any] = []
    for number, batch in enumerate(cuts):
        for part in [batch] if ride.rng.random() < batches else [[event] for event in batch]:
            found += _push(case, stream, part)
        if number == sure or ride.rng.random() < harness.RESTARTS:
            if ride.anew:
                query = ceql.compile(case.query, settings=_settings(case, evaluator))
            stream = _open(case, query, stream.snapshot())
    return shown(case, found + stream.close())


def _ceql_alerts(case: Case, ride: Ride) -> Answers:
    return list(_compile(case).alerts().run(**_events_of(case)))


def _ceql_alerts_pushed(case: Case, ride: Ride) -> Answers:
    """Batches and single events by turns."""
    with _compile(case).alerts().open(streams=harness.streams_of(case.events)) as stream:
        found: list[Any] = []
        for batch in harness.cut(case.events, ride.rng, 1 + len(case.events) // 20):
            for part in [batch] if ride.rng.random() < 0.5 else [[event] for event in batch]:
                found += _push(case, stream, part)
        return found + stream.close()


def _ceql_run_command(case: Case, ride: Ride) -> Answers:
    rows = _ceql_command(case, ride, "run", ["--valuations"] if case.valuations else [])
    if case.rows:
        return [tuple(row.values()) for row in rows]
    if case.valuations:
        return [(row["start"], row["end"], tuple(sorted((x, tuple(at)) for x, at in row["bindings"].items())))
                for row in rows]  # fmt: skip
    number = ("silence",) if rows and "silence" in rows[0] else ()
    return [(row["start"], row["end"], tuple(row["positions"]), *(row[name] for name in number)) for row in rows]


def _ceql_alert_command(case: Case, ride: Ride) -> Answers:
    return [row["position"] for row in _ceql_command(case, ride, "alert", ["--follow"])]


def _ceql_command(case: Case, ride: Ride, command: str, more: list[str]) -> list[dict[str, Any]]:
    """The output of `ceql`: one stream comes on standard input, several are files."""
    from ceql.cli import main as cli

    query = ride.folder / "query.ceql"
    query.write_text(case.query, "utf-8")
    streams = harness.streams_of(case.events)
    arguments, piped = [command, str(query), "--format", "jsonl", *more, *_options(case)], b""
    if streams is None:
        arguments += ["--events", "-"]
        piped = _json_lines(case.events)
    else:
        for name, events in streams.items():
            path = ride.folder / f"{name}.jsonl"
            path.write_bytes(_json_lines(events))
            arguments += ["--stream", f"{name}={path}"]
    return _run_command(cli.main, arguments, piped)


def _options(case: Case) -> list[str]:
    """The settings of the case as a command takes them."""
    return [] if case.forget is None else ["--forget-keys-after", f"{round(case.forget * 1e9)}ns"]


def _json_lines(events: Events) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


class CommandFailed(Exception):
    """A command ended with another code than 0."""


def _run_command(main: Callable[[list[str]], int], arguments: list[str], piped: bytes) -> list[dict[str, Any]]:
    """The lines of JSON that a command prints when it is given `piped` on standard input, in this process."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(piped), "utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    finally:
        sys.stdin = before
    if code:
        raise CommandFailed(f"exit {code}: {err.getvalue()}")
    return [json.loads(line) for line in out.getvalue().splitlines()]


def _ceql_refused(case: Case, open_it: Callable[[ceql.Query], Any], evaluator: str | None = None) -> str:
    """The first line of the engine's error if it does not take the query."""
    try:
        open_it(_compile(case, evaluator))
    except UnsupportedFeature as error:
        return str(error).splitlines()[0].removeprefix("<query>: ")
    return ""


def _no_following(case: Case) -> str:
    if not case.events:
        return EMPTY_INPUT
    if harness.streams_of(case.events) is not None:
        return ONE_INPUT
    return _not_json(case)


def _no_command(case: Case) -> str:
    return EMPTY_INPUT if not case.events else _not_json(case)


def _not_json(case: Case) -> str:
    odd = any(isinstance(v, float) and not math.isfinite(v) for event in case.events for v in event.values())
    return NOT_JSON if odd else ""


def _not_lazy(case: Case, evaluator: str) -> str:
    return _ceql_refused(case, lambda query: query, evaluator)


def _no_table(case: Case) -> str:
    """Why no table holds the events."""
    kinds: dict[str, set[str]] = {}
    for event in case.events:
        for name, value in event.items():
            if value is not None:
                kinds.setdefault(name, set()).add("number" if type(value) in (int, float) else type(value).__name__)
    if not case.events:
        return EMPTY_INPUT
    return MIXED if any(len(found) > 1 for found in kinds.values()) else _unknown_attribute(case)


def _unknown_attribute(case: Case) -> str:
    query = _compile(case)
    read = {*query.attributes, *(name for bracket in query.partition for name in bracket)}
    return UNKNOWN_ATTRIBUTE if read - {name for event in case.events for name in event} else ""


# -------------------------------------------------------------------------------------------------------------- SPAseq

_BLANK = re.compile(r"_:[\w.-]+")


def plain(answer: oracle_spaseq.Answer) -> oracle_spaseq.Answer:
    """An answer in which all blank nodes have one name."""
    first, last, times, solution = answer
    terms = ((name, _BLANK.sub("_:b", term) if term[:2] == "_:" else term) for name, term in solution)
    return first, last, times, frozenset(terms)


def _files(case: Case, ride: Ride) -> tuple[dict[str, str], dict[str, str]]:
    """The streams, and the knowledge: on every road some cases have it as files that are built."""
    kb = harness.write_knowledge(case.kb, ride.folder)
    if kb and ride.rng.random() < 0.5:
        kb = {iri: build_knowledge(path, f"{path}.spaseq-kb").path for iri, path in kb.items()}
    return harness.write_streams(case.graphs, ride.folder), kb


def _spaseq_query(case: Case, evaluator: str | None = None) -> spaseq.Query:
    return _spaseq_compiled(case.query, _settings(case, evaluator))


@lru_cache(64)
def _spaseq_compiled(text: str, settings: Settings) -> spaseq.Query:
    return spaseq.compile(text, settings=settings)


def _spaseq_batch(case: Case, ride: Ride, evaluator: str | None = None, reference: bool = False) -> Answers:
    streams, kb = _files(case, ride)
    query = _spaseq_query(case, evaluator)
    return [harness.answer_of(match) for match in query.run(streams=streams, kb=kb, reference=reference)]


def _spaseq_threads(case: Case, ride: Ride) -> Answers:
    """Small batches, read and matched by several threads."""
    streams, kb = _files(case, ride)
    query = _spaseq_compiled(case.query, replace(_settings(case), threads=3))
    with in_small_batches(ride.rng.randrange(1, 12), alone=ride.rng.randrange(3)):
        return [harness.answer_of(match) for match in query.run(streams=streams, kb=kb)]


def _graph_events(case: Case, ride: Ride) -> tuple[list[Any], dict[str, Any]]:
    """The events of all streams in order, and the arguments of `open`."""
    streams, kb = _files(case, ride)
    sources = stream_sources(_spaseq_query(case).checked, streams)
    events, options = open_streams(sources, StreamOptions(), Counters())
    return list(events), {"kb": kb, "options": options}


def _spaseq_pushed(
    case: Case, ride: Ride, cuts: Callable[[list[Any], random.Random], Iterator[list[Any]]], *,
    restarts: float = 0.0, reference: bool = False,
) -> Answers:  # fmt: skip
    events, given = _graph_events(case, ride)
    batches = list(cuts(events, ride.rng))
    sure = ride.rng.randrange(len(batches)) if batches and restarts else -1
    query = _spaseq_query(case)
    session = query.open(**given, reference=reference)
    found: list[Any] = []
    for number, batch in enumerate(batches):
        found += session.push(batch)
        if number == sure or ride.rng.random() < restarts:
            if ride.anew:
                query = spaseq.compile(case.query, settings=_settings(case))
            session = query.open(session.snapshot(), **given, reference=reference)
    return [harness.answer_of(match) for match in found + session.close()]


def _single(events: list[Any], rng: random.Random) -> Iterator[list[Any]]:
    yield from ([event] for event in events)


def _spaseq_command(case: Case, ride: Ride, *more: str) -> Answers:
    """The output of `spaseq run --format jsonl`, its first stream on standard input."""
    from spaseq.cli.main import main

    query = ride.folder / "query.rq"
    query.write_text(case.query, "utf-8")
    streams, kb = _files(case, ride)
    arguments = ["run", str(query), "--format", "jsonl", *more, *_options(case)]
    first, *others = streams
    piped = Path(streams[first]).read_bytes()
    arguments += ["--stream", f"{first}=-"]
    for name in others:
        # A compressed file ends, whereas --follow waits for another to grow.
        path = Path(streams[name] + ".gz")
        path.write_bytes(gzip.compress(Path(streams[name]).read_bytes(), 1, mtime=0))
        arguments += ["--stream", f"{name}={path}"]
    if others and "--follow" in more:
        arguments += ["--lateness", "100000d"]  # which stream is ahead of which depends on threads
    for iri, file in kb.items():
        arguments += ["--kb", f"{iri}={file}"]
    times = [instant.time for instant in oracle_spaseq.instants_of(harness.streamset(case.graphs))]
    found = []
    for row in _run_command(main, arguments, piped):
        at = tuple(times[p] for p in row["positions"])
        assert [round(t * 10**9) for t in row["time"]] == [at[0], at[-1]] == [times[row["start"]], times[row["end"]]]
        bound = ((name, _term(value)) for name, value in row["bindings"].items())
        found.append((at[0], at[-1], at, frozenset(bound)))
    return found


def _term(value: Mapping[str, str]) -> str:
    """A term of SPARQL's JSON results, as N-Triples have it."""
    from rdflib import BNode, Literal, URIRef

    text = value["value"]
    match value["type"]:
        case "uri":
            return URIRef(text).n3()
        case "bnode":
            return BNode(text).n3()
    datatype = value.get("datatype")
    language = value.get("xml:lang")
    return Literal(text, lang=language, datatype=datatype and URIRef(datatype), normalize=False).n3()


def _no_empty_graph(case: Case) -> str:
    return NO_EMPTY_GRAPH if any(not text for events in case.graphs.values() for _, text in events) else ""


def _spaseq_micro_batches(case: Case, ride: Ride) -> Answers:
    from tests.support.micro_batches import in_micro_batches

    streams, kb = _files(case, ride)
    query = _spaseq_query(case)
    rows, _ = in_micro_batches(query, streams, kb, ride.rng.randrange(99), ride.rng.choice((1, 3)))
    found = []
    for _, _, _, times, *terms in rows:
        bound = ((name, term) for name, term in zip(query.variables, terms, strict=True) if term is not None)
        found.append((times[0], times[-1], tuple(times), frozenset(bound)))
    return found


# --------------------------------------------------------------------------------------------------------------- Spark


def _partitions(ride: Ride) -> int:
    return ride.rng.choice((1, 3, 8))


def _spaseq_spark(case: Case, ride: Ride, plan: str) -> Answers:
    """A batch job; `plan` as of `spaseq.spark.run`."""
    import spaseq.spark

    streams, kb = _files(case, ride)
    query, partitions = _spaseq_query(case), _partitions(ride)
    frame = spaseq.spark.run(query, ride.spark, streams, dict(kb), partitions=partitions, plan=plan)
    return _spark_answers(case, query, spaseq.spark.collect(frame))


def _spaseq_spark_stream(case: Case, ride: Ride) -> Answers:
    """A streaming job in micro-batches of few bytes, as many matches as it has left in its files."""
    import spaseq.spark

    place = Path(tempfile.mkdtemp(dir=ride.folder))
    streams, kb = _files(case, ride)
    query = _spaseq_query(case)
    reading = spaseq.spark.Reading(bounded=True, max_bytes=ride.rng.choice((300, 2_000)))
    running = spaseq.spark.start(
        query, ride.spark, streams, dict(kb), checkpoint=str(place / "state"), output=str(place / "out"),
        available_now=True, tasks=ride.rng.choice((1, 3)), reading=reading,
    )  # fmt: skip
    spaseq.spark.wait(running)
    return _spark_answers(case, query, ride.spark.read.parquet(str(place / "out")).toArrow())


def _spark_answers(case: Case, query: spaseq.Query, table: Any) -> Answers:
    times = [instant.time for instant in oracle_spaseq.instants_of(harness.streamset(case.graphs))]
    found = []
    for cells in table.to_pylist():
        at = tuple(times[p] for p in cells["positions"])
        assert (times[cells["start"]], times[cells["end"]]) == (at[0], at[-1])
        assert "time" not in cells or cells["time"] == at[-1]
        bound = {v.lstrip("?"): cells[v] for v in query.variables if cells[v] is not None}
        found.append((at[0], at[-1], at, frozenset(bound.items())))
    return found


def _in_no_slices(case: Case) -> str:
    from spaseq.spark.batch.slices import hindrance

    return hindrance(_spaseq_query(case).compiled)


def _ceql_spark(case: Case, ride: Ride) -> Answers:
    import spaseq.spark

    streams = harness.streams_of(case.events)
    given: Any = {"": case.events} if streams is None else streams
    frames = {name: data_frame(ride.spark, events).coalesce(1) for name, events in given.items()}
    found = spaseq.spark.match(_compile(case), positions=True, partitions=_partitions(ride))(frames.get("", frames))
    table = spaseq.spark.collect(found).to_pydict()
    return list(zip(table["start"], table["end"], map(tuple, table["positions"]), strict=True))


def data_frame(session: Any, events: Events) -> Any:
    """A DataFrame of dicts, columns in order of appearance."""
    names = list(dict.fromkeys(name for event in events for name in event)) or ["type"]
    kinds = {bool: "boolean", int: "bigint", float: "double", str: "string"}
    types = {name: {type(event[name]) for event in events if event.get(name) is not None} or {str} for name in names}
    columns = {
        name: "double" if found == {int, float} else list_kind(events, name) or kinds[min(found, key=str)]
        for name, found in types.items()
    }
    rows = [tuple(_cell(event.get(name), columns[name]) for name in names) for event in events]
    return session.createDataFrame(rows, ", ".join(f"`{name}` {kind}" for name, kind in columns.items()))


def list_kind(events: Events, name: str) -> str:
    """Spark's type of an attribute that is a list of texts or of numbers; empty for others."""
    lists = [event[name] for event in events if isinstance(event.get(name), list)]
    texts = any(isinstance(item, str) for items in lists for item in items)
    return "" if not lists else "array<string>" if texts else "array<double>"


def _cell(value: Any, kind: str) -> Any:
    if isinstance(value, list) and kind == "array<double>":
        return [None if v is None else float(v) for v in value]
    return float(value) if kind == "double" and value is not None else value


def _no_frame(case: Case) -> str:
    if " FOR EVERY " in case.query:
        return REPEATED
    return _no_table(case) if case.events else _unknown_attribute(case)


# ----------------------------------------------------------------------------------------------------------- the tables

EMPTY_INPUT = "a file without lines has no columns"
ONE_INPUT = "--follow reads one file as it grows"
NOT_JSON = "JSON has no number for it"
MIXED = "no column has several types"
NO_EMPTY_GRAPH = "N-Quads have no graph without triples"
UNKNOWN_ATTRIBUTE = "columns say which attributes there are, and one that no event has is an error"
REPEATED = "NOT … FOR EVERY on Spark"

_LAZY = ("chain", "tree")

ROADS: Sequence[Road] = (
    Road("ceql", "batch", _ceql_batch),
    Road("ceql", "tables", _ceql_tables, _no_table),
    Road("ceql", "one by one", _ceql_one_by_one),
    Road("ceql", "cuts", _ceql_cuts),
    Road("ceql", "snapshot", _ceql_snapshot),
    Road("ceql", "run -", _ceql_run_command, _no_command),
    *(
        Road("ceql", e, partial(_ceql_snapshot, evaluator=e), partial(_not_lazy, evaluator=e), valuations=False)
        for e in _LAZY
    ),
    Road("ceql", "auto", changing()(partial(_ceql_snapshot, batches=0.9))),
    Road("ceql", "alerts", _ceql_alerts, ends=True, valuations=False),
    Road("ceql", "pushed alerts", _ceql_alerts_pushed, ends=True, valuations=False),
    Road("ceql", "alert --follow -", _ceql_alert_command, _no_following, ends=True, valuations=False),
    Road("ceql", "spark", _ceql_spark, _no_frame, valuations=False, spark=True),
    Road("spaseq", "batch", _spaseq_batch),
    Road("spaseq", "threads", _spaseq_threads),
    Road("spaseq", "one by one", partial(_spaseq_pushed, cuts=_single)),
    Road("spaseq", "cuts", partial(_spaseq_pushed, cuts=harness.cut)),
    Road("spaseq", "snapshot", partial(_spaseq_pushed, cuts=harness.cut, restarts=harness.RESTARTS)),
    Road("spaseq", "graphs pushed", lambda case, ride: push_graphs(_spaseq_query(case), case, ride.rng)),
    Road("spaseq", "graphs run", lambda case, ride: run_graphs(_spaseq_query(case), case, ride.rng)),
    Road("spaseq", "run -", _spaseq_command, _no_empty_graph),
    Road("spaseq", "run --follow -", lambda case, ride: _spaseq_command(case, ride, "--follow"), _no_empty_graph),
    Road("spaseq", "auto", partial(_spaseq_batch, evaluator="auto")),
    Road("spaseq", "rdflib", partial(_spaseq_batch, reference=True)),
    Road("spaseq", "rdflib, one by one", partial(_spaseq_pushed, cuts=_single, reference=True)),
    Road("spaseq", "micro-batches", _spaseq_micro_batches),
    Road("spaseq", "spark", partial(_spaseq_spark, plan="table"), spark=True),
    Road("spaseq", "spark in slices", partial(_spaseq_spark, plan="slices"), _in_no_slices, spark=True),
    Road("spaseq", "spark stream", _spaseq_spark_stream, spark=True),
)

_NO_LAZY = {
    "the lazy evaluators report all matches: not consumption or LIMIT": 21,
    "the lazy evaluators do not take NOT … FOR": 38,
    "the lazy evaluators report all matches: not AFTER MATCH": 42,
    "the lazy evaluators report all matches: not SELECT FIRST": 6,
    "the lazy evaluators report all matches: not NEXT": 17,
    "the lazy evaluators report all matches: not MAX": 15,
    "the lazy evaluators report all matches: not LAST": 11,
    "the lazy evaluators report all matches: not ANY": 1,
    "the lazy evaluators do not take iterations that skip till the next match.*": 2,
    "the lazy evaluators do not take skip-till-next.*": 125,
    "the lazy evaluators do not take repetitions with UNTIL": 2,
    "the lazy evaluators do not take optional parts": 8,
    "the lazy evaluators do not take NOT of more than one event": 4,
    "the lazy evaluators do not take NOT at the border of a part, or in AND": 57,
    "the lazy evaluators do not take alternatives that differ in what must not come around them": 14,
}

LEFT_OUT: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("ceql", "tables"): {UNKNOWN_ATTRIBUTE: 2, EMPTY_INPUT: 1},
    ("ceql", "run -"): {EMPTY_INPUT: 1},
    ("ceql", "chain"): _NO_LAZY,
    ("ceql", "tree"): _NO_LAZY,
    ("ceql", "alert --follow -"): {ONE_INPUT: 6, EMPTY_INPUT: 1},
    ("ceql", "spark"): {UNKNOWN_ATTRIBUTE: 2, REPEATED: 11},
    ("spaseq", "spark in slices"): {
        "without WITHIN a match may begin anywhere": 196,
        "WITHIN … EVENTS counts the instants of the whole stream": 6,
        "what must not come for a time may lie outside of the window": 4,
        "FIRST reports one match of the whole stream, or of each key": 1,
        "what AFTER MATCH discards reaches back beyond any window": 1,
    },
}  # fmt: skip
"""By road, the known refusals (regular expressions), and the number of cases of each."""


def roads(case: Case) -> Iterator[Road]:
    """The roads of the case's language, for valuations those that list them."""
    language = "spaseq" if case.is_spaseq else "ceql"
    return (road for road in ROADS if road.language == language and (road.valuations or not case.valuations))


def expected(case: Case, road: Road) -> Counter[Any]:
    """The answers that the road is to give."""
    if case.is_spaseq:
        return Counter(_definition_answers(case.query, repr(case.graphs), repr(case.kb)))
    if case.valuations:
        assert case.bindings is not None
        return Counter((s, e, tuple((x, tuple(at)) for x, at in taken)) for s, e, taken in case.bindings)
    assert case.matches is not None
    return Counter({end for _, end, *_ in case.matches} if road.ends else case.matches)


def given(case: Case, road: Road, ride: Ride) -> Counter[Any]:
    """The answers that the road gives."""
    found = road.take(case, ride)
    return Counter(map(plain, found) if case.is_spaseq else found)


@cache
def _definition_answers(query: str, graphs: str, kb: str) -> frozenset[oracle_spaseq.Answer]:
    return frozenset(map(plain, harness.spaseq_oracle(query, ast.literal_eval(graphs), ast.literal_eval(kb))))
