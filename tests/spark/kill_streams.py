"""Kill a streaming query at random moments and start it again; in the end not one match is lost or doubled.

    python -m tests.spark.kill_streams --on kafka --kills 40 --log benchmarks/results/DATE-kafka-kills.csv

Each round begins with an empty checkpoint and starts the query as a process of its own. At a random moment that process
is killed, or its JVM, or one of the JVM's Python workers (SIGKILL, by process number, only processes of this script);
with `--on cluster`, a standalone cluster of two workers, also one of its executors; with `--on kafka`, where the events
are messages, also the broker, which is started again. Then the query is started again, until it has read all. The
matches in the Parquet sink, read through Spark, must be those of the local engine. A line of the log is a kill, or the
end of a round.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
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


def run_query(folder: Path, place: Path, given: dict[str, str]) -> None:
    """Read on from the checkpoint to the end of the streams. `given`: settings of Spark's, and with Kafka `servers` and
    `topic`."""
    import spaseq.spark

    servers, topic = given.pop("servers", None), given.pop("topic", None)
    spark = spaseq.spark.local_session(2, attempts=4, configuration=given)
    streams: Any = streams_of(folder)
    reading: Any = spaseq.spark.Reading(bounded=True, max_bytes=12_000)
    if servers is not None:
        from tests.spark.kafka.messages import quads_of

        options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest",
                   "maxOffsetsPerTrigger": "150"}  # fmt: skip
        streams, reading = quads_of(spark.readStream.format("kafka").options(**options).load()), None
    running = spaseq.spark.start(
        QUERY, spark, streams, checkpoint=str(place / "state"), output=str(place / "out"),
        available_now=True, tasks=2, reading=reading,
    )  # fmt: skip
    spaseq.spark.wait(running)


# -- what it runs on


@dataclass(frozen=True)
class Ground:
    """`given`: as of `run_query`. `broker`: of Kafka. `cluster`: the process numbers of a cluster's workers, whose
    executors run the tasks."""

    given: dict[str, str]
    broker: Any = None
    cluster: tuple[int, ...] = ()

    def victims(self, root: int) -> dict[str, list[int]]:
        """Whom there is to kill beside the driver `root`, by what they are; of a broker the number says nothing."""
        below = processes_under(root)
        java = [pid for pid, command in below.items() if "java" in command.split(" ")[0]]
        executors: list[int] = []
        for each in self.cluster:
            beside = processes_under(each)
            executors += [pid for pid, command in beside.items() if "CoarseGrainedExecutorBackend" in command]
            below |= beside
        workers = [
            pid for pid, command in below.items() if "pyspark" in command and "java" not in command.split(" ")[0]
        ]
        broker = [0] if self.broker is not None else []
        found = {"worker": workers, "executor": executors, "jvm": java, "broker": broker}
        return {what: pids for what, pids in found.items() if pids}


def ground_of(kind: str, scratch: Path, stack: ExitStack) -> Ground:
    """What `--on` says, begun, and ended with `stack`."""
    if kind == "files":
        return Ground({})
    if kind == "kafka":
        from tests.spark.kafka.broker import Broker, artifacts

        jars = ",".join(artifacts("connector"))
        (scratch / "broker").mkdir()
        broker = Broker(scratch / "broker", partitions=1)
        broker.start()
        stack.callback(broker.kill)
        return Ground({"spark.jars": jars, "servers": broker.servers, "topic": "graphs"}, broker)
    from tests.spark.cluster.standalone import ROOT, standalone

    cluster = stack.enter_context(standalone(scratch))
    settings = {"spark.master": cluster.url, "spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": str(ROOT)}
    return Ground(settings, cluster=cluster.workers)


def send(folder: Path, given: dict[str, str]) -> None:
    """The events of the streams to the topic, in order of time."""
    import spaseq.spark
    from tests.spark.kafka.messages import messages_of

    spark = spaseq.spark.local_session(2, configuration={"spark.jars": given["spark.jars"]})
    frame = spark.createDataFrame([("k", text) for text in messages_of(folder)], "key string, value string").coalesce(1)
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", given["servers"])
    writer.option("topic", given["topic"]).save()


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


def kill_one(process: subprocess.Popen[bytes], ground: Ground, rng: random.Random) -> str:
    """Kills the query's process, or one of those it needs, each kind as often; says which."""
    victims = {**ground.victims(process.pid), "driver": [process.pid]}
    what = rng.choice(list(victims))
    pid = rng.choice(victims[what])
    if what == "broker":
        ground.broker.kill()
        time.sleep(rng.uniform(0, 3))
        ground.broker.start()
        return what
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return "none"
    return what


def start_process(folder: Path, place: Path, ground: Ground) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.spark.kill_streams",
        "--run",
        str(folder),
        str(place),
        json.dumps(ground.given),
    ]
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


def one_round(
    folder: Path, place: Path, ground: Ground, kills: int, rng: random.Random, note: Callable[[list[Any]], Any]
) -> int:
    """Kills up to `kills` times, until the query is done; how many it killed."""
    done = 0
    for _ in range(ATTEMPTS):
        began = time.monotonic()
        process = start_process(folder, place, ground)
        try:
            code = wait_to_kill(process, place, rng) if done < kills else process.wait(PATIENCE)
            if code == 0:
                return done
            note(["stopped", "", f"{time.monotonic() - began:.1f}", committed(place), f"exit {code}"])
        except subprocess.TimeoutExpired:
            what = kill_one(process, ground, rng)
            done += what != "none"
            note(["kill", what, f"{time.monotonic() - began:.1f}", committed(place), ""])
            if what in ("worker", "executor", "broker"):  # Spark tries again by itself, or the query stops
                try:
                    if process.wait(rng.uniform(2, 15)) == 0:
                        return done
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                    done += 1
                    note(["kill", "driver", "", committed(place), f"after {what}"])
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
    parser.add_argument("--run", nargs=3, metavar=("STREAMS", "PLACE", "GIVEN"), help=argparse.SUPPRESS)
    parser.add_argument("--on", choices=("files", "kafka", "cluster"), default="files")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--per-round", type=int, default=10)
    parser.add_argument("--events", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args() if "--run" not in sys.argv else parser.parse_args([*sys.argv[1:], "--log", "-"])
    if options.run:
        run_query(Path(options.run[0]), Path(options.run[1]), json.loads(options.run[2]))
        return 0
    rng, killed, bad = random.Random(options.seed), 0, 0
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        log = stack.enter_context(options.log.open("w", buffering=1, newline=""))
        ground = ground_of(options.on, Path(scratch), stack)
        folder = Path(scratch, "streams")
        folder.mkdir()
        write_streams(folder, options.events)
        if ground.broker is not None:
            send(folder, ground.given)
        note = csv.writer(log, lineterminator="\n").writerow
        note(["event", "what", "after_s", "batches_done", "note"])
        while killed < options.kills:
            place = Path(scratch, f"round{killed}")
            killed += one_round(folder, place, ground, min(options.per_round, options.kills - killed), rng, note)
            matches, lost, wrong = difference(folder, place)
            bad += lost + wrong
            note(["round", "", "", committed(place), f"{matches} matches, {lost} lost, {wrong} doubled"])
        note(["end", "", "", "", f"{killed} kills, {bad} matches lost or doubled"])
    print(f"{killed} kills, {bad} matches lost or doubled")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
