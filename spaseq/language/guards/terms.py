"""Numbers for the terms that runs hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spaseq.core.engine.program.register_ops import NOTHING, UNKNOWN
from spaseq.core.integers import apart
from spaseq.core.snapshot import expect
from spaseq.rdf import Term, is_term_key, term_bytes, term_from_key

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions
    from spaseq.gpm.columnar.table import Space

_TERMS: Final = 1 << 16
STRING: Final = b"^^<http://www.w3.org/2001/XMLSchema#string>"
"""Redundant behind a text. Readers leave it out; a term that a function makes with it has an alias."""


class NumberedTerms:
    """Numbers terms from 0 as they come, by their bytes (`term_bytes`); `keep` lets go of others.

    `next`: the number of the next new one. `has_aliases`: True if a term may have two numbers. `forgotten`: how often
    terms were let go of; a term may have had another number before.
    """

    def __init__(self) -> None:
        self.next: int = 0
        self.has_aliases: bool = False
        self.forgotten: int = 0
        self._keys: dict[bytes, int] = {}
        self._texts: dict[int, bytes] = {}
        self._terms: dict[int, Term] = {}
        self._full = _TERMS

    def of_key(self, key: bytes) -> int:
        """The number of the term with these bytes."""
        number = self._keys.get(key)
        if number is None:
            number = self._keys[key] = self.next
            self._texts[number] = key
            self.has_aliases |= key.endswith(STRING)
            self.next += 1
        return number

    def of_keys(self, keys: Sequence[bytes]) -> np.ndarray:
        """The numbers of terms with these bytes: int64."""
        index, first = self._keys, self.next
        fresh = list(dict.fromkeys([key for key in keys if key not in index]))
        if fresh:
            self.next = first + len(fresh)
            index.update(zip(fresh, range(first, self.next), strict=True))
            self._texts.update(zip(range(first, self.next), fresh, strict=True))
            if STRING in b"".join(fresh):
                self.has_aliases |= any(key.endswith(STRING) for key in fresh)
        return np.fromiter(map(index.__getitem__, keys), np.int64, len(keys))

    def of(self, term: Term) -> int:
        """The number of a term."""
        return self.of_key(term_bytes(term))

    def term(self, number: int) -> Term:
        """The term of a number; made once."""
        term = self._terms.get(number)
        if term is None:
            term = self._terms[number] = term_from_key(self._texts[number].decode())
        return term

    def key(self, number: int) -> str:
        """The `term_key` of a number's term."""
        return self._texts[number].decode()

    def keys(self, numbers: Iterable[int]) -> list[bytes]:
        """The bytes of terms (`term_bytes`)."""
        return list(map(self._texts.__getitem__, numbers))

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """`key` of each number."""
        return [key.decode() for key in map(self._texts.__getitem__, numbers)]

    @property
    def full(self) -> bool:
        """True if it is time to `keep` only the terms in use."""
        return len(self._keys) > self._full

    def keep(self, numbers: Collection[int]) -> None:
        """Forget the other terms. The numbers stay, and stand for no other term later."""
        self.forgotten += 1
        self._texts = {number: key for number, key in self._texts.items() if number in numbers}
        self._index()

    def _index(self) -> None:
        self._keys = {key: number for number, key in self._texts.items()}
        self._terms = {}
        self._full = 2 * len(self._keys) + _TERMS

    def snapshot(self) -> Any:
        """The numbered terms, as plain values."""
        return self.next, list(self._texts), [key.decode() for key in self._texts.values()], self.has_aliases

    def restore(self, state: Any) -> Collection[int]:
        """The opposite of `snapshot`. The numbers that stand for a term. `OptionError` if it is no snapshot."""
        self.next, numbers, keys, self.has_aliases = state
        expect(all(map(is_term_key, keys)), "terms")
        self._texts = {number: key.encode() for number, key in zip(numbers, keys, strict=True)}
        expect(all(type(n) is int and 0 <= n < self.next < 1 << 60 for n in numbers), "a number for each term")
        self._index()
        expect(len(self._keys) == len(self._texts) == len(numbers), "each term once")
        return self._texts.keys()


class SolutionTerms:
    """The codes of terms of solutions, in `terms`. Those of a space of terms are looked up once, until `forget`."""

    def __init__(self, terms: NumberedTerms) -> None:
        self.terms = terms
        self._spaces: dict[int, tuple[Space, np.ndarray]] = {}

    def forget(self) -> None:
        """Remember no space."""
        self._spaces = {}

    def codes(self, solutions: Solutions, places: np.ndarray, name: str) -> np.ndarray:
        """The code of a variable's term in each solution at `places`: int64, NOTHING if it is not bound."""
        terms, found = self.terms, solutions.column(name)
        if found is None:
            mappings = (dict(solutions.mapping(i, (name,))) for i in places.tolist())
            return np.array([terms.of(m[name]) if name in m else NOTHING for m in mappings], np.int64)
        numbers, space = found[0][places], found[1]
        memo = self._spaces.get(id(space))
        if memo is None or len(memo[1]) < len(space) + 1:
            fresh = np.full(len(space) + 1, UNKNOWN, np.int64)
            fresh[-1] = NOTHING  # of what is not bound, number -1
            if memo is not None:
                fresh[: len(memo[1]) - 1] = memo[1][:-1]
            memo = self._spaces[id(space)] = space, fresh
        codes = memo[1][numbers]
        unknown = codes == UNKNOWN
        if unknown.any():
            unseen = apart(numbers[unknown])
            memo[1][unseen] = terms.of_keys(space.all_keys(unseen))
            codes = memo[1][numbers]
        return codes
