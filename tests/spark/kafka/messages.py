"""The events of `kill_streams` as messages of N-Quads, and such messages as quads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

import spaseq.spark


def messages_of(folder: Path) -> list[str]:
    """The events of the streams as messages of N-Quads, by time; at last one of each stream that completes the rest."""
    found: list[tuple[int, int, str]] = []
    for number, name in enumerate(("one", "two")):
        for file in sorted(folder.glob(f"{name}-*.nq")):
            for line in file.read_text().splitlines():
                if "generatedAtTime" in line:
                    found.append((int(line.split('"')[1]), number, f"{line}\n"))
                else:
                    found[-1] = (*found[-1][:2], f"{found[-1][2]}{line}\n")
    end = max(found)[0] + 1000
    for number, name in enumerate(("one", "two")):
        found.append(
            (end, number, f'<http://example.org/{name}/end> <http://www.w3.org/ns/prov#generatedAtTime> "{end}" .\n')
        )
    return [text for *_, text in sorted(found)]


def quads_of(raw: Any) -> Any:
    """A message has a graph of one of the streams, whose name says which, and the graph's time."""
    text = F.col("value").cast("string")
    messages = raw.select(
        "value", "topic", "partition", "offset",
        F.regexp_extract(text, '#generatedAtTime> "(\\d+)"', 1).alias("time"),
        F.regexp_extract(text, "^(<http://example.org/[^>]*>)", 1).alias("graph"),
        F.regexp_extract(text, "^<(http://example.org/[a-z]*)/", 1).alias("stream"),
    )  # fmt: skip
    return spaseq.spark.parse_rdf(messages, format="nq")
