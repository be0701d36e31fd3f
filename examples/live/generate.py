"""Logins of some users, as JSON Lines: some fail, and now and then a user is guessed.

python generate.py 100000 > logins.jsonl
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any


def logins(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """So many events, 50 ms apart on average, the same for the same seed."""
    pick = random.Random(seed)
    milliseconds = 1_780_000_000_000
    for _ in range(count):
        milliseconds += pick.randrange(100)
        kind = "fail" if pick.random() < 0.2 else "login"
        address = f"10.0.{pick.randrange(4)}.{pick.randrange(250)}"
        yield {"type": kind, "user": f"u{pick.randrange(400)}", "ip": address, "time": milliseconds / 1000}


if __name__ == "__main__":
    for event in logins(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000):
        print(json.dumps(event))
