"""Benchmarks: each states its claim, its sizes and its seed, compares within one run, and keeps a dated result.

`python -m benchmarks` (or `make bench`) runs them all, prints the results and appends them to `benchmarks/results/`.
"""

from __future__ import annotations

__all__: list[str] = []
