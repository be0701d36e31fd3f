"""Kernels that number the symbol classes of events; see `alphabet`."""

from __future__ import annotations

import numpy as np

from spaseq.core.jit import kernel

FULL = 1
"""The status of `assign` if it needs larger tables."""
_GOLDEN = 0x9E3779B97F4A7C1  # a product with this depends on every bit of a code in the bits that choose a slot


@kernel
def pack(truth: np.ndarray, codes: np.ndarray) -> None:
    """Sets bit p of codes[i] if truth[p, i]. truth: bool (p, n), p <= 63; codes: int64 (n,), zeroed. O(p n)."""
    for p in range(truth.shape[0]):
        for i in range(codes.shape[0]):
            codes[i] |= np.int64(truth[p, i]) << p


@kernel
def assign(
    codes: np.ndarray, keys: np.ndarray, ids: np.ndarray, fresh: np.ndarray, state: np.ndarray, out: np.ndarray
) -> int:
    """Sets out[i] to the number of codes[i]; a new code gets the next number and is appended to `fresh`. Expected O(n).

    `keys`, `ids`: an open-addressing table with a power of two of slots, ids -1 if empty. `state`: the number of
    numbers in use, and the next event. Returns FULL if the table or `fresh` is half full; then call it again with
    larger ones.
    """
    mask = keys.shape[0] - 1
    for i in range(state[1], codes.shape[0]):
        code = codes[i]
        slot = ((code * _GOLDEN) >> 40) & mask
        number = ids[slot]
        while number >= 0 and keys[slot] != code:
            slot = (slot + 1) & mask
            number = ids[slot]
        if number < 0:
            if 2 * (state[0] + 1) > keys.shape[0] or state[0] >= fresh.shape[0]:
                state[1] = i
                return FULL
            number = state[0]
            keys[slot] = code
            ids[slot] = number
            fresh[number] = code
            state[0] += 1
        out[i] = number
    state[1] = codes.shape[0]
    return 0
