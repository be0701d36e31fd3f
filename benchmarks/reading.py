"""Reading N-Triples and N-Quads: the columnar reader beside the parser alone, and beside reading event by event.

Claim: making numbered columns of events, times read and in order, costs less than a third of the strict parser's time
to read the same file into nothing. Three streams have the shapes of the use cases. Smart-grid readings are named graphs
with their time inside, stock trades are records of a subject, and card transactions are records with times as numbers.
Seed 42; the files are made when the benchmark starts. "events" are triples, "matches" the events read; all ways in one
run.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyoxigraph

from benchmarks.harness import Workload
from spaseq.rdf import Counters, GraphEvent, StreamOptions, StreamSource
from spaseq.rdf.columns.reader import open_batches

SEED, TRIPLES, TRIPLES_BY_EVENT = 42, 500_000, 100_000
XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def smart_grid(random: random.Random) -> Iterator[str]:
    """A reading a graph: a house, its power, source and fare; about one in twenty seconds."""
    now = datetime(2026, 6, 15, tzinfo=UTC)
    number = 0
    while True:
        now += timedelta(seconds=random.randrange(40))
        house, graph = random.randrange(1_000), f"<http://smartgrid.org/power/{number}>"
        subject, power = f"<http://smartgrid.org/id/H{house}>", f"<http://smartgrid.org/id/Pw{house}>"
        fare = f'"{random.randrange(5_000) / 100:.2f}"^^<{XSD}decimal>'
        yield f'{graph} <{PROV}> "{now:%Y-%m-%dT%H:%M:%SZ}"^^<{XSD}dateTime> {graph} .\n'
        yield f"{subject} <http://smartgrid.org/ns#loc> <http://smartgrid.org/id/L{house % 50}> {graph} .\n"
        yield f"{subject} <http://smartgrid.org/ns#pow> {power} {graph} .\n"
        yield f'{power} <http://smartgrid.org/ns#source> "{random.choice(["fuel", "solar", "wind"])}" {graph} .\n'
        yield f"{power} <http://smartgrid.org/ns#fare> {fare} {graph} .\n"
        number += 1


def stock(random: random.Random) -> Iterator[str]:
    """A trade a subject: its symbol, price, volume and time."""
    price = [random.randrange(1_000, 20_000) for _ in range(500)]
    number = 0
    while True:
        company = random.randrange(len(price))
        price[company] = max(100, price[company] + random.randrange(-50, 51))
        trade = f"<http://stock.org/trade/{number}>"
        yield f'{trade} <http://stock.org/ns#company> "S{company}" .\n'
        yield f'{trade} <http://stock.org/ns#price> "{price[company] / 100:.2f}"^^<{XSD}double> .\n'
        yield f'{trade} <http://stock.org/ns#volume> "{random.randrange(1, 100) * 100}"^^<{XSD}integer> .\n'
        yield f'{trade} <http://stock.org/ns#at> "{1_781_500_000_000 + number * 7}"^^<{XSD}integer> .\n'
        number += 1


def card(random: random.Random) -> Iterator[str]:
    """A transaction a subject: its type, card, amount, place and time."""
    number = 0
    while True:
        payment = f"<http://card.org/transaction/{number}>"
        yield f"{payment} <{TYPE}> <http://card.org/ns#{random.choice(['Purchase', 'Withdrawal'])}> .\n"
        yield f"{payment} <http://card.org/ns#card> <http://card.org/card/{random.randrange(5_000)}> .\n"
        yield f'{payment} <http://card.org/ns#amount> "{random.randrange(100_000) / 100:.2f}"^^<{XSD}decimal> .\n'
        yield f"{payment} <http://card.org/ns#place> <http://card.org/place/{random.randrange(300)}> .\n"
        yield f'{payment} <http://card.org/ns#at> "{1_781_500_000 + number // 20}" .\n'
        number += 1


STREAMS: dict[str, tuple[str, Callable[[random.Random], Iterator[str]], StreamOptions]] = {
    "smart grid": ("nq", smart_grid, StreamOptions()),
    "stock": ("nt", stock, StreamOptions(time="http://stock.org/ns#at", time_unit="ms")),
    "card": ("nt", card, StreamOptions(time="http://card.org/ns#at")),
}


def write(folder: Path, name: str, triples: int) -> str:
    """A file of so many statements (and the rest of the last event)."""
    ending, lines, _ = STREAMS[name]
    path = folder / f"{name.replace(' ', '-')}-{triples}.{ending}"
    made = lines(random.Random(SEED))
    path.write_text("".join(next(made) for _ in range(triples)), "ascii")
    return str(path)


def by_parser(path: str) -> Callable[[], int]:
    """The strict parser, its statements thrown away."""
    form = pyoxigraph.RdfFormat.N_QUADS if path.endswith("nq") else pyoxigraph.RdfFormat.N_TRIPLES

    def run() -> int:
        for _ in pyoxigraph.parse(path=path, format=form):
            pass
        return 0

    return run


def graph_events(path: str, options: StreamOptions) -> Iterator[GraphEvent]:
    """The events of a file as objects, one by one."""
    ((_, batches),), _ = open_batches([StreamSource("urn:s", (path,))], options)
    return (batch.event(index) for batch in batches for index in range(len(batch)))


def by_events(path: str, options: StreamOptions) -> Callable[[], int]:
    """Event by event."""
    return lambda: sum(1 for _ in graph_events(path, options))


def by_columns(path: str, options: StreamOptions, *, numbers: bool = False) -> Callable[[], int]:
    """As columns; with `numbers`, also the values of its literals."""

    def run() -> int:
        ((_, batches),), _ = open_batches([StreamSource("urn:s", (path,))], options, Counters())
        count = 0
        for batch in batches:
            count += len(batch)
            if numbers:
                batch.terms.numbers()
        return count

    return run


def workloads() -> list[Workload]:
    """Four ways to read each of three streams."""
    folder = Path(tempfile.mkdtemp(prefix="spaseq-reading-"))
    found = []
    for name, (_, _, options) in STREAMS.items():
        path, short = write(folder, name, TRIPLES), write(folder, name, TRIPLES_BY_EVENT)
        claim = "triples to numbered columns of events"
        found += [
            Workload(f"{name}, parser", "the strict parser, into nothing", TRIPLES, by_parser(path)),
            Workload(f"{name}, columns", claim, TRIPLES, by_columns(path, options), "at least 3x the parser"),
            Workload(
                f"{name}, numbers", f"{claim}, and their numbers", TRIPLES, by_columns(path, options, numbers=True)
            ),
            Workload(f"{name}, events", "event by event", TRIPLES_BY_EVENT, by_events(short, options)),
        ]
    return found
