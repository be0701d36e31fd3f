"""[SPAseq]'s experiments (Figures 15 to 17 and 19 to 22): strict contiguity, skip-till-next, Kleene+, window sizes.

The paper's datasets are not public as it used them, so the streams are generated in their shapes (seed 42, 120,000
triples). They are trades of 500 companies (SMD), card payments (CCD), and readings of houses in three streams (SHD).
The last is traffic at three points of a road whose sensors report at the same times (TD). Windows are in proportion to
the streams; the paper's go to 40 minutes. From files to results; "events" are triples, "matches" results; one thread.

* Figures 15, 16: throughput over window sizes. In the paper it falls with the window, under skip-till-next (STN) more
  than under strict contiguity (SC), whose runs live shorter. It falls most for SMD and CCD, in which any event may
  start a run. Claim: it falls with the results alone, of which a larger window has more.
* Figure 17: sequences of three, five and seven GPMs in one window. In the paper both strategies stay nearly level.
* Figure 19: reading, graph patterns, recognition. In the paper graph patterns cost most. Claim: less than reading.
* Figure 20: a GPM once, and as Kleene+. In the paper Kleene+ costs more, as runs are duplicated.
* Figure 21: three streams (SHD above). In the paper an index of runs by stream pays off with the window; here a run is
  reached only by instants of the streams it waits for. Claim: flat in the window but for results.
* Figure 22: a conjunction over three streams, by the number of instants that hold all of them. In the paper lazy
  evaluation gains most if few do. Claim: the cost is that of reading.

Figure 18 (background knowledge of 10,000 to a million triples) is in `graphs`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import spaseq
from benchmarks import reading
from benchmarks.harness import Workload
from spaseq.gpm import Knowledge
from spaseq.rdf import Counters, StreamOptions, StreamSource
from spaseq.rdf.columns.reader import open_batches

SEED, TRIPLES, REPEATS = 42, 120_000, 3
SIGNS = {"SC": ",", "STN": ";"}
ROAD = "http://traffic.org/ns#"
ROAD_OPTIONS = StreamOptions(time=f"{ROAD}at")
ONE, THREE = "FROM STREAM S <urn:S>", "FROM STREAM S <urn:S> FROM STREAM T <urn:T> FROM STREAM U <urn:U>"
STOCK, CARD = "PREFIX : <http://stock.org/ns#>", "PREFIX : <http://card.org/ns#>"


def v_shape(sign: str, window: str, gpms: int = 3, plus: str = "") -> str:
    """Trades of a company that fall below the first, then rise above it; `gpms`: how many in all, `plus`: + or none."""
    names = [f"G{i}" for i in range(gpms)]
    sequence = f" {sign} ".join(name + (plus if 0 < i < gpms - 1 else "") for i, name in enumerate(names))
    lines = []
    for i, name in enumerate(names):
        condition = "" if not i else f" FILTER (?p{i} {'<' if i < gpms - 1 else '>'} ?p0)"
        lines.append(f"DEFINE GPM {name} ON S {{ ?t{i} :company ?c ; :price ?p{i} .{condition} }}")
    return (
        f"{STOCK} SELECT ?c ?p0 WITHIN {window} PARTITION BY (?c) {ONE} WHERE {{ SEQ ({sequence}) {' '.join(lines)} }}"
    )


def payments(sign: str, window: str) -> str:
    """A payment more than eight times the one before, on one card."""
    return f"""{CARD} SELECT ?k ?a ?b WITHIN {window} PARTITION BY (?k) {ONE} WHERE {{ SEQ (A {sign} B)
      DEFINE GPM A ON S {{ ?t :card ?k ; :amount ?a . FILTER (?a < 100) }}
      DEFINE GPM B ON S {{ ?u :card ?k ; :amount ?b . FILTER (?b > ?a) FILTER (?b > 800) }} }}"""


def houses(sign: str, window: str) -> str:
    """Three readings in one place, of three streams: constant FILTERs only."""
    body = "{{ ?h{0} :loc ?l ; :pow ?w{0} . ?w{0} :source {1} ; :fare ?f{0} . FILTER (?f{0} {2}) }}"
    gpms = [body.format(i, source, bound) for i, (source, bound) in
            enumerate([('"fuel"', "> 25"), ('"wind"', "< 25"), ('"solar"', "< 25")])]  # fmt: skip
    return f"""PREFIX : <http://smartgrid.org/ns#> SELECT ?h0 ?l ?h1 ?h2 WITHIN {window} {THREE}
      WHERE {{ SEQ (A {sign} B {sign} C)
      DEFINE GPM A ON S {gpms[0]} DEFINE GPM B ON T {gpms[1]} DEFINE GPM C ON U {gpms[2]} }}"""


def jam(sign: str, window: str) -> str:
    """Slow at three points at once, then free at the first."""
    slow = "{{ ?o{0} :road ?r ; :speed ?v{0} . FILTER (?v{0} < 20) }}"
    return f"""PREFIX : <{ROAD}> SELECT ?r ?v0 ?v3 WITHIN {window} {THREE} WHERE {{ SEQ ((A & B & C) {sign} D)
      DEFINE GPM A ON S {slow.format(0)} DEFINE GPM B ON T {slow.format(1)} DEFINE GPM C ON U {slow.format(2)}
      DEFINE GPM D ON S {{ ?o3 :road ?r ; :speed ?v3 . FILTER (?v3 > 60) }} }}"""


def traffic(rng: random.Random, shared: float) -> Iterator[str]:
    """Observations of a point: ten roads in turn, one a second, with probability 1 - `shared` half a second late."""
    number = 0
    while True:
        time = number + (0 if rng.random() < shared else 0.5)
        observation = f"<http://traffic.org/{rng.getrandbits(64):x}>"
        yield f"{observation} <{ROAD}road> <http://traffic.org/road/{number % 10}> .\n"
        yield f'{observation} <{ROAD}speed> "{rng.randrange(10, 80)}"^^<{reading.XSD}integer> .\n'
        yield f'{observation} <{ROAD}count> "{rng.randrange(40)}"^^<{reading.XSD}integer> .\n'
        yield f'{observation} <{ROAD}at> "{1_781_500_000 + time}"^^<{reading.XSD}decimal> .\n'
        number += 1


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="spaseq-figures-"))


@cache
def files(name: str, count: int) -> tuple[str, ...]:
    """`count` streams of a shape, of TRIPLES statements in all."""
    ending, lines, _ = reading.STREAMS[name]
    return tuple(_write(f"{name}-{i}.{ending}", lines(random.Random(SEED + i)), count) for i in range(count))


@cache
def roads(shared: float) -> tuple[str, ...]:
    """The three points, of which each reports at the full second with probability `shared`."""
    return tuple(_write(f"road-{shared}-{i}.nt", traffic(random.Random(SEED + i), shared), 3) for i in range(3))


def _write(name: str, lines: Iterator[str], streams: int) -> str:
    path = _folder() / name.replace(" ", "-")
    path.write_text("".join(next(lines) for _ in range(TRIPLES // streams // 20 * 20)), "ascii")
    return str(path)


def results(text: str, paths: tuple[str, ...], options: StreamOptions) -> Callable[[], int]:
    """From files to results, counted."""
    query = spaseq.compile(text)
    streams = dict(zip("STU", paths, strict=False))
    return lambda: query.run(streams, Knowledge(), options=options, keep_events=False).count()


def read(path: str, options: StreamOptions) -> Callable[[], int]:
    """Reading alone: the events read."""

    def run() -> int:
        ((_, batches),), _ = open_batches([StreamSource("urn:S", (path,))], options, Counters())
        return sum(map(len, batches))

    return run


def matched(text: str, path: str, options: StreamOptions) -> Callable[[], int]:
    """Reading and graph patterns: the solutions, of all GPMs."""
    solver = spaseq.compile(text).compiled.solver(Knowledge())

    def run() -> int:
        ((_, batches),), _ = open_batches([StreamSource("urn:S", (path,))], options, Counters())
        return sum(int(found.kept.sum()) for batch in batches for found in solver.solve_batch(batch).values())

    return run


def workloads() -> list[Workload]:
    """The figures in order."""
    return [*figures_15_16(), *figure_17(), *figure_19(), *figure_20(), *figure_22()]


def _workload(name: str, claim: str, text: str, paths: tuple[str, ...], options: StreamOptions) -> Workload:
    return Workload(name, claim, TRIPLES, results(text, paths, options), repeats=REPEATS)


def figures_15_16() -> Iterator[Workload]:
    """Four datasets, two strategies, window sizes; SHD has three streams (Figure 21)."""
    options = {name: options for name, (_, _, options) in reading.STREAMS.items()}
    shapes = [
        ("SMD", v_shape, ("5 SECONDS", "20 SECONDS", "80 SECONDS"), files("stock", 1), options["stock"]),
        ("CCD", payments, ("1 MINUTE", "4 MINUTES", "16 MINUTES"), files("card", 1), options["card"]),
        ("SHD", houses, ("10 MINUTES", "40 MINUTES", "160 MINUTES"), files("smart grid", 3), options["smart grid"]),
        ("TD", jam, ("10 MINUTES", "20 MINUTES", "40 MINUTES"), roads(1.0), ROAD_OPTIONS),
    ]
    for dataset, query, windows, paths, how in shapes:
        for strategy, sign in SIGNS.items():
            for window in windows:
                name = f"fig15 {dataset} {strategy} {window.lower()}"
                yield _workload(name, "as much as there are results", query(sign, window), paths, how)


def figure_17() -> Iterator[Workload]:
    """Longer sequences."""
    paths, options = files("stock", 1), reading.STREAMS["stock"][2]
    for strategy, sign in SIGNS.items():
        for gpms in (3, 5, 7):
            text = v_shape(sign, "20 SECONDS", gpms)
            yield _workload(f"fig17 {strategy} {gpms} GPMs", "level in the GPMs", text, paths, options)


def figure_19() -> Iterator[Workload]:
    """Reading; and graph patterns; and recognition."""
    (path,), options = files("stock", 1), reading.STREAMS["stock"][2]
    text = v_shape(";", "20 SECONDS")
    parser, strict = reading.by_parser(path), "the strict parser, into nothing"
    yield Workload("fig19 parser", strict, TRIPLES, parser, repeats=REPEATS)
    yield Workload("fig19 read", "as columns", TRIPLES, read(path, options), repeats=REPEATS)
    yield Workload("fig19 matched", "and graph patterns", TRIPLES, matched(text, path, options), repeats=REPEATS)
    yield _workload("fig19 recognised", "and sequences", text, (path,), options)


def figure_20() -> Iterator[Workload]:
    """A GPM once and as Kleene+."""
    paths, options = files("stock", 1), reading.STREAMS["stock"][2]
    for window in ("5 SECONDS", "20 SECONDS", "80 SECONDS"):
        for name, plus in (("once", ""), ("Kleene+", "+")):
            text = v_shape(";", window, plus=plus)
            yield _workload(f"fig20 {name} {window.lower()}", "not duplicated", text, paths, options)


def figure_22() -> Iterator[Workload]:
    """A conjunction with all, half and few of the instants holding all three streams."""
    for shared, words in ((1.0, "all"), (0.8, "half"), (0.4, "few")):
        name = f"fig22 {words} instants"
        yield _workload(name, "what costs is reading", jam(";", "20 MINUTES"), roads(shared), ROAD_OPTIONS)
