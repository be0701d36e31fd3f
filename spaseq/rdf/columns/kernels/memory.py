"""Reading bytes and words of a text inside kernels, without numba's checks for negative indices.

`word` reads eight bytes at any place, the first one lowest. Interpreted, and with NUMBA_DISABLE_JIT or
NUMBA_BOUNDSCHECK, both read through plain indexing, which checks.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import sys

import numpy as np

from spaseq.core.jit import native


def _load(bits):
    """An intrinsic (array of uint8, int64) -> unsigned integer: the `bits` bits from that byte on. None if they are to
    be read with checks."""
    from llvmlite import ir
    from numba import config, types
    from numba.core import cgutils
    from numba.extending import intrinsic

    if config.DISABLE_JIT or config.BOUNDSCHECK or sys.byteorder != "little":
        return None

    def read(typing, array, at):
        if not isinstance(array, types.Array) or array.dtype != types.uint8 or not isinstance(at, types.Integer):
            return None

        def generate(context, builder, signature, arguments):
            data = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
            at = context.cast(builder, arguments[1], signature.args[1], types.int64)
            place = builder.bitcast(builder.gep(data, [at]), ir.IntType(bits).as_pointer())
            return builder.load(place, align=1)

        return types.Integer.from_bitwidth(bits, signed=False)(array, at), generate

    return intrinsic(read)


@native(lambda: _load(8))
def byte(data, at):
    return data[at]


@native(lambda: _load(64))
def word(data, at):
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value
