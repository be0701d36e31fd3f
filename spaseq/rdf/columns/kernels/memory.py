"""Reading bytes and words of a text inside kernels, without numba's checks for negative indices.

`word` reads eight bytes at any place, the first one lowest. With NUMBA_DISABLE_JIT or NUMBA_BOUNDSCHECK both read
through plain indexing, which checks.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from spaseq.jit import kernel

__all__ = ["byte", "word"]

_CHECKED = bool(config.DISABLE_JIT or config.BOUNDSCHECK) or sys.byteorder != "little"


def _load(bits, kind):
    """An intrinsic (array of uint8, int64) -> `kind`: the `bits` bits from that byte on."""

    def read(typing, array, at):
        if not isinstance(array, types.Array) or array.dtype != types.uint8 or not isinstance(at, types.Integer):
            return None

        def generate(context, builder, signature, arguments):
            data = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
            at = context.cast(builder, arguments[1], signature.args[1], types.int64)
            place = builder.bitcast(builder.gep(data, [at]), ir.IntType(bits).as_pointer())
            return builder.load(place, align=1)

        return kind(array, at), generate

    return intrinsic(read)


if _CHECKED:

    @kernel
    def byte(data, at):
        return data[at]

    @kernel
    def word(data, at):
        value = np.uint64(0)
        for i in range(8):
            value |= np.uint64(data[at + i]) << np.uint64(8 * i)
        return value

else:
    byte = _load(8, types.uint8)
    word = _load(64, types.uint64)
