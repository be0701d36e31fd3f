"""Kill a streaming query at random moments and start it again; in the end not one match is lost or doubled.

    python tests/spark/kill_streams.py --kills 100 --log benchmarks/results/DATE-kills.csv

Each round begins with an empty checkpoint and starts the query as a process of its own. At a random moment that process
is killed, or its JVM, or one of the JVM's Python workers (SIGKILL, by process number, only processes of this script).
Then it is started again, until it has read all. The matches in the Parquet sink, read through Spark, must be those of
the local engine. A line of the log is a kill, or the end of a round.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

QUERY = """PREFIX : <http://example.org/>
SELECT ?s ?x ?y ?z WITHIN 30 SECONDS PARTITION BY (?s) FROM STREAM S1 <http://example.org/one>
FROM STREAM S2 <http://example.org/two>
WHERE { SEQ (A; B; C) DEFINE GPM A ON S1 { ?s :heat ?x FILTER (?x > 20) } DEFINE GPM B ON S2 { ?s :heat ?y }
DEFINE GPM C ON S1 { ?s :heat ?z FILTER (?z > ?x) } }"""
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
HEAT = "<http://example.org/heat>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
ATTEMPTS = 40
PATIENCE = 300


def write_streams(folder: Path, events: int) -> None:
    """Two streams, in three files each."""
    rng = random.Random(7)
    for name in ("one", "two"):
        now = 0
        for number in range(3):
            with (folder / f"{name}-{number}.nq").open("w") as file:
                for event in range(events // 3):
                    now += rng.choice((0, 1, 1, 2))
                    graph = f"<http://example.org/{name}/{number}/{event}>"
                    file.write(f'{graph} {TIME} "{now}" .\n')
                    for sensor in rng.sample(range(6), 2):
                        heat = f'"{rng.randint(10, 30)}"^^{INTEGER}'
                        file.write(f"<http://example.org/s{sensor}> {HEAT} {heat} {graph} .\n")


def streams_of(folder: Path) -> dict[str, str]:
    return {"S1": str(folder / "one-*.nq"), "S2": str(folder / "two-*.nq")}


# -- the process that is killed


def run_query(folder: Path, place: Path) -> None:
    """Read on from the checkpoint to the end of the streams."""
    import spaseq.spark

    spark = spaseq.spark.local_session(2, attempts=4)
    running = spaseq.spark.start(
        QUERY, spark, streams_of(folder), checkpoint=str(place / "state"), output=str(place / "out"),
        available_now=True, tasks=2, reading=spaseq.spark.Reading(bounded=True, max_bytes=12_000),
    )  # fmt: skip
    spaseq.spark.wait(running)


# -- who kills it


def processes_under(root: int) -> dict[int, str]:
    """The processes below `root`, by number, with their commands."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            parents[int(entry.name)] = (int(stat.rsplit(")", 1)[1].split()[1]), command)
    found: dict[int, str] = {}
    below = {root}
    while below:
        below = {pid for pid, (parent, _) in parents.items() if parent in below and pid not in found}
        found |= {pid: parents[pid][1] for pid in below}
    return found


def kill_one(process: subprocess.Popen[bytes], rng: random.Random) -> str:
    """Kills the query's process, its JVM or a worker; says which. Workers twice as often."""
    below = processes_under(process.pid)
    java = [pid for pid, command in below.items() if "java" in command.split(" ")[0]]
    workers = [pid for pid, command in below.items() if "pyspark" in command and pid not in java]
    choices = [("jvm", pid) for pid in java] + [("worker", pid) for pid in workers for _ in range(2)]
    what, pid = rng.choice(choices) if choices and rng.random() < 0.85 else ("driver", process.pid)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return "none"
    return what


def start_process(folder: Path, place: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--run", str(folder), str(place)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Nothing of a start may outlive it: what is left would go on writing beside the next one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def committed(place: Path) -> int:
    """Batches that are done."""
    commits = place / "state" / "commits"
    return sum(name.name.isdigit() for name in commits.iterdir()) if commits.is_dir() else 0


def wait_to_kill(process: subprocess.Popen[bytes], place: Path, rng: random.Random) -> int:
    """The exit code, or TimeoutExpired when the moment has come: seldom while Spark starts, mostly some random time
    after this start's first batch."""
    if rng.random() < 0.15:
        return process.wait(rng.uniform(3, 12))
    before, end = committed(place), time.monotonic() + PATIENCE
    while committed(place) == before and time.monotonic() < end:
        if process.poll() is not None:
            return process.returncode
        time.sleep(0.05)
    return process.wait(rng.uniform(0, 5))


def one_round(folder: Path, place: Path, kills: int, rng: random.Random, note: Callable[[list[Any]], Any]) -> int:
    """Kills up to `kills` times, until the query is done; how many it killed."""
    done = 0
    for _ in range(ATTEMPTS):
        began = time.monotonic()
        process = start_process(folder, place)
        try:
            code = wait_to_kill(process, place, rng) if done < kills else process.wait(PATIENCE)
            if code == 0:
                return done
            note(["stopped", "", f"{time.monotonic() - began:.1f}", committed(place), f"exit {code}"])
        except subprocess.TimeoutExpired:
            what = kill_one(process, rng)
            done += what != "none"
            note(["kill", what, f"{time.monotonic() - began:.1f}", committed(place), ""])
            if what == "worker":  # Spark tries again by itself, or the query stops
                try:
                    if process.wait(rng.uniform(2, 15)) == 0:
                        return done
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                    done += 1
                    note(["kill", "driver", "", committed(place), "after a worker"])
        finally:
            end_group(process)
    raise SystemExit("the query did not come to its end")


def difference(folder: Path, place: Path) -> tuple[int, int, int]:
    """(matches, lost, doubled or wrong)."""
    import spaseq
    import spaseq.spark

    query = spaseq.compile(QUERY)
    local = Counter(
        (m.start, m.end, m.positions, tuple(sorted((k, v.n3()) for k, v in m.bindings.items())))
        for m in query.run(streams_of(folder), keep_events=False)
    )
    rows = spaseq.spark.local_session(2).read.parquet(str(place / "out")).collect()
    found = Counter(
        (r.start, r.end, tuple(r.positions), tuple(sorted((v, r[v]) for v in query.variables if r[v] is not None)))
        for r in rows
    )
    return sum(local.values()), sum((local - found).values()), sum((found - local).values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs=2, metavar=("STREAMS", "PLACE"), help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--per-round", type=int, default=10)
    parser.add_argument("--events", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args() if "--run" not in sys.argv else parser.parse_args([*sys.argv[1:], "--log", "-"])
    if options.run:
        run_query(Path(options.run[0]), Path(options.run[1]))
        return 0
    rng, killed, bad = random.Random(options.seed), 0, 0
    with tempfile.TemporaryDirectory() as scratch, options.log.open("w", buffering=1, newline="") as log:
        folder = Path(scratch, "streams")
        folder.mkdir()
        write_streams(folder, options.events)
        note = csv.writer(log, lineterminator="\n").writerow
        note(["event", "what", "after_s", "batches_done", "note"])
        while killed < options.kills:
            place = Path(scratch, f"round{killed}")
            killed += one_round(folder, place, min(options.per_round, options.kills - killed), rng, note)
            matches, lost, wrong = difference(folder, place)
            bad += lost + wrong
            note(["round", "", "", committed(place), f"{matches} matches, {lost} lost, {wrong} doubled"])
        note(["end", "", "", "", f"{killed} kills, {bad} matches lost or doubled"])
    print(f"{killed} kills, {bad} matches lost or doubled")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
