"""Forecast when a vessel will come near a harbour: learn from two thirds of its positions, judge on the rest.

python forecast.py                      # the generated ferry
python forecast.py --ais FILE.csv.gz    # AIS positions: epoch, mmsi, lon, lat, speed, course, heading, flags
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
from pathlib import Path
from typing import Any

from generate import positions

import ceql
from spaseq.core.automata import rma
from spaseq.core.forecast import Forecaster, evaluate, learn, traces, unconditional

HARBOUR = (-4.4857, 48.3787)  # Brest: longitude, latitude
BANDS = tuple(rma.compare("~.distance", "<", km) for km in (6, 7, 8, 9, 10, 12))
HEADING = tuple(rma.compare("~.off", "<", degrees) for degrees in (45, 90))


def ais(path: Path) -> list[dict[str, Any]]:
    """The positions of a file, with the distance from the harbour in km and the angle off it in degrees."""
    found = []
    with gzip.open(path, "rt") as file:
        for row in csv.reader(file):
            lon, lat, speed, course = map(float, row[2:6])
            east = math.radians(HARBOUR[0] - lon) * math.cos(math.radians((lat + HARBOUR[1]) / 2))
            north = math.radians(HARBOUR[1] - lat)
            off = abs((course - math.degrees(math.atan2(east, north)) + 180) % 360 - 180)
            found.append({"type": "AIS", "time": int(row[0]), "distance": 6371 * math.hypot(east, north),
                          "speed": speed, "off": off})  # fmt: skip
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print how good forecasts of several orders and features are, and those of one approach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ais", type=Path, help="AIS positions, gzipped CSV without header")
    parser.add_argument("--threshold", type=float, default=0.7, help="probability that an interval must have")
    parser.add_argument("--horizon", type=int, default=60, help="events to look ahead at most")
    options = parser.parse_args(arguments)
    events = ais(options.ais) if options.ais else list(positions())
    training, rest = events[: 2 * len(events) // 3], events[2 * len(events) // 3 :]
    alert = ceql.compile(Path(__file__).with_name("query.ceql").read_text("utf-8")).alerts()
    automaton = alert.deterministic()
    print(f"{len(events):,} events; the alert's automaton has {automaton.states} states")
    alone = unconditional(traces(rma.SingleRun(automaton), alert.rows(training)), options.threshold, 1000)
    if alone is not None:
        print(f"without the automaton's state: in {alone[0]} to {alone[1]} events, spread {alone[1] - alone[0]}")
    print(f"{'order':>5} {'features':16} {'nodes':>5} {'forecasts':>9} {'precision':>9} {'spread':>6} {'distance':>8}"
          f" {'recall':>6}")  # fmt: skip
    best = None
    for features, name in (((), "none"), (BANDS, "distance"), (BANDS + HEADING, "distance, course")):
        for order in (1, 2, 3):
            model = learn(rma.SingleRun(automaton, features), alert.rows(training), order=order, least=5)
            best = Forecaster(model, threshold=options.threshold, horizon=options.horizon)
            e = evaluate(best.run(alert.rows(rest)))
            print(f"{order:>5} {name:16} {len(model.chain.nodes):>5} {e.forecasts:>9,} {e.precision:>9.2f} "
                  f"{e.spread:>6.1f} {e.distance:>8.1f} {e.recall:>6.2f}")  # fmt: skip
    assert best is not None
    approach(best, alert, rest)


def approach(forecaster: Forecaster, alert: Any, events: list[dict[str, Any]]) -> None:
    """The forecasts of the last ten events before a match."""
    (found,) = forecaster.run(alert.rows(events))
    ends = found.accepted.nonzero()[0]
    if not len(ends) or ends[0] < 10:
        return
    end = int(ends[0])
    print(f"\nbefore the match at event {end}:")
    for i in range(end - 10, end + 1):
        first, last = int(found.first[i]), int(found.last[i])
        told = f"in {first} to {last} events, p = {found.probability[i]:.2f}" if first else "no forecast"
        print(f"  {events[i]['distance']:6.2f} km  {told}{'   <- the match' if i == end else ''}")


if __name__ == "__main__":
    main()
