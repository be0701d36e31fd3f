"""A service: it reads a log of logins as it grows, and writes an alert for each user who was probably guessed.

    python service.py --events logins.jsonl --alerts alerts.jsonl --state state.bin

It may be killed at any moment and started again: no alert is lost, and none is written twice. How:

* the state file has a snapshot of the evaluation and the place in the log that it covers, in one;
* an alert is on the disk before the next match is asked for, and a state covers only matches that were asked for;
* behind a crash, matches since the latest state are found again. Each has a name (`match_id`), and the sink drops an
  alert whose name it has.

The log and the alerts are files here. With `redis://HOST:PORT/STREAM` they are Redis Streams (the extra `redis`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ceql
from spaseq.live import Alive, FileSink, LogSource, Sink, Source, match_id

HERE = Path(__file__).resolve().parent
FAILED = 1
STOPPED = 0


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    query: Path
    events: str
    alerts: str
    state: Path
    bad: Path
    every: str
    lateness: str
    clock: str | None
    report: float
    once: bool


def read_settings(words: list[str] | None = None) -> Settings:
    """The settings of these words, or of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--query", type=Path, default=HERE / "query.ceql", help="a file with the query, in CEQL")
    add("--events", required=True, help="a file of JSON Lines that grows, or redis://HOST:PORT/STREAM")
    add("--alerts", required=True, help="a file of JSON Lines, or redis://HOST:PORT/STREAM")
    add("--state", type=Path, required=True, help="the file that keeps the place to go on from")
    add("--bad", type=Path, default=Path("bad.jsonl"), help="the file that gets what cannot be read")
    add("--every", default="10s", help="the time between two saves")
    add("--lateness", default="5s", help="how much later than its time an event may come")
    add("--clock", help="let time go on while nothing comes, so much behind the machine's clock")
    add("--report", type=float, default=60, help="seconds between two lines on standard error")
    add("--once", action="store_true", help="end at the end of the log, of a file")
    return Settings(**vars(parser.parse_args(words)))


def place_of(url: str) -> tuple[str, str] | None:
    """The server and the stream of a URL of Redis; None for the path of a file."""
    if not url.startswith("redis://"):
        return None
    parts = urlsplit(url)
    return f"redis://{parts.netloc}", parts.path.lstrip("/")


class BadLines:
    """The events that could not be read, with the reasons: a file of JSON Lines. After a crash a line may be there
    twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = 0

    def take(self, payload: bytes, error: Exception) -> None:
        """Write one of them."""
        self.count += 1
        record = {"payload": payload.decode("utf-8", "replace"), "error": str(error)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def open_source(settings: Settings, bad: BadLines) -> Source:
    """The source of the events."""
    place = place_of(settings.events)
    if place is None:
        Path(settings.events).touch()
        return LogSource(settings.events, follow=not settings.once, on_bad=bad.take)
    from spaseq.live.redis import RedisSource

    url, stream = place
    return RedisSource(stream, url=url, on_bad=bad.take)


def open_sink(settings: Settings) -> Sink:
    """The sink of the alerts, which knows those that it has."""
    place = place_of(settings.alerts)
    if place is None:
        return FileSink(settings.alerts)
    from spaseq.live.redis import RedisSink

    url, stream = place
    return RedisSink(stream, url=url)


def alert_of(match: Any) -> Mapping[str, Any]:
    """What is written of a match: the columns that the query selects, and the times of the failures."""
    row = dict(match.row)
    row["at"] = row["at"].isoformat() if hasattr(row.get("at"), "isoformat") else row.get("at")
    row["severity"] = "high" if row["failures"] >= 5 else "low"
    row["addresses"] = sorted({str(event.get("ip")) for event in match.events})
    return row


class Service:
    """The evaluation, from the source to the sink."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._query = ceql.compile(settings.query.read_text("utf-8"), source=str(settings.query))
        self._bad = BadLines(settings.bad)
        self._alerts = 0
        self._writing = False  # a match was taken, and its alert may not be written yet

    async def run(self) -> None:
        """Write alerts until the log ends, or this task is cancelled."""
        settings = self._settings
        sink = open_sink(settings)
        try:
            alive = self._query.alive(
                open_source(settings, self._bad), state=settings.state, save=settings.state, every=settings.every,
                clock=settings.clock, time="time", lateness=settings.lateness, late="drop",
            )  # fmt: skip
            reporting = asyncio.create_task(self._report(alive))
            try:
                async with alive:
                    await self._write_all(alive, sink)
            finally:
                reporting.cancel()
                with suppress(asyncio.CancelledError):
                    await reporting
                self._tell(alive)
        finally:
            await sink.aclose()

    async def _write_all(self, alive: Alive[Any], sink: Sink) -> None:
        try:
            async for match in alive:
                self._writing = True
                await sink.send(alert_of(match), id=match_id(self._query, match))
                self._alerts += 1
                self._writing = False
        except asyncio.CancelledError:
            # The service is stopped. Its state saves work for the next start, if all that it covers is written.
            if not self._writing and not alive.pending:
                await alive.save()
            raise

    async def _report(self, alive: Alive[Any]) -> None:
        while True:
            await asyncio.sleep(self._settings.report)
            self._tell(alive)

    def _tell(self, alive: Alive[Any]) -> None:
        counters = alive.counters
        now = time.strftime("%H:%M:%S")
        print(
            f"{now} {counters.events:,} events, {counters.late:,} late, {self._bad.count:,} bad; "
            f"{self._alerts:,} alerts since the start; place {alive.position}",
            file=sys.stderr,
            flush=True,
        )


async def serve(settings: Settings) -> int:
    """Run the service until a signal, the end of the log or an error; the exit code."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await Service(settings).run()
    except asyncio.CancelledError:
        return STOPPED
    except (ceql.SpaseqError, OSError) as error:
        print(f"service: {error}", file=sys.stderr)
        return FAILED  # a supervisor starts it again, and it goes on at its state
    return STOPPED


def main(words: list[str] | None = None) -> int:
    """The command; the exit code."""
    settings = read_settings(words)
    for path in (settings.state, settings.bad):
        os.makedirs(path.resolve().parent, exist_ok=True)
    return asyncio.run(serve(settings))


if __name__ == "__main__":
    sys.exit(main())
