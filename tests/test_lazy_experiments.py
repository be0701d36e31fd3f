"""The negations of [Lazy]'s experiments are what their definitions say, eager and lazy: NSEQ3 and AND3 with NOT."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.lazy.experiments import THRESHOLD, Experiment, batches, conj_without, negated
from benchmarks.lazy.stream import REGIONS, Prices, stream


def count_by_definition(prices: Prices, first: str, absent: str, last: str, span: int, *, any_order: bool) -> int:
    """Pairs of correlated events within `span` seconds, without a correlate of the earlier one strictly between."""
    at = {name: np.flatnonzero(prices.regions == code) for code, name in enumerate(REGIONS)}
    close = prices.histories @ prices.histories.T >= THRESHOLD
    found = 0
    for a in at[first]:
        for c in at[last]:
            low, high = min(a, c), max(a, c)
            if close[a, c] and prices.times[high] - prices.times[low] <= span and (any_order or a < c):
                between = at[absent][(at[absent] > low) & (at[absent] < high)]
                found += not close[low, between].any()
    return found


@pytest.mark.parametrize("way", ["eager", "chain", "tree"])
@pytest.mark.parametrize(("name", "minutes"), [("NSEQ3", 2.0), ("NAND3", 2.0), ("NAND3", 5.0)])
def test_negations_are_what_they_are_defined_to_be(name: str, minutes: float, way: str) -> None:
    prices = stream(12)
    any_order = name == "NAND3"
    pattern = conj_without("EU AS AF") if any_order else negated("EU AS AF")
    evaluator = Experiment(name, pattern, minutes).open(way)
    found = sum(evaluator.count(batch) for batch in batches(prices))
    assert found == count_by_definition(prices, "EU", "AS", "AF", round(minutes * 60), any_order=any_order)
    assert found > 5
