"""Cases and the evaluators that run them: the naive one, the engine whole and in batches, and Spark.

A file of `cases/` holds `[[case]]` tables (and `[streams.NAME]` tables they share). The keys of a case:

    name        what it shows
    query       the text of the query; SPAseq if it has a FROM STREAM, else CEQL
    word        events given by their types alone, apart by spaces
    columns, rows   events as a table with a `type` column; the text NULL stands for a missing value, in lists, too; a
                column `stream` has the stream of each event
    stream      the name of a shared `[streams.NAME]` that has one of the above
    graphs      for SPAseq: for each stream name a list of [time in seconds, triples in Turtle]; `:` is
    http://example.org/
    kb          for SPAseq: for each IRI the triples of a graph of background knowledge
    matches     expected [start, end, [positions]], in any order; with NOT … FOR EVERY also the number of the silence
    bindings    for CEQL, of valuations: expected [start, end, {variable: [positions]}], in any order
    solutions   for SPAseq: expected tables with `time` and the variables' terms in Turtle, in any order
    instants    for SPAseq: expected times of all matched instants, in any order
    error, message  for a wrong query: the class of the exception, and a part of its text

The cases that a road into the engine does not take stand in `roads.py`.
"""

from __future__ import annotations

import functools
import random
import signal
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import oracle, oracle_ceql_text, oracle_repeated, oracle_spaseq, oracle_spaseq_text

