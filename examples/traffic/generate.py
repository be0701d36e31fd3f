"""Makes 182955.nq, 195578.nq, 195446.nq and roads.ttl: five hours of three road sensors, always the same bytes.

    python examples/traffic/generate.py [FOLDER]

Every five minutes the three sensors report, together, how congested their segments are, from 0 (free) to 5
(standing). The first segment leads to the other two, so its jams reach them some reports later. Only
`Random.random()` is drawn from, whose sequence Python keeps for ever.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

SEED = 20170605
START = datetime(2026, 6, 15, 6, 0, tzinfo=UTC)
REPORTS = 60
SENSORS = {
    "182955": ("Randersvej", "major", ("195578", "195446")),
    "195578": ("Nordre Ringgade", "ring", ("195446",)),
    "195446": ("Paludan-Müllers Vej", "minor", ()),
}

NS = "http://traffic.org/ns#"
ID = "http://traffic.org/id/"
SSN = "http://purl.oclc.org/NET/ssnx/ssn#"
SAO = "http://purl.oclc.org/NET/sao/ssn#"
XSD = "http://www.w3.org/2001/XMLSchema#"
GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
HERE = Path(__file__).resolve().parent


def levels(rng: Random) -> list[tuple[int, ...]]:
    """The congestion of the three segments at each report."""
    first, found = 1, []
    for count in range(REPORTS):
        first = min(5, max(0, first + int(rng.random() * 5) - 2))
        delayed = found[count - 2][0] if count > 1 else 1
        second = min(5, max(0, delayed + int(rng.random() * 3) - 1))
        third = min(5, max(0, (delayed + second) // 2 + int(rng.random() * 3) - 1))
        found.append((first, second, third))
    return found


def stream(sensor: str, values: list[int]) -> str:
    """The observations of a sensor as named graphs, the time of each stated in the default graph just before it."""
    lines = []
    for count, value in enumerate(values):
        time = START + timedelta(minutes=5 * count)
        graph, observation = f"<{ID}g{sensor}-{count}>", f"<{ID}o{sensor}-{count}>"
        lines.append(f'{graph} <{GENERATED_AT}> "{time:%Y-%m-%dT%H:%M:%S}Z"^^<{XSD}dateTime> .')
        lines.append(f"{observation} <{SSN}observedBy> <{ID}sensor{sensor}> {graph} .")
        lines.append(f"{observation} <{SSN}observedProperty> <{NS}congestionLevel> {graph} .")
        lines.append(f'{observation} <{SAO}hasValue> "{value}"^^<{XSD}integer> {graph} .')
    return "\n".join(lines) + "\n"


def knowledge() -> str:
    """Where the sensors are, and which segments lead to which, in Turtle."""
    lines = [f"@prefix : <{NS}> .\n@prefix id: <{ID}> .\n"]
    for sensor, (street, kind, onward) in SENSORS.items():
        lines.append(f"id:sensor{sensor} a :Sensor ; :onSegment id:segment{sensor} .")
        lines.append(f'id:segment{sensor} a :RoadSegment ; :street "{street}" ; :roadType "{kind}" .')
        lines += [f"id:segment{sensor} :connectedTo id:segment{other} ." for other in onward]
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """The text of each file by its name."""
    found = levels(Random(SEED))
    streams = {f"{s}.nq": stream(s, [row[place] for row in found]) for place, s in enumerate(SENSORS)}
    return streams | {"roads.ttl": knowledge()}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
