"""Every case file on a standalone cluster, by every road of Spark, compared with what the case says.

    python -m tests.spark.cluster.cases --seconds 3600

It takes half an hour on two processors, so cases come in a random order and end with the time given; the exit code is 1
if one differs. `tests/cases` are run in local mode by the suite.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support import harness, roads
from tests.support.harness import Case
from tests.support.proof import session_on
from tests.support.roads import Ride, Road


def _same(case: Case, road: Road, spark: Any) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            ride = Ride(random.Random(case.place), Path(folder), spark)
            return roads.given(case, road, ride) == roads.expected(case, road)
        except Exception:
            traceback.print_exc()
            return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no case behind so much time")
    parser.add_argument("--seed", type=int, default=5, help="of the order of the cases")
    options = parser.parse_args()
    every = [
        (case, road)
        for case in harness.load_all()
        if case.error is None
        for road in roads.roads(case)
        if road.spark
    ]  # fmt: skip
    random.Random(options.seed).shuffle(every)
    compared: Counter[str] = Counter()
    left: Counter[str] = Counter()
    different = 0
    with ExitStack() as stack:
        spark = session_on("cluster", stack)
        until = time.monotonic() + options.seconds
        for case, road in every:
            if time.monotonic() > until:
                break
            name = f"{road.language} {road.name}"
            if road.leaves(case):
                left[name] += 1
                continue
            compared[name] += 1
            if not _same(case, road, spark):
                different += 1
                print(f"different: {name}, {case.place}", flush=True)
    rest = len(every) - compared.total() - left.total()
    print(f"compared {dict(compared)}, left out by their roads {dict(left)}, not reached {rest}, different {different}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
