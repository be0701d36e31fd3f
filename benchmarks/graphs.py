"""Graph patterns over streams: from the bytes of a file to results, beside the parser alone and beside rdflib.

Claim: matching graphs costs less than reading them, and the size of the background knowledge does not matter. The
streams are those of `reading` (seed 42), smart-grid readings, stock trades and card payments, and reports of eight
sensors in one graph. The queries are of the kinds of [SPAseq]'s use cases:

* a join with knowledge and two GPMs that share a place;
* two trades of one company;
* a small payment behind a large one on one card;
* GPMs of several mappings an event, of which one sensor's go together. "events" are triples, "matches" results. All
  ways in one run.

The comparison is rdflib, event by event, as its users would write it. The event's triples are the default graph of a
dataset, the knowledge its named graph, each GPM a prepared query. No event is filtered out beforehand, and no sequence
is recognised.
"""

from __future__ import annotations

import csv
import gc
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import cache, partial
from pathlib import Path

import spaseq
from benchmarks import reading
from benchmarks.harness import Workload
from benchmarks.reading import graph_events
from spaseq.core import jit
from spaseq.gpm import Knowledge
from spaseq.rdf import GraphEvent, StreamOptions

TRIPLES, TRIPLES_BY_RDFLIB = 500_000, 10_000
KNOWLEDGE = (10_000, 100_000, 1_000_000)
GRID = "http://smartgrid.org/ns#"

SMART_GRID = f"""
PREFIX : <{GRID}>
SELECT ?house ?city ?fr1 ?other ?fr2 WITHIN 5 MINUTES FROM STREAM S <urn:s>
WHERE {{ SEQ (A; B)
  DEFINE GPM A ON S {{ ?house :loc ?l ; :pow ?p1 . ?p1 :source "fuel" ; :fare ?fr1 . FILTER (?fr1 > 45)
                       GRAPH <urn:db> {{ ?house :locatedIn ?city }} }}
  DEFINE GPM B ON S {{ ?other :loc ?l ; :pow ?p2 . ?p2 :source "solar" ; :fare ?fr2 . FILTER (?fr2 < 5) }} }}
"""
PATTERN = f"""
PREFIX : <{GRID}>
SELECT ?house ?city ?fr1 WITHIN 5 MINUTES FROM STREAM S <urn:s>
WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?house :loc ?l ; :pow ?p1 . ?p1 :source "fuel" ; :fare ?fr1 . FILTER (?fr1 > 45)
                                      GRAPH <urn:db> {{ ?house :locatedIn ?city }} }} }}
"""
STOCK = """
PREFIX : <http://stock.org/ns#>
SELECT ?company ?p1 ?p2 WITHIN 1 MINUTES PARTITION BY (?company) FROM STREAM S <urn:s>
WHERE { SEQ (A; B)
  DEFINE GPM A ON S { ?t :company ?company ; :price ?p1 ; :volume ?v . FILTER (?v > 9500) }
  DEFINE GPM B ON S { ?u :company ?company ; :price ?p2 ; :volume ?w . FILTER (?w < 500 && ?p2 > 100) } }
"""
CARD = """
PREFIX : <http://card.org/ns#>
SELECT ?card ?a1 ?a2 WITHIN 30 MINUTES PARTITION BY (?card) FROM STREAM S <urn:s>
WHERE { SEQ (A; B)
  DEFINE GPM A ON S { ?t a :Purchase ; :card ?card ; :amount ?a1 ; :place ?place . FILTER (?a1 > 950) }
  DEFINE GPM B ON S { ?u a :Withdrawal ; :card ?card ; :amount ?a2 . FILTER (?a2 < 20) } }
"""
SENSORS = """
PREFIX : <http://sensors.org/ns#>
SELECT ?sensor ?t1 ?t2 WITHIN 10 SECONDS FROM STREAM S <urn:s>
WHERE { SEQ (A; B)
  DEFINE GPM A ON S { ?sensor :in ?room ; :temperature ?t1 . FILTER (?t1 > 38) }
  DEFINE GPM B ON S { ?sensor :in ?room ; :temperature ?t2 . FILTER (?t2 < 12) } }
"""
QUERIES = {"smart grid": SMART_GRID, "stock": STOCK, "card": CARD, "sensors": SENSORS}


