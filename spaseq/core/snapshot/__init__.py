"""Snapshots: the state of an evaluation as bytes, and back.

Each part of an evaluation returns its state as plain values (`snapshot()`) and takes it back (`restore`). Only the
outermost object (a CEQL or SPAseq session, the state that Spark keeps for a bucket) turns the values into bytes with
`seal`, and back with `unseal`:

* `codec` writes plain values, and values of types that a front end registers (`Kind`). It cannot write classes or
  functions, so reading a snapshot runs no code from it.
* `envelope` adds the format version, the identity (query, settings, schema), the lengths and a checksum.
* `checks` has checks of values that kernels rely on. They are needed although there is a checksum, which detects
  accidental changes but not forged snapshots. A forged snapshot can cause false matches; it cannot crash the process
  or run code.
"""

from spaseq.core.snapshot.checks import array, expect
from spaseq.core.snapshot.codec import Kind, Unwritable, decode, encode
from spaseq.core.snapshot.envelope import Identity, seal, unseal

__all__ = [
    "Identity",
    "Kind",
    "Unwritable",
    "array",
    "decode",
    "encode",
    "expect",
    "seal",
    "unseal",
]
