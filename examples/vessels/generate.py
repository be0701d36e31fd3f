"""Makes boats.nq and kb.ttl: three hours off a small harbour, always the same bytes.

    python examples/vessels/generate.py [FOLDER]

Eight vessels report their speed, course and whereabouts every two minutes, one after another. Four are fishing
boats: again and again they leave, run to the fishing area, stay there for a while, and come back; at times one
changes course on the way. Two ferries cross without ever stopping in the fishing area; two tugs hardly leave the
harbour. Only `Random.random()` is drawn from, whose sequence Python keeps for ever, and all numbers are whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

SEED = 20170602
START = datetime(2026, 6, 15, 4, 0, tzinfo=UTC)
REPORTS = 90
COURSES = ("N", "NW", "W", "SW")

NS = "http://harbour.org/ns#"
ID = "http://harbour.org/id/"
XSD = "http://www.w3.org/2001/XMLSchema#"
GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"

# vessel: its kind, its name, and who operates it
VESSELS = {
    "V1": ("fishing", "Étoile du Nord", "C1"),
    "V2": ("ferry", "Ville de Brest", "C3"),
    "V3": ("fishing", "Marie-Galante", "C1"),
    "V4": ("tug", "Abeille", "C2"),
    "V5": ("fishing", "Petit Pierre", "C2"),
    "V6": ("ferry", "Enez Sun", "C3"),
    "V7": ("fishing", "Bro Warok", "C2"),
    "V8": ("tug", "Goliath", "C2"),
}
COMPANIES = {"C1": "Pêcheries du Ponant", "C2": "Armement Le Goff", "C3": "Penn Ar Bed Lines"}
HERE = Path(__file__).resolve().parent

Report = tuple[int, str, str]
"""Speed in knots, whereabouts, course."""


def drawn(rng: Random, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    return low + int(rng.random() * (high - low + 1))


def fishing(rng: Random) -> Iterator[Report]:
    """Trips from the harbour to the fishing area and back, with a rest at either end."""
    while True:
        for _ in range(drawn(rng, 1, 6)):
            yield 0, "harbour", "N"
        course = COURSES[drawn(rng, 0, 3)]
        yield drawn(rng, 2, 4), "harbour", course
        for _ in range(drawn(rng, 2, 5)):
            if rng.random() < 0.12:
                course = COURSES[drawn(rng, 0, 3)]
            yield drawn(rng, 6, 11), "sea", course
        for _ in range(drawn(rng, 3, 7)):
            yield 0, "fishingarea", course
        for _ in range(drawn(rng, 3, 5)):
            yield drawn(rng, 6, 11), "sea", "SE"


def ferry(rng: Random) -> Iterator[Report]:
    """Out and back, past the fishing area without stopping there."""
    while True:
        yield drawn(rng, 3, 5), "harbour", "W"
        for place in ("sea", "sea", "fishingarea", "sea", "sea"):
            yield drawn(rng, 14, 18), place, "W"
        for place in ("sea", "fishingarea", "sea"):
            yield drawn(rng, 14, 18), place, "E"


def tug(rng: Random) -> Iterator[Report]:
    """In the harbour, at times just outside."""
    while True:
        speed = drawn(rng, 0, 4)
        yield speed, "sea" if rng.random() < 0.2 and speed else "harbour", COURSES[drawn(rng, 0, 3)]


CLASSES = {"fishing": "FishingVessel", "ferry": "Ferry", "tug": "Tug"}
KINDS = {"fishing": fishing, "ferry": ferry, "tug": tug}


def boats(rng: Random) -> str:
    """The reports as named graphs, the time of each stated in the default graph just before it."""
    tracks = {vessel: KINDS[kind](rng) for vessel, (kind, _, _) in VESSELS.items()}
    lines = []
    for slot in range(REPORTS):
        for place, (vessel, track) in enumerate(tracks.items()):
            time = START + timedelta(minutes=2 * slot, seconds=14 * place + int(rng.random() * 10))
            speed, where, course = next(track)
            graph = f"<{ID}r{8 * slot + place}>"
            lines.append(f'{graph} <{GENERATED_AT}> "{time:%Y-%m-%dT%H:%M:%S}Z"^^<{XSD}dateTime> .')
            lines.append(f'<{ID}{vessel}> <{NS}speed> "{speed}"^^<{XSD}integer> {graph} .')
            lines.append(f'<{ID}{vessel}> <{NS}location> "{where}" {graph} .')
            lines.append(f'<{ID}{vessel}> <{NS}direction> "{course}" {graph} .')
    return "\n".join(lines) + "\n"


def knowledge() -> str:
    """The names of the vessels and of the companies that operate them, in Turtle."""
    lines = [f"@prefix : <{NS}> .\n@prefix id: <{ID}> .\n"]
    lines += [
        f'id:{vessel} a :{CLASSES[kind]} ; :name "{name}" ; :operatedBy id:{company} .'
        for vessel, (kind, name, company) in VESSELS.items()
    ]
    lines += [f'id:{company} a :Company ; :name "{name}" .' for company, name in COMPANIES.items()]
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """The text of each file by its name."""
    return {"boats.nq": boats(Random(SEED)), "kb.ttl": knowledge()}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
