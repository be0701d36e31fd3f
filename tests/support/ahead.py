"""Small streams read as large ones are: in many batches, by several threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from spaseq.language.runtime import read_ahead
from spaseq.rdf.columns import BatchLimits, reader

__all__ = ["in_small_batches"]


@contextlib.contextmanager
def in_small_batches(triples: int, *, alone: int = 0) -> Iterator[None]:
    """Files are read in batches of about so many triples; threads are begun after `alone` of them."""

    def pieces(path: str) -> Iterator[bytes]:
        content, size = Path(path).read_bytes(), 60 * triples
        return (content[at : at + size] for at in range(0, len(content), size))

    small = partial(reader.read_batches, limits=BatchLimits(triples), chunks=pieces)
    with mock.patch.object(reader, "read_batches", small), mock.patch.object(read_ahead, "ALONE", alone):
        yield
