"""Makes google.nt and kb.ttl: two hours of quotes of one stock, always the same bytes.

    python examples/stock-patterns/generate.py [FOLDER]

A quote every fifteen seconds or so: price, volume and time, three triples that follow each other (so `--event-by
size:3`). The price is a random walk pulled back to where it came from. Only `Random.random()` is drawn from, whose
sequence Python keeps for ever, and all numbers are whole cents.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

SEED = 20176121
START = datetime(2026, 6, 15, 14, 0, tzinfo=UTC)
QUOTES = 480
MEAN = 18_000
"""Cents."""

NS = "http://stockmarket.org/ns#"
COMPANY = "http://stockmarket.org/id/GOOG"
XSD = "http://www.w3.org/2001/XMLSchema#"
HERE = Path(__file__).resolve().parent


def quotes(rng: Random) -> str:
    """The stream, in N-Triples."""
    price, lines = MEAN, []
    for count in range(QUOTES):
        price += int(rng.random() * 161) - 80 + (MEAN - price) // 40
        volume = 100 * (1 + int(rng.random() * 50))
        time = START + timedelta(seconds=15 * count + int(rng.random() * 10))
        lines.append(f'<{COMPANY}> <{NS}price> "{price // 100}.{price % 100:02d}"^^<{XSD}decimal> .')
        lines.append(f'<{COMPANY}> <{NS}volume> "{volume}"^^<{XSD}integer> .')
        lines.append(f'<{COMPANY}> <{NS}at> "{time:%Y-%m-%dT%H:%M:%S}Z"^^<{XSD}dateTime> .')
    return "\n".join(lines) + "\n"


def knowledge() -> str:
    """What is known of the company, in Turtle."""
    return (
        f"@prefix : <{NS}> .\n\n<{COMPANY}> a :Company ;\n"
        '    :name "Alphabet" ;\n    :symbol "GOOG" ;\n    :sector "Communication services" .\n'
    )


def files() -> dict[str, str]:
    """The text of each file by its name."""
    return {"google.nt": quotes(Random(SEED)), "kb.ttl": knowledge()}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
