"""Snapshots: the state of an evaluation as bytes, and back.

Each part of an evaluation gives plain values (`snapshot()`) and takes them (`restore`). Only the face that a user
holds (a CEQL `Stream`, a SPAseq `Session`, the value that Spark keeps for a bucket) turns them into bytes, by `seal`,
and back, by `unseal`:

* `codec` writes plain values, and those that a front end names (`Kind`). It has no way to write a class, a function or
  a reference to either, so reading a snapshot runs no code of it.
* `envelope` puts around them what it is, of which query, settings and schema, how long, and a checksum.
* `checks` is what parts check of values that kernels follow: a checksum says that nothing changed by accident, not
  who wrote it. A snapshot that somebody made up can give false matches; it cannot end the process or run code.
"""

from spaseq.snapshot.checks import array, damaged, expect
from spaseq.snapshot.codec import Kind, Unwritable, decode, encode
from spaseq.snapshot.envelope import Identity, seal, shortened, unseal

__all__ = [
    "Identity",
    "Kind",
    "Unwritable",
    "array",
    "damaged",
    "decode",
    "encode",
    "expect",
    "seal",
    "shortened",
    "unseal",
]
