"""The start of both commands: interrupts while modules are imported.

Importing what a command needs takes some tenths of a second. Ctrl-C in that time ends the process with a word and exit
code 130, as later (`spaseq.command.process`). This module imports nothing that takes time.
"""

from __future__ import annotations

import importlib
import os
import signal
from typing import Any, NoReturn

__all__ = ["command", "leave", "spaseq"]


def command(module: str) -> NoReturn:
    """Runs the `entry` of a command's module."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    importlib.import_module(module).entry()
    raise SystemExit(1)  # not reached: `entry` ends the process


def leave(number: int, frame: Any) -> NoReturn:
    """Ends the process, which has done nothing yet."""
    os.write(2, b"interrupted\n")
    raise SystemExit(130)


def spaseq() -> NoReturn:
    """The `spaseq` command."""
    command("spaseq.cli.main")
