"""The start of the `ceql` command, as `spaseq.tools.start` says."""

from __future__ import annotations

from typing import NoReturn

from spaseq.tools.start import command


def ceql() -> NoReturn:
    """The `ceql` command."""
    command("ceql.cli.main")
