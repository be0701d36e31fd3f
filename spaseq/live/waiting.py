"""Common parts of sources of servers: attempts to connect again, and the error for a client that is not installed."""

from __future__ import annotations

import asyncio
from typing import Final

_FIRST: Final = 0.1
_LONGEST: Final = 5.0


class Attempts:
    """Waits between attempts to reach a server: 0.1 s, then twice as long each time, up to 5 s. Behind `most` failures
    in a row, the error of the last one is raised."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failed = 0

    def succeed(self) -> None:
        """The server was reached."""
        self._failed = 0

    async def wait(self, error: Exception) -> None:
        """Wait behind a failure, which `error` is."""
        self._failed += 1
        if self._failed > self._most:
            raise error
        await asyncio.sleep(min(_FIRST * 2 ** (self._failed - 1), _LONGEST))


def missing_client(package: str, extra: str) -> ModuleNotFoundError:
    """The error for a client that is not installed."""
    problem = f"spaseq.live.{extra} needs {package}, which is not installed: pip install 'spaseq[{extra}]'"
    return ModuleNotFoundError(problem, name=package)
