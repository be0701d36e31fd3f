"""Graphs that are pushed as they happen, one at a time and many at once.

Claim: a single push costs next to nothing if the graph does not have the predicates of any GPM. Otherwise it costs at
most 60 µs, even if each graph begins a run. Graphs have eight triples (seed 42), stock trades. The GPMs are three
triple patterns under a FILTER, so that most trades move no run, and the same without it, so that each begins one. Both
are also measured over one company's trades. "events" are graphs; 1, 2, 10, 100, 1000 are pushed at once.

With OPTIONAL, or UNION and a path, a single push that begins a run takes at most twice the time, with an average and a
sum at most 2.5 times. If the FILTER removes the graph, OPTIONAL, UNION and paths cost next to nothing.

`python -m benchmarks.pushes` prints the cost of a single push: the least of 12 runs for each of the graphs, warm,
without the first 50, at which arrays grow. Appends to results/DATE-pushes.csv.
"""

from __future__ import annotations

import csv
import datetime
import gc
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from rdflib import Literal, URIRef
from rdflib.namespace import XSD

import spaseq
from benchmarks.harness import Workload
from spaseq.rdf import GraphEvent, Triple

SEED, GRAPHS, TRIPLES = 42, 2_000, 8
SIZES = (1, 2, 10, 100, 1_000)
NS = "http://stock.org/ns#"
_HEAD = f"PREFIX : <{NS}> SELECT * WITHIN 1 MINUTES %s FROM STREAM S <urn:s> WHERE {{ SEQ (A; B)"
QUERIES = {
    "filtered": _HEAD % ""
    + """ DEFINE GPM A ON S { ?t :company ?company ; :price ?p1 ; :volume ?v . FILTER (?v > 9500) }
          DEFINE GPM B ON S { ?u :company ?company ; :price ?p2 ; :halt ?w } }""",
    "each begins a run": _HEAD % ""
    + """ DEFINE GPM A ON S { ?t :company ?company ; :price ?p1 ; :volume ?v }
          DEFINE GPM B ON S { ?u :company ?company ; :price ?p2 ; :halt ?w } }""",
    "by company": _HEAD % "PARTITION BY (?company)"
    + """ DEFINE GPM A ON S { ?t :company ?company ; :price ?p1 ; :volume ?v . FILTER (?v > 9500) }
          DEFINE GPM B ON S { ?u :company ?company ; :price ?p2 ; :volume ?w . FILTER (?w < 500 && ?p2 > 100) } }""",
}
_OPERATORS = {
    "OPTIONAL": "?t :company ?company ; :price ?p1 ; :volume ?v OPTIONAL { ?t :other0 ?o }",
    "UNION and a path": "?t :company ?company ; :volume ?v { ?t :price ?p1 } UNION { ?t :ask/:at ?p1 }",
    "average and sum": """{ SELECT ?company (AVG(?p) AS ?p1) (SUM(?n) AS ?v)
        { ?t :company ?company ; :price ?p ; :volume ?n } GROUP BY ?company }""",
}
SINGLE = QUERIES | {
    f"{name}, {way}": _HEAD % ""
    + f""" DEFINE GPM A ON S {{ {body} {condition} }}
           DEFINE GPM B ON S {{ ?u :company ?company ; :price ?p2 ; :halt ?w }} }}"""
    for way, condition in (("filtered", "FILTER (?v > 9500)"), ("each begins a run", ""))
    for name, body in _OPERATORS.items()
}
"""The queries whose single pushes `main` measures."""


def trade(number: int, rng: random.Random, volume: str = "volume") -> GraphEvent:
    """A trade every 100 ms, with as many triples that no query reads as make up `TRIPLES`."""
    subject = URIRef(f"http://stock.org/trade/{number}")
    triples: list[Triple] = [
        (subject, URIRef(NS + "company"), URIRef(f"http://stock.org/company/{rng.randrange(50)}")),
        (subject, URIRef(NS + "price"), Literal(str(rng.randrange(1, 2_000) / 10), datatype=XSD.decimal)),
        (subject, URIRef(NS + volume), Literal(str(rng.randrange(1, 10_000)), datatype=XSD.integer)),
    ]
    triples += [
        (subject, URIRef(f"{NS}other{i}"), Literal(str(rng.randrange(10**6)), datatype=XSD.integer))
        for i in range(TRIPLES - len(triples))
    ]
    return GraphEvent("urn:s", 1_781_500_000_000_000_000 + number * 100_000_000, tuple(triples), None, "", number + 1)


def pushing(text: str, size: int, volume: str = "volume") -> Callable[[], int]:
    """A session of its own, `size` graphs at a time; the graphs are made before."""
    query, rng = spaseq.compile(text), random.Random(SEED)
    graphs = [trade(number, rng, volume) for number in range(GRAPHS)]

    def run() -> int:
        session = query.open(keep_events=False)
        return sum(len(session.push(graphs[i : i + size])) for i in range(0, GRAPHS, size))

    return run


def workloads() -> list[Workload]:
    """Three queries at five sizes, and graphs without a predicate that a GPM needs."""
    claim = "a single push: at most 60 µs"
    found = [
        Workload(f"{name}, {size:,} at once", claim, GRAPHS, pushing(text, size))
        for name, text in QUERIES.items()
        for size in SIZES
    ]
    away = pushing(QUERIES["filtered"], 1, "quantity")
    return [*found, Workload("turned away, 1 at once", claim, GRAPHS, away)]


def least(text: str, runs: int = 12) -> list[float]:
    """The microseconds of a push of each graph by itself, ascending: the least of `runs` sessions."""
    query, rng = spaseq.compile(text), random.Random(SEED)
    graphs = [trade(number, rng) for number in range(GRAPHS)]
    best = [float("inf")] * GRAPHS
    for _ in range(runs):
        session = query.open(keep_events=False)
        gc.collect()
        gc.disable()
        for number, graph in enumerate(graphs):
            began = time.perf_counter_ns()
            session.push(graph)
            best[number] = min(best[number], (time.perf_counter_ns() - began) / 1000)
        gc.enable()
    return sorted(best[50:])


def main() -> None:
    """A row for each query."""
    path = Path(__file__).parent / "results" / f"{datetime.date.today().isoformat()}-pushes.csv"
    rows: list[tuple[object, ...]] = [] if path.exists() else [("query", "median_us", "mean_us", "p90_us")]
    for name, text in SINGLE.items():
        each = least(text)
        figures = statistics.median(each), statistics.mean(each), each[len(each) * 9 // 10]
        rows.append((name, *(f"{figure:.1f}" for figure in figures)))
        print(*rows[-1])
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
