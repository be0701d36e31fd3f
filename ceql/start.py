"""The start of the `ceql` command, as `spaseq.start` says."""

from __future__ import annotations

from typing import NoReturn

from spaseq.start import command

__all__ = ["ceql"]


def ceql() -> NoReturn:
    """The `ceql` command."""
    command("ceql.cli.main")
