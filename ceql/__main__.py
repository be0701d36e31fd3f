"""`python -m ceql`: the `ceql` command."""

from __future__ import annotations

from ceql.start import ceql

ceql()
