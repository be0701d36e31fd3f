"""The service in `examples/live`, killed again and again: no alert is lost, and none is there twice."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest

import ceql
from spaseq.live import match_id
from spaseq.live.states import parts_of
from tests.live.servers import redis_server

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "live"
_PATIENCE = 120.0


def _logins(count: int) -> list[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("generate_logins", EXAMPLE / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.logins(count))


class Running:
    """The service in a folder, as a process."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.words = [
            "--events",
            "logins.jsonl",
            "--alerts",
            "alerts.jsonl",
            "--state",
            "state",
            "--every",
            "50ms",
            *words,
        ]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
        with (self.folder / "said").open("ab") as said:
            command = [sys.executable, str(EXAMPLE / "service.py"), *self.words, *words]
            return subprocess.Popen(command, cwd=self.folder, env=environment, stderr=said)

    def finish(self) -> None:
        assert self.start("--once").wait(_PATIENCE) == 0, (self.folder / "said").read_text()

    def size(self) -> tuple[int, int]:
        """The size of the alerts, and the time of the state: what a life adds to."""
        paths = [self.folder / "alerts.jsonl", self.folder / "state"]
        found = [path.stat() if path.exists() else None for path in paths]
        return (found[0].st_size if found[0] else 0, found[1].st_mtime_ns if found[1] else 0)


def _append(log: IO[str], events: list[dict[str, Any]]) -> None:
    log.write("".join(json.dumps(event) + "\n" for event in events))
    log.flush()


def _check_alerts(folder: Path, events: list[dict[str, Any]]) -> None:
    query = ceql.compile((EXAMPLE / "query.ceql").read_text())
    expected = {match_id(query, match): match.row for match in query.run(events, time="time")}
    written = [json.loads(line) for line in (folder / "alerts.jsonl").read_text().splitlines()]
    names = [alert["match_id"] for alert in written]
    assert len(names) == len(set(names)), "an alert is there twice"
    assert set(names) == set(expected), "an alert is lost, or none of a match"
    assert all(alert["user"] == expected[alert["match_id"]]["user"] for alert in written)
    assert len(names) > 5


def _kill_often(folder: Path, kills: int) -> None:
    pick = random.Random(kills)
    events = _logins(kills * 3_000)
    service = Running(folder)
    begun_at = []
    with (folder / "logins.jsonl").open("w") as log:
        rest = events
        for life in range(kills):
            upcoming, rest = rest[:3_000], rest[3_000:]
            before = service.size()
            process = service.start()
            until = time.monotonic() + _PATIENCE
            lives_for = pick.random()
            dies = None
            while dies is None or time.monotonic() < dies:
                _append(log, upcoming[:40])
                upcoming = upcoming[40:]
                if dies is None and service.size() != before:
                    dies = time.monotonic() + lives_for
                assert process.poll() is None and time.monotonic() < until, (folder / "said").read_text()
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
            _append(log, upcoming)
            if (folder / "state").exists():
                begun_at.append(parts_of((folder / "state").read_bytes())[1])
            if life % 5 == 0:  # and a stop, as of a supervisor
                process = service.start()
                time.sleep(pick.random() * 3)
                process.send_signal(signal.SIGTERM)
                assert process.wait(_PATIENCE) in (0, -signal.SIGTERM), (folder / "said").read_text()
        _append(log, rest)
    assert len(set(begun_at)) > kills // 4, "the lives got nowhere"
    service.finish()
    _check_alerts(folder, events)
    service.finish()
    _check_alerts(folder, events)


def test_a_service_that_is_killed_loses_no_alert(tmp_path: Path) -> None:
    _kill_often(tmp_path, 2)


@pytest.mark.slow
def test_a_service_that_is_killed_100_times_loses_no_alert(tmp_path: Path) -> None:
    _kill_often(tmp_path, 100)


def test_a_service_between_streams_of_redis_that_is_killed(tmp_path: Path) -> None:
    events = _logins(6_000)
    query = ceql.compile((EXAMPLE / "query.ceql").read_text())
    expected = {match_id(query, match) for match in query.run(events, time="time")}
    with redis_server() as url:
        from redis import Redis

        client = Redis.from_url(url)
        for event in events:
            client.xadd("logins", {"data": json.dumps(event)})
        words = ["--events", f"{url}/logins", "--alerts", f"{url}/alerts", "--lateness", "0s"]
        service = Running(tmp_path, *words)
        until = time.monotonic() + _PATIENCE
        found: list[str] = []
        for behind in (1, len(expected) // 2, len(expected)):
            process = service.start()
            while len(found) < behind:
                assert process.poll() is None and time.monotonic() < until, (tmp_path / "said").read_text()
                found = [fields[b"match_id"].decode() for _, fields in client.xrange("alerts")]
            process.kill()
            process.wait()
    assert sorted(found) == sorted(expected)


def test_a_service_tells_what_it_cannot_read_and_goes_on(tmp_path: Path) -> None:
    events = _logins(3_000)
    lines = [json.dumps(event) for event in events]
    lines.insert(100, "{no")
    (tmp_path / "logins.jsonl").write_text("\n".join(lines) + "\n")
    service = Running(tmp_path)
    service.finish()
    _check_alerts(tmp_path, events)
    (bad,) = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert json.loads(bad)["payload"] == "{no\n" and "1 bad" in (tmp_path / "said").read_text()


def test_a_service_ends_with_an_error_that_a_supervisor_sees(tmp_path: Path) -> None:
    (tmp_path / "logins.jsonl").write_text("")
    (tmp_path / "state").write_bytes(b"not a state")
    process = Running(tmp_path).start("--once")
    assert process.wait(_PATIENCE) == 1
    assert "this is no snapshot" in (tmp_path / "said").read_text()
