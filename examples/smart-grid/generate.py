"""Makes power.nq, weather.nq, storage.nq and kb.ttl: a morning in a small smart grid, always the same bytes.

    python examples/smart-grid/generate.py [FOLDER]

Six houses in three districts draw on fuel-based power at a fare that changes from reading to reading. A weather station
and a storage fed by solar panels stand in each district. Every half hour goes the same way: the houses report one after
another, then all stations together four times, then all storages together. So a storage report directly follows the
last weather report, which is what the `,` of query.rq asks for. Only `Random.random()` is drawn from, whose sequence
Python keeps for ever; all numbers are whole hundredths, so nothing depends on how floats are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

SEED = 20170101
START = datetime(2026, 6, 15, 6, 0, tzinfo=UTC)
HALF_HOURS = 12
HOUSES = {"H1": "L1", "H2": "L1", "H3": "L2", "H4": "L2", "H5": "L3", "H6": "L3"}
DISTRICTS = ("L1", "L2", "L3")
WEATHER_MINUTES = (8, 13, 18, 23)
STORAGE_MINUTE = 25

NS = "http://smartgrid.org/ns#"
ID = "http://smartgrid.org/id/"
XSD = "http://www.w3.org/2001/XMLSchema#"
GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"

OWNERS = {
    "H1": ("Amélie Rivoire", "Lyon", "12 rue des Tables", ("H2",)),
    "H2": ("Bruno Chastel", "Lyon", "14 rue des Tables", ("H1", "H3")),
    "H3": ("Clara Montagny", "Villeurbanne", "3 place Bertone", ("H2", "H4")),
    "H4": ("Denis Faure", "Villeurbanne", "5 place Bertone", ("H3",)),
    "H5": ("Elsa Peyron", "Saint-Étienne", "31 rue Ferdinand", ("H6",)),
    "H6": ("Farid Benali", "Saint-Étienne", "33 rue Ferdinand", ("H5",)),
}
HERE = Path(__file__).resolve().parent

Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """A graph event: when, and the triples in N-Triples terms."""

    time: datetime
    triples: tuple[Triple, ...]


def thing(name: str) -> str:
    """The IRI of a house, district, station, source or storage."""
    return f"<{ID}{name}>"


def number(hundredths: int) -> str:
    """An xsd:decimal."""
    return f'"{hundredths // 100}.{hundredths % 100:02d}"^^<{XSD}decimal>'


def described(subject: str, district: str, link: str, node: str, **values: str) -> tuple[Triple, ...]:
    """The shape all three events have ([SPAseq] Figure 2): where it is, and a node that holds the values."""
    first = ((thing(subject), "loc", thing(district)), (thing(subject), link, thing(node)))
    return first + tuple((thing(node), name, value) for name, value in values.items())


def power(rng: Random) -> Iterator[Reading]:
    """What the houses draw: watts and the fare in cents per kWh, dearer towards noon; at times it is wind power."""
    for slot in range(HALF_HOURS):
        for place, (house, district) in enumerate(HOUSES.items()):
            time = START + timedelta(minutes=30 * slot, seconds=50 * place + int(rng.random() * 30))
            fare = 1500 + 60 * slot + int(rng.random() * 1200)
            source = '"wind"' if rng.random() < 0.15 else '"fuel"'
            watt = number(100 * (200 + int(rng.random() * 2200)))
            node = f"Pw{house[1:]}"
            yield Reading(time, described(house, district, "pow", node, source=source, fare=number(fare), watt=watt))


def weather(rng: Random) -> Iterator[Reading]:
    """Light in kilolux and wind in m/s: brighter towards noon, with clouds that stay for a while over a district."""
    clouds = dict.fromkeys(DISTRICTS, 0)
    for slot in range(HALF_HOURS):
        for minute in WEATHER_MINUTES:
            time = START + timedelta(minutes=30 * slot + minute)
            for district in DISTRICTS:
                clouds[district] = max(0, clouds[district] - 1) if rng.random() < 0.8 else int(rng.random() * 7)
                light = max(200, 2500 + 550 * slot - 1400 * clouds[district] + int(rng.random() * 600))
                wind = 250 + int(rng.random() * 500)
                values = {"light": number(light), "windsp": number(wind), "temp": number(1400 + 100 * slot)}
                name = district[1:]
                yield Reading(time, described(f"W{name}", district, "value", f"Vl{name}", **values))


def storage(rng: Random) -> Iterator[Reading]:
    """What the storages offer: the fare in cents per kWh, cheaper towards noon, and how full they are in per cent."""
    for slot in range(HALF_HOURS):
        time = START + timedelta(minutes=30 * slot + STORAGE_MINUTE)
        for district in DISTRICTS:
            fare = 2700 - 50 * slot + int(rng.random() * 600) - 300
            source = '"battery"' if rng.random() < 0.1 else '"solar"'
            level = number(100 * (20 + 5 * slot + int(rng.random() * 20)))
            name = district[1:]
            values = {"source": source, "fare": number(fare), "level": level}
            yield Reading(time, described(f"St{name}", district, "pow", f"Ps{name}", **values))


def n_quads(stream: str, readings: Iterator[Reading]) -> str:
    """The readings as named graphs, the time of each stated in the default graph just before it."""
    lines = []
    for count, reading in enumerate(readings):
        graph = f"<http://smartgrid.org/{stream}/{count}>"
        lines.append(f'{graph} <{GENERATED_AT}> "{reading.time:%Y-%m-%dT%H:%M:%S}Z"^^<{XSD}dateTime> .')
        lines += [f"{s} <{NS}{p}> {o} {graph} ." for s, p, o in reading.triples]
    return "\n".join(lines) + "\n"


def knowledge() -> str:
    """Who owns the houses, where they are and which are near, and the units of the measures, in Turtle."""
    blocks = [f"@prefix : <{NS}> .\n@prefix id: <{ID}> .\n"]
    for house, (owner, city, address, near) in OWNERS.items():
        neighbours = ", ".join(f"id:{other}" for other in near)
        blocks.append(
            f"id:{house} a :House ;\n"
            f'    :ownerName "{owner}" ;\n'
            f'    :locatedIn "{city}" ;\n'
            f'    :address "{address}" ;\n'
            f"    :nearBy {neighbours} .\n"
        )
    units = {"fare": "cent/kWh", "watt": "W", "light": "klx", "windsp": "m/s", "temp": "°C", "level": "%"}
    blocks += [f':{measure} :unit "{unit}" .' for measure, unit in units.items()]
    return "\n".join(blocks) + "\n"


def files() -> dict[str, str]:
    """The text of each file by its name."""
    rng = Random(SEED)
    return {
        "power.nq": n_quads("power", power(rng)),
        "weather.nq": n_quads("weather", weather(rng)),
        "storage.nq": n_quads("storage", storage(rng)),
        "kb.ttl": knowledge(),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
