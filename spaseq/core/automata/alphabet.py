"""Symbol classes: the alphabet an automaton really reads (regex engines call it alphabet compression).

An automaton reads an event only through its predicates. Two events with the same bit vector of truth values fire the
same transitions from every state, so an automaton cannot tell them apart: the vector is the symbol. Vectors that have
occurred are numbered 0, 1, 2, … in order of appearance; these numbers are the *symbol classes*, and they are all that
the inner loop reads. There are at most 2^predicates classes, and in practice few, since predicates on one attribute
exclude each other.
"""

from __future__ import annotations

import numpy as np

from spaseq.core.automata.kernels import FULL, assign, pack
from spaseq.core.jit import attempt_rows
from spaseq.core.snapshot import expect

_WORD = 63  # bits a word holds, so that codes stay non-negative int64


class _Numbering:
    """Numbers int64 codes in order of first appearance."""

    def __init__(self) -> None:
        self._resize(256)
        self._state = np.zeros(2, np.int64)

    def _resize(self, slots: int) -> None:
        self._keys = np.zeros(slots, np.int64)
        self._ids = np.full(slots, -1, np.int32)
        old = getattr(self, "_fresh", np.zeros(0, np.int64))
        self._fresh = np.zeros(slots, np.int64)
        self._fresh[: len(old)] = old

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def codes(self) -> np.ndarray:
        """The codes numbered so far, int64; the code of number k is `codes[k]`."""
        return self._fresh[: len(self)]

    def number(self, codes: np.ndarray) -> np.ndarray:
        """The number of each code: int32, shape of `codes`."""
        out = np.empty(len(codes), np.int32)
        self._state[1] = 0
        while attempt_rows(assign, len(codes), codes, self._keys, self._ids, self._fresh, self._state, out) == FULL:
            known, at = self.codes.copy(), int(self._state[1])
            self._resize(4 * len(self._keys))
            self._state[:] = 0
            again = np.empty(len(known), np.int32)
            attempt_rows(assign, len(known), known, self._keys, self._ids, self._fresh, self._state, again)
            self._state[1] = at
        return out


class Alphabet:
    """The symbol classes that have occurred in one evaluation.

    `vectors[c]` is the bit vector of class c as an int: bit p is the truth of predicate p.
    """

    def __init__(self, predicates: int) -> None:
        words = max(1, -(-predicates // _WORD))
        # A vector of several words: number word 0, then pairs of (number so far, number of the next word), and so on.
        self._words = [_Numbering() for _ in range(words)]
        self._pairs = [_Numbering() for _ in range(words - 1)]
        self.vectors: list[int] = []

    def classify(self, truth: np.ndarray) -> np.ndarray:
        """The symbol class of each event: int32 (n,), from `truth`: bool (predicates, n). O(predicates n)."""
        count = truth.shape[1]
        numbers: np.ndarray | None = None
        for w, words in enumerate(self._words):
            codes = np.zeros(count, np.int64)
            attempt_rows(pack, count, np.ascontiguousarray(truth[w * _WORD : (w + 1) * _WORD]), codes)
            word = words.number(codes)
            if numbers is None:
                numbers = word
            else:
                numbers = self._pairs[w - 1].number((numbers.astype(np.int64) << 32) | word)
        assert numbers is not None
        last = self._pairs[-1] if self._pairs else self._words[0]
        for c in range(len(self.vectors), len(last)):
            self.vectors.append(self._vector(c))
        return numbers

    def restore(self, vectors: list[int], predicates: int) -> None:
        """Takes over the classes of another alphabet of as many predicates, with their numbers. `OptionError` for
        vectors that no alphabet can have."""
        expect(all(type(v) is int and 0 <= v < 1 << predicates for v in vectors), "a bit for each predicate")
        truth = np.array([[v >> p & 1 for v in vectors] for p in range(predicates)], bool)
        if vectors:
            self.classify(truth.reshape(predicates, len(vectors)))
        expect(self.vectors == vectors, "a number for each symbol class")

    def _vector(self, c: int) -> int:
        vector = 0
        for w in range(len(self._words) - 1, 0, -1):
            pair = int(self._pairs[w - 1].codes[c])
            vector |= int(self._words[w].codes[pair & 0xFFFFFFFF]) << (w * _WORD)
            c = pair >> 32
        return vector | int(self._words[0].codes[c])