def sensors(rng: random.Random) -> Iterator[str]:
    """Every second a graph with the measurements of eight of 200 sensors."""
    number = 0
    while True:
        graph = f"<http://sensors.org/report/{number}>"
        time = datetime.fromtimestamp(1_781_500_000 + number, UTC)
        yield f'{graph} <{reading.PROV}> "{time:%Y-%m-%dT%H:%M:%SZ}"^^<{reading.XSD}dateTime> {graph} .\n'
        for sensor in rng.sample(range(200), 8):
            subject = f"<http://sensors.org/id/{sensor}>"
            yield f"{subject} <http://sensors.org/ns#in> <http://sensors.org/room/{sensor % 20}> {graph} .\n"
            value = f'"{rng.randrange(100, 400) / 10}"^^<{reading.XSD}decimal>'
            yield f"{subject} <http://sensors.org/ns#temperature> {value} {graph} .\n"
        number += 1


STREAMS = {**reading.STREAMS, "sensors": ("nq", sensors, StreamOptions())}


def write(folder: Path, name: str, triples: int) -> str:
    """A file of so many statements."""
    ending, lines, _ = STREAMS[name]
    path = folder / f"{name.replace(' ', '-')}-{triples}.{ending}"
    made = lines(random.Random(reading.SEED))
    path.write_text("".join(next(made) for _ in range(triples)), "ascii")
    return str(path)


@cache
def knowledge(triples: int) -> Knowledge:
    """The places of the houses, and so many triples in all about places that no stream names."""
    from rdflib import Graph, URIRef

    graph = Graph(bind_namespaces="none")
    for number in range(triples):
        house = f"H{number}" if number < 1_000 else f"X{number}"
        place = URIRef(f"http://smartgrid.org/city/{number % 97}")
        graph.add((URIRef(f"http://smartgrid.org/id/{house}"), URIRef(f"{GRID}locatedIn"), place))
    return Knowledge({"urn:db": graph})


def by_spaseq(name: str, text: str, path: str, size: int) -> Callable[[], int]:
    """From the file to results, as columns. The knowledge is made and evaluated in the warm-up."""
    query = spaseq.compile(text)
    _, _, options = STREAMS[name]
    return lambda: query.run({"S": path}, knowledge(size), options=options, keep_events=False).count()


def by_rdflib(name: str, text: str, path: str, size: int) -> Callable[[], int]:
    """From the file to the solutions of each GPM on each event, by rdflib as it comes. Events are cut by spaseq."""
    from rdflib import Dataset, URIRef
    from rdflib.plugins.sparql import prepareQuery

    dataset = Dataset()
    for iri, graph in knowledge(size).graphs.items():
        named = dataset.graph(URIRef(iri))
        for triple in graph:
            named.add(triple)
    prefix = re.search(r"PREFIX : <[^>]*>", text)
    assert prefix is not None
    groups = re.findall(r"DEFINE GPM \w+ ON \w+ (\{(?:[^{}]|\{[^{}]*\})*\})", text)
    queries = [prepareQuery(f"{prefix[0]} SELECT * {group}") for group in groups]
    default = dataset.default_graph
    _, _, options = STREAMS[name]

    def run() -> int:
        found = 0
        for event in graph_events(path, options):
            for triple in event.triples:
                default.add(triple)
            found += sum(1 for query in queries for _ in dataset.query(query))
            default.remove((None, None, None))
        return found

    return run


def workloads() -> list[Workload]:
    """Three ways for four queries, and one query over knowledge of three sizes."""
    folder = Path(tempfile.mkdtemp(prefix="spaseq-graphs-"))
    found = []
    for name, text in QUERIES.items():
        path, short = write(folder, name, TRIPLES), write(folder, name, TRIPLES_BY_RDFLIB)
        small = KNOWLEDGE[0]
        claim = "file to results"
        found += [
            Workload(f"{name}, parser", "the strict parser, into nothing", TRIPLES, reading.by_parser(path)),
            Workload(
                f"{name}, results", claim, TRIPLES, by_spaseq(name, text, path, small), "at least 0.8x the parser"
            ),
            Workload(f"{name}, rdflib", "solutions only", TRIPLES_BY_RDFLIB, by_rdflib(name, text, short, small)),
        ]
    path = str(folder / f"smart-grid-{TRIPLES}.nq")
    for size in KNOWLEDGE:
        run = by_spaseq("smart grid", PATTERN, path, size)
        found.append(Workload(f"one GPM, kb {size:,}", "flat in the knowledge", TRIPLES, run))
    return found


# -- shapes of queries: `python -m benchmarks.graphs`, as parts of the parser's rate

SHAPE_TRIPLES = 100_000
_TRADE = "?t :company ?company ; :price ?p ; :volume ?v"


def _stock(select: str, group: str, more: str = "", *, window: str = "1 MINUTES") -> str:
    return (
        f"PREFIX : <http://stock.org/ns#> PREFIX xsd: <{reading.XSD}>\nSELECT {select} WITHIN {window} "
        f"FROM STREAM S <urn:s>\nWHERE {{ SEQ (A) DEFINE GPM A ON S {{ {group} }} }} {more}"
    )


