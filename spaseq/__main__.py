"""`python -m spaseq`: the `spaseq` command."""

from __future__ import annotations

from spaseq.cli.main import entry

entry()
