"""A stream fed by a growing folder, stopped in the middle and started again.

    python examples/spark/growing_folder.py [FOLDER]

The power, weather and storage streams of the smart grid are cut into files of a quarter each. Files are moved into the
folder, half of them before the query is stopped. It goes on from its checkpoint, and the Parquet files hold each match
exactly once: as many as the query has over the whole streams.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import spaseq
import spaseq.spark

GRID = Path(__file__).resolve().parent.parent / "smart-grid"
STREAMS = {"S1": "power", "S2": "weather", "S3": "storage"}


def drop_files(folder: Path, quarters: range) -> None:
    """Move the named quarters of each stream into the folder, whole events each, under names that sort."""
    for name in STREAMS.values():
        events: list[list[str]] = []
        for line in (GRID / f"{name}.nq").read_text("utf-8").splitlines(keepends=True):
            if "generatedAtTime" in line:  # an event begins with its time
                events.append([])
            events[-1].append(line)
        for quarter in quarters:
            part = events[quarter * len(events) // 4 : (quarter + 1) * len(events) // 4]
            hidden = folder / f".{name}-{quarter}"
            hidden.write_text("".join(line for event in part for line in event), encoding="utf-8")
            hidden.rename(folder / f"{name}-{quarter}.nq")


def main(folder: Path) -> None:
    query = spaseq.compile((GRID / "query.rq").read_text("utf-8"))
    kb = {"http://smartgrid.org/db": str(GRID / "kb.ttl")}
    spark = spaseq.spark.local_session(2)
    (folder / "in").mkdir(parents=True)
    streams = {key: str(folder / "in" / f"{name}-*.nq") for key, name in STREAMS.items()}
    for quarters, bounded in ((range(0, 2), False), (range(2, 4), True)):
        drop_files(folder / "in", quarters)
        running = spaseq.spark.start(
            query, spark, streams, kb, checkpoint=str(folder / "state"), output=str(folder / "matches"),
            available_now=True, reading=spaseq.spark.Reading(bounded=bounded),
        )  # fmt: skip
        spaseq.spark.wait(running)
        print(spaseq.spark.progress(running))
    found = spark.read.parquet(str(folder / "matches"))
    found.orderBy("end").show(5, truncate=False)
    expected = query.run({k: str(GRID / f"{name}.nq") for k, name in STREAMS.items()}, kb).count()
    print(f"{found.count()} matches in the folder; {expected} in the streams")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch) / "grid")
