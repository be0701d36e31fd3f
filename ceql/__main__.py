"""`python -m ceql`: the `ceql` command."""

from __future__ import annotations

from ceql.cli import entry

entry()
