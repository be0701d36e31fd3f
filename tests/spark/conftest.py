"""Small streams to run queries on, and the session of the whole test run under a short name."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

# The jobs are short: compile quickly, not well, and collect garbage in one thread.
# PERF: of 201 s of a processor that Java took for half of the tests, 15 s looked for space among the 48 MB of compiled
# code, and 19 s were those of a collector beside the program (2026-11-26).
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark(spark_session: Any) -> Any:
    return spark_session


NS = "http://example.org/"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"


def write_stream(path: Path, seed: int, events: int, *, start: int = 0, late: int = 0) -> int:
    """N-Quads with `events` graphs of readings, `?sensor :room ?room ; :heat ?h`; returns the last time, in seconds.

    Equal times are frequent. With `late`, a graph may carry a time up to so many seconds back.
    """
    rng = Random(seed)
    now = start
    with path.open("w", encoding="utf-8") as file:
        for number in range(events):
            now += rng.choice((0, 0, 1, 1, 2, 5))
            graph = f"<{NS}{path.stem}/{number}>"
            file.write(f'{graph} <{TIME}> "{now - rng.randint(0, late)}" {graph} .\n')
            for sensor in rng.sample(range(4), rng.randint(1, 2)):
                name = f"_:s{sensor}" if rng.random() < 0.2 else f"<{NS}sensor{sensor}>"
                heat = f'"{rng.randint(10, 30)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
                file.write(f"{name} <{NS}room> <{NS}room{rng.randint(0, 2)}> {graph} .\n")
                if rng.random() < 0.1:
                    file.write(f'{name} <{NS}door> "{rng.choice((15, 20))}" {graph} .\n')
                if rng.random() < 0.85:
                    file.write(f"{name} <{NS}heat> {heat} {graph} .\n")
    return now


KNOWLEDGE = f"""
@prefix : <{NS}> .
:room0 :floor :f0 ; :label "kitchen, \\"small\\""@en .
:room1 :floor :f0 .
:room2 :floor :f1 ; :label "h\\u00e4ll" ; :limit "20" .
:room0 :limit "15" .
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams, one of them in two files, and background knowledge."""
    path = tmp_path_factory.mktemp("streams")
    last = write_stream(path / "one-a.nq", 1, 40)
    write_stream(path / "one-b.nq", 2, 30, start=last)
    write_stream(path / "two.nq", 3, 60)
    write_stream(path / "late.nq", 4, 40, late=4)
    (path / "kb.ttl").write_text(KNOWLEDGE, encoding="utf-8")
    return path