def _grid(select: str, group: str) -> str:
    return (
        f"PREFIX : <{GRID}>\nSELECT {select} WITHIN 5 MINUTES FROM STREAM S <urn:s>\n"
        f"WHERE {{ SEQ (A) DEFINE GPM A ON S {{ {group} }} }}"
    )


def _steps(number: int) -> str:
    names = [f"G{i}" for i in range(number)]
    gpms = "\n".join(
        f"DEFINE GPM {name} ON S {{ ?t{i} :company ?company ; :price ?p{i} ; :volume ?v{i} . "
        f"FILTER (?v{i} > {9000 if i else 9800}) }}"
        for i, name in enumerate(names)
    )
    return (
        f"PREFIX : <http://stock.org/ns#>\nSELECT ?company ?p0 WITHIN 1 MINUTES PARTITION BY (?company) "
        f"FROM STREAM S <urn:s>\nWHERE {{ SEQ ({'; '.join(names)})\n{gpms} }}"
    )


def _rounds(select: str, more: str = "") -> str:
    """Some trades of much volume and the one behind them: of one company, without others of it between."""
    gpms = "\n".join(
        f"DEFINE GPM {name} ON S {{ ?{name.lower()} :company ?company ; :price ?p{name} ; :volume ?v{name} . "
        f"FILTER ({condition}) }}"
        for name, condition in (("A", "?vA > 5000"), ("B", "?vB > 5000"), ("C", "?vC > 0"))
    )
    return (
        f"PREFIX : <http://stock.org/ns#>\nSELECT {select} WITHIN 1 MINUTES PARTITION BY (?company) "
        f"FROM STREAM S <urn:s>\nWHERE {{ SEQ (A, B+, C)\n{gpms} }} {more}"
    )


_IRIS = ", ".join(f"<http://smartgrid.org/id/H{i * 5}>" for i in range(200))
_VALUES = " ".join(f'("S{i}" {i})' for i in range(500))
SHAPES: dict[str, tuple[str, str]] = {
    "every event a row": ("stock", _stock("?company ?p ?v", _TRADE)),
    "SELECT expression, dense": ("stock", _stock("?company (?p * ?v AS ?w)", _TRADE)),
    "SELECT expression, sparse": ("stock", _stock("?company (?p * ?v AS ?w)", _TRADE + " FILTER (?v > 9800)")),
    "GROUP BY": ("stock", _stock("?company (AVG(?p) AS ?m) (COUNT(?t) AS ?n)", _TRADE, "GROUP BY ?company")),
    "ORDER BY LIMIT 3": ("stock", _stock("?company ?p", _TRADE, "ORDER BY DESC(?p) LIMIT 3")),
    "DISTINCT": ("stock", _stock("DISTINCT ?company", _TRADE)),
    "BIND of arithmetic, dense": ("stock", _stock("?company ?w", _TRADE + " BIND (?p * ?v AS ?w)")),
    "BIND of arithmetic, sparse": (
        "stock", _stock("?company ?w", _TRADE + " BIND (?p * ?v AS ?w) FILTER (?w > 1900000)")),
    "FILTER before BIND": ("stock", _stock("?company ?w", _TRADE + " FILTER (?v > 9800) BIND (?p * ?v AS ?w)")),
    "FILTER of arithmetic": ("stock", _stock("?company ?p", _TRADE + " FILTER (?p * ?v > 1900000)")),
    "ROUND": ("stock", _stock("?company ?p", _TRADE + " FILTER (ROUND(?p) = 190)")),
    "IN of 200 IRIs": ("smart grid", _grid("?h ?f", f"?h :pow ?w . ?w :fare ?f FILTER (?f > 48 && ?h IN ({_IRIS}))")),
    "NOT IN of 200 IRIs": (
        "smart grid", _grid("?h ?f", f"?h :pow ?w . ?w :fare ?f FILTER (?h NOT IN ({_IRIS}) && ?f > 49)")),
    "CONTAINS": ("smart grid", _grid("?h ?w", '?h :pow ?w FILTER (CONTAINS(STR(?w), "Pw99"))')),
    "CONTAINS, distinct texts": ("stock", _stock("?t", '?t :company ?c FILTER (CONTAINS(STR(?t), "777"))')),
    "REGEX, distinct texts": ("stock", _stock("?t", '?t :company ?c FILTER (REGEX(STR(?t), "77[0-9]7$"))')),
    "LANG, distinct texts": ("stock", _stock("?t", '?t :price ?p FILTER (LANG(?p) = "en")')),
    "negated set": ("smart grid", _grid("?h ?w", "?h !(:loc|:source) ?w . FILTER (isLiteral(?w) && ?w = 1.5)")),
    "optional path": ("smart grid", _grid("?h ?f", "?h (:pow/:fare)? ?f FILTER (isNumeric(?f) && ?f > 49.9)")),
    "500 mappings": (
        "stock", _stock("?company ?k ?p", f"?t :company ?company ; :price ?p VALUES (?company ?k) {{ {_VALUES} }} "
                        "FILTER (?p > 199)")),
    "SEQ of 10": ("stock", _steps(10)),
    "SEQ of 20": ("stock", _steps(20)),
    "A, B+, C": ("stock", _rounds("?company ?pA ?pC")),
    "list of rounds": ("stock", _rounds("?company (?pB+ AS ?ps)")),
    "AVG over rounds": ("stock", _rounds("?company (AVG(?pB) AS ?m)")),
    "ORDER BY over rounds": ("stock", _rounds("?company (AVG(?pB) AS ?m)", "ORDER BY DESC(?m) LIMIT 3")),
    "DISTINCT lists": ("stock", _rounds("DISTINCT ?company (?pB+ AS ?ps)")),
}  # fmt: skip