CASES = Path(__file__).resolve().parents[1] / "cases"
NAMESPACE = "http://example.org/"
Events = list[dict[str, Any]]
Graphs = Mapping[str, Sequence[tuple[float, str]]]
Solutions = set[tuple[int, oracle_spaseq.Solution]]


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a file; `place` is the file's name and the case's, for messages."""

    place: str
    query: str
    events: Events = field(default_factory=list)
    graphs: Graphs = field(default_factory=dict)
    kb: dict[str, str] = field(default_factory=dict)
    matches: list[oracle.Match] | None = None
    bindings: list[Any] | None = None
    solutions: list[dict[str, Any]] | None = None
    instants: list[list[float]] | None = None
    error: str | None = None
    message: str = ""
    valuations: bool = False
    """True if it has `bindings` in place of `matches`."""
    rows: bool = False
    """True if the answers are the rows that SELECT computes."""
    forget: float | None = None
    """`Settings.forget_keys_after`."""

    @property
    def is_spaseq(self) -> bool:
        return "FROM STREAM" in self.query.upper()


def load(path: Path) -> list[Case]:
    """The cases of a file; raises on a key that is not known."""
    document = tomllib.loads(path.read_text("utf-8"))
    shared = document.get("streams", {})
    return [_case(table, f"{path.stem}: {table['name']}", shared) for table in document["case"]]


@functools.cache
def load_all() -> list[Case]:
    """Every case of the folder, by file name; read once."""
    return [case for path in sorted(CASES.glob("*.toml")) for case in load(path)]


def _without_null(value: Any) -> Any:
    return [None if each == "NULL" else each for each in value] if isinstance(value, list) else value


def _case(table: dict[str, Any], place: str, shared: Mapping[str, dict[str, Any]]) -> Case:
    rest = dict(table)
    del rest["name"]
    stream = rest.pop("stream", None)
    source = {**(shared[stream] if stream else {}), **rest}
    events: Events = []
    if "word" in source:
        events = [{"type": name} for name in source["word"].split()]
    elif "rows" in source:
        rows = [zip(source["columns"], row, strict=True) for row in source["rows"]]
        events = [{c: _without_null(v) for c, v in row if v != "NULL"} for row in rows]
    graphs = {name: [(time, text) for time, text in events] for name, events in source.get("graphs", {}).items()}
    matches = rest.get("matches")
    known = {"query", "word", "columns", "rows", "graphs", "kb", "matches", "bindings", "solutions", "instants"}
    known |= {"error", "message"}
    assert rest.keys() <= known, f"{place}: {sorted(rest.keys() - known)}"
    return Case(
        place,
        rest["query"],
        events,
        graphs,
        source.get("kb", {}),
        None if matches is None else sorted((s, e, tuple(sorted(d)), *number) for s, e, d, *number in matches),
        sorted([s, e, sorted(v.items())] for s, e, v in rest["bindings"]) if "bindings" in rest else None,
        rest.get("solutions"),
        rest.get("instants"),
        rest.get("error"),
        rest.get("message", ""),
    )


# --------------------------------------------------------------------------------------------------------------- CEQL


def ceql_oracle(query: str, events: Events) -> list[oracle.Match]:
    """The matches of the naive evaluator, sorted."""
    return oracle_repeated.evaluate(oracle_ceql_text.read(query), events)


@functools.lru_cache(256)
def _compile_once(text: str) -> Any:
    """A query, compiled once for the many streams of a test, which takes as long as a short stream does."""
    import ceql

    return ceql.compile(text)


def ceql_whole(query: str, events: Events) -> list[oracle.Match]:
    """The matches of the engine for the whole stream at once, in its own order."""
    streams = streams_of(events)
    compiled = _compile_once(query)
    matches = compiled.run(events) if streams is None else compiled.run(streams=streams)
    return [_plain(match) for match in matches]


def streams_of(events: Events) -> dict[str, Events] | None:
    """The events by their `stream`, if they have one; it is no attribute of theirs."""
    if not any("stream" in event for event in events):
        return None
    streams: dict[str, Events] = {}
    for event in events:
        streams.setdefault(event["stream"], []).append({k: v for k, v in event.items() if k != "stream"})
    return streams


def ceql_batches(query: str, batches: Sequence[Events], randomness: random.Random) -> list[oracle.Match]:
    """The matches of the engine for the stream in `batches`, now and then through a snapshot."""
    import ceql

    compiled = ceql.compile(query)
    names = streams_of([event for batch in batches for event in batch])
    stream = compiled.open(streams=names)
    found = []
    for batch in batches:
        for part in [batch] if names is None else [[event] for event in batch]:
            own = [named(event) for event in part] if names is not None else [(part, None)]
            found += [_plain(m) for given in own for m in stream.push(*given)]
        if randomness.random() < RESTARTS:
            stream = compiled.open(stream.snapshot())
    return found + [_plain(match) for match in stream.close()]


Bindings = list[Any]
"""[start, end, [(variable, positions), …]] of each valuation, all in order."""


def ceql_bindings_by_definition(query: str, events: Events) -> Bindings:
    """The valuations that the naive evaluator reports, of the variables that a query shows."""
    read = oracle_ceql_text.read(query)
    shown = read.select if read.select is not None else oracle_ceql_text.shown(read.formula)
    found = {
        (s, e, tuple((x, tuple(sorted(at))) for x, at in taken if x in shown))
        for s, e, taken in oracle.evaluate_valuations(read, events)
    }
    return sorted([s, e, [(x, list(at)) for x, at in taken]] for s, e, taken in found)


RESTARTS = 0.2
"""The share of batches at which a stream goes on from a snapshot of itself."""


def _plain(match: Any) -> oracle.Match:
    return int(match.start), int(match.end), tuple(int(p) for p in match.positions)


def named(event: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """An event without its `stream`, and that."""
    return {k: v for k, v in event.items() if k != "stream"}, event["stream"]


def cut(events: Sequence[Any], randomness: random.Random, scale: int = 1) -> Iterator[list[Any]]:
    """`events` in consecutive pieces of random size, some of them empty; `scale` makes them longer."""
    done = 0
    while done < len(events):
        size = scale * randomness.choice((0, 1, 1, 2, 3, 5))
        yield list(events[done : done + size])
        done += size


# ------------------------------------------------------------------------------------------------------------- SPAseq


def streamset(graphs: Graphs) -> dict[str, list[tuple[int, oracle_spaseq.Graph]]]:
    """The streams of a case for the naive evaluator."""
    return {
        name: [(round(time * 10**9), oracle_spaseq_text.read_graph(text, NAMESPACE)) for time, text in events]
        for name, events in graphs.items()
    }


def knowledge(kb: Mapping[str, str]) -> dict[str, oracle_spaseq.Graph]:
    """The background knowledge of a case for the naive evaluator."""
    return {f"<{iri}>": oracle_spaseq_text.read_graph(text, NAMESPACE) for iri, text in kb.items()}


def spaseq_oracle(query: str, graphs: Graphs, kb: Mapping[str, str]) -> set[oracle_spaseq.Answer]:
    """The answers of the naive evaluator."""
    return oracle_spaseq.evaluate(oracle_spaseq_text.read(query), streamset(graphs), knowledge(kb))


def expected_solutions(case: Case) -> Solutions:
    """The `solutions` of a case as pairs (time in ns, mapping)."""
    assert case.solutions is not None
    found = set()
    for table in case.solutions:
        terms = {v: term(text) for v, text in table.items() if v != "time"}
        found.add((round(table["time"] * 10**9), frozenset(terms.items())))
    return found


def term(text: str) -> str:
    """A term written in Turtle, as the naive evaluator holds it."""
    ((_, _, value),) = oracle_spaseq_text.read_graph(f":s :p {text}", NAMESPACE)
    return value


def write_streams(graphs: Graphs, folder: Path) -> dict[str, str]:
    """The streams of a case as files, by stream name: a named graph for each event, its time beside it. N-Quads, but
    TriG if a graph has no triples."""
    paths = {}
    for name, events in streamset(graphs).items():
        lines = []
        for number, (time, graph) in enumerate(events):
            label = f"<{NAMESPACE}{name}/{number}>"
            lines.append(f'{label} <http://www.w3.org/ns/prov#generatedAtTime> "{time / 10**9:g}" .')
            if all(graph for _, graph in events):
                lines += [f"{s} {p} {o} {label} ." for s, p, o in sorted(graph)]
            else:
                lines.append(f"{label} {{ {' . '.join(' '.join(triple) for triple in sorted(graph))} }}")
        path = folder / f"{name}.{'nq' if all(graph for _, graph in events) else 'trig'}"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        paths[name] = str(path)
    return paths


def write_knowledge(kb: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The background knowledge of a case as N-Triples files, by IRI."""
    paths = {}
    for number, (iri, graph) in enumerate(sorted(knowledge(kb).items())):
        path = folder / f"knowledge{number}.nt"
        path.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in sorted(graph)), "utf-8")
        paths[iri.strip("<>")] = str(path)
    return paths


def answer_of(match: Any) -> oracle_spaseq.Answer:
    times = tuple(int(t) for t in match.times)
    return times[0], times[-1], times, frozenset((v, t.n3()) for v, t in match.bindings.items())


# -- processes


def hear_interrupts() -> None:
    """For `preexec_fn`: a process that is started in the background of a shell does not hear Ctrl-C, nor do those that
    it starts; this one does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
