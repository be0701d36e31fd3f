"""Numbers that Spark's hash puts into different tasks, known without a job."""

from __future__ import annotations


def spread(tasks: int) -> list[int]:
    """`tasks` integers that Spark's hash puts into as many different tasks."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < tasks:
        found.setdefault(_hash(number) % tasks, number)
        number += 1
    return list(found.values())


def _hash(number: int) -> int:
    """Murmur3 (x86, 32 bits) of an integer with the seed 42, as Spark's `hash` has it."""
    mixed = _rotate(number * 0xCC9E2D51, 15) * 0x1B873593
    mixed = (_rotate(42 ^ mixed & 0xFFFFFFFF, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotate(number: int, by: int) -> int:
    number &= 0xFFFFFFFF
    return (number << by | number >> (32 - by)) & 0xFFFFFFFF
