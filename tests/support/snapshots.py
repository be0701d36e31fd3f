"""Snapshots of parts of an evaluation, for tests."""

from __future__ import annotations

from typing import Any

from spaseq.core.events.batch import INSTANTS
from spaseq.core.snapshot import Kind, decode, encode


def rewritten(state: Any, *kinds: Kind) -> Any:
    """`state` through bytes and back, as a face does it."""
    return decode(encode(state, (INSTANTS, *kinds)), (INSTANTS, *kinds))