def _write(query: spaseq.Query, run: Callable[[], spaseq.Matches], form: str) -> int:
    from spaseq.cli.output import FoundResults, write_results

    with open(os.devnull, "w") as out:
        return write_results(form, FoundResults(run(), query, None, False), out)


def _knowledge_of(path: str) -> int:
    """Read, and matched for the first time."""
    query = spaseq.compile(PATTERN)
    solver = query.compiled.solver({"urn:db": path})
    event = GraphEvent("urn:s", 0, (), None)
    return len(solver.solve_pushed("urn:s", [event]))


def _ways(folder: Path) -> Iterator[tuple[str, str, Callable[[], int]]]:
    """Each way, and the file that it reads."""
    paths = {name: write(folder, name, SHAPE_TRIPLES) for name in ("stock", "smart grid")}
    for name, (stream, text) in SHAPES.items():
        query, path = spaseq.compile(text), paths[stream]
        run = partial(_matches, query, path, STREAMS[stream][2])
        yield f"{name}, count", path, partial(_count, run)
        yield f"{name}, Arrow", path, partial(_columns, run)
        if name == "every event a row":
            for form in ("jsonl", "csv", "json"):
                yield f"{name}, {form}", path, partial(_write, query, run, form)
    known = folder / "knowledge.nt"
    with known.open("w") as file:
        for number in range(SHAPE_TRIPLES):
            house, city = f"{'H' if number < 1_000 else 'X'}{number}", number % 97
            file.write(f"<http://smartgrid.org/id/{house}> <{GRID}locatedIn> <http://smartgrid.org/city/{city}> .\n")
    yield "knowledge loaded and matched", str(known), partial(_knowledge_of, str(known))


def _matches(query: spaseq.Query, path: str, options: StreamOptions) -> spaseq.Matches:
    return query.run({"S": path}, {}, options=options, keep_events=False)


def _count(run: Callable[[], spaseq.Matches]) -> int:
    return run().count()


def _columns(run: Callable[[], spaseq.Matches]) -> int:
    return len(run().to_arrow())


def shapes(only: str = "", runs: int = 3) -> None:
    """Processor time of each shape, the least of `runs`, beside that of the parser on the same file in the same minute.
    Appends to results/DATE-shapes.csv.

    Kernels are compiled in the first run of each. Without a cache on the disk a process interprets small calls for some
    seconds. That cost fell on the shapes that make such calls (those with few rows, at a third of their rate).
    """
    jit.BUDGET = 0.0
    folder = Path(tempfile.mkdtemp(prefix="spaseq-shapes-"))
    today = date.today().isoformat()
    path = Path(__file__).parent / "results" / f"{today}-shapes.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if fresh:
            out.writerow(["shape", "triples", "results", "processor_s", "of_parser", "commit"])
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
        for name, file_name, run in _ways(folder):
            if only not in name:
                continue
            parser, found = reading.by_parser(file_name), run()
            own: list[float] = []
            other: list[float] = []
            for _ in range(runs):
                for work, times in ((parser, other), (run, own)):
                    gc.collect()
                    begin = time.process_time()
                    work()
                    times.append(time.process_time() - begin)
            part = min(other) / min(own)
            print(f"{name:36} {found:>8,} {min(own):8.3f} s {part:6.2f} of the parser", flush=True)
            out.writerow([name, SHAPE_TRIPLES, found, f"{min(own):.4f}", f"{part:.3f}", commit.stdout.strip()])


if __name__ == "__main__":
    shapes(sys.argv[1] if len(sys.argv) > 1 else "")
