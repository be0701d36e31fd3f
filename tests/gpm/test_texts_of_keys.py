"""Texts of many terms at once are those of each."""

import random

import pytest
from rdflib.namespace import XSD

from spaseq.gpm.serialise import LIST, item_of_key, items_of_keys, nquads_of_key, nquads_of_keys

SUFFIXES = ("", "@en", "@en-GB", f"^^<{XSD.integer}>", f"^^<{XSD.decimal}>", f"^^<{XSD.double}>", f"^^<{XSD.string}>",
            f"^^<{LIST}>", "^^<urn:a>b>")  # fmt: skip
TEXTS = ("", '"', 'a"b', "\\", "\t", "\r", "1", "-2", "1.5", "x\n", "1e5", "true", '"^^<urn:q>', "\n", "é")
OTHERS = ("<urn:a>", "<urn:é>", "_:b")


def drawn(rng: random.Random) -> list[str]:
    """Keys of which the literals are often of one datatype, and often numbers."""
    suffix, texts, mixed = rng.choice(SUFFIXES), rng.choice((TEXTS, TEXTS[6:9])), rng.random() < 0.2

    def key() -> str:
        if mixed and rng.random() < 0.3:
            return rng.choice(OTHERS)
        text = "".join(rng.choice(texts) for _ in range(rng.randrange(3)))
        return f'"{text}"{rng.choice(SUFFIXES) if mixed else suffix}'

    return [key() for _ in range(rng.randrange(5))]


@pytest.mark.parametrize("seed", range(20))
def test_random_keys(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        keys = drawn(rng)
        assert list(nquads_of_keys(keys)) == [*map(nquads_of_key, keys)], keys
        assert list(items_of_keys(keys)) == [*map(item_of_key, keys)], keys


def test_a_text_of_two_lines_is_no_number() -> None:
    keys = [f'"1\n1"^^<{XSD.integer}>', f'"2"^^<{XSD.integer}>']
    assert list(items_of_keys(keys)) == [f'"1\\n1"^^<{XSD.integer}>', "2"]
