"""`python -m ceql`: the `ceql` command."""

from __future__ import annotations

from ceql.cli.main import entry

entry()
