"""Graph patterns over streams: from the bytes of a file to results, beside the parser alone and beside rdflib.

Claim: matching graphs costs less than reading them, and the size of the background knowledge does not matter. The
streams are those of `reading` (seed 42): smart-grid readings, stock trades and card payments. The queries are of the
kinds of seed SPAseq's use cases: a join with knowledge and two GPMs that share a place; two trades of one company; a
small payment behind a large one on one card. "events" are triples, "matches" results. All ways in one run; rdflib reads
event by event, evaluates with its own algebra evaluator, and recognises no sequence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import spaseq
from benchmarks import reading
from benchmarks.harness import Workload
from spaseq.gpm import Knowledge
from spaseq.rdf import GraphEvent, StreamSource, open_streams

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
QUERIES = {"smart grid": SMART_GRID, "stock": STOCK, "card": CARD}


@cache
def knowledge(triples: int) -> Knowledge:
    """Where the houses are, and so many triples in all about places that no stream names."""
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
    _, _, options = reading.STREAMS[name]
    return lambda: query.run({"S": path}, knowledge(size), options=options, keep_events=False).count()


def by_rdflib(name: str, text: str, path: str, size: int) -> Callable[[], int]:
    """From the file to mapping sets, event by event, by rdflib's evaluator; no sequence is recognised."""
    solver = spaseq.compile(text).solver(knowledge(size), reference=True)
    _, _, options = reading.STREAMS[name]

    def run() -> int:
        events, _ = open_streams([StreamSource("urn:s", (path,))], options)
        return sum(
            len(value) for event in events for row in solver.solve(_instant(event)) for value in row.values.values()
        )

    return run


def _instant(event: GraphEvent) -> Any:
    from spaseq.rdf import Instant

    return Instant(0, event.time, (event,))


def workloads() -> list[Workload]:
    """Three ways for three queries, and one query over knowledge of three sizes."""
    folder = Path(tempfile.mkdtemp(prefix="spaseq-graphs-"))
    found = []
    for name, text in QUERIES.items():
        path, short = reading.write(folder, name, TRIPLES), reading.write(folder, name, TRIPLES_BY_RDFLIB)
        small = KNOWLEDGE[0]
        claim = "file to results"
        found += [
            Workload(f"{name}, parser", "the strict parser, into nothing", TRIPLES, reading.by_parser(path)),
            Workload(
                f"{name}, results", claim, TRIPLES, by_spaseq(name, text, path, small), "at least 0.8x the parser"
            ),
            Workload(f"{name}, rdflib", "mappings only", TRIPLES_BY_RDFLIB, by_rdflib(name, text, short, small)),
        ]
    path = str(folder / f"smart-grid-{TRIPLES}.nq")
    for size in KNOWLEDGE:
        run = by_spaseq("smart grid", PATTERN, path, size)
        found.append(Workload(f"one GPM, kb {size:,}", "flat in the knowledge", TRIPLES, run))
    return found
