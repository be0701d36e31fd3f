"""Makes withdrawals.nq and kb.ttl: an afternoon of cash withdrawals, always the same bytes.

    python examples/card-fraud/generate.py [FOLDER]

Twelve cards are used now and then for sums between 20 and 300. Three of them are in the wrong hands: a large sum,
then small ones to see what still goes through. Only `Random.random()` is drawn from, whose sequence Python keeps
for ever, and all numbers are whole hundredths.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

SEED = 20170603
START = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)
WITHDRAWALS = 240
SECONDS = 60
"""Between two withdrawals, on average."""

NS = "http://creditcard.org/ns#"
ID = "http://creditcard.org/id/"
XSD = "http://www.w3.org/2001/XMLSchema#"
GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"

HOLDERS = ("Ada Novak", "Bo Lind", "Cem Aydın", "Dana Roth", "Eli Katz", "Fay Okoro",
           "Gil Moreau", "Hana Sato", "Ivo Petrov", "Jun Park", "Kaja Ås", "Leo Conti")  # fmt: skip
BANKS = {"B1": "Crédit du Rhône", "B2": "Nordbank", "B3": "First Alpine"}
PLACES = ("Lyon", "Grenoble", "Annecy", "Valence")
# withdrawal number: the card and the amounts, in hundredths, that follow each other a minute apart on that card
FRAUDS = {
    37: (3, (90_000, 4_000, 6_000, 2_000)),
    121: (7, (75_000, 7_500)),
    122: (10, (120_000, 10_000, 15_000, 9_000)),
    190: (3, (60_000, 2_000, 5_999)),
}
HERE = Path(__file__).resolve().parent


def withdrawals(rng: Random) -> list[tuple[datetime, int, int, str]]:
    """(time, card, amount in hundredths, place), in order of time."""
    found = []
    for count in range(WITHDRAWALS):
        time = START + timedelta(seconds=SECONDS * count + int(rng.random() * 40))
        card, amount = int(rng.random() * len(HOLDERS)), 500 * (4 + int(rng.random() * 57))
        place = PLACES[int(rng.random() * len(PLACES))]
        found.append((time, card, amount, place))
        for later, stolen in enumerate(FRAUDS.get(count, (0, ()))[1]):
            found.append((time + timedelta(seconds=41 + 60 * later), FRAUDS[count][0], stolen, place))
    return sorted(found, key=lambda withdrawal: withdrawal[0])


def stream(found: list[tuple[datetime, int, int, str]]) -> str:
    """The withdrawals as named graphs, the time of each stated in the default graph just before it."""
    lines = []
    for count, (time, card, amount, place) in enumerate(found):
        graph, subject = f"<{ID}w{count}>", f"<{ID}card{card}>"
        lines.append(f'{graph} <{GENERATED_AT}> "{time:%Y-%m-%dT%H:%M:%S}Z"^^<{XSD}dateTime> .')
        lines.append(f'{subject} <{NS}id> "{4970_1000 + 7 * card}" {graph} .')
        lines.append(f'{subject} <{NS}amount> "{amount // 100}.{amount % 100:02d}"^^<{XSD}decimal> {graph} .')
        lines.append(f'{subject} <{NS}loc> "{place}" {graph} .')
    return "\n".join(lines) + "\n"


def knowledge() -> str:
    """Who holds the cards and which bank issued them, in Turtle."""
    lines = [f"@prefix : <{NS}> .\n@prefix id: <{ID}> .\n"]
    banks = list(BANKS)
    lines += [
        f'id:card{n} a :Card ; :cardHolder "{holder}" ; :issuedBy id:{banks[n % len(banks)]} .'
        for n, holder in enumerate(HOLDERS)
    ]
    lines += [f'id:{bank} a :Bank ; :name "{name}" .' for bank, name in BANKS.items()]
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """The text of each file by its name."""
    return {"withdrawals.nq": stream(withdrawals(Random(SEED))), "kb.ttl": knowledge()}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
