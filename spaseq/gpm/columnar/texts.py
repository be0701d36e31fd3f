"""The keys of terms in columns, for the functions of `spaseq.gpm.functions.table`, and new terms in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.gpm.columnar.table import Space
from spaseq.gpm.functions import FRESH
from spaseq.rdf import term_from_key
from spaseq.rdf.columns import Kinds


def keys_of(numbers: np.ndarray, space: Space) -> list[str]:
    """The keys of terms, with their tags as they are written."""
    if len(numbers) and numbers.min() >= space.base:
        return space.cased_keys(numbers.tolist())
    return [
        space.cased_key(number) if key is None else key.decode()
        for number, key in zip(numbers.tolist(), space.keys(numbers), strict=True)
    ]


def numbers_of(keys: Sequence[str], space: Space) -> np.ndarray:
    """The numbers of terms given by their keys: int32. Tags stay as they are written, unless the term is there."""
    odd = [place for place, key in enumerate(keys) if key[-1] not in '">' and not key.rpartition("@")[2].islower()]
    if not odd:
        return space.numbers_of_keys([key.encode() for key in keys])
    found, left = np.empty(len(keys), np.int32), np.delete(np.arange(len(keys)), odd)
    found[left] = space.numbers_of_keys([keys[place].encode() for place in left.tolist()])
    found[odd] = [space.number(term_from_key(keys[place])) for place in odd]
    return found


def fresh_values(name: str, count: int, space: Space) -> np.ndarray:
    """The values of a function of `FRESH` without arguments for so many rows, as numbers of terms: int32."""
    keys = [key.encode() for key in FRESH[name](count)]
    return space.numbers_of_keys(keys) if name == "RAND" else space.add_keys(keys)


def nodes_of(texts: np.ndarray, rows: np.ndarray | None, space: Space) -> np.ndarray:
    """BNODE of texts, given by number: int32, -1 if it is an error. One node for a text and a solution; `rows` has a
    node for each solution, None if no other expression names those of the same."""
    is_text = (texts >= 0) & (space.literals().kind[texts] != Kinds.NO_LITERAL)
    own = fresh_values("BNODE", len(texts), space) if rows is None else rows
    found = np.full(len(texts), -1, np.int32)
    pairs = zip(space.cased_keys(own[is_text].tolist()), texts[is_text].tolist(), strict=True)
    found[is_text] = space.numbers_of_keys([f"{row}x{text}".encode() for row, text in pairs])
    return found
