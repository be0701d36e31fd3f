"""Processes that check and run queries, from the side of the server."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

from spaseq.tools.studio.replies import failure

_CANCELLED: Final = failure("stopped", "", "Cancelled")

MEMORY: Final = 2 << 30
"""Bytes that a run may hold (`Settings.memory_limit`)."""
QUERY: Final = 1_000_000
"""Characters of a query."""
_WALL: Final = 3 * MEMORY
"""Bytes of data at which the system refuses more to the process."""
GRACE: Final = 3.0
"""Seconds beyond its limit after which a request's process is ended."""


_START: Final = 120.0
"""Seconds that a process may take to import its modules."""


class Worker:
    """A process that answers one request at a time, started when it is first needed and again when it has ended."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._state = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._cancels = 0
        self._starting = False
        self._closed = False

    def warm(self) -> None:
        """Start the process and have it import its modules, in a thread."""
        threading.Thread(target=self.ask, args=({"do": "warm"}, _START), daemon=True).start()

    @property
    def cancels(self) -> int:
        """The number of calls of `cancel`."""
        return self._cancels

    def ask(self, request: dict[str, Any], seconds: float, cancels: int | None = None) -> dict[str, Any]:
        """The answer, once it is its turn. The process has `seconds`, and a little more, then it is ended.

        `cancels`: their number when the work for the request began, if that was earlier.
        """
        cancels = self._cancels if cancels is None else cancels
        with self._turn:
            with self._state:
                if cancels != self._cancels or self._closed:
                    return _CANCELLED
                new, process = self._start()
                self._starting = new
            # A start is not the request's fault. One that was ended meanwhile answers nothing any more.
            found = self._ask(process, {"do": "warm"}, _START) if new else {}
            with self._state:
                self._starting = False
                if cancels != self._cancels:
                    return _CANCELLED
            if found is not None:
                found = self._ask(process, request, seconds)
            return _CANCELLED if found is None and cancels != self._cancels else found or _end_answer(process)

    def cancel(self) -> None:
        """End the present request, and those that wait. A process that is starting is left for the next request."""
        with self._state:
            self._cancels += 1
            if not self._starting:
                self._end()

    def close(self) -> None:
        """Ends the process. From now on, requests are answered that they were stopped."""
        with self._state:
            self._closed = True
            self._cancels += 1
            self._end()

    def _start(self) -> tuple[bool, subprocess.Popen[bytes]]:
        """(True if the process is a new one, the process)."""
        new = self._process is None or self._process.poll() is not None
        if new or self._process is None:
            self._end()
            root = str(Path(__file__).resolve().parents[3])
            path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
            # -P: no module is taken from the folder that the studio was started in
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "spaseq.tools.studio.worker", str(_WALL)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )  # fmt: skip
            self._answers = queue.SimpleQueue()
            threading.Thread(target=_read, args=(self._process, self._answers), daemon=True).start()
        return new, self._process

    def _ask(self, process: subprocess.Popen[bytes], request: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """The answer; None if the process ended without one."""
        assert process.stdin is not None
        answers = self._answers
        with contextlib.suppress(OSError):  # it has ended, which the next lines find
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        try:
            line = answers.get(timeout=seconds + GRACE)
        except queue.Empty:
            with self._state:
                self._end()
            hint = "give it more time, fewer events or a smaller window"
            return failure(f"stopped after {seconds:g} seconds", hint, "LimitReached")
        return json.loads(line) if line else None

    def _end(self) -> None:
        """Ends the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


def _end_answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    code = process.wait()
    why = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return failure(f"the evaluation ended early ({why})", "perhaps it needed more memory than it may take")


def _read(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    """Passes lines on; an empty one says that the process has ended."""
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)
    answers.put(b"")
