"""The experiments of the papers that the gallery shows: each a chart of our newest result, beside the paper's in words.

The results are those of `python -m benchmarks.figures`.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from benchmarks import charts

__all__ = ["EXPERIMENTS", "Experiment"]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A chart: `name` of its file, the `group` and `figure` of its result, `ours` and `theirs` in words."""

    name: str
    title: str
    group: str
    figure: str
    measures: tuple[str, ...]
    ours: str
    theirs: str

    def svg(self) -> str:
        """The chart of the newest result."""
        path = charts.newest(self.group)
        drawn = [panel for measure in self.measures for panel in charts.panels(path, self.figure, measure)]
        return charts.draw(self.title, drawn)

    def section(self) -> list[str]:
        """The lines of the page."""
        result = f"`benchmarks/results/{charts.newest(self.group).name}`"
        return [
            f"### {self.title}", "", *textwrap.wrap(f"Here ({result}): {self.ours}", 150), "",
            *textwrap.wrap(f"In the paper: {self.theirs}", 150), "",
            f"![chart of {self.name}](gallery/{self.name}.svg)", "",
        ]  # fmt: skip


EXPERIMENTS = (
    Experiment(
        "core-figure-7", "[CORE] Figure 7: sequences of 3 to 24 events",
        "core", "core 7", ("events_per_s", "bytes"),
        "5 to 51 million events a second. From 3 to 24 events, stocks and taxis fall to a half and to two thirds. "
        "Homes with output fall to a ninth: 12 events have 1.1 million matches there, which are written. Held are 3.8"
        " to 4.7 MB at any length, and up to 12 MB on homes with output; the preloaded stream is not counted.",
        "CORE reads 100,000 to a million events a second. It falls linearly with the length on stocks and taxis, and "
        "goes up and down with the matches on homes. It holds some 300 MB at any length. The other engines are one to"
        " five orders of magnitude slower, but for Esper with three events on two streams, and most fall "
        "exponentially.",
    ),
    Experiment(
        "core-figure-8", "[CORE] Figure 8: windows of T to 4T",
        "core", "core 8", ("events_per_s",),
        "level, at 40 to 53 million events a second: on no stream are two windows further apart than 7 %.",
        "CORE stays at a million events a second. The others fall with the window, on stocks from 100,000 to below "
        "1,000 events a second.",
    ),
    Experiment(
        "core-figure-9", "[CORE] Figure 9: other operators",
        "core", "core 9", ("events_per_s",),
        "10 to 43 million events a second. The two with PARTITION BY, Q3 and Q6, are the slowest, as in the paper: at"
        " 0.45 and 0.63 of Q1 and Q4.",
        "CORE stays near a million events a second in all seven, a little below with PARTITION BY (Q3 and Q6). Each "
        "other engine is two orders of magnitude slower in at least one of them.",
    ),
    Experiment(
        "core-figure-11", "[CORE] Figure 11: windows under a selection strategy",
        "core", "core 11", ("events_per_s",),
        "34 to 55 million events a second under LAST, NEXT and MAX, at 0.8 to 1.1 times the rate of Figure 8. 4T "
        "costs LAST on stocks 11 % more than T, and any other at most 10 %.",
        "CORE has a million events a second under LAST in any window. The others are at least two orders of magnitude"
        " slower. With a strategy SASE and OpenCEP are level in the window; Esper still falls.",
    ),
    Experiment(
        "cel-figure-4", "[CEL] Figure 4: one event completes all matches",
        "cel", "cel 4", ("cpu_s", "bytes"),
        "processing takes 0.65 to 0.94 ms, nearly all of it to begin an evaluation; 1,800 more events add 0.12 ms "
        "(Q1) and 0.15 ms (Q2). Writing 18.9 million matches of Q2 takes 0.31 s. Held are 3.8 MB at each of these "
        "lengths, for room that is made at the start.",
        "CEL processes 2,000 events of Q2 in less than 0.01 s and writes their 20 million matches in 5.2 s, with 5 "
        "MB. SASE takes 678 s and 1 GB to process them. EsperTech does not finish 1,000 events in an hour.",
    ),
    Experiment(
        "cel-figure-5", "[CEL] Figure 5: selection strategies",
        "cel", "cel 5", ("events_per_s",),
        "LAST reads 12 to 19, NEXT 14 to 38, MAX 7 to 16 million events a second; ALL with one match for each end 6 "
        "to 13. MAX for Q5 and Q6 reads 0.2 million: a match of these has a quarter or more of all events so far, "
        "and is walked to be counted. NEXT is the fastest on Q1 to Q3, and about level with LAST on the rest.",
        "CEL is measured under LAST and MAX, and is above SASE and EsperTech throughout. MAX is faster than NEXT, as "
        "its automaton has fewer states.",
    ),
    Experiment(
        "lazy-figure-10", "[Lazy] Figure 10: throughput by window in minutes",
        "lazy", "lazy 10", ("events_per_s",),
        "with three or more positive events, the chain is faster than the eager automaton: SEQ3 to SEQ5 9 to 25 "
        "times, OR2SEQ4 9 to 15, AND3 5 to 7, ITER3 3 to 7. With two of them (AND2, NSEQ3, NAND3, ORs of pairs) it is"
        " 1.0 to 1.2 times as fast, as each pair is compared once in any order. NSEQ5 has four, but the second of "
        "them is so rare that the eager automaton makes few instances: 1.1 to 1.4. First chance is level with post-"
        "processing for NSEQ5 in 5 minutes and 1.5 times as fast in 20. NAND3 is AND3 whose second event is negated. "
        "The chain falls faster with the window, 4.5 times for SEQ3, than the eager automaton, 3.3 times.",
        "the lazy chain is one to two orders of magnitude faster than the eager automaton, for every pattern. Both "
        "fall with the window. First chance is clearly ahead of post-processing for NSEQ5.",
    ),
    Experiment(
        "lazy-figure-11", "[Lazy] Figure 11: peak memory by window in minutes",
        "lazy", "lazy 10", ("bytes",),
        "the chain needs less for every pattern. The eager automaton holds 1.3 to 2.4 times as much for SEQ3 to SEQ5,"
        " 1.5 to 2.5 for OR2SEQ4, 1.6 to 2.3 for AND3, 1.2 to 5.4 for ITER3, each with its maximum in one of the "
        "larger windows, and 1.05 to 1.34 for all others, NAND3 with 1.2 among them. Both hold the same buffer of "
        "events.",
        "lazy automata need less for every pattern, 1.5 to 3 times less for sequences and disjunctions in larger "
        "windows, and the least is saved for conjunctions.",
    ),
)  # fmt: skip
"""In the order of the page."""
